//! Expanding ring search: decides when a node may request a route, and over how many hops, with its
//! waits and its hold-down.
//!
//! The rules are those of RFC 3561, sections 6.3 and 6.4, in the variant of ns-2.35:
//! - The initial distance L is the larger of the last TTL (after an answer: its hop count) and the
//!   hop count of the route when it was lost. A route that was never known counts as 255 hops, so
//!   that the *first* request for a destination is network-wide.
//! - L = 0: TTL 5. L < 7: TTL L + 2. Otherwise TTL 30, and the number of network-wide requests
//!   grows by one.
//! - wait = 2 x TTL x t x max(1, network-wide requests), at most 10 s. t is the mean of the last
//!   three measured latencies per hop, or 30 ms if there is none (RFC 3561: binary exponential).
//! - After four network-wide requests without an answer, no request is sent for 10 s (hold-down).
//!
//! The end of a wait has no effect of its own: it only permits the next request, which a packet or
//! a purge tick causes.

use meshpace_core::{Duration, Time};

/// TTL of a request if no distance is known.
const TTL_START: u8 = 5;
/// Distance from which requests are network-wide.
const TTL_THRESHOLD: u8 = 7;
/// Number of hops by which a ring request reaches beyond the last known distance.
const TTL_INCREMENT: u8 = 2;
/// TTL of network-wide requests, of replies and of data: the largest number of hops of a route.
/// (RFC 3561 proposes 35.)
pub const NETWORK_DIAMETER: u8 = 30;
/// Number of network-wide requests after the first.
const RREQ_RETRIES: u8 = 3;
/// Longest wait, and length of the hold-down.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Latency per hop before the first measurement, in seconds.
const NODE_TRAVERSAL_TIME: f64 = 0.03;

/// State of the search for one destination.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// Time before which no request is sent; [`Time::ZERO`] if none was sent since the last answer.
    wait_until: Time,
    /// Number of network-wide requests since the last answer or hold-down.
    network_wide: u8,
    /// TTL of the last request, or hop count of the last answer.
    last_ttl: u8,
    /// Last measured latencies per hop, in seconds; 0 stands for none.
    latencies: [f64; 3],
    /// Index of the latency that is replaced next.
    next_latency: u8,
}

/// Next step of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// No request may be sent yet.
    Wait,
    /// The hold-down begins. Packets that wait for this destination must be dropped.
    GiveUp,
    /// A request must be sent.
    Request {
        /// TTL of the request.
        ttl: u8,
    },
}

impl Search {
    /// State before any request and any measurement.
    pub const NEW: Search =
        Search { wait_until: Time::ZERO, network_wide: 0, last_ttl: 0, latencies: [0.0; 3], next_latency: 0 };

    /// Takes the next step. `lost_hops` is the hop count of the route when it was last lost, or 255
    /// if there never was a route.
    pub fn step(&mut self, now: Time, lost_hops: u8) -> Step {
        if self.wait_until > now {
            return Step::Wait;
        }
        if self.network_wide > RREQ_RETRIES {
            self.wait_until = now + MAX_WAIT;
            self.network_wide = 0;
            return Step::GiveUp;
        }
        let distance = self.last_ttl.max(lost_hops);
        let ttl = match distance {
            0 => TTL_START,
            near if near < TTL_THRESHOLD => near + TTL_INCREMENT,
            _ => {
                self.network_wide += 1;
                NETWORK_DIAMETER
            }
        };
        self.note_request(now, ttl, self.network_wide.max(1));
        Step::Request { ttl }
    }

    /// Notes a request outside the ring search, for the local repair of RFC 3561: its TTL is given,
    /// and its wait is not multiplied.
    pub fn start_single(&mut self, now: Time, ttl: u8) {
        self.note_request(now, ttl, 1);
    }

