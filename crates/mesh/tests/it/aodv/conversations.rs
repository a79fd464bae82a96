//! Tests of route discovery and route failure, message by message.

use super::world::{Asked, Datagram, World};
use meshpace_core::rng::Purpose;
use meshpace_core::{NodeId, Rng, Time};
use meshpace_mesh::routing::aodv::Message;
use meshpace_mesh::routing::{self, Aodv, DropReason, Protocol};
use meshpace_mesh::{AodvConfig, Body, LocalRepair};

/// Compares the first discovery over four hops with the numbers in a trace of ns-2.35 (NewReno,
/// AODV).
#[test]
fn the_first_discovery_over_four_hops_is_that_of_ns2() {
    let mut world = World::chain(4, LocalRepair::Ns2);
    world.run_until(1.0647);
    world.originate(0, 4);
    world.run_until(2.0);
    for (by, hop_count, ttl) in [(0, 1, 30), (1, 2, 29), (2, 3, 28), (3, 4, 27)] {
        let requests = world.requests(by);
        let [(_, request)] = requests[..] else { panic!("{requests:?}") };
        assert_eq!((request.hop_count, request.ttl, request.id), (hop_count, ttl, 1));
        assert_eq!((request.destination, request.destination_sequence), (NodeId(4), 0));
        assert_eq!((request.origin, request.origin_sequence), (NodeId(0), 4));
    }
    for (by, hop_count, ttl) in [(4, 1, 30), (3, 2, 29), (2, 3, 28), (1, 4, 27)] {
        let replies = world.replies(by);
        let [(_, reply)] = replies[..] else { panic!("{replies:?}") };
        assert_eq!((reply.hop_count, reply.ttl, reply.destination_sequence, reply.lifetime), (hop_count, ttl, 4, 10));
    }
    assert!(world.requests(4).is_empty() && world.replies(0).is_empty());
    // The first request leaves at once, the others within 10 ms after their arrival.
    let times: Vec<f64> = (0..4).map(|by| world.requests(by)[0].0).collect();
    assert_eq!(times[0], 1.0647);
    for pair in times.windows(2) {
        let jitter = pair[1] - pair[0] - 0.001;
        assert!((-1e-9..0.010).contains(&jitter), "{jitter}");
    }
    assert_eq!(world.delivered.len(), 1);
    assert_eq!((world.hops(0, 4), world.hops(4, 0), world.hops(2, 0)), (Some(4), Some(4), Some(2)));
}

/// The same trace, later: the first link fails, and the ring search starts from the four hops known
/// before.
#[test]
fn the_second_discovery_is_a_ring_with_the_numbers_of_ns2() {
    let mut world = World::chain(4, LocalRepair::Ns2);
    world.originate(0, 4);
    world.run_until(1.0);
    world.set_link(0, 1, false);
    world.originate(0, 4);
    world.run_until(1.1);
    let errors = world.errors(0);
    let [(at, lost)] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(*at, 1.02, "without jitter");
    assert!(lost.iter().eq([(NodeId(4), 5)]));
    // The second of two packets falls into the wait of the first request.
    world.originate(0, 4);
    world.originate(0, 4);
    world.run_until(4.0);
    let asked: Vec<_> =
        world.requests(0)[1..].iter().map(|(_, r)| (r.ttl, r.id, r.destination_sequence, r.origin_sequence)).collect();
    assert_eq!(asked[..3], [(6, 2, 5, 8), (8, 3, 5, 10), (30, 4, 5, 12)]);
    world.set_link(0, 1, true);
    world.run_until(10.0);
    assert_eq!(world.delivered.len(), 3, "the lost packet is lost, the other two waited");
    assert_eq!(world.replies(4).last().unwrap().1.destination_sequence, 6, "as in the trace: the next even number");
}

#[test]
fn an_intermediate_node_answers_from_its_cache_with_whole_seconds() {
    let mut world = World::new(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (5, 1)], LocalRepair::Off, 1);
    world.originate(0, 4);
    world.run_until(2.5);
    world.originate(5, 4);
    world.run_until(3.0);
    let (at, reply) = world.replies(1)[1];
    // Node 1 last forwarded a packet near 0 s, which renewed the route until 10 s.
    assert_eq!((reply.origin, reply.hop_count, reply.destination_sequence), (NodeId(5), 4, 4));
    assert_eq!((at, reply.lifetime), (2.501, 7));
    assert_eq!(world.requests(2).len(), 1, "the second request goes no farther than node 1");
    assert_eq!(world.hops(5, 4), Some(4));
    assert_eq!(world.delivered.len(), 2);
}

#[test]
fn a_cache_too_old_for_the_request_does_not_answer() {
    let mut world = World::new(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (5, 4)], LocalRepair::Off, 1);
    world.originate(0, 4);
    world.run_until(1.0);
    // Node 0 takes its link for broken because of one packet. It requests a sequence number above
    // the one of its neighbour.
    world.false_failures.insert((0, 1), 1);
    world.originate(0, 4);
    world.run_until(2.0);
    world.originate(0, 4);
    world.run_until(3.0);
    assert_eq!(world.requests(1).len(), 2, "node 1 has a route but must pass the request on");
    assert_eq!(world.replies(4).len(), 2);
}

