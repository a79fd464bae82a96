//! Two-ray ground propagation: Friis below the cross-over distance, fourth power of the distance
//! beyond it.
//!
//! Source: T. S. Rappaport, "Wireless Communications", 2nd ed., eq. 4.1 and 4.52. The constants are
//! those of the 914 MHz WaveLAN radio in the simulations of the papers (the defaults of ns-2),
//! without system loss. The model has no fading, so that a distance determines the power.

/// Transmit power, in W.
pub const TRANSMIT_POWER_W: f64 = 0.281_838_15;
/// Lowest power at which a frame can be decoded, in W; the power at 250 m.
pub const DECODE_THRESHOLD_W: f64 = 3.652e-10;
/// Lowest power that is sensed as a busy medium, in W; the power at 550 m.
pub const SENSE_THRESHOLD_W: f64 = 1.559e-11;
/// Carrier frequency, in Hz.
pub const FREQUENCY_HZ: f64 = 914e6;
/// Antenna height above ground at both ends, in m.
pub const ANTENNA_HEIGHT_M: f64 = 1.5;
/// Propagation speed in m/s, rounded as in ns-2.
pub const SPEED_OF_LIGHT: f64 = 3e8;

/// Received power in W at `distance` metres from the sender, with antennas without gain.
pub fn received_power(distance: f64) -> f64 {
    let wavelength = SPEED_OF_LIGHT / FREQUENCY_HZ;
    let pi = core::f64::consts::PI;
    let crossover = 4.0 * pi * ANTENNA_HEIGHT_M * ANTENNA_HEIGHT_M / wavelength;
    if distance <= 0.0 {
        TRANSMIT_POWER_W
    } else if distance <= crossover {
        let m = wavelength / (4.0 * pi * distance);
        TRANSMIT_POWER_W * m * m
    } else {
        let h2 = ANTENNA_HEIGHT_M * ANTENNA_HEIGHT_M;
        let d2 = distance * distance;
        TRANSMIT_POWER_W * h2 * h2 / (d2 * d2)
    }
}

/// Largest distance in metres at which `threshold_w` is still received, for distances beyond the
/// cross-over.
pub fn range(threshold_w: f64) -> f64 {
    let h2 = ANTENNA_HEIGHT_M * ANTENNA_HEIGHT_M;
    libm::sqrt(libm::sqrt(TRANSMIT_POWER_W * h2 * h2 / threshold_w))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::power::dbm;

    #[test]
    fn received_powers_of_systems_2_3() {
        for (distance, expected_dbm) in [(200.0, -60.50), (400.0, -72.54), (600.0, -79.58)] {
            assert!((dbm(received_power(distance)) - expected_dbm).abs() < 0.005, "{distance} m");
        }
        assert!((dbm(DECODE_THRESHOLD_W) - -64.37).abs() < 0.005);
        assert!((dbm(SENSE_THRESHOLD_W) - -78.07).abs() < 0.005);
    }

    #[test]
    fn thresholds_are_250_and_550_metres() {
        assert!((range(DECODE_THRESHOLD_W) - 250.0).abs() < 0.1);
        assert!((range(SENSE_THRESHOLD_W) - 550.0).abs() < 0.1);
        assert!(received_power(249.0) >= DECODE_THRESHOLD_W && received_power(251.0) < DECODE_THRESHOLD_W);
        assert!(received_power(549.0) >= SENSE_THRESHOLD_W && received_power(551.0) < SENSE_THRESHOLD_W);
    }

    #[test]
    fn the_two_laws_meet_at_86_metres() {
        let (below, beyond) = (received_power(86.0), received_power(86.3));
        assert!((below / beyond - 1.0).abs() < 0.02);
    }
}
