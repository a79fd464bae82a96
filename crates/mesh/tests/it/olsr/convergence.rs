//! From a cold start to shortest paths within the protocol's own timers.
//!
//! All have said HELLO by 2 s and heard each other by 4 s; by 6 s all know who is two hops away and by 8 s who relays for
//! them; by 13 s each of those has said so, and this travels with at most 0.5 s of jitter per hop.

use super::world::World;
use meshpace_core::NodeId;
use meshpace_mesh::OlsrMetric;
use meshpace_mesh::routing::olsr::Content;

fn converges(mut world: World, case: &str) -> World {
    let bound = 13.0 + 0.5 * f64::from(world.diameter()) + 0.1;
    world.run(bound);
    world.assert_shortest(case);
    assert_eq!(world.loops(), 0);
    // And it stays so.
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

/// More neighbours than a message holds.
#[test]
fn dense_graphs() {
    for seed in 1..=3 {
        let world = World::random(40, 700, OlsrMetric::Hops, seed);
        let degree = |n| world.links().filter(|link| link.0 == n).count();
        assert!((0..40).any(|n| degree(n) > 24), "seed {seed}: not dense enough for three parts");
        converges(world, &format!("dense, seed {seed}"));
    }
}

/// Relaying is what OLSR is about: a flooded message is sent by fewer nodes than there are.
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
    // 20 s / (4.5 to 5 s) = 4 per advertiser at least.
    assert!(made >= 4 * 3, "{made} made");
    assert!(passed_on > 0 && passed_on < made * 29 / 2, "{passed_on} of {made} x 29 passed on");
}
