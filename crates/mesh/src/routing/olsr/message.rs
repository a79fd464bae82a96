//! Messages of OLSR: HELLO and TC (RFC 3626, sections 3.3, 6.1 and 9.1).
//!
//! On the wire, a list of addresses can have any length, but a packet of the mesh is a small value
//! that is copied. A message here therefore holds at most [`Listed::CAPACITY`] addresses. A node
//! with a longer list sends several messages, each in a packet of its own. RFC 3626 permits this
//! (6.2 and 9.3: a list may be partial as long as all of it is sent once per interval). Each part
//! thus has its own headers and its own contention. With 12 addresses this concerns nodes with more
//! than 12 neighbours (HELLO) or selectors (TC). The alternatives were a shared arena, which is
//! inaccessible to a state machine that only exchanges values with its caller (and to a capture),
//! and reference counts, with which frames could not be copied freely on the hot path. For the same
//! reason a packet holds one message: forwarded messages are not bundled (3.4.1 permits bundling
//! and does not require it).
//!
//! With the metric ETX, the messages are those of olsrd 0.4.10, types 201 and 202: each address is
//! followed by the two delivery ratios of the link in 1/255 and two bytes of padding, which are
//! included in the sizes.

use super::config::OlsrMetric;
use meshpace_core::{Duration, NodeId};

/// Size of IP header (20), UDP header (8) and OLSR packet header (4), in bytes.
const HEADERS: u32 = 32;
/// Size of the OLSR message header, in bytes.
const MESSAGE_HEADER: u32 = 12;
/// Validity of a HELLO: NEIGHB_HOLD_TIME = 3 x REFRESH_INTERVAL (18.3), three HELLOs.
pub const NEIGHB_HOLD_TIME: Duration = Duration::from_secs(6);
/// Validity of a TC: TOP_HOLD_TIME = 3 x TC_INTERVAL (18.3).
pub const TOP_HOLD_TIME: Duration = Duration::from_secs(15);

/// Link code of a HELLO: state of a link and of the neighbour at its end (6.1.1), in the order of
/// the parts of a list. With one interface per node, no other combination occurs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum LinkCode {
    /// The neighbour's HELLOs are received, but it is not known to receive those of the sender
    /// (ASYM_LINK, NOT_NEIGH).
    Asymmetric = 0,
    /// HELLOs are received in both directions (SYM_LINK, SYM_NEIGH).
    Symmetric = 1,
    /// The link is symmetric and the neighbour was chosen as a relay (SYM_LINK, MPR_NEIGH).
    Relay = 2,
    /// The neighbour's HELLOs are no longer received (LOST_LINK, NOT_NEIGH).
    Lost = 3,
}

impl LinkCode {
    /// All codes, in the order of a list.
    pub const ALL: [LinkCode; 4] = [LinkCode::Asymmetric, LinkCode::Symmetric, LinkCode::Relay, LinkCode::Lost];

    /// True if the link between the sender and the neighbour is symmetric.
    pub fn is_symmetric(self) -> bool {
        matches!(self, LinkCode::Symmetric | LinkCode::Relay)
    }
}

/// Entry of a list of neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Address of the neighbour.
    pub node: NodeId,
    /// Share of the neighbour's HELLOs that the sender of the list receives, in 1/255; 255 with the
    /// metric of hops.
    pub quality: u8,
    /// Share of the sender's HELLOs that the neighbour receives, as the neighbour reports it, in
    /// 1/255; 255 with the metric of hops.
    pub reverse: u8,
}

impl Listed {
    /// Largest number of addresses in one message.
    pub const CAPACITY: usize = 12;
    const NONE: Listed = Listed { node: NodeId(0), quality: 0, reverse: 0 };
}

/// Neighbours of a node, or some of them, grouped by link code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    counts: [u8; 4],
    list: [Listed; Listed::CAPACITY],
}

/// Neighbours that have chosen a node as a relay, or some of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tc {
    /// Advertised neighbour sequence number (ANSN), which grows with each change of the set of
    /// neighbours.
    pub ansn: u16,
    count: u8,
    list: [Listed; Listed::CAPACITY],
}

/// Content of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// HELLO, sent to the neighbours only.
    Hello(Hello),
    /// TC, flooded to all nodes.
    Tc(Tc),
}

/// OLSR message on one hop, alone in its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Node that created the message.
    pub originator: NodeId,
    /// Number that distinguishes the messages of one originator.
    pub sequence: u16,
    /// Number of the packet among those of the node that sends it on this hop.
    pub packet: u16,
    /// Number of hops that the message may still travel, including the current one.
    pub ttl: u8,
    /// Number of hops that the message travelled before the current one.
    pub hop_count: u8,
    /// Metric of the originator. With ETX, delivery ratios follow each address.
    pub metric: OlsrMetric,
    /// HELLO or TC.
    pub content: Content,
}

impl Hello {
    /// Splits the neighbours with their codes into messages: at least one, each with at most
    /// [`Listed::CAPACITY`] entries. Sorts `neighbours` by code.
    pub fn parts(neighbours: &mut [(LinkCode, Listed)]) -> impl Iterator<Item = Hello> + '_ {
        neighbours.sort_by_key(|&(code, listed)| (code, listed.node));
        let empty = neighbours.is_empty().then(|| Hello::new(&[]));
        neighbours.chunks(Listed::CAPACITY).map(Hello::new).chain(empty)
    }

    fn new(neighbours: &[(LinkCode, Listed)]) -> Hello {
        let mut hello = Hello { counts: [0; 4], list: [Listed::NONE; Listed::CAPACITY] };
        for (place, &(code, listed)) in hello.list.iter_mut().zip(neighbours) {
            *place = listed;
            hello.counts[code as usize] += 1;
        }
        hello
    }

    /// Neighbours with a code.
    pub fn group(&self, code: LinkCode) -> &[Listed] {
        let before: u8 = self.counts[..code as usize].iter().sum();
        let begin = usize::from(before);
        &self.list[begin..begin + usize::from(self.counts[code as usize])]
    }

    /// All neighbours with their codes.
    pub fn iter(&self) -> impl Iterator<Item = (LinkCode, Listed)> + '_ {
        LinkCode::ALL.into_iter().flat_map(|code| self.group(code).iter().map(move |&listed| (code, listed)))
    }
}

