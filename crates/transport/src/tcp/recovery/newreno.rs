//! NewReno: loss recovery that counts duplicate ACKs.
//!
//! RFC 6582 in the careful variant, with RFC 3042's limited transmit. As in ns-2.35, the window is
//! inflated by a counter of its own and not in cwnd. A fast retransmit needs an ACK *beyond* what
//! had been sent at the last loss (or no acknowledgement at all so far). Only the first partial ACK
//! restarts the retransmission timer. After a partial ACK and in recovery each ACK releases at most
//! two segments.

use super::DUPLICATE_THRESHOLD;
use crate::tcp::window::Window;

/// Number of segments that one ACK may release during recovery (ns-2 `send_much(0, 0, 2)`).
const BURST_IN_RECOVERY: u32 = 2;

/// Cause of the last reduction of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// There was no loss, or its recovery has ended.
    None,
    /// A fast retransmit whose recovery has not ended.
    FastRetransmit,
    /// An expiry of the retransmission timer.
    Timeout,
}

/// Action of the sender after an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// New data is acknowledged: continue and restart the timer.
    Advance,
    /// A partial ACK: send the first missing segment again, and restart the timer if
    /// `restart_timer` is true.
    Partial {
        /// True if this is the first partial ACK of the recovery.
        restart_timer: bool,
    },
    /// Fast retransmit: send the first missing segment again and restart the timer.
    FastRetransmit,
    /// A duplicate ACK that starts no recovery.
    Duplicate,
}

/// State of loss recovery. Segments are counted from 0; `recover` and `acked` are numbers of
/// segments.
#[derive(Clone, Debug)]
pub struct NewReno {
    /// Number of consecutive duplicate ACKs.
    duplicates: u32,
    /// Number of segments by which the window is inflated.
    inflation: u32,
    /// Number of segments that had been sent at the last loss.
    recover: u64,
    cause: Cause,
    /// True if this recovery has seen a partial ACK.
    partial_seen: bool,
    /// Number of segments that may still be sent before the next event; `u32::MAX` stands for no
    /// limit.
    allowance: u32,
    limited_transmit: bool,
}

impl NewReno {
    /// Creates the state before any loss.
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

    /// An ACK arrived that acknowledges `newly` more segments, and `acked` segments in all.
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

    /// A duplicate ACK arrived. `acked` segments are acknowledged, and `sent` segments have been
    /// sent at least once.
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

    /// The retransmission timer expired when `sent` segments had been sent at least once. If
    /// `forget` is true, the count of duplicate ACKs and the inflation are cleared, as in Reno. The
    /// released TCP-AP agent keeps both.
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

    /// The application wrote, or an idle connection restarts. From now on only the window limits
    /// the segments.
    pub fn lift_allowance(&mut self) {
        self.allowance = u32::MAX;
    }

    /// A segment that the window allows is sent.
    pub fn spend_allowance(&mut self) {
        if self.allowance != u32::MAX {
            self.allowance = self.allowance.saturating_sub(1);
        }
    }

    /// Number of segments that may still be sent before the next event.
    #[inline]
    pub fn allowance(&self) -> u32 {
        self.allowance
    }

    /// Number of segments by which the window is inflated, including limited transmit.
    #[inline]
    pub fn inflation(&self) -> u32 {
        let limited = self.duplicates > 0 && self.duplicates < DUPLICATE_THRESHOLD && self.limited_transmit;
        if limited { self.inflation + self.duplicates } else { self.inflation }
    }

    /// True during fast recovery.
    pub fn in_recovery(&self) -> bool {
        self.cause == Cause::FastRetransmit
    }
}
