//! Two TPA connections on a virtual clock, with data in both directions, and a referee that checks
//! where every byte is placed.
#![allow(dead_code, reason = "each test uses its part")]

use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_transport::pacing::{self, AdaptiveConfig};
use meshpace_transport::tpa::{Config, Connection, Segment, ack, congestion, estimator, window};
use meshpace_transport::{Arrival, PathInfo, Role, pump};

/// Any TPA: random choices of every switch and every limit.
pub fn any_config(rng: &mut Rng) -> Config {
    let notices = [
        congestion::Notices::None,
        congestion::Notices::None,
        congestion::Notices::Failure,
        congestion::Notices::FailureAndRecovery,
    ][rng.below(4) as usize];
    Config {
        segment: [1, 536, 1460][rng.below(3) as usize],
        block_segments: [1, 2, 5, 12, 12, 12][rng.below(6) as usize],
        congestion: congestion::Config {
            window: [1, 2, 2, 3, 3, 12][rng.below(6) as usize],
            route_timeouts: 1 + rng.below(2) as u32,
            congestion_timeouts: 1 + rng.below(2) as u32,
            acks: 1 + rng.below(2) as u32,
            notices,
        },
        ack: if rng.below(2) == 0 { ack::Rule::EveryOther } else { ack::Rule::EveryWindow },
        rto: estimator::Config {
            margin: Duration::from_millis([0, 100][rng.below(2) as usize]),
            deviation_from_old: rng.below(4) == 0,
            ..estimator::Config::default()
        },
        receive_window: [1, 2, 64, 255][rng.below(4) as usize],
        first_block: [0, 0, 4090, rng.below(4096) as u16][rng.below(4) as usize],
        pacing: if rng.below(2) == 0 {
            pacing::Config::None
        } else {
            pacing::Config::Adaptive(AdaptiveConfig::paper())
        },
        ack_block_end: rng.below(2) == 0,
        window: [window::Rule::Agreed, window::Rule::Agreed, window::Rule::Fixed(7), window::Rule::Auto]
            [rng.below(4) as usize],
        waits_to_fill: rng.below(2) == 0,
        fin_follows: rng.below(2) == 0,
        ..Config::default()
    }
}

/// One end, and the network towards it.
pub struct End {
    pub connection: Connection,
    /// Segments in flight to this end: arrival time, order, segment.
    flying: Vec<(Time, u64, Segment)>,
    /// True for each byte of the peer's stream that was placed here.
    pub received: Vec<bool>,
    /// Number of bytes written here.
    pub written: u64,
    window: u32,
    /// Time at which the end has to be polled again.
    wakeup: Time,
}

/// Two ends. Index 0 connects, index 1 listens.
pub struct Net {
    pub now: Time,
    pub ends: [End; 2],
    pub delay: Duration,
    pub hops: u8,
    order: u64,
    pub record: Vec<(Time, usize, Segment, bool)>,
}

impl Net {
    pub fn new(config: &Config, delay: Duration) -> Net {
        config.check().unwrap();
        let end = |role, config: &Config| {
            let mut connection = Connection::new(config, role);
            connection.on_path(PathInfo { hops: 4, rate: Rate::from_mbps(2), received_power_dbm: None });
            let window = u32::from(match config.window {
                window::Rule::Agreed => config.congestion.window,
                window::Rule::Fixed(window) => window.max(config.congestion.window),
                window::Rule::Auto => 12,
            });
            End { connection, flying: Vec::new(), received: Vec::new(), written: 0, window, wakeup: Time::NEVER }
        };
        // The ends number their blocks independently.
        let other = Config { first_block: (config.first_block + 77) % 4096, ..config.clone() };
        let ends = [end(Role::Sender, config), end(Role::Receiver, &other)];
        Net { now: Time::ZERO, ends, delay, hops: 4, order: 0, record: Vec::new() }
    }

    pub fn write(&mut self, end: usize, bytes: u64) {
        let now = self.now;
        self.ends[end].written += bytes;
        self.ends[end].connection.write(now, bytes);
    }

