//! Tests of the acknowledgement rules, at the receiver alone and in a conversation.

use crate::common::{Fate, From, Pair, ms, tcp_of, wakeup};
use meshpace_core::{Duration, Time};
use meshpace_transport::pacing::{self, AdaptiveConfig};
use meshpace_transport::tcp::ack::{Adaptive, Config as Ack, Delayed, Dynamic, Linux, Tack};
use meshpace_transport::tcp::{Flags, Segment as Tcp};
use meshpace_transport::{Arrival, Config, Endpoint, Machine, Role, Segment, names, tcp};

/// A receiver after its handshake.
fn receiver(config: tcp::Config) -> Endpoint {
    let mut end = Endpoint::new(&Config::Tcp(config), Role::Receiver);
    let syn = Tcp { seq: 0, ack: 0, window: 0, ts_val: 0, ts_ecr: 0, payload: 0, flags: Flags::SYN, ..Tcp::default() };
    end.on_segment(Time::ZERO, &Segment::Tcp(syn), Arrival::default());
    assert!(matches!(end.poll(Time::ZERO).segment(), Some(Segment::Tcp(answer)) if answer.flags.has(Flags::SYN)));
    end
}

/// Delivers segment `number`, counted from 1. Returns the number of the last segment that an ACK
/// confirms, if an ACK leaves now.
fn arrive(end: &mut Endpoint, at: Time, number: u64, more: Flags) -> Option<u64> {
    let segment = Tcp {
        seq: (number - 1) * 1460,
        ack: 0,
        window: 0,
        ts_val: number as u32,
        ts_ecr: 0,
        payload: 1460,
        flags: Flags::ACK.with(more),
        ..Tcp::default()
    };
    end.on_segment(at, &Segment::Tcp(segment), Arrival::default());
    polled(end, at)
}

fn polled(end: &mut Endpoint, at: Time) -> Option<u64> {
    let answer = end.poll(at).segment();
    assert_eq!(end.poll(at).segment(), None);
    match answer? {
        Segment::Tcp(ack) => Some(ack.ack / 1460),
        _ => panic!("not a TCP segment"),
    }
}

fn delayed() -> tcp::Config {
    tcp::Config { ack: Ack::Delayed(Delayed::default()), ..tcp::Config::default() }
}

#[test]
fn dynamic_rule_acknowledges_after_1_3_6_10_14_18_22() {
    // Altman and Jimenez with l1 = 2, l2 = 5, l3 = 9, computed by hand: d(1) = 1. Segments 2 and 3
    // share one ACK (d = 2), then 4, 5 and 6 (at 6, d = 3), then 7 to 10 (d = 4). After that there
    // is an ACK for every fourth segment.
    let mut end = receiver(tcp::Config { ack: Ack::Dynamic(Dynamic::default()), ..tcp::Config::default() });
    let acks: Vec<u64> = (1..=23).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    assert_eq!(acks, [1, 3, 6, 10, 14, 18, 22]);
}

#[test]
fn dynamic_rule_takes_other_thresholds() {
    let config = Dynamic { thresholds: [3, 4, 20], ..Dynamic::default() };
    let mut end = receiver(tcp::Config { ack: Ack::Dynamic(config), ..tcp::Config::default() });
    let acks: Vec<u64> = (1..=27).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    // d(1) = d(2) = 1; d(3) = 2; d(4..19) = 3; d(20) = 4.
    assert_eq!(acks, [1, 2, 5, 8, 11, 14, 17, 21, 25]);
}

#[test]
fn dynamic_rule_waits_100_ms_at_most() {
    let mut end = receiver(tcp::Config { ack: Ack::Dynamic(Dynamic::default()), ..tcp::Config::default() });
    assert_eq!(arrive(&mut end, ms(10), 1, Flags::NONE), Some(1));
    assert_eq!(wakeup(&mut end, ms(10)), Time::NEVER);
    assert_eq!(arrive(&mut end, ms(20), 2, Flags::NONE), None);
    assert_eq!(wakeup(&mut end, ms(20)), ms(120));
    assert_eq!(polled(&mut end, ms(120)), Some(2));
    assert_eq!(wakeup(&mut end, ms(120)), Time::NEVER);
}

