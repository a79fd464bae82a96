//! The requests a node has already handled, so that it handles each only once (RFC 3561, section 6.5).
//!
//! As in ns-2.35 a request is remembered for 6 s and then until the next multiple of 6 s, when the list is swept.

use alloc::collections::VecDeque;
use meshpace_core::{Duration, NodeId, Time};

/// How long a request is remembered, and the distance of the sweeps, which start at time 0.
const BCAST_ID_SAVE: Duration = Duration::from_secs(6);

/// The memory of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// When each is swept, its origin and its number; in the order of arrival.
    requests: VecDeque<(Time, NodeId, u32)>,
}

impl Seen {
    /// Whether this is the first copy of the request; notes it if so.
    pub fn first_time(&mut self, now: Time, origin: NodeId, id: u32) -> bool {
        while self.requests.front().is_some_and(|&(swept, ..)| swept <= now) {
            self.requests.pop_front();
        }
        // The newest first: a copy mostly arrives soon after the original.
        if self.requests.iter().rev().any(|&(_, from, number)| from == origin && number == id) {
            return false;
        }
        let swept = (now + BCAST_ID_SAVE).0.div_ceil(BCAST_ID_SAVE.0) * BCAST_ID_SAVE.0;
        self.requests.push_back((Time(swept), origin, id));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_forgotten_at_the_first_sweep_after_six_seconds() {
        let s = 1_000_000_000;
        let mut seen = Seen::default();
        assert!(seen.first_time(Time(s), NodeId(1), 1));
        assert!(seen.first_time(Time(s), NodeId(2), 1), "numbers are per origin");
        assert!(!seen.first_time(Time(8 * s), NodeId(1), 1), "7 s have passed, the sweep at 6 s came too early");
        assert!(!seen.first_time(Time(12 * s - 1), NodeId(1), 1));
        assert!(seen.first_time(Time(12 * s), NodeId(1), 1));
        let mut seen = Seen::default();
        assert!(seen.first_time(Time(6 * s), NodeId(1), 1));
        assert!(seen.first_time(Time(12 * s), NodeId(1), 1), "six seconds to the instant");
    }
}
