//! Turns an interval into permissions: whether a segment may leave now, and if not, when.
//!
//! Two rules. *Earliest send* (AP05, section 4.4 in the reading that loses no time): a segment may leave if an interval has
//! passed since the last one did. *Free running* (the released agent): what the window allows enters a FIFO, and each
//! tick of a timer sends one; an empty FIFO wastes the tick.

use super::adaptive::{AdaptiveConfig, DEFAULT_HISTORY, HopSource, RateLimit, Recovery, Sampling};
use super::dcc::Dcc;
use super::dispersion::{History, coefficient_of_variation};
use super::{Config, Estimator, Sample, rules};
use crate::stats::Stats;
use alloc::collections::VecDeque;
use meshpace_core::{Duration, Rate, Time};

/// The pacing of one sender.
#[expect(clippy::large_enum_variant, reason = "one per sender, and pacing is what most senders here have")]
#[derive(Clone, Debug)]
pub enum Pacer {
    /// No pacing; only the variation of the RTT is recorded, over the last 50 samples as in AP05.
    None(History),
    /// Adaptive pacing.
    Adaptive(Adaptive),
    /// A rate steered by congestion marks.
    Marked(Marked),
    /// A rule of one file.
    Ruled(Ruled),
}

/// State of pacing by congestion marks.
#[derive(Clone, Debug)]
pub struct Marked {
    rule: Dcc,
    /// The last RTT samples, seconds; recorded only.
    rtts: History,
    /// When the next segment may leave.
    next: Time,
}

/// State of pacing by a rule.
#[derive(Clone, Debug)]
pub struct Ruled {
    rule: rules::State,
    /// The last RTT samples, seconds; recorded only.
    rtts: History,
    /// When the next segment may leave.
    next: Time,
}

/// State of adaptive pacing. Segments are known by a number of the caller's.
#[derive(Clone, Debug)]
pub struct Adaptive {
    config: AdaptiveConfig,
    estimator: Estimator,
    /// Earliest send: when the next segment may leave.
    next: Time,
    /// Free running: when the timer ticks; never if it is stopped.
    tick: Time,
    /// Free running: whether the timer has been started since pacing was last switched on.
    started: bool,
    /// Free running: pacing is off until the next ACK.
    off: bool,
    /// Free running: a tick has come and not been used.
    due: bool,
    /// Free running: segments that the window has released.
    fifo: VecDeque<u64>,
}

impl Pacer {
    /// Pacing for segments of `payload` bytes.
    pub fn new(config: &Config, payload: u32) -> Pacer {
        match config {
            Config::None => Pacer::None(History::new(DEFAULT_HISTORY)),
            Config::Adaptive(config) => Pacer::Adaptive(Adaptive {
                estimator: Estimator::new(config, payload),
                next: Time::ZERO,
                tick: Time::NEVER,
                started: false,
                off: false,
                due: false,
                fifo: VecDeque::new(),
                config: config.clone(),
            }),
            Config::Dcc(config) => Pacer::Marked(Marked {
                rule: Dcc::new(config, payload),
                rtts: History::new(DEFAULT_HISTORY),
                next: Time::ZERO,
            }),
            Config::Rule(config) => Pacer::Ruled(Ruled {
                rule: rules::State::new(config),
                rtts: History::new(DEFAULT_HISTORY),
                next: Time::ZERO,
            }),
        }
    }

    /// Which ACKs give a sample.
    pub fn sampling(&self) -> Sampling {
        match self {
            Pacer::None(_) | Pacer::Marked(_) | Pacer::Ruled(_) => Sampling::NewDataKarn,
            Pacer::Adaptive(pacing) => pacing.config.sampling,
        }
    }

    /// Whether the hops the ACK travelled count, not those of the routing table.
    pub fn hops_from_ack(&self) -> bool {
        matches!(self, Pacer::Adaptive(pacing) if pacing.config.hops == HopSource::AckTravelled)
    }

    /// Whether retransmissions wait for their turn.
    pub fn paces_retransmissions(&self) -> bool {
        matches!(self, Pacer::Adaptive(pacing) if pacing.config.recovery == Recovery::Paced)
    }

