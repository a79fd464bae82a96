//! Tests of aggregates and block acknowledgements: windows, losses, order. The expectations are
//! derived by hand from IEEE Std 802.11-2016, 10.24.7.

use crate::parcel::Parcel;
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::mac::Category;
use meshpace_mesh::mac::block_ack::{Attempt, Originator, Recipient};
use meshpace_mesh::{Body, HtConfig, Queued};

const PEER: NodeId = NodeId(1);
/// Length of an MPDU: 1500 bytes of packet and 38 of headers.
const MPDU: u32 = 1538;

fn queued(id: u32) -> Queued<Parcel> {
    Queued { next_hop: PEER, body: Body::Data(Parcel { id, hops: 0 }) }
}

fn originator(config: HtConfig, packets: u32) -> Originator<Parcel> {
    let mut originator = Originator::new(config, config.bytes);
    (0..packets).for_each(|id| originator.push(queued(id), MPDU));
    originator
}

/// Sequence numbers that the next attempt carries.
fn sent(originator: &mut Originator<Parcel>) -> Vec<u16> {
    originator.prepare(u32::MAX);
    originator.send().map(|mpdu| mpdu.sequence).collect()
}

#[test]
fn an_aggregate_ends_at_the_first_of_its_limits() {
    // A subframe of 1538 bytes has 4 bytes of delimiter and 2 of padding: 1544. The last has no
    // padding. 42 subframes take 64,846 bytes, and 687 are left.
    let full = originator(HtConfig::default(), 42);
    assert_eq!(full.room(), Some((PEER, 65_535 - 42 * 1544 - 4)));
    let mut full = originator(HtConfig { mpdus: 5, ..HtConfig::default() }, 5);
    assert_eq!(full.room(), None, "five are as many as may be");
    assert_eq!(full.prepare(u32::MAX), Attempt::Aggregate(5 * 1544 - 2));
    let mut one = originator(HtConfig::default(), 1);
    assert_eq!(one.prepare(u32::MAX), Attempt::Mpdu(MPDU), "alone without a delimiter");
    // The window has 64 numbers, starting with the first that is not acknowledged.
    let small = HtConfig::default();
    let mut window = Originator::new(small, small.bytes);
    (0..64).for_each(|id| window.push(queued(id), 100));
    window.prepare(u32::MAX);
    assert_eq!(window.send().count(), 64);
    window.on_block_ack(0, !1);
    assert_eq!(window.room(), None, "number 64 is beyond the window of number 0");
    assert_eq!(sent(&mut window), [0]);
    window.on_ack();
    assert!(window.is_empty());
}

#[test]
fn what_is_not_listed_goes_again_with_what_is_new() {
    let mut originator = originator(HtConfig::default(), 4);
    assert_eq!(sent(&mut originator), [0, 1, 2, 3]);
    originator.on_block_ack(0, 0b1001);
    originator.push(queued(4), MPDU);
    originator.prepare(u32::MAX);
    let again: Vec<(u16, bool)> = originator.send().map(|mpdu| (mpdu.sequence, mpdu.retry)).collect();
    assert_eq!(again, [(1, true), (2, true), (4, false)]);
    // A packet that arrived after the RTS is not included.
    originator.push(queued(5), MPDU);
    originator.on_block_ack(0, 0b111111);
    assert_eq!(sent(&mut originator), [5]);
}

#[test]
fn a_missed_block_ack_is_asked_for_and_counts_once() {
    let mut originator = originator(HtConfig::default(), 3);
    sent(&mut originator);
    originator.on_missing_answer(true);
    assert_eq!(originator.prepare(u32::MAX), Attempt::Request);
    originator.on_block_ack(0, 0b101);
    assert_eq!(sent(&mut originator), [1], "only what is missing");
    assert_eq!(originator.take_given_up(2).map(|(_, failures)| failures), None, "it has failed once");
    originator.on_missing_answer(true);
    assert_eq!(originator.take_given_up(2), Some((queued(1), 2)));
    assert!(originator.is_empty());
    // The neighbour still waits for number 1. It is told the start of the window before anything
    // else.
    originator.push(queued(3), MPDU);
    assert_eq!((originator.prepare(u32::MAX), originator.start()), (Attempt::Request, 3));
    originator.on_block_ack(3, 0);
    assert_eq!(sent(&mut originator), [3]);
}

