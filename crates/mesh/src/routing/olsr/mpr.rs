//! Choice of relays (MPRs): a small set of neighbours, found greedily, that reaches every node two
//! hops away.
//!
//! Source: RFC 3626, section 8.3.1, with equal willingness of all nodes. With ETX: olsrd 0.4.10,
//! where the relay for a node is the neighbour with the least cost to it, and a neighbour that is
//! reached at lower cost over a relay has a relay, too. The links that the relays advertise then
//! contain a least-cost path between any two nodes (induction from the far end).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use meshpace_core::NodeId;

/// Chooses relays by RFC 3626. `neighbours` are the symmetric neighbours, `links` their links
/// (neighbour, node) to their symmetric neighbours, except this node. Returned in ascending order.
pub fn by_hops(neighbours: &BTreeSet<NodeId>, links: &BTreeSet<(NodeId, NodeId)>) -> Vec<NodeId> {
    let strict = |node: &NodeId| !neighbours.contains(node);
    // For each node two hops away, the neighbours that reach it.
    let mut reached_by: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    // For each neighbour, the number of nodes two hops away that it reaches: its degree D(y).
    let mut degree: BTreeMap<NodeId, usize> = BTreeMap::new();
    for &(neighbour, node) in links {
        if neighbours.contains(&neighbour) && strict(&node) {
            reached_by.entry(node).or_default().push(neighbour);
            *degree.entry(neighbour).or_default() += 1;
        }
    }
    // The first relays are the neighbours without which a node could not be reached.
    let mut relays: BTreeSet<NodeId> =
        reached_by.values().filter(|by| by.len() == 1).filter_map(|by| by.first().copied()).collect();
    let mut open: BTreeMap<NodeId, &Vec<NodeId>> = reached_by.iter().map(|(&node, by)| (node, by)).collect();
    open.retain(|_, by| !by.iter().any(|relay| relays.contains(relay)));
    while !open.is_empty() {
        let mut reach: BTreeMap<NodeId, usize> = BTreeMap::new();
        for by in open.values() {
            for &neighbour in *by {
                *reach.entry(neighbour).or_default() += 1;
            }
        }
        // The best neighbour reaches the most nodes that are not covered yet; ties are broken by
        // the largest degree, then the lowest number.
        let best = reach.iter().max_by_key(|&(neighbour, &count)| {
            (count, degree.get(neighbour).copied().unwrap_or(0), core::cmp::Reverse(*neighbour))
        });
        let Some((&best, _)) = best else { break };
        relays.insert(best);
        open.retain(|_, by| !by.contains(&best));
    }
    // Step 5, the optimisation: relays that the other relays make superfluous are removed.
    for relay in relays.clone() {
        let needed = reached_by.values().any(|by| by.iter().filter(|by| relays.contains(by)).eq([&relay]));
        if !needed {
            relays.remove(&relay);
        }
    }
    relays.into_iter().collect()
}

/// Chooses relays by cost. `neighbours` gives the cost of the link to each symmetric neighbour,
/// `links` the costs of the links (neighbour, node) behind them. Ties go to the lowest number.
/// Returned in ascending order.
pub fn by_cost(neighbours: &BTreeMap<NodeId, u32>, links: &BTreeMap<(NodeId, NodeId), u32>) -> Vec<NodeId> {
    let mut best: BTreeMap<NodeId, (u32, NodeId)> = BTreeMap::new();
    for (&(neighbour, node), &behind) in links {
        let Some(&cost) = neighbours.get(&neighbour) else { continue };
        let over = (cost.saturating_add(behind), neighbour);
        let known = best.entry(node).or_insert(over);
        *known = over.min(*known);
    }
    let relays: BTreeSet<NodeId> = best
        .iter()
        .filter(|&(node, &(cost, _))| neighbours.get(node).is_none_or(|&direct| cost < direct))
        .map(|(_, &(_, relay))| relay)
        .collect();
    relays.into_iter().collect()
}
