//! Exchanges of 802.11n: aggregates, block acknowledgements and requests for them, over the channel
//! access of the DCF.
//!
//! Source: IEEE Std 802.11-2016, 10.24.7 (HT-immediate block ACK), 10.22.2.11 (retries).
//! [`crate::mac::block_ack`] keeps the current batch and its results. The contention window doubles
//! after each attempt without an answer. It returns to its minimum after a block ACK or an ACK. It
//! also does so after the retry limit is reached, counting either attempts without any answer or
//! attempts that got a CTS but no answer to the data (10.22.2.2).

use super::{Action, Answer, Dcf, EndingFrame, Exchange};
use crate::body::Queued;
use crate::mac::block_ack::{Attempt, Outcome};
use crate::mac::frame::{Frame, FrameKind, Mpdu};
use crate::mac::timing::{BLOCK_ACK_BYTES, BLOCK_ACK_REQ_BYTES, CTS_ACK_BYTES, Timing};
use crate::packet::Packet;
use crate::radio::FrameEnd;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Time};

impl<P: Packet> Dcf<P> {
    /// Neighbour for which another packet can be added to the current batch, and the largest size
    /// of that packet in bytes.
    #[inline]
    pub fn room(&self, t: &Timing) -> Option<(NodeId, u32)> {
        let (node, bytes) = self.block_ack.as_ref()?.originator.room()?;
        Some((node, bytes.checked_sub(t.rules.data_overhead)?))
    }

    /// Adds a packet that [`Dcf::room`] permits to the current batch.
    pub fn join(&mut self, packet: Queued<P>, t: &Timing) {
        let bytes = packet.body.size() + t.rules.data_overhead;
        if let Some(block_ack) = &mut self.block_ack {
            block_ack.originator.push(packet, bytes);
        }
    }

    /// Next of the actions that follow the one that the last call returned. The caller repeats this
    /// until `None`.
    pub fn next_action(&mut self) -> Option<Action<P>> {
        let given_up = |(queued, retries)| Action::Failed { queued, retries };
        if let Some(failed) = self.categories.as_mut().and_then(|categories| categories.next_given_up()) {
            return Some(given_up(failed));
        }
        Some(match self.block_ack.as_mut()?.next_outcome()? {
            Outcome::Deliver(from, body) => Action::Deliver { from, body },
            Outcome::GivenUp(queued, retries) => given_up((queued, retries)),
        })
    }

    /// Removes and returns the MPDUs of the aggregate that the last call transmits. Empty if that
    /// is another kind of frame.
    pub fn take_mpdus(&mut self) -> Vec<Mpdu<P>> {
        self.block_ack.as_mut().map_or_else(Vec::new, |block_ack| core::mem::take(&mut block_ack.leaving))
    }

    /// MPDUs that [`Dcf::take_mpdus`] will return.
    pub fn leaving_mpdus(&self) -> &[Mpdu<P>] {
        self.block_ack.as_ref().map_or(&[], |block_ack| &block_ack.leaving)
    }

    /// Bit set of the MPDUs that this station received of the aggregate that ended last, at `now`.
    /// Empty while the station is transmitting.
    pub fn received_mpdus(&self, now: Time) -> u64 {
        let received = self.block_ack.as_ref().map_or(0, |block_ack| block_ack.received);
        if now < self.transmitting_until { 0 } else { received }
    }

    /// Time at which [`Dcf::on_reorder_timer`] must be called.
    pub fn next_reorder_wakeup(&self) -> Time {
        self.block_ack.as_ref().map_or(Time::NEVER, |block_ack| block_ack.next_wakeup())
    }

    /// Stops waiting for missing MPDUs whose deadline has passed. [`Dcf::next_action`] returns the
    /// MPDUs behind them.
    pub fn on_reorder_timer(&mut self, now: Time) {
        if let Some(block_ack) = &mut self.block_ack {
            block_ack.on_timer(now);
        }
    }

    /// Adds the packet that the station takes to a batch, if it is a packet for aggregates.
    #[inline]
    pub(super) fn start_batch(&mut self, packet: &Queued<P>, bytes: u32) {
        if let Some(block_ack) = &mut self.block_ack
            && !packet.next_hop.is_broadcast()
        {
            block_ack.originator.push(packet.clone(), bytes);
        }
    }

    /// True if the current batch is sent with block acknowledgement.
    #[inline]
    pub(super) fn is_aggregating(&self) -> bool {
        self.block_ack.as_ref().is_some_and(|block_ack| !block_ack.originator.is_empty())
    }