#[test]
fn a_request_after_which_nothing_was_sent_costs_nothing_its_packets() {
    let mut originator = originator(HtConfig::default(), 4);
    sent(&mut originator);
    // Number 0 has failed once and is given up. The neighbour is told so. Number 1 has failed once,
    // too.
    originator.on_block_ack(0, 0b1100);
    assert_eq!(originator.take_given_up(1), Some((queued(0), 1)));
    assert_eq!(originator.prepare(u32::MAX), Attempt::Request);
    originator.on_block_ack(1, 0b110);
    assert_eq!(originator.take_given_up(2), None, "number 1 was not sent again");
    assert_eq!(sent(&mut originator), [1]);
    originator.on_missing_answer(true);
    assert_eq!(originator.take_given_up(2), Some((queued(1), 2)));
    // The neighbour is gone. Requests about its window count as failures of the first packet, but
    // not of those behind it.
    (10..14).for_each(|id| originator.push(queued(id), MPDU));
    for _ in 0..7 {
        assert_eq!(originator.take_given_up(7), None);
        assert_eq!(originator.prepare(u32::MAX), Attempt::Request);
        originator.on_missing_answer(true);
    }
    assert_eq!(originator.take_given_up(7), Some((queued(10), 7)));
    assert_eq!(originator.take_given_up(1), None, "none of the others was on the air");
}

#[test]
fn a_turn_lasts_until_the_window_is_empty() {
    // Two of four packets fit into the time that an aggregate may take. The others have not been
    // sent, but the turn has begun.
    let mut originator = originator(HtConfig::default(), 4);
    assert!(!originator.has_begun());
    for (start, more) in [(0, true), (2, false)] {
        originator.prepare(2 * 1544);
        assert_eq!(originator.send().count(), 2);
        originator.on_block_ack(start, 0b11);
        assert!(originator.has_begun() && originator.is_empty() != more);
    }
    originator.push(queued(4), MPDU);
    assert!(!originator.has_begun(), "another turn");
}

#[test]
fn without_requests_everything_goes_again_until_it_is_given_up() {
    let mut originator = originator(HtConfig { requests_block_ack: false, ..HtConfig::default() }, 3);
    for _ in 0..7 {
        assert_eq!(originator.take_given_up(7), None);
        assert_eq!(sent(&mut originator), [0, 1, 2]);
        originator.on_missing_answer(true);
    }
    let given_up: Vec<_> = std::iter::from_fn(|| originator.take_given_up(7)).collect();
    assert_eq!(given_up, [(queued(0), 7), (queued(1), 7), (queued(2), 7)]);
}

#[test]
fn an_unanswered_rts_counts_for_all_that_it_stood_for() {
    let mut originator = originator(HtConfig::default(), 2);
    originator.prepare(u32::MAX);
    originator.on_missing_answer(false);
    assert_eq!(
        originator.prepare(u32::MAX),
        Attempt::Aggregate(2 * 1544 - 2),
        "nothing was sent: nothing is asked for"
    );
    assert_eq!(originator.take_given_up(1), Some((queued(0), 1)));
}

/// Numbers of the MPDUs that a recipient delivers when it receives these.
fn take(recipient: &mut Recipient<Parcel>, now: Time, sequences: &[u16]) -> Vec<u32> {
    let mut up = Vec::new();
    for &sequence in sequences {
        let body = Body::Data(Parcel { id: u32::from(sequence), hops: 0 });
        recipient.on_mpdu(now, sequence, &body, &mut |body| up.extend(body.into_packet().map(|parcel| parcel.id)));
    }
    up
}

fn recipient() -> Recipient<Parcel> {
    Recipient::new((PEER, Category::BestEffort), Duration::from_millis(100))
}

#[test]
fn mpdus_are_handed_up_in_order_and_once() {
    let mut recipient = recipient();
    assert_eq!(take(&mut recipient, Time(1), &[0, 2, 3]), [0]);
    assert_eq!(recipient.received(), (0, 0b1101));
    assert_eq!(take(&mut recipient, Time(2), &[2, 0, 1, 1]), [1, 2, 3]);
    assert_eq!(recipient.received(), (0, 0b1111), "what was handed up stays acknowledged");
    assert_eq!(recipient.next_wakeup(), Time::NEVER);
}

