//! Rules of every summary for people: means are shown with their intervals, and a candidate that
//! ties or starves a flow is not called best.

mod best;
mod mean;

pub use best::{Candidate, best, is_clear, p_of_pairs};
pub use mean::Mean;

/// Confidence level of the intervals.
pub const LEVEL: f64 = 0.95;
/// Explanation of the sign ± in numbers for people.
pub const PLUS_MINUS: &str = "±: half the width of the 95 % confidence interval";
/// Explanation for people of how comparisons decide whether a difference is clear.
pub const CORRECTED: &str = "A difference is called clear only after Holm's correction for the number of metrics, so that an interval which excludes 0 may not be enough: where nothing differs, at most 1 of 20 comparisons calls any metric clear.";
/// Number of runs below which an interval would say nothing: Student's t for two values is 12.7.
pub const LEAST: usize = 3;

/// Largest of several values.
pub fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Mean of several values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Median of several values. `None` if there are none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}
