//! Access by category (EDCA): four functions contend in a station, each with its own queue, backoff
//! and contention window.
//!
//! Source: IEEE Std 802.11-2012, 9.19.2 (EDCA), 9.19.2.3 (internal collision: if the backoffs of
//! two categories end at the same time, the more urgent category transmits, and the other behaves
//! as after a collision), 9.19.2.4 (TXOP).
//!
//! One category is *active*: the fields of [`Dcf`] hold its state, and the frame on the air or the
//! expected answer belongs to it. The states of the other categories are *parked* in this module.
//! All categories see the same medium. A parked category becomes active when its backoff ends, and
//! stays active until another one does.
//!
//! - A TXOP begins when a category wins the medium. If the TXOP limit is not zero, further
//!   exchanges follow a SIFS after the last answer, as long as the next attempt fits together with
//!   its answer. Aggregates are shortened to fit. The first exchange may be longer if it is a
//!   single MPDU (9.19.2.4).
//! - A TXOP ends when an exchange fails, or when the category has nothing to send.
//! - Duration fields cover one exchange (8.2.5.2, single protection), so that no frame has to
//!   announce the early end of a TXOP.
//! - A backoff counter decreases at the end of AIFS and at each slot boundary after it, even if
//!   another station or category begins to transmit at that boundary (9.19.2.3). Each busy period
//!   therefore takes one slot from all counters that have waited for their AIFS. Counters of the
//!   DCF do not decrease in that case.
//! - If an answer is missing, AIFS begins at the end of the time-out (9.19.2.3 c), for all
//!   categories of the station.

use super::{Action, Contention, Dcf, Exchange, Outgoing, PacketState};
use crate::body::Queued;
use crate::category::Category;
use crate::mac::backoff::Backoff;
use crate::mac::block_ack::{BlockAck, Originator};
use crate::mac::timing::Timing;
use crate::packet::Packet;
use crate::radio::FrameRate;
use alloc::vec::Vec;
use core::mem::swap;
use meshpace_core::{Duration, NodeId, Time};

/// State of a category that is not active.
#[derive(Clone, Debug)]
struct Parked<P> {
    category: Category,
    backoff: Backoff,
    packets: PacketState,
    contention: Contention,
    outgoing: Option<Outgoing<P>>,
    originator: Option<Originator<P>>,
}

/// State of the parked categories of a station, and of the current TXOP.
#[derive(Clone, Debug)]
pub(super) struct Categories<P> {
    parked: [Parked<P>; Category::COUNT - 1],
    /// End of the TXOP of the active category. In the past if there is no TXOP.
    txop_until: Time,
    /// Packets whose last attempt was an internal collision, with the numbers of their failures.
    given_up: Vec<(Queued<P>, u32)>,
    /// Number of internal collisions.
    collisions: u64,
}

impl<P: Packet> Categories<P> {
    /// Creates empty batches with best effort active. `None` without EDCA.
    pub fn new(t: &Timing) -> Option<Categories<P>> {
        t.ht?.edca?;
        let parked = |category| Parked {
            category,
            backoff: Backoff::Off,
            packets: PacketState::None,
            contention: Contention::new(category, t),
            outgoing: None,
            originator: BlockAck::originator_of(category, t),
        };
        let parked = [Category::Voice, Category::Video, Category::Background].map(parked);
        Some(Categories { parked, txop_until: Time::ZERO, given_up: Vec::new(), collisions: 0 })
    }

    /// Removes and returns a packet that was given up outside an exchange, with the number of its
    /// failures.
    pub fn next_given_up(&mut self) -> Option<(Queued<P>, u32)> {
        self.given_up.pop()
    }

    /// State of `category`; `None` if it is the active one.
    fn find(&self, category: Category) -> Option<&Parked<P>> {
        self.parked.iter().find(|parked| parked.category == category)
    }
}

impl<P: Packet> Dcf<P> {
    /// Number of collisions between categories of this station.
    pub fn internal_collisions(&self) -> u64 {
        self.categories.as_ref().map_or(0, |categories| categories.collisions)
    }

    /// State of `category`; `None` if it is the active one, or without EDCA.
    fn parked(&self, category: Category) -> Option<&Parked<P>> {
        self.categories.as_ref()?.find(category)
    }

    /// True if the station can take a packet of this category with [`Dcf::send_as`].
    pub fn wants(&self, category: Category) -> bool {
        self.parked(category).map_or(self.packets, |parked| parked.packets) != PacketState::Sending
    }

    /// Starts to send a packet of this category, like [`Dcf::send`].
    pub fn send_as(&mut self, category: Category, now: Time, packet: Queued<P>, t: &Timing) {
        self.while_active(category, |mac| mac.send(now, packet, t));
    }

    /// Next hop of the current batch of this category; `None` if there is no batch.
    pub fn batch_next_hop(&self, category: Category) -> Option<NodeId> {
        let outgoing = match self.parked(category) {
            Some(parked) => &parked.outgoing,
            None if category == self.category => &self.outgoing,
            None => return None,
        };
        Some(outgoing.as_ref()?.packet.next_hop)
    }

