//! Frames that a station transmits: its own frames and its responses, with time-outs and retries.
//!
//! Source: IEEE Std 802.11-1999, 9.2.4 (contention window), 9.2.5.3 (retries), 9.2.5.6 and 9.2.5.7
//! (RTS/CTS), 9.2.8 (ACK).

use super::{Action, AttemptContent, AttemptReport, Dcf, Exchange, Outgoing, PacketState};
use crate::mac::arrivals::OrderedTime;
use crate::mac::backoff::Backoff;
use crate::mac::frame::{Frame, FrameKind};
use crate::mac::timing::{CTS_ACK_BYTES, RTS_BYTES, Timing};
use crate::packet::Packet;
use crate::radio::FrameRate;
use meshpace_core::{Duration, Time};

impl<P: Packet> Dcf<P> {
    /// Handles a timer that is due. The caller repeats this while [`Dcf::next_wakeup`] is not later
    /// than `now`.
    // The attribute is explained at `on_frame_end`.
    #[inline(always)]
    pub fn on_timer(&mut self, now: Time, t: &Timing) -> Action<P> {
        self.catch_up(OrderedTime::timer(now), t);
        let action = self.on_due(now, t);
        self.update_single_arrival();
        action
    }

    /// Handles the first timer that is due: the time-out, the SIFS timer or the backoff.
    #[inline(always)]
    fn on_due(&mut self, now: Time, t: &Timing) -> Action<P> {
        if self.timeout <= now {
            self.timeout = Time::NEVER;
            return self.on_timeout(now, t);
        }
        if self.sifs_timer <= now {
            self.sifs_timer = Time::NEVER;
            if self.answer.is_some() && !matches!(self.exchange, Exchange::Cts | Exchange::Ack) {
                return self.transmit_answer(now, t);
            }
            if t.edca && !self.txop_continues(now, t) {
                return Action::None;
            }
            return self.transmit_outgoing(now, t);
        }
        if t.edca {
            return self.on_categories_due(now, t);
        }
        if self.backoff.expiry().is_some_and(|at| at <= now) {
            self.backoff = Backoff::Off;
            // While a response is due, the frame waits. It contends again after the response.
            return if self.answer.is_some() { Action::None } else { self.transmit_outgoing(now, t) };
        }
        self.sense(now, t);
        Action::None
    }

    /// Handles the end of the wait for an answer, or the end of a transmission without an answer.
    pub(super) fn on_timeout(&mut self, now: Time, t: &Timing) -> Action<P> {
        if !t.rules.awaits_start_of_answer {
            self.idle_since = now;
        } else if matches!(self.exchange, Exchange::Rts | Exchange::Data)
            && let Some(end) = self.receiver.held_until().filter(|&end| end > now)
        {
            // A frame is arriving, which may be the answer (10.3.2.9). The wait ends with that
            // frame.
            self.timeout = end;
            return Action::None;
        } else if t.edca {
            // AIFS follows the end of the ACK-Timeout interval for all categories of the station
            // (802.11-2012, 9.19.2.3 c).
            self.idle_since = now;
        } else {
            // The interframe space begins when the medium became idle.
            self.idle_since = self.idle_since.max(self.transmitting_until);
        }
        let action = match self.exchange {
            Exchange::Idle => Action::None,
            Exchange::Cts | Exchange::Ack => {
                self.answer = None;
                Action::None
            }
            Exchange::Rts | Exchange::Data if self.is_aggregating() => {
                self.on_missing_aggregate_answer(now, t);
                Action::None
            }
            Exchange::Rts => {
                self.note_attempt(false, t);
                self.note_result(0, 0);
                if self.count_short_failure(t) {
                    self.give_up_and_back_off(now, t)
                } else {
                    self.retry(now, t);
                    Action::None
                }
            }
            Exchange::Data => self.on_data_timeout(now, t),
        };
        self.resume(now, t);
        action
    }

    /// Handles the end of a broadcast, or a unicast data frame without an ACK.
    pub(super) fn on_data_timeout(&mut self, now: Time, t: &Timing) -> Action<P> {
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        if outgoing.packet.next_hop.is_broadcast() {
            let sent = outgoing.done();
            self.outgoing = None;
            self.contention.cw = self.access(t).cw_min;
            if t.edca && self.can_continue_txop(now, t) {
                self.continue_txop(now, t);
            } else {
                self.start_backoff(now, t);
            }
            return sent;
        }
        self.note_attempt(false, t);
        self.note_result(1, 0);
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        let gives_up = outgoing.apply_request(t).unwrap_or_else(|| {
            let (retries, limit) = if outgoing.uses_rts {
                (&mut self.contention.long_retries, t.long_retry_limit)
            } else {
                (&mut self.contention.short_retries, t.short_retry_limit)
            };
            is_last(retries, limit)
        });
        if gives_up {
            self.give_up_and_back_off(now, t)
        } else {
            outgoing.rts_next = outgoing.uses_rts;
            self.retry(now, t);
            Action::None
        }
    }

