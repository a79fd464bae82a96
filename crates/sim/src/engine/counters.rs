//! Counters of a run besides frames.

use crate::probe::{Event, Loss, Probe};
use meshpace_core::{NodeId, Time};
use meshpace_mesh::link::discipline::QueueLoss;
use meshpace_mesh::routing::MessageKind;
use meshpace_mesh::{Packet, Queued};

/// Losses and routing messages of a whole run, at all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames that the MAC gave up at its retry limit.
    pub mac_drops: u64,
    /// Unicast frames lost at their addressee to another frame that arrived at the same time.
    pub collisions: u64,
    /// Times that a category lost the medium to a more urgent one of the same station at the end of both backoffs (EDCA).
    pub internal_collisions: u64,
    /// Packets and routing messages that an interface queue or its marker dropped.
    pub queue_drops: u64,
    /// Route requests handed to the link layer, forwarded ones included.
    pub route_requests: u64,
    /// Route replies, likewise.
    pub route_replies: u64,
    /// Route errors, likewise.
    pub route_errors: u64,
    /// Searches for a route that a node began for a packet; repeated requests belong to the same search.
    pub discoveries: u64,
}

impl Counters {
    /// Routing sends a message.
    pub(super) fn message(&mut self, kind: MessageKind) {
        match kind {
            MessageKind::Request => self.route_requests += 1,
            MessageKind::Reply => self.route_replies += 1,
            MessageKind::Error => self.route_errors += 1,
            MessageKind::Announcement => {}
        }
    }
}

/// Counts a packet that a queue of `node` loses, and tells the probe.
#[inline]
pub(super) fn lose<P: Packet, O: Probe<P>>(
    now: Time,
    node: NodeId,
    probe: &mut O,
    drops: &mut u64,
) -> impl FnMut(Queued<P>, QueueLoss) {
    move |lost, why| {
        *drops += 1;
        probe.on(now, Event::Loss { node, lost: &lost, why: Loss::Queue(why) });
    }
}
