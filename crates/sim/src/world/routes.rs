//! How long flows are without a route while nodes move: a sample every 0.1 s.

use alloc::vec;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId};
use meshpace_mesh::config::Position;
use meshpace_mesh::radio::Channel;

/// The time between two samples. A node at 9 m/s moves 0.9 m in it.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// What was counted of a flow, in samples.
#[derive(Clone, Copy, Default)]
pub struct Absence {
    /// The source's routing knew no route.
    pub route: u32,
    /// There was no path of links.
    pub path: u32,
}

/// For each node the lowest number of those it can reach over links of the radio.
pub fn components(positions: &[Position], channel: &Channel) -> Vec<u16> {
    const UNSEEN: u16 = u16::MAX;
    let mut component = vec![UNSEEN; positions.len()];
    let mut open = Vec::new();
    for first in 0..positions.len() {
        if component[first] != UNSEEN {
            continue;
        }
        component[first] = first as u16;
        open.push(first);
        while let Some(node) = open.pop() {
            for (other, place) in positions.iter().enumerate() {
                let distance = positions[node].distance(*place);
                let is_link = || channel.is_link(NodeId(node as u16), NodeId(other as u16), distance);
                if component[other] == UNSEEN && is_link() {
                    component[other] = first as u16;
                    open.push(other);
                }
            }
        }
    }
    component
}

/// Whether a path joins two nodes.
pub fn joined(components: &[u16], from: NodeId, to: NodeId) -> bool {
    components[from.index()] == components[to.index()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_mesh::RadioConfig;

    #[test]
    fn links_end_at_250_metres() {
        let positions = [0.0, 501.0, 250.0, -251.0, 700.0].map(|x| Position { x, y: 0.0 });
        assert_eq!(components(&positions, &Channel::new(&RadioConfig::default())), [0, 1, 0, 3, 1]);
    }
}
