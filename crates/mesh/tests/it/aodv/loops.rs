//! Tests that no change of a route closes a loop, whatever links do and whichever messages are
//! lost.

use super::world::World;
use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_mesh::routing::aodv::ACTIVE_ROUTE_TIMEOUT;
use meshpace_mesh::{AodvConfig, AodvDetection, LocalRepair};

/// Runs twelve nodes for 60 s. Every pair is linked a quarter of the time, and one link changes
/// every 100 ms. Packets are sent between random pairs, a tenth of the routing messages is lost,
/// and frames overtake each other.
fn flapping(config: AodvConfig, seed: u64) -> World {
    let mut world = World::running(12, &[], config, seed);
    world.forbid_loops = config.local_repair != LocalRepair::Ns2;
    world.message_loss = 0.1;
    world.air = (0.0005, 0.02);
    let mut rng = Rng::stream(seed, Purpose::Test, 1);
    let pick = |rng: &mut Rng| rng.below(12) as u16;
    for a in 0..12 {
        for b in 0..a {
            world.set_link(a, b, rng.uniform() < 0.25);
        }
    }
    for step in 1..=600 {
        let (a, b) = (pick(&mut rng), pick(&mut rng));
        if a != b {
            world.set_link(a, b, rng.uniform() < 0.25);
        }
        for _ in 0..3 {
            let (from, to) = (pick(&mut rng), rng.below(3) as u16);
            if from != to {
                world.originate(from, to);
            }
        }
        world.run_until(f64::from(step) * 0.1);
    }
    world
}

#[test]
fn no_loop_under_random_flaps() {
    for local_repair in [LocalRepair::Off, LocalRepair::Rfc3561] {
        for seed in 1..=10 {
            println!("seed {seed}, {local_repair:?}");
            let world = flapping(AodvConfig::repairing(local_repair), seed);
            // The check would be meaningless if no packets arrived or no links broke.
            assert!(world.delivered.len() > 300, "{} delivered", world.delivered.len());
            assert!(world.dropped.len() > 50, "{} dropped", world.dropped.len());
            assert!((0..12).map(|n| world.errors(n).len()).sum::<usize>() > 50);
        }
    }
}

#[test]
fn no_loop_under_random_flaps_with_hellos() {
    for detection in [AodvDetection::Hello, AodvDetection::Both] {
        for local_repair in [LocalRepair::Off, LocalRepair::Rfc3561] {
            for seed in 1..=10 {
                println!("seed {seed}, {local_repair:?}, {detection:?}");
                let world = flapping(AodvConfig { detection, ..AodvConfig::repairing(local_repair) }, seed);
                assert!(world.delivered.len() > 300, "{} delivered", world.delivered.len());
                assert!((0..12).map(|n| world.errors(n).len()).sum::<usize>() > 50);
            }
        }
    }
}

/// Some nodes forget routes and others remember them: half a minute of packets alternates with a
/// minute of silence in which links keep changing, with the shortest possible DELETE_PERIOD.
#[test]
fn no_loop_when_lost_routes_are_forgotten() {
    let mut forgotten = 0;
    for seed in 1..=10 {
        println!("seed {seed}");
        let delete_period = Some(ACTIVE_ROUTE_TIMEOUT);
        let mut world =
            World::running(12, &[], AodvConfig { delete_period, ..AodvConfig::repairing(LocalRepair::Off) }, seed);
        world.forbid_loops = true;
        world.message_loss = 0.1;
        world.air = (0.0005, 0.02);
        let mut rng = Rng::stream(seed, Purpose::Test, 1);
        let pick = |rng: &mut Rng, nodes| rng.below(nodes) as u16;
        for step in 1..=4500 {
            let (a, b) = (pick(&mut rng, 12), pick(&mut rng, 12));
            if a != b {
                world.set_link(a, b, rng.uniform() < 0.3);
            }
            // One source keeps sending requests, so that they reach all nodes. The others pause.
            let source = if step % 900 < 300 { pick(&mut rng, 12) } else { 11 };
            let destination = if source == 11 { 3 + step / 100 % 5 } else { u64::from(pick(&mut rng, 3)) };
            if u64::from(source) != destination {
                world.originate(source, destination as u16);
            }
            world.run_until(f64::from(step as u32) * 0.1);
        }
        assert!(world.delivered.len() > 300, "{} delivered", world.delivered.len());
        for node in 0..12 {
            // A node that requests without a number a destination for which it had one has
            // forgotten it.
            let requests = world.requests(node);
            let numbers =
                |to: u16| requests.iter().filter(move |r| r.1.destination.0 == to).map(|r| r.1.destination_sequence);
            forgotten +=
                (0..12).map(|to| numbers(to).skip_while(|&n| n == 0).filter(|&n| n == 0).count()).sum::<usize>();
        }
    }
    assert!(forgotten > 100, "{forgotten} times");
}

/// In the reference runs of ns-2 packets are dropped at the end of their time to live from seven
/// hops on, where local repair begins. This test also shows that the check finds loops.
#[test]
fn ns2_repair_can_loop() {
    let loops: Vec<_> =
        (1..=30).map(|seed| flapping(AodvConfig::repairing(LocalRepair::Ns2), seed).loops_seen).collect();
    assert!(loops.iter().any(|&n| n > 0), "{loops:?}");
}
