//! Theoretical saturation throughput of one cell: every station always has a frame for the same
//! receiver.
//!
//! Source: G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function",
//! IEEE JSAC 18(3), 2000. A station transmits in a slot with probability tau. A transmission
//! collides with probability p = 1 - (1 - tau)^(n-1), independently of what happened before; n is
//! the number of stations (equations 7 and 9). The throughput follows from the length and the
//! payload of a slot (equation 13).
//!
//! The standard differs from the paper's Markov chain in three points. Each has a published
//! refinement:
//! - A frame is given up after R attempts (H. Wu et al., "Performance of reliable transport
//!   protocol over IEEE 802.11 wireless LAN: analysis and enhancement", INFOCOM 2002).
//! - Backoff counters stand still in a busy slot (C. Foh, J. Tantra, "Comments on IEEE 802.11
//!   saturation throughput analysis with freezing of backoff counters", IEEE Comm. Letters 9(2),
//!   2005; I. Tinnirello, G. Bianchi, Y. Xiao, "Refinements on IEEE 802.11 distributed coordination
//!   function modeling approaches", IEEE TVT 59(3), 2010). After a success, all other counters hold
//!   at least one slot. The first slot therefore belongs to the station that has just sent, which
//!   uses it with probability 1/W, where W is the contention window. Such a burst and the slot
//!   after it count as one slot of the chain, and the first backoff after it is uniform on 0 to W -
//!   2.
//! - After a collision the other stations wait for EIFS. The colliding stations wait for the
//!   time-out of the ACK (or CTS) and for DIFS, which is one slot longer. The next slot of the
//!   chain begins after that.

/// Variant of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Account {
    /// Bianchi's equations 7 and 13 as printed: no limit of attempts, and counters that run through
    /// busy slots. The caller sets the duration of a collision (in the paper stations wait for
    /// DIFS, in the standard for EIFS).
    Printed,
    /// The equations with the refinements above.
    Refined,
}

/// Durations in one cell, in microseconds, its contention window and its frames.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Duration of an empty slot.
    pub slot: f64,
    /// Time from the start of a successful exchange until other stations may count down again,
    /// including DIFS.
    pub success: f64,
    /// Time from the start of a collision until the other stations may count down again, including
    /// EIFS.
    pub collision: f64,
    /// Smallest contention window: a first backoff is uniform on 0 to this value minus 1.
    pub window: f64,
    /// Number of times that the window is doubled.
    pub doublings: i32,
    /// Number of attempts after which a frame is given up.
    pub attempts: i32,
    /// Payload of a frame, bits.
    pub payload: f64,
}

impl Cell {
    /// Probability that a station transmits in a slot if its transmissions collide with probability
    /// `p`.
    fn tau(&self, account: Account, p: f64) -> f64 {
        if account == Account::Printed {
            // This is equation 7, divided by 1 - 2p, which may be 0. The sum equals (1 - (2p)^m) /
            // (1 - 2p), where m is the number of doublings.
            let sum: f64 = (0..self.doublings).map(|stage| (2.0 * p).powi(stage)).sum();
            return 2.0 / (self.window + 1.0 + p * self.window * sum);
        }
        let visits: f64 = (0..self.attempts).map(|stage| p.powi(stage)).sum();
        let given_up = p.powi(self.attempts);
        let first = (1.0 - given_up) * (self.window - 2.0) / 2.0 + given_up * (self.window - 1.0) / 2.0;
        let mean = |stage: i32| (self.window * 2f64.powi(stage.min(self.doublings)) - 1.0) / 2.0;
        let later: f64 = (1..self.attempts).map(|stage| p.powi(stage) * mean(stage)).sum();
        visits / (visits + first + later)
    }

