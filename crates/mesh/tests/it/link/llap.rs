//! Tests of the rules of LLAP's scheduler (LLAP, III).

use super::parcel::{ME, Parcel, id, ms, routing, towards};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::Body;
use meshpace_mesh::Queued;
use meshpace_mesh::link::llap::{DelayUpdate, Llap, LlapConfig, QueueLimit, RelayDelay};

const FAR: NodeId = NodeId(9);
const NEXT: u16 = 1;

fn own(id: u32) -> Queued<Parcel> {
    towards(NEXT, Parcel { id, ..Parcel::default() })
}

fn relayed(id: u32) -> Queued<Parcel> {
    towards(NEXT, Parcel { id, source: NodeId(7), ..Parcel::default() })
}

fn llap(config: LlapConfig) -> Llap<Parcel> {
    config.check().expect("in range");
    Llap::new(ME, config)
}

/// Sends `packet`, which takes `here` ms, and overhears it `there` ms later. Returns the time
/// afterwards.
fn pass(llap: &mut Llap<Parcel>, packet: Queued<Parcel>, now: u64, here: u64, there: u64) -> u64 {
    let number = id(&packet);
    assert!(llap.push(ms(now), packet, Some(5)).is_none());
    assert_eq!(id(&llap.pop(ms(now)).expect("due at once")), number);
    llap.on_sent(ms(now + here));
    llap.on_overheard(ms(now + here + there), NodeId(NEXT), number);
    now + here + there
}

/// Time at which each waiting packet becomes ready, if the MAC takes it at once.
fn ready(llap: &mut Llap<Parcel>, from: u64) -> Vec<(u32, u64)> {
    let mut now = ms(from);
    let mut seen = Vec::new();
    loop {
        while let Some(packet) = llap.pop(now) {
            seen.push((id(&packet), now.since(Time::ZERO).0 / 1_000_000));
        }
        if llap.next_wakeup() == Time::NEVER {
            return seen;
        }
        assert!(llap.next_wakeup() > now, "a wake-up in the past");
        now = llap.next_wakeup();
        llap.schedule(now);
    }
}

#[test]
fn source_spaces_by_hops_times_the_next_nodes_time() {
    // LLAP III.D with NHT = 10 ms: h = 1 is not paced; 2: 20 ms, 3: 30 ms, 4 and more: 40 ms.
    for (hops, spacing) in [(1, 0), (2, 20), (3, 30), (4, 40), (10, 40)] {
        let mut llap = llap(LlapConfig::default());
        let now = pass(&mut llap, own(0), 0, 5, 10);
        for number in 1..=4 {
            assert!(llap.push(ms(now), own(number), Some(hops)).is_none());
        }
        // Packet 0 was released at 0 ms. All others have arrived by 15 ms.
        let expected: Vec<_> = (1..=4).map(|n| (n, (u64::from(n) * spacing).max(now))).collect();
        assert_eq!(ready(&mut llap, now), expected, "{hops} hops");
    }
}

#[test]
fn a_source_that_was_idle_longer_does_not_wait() {
    let mut llap = llap(LlapConfig::default());
    pass(&mut llap, own(0), 0, 5, 10);
    assert!(llap.push(ms(500), own(1), Some(5)).is_none());
    assert!(llap.push(ms(500), own(2), Some(5)).is_none());
    assert_eq!(ready(&mut llap, 500), [(1, 500), (2, 540)]);
}

#[test]
fn a_slower_next_node_postpones_what_waits_already() {
    let mut llap = llap(LlapConfig::default());
    pass(&mut llap, own(0), 0, 5, 10);
    // The next packet is released at 40 ms with NHT = 10 ms.
    for number in 1..=3 {
        assert!(llap.push(ms(20), own(number), Some(5)).is_none());
    }
    assert_eq!(llap.next_wakeup(), ms(40));
    llap.schedule(ms(40));
    assert_eq!(id(&llap.pop(ms(40)).expect("released")), 1);
    assert_eq!(llap.next_wakeup(), ms(80));
    llap.on_sent(ms(45));
    llap.on_overheard(ms(75), NodeId(NEXT), 1);
    // NHT = 0.8 * 10 + 0.2 * 30 = 14 ms: 56 ms after 40.
    assert_eq!(llap.next_wakeup(), ms(96));
    assert_eq!(ready(&mut llap, 75), [(2, 96), (3, 152)]);
}

/// A relay with HT = 5 ms and NHT = 15 ms, and therefore PD = 10 ms.
fn slowed_relay(config: LlapConfig) -> (Llap<Parcel>, u64) {
    let mut llap = llap(config);
    let now = pass(&mut llap, relayed(0), 0, 5, 15);
    let now =
        if config.delay_update == DelayUpdate::Overhearing { now } else { pass(&mut llap, relayed(1), now, 5, 15) };
    let delay = llap.estimate(FAR).expect("seen").relay_delay();
    assert!((delay - 0.010).abs() < 1e-12, "{delay}");
    (llap, now)
}

