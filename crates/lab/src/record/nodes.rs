//! Option `--per-node`: what each node lost, and its share of air time. A probe counts both, so
//! that runs without the option have no extra cost.

use super::column::{columns, number};
use meshpace_core::{Duration, Time};
use meshpace_sim::{Config, Event, Loss, Outcome, Probe, SimPacket};

columns! {
    /// One node of a run.
    pub struct NodeRecord {
        /// Its number.
        id: usize;
        /// Frames that its MAC gave up at its retry limit, in the whole run.
        mac_drops: u64;
        /// Packets and routing messages that its interface queue or its marker dropped, in the whole run.
        queue_drops: u64;
        /// Share of the run in which it sent, preambles included, a ratio.
        #[serde(deserialize_with = "number")]
        airtime_share: f64;
    }
}

/// Counters of a node.
#[derive(Clone, Copy, Default)]
struct Counts {
    mac_drops: u64,
    queue_drops: u64,
    on_air: Duration,
}

struct Counter(Vec<Counts>);

impl Probe<SimPacket> for Counter {
    fn on(&mut self, _now: Time, event: Event<'_, SimPacket>) {
        match event {
            Event::OnAir { frame } => {
                let on_air = &mut self.0[frame.from.index()].on_air;
                *on_air = *on_air + frame.air_time;
            }
            Event::LinkFailure { node, .. } => self.0[node.index()].mac_drops += 1,
            Event::Loss { node, reason: Loss::Queue(_), .. } => self.0[node.index()].queue_drops += 1,
            _ => {}
        }
    }
}

/// Runs `config` with `seed` and counts by node. Returns the outcome and one record for each node.
pub fn run(config: &Config, seed: u64) -> (Outcome, Vec<NodeRecord>) {
    let mut counter = Counter(vec![Counts::default(); config.positions.len()]);
    let outcome = meshpace_sim::run_with(config, seed, &mut counter);
    let record = |(id, counts): (usize, &Counts)| NodeRecord {
        id,
        mac_drops: counts.mac_drops,
        queue_drops: counts.queue_drops,
        airtime_share: counts.on_air.as_secs_f64() / outcome.ended_s,
    };
    let nodes = counter.0.iter().enumerate().map(record).collect();
    (outcome, nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::{Scenario, Source};
    use std::path::Path;

    #[test]
    fn the_nodes_add_up_to_the_run_and_change_nothing() {
        let text = "duration = '20 s'\ntopology.hops = 6\nrouting.protocol = 'aodv'\nradio.queue = 5\n[[flow]]\nfrom = 0\nto = 6\n\
            transport = 'newreno'\n[[flow]]\nfrom = 6\nto = 0\ntransport = 'udp'\ntraffic = 'cbr'\nrate = '400 kbit/s'\n";
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let scenario =
            Scenario::read(source, Path::new("."), "test").unwrap_or_else(|why| panic!("{}", why.render(false)));
        let config = &scenario.points[0].config;
        let (outcome, nodes) = run(config, 1);
        let plain = meshpace_sim::run(config, 1);
        assert_eq!(outcome.fingerprint, plain.fingerprint);
        assert_eq!(nodes.iter().map(|node| node.mac_drops).sum::<u64>(), plain.counters.mac_drops);
        assert_eq!(nodes.iter().map(|node| node.queue_drops).sum::<u64>(), plain.counters.queue_drops);
        assert!(plain.counters.mac_drops > 0 && plain.counters.queue_drops > 0, "{:?}", plain.counters);
        let shares: f64 = nodes.iter().map(|node| node.airtime_share).sum();
        // Of six hops at most three send at a time.
        assert!(nodes.iter().all(|node| node.airtime_share > 0.0) && (0.3..3.0).contains(&shares), "{nodes:?}");
    }
}