    /// Room in the batch of this category, like [`Dcf::room`].
    pub fn room_of(&self, category: Category, t: &Timing) -> Option<(NodeId, u32)> {
        match self.parked(category) {
            Some(parked) => {
                let (node, bytes) = parked.originator.as_ref()?.room()?;
                Some((node, bytes.checked_sub(t.rules.data_overhead)?))
            }
            None => self.room(t),
        }
    }

    /// True if an attempt with the current batch of this category has been made.
    pub fn has_begun(&self, category: Category) -> bool {
        let originator = match self.parked(category) {
            Some(parked) => parked.originator.as_ref(),
            None => self.block_ack.as_ref().map(|block_ack| &block_ack.originator),
        };
        originator.is_some_and(|originator| originator.has_begun())
    }

    /// Adds a packet to the batch of this category, like [`Dcf::join`].
    pub fn join_as(&mut self, category: Category, packet: Queued<P>, t: &Timing) {
        self.while_active(category, |mac| mac.join(packet, t));
    }

    /// Makes a category active.
    fn activate(&mut self, category: Category) {
        let Some(categories) = &mut self.categories else { return };
        // The category is already active if it is not parked.
        let Some(parked) = categories.parked.iter_mut().find(|parked| parked.category == category) else { return };
        swap(&mut self.category, &mut parked.category);
        swap(&mut self.backoff, &mut parked.backoff);
        swap(&mut self.packets, &mut parked.packets);
        swap(&mut self.contention, &mut parked.contention);
        swap(&mut self.outgoing, &mut parked.outgoing);
        if let (Some(block_ack), Some(originator)) = (&mut self.block_ack, &mut parked.originator) {
            swap(&mut block_ack.originator, originator);
        }
    }

    /// Calls `action` while `category` is active, and then makes the previous category active
    /// again.
    fn while_active(&mut self, category: Category, action: impl FnOnce(&mut Self)) {
        let before = self.category;
        self.activate(category);
        action(self);
        self.activate(before);
    }

    /// Time of the next timer of all categories, see [`Dcf::next_wakeup`].
    pub fn next_wakeup_of_all(&self, t: &Timing) -> Time {
        self.next_wakeup(t).min(self.parked_wakeup(t))
    }

    /// Updates the parked backoffs up to `now`, when the station's timer fires. Returns the time of
    /// the next timer of all categories.
    #[cold]
    pub fn update_and_next_wakeup_of_all(&mut self, now: Time, t: &Timing) -> Time {
        self.follow_nav_parked(now, t);
        self.next_wakeup_of_all(t)
    }

    /// Updates the parked categories after all events until `now` and the station's own actions.
    /// Categories that have a packet to send and do not contend begin to contend.
    pub fn update_parked(&mut self, now: Time, t: &Timing) {
        for category in Category::URGENT_FIRST {
            let waits = |parked: &Parked<P>| parked.outgoing.is_some() && !parked.backoff.busy();
            if self.answer.is_none() && self.parked(category).is_some_and(waits) {
                self.while_active(category, |mac| mac.contend(now, t));
            }
        }
        self.sense_parked(now, false, t);
    }

    /// Continues the parked backoffs that stopped for a NAV that ended before `now`. Called before
    /// all other events at `now`.
    #[cold]
    pub fn follow_nav_parked(&mut self, now: Time, t: &Timing) {
        if self.nav_until <= now {
            self.sense_parked(self.nav_until, true, t);
        }
    }

    /// Adjusts the parked backoffs to the state of the medium. After the end of a NAV, only stopped
    /// backoffs are adjusted. A backoff that is about to end does not notice that another station
    /// has begun to send.
    #[cold]
    pub(super) fn sense_parked(&mut self, now: Time, only_paused: bool, t: &Timing) {
        let idle = self.medium_idle(now);
        let Some(mut categories) = self.categories.take() else { return };
        let notices = |backoff: Backoff| self.exchange != Exchange::Idle || backoff.notices(now, t.rules.cca_time);
        for parked in &mut categories.parked {
            match parked.backoff {
                Backoff::Paused { .. } if idle => parked.backoff.resume(self.counts_from(parked.category, now, t)),
                Backoff::Running { .. } if !idle && !only_paused && notices(parked.backoff) => {
                    parked.backoff.pause(now, t.slot, t.counts_ahead);
                }
                _ => {}
            }
        }
        self.categories = Some(categories);
    }

    /// Earliest time at which a parked backoff ends.
    fn parked_wakeup(&self, t: &Timing) -> Time {
        let Some(categories) = &self.categories else { return Time::NEVER };
        let can_resume = self.exchange == Exchange::Idle && !self.receiver.busy();
        let ends = categories.parked.iter().map(|parked| match parked.backoff {
            Backoff::Running { .. } => parked.backoff.expiry().unwrap_or(Time::NEVER),
            Backoff::Paused { remaining_ns } if can_resume => {
                self.nav_until + t.difs + Duration(u64::from(remaining_ns))
            }
            _ => Time::NEVER,
        });
        ends.min().unwrap_or(Time::NEVER)
    }

