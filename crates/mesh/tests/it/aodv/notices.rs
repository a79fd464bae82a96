//! Tests of ELFN: the source of packets is notified when its route is lost and when it is found
//! again.

use super::world::{Notice, World};
use meshpace_mesh::{AodvConfig, AodvDetection, LocalRepair};

fn of(world: &World) -> Vec<(u16, Notice)> {
    world.notices.iter().map(|&(_, node, notice)| (node, notice)).collect()
}

#[test]
fn the_source_learns_of_a_loss_from_a_rerr_and_of_the_end_from_an_answer() {
    for seek in [false, true] {
        let mut world = World::chain(4, LocalRepair::Off);
        world.originate(0, 4);
        world.run_until(1.0);
        assert_eq!((world.delivered.len(), of(&world)), (1, vec![]), "a first discovery is no recovery");
        world.set_link(2, 3, false);
        world.originate(0, 4);
        world.originate(0, 4);
        world.run_until(2.0);
        assert_eq!(of(&world), [(0, Notice::Lost(4))], "seek {seek}: only the source, only once");
        // 2 x 1 ms, 20 ms until the MAC of node 2 gives up, and 1 ms plus jitter for the RERR at
        // node 1.
        let told = world.notices[0].0.as_secs_f64();
        assert!((1.024..1.035).contains(&told), "{told}");
        if seek {
            world.seek(0, 4);
        }
        world.run_until(20.0);
        world.set_link(2, 3, true);
        world.run_until(60.0);
        // AODV does not search for a route that nobody requests.
        assert_eq!(world.hops(0, 4).is_some() || world.notices.len() == 2, seek);
        if !seek {
            world.originate(0, 4);
            world.run_until(61.0);
        }
        assert_eq!(of(&world), [(0, Notice::Lost(4)), (0, Notice::Found(4))], "seek {seek}");
    }
}

#[test]
fn the_source_learns_of_a_loss_from_its_own_mac_or_from_silence() {
    for (detection, told) in [(AodvDetection::LinkLayer, 11.02..11.03), (AodvDetection::Hello, 11.0..13.1)] {
        let links = [(0, 1), (1, 2)];
        let mut world =
            World::running(3, &links, AodvConfig { detection, ..AodvConfig::repairing(LocalRepair::Off) }, 1);
        world.run_until(10.0);
        world.originate(0, 2);
        world.run_until(11.0);
        assert_eq!(world.delivered.len(), 1);
        world.set_link(0, 1, false);
        world.originate(0, 2);
        world.run_until(20.0);
        assert_eq!(of(&world), [(0, Notice::Lost(2))], "{detection:?}");
        let at = world.notices[0].0.as_secs_f64();
        assert!(told.contains(&at), "{detection:?}: {at}");
    }
}

#[test]
fn a_route_that_ends_unused_is_no_loss() {
    let mut world = World::chain(3, LocalRepair::Off);
    world.originate(0, 3);
    world.run_until(30.0);
    assert_eq!((world.hops(0, 3), of(&world)), (None, vec![]));
    world.originate(0, 3);
    world.run_until(31.0);
    assert_eq!((world.delivered.len(), of(&world)), (2, vec![]));
}
