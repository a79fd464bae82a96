//! Actions that a routing protocol requests from its node.

use meshpace_core::{Duration, NodeId};

/// Reason for which routing dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// The route is unknown and, at the source, not expected soon: under AODV, four network-wide
    /// requests had no answer.
    NoRoute,
    /// The packet returned to its source.
    Loop,
    /// The time to live of the packet ran out.
    TtlExpired,
    /// The MAC gave the packet up at the retry limit.
    LinkFailure,
    /// The packet was the oldest one of a full route buffer (AODV: 64 packets).
    BufferFull,
    /// The packet waited too long for a route (AODV: 30 s).
    BufferTimeout,
}

/// Interface of a routing protocol to its node: the link layer and the counters. `P` is the type of
/// the packets that the node carries, `M` that of the messages of the protocol.
pub trait Actions<P, M> {
    /// Hands `packet` to the link layer for `next_hop`, or [`NodeId::BROADCAST`], after `delay`
    /// (jitter, or the spacing of buffered packets). A packet that was handed over keeps its next
    /// hop, even if the route changes during the delay. [`Actions::flush_queue`] does not remove it
    /// before the delay is over.
    fn forward(&mut self, packet: P, next_hop: NodeId, delay: Duration);

    /// Hands a message of the protocol to the link layer, in the same way as [`Actions::forward`].
    fn send(&mut self, message: M, next_hop: NodeId, delay: Duration);

    /// Drops `packet` and counts the reason.
    fn drop_packet(&mut self, packet: P, reason: DropReason);

    /// Removes all frames for `next_hop` from the interface queue, data and routing packets alike,
    /// and drops them (reason [`DropReason::LinkFailure`]). The frame in the MAC is not removed.
    /// Routing gets none of them back.
    fn flush_queue(&mut self, next_hop: NodeId);

    /// Notes the start of a route discovery for `destination`, for statistics: a first request
    /// while no other is outstanding.
    fn search_began(&mut self, destination: NodeId) {
        let _ = destination;
    }

    /// Notifies the transport that the route to `destination` is lost, if this node's own transport
    /// has sent packets over it (ELFN, explicit link failure notification). The notice is given
    /// once, at the source of the packets, when the routing of that node learns of the loss: from
    /// the MAC, from missed HELLOs, or from messages of other nodes. Packets in flight may still
    /// arrive, and the loss may be false (a frame given up under contention); both is inherent in
    /// the notice. An AODV route that expires without use does not count as lost.
    fn route_lost(&mut self, destination: NodeId) {
        let _ = destination;
    }

    /// Notifies the transport that a route to `destination` exists again, possibly a different one.
    /// The notice ends an [`Actions::route_lost`]. OLSR finds the route by itself. AODV searches
    /// only on request: by a packet (such as a probe of the transport), or by
    /// [`Protocol::seek`](super::Protocol::seek) for a transport that is silent until this notice.
    /// A transport that keeps the RTT of its path should treat this notice as a route change.
    fn route_found(&mut self, destination: NodeId) {
        let _ = destination;
    }
}

/// One recorded request of routing, a call of [`Actions`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action<P, M> {
    /// Recorded call of [`Actions::forward`].
    Forward {
        /// Packet to forward.
        packet: P,
        /// Address of the neighbour, or broadcast.
        next_hop: NodeId,
        /// Delay before the packet is sent.
        delay: Duration,
    },
    /// Recorded call of [`Actions::send`].
    Send {
        /// Message to send.
        message: M,
        /// Address of the neighbour, or broadcast.
        next_hop: NodeId,
        /// Delay before the message is sent.
        delay: Duration,
    },
    /// Recorded call of [`Actions::drop_packet`].
    Drop {
        /// Packet to drop.
        packet: P,
        /// Reason of the drop.
        reason: DropReason,
    },
    /// Recorded call of [`Actions::flush_queue`].
    Flush {
        /// Neighbour whose frames are removed.
        next_hop: NodeId,
    },
    /// Call of [`Actions::route_lost`] or [`Actions::route_found`].
    Notice {
        /// Destination of the route.
        destination: NodeId,
        /// True if the route was found, false if it was lost.
        found: bool,
    },
}
