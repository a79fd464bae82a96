//! The clock of a peer, as its time stamps show it: RFC 7323, section 5.4, leaves the unit to the peer, from 1 ms to 1 s; hosts
//! have 1 ms, 4 ms or 10 ms, and this project 1 us.
//!
//! The unit is the one of these that two stamps of some distance are nearest to. A clock that fits none, or whose unit is
//! above 4 ms, tells nothing of delays.

use meshpace_core::Time;

/// Units, seconds.
const UNITS: [f64; 4] = [1e-6, 1e-3, 4e-3, 10e-3];
/// The largest that is of use.
const COARSEST: f64 = 4e-3;
/// The least time between two stamps that tell the unit, seconds.
const SPAN: f64 = 0.15;
/// Deviation from a unit that a clock may show: stamps are those of ACKs, whose delays vary meanwhile.
const TOLERANCE: f64 = 0.35;
/// Number of times that a clock may fit no unit.
const ATTEMPTS: u32 = 5;

/// Meaning of a time stamp.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reading {
    /// The peer's time, seconds from a beginning of its own.
    At(f64),
    /// Nothing yet.
    Unknown,
    /// Nothing ever.
    Useless,
}

/// The clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerClock {
    /// The first stamp, and when it came.
    first: Option<(Time, u32)>,
    /// Seconds.
    unit: Option<f64>,
    /// The last stamp, and the time that it stands for.
    last: (u32, f64),
    misfits: u32,
}

impl PeerClock {
    /// Reading of the peer's clock from `stamp`, which came `now`.
    pub fn read(&mut self, now: Time, stamp: Option<u32>) -> Reading {
        let Some(stamp) = stamp.filter(|_| self.misfits < ATTEMPTS) else { return Reading::Useless };
        let Some((at, first)) = self.first else {
            self.first = Some((now, stamp));
            return Reading::Unknown;
        };
        if let Some(unit) = self.unit {
            // Stamps wrap; those of ACKs are near each other.
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

    /// Excess of the mean of readings over their least that comes from their unit alone, seconds.
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
