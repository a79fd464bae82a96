//! Tests of selective acknowledgements: the blocks that are reported, and the retransmissions that
//! they cause.

use crate::common::{Fate, From, Line, Pair, ms, wakeup};
use meshpace_core::{Duration, Time};
use meshpace_transport::tcp::{Extension, Flags, Segment as Tcp};
use meshpace_transport::{Arrival, Config, Endpoint, Machine, Role, Segment, names, tcp};

fn with_sack() -> tcp::Config {
    tcp::Config { sack: true, initial_window: 10, ..tcp::Config::default() }
}

/// Loses the transmissions of data whose numbers from 1 are listed.
fn lose(lost: &[u64]) -> impl FnMut(&Line) -> Fate {
    let mut count = 0;
    move |line| {
        if line.from == From::Sender && line.segment.payload() > 0 {
            count += 1;
            if lost.contains(&count) {
                return Fate::Lose;
            }
        }
        Fate::Deliver
    }
}

/// Numbers of the data segments that leave at a millisecond.
fn at(pair: &Pair, at_ms: u64) -> Vec<u64> {
    let data = pair.data(1460);
    data.into_iter().filter(|(at, ..)| at.round() as u64 == at_ms).map(|(_, number, _)| number).collect()
}

#[test]
fn an_ack_reports_the_block_of_the_segment_that_brought_it_about() {
    // RFC 2018, section 4: the first block is the one that contains the segment just received.
    let mut end = Endpoint::new(&Config::Tcp(with_sack()), Role::Receiver);
    let syn = Tcp { flags: Flags::SYN, ..Tcp::default() };
    end.on_segment(Time::ZERO, &Segment::Tcp(syn), Arrival::default());
    assert!(end.poll(Time::ZERO).segment().is_some());
    let mut report = |number: u64| -> (u64, Vec<(u64, u64)>) {
        let data = Tcp { seq: (number - 1) * 1000, payload: 1000, flags: Flags::ACK, ..Tcp::default() };
        end.on_segment(Time::ZERO, &Segment::Tcp(data), Arrival::default());
        let Some(Segment::Tcp(ack)) = end.poll(Time::ZERO).segment() else { panic!("no ACK") };
        (ack.ack, ack.sack_blocks().collect())
    };
    assert_eq!(report(1), (1000, vec![]));
    assert_eq!(report(3), (1000, vec![(2000, 3000)]));
    assert_eq!(report(5), (1000, vec![(4000, 5000), (2000, 3000)]));
    assert_eq!(report(6), (1000, vec![(4000, 6000), (2000, 3000)]));
    // A segment between two blocks joins them.
    assert_eq!(report(4), (1000, vec![(2000, 6000)]));
    assert_eq!(report(9), (1000, vec![(8000, 9000), (2000, 6000)]));
    assert_eq!(report(2), (6000, vec![(8000, 9000)]));
    assert_eq!(report(7), (7000, vec![(8000, 9000)]));
    assert_eq!(report(8), (9000, vec![]));
}

#[test]
fn the_third_case_of_rfc_2018() {
    // Section 7: all data before 5000 has arrived. Of eight segments of 500 bytes the 2nd, 4th, 6th
    // and 8th are lost. Then the 4th arrives, then the 2nd. The numbers are those of the RFC. The
    // last line is ours: the block that was reported most recently comes first, not the highest
    // one, and there is no room for a fourth block.
    let mut end = Endpoint::new(&Config::Tcp(with_sack()), Role::Receiver);
    let syn = Tcp { flags: Flags::SYN, ..Tcp::default() };
    end.on_segment(Time::ZERO, &Segment::Tcp(syn), Arrival::default());
    assert!(end.poll(Time::ZERO).segment().is_some());
    let mut report = |seq: u64, payload: u16| -> (u64, Vec<(u64, u64)>) {
        let data = Tcp { seq, payload, flags: Flags::ACK, ..Tcp::default() };
        end.on_segment(Time::ZERO, &Segment::Tcp(data), Arrival::default());
        let Some(Segment::Tcp(ack)) = end.poll(Time::ZERO).segment() else { panic!("no ACK") };
        (ack.ack, ack.sack_blocks().collect())
    };
    assert_eq!(report(0, 5000), (5000, vec![]));
    assert_eq!(report(5000, 500), (5500, vec![]));
    assert_eq!(report(6000, 500), (5500, vec![(6000, 6500)]));
    assert_eq!(report(7000, 500), (5500, vec![(7000, 7500), (6000, 6500)]));
    assert_eq!(report(8000, 500), (5500, vec![(8000, 8500), (7000, 7500), (6000, 6500)]));
    assert_eq!(report(6500, 500), (5500, vec![(6000, 7500), (8000, 8500)]));
    assert_eq!(report(5500, 500), (7500, vec![(8000, 8500)]));
    assert_eq!(report(9000, 500), (7500, vec![(9000, 9500), (8000, 8500)]));
    assert_eq!(report(12_000, 500), (7500, vec![(12_000, 12_500), (9000, 9500), (8000, 8500)]));
    assert_eq!(report(10_000, 500), (7500, vec![(10_000, 10_500), (12_000, 12_500), (9000, 9500)]));
}

