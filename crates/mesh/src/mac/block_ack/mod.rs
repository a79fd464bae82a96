//! Aggregates and block acknowledgements of 802.11n: the MPDUs that a station holds for a
//! neighbour, and the MPDUs that it has received.
//!
//! Source: IEEE Std 802.11-2016, 10.24.7 (HT-immediate block ACK), 9.7 (A-MPDU), 9.3.1.8, 9.3.1.9.
//! [`super::Dcf`] performs the channel access. It asks this module for the content of the next
//! attempt and reports the result:
//!
//! - The *current batch* holds MPDUs for one neighbour: the packets that were queued when the batch
//!   began, and the packets that arrive while it waits for the medium, within the limits. An
//!   aggregate is made of the batch. A single MPDU is sent as a plain frame and gets an ACK.
//! - MPDUs that were not acknowledged are sent again, before new ones, within one window of 64
//!   sequence numbers.
//! - A missed block ACK is requested (if the mesh is configured so) with a frame that contends
//!   again and has no RTS.
//! - An attempt without an answer counts against the retry limit of its MPDUs, and so does a block
//!   ACK that does not list an MPDU. An attempt whose block ACK is requested does not count. After
//!   an MPDU was given up, the station first sends the neighbour the new start of the window.
//!
//! Block ACK agreements exist from the start of the run, with sequence numbers from 0, one
//! agreement for each category.

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

/// Number of sequence numbers, which have 12 bits.
const SEQUENCES: u32 = 4096;

/// Returns the full number with the lower 12 bits `sequence` that is nearest to `about`.
fn unwrap(sequence: u16, about: u32) -> u32 {
    let ahead = (u32::from(sequence).wrapping_sub(about)) % SEQUENCES;
    if ahead < SEQUENCES / 2 { about + ahead } else { about.saturating_sub(SEQUENCES - ahead) }
}

/// Returns the full number with the lower 12 bits `start` that a neighbour announces as the start
/// of its window. The neighbour has given up all MPDUs before `start`. It may have given up any
/// number of MPDUs that were never received, so `start` may be far ahead of `about`. It is behind
/// `about` by at most the number of MPDUs that may have arrived out of order.
fn unwrap_start(start: u16, about: u32) -> u32 {
    let behind = about.wrapping_sub(u32::from(start)) % SEQUENCES;
    if behind <= 2 * HtConfig::WINDOW { about.saturating_sub(behind) } else { about + (SEQUENCES - behind) }
}

/// Returns the 12 bits that a frame carries.
fn wrap(sequence: u32) -> u16 {
    (sequence % SEQUENCES) as u16
}

/// Final result of an MPDU.
#[derive(Clone, Debug)]
pub enum Outcome<P> {
    /// The MPDU has arrived in order from this neighbour. Its hop is counted.
    Deliver(NodeId, Body<P>),
    /// The MPDU was given up after this number of failures.
    GivenUp(Queued<P>, u32),
}

/// Neighbour and category of received MPDUs.
pub type Sender = (NodeId, Category);

/// Aggregates and reorder buffers of one station.
#[derive(Clone, Debug)]
pub struct BlockAck<P> {
    /// Transmit side; with EDCA, that of the active category.
    pub originator: Originator<P>,
    /// Receive sides, by neighbour and category.
    recipients: Vec<Recipient<P>>,
    config: HtConfig,
    /// MPDUs of the aggregate whose transmission begins.
    pub leaving: Vec<Mpdu<P>>,
    /// Received MPDUs of the aggregate that ended last.
    pub decoded: Vec<Mpdu<P>>,
    /// Bit set of the received MPDUs, with a bit for each MPDU of the aggregate. Valid until the
    /// next aggregate ends at this station.
    pub received: u64,
    /// Results that have not been returned yet.
    outcomes: VecDeque<Outcome<P>>,
}

impl<P: Packet> BlockAck<P> {
    /// Creates the state with an empty batch. `None` if the MAC makes no aggregates.
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

    /// Creates the transmit side of a category. `None` if the MAC makes no aggregates.
    pub fn originator_of(category: Category, t: &Timing) -> Option<Originator<P>> {
        let (config, ofdm) = (t.ht.filter(|ht| ht.mpdus > 1)?, t.ofdm?);
        let most = config.bytes.min(ofdm.data.bytes_within(config.longest, ofdm.band));
        let txop = t.access[category as usize].txop;
        let most = if txop > Duration::ZERO { most.min(t.bytes_within(txop, FrameRate::DATA)) } else { most };
        Some(Originator::new(config, most))
    }

    /// Receive side for a neighbour and category, created if it is new, and the list of results.
    fn recipient(&mut self, from: Sender) -> (&mut Recipient<P>, &mut VecDeque<Outcome<P>>) {
        let place = self.recipients.iter().position(|recipient| recipient.from() == from);
        let place = place.unwrap_or_else(|| {
            self.recipients.push(Recipient::new(from, self.config.reorder_timeout));
            self.recipients.len() - 1
        });
        (&mut self.recipients[place], &mut self.outcomes)
    }

    /// Handles a received MPDU. MPDUs that are in order are returned by [`BlockAck::next_outcome`].
    pub fn on_mpdu(&mut self, now: Time, from: Sender, sequence: u16, body: &Body<P>) {
        let (recipient, outcomes) = self.recipient(from);
        recipient.on_mpdu(now, sequence, body, &mut |body| outcomes.push_back(Outcome::Deliver(from.0, body)));
    }

    /// Handles each MPDU that was received in an aggregate from this neighbour.
    pub fn on_aggregate(&mut self, now: Time, from: Sender) {
        let mut decoded = core::mem::take(&mut self.decoded);
        for mpdu in decoded.drain(..) {
            self.on_mpdu(now, from, mpdu.sequence, &mpdu.body);
        }
        self.decoded = decoded;
    }

    /// Handles a block ACK request. The neighbour will send no MPDU before `start` any more.
    pub fn on_request(&mut self, from: Sender, start: u16) {
        let (recipient, outcomes) = self.recipient(from);
        recipient.on_request(start, &mut |body| outcomes.push_back(Outcome::Deliver(from.0, body)));
    }

    /// Starting sequence number and bitmap of a block ACK for a neighbour.
    pub fn received_from(&mut self, from: Sender) -> (u16, u64) {
        self.recipient(from).0.received()
    }

    /// Gives up the MPDUs that have failed `limit` times. Called after an attempt without an answer
    /// and after an answer.
    pub fn note_given_up(&mut self, limit: u32) {
        while let Some((queued, retries)) = self.originator.take_given_up(limit) {
            self.outcomes.push_back(Outcome::GivenUp(queued, retries));
        }
    }

    /// Removes and returns the next result.
    pub fn next_outcome(&mut self) -> Option<Outcome<P>> {
        self.outcomes.pop_front()
    }

    /// Time at which [`BlockAck::on_timer`] must be called, because the wait for a missing MPDU
    /// ends.
    pub fn next_wakeup(&self) -> Time {
        self.recipients.iter().map(Recipient::next_wakeup).min().unwrap_or(Time::NEVER)
    }

    /// Delivers the MPDUs behind gaps whose deadline has passed.
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
