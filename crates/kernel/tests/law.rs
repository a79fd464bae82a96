//! Compares the quiet trains of the eBPF programs with those of the transports: in the same
//! conversation the intervals, gaps and trains must be the same.
#![cfg(feature = "kernel")]

mod common;

use common::is_missing;
use libbpf_rs::{Object, ObjectBuilder, ProgramInput};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_kernel::Path;
use meshpace_transport::train::solo::{Config, Progress, Solo};
use meshpace_transport::{PathInfo, Stats};
use std::collections::VecDeque;

/// Largest relative difference of two intervals or gaps.
const TOLERANCE: f64 = 1e-3;
/// Payload of a full segment, bytes.
const PAYLOAD: u32 = 1448;

#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/arithmetic.bpf.o")));

/// Events of the program `happens`, with its numbers.
#[derive(Clone, Copy)]
enum Event {
    Begins = 0,
    IsAcked = 1,
    NextTrain = 2,
    LongerTrain = 3,
    Loses = 4,
    TimesOut = 5,
}

/// State of the programs after an event.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    train: u32,
    interval: f64,
    gap: f64,
}

struct Programs {
    object: Object,
    path: Path,
}

impl Programs {
    fn new(path: Path) -> Option<Programs> {
        let load = || ObjectBuilder::default().open_memory(&OBJECT.0).unwrap().load().unwrap();
        (!is_missing()).then(|| Programs { object: load(), path })
    }

