//! Common interface between routing, queue discipline, marker and MAC.
//!
//! A discipline decides in which queue a packet waits and when it may leave. A marker observes the
//! MAC and marks or drops packets when they leave. Any discipline can be combined with any marker.
//! Plain drop-tail without a marker has no additional cost: no state, no random numbers, no
//! allocation.

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
    /// The queue was full.
    Full,
    /// LRED dropped the packet, to signal that the link loses frames.
    Lred,
    /// CoDel dropped the packet, to signal that packets wait too long.
    CoDel,
}

/// Result of one attempt of the MAC to send a unicast frame. The attempt ends when the ACK arrives
/// or when the wait for CTS or ACK ends.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a, P> {
    /// Neighbour to which the frame was sent.
    pub next_hop: NodeId,
    /// Body of the frame.
    pub body: &'a Body<P>,
    /// Air time of this station in the attempt, including preambles: that of the data frame, and
    /// that of the RTS if it was used.
    pub air_time: Duration,
    /// True if the ACK arrived; for an aggregate, if any answer arrived.
    pub acknowledged: bool,
    /// Content and result of the attempt.
    pub carried: AttemptContent,
}

/// Measured state of a link and of a destination behind it, in the link layer of a node. A field is
/// NaN if the node's queue and marker do not measure it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkState {
    /// DCC's gamma: share of attempts that failed, from 0 to 1.
    pub collision_probability: f64,
    /// DCC's T: share of time for which this station transmitted on the link, from 0 to 1.
    pub air_time: f64,
    /// LLAP's k NHT: time that a source should wait between two packets, in seconds.
    pub four_hop_delay_s: f64,
}

/// Queue discipline of one node.
#[derive(Clone, Debug)]
enum Queue<P> {
    DropTail(DropTail<P>),
    /// One drop-tail queue for each category, each with the whole limit.
    Categories(Box<[DropTail<P>; Category::COUNT]>),
    Llap(Box<Llap<P>>),
    FqCodel(Box<FqCodel<P>>),
    FqCodelAirtime(Box<FqCodelAirtime<P>>),
}

/// Marker of one node, with its random numbers.
#[derive(Clone, Debug)]
enum Marker {
    None,
    Lred(Box<(Lred, Rng)>),
    Dcc(Box<(Dcc, Rng)>),
}

/// Queue and marker between routing and the MAC of one node.
///
/// Duties of the caller: call [`Discipline::push`] for each packet that routing sends,
/// [`Discipline::pop`] when the MAC wants a packet, and [`Discipline::on_timer`] at
/// [`Discipline::next_wakeup`]. Report the results of the packet popped last, before the next
/// `pop`: [`Discipline::on_attempt`] for each attempt, then [`Discipline::on_sent`] or
/// [`Discipline::on_failed`]. Any call may change the wake-up time, and any call except `pop` may
/// make a packet ready for the MAC.
#[derive(Clone, Debug)]
pub struct Discipline<P> {
    queue: Queue<P>,
    marker: Marker,
}

impl<P: Packet> Discipline<P> {
    /// Creates the empty link layer of node `me`. `rng` draws its marks
    /// ([`meshpace_core::rng::Purpose::Marking`]).
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

    /// True if [`Discipline::push`] needs the number of hops to the destination of a packet that
    /// this node created.
    #[inline]
    pub fn wants_hops(&self) -> bool {
        matches!(self.queue, Queue::Llap(_))
    }

    /// True if [`Discipline::on_attempt`] must be called.
    #[inline]
    pub fn wants_attempts(&self) -> bool {
        matches!(self.marker, Marker::Dcc(_)) || matches!(self.queue, Queue::FqCodelAirtime(_))
    }

    /// True if [`Discipline::on_overheard`] must be called.
    #[inline]
    pub fn wants_overheard(&self) -> bool {
        matches!(self.queue, Queue::Llap(_))
    }

    /// True if the discipline may delay packets although the MAC could take them. Otherwise
    /// [`Discipline::next_wakeup`] is always [`Time::NEVER`].
    #[inline]
    pub fn holds_back(&self) -> bool {
        matches!(self.queue, Queue::Llap(_))
    }

