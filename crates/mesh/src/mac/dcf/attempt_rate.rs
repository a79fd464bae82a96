//! Rate control in an exchange: the rate of an attempt, and its result.
//!
//! The rules are those of [`crate::mac::rate_control`].

use super::{Dcf, Exchange};
use crate::mac::rate_control::Choice;
use crate::mac::timing::Timing;
use crate::packet::Packet;
use crate::radio::FrameRate;
use meshpace_core::{NodeId, Time};

impl<P: Packet> Dcf<P> {
    /// Sets the signal-to-noise ratio, as a plain number, with which neighbour `node` receives this
    /// station.
    pub fn on_link_snr(&mut self, node: NodeId, snr: f64, t: &Timing) {
        if let (Some(rates), Some(set)) = (&mut self.rates, &t.rates) {
            rates.on_link_snr(set, node, snr);
        }
    }

    /// Sets the MCS that the list of links contains for the direction to `node`.
    pub fn on_link_mcs(&mut self, node: NodeId, mcs: u8, t: &Timing) {
        if let (Some(rates), Some(set)) = (&mut self.rates, &t.rates) {
            rates.on_link_mcs(set, node, mcs);
        }
    }

    /// Chooses the rate of the next attempt to a neighbour, and the largest number of bytes that it
    /// may carry (0: one MPDU). Without rate control this is the configured rate.
    pub(super) fn choose_rate(&mut self, now: Time, to: NodeId, t: &Timing) -> (FrameRate, u32) {
        let (Some(rates), Some(set)) = (&mut self.rates, &t.rates) else {
            return (FrameRate::DATA, self.bytes_in_txop(FrameRate::DATA, now, t));
        };
        let Choice { mcs, is_probe } = rates.choose(now, set, to, &mut self.rng);
        let rate = FrameRate::chosen(mcs);
        (rate, if is_probe { 0 } else { set.most(mcs).min(self.bytes_in_txop(rate, now, t)) })
    }

    /// Notes the result of an attempt with the current batch: the number of transmitted MPDUs, and
    /// the number of acknowledged ones.
    #[inline]
    pub(super) fn note_result(&mut self, sent: u32, acknowledged: u32) {
        // An internal collision contains no information about a link.
        if self.exchange != Exchange::Idle
            && let (Some(rates), Some(outgoing)) = (&mut self.rates, &self.outgoing)
        {
            let sent = if self.exchange == Exchange::Data { sent } else { 0 };
            rates.on_result(outgoing.packet.next_hop, sent, acknowledged);
        }
    }
}
