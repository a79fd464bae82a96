//! Variation of the last N samples relative to their mean.
//!
//! AP05, section 4.2, uses the coefficient of variation with divisor N - 1. The agent that the
//! authors of AP05 released uses the mean absolute deviation. TPA, section 5.3, adds a factor K. It
//! multiplies the samples where equation 3 is taken as printed; the numbers of that paper follow if
//! it multiplies the deviations.

use alloc::vec::Vec;

/// The last N samples. A new sample overwrites the oldest one.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    samples: Vec<f64>,
    /// Index at which the next sample is written once `samples` is full.
    oldest: usize,
    capacity: usize,
}

impl History {
    /// Creates an empty history of at most `capacity` samples; `capacity` is 2 or more.
    pub fn new(capacity: usize) -> History {
        History { samples: Vec::with_capacity(capacity), oldest: 0, capacity }
    }

    /// Adds a sample and drops the oldest one if the history is full.
    pub fn push(&mut self, sample: f64) {
        if self.samples.len() < self.capacity {
            self.samples.push(sample);
        } else {
            self.samples[self.oldest] = sample;
            self.oldest = if self.oldest + 1 == self.capacity { 0 } else { self.oldest + 1 };
        }
    }

    /// The stored samples, in no particular order.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }
}

/// Arithmetic mean; 0 if there are no samples.
pub fn mean(samples: &[f64]) -> f64 {
    if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / samples.len() as f64 }
}

/// Coefficient of variation: sample standard deviation (divisor N - 1) over mean. It is 0 for fewer
/// than two samples and for a mean of 0.
pub fn coefficient_of_variation(samples: &[f64]) -> f64 {
    scaled_coefficient_of_variation(samples, 1.0)
}

/// Coefficient of variation with every sample, but not the mean, multiplied by `k` (TPA, section
/// 5.3, equation 3).
pub fn scaled_coefficient_of_variation(samples: &[f64], k: f64) -> f64 {
    let mean = mean(samples);
    if samples.len() < 2 || mean == 0.0 {
        return 0.0;
    }
    let squares: f64 = samples.iter().map(|x| (k * x - mean) * (k * x - mean)).sum();
    libm::sqrt(squares / (samples.len() - 1) as f64) / mean
}

/// Mean absolute deviation (divisor N) over mean. It is 0 without samples and for a mean of 0.
pub fn relative_absolute_deviation(samples: &[f64]) -> f64 {
    scaled_relative_absolute_deviation(samples, 1.0)
}

/// Relative mean absolute deviation with every sample, but not the mean, multiplied by `k`.
pub fn scaled_relative_absolute_deviation(samples: &[f64], k: f64) -> f64 {
    let mean = mean(samples);
    if mean == 0.0 {
        return 0.0;
    }
    let deviations: f64 = samples.iter().map(|x| libm::fabs(k * x - mean)).sum();
    deviations / samples.len() as f64 / mean
}
