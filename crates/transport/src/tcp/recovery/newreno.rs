//! Recovery by counting duplicate ACKs.
//!
//! NewReno, RFC 6582 in the careful variant, with RFC 3042's limited transmit. As in ns-2.35: the window is inflated by a
//! counter of its own and not in cwnd; a fast retransmit needs an ACK *beyond* what had been sent at the last loss (or
//! that nothing has been acknowledged yet); only the first partial ACK restarts the retransmission timer; after a partial
//! ACK and in recovery each ACK releases at most two segments.

use super::DUPLICATE_THRESHOLD;
use crate::tcp::window::Window;

/// Segments one ACK may release during recovery (ns-2 `send_much(0, 0, 2)`).
const BURST_IN_RECOVERY: u32 = 2;

/// Cause of the last change of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// Nothing, or a recovery that has ended.
    None,
    /// A fast retransmit whose recovery lasts.
    FastRetransmit,
    /// The retransmission timer.
    Timeout,
}

/// Reaction of the sender to an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// New data is acknowledged: go on, restart the timer.
    Advance,
    /// A partial ACK: send the first missing segment again; restart the timer if `restart_timer`.
    Partial {
        /// True if this is the recovery's first partial ACK.
        restart_timer: bool,
    },
    /// Fast retransmit: send the first missing segment again and restart the timer.
    FastRetransmit,
    /// Another duplicate ACK.
    Duplicate,
}

/// State of loss recovery. Segments are counted from 0; `recover` and `acked` are numbers of segments.
#[derive(Clone, Debug)]
pub struct NewReno {
    /// Consecutive duplicate ACKs.
    duplicates: u32,
    /// Segments the window is inflated by.
    inflation: u32,
    /// Number of segments that had been sent at the last loss.
    recover: u64,
    cause: Cause,
    /// True if this recovery has seen a partial ACK.
    partial_seen: bool,
    /// Segments that may still be sent before the next event.
    allowance: u32,
    limited_transmit: bool,
}

impl NewReno {
    /// No loss yet.
    pub fn new(limited_transmit: bool) -> NewReno {
        NewReno {
            duplicates: 0,
            inflation: 0,
            recover: 0,
            cause: Cause::None,
            partial_seen: false,
            allowance: u32::MAX,
            limited_transmit,
        }
    }

    /// `newly` segments were acknowledged, `acked` in all.
    pub fn on_new_ack(&mut self, newly: u64, acked: u64, window: &mut Window) -> Action {
        if self.cause == Cause::FastRetransmit && acked < self.recover {
            let newly = u32::try_from(newly).unwrap_or(u32::MAX);
            if self.inflation > newly {
                self.inflation -= newly - 1;
            } else {
                window.deflate(newly - self.inflation);
                self.inflation = 1;
            }
            let restart_timer = !self.partial_seen;
            self.partial_seen = true;
            self.allowance = BURST_IN_RECOVERY;
            return Action::Partial { restart_timer };
        }
        let recovered = self.cause == Cause::FastRetransmit;
        if recovered {
            self.cause = Cause::None;
        }
        self.inflation = 0;
        self.duplicates = 0;
        self.partial_seen = false;
        self.allowance = u32::MAX;
        if recovered {
            window.on_recovered(newly);
        } else {
            window.on_ack(newly);
        }
        Action::Advance
    }

    /// A duplicate ACK arrived with `acked` segments acknowledged and `sent` sent at least once.
    pub fn on_duplicate_ack(&mut self, acked: u64, sent: u64, window: &mut Window) -> Action {
        self.duplicates = self.duplicates.saturating_add(1);
        self.allowance = BURST_IN_RECOVERY;
        if self.duplicates < DUPLICATE_THRESHOLD {
            self.allowance = u32::from(self.limited_transmit);
        } else if self.duplicates == DUPLICATE_THRESHOLD {
            if acked > self.recover || acked == 0 {
                self.recover = sent;
                window.on_fast_retransmit(self.inflation);
                self.cause = Cause::FastRetransmit;
                self.inflation = DUPLICATE_THRESHOLD;
                return Action::FastRetransmit;
            }
        } else if self.cause == Cause::FastRetransmit {
            self.inflation = self.inflation.saturating_add(1);
        }
        Action::Duplicate
    }

    /// The retransmission timer expired with `sent` segments sent at least once. `forget` clears the count of duplicate
    /// ACKs and the inflation, as Reno does; the released TCP-AP agent leaves them.
    pub fn on_timeout(&mut self, sent: u64, forget: bool, window: &mut Window) {
        if forget {
            self.duplicates = 0;
            self.inflation = 0;
        }
        window.on_timeout(self.inflation);
        self.recover = sent;
        self.cause = Cause::Timeout;
        self.allowance = u32::MAX;
    }

    /// The application wrote, or an idle connection restarts: the window alone decides.
    pub fn lift_allowance(&mut self) {
        self.allowance = u32::MAX;
    }

    /// A segment of the window is sent.
    pub fn spend_allowance(&mut self) {
        if self.allowance != u32::MAX {
            self.allowance = self.allowance.saturating_sub(1);
        }
    }

    /// Segments that may still be sent before the next event.
    #[inline]
    pub fn allowance(&self) -> u32 {
        self.allowance
    }

    /// Segments the window is inflated by, limited transmit included.
    #[inline]
    pub fn inflation(&self) -> u32 {
        let limited = self.duplicates > 0 && self.duplicates < DUPLICATE_THRESHOLD && self.limited_transmit;
        if limited { self.inflation + self.duplicates } else { self.inflation }
    }

    /// True if fast recovery lasts.
    pub fn in_recovery(&self) -> bool {
        self.cause == Cause::FastRetransmit
    }
}
