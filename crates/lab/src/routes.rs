//! Hops that the packets of each flow took in a run.

use meshpace_core::{NodeId, Time};
use meshpace_mesh::body::Body;
use meshpace_mesh::mac::FrameKind;
use meshpace_sim::{Config, Event, Probe, SimPacket};
use std::collections::BTreeMap;

/// Probe that counts the data frames of each flow on each hop, including retransmissions.
/// Acknowledgements, which go in the other direction, are not counted.
#[derive(Clone, Debug)]
pub struct Routes {
    sources: Vec<NodeId>,
    hops: Vec<BTreeMap<(NodeId, NodeId), u64>>,
}

impl Routes {
    /// Creates a probe with zero counts for the flows of `config`.
    pub fn new(config: &Config) -> Routes {
        let sources: Vec<NodeId> = config.flows.iter().map(|flow| flow.from).collect();
        Routes { hops: vec![BTreeMap::new(); sources.len()], sources }
    }

    /// Counts of each flow: sender and receiver of the hop, and the number of frames.
    pub fn hops(&self) -> Vec<Vec<(usize, usize, u64)>> {
        let of_flow = |hops: &BTreeMap<(NodeId, NodeId), u64>| {
            hops.iter().map(|((from, to), frames)| (from.index(), to.index(), *frames)).collect()
        };
        self.hops.iter().map(of_flow).collect()
    }
}

impl Probe<SimPacket> for Routes {
    fn on(&mut self, _now: Time, event: Event<'_, SimPacket>) {
        if let Event::OnAir { frame } = event
            && let (FrameKind::Data, Some(Body::Data(packet))) = (frame.kind, &frame.body)
            && self.sources.get(packet.flow.index()) == Some(&packet.source)
        {
            *self.hops[packet.flow.index()].entry((frame.from, frame.to)).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::{Scenario, Source};
    use std::path::Path;

    #[test]
    fn on_a_chain_every_hop_carries_what_is_delivered_and_watching_changes_nothing() {
        let text = "duration = '5 s'\ntopology.hops = 3\n[[flow]]\nstart = '0 s'\n";
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let scenario = Scenario::read(source, Path::new("."), "test").unwrap();
        let config = &scenario.points[0].config;
        let mut routes = Routes::new(config);
        let outcome = meshpace_sim::run_with(config, 1, &mut routes);
        assert_eq!(outcome.fingerprint, meshpace_sim::run(config, 1).fingerprint);
        let hops = &routes.hops()[0];
        let ends: Vec<(usize, usize)> = hops.iter().map(|hop| (hop.0, hop.1)).collect();
        assert_eq!(ends, [(0, 1), (1, 2), (2, 3)]);
        let delivered = outcome.flows[0].delivered_bytes / 1460;
        assert!(delivered > 10 && hops.iter().all(|hop| hop.2 >= delivered), "{delivered} of {hops:?}");
    }
}
