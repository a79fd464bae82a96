//! Acknowledgement rule of TACK: an ACK leaves for every L segments, but at most beta ACKs leave
//! per shortest round trip.
//!
//! T. Li, K. Zheng, K. Xu, R. Jadhav, T. Xiong, K. Winstein, K. Tan, "TACK: Improving Wireless
//! Transport Performance by Taming Acknowledgments", SIGCOMM 2020, section 4.1. The frequency f of
//! ACKs, with the goodput bw, is
//!
//! ```text
//! f = min(bw / (L MSS), beta / RTT_min)          L = 2, beta = 4
//! ```
//!
//! If little data is in flight, the rule is the delayed ACK of RFC 1122. If much data is in flight,
//! ACKs are periodic and their frequency does not grow with the rate.
//!
//! Departures: only the acknowledgement rule is TACK's. The immediate ACKs of RFC 5681 report
//! losses (in the paper one instant ACK for each loss, with ranges). The sender is any TCP sender
//! that uses the rule (in the paper a BBR that takes its rate from the receiver). The receiver
//! measures RTT_min itself by the time stamps that are echoed to it: the shortest round trip of the
//! last 10 to 20 s (in the paper the sender reports it). A single segment is acknowledged after
//! `timer`, as with delayed ACKs.

use super::delayed::TIMER;
use meshpace_core::{Duration, Time, parameters};

/// Half of the longest time for which a shortest round trip is valid.
const HORIZON: Duration = Duration::from_secs(10);

parameters! {
    /// Parameters of TACK's rule.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Tack {
        /// smallest number of segments per ACK
        segments: u32 = 2 => whole("segments", 1, 255), Expert, "TACK, 4.1: L";
        /// largest number of ACKs per shortest round trip
        beta: u32 = 4 => whole("ACKs", 1, 255), Expert, "TACK, 4.1";
        /// longest time for which fewer segments wait for their ACK, unless the round trip is
        /// longer
        timer: Duration = Duration::from_millis(100) => TIMER, Basic, "RFC 1122, 4.2.3.2; ns-2, interval_";
    }
}

/// State of a receiver.
#[derive(Clone, Debug)]
pub struct State {
    beta: u64,
    /// Time at which the last ACK left.
    acked_at: Time,
    /// Shortest round trips of the current horizon and of the one before; `None` if none was
    /// measured.
    least: [Option<Duration>; 2],
    /// Time at which the current horizon began.
    turned_at: Time,
}

impl State {
    /// Creates the state of a receiver. As long as no round trip is known, the rule is that of
    /// delayed ACKs.
    pub fn new(config: &Tack) -> State {
        State { beta: u64::from(config.beta), acked_at: Time::ZERO, least: [None; 2], turned_at: Time::ZERO }
    }

    /// A time stamp of this receiver was echoed to it after `round_trip`.
    pub fn on_round_trip(&mut self, now: Time, round_trip: Duration) {
        if now.since(self.turned_at) > HORIZON {
            (self.turned_at, self.least) = (now, [None, self.least[0]]);
        }
        self.least[0] = Some(self.least[0].map_or(round_trip, |least| least.min(round_trip)));
    }

    /// An ACK leaves at `now`.
    pub fn on_ack_sent(&mut self, now: Time) {
        self.acked_at = now;
    }

    /// Earliest time of the next ACK, unless a segment requires an immediate one.
    pub fn earliest(&self) -> Time {
        let least = self.least.iter().flatten().min().copied().unwrap_or(Duration::ZERO);
        self.acked_at.saturating_add(Duration(least.0 / self.beta))
    }
}