    /// Handles the end of backoffs. The most urgent category with a packet to send gets the medium.
    #[cold]
    pub(super) fn on_categories_due(&mut self, now: Time, t: &Timing) -> Action<P> {
        if let Some(categories) = &mut self.categories {
            categories.txop_until = Time::ZERO;
        }
        let mut winner = None;
        for category in Category::URGENT_FIRST {
            let backoff = self.parked(category).map_or(self.backoff, |parked| parked.backoff);
            if backoff.expiry().is_none_or(|at| at > now) {
                continue;
            }
            self.while_active(category, |mac| {
                mac.backoff = Backoff::Off;
                // While a response is due, the frame waits. It contends again after the response.
                if mac.outgoing.is_none() || mac.answer.is_some() {
                } else if winner.is_none() {
                    winner = Some(category);
                } else {
                    mac.on_internal_collision(now, t);
                }
            });
        }
        let Some(category) = winner else {
            self.sense(now, t);
            return Action::None;
        };
        self.activate(category);
        let limit = self.access(t).txop;
        if let Some(categories) = &mut self.categories {
            categories.txop_until = now + limit;
        }
        self.transmit_outgoing(now, t)
    }

    /// Handles the loss of the active category against a more urgent one, as if its frame had
    /// collided on the air.
    fn on_internal_collision(&mut self, now: Time, t: &Timing) {
        if let Some(categories) = &mut self.categories {
            categories.collisions += 1;
        }
        let is_broadcast = self.outgoing.as_ref().is_some_and(|outgoing| outgoing.packet.next_hop.is_broadcast());
        self.prepare_attempt(now, t);
        if self.is_aggregating() {
            self.on_missing_aggregate_answer(now, t);
        } else if is_broadcast || !self.count_short_failure(t) {
            self.retry(now, t);
        } else {
            if let Action::Failed { queued, retries } = self.give_up(t)
                && let Some(categories) = &mut self.categories
            {
                categories.given_up.push((queued, retries));
            }
            self.start_backoff(now, t);
        }
        if self.outgoing.is_none() {
            self.packets = PacketState::Done;
        }
        // The new counter does not decrease at the slot boundary at which it was drawn.
        self.backoff.pause(now, t.slot, Duration::ZERO);
    }

    /// Rest of the TXOP of the active category; `None` if the limit is one exchange.
    fn txop_left(&self, now: Time, t: &Timing) -> Option<Duration> {
        let limit = self.access(t).txop;
        let until = self.categories.as_ref()?.txop_until;
        (limit > Duration::ZERO).then(|| if until > now { until.since(now) } else { limit })
    }

    /// Largest size in bytes of an aggregate at a rate that ends, together with its block ACK,
    /// within the TXOP.
    pub(super) fn bytes_in_txop(&self, rate: FrameRate, now: Time, t: &Timing) -> u32 {
        self.txop_left(now, t).map_or(u32::MAX, |left| t.bytes_within(left, rate))
    }

    /// True if the TXOP continues after a successful exchange.
    pub(super) fn can_continue_txop(&self, now: Time, t: &Timing) -> bool {
        self.categories.as_ref().is_some_and(|categories| categories.txop_until > now + t.sifs) && self.answer.is_none()
    }

    /// Continues the TXOP. The batch that is current a SIFS later follows.
    #[cold]
    pub(super) fn continue_txop(&mut self, now: Time, t: &Timing) {
        if self.outgoing.is_none() && self.packets == PacketState::Sending {
            self.packets = PacketState::Done;
        }
        self.exchange = Exchange::Idle;
        self.sifs_timer = now + t.sifs;
    }

    /// Decides, a SIFS after a CTS or within a TXOP, whether the current batch is transmitted. If
    /// not, the TXOP ends.
    #[cold]
    pub(super) fn txop_continues(&mut self, now: Time, t: &Timing) -> bool {
        if self.outgoing.as_ref().is_some_and(|outgoing| outgoing.uses_rts && !outgoing.rts_next) {
            return true;
        }
        self.prepare_attempt(now, t);
        let until = self.categories.as_ref().map_or(Time::ZERO, |categories| categories.txop_until);
        let fits = self.outgoing.as_ref().is_some_and(|outgoing| now + outgoing.duration(t) <= until);
        let txop_continues = fits && !self.backoff.busy();
        if !txop_continues && !self.backoff.busy() {
            self.start_backoff(now, t);
        }
        txop_continues
    }
}

impl<P> Outgoing<P> {
    /// Duration of an exchange, from the first frame to the end of the answer.
    fn duration(&self, t: &Timing) -> Duration {
        let handshake = if self.uses_rts { t.handshake() } else { Duration::ZERO };
        let answer = if self.packet.next_hop.is_broadcast() { Duration::ZERO } else { t.sifs + self.answer_air };
        handshake + self.data_air + answer
    }
}
