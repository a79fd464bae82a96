//! The one interface between routing, queue discipline, marker and MAC.
//!
//! A discipline decides which packet waits where and when it may leave; a marker watches the MAC and marks or drops
//! packets as they leave. Any discipline can be combined with any marker. Plain drop-tail without a marker costs nothing
//! extra: no state, no random numbers, no allocation.

use super::config::{LinkConfig, MarkerConfig, QueueConfig};
use super::dcc::Dcc;
use super::fq_codel::FqCodel;
use super::fq_codel_airtime::FqCodelAirtime;
use super::llap::Llap;
use super::lred::{Lred, LredAction};
use super::queue::DropTail;
use crate::body::{Body, Queued};
use crate::mac::{AttemptContent, Category, Timing};
use crate::packet::Packet;
use alloc::boxed::Box;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Reason of a loss between routing and MAC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QueueLoss {
    /// No room.
    Full,
    /// LRED dropped it, to signal that the link loses frames.
    Lred,
    /// CoDel dropped it, to signal that packets wait too long.
    CoDel,
}

/// One attempt of the MAC to send a unicast frame, at its end: the ACK has come, or the wait for CTS or ACK is over.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a, P> {
    /// The neighbour it was for.
    pub next_hop: NodeId,
    /// Content that was to be sent.
    pub body: &'a Body<P>,
    /// Time this station was on the air in the attempt, preambles included: the data frame, and the RTS if there was one.
    pub air_time: Duration,
    /// True if the ACK has come; after an aggregate, any answer.
    pub acknowledged: bool,
    /// Content and result of the attempt.
    pub carried: AttemptContent,
}

/// State of a link and of a destination behind it in the link layer of a node. NaN where its queue or marker does not
/// measure that.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkState {
    /// DCC's gamma: the share of attempts that failed, from 0 to 1.
    pub collision_probability: f64,
    /// DCC's T: the share of time that this station was on the air for the link, from 0 to 1.
    pub air_time: f64,
    /// LLAP's k NHT: how long a source should wait between two packets, seconds.
    pub four_hop_delay_s: f64,
}

/// The queue discipline of one node.
#[derive(Clone, Debug)]
enum Queue<P> {
    DropTail(DropTail<P>),
    /// One for each category, each with the whole limit.
    Categories(Box<[DropTail<P>; Category::COUNT]>),
    Llap(Box<Llap<P>>),
    FqCodel(Box<FqCodel<P>>),
    FqCodelAirtime(Box<FqCodelAirtime<P>>),
}

/// The marker of one node.
#[derive(Clone, Debug)]
enum Marker {
    None,
    Lred(Box<(Lred, Rng)>),
    Dcc(Box<(Dcc, Rng)>),
}

/// Queue and marker between routing and the MAC of one node.
///
/// The caller's duties: [`Discipline::push`] what routing sends, [`Discipline::pop`] when the MAC wants a packet,
/// [`Discipline::on_timer`] at [`Discipline::next_wakeup`], and report what the MAC did to the packet popped last:
/// [`Discipline::on_attempt`] for each attempt, then [`Discipline::on_sent`] or [`Discipline::on_failed`], before the next
/// `pop`. Any call may change the wake-up time, and any but `pop` may make a packet ready for the MAC.
#[derive(Clone, Debug)]
pub struct Discipline<P> {
    queue: Queue<P>,
    marker: Marker,
}

