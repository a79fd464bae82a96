//! Pacing of one sender: takes the sender's events and decides when a segment may leave.
//!
//! A rule computes the interval (`interval`). A gate turns the interval into permissions: no gate,
//! *earliest send* (AP05, section 4.4) or *free running* (the agent that the authors of AP05
//! released). A sender reports every event to [`Pacer`] and asks only which segment may leave. The
//! sender does not know which rule and which gate are used.

use super::adaptive::RateLimit;
use super::dcc::Dcc;
use super::earliest_send::{EarliestSend, Release};
use super::free_running::FreeRunning;
use super::interval::{Feedback, Interval, RttRecord};
use super::{Config, Estimator, Recovery, Sample, custom, rules};
use crate::PathInfo;
use crate::stats::Stats;
use crate::train::solo::{Progress, Solo};
use alloc::boxed::Box;
use meshpace_core::{Duration, Time};

/// Source of segments: the segments that the window of a sender allows.
pub trait Supply {
    /// Releases the next segment and returns its number. `spaced` says that pacing keeps an
    /// interval between this segment and the one before, so no other limit on bursts is needed.
    fn take(&mut self, spaced: bool) -> Option<u64>;
}

/// The pacing of one sender.
#[derive(Clone, Debug)]
pub enum Pacer {
    /// No pacing. The variation of the RTT is recorded for the statistics.
    None(RttRecord),
    /// Earliest send: an interval between any two segments.
    EarliestSend(EarliestSend),
    /// Free running: a FIFO and a timer.
    FreeRunning(FreeRunning),
    /// Trains with silence between them. The variation of the RTT is recorded for the statistics.
    Trains(Box<Solo>),
}

impl Pacer {
    /// Creates the pacing for segments with `payload` bytes.
    pub fn new(config: &Config, payload: u32) -> Pacer {
        let interval = match config {
            Config::None => return Pacer::None(RttRecord::default()),
            Config::Adaptive(config) => Interval::Adaptive(Estimator::new(config, payload)),
            Config::Dcc(config) => Interval::Marks(Dcc::new(config, payload), RttRecord::default()),
            Config::Trains(config) => return Pacer::Trains(Box::new(Solo::new(config, payload))),
            Config::Window => Interval::Window(0.0, RttRecord::default()),
            Config::Rule(config) => Interval::Rule(rules::State::new(config), RttRecord::default()),
            Config::Custom(config) => Interval::Custom(custom::State::new(config, payload), RttRecord::default()),
        };
        match config {
            Config::Adaptive(config) if config.limit == RateLimit::FreeRunning => {
                Pacer::FreeRunning(FreeRunning::new(interval, config.recovery))
            }
            Config::Adaptive(config) => Pacer::EarliestSend(EarliestSend::new(interval, config.recovery)),
            _ => Pacer::EarliestSend(EarliestSend::new(interval, Recovery::Restart)),
        }
    }

    fn interval(&self) -> Option<&Interval> {
        match self {
            Pacer::None(_) | Pacer::Trains(_) => None,
            Pacer::EarliestSend(gate) => Some(&gate.interval),
            Pacer::FreeRunning(gate) => Some(&gate.interval),
        }
    }

    fn interval_mut(&mut self) -> Option<&mut Interval> {
        match self {
            Pacer::None(_) | Pacer::Trains(_) => None,
            Pacer::EarliestSend(gate) => Some(&mut gate.interval),
            Pacer::FreeRunning(gate) => Some(&mut gate.interval),
        }
    }

    /// The SYN, the first segment of the connection, leaves.
    pub fn on_open(&mut self, now: Time, stats: &mut Stats) {
        if let Pacer::FreeRunning(gate) = self {
            gate.on_open(now, stats);
        }
    }

    /// A frame arrived from the next hop with this power in dBm; `None` if the radio does not
    /// report it.
    pub fn on_frame(&mut self, power_dbm: Option<f32>) {
        if let (Some(interval), Some(power_dbm)) = (self.interval_mut(), power_dbm) {
            interval.on_frame(power_dbm);
        }
    }

    /// An ACK arrived.
    pub fn on_ack(&mut self, ack: &Feedback) {
        self.resume();
        if let Some(interval) = self.interval_mut() {
            interval.on_ack(ack);
        }
    }

    /// The handshake ended or an ACK arrived. Switches pacing on again if it was off.
    pub fn resume(&mut self) {
        match self {
            Pacer::None(_) => {}
            Pacer::Trains(trains) => trains.on_open(),
            Pacer::EarliestSend(gate) => gate.on_ack(),
            Pacer::FreeRunning(gate) => gate.on_ack(),
        }
    }

    /// Takes the measurement that an ACK gave.
    pub fn on_sample(&mut self, sample: &Sample, stats: &mut Stats) {
        match self {
            Pacer::None(record) => record.on_sample(sample.rtt, stats),
            Pacer::EarliestSend(gate) => gate.interval.on_sample(sample, stats),
            Pacer::FreeRunning(gate) => gate.interval.on_sample(sample, stats),
            // Trains compute their own samples in `on_progress`.
            Pacer::Trains(_) => {}
        }
    }

    /// The window rule asks for `interval` seconds between two segments. If it is 0, segments leave
    /// as the window allows.
    #[inline]
    pub fn on_window(&mut self, interval: f64) {
        if let Pacer::EarliestSend(EarliestSend { interval: Interval::Window(kept, _), .. }) = self {
            *kept = interval;
        }
    }

