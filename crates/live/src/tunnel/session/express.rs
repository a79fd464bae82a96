//! Budget of a stream or a flow for express: [`BURST`] bytes at once, [`RATE`] per second in the long run. What sends more is bulk.

use meshpace_core::{Duration, Time};

/// Bytes at once: a screen of text, a command, a small file.
pub(super) const BURST: u64 = 8 << 10;
/// Bytes per second that come back.
pub(super) const RATE: u64 = 16 << 10;

/// What is left of it, and when that was so.
#[derive(Debug)]
pub(super) struct ExpressBudget {
    tokens: u64,
    at: Time,
}

impl ExpressBudget {
    /// All of it.
    pub(super) fn new(now: Time) -> ExpressBudget {
        ExpressBudget { tokens: BURST, at: now }
    }

    /// Bytes that are left now.
    pub(super) fn left(&mut self, now: Time) -> u64 {
        let second = Duration::from_secs(1).0;
        let since = now.since(self.at).0.min(BURST * second / RATE);
        let refill = since * RATE / second;
        // What is less than a byte counts next time.
        self.at = if refill < BURST { self.at + Duration(refill * second / RATE) } else { now };
        self.tokens = BURST.min(self.tokens + refill);
        self.tokens
    }

    /// So many bytes leave, by whatever carrier.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_at_its_rate_however_often_it_is_asked() {
        for every in [1, 50, 61, 1000, 100_000] {
            let mut budget = ExpressBudget::new(Time::ZERO);
            budget.spend(BURST as usize);
            let mut now = Time::ZERO;
            while now < Time::ZERO + Duration::from_millis(100) {
                now += Duration::from_micros(every);
                budget.left(now);
            }
            let back = RATE * now.0 / Duration::from_secs(1).0;
            assert_eq!(budget.left(now), back, "asked every {every} us");
        }
    }

    #[test]
    fn no_more_of_it_comes_back_than_a_burst() {
        let mut budget = ExpressBudget::new(Time::ZERO);
        let late = Time::ZERO + Duration::from_secs(3600);
        assert_eq!(budget.left(late), BURST);
        budget.spend(BURST as usize + 1);
        assert_eq!(budget.left(late), 0);
        assert_eq!(budget.left(late + Duration::from_secs(1)), BURST);
    }
}
