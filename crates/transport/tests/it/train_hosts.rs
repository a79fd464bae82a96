//! Tests of quiet trains between hosts: closed windows, forged numbers, paths without a rate.

use crate::common::{Fate, From, Line, Pair, ms};
use meshpace_core::{Duration, Rate, Time};
use meshpace_transport::closing::{CHALLENGES, End, PATIENCE};
use meshpace_transport::flags::Flags;
use meshpace_transport::train::{Config, Connection, Feedback, Segment};
use meshpace_transport::{Arrival, Config as Any, Endpoint, Machine, Output, PathInfo, Role, names};

const FULL: u64 = 1460;

fn deliver(_: &Line) -> Fate {
    Fate::Deliver
}

/// Number of data segments that the sender has sent.
fn sent(pair: &Pair) -> usize {
    pair.record.iter().filter(|line| line.from == From::Sender && line.segment.payload() > 0).count()
}

#[test]
fn a_closed_window_is_probed_as_the_timer_allows_and_costs_nothing_else() {
    // RFC 9293, section 3.8.6.1. The timer doubles to 2 s: 30 probes in 60 s, whatever the
    // round-trip time is.
    for one_way in [1, 4, 30] {
        let mut pair = Pair::new(&Any::Train(Config::default().of_host()), Duration::from_millis(one_way), 1);
        pair.sender.open(Time::ZERO);
        pair.sender.write(Time::ZERO, 10_000_000);
        pair.drive(ms(30_000), &mut deliver);
        assert_eq!(pair.receiver.delivered(), 64 * FULL);
        let (before, stats, interval) = (sent(&pair), *pair.sender.stats(), pair.sender.interval_s());
        pair.drive(ms(90_000), &mut deliver);
        let probes = sent(&pair) - before;
        assert!((28..=31).contains(&probes), "{probes} probes in 60 s, {one_way} ms away");
        // The probes count neither as losses nor as round trips.
        let after = *pair.sender.stats();
        let counted =
            |stats: meshpace_transport::stats::Stats| (stats.timeouts, stats.fast_retransmits, stats.rtt_samples);
        assert_eq!(counted(after), counted(stats));
        assert_eq!(pair.sender.interval_s(), interval);
        // The window opens. The sender continues at once, and not as after a loss.
        pair.now = ms(90_000);
        let Endpoint::Train(receiver) = &mut pair.receiver else { unreachable!() };
        receiver.take(64 * FULL);
        pair.drive(ms(91_000), &mut deliver);
        assert!(pair.receiver.delivered() >= 72 * FULL, "{}", pair.receiver.delivered());
        assert_eq!(pair.sender.stats().timeouts, stats.timeouts);
    }
}

/// A sender that has connected to a peer simulated by the test, with a window of `window` segments.
fn connected(window: u16) -> (Connection, Time) {
    let mut end = Connection::new(&Config::default().of_host(), Role::Sender);
    end.open();
    assert!(matches!(end.poll(Time::ZERO), Output::Transmit(_)));
    let syn_ack = Segment { flags: Flags::SYN.with(Flags::ACK), window, ..Segment::default() };
    end.on_segment(ms(10), &syn_ack, Arrival::default());
    (end, ms(10))
}

#[test]
fn a_refusal_answers_the_syn() {
    // RFC 9293, section 3.10.7.3: a reset counts if it acknowledges our SYN. Streams begin at 0.
    for (flags, ack, end) in [
        (Flags::RST.with(Flags::ACK), 0, Some(End::Refused)),
        (Flags::RST.with(Flags::ACK), 1, None),
        (Flags::RST, 0, None),
    ] {
        let mut opener = Connection::new(&Config::default().of_host(), Role::Sender);
        opener.open();
        assert!(matches!(opener.poll(Time::ZERO), Output::Transmit(_)));
        opener.on_segment(ms(10), &Segment { flags, ack, ..Segment::default() }, Arrival::default());
        assert_eq!(opener.end(), end, "{flags:?} of {ack}");
    }
}

/// The segments that leave before `until`, with their times.
fn until(end: &mut Connection, now: &mut Time, until: Time) -> Vec<(Time, Segment)> {
    let mut left = Vec::new();
    loop {
        match end.poll(*now) {
            Output::Transmit(segment) => left.push((*now, segment)),
            Output::Wait(at) if at <= until => *now = at.max(*now),
            Output::Wait(_) | Output::Idle => break,
        }
    }
    *now = until;
    left
}