    /// Notes the end of an attempt to send the current packet.
    pub(super) fn note_attempt(&mut self, acknowledged: bool, t: &Timing) {
        let Some(outgoing) = &mut self.outgoing else { return };
        outgoing.retries += u32::from(!acknowledged);
        if self.attempts.are_reported {
            let bytes = outgoing.bytes;
            let (arrived, held) = if acknowledged { (bytes, 0) } else { (0, bytes) };
            self.report_attempt(acknowledged, (bytes, arrived), held, t);
        }
    }

    /// Stores the report of a finished attempt: the bytes of its MPDUs, the acknowledged bytes, and
    /// the bytes that the MAC still holds.
    pub(super) fn report_attempt(&mut self, acknowledged: bool, (bytes, arrived): (u32, u32), held: u32, t: &Timing) {
        let Some(outgoing) = &self.outgoing else { return };
        let has_data = self.exchange == Exchange::Data;
        let sent_rts = outgoing.uses_rts || self.exchange == Exchange::Rts;
        let rts = if sent_rts { t.rts_air } else { Duration::ZERO };
        let (data, bytes) = if has_data { (outgoing.data_air, bytes) } else { (Duration::ZERO, 0) };
        let carried = AttemptContent {
            category: self.category,
            rate: t.rate_of(outgoing.rate),
            bytes,
            acknowledged: arrived,
            held,
        };
        self.attempts.last =
            Some(AttemptReport { queued: outgoing.packet.clone(), air_time: rts + data, acknowledged, carried });
    }

    /// Counts a failed RTS, or a failure that counts like one. Returns whether the retry limit is
    /// reached.
    pub(super) fn count_short_failure(&mut self, t: &Timing) -> bool {
        is_last(&mut self.contention.short_retries, t.short_retry_limit)
    }

    /// Counts a failure of a frame that was sent after a CTS. Returns whether the retry limit is
    /// reached.
    pub(super) fn count_long_failure(&mut self, t: &Timing) -> bool {
        is_last(&mut self.contention.long_retries, t.long_retry_limit)
    }

    /// Gives up the current packet and resets the contention window.
    pub(super) fn give_up(&mut self, t: &Timing) -> Action<P> {
        self.contention.cw = self.access(t).cw_min;
        match self.outgoing.take() {
            Some(Outgoing { packet: queued, retries, .. }) => Action::Failed { queued, retries },
            None => Action::None,
        }
    }

    /// Gives up a packet. Where the rules say so, a backoff follows before the next packet, as after
    /// an acknowledged attempt (IEEE Std 802.11-2016, 10.3.4.3).
    fn give_up_and_back_off(&mut self, now: Time, t: &Timing) -> Action<P> {
        let action = self.give_up(t);
        if t.rules.backoff_after_giving_up {
            // The long retry count belongs to a packet, so it is reset here.
            self.contention.long_retries = 0;
            self.start_backoff(now, t);
        }
        action
    }

    /// Starts the backoff before another attempt, with a doubled contention window.
    pub(super) fn retry(&mut self, now: Time, t: &Timing) {
        self.widen(t);
        self.start_backoff(now, t);
    }

    /// Doubles the contention window, up to its maximum.
    pub(super) fn widen(&mut self, t: &Timing) {
        self.contention.cw = (2 * self.contention.cw + 1).min(self.access(t).cw_max);
    }

    /// Continues after the end of an exchange or after a received frame: sends a response,
    /// contends, or requests the next packet.
    pub(super) fn resume(&mut self, now: Time, t: &Timing) {
        if self.answer.is_some() {
            self.sifs_timer = now + t.sifs;
        } else if let Some(outgoing) = &self.outgoing {
            if !self.backoff.busy() {
                if outgoing.rts_next || !outgoing.uses_rts {
                    self.contend(now, t);
                } else {
                    // The CTS has arrived.
                    self.sifs_timer = now + t.sifs;
                }
            }
        } else if self.packets == PacketState::Sending {
            self.packets = PacketState::Done;
        }
        self.exchange = Exchange::Idle;
        self.sense(now, t);
    }