    /// Number of packets waiting.
    pub fn len(&self) -> usize {
        match &self.queue {
            Queue::DropTail(queue) => queue.len(),
            Queue::Categories(queues) => queues.iter().map(DropTail::len).sum(),
            Queue::Llap(queue) => queue.len(),
            Queue::FqCodel(queue) => queue.len(),
            Queue::FqCodelAirtime(queue) => queue.len(),
        }
    }

    /// True if no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a packet from routing. `hops` is the number of hops to its destination, if
    /// [`Discipline::wants_hops`] and the number is known. `lost` is called for each packet that is
    /// dropped.
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

    /// Measured state of the link to `next_hop` and of the path to `destination`, which is `hops`
    /// hops away.
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

    /// Removes and returns the next packet for the MAC, marked if the marker decides so. `lost` is
    /// called for each packet that is dropped before it.
    #[inline]
    pub fn pop(&mut self, now: Time, lost: impl FnMut(Queued<P>, QueueLoss)) -> Option<Queued<P>> {
        match (&mut self.queue, &self.marker) {
            (Queue::DropTail(queue), Marker::None) => queue.pop(),
            _ => self.pop_judged(now, lost),
        }
    }

    /// Implements `pop` for all queues and markers.
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

    /// Removes and returns a packet for `next_hop`, whose link has failed. The caller repeats this
    /// until `None`.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        match &mut self.queue {
            Queue::DropTail(queue) => queue.take_for(next_hop),
            Queue::Categories(queues) => queues.iter_mut().find_map(|queue| queue.take_for(next_hop)),
            Queue::Llap(queue) => queue.take_for(next_hop),
            Queue::FqCodel(queue) => queue.take_for(next_hop),
            Queue::FqCodelAirtime(queue) => queue.take_for(next_hop),
        }
    }

    /// Removes and returns the next packet of a category for the MAC, if categories have queues of
    /// their own.
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

    /// True if the next packet of a category is for another neighbour than `next_hop`. Always false
    /// for disciplines that do not send packets in their order of arrival.
    pub fn is_first_for_another(&self, category: Category, next_hop: NodeId) -> bool {
        match &self.queue {
            Queue::DropTail(queue) => queue.is_first_for_another(next_hop),
            Queue::Categories(queues) => queues[category as usize].is_first_for_another(next_hop),
            Queue::Llap(_) | Queue::FqCodel(_) | Queue::FqCodelAirtime(_) => false,
        }
    }

    /// Removes and returns the next packet for a neighbour if it fits into an aggregate of its
    /// category. `room` is the neighbour and the largest size in bytes. `None` if the packet does
    /// not fit, and always with a marker or LLAP. `lost` is called for each packet that is dropped
    /// before it.
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

    /// Time at which [`Discipline::on_timer`] must be called next; [`Time::NEVER`] if no call is
    /// needed.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        match &self.queue {
            Queue::Llap(queue) => queue.next_wakeup(),
            _ => Time::NEVER,
        }
    }

    /// Runs the scheduler at the wake-up time.
    pub fn on_timer(&mut self, now: Time) {
        if let Queue::Llap(queue) = &mut self.queue {
            queue.schedule(now);
        }
    }

    /// Notes the end of an attempt to send the packet popped last. Not called for broadcasts.
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

    /// Notes that the packet popped last was acknowledged by `next_hop`, or that its broadcast has
    /// ended. `retries` is the number of attempts without an answer before (RTS without CTS, data
    /// without ACK), and `data_air` the air time of its data frame. Returns the time to add to the
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

    /// Notes that the MAC has given up the packet popped last after `retries` attempts without an
    /// answer.
    #[inline]
    pub fn on_failed(&mut self, retries: u32) {
        if let Queue::Llap(queue) = &mut self.queue {
            queue.on_failed();
        }
        if let Marker::Lred(marker) = &mut self.marker {
            marker.0.on_done(retries);
        }
    }

    /// Notes that `packet` was decoded in a data frame that `transmitter` sent to any station.
    /// `now` is the end of the frame.
    #[inline]
    pub fn on_overheard(&mut self, now: Time, transmitter: NodeId, packet: &P) {
        if let Queue::Llap(queue) = &mut self.queue {
            queue.on_overheard(now, transmitter, packet.id());
        }
    }
}

impl Marker {
    /// Marks a packet that leaves for the MAC, with the marking probability. Returns false if the
    /// packet must be dropped instead.
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