#[test]
fn rfc_1122_acknowledges_every_second_segment_or_after_100_ms() {
    // RFC 1122, section 4.2.3.2: there is an ACK for at least every second segment. The timer
    // starts with the first segment that waits.
    let mut end = receiver(delayed());
    let acks: Vec<Option<u64>> = (1..=5).map(|n| arrive(&mut end, ms(n * 30), n, Flags::NONE)).collect();
    assert_eq!(acks, [None, Some(2), None, Some(4), None]);
    assert_eq!(wakeup(&mut end, ms(150)), ms(250));
    assert_eq!(polled(&mut end, ms(249)), None);
    assert_eq!(polled(&mut end, ms(250)), Some(5));
    assert_eq!(end.stats().acks_sent, 3);
}

#[test]
fn a_gap_its_filling_and_a_repetition_are_acknowledged_at_once() {
    // RFC 5681, section 4.2.
    let mut end = receiver(delayed());
    assert_eq!(arrive(&mut end, ms(10), 1, Flags::NONE), None);
    // Segments 2 and 4 are missing.
    assert_eq!(arrive(&mut end, ms(20), 3, Flags::NONE), Some(1));
    assert_eq!(arrive(&mut end, ms(30), 5, Flags::NONE), Some(1));
    // A part of the gap arrives, then the rest.
    assert_eq!(arrive(&mut end, ms(40), 2, Flags::NONE), Some(3));
    assert_eq!(arrive(&mut end, ms(50), 4, Flags::NONE), Some(5));
    // There is no data beyond a gap any more, so ACKs are delayed again.
    assert_eq!(arrive(&mut end, ms(60), 6, Flags::NONE), None);
    assert_eq!(arrive(&mut end, ms(70), 6, Flags::NONE), Some(6));
    // The ACK of the repeated segment also covered the waiting one.
    assert_eq!(wakeup(&mut end, ms(70)), Time::NEVER);
    // A FIN is answered with a FIN.
    assert_eq!(arrive(&mut end, ms(80), 7, Flags::FIN), Some(7));
}

#[test]
fn a_window_of_two_is_acknowledged_as_linux_or_as_ns2_does() {
    for (linux, expected) in [(true, vec![1, 2, 3, 4]), (false, vec![2, 4])] {
        let ack = Ack::Delayed(Delayed { linux_window_2: linux, ..Delayed::default() });
        let window = tcp::window::Config::Clamp { segments: 2 };
        let mut end = receiver(tcp::Config { ack: ack.clone(), window, ..tcp::Config::default() });
        let acks: Vec<u64> = (1..=4).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
        assert_eq!(acks, expected);
        // The rule also works with a window of three segments.
        let window = tcp::window::Config::Clamp { segments: 3 };
        let mut end = receiver(tcp::Config { ack, window, ..tcp::Config::default() });
        let acks: Vec<u64> = (1..=4).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
        assert_eq!(acks, [2, 4]);
    }
}

#[test]
fn the_echoed_stamp_is_that_of_the_oldest_segment_that_waits() {
    // RFC 7323, section 4.3, case (A): the retransmission timer has to allow for the delay of the
    // ACK.
    let mut end = receiver(delayed());
    assert_eq!(arrive(&mut end, ms(10), 1, Flags::NONE), None);
    let second =
        Tcp { seq: 1460, ack: 0, window: 0, ts_val: 2, ts_ecr: 0, payload: 1460, flags: Flags::ACK, ..Tcp::default() };
    end.on_segment(ms(50), &Segment::Tcp(second), Arrival::default());
    let Some(Segment::Tcp(ack)) = end.poll(ms(50)).segment() else { panic!() };
    assert_eq!(ack.ts_ecr, 1);
}

#[test]
fn adaptive_pacing_samples_the_segment_that_triggered_the_ack() {
    // 100 ms in each direction, without losses. Pacing over 7 hops at 2 Mbit/s: the n-hop delay is
    // 2 (200/7 + 5.84) = 68.82 ms, so the second segment of a pair arrives before the 100 ms timer
    // expires. Every sample is the round-trip time of the second segment, 200 ms. With the rule of
    // the oldest segment it would be 268.82 ms. The dispersion is left out, because it could
    // lengthen the interval beyond the timer. The first ACK of the transfer may come from the
    // timer.
    let Some(Config::Tcp(mut config)) = names::lookup("tcp-ap+delack") else { panic!() };
    config.pacing = pacing::Config::Adaptive(AdaptiveConfig { dispersion_factor: 0.0, ..AdaptiveConfig::paper() });
    let mut pair = Pair::new(&Config::Tcp(config), Duration::from_millis(100), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(5_000), &mut |_| Fate::Deliver);
    let start = *pair.sender.stats();
    pair.drive(ms(20_000), &mut |_| Fate::Deliver);
    let stats = pair.sender.stats();
    let samples = stats.rtt_samples - start.rtt_samples;
    assert!(samples > 50, "{samples}");
    let mean = (stats.rtt_sum_s - start.rtt_sum_s) / samples as f64;
    assert!((mean - 0.2).abs() < 1e-9, "{mean}");
}

