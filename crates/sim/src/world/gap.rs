//! Delivery gaps: the longest time for which a flow had data to send and delivered none of it.

use meshpace_core::{Duration, Time};

/// Delivery gaps of one flow. A gap begins when data waits and ends when bytes are delivered.
#[derive(Clone, Copy, Debug)]
pub struct Gaps {
    /// Start of the measurement.
    begin: Time,
    /// End of the measurement, at which the application stops.
    stop: Time,
    /// Start of the current gap: data has waited without a delivery since. `None` while no data
    /// waits.
    since: Option<Time>,
    longest: Duration,
    /// Time without a path between the ends in the current gap.
    pathless: Duration,
    /// Longest gap, where times without a path do not count.
    longest_with_path: Duration,
}

impl Gaps {
    /// Creates the state for a measurement between `begin` and `stop`, without a gap.
    pub fn new(begin: Time, stop: Time) -> Gaps {
        let none = Duration::ZERO;
        Gaps { begin, stop, since: None, longest: none, pathless: none, longest_with_path: none }
    }

    /// Starts a gap at `now`, because there is data to deliver, unless a gap is already in
    /// progress.
    pub fn wait(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// Ends the current gap, because bytes were delivered or no byte is expected any more. If
    /// `more` data waits, the next gap begins.
    #[inline]
    pub fn end(&mut self, now: Time, more: bool) {
        self.longest = self.longest(now);
        self.longest_with_path = self.longest_with_path(now);
        self.pathless = Duration::ZERO;
        self.since = more.then_some(now);
    }

    /// Notes that there was no path between the ends for `span` until `now`.
    pub fn without_path(&mut self, now: Time, span: Duration) {
        self.pathless = self.pathless + span.min(self.under_way(now));
    }

    /// Longest gap until `now`, including the current one.
    #[inline]
    pub fn longest(&self, now: Time) -> Duration {
        self.longest.max(self.under_way(now))
    }

    /// Longest gap until `now`, where only times with a path between the ends count.
    #[inline]
    pub fn longest_with_path(&self, now: Time) -> Duration {
        let under_way = self.under_way(now);
        self.longest_with_path.max(under_way - self.pathless.min(under_way))
    }

    /// Length of the current gap until `now`, within the measurement.
    #[inline]
    fn under_way(&self, now: Time) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.min(self.stop).since(since.max(self.begin)))
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

    #[test]
    fn time_without_a_path_is_no_part_of_a_gap_with_one() {
        let mut gaps = Gaps::new(at(10), at(90));
        gaps.wait(at(12));
        for second in 13..=20 {
            gaps.without_path(at(second), Duration::from_secs(1));
        }
        gaps.end(at(25), true);
        assert_eq!(gaps.longest(at(25)), Duration::from_secs(13));
        assert_eq!(gaps.longest_with_path(at(25)), Duration::from_secs(5), "13 s, of which 8 had no path");
        // The next gap begins within a second without a path.
        gaps.end(at(29), false);
        gaps.wait(at(30));
        gaps.without_path(Time(at(30).0 + 300_000_000), Duration::from_secs(1));
        assert_eq!(gaps.longest_with_path(at(37)), Duration::from_millis(6_700));
        gaps.end(at(40), false);
        gaps.without_path(at(50), Duration::from_secs(1));
        assert_eq!(gaps.longest_with_path(at(60)), Duration::from_millis(9_700), "nothing waited from 40 s on");
    }
}