impl<P: Packet> Discipline<P> {
    /// The link layer of node `me`, empty. `rng` draws its marks ([`meshpace_core::rng::Purpose::Marking`]).
    pub fn new(me: NodeId, config: &LinkConfig, timing: &Timing, rng: Rng) -> Self {
        let ack_time = timing.sifs + timing.ack_air;
        let drop_tail = || DropTail::new(config.limit, &timing.rules);
        let queue = match config.queue {
            QueueConfig::DropTail if timing.edca => Queue::Categories(Box::new(core::array::from_fn(|_| drop_tail()))),
            QueueConfig::DropTail => Queue::DropTail(drop_tail()),
            QueueConfig::Llap(config) => Queue::Llap(Box::new(Llap::new(me, config))),
            QueueConfig::FqCodel(config) => Queue::FqCodel(Box::new(FqCodel::new(config))),
            QueueConfig::FqCodelAirtime(config) => Queue::FqCodelAirtime(Box::new(FqCodelAirtime::new(config, timing))),
        };
        let marker = match config.marker {
            MarkerConfig::None => Marker::None,
            MarkerConfig::Lred(config) => Marker::Lred(Box::new((Lred::new(config, ack_time), rng))),
            MarkerConfig::Dcc(config) => Marker::Dcc(Box::new((Dcc::new(config, ack_time), rng))),
        };
        Discipline { queue, marker }
    }

    /// True if [`Discipline::push`] wants to know how far the destination of a packet of this node's own is.
    #[inline]
    pub fn wants_hops(&self) -> bool {
        matches!(self.queue, Queue::Llap(_))
    }

    /// True if [`Discipline::on_attempt`] is to be called at all.
    #[inline]
    pub fn wants_attempts(&self) -> bool {
        matches!(self.marker, Marker::Dcc(_)) || matches!(self.queue, Queue::FqCodelAirtime(_))
    }

    /// True if [`Discipline::on_overheard`] is to be called at all.
    #[inline]
    pub fn wants_overheard(&self) -> bool {
        matches!(self.queue, Queue::Llap(_))
    }

    /// True if it holds packets back although the MAC could take them: only then [`Discipline::next_wakeup`] ever has a time.
    #[inline]
    pub fn holds_back(&self) -> bool {
        matches!(self.queue, Queue::Llap(_))
    }

