//! Datagrams that open a connection: their tag is zero, and they have the terms of the connection, a cookie, and Noise's messages.
//!
//! The TPA paper gives only the flags. A listener keeps nothing of a connection request before its sender has shown that it
//! receives what is sent to its address: the first request is answered by a challenge with a cookie that only the listener can
//! make, and the request is repeated with it (the idea of TCP's SYN cookies, RFC 4987, section 3.6, with QUIC's extra round, RFC
//! 9000, section 8.1.2, since a 12-byte header has no room to hide a cookie in). A challenge is as long as a request without
//! padding, so that a listener never sends more than it was sent to an address that has shown nothing.
//!
//! Both ends of TPA need the same segment size, and the receiver needs to know how many segments share an ACK (section 3.6).
//! Whoever opens the connection proposes them; a listener whose buffers are smaller asks for smaller segments in its challenge. There it
//! also chooses the cipher. With encryption the first request already has the public key that Noise's first message will begin with, and
//! the cookie is good for no other.
//!
//! ```text
//! bytes 0-7    zero: the tag of no connection
//! byte 8       version, 3
//! byte 9       kind: 0 request, 1 challenge, 2 acceptance, 3 stray, 4 refusal
//! byte 10      protection: 0 none, 1 Noise NN, 2 Noise NNpsk0, 3 Noise IK; with encryption 16 more if who opens offers
//!              AES-256-GCM, and 32 more if that is the cipher; 64 more if datagrams carry quiet trains
//! byte 11      segments that share an ACK: 2, or cwnd_max
//! bytes 12-19  tag of whoever opens, chosen at random and repeated in the answers: nobody else on the network can answer
//! bytes 20-27  tag of whoever accepts; zero until the acceptance
//! byte 28      cwnd_max, 1 to 12
//! byte 29      segments in a block, 1 to 12
//! bytes 30-31  payload of a full segment, bytes
//! bytes 32-47  cookie; zero in the first request and in the acceptance
//! bytes 48-59  TPA's header: SYN, or SYN and ACK; with quiet trains its txStat says that BBR is asked for in their place, or agreed to
//! bytes 60-61  length of Noise's message, which follows; then padding
//! ```
//!
//! BBR is asked for where quiet trains are, so that a listener that does not know it agrees to those.
//!
//! A stray tells the sender of a datagram that nobody knows its tag: it ends after byte 19, and bytes 12-19 are that tag.

use super::cipher::Suite;
use meshpace_transport::tpa::{self, Segment, ack, wire};
use std::fmt;

/// Bytes before Noise's message.
pub const BYTES: usize = 62;

/// Beginning of the prologue.
const NAME: &[u8; 21] = b"meshpace TPA over UDP";

/// Bytes of the prologue.
const PROLOGUE: usize = NAME.len() + BYTES;

/// Bytes of a stray: not more than the shortest datagram of a connection.
pub const STRAY_BYTES: usize = 20;

/// Smallest payload of a full segment that a listener agrees to: with less the headers are most of what travels.
pub const LEAST_SEGMENT: u16 = 64;

/// The version this is.
const VERSION: u8 = 3;

/// In the byte of the protection: it is quiet trains that are carried.
const TRAINS: u8 = 0x40;

/// Transport that a connection's datagrams carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InnerTransport {
    /// TPA.
    Tpa,
    /// Quiet trains.
    Trains,
    /// BBR, in the place of quiet trains.
    Bbr,
}

/// The name of a connection at one end: random, never zero, in every datagram to that end.
pub type Tag = u64;

/// Kind of a datagram that opens a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Asks for a connection.
    Request,
    /// Asks to ask again with this cookie and these terms.
    Challenge,
    /// Agrees.
    Acceptance,
    /// Nobody knows this tag.
    Stray,
    /// No: the peer takes this protection, and this of TPA and quiet trains, and nothing else; both as asked for if the keys do not
    /// fit. With an acceptor's tag: nobody listens.
    Refusal,
}

/// Protection of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// By the tag alone.
    Plain,
    /// Noise NN: encrypted, with whoever answers.
    Nn,
    /// Noise NNpsk0: with whoever knows a shared secret.
    NnPsk0,
    /// Noise IK: with the holders of keys that are known.
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

