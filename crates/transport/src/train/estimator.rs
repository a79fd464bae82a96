//! Estimates of a sender about its path: the time until the channel can be used again, and the delay of queues.
//!
//! Each ACK of a TAIL gives the round trip r of that TAIL without the wait of the ACK, its forward delay f by the two clocks, and
//! the mean m and least l of the forward delays in its train, both less the TAIL's own. With h hops, n = min(4, h), t_d and t_a
//! the air times of a data and of an ACK exchange,
//!
//! ```text
//! rtt0 = least r, base = least f + l, both of the last one to two horizons
//! tau  = n/h rtt0 / (1 + t_a/t_d)       unloaded time until a segment is n hops away
//! d    = mean of f + m - base - 0.3 ms h
//! ```
//!
//! The mean is exponential, over max(smoothing, 2 I). The 0.3 ms per hop are what backoff adds on an empty path. Only
//! differences of forward delays count, so that the offset of the clocks cancels; `skew` takes their drift out. Where a clock jumps
//! they begin anew.

use super::skew::Skew;
use crate::PathInfo;
use meshpace_core::{Duration, Rate, parameters};

/// Hops after which the channel can be used again (AP05, section 4.3).
pub const REUSE_HOPS: u8 = 4;
/// Time of a RTS/CTS exchange's fixed parts beside the bits of the data frame, seconds: RTS, CTS, ACK, preambles, spaces and
/// mean backoff at a basic rate of 1 Mbit/s (IEEE 802.11-1999, sections 9.2.3 and 15.3.3).
const EXCHANGE: f64 = 1.542e-3;
/// MAC header, LLC and frame check of a data frame, bytes.
const FRAME_BYTES: f64 = 52.0;

/// Scale of the weight of a round trip: one that is so much above the least counts 1/e, seconds.
const BELIEVED: f64 = 3e-3;

parameters! {
    /// Parameters.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// how long a least value holds, half of the longest time
        horizon: Duration = Duration::from_secs(15) => TIME.above(0.0), Expert;
        /// time constant of the delay
        smoothing: Duration = Duration::from_secs(1) => TIME.above(0.0), Expert;
        /// delay per hop that is no queue
        hop_noise: Duration = Duration::from_micros(300) => TIME.from(0.0), Expert;
        /// how many more hops the sender takes the path for than there are, rounded; one hop at least
        hop_error: f64 = 0.0 => number(-254.0, 254.0), Expert;
        /// data rate that the sender takes the channel for
        rate as path_rate: Option<Rate> = None => RATE.above(0.0).or("the radio's"), Expert;
    }
}

/// Sample from the ACK of a TAIL, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// When the ACK arrived.
    pub now: f64,
    /// Round trip of the TAIL without the wait of its ACK.
    pub rtt: f64,
    /// Mean forward delay of the train less the TAIL's.
    pub mean: f64,
    /// Least forward delay of the train less the TAIL's.
    pub least: f64,
    /// Share of marked segments.
    pub marked: f64,
    /// Forward delay of the TAIL by the two clocks, with any offset.
    pub forward: f64,
}

/// The least of the last one to two horizons: values, and when they were taken.
#[derive(Clone, Copy, Debug)]
struct Least([(f64, f64); 2]);

impl Least {
    const NONE: Least = Least([(f64::INFINITY, 0.0); 2]);

    /// The least, as it would be `now` if values grew by `slope`.
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

/// A clock that has jumped by more was set, or its machine slept, seconds.
const JUMP: f64 = 1.0;

/// Estimate of the path.
#[derive(Clone, Debug)]
pub struct Estimator {
    config: Config,
    /// Payload of a full segment, bytes.
    segment: f64,
    rtt: Least,
    base: Least,
    /// When the least values last turned.
    turned_at: f64,
    skew: Skew,
    /// The offsets of the clocks that the last sample left possible, seconds.
    offsets: (f64, f64),
    /// The least round trip ever over this path.
    least_rtt: f64,
    /// The mean delay, and when it was last brought up to date.
    mean: f64,
    marked: f64,
    at: Option<f64>,
}

impl Estimator {
    /// Nothing known.
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

    /// `path` with assumptions in place of what is not known.
    pub fn assumed(&self, path: &PathInfo) -> PathInfo {
        let hops = libm::round(f64::from(path.hops) + self.config.hop_error).clamp(1.0, 255.0) as u8;
        PathInfo { hops, rate: self.config.rate.unwrap_or(path.rate), ..*path }
    }

    /// The path is another one: what was least over the old one says nothing of it.
    pub fn forget(&mut self) {
        self.rtt = Least::NONE;
        self.base = Least::NONE;
        self.least_rtt = f64::INFINITY;
        self.at = None;
    }

    /// A delay is at least 0 and at most the round trip: so much the offset of the clocks follows from one sample. If two have
    /// none in common, a clock has jumped, and forward delays before and after are not to be compared.
    fn watch_clocks(&mut self, sample: &Sample) {
        let (least, most) = (sample.forward - sample.rtt, sample.forward);
        if least > self.offsets.1 + JUMP || most < self.offsets.0 - JUMP {
            self.skew = Skew::default();
            self.base = Least::NONE;
            self.at = None;
        }
        self.offsets = (least, most);
    }

    /// Takes a sample while segments leave `interval` apart; the time since the last one, none for the first.
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

    /// tau, seconds, above 0; none before the first sample, or if a peer claims to have waited for longer than it took to answer.
    pub fn reuse(&self, path: &PathInfo) -> Option<f64> {
        let rtt = self.rtt.get(0.0, 0.0);
        let hops = f64::from(path.hops.max(1));
        let share = exchange(path, 52.0) / exchange(path, self.segment + 40.0);
        (rtt > 0.0 && rtt.is_finite()).then(|| reuse_hops(path.hops) / hops * rtt / (1.0 + share))
    }

    /// d, seconds, 0 or more.
    pub fn queueing(&self, hops: u8) -> f64 {
        let noise = self.config.hop_noise.as_secs_f64() * f64::from(hops);
        let Some(at) = self.at else { return 0.0 };
        (self.mean - self.base.get(at, self.skew.get()) - noise).max(0.0)
    }

    /// True if `sample` has less delay than the mean of those before.
    pub fn is_below_mean(&self, sample: &Sample) -> bool {
        self.at.is_some() && sample.forward + sample.mean < self.mean
    }

    /// By how much the delay of `sample` exceeds the least, seconds; none before the first one.
    pub fn above_base(&self, sample: &Sample) -> Option<f64> {
        self.at.map(|_| sample.forward + sample.mean - self.base.get(sample.now, self.skew.get()))
    }

    /// Share of marked segments, smoothed.
    pub fn marked(&self) -> f64 {
        self.marked
    }
}

/// n.
pub fn reuse_hops(hops: u8) -> f64 {
    f64::from(hops.clamp(1, REUSE_HOPS))
}

/// The air time of an exchange over one hop for an IP packet of `bytes`, seconds.
pub fn exchange(path: &PathInfo, bytes: f64) -> f64 {
    EXCHANGE + 8.0 * (bytes + FRAME_BYTES) / path.rate.as_bps_f64()
}
