//! Observers of a run: traces, captures, counters.
//!
//! The engine is generic over its probe for the sake of one: the empty probe `()`, which costs nothing. Every other one is
//! given to it as a `&mut dyn Probe`, so that the engine is compiled for two types and not for each observer there is.

use core::cell::RefCell;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::Queued;
use meshpace_mesh::link::discipline::QueueLoss;
use meshpace_mesh::mac::{Frame, Mpdu};
use meshpace_mesh::routing::DropReason;

/// Reason of a loss below the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The queue discipline or its marker gave it up.
    Queue(QueueLoss),
    /// It was displaced while waiting for address resolution.
    ArpDisplaced,
    /// It waited in the queue for a neighbour whose link failed.
    Flushed,
    /// Routing gave it up.
    Routing(DropReason),
}

/// Reception by one station of an aggregate that ends now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Received {
    /// The station.
    pub node: NodeId,
    /// The power with which it was received, W.
    pub power: f64,
    /// Which MPDUs, a bit for each, the first the lowest; not 0.
    pub mpdus: u64,
}

/// The MPDUs of an aggregate, which begins or ends.
#[derive(Debug)]
pub struct Aggregate<'a, P> {
    /// The frame that they make up, without content of its own.
    pub frame: &'a Frame<P>,
    /// Its MPDUs in their order.
    pub mpdus: &'a [Mpdu<P>],
    /// Its reception by a station, where it ends; None where it begins.
    pub reception: Option<Received>,
}

// Not derived: that would ask for packets that can be copied.
impl<P> Clone for Aggregate<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Aggregate<'_, P> {}

/// Events that cost more than their telling and that a probe wants to be told of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Interests {
    /// [`Event::Decoded`], [`Event::Collision`] and receptions of [`Aggregate`]: every station that can decode a frame is then looked at when the frame
    /// ends, whomever it is for.
    pub receptions: bool,
}

impl Interests {
    /// Only the events that cost nothing to find.
    pub const NONE: Interests = Interests { receptions: false };
    /// Every event there is.
    pub const ALL: Interests = Interests { receptions: true };
}

/// An event of a run. All that it refers to is the engine's.
#[derive(Debug)]
pub enum Event<'a, P> {
    /// A node begins to transmit.
    OnAir {
        /// The frame that it transmits.
        frame: &'a Frame<P>,
    },
    /// A node has decoded a frame; whether it was meant for it or not. Told if [`Interests::receptions`].
    Decoded {
        /// The node.
        node: NodeId,
        /// The frame, which ends now.
        frame: &'a Frame<P>,
        /// The power with which it was received, W.
        power: f64,
    },
    /// A frame, which a node was to receive, was lost there to another frame; counted in `Counters::collisions`. Told if
    /// [`Interests::receptions`].
    Collision {
        /// The node.
        node: NodeId,
        /// The frame, which ends now.
        frame: &'a Frame<P>,
    },
    /// The MAC of a node is done with a packet: it was acknowledged, or broadcast. Not told of those of aggregates.
    Sent {
        /// The node.
        node: NodeId,
        /// Attempts without an answer before the one that was.
        retries: u32,
    },
    /// The MAC of a node gives up what it had for a neighbour, at its retry limit.
    LinkFailure {
        /// The node.
        node: NodeId,
        /// The neighbour.
        next_hop: NodeId,
    },
    /// Routing has lost a route while in use, or has found one again.
    Route {
        /// The node of the routing protocol.
        node: NodeId,
        /// Destination of the route.
        destination: NodeId,
        /// True if it was found; lost otherwise.
        found: bool,
    },
    /// A transport hands a packet to the network.
    Inject {
        /// The node of the transport.
        node: NodeId,
        /// The packet.
        packet: &'a P,
    },
    /// A packet has reached the transport that it is for.
    Deliver {
        /// The node of the transport.
        node: NodeId,
        /// The packet.
        packet: &'a P,
    },
    /// A frame on its way to a neighbour was lost before it left, or the packet in it has no way on.
    Loss {
        /// The node.
        node: NodeId,
        /// The lost packet, with the neighbour it was for.
        lost: &'a Queued<P>,
        /// Reason of the loss.
        why: Loss,
    },
}

// Not derived: that would ask for packets that can be copied.
impl<P> Clone for Event<'_, P> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Event<'_, P> {}

/// An observer.
pub trait Probe<P> {
    /// Events that it wants to be told of beside those that cost nothing; the same whenever it is asked.
    fn interests(&self) -> Interests {
        Interests::NONE
    }

    /// Something happened at `now`.
    fn on(&mut self, now: Time, event: Event<'_, P>);

    /// The MPDUs of an aggregate: after [`Event::OnAir`] of the frame, which does not say them, and at the end wherever at least one
    /// MPDU was received, if [`Interests::receptions`]. To those who do not ask, an aggregate is one frame.
    #[inline(always)]
    fn on_aggregate(&mut self, _now: Time, _aggregate: Aggregate<'_, P>) {}
}

/// Nobody: costs nothing.
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

/// A probe that others look at between two steps of a run. It must not be borrowed during one.
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
