//! Trains without help of the receiver: a pacing of TCP for unmodified receivers.
//!
//! See docs/quiet-trains.md, "The sender alone". An unmodified receiver acknowledges every second
//! segment, or, when its timer expires, the segment that waits. Here segments are sent in pairs:
//! the second one `floor` after the first, and two intervals from pair to pair. The receiver's
//! segment counter then triggers the ACK, and not its timer. After W segments nothing is sent until
//! all of them are acknowledged, or until `patience` has passed. Then new data ask for the missing
//! ACK, and loss recovery is that of TCP.
//!
//! An ACK of two segments or more was sent when the newest of them arrived. Its forward delay is
//! (time stamp of the ACK) - (time at which that segment was sent). The two times are from
//! different clocks; `peer_clock` finds the unit of the peer's. An ACK of one segment may have
//! waited for the timer, so that its delay is an upper bound. It is used if it is below the mean,
//! or so small that it cannot contain a timer. If hardly any ACK is for two segments, the receiver
//! acknowledges every segment, or its timer always expires. In both cases the wait is the same for
//! all ACKs, and all of them are used.
//!
//! But Linux acknowledges each of the first 22 or so segments, and then every second one. Those
//! first ACKs meet data on the path, and a queue builds up. A first sample taken there would become
//! a floor that is far too high. So there are no samples, and trains do not grow, until one ACK is
//! for several segments, or until 32 ACKs have arrived.
//!
//! With `silence = false` the next pair is sent in its turn, and only the window ends a train. This
//! is the same pacing without the silence. It tells the benefit of silence from the benefit of
//! fewer ACKs. Without time stamps, or with a clock that is too coarse, the round trip takes the
//! place of the forward delay.

use super::control::{self, Control};
use super::estimator::{self, Estimator, Sample, exchange, reuse_hops};
use super::peer_clock::{PeerClock, Reading};
use super::timeout::{self, Timeout};
use crate::PathInfo;
use crate::stats::Stats;
use meshpace_core::parameter;
use meshpace_core::parameter::{Parameter, ParameterError, Parameters, Slot, Slots};
use meshpace_core::{Duration, Rate, Time};

/// No receiver's ACK timer is shorter than this, in seconds (Linux: 40 ms), with a margin.
const NO_TIMER: f64 = 0.030;
/// Weight of an ACK in the moving share of ACKs for two segments or more.
const SHARE_WEIGHT: f64 = 0.1;
/// Longest time between the two segments of a pair, in units of n exchanges, with n the hops of
/// channel reuse.
const LONGEST_GAP: f64 = 1.1;
/// Share of ACKs for two segments or more below which all ACKs are used.
const FEW_PAIRS: f64 = 0.15;
/// Number of ACKs at the start that a receiver may send segment by segment although it will not do
/// so later (Linux: 16, and one for each growth of its window).
const QUICK: u64 = 32;

/// Parameters of trains without help of the receiver.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Parameters of the interval and of the length of a train.
    pub control: control::Config,
    /// Parameters of the estimates of the path.
    pub estimator: estimator::Config,
    /// True if a train is followed by silence; false if the next pair is sent in its turn. Default
    /// true.
    pub silence: bool,
}

/// Declaration of the parameter `silence`.
static SILENCE: Parameter = parameter!(silence: bool = true => FLAG, Expert,
    "whether nothing is sent until a train is acknowledged; otherwise pairs follow each other as far as the window allows");

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

/// Parameters of quiet trains that have no effect without a receiver that knows quiet trains.
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

/// Progress reported by an ACK of new data.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// Time at which the newest acknowledged segment was sent; `None` if one of the acknowledged
    /// segments was sent twice.
    pub sent_at: Option<Time>,
    /// Number of segments that the ACK acknowledges.
    pub segments: u64,
    /// Time stamp of the ACK; `None` if it has none.
    pub stamp: Option<u32>,
    /// True if sent data are still unacknowledged.
    pub outstanding: bool,
}

/// Phase of the train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The train goes on; this many of its segments may still be sent.
    Sending(u32),
    /// The whole train was sent. Nothing is sent until it is acknowledged, or until this time.
    Quiet(Time),
}

/// Pacing of one sender.
#[derive(Clone, Debug)]
pub struct Solo {
    silence: bool,
    segment: u32,
    path: PathInfo,
    estimator: Estimator,
    control: Control,
    /// Timer that limits the wait for the ACK of a train.
    patience: Timeout,
    peer_clock: PeerClock,
    phase: Phase,
    /// Time at which the last pair began, if its second segment was not sent yet.
    pair: Option<Time>,
    /// Earliest departure of the next segment.
    earliest: Time,
    /// Time at which the last segment was sent.
    left_at: Time,
    /// Moving share of ACKs for two segments or more.
    pairs: f64,
    /// Number of ACKs so far, as long as each was for one segment; `None` afterwards, or after
    /// [`QUICK`] of them.
    one_by_one: Option<u64>,
    /// True from an expiry of the retransmission timer until the next progress.
    in_timeout: bool,
}

impl Solo {
    /// Creates a pacing without samples, for segments of `segment` bytes.
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

    /// The path is known now, or has changed.
    pub fn on_path(&mut self, path: &PathInfo) {
        let path = self.estimator.assumed(path);
        if path.hops != self.path.hops || path.rate != self.path.rate {
            self.estimator.forget();
            self.control.on_path(&path, self.segment);
        }
        self.path = path;
    }

    /// Earliest departure of the next segment.
    pub fn release_at(&self) -> Time {
        match self.phase {
            Phase::Sending(_) => self.earliest,
            Phase::Quiet(until) => until.max(self.earliest),
        }
    }

    /// Earliest retransmission of a segment that is known to be lost. It need not wait for the end
    /// of the silence.
    pub fn release_again_at(&self) -> Time {
        self.earliest
    }

    /// Records that a segment is sent.
    pub fn on_sent(&mut self, now: Time, stats: &mut Stats) {
        let left = match self.phase {
            Phase::Sending(left) => left,
            // Nobody answered: another train asks for the ACK.
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

    /// Time between the two segments of a pair, in seconds: the floor, but no more than the channel
    /// needs to be free again. A floor that contains the wait of a receiver's timer would let that
    /// timer expire in every pair, and would so never become smaller.
    fn gap(&self) -> f64 {
        let reuse = reuse_hops(self.path.hops) * exchange(&self.path, f64::from(self.segment) + 40.0);
        self.control.floor().min(LONGEST_GAP * reuse)
    }

    /// Processes an ACK of new data.
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
                // The first segment of a pair was acknowledged alone: the next segment begins a
                // pair.
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

    /// Duplicate ACKs or reports show that data are lost.
    pub fn on_loss(&mut self) {
        self.control.on_loss(self.left_at.as_secs_f64());
    }

    /// The retransmission timer expired: one segment is sent, then nothing until its ACK.
    pub fn on_timeout(&mut self) {
        self.control.on_timeout();
        self.on_loss();
        self.in_timeout = true;
        self.pair = None;
        self.phase = Phase::Quiet(Time::NEVER);
        self.earliest = self.left_at;
    }

    /// The handshake is complete. A SYN that was retransmitted says nothing about trains.
    pub fn on_open(&mut self) {
        if self.in_timeout && self.left_at == Time::ZERO {
            self.in_timeout = false;
            self.phase = Phase::Sending(self.control.next_pairs(false));
        }
    }
}