    /// Notes a request with time to live `ttl`, and starts its wait, multiplied by `factor`.
    fn note_request(&mut self, now: Time, ttl: u8, factor: u8) {
        self.last_ttl = ttl;
        let wait = 2.0 * f64::from(ttl) * self.latency_per_hop() * f64::from(factor);
        self.wait_until = now + Duration::from_secs_f64(wait).min(MAX_WAIT);
    }

    /// Notes that a route over `hops` hops was learned.
    pub fn note_route(&mut self, hops: u8) {
        self.wait_until = Time::ZERO;
        self.network_wide = 0;
        self.last_ttl = hops;
    }

    /// Notes that the answer to this node's own request took `seconds` per hop.
    pub fn note_latency(&mut self, seconds: f64) {
        self.latencies[usize::from(self.next_latency)] = seconds;
        self.next_latency = (self.next_latency + 1) % 3;
    }

    /// Time before which no request is sent; [`Time::ZERO`] if no request is outstanding.
    pub fn wait_until(&self) -> Time {
        self.wait_until
    }

    /// Mean of the measured latencies per hop in seconds, or the default without measurements.
    fn latency_per_hop(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for latency in self.latencies {
            if latency > 0.0 {
                sum += latency;
                count += 1.0;
            }
        }
        if count > 0.0 { sum / count } else { NODE_TRAVERSAL_TIME }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Sends requests as early as permitted, `count` times. Returns (time in ms, step).
    fn steps(search: &mut Search, from: Time, lost_hops: u8, count: usize) -> Vec<(u64, Step)> {
        let mut now = from;
        let mut list = Vec::new();
        for _ in 0..count {
            now = Time(now.0.max(search.wait_until().0));
            list.push((now.0 / 1_000_000, search.step(now, lost_hops)));
        }
        list
    }

    #[test]
    fn a_ring_grows_by_two_until_seven_then_covers_the_network() {
        let mut search = Search::NEW;
        search.note_route(4);
        let ask = |ttl| Step::Request { ttl };
        // A route lost at 4 hops has the TTLs 6, 8, then 30. The waits 2 x TTL x 30 ms are 360, 480
        // and 1800 ms, where the network-wide ones are multiplied by 1, 2, 3, 4.
        let list = steps(&mut search, Time::ZERO, 4, 7);
        let expected = [
            (0, ask(6)),
            (360, ask(8)),
            (840, ask(30)),
            (2640, ask(30)),
            (6240, ask(30)),
            (11640, ask(30)),
            (18840, Step::GiveUp),
        ];
        assert_eq!(list, expected);
    }

    #[test]
    fn the_hold_down_lasts_ten_seconds_and_then_the_search_is_network_wide() {
        let mut search = Search::NEW;
        let list = steps(&mut search, Time::ZERO, 255, 6);
        assert_eq!(list[0], (0, Step::Request { ttl: 30 }), "a route never known starts network-wide");
        let (gave_up, step) = list[4];
        assert_eq!(step, Step::GiveUp);
        assert_eq!(list[5], (gave_up + 10_000, Step::Request { ttl: 30 }));
        assert_eq!(search.step(Time(1), 255), Step::Wait);
    }

    #[test]
    fn the_wait_follows_the_mean_of_three_latencies_and_is_at_most_ten_seconds() {
        let mut search = Search::NEW;
        for latency in [9.0, 0.010, 0.020, 0.060] {
            search.note_latency(latency);
        }
        search.note_route(1);
        assert_eq!(search.step(Time::ZERO, 1), Step::Request { ttl: 3 });
        // The mean is (10 + 20 + 60) / 3 = 30 ms, and the wait 2 x 3 x 30 ms.
        assert_eq!(search.wait_until(), Time(180_000_000));
        let mut slow = Search::NEW;
        slow.note_latency(1.0);
        assert_eq!(slow.step(Time::ZERO, 255), Step::Request { ttl: 30 });
        assert_eq!(slow.wait_until(), Time(10_000_000_000));
    }
}
