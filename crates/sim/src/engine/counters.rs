//! Counters of a run, except those of frames.

use crate::probe::{Event, Loss, Probe};
use meshpace_core::{NodeId, Time};
use meshpace_mesh::link::discipline::QueueLoss;
use meshpace_mesh::routing::MessageKind;
use meshpace_mesh::{Packet, Queued};

/// Losses and routing messages of a whole run, at all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Number of frames that the MAC gave up at its retry limit.
    pub mac_drops: u64,
    /// Number of unicast frames that were lost at their destination to another frame that arrived
    /// at the same time.
    pub collisions: u64,
    /// Number of times that a category lost the medium to a more urgent one of the same station
    /// whose backoff ended at the same time (EDCA).
    pub internal_collisions: u64,
    /// Number of packets and routing messages that an interface queue or its marker dropped.
    pub queue_drops: u64,
    /// Number of route requests handed to the link layer, including forwarded ones.
    pub route_requests: u64,
    /// Number of route replies handed to the link layer, including forwarded ones.
    pub route_replies: u64,
    /// Number of route errors handed to the link layer, including forwarded ones.
    pub route_errors: u64,
    /// Number of route discoveries that a node began for a packet. Repeated requests belong to the
    /// same discovery.
    pub discoveries: u64,
}

impl Counters {
    /// Counts a message that routing sends.
    pub(super) fn message(&mut self, kind: MessageKind) {
        match kind {
            MessageKind::Request => self.route_requests += 1,
            MessageKind::Reply => self.route_replies += 1,
            MessageKind::Error => self.route_errors += 1,
            MessageKind::Announcement => {}
        }
    }
}

/// Returns a function that counts a packet lost in the queue of `node` and reports it to the probe.
#[inline]
pub(super) fn count_loss<P: Packet, O: Probe<P>>(
    now: Time,
    node: NodeId,
    probe: &mut O,
    drops: &mut u64,
) -> impl FnMut(Queued<P>, QueueLoss) {
    move |lost, reason| {
        *drops += 1;
        probe.on(now, Event::Loss { node, lost: &lost, reason: Loss::Queue(reason) });
    }
}