    /// Decides the content of the next attempt, unless the attempt has begun with an RTS.
    #[inline]
    pub(super) fn prepare_attempt(&mut self, now: Time, t: &Timing) {
        if self.block_ack.is_some() || self.rates.is_some() {
            self.prepare_other(now, t);
        }
    }

    /// Implements `prepare_attempt` for a station with aggregates or rate control.
    #[cold]
    fn prepare_other(&mut self, now: Time, t: &Timing) {
        let Some(outgoing) = &self.outgoing else { return };
        let to = outgoing.packet.next_hop;
        if outgoing.uses_rts && !outgoing.rts_next || to.is_broadcast() {
            return;
        }
        let (rate, most) = self.choose_rate(now, to, t);
        let Some(outgoing) = &mut self.outgoing else { return };
        let attempt = match &mut self.block_ack {
            Some(block_ack) if !block_ack.originator.is_empty() => block_ack.originator.prepare(most),
            _ => Attempt::Mpdu(outgoing.bytes),
        };
        let (bytes, sent_at, answer_bytes) = match attempt {
            Attempt::Request => (BLOCK_ACK_REQ_BYTES, rate.answer(), BLOCK_ACK_BYTES),
            Attempt::Mpdu(bytes) => (bytes, rate, CTS_ACK_BYTES),
            Attempt::Aggregate(bytes) => (bytes, rate, BLOCK_ACK_BYTES),
        };
        (outgoing.rate, outgoing.bytes) = (rate, bytes);
        outgoing.data_air = t.air_at(sent_at, bytes);
        outgoing.answer_air = t.air_at(rate.answer(), answer_bytes);
        outgoing.uses_rts = attempt != Attempt::Request && t.uses_rts(bytes);
        outgoing.rts_next = outgoing.uses_rts;
    }

    /// Transmits the frame of the attempt, after RTS and CTS if they are used.
    pub(super) fn transmit_aggregate(&mut self, now: Time, t: &Timing) -> Action<P> {
        let (Some(block_ack), Some(outgoing)) = (&mut self.block_ack, &self.outgoing) else { return Action::None };
        let (data_air, answer_air) = (outgoing.data_air, outgoing.answer_air);
        let mut frame = Frame {
            kind: FrameKind::Data,
            from: self.me,
            to: outgoing.packet.next_hop,
            bytes: outgoing.bytes,
            rate: outgoing.rate,
            air_time: data_air,
            nav: t.duration_field(answer_air + t.sifs),
            sequence: 0,
            retry: false,
            category: self.category,
            body: None,
            bitmap: 0,
        };
        match block_ack.originator.attempt() {
            Attempt::Request => {
                frame.kind = FrameKind::BlockAckReq;
                frame.rate = frame.rate.answer();
                frame.sequence = block_ack.originator.start();
            }
            Attempt::Mpdu(_) => {
                if let Some(Mpdu { sequence, retry, body, .. }) = block_ack.originator.send().next() {
                    (frame.sequence, frame.retry, frame.body) = (sequence, retry, Some(body));
                }
            }
            Attempt::Aggregate(_) => {
                block_ack.leaving = block_ack.originator.send().collect();
                if let Some(first) = block_ack.leaving.first() {
                    frame.sequence = first.sequence;
                }
            }
        }
        self.transmit(now, frame, Exchange::Data, t.answer_timeout(data_air, answer_air), t)
    }

    /// Handles an attempt without an answer.
    pub(super) fn on_missing_aggregate_answer(&mut self, now: Time, t: &Timing) {
        let on_air = self.exchange == Exchange::Data;
        let after_cts = on_air && self.outgoing.as_ref().is_some_and(|outgoing| outgoing.uses_rts);
        self.note_result(self.data_carried(), 0);
        if let Some(block_ack) = &mut self.block_ack {
            block_ack.originator.on_missing_answer(on_air);
            block_ack.note_given_up(t.short_retry_limit);
        }
        self.note_aggregate(false, 0, t);
        let is_last = if after_cts { self.count_long_failure(t) } else { self.count_short_failure(t) };
        if is_last {
            self.contention.cw = self.access(t).cw_min;
        } else {
            self.widen(t);
        }
        self.prepare_next();
        self.start_backoff(now, t);
    }

