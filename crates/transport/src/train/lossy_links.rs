//! Detection of links that lose so many frames that the delay of a train is mostly caused by
//! retransmissions of the MAC.
//!
//! The MAC retransmits a frame that was not acknowledged, each time after a longer backoff. For the
//! two ends this is delay, and looks like a queue. A sender that yields to it waits for something
//! that waiting does not end. Arun, Alizadeh and Balakrishnan (SIGCOMM 2022) show that senders that
//! bound delay must starve in some cases where part of the delay is not caused by them. Where links
//! lose that many frames, the MAC gives up on some of them, and segments do not arrive. Quiet
//! trains among themselves lose fewer: 8 % on a grid, and almost none elsewhere
//! (docs/quiet-trains.md). So the share of lost segments tells the two cases apart:
//!
//! ```text
//! p    += (1 - exp(-n / 256)) (l / n - p)      after a train of n segments, l of them lost
//! active from p > 0.135 until p < 0.12
//! ```
//!
//! At most two in a row count, because a route that fails takes the rest of a train, which says
//! nothing about its links. While the detector is active, the control law tolerates `tolerance`
//! times the delay, as beside a competitor (`competition`). Links that lose fewer segments cannot
//! be told from queues. A neighbour whose window fills queues can make a train lose as many: beside
//! NewReno over a chain, quiet trains then hold 16 % instead of 13 %.

/// Number of segments after which 1 - 1/e of the history is forgotten.
const MEMORY: f64 = 256.0;
/// Share of lost segments above which links count as lossy.
const BEGINS: f64 = 0.135;
/// Share of lost segments below which links no longer count as lossy.
const ENDS: f64 = 0.12;

/// State of the detector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LossyLinks {
    /// Factor of the tolerated delay while the detector is active, 1 or more.
    tolerance: f64,
    /// Moving average p of the share of lost segments.
    share: f64,
    active: bool,
}

impl LossyLinks {
    /// Creates a detector that has seen no loss.
    pub fn new(tolerance: f64) -> LossyLinks {
        LossyLinks { tolerance, share: 0.0, active: false }
    }

    /// A train of `sent` segments is over. `lost` of them are missing, of those in a row two at
    /// most.
    pub fn on_train(&mut self, sent: u32, lost: u32) {
        if sent == 0 {
            return;
        }
        let sent = f64::from(sent);
        self.share += (1.0 - libm::exp(-sent / MEMORY)) * (f64::from(lost) / sent - self.share);
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

    /// Number of trains of 8 segments, `lost` of them missing, until the tolerance is `expected`.
    fn trains_until(links: &mut LossyLinks, lost: u32, expected: f64) -> usize {
        (1..1000)
            .find(|_| {
                links.on_train(8, lost);
                links.tolerance() == expected
            })
            .unwrap()
    }

    #[test]
    fn it_begins_with_many_losses_and_ends_without() {
        let mut links = LossyLinks::new(8.0);
        // p = (1 - exp(-k/32)) / 4 after k trains that lose a quarter: 0.1345 after 24 and 0.1355 after 25, by ln(1 - 0.54) = -0.7765.
        assert_eq!(trains_until(&mut links, 2, 8.0), 25);
        // p = 0.1355 exp(-k/32): 0.1234 after three, 0.1196 after four.
        assert_eq!(trains_until(&mut links, 0, 1.0), 4);
    }

    #[test]
    fn one_in_twelve_as_on_a_grid_is_no_sign_of_it() {
        let mut links = LossyLinks::new(8.0);
        for train in 0..10_000 {
            links.on_train(4, u32::from(train % 3 == 0));
            assert_eq!(links.tolerance(), 1.0);
        }
    }

    #[test]
    fn a_train_that_a_route_took_counts_little() {
        let mut links = LossyLinks::new(8.0);
        // Every other train of 16 is lost from its third segment on: fourteen in a row, which count as two.
        for train in 0..1000 {
            links.on_train(16, if train % 2 == 0 { 2 } else { 0 });
            assert_eq!(links.tolerance(), 1.0);
        }
    }
}
