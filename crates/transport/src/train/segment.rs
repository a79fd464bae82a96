//! A segment of a quiet train: TCP's header, TAIL, and the receiver's feedback, without payload.
//!
//! Stream offsets have 64 bits and never wrap. Offset 0 is the first payload byte. The SYN is
//! before it, and the FIN takes the place after the last byte, as in `tcp::segment`. TAIL is TCP's
//! PSH bit (RFC 9293, section 3.1). Sizes are those of a TCP header with one option of the
//! experimental kind 253 (RFC 6994). As for every TCP in this project, and in ns-2, time stamps
//! count as no bytes; the feedback counts as the bytes that it takes.

use crate::flags::Flags;

/// Bytes of the IP and TCP headers without options.
pub const HEADER_BYTES: u32 = 40;
/// Bytes of the option in a SYN: kind, length, identifier.
pub const OFFER_BYTES: u32 = 4;
/// Bytes of the option in an ACK with feedback: kind, length, identifier, mean, least, wait,
/// segments, marks, padding.
pub const FEEDBACK_BYTES: u32 = 12;
/// Additional bytes if segments are missing.
pub const MISSING_BYTES: u32 = 4;
/// Unit of forward delays in the feedback, in microseconds.
pub const DELAY_UNIT_US: u32 = 32;
/// Unit of the wait in the feedback, in microseconds.
pub const WAIT_UNIT_US: u32 = 4_000;

/// Report of a receiver on the segments that arrived since its last ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Feedback {
    /// Number of segments, counted up to 255; 0 if there is no report.
    pub segments: u8,
    /// Number of segments that a node on the path had marked (RFC 3168).
    pub marked: u8,
    /// Mean forward delay of the segments less that of the newest one, in units of
    /// [`DELAY_UNIT_US`].
    pub mean: i16,
    /// Least forward delay of the segments less that of the newest one, in the same unit: 0 or
    /// less.
    pub least: i16,
}

impl Feedback {
    /// Encodes the feedback for the wire, in the same way in a TCP option and in a datagram:
    /// segments, marked, mean and least, in network order.
    pub fn to_bytes(self) -> [u8; 6] {
        let ([a, b], [c, d]) = (self.mean.to_be_bytes(), self.least.to_be_bytes());
        [self.segments, self.marked, a, b, c, d]
    }

    /// Decodes feedback.
    pub fn from_bytes(bytes: &[u8; 6]) -> Feedback {
        let [segments, marked, a, b, c, d] = *bytes;
        Feedback { segments, marked, mean: i16::from_be_bytes([a, b]), least: i16::from_be_bytes([c, d]) }
    }
}

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Offset of the first payload byte, or of the FIN if there is no payload.
    pub seq: u64,
    /// Next offset expected from the peer; valid only with [`Flags::ACK`]. A received FIN counts as
    /// one byte.
    pub ack: u64,
    /// The sender's clock in microseconds, wrapping.
    pub ts_val: u32,
    /// `ts_val` of the newest segment that arrived: the segment that this ACK answers.
    pub ts_ecr: u32,
    /// Data that have arrived beyond `ack`: bit i stands for the i-th range of a full segment's
    /// bytes from `ack` on. The lowest bit stands for the first range, which is missing.
    pub beyond: u32,
    /// Payload bytes.
    pub payload: u16,
    /// Receive window in full segments.
    pub window: u16,
    /// Header bits.
    pub flags: Flags,
    /// Time from the arrival of the newest segment to this ACK, in units of [`WAIT_UNIT_US`],
    /// rounded up.
    pub wait: u8,
    /// Report on the segments that arrived.
    pub feedback: Feedback,
}

impl Segment {
    /// Size of the IP packet in bytes.
    #[inline]
    pub fn size(&self) -> u32 {
        let offer = if self.flags.has(Flags::SYN) { OFFER_BYTES } else { 0 };
        let feedback = if self.has_report() { FEEDBACK_BYTES } else { 0 };
        let missing = if self.beyond != 0 { MISSING_BYTES } else { 0 };
        HEADER_BYTES + offer + feedback + missing + u32::from(self.payload)
    }

    /// True if the segment reports what arrived.
    #[inline]
    pub fn has_report(&self) -> bool {
        self.feedback.segments > 0 || self.beyond != 0
    }

    /// True if the segment ends a train and has to be acknowledged at once.
    #[inline]
    pub fn is_tail(&self) -> bool {
        self.flags.has(Flags::PSH)
    }
}

/// Clock of the time stamps: microseconds, wrapping.
pub(super) fn stamp(now: meshpace_core::Time) -> u32 {
    (now.0 / 1_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_costs_its_bytes() {
        let ack = Segment { flags: Flags::ACK, ..Segment::default() };
        assert_eq!(ack.size(), 40);
        let told = Segment { feedback: Feedback { segments: 24, ..Feedback::default() }, ..ack };
        assert_eq!(told.size(), 52);
        assert_eq!(Segment { beyond: 0b10, ..told }.size(), 56);
        assert_eq!(Segment { flags: Flags::SYN, ..Segment::default() }.size(), 44);
        // Beside a segment of TCP, which has a field that leaves values over, this needs no room for the kind of segment.
        assert!(size_of::<Segment>() <= 40);
    }
}