impl Tc {
    /// Splits the neighbours into messages: at least one, each with at most [`Listed::CAPACITY`]
    /// entries.
    pub fn parts(ansn: u16, neighbours: &[Listed]) -> impl Iterator<Item = Tc> + '_ {
        let empty = neighbours.is_empty().then(|| Tc::new(ansn, &[]));
        neighbours.chunks(Listed::CAPACITY).map(move |part| Tc::new(ansn, part)).chain(empty)
    }

    fn new(ansn: u16, neighbours: &[Listed]) -> Tc {
        let mut tc = Tc { ansn, count: neighbours.len() as u8, list: [Listed::NONE; Listed::CAPACITY] };
        tc.list[..neighbours.len()].copy_from_slice(neighbours);
        tc
    }

    /// Neighbours in the message.
    pub fn list(&self) -> &[Listed] {
        &self.list[..usize::from(self.count)]
    }
}

impl Message {
    /// Size in bytes with IP, UDP and packet headers (20 + 8 + 4). HELLO: 16 + 4 per link code that
    /// occurs + 4 per neighbour; TC: 16 + 4 per neighbour; with ETX, 8 per neighbour.
    pub fn size(&self) -> u32 {
        let each = match self.metric {
            OlsrMetric::Hops => 4,
            OlsrMetric::Etx => 8,
        };
        HEADERS
            + MESSAGE_HEADER
            + 4
            + match &self.content {
                Content::Hello(hello) => {
                    let groups = hello.counts.iter().filter(|&&count| count > 0).count() as u32;
                    4 * groups + each * hello.counts.iter().map(|&count| u32::from(count)).sum::<u32>()
                }
                Content::Tc(tc) => each * u32::from(tc.count),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn listed(n: u16) -> Listed {
        Listed { node: NodeId(n), quality: 255, reverse: 128 }
    }

    fn sizes(content: Content) -> [u32; 2] {
        [OlsrMetric::Hops, OlsrMetric::Etx].map(|metric| {
            Message { originator: NodeId(1), sequence: 2, packet: 3, ttl: 255, hop_count: 0, metric, content }.size()
        })
    }

    #[test]
    fn a_message_is_at_most_64_bytes() {
        assert!(size_of::<Message>() <= 64, "{}", size_of::<Message>());
    }

    #[test]
    fn a_hello_groups_its_neighbours_and_is_cut_at_twelve() {
        let mut neighbours: Vec<_> = (0..30).rev().map(|n| (LinkCode::ALL[n % 4], listed(n as u16))).collect();
        let parts: Vec<_> = Hello::parts(&mut neighbours).collect();
        assert!(parts.iter().map(|part| part.iter().count()).eq([12, 12, 6]));
        // The numbers 0, 4, ..., 28 are asymmetric: eight of them. They are followed by four of the
        // symmetric numbers 1, 5, ..., 29.
        assert!(parts[0].group(LinkCode::Asymmetric).iter().map(|l| l.node.0).eq([0, 4, 8, 12, 16, 20, 24, 28]));
        assert!(parts[0].group(LinkCode::Symmetric).iter().map(|l| l.node.0).eq([1, 5, 9, 13]));
        assert!(parts[0].group(LinkCode::Relay).is_empty() && parts[0].group(LinkCode::Lost).is_empty());
        let all: Vec<_> = parts.iter().flat_map(Hello::iter).collect();
        assert_eq!(all, neighbours);
        assert_eq!(Hello::parts(&mut []).count(), 1, "a lonely node says so");
    }

    #[test]
    fn lengths_are_those_of_the_rfc_and_of_olsrd() {
        let mut neighbours =
            [(LinkCode::Relay, listed(4)), (LinkCode::Symmetric, listed(5)), (LinkCode::Relay, listed(6))];
        let hello = Hello::parts(&mut neighbours).next().unwrap();
        // The sizes are IP 20, UDP 8, packet 4, message 12, HELLO 4; two groups of 4; three
        // addresses.
        assert_eq!(sizes(Content::Hello(hello)), [48 + 8 + 12, 48 + 8 + 24]);
        let tc = Tc::parts(7, &[listed(4), listed(5)]).next().unwrap();
        assert_eq!(sizes(Content::Tc(tc)), [48 + 8, 48 + 16]);
        let empty = Tc::parts(7, &[]).next().unwrap();
        assert_eq!(sizes(Content::Tc(empty)), [48, 48]);
    }

    #[test]
    fn a_long_tc_is_cut_without_loss() {
        let neighbours: Vec<_> = (0..25).map(listed).collect();
        let parts: Vec<_> = Tc::parts(9, &neighbours).collect();
        assert!(parts.iter().map(|part| part.list().len()).eq([12, 12, 1]) && parts.iter().all(|part| part.ansn == 9));
        assert!(parts.iter().flat_map(|part| part.list().iter().copied()).eq(neighbours));
    }
}
