//! Packet loss ratio of a UDP flow (RFC 7680), over the datagrams sent in the measured interval.
//! There is no time limit (Tmax): a datagram counts as lost if it has not arrived at the end of the
//! run.

/// Width of the window in which duplicates are detected, in sequence numbers. The window ends with
/// the highest number that has arrived. A datagram below the window is counted without a test for
/// duplicates.
const WINDOW: u64 = u128::BITS as u64;

/// Arrivals of one flow, with each sequence number counted once, by a window as for replay
/// protection (RFC 4303, appendix A2). Duplicates occur because a relay without a MAC ACK may send
/// a datagram again, over another route, although it has arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Sequence number of the first datagram that counts.
    first: u64,
    /// Number of datagrams that have arrived.
    received: u64,
    /// Highest sequence number that has arrived; `first` before the first arrival.
    highest: u64,
    /// Bit set of the window: bit n is set if number `highest - n` has arrived.
    seen: u128,
}

impl Arrivals {
    /// Creates the state without arrivals. Numbers below `first` are ignored.
    pub fn starting_at(first: u64) -> Arrivals {
        Arrivals { first, highest: first, ..Arrivals::default() }
    }

    /// Notes the arrival of datagram `number`.
    pub fn record(&mut self, number: u64) {
        if number < self.first {
            return;
        }
        if let Some(ahead) = number.checked_sub(self.highest) {
            self.seen = if ahead < WINDOW { self.seen << ahead } else { 0 };
            self.highest = number;
        }
        let behind = self.highest - number;
        // The bit is 0 below the window.
        let bit = if behind < WINDOW { 1 << behind } else { 0 };
        if bit == 0 || self.seen & bit == 0 {
            self.seen |= bit;
            self.received += 1;
        }
    }

    /// Share of `sent` datagrams that is lost; NaN if none was sent.
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
        // 8 and 9 are below the first number; 10 arrives after 11; 10 and 13 arrive twice; 12 is
        // lost.
        for number in [8, 9, 11, 10, 10, 13, 13] {
            arrivals.record(number);
        }
        assert_eq!(arrivals.loss_ratio(4), 0.25);
        // 273 is the last number of the window below 400, and 272 the first one outside it.
        for number in [400, 273, 273, 272] {
            arrivals.record(number);
        }
        assert_eq!(arrivals.received, 6);
        assert!(Arrivals::starting_at(3).loss_ratio(0).is_nan());
        assert_eq!(Arrivals::starting_at(3).loss_ratio(7), 1.0);
    }
}
