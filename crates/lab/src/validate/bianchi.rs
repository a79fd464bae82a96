//! Saturation throughput of one cell, in theory: every station always has a frame for the same receiver.
//!
//! Source: G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000:
//! a station transmits in a slot with probability tau, and a transmission collides with probability
//! p = 1 - (1 - tau)^(n-1), whatever happened before (equations 7 and 9); what a slot lasts and carries gives the
//! throughput (equation 13).
//!
//! Three refinements where the standard does otherwise than the paper's chain, all published:
//! - a frame is given up after R attempts (H. Wu et al., "Performance of reliable transport protocol over IEEE 802.11
//!   wireless LAN: analysis and enhancement", INFOCOM 2002);
//! - backoff counters stand still in a busy slot (C. Foh, J. Tantra, "Comments on IEEE 802.11 saturation throughput
//!   analysis with freezing of backoff counters", IEEE Comm. Letters 9(2), 2005; I. Tinnirello, G. Bianchi, Y. Xiao, "Refinements
//!   on IEEE 802.11 distributed coordination function modeling approaches", IEEE TVT 59(3), 2010): all others hold at least
//!   one slot after a success, so that the first slot belongs to the station that has just sent, which takes it with
//!   probability 1/W. Such a burst and the slot after it are one slot of the chain, and the first backoff after it is
//!   uniform on 0 to W - 2;
//! - after a collision the others wait for EIFS, the colliding stations for the ACK (CTS) time-out and DIFS, which is one
//!   slot more: the next slot of the chain begins then.

/// Account of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Account {
    /// Bianchi's equations 7 and 13 as printed: no limit of attempts, counters that run through busy slots. What a
    /// collision takes is left to whoever uses them (in the paper, stations that wait for DIFS; in the standard, EIFS).
    Printed,
    /// With the refinements above.
    Refined,
}

/// The times of one cell, in microseconds, and its contention window.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// An empty slot.
    pub slot: f64,
    /// From the start of a successful exchange until others may count down again: DIFS included.
    pub success: f64,
    /// From the start of a collision until the other stations may count down again: EIFS included.
    pub collision: f64,
    /// The smallest window: a first backoff is uniform on 0 to this minus 1.
    pub window: f64,
    /// Number of doublings of the window.
    pub doublings: i32,
    /// Attempts until a frame is given up.
    pub attempts: i32,
    /// Payload of a frame, bits.
    pub payload: f64,
}

impl Cell {
    /// The probability that a station transmits in a slot, if its transmissions collide with probability `p`.
    fn tau(&self, account: Account, p: f64) -> f64 {
        if account == Account::Printed {
            // Equation 7, divided by 1 - 2p, which may be 0: the sum is (1 - (2p)^m) / (1 - 2p).
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

    /// The fixed point for `n` stations: how often one transmits in a slot.
    pub fn attempt_probability(&self, account: Account, n: u16) -> f64 {
        // Transmitting more often means colliding more often, and colliding more often means waiting longer.
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

    /// Saturation throughput of `n` stations in kbit/s of payload.
    pub fn throughput(&self, account: Account, n: u16) -> f64 {
        let tau = self.attempt_probability(account, n);
        let others = (1.0 - tau).powi(i32::from(n) - 1);
        let (idle, success) = ((1.0 - tau) * others, f64::from(n) * tau * others);
        let collision = 1.0 - idle - success;
        // Frames in a burst, and the empty slot after a busy period that belongs to it.
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