    /// Sends everything that both ends want to send. `fate` returns the additional delay of each
    /// copy that arrives.
    pub fn flush(&mut self, fate: &mut dyn FnMut(Time, usize, &Segment) -> Vec<Duration>) {
        for from in [0, 1] {
            let mut polled = 0;
            let [end, peer] = match &mut self.ends {
                [first, second] if from == 0 => [first, second],
                [first, second] => [second, first],
            };
            end.wakeup = pump(&mut end.connection, self.now, |connection, segment| {
                polled += 1;
                assert!(polled < 100, "it never stops sending");
                assert!(connection.sender().outstanding() <= end.window, "more than the window");
                let copies = fate(self.now, from, &segment);
                self.record.push((self.now, from, segment, !copies.is_empty()));
                for extra in copies {
                    self.order += 1;
                    let at = self.now + self.delay + extra;
                    peer.flying.push((at, self.order, segment));
                }
            });
        }
    }

    pub fn next_event(&self) -> Time {
        let of = |end: &End| end.flying.iter().map(|flight| flight.0).min().unwrap_or(Time::NEVER);
        let wakeup = |end: &End| of(end).min(end.wakeup);
        wakeup(&self.ends[0]).min(wakeup(&self.ends[1]))
    }

    /// Advances to the next event up to `until`. Arrivals come before timers.
    pub fn step(&mut self, until: Time, fate: &mut dyn FnMut(Time, usize, &Segment) -> Vec<Duration>) -> bool {
        self.flush(fate);
        let next = self.next_event();
        if next == Time::NEVER || next > until {
            self.now = until.min(next).max(self.now);
            return false;
        }
        assert!(next >= self.now, "a wake-up in the past: {next} at {}", self.now);
        self.now = next;
        let mut arrived = false;
        for end in &mut self.ends {
            let first = end.flying.iter().enumerate().min_by_key(|(_, flight)| (flight.0, flight.1));
            if let Some((index, &(at, _, segment))) = first
                && at <= next
                && !arrived
            {
                arrived = true;
                end.flying.remove(index);
                end.take(next, &segment, self.hops);
            }
        }
        self.flush(fate);
        true
    }

    pub fn drive(&mut self, until: Time, fate: &mut dyn FnMut(Time, usize, &Segment) -> Vec<Duration>) {
        let mut events = 0;
        while self.step(until, fate) {
            events += 1;
            if events >= 100_000 {
                let tail = &self.record[self.record.len().saturating_sub(12)..];
                panic!("no end in sight: {tail:#?}");
            }
        }
    }

    /// Asserts that both streams are complete and that the connection has ended on both sides.
    pub fn assert_complete(&self) {
        for (end, peer) in [(0, 1), (1, 0)] {
            let (end, peer) = (&self.ends[end], &self.ends[peer]);
            assert_eq!(end.received.len() as u64, peer.written);
            assert!(end.received.iter().all(|&byte| byte), "a hole");
            assert_eq!(end.connection.delivered(), peer.written);
            assert_eq!(peer.connection.stats().acked_bytes, peer.written);
            assert!(end.connection.is_done(), "{:?}", end.connection.state());
        }
        assert_eq!(self.next_event(), Time::NEVER);
    }
}

impl End {
    fn take(&mut self, now: Time, segment: &Segment, hops: u8) {
        let arrival = Arrival { hops, ..Arrival::default() };
        let before = self.connection.delivered();
        if let Some(placement) = self.connection.on_segment(now, segment, arrival) {
            // The offset is not transmitted: the receiver must compute the same offset by itself.
            assert_eq!((placement.offset, placement.bytes), (segment.offset, segment.payload));
            let (start, end) = (placement.offset as usize, placement.offset as usize + usize::from(placement.bytes));
            if self.received.len() < end {
                self.received.resize(end, false);
            }
            for byte in &mut self.received[start..end] {
                assert!(!*byte, "a byte twice");
                *byte = true;
            }
        }
        let delivered = self.connection.delivered();
        assert!(delivered >= before);
        assert!(self.received[before as usize..delivered as usize].iter().all(|&byte| byte), "delivered with a hole");
    }
}

/// A time in milliseconds.
pub fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}
