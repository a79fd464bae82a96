//! Trains without the receiver's help: a pacing of TCP, for receivers as they are.
//!
//! docs/quiet-trains.md, "The sender alone". A stock receiver acknowledges every second segment, or what waits when its timer
//! expires. Here segments leave in pairs, the second `floor` after the first and two intervals from pair to pair, so that the
//! receiver's counter and not its timer sends the ACK. After W segments nothing leaves until all are acknowledged, or until
//! `patience` has passed: then new data asks for the ACK that is missing, and recovery is TCP's.
//!
//! An ACK of two segments or more left when the newest of them arrived: its forward delay is (time stamp of the ACK) - (when
//! that one was sent), by two clocks, of which `peer_clock` finds the unit. An ACK of one segment may have waited for the
//! timer: its delay is an upper bound, of use if it is below the mean or so small that no timer is in it. If hardly any ACK is of
//! two, the receiver acknowledges every segment, or its timer always expires; either way the wait is the same in all of
//! them, and all count. But Linux acknowledges each of the first 22 or so and then every second one: those ACKs cross data and a queue builds up, and a first
//! sample taken there becomes a floor that is far too high. So as long as no ACK has been of several segments, and at most for the first 32, nothing is sampled and
//! trains do not grow. With `silence = false` the next pair leaves in its turn and only the window ends a train: the same pacing, for
//! telling what silence gives from what fewer ACKs give. Without time stamps, or with a clock too coarse, the round trip takes the place of the forward delay.

use super::control::{self, Control};
use super::estimator::{self, Estimator, Sample, exchange, reuse_hops};
use super::peer_clock::{PeerClock, Reading};
use super::timeout::{self, Timeout};
use crate::PathInfo;
use crate::stats::Stats;
use meshpace_core::parameter;
use meshpace_core::parameter::{Parameter, ParameterError, Parameters, Slot, Slots};
use meshpace_core::{Duration, Rate, Time};

/// No receiver's timer is shorter, seconds (Linux: 40 ms), with a reserve.
const NO_TIMER: f64 = 0.030;
/// Weight of an ACK in the share of those of two segments or more.
const SHARE_WEIGHT: f64 = 0.1;
/// The longest time between the two of a pair, in exchanges over the hops of channel reuse.
const LONGEST_GAP: f64 = 1.1;
/// Below this share all ACKs count.
const FEW_PAIRS: f64 = 0.15;
/// Segments at first that a receiver may acknowledge one by one though it will not do so later (Linux: 16, and one for each with which its window grows).
const QUICK: u64 = 32;

/// Parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Interval and length of a train.
    pub control: control::Config,
    /// Estimate of the path.
    pub estimator: estimator::Config,
    /// Whether a train is followed by silence, or the next pair leaves in its turn. Default true.
    pub silence: bool,
}

/// The declaration of `silence`.
static SILENCE: Parameter = parameter!(silence: bool = true => FLAG, Expert,
    "whether nothing leaves until a train is acknowledged, or pairs follow each other as far as the window allows");

impl Default for Config {
    fn default() -> Config {
        Config {
            control: control::Config {
                far_floor: 1.14,
                delay: 0.2,
                length: 0.7,
                start: 1.15,
                train: 16,
                near_train: Some(40),
                near_delay: Some(1.5),
                company: 1.0,
                ..control::Config::default()
            },
            estimator: estimator::Config::default(),
            silence: true,
        }
    }
}

impl Config {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.control.check()?;
        self.estimator.check()
    }
}

/// Parts of quiet trains that need a receiver that knows them: without it these change nothing.
const OF_BOTH_ENDS: [&str; 5] = ["competitive", "claim", "lossy", "aggregates", "listen"];

impl Parameters for Config {
    fn slots(&mut self) -> Slots<'_> {
        let mut slots = self.control.slots();
        slots.extend(self.estimator.slots());
        slots.push(Slot::new(&SILENCE, &mut self.silence));
        slots.retain(|slot| !OF_BOTH_ENDS.contains(&slot.parameter.key));
        slots
    }
}

