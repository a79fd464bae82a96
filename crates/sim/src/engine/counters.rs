//! What the engine counts of a run besides frames.

use meshpace_mesh::routing::MessageKind;

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
