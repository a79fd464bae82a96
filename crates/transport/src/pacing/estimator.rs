//! Computes the interval between two segments from RTT samples.
//!
//! AP05, sections 4.2 to 4.4, with h hops, channel rate b, data packet size s_d and ACK size s_a:
//!
//! ```text
//! t_q  = 1/2 (RTT/h - (s_d + s_a)/b)                 queueing delay per hop
//! FHD  = 4 (t_q + s_d/b) = 2 (RTT/h + (s_d - s_a)/b) four-hop propagation delay; n = min(4, h) hops in general
//! FHD^ = alpha FHD^ + (1 - alpha) FHD
//! IPD  = FHD^ (1 + 2 cov)
//! ```
//!
//! The delay of synchronized clocks or AP10's out-of-interference delay can take the place of FHD;
//! the EWMA and the interval are the same then.
//!
//! A negative t_q is not clamped, since the formula is linear in t_q. Each sample uses the current
//! h. The history is kept when the route changes.

use super::adaptive::{AdaptiveConfig, Dispersion, Measure, Scaling, ShortPath};
use super::carrier_sense::{PowerSource, ReceivedPower};
use super::dispersion::{
    History, coefficient_of_variation, relative_absolute_deviation, scaled_coefficient_of_variation,
    scaled_relative_absolute_deviation,
};
use crate::stats::Stats;
use meshpace_core::{Duration, Rate};

/// Weight of the old value in the average queueing delay (the agent that the authors of AP05
/// released).
const QUEUEING_WEIGHT: f64 = 0.5;

/// t_q: the queueing delay per hop in seconds (AP05, section 4.3). `rtt` is in seconds, sizes are
/// in bytes.
pub fn queueing_delay(rtt: f64, hops: u8, rate: Rate, data: u32, ack: u32) -> f64 {
    0.5 * (rtt / f64::from(hops) - transmission(f64::from(data) + f64::from(ack), rate))
}

/// D_n: the propagation delay over `n` hops in seconds (AP05, section 4.3), computed from the
/// queueing delay per hop.
pub fn propagation_delay(n: u8, queueing: f64, rate: Rate, data: u32) -> f64 {
    f64::from(n) * (queueing + transmission(f64::from(data), rate))
}

/// The propagation delay over `n` hops, computed from a one-way delay of `one_way` seconds over
/// `hops` hops. Sender and receiver have synchronized clocks (AP05, section 5, figure 15).
pub fn synchronized_delay(one_way: f64, hops: u8, n: u8) -> f64 {
    f64::from(n) * one_way / f64::from(hops)
}

fn transmission(bytes: f64, rate: Rate) -> f64 {
    8.0 * bytes / rate.as_bps_f64()
}

/// One measurement, which an ACK gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// RTT in seconds.
    pub rtt: f64,
    /// One-way delay of the data segment in seconds; `None` if the receiver does not echo it.
    pub one_way: Option<f64>,
    /// Hops from the sender to the receiver.
    pub hops: u8,
    /// Channel rate.
    pub rate: Rate,
    /// Power in dBm at which the next hop is received; `None` if the routing table does not tell.
    pub path_power_dbm: Option<f32>,
}

/// State of the estimator of one sender.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimator {
    config: AdaptiveConfig,
    /// s_d, the size of a data packet in bytes.
    data_size: u32,
    /// FHD^ in seconds; `None` before the first sample.
    delay: Option<f64>,
    /// Average queueing delay per hop in seconds, for `queueing_limit`.
    queueing: f64,
    /// The last N RTT samples, seconds.
    rtts: History,
    /// The last N delay samples, seconds.
    delays: History,
    /// Power of the frames from the next hop.
    power: ReceivedPower,
    /// Dispersion of the configured kind, with the factor K applied.
    dispersion: f64,
    /// IPD, the interval between two segments.
    interval: Duration,
}

impl Estimator {
    /// Creates an estimator for segments with `payload` bytes.
    pub fn new(config: &AdaptiveConfig, payload: u32) -> Estimator {
        Estimator {
            data_size: payload.saturating_add(config.data_overhead),
            delay: None,
            queueing: 0.0,
            rtts: History::new(config.history),
            delays: History::new(config.history),
            power: ReceivedPower::new(config.carrier_sense().map_or(1, |sense| sense.frames)),
            dispersion: 0.0,
            interval: config.initial_interval,
            config: config.clone(),
        }
    }

    /// A frame with this power in dBm arrived from the next hop.
    pub fn on_frame(&mut self, power_dbm: f32) {
        self.power.on_frame(power_dbm);
    }

    /// Takes an RTT sample in seconds, measured over `hops` hops at the channel rate `rate`.
    pub fn on_sample(&mut self, rtt: f64, hops: u8, rate: Rate, stats: &mut Stats) {
        self.on_measured(&Sample { rtt, one_way: None, hops, rate, path_power_dbm: None }, stats);
    }

