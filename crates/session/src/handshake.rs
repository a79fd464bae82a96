//! Format of the datagrams that open a connection. Their tag is zero, and they carry the terms of
//! the connection, a cookie, and a message of the Noise handshake.
//!
//! The TPA paper specifies only the flags of the header. A listener stores no state for a request
//! until the sender has shown that it receives datagrams at its address. The listener therefore
//! answers the first request with a challenge. The challenge contains a cookie that only the
//! listener can make, and the opener repeats the request with this cookie. The idea is that of
//! TCP's SYN cookies (RFC 4987, section 3.6) with the extra round trip of QUIC (RFC 9000, section
//! 8.1.2), because a 12-byte header has no room for a hidden cookie. A challenge is as long as a
//! request without padding, so a listener never sends an unverified address more bytes than it
//! received from there.
//!
//! Both ends of TPA need the same segment size, and the receiver needs to know how many segments
//! share an ACK (section 3.6). The end that opens the connection proposes both. A listener with
//! smaller buffers asks for smaller segments in its challenge, and the challenge also names the
//! cipher that the listener has chosen. With encryption the first request already contains the
//! public key with which the first Noise message will begin, and the cookie is valid for this key
//! only.
//!
//! ```text
//! bytes 0-7    zero: the tag that belongs to no connection
//! byte 8       version, 3
//! byte 9       kind: 0 request, 1 challenge, 2 acceptance, 3 stray, 4 refusal
//! byte 10      protection: 0 none, 1 Noise NN, 2 Noise NNpsk0, 3 Noise IK;
//!              with encryption plus 16 if the opener offers AES-256-GCM,
//!              and plus 32 if AES-256-GCM is the cipher;
//!              plus 64 if the datagrams carry quiet trains
//! byte 11      segments that share an ACK: 2, or cwnd_max
//! bytes 12-19  tag of the opener, chosen at random and repeated in the answers, so that
//!              nobody else on the network can answer
//! bytes 20-27  tag of the acceptor; zero until the acceptance
//! byte 28      cwnd_max, 1 to 12
//! byte 29      segments in a block, 1 to 12
//! bytes 30-31  payload of a full segment, bytes
//! bytes 32-47  cookie; zero in the first request, the acceptance and a refusal
//! bytes 48-59  TPA's header: SYN, or SYN and ACK; with quiet trains its txStat says that BBR
//!              is requested, or agreed to, in their place
//! bytes 60-61  length of the Noise message, which follows; then padding
//! ```
//!
//! A request for BBR is sent as a request for quiet trains. A listener that does not know BBR
//! therefore agrees to quiet trains.
//!
//! A stray tells the sender of a datagram that the receiver knows no connection with the tag of the
//! datagram. It ends after byte 19, and its bytes 12-19 are that tag.

use super::cipher::Suite;
use meshpace_transport::tpa::{self, Segment, ack, wire};
use std::fmt;

/// Length of the fields before the Noise message, bytes.
pub const BYTES: usize = 62;

/// Name with which the prologue of the Noise handshake begins.
const NAME: &[u8; 21] = b"meshpace TPA over UDP";

/// Length of the prologue, bytes.
const PROLOGUE: usize = NAME.len() + BYTES;

/// Length of a stray, bytes. It is not longer than the shortest datagram of a connection.
pub const STRAY_BYTES: usize = 20;

/// Smallest payload of a full segment that a listener accepts, bytes. With smaller segments most of
/// the bytes sent would be headers.
pub const LEAST_SEGMENT: u16 = 64;

/// Version of the handshake that this code speaks.
const VERSION: u8 = 3;

/// Flag in the protection byte: the datagrams carry quiet trains.
const TRAINS: u8 = 0x40;

/// Transport protocol that the datagrams of a connection carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InnerTransport {
    /// TPA.
    Tpa,
    /// Quiet trains.
    Trains,
    /// BBR, requested in the place of quiet trains.
    Bbr,
}

/// Tag of a connection at one end: a random number, never zero. Every datagram to that end contains
/// it.
pub type Tag = u64;

