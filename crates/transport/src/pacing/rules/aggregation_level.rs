//! Pacing for a target size of link-layer aggregates: an aggregate shall hold enough packets to use
//! an access to the channel well, without a longer queue.
//!
//! H. Hassani, F. Gringoli, D. Leith, "Quick and Plenty: Achieving Low Delay and High Rate in
//! 802.11ac Edge Networks", Computer Networks 187, 2021. Near the capacity of a link its aggregates
//! grow steeply with the rate, so their size shows how near the capacity is. An integral controller
//! of the rate that keeps a given size has short queues and uses most of the capacity. Here x is
//! the rate in segments and N the number of ACKs of one aggregate:
//!
//! ```text
//! x <- x (1 + step (target - N) / target),  (target - N) / target in [-1, 1],  after every aggregate
//! ```
//!
//! Departures: the paper's receiver reports the size of frames, which it takes from the time stamps
//! of its radio. Here only the sender is changed. The ACKs of an aggregate come back together, and
//! the segments they cover left one after the other. So each of these ACKs has a shorter round trip
//! than the one before, and the first of the next aggregate has a longer one again. N is therefore
//! the length of a run of falling round trips; it is two on average if nothing is aggregated. The
//! change is a share of the rate, while the paper has a constant, because rates here span three
//! orders of magnitude.

use super::{About, Rule, parameter};
use crate::pacing::Sample;

/// Hops after which the channel can be used again (AP05, section 4.3).
const REUSE_HOPS: u8 = 4;
/// Bits of a full frame. The first and the shortest interval follow from it.
const FRAME_BITS: f64 = 8.0 * 1540.0;
/// The longest interval in seconds.
const SLOWEST: f64 = 1.0;

/// State of the rule.
#[derive(Clone, PartialEq, Debug)]
pub struct AggregationLevel {
    target: f64,
    step: f64,
    /// The last round trip in seconds.
    before: f64,
    /// Number of ACKs so far in the aggregate that is arriving.
    together: f64,
    /// Interval between two segments in seconds; 0 before the first sample.
    interval: f64,
}

impl Rule for AggregationLevel {
    const ABOUT: About = About {
        name: "aggregation-level",
        description: "pacing so that several ACKs return in one aggregate of 802.11n",
        source: "Hassani, Gringoli, Leith, Computer Networks 187, 2021",
        parameters: &[
            parameter!(target: f64 = 8.0 => number(2.0, 64.0), Expert, "target number of ACKs per aggregate",
                "Hassani, Gringoli, Leith, Computer Networks 187, 2021"),
            parameter!(step: f64 = 0.05 => number(1e-4, 0.5), Expert, "largest change of the rate per aggregate",
                "Hassani, Gringoli, Leith, Computer Networks 187, 2021"),
        ],
    };

    fn new(parameters: &[f64]) -> AggregationLevel {
        let (target, step) = (parameters[0], parameters[1]);
        AggregationLevel { target, step, before: f64::INFINITY, together: 0.0, interval: 0.0 }
    }

    fn on_sample(&mut self, sample: &Sample) {
        let frame = FRAME_BITS / sample.rate.as_bps_f64();
        if self.interval == 0.0 {
            // Nothing is aggregated yet. The first rate is half of what links without aggregation
            // carry if all of them hear each other.
            self.interval = 2.0 * frame * f64::from(sample.hops.clamp(1, REUSE_HOPS));
        } else if sample.rtt >= self.before {
            let error = ((self.target - self.together) / self.target).clamp(-1.0, 1.0);
            self.interval = (self.interval / (1.0 + self.step * error)).clamp(frame, SLOWEST);
            self.together = 0.0;
        }
        self.together += 1.0;
        self.before = sample.rtt;
    }

    fn interval(&self) -> f64 {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Rate;

    fn sample(ms: f64) -> Sample {
        Sample { rtt: ms / 1e3, one_way: None, hops: 2, rate: Rate::from_mbps(65), path_power_dbm: None }
    }

    /// After aggregates of so many ACKs.
    fn interval(rule: &mut AggregationLevel, sizes: &[u32]) -> f64 {
        for &size in sizes {
            (0..size).for_each(|place| rule.on_sample(&sample(20.0 - f64::from(place) * 0.2)));
        }
        rule.interval()
    }

    #[test]
    fn the_rate_falls_after_larger_aggregates_and_grows_after_smaller_ones() {
        let mut rule = AggregationLevel::new(&[8.0, 0.1]);
        assert_eq!(rule.interval(), 0.0, "as the window allows");
        // Twice two hops of 12320 bits at 65 Mbit/s. The first aggregate counts when the second begins.
        let first = interval(&mut rule, &[8]);
        assert!((first - 4.0 * 12_320.0 / 65e6).abs() < 1e-12);
        assert_eq!(interval(&mut rule, &[8, 8]), first, "the target");
        // Half of the target: 5 % more; one and a half times: 5 % less.
        assert!((interval(&mut rule, &[4, 8]) - first / 1.05).abs() < 1e-12);
        assert!((interval(&mut rule, &[12, 1]) - first / 1.05 / 0.95).abs() < 1e-12);
    }

    #[test]
    fn the_interval_stays_within_its_bounds() {
        let mut rule = AggregationLevel::new(&[8.0, 0.5]);
        let frame = 12_320.0 / 65e6;
        assert_eq!(interval(&mut rule, &[1; 60]), frame, "the channel carries no more");
        assert_eq!(interval(&mut rule, &[64; 60]), SLOWEST);
    }
}