    /// Fixed point for `n` stations: the probability that a station transmits in a slot.
    pub fn attempt_probability(&self, account: Account, n: u16) -> f64 {
        // Bisection works because a station that transmits more often collides more often, and one
        // that collides more often waits longer.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let middle: f64 = (low + high) / 2.0;
            let p = 1.0 - (1.0 - middle).powi(i32::from(n) - 1);
            if self.tau(account, p) > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Saturation throughput of `n` stations, kbit/s of payload.
    pub fn throughput(&self, account: Account, n: u16) -> f64 {
        let tau = self.attempt_probability(account, n);
        let others = (1.0 - tau).powi(i32::from(n) - 1);
        let (idle, success) = ((1.0 - tau) * others, f64::from(n) * tau * others);
        let collision = 1.0 - idle - success;
        // Number of frames in a burst, and duration of the empty slot that belongs to a busy
        // period.
        let (burst, after) = match account {
            Account::Printed => (1.0, 0.0),
            Account::Refined => (self.window / (self.window - 1.0), self.slot),
        };
        let time = idle * self.slot + success * (self.success * burst + after) + collision * (self.collision + after);
        1e3 * success * burst * self.payload / time
    }
}

#[cfg(test)]
mod tests {
    use super::Account::{Printed, Refined};
    use super::*;

    fn cell() -> Cell {
        let (slot, window) = (20.0, 32.0);
        Cell { slot, success: 4748.0, collision: 4748.0, window, doublings: 5, attempts: 7, payload: 8000.0 }
    }

    #[test]
    fn one_station_never_collides() {
        // It sends a frame every 4748 us and 15.5 slots of 20 us: 8000 bits in 5058 us.
        for account in [Printed, Refined] {
            assert!((cell().throughput(account, 1) - 8000.0 / 5.058).abs() < 1e-6, "{account:?}");
        }
    }

    #[test]
    fn the_published_maximum() {
        // Bianchi, section V: FHSS at 1 Mbit/s, payload 8184 bits, headers 272 + 128, ACK 112 + 128, slot 50 us, SIFS 28,
        // DIFS 128, propagation 1. Section IV.B: the best tau is 1/(n K), K = sqrt(T_c / 2 slot), and many stations then get
        // P / (T_s + slot K + T_c (K (e^(1/K) - 1) - 1)), 0.823 of the channel.
        let data = 128.0f64 + 272.0 + 8184.0;
        let (slot, success, collision) = (50.0f64, data + 28.0 + 1.0 + 240.0 + 128.0 + 1.0, data + 128.0 + 1.0);
        let k = (collision / (2.0 * slot)).sqrt();
        let limit = 8184.0 / (success + slot * k + collision * (k * ((1.0 / k).exp() - 1.0) - 1.0));
        assert!((limit - 0.823).abs() < 0.001, "{limit}");
        for n in [50u16, 200] {
            // Without doublings tau is 2 / (W + 1).
            let window = 2.0 * f64::from(n) * k - 1.0;
            let cell = Cell { slot, success, collision, window, doublings: 0, attempts: 0, payload: 8184.0 };
            let throughput = cell.throughput(Printed, n) / 1e3;
            assert!((throughput / limit - 1.0).abs() < 0.1 / f64::from(n), "{n} stations: {throughput}");
        }
    }

    #[test]
    fn the_fixed_point_is_one() {
        for n in [2, 10, 50] {
            let tau = cell().attempt_probability(Refined, n);
            let p = 1.0 - (1.0 - tau).powi(i32::from(n) - 1);
            // Counting the slots of a frame by hand: the chain of stages 0 to 6, with the windows written out.
            let slots: f64 = [31.0, 63.0, 127.0, 255.0, 511.0, 1023.0, 1023.0]
                .iter()
                .enumerate()
                .map(|(stage, window)| p.powi(stage as i32) * (1.0 + window / 2.0))
                .sum();
            let sent: f64 = (0..7).map(|stage| p.powi(stage)).sum();
            let after_success = 0.5 * (1.0 - p.powi(7));
            assert!((tau - sent / (slots - after_success)).abs() < 1e-9, "{n} stations");
        }
    }

    #[test]
    fn without_a_limit_the_refined_chain_is_the_printed_one() {
        // With so many attempts that a frame is never given up, but for the half slot after a success.
        let cell = Cell { attempts: 400, ..cell() };
        for p in [0.1, 0.3, 0.45] {
            let half_a_slot_less = 1.0 / (1.0 / cell.tau(Printed, p) - 0.5 * (1.0 - p));
            assert!((cell.tau(Refined, p) - half_a_slot_less).abs() < 1e-9, "{p}");
        }
    }
}
