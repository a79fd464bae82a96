//! AODV (placeholder for the interface; the protocol follows).

use meshpace_core::NodeId;

/// An AODV message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Message {
    /// Sender of this hop.
    pub from: NodeId,
}
