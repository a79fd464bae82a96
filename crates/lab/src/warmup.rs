//! The warm-up of a run if the scenario leaves it to the run (`warmup = "auto"`). The measured time
//! begins after the start of the last flow, when the goodput of all flows is no longer influenced
//! by the beginning.
//!
//! The method is MSER-5 (K. P. White, M. J. Cobb, S. C. Spratt, "A comparison of five steady-state
//! truncation heuristics for simulation", Winter Simulation Conference 2000, section 2.5). Values
//! are averaged in groups of five. The number of group means that are left out at the beginning
//! minimizes the sum of the squared deviations of the other means, divided by the square of their
//! number. At most half of the means are left out. If that is not enough, the run is too short.
//!
//! The run is made once to find the warm-up and once to be measured. Both are the same run, event
//! by event, because measuring does not change a run.

use meshpace_core::Duration;
use meshpace_scenario::Point;
use meshpace_sim::Config;

/// Number of values that are averaged to one mean.
const BATCH: usize = 5;
/// Number of values between the start of the last flow and the end of the run.
const VALUES: u64 = 500;
/// Largest number of windows of a run. It keeps windows from becoming tiny if a flow starts near
/// the end.
const MOST_WINDOWS: u64 = 50_000;

/// Warm-up of the run of a point that is drawn for this seed. The point's own warm-up ends with the
/// start of the last flow.
pub fn of_run(point: &Point, seed: u64) -> Duration {
    let (start, duration) = (point.config.warmup.0, point.config.duration.0);
    let window = (duration.saturating_sub(start) / VALUES).max(duration / MOST_WINDOWS).max(1);
    let pilot = Config { series: Some(Duration(window)), batches: None, watch: Vec::new(), ..point.config.clone() };
    let windows = meshpace_sim::run(&pilot, seed).series.map(|series| series.windows).unwrap_or_default();
    let first = start.div_ceil(window);
    let goodput = |flows: &Vec<_>| flows.iter().map(|flow: &meshpace_sim::outcome::FlowWindow| flow.goodput_bps).sum();
    let values: Vec<f64> = windows.iter().skip(first as usize).map(goodput).collect();
    match truncation(&values) {
        0 => Duration(start),
        left_out => Duration((first + left_out as u64) * window),
    }
}

/// Number of values that MSER-5 leaves out at the beginning.
fn truncation(values: &[f64]) -> usize {
    let means: Vec<f64> = values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let error = |left_out: usize| {
        let rest = &means[left_out..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count.powi(2)
    };
    let least = (0..=means.len() / 2).filter(|left_out| *left_out < means.len());
    BATCH * least.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{self, Campaign};
    use crate::record::Record;
    use meshpace_core::rng::{Purpose, Rng};
    use meshpace_scenario::{Scenario, Source};
    use std::path::Path;

    #[test]
    fn the_beginning_is_left_out_and_a_steady_series_keeps_nearly_all() {
        let mut rng = Rng::stream(1, Purpose::Test, 0);
        let mut noise = || rng.uniform_in(-1.0, 1.0);
        let steady: Vec<f64> = (0..500).map(|_| 100.0 + 10.0 * noise()).collect();
        assert!(truncation(&steady) <= 50, "{}", truncation(&steady));
        // It rises from 0 within the first 100 values.
        let rising: Vec<f64> = (0..500).map(|number| (f64::from(number)).min(100.0) + 10.0 * noise()).collect();
        assert!((75..=130).contains(&truncation(&rising)), "{}", truncation(&rising));
    }

    /// Values computed by hand: the means are 9, 1, 1, 3. With 0, 1 and 2 of them left out, the
    /// squared deviations sum to 43, 8/3 and 2. Of 43/16, (8/3)/9 and 2/4 the second one is the
    /// smallest, although the sum is smaller with 2 left out.
    #[test]
    fn the_measure_is_that_of_the_paper() {
        let values: Vec<f64> = [9.0, 1.0, 1.0, 3.0].iter().flat_map(|mean| [*mean; BATCH]).collect();
        assert_eq!(truncation(&values), BATCH);
        assert_eq!((truncation(&[]), truncation(&[1.0; 4]), truncation(&[0.0; 20])), (0, 0, 0));
        // Values beyond the last whole batch are of none.
        assert_eq!(truncation(&[values, vec![99.0; 4]].concat()), BATCH);
    }

    fn record(warmup: &str) -> Record {
        let text = format!(
            "duration = '40 s'\nwarmup = '{warmup}'\n[topology]\nkind = 'cross'\n[[flow]]\n[[flow]]\nstart = '6 s'\n"
        );
        let source = Source { name: "test".to_owned(), text, sets: Vec::new() };
        let scenario = Scenario::read(source, Path::new("."), "test").unwrap();
        let campaign = Campaign { scenario, first_seed: 3, seeds: 1 };
        campaign.make(campaign.run(0), &campaign::simulate).unwrap()
    }

    #[test]
    fn a_run_that_finds_its_warmup_is_the_run_with_that_warmup() {
        let found = record("auto");
        assert!(found.warmup_s >= 6.1 && found.warmup_s <= 6.1 + 17.0, "after the last start: {}", found.warmup_s);
        let told = record(&format!("{} ns", (1e9 * found.warmup_s).round()));
        assert_eq!(found, told);
        assert_eq!(found.fingerprint, record("0 s").fingerprint, "what is measured changes nothing in the run");
    }
}
