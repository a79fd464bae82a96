//! Detection of neighbours that are hidden from the sender, and the share of the path that they are
//! left after they were noticed.
//!
//! Up to three hops, a train at the floor (the least interval) leaves gaps of 3 %. A neighbour may
//! be hidden from the nodes of the train. If its route breaks, it finds no gap in which to search
//! for another one. Without a route it causes no delay to which the train could yield, so that it
//! stays silent. A sender that shares a path needs no more than half of it. So the detector waits
//! until the control law has asked for two floors, which an empty path does not cause, and then for
//! hardly more than one. The interval is then at least two floors for some seconds: a hold. While a
//! neighbour is active, the law itself follows the neighbour's needs.
//!
//! Frames that the MAC retransmits look the same: an occasional delay. Over a chain without
//! RTS/CTS, one train in hundreds asks for little more than two floors. A neighbour delays several
//! trains, or one by more. A neighbour that comes back also brings the law's own interval to two
//! floors, which retransmitted frames do not. If that has not happened during a hold, the hold
//! failed, and signs are ignored for a time that doubles with each failure.
//!
//! ```text
//! law  += (1 - exp(-0.3 dt)) (log asked - law)  asked: interval that the law asks for, in floors
//! signs = signs exp(-dt / 2 s) + log asked      the second term only if asked >= company
//! hold    begins when asked >= company and signs >= 1.3 log company, and lasts 30 s;
//!         starts anew while law >= log company
//! ignore  signs are ignored for 240 s 2^k after a failed hold that follows k failed holds in a row
//! I    >= company floors  during a hold, once asked has been below 1.2 for 1 s
//! ```

/// Duration of a hold, and time for which signs are ignored after the first failed hold, in
/// seconds.
const HOLD_S: f64 = 30.0;
const IGNORE_S: f64 = 240.0;
/// Largest number of doublings of that time: up to 45 days.
const DOUBLINGS: u32 = 14;
/// Time constant with which signs are forgotten, in seconds, and the sum of signs that is enough,
/// as a multiple of log `company`.
const SIGNS_S: f64 = 2.0;
const ENOUGH: f64 = 1.3;
/// No neighbour is noticed while the law asks for less than this multiple of the floor, and has
/// done so for this time in seconds.
const SILENT: f64 = 1.2;
const SILENT_S: f64 = 1.0;

/// Detector for neighbours that are hidden from the sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Company {
    /// Least interval during a hold, in floors; 1 turns the detector off.
    floors: f64,
    /// Logarithm of the interval, in floors, that the law alone would have reached.
    law: f64,
    /// Decaying sum of the logarithms of intervals that the law asked for, of those of at least
    /// `floors` floors.
    signs: f64,
    /// Remaining time of the hold, and remaining time for which signs are ignored, in seconds.
    left_s: f64,
    ignore_s: f64,
    /// Number of failed holds in a row.
    failed_holds: u32,
    /// Time since the law last asked for an interval that shows a neighbour, in seconds.
    silent_s: f64,
}

impl Company {
    /// Creates a detector that has noticed no neighbour.
    pub fn new(floors: f64) -> Company {
        Company { floors, law: 0.0, signs: 0.0, left_s: 0.0, ignore_s: 0.0, failed_holds: 0, silent_s: 0.0 }
    }

    /// Processes a sample: for the last `dt` seconds the law has asked for an interval of `asked`
    /// floors, 1 or more. The average takes it with a share of `weight`.
    pub fn on_sample(&mut self, dt: f64, asked: f64, weight: f64) {
        self.law += weight * (libm::log(asked) - self.law);
        self.silent_s = if asked < SILENT { self.silent_s + dt } else { 0.0 };
        self.ignore_s -= dt;
        self.signs *= libm::exp(-dt / SIGNS_S);
        if asked >= self.floors {
            self.signs += libm::log(asked);
        }
        if self.law >= libm::log(self.floors) {
            (self.left_s, self.failed_holds) = (HOLD_S, 0);
        } else if self.left_s > 0.0 {
            self.left_s -= dt;
            if self.left_s <= 0.0 {
                self.ignore_s = IGNORE_S * f64::from(1_u32 << self.failed_holds);
                self.failed_holds = (self.failed_holds + 1).min(DOUBLINGS);
            }
        } else if asked >= self.floors && self.signs >= ENOUGH * libm::log(self.floors) && self.ignore_s <= 0.0 {
            self.left_s = HOLD_S;
        }
    }

    /// Least interval that is required now, in floors.
    pub fn least(&self) -> f64 {
        if self.left_s > 0.0 && self.silent_s > SILENT_S { self.floors } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts, of `halves` half seconds in which the law asks for `asked`, those in which two
    /// floors are the least interval.
    fn held(company: &mut Company, halves: u32, asked: f64) -> u32 {
        let weight = 1.0 - libm::exp(-0.15);
        (0..halves)
            .map(|_| {
                company.on_sample(0.5, asked, weight);
                u32::from(company.least() == 2.0)
            })
            .sum()
    }

    #[test]
    fn a_single_sign_holds_for_half_a_minute_and_the_next_ones_ever_more_seldom() {
        let mut company = Company::new(2.0);
        // The sign, 1 s of doubt, the rest of 30 s.
        assert_eq!(held(&mut company, 1, 3.0), 0);
        assert_eq!(held(&mut company, 100, 1.0), 57);
        // A sign each 5 s for an hour: holds of 30 s begin 240, 480 and 960 s after the one before has ended, at most 5 s late, and none after
        // another 1920 s. Of the ten half seconds from a sign to the next one seven count; at the edges one sign more or less.
        let held: u32 = (0..720).map(|_| held(&mut company, 1, 3.0) + held(&mut company, 9, 1.0)).sum();
        assert!((3 * 35..=3 * 49).contains(&held), "{held} half seconds");
    }

    #[test]
    fn a_train_that_is_hardly_late_is_no_sign_and_two_are_if_they_are_close() {
        // log 2.2 = 0.79 is below 1.3 log 2 = 0.90; with another one 0.5 s before it is 0.79 (1 + exp(-0.25)) = 1.40, and 5 s before 0.79 (1 + exp(-2.5)) = 0.85.
        let lasting = |between: u32| {
            let mut company = Company::new(2.0);
            held(&mut company, 1, 2.2);
            held(&mut company, between, 1.0);
            held(&mut company, 1, 2.2);
            held(&mut company, 100, 1.0)
        };
        assert_eq!((lasting(0), lasting(9)), (57, 0));
    }

    #[test]
    fn who_comes_back_is_waited_for_again() {
        let mut company = Company::new(2.0);
        for _ in 0..20 {
            // 20 s of three floors bring the law to two of them; then the neighbour is gone.
            assert_eq!(held(&mut company, 40, 3.0), 0);
            let held = held(&mut company, 120, 1.0);
            // The law is above two floors for another log(log 3/log 2)/0.3 = 1.5 s, and 1 s is doubt: 30.5 s.
            assert!((60..=62).contains(&held), "{held} half seconds");
        }
    }

    #[test]
    fn one_floor_is_no_rule() {
        let mut company = Company::new(1.0);
        held(&mut company, 40, 3.0);
        held(&mut company, 10, 1.0);
        assert_eq!(company.least(), 1.0);
    }
}
