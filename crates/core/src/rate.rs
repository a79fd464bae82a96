//! Bit rates, and the air time of a number of bytes at a rate.

use crate::time::Duration;
use core::fmt;

/// Bit rate in bit/s. The value must not be zero where air time is computed from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(pub u64);

impl Rate {
    /// Builds a rate from bit/s.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// Builds a rate from whole Mbit/s.
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps * 1_000_000)
    }

    /// Returns the rate in bit/s as a floating-point number, for estimators.
    #[inline]
    pub fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }

    /// Time that `bytes` take at this rate, rounded up to a whole nanosecond.
    ///
    /// The result is exact at 1, 2 and 5 Mbit/s. At 5.5 and 11 Mbit/s, odd sizes are rounded up by
    /// less than 1 ns.
    #[inline]
    pub const fn time_for(self, bytes: u32) -> Duration {
        Duration((bytes as u64 * 8 * 1_000_000_000).div_ceil(self.0))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bps if bps >= 1_000_000 => write!(f, "{} Mbit/s", bps as f64 / 1e6),
            bps if bps >= 1_000 => write!(f, "{} kbit/s", bps as f64 / 1e3),
            bps => write!(f, "{bps} bit/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn air_time_of_the_reference_sizes() {
        // ns-2 reference, items 8 and 9: 1534 bytes at 2 Mbit/s take 6136 us, an RTS of 20 bytes at
        // 1 Mbit/s 160 us.
        assert_eq!(Rate::from_mbps(2).time_for(1534), Duration::from_micros(6136));
        assert_eq!(Rate::from_mbps(1).time_for(20), Duration::from_micros(160));
        assert_eq!(Rate::from_mbps(11).time_for(11), Duration::from_micros(8));
    }
}
