//! Lateness with which frames reach the programs. The verdict on an emulation is based on it.
//!
//! The mesh decides in its own time when a frame arrives. The frame is delivered to the node later,
//! because the thread has to wake up and other threads use the processor. Within the mesh nothing
//! is late, whatever the machine does. Only frames that enter or leave it are late.

use hdrhistogram::Histogram;
use meshpace_core::Duration;

/// Largest lateness that is recorded, ns: one minute. Greater ones count as this.
const LONGEST: u64 = 60_000_000_000;

/// Recorded lateness of all deliveries.
#[derive(Clone, Debug)]
pub struct Lateness {
    spans: Histogram<u64>,
    later_than_slot: u64,
    later_than_air_time: u64,
}

/// Summary of the lateness. Times are in seconds of the machine's clock; NaN without deliveries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Number of frames delivered.
    pub deliveries: u64,
    /// Median lateness.
    pub p50_s: f64,
    /// 99th percentile of the lateness.
    pub p99_s: f64,
    /// Greatest lateness.
    pub max_s: f64,
    /// Share of the frames that were later than a slot of the MAC, in the mesh's time.
    pub later_than_slot: f64,
    /// Share of the frames that were later than their time on the air on the last hop, in the
    /// mesh's time.
    pub later_than_air_time: f64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let spans = Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds that a histogram can have");
        Lateness { spans, later_than_slot: 0, later_than_air_time: 0 }
    }
}

impl Lateness {
    /// Records that a frame was delivered `late` by the machine's clock, in a mesh that runs
    /// `slowdown` times slower than real time.
    pub fn record(&mut self, late: Duration, slowdown: u64, slot: Duration, air_time: Duration) {
        self.spans.saturating_record(late.0.max(1));
        let in_mesh = Duration(late.0 / slowdown.max(1));
        self.later_than_slot += u64::from(in_mesh > slot);
        self.later_than_air_time += u64::from(in_mesh > air_time);
    }

    /// Number of frames so far.
    pub fn deliveries(&self) -> u64 {
        self.spans.len()
    }

    /// Share of the frames so far that were later than their own time on the air; zero without
    /// frames.
    pub fn late_share(&self) -> f64 {
        self.later_than_air_time as f64 / (self.deliveries().max(1)) as f64
    }

    /// Summary of all deliveries.
    pub fn summary(&self) -> Summary {
        let deliveries = self.deliveries();
        let share = |count: u64| if deliveries == 0 { f64::NAN } else { count as f64 / deliveries as f64 };
        let quantile = |q| if deliveries == 0 { f64::NAN } else { self.spans.value_at_quantile(q) as f64 / 1e9 };
        Summary {
            deliveries,
            p50_s: quantile(0.5),
            p99_s: quantile(0.99),
            max_s: if deliveries == 0 { f64::NAN } else { self.spans.max() as f64 / 1e9 },
            later_than_slot: share(self.later_than_slot),
            later_than_air_time: share(self.later_than_air_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_quantiles() {
        let mut lateness = Lateness::default();
        let (slot, air) = (Duration::from_micros(20), Duration::from_millis(6));
        for micros in 1..=100 {
            lateness.record(Duration::from_micros(micros), 1, slot, air);
        }
        lateness.record(Duration::from_millis(7), 1, slot, air);
        let summary = lateness.summary();
        assert_eq!(summary.deliveries, 101);
        assert!((summary.p50_s / 51e-6 - 1.0).abs() < 0.002, "{summary:?}");
        assert!((summary.max_s / 7e-3 - 1.0).abs() < 0.002, "{summary:?}");
        assert!((summary.later_than_slot - 81.0 / 101.0).abs() < 1e-12);
        assert!((summary.later_than_air_time - 1.0 / 101.0).abs() < 1e-12);
    }

    #[test]
    fn a_slow_mesh_forgives_more() {
        let (slot, air) = (Duration::from_micros(20), Duration::from_millis(6));
        for (slowdown, share) in [(1, 1.0), (4, 0.0)] {
            let mut lateness = Lateness::default();
            lateness.record(Duration::from_millis(7), slowdown, slot, air);
            assert_eq!(lateness.summary().later_than_air_time, share);
        }
    }

    #[test]
    fn nothing_delivered_is_nothing_known() {
        let summary = Lateness::default().summary();
        assert!(summary.p50_s.is_nan() && summary.later_than_air_time.is_nan());
        assert_eq!(Lateness::default().late_share(), 0.0);
    }
}
