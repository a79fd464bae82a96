//! Bit rates: the rate that is assumed if a dump has none, the rates of the simulator, and a
//! computed goodput for other rates.

use crate::field::dumps::{DataRate, mbps_of_mcs};
use std::fmt;
use std::str::FromStr;

/// Rates of 802.11b, Mbit/s.
const DSSS: [f64; 4] = [1.0, 2.0, 5.5, 11.0];
/// Rates of 802.11a and g, Mbit/s.
const OFDM: [f64; 8] = [6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0];
/// Highest MCS that is simulated. The rates up to it were compared with another simulator.
pub const HIGHEST_MCS: u8 = 7;

/// Rate of all links about which nothing is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rate {
    /// MCS of 802.11n with aggregates.
    Mcs(u8),
    /// Rate of 802.11b, a or g, Mbit/s.
    Legacy(f64),
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Mcs(mcs) => write!(f, "MCS {mcs}"),
            Rate::Legacy(mbps) => write!(f, "{mbps} Mbit/s"),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let text = text.trim();
        let expected = || {
            "expected \"MCS 0\" to \"MCS 7\" (802.11n), or a rate of 802.11b, a or g such as \"11 Mbit/s\" or \"54 Mbit/s\"".to_owned()
        };
        if let Some(mcs) = text.strip_prefix("MCS") {
            let mcs: u8 = mcs.trim().parse().map_err(|_| expected())?;
            return match mcs <= HIGHEST_MCS {
                true => Ok(Rate::Mcs(mcs)),
                false => Err(format!(
                    "MCS {mcs}: only rates up to MCS {HIGHEST_MCS} were validated against another simulator"
                )),
            };
        }
        let number = text.strip_suffix("Mbit/s").unwrap_or(text).trim().parse::<f64>().ok();
        let known = number.filter(|mbps| is_legacy(*mbps));
        known.map(Rate::Legacy).ok_or_else(expected)
    }
}

/// True for the rates of 802.11b, a and g.
pub fn is_legacy(mbps: f64) -> bool {
    DSSS.contains(&mbps) || OFDM.contains(&mbps)
}

/// MCS whose bit rate is nearest by ratio. `None` if no rate is within a factor of 1.5.
pub fn nearest_mcs(mbps: f64) -> Option<u8> {
    let distance = |mcs: &u8| (mbps_of_mcs(f64::from(*mcs)).unwrap_or(f64::NAN) / mbps).ln().abs();
    let best = (0..=HIGHEST_MCS).min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    (distance(&best) < 1.5_f64.ln()).then_some(best)
}

/// Goodput of bulk TCP over one hop at a bit rate, Mbit/s, if every frame arrives and no other node
/// sends. Each exchange of a data frame and its acknowledgement carries 1448 bytes of payload and
/// needs half an exchange for a TCP acknowledgement.
///
/// Times are in microseconds, from IEEE Std 802.11-2016: 802.11b 16.2 and 16.3 (DIFS 50, slot 20,
/// CWmin 31, long preamble), 802.11a 17.3 (DIFS 34, slot 9, CWmin 15). Later standards are computed
/// with aggregates of 16 frames, which is the size that they have when a window of TCP is queued.
pub fn goodput_mbps(rate: DataRate) -> f64 {
    const FRAME_BYTES: f64 = 1536.0;
    const ACK_BYTES: f64 = 88.0;
    const AGGREGATE: f64 = 16.0;
    let bits = |bytes: f64| 8.0 * bytes / rate.mbps;
    // The overhead is the deferral, half of the smallest window, SIFS and the acknowledgement. The
    // preamble is counted separately.
    let (overhead, preamble, frames) = match () {
        () if rate.has_aggregates => (43.0 + 67.5 + 16.0 + 32.0, 40.0, AGGREGATE),
        () if DSSS.contains(&rate.mbps) => (50.0 + 310.0 + 10.0 + 304.0, 192.0, 1.0),
        () => (34.0 + 67.5 + 16.0 + 28.0, 24.0, 1.0),
    };
    let exchange = |bytes: f64| overhead + preamble + frames * bits(bytes);
    8.0 * 1448.0 * frames / (exchange(FRAME_BYTES) + exchange(ACK_BYTES) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for text in ["MCS 0", "MCS 7", "11 Mbit/s", "5.5 Mbit/s", "54 Mbit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!("MCS3".parse(), Ok(Rate::Mcs(3)));
        for (text, why) in [("MCS 8", "MCS 8"), ("10 Mbit/s", "expected"), ("fast", "802.11b"), ("", "expected")] {
            assert!(text.parse::<Rate>().unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn a_rate_has_the_nearest_mcs_or_none() {
        for (mbps, mcs) in [
            (6.0, Some(0)),
            (6.5, Some(0)),
            (12.0, Some(1)),
            (18.0, Some(2)),
            (24.0, Some(3)),
            (36.0, Some(4)),
            (54.0, Some(5)),
            (72.2, Some(7)),
            (144.4, None),
            (1.0, None),
        ] {
            assert_eq!(nearest_mcs(mbps), mcs, "{mbps}");
        }
    }

    #[test]
    fn a_hop_carries_what_theory_and_practice_say() {
        let of = |mbps, has_aggregates| goodput_mbps(DataRate { mbps, has_aggregates });
        // Known maxima of TCP: about 5 Mbit/s at 11 (J. Jun, P. Peddabachagari, M. Sichitiu, "Theoretical Maximum Throughput of IEEE 802.11 and its
        // Applications", NCA 2003: 6.1 for UDP with the long preamble), 24 at 54 Mbit/s.
        assert!((4.3..5.5).contains(&of(11.0, false)), "{}", of(11.0, false));
        assert!((21.0..28.0).contains(&of(54.0, false)), "{}", of(54.0, false));
        assert!((4.3..5.4).contains(&of(6.0, false)), "{}", of(6.0, false));
        for mbps in [65.0, 130.0, 433.3] {
            assert!((0.5..0.95).contains(&(of(mbps, true) / mbps)), "{mbps}: {}", of(mbps, true));
        }
    }
}
