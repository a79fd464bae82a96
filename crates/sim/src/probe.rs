//! Observers of a run: traces, captures, counters.
//!
//! The engine is generic over its probe only because of the empty probe `()`, which costs nothing.
//! Every other probe is passed as a `&mut dyn Probe`, so that the engine is compiled for two types
//! and not for each observer.

use core::cell::RefCell;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::Queued;
use meshpace_mesh::link::discipline::QueueLoss;
use meshpace_mesh::mac::{Frame, Mpdu};
use meshpace_mesh::routing::DropReason;

/// Reason of a loss below the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The queue discipline or its marker dropped the packet.
    Queue(QueueLoss),
    /// A newer packet displaced it during address resolution.
    ArpDisplaced,
    /// The packet was in the queue for a neighbour whose link failed.
    Flushed,
    /// Routing dropped the packet.
    Routing(DropReason),
}

/// Reception, by one station, of an aggregate that ends now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Received {
    /// Station that received it.
    pub node: NodeId,
    /// Received power, in W.
    pub power: f64,
    /// Bit set of the received MPDUs, with the first MPDU in the lowest bit; not 0.
    pub mpdus: u64,
}

/// MPDUs of an aggregate whose transmission begins, or whose reception ends.
#[derive(Debug)]
pub struct Aggregate<'a, P> {
    /// Frame of the aggregate, which has no content of its own.
    pub frame: &'a Frame<P>,
    /// MPDUs in their order.
    pub mpdus: &'a [Mpdu<P>],
    /// Reception by a station at the end of the aggregate; `None` at its start.
    pub reception: Option<Received>,
}

// The trait is not derived, because the derived implementation would require packets that can be
// copied.
impl<P> Clone for Aggregate<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Aggregate<'_, P> {}

/// Events whose detection costs time, and which a probe must request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Interests {
    /// True to request [`Event::Decoded`], [`Event::Collision`] and receptions of [`Aggregate`].
    /// Every station that can decode a frame is then processed at the end of the frame, whatever
    /// its destination.
    pub receptions: bool,
}

impl Interests {
    /// Request of no such event.
    pub const NONE: Interests = Interests { receptions: false };
    /// Request of all such events.
    pub const ALL: Interests = Interests { receptions: true };
}

/// Event of a run. All references point to data of the engine.
#[derive(Debug)]
pub enum Event<'a, P> {
    /// A node begins to transmit.
    OnAir {
        /// Transmitted frame.
        frame: &'a Frame<P>,
    },
    /// A node has decoded a frame, whether or not the frame is addressed to it. Reported if
    /// [`Interests::receptions`] is set.
    Decoded {
        /// Node that decoded the frame.
        node: NodeId,
        /// Frame, which ends now.
        frame: &'a Frame<P>,
        /// Received power, in W.
        power: f64,
    },
    /// A frame was lost at its destination to another frame, as counted in `Counters::collisions`.
    /// Reported if [`Interests::receptions`] is set.
    Collision {
        /// Destination of the frame.
        node: NodeId,
        /// Frame, which ends now.
        frame: &'a Frame<P>,
    },
    /// The MAC of a node has finished a packet: it was acknowledged, or its broadcast has ended.
    /// Not reported for packets of aggregates.
    Sent {
        /// Node of the MAC.
        node: NodeId,
        /// Number of attempts without an answer before the successful one.
        retries: u32,
    },
    /// The MAC of a node gives up its packet for a neighbour at the retry limit.
    LinkFailure {
        /// Node of the MAC.
        node: NodeId,
        /// Neighbour that did not answer.
        next_hop: NodeId,
    },
    /// Routing has lost a route that is in use, or has found a route again.
    Route {
        /// Node of the routing protocol.
        node: NodeId,
        /// Destination of the route.
        destination: NodeId,
        /// True if the route was found, false if it was lost.
        found: bool,
    },
    /// A transport hands a packet to the network.
    Inject {
        /// Node of the transport.
        node: NodeId,
        /// Packet of the transport.
        packet: &'a P,
    },
    /// A packet has reached its destination's transport.
    Deliver {
        /// Node of the transport.
        node: NodeId,
        /// Delivered packet.
        packet: &'a P,
    },
    /// A packet was lost before its transmission, or routing has dropped it.
    Loss {
        /// Node at which the loss occurred.
        node: NodeId,
        /// Lost packet, with its next hop.
        lost: &'a Queued<P>,
        /// Reason of the loss.
        reason: Loss,
    },
}

// The trait is not derived, because the derived implementation would require packets that can be
// copied.
impl<P> Clone for Event<'_, P> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Event<'_, P> {}

/// Observer of a run.
pub trait Probe<P> {
    /// Costly events that the probe requests. The answer must always be the same.
    fn interests(&self) -> Interests {
        Interests::NONE
    }

    /// Receives an event at `now`.
    fn on(&mut self, now: Time, event: Event<'_, P>);

    /// Receives the MPDUs of an aggregate: after the [`Event::OnAir`] of its frame, which does not
    /// contain them, and, if [`Interests::receptions`] is set, at its end at every station that
    /// received at least one MPDU. For a probe that does not implement this method, an aggregate is
    /// one frame.
    #[inline(always)]
    fn on_aggregate(&mut self, _now: Time, _aggregate: Aggregate<'_, P>) {}
}

/// Empty probe, which costs nothing.
impl<P> Probe<P> for () {
    #[inline(always)]
    fn interests(&self) -> Interests {
        Interests::NONE
    }

    #[inline(always)]
    fn on(&mut self, _now: Time, _event: Event<'_, P>) {}
}

impl<P, T: Probe<P> + ?Sized> Probe<P> for &mut T {
    #[inline]
    fn interests(&self) -> Interests {
        (**self).interests()
    }

    #[inline]
    fn on(&mut self, now: Time, event: Event<'_, P>) {
        (**self).on(now, event);
    }

    #[inline]
    fn on_aggregate(&mut self, now: Time, aggregate: Aggregate<'_, P>) {
        (**self).on_aggregate(now, aggregate);
    }
}

/// A probe that other code reads between two steps of a run. It must not be borrowed during a step.
impl<P, T: Probe<P> + ?Sized> Probe<P> for &RefCell<T> {
    fn interests(&self) -> Interests {
        self.borrow().interests()
    }

    fn on(&mut self, now: Time, event: Event<'_, P>) {
        self.borrow_mut().on(now, event);
    }

    fn on_aggregate(&mut self, now: Time, aggregate: Aggregate<'_, P>) {
        self.borrow_mut().on_aggregate(now, aggregate);
    }
}
