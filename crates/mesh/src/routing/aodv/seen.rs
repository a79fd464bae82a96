//! The requests a node has already handled, so that it handles each only once (RFC 3561, section 6.5).
//!
//! As in ns-2.35 a request is remembered for 6 s and then until the next multiple of 6 s, when the list is swept.

use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Time};

/// How long a request is remembered, and the distance of the sweeps, which start at time 0.
const BCAST_ID_SAVE: Duration = Duration::from_secs(6);

/// The memory of requests. In a large mesh with many flows it holds thousands, and every neighbour sends a copy of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Origin, number, and the number of the sweep that removes it; ascending.
    requests: Vec<(NodeId, u32, u32)>,
    /// When sweeping may find something.
    next_sweep: Time,
}

impl Seen {
    /// Whether this is the first copy of the request; notes it if so.
    pub fn first_time(&mut self, now: Time, origin: NodeId, id: u32) -> bool {
        if self.next_sweep <= now {
            self.sweep(now);
        }
        match self.requests.binary_search_by_key(&(origin, id), |&(from, number, _)| (from, number)) {
            Ok(_) => false,
            Err(place) => {
                let swept = (now + BCAST_ID_SAVE).0.div_ceil(BCAST_ID_SAVE.0);
                self.requests.insert(place, (origin, id, swept as u32));
                true
            }
        }
    }

    fn sweep(&mut self, now: Time) {
        let sweep = now.0 / BCAST_ID_SAVE.0;
        self.requests.retain(|&(.., swept)| u64::from(swept) > sweep);
        self.next_sweep = Time((sweep + 1) * BCAST_ID_SAVE.0);
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
    #[test]
    fn agrees_with_a_list_in_the_order_of_arrival() {
        let (seed, save) = (5, BCAST_ID_SAVE.0);
        let mut rng = meshpace_core::Rng::stream(seed, meshpace_core::rng::Purpose::Test, 0);
        let (mut seen, mut list, mut now) = (Seen::default(), Vec::new(), 0);
        for step in 0..20_000 {
            now += rng.below(20_000_000);
            let (origin, id) = (NodeId(rng.below(8) as u16), rng.below(100) as u32);
            list.retain(|&(swept, ..): &(u64, NodeId, u32)| swept > now);
            let is_new = !list.iter().any(|&(_, from, number)| (from, number) == (origin, id));
            if is_new {
                list.push(((now + save).div_ceil(save) * save, origin, id));
            }
            assert_eq!(seen.first_time(Time(now), origin, id), is_new, "seed {seed} step {step}");
        }
    }
}
