//! Duties of an engine beyond the plain exchange of frames, because its configuration or its probe asks for them. Settled once, so that
//! the path of a frame asks one flag each.

use crate::probe::Interests;
use meshpace_mesh::MeshConfig;
use meshpace_mesh::Packet;
use meshpace_mesh::config::Reception;
use meshpace_mesh::link::discipline::Discipline;
use meshpace_mesh::mac::Timing;

/// The flags. They do not change during a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duties {
    /// Queue disciplines see the data frames that their stations decode.
    pub overhears: bool,
    /// Queue disciplines are told what came of each attempt.
    pub reports_attempts: bool,
    /// Queue disciplines have timers: they hold packets back.
    pub holds_back: bool,
    /// Stations send aggregates of what waits for a neighbour.
    pub aggregates: bool,
    /// Stations do more than their last call returned: aggregates, or categories of packets.
    pub is_ht: bool,
    /// A station that asks for nothing is looked after all the same at the end of a frame.
    pub follows_up: bool,
    /// Stations are told how well their neighbours hear them.
    pub tells_quality: bool,
    /// Every station is told of the end of every frame: a receiver that adds up powers cannot say before when the medium will
    /// be idle.
    pub tells_everybody: bool,
    /// Every station that can decode a frame is told of its end, whomever it is for.
    pub tells_decoders: bool,
}

impl Duties {
    /// Under `config`, with the queues of all nodes, for a probe that wants to be told of `interests`.
    pub fn new<'a, P: Packet + 'a>(
        config: &MeshConfig,
        timing: &Timing,
        queues: impl Iterator<Item = &'a Discipline<P>> + Clone,
        interests: Interests,
    ) -> Duties {
        let any = |wants: fn(&Discipline<P>) -> bool| queues.clone().any(wants);
        let overhears = any(Discipline::wants_overheard);
        let aggregates = timing.ht.is_some_and(|ht| ht.mpdus > 1);
        let is_ht = aggregates || timing.edca;
        Duties {
            overhears,
            reports_attempts: any(Discipline::wants_attempts),
            holds_back: any(Discipline::holds_back),
            aggregates,
            is_ht,
            follows_up: overhears || is_ht,
            tells_quality: timing.rates.is_some_and(|rates| rates.wants_quality()),
            tells_everybody: config.radio.reception == Reception::Sinr,
            tells_decoders: interests.receptions || overhears,
        }
    }
}
