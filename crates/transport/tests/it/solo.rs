//! Tests of trains without help of the receiver, as docs/quiet-trains.md describes them: pairs,
//! silence, and receivers of every kind.

use crate::common::{Fate, From, Line, Pair, ms, tcp_of};
use meshpace_core::{Duration, Time};
use meshpace_transport::tcp::ack::{self, Delayed};
use meshpace_transport::{Config, names};

/// Configuration of a transfer: a sender, and a receiver that acknowledges by the rule `ack`.
fn config(ack: ack::Config) -> Config {
    match names::lookup("quiet-train-solo") {
        Some(Config::Tcp(mut config)) => {
            config.ack = ack;
            Config::Tcp(config)
        }
        other => panic!("{other:?}"),
    }
}

fn stock(segments: u32, timer: u64) -> ack::Config {
    ack::Config::Delayed(Delayed { segments, timer: Duration::from_millis(timer), ..Delayed::default() })
}

/// Times in ms and numbers of the data segments.
fn data(pair: &Pair) -> Vec<(f64, u64)> {
    pair.data(1460).into_iter().map(|(at, number, _)| (at, number)).collect()
}

#[test]
fn segments_leave_in_pairs_and_a_train_is_followed_by_silence() {
    let mut pair = Pair::new(&config(stock(2, 100)), Duration::from_millis(40), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(60_000), &mut |_| Fate::Deliver);
    let sent = data(&pair);
    // rtt0 = 80 ms, tau = 4/7 80 / (1 + 1.958/7.75) = 36.5 ms, and the floor is 1.14 tau = 41.6 ms.
    // That is more than the limit for the gap of a pair, which is 1.1 of four exchanges of 7.75 ms,
    // 34.1 ms. The mean interval is 41.6 ms, so 49.1 ms pass from pair to pair.
    let late: Vec<f64> = sent.windows(2).filter(|two| two[0].0 > 30_000.0).map(|two| two[1].0 - two[0].0).collect();
    let count = |low: f64, high: f64| late.iter().filter(|gap| (low..high).contains(*gap)).count();
    let (within, between, silent) = (count(34.0, 34.2), count(49.0, 49.2), count(79.9, 80.1));
    assert_eq!(within + between + silent, late.len(), "{late:?}");
    // Trains of 16 segments have eight gaps within pairs, seven between pairs, and one round trip
    // of silence.
    assert!(silent >= 30 && within.abs_diff(8 * silent) <= 16 && between.abs_diff(7 * silent) <= 16);
    // The count of segments causes the ACKs, never the timer: one ACK for two segments.
    let acks = pair.receiver.stats().acks_sent as usize;
    assert!(acks.abs_diff(sent.len() / 2) <= 2, "{acks} of {}", sent.len());
}

/// A bottleneck for the sender's data that takes `service` for each segment. Segments of the
/// receiver pass at once.
fn bottleneck(service: Duration) -> impl FnMut(&Line) -> Fate {
    let mut free = Time::ZERO;
    move |line| {
        if line.from == From::Receiver || line.segment.payload() == 0 {
            return Fate::Deliver;
        }
        free = free.max(line.at) + service;
        Fate::Delay(free.since(line.at))
    }
}

