//! Properties that hold whatever the network does, tested with random runs. A failure prints the
//! seed that repeats it.

use crate::common::{Fate, From, Line, Pair, ms};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use meshpace_transport::pacing::{
    self, AdaptiveConfig, DccConfig, Dispersion, HopSource, Measure, OutOfInterference, RateLimit, Recovery, Sampling,
    Scaling, ShortPath,
};
use meshpace_transport::tcp::window::{self, CubicConfig, HopRule};
use meshpace_transport::tcp::{Extension, Flags, Segment as Tcp, ack, ecn};
use meshpace_transport::{Arrival, Config, Endpoint, Role, Segment, names, pump, tcp};

/// Any TCP: random choices of its components and of every switch of the pacing.
fn any_config(rng: &mut Rng) -> tcp::Config {
    let mut config = tcp::Config {
        segment: [1, 536, 1460][rng.below(3) as usize],
        max_window: [1, 2, 3, 8, 64][rng.below(5) as usize],
        initial_window: 1 + rng.below(4) as u32,
        limited_transmit: rng.below(4) > 0,
        ..tcp::Config::default()
    };
    config.window = match rng.below(10) {
        0..=1 => window::Config::Clamp { segments: 1 + rng.below(4) as u32 },
        2 => window::Config::Constant { segments: 1 + rng.below(8) as u32 },
        3 => window::Config::HopLimit(HopRule::Table),
        4 => window::Config::Few { increment: 0.01 },
        5 => window::Config::Cubic(CubicConfig::default()),
        _ => window::Config::NewReno,
    };
    config.ack = match rng.below(4) {
        0 => ack::Config::Delayed(ack::Delayed { linux_window_2: rng.below(2) == 0, ..ack::Delayed::default() }),
        1 => ack::Config::Dynamic(ack::Dynamic::default()),
        _ => ack::Config::EverySegment,
    };
    config.ecn = [ecn::Config::Off, ecn::Config::DCC, ecn::Config::RFC_3168][rng.below(3) as usize];
    config.rto.backoff = rng.below(4) > 0;
    if rng.below(3) == 0 {
        config.rto.sampling = tcp::rtt::Sampling::Timestamps;
    }
    config.sack = rng.below(3) == 0;
    if rng.below(6) == 0 {
        config.pacing = pacing::Config::Dcc(DccConfig::default());
    } else if rng.below(3) > 0 {
        let mut flip = || rng.below(2) == 0;
        let (paper, released) = (AdaptiveConfig::paper(), AdaptiveConfig::released());
        config.pacing = pacing::Config::Adaptive(AdaptiveConfig {
            measure: if flip() {
                Measure::RoundTrip
            } else if flip() && !config.sack {
                Measure::OneWay
            } else {
                Measure::OutOfInterference(OutOfInterference::default())
            },
            scale: if flip() { 1.0 } else { 2.0 },
            scaling: if flip() { Scaling::Samples } else { Scaling::Deviations },
            hops: if flip() { HopSource::RoutingTable } else { HopSource::AckTravelled },
            short_path: if flip() { ShortPath::WholePath } else { ShortPath::OneHop },
            dispersion: if flip() { Dispersion::CovRtt } else { Dispersion::MadDelay },
            rtt_clock: if flip() { Duration::ZERO } else { Duration::from_millis(100) },
            delay_limit: if flip() { None } else { released.delay_limit },
            queueing_limit: if flip() { None } else { released.queueing_limit },
            initial_interval: if flip() { Duration::ZERO } else { released.initial_interval },
            sampling: if flip() {
                Sampling::EveryEcho
            } else if flip() {
                Sampling::NewData
            } else if flip() {
                Sampling::OldestNew
            } else {
                Sampling::NewDataKarn
            },
            limit: if flip() { RateLimit::EarliestSend } else { RateLimit::FreeRunning },
            recovery: if flip() {
                Recovery::Restart
            } else if flip() {
                Recovery::Paced
            } else {
                Recovery::OffUntilAck
            },
            ..paper
        });
    }
    config
}

/// Follows a conversation and checks the limits that must never be exceeded.
struct Referee {
    segment: u64,
    /// Largest number of segments that may be outstanding.
    window: u64,
    acked: u64,
    highest: u64,
}

