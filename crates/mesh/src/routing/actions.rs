//! Actions that a routing protocol asks of its node.

use meshpace_core::{Duration, NodeId};

/// Reason why routing gave up a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// No route and, at the source, no hope of one soon: under AODV four network-wide requests without an answer.
    NoRoute,
    /// It came back to its source.
    Loop,
    /// Its time to live ran out.
    TtlExpired,
    /// The MAC gave it up at the retry limit.
    LinkFailure,
    /// The oldest packet of a full route buffer (AODV: 64 packets).
    BufferFull,
    /// It waited too long for a route (AODV: 30 s).
    BufferTimeout,
}

/// The node around a routing protocol: its link layer and its counters. `P` are the packets it carries, `M` the messages of
/// the protocol.
pub trait Actions<P, M> {
    /// Hands `packet` to the link layer for `next_hop`, or [`NodeId::BROADCAST`], after `delay` (jitter, or what keeps
    /// buffered packets apart). What has been handed over is on its way: a route that changes during the delay does not
    /// change it, and [`Actions::flush_queue`] does not reach it before the delay is over.
    fn forward(&mut self, packet: P, next_hop: NodeId, delay: Duration);

    /// Likewise for a message of the protocol itself.
    fn send(&mut self, message: M, next_hop: NodeId, delay: Duration);

    /// Routing gives `packet` up.
    fn drop_packet(&mut self, packet: P, reason: DropReason);

    /// Removes every frame that waits in the interface queue for `next_hop`, data and routing packets alike, and drops
    /// it (reason [`DropReason::LinkFailure`]); the frame in the MAC stays. Nothing is handed back to routing.
    fn flush_queue(&mut self, next_hop: NodeId);

    /// A search for a route to `destination` begins, for a count: a first request while none is outstanding.
    fn search_began(&mut self, destination: NodeId) {
        let _ = destination;
    }

    /// The route to `destination` is lost, and this node's own transport has sent packets over it (ELFN, explicit link failure
    /// notification). Told once, at the node where the packets come from, when its routing learns of it: from the MAC, from
    /// missed HELLOs, or from what other nodes say. Packets under way may still arrive, and the loss may be a false one (a
    /// frame given up under contention); both is in the nature of the notice. An AODV route that ends because nobody used
    /// it is not lost.
    fn route_lost(&mut self, destination: NodeId) {
        let _ = destination;
    }

    /// There is a route to `destination` again, which may be another one: the end of an [`Actions::route_lost`]. OLSR finds it
    /// by itself. AODV looks for routes only when somebody asks: a packet (what a transport sends as a probe) or
    /// [`Protocol::seek`](super::Protocol::seek), for a transport that is silent until this notice. A transport that keeps
    /// the RTT of its path should take this for a route change.
    fn route_found(&mut self, destination: NodeId) {
        let _ = destination;
    }
}

/// One thing that routing asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action<P, M> {
    /// [`Actions::forward`].
    Forward {
        /// The packet.
        packet: P,
        /// The neighbour, or broadcast.
        next_hop: NodeId,
        /// Wait before it is sent.
        delay: Duration,
    },
    /// [`Actions::send`].
    Send {
        /// The message.
        message: M,
        /// The neighbour, or broadcast.
        next_hop: NodeId,
        /// Wait before it is sent.
        delay: Duration,
    },
    /// [`Actions::drop_packet`].
    Drop {
        /// The packet.
        packet: P,
        /// The reason.
        reason: DropReason,
    },
    /// [`Actions::flush_queue`].
    Flush {
        /// The neighbour.
        next_hop: NodeId,
    },
    /// [`Actions::route_lost`] or [`Actions::route_found`].
    Notice {
        /// Destination of the route.
        destination: NodeId,
        /// True if it was found; lost otherwise.
        found: bool,
    },
}
