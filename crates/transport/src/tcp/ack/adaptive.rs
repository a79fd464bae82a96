//! Dynamic adaptive acknowledgement (TCP-DAA): the receiver waits for up to four segments where they come in order, for two after a disturbance.
//!
//! R. de Oliveira, T. Braun, "A Dynamic Adaptive Acknowledgment Strategy for TCP over Multihop Wireless Networks", INFOCOM 2005; "A Smart TCP
//! Acknowledgment Approach for Multihop Wireless Networks", IEEE Transactions on Mobile Computing 6(2), 2007. The delay window w is the number of segments per ACK:
//!
//! ```text
//! w = 1 at first;  after each ACK of data in order  w += 0.3 until it has been 4, then w += 1,  4 at most
//! w = 2            after a segment out of order, one that fills a gap, and a wait that ended by the timer
//! wait of the newest segment  (2 + 0.2) d,   d = 0.75 d + 0.25 (time since the segment before)
//! ```
//!
//! Departures: the papers themselves could not be had; the rule and its constants are those of their descriptions by others. Of the sender only the window of four segments is taken (`tcp-daa`),
//! not its two duplicate ACKs for a fast retransmit nor its longer retransmission timer: so that the usual timer does not expire meanwhile, the first that waits
//! does so for 0.1 s at most, as in delayed ACKs.

use super::delayed::TIMER;
use meshpace_core::{Duration, Time, parameters};

/// Units of w in a segment: whole numbers, since a sum of tenths as floating point falls short of them.
const UNITS: u32 = 10;
/// w after a disturbance.
const DISTURBED: u32 = 2 * UNITS;
/// Growth of w until it has been at its largest once.
const START: u32 = 3;
/// Weight of the newest time between two segments.
const WEIGHT: f64 = 0.25;
/// Times between segments that the newest one waits: 2 + kappa.
const PATIENCE: f64 = 2.2;

parameters! {
    /// Parameters of the adaptive delayed ACK.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Adaptive {
        /// segments per ACK at most
        segments: u32 = 4 => whole("segments", 2, 255), Expert, "de Oliveira, Braun, INFOCOM 2005";
        /// the longest wait of the first of them
        timer: Duration = Duration::from_millis(100) => TIMER, Basic, "RFC 1122, 4.2.3.2; ns-2, interval_";
    }
}

/// State of a receiver.
#[derive(Clone, Debug)]
pub struct State {
    longest: Duration,
    /// The most that w can be, and w, in tenths of a segment.
    most: u32,
    window: u32,
    /// w has been at its largest.
    grown: bool,
    /// d, seconds.
    gap: Option<f64>,
    /// Time at which the first of those that wait arrived.
    waits_from: Time,
    /// Time at which the last segment arrived.
    arrived_at: Option<Time>,
}

impl State {
    /// Nothing has arrived.
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

    /// A segment arrives.
    pub fn on_arrival(&mut self, now: Time) {
        if let Some(before) = self.arrived_at.replace(now) {
            let gap = now.since(before).as_secs_f64();
            self.gap = Some(self.gap.map_or(gap, |mean| mean + WEIGHT * (gap - mean)));
        }
    }

    /// A segment came out of order, or a wait was ended by the timer.
    pub fn on_disturbance(&mut self) {
        self.window = DISTURBED;
    }

    /// An ACK of segments in order leaves because there were enough of them.
    pub fn on_enough(&mut self) {
        self.window = (self.window + if self.grown { UNITS } else { START }).min(self.most);
        self.grown |= self.window >= self.most;
    }

    /// Segments that an ACK waits for.
    pub fn segments(&self) -> u32 {
        self.window / UNITS
    }

    /// Time at which what waits is acknowledged at the latest, after the newest of `waiting` segments has come.
    pub fn deadline(&mut self, now: Time, waiting: u32) -> Time {
        if waiting == 1 {
            self.waits_from = now;
        }
        let patience = self.gap.map_or(self.longest, |gap| Duration::from_secs_f64(PATIENCE * gap));
        now.saturating_add(patience).min(self.waits_from.saturating_add(self.longest))
    }
}
