//! Frames that were received without error: they set the NAV, are answered, or deliver data.
//!
//! Source: IEEE Std 802.11-1999, 9.2.5.4 (setting and resetting the NAV), 9.2.5.7 (CTS), 9.2.8
//! (ACK), 9.2.9 (duplicates).

use super::{Action, Answer, Dcf, Exchange, LastReceived};
use crate::body::Body;
use crate::mac::frame::{Frame, FrameKind};
use crate::mac::timing::Timing;
use crate::packet::Packet;
use crate::radio::FrameRate;
use meshpace_core::{Duration, Time};

impl<P: Packet> Dcf<P> {
    /// Handles a frame that was received without error.
    #[inline(always)]
    pub(super) fn on_decoded(&mut self, now: Time, frame: &Frame<P>, t: &Timing) -> Action<P> {
        if frame.to != self.me {
            if frame.nav > Duration::ZERO {
                let extended = self.set_nav(now, frame.nav);
                if t.rules.rts_nav_resets && extended && frame.kind == FrameKind::Rts {
                    // 9.2.5.4: the NAV of an RTS is reset if no frame begins within 2 SIFS + CTS +
                    // 2 slots.
                    self.nav_provisional = true;
                    self.nav_beyond = self.nav_until;
                    self.nav_until = self.nav_until.min(now + t.sifs * 2 + t.cts_air + t.slot * 2);
                }
            }
            if !frame.to.is_broadcast() {
                return Action::None;
            }
        }
        let awaited = match self.exchange {
            Exchange::Rts => frame.kind == FrameKind::Cts,
            Exchange::Data => matches!(frame.kind, FrameKind::Ack | FrameKind::BlockAck),
            _ => true,
        };
        if t.rules.other_frame_ends_wait && !awaited {
            // 9.2.5.7, 9.2.8: any other valid frame means that the exchange failed. The frame is
            // nevertheless processed.
            self.timeout = now;
        }
        match frame.kind {
            FrameKind::Rts => {
                if (self.exchange == Exchange::Idle || self.timeout == now) && self.answer.is_none() {
                    let nav = t.duration_field(frame.nav.saturating_sub(t.sifs + t.cts_air));
                    self.answer = Some(Answer {
                        kind: FrameKind::Cts,
                        to: frame.from,
                        category: frame.category,
                        rate: FrameRate::BASIC,
                        nav,
                    });
                    if self.exchange == Exchange::Idle {
                        self.resume(now, t);
                    }
                }
                Action::None
            }
            FrameKind::Cts => {
                if self.exchange == Exchange::Rts {
                    self.timeout = Time::NEVER;
                    self.contention.short_retries = 0;
                    if let Some(outgoing) = &mut self.outgoing {
                        outgoing.rts_next = false;
                    }
                    self.resume(now, t);
                }
                Action::None
            }
            FrameKind::Ack => {
                if self.exchange != Exchange::Data {
                    return Action::None;
                }
                self.timeout = Time::NEVER;
                if self.is_aggregating() {
                    self.on_aggregate_answer(now, frame, t);
                    return Action::None;
                }
                self.note_attempt(true, t);
                self.note_result(1, 1);
                let Some(sent) = self.outgoing.take() else { return Action::None };
                if sent.uses_rts {
                    self.contention.long_retries = 0
                } else {
                    self.contention.short_retries = 0
                }
                self.contention.cw = self.access(t).cw_min;
                if t.edca && self.can_continue_txop(now, t) {
                    self.continue_txop(now, t);
                } else {
                    self.start_backoff(now, t);
                    self.resume(now, t);
                }
                sent.done()
            }
            FrameKind::Data if self.block_ack.is_some() && frame.to == self.me => self.on_mpdus(now, frame, t),
            FrameKind::Data => self.on_data(now, frame, t),
            FrameKind::BlockAck => {
                if self.exchange == Exchange::Data && self.is_aggregating() {
                    self.timeout = Time::NEVER;
                    self.on_aggregate_answer(now, frame, t);
                }
                Action::None
            }
            FrameKind::BlockAckReq => self.on_mpdus(now, frame, t),
        }
    }

    /// Handles a data frame of a station without aggregates: acknowledges it, and delivers it
    /// unless it is a duplicate.
    pub(super) fn on_data(&mut self, now: Time, frame: &Frame<P>, t: &Timing) -> Action<P> {
        if frame.to == self.me {
            let (kind, to, category) = (FrameKind::Ack, frame.from, frame.category);
            let acknowledge = Answer { kind, to, category, rate: frame.rate.answer(), nav: Duration::ZERO };
            if t.rules.data_follows_cts && t.uses_rts(frame.bytes) {
                if self.exchange != Exchange::Cts {
                    return Action::None;
                }
                self.timeout = Time::NEVER;
                self.answer = Some(acknowledge);
                self.resume(now, t);
            } else {
                if !t.rules.data_follows_cts && self.exchange == Exchange::Cts {
                    self.timeout = Time::NEVER;
                } else if self.answer.is_some() {
                    return Action::None;
                }
                self.answer = Some(acknowledge);
                // If this station waits for an answer to its own frame, the ACK is sent after the
                // end of that wait.
                if self.timeout == Time::NEVER {
                    self.resume(now, t);
                }
            }
            if self.is_duplicate(frame, t) {
                return Action::None;
            }
        }
        match &frame.body {
            Some(body) => {
                let mut body = body.clone();
                if let Body::Data(packet) = &mut body {
                    packet.count_hop();
                }
                Action::Deliver { from: frame.from, body }
            }
            None => Action::None,
        }
    }

    /// True if the last frame from this neighbour in this category had the same sequence number
    /// (9.2.9). If the rules require it, this frame must also be a retry, because a sequence number
    /// is used again after 4096 frames to all stations together.
    pub(super) fn is_duplicate(&mut self, frame: &Frame<P>, t: &Timing) -> bool {
        let &Frame { from, category, sequence, .. } = frame;
        let may_be = frame.retry || !t.rules.duplicate_needs_retry;
        let is_same =
            match self.sequences.received.iter_mut().find(|last| last.from == from && last.category == category) {
                Some(last) => core::mem::replace(&mut last.sequence, sequence) == sequence,
                None => {
                    self.sequences.received.push(LastReceived { from, category, sequence });
                    false
                }
            };
        may_be && is_same
    }
}
