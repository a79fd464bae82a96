//! Sealing of the next block in advance, while the answer to the current block is awaited.
//!
//! TPA begins a block only when all of the previous block is known to have arrived. A sender of
//! full blocks is therefore idle for a round trip, and then its peer waits while it seals. But the
//! content of the next block's datagrams is known in advance, except what they acknowledge and
//! which window they announce. They are therefore sealed in advance, and are sent if the guess was
//! right about these fields. A wrong guess costs the work and some datagram numbers, which nobody
//! misses. After each wrong guess in a row, only half as many blocks are guessed.

use super::engine::AnySegment;
use super::handshake::Tag;
use super::seal::{AUTHENTICATION, HEAD, Seal};
use crate::ring::SendRing;
use meshpace_transport::tpa::{Segment, wire};

/// Limit of the age of a presealed datagram: half of the peer's replay window. A datagram is used
/// only while fewer than this many datagrams have been sealed since its block, the block included.
const FRESH: u64 = meshpace_transport::tpa::replay::WINDOW / 2;

/// Number up to which wrong guesses in a row are counted. From then on one block of 32 is guessed.
const MOST_WRONG: u32 = 5;

/// Datagrams of one block, all of the same length.
#[derive(Debug, Default)]
pub(crate) struct PresealedBlock {
    /// Segments of the block by place. `None` once a segment has been used.
    segments: Vec<Option<Segment>>,
    bytes: Vec<u8>,
    length: usize,
    /// Number of the block's first datagram.
    number: u64,
    used: bool,
    wrong: u32,
}

impl PresealedBlock {
    /// Copies the payload of `segments` from `ring`, if this block is to be guessed and has not
    /// been copied yet. Returns whether there is something to seal; the caller then calls
    /// [`PresealedBlock::seal`].
    pub(crate) fn gather(&mut self, mut segments: impl Iterator<Item = Segment>, ring: &SendRing) -> bool {
        let Some(first) = segments.next() else { return false };
        let known = self.segments.iter().flatten().next().is_some_and(|known| known.block == first.block);
        if known {
            return false;
        }
        if !self.segments.is_empty() {
            self.wrong = if self.used { 0 } else { (self.wrong + 1).min(MOST_WRONG) };
        }
        self.clear();
        if !u32::from(first.block).is_multiple_of(1 << self.wrong) {
            return false;
        }
        for segment in std::iter::once(first).chain(segments) {
            let Some((a, b)) = ring.range(segment.offset, usize::from(segment.payload)) else { break };
            self.bytes.extend_from_slice(&[0; HEAD]);
            self.bytes.extend_from_slice(&wire::encode_inside_udp(&segment));
            self.bytes.extend_from_slice(a);
            self.bytes.extend_from_slice(b);
            self.bytes.extend_from_slice(&[0; AUTHENTICATION]);
            self.segments.push(Some(segment));
        }
        self.length = self.bytes.len() / self.segments.len().max(1);
        !self.segments.is_empty()
    }

    /// Seals the datagrams that [`PresealedBlock::gather`] has prepared.
    pub(crate) fn seal(&mut self, to: Tag, seal: &mut Seal) {
        self.number = seal.number();
        self.bytes.chunks_exact_mut(self.length).for_each(|datagram| seal.close(to, datagram));
    }

    /// Returns the datagram that contains exactly `segment`, once. `number` is the number of the
    /// next datagram to be sealed.
    pub(crate) fn take(&mut self, segment: &Segment, number: u64) -> Option<&[u8]> {
        let place = usize::from(segment.index()?);
        let known = self.segments.get_mut(place)?;
        if known.as_ref() != Some(segment) || number - self.number >= FRESH {
            return None;
        }
        *known = None;
        self.used = true;
        self.bytes.chunks_exact(self.length).nth(place)
    }

    /// Returns the datagrams of the whole block and the length of each, once. `None` unless they
    /// contain exactly `segments` and none has been used. The caller may leave any bytes in the
    /// returned buffer, which is not read again.
    pub(crate) fn take_all(&mut self, segments: &[AnySegment], number: u64) -> Option<(&mut Vec<u8>, usize)> {
        let same = |(known, segment): (&Option<Segment>, &AnySegment)| matches!((known, segment), (Some(known), AnySegment::Tpa(segment)) if known == segment);
        let all = !segments.is_empty() && segments.len() == self.segments.len();
        if !all || number - self.number >= FRESH || !self.segments.iter().zip(segments).all(same) {
            return None;
        }
        self.segments.fill(None);
        self.used = true;
        Some((&mut self.bytes, self.length))
    }

