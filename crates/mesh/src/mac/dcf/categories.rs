//! Access by category (EDCA): four functions contend in a station, each with its own queue, backoff and window.
//!
//! Source: IEEE Std 802.11-2012, 9.19.2 (EDCA), 9.19.2.3 (a backoff that ends together with that of a more urgent category is a
//! collision inside the station: the more urgent one transmits, the other behaves as after a collision), 9.19.2.4 (TXOP).
//!
//! One category is in front: the fields of [`Dcf`] are its own, and what is on the air or awaited is its exchange. The others are parked
//! here. All see the same medium. A parked one whose backoff ends comes to the front, and stays there until another one does.
//!
//! - A TXOP begins when a category wins the medium. If its limit is not zero, exchanges follow a SIFS after the last answer, as long as what is in
//!   hand fits with its answer; aggregates are cut so that they do. The first exchange may be longer if it is one MPDU (9.19.2.4).
//! - An exchange that fails ends the TXOP, and so does having nothing to send.
//! - Duration fields cover one exchange (8.2.5.2, single protection), so that nobody has to be told that a TXOP ends early.
//! - A counter decreases where AIFS ends and at each slot boundary after that, also where another station or category begins to transmit (9.19.2.3),
//!   so that each busy time takes one from all that have waited for their AIFS. Counters of the DCF stand still there.
//! - An answer that does not come is waited for, and AIFS follows (9.19.2.3 c), for all categories of the station.

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

/// State of a category that is not in front.
#[derive(Clone, Debug)]
struct Parked<P> {
    category: Category,
    backoff: Backoff,
    packets: PacketState,
    contention: Contention,
    outgoing: Option<Outgoing<P>>,
    originator: Option<Originator<P>>,
}

/// The categories of a station.
#[derive(Clone, Debug)]
pub(super) struct Categories<P> {
    parked: [Parked<P>; Category::COUNT - 1],
    /// The end of the TXOP of the category in front, if it has one.
    txop_until: Time,
    /// Packets that collisions inside the station made the last time be given up, with their failures.
    given_up: Vec<(Queued<P>, u32)>,
    /// Collisions inside the station.
    collisions: u64,
}

impl<P: Packet> Categories<P> {
    /// Current batches empty, best effort in front; None without EDCA.
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

    /// A packet that was given up outside of an exchange, with its failures.
    pub fn next_given_up(&mut self) -> Option<(Queued<P>, u32)> {
        self.given_up.pop()
    }

    fn find(&self, category: Category) -> Option<&Parked<P>> {
        self.parked.iter().find(|parked| parked.category == category)
    }
}

impl<P: Packet> Dcf<P> {
    /// Collisions between categories of this station.
    pub fn internal_collisions(&self) -> u64 {
        self.categories.as_ref().map_or(0, |categories| categories.collisions)
    }

    fn parked(&self, category: Category) -> Option<&Parked<P>> {
        self.categories.as_ref()?.find(category)
    }

    /// True if the station can take a packet of that category with [`Dcf::send_as`].
    pub fn wants(&self, category: Category) -> bool {
        self.parked(category).map_or(self.packets, |parked| parked.packets) != PacketState::Sending
    }

    /// A packet of that category to send: as [`Dcf::send`].
    pub fn send_as(&mut self, category: Category, now: Time, packet: Queued<P>, t: &Timing) {
        self.in_front(category, |mac| mac.send(now, packet, t));
    }

    /// Next hop of that category's current batch.
    pub fn holds_for(&self, category: Category) -> Option<NodeId> {
        let outgoing = match self.parked(category) {
            Some(parked) => &parked.outgoing,
            None if category == self.category => &self.outgoing,
            None => return None,
        };
        Some(outgoing.as_ref()?.packet.next_hop)
    }

    /// As [`Dcf::room`], of that category.
    pub fn room_of(&self, category: Category, t: &Timing) -> Option<(NodeId, u32)> {
        match self.parked(category) {
            Some(parked) => {
                let (node, bytes) = parked.originator.as_ref()?.room()?;
                Some((node, bytes.checked_sub(t.rules.data_overhead)?))
            }
            None => self.room(t),
        }
    }

    /// True if an attempt with that category's current batch has been made.
    pub fn has_begun(&self, category: Category) -> bool {
        let originator = match self.parked(category) {
            Some(parked) => parked.originator.as_ref(),
            None => self.block_ack.as_ref().map(|block_ack| &block_ack.originator),
        };
        originator.is_some_and(|originator| originator.has_begun())
    }

    /// As [`Dcf::join`], of that category.
    pub fn join_as(&mut self, category: Category, packet: Queued<P>, t: &Timing) {
        self.in_front(category, |mac| mac.join(packet, t));
    }

