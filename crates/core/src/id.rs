//! Identifiers of nodes and flows: small integers that index tables.

use core::fmt;

/// Node of the mesh, numbered from 0 in the order of the scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u16);

impl NodeId {
    /// Broadcast address of the link layer and of the network layer. No node has this address.
    pub const BROADCAST: NodeId = NodeId(u16::MAX);
    /// Largest number of nodes that a mesh can have.
    pub const MAX_NODES: usize = u16::MAX as usize;

    /// Index of the node in per-node tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// True if this is the broadcast address.
    #[inline]
    pub const fn is_broadcast(self) -> bool {
        self.0 == u16::MAX
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_broadcast() { f.write_str("broadcast") } else { write!(f, "n{}", self.0) }
    }
}

/// Flow of a scenario, numbered from 0 in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u16);

impl FlowId {
    /// Index of the flow in per-flow tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