    fn clear(&mut self) {
        self.segments.clear();
        self.bytes.clear();
        self.used = false;
    }

    /// Frees the memory.
    pub(crate) fn rest(&mut self) {
        *self = PresealedBlock::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::Cipher;
    use super::super::seal::{KEY_LIFE, Keys};
    use super::*;
    use crate::budget::Account;

    /// Seals of both ends, a ring with a stream, and a function that returns the segments of a
    /// block of this stream.
    fn scene() -> ([Seal; 2], SendRing, impl Fn(u16) -> [Segment; 3]) {
        let (a, b) = ([1; 32], [2; 32]);
        let cipher = Cipher::default();
        let keys = [Keys { cipher, send: a, receive: b }, Keys { cipher, send: b, receive: a }];
        let seals = keys.map(|keys| Seal::new(&keys, KEY_LIFE));
        let mut ring = SendRing::new(10_000, Account::default());
        let bytes: Vec<u8> = (0..9000u32).map(|i| (i * 7 % 251) as u8).collect();
        assert_eq!(ring.write(&bytes), Ok(bytes.len()));
        let block = |block: u16| {
            [0, 1, 2].map(|place| Segment {
                offset: u64::from(block) * 300 + place * 100,
                block,
                place: 1 << place,
                payload: 100,
                window: 200,
                ..Segment::default()
            })
        };
        (seals, ring, block)
    }

    #[test]
    fn what_was_guessed_leaves_once_and_opens_to_what_it_says() {
        let ([mut seal, mut peer], ring, block) = scene();
        let mut presealed = PresealedBlock::default();
        assert!(presealed.gather(block(2).into_iter(), &ring));
        presealed.seal(7, &mut seal);
        assert!(!presealed.gather(block(2).into_iter(), &ring), "it is here");
        let [first, second, third] = block(2);
        let other = Segment { window: 100, ..first };
        assert_eq!(presealed.take(&other, seal.number()), None, "it says something else");
        for segment in [third, first] {
            let mut datagram = presealed.take(&segment, seal.number()).unwrap().to_vec();
            let (opened, payload) = wire::decode_inside_udp(peer.open(&mut datagram).unwrap()).unwrap();
            assert_eq!(Segment { offset: segment.offset, ..opened }, segment);
            assert_eq!((payload, &[][..]), ring.range(segment.offset, 100).unwrap());
        }
        assert_eq!(presealed.take(&first, seal.number()), None, "a second time");
        assert!(presealed.take(&second, seal.number() + FRESH - 4).is_some());
        assert!(presealed.gather(block(3).into_iter(), &ring));
        presealed.seal(7, &mut seal);
        let whole = block(3).map(AnySegment::Tpa);
        assert_eq!(presealed.take_all(&whole[..2], seal.number()), None, "a part of it");
        assert_eq!(presealed.take_all(&block(2).map(AnySegment::Tpa), seal.number()), None, "another block");
        assert_eq!(presealed.take_all(&whole, seal.number() + FRESH - 3), None, "the peer may take it for a replay");
        let (datagrams, length) = presealed.take_all(&whole, seal.number()).unwrap();
        let mut datagrams = std::mem::take(datagrams);
        assert_eq!((datagrams.len(), length), (3 * length, HEAD + wire::INSIDE_UDP + 100 + AUTHENTICATION));
        for (datagram, said) in datagrams.chunks_exact_mut(length).zip(block(3)) {
            let (opened, payload) = wire::decode_inside_udp(peer.open(datagram).unwrap()).unwrap();
            assert_eq!(Segment { offset: said.offset, ..opened }, said);
            assert_eq!((payload, &[][..]), ring.range(said.offset, 100).unwrap());
        }
        assert_eq!(presealed.take_all(&whole, seal.number()), None, "a second time");
        assert_eq!(presealed.take(&block(3)[0], seal.number()), None, "a second time");
        assert!(presealed.gather(block(4).into_iter(), &ring));
        presealed.seal(7, &mut seal);
        assert_eq!(presealed.take(&block(4)[0], seal.number() + FRESH), None, "the peer may take it for a replay");
    }

    #[test]
    fn who_is_wrong_guesses_one_block_of_32() {
        let ([mut seal, _], ring, block) = scene();
        let mut presealed = PresealedBlock::default();
        let mut guessed = 0;
        for number in 0..30 * 32 {
            // Of a stream that begins anew, for the ring.
            let segments = block(number % 20).map(|segment| Segment { block: number, ..segment });
            if presealed.gather(segments.into_iter(), &ring) {
                presealed.seal(7, &mut seal);
                guessed += 1;
            }
        }
        assert!((30..40).contains(&guessed), "{guessed}");
    }
}
