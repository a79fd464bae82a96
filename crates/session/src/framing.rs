//! Framing of a segment in a datagram of an open connection: the tag alone, or encryption.

use super::addresses::Addresses;
use super::engine::AnySegment;
use super::handshake::{InnerTransport, Protection, Tag, tag_of};
use super::outbox::Outbox;
use super::path_frame::{self, PathFrame};
use super::pieces;
use super::presealed::PresealedBlock;
use super::seal::{AUTHENTICATION, HEAD, Keys, Seal, is_piece, number_of};
use crate::ring::SendRing;
use meshpace_transport::tpa::{Segment, wire};
use std::net::SocketAddr;

/// Length of the tag, bytes.
const TAG: usize = 8;

/// Content of a datagram.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    /// A segment and its payload.
    Segment(AnySegment, &'a [u8]),
    /// A path challenge or the response to one.
    Path(PathFrame),
    /// A piece of a segment.
    Piece(&'a [u8]),
}

/// Framing of a connection's datagrams.
#[derive(Debug)]
pub struct Framing {
    /// The peer's tag.
    to: Tag,
    seal: Option<Box<Seal>>,
    inner: InnerTransport,
    presealed: PresealedBlock,
    /// Number of the next segment that leaves in pieces.
    cut: u16,
}

/// Bytes of a datagram without the payload and without UDP's header, for a segment of TPA.
pub const fn overhead(protection: Protection) -> u32 {
    let around = match protection {
        Protection::Plain => TAG,
        Protection::Nn | Protection::NnPsk0 | Protection::Ik => HEAD + AUTHENTICATION,
    };
    (around + wire::INSIDE_UDP) as u32
}

/// Bytes of a datagram to `peer` without the payload, including the headers of IP and UDP.
pub fn headers_to(peer: SocketAddr, protection: Protection) -> u32 {
    let ip = if peer.is_ipv4() { 20 } else { 40 };
    ip + 8 + overhead(protection)
}

impl Framing {
    /// Framing of datagrams to the end that has the tag `to` and that carry segments of `inner`.
    /// They are encrypted if there are keys. A key serves two to the power of `key_life` datagrams.
    pub fn new(to: Tag, keys: Option<&Keys>, key_life: u32, inner: InnerTransport) -> Framing {
        Framing {
            to,
            seal: keys.map(|keys| Box::new(Seal::new(keys, key_life))),
            inner,
            presealed: PresealedBlock::default(),
            cut: 0,
        }
    }

    /// The peer's tag.
    pub(crate) fn to(&self) -> Tag {
        self.to
    }

    /// Number of the next datagram. `None` without encryption, since datagrams then have no
    /// numbers.
    pub(crate) fn next_number(&self) -> Option<u64> {
        self.seal.as_ref().map(|seal| seal.number())
    }

    /// True if datagrams are encrypted.
    pub(crate) fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Length of the datagram of a segment with `payload` bytes, bytes.
    pub(crate) fn length(&self, segment: &AnySegment, payload: usize) -> usize {
        let around = if self.seal.is_some() { HEAD + AUTHENTICATION } else { TAG };
        around + segment.header() + payload
    }

    /// Appends the datagram of `segment` to `out`. Its payload is `a` followed by `b`.
    pub fn write(&mut self, out: &mut Vec<u8>, segment: &AnySegment, a: &[u8], b: &[u8]) {
        let content = |out: &mut Vec<u8>| {
            segment.write(out);
            out.extend_from_slice(a);
            out.extend_from_slice(b);
        };
        match &mut self.seal {
            Some(seal) => {
                let known = match segment {
                    AnySegment::Tpa(segment) => self.presealed.take(segment, seal.number()),
                    AnySegment::Train(_) | AnySegment::Bbr(_) => None,
                };
                match known {
                    Some(datagram) => out.extend_from_slice(datagram),
                    None => seal.seal(self.to, out, content),
                }
            }
            None => {
                out.extend_from_slice(&self.to.to_be_bytes());
                content(out);
            }
        }
    }

    /// Sends all datagrams of a block that was sealed in advance, if `segments` are just those of
    /// that block. Returns whether it did.
    pub(crate) fn send_ahead(&mut self, to: Addresses, segments: &[AnySegment], out: &mut Outbox) -> bool {
        let Some(seal) = &self.seal else { return false };
        let block = self.presealed.take_all(segments, seal.number());
        block.is_some_and(|(datagrams, length)| out.push_all(to, length, datagrams))
    }

    /// Copies the content of these segments of one block if it can be sealed before they leave.
    /// Returns whether there is something to seal: [`Framing::seal_ahead`] has to follow, which no
    /// longer needs the send buffer.
    pub(crate) fn gather(&mut self, segments: impl Iterator<Item = Segment>, ring: &SendRing) -> bool {
        self.seal.is_some() && self.presealed.gather(segments, ring)
    }

    /// Seals the block that was gathered.
    pub(crate) fn seal_ahead(&mut self) {
        if let Some(seal) = &mut self.seal {
            self.presealed.seal(self.to, seal);
        }
    }

    /// Frees memory that is not needed while no data move.
    pub(crate) fn rest(&mut self) {
        self.presealed.rest();
    }

    /// Opens a datagram with our tag. Returns `None` if the peer did not send it.
    pub(crate) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<Content<'a>> {
        let is_piece = self.seal.is_some() && is_piece(datagram);
        let content: &[u8] = match &mut self.seal {
            Some(seal) => seal.open(datagram)?,
            None => datagram.get(TAG..)?,
        };
        if is_piece {
            return Some(pieces::challenge(content).map_or(Content::Piece(content), Content::Path));
        }
        if self.seal.is_some()
            && let Some(frame) = PathFrame::read(content)
        {
            return Some(Content::Path(frame));
        }
        AnySegment::read(self.inner, content).map(|(segment, payload)| Content::Segment(segment, payload))
    }

    /// Number of a datagram, and whether it is the first with that number. `None` without
    /// encryption, since datagrams then have no numbers.
    pub(crate) fn number(&self, datagram: &[u8]) -> Option<(u64, bool)> {
        let seal = self.seal.as_ref()?;
        number_of(datagram).map(|number| (number, seal.is_new(number)))
    }

    /// True if the peer sent this datagram, which may be a duplicate. The datagram cannot be opened
    /// afterwards.
    pub(crate) fn is_authentic(&self, datagram: &mut [u8]) -> bool {
        self.seal.as_ref().is_some_and(|seal| seal.is_authentic(datagram))
    }

    /// Sends `segment` in datagrams of at most `limit` bytes. Its payload is `a` followed by `b`.
    /// Returns false, and sends nothing, if the segment cannot be cut that way.
    pub(crate) fn push_pieces(
        &mut self,
        to: Addresses,
        segment: &AnySegment,
        (a, b): (&[u8], &[u8]),
        limit: usize,
        out: &mut Outbox,
    ) -> bool {
        let Some(seal) = &mut self.seal else { return false };
        let mut content = Vec::with_capacity(segment.header() + a.len() + b.len());
        segment.write(&mut content);
        content.extend_from_slice(a);
        content.extend_from_slice(b);
        let room = limit.saturating_sub(HEAD + AUTHENTICATION);
        let Some(pieces) = pieces::cut(self.cut, &content, room) else { return false };
        for (header, part) in pieces {
            let length = HEAD + header.len() + part.len() + AUTHENTICATION;
            out.push(to, length, |out| {
                seal.seal_piece(self.to, out, |out| {
                    out.extend_from_slice(&header);
                    out.extend_from_slice(part);
                });
            });
        }
        self.cut = self.cut.wrapping_add(1);
        true
    }

    /// Sends a probe: a datagram of `length` bytes in a message of its own, with a path challenge
    /// of this number.
    pub(crate) fn push_probe(&mut self, to: Addresses, length: usize, challenge: u64, out: &mut Outbox) {
        let Some(seal) = &mut self.seal else { return };
        let content = pieces::probe(challenge, length.saturating_sub(HEAD + AUTHENTICATION));
        let mut datagram = Vec::with_capacity(length);
        seal.seal_piece(self.to, &mut datagram, |out| out.extend_from_slice(&content));
        out.push_alone(to, &datagram);
    }

    /// Sends a path challenge or a path response to `to`. Does nothing without encryption. `peer`
    /// is the connection's current address of the peer; any other address has not proved that the
    /// peer receives there.
    pub(crate) fn push_path(&mut self, to: Addresses, peer: SocketAddr, frame: PathFrame, out: &mut Outbox) {
        let Some(seal) = &mut self.seal else { return };
        let length = HEAD + path_frame::LENGTH + AUTHENTICATION;
        let write = |out: &mut Vec<u8>| seal.seal(self.to, out, |out| out.extend_from_slice(&frame.bytes()));
        if to.peer == peer { out.push(to, length, write) } else { out.answer(to, length, write) }
    }
}

