//! Detection of senders on the path that fill queues until they overflow. Beside them, a sender
//! that yields to delay alone would starve.
//!
//! Copa (Arun and Balakrishnan, NSDI 2018, section 2.2) switches to a competitive mode when the
//! queue has not been nearly empty for some round trips. That sign does not work for quiet trains
//! over several hops (trains: segments sent an interval apart, see the head of `train`). Where two
//! flows cross, the least delay of a train comes as near to the base beside NewReno as among six
//! quiet trains on a grid (docs/quiet-trains.md has the figures).
//!
//! Loss is the sign that is used here. Quiet trains among themselves keep delays short, and few
//! trains lose a segment. Beside a sender whose window grows until something is lost, most trains
//! lose some. Trains are counted and not segments, because a route that fails takes many segments
//! of one train.
//!
//! ```text
//! s    += (x - s) / 8        after a train, x = 1 if something of it is missing and 0 if not
//! active from s > 0.45 until s < 0.15
//! ```
//!
//! While the detector is active, the control law tolerates `tolerance` times the delay. For a train
//! that is alone on the path this changes nothing: without delay the interval is at its floor,
//! whatever is tolerated. Where many quiet trains lose segments to each other, as on a grid, they
//! take each other for competitors, which costs them fairness.

/// Weight of the newest train in the moving average s.
const WEIGHT: f64 = 1.0 / 8.0;
/// Share of trains with losses above which there is a competitor.
const BEGINS: f64 = 0.45;
/// Share of trains with losses below which there is no competitor any more.
const ENDS: f64 = 0.15;

/// State of the detector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Competition {
    /// Factor of the tolerated delay while the detector is active, 1 or more.
    tolerance: f64,
    /// Moving average s: share of the trains with losses.
    share: f64,
    active: bool,
}

impl Competition {
    /// Creates a detector that has seen no competitor.
    pub fn new(tolerance: f64) -> Competition {
        Competition { tolerance, share: 0.0, active: false }
    }

    /// A train is over; it was `lossy` if something of it is missing.
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

    /// Number of trains in a row, all of them `lossy` or none, until the tolerance is `expected`.
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
