//! Neighbours that do not hear a train, and what it leaves them once they have been felt.
//!
//! Up to three hops a train at the floor leaves gaps of 3 %. A neighbour that is hidden from its nodes, whose route breaks, finds no gap in which
//! to search for another one, and as long as it has none it causes no delay to which the train could yield: it stays silent. Whoever shares
//! a path needs no more than half of it. So once the law has asked for two floors, which an empty path does not bring about, and then for
//! hardly more than one, the interval is two floors at least for some seconds. While a neighbour is felt the law says what it needs.
//!
//! Frames that the MAC repeats look the same, a delay now and then. Over a chain without RTS/CTS it is a single train in hundreds that asks for little more than two
//! floors; a neighbour delays several, or one by more. And a neighbour that comes back brings the law's own interval to two floors, which repeated frames do not:
//! when that has not happened, the hold was in vain, and signs are not heeded for a time that doubles.
//!
//! ```text
//! law  += (1 - exp(-0.3 dt)) (log asked - law)     asked: what the law asks for, floors
//! signs = signs exp(-dt / 2 s) + log asked         the latter if asked >= company
//! hold  for 30 s once asked >= company and signs >= 1.3 log company, and as long as law >= log company
//! deaf  for 240 s 2^k after holds in vain, of which k in a row were before
//! I    >= company floors  while it holds and asked has been below 1.2 for 1 s
//! ```

/// How long it holds, and after the first hold in vain does not, seconds.
const HOLD_S: f64 = 30.0;
const DEAF_S: f64 = 240.0;
/// The most that the latter is doubled: to 45 days.
const DOUBLINGS: u32 = 14;
/// Time in which signs are forgotten, seconds, and how many of `company` floors are enough.
const SIGNS_S: f64 = 2.0;
const ENOUGH: f64 = 1.3;
/// Nobody is felt while the law asks for less, floors, and has for so many seconds.
const SILENT: f64 = 1.2;
const SILENT_S: f64 = 1.0;

/// Who has been felt.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Company {
    /// The interval that is left to others, floors; 1: none.
    floors: f64,
    /// Logarithm of the interval that the law alone would have come to, floors.
    law: f64,
    /// Logarithms of what it asked for lately, where that was enough for company, floors.
    signs: f64,
    /// Time for which it still holds, and for which it does not heed a sign, seconds.
    left_s: f64,
    deaf_s: f64,
    /// Holds in vain, in a row.
    vain: u32,
    /// Time for which nobody has been felt, seconds.
    silent_s: f64,
}

impl Company {
    /// Nobody has been felt.
    pub fn new(floors: f64) -> Company {
        Company { floors, law: 0.0, signs: 0.0, left_s: 0.0, deaf_s: 0.0, vain: 0, silent_s: 0.0 }
    }

    /// For the last `dt` seconds the law has asked for an interval of `asked` floors, 1 or more, of which a share of `weight` counts.
    pub fn on_sample(&mut self, dt: f64, asked: f64, weight: f64) {
        self.law += weight * (libm::log(asked) - self.law);
        self.silent_s = if asked < SILENT { self.silent_s + dt } else { 0.0 };
        self.deaf_s -= dt;
        self.signs *= libm::exp(-dt / SIGNS_S);
        if asked >= self.floors {
            self.signs += libm::log(asked);
        }
        if self.law >= libm::log(self.floors) {
            (self.left_s, self.vain) = (HOLD_S, 0);
        } else if self.left_s > 0.0 {
            self.left_s -= dt;
            if self.left_s <= 0.0 {
                self.deaf_s = DEAF_S * f64::from(1_u32 << self.vain);
                self.vain = (self.vain + 1).min(DOUBLINGS);
            }
        } else if asked >= self.floors && self.signs >= ENOUGH * libm::log(self.floors) && self.deaf_s <= 0.0 {
            self.left_s = HOLD_S;
        }
    }

    /// The least interval, floors.
    pub fn least(&self) -> f64 {
        if self.left_s > 0.0 && self.silent_s > SILENT_S { self.floors } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many half seconds those in which two floors are the least, while the law asks for `asked`.
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