#[test]
fn a_timer_wait_is_part_of_the_sample() {
    // With a window of one, each segment waits for 100 ms. The sample is 30 + 100 + 30 ms.
    let config = names::lookup("tcp-ap+delack").unwrap();
    let Config::Tcp(mut config) = config else { panic!() };
    config.max_window = 1;
    let mut pair = Pair::new(&Config::Tcp(config), Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(5_000), &mut |_| Fate::Deliver);
    let stats = pair.sender.stats();
    assert!((stats.rtt_sum_s / stats.rtt_samples as f64 - 0.160).abs() < 1e-9);
}

#[test]
fn delayed_acks_halve_the_number_of_acks() {
    for (name, per_ack) in [("newreno", 1.0), ("newreno+delack", 2.0), ("newreno+dyn-delack", 4.0)] {
        let mut pair = Pair::new(&names::lookup(name).unwrap(), Duration::from_millis(30), 4);
        pair.sender.open(Time::ZERO);
        pair.sender.write(Time::ZERO, 1460 * 4000);
        pair.drive(ms(60_000), &mut |_| Fate::Deliver);
        assert_eq!(pair.receiver.delivered(), 1460 * 4000);
        let acks = pair.record.iter().filter(|line| line.from == From::Receiver && tcp_of(line).payload == 0).count();
        let ratio = 4000.0 / acks as f64;
        assert!((ratio / per_ack - 1.0).abs() < 0.02, "{name}: {ratio} segments per ACK");
    }
}

#[test]
fn parameters_outside_their_meaning_are_refused() {
    let refused = |ack: Ack| tcp::Config { ack, ..tcp::Config::default() }.check().unwrap_err();
    let none = Delayed { segments: 0, ..Delayed::default() };
    assert_eq!(refused(Ack::Delayed(none)).to_string(), "ack.segments = 0: expected 1 to 255 segments");
    let slow = Delayed { timer: Duration::from_millis(501), ..Delayed::default() };
    assert_eq!(refused(Ack::Delayed(slow)).name, "ack.timer");
    let falling = Dynamic { thresholds: [2, 9, 5], ..Dynamic::default() };
    assert_eq!(refused(Ack::Dynamic(falling)).name, "ack.thresholds");
}

#[test]
fn names_with_a_plus_are_built_by_rule() {
    for entry in names::table() {
        // The modifiers apply to TCP only.
        if let (Some((base, word)), Some(Config::Tcp(_))) = (entry.name.rsplit_once('+'), names::lookup(entry.name)) {
            let modifier = names::modifiers().iter().find(|modifier| modifier.name == word).unwrap();
            let Some(Config::Tcp(mut config)) = names::lookup(base) else { panic!("{base}") };
            (modifier.apply)(&mut config);
            assert_eq!(names::lookup(entry.name), Some(Config::Tcp(config)), "{}", entry.name);
        }
    }
    assert!(names::lookup("cwl+dyn-delack").is_some());
    assert_eq!(names::lookup("udp+delack"), None);
    assert_eq!(names::lookup("newreno+"), None);
    assert_eq!(names::lookup("+delack"), None);
}

/// Delivers a segment that echoes the time stamp of a segment sent by this end at `echo`, in
/// microseconds.
fn arrive_with_echo(end: &mut Endpoint, at: Time, number: u64, echo: u32) -> Option<u64> {
    let segment = Tcp {
        seq: (number - 1) * 1460,
        ts_val: number as u32,
        ts_ecr: echo,
        payload: 1460,
        flags: Flags::ACK,
        ..Tcp::default()
    };
    end.on_segment(at, &Segment::Tcp(segment), Arrival::default());
    polled(end, at)
}

