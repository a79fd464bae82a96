//! Rate control in an exchange: the rate of an attempt, and what became of it.
//!
//! The rules are those of [`crate::mac::rate_control`].

use super::{Dcf, Exchange};
use crate::mac::block_ack::Attempt;
use crate::mac::rate_control::Choice;
use crate::mac::timing::{BLOCK_ACK_BYTES, BLOCK_ACK_REQ_BYTES, CTS_ACK_BYTES, Timing};
use crate::packet::Packet;
use crate::radio::FrameRate;
use meshpace_core::{NodeId, Time};

impl<P: Packet> Dcf<P> {
    /// Neighbour `node` hears this station with that ratio of signal to noise, a number.
    pub fn on_link_snr(&mut self, node: NodeId, snr: f64, t: &Timing) {
        if let (Some(rates), Some(set)) = (&mut self.rates, &t.rates) {
            rates.on_link_snr(set, node, snr);
        }
    }

    /// Chooses the rate of the next attempt with the current batch, and how much of the batch that carries.
    #[cold]
    pub(super) fn choose_rate(&mut self, now: Time, t: &Timing) {
        let (Some(rates), Some(set), Some(outgoing)) = (&mut self.rates, &t.rates, &self.outgoing) else { return };
        let Choice { mcs, probes } = rates.choose(now, set, outgoing.packet.next_hop, &mut self.rng);
        let rate = FrameRate::chosen(mcs);
        let most = if probes { 0 } else { set.most(mcs).min(self.bytes_in_txop(rate, now, t)) };
        let Some(outgoing) = &mut self.outgoing else { return };
        outgoing.rate = rate;
        let attempt = match &mut self.block_ack {
            Some(block_ack) if !block_ack.originator.is_empty() => block_ack.originator.prepare(most),
            _ => Attempt::Mpdu(outgoing.bytes),
        };
        let (bytes, sent_at, answer_bytes) = match attempt {
            Attempt::Request => (BLOCK_ACK_REQ_BYTES, rate.answer(), BLOCK_ACK_BYTES),
            Attempt::Mpdu(bytes) => (bytes, rate, CTS_ACK_BYTES),
            Attempt::Aggregate(bytes) => (bytes, rate, BLOCK_ACK_BYTES),
        };
        outgoing.bytes = bytes;
        outgoing.data_air = t.air_at(sent_at, bytes);
        outgoing.answer_air = t.air_at(rate.answer(), answer_bytes);
        outgoing.uses_rts = attempt != Attempt::Request && t.uses_rts(bytes);
        outgoing.rts_next = outgoing.uses_rts;
    }

    /// An attempt with the current batch is over: so many MPDUs were on the air, and so many of them are acknowledged.
    #[inline]
    pub(super) fn note_result(&mut self, sent: u32, acknowledged: u32) {
        // A collision inside the station says nothing about its links.
        if self.exchange != Exchange::Idle
            && let (Some(rates), Some(outgoing)) = (&mut self.rates, &self.outgoing)
        {
            let sent = if self.exchange == Exchange::Data { sent } else { 0 };
            rates.on_result(outgoing.packet.next_hop, sent, acknowledged);
        }
    }
}