#[test]
fn a_train_whose_window_steps_back_in_the_middle_is_ended() {
    // The first segment of the train is lost. Meanwhile the peer's data announces another window.
    // One segment less, which follows from counting in full segments, changes nothing. Two less is
    // an old window: the rest of the train cannot leave, and the timer (1 s before the first round
    // trip) sends a probe.
    let after = |window| {
        let (mut end, mut now) = connected(3);
        end.write(10 * FULL);
        let Output::Transmit(first) = end.poll(now) else { panic!("nothing leaves") };
        assert!(!first.is_tail());
        let data = Segment { payload: 100, window, flags: Flags::ACK, ..Segment::default() };
        assert!(end.on_segment(now, &data, Arrival::default()));
        let left = until(&mut end, &mut now, ms(1_200));
        left.iter()
            .filter(|line| line.1.payload > 0)
            .map(|line| (line.1.seq / FULL, line.1.is_tail()))
            .collect::<Vec<_>>()
    };
    assert_eq!(after(2)[..2], [(1, false), (2, true)]);
    assert_eq!(after(1), [(0, true)]);
}

#[test]
fn an_ack_whose_numbers_are_guessed_acknowledges_nothing() {
    // RFC 9293, section 3.10.7.4, and RFC 5961, section 5.2: both numbers have to be correct.
    let (mut end, mut now) = connected(4);
    end.write(100 * FULL);
    let out = until(&mut end, &mut now, ms(500));
    assert_eq!(end.outstanding_end(), 4 * FULL);
    let stamp = out.last().unwrap().1.ts_val;
    let ack = |seq, ack| Segment { seq, ack, flags: Flags::ACK, window: 4, ..Segment::default() };
    let window = 64 * FULL;
    for seq in [1 << 31, window + FULL + 2, u64::MAX] {
        end.on_segment(now, &ack(seq, 4 * FULL), Arrival::default());
        assert_eq!(end.acknowledged(), 0, "{seq}");
    }
    // Each of them is answered, up to a limit.
    for _ in 0..100 {
        end.on_segment(now, &ack(1 << 31, 4 * FULL), Arrival::default());
        assert!(!matches!(end.poll(now), Output::Transmit(segment) if segment.payload > 0));
    }
    assert!(end.stats().acks_sent <= u64::from(CHALLENGES) && end.stats().acks_sent > 0);
    // The correct ACK. It may be as far ahead as a probe of the closed window brings its sender.
    let feedback = Feedback { segments: 4, ..Feedback::default() };
    let honest = Segment { ts_ecr: stamp, feedback, ..ack(window + FULL + 1, 4 * FULL) };
    end.on_segment(now, &honest, Arrival::default());
    assert_eq!(end.acknowledged(), 4 * FULL);
}

#[test]
fn acks_older_than_a_window_bring_no_data_and_keep_nobody_alive() {
    // RFC 5961, section 5.2: acceptable from SND.UNA - MAX.SND.WND on.
    let (mut end, mut now) = connected(4);
    end.write(100 * FULL);
    for _ in 0..3 {
        let tail = loop {
            match end.poll(now) {
                Output::Transmit(segment) if segment.is_tail() => break segment,
                Output::Transmit(_) => {}
                Output::Wait(at) => now = at,
                Output::Idle => panic!("no train"),
            }
        };
        now += Duration::from_millis(10);
        let feedback = Feedback { segments: 4, ..Feedback::default() };
        let (ack, ts_ecr) = (end.outstanding_end(), tail.ts_val);
        let ack = Segment { ack, ts_ecr, feedback, flags: Flags::ACK, window: 4, ..Segment::default() };
        end.on_segment(now, &ack, Arrival::default());
    }
    let una = end.acknowledged();
    assert_eq!(una, 12 * FULL);
    let mut next = 0;
    let mut tell = |end: &mut Connection, now, ack| {
        let data = Segment { seq: next, payload: 10, ack, flags: Flags::ACK, window: 4, ..Segment::default() };
        let is_taken = end.on_segment(now, &data, Arrival::default());
        next += if is_taken { 10 } else { 0 };
        is_taken
    };
    assert!(!tell(&mut end, now, una - 4 * FULL - 1));
    assert!(tell(&mut end, now, una - 4 * FULL));
    let begin = now;
    while end.end().is_none() && now < begin + PATIENCE * 2 {
        let later = now + Duration::from_secs(1);
        until(&mut end, &mut now, later);
        assert!(!tell(&mut end, now, 0));
    }
    assert_eq!(end.end(), Some(End::TimedOut));
    assert!(now.since(begin) <= PATIENCE + Duration::from_secs(3), "{}", now.since(begin));
}

