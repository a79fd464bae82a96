//! Tests of the repair of a broken link by a node near the destination, in its three variants.

use super::world::World;
use meshpace_core::NodeId;
use meshpace_mesh::LocalRepair;
use meshpace_mesh::routing::{DropReason, Protocol};

/// Runs eight hops with one packet every 50 ms, until `length` seconds after second `failure`. At
/// that time the MAC of node 5 gives up one packet although the link works. Returns the network,
/// and the longest time without an arrival in seconds.
fn false_failure(local_repair: LocalRepair, failure: u32, length: u32) -> (World, f64) {
    let mut world = World::chain(8, local_repair);
    // Answers of neighbours can cause loops under `ns2`; `loops.rs` tests that.
    world.forbid_loops = local_repair != LocalRepair::Ns2;
    for packet in 0..(failure + length) * 20 {
        world.run_until(f64::from(packet) / 20.0);
        if packet == failure * 20 {
            world.false_failures.insert((5, 6), 1);
        }
        world.originate(0, 8);
    }
    world.run_until(f64::from(failure + length + 1));
    let arrivals = world.arrivals();
    let longest = arrivals.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max);
    (world, longest)
}

#[test]
fn ns2_cannot_repair_until_the_caches_expire() {
    let (world, longest) = false_failure(LocalRepair::Ns2, 60, 40);
    // The route of node 6 expires 10 s after the last packet that it forwarded. Then a request must
    // follow.
    assert!((10.0..30.0).contains(&longest), "stall of {longest} s");
    // No error is sent during that time, so the source does not send a request either.
    assert!(world.errors(5).is_empty());
    assert_eq!(world.requests(0).len(), 1);
    // Node 5 sends a request with the number that it knows. Node 6 answers from its cache with the
    // same number and as many hops as the old route, so the answer is not accepted.
    let (_, asked) = world.requests(5)[1];
    assert_eq!((asked.origin, asked.destination_sequence), (NodeId(5), 4));
    let answer = world.replies(6).iter().map(|(_, reply)| *reply).find(|reply| reply.origin == NodeId(5)).unwrap();
    assert_eq!((answer.destination_sequence, answer.hop_count), (4, 3));
}

#[test]
fn early_in_a_run_the_wrong_timer_of_ns2_is_short_enough_to_help() {
    let (world, longest) = false_failure(LocalRepair::Ns2, 2, 10);
    // The failure is noticed at 2.025 s (5 ms on the air, 20 ms in the MAC). The wait of 1.8 s ends
    // at 3.825, which is taken for a duration: 5.85 s. The next packet then finds no route. The
    // source receives an error and sends a request.
    let [(at, _)] = world.errors(5)[..] else { panic!("{:?}", world.errors(5)) };
    assert!((5.85..5.91).contains(&at), "{at}");
    assert!((3.8..4.2).contains(&longest), "{longest}");
    assert_eq!(world.requests(0).len(), 2);
}

#[test]
fn rfc3561_repairs_at_once_and_loses_nothing() {
    let (world, longest) = false_failure(LocalRepair::Rfc3561, 2, 4);
    assert!(longest < 0.2, "{longest}");
    assert!(world.dropped.is_empty());
    assert_eq!(world.delivered.len(), 120);
    assert_eq!(world.requests(0).len(), 1, "the source notices nothing");
    let (_, asked) = world.requests(5)[1];
    // The requested number is above the old one, and the search covers max(3, 5 / 2) + 2 hops.
    assert_eq!((asked.destination_sequence, asked.ttl), (5, 5));
    assert_eq!(world.hops(5, 8), Some(3));
}

#[test]
fn without_repair_the_source_asks_again() {
    let (world, longest) = false_failure(LocalRepair::Off, 2, 4);
    assert!(longest < 0.5, "{longest}");
    assert_eq!(world.errors(5).len(), 1 + world.dropped.iter().filter(|drop| drop.3 == DropReason::NoRoute).count());
    assert_eq!(world.requests(0).len(), 2);
    assert_eq!(world.requests(5).iter().filter(|(_, request)| request.origin == NodeId(5)).count(), 0);
    assert_eq!(world.delivered.len() + world.dropped.len(), 120);
}

#[test]
fn a_repair_under_rfc3561_that_fails_tells_the_source() {
    let mut world = World::chain(8, LocalRepair::Rfc3561);
    world.originate(0, 8);
    world.run_until(1.0);
    world.set_link(5, 6, false);
    world.originate(0, 8);
    world.originate(0, 8);
    world.run_until(1.2);
    assert!(world.dropped.is_empty(), "kept while the repair goes on");
    world.run_until(2.0);
    // The failure is noticed at 1.0 + 5 ms on the air + 20 ms in the MAC. One wait of 2 x 5 hops x
    // 30 ms follows.
    let errors = world.errors(5);
    let [(at, lost)] = &errors[..] else { panic!("{errors:?}") };
    assert!((at - 1.325).abs() < 1e-9, "{at}");
    assert!(lost.iter().eq([(NodeId(8), 5)]));
    assert!(world.dropped.iter().map(|drop| (drop.1, drop.3)).eq([(NodeId(5), DropReason::NoRoute); 2]));
    assert_eq!(world.hops(0, 8), None, "the error has reached the source");
}

#[test]
fn a_link_nearer_to_the_source_is_never_repaired_locally() {
    for local_repair in [LocalRepair::Ns2, LocalRepair::Rfc3561] {
        let mut world = World::chain(8, local_repair);
        world.originate(0, 8);
        world.run_until(1.0);
        // Node 4 is in the middle: four hops travelled, four to go.
        world.false_failures.insert((4, 5), 1);
        world.originate(0, 8);
        world.run_until(2.0);
        assert_eq!(world.errors(4).len(), 1);
        assert!(world.requests(4).iter().all(|(_, request)| request.origin == NodeId(0)));
    }
}

#[test]
fn the_end_of_an_ns2_repair_is_an_instant_taken_for_a_span() {
    let mut world = World::chain(3, LocalRepair::Ns2);
    world.run_until(20.0);
    world.originate(0, 3);
    world.run_until(21.0);
    world.set_link(2, 3, false);
    world.originate(0, 3);
    world.run_until(22.0);
    // The failure is noticed at 21.0 + 2 ms on the air + 20 ms in the MAC. The route at node 2 was
    // never lost before, so the request is network-wide, with a wait of 2 x 30 x 30 ms until
    // 22.822. That point in time is added as a duration: the repair ends this much *later*.
    let (at, request) = world.requests(2)[1];
    assert!((at - 21.022).abs() < 1e-9 && request.ttl == 30, "{at} {request:?}");
    let mut wake = world.nodes[2].clone();
    // All waiting packets are dropped, so that only the end of the repair remains.
    let mut asked = super::world::Asked::default();
    for _ in 0..200 {
        let next = wake.next_wakeup();
        if next.as_secs_f64() > 43.0 {
            break;
        }
        wake.on_timer(next, &mut asked);
    }
    assert!((wake.next_wakeup().as_secs_f64() - 43.844).abs() < 1e-9, "{}", wake.next_wakeup());
}
