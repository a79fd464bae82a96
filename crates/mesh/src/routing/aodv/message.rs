//! Messages of AODV: RREQ, RREP, RERR (RFC 3561, section 5), as ns-2.35 fills them in.
//!
//! A message names neither the node that sends it on this hop (the MAC knows) nor the reply's next hop. It carries what
//! ns-2 keeps in the IP header (TTL, the reply's final destination) and the time of the request, from which the
//! requesting node measures the latency of a discovery. The sizes are those of ns-2.35: its RREQ and RREP are 4 bytes
//! longer than RFC 3561's (24 and 20 bytes), the RERR is as long.

use meshpace_core::{NodeId, Time};

/// IP header in bytes, part of every [`Message::size`].
const IP_HEADER: u32 = 20;

/// An AODV message on one hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Route request, broadcast.
    Request(Request),
    /// Route reply, unicast hop by hop to the node that asked.
    Reply(Reply),
    /// Route error, broadcast over one hop.
    Error(Unreachable),
}

/// A route request (RREQ): "who knows a way to `destination`?"
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The node that asks.
    pub origin: NodeId,
    /// The origin's own sequence number; even.
    pub origin_sequence: u32,
    /// Tells the requests of one origin apart.
    pub id: u32,
    /// The node looked for.
    pub destination: NodeId,
    /// An answer from a cache must be at least this new; 0 if any will do.
    pub destination_sequence: u32,
    /// Hops from the origin to the node that receives this, 1 at the first.
    pub hop_count: u8,
    /// Hops this may still travel, counting the one it is on.
    pub ttl: u8,
    /// Time at which the origin asked.
    pub asked: Time,
}

/// A route reply (RREP): "I am `hop_count` - 1 hops from `destination`."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The node that asked, where this reply ends.
    pub origin: NodeId,
    /// The node the route leads to.
    pub destination: NodeId,
    /// Sequence number of the route.
    pub destination_sequence: u32,
    /// Hops from the node that receives this to the destination.
    pub hop_count: u8,
    /// Hops this may still travel, counting the one it is on.
    pub ttl: u8,
    /// Lifetime of the route, in whole seconds.
    pub lifetime: u32,
    /// Time at which the origin asked, copied from the request.
    pub asked: Time,
}

/// A route error (RERR): destinations its sender no longer reaches, with the sequence numbers of the lost routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable {
    destinations: [NodeId; Unreachable::CAPACITY],
    sequences: [u32; Unreachable::CAPACITY],
    count: u8,
}

impl Message {
    /// Length in bytes with the IP header (20): RREQ 48, RREP 44, RERR 24 + 8 per destination.
    pub fn size(&self) -> u32 {
        IP_HEADER
            + match self {
                Message::Request(_) => 28,
                Message::Reply(_) => 24,
                Message::Error(lost) => 4 + 8 * u32::from(lost.count),
            }
    }
}

impl Reply {
    /// True if this is a HELLO: a reply about its own sender that nobody asked for and that goes no further (RFC 3561, section
    /// 6.9). Who asks is not who answers, so that no other reply looks like it.
    pub fn is_hello(&self) -> bool {
        self.origin == self.destination
    }
}

impl Unreachable {
    /// Destinations one RERR holds; more go into further RERRs, so that a message stays small enough to copy.
    pub const CAPACITY: usize = 6;

    /// A list without entries.
    pub const fn new() -> Self {
        Unreachable { destinations: [NodeId(0); Self::CAPACITY], sequences: [0; Self::CAPACITY], count: 0 }
    }

    /// Adds a destination; false, and nothing is added, if the list is full.
    #[must_use]
    pub fn push(&mut self, destination: NodeId, sequence: u32) -> bool {
        let at = usize::from(self.count);
        if at == Self::CAPACITY {
            return false;
        }
        self.destinations[at] = destination;
        self.sequences[at] = sequence;
        self.count += 1;
        true
    }

    /// Number of destinations, at most [`Self::CAPACITY`].
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The destinations with their sequence numbers, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        let n = self.len();
        self.destinations[..n].iter().copied().zip(self.sequences[..n].iter().copied())
    }
}

impl Default for Unreachable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_at_most_48_bytes() {
        assert!(size_of::<Message>() <= 48, "{}", size_of::<Message>());
    }

    #[test]
    fn a_full_error_takes_no_more_and_its_length_counts_the_destinations() {
        let mut lost = Unreachable::new();
        for n in 0..6 {
            assert!(lost.push(NodeId(n), u32::from(n) + 1));
        }
        assert!(!lost.push(NodeId(6), 7));
        assert_eq!(lost.len(), 6);
        assert_eq!(lost.iter().last(), Some((NodeId(5), 6)));
        assert_eq!(Message::Error(lost).size(), 20 + 4 * (2 * 6 + 1));
    }
}
