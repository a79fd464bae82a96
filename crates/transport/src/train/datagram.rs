//! Encoding of quiet trains in UDP datagrams: this header, in network order, followed by the
//! payload.
//!
//! ```text
//! byte 0       flags as in TCP (RFC 9293, section 3.1): FIN 1, SYN 2, RST 4, PSH 8 (the train's
//!              TAIL), ACK 16
//! byte 1       wait of the ACK, in units of 4 ms
//! bytes 2-3    receive window, in full segments
//! bytes 4-11   offset of the first byte in the stream
//! bytes 12-19  next offset expected from the peer
//! bytes 20-23  the sender's clock, microseconds
//! bytes 24-27  clock value in the newest segment that arrived
//! bytes 28-31  data that have arrived beyond a gap
//! bytes 32-37  feedback, as in the option of [`super::wire`]
//! ```

use super::segment::{Feedback, Segment};
use crate::flags::Flags;

/// Bytes of the header.
pub const HEADER: usize = 38;

/// Encodes the header of `segment`; the payload follows it.
pub fn encode(segment: &Segment) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = segment.flags.0;
    header[1] = segment.wait;
    header[2..4].copy_from_slice(&segment.window.to_be_bytes());
    header[4..12].copy_from_slice(&segment.seq.to_be_bytes());
    header[12..20].copy_from_slice(&segment.ack.to_be_bytes());
    header[20..24].copy_from_slice(&segment.ts_val.to_be_bytes());
    header[24..28].copy_from_slice(&segment.ts_ecr.to_be_bytes());
    header[28..32].copy_from_slice(&segment.beyond.to_be_bytes());
    header[32..].copy_from_slice(&segment.feedback.to_bytes());
    header
}

/// Decodes a datagram into a segment and its payload. `None` if it is too short or too long, or has
/// an offset that no stream reaches.
pub fn decode(bytes: &[u8]) -> Option<(Segment, &[u8])> {
    let (header, payload) = bytes.split_first_chunk::<HEADER>()?;
    let four = |at: usize| header[at..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let eight = |at: usize| header[at..].first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    let segment = Segment {
        seq: eight(4)?,
        ack: eight(12)?,
        ts_val: four(20)?,
        ts_ecr: four(24)?,
        beyond: four(28)?,
        payload: u16::try_from(payload.len()).ok()?,
        window: u16::from_be_bytes([header[2], header[3]]),
        flags: Flags(header[0]),
        wait: header[1],
        feedback: Feedback::from_bytes(header[32..].first_chunk()?),
    };
    // Offsets count the bytes of a stream. No stream is that long, and offsets must not wrap.
    (segment.seq.max(segment.ack) < 1 << 62).then_some((segment, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_as_it_was_written() {
        let segment = Segment {
            seq: 0x0102_0304_0506_0708,
            ack: 0x1112_1314_1516_1718,
            ts_val: 0x2122_2324,
            ts_ecr: 0x3132_3334,
            beyond: 0x4142_4344,
            payload: 5,
            window: 0x5152,
            flags: Flags::ACK.with(Flags::PSH),
            wait: 0x61,
            feedback: Feedback { segments: 7, marked: 2, mean: -2, least: -300 },
        };
        let mut bytes = encode(&segment).to_vec();
        assert_eq!(bytes[..6], [0x18, 0x61, 0x51, 0x52, 1, 2]);
        assert_eq!(bytes[30..], [0x43, 0x44, 7, 2, 0xff, 0xfe, 0xfe, 0xd4]);
        bytes.extend_from_slice(b"hello");
        assert_eq!(decode(&bytes), Some((segment, &b"hello"[..])));
        assert_eq!(decode(&bytes[..HEADER - 1]), None);
        bytes[4] = 0xff;
        assert_eq!(decode(&bytes), None, "no stream is so long");
    }
}