    /// The path to the peer has become known or has changed.
    pub fn on_path(&mut self, path: &PathInfo) {
        if let Pacer::Trains(trains) = self {
            trains.on_path(path);
        }
    }

    /// An ACK of new data arrived.
    #[inline]
    pub fn on_progress(&mut self, progress: &Progress, stats: &mut Stats) {
        if let Pacer::Trains(trains) = self {
            trains.on_progress(progress, stats);
        }
    }

    /// A fast retransmit is about to leave.
    pub fn on_fast_retransmit(&mut self) {
        match self {
            Pacer::None(_) | Pacer::EarliestSend(_) => {}
            Pacer::FreeRunning(gate) => gate.on_fast_retransmit(),
            Pacer::Trains(trains) => trains.on_loss(),
        }
    }

    /// A partial ACK asks for the retransmission of segment `number`. Returns whether the segment
    /// has been put into the FIFO. If not, [`Pacer::release_again`] says when it may leave.
    pub fn on_partial_ack(&mut self, now: Time, number: u64, stats: &mut Stats) -> bool {
        match self {
            Pacer::FreeRunning(gate) if gate.is_on() => {
                gate.enqueue(now, number, stats);
                true
            }
            _ => false,
        }
    }

    /// The retransmission timer expired, and all segments will be released again. Returns whether
    /// the count of duplicate ACKs is kept: the agent that switches its pacing off does not reset
    /// it.
    pub fn on_timeout(&mut self) -> bool {
        match self {
            Pacer::None(_) => false,
            Pacer::EarliestSend(gate) => gate.on_timeout(),
            Pacer::FreeRunning(gate) => gate.on_timeout(),
            Pacer::Trains(trains) => {
                trains.on_timeout();
                false
            }
        }
    }

    /// Handles the timer of the gate if its time has come. [`Pacer::wakeup`] returns that time.
    pub fn on_timer(&mut self, now: Time, stats: &mut Stats) {
        if let Pacer::FreeRunning(gate) = self {
            gate.on_timer(now, stats);
        }
    }

    /// A data segment leaves.
    pub fn on_sent(&mut self, now: Time, stats: &mut Stats) {
        match self {
            Pacer::None(_) | Pacer::FreeRunning(_) => {}
            Pacer::EarliestSend(gate) => gate.on_sent(now, stats),
            Pacer::Trains(trains) => trains.on_sent(now, stats),
        }
    }

    /// Permission for a new segment to leave, for a sender that holds waiting segments itself.
    #[inline]
    pub fn release(&self, now: Time) -> Release {
        match self {
            Pacer::EarliestSend(gate) => gate.release(now),
            Pacer::Trains(trains) => Release::from(now, trains.release_at()),
            Pacer::None(_) | Pacer::FreeRunning(_) => Release::Now,
        }
    }

    /// Permission for a retransmission to leave.
    #[inline]
    pub fn release_again(&self, now: Time) -> Release {
        match self {
            Pacer::EarliestSend(gate) => gate.release_again(now),
            Pacer::Trains(trains) => Release::from(now, trains.release_again_at()),
            Pacer::None(_) | Pacer::FreeRunning(_) => Release::Now,
        }
    }

    /// The segment that leaves now, of those that the window allows; `None` if no segment leaves.
    pub fn next(&mut self, now: Time, window: &mut impl Supply, stats: &mut Stats) -> Option<u64> {
        match self {
            Pacer::None(_) => window.take(false),
            Pacer::EarliestSend(gate) if gate.release(now) != Release::Now => None,
            Pacer::Trains(trains) if trains.release_at() > now => None,
            Pacer::Trains(_) => window.take(true),
            Pacer::EarliestSend(gate) => window.take(gate.spaces()),
            Pacer::FreeRunning(gate) if gate.is_on() => {
                while let Some(number) = window.take(false) {
                    gate.enqueue(now, number, stats);
                }
                gate.dequeue()
            }
            Pacer::FreeRunning(_) => window.take(false),
        }
    }

    /// Time at which the pacer lets the next segment leave. `waits` says whether a segment waits
    /// for it. [`Time::NEVER`] if pacing holds no segment back.
    #[inline]
    pub fn wakeup(&self, now: Time, waits: impl FnOnce() -> bool) -> Time {
        match self {
            Pacer::None(_) => Time::NEVER,
            Pacer::FreeRunning(gate) => gate.tick(),
            Pacer::EarliestSend(_) | Pacer::Trains(_) => match self.release(now) {
                Release::At(at) if waits() => at,
                _ => Time::NEVER,
            },
        }
    }

    /// Interval between two segments; `None` without pacing.
    pub fn interval_now(&self) -> Option<Duration> {
        self.interval().map(Interval::get)
    }

    /// The rate rule that follows congestion marks; `None` if another rule is used.
    pub fn marked_rate(&self) -> Option<&Dcc> {
        match self.interval()? {
            Interval::Marks(rule, _) => Some(rule),
            _ => None,
        }
    }

    /// The estimator of adaptive pacing; `None` if another rule is used.
    pub fn estimator(&self) -> Option<&Estimator> {
        match self.interval()? {
            Interval::Adaptive(estimator) => Some(estimator),
            _ => None,
        }
    }
}
