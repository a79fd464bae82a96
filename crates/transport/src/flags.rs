//! Header bits that TCP and TPA share, at the positions of RFC 9293, section 3.1. On the wire TPA
//! has other positions (`tpa::wire`).

/// The header bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit is set.
    pub const NONE: Flags = Flags(0);
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// The segment opens the connection.
    pub const SYN: Flags = Flags(0x02);
    /// The segment aborts the connection.
    pub const RST: Flags = Flags(0x04);
    /// End of a train, which has to be acknowledged at once (RFC 9293, section 3.1: push). Only
    /// quiet trains use it.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement fields are valid.
    pub const ACK: Flags = Flags(0x10);
    /// A congested node may mark the packet instead of dropping it. The bit has the meaning of ECT
    /// in the IP header (RFC 3168, section 5), at a position that the TCP header does not use here.
    /// Only quiet trains use it.
    pub const ECT: Flags = Flags(0x20);
    /// Echo of a congestion mark (RFC 3168). Only TCP uses it.
    pub const ECE: Flags = Flags(0x40);
    /// The sender has reduced its window (RFC 3168). Only TCP uses it.
    pub const CWR: Flags = Flags(0x80);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both sets of bits.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}
