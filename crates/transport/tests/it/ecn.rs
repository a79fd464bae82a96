//! Tests of congestion marks in segments: which segments may be marked, how marks are echoed, and
//! their effect.

use crate::common::{Fate, From, Line, Pair, ms, tcp_of};
use meshpace_core::{Duration, Time};
use meshpace_transport::tcp::ecn::{Config as Ecn, Echo};
use meshpace_transport::tcp::{Extension, Flags, Segment as Tcp};
use meshpace_transport::{Config, Endpoint, names, tcp};

fn pair(config: tcp::Config) -> Pair {
    let mut pair = Pair::new(&Config::Tcp(config), Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair
}

fn with(ecn: Ecn) -> tcp::Config {
    tcp::Config { ecn, ..tcp::Config::default() }
}

/// Marks the data segments whose numbers from 0 are listed.
fn mark(marked: &[u64]) -> impl FnMut(&Line) -> Fate {
    let mut count = 0;
    move |line| {
        if line.from == From::Sender && line.segment.payload() > 0 {
            count += 1;
            if marked.contains(&(count - 1)) {
                return Fate::Mark;
            }
        }
        Fate::Deliver
    }
}

fn segments(pair: &Pair, from: From) -> impl Iterator<Item = Tcp> {
    pair.record.iter().filter(move |line| line.from == from).map(tcp_of)
}

#[test]
fn both_ends_agree_in_the_handshake() {
    // RFC 3168, section 6.1.1: SYN with ECE and CWR, SYN-ACK with ECE alone.
    let mut both = pair(with(Ecn::RFC_3168));
    both.sender.write(Time::ZERO, 14_600);
    both.drive(ms(10_000), &mut |_| Fate::Deliver);
    let (asks, agrees) = (Flags::SYN.with(Flags::ECE).with(Flags::CWR), Flags::SYN.with(Flags::ACK).with(Flags::ECE));
    assert_eq!((tcp_of(&both.record[0]).flags, tcp_of(&both.record[1]).flags), (asks, agrees));
    assert!(segments(&both, From::Sender).filter(|data| data.payload > 0).all(|data| data.is_ecn_capable()));
    // Neither the SYN nor any ACK may be marked (sections 6.1.1 and 6.1.4).
    assert!(segments(&both, From::Receiver).all(|ack| ack.extension == Extension::None));
    assert!(!tcp_of(&both.record[0]).is_ecn_capable());
    // Nor may a FIN without data.
    both.sender.close(ms(10_000));
    both.drive(ms(20_000), &mut |_| Fate::Deliver);
    let fin = segments(&both, From::Sender).find(|segment| segment.flags.has(Flags::FIN)).expect("a FIN");
    assert_eq!((fin.payload, fin.extension), (0, Extension::None));

    // If one end does not support ECN, no segment may be marked.
    let mut one = pair(with(Ecn::RFC_3168));
    one.receiver = Endpoint::new(&Config::Tcp(with(Ecn::Off)), meshpace_transport::Role::Receiver);
    one.sender.write(Time::ZERO, 14_600);
    one.drive(ms(10_000), &mut |_| Fate::Mark);
    assert_eq!(tcp_of(&one.record[1]).flags, Flags::SYN.with(Flags::ACK));
    assert!(segments(&one, From::Sender).all(|data| !data.is_ecn_capable()));
    assert!(segments(&one, From::Receiver).all(|ack| !ack.flags.has(Flags::ECE)));
}

#[test]
fn a_retransmission_may_not_be_marked() {
    // RFC 3168, section 6.1.5.
    let mut pair = pair(with(Ecn::RFC_3168));
    pair.sender.write(Time::ZERO, 1460 * 40);
    let mut lost = false;
    pair.drive(ms(20_000), &mut |line| {
        if line.from == From::Sender && tcp_of(line).seq == 1460 * 9 && !lost {
            lost = true;
            return Fate::Lose;
        }
        Fate::Deliver
    });
    let capable: Vec<bool> = segments(&pair, From::Sender)
        .filter(|data| data.payload > 0 && data.seq == 1460 * 9)
        .map(|data| data.is_ecn_capable())
        .collect();
    assert_eq!(capable, [true, false]);
}

#[test]
fn a_latched_echo_lasts_until_the_window_is_reduced_and_halves_it_once() {
    // RFC 3168, sections 6.1.2 and 6.1.3. The initial window of 2 is doubled in each round trip of
    // 60 ms: data leaves at 60, 120, 180, 240 ms. The first of the eight segments of 180 ms is
    // marked. Its echo arrives at 240 ms, as do those of the other seven, and of the segments that
    // leave before the first segment with CWR has arrived. The window is reduced once.
    let mut pair = pair(with(Ecn::RFC_3168));
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(239), &mut mark(&[2 + 4]));
    let before = match &pair.sender {
        Endpoint::Tcp(end) => end.sender().window().cwnd(),
        _ => unreachable!(),
    };
    pair.drive(ms(299), &mut |_| Fate::Deliver);
    let Endpoint::Tcp(end) = &pair.sender else { panic!() };
    assert_eq!((before, end.sender().window().ssthresh()), (8.0, 4));
    pair.drive(ms(600), &mut |_| Fate::Deliver);
    let Endpoint::Tcp(end) = &pair.sender else { panic!() };
    assert_eq!(end.sender().window().ssthresh(), 4, "reduced once");
    let reductions =
        segments(&pair, From::Sender).filter(|data| data.flags.has(Flags::CWR) && data.payload > 0).count();
    assert_eq!(reductions, 1);
    let echoes = segments(&pair, From::Receiver).filter(|ack| ack.flags.has(Flags::ECE) && !ack.flags.has(Flags::SYN));
    assert!(echoes.count() >= 8);
    // The last ACKs contain no echo.
    assert!(!segments(&pair, From::Receiver).last().unwrap().flags.has(Flags::ECE));
    assert_eq!(pair.sender.stats().retransmissions, 0);
}

