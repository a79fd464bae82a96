//! A mean over runs as people read it: with its interval, with "none" if a starved flow has no
//! value, and with the number of runs that have one.

use super::{LEAST, LEVEL};
use crate::statistics::{Estimate, estimate};

/// A mean over runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// Estimate over the runs that have a number. The half width is NaN with fewer than three of
    /// them.
    pub numbers: Estimate,
    /// Number of runs whose value is "none". It is stored as infinite, above every number.
    pub none: usize,
    /// Number of runs without a value.
    pub missing: usize,
}

impl Mean {
    /// Mean of one value per run. A value is infinite for "none" and NaN if it was not measured.
    /// `None` if no run has a value.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let numbers: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let none = values.iter().filter(|value| value.is_infinite()).count();
        let found = estimate(&numbers, LEVEL);
        let half_width = if numbers.len() < LEAST { f64::NAN } else { found.half_width };
        let missing = values.len() - none - numbers.len();
        (none + numbers.len() > 0).then_some(Mean { numbers: Estimate { half_width, ..found }, none, missing })
    }

    /// Mean of all runs. Infinite if one of them has "none".
    pub fn mean(&self) -> f64 {
        if self.none > 0 { f64::INFINITY } else { self.numbers.mean }
    }

    /// The mean in another unit: all numbers are multiplied by `scale`.
    pub fn times(&self, scale: f64) -> Mean {
        let Estimate { mean, deviation, half_width, count } = self.numbers;
        let numbers =
            Estimate { mean: mean * scale, deviation: deviation * scale, half_width: half_width * scale, count };
        Mean { numbers, ..*self }
    }

    /// Text such as "182.4 ± 1.0", "none", "none in 3 of 10" or "182.4 ± 1.0 (in 4 of 10)".
    pub fn told(&self, digits: impl Fn(f64) -> String) -> String {
        let runs = self.none + self.missing + self.numbers.count;
        if self.none > 0 {
            let share = if self.none == runs { String::new() } else { format!(" in {} of {runs}", self.none) };
            return format!("none{share}");
        }
        let share = if self.missing == 0 { String::new() } else { format!(" (in {} of {runs})", self.numbers.count) };
        let mean = digits(self.numbers.mean);
        match self.numbers.half_width.is_finite() {
            true => format!("{mean} ± {}{share}", digits(self.numbers.half_width)),
            false => format!("{mean}{share}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(values: &[f64]) -> String {
        Mean::of(values).map_or("-".to_owned(), |mean| mean.told(|value| format!("{value:.1}")))
    }

    #[test]
    fn none_outranks_numbers_and_what_was_not_measured_is_told() {
        assert_eq!(told(&[]), "-");
        assert_eq!(told(&[f64::NAN]), "-");
        assert_eq!(told(&[2.0, 3.0]), "2.5", "two values have no interval");
        // Student's t for three values is 4.303; the deviation of 1, 2, 3 is 1.
        assert_eq!(told(&[1.0, 2.0, 3.0]), "2.0 ± 2.5");
        assert_eq!(told(&[1.0, f64::INFINITY, f64::NAN]), "none in 1 of 3");
        assert_eq!(told(&[f64::INFINITY; 2]), "none");
        assert_eq!(told(&[1.0, f64::NAN, f64::NAN]), "1.0 (in 1 of 3)");
        assert_eq!(Mean::of(&[1.0, f64::INFINITY]).map(|mean| mean.mean()), Some(f64::INFINITY));
    }
}
