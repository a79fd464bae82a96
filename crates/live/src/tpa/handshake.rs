//! What SYN and SYN+ACK carry as payload: the terms of the connection and a cookie.
//!
//! The TPA paper gives only the flags. A listener keeps nothing of a connection request before its sender has shown that it
//! receives what is sent to its address: the first SYN is answered by a challenge, a SYN+ACK with a cookie that only the
//! listener can make, and the SYN is repeated with it (the idea of TCP's SYN cookies, RFC 4987, section 3.6, with QUIC's
//! extra round, RFC 9000, section 8.1.2, since a 12-byte header has no room to hide a cookie in). All have the same size, so
//! that a listener never sends more than it was sent.
//!
//! Both ends of TPA need the same segment size, and the receiver needs to know how many segments share an ACK (section 3.6).
//! Whoever opens the connection says what they are.
//!
//! ```text
//! byte 0       version, 1
//! byte 1       kind: 0 request (in a SYN), 1 challenge, 2 acceptance (both in a SYN+ACK)
//! byte 2       cwnd_max, 1 to 12
//! byte 3       segments that share an ACK: 2, or cwnd_max
//! byte 4, 5    payload of a full segment, bytes
//! byte 6       segments in a block, 1 to 12
//! byte 7       zero
//! bytes 8-15   nonce, chosen by whoever opens and repeated in the answers: nobody else on the network can answer
//! bytes 16-31  cookie; zero in the first request and in the acceptance
//! ```

use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::{self, ack};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::net::SocketAddrV4;

/// Bytes of the payload.
pub const BYTES: usize = 32;

/// The version this is.
const VERSION: u8 = 1;

/// How long a cookie is good for, at least; at most twice as long.
const COOKIE_LIFE: Duration = Duration::from_secs(8);

/// What an opening segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Asks for a connection.
    Request,
    /// Asks to ask again with this cookie.
    Challenge,
    /// Agrees.
    Acceptance,
}

/// A cookie.
pub type Cookie = [u8; 16];

/// The terms both ends need to share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// cwnd_max in segments, 1 to 12.
    pub window: u8,
    /// Segments that share an ACK.
    pub ack_every: u8,
    /// Payload of a full segment in bytes.
    pub segment: u16,
    /// Segments in a block, 1 to 12.
    pub block_segments: u8,
}

impl Terms {
    /// Those of `config`.
    pub fn of(config: &tpa::Config) -> Terms {
        let window = config.congestion.window;
        Terms {
            window,
            ack_every: config.ack.segments(window),
            segment: config.segment as u16,
            block_segments: config.block_segments,
        }
    }

    /// `config` under these terms; none if they make no sense.
    pub fn apply(self, config: &tpa::Config) -> Option<tpa::Config> {
        let mut config = config.clone();
        config.congestion.window = self.window;
        config.segment = u32::from(self.segment);
        config.block_segments = self.block_segments;
        config.ack = match self.ack_every {
            2 => ack::Rule::EveryOther,
            every if every == self.window => ack::Rule::EveryWindow,
            _ => return None,
        };
        config.check().is_ok().then_some(config)
    }
}

/// The payload of a SYN or SYN+ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// What it is.
    pub kind: Kind,
    /// The terms.
    pub terms: Terms,
    /// The nonce.
    pub nonce: [u8; 8],
    /// The cookie; zero for none.
    pub cookie: Cookie,
}

impl Opening {
    /// As bytes.
    pub fn encode(&self) -> [u8; BYTES] {
        let Terms { window, ack_every, segment, block_segments } = self.terms;
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&[VERSION, self.kind as u8, window, ack_every]);
        bytes[4..6].copy_from_slice(&segment.to_be_bytes());
        bytes[6] = block_segments;
        bytes[8..16].copy_from_slice(&self.nonce);
        bytes[16..].copy_from_slice(&self.cookie);
        bytes
    }

    /// From bytes; none if they are nothing this version knows.
    pub fn decode(bytes: &[u8]) -> Option<Opening> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let kind = match bytes[1] {
            0 => Kind::Request,
            1 => Kind::Challenge,
            2 => Kind::Acceptance,
            _ => return None,
        };
        let [nonce @ .., _, _, _, _, _, _, _, _] = &bytes[8..24] else { return None };
        (bytes[0] == VERSION && bytes[7] == 0).then(|| Opening {
            kind,
            terms: Terms {
                window: bytes[2],
                ack_every: bytes[3],
                segment: u16::from_be_bytes([bytes[4], bytes[5]]),
                block_segments: bytes[6],
            },
            nonce: nonce.try_into().expect("eight bytes"),
            cookie: *bytes.last_chunk().expect("32 bytes"),
        })
    }
}