#[test]
fn relay_holds_every_packet_for_its_delay() {
    for delay_update in [DelayUpdate::Transmission, DelayUpdate::Overhearing] {
        let (mut llap, now) = slowed_relay(LlapConfig { delay_update, ..LlapConfig::default() });
        assert!(llap.push(ms(now), relayed(10), None).is_none());
        assert!(llap.push(ms(now + 4), relayed(11), None).is_none());
        assert_eq!(ready(&mut llap, now + 4), [(10, now + 10), (11, now + 14)]);
    }
}

#[test]
fn relay_spaces_packets_if_that_is_the_reading() {
    let (mut llap, now) = slowed_relay(LlapConfig { relay_delay: RelayDelay::Space, ..LlapConfig::default() });
    // The last release was 20 ms ago, when packet 1 arrived.
    for number in 10..13 {
        assert!(llap.push(ms(now), relayed(number), None).is_none());
    }
    assert_eq!(ready(&mut llap, now), [(10, now), (11, now + 10), (12, now + 20)]);
}

#[test]
fn last_relay_forwards_at_once() {
    let (mut llap, now) = slowed_relay(LlapConfig::default());
    // The route has become shorter: the next node is now the destination.
    let last = towards(FAR.0, Parcel { id: 20, source: NodeId(7), ..Parcel::default() });
    assert!(llap.push(ms(now), last, None).is_none());
    assert_eq!(llap.pop(ms(now)).map(|p| id(&p)), Some(20));
    // The packet is not expected to be forwarded, so overhearing its number has no effect.
    let before = *llap.estimate(FAR).expect("seen");
    llap.on_sent(ms(now + 5));
    llap.on_overheard(ms(now + 500), FAR, 20);
    assert_eq!(llap.estimate(FAR).and_then(|e| e.nht()), before.nht());
}

#[test]
fn own_and_relayed_packets_for_one_destination_wait_apart() {
    let both = |by_origin| {
        let (mut llap, now) = slowed_relay(LlapConfig { by_origin, ..LlapConfig::default() });
        for packet in [own(10), own(11), relayed(12)] {
            assert!(llap.push(ms(now), packet, Some(5)).is_none());
        }
        (ready(&mut llap, now), now)
    };
    // NHT = 15 ms: the source's spacing is 60 ms, the relay's delay 10 ms.
    let (apart, now) = both(true);
    assert_eq!(apart, [(10, now), (12, now + 10), (11, now + 60)]);
    // In one queue the relayed packet waits behind the second own packet. The last release was 20
    // ms ago.
    let (together, now) = both(false);
    assert_eq!(together, [(10, now + 40), (11, now + 100), (12, now + 100)]);
}

#[test]
fn flows_to_one_destination_share_the_spacing_and_destinations_do_not() {
    let mut llap = llap(LlapConfig::default());
    let now = pass(&mut llap, own(0), 0, 5, 10);
    let other_flow = towards(NEXT, Parcel { id: 2, flow: 5, ..Parcel::default() });
    let elsewhere = towards(NEXT, Parcel { id: 3, destination: NodeId(8), ..Parcel::default() });
    for packet in [own(1), other_flow, elsewhere] {
        assert!(llap.push(ms(now), packet, Some(5)).is_none());
    }
    // Nothing is known about node 8, so its packet does not wait.
    assert_eq!(ready(&mut llap, now), [(3, 15), (1, 40), (2, 80)]);
}

#[test]
fn tcp_acks_are_paced_unless_the_reading_says_no() {
    for (pace_acks, expected) in [(true, 40), (false, 15)] {
        let mut llap = llap(LlapConfig { pace_acks, ..LlapConfig::default() });
        let now = pass(&mut llap, own(0), 0, 5, 10);
        let ack = towards(NEXT, Parcel { id: 1, ack: true, size: 40, ..Parcel::default() });
        assert!(llap.push(ms(now), ack, Some(5)).is_none());
        assert_eq!(ready(&mut llap, now), [(1, expected)]);
    }
}

#[test]
fn queues_hold_25_packets_each_or_together() {
    let accepted = |limit| {
        let mut llap = llap(LlapConfig { limit, ..LlapConfig::default() });
        // Nothing is known yet, so the first 25 move to the transmission queue and stay there.
        let to = |destination, id| towards(NEXT, Parcel { id, destination: NodeId(destination), ..Parcel::default() });
        let to_far = (0..100).filter(|&n| llap.push(ms(0), to(9, n), Some(5)).is_none()).count();
        let to_other = (100..200).filter(|&n| llap.push(ms(0), to(8, n), Some(5)).is_none()).count();
        assert_eq!(llap.len(), to_far + to_other);
        (to_far, to_other)
    };
    assert_eq!(accepted(QueueLimit::PerQueue), (50, 25));
    assert_eq!(accepted(QueueLimit::PerNode), (50, 0));
}

