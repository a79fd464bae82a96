//! TACK's rule of acknowledging: an ACK for L segments, but no more than beta of them in the shortest round trip.
//!
//! T. Li, K. Zheng, K. Xu, R. Jadhav, T. Xiong, K. Winstein, K. Tan, "TACK: Improving Wireless Transport Performance by Taming
//! Acknowledgments", SIGCOMM 2020, section 4.1. With bw the goodput,
//!
//! ```text
//! f = min(bw / (L MSS), beta / RTT_min)          L = 2, beta = 4
//! ```
//!
//! Where little is under way that is the delayed ACK of RFC 1122; where much is, it is periodic, and its frequency does not grow with the rate.
//!
//! Departures: only the rule is TACK's. Loss events are told by the immediate ACKs of RFC 5681 (in the paper one instant ACK for each loss, with
//! ranges), the sender is whichever uses it (in the paper a BBR that takes its rate from the receiver), and the receiver measures RTT_min itself, by the
//! time stamps that come back to it (in the paper the sender tells it): the least of the last 10 to 20 s. What arrives alone is acknowledged after `timer`,
//! as in delayed ACKs.

use super::delayed::TIMER;
use meshpace_core::{Duration, Time, parameters};

/// Half of the longest time for which a least round trip holds.
const HORIZON: Duration = Duration::from_secs(10);

parameters! {
    /// Parameters of TACK's rule.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Tack {
        /// segments per ACK at least
        segments: u32 = 2 => whole("segments", 1, 255), Expert, "TACK, 4.1: L";
        /// ACKs in the shortest round trip at most
        beta: u32 = 4 => whole("ACKs", 1, 255), Expert, "TACK, 4.1";
        /// the longest wait of less than that many segments, if the round trip is no longer
        timer: Duration = Duration::from_millis(100) => TIMER, Basic, "RFC 1122, 4.2.3.2; ns-2, interval_";
    }
}

/// State of a receiver.
#[derive(Clone, Debug)]
pub struct State {
    beta: u64,
    /// Time at which the last ACK left.
    acked_at: Time,
    /// The least round trips of this horizon and of the one before.
    least: [Option<Duration>; 2],
    turned_at: Time,
}

impl State {
    /// No round trip is known: the rule is that of delayed ACKs.
    pub fn new(config: &Tack) -> State {
        State { beta: u64::from(config.beta), acked_at: Time::ZERO, least: [None; 2], turned_at: Time::ZERO }
    }

    /// A time stamp of this receiver came back after `round_trip`.
    pub fn on_round_trip(&mut self, now: Time, round_trip: Duration) {
        if now.since(self.turned_at) > HORIZON {
            (self.turned_at, self.least) = (now, [None, self.least[0]]);
        }
        self.least[0] = Some(self.least[0].map_or(round_trip, |least| least.min(round_trip)));
    }

    /// An ACK leaves.
    pub fn on_ack_sent(&mut self, now: Time) {
        self.acked_at = now;
    }

    /// Time before which the next ACK does not leave unless something is out of order.
    pub fn earliest(&self) -> Time {
        let least = self.least.iter().flatten().min().copied().unwrap_or(Duration::ZERO);
        self.acked_at.saturating_add(Duration(least.0 / self.beta))
    }
}
