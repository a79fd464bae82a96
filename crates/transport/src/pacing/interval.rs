//! Interval between two segments, whichever rule computes it: AP05 and AP10 (`estimator`), DCC
//! (`dcc`), the window rule, a rule of one file (`rules`) or a rule of the program that uses this
//! crate (`custom`). All rules receive the same events.

use super::adaptive::DEFAULT_HISTORY;
use super::dcc::Dcc;
use super::dispersion::{History, coefficient_of_variation};
use super::{Estimator, Sample, custom, rules};
use crate::stats::Stats;
use meshpace_core::{Duration, Rate};

/// Content of an ACK that a rule uses, apart from the sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// True if the ACK echoes a congestion mark.
    pub marked: bool,
    /// True if the window is in slow start.
    pub slow_start: bool,
    /// Channel rate.
    pub rate: Rate,
}

/// Rule that computes the interval, with its state.
#[derive(Clone, Debug)]
pub enum Interval {
    /// Adaptive pacing, by the propagation delay or by the out-of-interference delay.
    Adaptive(Estimator),
    /// A rate that congestion marks control. The RTT is recorded for the statistics.
    Marks(Dcc, RttRecord),
    /// Interval in seconds that the window rule asks for. The RTT is recorded for the statistics.
    Window(f64, RttRecord),
    /// A rule of one file. The RTT is recorded for the statistics.
    Rule(rules::State, RttRecord),
    /// A rule of the program that uses this crate. The RTT is recorded for the statistics.
    Custom(custom::State, RttRecord),
}

impl Interval {
    /// Takes the measurement that an ACK gave.
    pub fn on_sample(&mut self, sample: &Sample, stats: &mut Stats) {
        match self {
            Interval::Adaptive(estimator) => estimator.on_measured(sample, stats),
            Interval::Marks(rule, record) => {
                rule.on_sample(sample.rtt);
                record.on_sample(sample.rtt, stats);
            }
            Interval::Window(_, record) => record.on_sample(sample.rtt, stats),
            Interval::Rule(rule, record) => {
                rule.on_sample(sample);
                record.on_sample(sample.rtt, stats);
            }
            Interval::Custom(rule, record) => {
                rule.on_sample(sample);
                record.on_sample(sample.rtt, stats);
            }
        }
    }

    /// An ACK arrived.
    pub fn on_ack(&mut self, ack: &Feedback) {
        match self {
            Interval::Adaptive(_) | Interval::Window(..) => {}
            Interval::Marks(rule, _) => rule.on_ack(ack.marked, ack.slow_start, ack.rate),
            Interval::Rule(rule, _) => rule.on_ack(ack.marked, ack.slow_start),
            Interval::Custom(rule, _) => rule.on_ack(ack.marked, ack.slow_start),
        }
    }

    /// A frame with this power in dBm arrived from the next hop.
    pub fn on_frame(&mut self, power_dbm: f32) {
        if let Interval::Adaptive(estimator) = self {
            estimator.on_frame(power_dbm);
        }
    }

    /// Interval between two segments. If it is zero, segments leave as the window allows.
    pub fn get(&self) -> Duration {
        match self {
            Interval::Adaptive(estimator) => estimator.interval(),
            Interval::Marks(rule, _) => rule.interval(),
            Interval::Window(interval, _) => Duration::from_secs_f64(*interval),
            Interval::Rule(rule, _) => Duration::from_secs_f64(rule.interval()),
            Interval::Custom(rule, _) => Duration::from_secs_f64(rule.interval()),
        }
    }

    /// Returns [`Interval::get`] and counts it as one reading of the interval.
    pub fn read(&self, stats: &mut Stats) -> Duration {
        let interval = match self {
            Interval::Adaptive(estimator) => return estimator.read_interval(stats),
            _ => self.get(),
        };
        stats.interval_samples += 1;
        stats.interval_sum_s += interval.as_secs_f64();
        interval
    }
}

/// Recent RTT samples for the statistics, of a sender whose rule does not keep them. As in AP05, 50
/// samples are kept.
#[derive(Clone, Debug)]
pub struct RttRecord(History);

impl Default for RttRecord {
    fn default() -> RttRecord {
        RttRecord(History::new(DEFAULT_HISTORY))
    }
}

impl RttRecord {
    /// Records an RTT sample in seconds.
    pub fn on_sample(&mut self, rtt: f64, stats: &mut Stats) {
        self.0.push(rtt);
        stats.rtt_samples += 1;
        stats.rtt_sum_s += rtt;
        stats.cov_samples += 1;
        stats.cov_sum += coefficient_of_variation(self.0.samples());
    }
}
