//! Tests of HELLO detection (RFC 3561, section 6.9, with the numbers of AODV-UU 0.9.1).

use super::world::World;
use meshpace_core::NodeId;
use meshpace_mesh::routing::DropReason;
use meshpace_mesh::{AodvConfig, AodvDetection, LocalRepair};

fn world(links: &[(u16, u16)], nodes: u16, detection: AodvDetection) -> World {
    World::running(nodes, links, AodvConfig { detection, ..AodvConfig::repairing(LocalRepair::Off) }, 7)
}

/// Times of the HELLOs that a node has sent, in seconds.
fn hellos(world: &World, by: u16) -> Vec<f64> {
    let replies = world.replies(by);
    replies.iter().filter(|(_, reply)| reply.is_hello()).map(|&(at, _)| at).collect()
}

#[test]
fn hellos_come_each_second_with_jitter_and_teach_neighbours() {
    let mut world = world(&[(0, 1), (1, 2)], 3, AodvDetection::Hello);
    world.run_until(100.0);
    for node in 0..3 {
        let times = hellos(&world, node);
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(times[0] < 1.0 && gaps.iter().all(|gap| (0.95..1.05).contains(gap)), "{gaps:?}");
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The standard error of a uniform distribution of width 0.1 over 98 gaps is 0.0029.
        assert!((mean - 1.0).abs() < 0.015 && gaps.iter().any(|gap| (gap - 1.0).abs() > 0.02), "{mean}");
    }
    // No packet or request was sent, so there are no routes over two hops.
    assert_eq!((world.hops(0, 1), world.hops(1, 2), world.hops(0, 2)), (Some(1), Some(1), None));
    let (_, hello) = world.replies(1)[0];
    assert_eq!((hello.destination, hello.ttl, hello.lifetime, hello.hop_count), (NodeId(1), 1, 2, 1));
    assert!((0..3).all(|node| world.requests(node).is_empty()));
}

#[test]
fn who_broadcasts_otherwise_says_no_hello() {
    let mut world = world(&[(0, 1)], 3, AodvDetection::Hello);
    // There is no path to node 2. The search sends a network-wide request whenever it may, here
    // about every half second.
    world.run_until(5.2);
    world.originate(0, 2);
    let asked = world.requests(0)[0].0;
    world.run_until(6.1);
    assert!(hellos(&world, 0).iter().all(|&at| at < asked || at >= asked + 1.0), "{:?}", hellos(&world, 0));
    world.run_until(6.3);
    assert!(hellos(&world, 0).iter().any(|&at| (at - asked - 1.0).abs() < 1e-9), "a second after the request");
}

#[test]
fn a_silent_neighbour_is_lost_after_two_hellos() {
    for detection in [AodvDetection::Hello, AodvDetection::Both] {
        let mut world = world(&[(0, 1), (1, 2)], 3, detection);
        world.originate(0, 2);
        world.run_until(10.3);
        assert_eq!(world.delivered.len(), 1);
        let last = *hellos(&world, 2).last().unwrap() + 0.001;
        world.set_link(1, 2, false);
        world.run_until(last + 2.0999);
        assert_eq!(world.hops(1, 2), Some(1));
        world.run_until(last + 2.1001);
        assert_eq!(world.hops(1, 2), None, "two intervals and the slack");
        let errors = world.errors(1);
        let [(at, lost)] = &errors[..] else { panic!("{errors:?}") };
        assert!((at - last - 2.1).abs() < 1e-6 && lost.iter().any(|(node, _)| node == NodeId(2)));
        world.set_link(1, 2, true);
        world.run_until(last + 4.0);
        assert_eq!(world.hops(1, 2), Some(1), "back with the next HELLO, although its number is older");
    }
}

/// Every second HELLO is lost.
#[test]
fn one_missed_hello_does_no_harm() {
    let mut world = world(&[(0, 1)], 2, AodvDetection::Hello);
    world.run_until(3.0);
    for step in 300..6000 {
        let said = hellos(&world, 0).len();
        world.set_direction(0, 1, said.is_multiple_of(2));
        world.run_until(f64::from(step) * 0.01);
        assert!(world.hops(1, 0).is_some(), "at {}", world.now);
    }
    assert!(hellos(&world, 0).len() > 55);
}

#[test]
fn failures_of_the_mac_count_only_where_they_are_to() {
    for (detection, breaks) in [(AodvDetection::Hello, false), (AodvDetection::Both, true)] {
        let mut world = world(&[(0, 1)], 2, detection);
        world.run_until(3.0);
        world.false_failures.insert((0, 1), 1);
        world.originate(0, 1);
        world.run_until(3.03);
        assert_eq!(world.hops(0, 1), (!breaks).then_some(1), "{detection:?}");
        let [(_, node, _, reason)] = world.dropped[..] else { panic!("{:?}", world.dropped) };
        assert_eq!((node, reason), (NodeId(0), DropReason::LinkFailure));
        world.run_until(6.0);
        assert_eq!(world.hops(0, 1), Some(1), "{detection:?}: HELLOs bring it back");
    }
}

/// The gray zone of the testbed: node 1 receives node 0 but not vice versa, and node 1 takes the
/// link for usable although no data passes.
#[test]
fn a_one_way_link_is_believed() {
    let mut world = world(&[], 2, AodvDetection::Hello);
    world.set_direction(0, 1, true);
    world.run_until(5.0);
    assert_eq!((world.hops(1, 0), world.hops(0, 1)), (Some(1), None));
    world.originate(1, 0);
    world.run_until(10.0);
    assert_eq!((world.hops(1, 0), world.delivered.len(), world.dropped.len()), (Some(1), 0, 1));
}