    /// Whether a loss switches pacing off until the next ACK.
    pub fn stops_on_loss(&self) -> bool {
        matches!(self, Pacer::Adaptive(pacing) if pacing.config.recovery == Recovery::OffUntilAck)
    }

    /// Whether anything spaces segments at the moment.
    pub fn is_on(&self) -> bool {
        match self {
            Pacer::None(_) => false,
            Pacer::Adaptive(pacing) => !pacing.off,
            Pacer::Marked(_) | Pacer::Ruled(_) => true,
        }
    }

    /// Whether segments the window releases go through the FIFO at the moment.
    #[inline]
    pub fn queues(&self) -> bool {
        matches!(self, Pacer::Adaptive(pacing) if pacing.config.limit == RateLimit::FreeRunning && !pacing.off)
    }

    /// Takes an RTT sample.
    pub fn on_sample(&mut self, rtt: f64, hops: u8, rate: Rate, stats: &mut Stats) {
        self.on_measured(&Sample { rtt, one_way: None, hops, rate, path_power_dbm: None }, stats);
    }

    /// Takes a measurement.
    pub fn on_measured(&mut self, sample: &Sample, stats: &mut Stats) {
        match self {
            Pacer::Adaptive(pacing) => pacing.estimator.on_measured(sample, stats),
            Pacer::None(rtts) => record(rtts, sample.rtt, stats),
            Pacer::Marked(pacing) => {
                pacing.rule.on_sample(sample.rtt);
                record(&mut pacing.rtts, sample.rtt, stats);
            }
            Pacer::Ruled(pacing) => {
                pacing.rule.on_sample(sample);
                record(&mut pacing.rtts, sample.rtt, stats);
            }
        }
    }

    /// A frame arrived from the next hop with this power in dBm.
    pub fn on_frame(&mut self, power_dbm: Option<f32>) {
        if let (Pacer::Adaptive(pacing), Some(power_dbm)) = (self, power_dbm) {
            pacing.estimator.on_frame(power_dbm);
        }
    }

    /// An ACK says whether the path marks congestion; the window may be in slow start.
    pub fn on_feedback(&mut self, marked: bool, slow_start: bool, rate: Rate) {
        match self {
            Pacer::Marked(pacing) => pacing.rule.on_ack(marked, slow_start, rate),
            Pacer::Ruled(pacing) => pacing.rule.on_ack(marked, slow_start),
            Pacer::None(_) | Pacer::Adaptive(_) => {}
        }
    }

    /// An ACK arrived: pacing that was off is on again.
    pub fn on_ack(&mut self) {
        if let Pacer::Adaptive(pacing) = self
            && pacing.off
        {
            pacing.off = false;
            pacing.started = false;
        }
    }

    /// A fast retransmit is about to leave.
    pub fn on_fast_retransmit(&mut self) {
        if let Pacer::Adaptive(pacing) = self
            && pacing.config.recovery == Recovery::OffUntilAck
        {
            pacing.tick = Time::NEVER;
            pacing.due = false;
            // The released agent switches pacing off only if something waited. With an empty FIFO its timer stays
            // stopped, and what follows waits for the retransmission timer.
            if !pacing.fifo.is_empty() {
                pacing.fifo.clear();
                pacing.off = true;
            }
        }
    }

    /// The retransmission timer expired: what waited will be sent again from the start.
    pub fn on_timeout(&mut self) {
        if let Pacer::Adaptive(pacing) = self {
            pacing.fifo.clear();
            pacing.due = false;
            if pacing.config.recovery == Recovery::OffUntilAck {
                pacing.tick = Time::NEVER;
                pacing.off = true;
            }
        }
    }

    /// A segment that the window released enters the FIFO. The first one starts the timer and may leave at once.
    pub fn enqueue(&mut self, now: Time, number: u64, stats: &mut Stats) {
        if let Pacer::Adaptive(pacing) = self {
            pacing.fifo.push_back(number);
            if !pacing.started {
                pacing.started = true;
                pacing.on_tick(now, stats);
            }
        }
    }