#[test]
fn three_losses_in_a_window_are_repaired_in_two_round_trips() {
    // RFC 6675, section 5, computed by hand. The round-trip time is 60 ms; of ten segments at 60
    // ms, 2, 4 and 6 are lost.
    //
    // - 120 ms: the ACK of 1 opens the window to 11 (11 and 12). The duplicate ACKs for 3 and 5
    //   release 13 and 14 (limited transmit). The one for 7 starts recovery with cwnd 5.5: 2 again.
    //   8, 9, 10 report 4 and 6 lost. The pipe (11 to 14 and the second 2) stays at five.
    // - 180 ms: for 11 and 12, 4 and 6 leave again, the lost segments first. For 13, 14 and the
    //   second 2, new data leaves: 15, 16, 17.
    // - 240 ms: the second 4 acknowledges 5: pipe four, 18. The second 6 acknowledges 14: recovery
    //   ends, 19. Then congestion avoidance from 5.5: 20 and 21 for 15 and 16. For 17 the window
    //   has reached 6: 22 and 23.
    let mut pair = Pair::new(&Config::Tcp(with_sack()), Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(250), &mut lose(&[2, 4, 6]));
    assert_eq!(at(&pair, 60), (1..=10).collect::<Vec<u64>>());
    assert_eq!(at(&pair, 120), [11, 12, 13, 14, 2]);
    assert_eq!(at(&pair, 180), [4, 6, 15, 16, 17]);
    assert_eq!(at(&pair, 240), [18, 19, 20, 21, 22, 23]);
    let stats = pair.sender.stats();
    assert_eq!((stats.retransmissions, stats.fast_retransmits, stats.timeouts), (3, 1, 0));
}

#[test]
fn a_lost_retransmission_is_left_to_the_timer() {
    // After the first ten transmissions of data and 11 to 14, the next one is the second 2.
    let mut pair = Pair::new(&Config::Tcp(with_sack()), Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 1460 * 40);
    pair.sender.close(Time::ZERO);
    pair.drive(ms(60_000), &mut lose(&[2, 15]));
    assert_eq!(pair.receiver.delivered(), 1460 * 40);
    assert!(pair.sender.is_done() && pair.receiver.is_done());
    assert_eq!(pair.sender.stats().timeouts, 1);
}

#[test]
fn what_is_reported_after_a_timeout_is_not_sent_again() {
    // RFC 2018, section 5.1. Of the first ten segments 2, 5 and 8 are lost, and again until 1 s.
    // The timer repeats 2. Its ACK reports 6 and 7, and 9 with the data after it. Only the holes 5
    // and 8 are retransmitted.
    let mut pair = Pair::new(&Config::Tcp(with_sack()), Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 1460 * 60);
    pair.sender.close(Time::ZERO);
    pair.drive(ms(60_000), &mut |line: &Line| {
        let Segment::Tcp(segment) = line.segment else { return Fate::Deliver };
        let is_lost = segment.payload > 0 && [1, 4, 7].contains(&(segment.seq / 1460));
        if is_lost && line.at < ms(1000) { Fate::Lose } else { Fate::Deliver }
    });
    assert_eq!(pair.receiver.delivered(), 1460 * 60);
    assert!(pair.sender.stats().timeouts > 0);
    assert_eq!(pair.receiver.stats().duplicate_segments_received, 0);
}

