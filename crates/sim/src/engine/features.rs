//! Optional features of an engine that its configuration or its probe requires, beyond the plain
//! exchange of frames. They are determined once, so that the path of a frame tests one flag for
//! each.

use crate::probe::Interests;
use meshpace_mesh::MeshConfig;
use meshpace_mesh::Packet;
use meshpace_mesh::config::Reception;
use meshpace_mesh::link::discipline::Discipline;
use meshpace_mesh::mac::Timing;

/// Flags of the features. They do not change during a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    /// True if queue disciplines receive the data frames that their stations decode.
    pub overhears: bool,
    /// True if queue disciplines receive the result of each attempt.
    pub reports_attempts: bool,
    /// True if queue disciplines delay packets, so that they need timers.
    pub holds_back: bool,
    /// True if stations send aggregates of the packets that wait for a neighbour.
    pub aggregates: bool,
    /// True if a station may have actions besides the one that its last call returned, because of
    /// aggregates or categories.
    pub is_ht: bool,
    /// True if the engine must process a station at the end of a frame even if the station returned
    /// no action.
    pub processes_every_end: bool,
    /// True if stations receive the quality of their links.
    pub reports_link_quality: bool,
    /// True if the end of every frame is an event at every station that senses it. A receiver that
    /// sums powers cannot know before when the medium becomes idle.
    pub ends_at_all: bool,
    /// True if the end of every frame is an event at every station that can decode it, whatever its
    /// destination.
    pub ends_at_decoders: bool,
}

impl Features {
    /// Determines the features from `config`, from the queues of all nodes, and from the
    /// `interests` of the probe.
    pub fn new<'a, P: Packet + 'a>(
        config: &MeshConfig,
        timing: &Timing,
        queues: impl Iterator<Item = &'a Discipline<P>> + Clone,
        interests: Interests,
    ) -> Features {
        let any = |wants: fn(&Discipline<P>) -> bool| queues.clone().any(wants);
        let overhears = any(Discipline::wants_overheard);
        let aggregates = timing.ht.is_some_and(|ht| ht.mpdus > 1);
        let is_ht = aggregates || timing.edca;
        Features {
            overhears,
            reports_attempts: any(Discipline::wants_attempts),
            holds_back: any(Discipline::holds_back),
            aggregates,
            is_ht,
            processes_every_end: overhears || is_ht,
            reports_link_quality: timing.rates.is_some_and(|rates| rates.wants_quality()),
            ends_at_all: config.radio.reception == Reception::Sinr,
            ends_at_decoders: interests.receptions || overhears,
        }
    }
}