    /// The first segment of the connection, its SYN, leaves: a free-running timer starts with it.
    pub fn on_open(&mut self, now: Time, stats: &mut Stats) {
        if let Pacer::Adaptive(pacing) = self
            && pacing.config.limit == RateLimit::FreeRunning
            && !pacing.started
        {
            pacing.started = true;
            pacing.on_tick(now, stats);
            pacing.due = false;
        }
    }

    /// The segment that may leave now, taken from the FIFO.
    pub fn dequeue(&mut self) -> Option<u64> {
        match self {
            Pacer::Adaptive(pacing) if pacing.due => {
                // Without an interval there is no next tick to wait for.
                pacing.due = pacing.estimator.interval() == Duration::ZERO;
                pacing.fifo.pop_front()
            }
            _ => None,
        }
    }

    /// Lets the timer tick if its time has come.
    pub fn on_timer(&mut self, now: Time, stats: &mut Stats) {
        if let Pacer::Adaptive(pacing) = self
            && pacing.tick <= now
        {
            pacing.on_tick(now, stats);
        }
    }

    /// When a segment may leave at the earliest (earliest send); the start of time if nothing holds it.
    #[inline]
    pub fn earliest(&self) -> Time {
        match self {
            Pacer::Adaptive(pacing) if pacing.config.limit == RateLimit::EarliestSend => pacing.next,
            Pacer::Marked(pacing) => pacing.next,
            Pacer::Ruled(pacing) => pacing.next,
            _ => Time::ZERO,
        }
    }

    /// When the free-running timer ticks; never without one.
    #[inline]
    pub fn next_tick(&self) -> Time {
        match self {
            Pacer::Adaptive(pacing) => pacing.tick,
            Pacer::None(_) | Pacer::Marked(_) | Pacer::Ruled(_) => Time::NEVER,
        }
    }

    /// A data segment leaves.
    pub fn on_sent(&mut self, now: Time, stats: &mut Stats) {
        match self {
            Pacer::Adaptive(pacing) if pacing.config.limit == RateLimit::EarliestSend => {
                let interval = pacing.estimator.read_interval(stats);
                pacing.next = now.saturating_add(interval);
            }
            Pacer::Marked(pacing) => {
                pacing.next = now.saturating_add(recorded(pacing.rule.interval(), stats));
            }
            Pacer::Ruled(pacing) => {
                let interval = Duration::from_secs_f64(pacing.rule.interval());
                pacing.next = now.saturating_add(recorded(interval, stats));
            }
            _ => {}
        }
    }

    /// The rate rule of marks, if there is one.
    pub fn marked_rate(&self) -> Option<&Dcc> {
        match self {
            Pacer::Marked(pacing) => Some(&pacing.rule),
            _ => None,
        }
    }

    /// The estimator, if there is one.
    pub fn estimator(&self) -> Option<&Estimator> {
        match self {
            Pacer::Adaptive(pacing) => Some(&pacing.estimator),
            Pacer::None(_) | Pacer::Marked(_) | Pacer::Ruled(_) => None,
        }
    }
}

/// An interval that is about to be kept.
fn recorded(interval: Duration, stats: &mut Stats) -> Duration {
    stats.interval_samples += 1;
    stats.interval_sum_s += interval.as_secs_f64();
    interval
}

/// Without an estimator, only the variation of the RTT is recorded.
fn record(rtts: &mut History, rtt: f64, stats: &mut Stats) {
    rtts.push(rtt);
    stats.rtt_samples += 1;
    stats.rtt_sum_s += rtt;
    stats.cov_samples += 1;
    stats.cov_sum += coefficient_of_variation(rtts.samples());
}

impl Adaptive {
    fn on_tick(&mut self, now: Time, stats: &mut Stats) {
        let interval = self.estimator.read_interval(stats);
        if interval == Duration::ZERO {
            // Nothing to space: what enters the FIFO leaves at once, and starts the timer if there is an interval then.
            self.due = true;
            self.started = false;
            self.tick = Time::NEVER;
            return;
        }
        self.due = !self.fifo.is_empty();
        self.tick = now.saturating_add(interval.max(SHORTEST_TICK));
    }
}

/// The shortest period of a free-running timer: below the air time of any 802.11 frame with its preamble.
const SHORTEST_TICK: Duration = Duration::from_micros(100);