    /// The number of packets waiting.
    pub fn len(&self) -> usize {
        match &self.queue {
            Queue::DropTail(queue) => queue.len(),
            Queue::Categories(queues) => queues.iter().map(DropTail::len).sum(),
            Queue::Llap(queue) => queue.len(),
            Queue::FqCodel(queue) => queue.len(),
            Queue::FqCodelAirtime(queue) => queue.len(),
        }
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in a packet from routing. `hops`: the way to its destination, if [`Discipline::wants_hops`] and known.
    /// `lost` gets what has to go, if anything.
    #[inline]
    pub fn push(&mut self, now: Time, packet: Queued<P>, hops: Option<u8>, mut lost: impl FnMut(Queued<P>, QueueLoss)) {
        let displaced = match &mut self.queue {
            Queue::DropTail(queue) => queue.push(packet),
            Queue::Categories(queues) => queues[packet.body.category() as usize].push(packet),
            Queue::Llap(queue) => queue.push(now, packet, hops),
            Queue::FqCodel(queue) => return queue.push(now, packet, |packet| lost(packet, QueueLoss::Full)),
            Queue::FqCodelAirtime(queue) => return queue.push(now, packet, |packet| lost(packet, QueueLoss::Full)),
        };
        if let Some(packet) = displaced {
            lost(packet, QueueLoss::Full);
        }
    }

    /// State of the link to `next_hop` and of the way to `destination`, `hops` away.
    pub fn link_state(&mut self, now: Time, next_hop: NodeId, destination: NodeId, hops: u8) -> LinkState {
        let (collision_probability, air_time) = match &mut self.marker {
            Marker::Dcc(marker) => marker.0.link_state(now, next_hop),
            Marker::None | Marker::Lred(_) => (f64::NAN, f64::NAN),
        };
        let four_hop_delay_s = match &self.queue {
            Queue::Llap(queue) => queue.estimate(destination).and_then(|estimate| estimate.source_delay(hops)),
            Queue::DropTail(_) | Queue::Categories(_) | Queue::FqCodel(_) | Queue::FqCodelAirtime(_) => None,
        };
        LinkState { collision_probability, air_time, four_hop_delay_s: four_hop_delay_s.unwrap_or(f64::NAN) }
    }

    /// The next packet for the MAC, marked if it is to be. `lost` gets what is dropped on the way.
    #[inline]
    pub fn pop(&mut self, now: Time, lost: impl FnMut(Queued<P>, QueueLoss)) -> Option<Queued<P>> {
        match (&mut self.queue, &self.marker) {
            (Queue::DropTail(queue), Marker::None) => queue.pop(),
            _ => self.pop_judged(now, lost),
        }
    }

    fn pop_judged(&mut self, now: Time, mut lost: impl FnMut(Queued<P>, QueueLoss)) -> Option<Queued<P>> {
        loop {
            let mut packet = match &mut self.queue {
                Queue::DropTail(queue) => queue.pop(),
                Queue::Categories(queues) => queues.iter_mut().rev().find_map(DropTail::pop),
                Queue::Llap(queue) => queue.pop(now),
                Queue::FqCodel(queue) => queue.pop(now, |packet| lost(packet, QueueLoss::CoDel)),
                Queue::FqCodelAirtime(queue) => queue.pop(now, |packet| lost(packet, QueueLoss::CoDel)),
            }?;
            if self.marker.passes(now, &mut packet) {
                return Some(packet);
            }
            lost(packet, QueueLoss::Lred);
        }
    }

    /// Takes out a packet for `next_hop`, whose link has failed, if there is one; call until None.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        match &mut self.queue {
            Queue::DropTail(queue) => queue.take_for(next_hop),
            Queue::Categories(queues) => queues.iter_mut().find_map(|queue| queue.take_for(next_hop)),
            Queue::Llap(queue) => queue.take_for(next_hop),
            Queue::FqCodel(queue) => queue.take_for(next_hop),
            Queue::FqCodelAirtime(queue) => queue.take_for(next_hop),
        }
    }

    /// The next packet of a category for the MAC, where categories have their own queues.
    pub fn pop_of(
        &mut self,
        now: Time,
        category: Category,
        mut lost: impl FnMut(Queued<P>, QueueLoss),
    ) -> Option<Queued<P>> {
        match &mut self.queue {
            Queue::Categories(queues) => queues[category as usize].pop(),
            Queue::FqCodelAirtime(queue) => queue.pop_of(now, category, |packet| lost(packet, QueueLoss::CoDel)),
            _ => None,
        }
    }

    /// True if the next packet of a category is for another neighbour than `next_hop`, where packets wait in the order in which they came.
    pub fn is_first_for_another(&self, category: Category, next_hop: NodeId) -> bool {
        match &self.queue {
            Queue::DropTail(queue) => queue.is_first_for_another(next_hop),
            Queue::Categories(queues) => queues[category as usize].is_first_for_another(next_hop),
            Queue::Llap(_) | Queue::FqCodel(_) | Queue::FqCodelAirtime(_) => false,
        }
    }

    /// Takes out the next packet for a neighbour if it has so many bytes at most (`room`): to join others of its category in an aggregate. With a marker
    /// or LLAP there is none. `lost` gets what is dropped on the way.
    pub fn take_within(
        &mut self,
        now: Time,
        category: Category,
        room: (NodeId, u32),
        mut lost: impl FnMut(Queued<P>, QueueLoss),
    ) -> Option<Queued<P>> {
        let (next_hop, bytes) = room;
        let queue = match (&mut self.queue, &self.marker) {
            (Queue::DropTail(queue), Marker::None) => queue,
            (Queue::Categories(queues), Marker::None) => &mut queues[category as usize],
            (Queue::FqCodel(queue), Marker::None) => {
                return queue.take_within(now, room, |packet| lost(packet, QueueLoss::CoDel));
            }
            (Queue::FqCodelAirtime(queue), Marker::None) => {
                return queue.take_within(now, category, room, |packet| lost(packet, QueueLoss::CoDel));
            }
            _ => return None,
        };
        queue.take_if(|q| q.next_hop == next_hop, |q| q.body.size() <= bytes)
    }

    /// Time at which [`Discipline::on_timer`] must be called next; [`Time::NEVER`] if it need not.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        match &self.queue {
            Queue::Llap(queue) => queue.next_wakeup(),
            _ => Time::NEVER,
        }
    }

    /// The wake-up time has come.
    pub fn on_timer(&mut self, now: Time) {
        if let Queue::Llap(queue) = &mut self.queue {
            queue.schedule(now);
        }
    }

    /// An attempt to send the packet popped last has ended. Not for broadcasts.
    #[inline]
    pub fn on_attempt(&mut self, now: Time, attempt: Attempt<'_, P>) {
        if let Queue::FqCodelAirtime(queue) = &mut self.queue {
            queue.on_attempt(attempt.next_hop, attempt.air_time, &attempt.carried);
        }
        if let Marker::Dcc(marker) = &mut self.marker
            && let Body::Data(packet) = attempt.body
        {
            let (dcc, _) = &mut **marker;
            if !packet.is_pure_ack() || dcc.counts_acks() {
                let flow = (packet.flow(), packet.source());
                dcc.on_attempt(now, attempt.next_hop, flow, attempt.air_time, attempt.acknowledged);
            }
        }
    }

    /// The packet popped last has been acknowledged by `next_hop`, or broadcast, after `retries` attempts without an
    /// answer (RTS without CTS, data without ACK); its data frame takes `data_air`. Returns what is to be added to the
    /// backoff that follows.
    #[inline]
    pub fn on_sent(&mut self, now: Time, next_hop: NodeId, retries: u32, data_air: Duration) -> Duration {
        if let Queue::Llap(queue) = &mut self.queue {
            queue.on_sent(now);
        }
        match &mut self.marker {
            Marker::Lred(marker) if !next_hop.is_broadcast() => {
                marker.0.on_done(retries);
                marker.0.extra_backoff(data_air)
            }
            _ => Duration::ZERO,
        }
    }

    /// The MAC has given up the packet popped last after `retries` attempts without an answer.
    #[inline]
    pub fn on_failed(&mut self, retries: u32) {
        if let Queue::Llap(queue) = &mut self.queue {
            queue.on_failed();
        }
        if let Marker::Lred(marker) = &mut self.marker {
            marker.0.on_done(retries);
        }
    }

    /// `packet` has been decoded in a data frame that `transmitter` sent to anyone; `now` is the frame's end.
    #[inline]
    pub fn on_overheard(&mut self, now: Time, transmitter: NodeId, packet: &P) {
        if let Queue::Llap(queue) = &mut self.queue {
            queue.on_overheard(now, transmitter, packet.id());
        }
    }
}

impl Marker {
    /// Marks a packet that leaves for the MAC if chance wants it; false if it is to be dropped instead.
    fn passes<P: Packet>(&mut self, now: Time, packet: &mut Queued<P>) -> bool {
        let Body::Data(data) = &mut packet.body else { return true };
        match self {
            Marker::None => true,
            Marker::Lred(marker) => {
                let (lred, rng) = &mut **marker;
                let probability = lred.probability();
                if probability <= 0.0 || rng.uniform() >= probability {
                    return true;
                }
                let marked = lred.action() == LredAction::Mark && data.ecn_capable();
                if marked {
                    data.mark_ce();
                }
                marked
            }
            Marker::Dcc(marker) => {
                let (dcc, rng) = &mut **marker;
                if data.ecn_capable() && !data.is_pure_ack() {
                    let probability = dcc.probability(now, packet.next_hop, (data.flow(), data.source()));
                    if probability > 0.0 && rng.uniform() < probability {
                        data.mark_ce();
                    }
                }
                true
            }
        }
    }
}