/// Goodput in kbit/s through a bottleneck that serves a segment in 28 ms, with the rule `ack` at
/// the far end.
fn goodput(ack: ack::Config) -> f64 {
    let mut pair = Pair::new(&config(ack), Duration::from_millis(35), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    let mut serve = bottleneck(Duration::from_millis(28));
    pair.drive(ms(300_000), &mut serve);
    assert_eq!((pair.sender.stats().retransmissions, pair.sender.stats().timeouts), (0, 0));
    pair.receiver.delivered() as f64 * 8.0 / 300e3
}

#[test]
fn receivers_of_every_kind_are_lived_with() {
    // 1460 bytes in 28 ms are 417 kbit/s. The floor, 1.14 of tau = 4/7 98 ms / 1.25, allows 229.
    let usual = goodput(stock(2, 100));
    assert!((200.0..235.0).contains(&usual), "{usual}");
    let others = [
        ("timer of 40 ms", stock(2, 40)),
        ("timer of 200 ms", stock(2, 200)),
        ("every segment", ack::Config::EverySegment),
        ("an ACK for four, as offloads make them", stock(4, 200)),
        ("an ACK for eight, as offloads make them", stock(8, 500)),
        ("a timer that always expires", stock(2, 20)),
    ];
    for (what, ack) in others {
        let here = goodput(ack);
        // If the delay included a timer, the goodput of such a sender would collapse to a third or
        // less.
        assert!(here > 0.7 * usual, "{what}: {here} of {usual} kbit/s");
    }
}

/// Lengths of the trains. A train ends when everything sent has been acknowledged.
fn trains(pair: &Pair) -> Vec<usize> {
    let (mut lengths, mut sent, mut acknowledged) = (Vec::new(), 0, 0);
    for line in &pair.record {
        let segment = tcp_of(line);
        match line.from {
            From::Receiver => acknowledged = acknowledged.max(segment.ack),
            From::Sender if segment.payload > 0 => {
                if acknowledged >= sent {
                    lengths.push(0);
                }
                *lengths.last_mut().expect("one begins with the first segment") += 1;
                sent = segment.seq + u64::from(segment.payload);
            }
            From::Sender => {}
        }
    }
    lengths
}

#[test]
fn while_each_segment_is_acknowledged_at_first_trains_stay_short_and_nothing_is_sampled() {
    // The path serves a segment in 40 ms. The first interval is 1.15 of 4 exchanges of 7.75 ms,
    // 35.6 ms. A train of four has a queue of at most 14 ms, one of 16 a queue of 70 ms. The
    // receiver acknowledges each of the first 22 segments: five trains of four. Of the sixth train
    // it acknowledges two segments separately and two together.
    let mut pair = Pair::new(&config(ack::Config::Linux(ack::Linux::default())), Duration::from_millis(35), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    let mut serve = bottleneck(Duration::from_millis(40));
    // The handshake takes 70 ms, a train 4 x 40 + 70 ms. Five trains are over after 1,220 ms.
    pair.drive(ms(1_200), &mut serve);
    assert_eq!((pair.sender.stats().rtt_samples, trains(&pair)), (0, vec![4; 5]));
    pair.drive(ms(1_500), &mut serve);
    assert_eq!(trains(&pair)[..6], [4; 6]);
    // The first sample is that of segment 24: 70 ms, 40 ms of service and a queue of at most 14 ms.
    let stats = pair.sender.stats();
    assert!(stats.rtt_samples > 0 && stats.rtt_sum_s / (stats.rtt_samples as f64) < 0.125, "{stats:?}");
}

#[test]
fn a_repeated_syn_does_not_stop_it() {
    let mut pair = Pair::new(&config(stock(2, 100)), Duration::from_millis(20), 4);
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 100_000);
    pair.sender.close(Time::ZERO);
    let mut syns = 0;
    pair.drive(ms(60_000), &mut |line| {
        syns += u32::from(line.from == From::Sender);
        if syns < 3 { Fate::Lose } else { Fate::Deliver }
    });
    assert_eq!(pair.receiver.delivered(), 100_000);
}

#[test]
fn the_ack_of_a_train_is_not_waited_for_without_end() {
    // Every ACK of a whole train is lost once. New data serves as a probe before the retransmission
    // timer expires.
    let mut pair = Pair::new(&config(stock(2, 100)), Duration::from_millis(20), 4);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    let dark = ms(5_000)..ms(5_700);
    pair.drive(ms(20_000), &mut |line| match line.from {
        From::Receiver if dark.contains(&line.at) => Fate::Lose,
        _ => Fate::Deliver,
    });
    assert_eq!(pair.sender.stats().timeouts, 0);
    assert_eq!(pair.sender.stats().retransmissions, 0);
}

#[test]
fn without_silence_the_same_pairs_follow_each_other_without_a_gap() {
    // The path of the first test: 34.1 ms within a pair, 49.1 ms from pair to pair, and never a
    // pause of the round trip of 80 ms.
    for (name, per_ack) in [("paced-pairs", 2), ("paced-pairs-8", 8)] {
        let mut pair = Pair::new(&names::lookup(name).unwrap(), Duration::from_millis(40), 7);
        pair.sender.open(Time::ZERO);
        pair.sender.write_endless(Time::ZERO);
        pair.drive(ms(60_000), &mut |_| Fate::Deliver);
        let sent = data(&pair);
        let late: Vec<f64> = sent.windows(2).filter(|two| two[0].0 > 30_000.0).map(|two| two[1].0 - two[0].0).collect();
        let count = |low: f64, high: f64| late.iter().filter(|gap| (low..high).contains(*gap)).count();
        let (within, between) = (count(34.0, 34.2), count(49.0, 49.2));
        assert_eq!(within + between, late.len(), "{name}: {:?}", &late[..10]);
        assert!(within.abs_diff(between) <= 1);
        let acks = pair.receiver.stats().acks_sent as usize;
        assert!(acks.abs_diff(sent.len() / per_ack) <= 2, "{name}: {acks} of {}", sent.len());
        assert_eq!(pair.sender.stats().retransmissions, 0, "{name}");
    }
}
