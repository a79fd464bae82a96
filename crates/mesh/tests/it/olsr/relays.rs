//! Tests of the choice of relays: RFC 3626, section 8.3.1, on neighbourhoods made by hand, and full
//! coverage on random ones.

use meshpace_core::rng::Purpose;
use meshpace_core::{NodeId, Rng};
use meshpace_mesh::routing::olsr::{choose_relays_by_cost, choose_relays_by_hops};
use std::collections::{BTreeMap, BTreeSet};

/// Chooses relays for neighbours that are given with the nodes that they reach.
fn by_hops(reach: &[(u16, &[u16])]) -> Vec<u16> {
    let neighbours: BTreeSet<_> = reach.iter().map(|&(n, _)| NodeId(n)).collect();
    let links = reach.iter().flat_map(|&(n, to)| to.iter().map(move |&w| (NodeId(n), NodeId(w)))).collect();
    choose_relays_by_hops(&neighbours, &links).into_iter().map(|node| node.0).collect()
}

#[test]
fn nobody_behind_needs_no_relay() {
    assert_eq!(by_hops(&[]), []);
    assert_eq!(by_hops(&[(1, &[2]), (2, &[1])]), [], "neighbours of each other are reached directly");
}

#[test]
fn the_only_way_to_a_node_is_a_relay() {
    // Node 10 is behind 1 only, node 13 behind 3 only. These two reach all nodes that 2 reaches.
    assert_eq!(by_hops(&[(1, &[10, 11]), (2, &[11, 12]), (3, &[12, 13])]), [1, 3]);
}

#[test]
fn the_most_of_what_is_open_then_the_degree_then_the_number() {
    // Neighbour 4 is the only way to 20. Of the remaining nodes 2 reaches three, the others two.
    let reach: [(u16, &[u16]); 4] = [(1, &[10, 11]), (2, &[10, 11, 12]), (3, &[12, 11]), (4, &[20])];
    assert_eq!(by_hops(&reach), [2, 4]);
    // Node 10 is behind both 1 and 2, but 2 has the larger degree. It also reaches 20, which 4 must
    // relay in any case.
    assert_eq!(by_hops(&[(1, &[10]), (2, &[10, 20]), (4, &[20, 21])]), [2, 4]);
    // The candidates are equal except for their numbers.
    assert_eq!(by_hops(&[(7, &[10]), (5, &[10]), (6, &[10])]), [5]);
}

#[test]
fn a_relay_that_became_superfluous_goes() {
    // Each node is behind two neighbours. 1, 2 and 3 reach four nodes each. 1 is chosen first
    // because of its number, then 2 and 3 for the rest, 15, 16, 17, 18 (two each; 4 also reaches
    // two, but has a smaller degree). Then 2 and 3 reach all nodes that 1 reaches.
    let reach: [(u16, &[u16]); 6] = [
        (1, &[11, 12, 13, 14]),
        (2, &[11, 12, 15, 17]),
        (3, &[13, 14, 16, 18]),
        (4, &[15, 16]),
        (5, &[17]),
        (6, &[18]),
    ];
    assert_eq!(by_hops(&reach), [2, 3]);
}

#[test]
fn every_node_two_hops_away_is_reached_and_every_relay_is_needed() {
    for seed in 1..=300 {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let neighbours: BTreeSet<_> = (0..1 + rng.below(9) as u16).map(NodeId).collect();
        let mut links = BTreeSet::new();
        for _ in 0..rng.below(40) {
            let neighbour = NodeId(rng.below(neighbours.len() as u64) as u16);
            // Some of the nodes are neighbours themselves.
            links.insert((neighbour, NodeId(rng.below(20) as u16)));
        }
        let behind: BTreeSet<_> = links.iter().map(|link| link.1).filter(|node| !neighbours.contains(node)).collect();
        let relays = choose_relays_by_hops(&neighbours, &links);
        let covers = |relays: &[NodeId]| behind.iter().all(|&node| relays.iter().any(|&r| links.contains(&(r, node))));
        assert!(covers(&relays), "seed {seed}");
        for out in &relays {
            let without: Vec<_> = relays.iter().copied().filter(|relay| relay != out).collect();
            assert!(!covers(&without), "seed {seed}: {out} is superfluous");
        }
    }
}

fn by_cost(neighbours: &[(u16, u32)], links: &[(u16, u16, u32)]) -> Vec<u16> {
    let neighbours: BTreeMap<_, _> = neighbours.iter().map(|&(n, cost)| (NodeId(n), cost)).collect();
    let links = links.iter().map(|&(n, w, cost)| ((NodeId(n), NodeId(w)), cost)).collect();
    choose_relays_by_cost(&neighbours, &links).into_iter().map(|node| node.0).collect()
}

#[test]
fn by_cost_the_cheapest_way_to_each_node_is_taken() {
    // 10: 3 + 1 over 1, 1 + 2 over 2. 11: only over 1. 12: 4 either way.
    let links = [(1, 10, 1), (2, 10, 2), (2, 12, 3), (3, 12, 2)];
    assert_eq!(by_cost(&[(1, 3), (2, 1), (3, 2)], &links), [2]);
    assert_eq!(by_cost(&[(1, 3), (2, 1), (3, 2)], &[(1, 11, 9)]), [1]);
}

#[test]
fn by_cost_a_poor_neighbour_has_a_relay_as_well() {
    assert_eq!(by_cost(&[(1, 1), (2, 3)], &[(1, 2, 1)]), [1]);
    assert_eq!(by_cost(&[(1, 1), (2, 2)], &[(1, 2, 1)]), [], "not better, so the direct link stays");
}
