//! The header bits that TCP and TPA share, at the places of RFC 9293, section 3.1. On the wire TPA has other places
//! (`tpa::wire`).

/// The header bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit set.
    pub const NONE: Flags = Flags(0);
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// Opens the connection.
    pub const SYN: Flags = Flags(0x02);
    /// Aborts the connection.
    pub const RST: Flags = Flags(0x04);
    /// The end of a train: to be acknowledged at once (RFC 9293, section 3.1: push); quiet trains only.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement fields count.
    pub const ACK: Flags = Flags(0x10);
    /// A congested node may mark the packet instead of dropping it: what ECT says in the IP header (RFC 3168, section 5), at a
    /// place that the TCP header here has no use for; quiet trains only.
    pub const ECT: Flags = Flags(0x20);
    /// Echo of a congestion mark (RFC 3168); TCP only.
    pub const ECE: Flags = Flags(0x40);
    /// The sender has reduced its window (RFC 3168); TCP only.
    pub const CWR: Flags = Flags(0x80);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}
