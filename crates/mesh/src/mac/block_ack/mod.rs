//! Aggregates and block acknowledgements of 802.11n: the MPDUs that a station holds for a neighbour, and those that it has received.
//!
//! Source: IEEE Std 802.11-2016, 10.24.7 (HT-immediate block ACK), 9.7 (A-MPDU), 9.3.1.8, 9.3.1.9. Channel access is that of
//! [`super::Dcf`], which asks here what the next attempt carries and tells what became of it:
//!
//! - An aggregate is made of the current batch, which is for one neighbour: packets that were waiting when it was taken, and those that come while it
//!   waits for the medium, within the limits. One MPDU alone goes as a plain frame and gets an ACK.
//! - What was not acknowledged goes again, first, in one window of 64 sequence numbers.
//! - A missed block ACK is asked for (if the mesh does that), with a frame that contends anew and has no RTS.
//! - An attempt without an answer, and a block ACK that does not list an MPDU, counts against that MPDU's retry limit (an attempt whose block ACK
//!   is asked for does not). After one was given up the neighbour is told where the window begins, before anything else.
//!
//! Block ACK agreements exist from the beginning, with sequence numbers from 0, one for each category.

mod originator;
mod recipient;

pub use originator::{Attempt, Originator};
pub use recipient::Recipient;

use super::config::HtConfig;
use super::frame::Mpdu;
use super::timing::Timing;
use crate::body::{Body, Queued};
use crate::category::Category;
use crate::packet::Packet;
use crate::radio::FrameRate;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Time};

/// Sequence numbers have 12 bits.
const SEQUENCES: u32 = 4096;

/// The number with the 12 bits `sequence` that is nearest to `about`.
fn unwrap(sequence: u16, about: u32) -> u32 {
    let ahead = (u32::from(sequence).wrapping_sub(about)) % SEQUENCES;
    if ahead < SEQUENCES / 2 { about + ahead } else { about.saturating_sub(SEQUENCES - ahead) }
}

/// The number with the 12 bits `start` at which a neighbour says that its window begins. It has given up what is before, any number of packets that nobody
/// received, so that it may be far ahead of `about`; it is behind by no more than what may have come out of turn.
fn unwrap_start(start: u16, about: u32) -> u32 {
    let behind = about.wrapping_sub(u32::from(start)) % SEQUENCES;
    if behind <= 2 * HtConfig::WINDOW { about.saturating_sub(behind) } else { about + (SEQUENCES - behind) }
}

/// The 12 bits that a frame carries.
fn wrap(sequence: u32) -> u16 {
    (sequence % SEQUENCES) as u16
}

/// Result of an MPDU that was kept.
#[derive(Clone, Debug)]
pub enum Outcome<P> {
    /// It has come in turn from that neighbour, hop counted.
    Deliver(NodeId, Body<P>),
    /// It was given up after so many failures.
    GivenUp(Queued<P>, u32),
}

/// Of whom, and of which category.
pub type Sender = (NodeId, Category);

/// The aggregates of one station.
#[derive(Clone, Debug)]
pub struct BlockAck<P> {
    /// Sending side; with EDCA that of the category in front.
    pub originator: Originator<P>,
    /// Receiving sides, by neighbour.
    recipients: Vec<Recipient<P>>,
    config: HtConfig,
    /// The MPDUs of the aggregate that goes on the air.
    pub leaving: Vec<Mpdu<P>>,
    /// The MPDUs of the aggregate that ended last, as far as they were received.
    pub decoded: Vec<Mpdu<P>>,
    /// Which those are, a bit for each MPDU on the air; kept until the next aggregate ends here.
    pub received: u64,
    /// Results that have not been told yet.
    outcomes: VecDeque<Outcome<P>>,
}