#[test]
fn packets_wait_in_front_of_a_full_transmission_queue_and_none_is_lost() {
    let mut llap = llap(LlapConfig { queue: 3, ..LlapConfig::default() });
    for number in 0..6 {
        assert!(llap.push(ms(0), own(number), Some(5)).is_none());
    }
    assert_eq!(llap.next_wakeup(), Time::NEVER, "no room: time changes nothing");
    let order: Vec<u32> = (0..6).map(|_| id(&llap.pop(ms(1)).expect("waiting"))).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    assert!(llap.pop(ms(1)).is_none());
}

#[test]
fn routing_packets_are_not_paced_go_first_and_push_out_the_last() {
    let mut llap = llap(LlapConfig { queue: 3, ..LlapConfig::default() });
    for number in 0..4 {
        assert!(llap.push(ms(0), own(number), Some(5)).is_none());
    }
    // Packets 0, 1, 2 are in the transmission queue, 3 is in front of it.
    assert_eq!(llap.push(ms(0), routing(), None).map(|p| id(&p)), Some(2));
    assert!(matches!(llap.pop(ms(0)).map(|p| p.body), Some(Body::Routing(_))));
    let rest: Vec<u32> = core::iter::from_fn(|| llap.pop(ms(0))).map(|p| id(&p)).collect();
    assert_eq!(rest, [0, 1, 3]);
    // It belongs to no destination, so its end is not a sample.
    assert!(llap.push(ms(1), routing(), None).is_none());
    assert!(llap.pop(ms(1)).is_some());
    llap.on_sent(ms(2));
    assert!(llap.estimate(FAR).is_none());
}

#[test]
fn what_is_not_overheard_in_time_gives_no_sample() {
    let mut llap = llap(LlapConfig::default());
    assert!(llap.push(ms(0), relayed(1), None).is_none());
    assert!(llap.pop(ms(0)).is_some());
    llap.on_sent(ms(5));
    llap.on_overheard(ms(1006), NodeId(NEXT), 1);
    let estimate = llap.estimate(FAR).expect("HT was sampled");
    assert_eq!(estimate.nht(), None);
    assert_eq!(estimate.ht(), Some(0.005));
}

#[test]
fn a_packet_the_mac_gave_up_gives_no_sample() {
    let mut llap = llap(LlapConfig::default());
    assert!(llap.push(ms(0), relayed(1), None).is_none());
    assert!(llap.pop(ms(0)).is_some());
    llap.on_failed();
    llap.on_sent(ms(50));
    llap.on_overheard(ms(60), NodeId(NEXT), 1);
    assert!(llap.estimate(FAR).is_none());
}

#[test]
fn the_source_does_not_measure_its_own_pacing() {
    let mut llap = llap(LlapConfig::default());
    pass(&mut llap, own(0), 0, 5, 10);
    assert_eq!(llap.estimate(FAR).expect("overheard").ht(), None);
}

#[test]
fn spacing_never_exceeds_its_bound() {
    let config = LlapConfig { max_delay: Duration::from_millis(100), ..LlapConfig::default() };
    let mut llap = llap(config);
    let now = pass(&mut llap, own(0), 0, 5, 300);
    for number in 1..=3 {
        assert!(llap.push(ms(now), own(number), Some(9)).is_none());
    }
    // Four times 300 ms is more than the limit of 100 ms.
    assert_eq!(ready(&mut llap, now), [(1, 305), (2, 405), (3, 505)]);
}

#[test]
fn a_failed_links_packets_can_all_be_taken_out() {
    let (mut llap, now) = slowed_relay(LlapConfig { queue: 2, ..LlapConfig::default() });
    let other = towards(3, Parcel { id: 30, destination: NodeId(3), ..Parcel::default() });
    for packet in [other, relayed(31), relayed(32)] {
        assert!(llap.push(ms(now), packet, Some(1)).is_none());
    }
    let mut taken: Vec<u32> = core::iter::from_fn(|| llap.take_for(NodeId(NEXT))).map(|p| id(&p)).collect();
    taken.sort_unstable();
    assert_eq!(taken, [31, 32]);
    assert_eq!(llap.len(), 1);
    assert_eq!(ready(&mut llap, now + 20), [(30, now + 20)]);
}

#[test]
fn parameters_out_of_range_are_named() {
    let fails = |config: LlapConfig| config.check().map_err(|e| e.name.into_owned());
    let default = LlapConfig::default();
    assert_eq!(fails(default), Ok(()));
    assert_eq!(fails(LlapConfig { alpha: 1.0, ..default }), Err("alpha".to_owned()));
    assert_eq!(fails(LlapConfig { alpha: f64::NAN, ..default }), Err("alpha".to_owned()));
    assert_eq!(fails(LlapConfig { queue: 0, ..default }), Err("queue".to_owned()));
    assert_eq!(fails(LlapConfig { max_delay: Duration::ZERO, ..default }), Err("max_delay".to_owned()));
    assert_eq!(fails(LlapConfig { patience: Duration::from_secs(61), ..default }), Err("patience".to_owned()));
}
