//! The FIN of a sender, and when it is sent.
//!
//! The FIN is a block of its own after the last block of data. By the rule for blocks it is sent
//! when that block is acknowledged, so that closing after fresh data takes two round trips. On hosts
//! (`fin_follows`) a first copy is sent ahead: as soon as the application has closed and every
//! segment of the last block was sent once. A receiver accepts the FIN only if it has the whole
//! block before it. Three cases follow:
//!
//! - The block has arrived: the ACK of the FIN also acknowledges the block, and closing takes one
//!   round trip.
//! - The ACKs of both are lost: the block's timers repeat the block. The receiver, which is past
//!   that block, answers with a full bitmap.
//! - A segment of the block is missing, so that the receiver drops the copy: the timer of the FIN
//!   repeats it. That timer runs from the time at which the copy was sent, so that it has expired
//!   when the block has been repaired.

use super::{Sender, Timer};
use crate::flags::Flags;
use crate::pacing::Release;
use crate::tpa::block::Block;
use crate::tpa::congestion::State;
use crate::tpa::segment::{ALL, Segment, block_after};
use meshpace_core::Time;

/// State of the FIN.
#[derive(Clone, Debug)]
pub(super) struct Fin {
    /// Time at which the FIN was first sent; `Time::NEVER` if it was not sent yet.
    pub(super) since: Time,
    /// True if the FIN is acknowledged.
    pub(super) acknowledged: bool,
    /// True if a copy may be sent ahead of the acknowledgement of the last block.
    follows: bool,
    /// True if a copy was sent ahead, and the last block is not acknowledged yet.
    is_ahead: bool,
}

impl Fin {
    pub(super) fn new(follows: bool) -> Fin {
        Fin { since: Time::NEVER, acknowledged: false, follows, is_ahead: false }
    }
}

/// What an ACK says about the copy of the FIN that was sent ahead.
pub(super) enum Claim {
    /// Nothing, or no copy was sent ahead.
    Nothing,
    /// The peer has received the copy.
    Received,
    /// The peer claims to have received a transmission that was left out of the FIN's block.
    Impossible,
}

impl Sender {
    /// True if the FIN is acknowledged.
    pub fn is_finished(&self) -> bool {
        self.fin.acknowledged
    }

    /// Number of times that the FIN has been sent in its own block.
    pub fn fin_times(&self) -> u32 {
        if self.block.fin { self.flight.count() } else { 0 }
    }

    /// Time at which the FIN was first sent; `Time::NEVER` if it was not sent yet.
    pub fn fin_since(&self) -> Time {
        self.fin.since
    }

    /// Returns the copy of the FIN that is sent ahead of the last block's acknowledgement, if it may
    /// be sent now.
    pub(super) fn fin_ahead(&mut self, now: Time) -> Option<Segment> {
        if !self.fin.follows || self.fin.is_ahead {
            return None;
        }
        let is_last = self.supply.is_closing() && self.waiting() == 0 && !self.is_idle() && !self.block.fin;
        let was_sent = self.block.next().is_none() && self.block.outstanding() != 0;
        let may_be_sent =
            self.peer.window > 0 && self.congestion.state() == State::Normal && self.pacer.release(now) == Release::Now;
        if !(is_last && was_sent && may_be_sent) {
            return None;
        }
        self.fin.is_ahead = true;
        self.fin.since = now;
        // The copy is the first transmission of the FIN's block. Its number must not change later.
        self.flight.skip_next(|| 0);
        Some(Segment {
            offset: self.block.end(),
            block: block_after(self.block.number, 1),
            place: 1,
            tx: self.flight.next_first(),
            last: true,
            flags: Flags::FIN,
            ..Segment::default()
        })
    }

    /// Returns what `segment` says about the copy that was sent ahead.
    pub(super) fn claim_about_fin_ahead(&self, segment: &Segment) -> Claim {
        if !self.fin.is_ahead || segment.ack_block != block_after(self.block.number, 1) || segment.ack_places != 1 {
            return Claim::Nothing;
        }
        match segment.ack_tx.cmp(&self.flight.next_first()) {
            core::cmp::Ordering::Less => Claim::Impossible,
            core::cmp::Ordering::Equal => Claim::Received,
            core::cmp::Ordering::Greater => Claim::Nothing,
        }
    }

    /// True if the ACK `segment` of the current block tells that the receiver is past that block,
    /// because it has accepted the copy that was sent ahead. It then answers with every place of a
    /// block, also of a block that has fewer segments.
    pub(super) fn is_whole_before_fin(&self, segment: &Segment) -> bool {
        self.fin.is_ahead && segment.ack_places == ALL
    }

    /// Begins the FIN's block when the last block is acknowledged: the copy that was sent ahead is
    /// its first transmission.
    pub(super) fn adopt_fin_ahead(&mut self) {
        if !core::mem::take(&mut self.fin.is_ahead) {
            return;
        }
        self.block = Block::new(self.block.number, self.block.start, 0, 1, true);
        self.block.take_next();
        self.flight.record(self.fin.since, 0);
        let rto = self.estimator.backed_off(self.congestion.backoff());
        self.flight.timers[0] = Timer { at: self.fin.since.saturating_add(rto), probe: false };
    }
}
