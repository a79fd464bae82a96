//! Messages of AODV: RREQ, RREP, RERR (RFC 3561, section 5), with the contents of ns-2.35.
//!
//! A message contains neither the node that sends it on this hop, which the MAC knows, nor the next
//! hop of a reply. It contains the values that ns-2 keeps in the IP header (TTL, the final
//! destination of a reply) and the time of the request, from which the requesting node measures the
//! latency of a discovery. The sizes are those of ns-2.35: its RREQ and RREP are 4 bytes longer
//! than those of RFC 3561 (24 and 20 bytes), and the RERR has the same size.

use meshpace_core::{NodeId, Time};

/// Size of the IP header in bytes, included in [`Message::size`].
const IP_HEADER: u32 = 20;

/// AODV message on one hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Route request, broadcast.
    Request(Request),
    /// Route reply, unicast hop by hop to the node that sent the request.
    Reply(Reply),
    /// Route error, broadcast over one hop.
    Error(Unreachable),
}

/// Route request (RREQ) for a route to `destination`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Node that requests the route.
    pub origin: NodeId,
    /// Own sequence number of the origin; even.
    pub origin_sequence: u32,
    /// Number that distinguishes the requests of one origin.
    pub id: u32,
    /// Destination of the requested route.
    pub destination: NodeId,
    /// Lowest sequence number with which an intermediate node may answer; 0 if any will do.
    pub destination_sequence: u32,
    /// Number of hops from the origin to the node that receives the request; 1 at the first.
    pub hop_count: u8,
    /// Number of hops that the request may still travel, including the current one.
    pub ttl: u8,
    /// Time at which the origin sent the request.
    pub requested_at: Time,
}

/// Route reply (RREP): its sender is `hop_count` - 1 hops from `destination`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Node that requested the route, and final destination of the reply.
    pub origin: NodeId,
    /// Destination of the route.
    pub destination: NodeId,
    /// Sequence number of the route.
    pub destination_sequence: u32,
    /// Number of hops from the node that receives the reply to the destination.
    pub hop_count: u8,
    /// Number of hops that the reply may still travel, including the current one.
    pub ttl: u8,
    /// Lifetime of the route, in whole seconds.
    pub lifetime: u32,
    /// Time at which the origin sent the request, copied from the request.
    pub requested_at: Time,
}

/// Route error (RERR): destinations that its sender no longer reaches, with the sequence numbers of
/// the lost routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable {
    destinations: [NodeId; Unreachable::CAPACITY],
    sequences: [u32; Unreachable::CAPACITY],
    count: u8,
}

impl Message {
    /// Size in bytes with the IP header (20): RREQ 48, RREP 44, RERR 24 + 8 per destination.
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
    /// True if this is a HELLO: an unrequested reply of a node about itself, which is not forwarded
    /// (RFC 3561, section 6.9). The origin and the destination of any other reply differ, because
    /// no node requests a route to itself.
    pub fn is_hello(&self) -> bool {
        self.origin == self.destination
    }
}

impl Unreachable {
    /// Largest number of destinations in one RERR. Further destinations are sent in further RERRs,
    /// so that a message stays small enough to copy.
    pub const CAPACITY: usize = 6;

    /// Creates an empty list.
    pub const fn new() -> Self {
        Unreachable { destinations: [NodeId(0); Self::CAPACITY], sequences: [0; Self::CAPACITY], count: 0 }
    }

    /// Adds a destination. Returns false, without adding it, if the list is full.
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

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Destinations with their sequence numbers, in the order in which they were added.
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
