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
}
