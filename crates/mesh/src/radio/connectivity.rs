//! Connectivity: which nodes can reach each other, over any number of links of the radio.

use super::channel::Channel;
use crate::position::Position;
use alloc::vec::Vec;
use meshpace_core::NodeId;

/// For each node, the lowest number of the nodes that it can reach, itself included. The numbers of
/// two nodes are equal if the nodes are connected. If `links` is given (the links that a firewall
/// permits), only these are used, and only if they are strong enough.
pub fn components(positions: &[Position], channel: &Channel, links: Option<&[(NodeId, NodeId)]>) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..positions.len()).collect();
    for_each_link(positions, channel, links, |a, b| {
        let (a, b) = (root(&mut parent, a), root(&mut parent, b));
        parent[a.max(b)] = a.min(b);
    });
    (0..positions.len()).map(|node| root(&mut parent, node)).collect()
}

/// All links, each once with the lower number first, in ascending order. If `links` is given (the
/// links that a firewall permits), only these are used, and only if they are strong enough.
pub fn links(positions: &[Position], channel: &Channel, links: Option<&[(NodeId, NodeId)]>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for_each_link(positions, channel, links, |a, b| found.push((a.min(b), a.max(b))));
    found.sort_unstable();
    found.dedup();
    found
}

/// Calls `seen` with the two ends of each link. A link of a firewall's list is reported as often as
/// it is listed.
fn for_each_link(
    positions: &[Position],
    channel: &Channel,
    links: Option<&[(NodeId, NodeId)]>,
    mut seen: impl FnMut(usize, usize),
) {
    let mut offer = |a: usize, b: usize| {
        if channel.is_link(NodeId(a as u16), NodeId(b as u16), positions[a].distance(positions[b])) {
            seen(a, b);
        }
    };
    if let Some(links) = links {
        links.iter().for_each(|(a, b)| offer(a.index(), b.index()));
    } else {
        let reach = channel.link_reach();
        let mut by_x: Vec<usize> = (0..positions.len()).collect();
        by_x.sort_by(|&a, &b| positions[a].x.total_cmp(&positions[b].x));
        for (place, &a) in by_x.iter().enumerate() {
            for &b in by_x[place + 1..].iter().take_while(|&&b| positions[b].x - positions[a].x <= reach) {
                offer(a, b);
            }
        }
    }
}

/// Root of the set of `node` in the union-find structure, with path halving.
fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::config::RadioConfig;

    fn two_ray() -> Channel {
        Channel::new(&RadioConfig::default())
    }

    #[test]
    fn links_end_at_250_metres() {
        let at = |x| Position { x, y: 0.0 };
        // The positions are unsorted on purpose. 250 m is still a link, 251 m is not.
        let positions = [at(0.0), at(501.0), at(250.0), at(-251.0), at(700.0)];
        assert_eq!(components(&positions, &two_ray(), None), [0, 1, 0, 3, 1]);
        assert_eq!(links(&positions, &two_ray(), None), [(0, 2), (1, 4)]);
    }

    #[test]
    fn a_firewall_leaves_only_its_links() {
        let positions = [0.0, 200.0, 400.0].map(|x| Position { x, y: 0.0 });
        assert_eq!(components(&positions, &two_ray(), Some(&[(NodeId(1), NodeId(2))])), [0, 1, 1]);
        let both_ways = [(NodeId(2), NodeId(1)), (NodeId(1), NodeId(2)), (NodeId(0), NodeId(2))];
        assert_eq!(links(&positions, &two_ray(), Some(&both_ways)), [(1, 2)]);
        assert_eq!(
            components(&positions, &two_ray(), Some(&[(NodeId(0), NodeId(2))])),
            [0, 1, 2],
            "too far, firewall or not"
        );
    }
}