/// Kind of a datagram that opens a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Requests a connection.
    Request,
    /// Asks the opener to repeat its request with this cookie and these terms.
    Challenge,
    /// Accepts the request.
    Acceptance,
    /// Tells a sender that its peer knows no connection with this tag.
    Stray,
    /// Refuses the request. The datagram names the protection that the peer accepts, and which of
    /// TPA and quiet trains; the peer accepts nothing else. Both are as in the request if the keys
    /// do not match. A non-zero tag of the acceptor means that nobody listens at the port.
    Refusal,
}

/// Protection of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// No encryption; datagrams are protected by the tag alone.
    Plain,
    /// Noise NN: encryption with an unauthenticated peer.
    Nn,
    /// Noise NNpsk0: encryption with a peer that knows a shared secret.
    NnPsk0,
    /// Noise IK: encryption with a peer that holds a known key.
    Ik,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protection::Plain => "no encryption",
            Protection::Nn => "encryption without known keys",
            Protection::NnPsk0 => "encryption with a shared secret",
            Protection::Ik => "encryption with known keys",
        })
    }
}

/// Cookie of a challenge.
pub type Cookie = [u8; 16];

/// Terms of a connection that both ends have to share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
    /// Terms that correspond to `config`.
    pub fn of(config: &tpa::Config) -> Terms {
        let window = config.congestion.window;
        Terms {
            window,
            ack_every: config.ack.segments(window),
            segment: config.segment as u16,
            block_segments: config.block_segments,
        }
    }

    /// Returns the size of a block, bytes.
    pub fn block(self) -> usize {
        usize::from(self.segment) * usize::from(self.block_segments)
    }

    /// Returns `config` with these terms. `None` if the terms are invalid.
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
        (self.segment >= LEAST_SEGMENT && config.check().is_ok()).then_some(config)
    }

    /// Returns these terms with the segments made small enough that three blocks fit into `buffer`
    /// bytes.
    pub fn within(self, buffer: usize) -> Terms {
        let most = buffer / 3 / usize::from(self.block_segments.max(1));
        Terms { segment: self.segment.min(u16::try_from(most).unwrap_or(u16::MAX)), ..self }
    }

    /// True if these terms equal `asked`, or differ only by smaller segments.
    pub fn yields_to(self, asked: Terms) -> bool {
        self.segment <= asked.segment && Terms { segment: asked.segment, ..self } == asked
    }
}

/// Fields of a datagram that opens a connection, without the Noise message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// Kind of the datagram.
    pub kind: Kind,
    /// Protection that the connection will have.
    pub protection: Protection,
    /// Cipher that is offered and chosen.
    pub suite: Suite,
    /// True if the datagrams will carry quiet trains or BBR, false if TPA.
    pub trains: bool,
    /// Terms of the connection.
    pub terms: Terms,
    /// Tag of the end that opens the connection.
    pub opener: Tag,
    /// Tag of the end that accepts the connection. Zero if there is none yet.
    pub acceptor: Tag,
    /// Cookie; zero if there is none.
    pub cookie: Cookie,
    /// TPA's header.
    pub segment: Segment,
}

impl Opening {
    /// Returns the transport that the datagrams of the connection will carry.
    pub fn inner(&self) -> InnerTransport {
        match (self.trains, self.segment.congested) {
            (false, _) => InnerTransport::Tpa,
            (true, false) => InnerTransport::Trains,
            (true, true) => InnerTransport::Bbr,
        }
    }

    /// Encodes the datagram with the message `noise`, and pads it with zeros to a length of
    /// `padded` bytes.
    pub fn encode(&self, noise: &[u8], padded: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((BYTES + noise.len()).max(padded));
        bytes.extend(self.head(noise.len()));
        bytes.extend(noise);
        bytes.resize(bytes.len().max(padded), 0);
        bytes
    }

    /// Encodes the fields before a Noise message that is `noise` bytes long.
    pub(crate) fn head(&self, noise: usize) -> [u8; BYTES] {
        let Terms { window, ack_every, segment, block_segments } = self.terms;
        let trains = if self.trains { TRAINS } else { 0 };
        let mut bytes = [0; BYTES];
        bytes[8..12].copy_from_slice(&[
            VERSION,
            self.kind as u8,
            self.protection as u8 | self.suite.bits() | trains,
            ack_every,
        ]);
        bytes[12..20].copy_from_slice(&self.opener.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.acceptor.to_be_bytes());
        bytes[28..30].copy_from_slice(&[window, block_segments]);
        bytes[30..32].copy_from_slice(&segment.to_be_bytes());
        bytes[32..48].copy_from_slice(&self.cookie);
        bytes[48..60].copy_from_slice(&wire::encode_inside_udp(&self.segment));
        bytes[60..].copy_from_slice(&(noise as u16).to_be_bytes());
        bytes
    }

