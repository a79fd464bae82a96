//! Tests every named transport on every kind of bad network: all bytes arrive once, in order, and
//! the connection ends. Without losses there are no retransmissions.

use crate::common::{Fate, From, Line, Pair, ms};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use meshpace_transport::{Config, Endpoint, Role, Segment, names};

/// Every row of the table, and every row with each modifier, except UDP.
fn reliable() -> Vec<(String, Config)> {
    let mut all = Vec::new();
    for entry in names::table() {
        let modified = names::modifiers().iter().map(|modifier| format!("{}+{}", entry.name, modifier.name));
        for name in core::iter::once(entry.name.to_owned()).chain(modified) {
            match names::lookup(&name) {
                Some(config) if !matches!(config, Config::Udp(_)) && config.check().is_ok() => all.push((name, config)),
                _ => {}
            }
        }
    }
    assert!(all.len() > 50);
    all
}

#[test]
fn who_has_a_congestion_window_tells_at_least_one_segment_of_it() {
    for (name, config) in reliable() {
        let sender = Endpoint::new(&config, Role::Sender);
        let has_none = matches!(config, Config::Train(_) | Config::Flush(_));
        assert_eq!(sender.window().map(|window| window >= 1.0), if has_none { None } else { Some(true) }, "{name}");
    }
}

/// A kind of network: a function that decides on the treatment of a segment.
type Network = fn(&Line, &mut Rng) -> Fate;

const NETWORKS: &[(&str, Network)] = &[
    ("loss", |_, rng| if rng.below(8) == 0 { Fate::Lose } else { Fate::Deliver }),
    ("duplication", |_, rng| if rng.below(5) == 0 { Fate::Duplicate } else { Fate::Deliver }),
    ("reordering", |_, rng| match rng.below(3) {
        0 => Fate::Delay(Duration::from_micros(rng.below(120_000))),
        _ => Fate::Deliver,
    }),
    ("delay", |line, _| {
        // 300 ms more in every other second: half of it exceeds any RTO that has adapted to the
        // shorter path.
        let slow = line.at.0 / 1_000_000_000 % 2 == 1;
        if slow { Fate::Delay(Duration::from_millis(300)) } else { Fate::Deliver }
    }),
    ("marks", |_, rng| if rng.below(3) == 0 { Fate::Mark } else { Fate::Deliver }),
    ("no data for 20 s", |line, _| blackout(line, From::Sender)),
    ("no ACK for 20 s", |line, _| blackout(line, From::Receiver)),
];

/// Loses everything from one end from 0.1 s to 20 s.
fn blackout(line: &Line, from: From) -> Fate {
    let dark = (ms(100)..ms(20_000)).contains(&line.at);
    if dark && line.from == from { Fate::Lose } else { Fate::Deliver }
}

#[test]
fn all_bytes_arrive_once_in_order_and_the_connection_ends() {
    for (name, config) in reliable() {
        for (kind, network) in NETWORKS {
            for seed in 0..3 {
                let run = || {
                    let mut rng = Rng::stream(seed, Purpose::Test, 5);
                    let bytes = 1460 * (20 + rng.below(60)) + rng.below(1460);
                    let delay = Duration::from_micros(20_000 + rng.below(40_000));
                    let mut pair = Pair::new(&config, delay, 1 + rng.below(12) as u8);
                    pair.sender.open(Time::ZERO);
                    pair.sender.write(Time::ZERO, bytes);
                    pair.sender.close(Time::ZERO);
                    pair.drive(ms(36_000_000), &mut |line| network(line, &mut rng));
                    assert_eq!(pair.receiver.delivered(), bytes, "not all bytes");
                    assert!(!kind.starts_with("no ") || pair.now > ms(20_000), "over before the blackout");
                    assert!(pair.sender.is_done() && pair.receiver.is_done(), "the connection does not end");
                };
                if let Err(panic) = std::panic::catch_unwind(run) {
                    eprintln!("{name}, {kind}, seed {seed}");
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

#[test]
fn nothing_is_repeated_where_nothing_is_lost() {
    for (name, config) in reliable() {
        for hops in [1, 4, 7, 12] {
            let mut pair = Pair::new(&config, Duration::from_millis(3 * u64::from(hops)), hops);
            pair.sender.open(Time::ZERO);
            pair.sender.write(Time::ZERO, 1460 * 200);
            pair.sender.close(Time::ZERO);
            pair.drive(ms(3_600_000), &mut |_| Fate::Mark);
            assert_eq!(pair.sender.stats().retransmissions, 0, "{name}, {hops} hops");
            assert_eq!(pair.receiver.delivered(), 1460 * 200, "{name}, {hops} hops");
        }
    }
}

#[test]
fn no_tcp_exceeds_its_window() {
    for (name, config) in reliable() {
        let Config::Tcp(tcp) = &config else { continue };
        let window = u64::from(tcp.segment) * u64::from(tcp.window.limit(tcp.max_window));
        let mut rng = Rng::stream(1, Purpose::Test, 6);
        let mut acked = 0;
        let mut pair = Pair::new(&config, Duration::from_millis(30), 7);
        pair.sender.open(Time::ZERO);
        pair.sender.write(Time::ZERO, 1460 * 500);
        pair.sender.close(Time::ZERO);
        pair.drive(ms(3_600_000), &mut |line| {
            let Segment::Tcp(segment) = line.segment else { panic!("{:?}", line.segment) };
            match line.from {
                From::Receiver => acked = acked.max(segment.ack),
                From::Sender if segment.payload > 0 => {
                    assert!(segment.seq + u64::from(segment.payload) <= acked + window, "{name} at {}", line.at);
                }
                From::Sender => {}
            }
            if rng.below(30) == 0 { Fate::Lose } else { Fate::Deliver }
        });
        assert_eq!(pair.receiver.delivered(), 1460 * 500, "{name}");
    }
}

#[test]
fn no_two_names_are_described_alike_unless_they_are_alike() {
    for one in names::table() {
        for other in names::table() {
            if (one.build)() != (other.build)() && one.parameters() == other.parameters() {
                panic!("{} and {}: {}", one.name, other.name, one.parameters());
            }
        }
    }
}
