//! Tests of loops. OLSR excludes loops only while all nodes have the same topology map, which is
//! not the case while a change spreads. So loops are counted under changing links, and forbidden
//! some time after the last change.

use super::world::World;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng};
use meshpace_mesh::OlsrMetric;

/// Changes one link of twelve nodes every second for 60 s. Returns the number of events after which
/// routes looped, and of all events.
fn flapping(world: &mut World, seed: u64) -> (u32, u32) {
    let mut rng = Rng::stream(seed, Purpose::Test, 1);
    let (mut looped, mut events) = (0, 0);
    for _ in 0..60 {
        let (a, b) = (rng.below(12) as u16, rng.below(12) as u16);
        if a != b {
            world.set_link(a, b, rng.uniform() < 0.3);
        }
        let end = world.now + Duration::from_secs(1);
        world.run_until(end, |world| {
            events += 1;
            looped += u32::from(world.loops() > 0);
        });
    }
    (looped, events)
}

#[test]
fn loops_are_transient() {
    let mut looped_at_all = 0;
    for seed in 1..=10 {
        let mut world = World::random(12, 10, OlsrMetric::Hops, seed);
        world.run(30.0);
        let (looped, events) = flapping(&mut world, seed);
        println!("seed {seed}: routes loop after {looped} of {events} events");
        looped_at_all += looped;
        // A link is lost after 6 s, and the last information about it expires 15 s later. A new
        // link is known to all nodes in less time.
        world.run(6.0 + 15.0 + 0.5 * f64::from(world.diameter()) + 0.1);
        let end = world.now + Duration::from_secs(20);
        world.run_until(end, |world| assert_eq!(world.loops(), 0, "seed {seed} at {}", world.now));
        world.assert_shortest(&format!("seed {seed}"));
    }
    assert!(looped_at_all > 0, "the check has never found a loop, so it may not find any");
}
