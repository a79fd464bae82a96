//! Dynamic adaptive acknowledgement (TCP-DAA): an ACK covers up to four segments while they arrive
//! in order, and two segments after a disturbance.
//!
//! R. de Oliveira, T. Braun, "A Dynamic Adaptive Acknowledgment Strategy for TCP over Multihop
//! Wireless Networks", INFOCOM 2005; "A Smart TCP Acknowledgment Approach for Multihop Wireless
//! Networks", IEEE Transactions on Mobile Computing 6(2), 2007. The delay window w is the number of
//! segments per ACK, and d is the average time between two segments:
//!
//! ```text
//! w = 1 at first;  after each ACK of data in order  w += 0.3 until it has been 4, then w += 1,  4 at most
//! w = 2            after a segment out of order, one that fills a gap, and a wait that ended by the timer
//! wait of the newest segment  (2 + 0.2) d,   d = 0.75 d + 0.25 (time since the segment before)
//! ```
//!
//! Departures: the papers themselves were not available, so the rule and its constants are taken
//! from descriptions by others. Of the sender's part only the window of four segments is
//! implemented (`tcp-daa`). Its fast retransmit after two duplicate ACKs and its longer
//! retransmission timer are not. So that the usual retransmission timer does not expire meanwhile,
//! the first waiting segment waits for 0.1 s at most, as with delayed ACKs.

use super::delayed::TIMER;
use meshpace_core::{Duration, Time, parameters};

/// Units of w in a segment. w is kept as a whole number, because a floating-point sum of tenths
/// falls short of whole segments.
const UNITS: u32 = 10;
/// w after a disturbance, in tenths of a segment.
const DISTURBED: u32 = 2 * UNITS;
/// Growth of w per ACK, in tenths of a segment, until w has reached its largest value once.
const START: u32 = 3;
/// Weight of the newest time between two segments in the average.
const WEIGHT: f64 = 0.25;
/// Wait of the newest segment, as a multiple of the average time between segments: 2 + kappa.
const PATIENCE: f64 = 2.2;

parameters! {
    /// Parameters of the adaptive delayed ACK.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Adaptive {
        /// largest number of segments per ACK
        segments: u32 = 4 => whole("segments", 2, 255), Expert, "de Oliveira, Braun, INFOCOM 2005";
        /// longest time for which the first of these segments waits for its ACK
        timer: Duration = Duration::from_millis(100) => TIMER, Basic, "RFC 1122, 4.2.3.2; ns-2, interval_";
    }
}

/// State of a receiver.
#[derive(Clone, Debug)]
pub struct State {
    /// Longest wait of the first waiting segment.
    longest: Duration,
    /// Largest value of w, in tenths of a segment.
    most: u32,
    /// w in tenths of a segment.
    window: u32,
    /// True if w has reached its largest value.
    grown: bool,
    /// d in seconds; `None` before the second segment.
    gap: Option<f64>,
    /// Time at which the first waiting segment arrived.
    waits_from: Time,
    /// Time at which the last segment arrived; `None` before the first one.
    arrived_at: Option<Time>,
}

impl State {
    /// Creates the state of a receiver that has received nothing.
    pub fn new(config: &Adaptive) -> State {
        State {
            longest: config.timer,
            most: config.segments * UNITS,
            window: UNITS,
            grown: false,
            gap: None,
            waits_from: Time::ZERO,
            arrived_at: None,
        }
    }

    /// A data segment arrived. Updates the average time between segments.
    pub fn on_arrival(&mut self, now: Time) {
        if let Some(before) = self.arrived_at.replace(now) {
            let gap = now.since(before).as_secs_f64();
            self.gap = Some(self.gap.map_or(gap, |mean| mean + WEIGHT * (gap - mean)));
        }
    }

    /// A segment arrived out of order, or the timer ended a wait.
    pub fn on_disturbance(&mut self) {
        self.window = DISTURBED;
    }

    /// An ACK of segments in order leaves because enough of them have arrived.
    pub fn on_enough(&mut self) {
        self.window = (self.window + if self.grown { UNITS } else { START }).min(self.most);
        self.grown |= self.window >= self.most;
    }

    /// Number of segments that the next ACK waits for.
    pub fn segments(&self) -> u32 {
        self.window / UNITS
    }

    /// Latest time at which the waiting segments are acknowledged. To be called when the newest of
    /// `waiting` segments arrives.
    pub fn deadline(&mut self, now: Time, waiting: u32) -> Time {
        if waiting == 1 {
            self.waits_from = now;
        }
        let patience = self.gap.map_or(self.longest, |gap| Duration::from_secs_f64(PATIENCE * gap));
        now.saturating_add(patience).min(self.waits_from.saturating_add(self.longest))
    }
}
