//! Detection of others on the path who fill queues until they overflow, so that a sender that yields to delay alone would starve.
//!
//! Copa (Arun and Balakrishnan, NSDI 2018, section 2.2) switches to a competitive mode when the queue has not been nearly empty
//! for some round trips (quiet trains: a sender of ours that spaces its segments, see the head of `train`). That sign does not hold over several hops: where two flows cross, the least delay of a train comes as near
//! to the base beside NewReno as among six quiet trains on a grid (docs/quiet-trains.md has the figures). Loss is the sign that is used here:
//! quiet trains among themselves keep delays short and lose a segment in few trains; beside a sender whose window grows until something is lost,
//! most trains lose some. Trains are counted and not segments, because a route that fails takes many segments of one train.
//!
//! ```text
//! s    += (x - s) / 8        after a train, x = 1 if something of it is missing and 0 if not
//! active from s > 0.45 until s < 0.15
//! ```
//!
//! While it is active the control law tolerates `tolerance` times the delay. Alone on the path that changes nothing: without delay
//! the interval is at its floor whatever is tolerated. Where many quiet trains lose segments to each other, as on a grid, they take each
//! other for competitors: it costs them fairness.

/// Weight of the newest train in the moving average s.
const WEIGHT: f64 = 1.0 / 8.0;
/// The share of trains with losses above which somebody competes.
const BEGINS: f64 = 0.45;
/// The share below which nobody does any more.
const ENDS: f64 = 0.15;

/// State of the detection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Competition {
    /// Factor of the delay that is tolerated while it is active, 1 or more.
    tolerance: f64,
    /// Moving average s: share of the trains with losses.
    share: f64,
    active: bool,
}

impl Competition {
    /// State at the start: nobody competes.
    pub fn new(tolerance: f64) -> Competition {
        Competition { tolerance, share: 0.0, active: false }
    }

    /// A train is over; something of it is missing if it was `lossy`.
    pub fn on_train(&mut self, lossy: bool) {
        self.share += WEIGHT * (f64::from(u8::from(lossy)) - self.share);
        self.active = self.share > if self.active { ENDS } else { BEGINS };
    }

    /// Factor of the delay that the control law tolerates now.
    pub fn tolerance(&self) -> f64 {
        if self.active { self.tolerance } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of trains in a row, all `lossy` or none, until the tolerance is `expected`.
    fn trains_until(competition: &mut Competition, lossy: bool, expected: f64) -> usize {
        (1..100)
            .find(|_| {
                competition.on_train(lossy);
                competition.tolerance() == expected
            })
            .unwrap()
    }

    #[test]
    fn it_begins_with_losses_and_ends_without() {
        let mut competition = Competition::new(8.0);
        // s = 1 - (7/8)^k: 0.414 after four trains, 0.487 after five.
        assert_eq!(trains_until(&mut competition, true, 8.0), 5);
        // s = 0.487 (7/8)^k: 0.167 after eight, 0.146 after nine.
        assert_eq!(trains_until(&mut competition, false, 1.0), 9);
    }

    #[test]
    fn a_train_in_four_that_loses_something_is_no_competition() {
        let mut competition = Competition::new(8.0);
        for train in 0..400 {
            competition.on_train(train % 4 == 0);
            assert_eq!(competition.tolerance(), 1.0);
        }
    }
}
