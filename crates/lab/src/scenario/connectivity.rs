//! Which nodes can reach each other at all, over links of the radio.

use meshpace_core::NodeId;
use meshpace_mesh::config::Position;
use meshpace_mesh::radio::Channel;
use std::collections::VecDeque;

/// For each node the lowest number of the nodes it can reach, itself included: equal for nodes that are connected. With
/// `links` (a firewall's), only over these, as far as they are strong enough.
pub fn components(positions: &[Position], channel: &Channel, links: Option<&[(NodeId, NodeId)]>) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..positions.len()).collect();
    let mut join = |a: usize, b: usize| {
        if channel.is_link(NodeId(a as u16), NodeId(b as u16), positions[a].distance(positions[b])) {
            let (a, b) = (root(&mut parent, a), root(&mut parent, b));
            parent[a.max(b)] = a.min(b);
        }
    };
    if let Some(links) = links {
        links.iter().for_each(|(a, b)| join(a.index(), b.index()));
    } else {
        let reach = channel.link_reach();
        let mut by_x: Vec<usize> = (0..positions.len()).collect();
        by_x.sort_by(|&a, &b| positions[a].x.total_cmp(&positions[b].x));
        for (place, &a) in by_x.iter().enumerate() {
            for &b in by_x[place + 1..].iter().take_while(|&&b| positions[b].x - positions[a].x <= reach) {
                join(a, b);
            }
        }
    }
    (0..positions.len()).map(|node| root(&mut parent, node)).collect()
}

fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

/// Hops from `from` to every node; `None` where there is no way.
pub fn hops_from(adjacency: &[Vec<NodeId>], from: NodeId) -> Vec<Option<u64>> {
    let mut hops = vec![None; adjacency.len()];
    hops[from.index()] = Some(0);
    let mut open = VecDeque::from([(from, 0)]);
    while let Some((node, distance)) = open.pop_front() {
        for &next in &adjacency[node.index()] {
            if hops[next.index()].is_none() {
                hops[next.index()] = Some(distance + 1);
                open.push_back((next, distance + 1));
            }
        }
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_mesh::RadioConfig;

    fn two_ray() -> Channel {
        Channel::new(&RadioConfig::default())
    }

    #[test]
    fn links_end_at_250_metres() {
        let at = |x| Position { x, y: 0.0 };
        // Unsorted on purpose; 250 m is still a link, 251 m is none.
        let positions = [at(0.0), at(501.0), at(250.0), at(-251.0), at(700.0)];
        assert_eq!(components(&positions, &two_ray(), None), [0, 1, 0, 3, 1]);
    }

    #[test]
    fn a_firewall_leaves_only_its_links() {
        let positions = [0.0, 200.0, 400.0].map(|x| Position { x, y: 0.0 });
        assert_eq!(components(&positions, &two_ray(), Some(&[(NodeId(1), NodeId(2))])), [0, 1, 1]);
        assert_eq!(
            components(&positions, &two_ray(), Some(&[(NodeId(0), NodeId(2))])),
            [0, 1, 2],
            "too far, firewall or not"
        );
    }

    #[test]
    fn hops_are_counted_along_the_shortest_way() {
        let node = NodeId;
        let adjacency =
            [vec![node(1), node(2)], vec![node(0), node(2)], vec![node(0), node(1), node(3)], vec![node(2)], vec![]];
        assert_eq!(hops_from(&adjacency, node(0)), [Some(0), Some(1), Some(1), Some(2), None]);
    }
}
