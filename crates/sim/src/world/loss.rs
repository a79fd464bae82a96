//! Share of the datagrams of a UDP flow that arrive, of those sent in the measured interval: the packet loss ratio of RFC 7680, without its time
//! limit, so that a datagram counts as lost if it has not arrived at the end of the run.

/// The numbers up to the newest of which it is known whether they have arrived. A datagram that arrives later than so many others counts,
/// whether it is new or not.
const WINDOW: u64 = u128::BITS as u64;

/// Arrivals of one flow, each number once (with a window as for replays in RFC 4303, appendix A2): routing may send a datagram again
/// whose MAC ACK was lost.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Number of the first datagram that counts.
    first: u64,
    /// Those that have arrived.
    count: u64,
    newest: u64,
    /// Bit n: whether number `newest - n` has arrived.
    seen: u128,
}

impl Arrivals {
    /// None so far; datagrams count from number `first` on.
    pub fn from(first: u64) -> Arrivals {
        Arrivals { first, newest: first, ..Arrivals::default() }
    }

    /// Datagram `number` has arrived.
    pub fn add(&mut self, number: u64) {
        if number < self.first {
            return;
        }
        if let Some(ahead) = number.checked_sub(self.newest) {
            self.seen = if ahead < WINDOW { self.seen << ahead } else { 0 };
            self.newest = number;
        }
        let behind = self.newest - number;
        let bit = if behind < WINDOW { 1 << behind } else { 0 };
        if bit == 0 || self.seen & bit == 0 {
            self.seen |= bit;
            self.count += 1;
        }
    }

    /// The share that is lost of `sent` datagrams; NaN if none was sent.
    pub fn loss_ratio(&self, sent: u64) -> f64 {
        sent.saturating_sub(self.count) as f64 / sent as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_counts_once_and_earlier_ones_do_not() {
        let mut arrivals = Arrivals::from(10);
        // 8 and 9 were sent before; 11 and 10 change places; 10 and 13 come twice; 12 is lost.
        for number in [8, 9, 11, 10, 10, 13, 13] {
            arrivals.add(number);
        }
        assert_eq!(arrivals.loss_ratio(4), 0.25);
        // Far ahead and back again: 400 and what is 128 and more behind it.
        for number in [400, 273, 273, 272] {
            arrivals.add(number);
        }
        assert_eq!(arrivals.count, 6);
        assert!(Arrivals::from(3).loss_ratio(0).is_nan());
        assert_eq!(Arrivals::from(3).loss_ratio(7), 1.0);
    }
}