#[test]
fn a_broken_link_is_reported_upstream_and_the_source_finds_another_way() {
    // The route 0-1-2-4, and the longer one 0-1-3-5-6-7-4.
    let links = [(0, 1), (1, 2), (2, 4), (1, 3), (3, 5), (5, 6), (6, 7), (7, 4)];
    let mut world = World::new(8, &links, LocalRepair::Off, 1);
    world.originate(0, 4);
    world.run_until(1.0);
    assert_eq!(world.hops(0, 4), Some(3));
    world.set_link(2, 4, false);
    world.originate(0, 4);
    world.run_until(1.5);
    // Node 2 reports at once. Node 1, over which node 0 sent, reports within 10 ms. Node 0 has no
    // precursors and sends nothing.
    let (first, second) = (world.errors(2), world.errors(1));
    assert!(first[0].1.iter().eq([(NodeId(4), 5)]) && second[0].1.iter().eq([(NodeId(4), 5)]));
    let jitter = second[0].0 - first[0].0 - 0.001;
    assert!((-1e-9..0.010).contains(&jitter), "{jitter}");
    assert_eq!((first.len(), second.len(), world.errors(0).len()), (1, 1, 0));
    assert!(world.flushed.iter().map(|&(_, by, to)| (by.0, to.0)).eq([(2, 4), (1, 2), (0, 1)]));
    assert_eq!(world.hops(0, 4), None);
    assert_eq!(world.dropped.len(), 1);
    assert_eq!(world.dropped[0].3, DropReason::LinkFailure);
    world.originate(0, 4);
    world.run_until(3.0);
    assert_eq!(world.hops(0, 4), Some(6));
    assert_eq!(world.delivered.len(), 2);
}

#[test]
fn an_error_about_a_route_over_another_neighbour_is_ignored() {
    let mut world = World::new(4, &[(0, 1), (1, 3), (0, 2)], LocalRepair::Off, 1);
    world.originate(0, 3);
    world.run_until(1.0);
    let before = world.hops(0, 3);
    assert_eq!(before, Some(2));
    // Node 2 has no route and has to forward a packet: it reports an error with sequence number 0.
    let packet = Datagram { id: 9, source: NodeId(0), destination: NodeId(3), ttl: 9, hops: 1 };
    let mut asked = Asked::default();
    let mut stray = Aodv::new(NodeId(2), AodvConfig::repairing(LocalRepair::Off), Rng::stream(1, Purpose::Test, 2));
    stray.on_packet(world.now, packet, Some(NodeId(0)), &mut asked);
    assert_eq!(asked.drops, [(Datagram { ttl: 8, ..packet }, DropReason::NoRoute)]);
    let [(Body::Routing(routing::Message::Aodv(message @ Message::Error(_))), NodeId::BROADCAST, _)] = asked.sends[..]
    else {
        panic!("{:?}", asked.sends)
    };
    for from in [NodeId(2), NodeId(1)] {
        // The first error concerns another next hop. The second one concerns this next hop, but its
        // sequence number is too old.
        world.nodes[0].on_message(world.now, from, message, &mut Asked::default());
        assert_eq!(world.hops(0, 3), before);
    }
}

#[test]
fn four_network_wide_requests_in_vain_then_silence() {
    let mut world = World::new(3, &[(0, 1)], LocalRepair::Ns2, 1);
    world.run_until(0.2);
    world.originate(0, 2);
    world.run_until(60.0);
    // There is no timer for the end of a wait: the next half-second tick sends the request. 0.2 +
    // 1.8 = 2.0; + 3.6 = 5.6, tick 6.0; + 5.4 = 11.4, tick 11.5; + 7.2 = 18.7, and at 19.0 the
    // packet is dropped.
    let times: Vec<_> = world.requests(0).iter().map(|(at, request)| (*at, request.ttl)).collect();
    assert_eq!(times, [(0.2, 30), (2.0, 30), (6.0, 30), (11.5, 30)]);
    let [(at, _, _, reason)] = world.dropped[..] else { panic!("{:?}", world.dropped) };
    assert_eq!((at.as_secs_f64(), reason), (19.0, DropReason::NoRoute));
    // A packet during the hold-down waits until its end, 29.0 s. A packet after it would have
    // caused a request at once.
    let mut again = World::new(3, &[(0, 1)], LocalRepair::Ns2, 1);
    again.run_until(0.2);
    again.originate(0, 2);
    again.run_until(20.1);
    again.originate(0, 2);
    again.run_until(30.0);
    assert_eq!(again.requests(0)[4].0, 29.0);
}

