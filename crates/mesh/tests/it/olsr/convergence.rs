//! Tests that OLSR finds the shortest paths from a cold start within the protocol's own timers.
//!
//! All nodes have sent a HELLO by 2 s and received each other's by 4 s. By 6 s all know the nodes
//! two hops away, and by 8 s the nodes that relay for them. By 13 s each of these has sent a TC,
//! which travels with at most 0.5 s of jitter per hop.

use super::world::World;
use meshpace_core::NodeId;
use meshpace_mesh::OlsrMetric;
use meshpace_mesh::routing::olsr::Content;

fn converges(mut world: World, case: &str) -> World {
    let bound = 13.0 + 0.5 * f64::from(world.diameter()) + 0.1;
    world.run(bound);
    world.assert_shortest(case);
    assert_eq!(world.loops(), 0);
    // The paths stay the shortest.
    for _ in 0..20 {
        world.run(1.7);
        world.assert_shortest(case);
    }
    world
}

#[test]
fn a_chain() {
    for seed in 1..=5 {
        let mut world = converges(World::chain(9, seed), &format!("chain, seed {seed}"));
        for n in 1..9 {
            assert_eq!(world.nodes[n].relays().len(), if n == 1 || n == 8 { 1 } else { 2 });
        }
        world.originate(0, 9);
        world.run(0.1);
        assert_eq!(world.delivered, 1);
    }
}

#[test]
fn random_graphs() {
    for seed in 1..=30 {
        converges(World::random(25, seed as u32, OlsrMetric::Hops, seed), &format!("seed {seed}"));
    }
}

/// Graphs in which nodes have more neighbours than fit into a message.
#[test]
fn dense_graphs() {
    for seed in 1..=3 {
        let world = World::random(40, 700, OlsrMetric::Hops, seed);
        let degree = |n| world.links().filter(|link| link.0 == n).count();
        assert!((0..40).any(|n| degree(n) > 24), "seed {seed}: not dense enough for three parts");
        converges(world, &format!("dense, seed {seed}"));
    }
}

/// Relaying is the purpose of OLSR: a flooded message is sent by fewer nodes than there are.
#[test]
fn only_relays_pass_messages_on() {
    let mut world = World::random(30, 150, OlsrMetric::Hops, 4);
    world.run(40.0);
    let start = world.sent.len();
    world.run(20.0);
    let recent = &world.sent[start..];
    let flooded = |by_originator: bool| {
        recent
            .iter()
            .filter(|(_, by, m)| matches!(m.content, Content::Tc(_)) && (NodeId(*by) == m.originator) == by_originator)
            .count()
    };
    let (made, passed_on) = (flooded(true), flooded(false));
    // At least 20 s / (4.5 to 5 s) = 4 per advertiser.
    assert!(made >= 4 * 3, "{made} made");
    assert!(passed_on > 0 && passed_on < made * 29 / 2, "{passed_on} of {made} x 29 passed on");
}