    /// Transmits the response that is due. A CTS is dropped if the medium is reserved or, where the
    /// rules say so, busy.
    pub(super) fn transmit_answer(&mut self, now: Time, t: &Timing) -> Action<P> {
        let Some(answer) = self.answer else { return Action::None };
        let (exchange, timeout) = match answer.kind {
            FrameKind::Cts => {
                let free = if t.rules.cts_needs_idle_medium { self.medium_idle(now) } else { self.nav_until <= now };
                if !free {
                    self.answer = None;
                    self.resume(now, t);
                    return Action::None;
                }
                (Exchange::Cts, t.data_timeout(answer.nav))
            }
            FrameKind::BlockAck => {
                let frame = self.block_ack_frame(answer, t);
                let air_time = frame.air_time;
                return self.transmit(now, frame, Exchange::Ack, air_time, t);
            }
            _ => (Exchange::Ack, t.answer_air(answer.rate)),
        };
        let air_time = if exchange == Exchange::Cts { t.cts_air } else { timeout };
        let frame = Frame {
            kind: answer.kind,
            from: self.me,
            to: answer.to,
            bytes: CTS_ACK_BYTES,
            rate: answer.rate,
            air_time,
            nav: answer.nav,
            sequence: 0,
            retry: false,
            category: answer.category,
            body: None,
            bitmap: 0,
        };
        self.transmit(now, frame, exchange, timeout, t)
    }

    /// Transmits the next frame of the current packet: its RTS or its data.
    pub(super) fn transmit_outgoing(&mut self, now: Time, t: &Timing) -> Action<P> {
        self.prepare_attempt(now, t);
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        let to = outgoing.packet.next_hop;
        let (uses_rts, rts_next, bytes) = (outgoing.uses_rts, outgoing.rts_next, outgoing.bytes);
        // Under the standard, the backoff has run only while the medium was idle, possibly except
        // for the CCA time before its end.
        if t.rules.senses_before_sending && !self.medium_idle(now) {
            if let Some(outgoing) = &mut self.outgoing {
                outgoing.rts_next = uses_rts;
            }
            self.retry(now, t);
            return Action::None;
        }
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        let (data_air, answer_air) = (outgoing.data_air, outgoing.answer_air);
        if rts_next {
            let frame = Frame {
                kind: FrameKind::Rts,
                from: self.me,
                to,
                bytes: RTS_BYTES,
                rate: FrameRate::BASIC,
                air_time: t.rts_air,
                nav: t.duration_field(t.sifs * 3 + t.cts_air + data_air + answer_air),
                sequence: 0,
                retry: false,
                category: self.category,
                body: None,
                bitmap: 0,
            };
            return self.transmit(now, frame, Exchange::Rts, t.answer_timeout(t.rts_air, t.cts_air), t);
        }
        if self.is_aggregating() {
            return self.transmit_aggregate(now, t);
        }
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        let broadcast = to.is_broadcast();
        let frame = Frame {
            kind: FrameKind::Data,
            from: self.me,
            to,
            bytes,
            rate: outgoing.rate,
            air_time: data_air,
            nav: if broadcast { Duration::ZERO } else { t.duration_field(answer_air + t.sifs) },
            sequence: outgoing.sequence,
            retry: outgoing.sent_before,
            category: self.category,
            body: Some(outgoing.packet.body.clone()),
            bitmap: 0,
        };
        outgoing.sent_before = true;
        let timeout = if broadcast { data_air } else { t.answer_timeout(data_air, answer_air) };
        self.transmit(now, frame, Exchange::Data, timeout, t)
    }

    /// Starts the transmission of `frame` and the time-out of its exchange.
    pub(super) fn transmit(
        &mut self,
        now: Time,
        frame: Frame<P>,
        exchange: Exchange,
        timeout: Duration,
        t: &Timing,
    ) -> Action<P> {
        self.exchange = exchange;
        self.sense(now, t);
        self.transmitting_until = now + frame.air_time;
        self.after_error = false;
        self.receiver.on_own_transmission();
        self.timeout = now + timeout;
        Action::Transmit(frame)
    }
}

/// Counts one more failure. Returns whether it was the last one permitted; the count then starts
/// again from zero.
fn is_last(failures: &mut u32, limit: u32) -> bool {
    *failures += 1;
    let is_last = *failures >= limit;
    if is_last {
        *failures = 0;
    }
    is_last
}