/// Progress that an ACK of new data reports.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time at which it arrived.
    pub now: Time,
    /// Time at which the newest segment that it acknowledges was sent; none if one of them was sent twice.
    pub sent_at: Option<Time>,
    /// Number of segments that it acknowledges.
    pub segments: u64,
    /// Its time stamp, if it has one.
    pub stamp: Option<u32>,
    /// True if something sent is still unacknowledged.
    pub outstanding: bool,
}

/// Phase of the train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// So many segments of it may still leave.
    Sending(u32),
    /// All of it has left: silence until it is acknowledged, or until then.
    Quiet(Time),
}

/// The pacing of one sender.
#[derive(Clone, Debug)]
pub struct Solo {
    silence: bool,
    segment: u32,
    path: PathInfo,
    estimator: Estimator,
    control: Control,
    /// Time for which the ACK of a train is awaited.
    patience: Timeout,
    peer_clock: PeerClock,
    phase: Phase,
    /// Time at which the last pair began, if its second segment is still to leave.
    pair: Option<Time>,
    /// Time at which the next segment may leave.
    earliest: Time,
    /// Time at which the last one left.
    left_at: Time,
    /// Share of ACKs of two segments or more, lately.
    pairs: f64,
    /// Segments acknowledged, until one ACK is of several; none from then on.
    one_by_one: Option<u64>,
    /// Nothing came back until the retransmission timer expired, and nothing has since.
    in_timeout: bool,
}

impl Solo {
    /// Nothing known, for segments of `segment` bytes.
    pub fn new(config: &Config, segment: u32) -> Solo {
        let path = PathInfo { hops: 1, rate: Rate::from_mbps(2), received_power_dbm: None };
        let mut control = Control::new(&config.control);
        control.on_path(&path, segment);
        let patience = timeout::Config {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(300),
            max: Duration::from_secs(1),
        };
        Solo {
            silence: config.silence,
            segment,
            path,
            estimator: Estimator::new(&config.estimator, segment),
            phase: Phase::Sending(control.next_pairs(false)),
            control,
            patience: Timeout::new(&patience),
            peer_clock: PeerClock::default(),
            pair: None,
            earliest: Time::ZERO,
            left_at: Time::ZERO,
            pairs: 1.0,
            one_by_one: Some(0),
            in_timeout: false,
        }
    }

    /// The path is known or has changed.
    pub fn on_path(&mut self, path: &PathInfo) {
        let path = self.estimator.assumed(path);
        if path.hops != self.path.hops || path.rate != self.path.rate {
            self.estimator.forget();
            self.control.on_path(&path, self.segment);
        }
        self.path = path;
    }

    /// Time at which the next segment may leave.
    pub fn release_at(&self) -> Time {
        match self.phase {
            Phase::Sending(_) => self.earliest,
            Phase::Quiet(until) => until.max(self.earliest),
        }
    }

    /// Time at which one that is known to be lost may leave again: a train waits for it.
    pub fn release_again_at(&self) -> Time {
        self.earliest
    }

    /// A segment leaves.
    pub fn on_sent(&mut self, now: Time, stats: &mut Stats) {
        let left = match self.phase {
            Phase::Sending(left) => left,
            // Nobody answered: another train asks.
            Phase::Quiet(until) if now >= until => self.control.next_pairs(false),
            Phase::Quiet(_) => 1,
        };
        let interval = Duration::from_secs_f64(self.control.interval());
        stats.interval_samples += 1;
        stats.interval_sum_s += interval.as_secs_f64();
        self.left_at = now;
        self.earliest = match self.pair.take() {
            None => {
                self.pair = Some(now);
                now.saturating_add(Duration::from_secs_f64(self.gap()))
            }
            Some(began) => began.saturating_add(interval * 2).max(now),
        };
        let left = left.saturating_sub(1);
        self.phase = if left > 0 {
            Phase::Sending(left)
        } else if !self.silence && !self.in_timeout {
            Phase::Sending(self.control.next_pairs(true))
        } else {
            let patience = if self.in_timeout { Time::NEVER } else { now.saturating_add(self.patience.rto()) };
            Phase::Quiet(patience)
        };
    }