#[test]
fn tack_acknowledges_by_count_where_little_comes_and_by_time_where_much_does() {
    // TACK, section 4.1: f = min(bw / (2 MSS), 4 / RTT_min). Here the round-trip time is 100 ms, so
    // two ACKs are at least 25 ms apart.
    let mut end = receiver(tcp::Config { ack: Ack::Tack(Tack::default()), ..tcp::Config::default() });
    // The first echo is 100 ms old.
    let echo = |at: u64| (1000 * at - 100_000) as u32;
    // With one segment every 20 ms, every second one is acknowledged, as with delayed ACKs.
    let slow: Vec<u64> =
        (1..=10).filter_map(|n| arrive_with_echo(&mut end, ms(200 + 20 * n), n, echo(200 + 20 * n))).collect();
    assert_eq!(slow, [2, 4, 6, 8, 10]);
    // With one segment every 5 ms from 405 ms on, the timer acknowledges 25 ms after the last ACK,
    // which left at 400 ms.
    let mut acks = Vec::new();
    for n in 11..=30 {
        let at = 400 + 5 * (n - 10);
        acks.extend(arrive_with_echo(&mut end, ms(at), n, echo(at)).map(|acked| (at, acked)));
    }
    assert_eq!(acks, [(425, 15), (450, 20), (475, 25), (500, 30)]);
    // Two segments that arrive at once wait until the period is over, and the timer is set to that
    // time.
    assert_eq!(arrive_with_echo(&mut end, ms(501), 31, echo(501)), None);
    assert_eq!(arrive_with_echo(&mut end, ms(502), 32, echo(502)), None);
    assert_eq!(wakeup(&mut end, ms(502)), ms(525));
    assert_eq!(polled(&mut end, ms(525)), Some(32));
    // A single segment waits for 100 ms.
    assert_eq!(arrive_with_echo(&mut end, ms(600), 33, echo(600)), None);
    assert_eq!(wakeup(&mut end, ms(600)), ms(700));
}

#[test]
fn tack_never_exceeds_either_of_its_frequencies() {
    // 30 ms in each direction: at most 4 ACKs in 60 ms, and at most one for two segments. The
    // goodput of delayed ACKs is kept if the window counts bytes (RFC 3465). If it grew by a step
    // for each ACK, it would grow more slowly.
    let run = |name: &str| {
        let mut pair = Pair::new(&names::lookup(name).unwrap(), Duration::from_millis(30), 4);
        pair.sender.open(Time::ZERO);
        pair.sender.write(Time::ZERO, 1460 * 4000);
        pair.drive(ms(60_000), &mut |_| Fate::Deliver);
        assert_eq!(pair.receiver.delivered(), 1460 * 4000, "{name}");
        let acks = pair.record.iter().filter(|line| line.from == From::Receiver && tcp_of(line).payload == 0);
        (acks.map(|line| line.at).collect::<Vec<Time>>(), pair.record.last().unwrap().at)
    };
    let ((tack, ends), (delayed, ends_too)) = (run("newreno+abc+tack"), run("newreno+abc+delack"));
    // Two more are the SYN-ACK and the first ACK, before a round-trip time is known.
    let periods = ends.0.div_ceil(15_000_000) as usize;
    assert!(tack.len() <= periods + 2, "{} ACKs in {periods} periods", tack.len());
    assert!(tack.len() <= delayed.len(), "{} and {}", tack.len(), delayed.len());
    for two in tack.windows(2).skip(2) {
        assert!(two[1].since(two[0]) >= Duration::from_millis(15), "{} {}", two[0], two[1]);
    }
    // A window of 64 is sent at once, and its ACK follows at most a quarter of a round trip later.
    assert!(ends.0 < ends_too.0 * 3 / 2, "{ends} and {ends_too}");
}

