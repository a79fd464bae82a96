//! Loss recovery: what duplicate and partial ACKs mean, and what is sent again because of them.

mod newreno;
mod sack;

pub use newreno::{Action, NewReno};
pub use sack::{Plan, SACK, Sack};

use super::flight::Flight;
use super::window::Window;
use meshpace_core::Time;

/// Duplicate ACKs that mean a loss (RFC 5681, section 3.2).
pub const DUPLICATE_THRESHOLD: u32 = 3;

/// The recovery of a sender.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// By counting duplicate ACKs.
    NewReno(NewReno),
    /// By reports of what has arrived.
    Sack(Sack),
}

impl Recovery {
    /// No loss yet. `limited_transmit` as in RFC 3042.
    pub fn new(sack: bool, limited_transmit: bool) -> Recovery {
        if sack {
            Recovery::Sack(Sack::new(limited_transmit))
        } else {
            Recovery::NewReno(NewReno::new(limited_transmit))
        }
    }

    /// The peer reports that it has the bytes from `start` to `end`.
    pub fn on_report(&self, flight: &mut Flight, start: u64, end: u64) {
        if matches!(self, Recovery::Sack(_)) {
            flight.queue_mut().sack(start, end);
            flight.skip_sacked();
        }
    }

    /// `newly` segments were acknowledged, `acked` in all.
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

    /// A duplicate ACK arrived. Whether recovery starts, with the first missing segment to be sent again.
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

    /// An ACK echoes a congestion mark: the window is reduced as for a loss.
    pub fn on_mark(&self, window: &mut Window) {
        window.on_fast_retransmit(match self {
            Recovery::NewReno(recovery) => recovery.inflation(),
            Recovery::Sack(_) => 0,
        });
    }

    /// The retransmission timer expired. `forget` clears the count of duplicate ACKs and the inflation, as Reno does; the
    /// released TCP-AP agent leaves them.
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

    /// True if recovery lasts.
    pub fn is_recovering(&self) -> bool {
        match self {
            Recovery::NewReno(recovery) => recovery.in_recovery(),
            Recovery::Sack(recovery) => recovery.in_recovery(),
        }
    }

    /// The application wrote, or an idle connection restarts: the window alone decides.
    pub fn lift_allowance(&mut self) {
        if let Recovery::NewReno(recovery) = self {
            recovery.lift_allowance();
        }
    }

    /// A segment of the window is sent.
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

    /// The number of the first segment that the congestion window does not allow.
    fn window_end(&self, flight: &Flight, window: &Window) -> u64 {
        flight.first() + window.usable(self.inflation())
    }

    /// Releases the next segment that may be sent. `spaced`: it leaves with a distance to the one before, so that the bursts
    /// that an ACK may release need no limit.
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

    /// True if there is something that [`Recovery::take`] would release, bursts not limited.
    pub fn wants_to_send(&self, flight: &Flight, window: &Window) -> bool {
        match self {
            Recovery::Sack(recovery) if recovery.in_recovery() => recovery.wants_to_send(flight, window),
            _ => flight.next() < self.window_end(flight, window) && flight.has_more(),
        }
    }
}