/// Makes and recognises cookies; keeps nothing of those it made.
#[derive(Clone)]
pub struct Baker {
    key: [u8; 16],
}

impl std::fmt::Debug for Baker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Baker")
    }
}

impl Baker {
    /// With a secret key.
    pub fn new(key: [u8; 16]) -> Baker {
        Baker { key }
    }

    fn bake(&self, epoch: u64, peer: SocketAddrV4, block: u16, opening: &Opening) -> Cookie {
        // SipHash-2-4 is a keyed function made for short messages: without the key nobody can tell its next value.
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(epoch);
        hasher.write(&peer.ip().octets());
        hasher.write_u16(peer.port());
        hasher.write_u16(block);
        hasher.write(&Opening { cookie: [0; 16], ..*opening }.encode());
        hasher.finish128().as_bytes()
    }

    /// The cookie that `peer` has to show with its request `opening` for a connection whose first block is `block`.
    pub fn cookie(&self, now: Time, peer: SocketAddrV4, block: u16, opening: &Opening) -> Cookie {
        self.bake(now.0 / COOKIE_LIFE.0, peer, block, opening)
    }

    /// Whether the request shows a cookie made for it not long ago.
    pub fn accepts(&self, now: Time, peer: SocketAddrV4, block: u16, opening: &Opening) -> bool {
        let epoch = now.0 / COOKIE_LIFE.0;
        let recent = |epoch| self.bake(epoch, peer, block, opening) == opening.cookie;
        recent(epoch) || epoch.checked_sub(1).is_some_and(recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening() -> Opening {
        let terms = Terms { window: 3, ack_every: 2, segment: 0x5b4, block_segments: 12 };
        Opening { kind: Kind::Request, terms, nonce: [1, 2, 3, 4, 5, 6, 7, 8], cookie: [9; 16] }
    }

    #[test]
    fn layout() {
        let bytes = opening().encode();
        assert_eq!(bytes[..16], [1, 0, 3, 2, 0x05, 0xb4, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[16..], [9; 16]);
        assert_eq!(Opening::decode(&bytes), Some(opening()));
        assert_eq!(Opening::decode(&bytes[..31]), None);
        for (at, value) in [(0, 2), (1, 3), (7, 1)] {
            let mut bytes = bytes;
            bytes[at] = value;
            assert_eq!(Opening::decode(&bytes), None, "byte {at}");
        }
    }

    #[test]
    fn a_cookie_is_good_for_its_request_alone_and_not_for_long() {
        let (ours, others) = (Baker::new([1; 16]), Baker::new([2; 16]));
        let peer = "10.0.0.1:4000".parse().unwrap();
        let start = Time(100 * COOKIE_LIFE.0);
        let shown = Opening { cookie: ours.cookie(start, peer, 7, &opening()), ..opening() };
        assert!(ours.accepts(start, peer, 7, &shown));
        assert!(ours.accepts(start + COOKIE_LIFE, peer, 7, &shown));
        assert!(!ours.accepts(start + COOKIE_LIFE * 2, peer, 7, &shown), "too old");
        assert!(!others.accepts(start, peer, 7, &shown), "another key");
        assert!(!ours.accepts(start, "10.0.0.1:4001".parse().unwrap(), 7, &shown), "another port");
        assert!(!ours.accepts(start, "10.0.0.2:4000".parse().unwrap(), 7, &shown), "another address");
        assert!(!ours.accepts(start, peer, 8, &shown), "another block");
        let terms = Terms { segment: 9, ..shown.terms };
        assert!(!ours.accepts(start, peer, 7, &Opening { terms, ..shown }), "other terms");
        assert!(!ours.accepts(start, peer, 7, &Opening { cookie: [0; 16], ..shown }), "none");
    }

    #[test]
    fn terms_that_make_no_sense_are_refused() {
        let config = tpa::Config::default();
        let good = opening().terms;
        assert_eq!(good.apply(&config).map(|config| Terms::of(&config)), Some(good));
        let every_window = Terms { ack_every: 3, ..good };
        assert_eq!(every_window.apply(&config).map(|config| config.ack), Some(ack::Rule::EveryWindow));
        for bad in [
            Terms { window: 0, ..good },
            Terms { window: 13, ..good },
            Terms { ack_every: 4, ..good },
            Terms { segment: 0, ..good },
            Terms { block_segments: 13, ..good },
            Terms { block_segments: 0, ..good },
        ] {
            assert_eq!(bad.apply(&config), None, "{bad:?}");
        }
    }
}
