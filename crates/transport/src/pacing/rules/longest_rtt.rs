//! Pacing by the longest of the recent round trips. This rule is a worked example and comes from no
//! paper.
//!
//! AP05, section 4.4, waits for a smoothed four-hop delay and stretches it by the variation of the
//! RTT. This rule tries to have both at once: the longest of the last N round trips grows with the
//! delay and with its variation. A segment must be n = min(4, h) of the h hops away before the next
//! one leaves, and each direction takes half of a round trip:
//!
//! ```text
//! interval = n/(2h) max(RTT_1 .. RTT_N)
//! ```
//!
//! Departure from AP05: data and ACK are assumed to need the same time, because packet sizes are
//! not known here.

use super::{About, Rule, parameter};
use crate::pacing::Sample;
use crate::pacing::dispersion::History;

/// Hops after which the channel can be used again (AP05, section 4.3).
const REUSE_HOPS: u8 = 4;

/// State of the rule.
#[derive(Clone, PartialEq, Debug)]
pub struct LongestRtt {
    /// The last N round trips, seconds.
    rtts: History,
    /// Interval between two segments in seconds; 0 before the first sample.
    interval: f64,
}

impl Rule for LongestRtt {
    const ABOUT: About = About {
        name: "longest-rtt",
        description: "pacing by the longest of the last round trips (a worked example)",
        source: "docs/new-pacing-rule.md",
        parameters: &[parameter!(samples: f64 = 10.0 => number(2.0, 1000.0), Expert, "number of last round trips of which the longest counts")],
    };

    fn new(parameters: &[f64]) -> LongestRtt {
        LongestRtt { rtts: History::new(parameters[0] as usize), interval: 0.0 }
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.rtts.push(sample.rtt);
        let longest = self.rtts.samples().iter().copied().fold(0.0, f64::max);
        let hops = sample.hops.max(1);
        self.interval = f64::from(hops.min(REUSE_HOPS)) / (2.0 * f64::from(hops)) * longest;
    }

    fn interval(&self) -> f64 {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use meshpace_core::Rate;

    fn intervals(samples: &[(f64, u8)]) -> Vec<f64> {
        let mut rule = LongestRtt::new(&[3.0]);
        assert_eq!(rule.interval(), 0.0);
        let mut after = |&(ms, hops): &(f64, u8)| {
            let rate = Rate::from_mbps(2);
            rule.on_sample(&Sample { rtt: ms / 1e3, one_way: None, hops, rate, path_power_dbm: None });
            (rule.interval() * 1e6).round() / 1e3
        };
        samples.iter().map(&mut after).collect()
    }

    #[test]
    fn four_hops_of_the_longest_of_three_round_trips() {
        // 4/14 of 70 ms is 20 ms, of 105 ms 30 ms, of 35 ms 10 ms.
        let rtts = [(70.0, 7), (35.0, 7), (105.0, 7), (70.0, 7), (35.0, 7), (35.0, 7), (35.0, 7)];
        assert_eq!(intervals(&rtts), [20.0, 20.0, 30.0, 30.0, 30.0, 20.0, 10.0]);
    }

    #[test]
    fn below_four_hops_the_whole_way_there() {
        assert_eq!(intervals(&[(60.0, 3), (60.0, 2), (60.0, 1)]), [30.0, 30.0, 30.0]);
    }
}
