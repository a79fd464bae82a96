//! The one interface between routing, queue discipline, marker and MAC.
//!
//! A discipline decides which packet waits where and when it may leave; a marker watches the MAC and marks or drops
//! packets as they leave. Any of the one goes with any of the other. Plain drop-tail without a marker passes straight
//! through: nothing is kept, drawn or allocated for it.

use super::config::{MarkerConfig, QueueConfig};
use super::queue::{DropTail, Queued};
use crate::config::MeshConfig;
use crate::mac::Timing;
use crate::packet::{Body, Packet};
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Why a packet was lost between routing and MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLoss {
    /// No room.
    Full,
}

/// One attempt of the MAC to send a unicast frame, at its end: the ACK has come, or the wait for CTS or ACK is over.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a, P> {
    /// The neighbour it was for.
    pub next_hop: NodeId,
    /// What was to be sent.
    pub body: &'a Body<P>,
    /// Time this station was on the air in the attempt, preambles included: the data frame, and the RTS if there was one.
    pub air_time: Duration,
    /// Whether the ACK has come.
    pub acknowledged: bool,
}

/// The queue discipline of one node.
#[derive(Clone, Debug)]
enum Queue<P> {
    DropTail(DropTail<P>),
}

/// The marker of one node.
#[derive(Clone, Debug)]
enum Marker {
    None,
}

/// What stands between routing and the MAC of one node.
///
/// The caller's duties: [`Discipline::push`] what routing sends, [`Discipline::pop`] when the MAC wants a packet,
/// [`Discipline::on_timer`] at [`Discipline::next_wakeup`] (then offer the MAC a packet), and report what the MAC did to
/// the packet popped last: [`Discipline::on_attempt`] for each attempt, then [`Discipline::on_sent`] or
/// [`Discipline::on_failed`], before the next `pop`.
#[derive(Clone, Debug)]
pub struct Discipline<P> {
    queue: Queue<P>,
    marker: Marker,
}

impl<P: Packet> Discipline<P> {
    /// The link layer of node `me`, empty. `rng` draws its marks ([`meshpace_core::rng::Purpose::Marking`]).
    pub fn new(_me: NodeId, config: &MeshConfig, _timing: &Timing, _rng: Rng) -> Self {
        let queue = match config.link.queue {
            QueueConfig::DropTail => Queue::DropTail(DropTail::new(config.radio.queue, config.mac)),
        };
        let marker = match config.link.marker {
            MarkerConfig::None => Marker::None,
        };
        Discipline { queue, marker }
    }

    /// Whether [`Discipline::push`] wants to know how far the destination is.
    #[inline]
    pub fn wants_hops(&self) -> bool {
        match &self.queue {
            Queue::DropTail(_) => false,
        }
    }

    /// Whether [`Discipline::on_attempt`] is to be called at all.
    #[inline]
    pub fn wants_attempts(&self) -> bool {
        match &self.marker {
            Marker::None => false,
        }
    }

    /// Whether [`Discipline::on_overheard`] is to be called at all.
    #[inline]
    pub fn wants_overheard(&self) -> bool {
        match &self.queue {
            Queue::DropTail(_) => false,
        }
    }

    /// The number of packets waiting.
    pub fn len(&self) -> usize {
        match &self.queue {
            Queue::DropTail(queue) => queue.len(),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in a packet from routing. `hops`: the way to its destination, if [`Discipline::wants_hops`] and known.
    /// `lost` gets what has to go, if anything.
    #[inline]
    pub fn push(
        &mut self,
        _now: Time,
        packet: Queued<P>,
        _hops: Option<u8>,
        mut lost: impl FnMut(Queued<P>, QueueLoss),
    ) {
        match &mut self.queue {
            Queue::DropTail(queue) => {
                if let Some(packet) = queue.push(packet) {
                    lost(packet, QueueLoss::Full);
                }
            }
        }
    }

    /// The next packet for the MAC, marked if it is to be. `lost` gets what is dropped on the way.
    #[inline]
    pub fn pop(&mut self, _now: Time, _lost: impl FnMut(Queued<P>, QueueLoss)) -> Option<Queued<P>> {
        match &mut self.queue {
            Queue::DropTail(queue) => queue.pop(),
        }
    }

    /// Takes out a packet for `next_hop`, whose link has failed, if there is one; call until None.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        match &mut self.queue {
            Queue::DropTail(queue) => queue.take_for(next_hop),
        }
    }

    /// When [`Discipline::on_timer`] must be called next; [`Time::NEVER`] if it need not.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        match &self.queue {
            Queue::DropTail(_) => Time::NEVER,
        }
    }

    /// The wake-up time has come. There may be a packet for the MAC afterwards.
    pub fn on_timer(&mut self, _now: Time) {
        match &mut self.queue {
            Queue::DropTail(_) => {}
        }
    }

    /// An attempt to send the packet popped last has ended. Not for broadcasts.
    #[inline]
    pub fn on_attempt(&mut self, _now: Time, _attempt: Attempt<'_, P>) {
        match &mut self.marker {
            Marker::None => {}
        }
    }

    /// The packet popped last has been acknowledged by `next_hop`, or broadcast, after `retries` unsuccessful attempts;
    /// its data frame takes `data_air`. Returns what is to be added to the backoff that follows.
    #[inline]
    pub fn on_sent(&mut self, _now: Time, _next_hop: NodeId, _retries: u32, _data_air: Duration) -> Duration {
        match &mut self.marker {
            Marker::None => Duration::ZERO,
        }
    }

    /// The MAC has given up the packet popped last after `retries` retries (attempts less one).
    #[inline]
    pub fn on_failed(&mut self, _now: Time, _next_hop: NodeId, _retries: u32) {
        match &mut self.marker {
            Marker::None => {}
        }
    }

    /// `packet` has been overheard, or received, in a data frame that `transmitter` sent; `now` is the frame's end.
    #[inline]
    pub fn on_overheard(&mut self, _now: Time, _transmitter: NodeId, _packet: &P) {
        match &mut self.queue {
            Queue::DropTail(_) => {}
        }
    }
}
