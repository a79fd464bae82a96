//! Tests of link sensing: three missed HELLOs, one-way links, and reports of the MAC.

use super::world::World;
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::OlsrMetric;
use meshpace_mesh::routing::DropReason;

#[test]
fn a_link_is_lost_six_seconds_after_the_last_hello() {
    for seed in 1..=20 {
        let mut world = World::chain(2, seed);
        world.run(20.0);
        world.set_link(1, 2, false);
        world.run(0.1);
        for (at, gone) in [(1, 2), (2, 1)] {
            let last = world.heard[&(gone, at)];
            let lost = last + Duration::from_secs(6);
            let mut twin = World::chain(2, seed);
            twin.run(20.0);
            twin.set_link(1, 2, false);
            twin.run_until(Time(lost.0 - 1), |_| {});
            assert!(twin.nodes[usize::from(at)].is_symmetric(NodeId(gone)), "seed {seed}");
            assert!(twin.nodes[usize::from(at)].route(NodeId(gone)).map(|route| route.next_hop).is_some());
            twin.run_until(lost, |_| {});
            assert!(!twin.nodes[usize::from(at)].is_symmetric(NodeId(gone)), "seed {seed}");
            assert_eq!(
                twin.nodes[usize::from(at)].route(NodeId(gone)).map(|route| route.next_hop),
                None,
                "seed {seed}"
            );
        }
    }
}

/// HELLOs are 1.5 to 2 s apart. If two are missed, the time between two received ones is three
/// intervals, at most 6 s. If three are missed, it is four intervals, at least 6 s.
#[test]
fn two_missed_hellos_do_no_harm_and_three_do() {
    for (missed, lost) in [(2, false), (3, true)] {
        for seed in 1..=20 {
            let mut world = World::chain(1, seed);
            world.misses = match missed {
                2 => |from, _, count| from == 0 && (10..12).contains(&count),
                _ => |from, _, count| from == 0 && (10..13).contains(&count),
            };
            world.run(12.0);
            let mut seen = false;
            world.run_until(Time(60_000_000_000), |world| seen |= !world.nodes[1].is_symmetric(NodeId(0)));
            assert_eq!(seen, lost, "{missed} missed, seed {seed}");
            assert!(world.nodes[1].is_symmetric(NodeId(0)), "and it comes back");
        }
    }
}

#[test]
fn a_one_way_link_is_no_link() {
    let mut world = World::chain(2, 3);
    world.set_direction(2, 1, false);
    world.run(40.0);
    assert!(!world.nodes[2].is_symmetric(NodeId(1)) && !world.nodes[1].is_symmetric(NodeId(2)));
    assert_eq!((world.hops(0, 2), world.hops(2, 0), world.hops(0, 1)), (None, None, Some(1)));
}

#[test]
fn the_mac_ends_a_link_for_six_seconds_if_it_is_listened_to() {
    for link_layer in [true, false] {
        let mut world = World::new(2, OlsrMetric::Hops, link_layer, 1);
        world.set_link(0, 1, true);
        world.run(20.0);
        let failed = world.now;
        world.fail(0, 1);
        assert_eq!(world.dropped, [(failed, 0, DropReason::LinkFailure)]);
        assert_eq!(world.hops(0, 1), (!link_layer).then_some(1));
        let mut back = None;
        world.run_until(failed + Duration::from_secs(20), |world| {
            if world.hops(0, 1).is_some() && back.is_none() {
                back = Some(world.now.since(failed));
            }
        });
        let back = back.expect("HELLOs bring it back").as_secs_f64();
        if link_layer {
            // Node 1 learns of the loss and answers that it still receives node 0. Both states last
            // for at most one more HELLO.
            assert!((6.0..10.1).contains(&back), "{back} s");
        } else {
            assert!(back < 2.0);
        }
    }
}

/// Times on the air and messages are drawn from the seed alone.
#[test]
fn a_run_is_a_function_of_its_seed() {
    let sent = |seed| {
        let mut world = World::random(12, 10, OlsrMetric::Etx, seed);
        world.run(30.0);
        world.sent
    };
    assert_eq!(sent(1), sent(1));
    assert_ne!(sent(1), sent(2));
}

#[test]
fn hellos_and_tcs_keep_their_intervals() {
    use meshpace_mesh::routing::olsr::Content;
    let mut world = World::chain(3, 9);
    world.run(200.0);
    for (hello, low, high) in [(true, 1.5, 2.0), (false, 4.5, 5.0)] {
        let of_one = world.sent.iter().filter(|(at, by, message)| {
            *by == 1
                && message.originator == NodeId(1)
                && matches!(message.content, Content::Hello(_)) == hello
                && *at > Time(15_000_000_000)
        });
        let times: Vec<_> = of_one.map(|(at, ..)| at.as_secs_f64()).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() > 30 && gaps.iter().all(|gap| (low..=high).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|gap| *gap < low + 0.15) && gaps.iter().any(|gap| *gap > high - 0.15));
    }
}
