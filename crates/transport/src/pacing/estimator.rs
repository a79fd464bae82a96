//! From RTT samples to the interval between two segments.
//!
//! AP05, sections 3 and 4: with h hops, channel rate b, data size s_d and ACK size s_a,
//!
//! ```text
//! t_q  = 1/2 (RTT/h - (s_d + s_a)/b)                 queueing delay per hop
//! FHD  = 4 (t_q + s_d/b) = 2 (RTT/h + (s_d - s_a)/b) four-hop propagation delay; n = min(4, h) hops in general
//! FHD^ = alpha FHD^ + (1 - alpha) FHD
//! IPD  = FHD^ (1 + 2 cov)
//! ```
//!
//! A negative t_q is not clamped: the formula is linear in it. h is read anew for each sample; the history is kept when
//! the route changes.

use super::adaptive::{AdaptiveConfig, Dispersion, ShortPath};
use super::dispersion::{History, coefficient_of_variation, relative_absolute_deviation};
use crate::stats::Stats;
use meshpace_core::{Duration, Rate};

/// Weight on the old value of the average queueing delay (released agent).
const QUEUEING_WEIGHT: f64 = 0.5;

/// t_q: the queueing delay per hop in seconds (AP05, section 4.1). `rtt` in seconds, sizes in bytes.
pub fn queueing_delay(rtt: f64, hops: u8, rate: Rate, data: u32, ack: u32) -> f64 {
    0.5 * (rtt / f64::from(hops) - transmission(f64::from(data) + f64::from(ack), rate))
}

/// D_n: the propagation delay over `n` hops in seconds (AP05, section 4.1), from the queueing delay per hop.
pub fn propagation_delay(n: u8, queueing: f64, rate: Rate, data: u32) -> f64 {
    f64::from(n) * (queueing + transmission(f64::from(data), rate))
}

/// The propagation delay over `n` hops from a one-way delay of `one_way` seconds over `hops` hops, for senders and
/// receivers with synchronized clocks (AP05, section 5, figure 15).
pub fn synchronized_delay(one_way: f64, hops: u8, n: u8) -> f64 {
    f64::from(n) * one_way / f64::from(hops)
}

fn transmission(bytes: f64, rate: Rate) -> f64 {
    8.0 * bytes / rate.as_bps_f64()
}

/// The estimator's state.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimator {
    config: AdaptiveConfig,
    /// s_d in bytes.
    data_size: u32,
    /// FHD^ in seconds; none before the first sample.
    delay: Option<f64>,
    /// Average queueing delay per hop in seconds, for `queueing_limit`.
    queueing: f64,
    /// The last N RTT samples, seconds.
    rtts: History,
    /// The last N delay samples, seconds.
    delays: History,
    /// The dispersion of the configured kind.
    dispersion: f64,
    /// IPD.
    interval: Duration,
}

impl Estimator {
    /// An estimator for segments of `payload` bytes.
    pub fn new(config: &AdaptiveConfig, payload: u32) -> Estimator {
        Estimator {
            data_size: payload.saturating_add(config.data_overhead),
            delay: None,
            queueing: 0.0,
            rtts: History::new(config.history),
            delays: History::new(config.history),
            dispersion: 0.0,
            interval: config.initial_interval,
            config: config.clone(),
        }
    }

    /// Takes an RTT sample in seconds, measured over `hops` hops at channel rate `rate`.
    pub fn on_sample(&mut self, rtt: f64, hops: u8, rate: Rate, stats: &mut Stats) {
        let config = &self.config;
        let hops = hops.max(1);
        let limit = |span: Option<Duration>| span.map_or(f64::INFINITY, Duration::as_secs_f64);

        let mut queueing = queueing_delay(rtt, hops, rate, self.data_size, config.ack_size);
        if queueing > limit(config.queueing_limit) {
            queueing = self.queueing;
        }
        self.queueing = QUEUEING_WEIGHT * self.queueing + (1.0 - QUEUEING_WEIGHT) * queueing;

        let n = match config.short_path {
            _ if hops >= config.reuse_hops => config.reuse_hops,
            ShortPath::WholePath => hops,
            ShortPath::OneHop => 1,
        };
        let sample = propagation_delay(n, queueing, rate, self.data_size);

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
        self.dispersion = dispersion;
        stats.rel_abs_dev_sum += deviation;
        stats.delay_samples += 1;
        if let Some(delay) = self.delay {
            stats.delay_sum_s += delay;
            // A delay at or below zero cannot space anything; the rounding sends it to an interval of zero.
            self.interval = Duration::from_secs_f64(delay * (1.0 + config.dispersion_factor * dispersion));
        }
    }

    /// FHD^, the smoothed n-hop propagation delay in seconds; none before the first sample.
    pub fn delay(&self) -> Option<f64> {
        self.delay
    }

    /// The dispersion of the configured kind; 0 before the first sample.
    pub fn dispersion(&self) -> f64 {
        self.dispersion
    }

    /// IPD in seconds before rounding; none before the first sample.
    pub fn interval_s(&self) -> Option<f64> {
        self.delay.map(|delay| delay * (1.0 + self.config.dispersion_factor * self.dispersion))
    }

    /// [`Estimator::interval`], counted as one reading of it.
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
