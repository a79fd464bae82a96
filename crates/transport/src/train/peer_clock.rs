//! Clock of a peer, as its time stamps show it. RFC 7323, section 5.4, leaves the unit to the peer,
//! from 1 ms to 1 s. Hosts use 1 ms, 4 ms or 10 ms, and this project 1 us.
//!
//! The detected unit is the one of these that fits two time stamps some time apart. A clock that
//! fits none, or whose unit is above 4 ms, cannot be used to measure delays.

use meshpace_core::Time;

/// Known units of a clock, in seconds.
const UNITS: [f64; 4] = [1e-6, 1e-3, 4e-3, 10e-3];
/// Coarsest unit that can be used, in seconds.
const COARSEST: f64 = 4e-3;
/// Least time between the two time stamps that determine the unit, in seconds.
const SPAN: f64 = 0.15;
/// Tolerated relative deviation from a unit. The time stamps are from ACKs, whose delays vary in
/// the meantime.
const TOLERANCE: f64 = 0.35;
/// Number of failed attempts after which the clock is not used.
const ATTEMPTS: u32 = 5;

/// Meaning of a time stamp.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reading {
    /// Time of the peer, in seconds since an arbitrary start.
    At(f64),
    /// The unit is not known yet.
    Unknown,
    /// The clock cannot be used.
    Useless,
}

/// State of the detection.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerClock {
    /// First time stamp, and when it arrived.
    first: Option<(Time, u32)>,
    /// Unit of the clock in seconds; `None` until it is known.
    unit: Option<f64>,
    /// Last time stamp, and the time in seconds that it stands for.
    last: (u32, f64),
    misfits: u32,
}

impl PeerClock {
    /// Reads the peer's clock from `stamp`, which arrived at `now`.
    pub fn read(&mut self, now: Time, stamp: Option<u32>) -> Reading {
        let Some(stamp) = stamp.filter(|_| self.misfits < ATTEMPTS) else { return Reading::Useless };
        let Some((at, first)) = self.first else {
            self.first = Some((now, stamp));
            return Reading::Unknown;
        };
        if let Some(unit) = self.unit {
            // Time stamps wrap; those of successive ACKs are close to each other.
            let (last, time) = self.last;
            self.last = (stamp, time + f64::from(stamp.wrapping_sub(last) as i32) * unit);
            return Reading::At(self.last.1);
        }
        let elapsed = now.since(at).as_secs_f64();
        if elapsed < SPAN {
            return Reading::Unknown;
        }
        let tick = elapsed / f64::from(stamp.wrapping_sub(first).max(1));
        let fits = |unit: &&f64| (tick / **unit - 1.0).abs() < TOLERANCE;
        match UNITS.iter().find(fits) {
            Some(&unit) if unit <= COARSEST => {
                self.unit = Some(unit);
                self.last = (stamp, 0.0);
                Reading::At(0.0)
            }
            _ => {
                self.misfits += 1;
                self.first = Some((now, stamp));
                Reading::Unknown
            }
        }
    }

    /// Excess of the mean reading over the least reading that the unit of the clock alone causes,
    /// in seconds.
    pub fn spread(&self) -> f64 {
        self.unit.unwrap_or(0.0) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn the_unit_is_found_and_stamps_wrap() {
        for (unit_us, start) in [(1, u32::MAX - 5_000), (1_000, 7), (4_000, u32::MAX - 3)] {
            let mut clock = PeerClock::default();
            let stamp = |at: u64| start.wrapping_add((at * 1_000 / unit_us) as u32);
            assert_eq!(clock.read(ms(0), Some(stamp(0))), Reading::Unknown);
            assert_eq!(clock.read(ms(100), Some(stamp(100))), Reading::Unknown);
            assert_eq!(clock.read(ms(200), Some(stamp(200))), Reading::At(0.0));
            let Reading::At(time) = clock.read(ms(1_200), Some(stamp(1_200))) else { panic!("{clock:?}") };
            assert!((time - 1.0).abs() < 1e-9, "{time}");
            // A late ACK's stamp may be older than the one before.
            let Reading::At(time) = clock.read(ms(1_210), Some(stamp(800))) else { panic!("{clock:?}") };
            assert!((time - 0.6).abs() < 1e-9, "{time}");
            assert_eq!(clock.spread(), unit_us as f64 * 1e-6 / 2.0);
        }
    }

    #[test]
    fn what_fits_nothing_or_is_coarse_is_useless() {
        for ticks_per_s in [0, 1, 100, 30_000] {
            let mut clock = PeerClock::default();
            let reading = (0..20_u64).map(|k| clock.read(ms(200 * k), Some((ticks_per_s * k / 5) as u32))).last();
            assert_eq!(reading, Some(Reading::Useless), "{ticks_per_s}");
        }
        assert_eq!(PeerClock::default().read(ms(0), None), Reading::Useless);
    }
}