    /// The time between the two of a pair, seconds: the floor, but no more than what the channel takes to be free again. A floor
    /// that has a receiver's wait in it would let the timer expire in every pair, and so would never lose it.
    fn gap(&self) -> f64 {
        let reuse = reuse_hops(self.path.hops) * exchange(&self.path, f64::from(self.segment) + 40.0);
        self.control.floor().min(LONGEST_GAP * reuse)
    }

    /// An ACK of new data arrived.
    pub fn on_progress(&mut self, progress: &Progress, stats: &mut Stats) {
        let several = if progress.segments >= 2 { 1.0 } else { 0.0 };
        self.pairs += SHARE_WEIGHT * (several - self.pairs);
        self.one_by_one =
            self.one_by_one.map(|so_far| so_far + 1).filter(|&so_far| progress.segments < 2 && so_far < QUICK);
        if let Some(sent_at) = progress.sent_at {
            self.sample(progress, sent_at, stats);
        }
        let was_in_timeout = core::mem::take(&mut self.in_timeout);
        if !progress.outstanding || was_in_timeout {
            let whole = !was_in_timeout && progress.sent_at.is_some() && self.one_by_one.is_none();
            if let Phase::Quiet(_) = self.phase {
                self.phase = Phase::Sending(self.control.next_pairs(whole));
            }
            if !progress.outstanding && self.pair.take().is_some() {
                // The first of a pair is acknowledged alone: the next one begins a pair.
                self.earliest = self.left_at.saturating_add(Duration::from_secs_f64(self.control.interval()));
            }
        }
    }

    fn sample(&mut self, progress: &Progress, sent_at: Time, stats: &mut Stats) {
        let now = progress.now;
        let rtt = now.since(sent_at).as_secs_f64();
        let forward = match self.peer_clock.read(now, progress.stamp) {
            Reading::At(there) => there - sent_at.as_secs_f64(),
            Reading::Unknown => return,
            Reading::Useless => rtt,
        };
        let sample = Sample { now: now.as_secs_f64(), rtt, mean: 0.0, least: 0.0, marked: 0.0, forward };
        let counts = progress.segments >= 2
            || (self.pairs < FEW_PAIRS && self.one_by_one.is_none())
            || self.estimator.is_below_mean(&sample)
            || self.estimator.above_base(&sample).is_some_and(|above| above < NO_TIMER);
        if !counts {
            return;
        }
        self.patience.on_sample(rtt);
        stats.rtt_samples += 1;
        stats.rtt_sum_s += rtt;
        let dt = self.estimator.on_sample(&sample, self.control.interval());
        if let Some(tau) = self.estimator.reuse(&self.path) {
            let hops = self.path.hops;
            let queueing = (self.estimator.queueing(hops) - self.peer_clock.spread()).max(0.0);
            self.control.on_sample(dt, tau, queueing, 0.0, hops);
        }
    }

    /// Something is lost, as duplicate ACKs or reports say.
    pub fn on_loss(&mut self) {
        self.control.on_loss(self.left_at.as_secs_f64());
    }

    /// The retransmission timer expired: one segment, then silence until its ACK.
    pub fn on_timeout(&mut self) {
        self.control.on_timeout();
        self.on_loss();
        self.in_timeout = true;
        self.pair = None;
        self.phase = Phase::Quiet(Time::NEVER);
        self.earliest = self.left_at;
    }

    /// The handshake is over: a SYN that was repeated says nothing of trains.
    pub fn on_open(&mut self) {
        if self.in_timeout && self.left_at == Time::ZERO {
            self.in_timeout = false;
            self.phase = Phase::Sending(self.control.next_pairs(false));
        }
    }
}