    /// The n-hop delay of AP05 in seconds.
    fn propagation(&mut self, sample: &Sample, hops: u8) -> f64 {
        let config = &self.config;
        let n = match config.short_path {
            _ if hops >= config.reuse_hops => config.reuse_hops,
            ShortPath::WholePath => hops,
            ShortPath::OneHop => 1,
        };
        if let (Measure::OneWay, Some(one_way)) = (&config.measure, sample.one_way) {
            return synchronized_delay(one_way, hops, n);
        }
        let mut queueing = queueing_delay(sample.rtt, hops, sample.rate, self.data_size, config.ack_size);
        if queueing > config.queueing_limit.map_or(f64::INFINITY, Duration::as_secs_f64) {
            queueing = self.queueing;
        }
        self.queueing = QUEUEING_WEIGHT * self.queueing + (1.0 - QUEUEING_WEIGHT) * queueing;
        propagation_delay(n, queueing, sample.rate, self.data_size)
    }

    /// The delay of the configured kind in seconds, computed from a measurement.
    fn delay_of(&mut self, sample: &Sample) -> f64 {
        let hops = sample.hops.max(1);
        let Measure::OutOfInterference(oid) = &self.config.measure else {
            return self.propagation(sample, hops);
        };
        let power = match self.config.carrier_sense().map(|sense| sense.source) {
            Some(PowerSource::Path) => sample.path_power_dbm.map(f64::from),
            _ => self.power.average_dbm(),
        };
        oid.delay(sample.rtt, hops, sample.rate, self.data_size, self.config.ack_size, power)
    }

    /// Applies the factor K to the dispersion. `plain` is the dispersion of the samples without K.
    fn scaled(&self, plain: f64) -> f64 {
        let k = self.config.scale;
        if k == 1.0 {
            return plain;
        }
        match (self.config.scaling, self.config.dispersion) {
            (Scaling::Deviations, _) => k * plain,
            (Scaling::Samples, Dispersion::CovRtt) => scaled_coefficient_of_variation(self.rtts.samples(), k),
            (Scaling::Samples, Dispersion::MadRtt) => scaled_relative_absolute_deviation(self.rtts.samples(), k),
            (Scaling::Samples, Dispersion::MadDelay) => scaled_relative_absolute_deviation(self.delays.samples(), k),
        }
    }

    /// Rounds an RTT in seconds to ticks of the clock that measures the samples, to at least one
    /// tick.
    fn on_clock(&self, rtt: f64) -> f64 {
        let tick = self.config.rtt_clock.as_secs_f64();
        if tick == 0.0 {
            return rtt;
        }
        libm::round(rtt / tick).max(1.0) * tick
    }

    /// Takes a measurement.
    pub fn on_measured(&mut self, measured: &Sample, stats: &mut Stats) {
        let measured = &Sample { rtt: self.on_clock(measured.rtt), ..*measured };
        let rtt = measured.rtt;
        let sample = self.delay_of(measured);
        let config = &self.config;

        self.rtts.push(rtt);
        let cov = coefficient_of_variation(self.rtts.samples());
        stats.rtt_samples += 1;
        stats.rtt_sum_s += rtt;
        stats.cov_samples += 1;
        stats.cov_sum += cov;

        let accepted = config.delay_limit.is_none_or(|most| sample > 0.0 && sample < most.as_secs_f64());
        if accepted {
            let delay = self.delay.map_or(sample, |old| config.alpha * old + (1.0 - config.alpha) * sample);
            self.delay = Some(delay);
            self.delays.push(sample);
        }
        let rtt_deviation = || relative_absolute_deviation(self.rtts.samples());
        let (dispersion, deviation) = match config.dispersion {
            Dispersion::CovRtt => (cov, rtt_deviation()),
            Dispersion::MadRtt => {
                let deviation = rtt_deviation();
                (deviation, deviation)
            }
            Dispersion::MadDelay => {
                let deviation = relative_absolute_deviation(self.delays.samples());
                (deviation, deviation)
            }
        };
        self.dispersion = self.scaled(dispersion);
        stats.rel_abs_dev_sum += deviation;
        stats.delay_samples += 1;
        if let Some(delay) = self.delay {
            stats.delay_sum_s += delay;
            // A delay at or below zero cannot space segments. The conversion turns it into an
            // interval of zero.
            self.interval = Duration::from_secs_f64(delay * (1.0 + self.config.dispersion_factor * self.dispersion));
        }
    }

    /// FHD^, the smoothed n-hop propagation delay in seconds; `None` before the first sample.
    pub fn delay(&self) -> Option<f64> {
        self.delay
    }

    /// Dispersion of the configured kind; 0 before the first sample.
    pub fn dispersion(&self) -> f64 {
        self.dispersion
    }

    /// IPD in seconds before rounding; `None` before the first sample.
    pub fn interval_s(&self) -> Option<f64> {
        self.delay.map(|delay| delay * (1.0 + self.config.dispersion_factor * self.dispersion))
    }

    /// Returns [`Estimator::interval`] and counts it as one reading of the interval.
    pub fn read_interval(&self, stats: &mut Stats) -> Duration {
        let interval = self.interval();
        stats.interval_samples += 1;
        stats.interval_sum_s += interval.as_secs_f64();
        stats.interval_delay_sum_s += self.delay().unwrap_or(0.0);
        stats.interval_dispersion_sum += self.dispersion();
        interval
    }

    /// IPD, the interval between two segments.
    pub fn interval(&self) -> Duration {
        self.interval
    }
}
