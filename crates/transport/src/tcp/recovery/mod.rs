//! Loss recovery: it interprets duplicate and partial ACKs and decides which segments are sent
//! again.

mod newreno;
mod sack;

pub use newreno::{Action, NewReno};
pub use sack::{Plan, SACK, Sack};

use super::flight::Flight;
use super::window::Window;
use meshpace_core::Time;

/// Number of duplicate ACKs that indicate a loss (RFC 5681, section 3.2).
pub const DUPLICATE_THRESHOLD: u32 = 3;

/// Loss recovery of a sender.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// NewReno, which counts duplicate ACKs.
    NewReno(NewReno),
    /// SACK, which uses the peer's reports of received blocks.
    Sack(Sack),
}

impl Recovery {
    /// Creates the recovery before any loss. `limited_transmit` is that of RFC 3042.
    pub fn new(sack: bool, limited_transmit: bool) -> Recovery {
        if sack {
            Recovery::Sack(Sack::new(limited_transmit))
        } else {
            Recovery::NewReno(NewReno::new(limited_transmit))
        }
    }

    /// The peer reports that it has received the bytes from `start` to `end`.
    pub fn on_report(&self, flight: &mut Flight, start: u64, end: u64) {
        if matches!(self, Recovery::Sack(_)) {
            flight.queue_mut().sack(start, end);
            flight.skip_sacked();
        }
    }

    /// An ACK arrived that acknowledges `newly` more segments, and `acked` segments in all.
    pub fn on_new_ack(&mut self, newly: u64, acked: u64, window: &mut Window) -> Action {
        match self {
            Recovery::NewReno(recovery) => recovery.on_new_ack(newly, acked, window),
            Recovery::Sack(recovery) => {
                if recovery.on_new_ack(acked) {
                    window.on_ack(newly);
                }
                Action::Advance
            }
        }
    }

    /// A duplicate ACK arrived. Returns whether recovery starts; the first missing segment has to
    /// be sent again then.
    pub fn on_duplicate_ack(&mut self, flight: &Flight, window: &mut Window) -> bool {
        match self {
            Recovery::NewReno(recovery) => {
                recovery.on_duplicate_ack(flight.first(), flight.highest(), window) == Action::FastRetransmit
            }
            Recovery::Sack(recovery) => {
                let starts = recovery.on_duplicate_ack(flight.queue(), flight.highest());
                if starts {
                    window.on_fast_retransmit(0);
                }
                starts
            }
        }
    }

    /// An ACK echoes a congestion mark. The window is reduced as after a loss.
    pub fn on_mark(&self, window: &mut Window) {
        window.on_fast_retransmit(match self {
            Recovery::NewReno(recovery) => recovery.inflation(),
            Recovery::Sack(_) => 0,
        });
    }

    /// The retransmission timer expired. If `forget` is true, the count of duplicate ACKs and the
    /// inflation are cleared, as in Reno. The released TCP-AP agent keeps both.
    pub fn on_timeout(&mut self, flight: &mut Flight, forget: bool, window: &mut Window) {
        let sent = flight.highest();
        match self {
            Recovery::NewReno(recovery) => recovery.on_timeout(sent, forget, window),
            Recovery::Sack(recovery) => {
                window.on_timeout(0);
                recovery.on_timeout(sent);
                flight.queue_mut().forget_sacks();
            }
        }
    }

    /// True during recovery.
    pub fn is_recovering(&self) -> bool {
        match self {
            Recovery::NewReno(recovery) => recovery.in_recovery(),
            Recovery::Sack(recovery) => recovery.in_recovery(),
        }
    }

    /// The application wrote, or an idle connection restarts. From now on only the window limits
    /// the segments.
    pub fn lift_allowance(&mut self) {
        if let Recovery::NewReno(recovery) = self {
            recovery.lift_allowance();
        }
    }

    /// A segment that the window allows is sent.
    pub fn spend_allowance(&mut self) {
        if let Recovery::NewReno(recovery) = self {
            recovery.spend_allowance();
        }
    }

    fn inflation(&self) -> u32 {
        match self {
            Recovery::NewReno(recovery) => recovery.inflation(),
            Recovery::Sack(recovery) => recovery.limited_transmit(),
        }
    }

    /// Number of the first segment that the congestion window does not allow.
    fn window_end(&self, flight: &Flight, window: &Window) -> u64 {
        flight.first() + window.usable(self.inflation())
    }

    /// Releases the next segment that may be sent. `spaced` says that pacing keeps an interval
    /// between this segment and the one before, so the burst that an ACK releases needs no other
    /// limit.
    pub fn take(&mut self, flight: &mut Flight, window: &Window, now: Time, spaced: bool) -> Option<u64> {
        match self {
            Recovery::Sack(recovery) if recovery.in_recovery() => recovery.take(flight, window, now),
            _ if flight.next() >= self.window_end(flight, window) => None,
            Recovery::NewReno(recovery) if recovery.allowance() == 0 && !spaced => None,
            _ => {
                let number = flight.release(now)?;
                self.spend_allowance();
                Some(number)
            }
        }
    }

    /// True if [`Recovery::take`] would release a segment, apart from the limit on bursts.
    pub fn wants_to_send(&self, flight: &Flight, window: &Window) -> bool {
        match self {
            Recovery::Sack(recovery) if recovery.in_recovery() => recovery.wants_to_send(flight, window),
            _ => flight.next() < self.window_end(flight, window) && flight.has_more(),
        }
    }
}
