//! A sender's estimates of its path: the time until the channel can be used again, and the delay in
//! queues.
//!
//! Each ACK of a TAIL gives the round trip r of that TAIL without the wait of the ACK, and its
//! forward delay f, which is a difference of the two ends' clocks. It also gives the mean m and the
//! least l of the forward delays in its train, both less that of the TAIL. With h hops, n = min(4,
//! h), t_d and t_a the air times of an exchange for data and for an ACK, and I the interval,
//!
//! ```text
//! rtt0 = least r, base = least f + l, both of the last one to two horizons
//! tau  = n/h rtt0 / (1 + t_a/t_d)       unloaded time until a segment is n hops away
//! d    = mean of f + m - base - 0.3 ms h
//! ```
//!
//! The mean is exponential, with a time constant of max(smoothing, 2 I). The 0.3 ms per hop are
//! what backoff adds on an empty path. Only differences of forward delays count, so that the offset
//! of the clocks cancels. `skew` removes the drift of the clocks. When a clock jumps, the estimates
//! of forward delays start anew.

use super::skew::Skew;
use crate::PathInfo;
use meshpace_core::{Duration, Rate, parameters};

/// Number of hops after which the channel can be used again (AP05, section 4.3).
pub const REUSE_HOPS: u8 = 4;
/// Air time of the fixed parts of an RTS/CTS exchange, without the bits of the data frame, in
/// seconds: RTS, CTS, ACK, preambles, spaces and mean backoff at a basic rate of 1 Mbit/s (IEEE
/// 802.11-1999, sections 9.2.3 and 15.3.3).
const EXCHANGE: f64 = 1.542e-3;
/// MAC header, LLC header and frame check sequence of a data frame, in bytes.
const FRAME_BYTES: f64 = 52.0;

/// Scale of the weight of a round trip in the estimate of the clock drift, in seconds. A round trip
/// that exceeds the least one by this much has a weight of 1/e.
const BELIEVED: f64 = 3e-3;

parameters! {
    /// Parameters.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// validity of the least values of delays: one to two times this time
        horizon: Duration = Duration::from_secs(15) => TIME.above(0.0), Expert;
        /// time constant with which the queueing delay is averaged
        smoothing: Duration = Duration::from_secs(1) => TIME.above(0.0), Expert;
        /// delay per hop that does not count as queueing
        hop_noise: Duration = Duration::from_micros(300) => TIME.from(0.0), Expert;
        /// error that is added to the number of hops that the sender knows, rounded; at least one
        /// hop remains
        hop_error: f64 = 0.0 => number(-254.0, 254.0), Expert;
        /// data rate that the sender assumes for the channel
        rate as path_rate: Option<Rate> = None => RATE.above(0.0).or("the radio's"), Expert;
    }
}

/// Sample from the ACK of a TAIL; times in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Time at which the ACK arrived.
    pub now: f64,
    /// Round trip of the TAIL, without the wait of its ACK.
    pub rtt: f64,
    /// Mean forward delay of the train less that of the TAIL.
    pub mean: f64,
    /// Least forward delay of the train less that of the TAIL.
    pub least: f64,
    /// Share of marked segments.
    pub marked: f64,
    /// Forward delay of the TAIL by the two ends' clocks, which may have any offset.
    pub forward: f64,
}

/// Least value of the last one to two horizons: for the current horizon and the one before, the
/// value and the time at which it was taken.
#[derive(Clone, Copy, Debug)]
struct Least([(f64, f64); 2]);

impl Least {
    const NONE: Least = Least([(f64::INFINITY, 0.0); 2]);

    /// Least value, extrapolated to `now` for values that grow by `slope`.
    fn get(self, now: f64, slope: f64) -> f64 {
        let [newer, older] = self.0.map(|(value, at)| value + slope * (now - at));
        newer.min(older)
    }

    fn add(&mut self, now: f64, value: f64, slope: f64) {
        let (least, at) = self.0[0];
        if value <= least + slope * (now - at) {
            self.0[0] = (value, now);
        }
    }

    fn turn(&mut self) {
        self.0 = [(f64::INFINITY, 0.0), self.0[0]];
    }
}

/// Least jump of a clock, in seconds, after which the clock must have been set or its machine must
/// have slept.
const JUMP: f64 = 1.0;

/// Estimates of a path.
#[derive(Clone, Debug)]
pub struct Estimator {
    config: Config,
    /// Payload of a full segment in bytes.
    segment: f64,
    rtt: Least,
    base: Least,
    /// Time at which the last horizon began, in seconds.
    turned_at: f64,
    skew: Skew,
    /// Range of clock offsets that the last sample allowed, in seconds.
    offsets: (f64, f64),
    /// Least round trip ever seen over this path, in seconds.
    least_rtt: f64,
    /// Mean delay, and the time of its last update (`at`).
    mean: f64,
    marked: f64,
    at: Option<f64>,
}