    /// Decodes a datagram whose tag is zero, and returns its fields and its Noise message. `None`
    /// if this version does not know the format. Strays have a format of their own, see
    /// [`understand_stray`].
    pub fn decode(bytes: &[u8]) -> Option<(Opening, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<BYTES>()?;
        if head[..8] != [0; 8] || head[8] != VERSION {
            return None;
        }
        let kind = match head[9] {
            0 => Kind::Request,
            1 => Kind::Challenge,
            2 => Kind::Acceptance,
            4 => Kind::Refusal,
            _ => return None,
        };
        let protection = match head[10] & 0x0f {
            0 => Protection::Plain,
            1 => Protection::Nn,
            2 => Protection::NnPsk0,
            3 => Protection::Ik,
            _ => return None,
        };
        let trains = head[10] & TRAINS != 0;
        let suite = Suite::of_bits(head[10] & 0xf0 & !TRAINS)?;
        if protection == Protection::Plain && suite != Suite::default() {
            return None;
        }
        let tag = |at: usize| head[at..].first_chunk().map(|bytes| Tag::from_be_bytes(*bytes));
        let (segment, _) = wire::decode_inside_udp(&head[48..60]).ok()?;
        let length = usize::from(u16::from_be_bytes([head[60], head[61]]));
        let opening = Opening {
            kind,
            protection,
            suite,
            trains,
            terms: Terms {
                window: head[28],
                ack_every: head[11],
                segment: u16::from_be_bytes([head[30], head[31]]),
                block_segments: head[29],
            },
            opener: tag(12)?,
            acceptor: tag(20)?,
            cookie: *head[32..].first_chunk()?,
            segment,
        };
        Some((opening, rest.get(..length)?))
    }

    /// Encodes the fields for repetition inside the second Noise message. The zero tag is left out,
    /// and the length of the Noise message is zero.
    pub(crate) fn repeated(&self) -> Vec<u8> {
        self.head(0)[8..].to_vec()
    }

    /// Decodes the result of [`Opening::repeated`].
    pub(crate) fn decode_repeated(bytes: &[u8]) -> Option<Opening> {
        let head = [&[0; 8], bytes].concat();
        Opening::decode(&head).filter(|_| head.len() == BYTES).map(|(opening, _)| opening)
    }

    /// Returns the kind and the opener's tag of a request of which only the beginning is available.
    /// `None` for all other kinds.
    pub(crate) fn decode_head(bytes: &[u8]) -> Option<(Kind, Tag)> {
        let head = bytes.first_chunk::<20>()?;
        let tag = head.last_chunk().map(|bytes| Tag::from_be_bytes(*bytes))?;
        (head[..8] == [0; 8] && head[8] == VERSION && head[9] == Kind::Request as u8).then_some((Kind::Request, tag))
    }

    /// Returns the prologue of the Noise handshake (Noise, section 6). It contains the fields of
    /// the request that both ends must have seen alike, so that nobody between them can change one.
    pub fn prologue(&self) -> [u8; PROLOGUE] {
        let plain = Opening {
            kind: Kind::Request,
            acceptor: 0,
            cookie: Cookie::default(),
            segment: Segment { block: self.segment.block, ..Segment::default() },
            ..*self
        };
        let mut bytes = [0; PROLOGUE];
        let (name, head) = bytes.split_at_mut(NAME.len());
        name.copy_from_slice(NAME);
        head.copy_from_slice(&plain.head(0));
        bytes
    }
}

/// Encodes a stray, which tells the user of `tag` that no connection with this tag is known.
pub fn stray(tag: Tag) -> [u8; STRAY_BYTES] {
    let mut bytes = [0; STRAY_BYTES];
    (bytes[8], bytes[9]) = (VERSION, Kind::Stray as u8);
    bytes[12..].copy_from_slice(&tag.to_be_bytes());
    bytes
}

