//! The longest time for which a flow that had data to send delivered none of it.

use meshpace_core::{Duration, Time};

/// The gaps of one flow. One begins when data wait and ends when bytes are delivered.
#[derive(Clone, Copy, Debug)]
pub struct Gaps {
    /// Start of the measurement.
    begin: Time,
    /// End of the measurement: the application wants no more.
    stop: Time,
    /// Since when data have waited without a delivery; none while nothing waits.
    since: Option<Time>,
    longest: Duration,
}

impl Gaps {
    /// Those between `begin` and `stop`; nothing waits yet.
    pub fn new(begin: Time, stop: Time) -> Gaps {
        Gaps { begin, stop, since: None, longest: Duration::ZERO }
    }

    /// There are data to deliver from `now` on, unless there have been before.
    pub fn wait(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// Bytes are delivered, or nobody waits for them any more. `more`: whether others wait.
    #[inline]
    pub fn end(&mut self, now: Time, more: bool) {
        self.longest = self.longest(now);
        self.since = more.then_some(now);
    }

    /// The longest one until `now`, the one under way included.
    #[inline]
    pub fn longest(&self, now: Time) -> Duration {
        let under_way = self.since.map_or(Duration::ZERO, |since| now.min(self.stop).since(since.max(self.begin)));
        self.longest.max(under_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_gap_is_between_deliveries_and_within_what_is_measured() {
        let mut gaps = Gaps::new(at(10), at(90));
        assert_eq!(gaps.longest(at(20)), Duration::ZERO, "nothing waits");
        gaps.wait(at(2));
        gaps.end(at(8), true);
        assert_eq!(gaps.longest(at(9)), Duration::ZERO, "before measuring began");
        gaps.end(at(13), true);
        assert_eq!(gaps.longest(at(13)), Duration::from_secs(3), "from the begin, not from the delivery before it");
        gaps.end(at(20), false);
        assert_eq!(gaps.longest(at(60)), Duration::from_secs(7), "nothing waited from 20 s on");
        gaps.wait(at(60));
        gaps.wait(at(70));
        assert_eq!(gaps.longest(at(75)), Duration::from_secs(15), "the first that waits counts");
        assert_eq!(gaps.longest(at(100)), Duration::from_secs(30), "until the application stops");
    }
}