#[test]
fn waiting_packets_leave_ten_milliseconds_apart_and_the_oldest_gives_way() {
    let mut world = World::new(3, &[(0, 1)], LocalRepair::Ns2, 1);
    for _ in 0..66 {
        world.originate(0, 2);
    }
    assert!(
        world
            .dropped
            .iter()
            .map(|(_, _, packet, reason)| (packet.id, *reason))
            .eq([(0, DropReason::BufferFull), (1, DropReason::BufferFull)])
    );
    world.set_link(1, 2, true);
    world.run_until(10.0);
    let arrivals = world.arrivals();
    assert_eq!(arrivals.len(), 64);
    for (pair, id) in arrivals.windows(2).zip(2..) {
        assert_eq!(pair[0].1, id);
        assert!((pair[1].0 - pair[0].0 - 0.010).abs() < 1e-6);
    }
}

#[test]
fn a_waiting_packet_goes_at_once_when_a_request_shows_the_way() {
    let mut world = World::new(3, &[(0, 1)], LocalRepair::Ns2, 1);
    world.originate(0, 2);
    world.originate(0, 2);
    // Requests of node 0 at 0, 2, 6 and 11.5 s find no route. At 18.1 s node 1 has forgotten node 0
    // and cannot answer in its place.
    world.run_until(18.1);
    world.set_link(1, 2, true);
    world.originate(2, 0);
    world.run_until(18.2);
    let data = world.sent.iter().filter(|sent| sent.by == NodeId(0) && matches!(sent.body, Body::Data(_)));
    let [first, second] = data.collect::<Vec<_>>()[..] else { panic!("not two packets") };
    assert_eq!((first.to, first.at), (second.to, second.at), "not spaced");
    assert_eq!(first.to, NodeId(1));
}

#[test]
fn a_node_with_nothing_to_do_has_no_timer() {
    let mut world = World::chain(5, LocalRepair::Ns2);
    for node in &world.nodes {
        assert_eq!(node.next_wakeup(), Time::NEVER);
    }
    world.originate(0, 5);
    assert_ne!(world.nodes[0].next_wakeup(), Time::NEVER);
    world.run_until(0.4);
    assert_eq!(world.delivered.len(), 1);
    for node in &world.nodes {
        assert_eq!(node.next_wakeup(), Time::NEVER);
    }
}

#[test]
fn a_route_unused_for_ten_seconds_is_gone_at_the_next_half_second() {
    let mut world = World::chain(1, LocalRepair::Ns2);
    world.run_until(0.1);
    world.originate(0, 1);
    world.run_until(10.4);
    // The packet left at 0.102 and renewed the route until 10.102.
    assert_eq!(world.hops(0, 1), Some(1));
    world.run_until(10.5);
    assert_eq!(world.hops(0, 1), None);
    world.originate(0, 1);
    let (_, request) = world.requests(0)[1];
    // The number of a lost route is odd. The ring search starts from one hop.
    assert_eq!((request.destination_sequence, request.ttl), (5, 3));
}

#[test]
fn packets_that_come_home_or_grow_too_old_are_dropped() {
    let mut node = Aodv::new(NodeId(1), AodvConfig::repairing(LocalRepair::Ns2), Rng::stream(1, Purpose::Test, 1));
    let mut asked = Asked::default();
    let packet = Datagram { id: 0, source: NodeId(1), destination: NodeId(3), ttl: 9, hops: 4 };
    node.on_packet(Time::ZERO, packet, Some(NodeId(2)), &mut asked);
    let old = Datagram { id: 1, source: NodeId(0), ttl: 1, ..packet };
    node.on_packet(Time::ZERO, old, Some(NodeId(2)), &mut asked);
    assert!(asked.drops.iter().map(|drop| drop.1).eq([DropReason::Loop, DropReason::TtlExpired]));
    assert!(asked.sends.is_empty());
}

#[test]
fn a_reverse_route_lives_six_seconds() {
    let mut world = World::chain(2, LocalRepair::Ns2);
    world.originate(0, 2);
    // The request reaches node 2 within 12 ms after 0 s. Node 2 sends nothing back that would renew
    // the route.
    world.run_until(6.4);
    assert_eq!(world.hops(2, 0), Some(2));
    world.run_until(6.5);
    assert_eq!(world.hops(2, 0), None);
}

#[test]
fn a_packet_that_waits_thirty_seconds_is_dropped_when_the_next_comes() {
    let mut world = World::chain(1, LocalRepair::Ns2);
    // One second on the air means two seconds per hop, and therefore waits of 10 s: the search
    // lasts longer than the packet may wait.
    world.air = (1.0, 1.0);
    world.originate(0, 1);
    world.run_until(4.0);
    world.set_link(0, 1, false);
    world.originate(0, 1);
    world.run_until(5.0);
    let early = world.originate(0, 1);
    world.run_until(34.9);
    world.originate(0, 1);
    assert_eq!(world.dropped.len(), 1, "only the packet of the broken link");
    world.run_until(35.1);
    world.originate(0, 1);
    let (_, _, packet, reason) = world.dropped[1];
    assert_eq!((packet.id, reason), (early, DropReason::BufferTimeout));
}