/// Returns the unknown tag that a stray names. `None` if `bytes` are not a stray.
pub fn understand_stray(bytes: &[u8]) -> Option<Tag> {
    let tag = bytes.get(12..STRAY_BYTES)?.first_chunk().map(|bytes| Tag::from_be_bytes(*bytes))?;
    (bytes.len() == STRAY_BYTES && stray(tag) == bytes).then_some(tag)
}

/// Returns the tag at the beginning of a datagram. `None` if the datagram is shorter than a tag.
pub fn tag_of(datagram: &[u8]) -> Option<Tag> {
    datagram.first_chunk().map(|bytes| Tag::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_transport::tpa::Flags;

    fn opening() -> Opening {
        let terms = Terms { window: 3, ack_every: 2, segment: 0x5b4, block_segments: 12 };
        let segment = Segment { block: 0x123, window: 0x81, flags: Flags::SYN, ..Segment::default() };
        let (opener, acceptor) = (0x0102_0304_0506_0708, 0x1112_1314_1516_1718);
        Opening {
            kind: Kind::Acceptance,
            protection: Protection::NnPsk0,
            suite: Suite::asking(true),
            trains: false,
            terms,
            opener,
            acceptor,
            cookie: [9; 16],
            segment,
        }
    }

    #[test]
    fn layout() {
        let bytes = opening().encode(b"noise", 80);
        assert_eq!(bytes[..12], [0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0x32, 2]);
        assert_eq!(bytes[12..20], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[20..28], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        assert_eq!(bytes[28..32], [3, 12, 0x05, 0xb4]);
        assert_eq!(bytes[32..48], [9; 16]);
        assert_eq!(bytes[48..62], [0x12, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0x24, 0x08, 0, 5]);
        assert_eq!(bytes[62..80], *b"noise\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(Opening::decode(&bytes), Some((opening(), &b"noise"[..])));
        let trains = Opening { trains: true, ..opening() };
        assert_eq!(trains.encode(&[], 0)[10], 0x72);
        assert_eq!(Opening::decode(&trains.encode(&[], 0)), Some((trains, &[][..])));
        assert_eq!(Opening::decode(&bytes[..66]), None, "the message is longer");
        assert_eq!(Opening::decode(&bytes[..61]), None);
        for (at, value) in [(0, 1), (8, 2), (9, 3), (9, 5), (10, 4), (10, 0x10), (10, 0x22), (10, 0xb2)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert_eq!(Opening::decode(&bytes), None, "byte {at}");
        }
    }

    #[test]
    fn a_stray_names_the_tag() {
        let bytes = stray(0x0102_0304_0506_0708);
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(understand_stray(&bytes), Some(0x0102_0304_0506_0708));
        assert_eq!(understand_stray(&bytes[..19]), None);
        assert_eq!(understand_stray(&opening().encode(&[], 0)), None);
    }

    #[test]
    fn the_prologue_is_what_the_request_said() {
        let request = Opening { kind: Kind::Request, acceptor: 0, cookie: [0; 16], ..opening() };
        assert_eq!(request.prologue(), opening().prologue(), "the same in the acceptance");
        for other in [
            Opening { opener: 1, ..request },
            Opening { protection: Protection::Nn, ..request },
            Opening { suite: Suite::asking(false), ..request },
            Opening { trains: true, ..request },
            Opening { suite: request.suite.agreed(false), ..request },
            Opening { terms: Terms { segment: 9, ..request.terms }, ..request },
            Opening { segment: Segment { block: 1, ..request.segment }, ..request },
        ] {
            assert_ne!(request.prologue(), other.prologue());
        }
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
            Terms { segment: 1, ..good },
            Terms { segment: LEAST_SEGMENT - 1, ..good },
            Terms { block_segments: 13, ..good },
            Terms { block_segments: 0, ..good },
        ] {
            assert_eq!(bad.apply(&config), None, "{bad:?}");
        }
    }

    #[test]
    fn segments_are_made_to_fit_a_buffer() {
        let asked = Terms { segment: 65000, ..opening().terms };
        assert_eq!(asked.within(36 * 1460), Terms { segment: 1460, ..asked });
        assert_eq!(asked.within(1 << 30), asked);
        assert!(asked.within(36 * 1460).yields_to(asked) && asked.yields_to(asked));
        assert!(!asked.yields_to(asked.within(36 * 1460)), "larger ones are no answer");
        assert!(!Terms { window: 4, ..asked }.yields_to(asked));
    }
}