    /// Brings a category to the front.
    fn bring(&mut self, category: Category) {
        let Some(categories) = &mut self.categories else { return };
        // In front already if it is not among them.
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

    /// Does something to a category as if it were in front.
    fn in_front(&mut self, category: Category, action: impl FnOnce(&mut Self)) {
        let before = self.category;
        self.bring(category);
        action(self);
        self.bring(before);
    }

    /// [`Dcf::next_wakeup`] of all categories.
    pub fn next_wakeup_of_all(&self, t: &Timing) -> Time {
        self.next_wakeup(t).min(self.parked_wakeup(t))
    }

    /// Its timer fires `now`, to which everything until now has happened: when there is something to do, in whatever category.
    #[cold]
    pub fn wakeup_of_all(&mut self, now: Time, t: &Timing) -> Time {
        self.follow_nav_parked(now, t);
        self.next_wakeup_of_all(t)
    }

    /// Everything until `now` has happened, and the station has done what it had to: lets the parked categories follow. Those that have something to
    /// send and do not contend begin to.
    pub fn settle_parked(&mut self, now: Time, t: &Timing) {
        for category in Category::URGENT_FIRST {
            let waits = |parked: &Parked<P>| parked.outgoing.is_some() && !parked.backoff.busy();
            if self.answer.is_none() && self.parked(category).is_some_and(waits) {
                self.in_front(category, |mac| mac.contend(now, t));
            }
        }
        self.sense_parked(now, false, t);
    }

    /// The NAV may have ended before `now`: lets the parked backoffs that wait count from then on. Before anything else that happens `now`.
    #[cold]
    pub fn follow_nav_parked(&mut self, now: Time, t: &Timing) {
        if self.nav_until <= now {
            self.sense_parked(self.nav_until, true, t);
        }
    }

    /// Lets the parked backoffs follow the state of the medium; after a NAV only those that wait. One that is about to end does not notice that
    /// somebody else has begun to send.
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

    /// Time at which a parked backoff ends, at the earliest.
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

    /// Backoffs may have ended: the most urgent category with something to send gets the medium.
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
            self.in_front(category, |mac| {
                mac.backoff = Backoff::Off;
                // While an answer is due the frame waits; it contends anew afterwards.
                if mac.outgoing.is_none() || mac.answer.is_some() {
                } else if winner.is_none() {
                    winner = Some(category);
                } else {
                    mac.collide_inside(now, t);
                }
            });
        }
        let Some(category) = winner else {
            self.sense(now, t);
            return Action::None;
        };
        self.bring(category);
        let limit = self.access(t).txop;
        if let Some(categories) = &mut self.categories {
            categories.txop_until = now + limit;
        }
        self.transmit_outgoing(now, t)
    }

    /// The category in front loses to a more urgent one, as if its frame had met another on the air.
    fn collide_inside(&mut self, now: Time, t: &Timing) {
        if let Some(categories) = &mut self.categories {
            categories.collisions += 1;
        }
        let is_broadcast = self.outgoing.as_ref().is_some_and(|outgoing| outgoing.packet.next_hop.is_broadcast());
        self.prepare_attempt(now, t);
        if self.is_aggregating() {
            self.on_aggregate_silence(now, t);
        } else if is_broadcast || !self.fails_once_more(t) {
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
        // The new counter does not decrease at the boundary at which it was drawn.
        self.backoff.pause(now, t.slot, Duration::ZERO);
    }

    /// Rest of the TXOP of the category in front; None if it has no limit but one exchange.
    fn txop_left(&self, now: Time, t: &Timing) -> Option<Duration> {
        let limit = self.access(t).txop;
        let until = self.categories.as_ref()?.txop_until;
        (limit > Duration::ZERO).then(|| if until > now { until.since(now) } else { limit })
    }

    /// Bytes of an aggregate at a rate that ends with its block ACK within the TXOP.
    pub(super) fn bytes_in_txop(&self, rate: FrameRate, now: Time, t: &Timing) -> u32 {
        self.txop_left(now, t).map_or(u32::MAX, |left| t.bytes_within(left, rate))
    }

    /// True if the TXOP goes on after an exchange that ends well.
    pub(super) fn keeps_txop(&self, now: Time, t: &Timing) -> bool {
        self.categories.as_ref().is_some_and(|categories| categories.txop_until > now + t.sifs) && self.answer.is_none()
    }

    /// The TXOP goes on: the batch that is current a SIFS later follows.
    #[cold]
    pub(super) fn hold_txop(&mut self, now: Time, t: &Timing) {
        if self.outgoing.is_none() && self.packets == PacketState::Sending {
            self.packets = PacketState::Done;
        }
        self.exchange = Exchange::Idle;
        self.defer = now + t.sifs;
    }

    /// A SIFS has passed, after a CTS or within a TXOP: whether the current batch goes on the air. If not, the TXOP is over.
    #[cold]
    pub(super) fn goes_on(&mut self, now: Time, t: &Timing) -> bool {
        if self.outgoing.as_ref().is_some_and(|outgoing| outgoing.uses_rts && !outgoing.rts_next) {
            return true;
        }
        self.prepare_attempt(now, t);
        let until = self.categories.as_ref().map_or(Time::ZERO, |categories| categories.txop_until);
        let fits = self.outgoing.as_ref().is_some_and(|outgoing| now + outgoing.duration(t) <= until);
        let goes_on = fits && !self.backoff.busy();
        if !goes_on && !self.backoff.busy() {
            self.start_backoff(now, t);
        }
        goes_on
    }
}

impl<P> Outgoing<P> {
    /// Duration of an attempt's exchange, from the first frame to the end of the answer.
    fn duration(&self, t: &Timing) -> Duration {
        let handshake = if self.uses_rts { t.handshake() } else { Duration::ZERO };
        let answer = if self.packet.next_hop.is_broadcast() { Duration::ZERO } else { t.sifs + self.answer_air };
        handshake + self.data_air + answer
    }
}