#[test]
fn fewer_segments_are_repeated_than_without() {
    // A third of a window is lost at once, at many different positions. NewReno repairs one segment
    // per round trip or times out.
    let repairs = |name: &str| {
        let mut total = 0;
        for offset in 0..10 {
            let Some(Config::Tcp(config)) = names::lookup(name) else { panic!() };
            let mut pair =
                Pair::new(&Config::Tcp(tcp::Config { initial_window: 16, ..config }), Duration::from_millis(30), 7);
            pair.sender.open(Time::ZERO);
            pair.sender.write(Time::ZERO, 1460 * 200);
            pair.sender.close(Time::ZERO);
            let lost: Vec<u64> = (0..8).map(|n| 20 + offset + n * 3).collect();
            pair.drive(ms(100_000), &mut lose(&lost));
            assert_eq!(pair.receiver.delivered(), 1460 * 200);
            total += pair.record.iter().rfind(|line| line.segment.payload() > 0).unwrap().at.0;
        }
        total
    };
    let (with, without) = (repairs("newreno+sack"), repairs("newreno"));
    assert!(with < without, "{with} ns in all, {without} without");
}

#[test]
fn reports_that_make_no_sense_do_no_harm() {
    let mut end = Endpoint::new(&Config::Tcp(with_sack()), Role::Sender);
    end.open(Time::ZERO);
    end.write_endless(Time::ZERO);
    assert!(end.poll(Time::ZERO).segment().is_some());
    let answer = |[start, end]: [u64; 2], ack, flags| {
        let words = [end << 21 | start, end];
        let extension = Extension::Sack;
        Segment::Tcp(Tcp { ack, window: 64 * 1460, flags, extension, words, ..Tcp::default() })
    };
    end.on_segment(ms(60), &answer([0, 0], 0, Flags::SYN.with(Flags::ACK)), Arrival::default());
    while end.poll(ms(60)).segment().is_some() {}
    for words in [[0, 0], [5, 3], [0, 1460], [1, u64::MAX], [u64::MAX, u64::MAX], [1_000_000, 2_000_000], [1, 1461]] {
        end.on_segment(ms(120), &answer(words, 0, Flags::ACK), Arrival::default());
        let mut polled = 0;
        while end.poll(ms(120)).segment().is_some() {
            polled += 1;
            assert!(polled < 100);
        }
    }
    // A peer that reported everything withdraws the reports: the timer retransmits the data.
    let due = wakeup(&mut end, ms(120));
    assert_ne!(due, Time::NEVER);
    let Some(Segment::Tcp(again)) = end.poll(due).segment() else { panic!("nothing is sent again") };
    assert_eq!((again.seq, again.payload), (0, 1460));
}

#[test]
fn synchronized_clocks_take_the_place_of_the_report() {
    let Some(Config::Tcp(config)) = names::lookup("tcp-ap-sync+sack") else { panic!() };
    assert_eq!(config.check().unwrap_err().name, "sack");
}

/// Largest distance beyond the acknowledged offset that a segment of the simulator can report,
/// bytes.
const REACH: u64 = (1 << 21) - 1;

#[test]
fn three_blocks_are_kept_as_they_are() {
    let mut segment = Tcp { ack: 1 << 40, flags: Flags::ACK, ..Tcp::default() };
    let at = |from: u64, to: u64| ((1 << 40) + from, (1 << 40) + to);
    let blocks = [at(REACH - 1, REACH), at(1, 2), at(1_000_000, 1_500_000), at(5, 6)];
    segment.report(blocks.into_iter());
    assert!(segment.sack_blocks().eq(blocks[..3].iter().copied()));
    assert_eq!(size_of::<Tcp>(), 48);
}

#[test]
fn what_is_out_of_reach_is_not_claimed() {
    let mut segment = Tcp { ack: 1000, flags: Flags::ACK, ..Tcp::default() };
    let reach = 1000 + REACH;
    segment.report([(reach, reach + 1460), (reach - 10, reach + 10), (2000, 3000)].into_iter());
    assert!(segment.sack_blocks().eq([(reach - 10, reach), (2000, 3000)]));
    assert_eq!(Tcp { extension: Extension::None, ..segment }.sack_blocks().count(), 0);
}