#[test]
fn daa_waits_for_more_segments_as_they_come_in_order_and_for_two_after_a_gap() {
    let mut end = receiver(tcp::Config { ack: Ack::Adaptive(Adaptive::default()), ..tcp::Config::default() });
    // w = 1, 1.3, 1.6, 1.9, 2.2, 2.5, 2.8, 3.1, 3.4, 3.7, 4, 4. The whole number of segments of
    // each counts.
    let acks: Vec<u64> = (1..=29).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    assert_eq!(acks, [1, 2, 3, 4, 6, 8, 10, 13, 16, 19, 23, 27]);
    // Segments 28 and 29 wait. The newest waits for 2.2 times the time between segments.
    assert_eq!(wakeup(&mut end, ms(290)), ms(312));
    // Segment 30 is missing. The gap and its arrival are acknowledged at once. Then two further
    // segments share an ACK, and each later ACK covers one more, up to four.
    assert_eq!(arrive(&mut end, ms(300), 31, Flags::NONE), Some(29));
    assert_eq!(arrive(&mut end, ms(310), 30, Flags::NONE), Some(31));
    let acks: Vec<u64> = (32..=44).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    assert_eq!(acks, [33, 36, 40, 44]);
    // An ACK that the timer caused also reduces the number.
    assert_eq!(arrive(&mut end, ms(450), 45, Flags::NONE), None);
    let at = wakeup(&mut end, ms(450));
    assert_eq!(polled(&mut end, at), Some(45));
    let acks: Vec<u64> = (46..=50).filter_map(|n| arrive(&mut end, ms(n * 10 + 30), n, Flags::NONE)).collect();
    assert_eq!(acks, [47, 50]);
}

fn linux(config: Linux) -> Endpoint {
    receiver(tcp::Config { ack: Ack::Linux(config), ..tcp::Config::default() })
}

#[test]
fn linux_acknowledges_each_of_the_first_16_segments_then_two_at_a_time() {
    // As Linux with TCP_MAX_QUICKACKS, without growth of the window.
    let mut end = linux(Linux { growth: 0, ..Linux::default() });
    let acks: Vec<u64> = (1..=23).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    assert_eq!(acks, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22]);
    // Segment 23 waits for 40 to 48 ms, here 44.
    assert_eq!(wakeup(&mut end, ms(230)), ms(274));
    assert_eq!(polled(&mut end, ms(274)), Some(23));
    assert_eq!(wakeup(&mut end, ms(274)), Time::NEVER);
}

#[test]
fn linux_acknowledges_a_segment_more_for_each_with_which_the_window_grows() {
    // quick = 16. The first segment that makes the window grow increases it to 17, its ACK reduces
    // it to 16, and so on. With six such segments the first 22 are acknowledged.
    let mut end = linux(Linux::default());
    let acks: Vec<u64> = (1..=28).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    let expected: Vec<u64> = (1..=22).chain([24, 26, 28]).collect();
    assert_eq!(acks, expected);
}

#[test]
fn linux_acknowledges_each_of_16_again_after_a_gap_longer_than_its_rto() {
    let mut end = linux(Linux { quick: 3, growth: 0, ..Linux::default() });
    let acks: Vec<u64> = (1..=7).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    assert_eq!(acks, [1, 2, 3, 5, 7]);
    // The gap of 230 ms, the RTO, is not longer than the RTO. A gap that is one millisecond longer
    // is.
    let acks: Vec<u64> = (8..=11).filter_map(|n| arrive(&mut end, ms(300 + (n - 8)), n, Flags::NONE)).collect();
    assert_eq!(acks, [9, 11]);
    let acks: Vec<u64> = (12..=16).filter_map(|n| arrive(&mut end, ms(534 + (n - 12)), n, Flags::NONE)).collect();
    assert_eq!(acks, [12, 13, 14, 16]);
    // A segment is missing and arrives after a long gap. Only a segment that extends the data in
    // order ends the gap. Every ACK counts.
    assert_eq!(arrive(&mut end, ms(600), 18, Flags::NONE), Some(16));
    assert_eq!(arrive(&mut end, ms(900), 17, Flags::NONE), Some(18));
    let acks: Vec<u64> = (19..=22).filter_map(|n| arrive(&mut end, ms(900 + n), n, Flags::NONE)).collect();
    assert_eq!(acks, [19, 20, 22]);
}

#[test]
fn linux_acknowledges_a_segment_with_psh_at_once() {
    // Every fifth segment has the PSH flag. The pairs are counted from there.
    let mut end = linux(Linux { quick: 0, growth: 0, push: 5, ..Linux::default() });
    let acks: Vec<u64> = (1..=15).filter_map(|n| arrive(&mut end, ms(n * 10), n, Flags::NONE)).collect();
    assert_eq!(acks, [2, 4, 5, 7, 9, 10, 12, 14, 15]);
}