/// A cookie.
pub type Cookie = [u8; 16];

/// The terms both ends need to share.
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

    /// Bytes of a block.
    pub fn block(self) -> usize {
        usize::from(self.segment) * usize::from(self.block_segments)
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
        (self.segment >= LEAST_SEGMENT && config.check().is_ok()).then_some(config)
    }

    /// These terms with segments of which three blocks fit into `buffer` bytes.
    pub fn within(self, buffer: usize) -> Terms {
        let most = buffer / 3 / usize::from(self.block_segments.max(1));
        Terms { segment: self.segment.min(u16::try_from(most).unwrap_or(u16::MAX)), ..self }
    }

    /// True if these are `asked`, or the same with smaller segments.
    pub fn yields_to(self, asked: Terms) -> bool {
        self.segment <= asked.segment && Terms { segment: asked.segment, ..self } == asked
    }
}

/// A datagram that opens a connection, without Noise's message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// Kind of the datagram.
    pub kind: Kind,
    /// Protection that the connection is to have.
    pub protection: Protection,
    /// The cipher.
    pub suite: Suite,
    /// True if datagrams are to carry quiet trains, not TPA.
    pub trains: bool,
    /// The terms.
    pub terms: Terms,
    /// The tag of whoever opens.
    pub opener: Tag,
    /// The tag of whoever accepts; zero for none yet.
    pub acceptor: Tag,
    /// The cookie; zero for none.
    pub cookie: Cookie,
    /// TPA's header.
    pub segment: Segment,
}

impl Opening {
    /// The transport that the connection's datagrams are to carry.
    pub fn inner(&self) -> InnerTransport {
        match (self.trains, self.segment.congested) {
            (false, _) => InnerTransport::Tpa,
            (true, false) => InnerTransport::Trains,
            (true, true) => InnerTransport::Bbr,
        }
    }

    /// As bytes, with Noise's message, and zeros up to a length of `padded`.
    pub fn encode(&self, noise: &[u8], padded: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((BYTES + noise.len()).max(padded));
        bytes.extend(self.head(noise.len()));
        bytes.extend(noise);
        bytes.resize(bytes.len().max(padded), 0);
        bytes
    }

    /// The bytes before Noise's message of `noise` bytes.
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

    /// From the bytes of a datagram whose tag is zero, with Noise's message; none if they are nothing this version knows.
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

    /// As it is repeated inside Noise's second message: without the tag of no connection, and without that message.
    pub(crate) fn repeated(&self) -> Vec<u8> {
        self.head(0)[8..].to_vec()
    }

    /// From [`Opening::repeated`].
    pub(crate) fn decode_repeated(bytes: &[u8]) -> Option<Opening> {
        let head = [&[0; 8], bytes].concat();
        Opening::decode(&head).filter(|_| head.len() == BYTES).map(|(opening, _)| opening)
    }

    /// The kind, and the tag of whoever opens, of an opening of which only the beginning is there.
    pub(crate) fn decode_head(bytes: &[u8]) -> Option<(Kind, Tag)> {
        let head = bytes.first_chunk::<20>()?;
        let tag = head.last_chunk().map(|bytes| Tag::from_be_bytes(*bytes))?;
        (head[..8] == [0; 8] && head[8] == VERSION && head[9] == Kind::Request as u8).then_some((Kind::Request, tag))
    }

    /// The part of the request that both ends must have seen alike, whoever is between them (Noise, section 6: the prologue).
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

/// Tells whoever uses `tag` that nobody knows it.
pub fn stray(tag: Tag) -> [u8; STRAY_BYTES] {
    let mut bytes = [0; STRAY_BYTES];
    (bytes[8], bytes[9]) = (VERSION, Kind::Stray as u8);
    bytes[12..].copy_from_slice(&tag.to_be_bytes());
    bytes
}

/// The tag that a stray says nobody knows, if that is what `bytes` are.
pub fn understand_stray(bytes: &[u8]) -> Option<Tag> {
    let tag = bytes.get(12..STRAY_BYTES)?.first_chunk().map(|bytes| Tag::from_be_bytes(*bytes))?;
    (bytes.len() == STRAY_BYTES && stray(tag) == bytes).then_some(tag)
}

/// The tag that a datagram begins with, if there is one.
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
