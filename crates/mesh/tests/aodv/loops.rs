//! No change of any route may close a loop, whatever links do and whichever messages are lost.

use crate::world::World;
use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_mesh::{AodvDetection, LocalRepair};

/// Twelve nodes, every pair linked a quarter of the time, a link changing each 100 ms, packets between random pairs, a tenth
/// of the routing messages lost, frames overtaking each other; 60 s.
fn flapping(local_repair: LocalRepair, detection: AodvDetection, seed: u64) -> World {
    let mut world = World::detecting(12, &[], local_repair, detection, seed);
    world.forbid_loops = local_repair != LocalRepair::Ns2;
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
            let world = flapping(local_repair, AodvDetection::LinkLayer, seed);
            // The check would be empty if nothing got through or nothing broke.
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
                let world = flapping(local_repair, detection, seed);
                assert!(world.delivered.len() > 300, "{} delivered", world.delivered.len());
                assert!((0..12).map(|n| world.errors(n).len()).sum::<usize>() > 50);
            }
        }
    }
}

/// The reference runs of ns-2 drop packets at the end of their time to live from seven hops on, where local repair sets in. It
/// also shows that the check finds loops.
#[test]
fn ns2_repair_can_loop() {
    let loops: Vec<_> =
        (1..=30).map(|seed| flapping(LocalRepair::Ns2, AodvDetection::LinkLayer, seed).loops_seen).collect();
    assert!(loops.iter().any(|&n| n > 0), "{loops:?}");
}