    fn tell(&self, event: Event, now: Time, rtt_us: i32, segments: u32, stamp: u32) -> State {
        let program = self.object.progs_mut().find(|program| program.name() == "happens").unwrap();
        let mut request = [0; 96];
        request[..40].copy_from_slice(&self.path.encode());
        request[40..48].copy_from_slice(&now.0.to_ne_bytes());
        for (at, word) in [(48, PAYLOAD), (52, rtt_us as u32), (56, segments), (60, stamp), (64, event as u32)] {
            request[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let input = ProgramInput { context_in: Some(&mut request), ..ProgramInput::default() };
        assert_eq!(program.test_run(input).unwrap().return_value, 0);
        let long = |at: usize| u64::from_ne_bytes(*request[at..].first_chunk().unwrap()) as f64 / 1e9;
        let train = u32::from_ne_bytes(*request[68..].first_chunk().unwrap());
        State { train, interval: long(72), gap: long(80) }
    }
}

/// Path of the conversation. Segments wait in its queue, and the receiver acknowledges every second
/// segment or when its timer expires.
struct World {
    hops: u8,
    rate: Rate,
    /// Round-trip time without queues.
    rtt: Duration,
    /// Largest random delay added to a segment.
    noise: Duration,
    /// Time for which a segment occupies the queue: at first, and from the middle of the
    /// conversation on.
    service: [Duration; 2],
    /// Delayed-ACK timer of the receiver.
    timer: Duration,
    /// Unit of the receiver's clock in ns, and the rate by which it is faster than ours, ppm.
    clock: (u64, i64),
    /// One segment in `loss` is lost; 0: none.
    loss: u64,
}

/// An ACK in flight.
struct Ack {
    at: Time,
    sent_at: Option<Time>,
    segments: u64,
    stamp: u32,
}

/// A conversation: both the transports and the programs receive the same events, and their results
/// are compared.
struct Conversation<'a> {
    world: &'a World,
    programs: Programs,
    rng: Rng,
    stats: Stats,
    solo: Solo,
    state: State,
    now: Time,
    /// Number of segments sent, and number of those that no ACK has covered.
    sent: u64,
    outstanding: u64,
    /// Times at which the last segment leaves the queue and at which the last ACK arrives.
    queue_until: Time,
    acked_until: Time,
    acks: VecDeque<Ack>,
    compared: usize,
    worst: f64,
}

impl<'a> Conversation<'a> {
    fn new(world: &'a World, seed: u64) -> Option<Conversation<'a>> {
        let programs = Programs::new(Path::new(world.hops, world.rate))?;
        let mut solo = Solo::new(&Config::default(), PAYLOAD);
        solo.on_path(&PathInfo { hops: world.hops, rate: world.rate, received_power_dbm: None });
        let now = Time(3_000_000_000);
        programs.tell(Event::Begins, now, 0, 0, 0);
        let state = programs.tell(Event::NextTrain, now, 0, 0, 0);
        Some(Conversation {
            world,
            programs,
            rng: Rng::stream(seed, Purpose::Test, 0),
            stats: Stats::default(),
            solo,
            state,
            now,
            sent: 0,
            outstanding: 0,
            queue_until: now,
            acked_until: now,
            acks: VecDeque::new(),
            compared: 0,
            worst: 0.0,
        })
    }

    fn compare(&mut self, what: &str, got: f64, want: f64) {
        let error = (got / want - 1.0).abs();
        self.worst = self.worst.max(error);
        self.compared += 1;
        assert!(error < TOLERANCE, "{what} after {} segments: {got} s, not {want} s", self.sent);
    }

    /// Time at which a segment that leaves now arrives at the receiver.
    fn arrival(&mut self, late: bool) -> Time {
        self.queue_until = Time(self.queue_until.0.max(self.now.0) + self.world.service[usize::from(late)].0);
        let noise = self.rng.next_u64() % self.world.noise.0.max(1);
        Time(self.queue_until.0 + self.world.rtt.0 / 2 + noise)
    }

    /// The receiver sends an ACK at `at`. Its newest segment was sent at `sent_at`.
    fn answer(&mut self, at: Time, sent_at: Option<Time>, segments: u64) {
        let (unit, ppm) = self.world.clock;
        let there = (at.0 as i64 + at.0 as i64 / 1_000_000 * ppm) as u64;
        // Arrival times are whole microseconds, as in the kernel's clock, and increase.
        self.acked_until = Time((at.0 + self.world.rtt.0 / 2).max(self.acked_until.0 + 1).next_multiple_of(1000));
        self.acks.push_back(Ack { at: self.acked_until, sent_at, segments, stamp: (there / unit) as u32 });
    }

    /// Delivers the ACKs that have arrived by `until`.
    fn deliver(&mut self, until: Time) {
        while self.acks.front().is_some_and(|ack| ack.at <= until) {
            let ack = self.acks.pop_front().expect("there is a first");
            self.now = Time(self.now.0.max(ack.at.0));
            self.outstanding -= ack.segments;
            let outstanding = self.outstanding > 0 || !self.acks.is_empty();
            let (now, segments) = (self.now, ack.segments);
            let progress = Progress { now, sent_at: ack.sent_at, segments, stamp: Some(ack.stamp), outstanding };
            self.solo.on_progress(&progress, &mut self.stats);
            let rtt = ack.sent_at.map_or(-1, |sent| (now.since(sent).0 / 1000) as i32);
            self.state = self.programs.tell(Event::IsAcked, now, rtt, segments as u32, ack.stamp);
        }
    }

    /// Sends a train when the transports release it, and lets the receiver acknowledge it.
    fn train(&mut self, late: bool) {
        let (mut began, mut first, mut newest_sent) = (self.now, None, self.now);
        let mut lossy = false;
        for place in 1_u32.. {
            loop {
                let at = Time(self.now.0.max(self.solo.release_at().0).next_multiple_of(1000));
                if self.acks.front().is_none_or(|ack| ack.at > at) {
                    self.now = at;
                    break;
                }
                self.deliver(self.acks[0].at);
            }
            let now = self.now;
            self.solo.on_sent(now, &mut self.stats);
            self.sent += 1;
            self.outstanding += 1;
            lossy |= self.world.loss > 0 && self.sent.is_multiple_of(self.world.loss);
            let wait = self.solo.release_at().since(now).as_secs_f64();
            let expected = 2.0 * self.state.interval - now.since(began).as_secs_f64();
            let is_second = place % 2 == 0;
            let is_last = is_second && wait > 0.29 && (wait / expected - 1.0).abs() > TOLERANCE;
            let arrived = self.arrival(late);
            match first.take() {
                None => {
                    (began, first) = (now, Some((now, arrived)));
                    self.compare("gap", self.state.gap, wait);
                }
                Some((first_sent, first_arrived)) => {
                    let arrived: Time = Time(arrived.0.max(first_arrived.0));
                    let timer = self.world.timer;
                    if arrived > first_arrived + timer {
                        self.answer(first_arrived + timer, Some(first_sent), 1);
                        self.answer(arrived + timer, Some(now), 1);
                    } else {
                        // A segment that was retransmitted gives no sample.
                        self.answer(arrived, (!lossy).then_some(now), 2);
                    }
                    if !is_last {
                        self.compare("interval", self.state.interval, wait_to_interval(wait, now, began));
                    }
                }
            }
            newest_sent = now;
            if is_last {
                assert_eq!(place, self.state.train, "after {} segments", self.sent);
                break;
            }
        }
        if lossy {
            self.solo.on_loss();
            self.programs.tell(Event::Loses, newest_sent, 0, 0, 0);
        }
        let whole = self.acks.back().is_some_and(|ack| ack.sent_at.is_some());
        self.deliver(Time::NEVER);
        self.next(whole);
    }

    fn next(&mut self, whole: bool) {
        let event = if whole { Event::LongerTrain } else { Event::NextTrain };
        self.state = self.programs.tell(event, self.now, 0, 0, 0);
    }

    /// Simulates a timeout: nothing returns except the ACK of the probe.
    fn timeout(&mut self) {
        let left_at = self.now;
        self.solo.on_sent(left_at, &mut self.stats);
        self.solo.on_timeout();
        self.programs.tell(Event::TimesOut, left_at, 0, 0, 0);
        self.now = Time(left_at.0 + 1_000_000_000);
        self.solo.on_sent(self.now, &mut self.stats);
        self.now = Time(self.now.0 + self.world.rtt.0);
        let progress = Progress { now: self.now, sent_at: None, segments: 2, stamp: Some(0), outstanding: false };
        self.solo.on_progress(&progress, &mut self.stats);
        self.programs.tell(Event::IsAcked, self.now, -1, 2, 0);
        self.next(false);
    }
}

/// Interval that corresponds to the wait after the second segment of a pair.
fn wait_to_interval(wait: f64, now: Time, began: Time) -> f64 {
    (wait + now.since(began).as_secs_f64()) / 2.0
}

#[test]
fn trains_are_those_of_the_transports() {
    let ms = Duration::from_millis;
    let worlds = [
        ("two hops", World { hops: 2, rtt: ms(22), noise: ms(3), ..WORLD }),
        ("three hops", World { hops: 3, rtt: ms(33), noise: ms(3), ..WORLD }),
        ("four hops", World { hops: 4, rtt: ms(44), noise: ms(4), ..WORLD }),
        ("seven hops", World { hops: 7, rtt: ms(80), noise: ms(8), ..WORLD }),
        ("a queue", World { service: [ms(20), ms(45)], ..WORLD }),
        (
            "a fast channel",
            World { rate: Rate::from_mbps(11), rtt: ms(20), noise: ms(2), service: [ms(3); 2], ..WORLD },
        ),
        ("a clock of 1 ms that drifts", World { clock: (1_000_000, 100), ..WORLD }),
        ("a clock of 4 ms", World { clock: (4_000_000, 0), ..WORLD }),
        ("no clock", World { clock: (10_000_000_000, 0), ..WORLD }),
        ("losses", World { loss: 37, ..WORLD }),
        ("near, with losses", World { hops: 3, rtt: ms(33), loss: 300, ..WORLD }),
    ];
    for (name, world) in worlds {
        for seed in 1..=3 {
            let Some(mut conversation) = Conversation::new(&world, seed) else { return };
            for train in 0..300 {
                conversation.train(train >= 150);
                if world.loss > 0 && train % 40 == 39 {
                    conversation.timeout();
                }
            }
            let (compared, worst) = (conversation.compared, conversation.worst * 100.0);
            println!("{name}, seed {seed}: {compared} values, largest difference {worst:.4} %");
        }
    }
}

/// Seven hops at 2 Mbit/s, and a peer whose clock has a unit of one microsecond.
const WORLD: World = World {
    hops: 7,
    rate: Rate::from_mbps(2),
    rtt: Duration::from_millis(80),
    noise: Duration::from_millis(8),
    service: [Duration::from_millis(10); 2],
    timer: Duration::from_millis(40),
    clock: (1_000, 0),
    loss: 0,
};