    /// Handles the ACK or block ACK of an attempt.
    pub(super) fn on_aggregate_answer(&mut self, now: Time, frame: &Frame<P>, t: &Timing) {
        let sent = self.data_carried();
        if let Some(block_ack) = &mut self.block_ack {
            let acknowledged = match frame.kind {
                FrameKind::BlockAck => block_ack.originator.on_block_ack(frame.sequence, frame.bitmap),
                _ => block_ack.originator.on_ack(),
            };
            block_ack.note_given_up(t.short_retry_limit);
            self.note_result(sent, acknowledged);
            self.note_aggregate(true, acknowledged.min(sent), t);
        }
        (self.contention.short_retries, self.contention.long_retries) = (0, 0);
        self.contention.cw = self.access(t).cw_min;
        self.prepare_next();
        if self.can_continue_txop(now, t) {
            self.continue_txop(now, t);
        } else {
            self.start_backoff(now, t);
            self.resume(now, t);
        }
    }

    /// Reports a finished attempt of which `acknowledged` MPDUs were acknowledged, if reports are
    /// switched on. An internal collision is not an attempt.
    fn note_aggregate(&mut self, is_answered: bool, acknowledged: u32, t: &Timing) {
        if !self.attempts.are_reported || self.exchange == Exchange::Idle {
            return;
        }
        let Some(block_ack) = &self.block_ack else { return };
        let bytes = match block_ack.originator.attempt() {
            Attempt::Request => 0,
            Attempt::Mpdu(bytes) | Attempt::Aggregate(bytes) => bytes,
        };
        let sent = block_ack.originator.data_carried().max(1);
        let arrived = (u64::from(bytes) * u64::from(acknowledged) / u64::from(sent)) as u32;
        let held = block_ack.originator.bytes();
        self.report_attempt(is_answered, (bytes, arrived), held, t);
    }

    /// Number of MPDUs in the current attempt.
    fn data_carried(&self) -> u32 {
        self.block_ack.as_ref().map_or(0, |block_ack| block_ack.originator.data_carried())
    }

    /// Prepares the next attempt, for the MPDUs that are left in the batch.
    fn prepare_next(&mut self) {
        if !self.is_aggregating() {
            self.outgoing = None;
        } else if let Some(outgoing) = &mut self.outgoing {
            outgoing.rts_next = outgoing.uses_rts;
        }
    }

    /// Handles MPDUs for this station, or a request for their acknowledgement.
    pub(super) fn on_mpdus(&mut self, now: Time, frame: &Frame<P>, t: &Timing) -> Action<P> {
        if self.exchange == Exchange::Cts {
            self.timeout = Time::NEVER;
        } else if self.answer.is_some() {
            return Action::None;
        }
        let kind = if frame.body.is_some() { FrameKind::Ack } else { FrameKind::BlockAck };
        let (to, category) = (frame.from, frame.category);
        self.answer = Some(Answer { kind, to, category, rate: frame.rate.answer(), nav: Duration::ZERO });
        if self.timeout == Time::NEVER {
            self.resume(now, t);
        }
        let Some(block_ack) = &mut self.block_ack else { return Action::None };
        match &frame.body {
            Some(body) => block_ack.on_mpdu(now, (to, category), frame.sequence, body),
            None if frame.kind == FrameKind::BlockAckReq => block_ack.on_request((to, category), frame.sequence),
            None => block_ack.on_aggregate(now, (to, category)),
        }
        Action::None
    }

    /// Block ACK for a neighbour and category.
    pub(super) fn block_ack_frame(&mut self, answer: Answer, t: &Timing) -> Frame<P> {
        let Answer { to, category, rate, .. } = answer;
        let (sequence, bitmap) =
            self.block_ack.as_mut().map_or((0, 0), |block_ack| block_ack.received_from((to, category)));
        Frame {
            kind: FrameKind::BlockAck,
            from: self.me,
            to,
            bytes: BLOCK_ACK_BYTES,
            rate,
            air_time: t.air_at(rate, BLOCK_ACK_BYTES),
            nav: Duration::ZERO,
            sequence,
            retry: false,
            category,
            body: None,
            bitmap,
        }
    }

    /// Handles the end of an aggregate, and stores its received MPDUs.
    #[cold]
    pub(super) fn end_aggregate(&mut self, now: Time, frame_end: &EndingFrame<'_, P>) -> Option<FrameEnd> {
        let lengths = frame_end.mpdus.iter().map(|mpdu| mpdu.bytes);
        let (outcome, decoded) = self.receiver.on_aggregate_end(now, frame_end.id, frame_end.power, lengths);
        if let Some(block_ack) = &mut self.block_ack {
            let is_decoded = |&(place, _): &(usize, _)| decoded >> place & 1 == 1;
            block_ack.received = decoded;
            block_ack.decoded.clear();
            block_ack
                .decoded
                .extend(frame_end.mpdus.iter().enumerate().filter(is_decoded).map(|(_, mpdu)| mpdu.clone()));
        }
        outcome
    }
}
