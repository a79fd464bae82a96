//! Path challenges, which ask whether the peer is at an address, and the responses to them. Each is
//! the only content of an encrypted datagram, and it is shorter than the header of a segment. A
//! peer that does not know path frames therefore cannot decode one as a segment, and ignores it.
//!
//! ```text
//! byte 0       1 challenge, 2 response
//! bytes 1-8    unpredictable number of the challenge, repeated in the response
//! ```
//!
//! They correspond to QUIC's PATH_CHALLENGE and PATH_RESPONSE (RFC 9000, section 8.2). Even the
//! peer must not be able to guess the number: it has the keys, and could otherwise answer a
//! challenge that was sent to somebody else's address.

/// Length of a path frame, bytes.
pub(crate) const LENGTH: usize = 9;

const CHALLENGE: u8 = 1;
const RESPONSE: u8 = 2;

/// A challenge or a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathFrame {
    /// Asks whether the peer receives datagrams at the address to which this challenge was sent.
    Challenge(u64),
    /// Answers a challenge by repeating its number.
    Response(u64),
}

impl PathFrame {
    /// Encodes the frame as the content of a datagram.
    pub(crate) fn bytes(self) -> [u8; LENGTH] {
        let (kind, number) = match self {
            PathFrame::Challenge(number) => (CHALLENGE, number),
            PathFrame::Response(number) => (RESPONSE, number),
        };
        let mut bytes = [kind; LENGTH];
        bytes[1..].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    /// Decodes the content of a datagram. `None` if it is neither a challenge nor a response.
    pub fn read(content: &[u8]) -> Option<PathFrame> {
        let (kind, number) = <&[u8; LENGTH]>::try_from(content).ok()?.split_first()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        match *kind {
            CHALLENGE => Some(PathFrame::Challenge(number)),
            RESPONSE => Some(PathFrame::Response(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_transport::tpa::wire;

    #[test]
    fn frames_are_read_as_they_were_written_and_are_no_segments() {
        for frame in [PathFrame::Challenge(0x0102_0304_0506_0708), PathFrame::Response(u64::MAX)] {
            assert_eq!(PathFrame::read(&frame.bytes()), Some(frame));
            assert!(wire::decode_inside_udp(&frame.bytes()).is_err(), "an older peer takes it for a segment");
            assert_eq!(PathFrame::read(&frame.bytes()[..8]), None);
        }
        assert_eq!(PathFrame::Challenge(258).bytes(), [1, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(PathFrame::read(&[3; LENGTH]), None);
        const { assert!(LENGTH < wire::INSIDE_UDP) };
    }
}
