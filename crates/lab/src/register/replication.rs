//! Rule of replication: a point gets more seeds until a confidence interval is narrow enough. TPA,
//! section 4.1, makes at least 5 replications, until the half width of the 90 % interval of the
//! throughput is within 10 % of its mean.
//!
//! The rule is applied to the first n seeds of a point. The point gets the smallest n, starting at
//! the base number of seeds, for which the rule holds. The number of seeds is thus a function of
//! the records alone. It depends neither on the number of threads nor on interruptions of the
//! campaign.

use super::data::{Metric, Until};
use crate::record::Record;
use crate::statistics::estimate;

/// Returns whether a point needs no more seeds. `records` are the records of its first seeds, in
/// the order of the seeds.
pub fn is_enough(rule: &Until, metric: &Metric, level: f64, records: &[Record]) -> bool {
    if records.len() as u64 >= rule.most {
        return true;
    }
    let values: Vec<f64> = records.iter().filter_map(|record| metric.of(record, None)).collect();
    let ours = estimate(&values, level);
    ours.half_width <= rule.within_pct / 100.0 * ours.mean.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::data::standard;

    #[test]
    fn it_is_enough_when_the_interval_is_narrow_or_there_are_no_more() {
        let rule = Until { metric: "goodput".into(), within_pct: 10.0, most: 6 };
        let metric = standard("goodput").unwrap();
        let records = |kbps: &[f64]| {
            let record = |kbps: &f64| Record { aggregate_goodput_bps: 1e3 * kbps, ..Record::default() };
            kbps.iter().map(record).collect::<Vec<_>>()
        };
        let enough = |kbps: &[f64]| is_enough(&rule, &metric, 0.9, &records(kbps));
        // Mean 100, s = 10: with 5 values t(0.95, 4) = 2.132 and the half width is 9.53; with 3, t = 2.920 and 16.9.
        let s = 10.0 / 2.5f64.sqrt();
        assert!(enough(&[100.0 - 2.0 * s, 100.0 - s, 100.0, 100.0 + s, 100.0 + 2.0 * s]));
        assert!(!enough(&[90.0, 100.0, 110.0]));
        assert!(!enough(&[100.0]), "one value has no interval");
        assert!(enough(&[1.0, 200.0, 3.0, 400.0, 5.0, 600.0]), "the most that are allowed");
    }
}
