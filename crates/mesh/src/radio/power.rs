//! Powers and ratios of powers, as plain numbers and in decibels.

/// Converts a power from W to dBm.
pub fn dbm(watts: f64) -> f64 {
    10.0 * libm::log10(watts * 1e3)
}

/// Converts a power from dBm to W.
pub fn watts(dbm: f64) -> f64 {
    ratio(dbm) * 1e-3
}

/// Converts a ratio from dB to a plain number.
pub fn ratio(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_dbm_are_a_watt() {
        assert!((dbm(1.0) - 30.0).abs() < 1e-12);
        assert!((watts(-60.0) - 1e-9).abs() < 1e-21);
        assert!((ratio(3.0) - 1.995_262_3).abs() < 1e-7);
    }
}
