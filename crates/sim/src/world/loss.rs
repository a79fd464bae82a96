//! The packet loss ratio of a UDP flow (RFC 7680), of the datagrams sent in the measured interval. There is no time limit (Tmax): a datagram is
//! lost if it has not arrived at the end of the run.

/// Width of the window in which duplicates are noticed: so many sequence numbers, the highest that has arrived the last of them. A datagram
/// below the window is counted without asking whether it is a duplicate.
const WINDOW: u64 = u128::BITS as u64;

/// Arrivals of one flow, each sequence number once, by a window as for replays (RFC 4303, appendix A2). There are duplicates because a relay
/// that got no MAC ACK may send a datagram again, by another route, although it has arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Sequence number of the first datagram that counts.
    first: u64,
    /// Datagrams that have arrived.
    received: u64,
    /// The highest sequence number that has arrived; `first` before any has.
    highest: u64,
    /// Bit n: whether number `highest - n` has arrived.
    seen: u128,
}

impl Arrivals {
    /// No arrivals yet. Numbers below `first` are ignored.
    pub fn starting_at(first: u64) -> Arrivals {
        Arrivals { first, highest: first, ..Arrivals::default() }
    }

    /// Datagram `number` has arrived.
    pub fn record(&mut self, number: u64) {
        if number < self.first {
            return;
        }
        if let Some(ahead) = number.checked_sub(self.highest) {
            self.seen = if ahead < WINDOW { self.seen << ahead } else { 0 };
            self.highest = number;
        }
        let behind = self.highest - number;
        // 0 below the window.
        let bit = if behind < WINDOW { 1 << behind } else { 0 };
        if bit == 0 || self.seen & bit == 0 {
            self.seen |= bit;
            self.received += 1;
        }
    }

    /// The share that is lost of `sent` datagrams; NaN if none was sent.
    pub fn loss_ratio(&self, sent: u64) -> f64 {
        sent.saturating_sub(self.received) as f64 / sent as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_and_numbers_below_the_first_are_ignored() {
        let mut arrivals = Arrivals::starting_at(10);
        // 8 and 9 are below the first; 10 comes after 11; 10 and 13 come twice; 12 is lost.
        for number in [8, 9, 11, 10, 10, 13, 13] {
            arrivals.record(number);
        }
        assert_eq!(arrivals.loss_ratio(4), 0.25);
        // 273 is the last number of the window below 400, 272 the first outside of it.
        for number in [400, 273, 273, 272] {
            arrivals.record(number);
        }
        assert_eq!(arrivals.received, 6);
        assert!(Arrivals::starting_at(3).loss_ratio(0).is_nan());
        assert_eq!(Arrivals::starting_at(3).loss_ratio(7), 1.0);
    }
}
