//! Tests of the engine's own actions, in addition to those that a driver requests.

use super::Engine;
use crate::mobility::{Mobility, Motion, Move};
use crate::queue::Owner;
use meshpace_core::{Duration, FlowId, NodeId, Time};
use meshpace_mesh::config::{Position, Reception, RtsPolicy};
use meshpace_mesh::mac::Category;
use meshpace_mesh::radio::{Band, Links, Ofdm, OfdmRate};
use meshpace_mesh::{
    EdcaConfig, HtConfig, MacConfig, MacProfile, MeshConfig, Packet, Propagation, RadioConfig, RetryLimits,
};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Datagram {
    id: u32,
    from: NodeId,
    category: Category,
}

impl Packet for Datagram {
    fn source(&self) -> NodeId {
        self.from
    }

    fn destination(&self) -> NodeId {
        NodeId(self.from.0 - 1)
    }

    fn flow(&self) -> FlowId {
        FlowId(0)
    }

    fn size(&self) -> u32 {
        1_500
    }

    fn id(&self) -> u32 {
        self.id
    }

    fn hops(&self) -> u8 {
        0
    }

    fn count_hop(&mut self) {}

    fn decrement_ttl(&mut self) -> bool {
        true
    }

    fn category(&self) -> Category {
        self.category
    }
}

/// Aggregates are sent from 2 to 1 and from 1 to 0. Node 2 does not receive 0, so that its NAV ends
/// without a frame.
fn chain(edca: Option<EdcaConfig>) -> MeshConfig {
    let (data, basic) = (OfdmRate::mcs(7, false).unwrap(), OfdmRate::NonHt(0));
    let links = [(0, 1), (1, 0), (1, 2), (2, 1)].map(|(from, to)| (NodeId(from), NodeId(to), -50.0));
    MeshConfig {
        radio: RadioConfig {
            rate: data.rate(),
            basic_rate: basic.rate(),
            ofdm: Some(Ofdm { band: Band::Five, data, basic }),
            reception: Reception::Sinr,
            propagation: Propagation::Links(Links::new(links.to_vec())),
            noise_dbm: -94.0,
            carrier_sense_dbm: -62.0,
            ..RadioConfig::default()
        },
        mac: MacConfig {
            profile: MacProfile::Ieee,
            rts: RtsPolicy::Always,
            retries: RetryLimits { short: 7, long: 7 },
            ht: Some(HtConfig { edca, ..HtConfig::default() }),
        },
        ..MeshConfig::default()
    }
}

/// Runs 0.2 s and returns the fingerprint and the number of frames. If `looks`, the timers of the
/// reorder buffers fire repeatedly while nothing is due.
fn fingerprint(config: &MeshConfig, looks: bool) -> (u64, u64) {
    const STEP: u64 = 50_000;
    let places = [0.0, 10.0, 20.0].map(|x| Position { x, y: 0.0 });
    let mut engine = Engine::new(&places, config, [NodeId(0), NodeId(1)], 1, ());
    for step in 0..4_000u64 {
        // The stations start one after the other, so that their first ARP requests do not collide.
        for (from, turn, urgent) in [(1, 0, Category::Voice), (2, 4, Category::Video)] {
            if step % 8 == turn {
                let from = NodeId(from);
                for (category, place) in [(urgent, 0), (Category::BestEffort, 1)] {
                    engine.inject(from, Datagram { id: 2 * step as u32 + place, from, category });
                }
            }
        }
        if looks {
            let at = engine.now() + Duration(step * 7_919 % STEP + 1);
            (0..3).for_each(|node| engine.queue.set_timer(Owner::Reorder, NodeId(node), at));
        }
        while engine.advance(Time((step + 1) * STEP)).is_some() {}
    }
    (engine.fingerprint(), engine.frames())
}

#[test]
fn a_station_that_looks_after_its_reordering_buffers_sends_what_it_would() {
    for edca in [None, Some(EdcaConfig::default())] {
        let config = chain(edca);
        let left_alone = fingerprint(&config, false);
        assert!(left_alone.1 > 150, "{} frames", left_alone.1);
        assert_eq!(fingerprint(&config, true), left_alone, "{edca:?}");
    }
}

#[test]
fn the_power_of_a_neighbour_is_that_of_where_it_is() {
    let at = |x| Position { x, y: 0.0 };
    let (here, there, seconds) = (NodeId(0), NodeId(1), 1_000_000_000);
    let still = |x| {
        let mut engine = Engine::<Datagram, ()>::new(&[at(0.0), at(x)], &MeshConfig::default(), [here], 1, ());
        engine.received_power_dbm(here, there)
    };
    let walk = Move { node: there, start: Time(0), end: Time(10 * seconds), to: at(1_100.0) };
    let places = [at(0.0), at(100.0)];
    let mut walking = Engine::<Datagram, ()>::new(&places, &MeshConfig::default(), [here], 1, ());
    walking.set_motion(Motion::new(&places, &Mobility::Scripted(alloc::vec![walk]), 1).unwrap());
    assert_eq!(walking.received_power_dbm(here, there), still(100.0));
    while walking.advance(Time(seconds)).is_some() {}
    let now = walking.received_power_dbm(here, there).unwrap();
    assert!((now - still(200.0).unwrap()).abs() < 0.01, "{now} dBm at 200 m");
    while walking.advance(Time(9 * seconds)).is_some() {}
    assert_eq!(walking.received_power_dbm(here, there), None, "too far away to be sensed");
}