impl Referee {
    fn watch(&mut self, line: &Line, delivered: bool) {
        let Segment::Tcp(segment) = line.segment else { return };
        match line.from {
            From::Receiver => {
                if delivered && segment.flags.has(Flags::ACK) {
                    self.acked = self.acked.max(segment.ack);
                }
            }
            From::Sender if segment.payload > 0 => {
                let end = segment.seq + u64::from(segment.payload);
                self.highest = self.highest.max(end);
                assert!(u64::from(segment.payload) <= self.segment);
                assert!(end <= self.acked + self.window * self.segment, "more than the window at {}", line.at);
            }
            From::Sender => {}
        }
    }
}

#[test]
fn all_bytes_arrive_once_in_order_whatever_is_lost() {
    for seed in 0..1000 {
        let run = || {
            let mut rng = Rng::stream(seed, Purpose::Test, 1);
            let config = any_config(&mut rng);
            let bytes = 1 + rng.below(u64::from(config.segment) * 60);
            let (loss, duplication, reordering) =
                (rng.uniform_in(0.0, 0.25), rng.uniform_in(0.0, 0.1), rng.uniform_in(0.0, 0.2));
            let delay = Duration::from_micros(100 + rng.below(80_000));
            let mut pair = Pair::new(&Config::Tcp(config.clone()), delay, 1 + rng.below(10) as u8);
            pair.sender.open(Time::ZERO);
            pair.sender.write(Time::ZERO, bytes);
            pair.sender.close(Time::ZERO);
            let limit = config.window.limit(config.max_window);
            // The sender cannot have received more than has been sent back, so the limit also holds
            // under delay.
            let mut referee =
                Referee { segment: u64::from(config.segment), window: u64::from(limit), acked: 0, highest: 0 };
            pair.drive(Time(u64::MAX - 1), &mut |line| {
                let u = rng.uniform();
                let fate = if u < loss {
                    Fate::Lose
                } else if u < loss + duplication {
                    Fate::Duplicate
                } else if u > 0.95 {
                    Fate::Mark
                } else if u < loss + duplication + reordering {
                    Fate::Delay(Duration::from_micros(rng.below(100_000)))
                } else {
                    Fate::Deliver
                };
                referee.watch(line, fate != Fate::Lose);
                fate
            });
            assert_eq!(pair.receiver.delivered(), bytes, "{config:?}");
            assert!(pair.sender.is_done(), "{config:?}");
            assert!(pair.receiver.is_done(), "{config:?}");
            let (sent, received) = (pair.sender.stats(), pair.receiver.stats());
            assert_eq!(sent.acked_bytes, bytes);
            assert_eq!(received.distinct_segments_received, bytes.div_ceil(u64::from(config.segment)));
            // A segment below the highest one sent counts as a retransmission, as on a trace. The
            // FIFO of the released agent can drop a segment before its first transmission.
            let first_times = sent.segments_sent - sent.retransmissions;
            let drops = matches!(&config.pacing, pacing::Config::Adaptive(adaptive)
                if adaptive.limit == RateLimit::FreeRunning && adaptive.recovery == Recovery::OffUntilAck);
            assert!(first_times <= received.distinct_segments_received);
            assert!(drops || first_times == received.distinct_segments_received, "{config:?}");
            assert_eq!(referee.highest, bytes);
        };
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn nothing_is_repeated_without_loss() {
    for seed in 0..100 {
        let mut rng = Rng::stream(seed, Purpose::Test, 2);
        let config = any_config(&mut rng);
        // The round-trip time is below the smallest RTO of 200 ms less a tick, so no timer can
        // expire too early.
        let delay = Duration::from_micros(100 + rng.below(90_000));
        let mut pair = Pair::new(&Config::Tcp(config.clone()), delay, 7);
        pair.sender.open(Time::ZERO);
        let bytes = u64::from(config.segment) * 100;
        pair.sender.write(Time::ZERO, bytes);
        pair.sender.close(Time::ZERO);
        pair.drive(ms(3_600_000), &mut |_| Fate::Deliver);
        let stats = pair.sender.stats();
        assert_eq!((stats.retransmissions, stats.timeouts), (0, 0), "seed {seed} {config:?}");
        assert_eq!(pair.receiver.stats().duplicate_segments_received, 0, "seed {seed}");
        assert_eq!(pair.receiver.delivered(), bytes, "seed {seed} {config:?}");
    }
}

#[test]
fn paced_segments_are_never_closer_than_the_shortest_interval() {
    // Every interval is FHD^ (1 + 2 cov) >= FHD^, and FHD^ is at least the smallest D_n of the
    // samples: the RTT is never below twice the one-way delay. Only retransmissions may leave out
    // of turn.
    for seed in 0..50 {
        let mut rng = Rng::stream(seed, Purpose::Test, 3);
        let one_way = 0.010 + 0.040 * rng.uniform();
        let hops = 1 + rng.below(10) as u8;
        let Some(config) = names::lookup("tcp-ap") else { panic!() };
        let mut pair = Pair::new(&config, Duration::from_secs_f64(one_way), hops);
        pair.sender.open(Time::ZERO);
        pair.sender.write_endless(Time::ZERO);
        pair.drive(ms(20_000), &mut |_| match rng.below(40) {
            0 => Fate::Lose,
            1 | 2 => Fate::Delay(Duration::from_micros(rng.below(60_000))),
            _ => Fate::Deliver,
        });
        let n = f64::from(hops.min(4));
        let shortest = n / 2.0 * (2.0 * one_way / f64::from(hops) + 8.0 * 1460.0 / 2e6);
        // A sample has been taken by this time. Before it, segments leave as the window allows.
        let settled = ms(3_000);
        let (mut last, mut highest) = (Time::ZERO, 0);
        let mut checked = 0;
        for line in &pair.record {
            let Segment::Tcp(segment) = line.segment else { continue };
            if line.from == From::Sender && segment.payload > 0 {
                if last >= settled && segment.seq > highest {
                    let gap = line.at.since(last).as_secs_f64();
                    assert!(gap >= shortest - 1e-6, "seed {seed}: {gap} s at {}, at least {shortest}", line.at);
                    checked += 1;
                }
                last = line.at;
                highest = highest.max(segment.seq);
            }
        }
        assert!(checked > 50, "seed {seed}: {checked}");
    }
}

#[test]
fn no_peer_can_make_an_endpoint_panic_or_wedge() {
    for seed in 0..1000 {
        let run = || {
            let mut rng = Rng::stream(seed, Purpose::Test, 4);
            let config = Config::Tcp(any_config(&mut rng));
            let mut ends = [Endpoint::new(&config, Role::Sender), Endpoint::new(&config, Role::Receiver)];
            ends[0].open(Time::ZERO);
            ends[0].write_endless(Time::ZERO);
            let mut now = Time::ZERO;
            for _ in 0..400 {
                now += Duration::from_micros(rng.below(50_000));
                let near = |rng: &mut Rng| match rng.below(6) {
                    0 => u64::MAX - rng.below(3000),
                    1 => rng.next_u64(),
                    _ => rng.below(12) * 730,
                };
                let segment = Tcp {
                    seq: near(&mut rng),
                    ack: near(&mut rng),
                    window: [0, 1, 700, 64 * 1460, u32::MAX][rng.below(5) as usize],
                    ts_val: rng.next_u64() as u32,
                    ts_ecr: rng.next_u64() as u32,
                    payload: [0, 0, 1, 1460, u16::MAX][rng.below(5) as usize],
                    flags: Flags(
                        [0x10, 0x10, 0x10, 0x12, 0x02, 0x11, 0x01, rng.below(256) as u8][rng.below(8) as usize],
                    ),
                    extension: [Extension::None, Extension::EcnCapable, Extension::OneWayDelay, Extension::Sack]
                        [rng.below(4) as usize],
                    words: [rng.next_u64(), near(&mut rng)],
                };
                for end in &mut ends {
                    pump(end, now, |_, _| {});
                    end.on_segment(
                        now,
                        &Segment::Tcp(segment),
                        Arrival { hops: rng.below(256) as u8, ..Arrival::default() },
                    );
                    let mut polled = 0;
                    let mut wakeup = pump(end, now, |_, _| {
                        polled += 1;
                        assert!(polled < 1000, "it never stops sending");
                    });
                    if rng.below(3) == 0 && wakeup != Time::NEVER {
                        now = now.max(wakeup);
                        wakeup = pump(end, now, |_, _| {});
                    }
                    assert!(wakeup > now, "due at once for ever");
                }
            }
            // A sender that has data and was not reset must wait for some event.
            assert!(ends[0].is_done() || pump(&mut ends[0], now, |_, _| {}) != Time::NEVER);
        };
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
