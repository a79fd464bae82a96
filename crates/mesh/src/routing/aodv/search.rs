//! When a node may ask for a route, and how far: the expanding ring search with its waits and its hold-down.
//!
//! RFC 3561, sections 6.3 and 6.4, as ns-2.35 does it:
//! - the distance L to start from is the larger of the last TTL used (after an answer: its hop count) and the hop
//!   count the route had when it was lost; a route never known counts as 255 hops, so that the *first* request for a
//!   destination is network-wide;
//! - L = 0: TTL 5; L < 7: TTL L + 2; otherwise TTL 30, and the number of network-wide requests rises by one;
//! - wait = 2 x TTL x t x max(1, network-wide requests), at most 10 s; t is the mean of the last three measured latencies per
//!   hop, 30 ms if there is none (RFC 3561: binary exponential);
//! - after four network-wide requests in vain nothing is asked for 10 s.
//!
//! Nothing happens at the end of a wait: it only allows the next request, which a packet or a purge tick causes.

use meshpace_core::{Duration, Time};

/// TTL of a request if nothing at all is known.
const TTL_START: u8 = 5;
/// Distance from which requests are network-wide.
const TTL_THRESHOLD: u8 = 7;
/// Hops that a ring request reaches beyond the last known distance.
const TTL_INCREMENT: u8 = 2;
/// TTL of a network-wide request, and of replies and data: the most hops of a route. (RFC 3561 proposes 35.)
pub const NETWORK_DIAMETER: u8 = 30;
/// Network-wide requests after the first.
const RREQ_RETRIES: u8 = 3;
/// The longest wait, and the hold-down.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Latency per hop before any was measured, in seconds.
const NODE_TRAVERSAL_TIME: f64 = 0.03;

/// The state of asking for one destination.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// No request before this; [`Time::ZERO`] if none was sent since the last answer.
    wait_until: Time,
    /// Network-wide requests since the last answer or hold-down.
    network_wide: u8,
    /// TTL of the last request, or hop count of the last answer.
    last_ttl: u8,
    /// The last measured latencies per hop in seconds; 0 is none.
    latencies: [f64; 3],
    /// Where the next latency goes.
    next_latency: u8,
}

/// The next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Nothing yet.
    Wait,
    /// The hold-down begins: what waits for this destination is to be dropped.
    GiveUp,
    /// Send a request that travels this many hops.
    Ask {
        /// TTL of the request.
        ttl: u8,
    },
}

impl Search {
    /// Nothing asked, nothing measured.
    pub const NEW: Search =
        Search { wait_until: Time::ZERO, network_wide: 0, last_ttl: 0, latencies: [0.0; 3], next_latency: 0 };

    /// Takes the next step. `lost_hops` is the hop count of the route when it was last lost, 255 if there never was one.
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
        self.asked(now, ttl, self.network_wide.max(1));
        Step::Ask { ttl }
    }

    /// A request outside the ring search, for RFC 3561's local repair: with the TTL it wants, one plain wait.
    pub fn ask_once(&mut self, now: Time, ttl: u8) {
        self.asked(now, ttl, 1);
    }

    fn asked(&mut self, now: Time, ttl: u8, factor: u8) {
        self.last_ttl = ttl;
        let wait = 2.0 * f64::from(ttl) * self.latency_per_hop() * f64::from(factor);
        self.wait_until = now + Duration::from_secs_f64(wait).min(MAX_WAIT);
    }

    /// A route over `hops` hops was learnt.
    pub fn answered(&mut self, hops: u8) {
        self.wait_until = Time::ZERO;
        self.network_wide = 0;
        self.last_ttl = hops;
    }

    /// The answer to this node's own request took `seconds` per hop.
    pub fn measured(&mut self, seconds: f64) {
        self.latencies[usize::from(self.next_latency)] = seconds;
        self.next_latency = (self.next_latency + 1) % 3;
    }

    /// Until when no request is sent; [`Time::ZERO`] if none is outstanding.
    pub fn wait_until(&self) -> Time {
        self.wait_until
    }

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

    /// Asks whenever it may, for as long as the ring lasts: (time in ms, step).
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
        search.answered(4);
        let ask = |ttl| Step::Ask { ttl };
        // Lost at 4 hops: 6, 8, then 30; waits 2 x TTL x 30 ms = 360, 480, 1800 ms, the network-wide ones times 1, 2, 3, 4.
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
        assert_eq!(list[0], (0, Step::Ask { ttl: 30 }), "a route never known starts network-wide");
        let (gave_up, step) = list[4];
        assert_eq!(step, Step::GiveUp);
        assert_eq!(list[5], (gave_up + 10_000, Step::Ask { ttl: 30 }));
        assert_eq!(search.step(Time(1), 255), Step::Wait);
    }

    #[test]
    fn the_wait_follows_the_mean_of_three_latencies_and_is_at_most_ten_seconds() {
        let mut search = Search::NEW;
        for latency in [9.0, 0.010, 0.020, 0.060] {
            search.measured(latency);
        }
        search.answered(1);
        assert_eq!(search.step(Time::ZERO, 1), Step::Ask { ttl: 3 });
        // (10 + 20 + 60) / 3 = 30 ms; 2 x 3 x 30 ms.
        assert_eq!(search.wait_until(), Time(180_000_000));
        let mut slow = Search::NEW;
        slow.measured(1.0);
        assert_eq!(slow.step(Time::ZERO, 255), Step::Ask { ttl: 30 });
        assert_eq!(slow.wait_until(), Time(10_000_000_000));
    }
}
