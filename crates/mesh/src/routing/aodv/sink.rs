//! What routing asks of the node it lives in.

use crate::packet::Body;
use meshpace_core::{Duration, NodeId};

/// Why routing gave up a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// No route and, at the source, no hope of one soon: four network-wide requests without an answer.
    NoRoute,
    /// It came back to its source.
    Loop,
    /// Its time to live ran out.
    TtlExpired,
    /// The MAC gave it up at the retry limit.
    LinkFailure,
    /// The oldest packet of a full route buffer (64 packets).
    BufferFull,
    /// It waited more than 30 s for a route.
    BufferTimeout,
}

/// The node around a routing protocol: its link layer and its counters.
pub trait Sink<P> {
    /// Hands `body` to the link layer for `next_hop`, or [`NodeId::BROADCAST`], after `delay` (jitter, or the 10 ms that
    /// keep buffered packets apart). What has been handed over is on its way: a route that changes during the delay
    /// does not change it, and [`Sink::flush_queue`] does not reach it before the delay is over.
    fn send(&mut self, body: Body<P>, next_hop: NodeId, delay: Duration);

    /// Routing gives `packet` up.
    fn drop_packet(&mut self, packet: P, reason: DropReason);

    /// Removes every frame that waits in the interface queue for `next_hop`, data and routing packets alike, and drops
    /// it (reason [`DropReason::LinkFailure`]); the frame in the MAC stays. Nothing is handed back to routing.
    fn flush_queue(&mut self, next_hop: NodeId);

    /// The route to `destination` is lost, and this node's own transport has sent packets over it (ELFN, explicit link failure
    /// notification). Told once, at the node where the packets come from, when its routing learns of it: from the MAC, from
    /// missed HELLOs, or from what other nodes say. Packets under way may still arrive, and the loss may be a false one (a
    /// frame given up under contention); both is in the nature of the notice. An AODV route that ends because nobody used
    /// it is not lost.
    fn route_lost(&mut self, destination: NodeId) {
        let _ = destination;
    }

    /// There is a route to `destination` again, which may be another one: the end of a [`Sink::route_lost`]. OLSR finds it by
    /// itself. AODV looks for routes only when somebody asks: a packet (what a transport sends as a probe) or
    /// [`Aodv::seek`](super::Aodv::seek), for a transport that is silent until this notice. A transport that keeps the RTT
    /// of its path should take this for a route change.
    fn route_found(&mut self, destination: NodeId) {
        let _ = destination;
    }
}
