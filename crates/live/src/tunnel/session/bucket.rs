//! A token bucket: so much at once, and so much per second in the long run.

use meshpace_core::{Duration, Time};

/// Bytes of a stream or a flow that go by express at once: a screen of text, a command, a small file.
pub(super) const BURST: u64 = 8 << 10;
/// Bytes per second that come back of that. What sends more is bulk.
const RATE: u64 = 16 << 10;

/// Tokens, at most a burst of them.
#[derive(Debug)]
pub(super) struct Bucket {
    burst: u64,
    /// Tokens per second that come back.
    rate: u64,
    tokens: u64,
    /// When there were so many.
    at: Time,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(now: Time, burst: u64, rate: u64) -> Bucket {
        Bucket { burst, rate, tokens: burst, at: now }
    }

    /// The budget of a stream or a flow for express.
    pub(super) fn for_express(now: Time) -> Bucket {
        Bucket::new(now, BURST, RATE)
    }

    /// Tokens that are left now.
    pub(super) fn left(&mut self, now: Time) -> u64 {
        let second = Duration::from_secs(1).0;
        let since = now.since(self.at).0.min(self.burst * second / self.rate);
        let refill = since * self.rate / second;
        // What is less than a token counts next time.
        self.at = if refill < self.burst { self.at + Duration(refill * second / self.rate) } else { now };
        self.tokens = self.burst.min(self.tokens + refill);
        self.tokens
    }

    /// So many tokens are gone, or all where there are fewer.
    pub(super) fn spend(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_sub(tokens);
    }

    /// Takes a token; false if there is none.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let is_there = self.left(now) > 0;
        self.spend(1);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_at_their_rate_however_often_one_asks() {
        for every in [1, 50, 61, 1000, 100_000] {
            let mut bucket = Bucket::for_express(Time::ZERO);
            bucket.spend(BURST);
            let mut now = Time::ZERO;
            while now < Time::ZERO + Duration::from_millis(100) {
                now += Duration::from_micros(every);
                bucket.left(now);
            }
            let back = RATE * now.0 / Duration::from_secs(1).0;
            assert_eq!(bucket.left(now), back, "asked every {every} us");
        }
    }

    #[test]
    fn no_more_comes_back_than_a_burst() {
        let mut bucket = Bucket::for_express(Time::ZERO);
        let late = Time::ZERO + Duration::from_secs(3600);
        assert_eq!(bucket.left(late), BURST);
        bucket.spend(BURST + 1);
        assert_eq!(bucket.left(late), 0);
        assert_eq!(bucket.left(late + Duration::from_secs(1)), BURST);
    }

    #[test]
    fn one_by_one_there_are_a_burst_and_what_comes_back() {
        let mut bucket = Bucket::new(Time::ZERO, 10, 1000);
        let mut all = |ms: u64| (0..100).filter(|_| bucket.take(Time::ZERO + Duration::from_millis(ms))).count();
        assert_eq!([all(0), all(3), all(4), all(1000)], [10, 3, 1, 10]);
    }
}