impl Estimator {
    /// Creates an estimator without samples.
    pub fn new(config: &Config, segment: u32) -> Estimator {
        Estimator {
            config: config.clone(),
            segment: f64::from(segment),
            rtt: Least::NONE,
            base: Least::NONE,
            turned_at: 0.0,
            skew: Skew::default(),
            offsets: (f64::NEG_INFINITY, f64::INFINITY),
            least_rtt: f64::INFINITY,
            mean: 0.0,
            marked: 0.0,
            at: None,
        }
    }

    /// `path`, with the configured assumptions applied.
    pub fn assumed(&self, path: &PathInfo) -> PathInfo {
        let hops = libm::round(f64::from(path.hops) + self.config.hop_error).clamp(1.0, 255.0) as u8;
        PathInfo { hops, rate: self.config.rate.unwrap_or(path.rate), ..*path }
    }

    /// The path has changed: drops the least values, which say nothing about the new path.
    pub fn forget(&mut self) {
        self.rtt = Least::NONE;
        self.base = Least::NONE;
        self.least_rtt = f64::INFINITY;
        self.at = None;
    }

    /// Detects a clock that jumps. A delay is at least 0 and at most the round trip, so that each
    /// sample limits the offset of the clocks to a range. If the ranges of two samples are more
    /// than [`JUMP`] apart, a clock has jumped, and forward delays before and after the jump cannot
    /// be compared.
    fn watch_clocks(&mut self, sample: &Sample) {
        let (least, most) = (sample.forward - sample.rtt, sample.forward);
        if least > self.offsets.1 + JUMP || most < self.offsets.0 - JUMP {
            self.skew = Skew::default();
            self.base = Least::NONE;
            self.at = None;
        }
        self.offsets = (least, most);
    }

    /// Takes a sample; `interval` is the current interval between segments. Returns the time since
    /// the last sample, or `None` for the first one.
    pub fn on_sample(&mut self, sample: &Sample, interval: f64) -> Option<f64> {
        if sample.now - self.turned_at > self.config.horizon.as_secs_f64() {
            self.turned_at = sample.now;
            self.rtt.turn();
            self.base.turn();
        }
        self.watch_clocks(sample);
        self.rtt.add(sample.now, sample.rtt, 0.0);
        self.least_rtt = self.least_rtt.min(sample.rtt);
        let above = sample.rtt - self.least_rtt;
        self.skew.add(sample.now, sample.forward - sample.rtt / 2.0, libm::exp(-above / BELIEVED));
        let skew = self.skew.get();
        self.base.add(sample.now, sample.forward + sample.least, skew);
        let delay = sample.forward + sample.mean;
        let Some(at) = self.at.replace(sample.now) else {
            self.mean = delay;
            self.marked = sample.marked;
            return None;
        };
        let dt = (sample.now - at).max(1e-4);
        let weight = 1.0 - libm::exp(-dt / self.config.smoothing.as_secs_f64().max(2.0 * interval));
        self.mean += weight * (delay - self.mean);
        self.marked += weight * (sample.marked - self.marked);
        Some(dt)
    }

    /// tau in seconds, above 0. `None` before the first sample, or if the peer claims to have
    /// waited for longer than it took to answer.
    pub fn reuse(&self, path: &PathInfo) -> Option<f64> {
        let rtt = self.rtt.get(0.0, 0.0);
        let hops = f64::from(path.hops.max(1));
        let share = exchange(path, 52.0) / exchange(path, self.segment + 40.0);
        (rtt > 0.0 && rtt.is_finite()).then(|| reuse_hops(path.hops) / hops * rtt / (1.0 + share))
    }

    /// d in seconds, 0 or more.
    pub fn queueing(&self, hops: u8) -> f64 {
        let noise = self.config.hop_noise.as_secs_f64() * f64::from(hops);
        let Some(at) = self.at else { return 0.0 };
        (self.mean - self.base.get(at, self.skew.get()) - noise).max(0.0)
    }

    /// True if `sample` has less delay than the mean of the samples before it.
    pub fn is_below_mean(&self, sample: &Sample) -> bool {
        self.at.is_some() && sample.forward + sample.mean < self.mean
    }

    /// Delay of `sample` above the least delay, in seconds; `None` before the first sample.
    pub fn above_base(&self, sample: &Sample) -> Option<f64> {
        self.at.map(|_| sample.forward + sample.mean - self.base.get(sample.now, self.skew.get()))
    }

    /// Share of marked segments, smoothed.
    pub fn marked(&self) -> f64 {
        self.marked
    }
}

/// n: the hops of the path, but at most [`REUSE_HOPS`].
pub fn reuse_hops(hops: u8) -> f64 {
    f64::from(hops.clamp(1, REUSE_HOPS))
}

/// Air time of an exchange over one hop for an IP packet of `bytes`, in seconds.
pub fn exchange(path: &PathInfo, bytes: f64) -> f64 {
    EXCHANGE + 8.0 * (bytes + FRAME_BYTES) / path.rate.as_bps_f64()
}