#[test]
fn a_path_without_a_rate_is_ignored() {
    for name in ["quiet-train", "quiet-train-solo"] {
        let config = match names::lookup(name) {
            Some(Any::Train(config)) => Any::Train(config.of_host()),
            Some(Any::Tcp(config)) => Any::Tcp(config.of_host()),
            other => panic!("{other:?}"),
        };
        let mut pair = Pair::new(&config, Duration::from_millis(8), 1);
        let interval = pair.sender.interval_s();
        pair.sender.on_path(PathInfo { hops: 2, rate: Rate(0), received_power_dbm: None });
        assert_eq!(pair.sender.interval_s(), interval, "{name}");
        pair.sender.open(Time::ZERO);
        pair.sender.write(Time::ZERO, 40 * FULL);
        pair.drive(ms(20_000), &mut deliver);
        assert_eq!(pair.receiver.delivered(), 40 * FULL, "{name}");
    }
}

/// Departure times of an endless stream over `hops` hops whose ACKs arrive 60 ms after their TAILs.
/// If `tells`, small messages leave beside it every 100 ms from 4 s to 6 s.
fn departures(hops: u8, tells: bool) -> Vec<Time> {
    let (mut end, mut now) = connected(64);
    end.on_path(PathInfo { hops, rate: Rate::from_mbps(11), received_power_dbm: None });
    end.write_endless();
    let (mut left, mut message, mut acknowledged) = (Vec::new(), ms(4_000), 0);
    while now < ms(12_000) {
        if tells && now >= message && now < ms(6_000) {
            end.make_room(now);
            message = now + Duration::from_millis(100);
        }
        let next = now + Duration::from_millis(1);
        let out = until(&mut end, &mut now, next);
        left.extend(out.iter().map(|line| line.0));
        let Some((_, tail)) = out.iter().find(|line| line.1.is_tail()) else { continue };
        now += Duration::from_millis(60);
        let ack = tail.seq + u64::from(tail.payload);
        let feedback = Feedback { segments: ((ack - acknowledged) / FULL) as u8, ..Feedback::default() };
        acknowledged = ack;
        // Half of the round trip is the forward delay, by two clocks that agree.
        let (ts_val, ts_ecr) = (tail.ts_val + 30_000, tail.ts_val);
        let answer = Segment { ack, ts_val, ts_ecr, feedback, flags: Flags::ACK, window: 64, ..Segment::default() };
        end.on_segment(now, &answer, Arrival::default());
    }
    left
}

#[test]
fn beside_small_messages_segments_over_more_than_four_hops_leave_two_floors_apart() {
    // Least time in ms between two segments that left between `from` and `to`.
    let least = |left: &[Time], from: u64, to: u64| {
        let within: Vec<&Time> = left.iter().filter(|at| (ms(from)..ms(to)).contains(at)).collect();
        within.windows(2).map(|two| two[1].since(*two[0]).as_secs_f64() * 1e3).fold(f64::INFINITY, f64::min)
    };
    let is = |gap: f64, expected: f64| (gap - expected).abs() < 1.1;
    // An empty path: tau = 4/8 of 60 ms / (1 + t_a/t_d) with t_a/t_d = (1.542 + 0.076) / (1.542 +
    // 1.129), so that I = 1.07 tau = 20.0 ms.
    let far = departures(8, true);
    assert!(is(least(&far, 2_000, 3_900), 20.0), "{}", least(&far, 2_000, 3_900));
    assert!(is(least(&far, 4_100, 6_800), 40.0), "{}", least(&far, 4_100, 6_800));
    // One second after the last message the interval is as before.
    assert!(is(least(&far, 7_100, 12_000), 20.0), "{}", least(&far, 7_100, 12_000));
    // The interval does not change if the sender is not told of messages, nor over four hops, where
    // I is 40 ms in any case.
    assert!(is(least(&departures(8, false), 4_100, 6_800), 20.0));
    assert_eq!(departures(4, true), departures(4, false));
}
