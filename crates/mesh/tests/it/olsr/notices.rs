//! Tests of ELFN: the source of packets is notified when its route is lost and when it is found
//! again.

use super::world::{Notice, World};
use meshpace_core::NodeId;
use meshpace_mesh::routing::DropReason;

fn of(world: &World) -> Vec<(u16, Notice)> {
    world.notices.iter().map(|&(_, node, notice)| (node, notice)).collect()
}

#[test]
fn the_source_is_told_once_of_a_loss_and_once_of_the_end_of_it() {
    for seed in 1..=10 {
        let mut world = World::chain(4, seed);
        world.run(30.0);
        world.originate(0, 4);
        world.run(1.0);
        assert_eq!((world.delivered, of(&world)), (1, vec![]));
        let cut = world.now;
        world.set_link(2, 3, false);
        world.run(30.0);
        assert_eq!(of(&world), [(0, Notice::Lost(4))], "seed {seed}: only the source, only once");
        // 6 s until node 2 misses node 3, a jitter until its early TC, and one jitter per hop.
        let told = world.notices[0].0.since(cut).as_secs_f64();
        assert!(told < 6.0 + 0.5 * 3.0 + 0.1, "seed {seed}: told after {told} s");
        world.originate(0, 4);
        assert_eq!(world.dropped.last(), Some(&(world.now, 0, DropReason::NoRoute)));
        world.set_link(2, 3, true);
        world.run(30.0);
        assert_eq!(of(&world), [(0, Notice::Lost(4)), (0, Notice::Found(4))], "seed {seed}");
        world.originate(0, 4);
        world.run(1.0);
        assert_eq!(world.delivered, 2);
    }
}

#[test]
fn a_route_that_is_not_used_or_only_changes_is_no_notice() {
    // In a ring there is always the other direction.
    let mut world = World::chain(5, 2);
    world.set_link(0, 5, true);
    world.run(30.0);
    world.originate(1, 4);
    world.run(1.0);
    let over = |world: &World| (world.hops(1, 4), world.nodes[1].route(NodeId(4)).map(|route| route.next_hop));
    assert_eq!(over(&world), (Some(3), Some(NodeId(0))), "the lower number of two ways");
    world.set_link(0, 5, false);
    world.run(40.0);
    assert_eq!(over(&world), (Some(3), Some(NodeId(2))));
    assert_eq!((world.delivered, of(&world)), (1, vec![]));
    // Node 0 loses its route to 4, but without a notice: it sent no packets of its own over that
    // route.
    world.set_link(1, 2, false);
    world.run(40.0);
    assert_eq!(over(&world).0, None);
    assert_eq!(of(&world), [(1, Notice::Lost(4))]);
}