impl<P: Packet> BlockAck<P> {
    /// With an empty batch; None if the MAC makes no aggregates.
    pub fn new(t: &Timing) -> Option<BlockAck<P>> {
        Some(BlockAck {
            originator: BlockAck::originator_of(Category::BestEffort, t)?,
            recipients: Vec::new(),
            config: t.ht?,
            leaving: Vec::new(),
            decoded: Vec::new(),
            received: 0,
            outcomes: VecDeque::new(),
        })
    }

    /// The sending half of a category; None if the MAC makes no aggregates.
    pub fn originator_of(category: Category, t: &Timing) -> Option<Originator<P>> {
        let (config, ofdm) = (t.ht.filter(|ht| ht.mpdus > 1)?, t.ofdm?);
        let most = config.bytes.min(ofdm.data.bytes_within(config.longest, ofdm.band));
        let txop = t.access[category as usize].txop;
        let most = if txop > Duration::ZERO { most.min(t.bytes_within(txop, FrameRate::DATA)) } else { most };
        Some(Originator::new(config, most))
    }

    fn recipient(&mut self, from: Sender) -> (&mut Recipient<P>, &mut VecDeque<Outcome<P>>) {
        let place = self.recipients.iter().position(|recipient| recipient.from() == from);
        let place = place.unwrap_or_else(|| {
            self.recipients.push(Recipient::new(from, self.config.reorder_timeout));
            self.recipients.len() - 1
        });
        (&mut self.recipients[place], &mut self.outcomes)
    }

    /// An MPDU has arrived; what can be handed up goes to [`BlockAck::next_outcome`].
    pub fn on_mpdu(&mut self, now: Time, from: Sender, sequence: u16, body: &Body<P>) {
        let (recipient, outcomes) = self.recipient(from);
        recipient.on_mpdu(now, sequence, body, &mut |body| outcomes.push_back(Outcome::Deliver(from.0, body)));
    }

    /// Each of the MPDUs received in an aggregate from this neighbour.
    pub fn on_aggregate(&mut self, now: Time, from: Sender) {
        let mut decoded = core::mem::take(&mut self.decoded);
        for mpdu in decoded.drain(..) {
            self.on_mpdu(now, from, mpdu.sequence, &mpdu.body);
        }
        self.decoded = decoded;
    }

    /// A neighbour asks, and will send nothing before `start` any more.
    pub fn on_request(&mut self, from: Sender, start: u16) {
        let (recipient, outcomes) = self.recipient(from);
        recipient.on_request(start, &mut |body| outcomes.push_back(Outcome::Deliver(from.0, body)));
    }

    /// Content of a block ACK for a neighbour.
    pub fn received_from(&mut self, from: Sender) -> (u16, u64) {
        self.recipient(from).0.received()
    }

    /// Gives up what has failed `limit` times: after a silence or an answer.
    pub fn note_given_up(&mut self, limit: u32) {
        while let Some((queued, retries)) = self.originator.take_given_up(limit) {
            self.outcomes.push_back(Outcome::GivenUp(queued, retries));
        }
    }

    /// Result of the next MPDU.
    pub fn next_outcome(&mut self) -> Option<Outcome<P>> {
        self.outcomes.pop_front()
    }

    /// Time at which [`BlockAck::on_timer`] must be called: something missing is waited for no longer.
    pub fn next_wakeup(&self) -> Time {
        self.recipients.iter().map(Recipient::next_wakeup).min().unwrap_or(Time::NEVER)
    }

    /// The time has come.
    pub fn on_timer(&mut self, now: Time) {
        let outcomes = &mut self.outcomes;
        for recipient in self.recipients.iter_mut().filter(|recipient| recipient.next_wakeup() <= now) {
            let from = recipient.from();
            recipient.on_timer(now, &mut |body| outcomes.push_back(Outcome::Deliver(from.0, body)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_bits_are_enough_for_a_window() {
        for about in [0, 63, 4095, 4096, 8191, 100_000] {
            for ahead in 0..2048 {
                assert_eq!(unwrap(wrap(about + ahead), about), about + ahead);
                assert_eq!(unwrap(wrap(about), about + ahead), about);
            }
        }
    }
}