#[test]
fn one_echo_per_mark_with_any_acknowledgement_rule() {
    // DCC counts marks, so there are as many echoes as marks, even with delayed ACKs.
    for name in ["dcc", "dcc+delack", "dcc+dyn-delack"] {
        let mut pair = Pair::new(&names::lookup(name).unwrap(), Duration::from_millis(30), 7);
        pair.sender.open(Time::ZERO);
        pair.sender.write_endless(Time::ZERO);
        let marked = [0, 1, 5, 9, 10, 11, 30, 47, 48, 100];
        pair.drive(ms(20_000), &mut mark(&marked));
        let echoes = segments(&pair, From::Receiver)
            .filter(|ack| ack.flags.has(Flags::ECE) && !ack.flags.has(Flags::SYN))
            .count();
        assert_eq!(echoes, marked.len(), "{name}");
    }
}

#[test]
fn the_window_of_dcc_does_not_react_but_its_interval_does() {
    // Every segment is marked. The interval grows by the factor 1.05 per ACK, up to two average
    // RTTs, 120 ms at 60 ms in each direction. No ACK of new data makes the window smaller.
    let mut pair = Pair::new(&names::lookup("dcc").unwrap(), Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(60_000), &mut |_| Fate::Mark);
    let Endpoint::Tcp(end) = &pair.sender else { panic!() };
    assert_eq!(end.sender().window().ssthresh(), 20);
    assert!((end.sender().pacer().marked_rate().unwrap().interval_s().unwrap() - 0.120).abs() < 1e-9);
    let times: Vec<Time> = pair.record.iter().filter(|line| line.segment.payload() > 0).map(|line| line.at).collect();
    let last = times.windows(2).next_back().unwrap();
    assert_eq!(last[1].since(last[0]), Duration::from_millis(120));
}

#[test]
fn a_scripted_marking_settles_at_the_rate_of_the_equilibrium() {
    // r = alpha (1 - p) / (p (1 - 1/beta)) is 18.9 per second with one segment in ten marked, and
    // 8.4 with one in five (DCC, section 4, in equilibrium). The mean of the sawtooth differs from
    // it by less than its swing of about 0.9 and 0.4.
    for (one_in, rate, swing) in [(10, 18.9, 1.5), (5, 8.4, 0.9)] {
        let mut pair = Pair::new(&names::lookup("dcc").unwrap(), Duration::from_millis(150), 7);
        pair.sender.open(Time::ZERO);
        pair.sender.write_endless(Time::ZERO);
        let mut count = 0u64;
        let mut script = |line: &Line| {
            count += u64::from(line.segment.payload() > 0);
            if count.is_multiple_of(one_in) { Fate::Mark } else { Fate::Deliver }
        };
        pair.drive(ms(400_000), &mut script);
        let before = pair.sender.stats().segments_sent;
        pair.drive(ms(600_000), &mut script);
        let measured = (pair.sender.stats().segments_sent - before) as f64 / 200.0;
        assert!((measured - rate).abs() < swing, "one in {one_in}: {measured} per second, expected {rate}");
    }
}

#[test]
fn a_delayed_ack_does_not_swallow_the_echo_of_a_latched_mark() {
    let config = tcp::Config {
        ecn: Ecn::On { echo: Echo::Latched, reaction: true },
        ack: tcp::ack::Config::Delayed(tcp::ack::Delayed::default()),
        ..tcp::Config::default()
    };
    let mut pair = pair(config);
    pair.sender.write(Time::ZERO, 1460 * 30);
    pair.sender.close(Time::ZERO);
    pair.drive(ms(60_000), &mut mark(&[4]));
    assert!(segments(&pair, From::Receiver).any(|ack| ack.flags.has(Flags::ECE) && !ack.flags.has(Flags::SYN)));
    assert!(segments(&pair, From::Sender).any(|data| data.flags.has(Flags::CWR) && data.payload > 0));
    assert!(pair.sender.is_done() && pair.receiver.is_done());
}

#[test]
fn synchronized_clocks_echo_the_one_way_delay() {
    // AP05, section 5, figure 15: T = 50 ms forward, 90 ms back. The smoothed delay is 4 T/h =
    // 200/7 ms, whatever the RTT is.
    let mut pair = Pair::new(&names::lookup("tcp-ap-sync").unwrap(), Duration::from_millis(50), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    // Each ACK is delayed by 40 ms, which affects the RTT but not the one-way delay.
    pair.drive(ms(10_000), &mut |line| match line.from {
        From::Receiver => Fate::Delay(Duration::from_millis(40)),
        From::Sender => Fate::Deliver,
    });
    let Endpoint::Tcp(end) = &pair.sender else { panic!() };
    let estimator = end.sender().pacer().estimator().unwrap();
    assert!((estimator.delay().unwrap() - 0.2 / 7.0).abs() < 1e-9);
    let stats = end.stats();
    assert!((stats.rtt_sum_s / stats.rtt_samples as f64 - 0.140).abs() < 1e-9);
    assert!(segments(&pair, From::Receiver).skip(1).all(|ack| ack.words[0] == 50_000));
}
