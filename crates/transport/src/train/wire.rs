//! TCP option of quiet trains: the experimental kind 253 with an identifier (RFC 6994).
//!
//! ```text
//! SYN, SYN-ACK: the sender knows quiet trains
//!     253  4 'Q' 'T'
//! ACK: report on what arrived
//!     253 11 'Q' 'T' segments marked mean(2) least(2) wait nop
//! ACK: the same report if something is missing
//!     253 15 'Q' 'T' segments marked mean(2) least(2) wait beyond(4) nop
//! ```
//!
//! Numbers are in network order. All other fields of a segment are in TCP's header and time stamps;
//! TAIL is PSH.

use super::segment::{Feedback, Segment};
use crate::flags::Flags;

/// Kind of the option.
pub const KIND: u8 = 253;
/// Identifier that tells this option from others of its kind.
pub const IDENTIFIER: [u8; 2] = *b"QT";
/// Bytes of the longest option, with padding.
pub const LONGEST: usize = 16;
/// Option without effect that pads to a whole word.
const NOP: u8 = 1;

/// Content of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// The sender knows quiet trains.
    Offer,
    /// Feedback, and the data that have arrived beyond a gap.
    Report {
        /// Report on the segments that arrived.
        feedback: Feedback,
        /// Wait of the ACK.
        wait: u8,
        /// Data beyond a gap.
        beyond: u32,
    },
}

/// Content of the option that `segment` needs; `None` if it needs no option.
pub fn content(segment: &Segment) -> Option<Content> {
    if segment.flags.has(Flags::SYN) {
        return Some(Content::Offer);
    }
    let &Segment { feedback, wait, beyond, .. } = segment;
    segment.has_report().then_some(Content::Report { feedback, wait, beyond })
}

/// Encodes the option with its padding. Also returns its length with padding.
pub fn encode(content: &Content) -> ([u8; LONGEST], usize) {
    let mut bytes = [NOP; LONGEST];
    bytes[0] = KIND;
    bytes[2..4].copy_from_slice(&IDENTIFIER);
    let length = match content {
        Content::Offer => 4,
        Content::Report { feedback, wait, beyond } => {
            bytes[4..10].copy_from_slice(&feedback.to_bytes());
            bytes[10] = *wait;
            if *beyond == 0 {
                11
            } else {
                bytes[11..15].copy_from_slice(&beyond.to_be_bytes());
                15
            }
        }
    };
    bytes[1] = length;
    (bytes, usize::from(length).next_multiple_of(4))
}

/// Decodes an option of kind 253; `body` are the bytes after its kind and length. `None` if the
/// identifier is another one or the length is wrong.
pub fn decode(body: &[u8]) -> Option<Content> {
    match *body.strip_prefix(&IDENTIFIER)? {
        [] => Some(Content::Offer),
        [a, b, c, d, e, f, wait, ref rest @ ..] => {
            let feedback = Feedback::from_bytes(&[a, b, c, d, e, f]);
            let beyond = match *rest {
                [] => 0,
                [a, b, c, d] => u32::from_be_bytes([a, b, c, d]),
                _ => return None,
            };
            Some(Content::Report { feedback, wait, beyond })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_above() {
        let feedback = Feedback { segments: 24, marked: 3, mean: -2, least: -300 };
        let (bytes, length) = encode(&Content::Report { feedback, wait: 100, beyond: 0 });
        assert_eq!(bytes[..length], [253, 11, b'Q', b'T', 24, 3, 0xff, 0xfe, 0xfe, 0xd4, 100, 1]);
        let (bytes, length) = encode(&Content::Report { feedback, wait: 100, beyond: 0x0102_0306 });
        assert_eq!(bytes[10..length], [100, 1, 2, 3, 6, 1]);
        let (bytes, length) = encode(&Content::Offer);
        assert_eq!(bytes[..length], [253, 4, b'Q', b'T']);
    }

    #[test]
    fn what_is_written_is_read_and_sizes_agree() {
        let feedback = Feedback { segments: 1, marked: 1, mean: 7, least: i16::MIN };
        let ack = Segment { flags: Flags::ACK, ..Segment::default() };
        let segments = [
            Segment { flags: Flags::SYN, ..ack },
            Segment { feedback, ..ack },
            Segment { feedback, beyond: 6, ..ack },
            Segment { beyond: 6, ..ack },
        ];
        for segment in segments {
            let content = content(&segment).unwrap();
            let (bytes, length) = encode(&content);
            assert_eq!(decode(&bytes[2..usize::from(bytes[1])]), Some(content));
            assert_eq!(segment.size(), 40 + length as u32);
        }
        assert_eq!(content(&ack), None);
        for wrong in [&b"QU"[..], b"Q", b"QT1", b"QT12345678", b"QT123456789012"] {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
    }
}