/// Reads the segment and its payload in a TPA datagram that is not encrypted. For tests and
/// captures.
pub fn decode_plain(datagram: &[u8]) -> Option<(Tag, Segment, &[u8])> {
    let tag = tag_of(datagram).filter(|tag| *tag != 0)?;
    let (segment, payload) = wire::decode_inside_udp(&datagram[TAG..]).ok()?;
    Some((tag, segment, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::Cipher;
    use crate::seal::KEY_LIFE;
    use meshpace_transport::flags::Flags;
    use meshpace_transport::train::{self, Feedback};

    #[test]
    fn segments_of_trains_have_the_layout_of_the_page() {
        let feedback = Feedback { segments: 0x61, marked: 0x62, mean: 0x6364, least: 0x6566 };
        let segment = train::Segment {
            flags: Flags::ACK.with(Flags::PSH),
            wait: 0x11,
            window: 0x2122,
            seq: 0x0132_3334_3536_3738,
            ack: 0x0142_4344_4546_4748,
            ts_val: 0x5152_5354,
            ts_ecr: 0x5556_5758,
            beyond: 0x595a_5b5c,
            feedback,
            payload: 5,
        };
        let mut framing = Framing::new(1, None, KEY_LIFE, InnerTransport::Trains);
        let mut datagram = Vec::new();
        framing.write(&mut datagram, &AnySegment::Train(segment), b"hello", b"");
        let expected = b"\0\0\0\0\0\0\0\x01\x18\x11\x21\x22\x012345678\x01BCDEFGHQRSTUVWXYZ[\\abcdefhello";
        assert_eq!(datagram, expected);
    }

    #[test]
    fn datagrams_have_the_layout_and_the_room_of_the_page() {
        let segment = AnySegment::Tpa(Segment { block: 5, place: 1, payload: 3, ..Segment::default() });
        let content =
            [&wire::encode_inside_udp(&Segment { block: 5, place: 1, payload: 3, ..Segment::default() })[..], b"abc"]
                .concat();
        assert_eq!(content.len(), 12 + 3);
        let keys = Keys { cipher: Cipher::Aes256Gcm, send: [1; 32], receive: [2; 32] };
        let theirs = Keys { cipher: Cipher::Aes256Gcm, send: [2; 32], receive: [1; 32] };
        let framing = |keys| Framing::new(0x0102_0304_0506_0708, keys, KEY_LIFE, InnerTransport::Tpa);
        let (mut plain, mut sealed, mut peer) = (framing(None), framing(Some(&keys)), framing(Some(&theirs)));
        let written = |framing: &mut Framing| {
            let mut datagram = Vec::new();
            framing.write(&mut datagram, &segment, b"ab", b"c");
            assert_eq!(datagram.len(), framing.length(&segment, 3));
            assert_eq!(datagram[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
            datagram
        };
        let datagram = written(&mut plain);
        assert_eq!((datagram.len(), &datagram[8..]), (8 + content.len(), &content[..]));
        for number in 0..3u64 {
            let mut datagram = written(&mut sealed);
            assert_eq!(datagram.len(), 32 + content.len());
            assert_eq!(datagram[8..16], number.to_be_bytes());
            assert!(!datagram.windows(3).any(|bytes| bytes == b"abc"), "what was to be encrypted");
            let Some(Content::Segment(found, payload)) = peer.open(&mut datagram) else { panic!("not opened") };
            let mut header = Vec::new();
            found.write(&mut header);
            assert_eq!([&header[..], payload].concat(), content);
        }
        // What an MTU of 1500 bytes leaves, over IPv4 and over IPv6.
        let left = |peer: &str, protection| 1500 - headers_to(peer.parse().unwrap(), protection);
        assert_eq!(left("10.0.0.1:1", Protection::Plain), 1452);
        assert_eq!(left("[fd00::1]:1", Protection::Plain), 1432);
        for protection in [Protection::Nn, Protection::NnPsk0, Protection::Ik] {
            assert_eq!(left("10.0.0.1:1", protection), 1428);
            assert_eq!(left("[fd00::1]:1", protection), 1408);
        }
    }
}