#[test]
fn what_comes_beyond_the_window_moves_it() {
    let mut recipient = recipient();
    assert_eq!(take(&mut recipient, Time(1), &[1, 63]), [0u32; 0]);
    // With number 65 the window is 2 to 65, so number 0 is given up.
    assert_eq!(take(&mut recipient, Time(2), &[65]), [1]);
    assert_eq!(recipient.received(), (2, 1 << 63 | 1 << 61));
    assert_eq!(take(&mut recipient, Time(3), &[0]), [0u32; 0], "too late");
}

#[test]
fn a_request_and_the_time_out_end_the_waiting() {
    let mut recipient = recipient();
    assert_eq!(take(&mut recipient, Time(5), &[1, 2, 4]), [0u32; 0]);
    let mut up = Vec::new();
    let mut take_up = |body: Body<Parcel>| up.extend(body.into_packet().map(|parcel| parcel.id));
    recipient.on_request(1, &mut take_up);
    assert_eq!(recipient.next_wakeup(), Time(5) + Duration::from_millis(100), "number 4 has waited since it came");
    recipient.on_timer(recipient.next_wakeup(), &mut take_up);
    assert_eq!(up, [1, 2, 4]);
    assert_eq!(recipient.next_wakeup(), Time::NEVER);
    // The 12-bit numbers wrap around.
    let mut far = self::recipient();
    far.on_request(2047, &mut |_| panic!("nothing waits"));
    far.on_request(4094, &mut |_| panic!("nothing waits"));
    assert_eq!(take(&mut far, Time(8), &[4094, 0, 4095]), [4094, 4095, 0]);
}

#[test]
fn each_packet_waits_from_when_it_came() {
    let ms = |ms| Time::ZERO + Duration::from_millis(ms);
    let mut recipient = recipient();
    // Numbers 0, 2 and 5 are missing.
    take(&mut recipient, ms(1), &[1, 3]);
    take(&mut recipient, ms(2), &[4]);
    take(&mut recipient, ms(51), &[6]);
    let mut up = Vec::new();
    let mut take_up = |body: Body<Parcel>| up.extend(body.into_packet().map(|parcel| parcel.id));
    assert_eq!(recipient.next_wakeup(), ms(101));
    recipient.on_timer(ms(101), &mut take_up);
    assert_eq!(recipient.next_wakeup(), ms(151), "number 6");
    recipient.on_timer(ms(151), &mut take_up);
    assert_eq!(up, [1, 3, 4, 6]);
    assert_eq!(recipient.next_wakeup(), Time::NEVER);
}

#[test]
fn a_window_that_moved_far_while_nobody_heard_is_gone_on_with() {
    // Numbers have 12 bits. The neighbour has given up `given_up` packets of which none was
    // received, and announces the start of its window.
    for given_up in [1, 64, 2047, 2048, 3000, 3900] {
        let mut recipient = recipient();
        assert_eq!(take(&mut recipient, Time(1), &[0]), [0]);
        let start = (1 + given_up) % 4096;
        recipient.on_request(start, &mut |_| panic!("nothing waits"));
        assert_eq!(take(&mut recipient, Time(3), &[start]), [u32::from(start)], "{given_up} given up");
        assert_eq!(recipient.received(), (start, 1));
    }
    // A late request from before the received numbers changes nothing.
    let mut recipient = recipient();
    (0..100).for_each(|sequence| assert_eq!(take(&mut recipient, Time(1), &[sequence]), [u32::from(sequence)]));
    recipient.on_request(50, &mut |_| panic!("nothing waits"));
    assert_eq!(take(&mut recipient, Time(3), &[50, 100]), [100]);
}

#[test]
fn the_answer_to_a_request_is_to_what_was_on_the_air() {
    // The rate of the request may allow less, or more, than that of the aggregate.
    for most in [0, u32::MAX] {
        let mut originator = originator(HtConfig::default(), 10);
        originator.prepare(6 * 1544);
        assert_eq!(originator.send().count(), 6);
        originator.on_missing_answer(true);
        assert_eq!(originator.prepare(most), Attempt::Request);
        assert_eq!(originator.on_block_ack(0, 0b01_1111), 5);
        assert_eq!(originator.take_given_up(1), Some((queued(5), 1)));
        assert_eq!(originator.take_given_up(1), None, "numbers 6 to 9 were never sent");
    }
}
