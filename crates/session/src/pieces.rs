//! Splits segments whose datagrams are longer than the path carries into pieces, and reassembles
//! them.
//!
//! Both ends agree on the length of segments while a connection opens. If the path later becomes
//! too narrow for them, each segment is sent in pieces, one datagram per piece. The receiver
//! reassembles the segment before it processes it. A datagram with a piece has the highest bit of
//! its number set, which no other datagram has. Its content, which is encrypted, is:
//!
//! ```text
//! bytes 0-1   number of the segment in its direction, modulo 2^16
//! byte 2      index of this piece within the segment, from 0
//! byte 3      number of pieces of the segment; 0 for a probe
//! then        bytes of the segment, header included; in a probe a path challenge and zeros
//! ```
//!
//! A build that does not know pieces takes the number of such a datagram for one whose key it does
//! not have yet, and drops the datagram.

use super::path_frame::{self, PathFrame};
use crate::budget::Account;

/// Length of the header before the bytes of the segment, bytes.
pub(crate) const HEADER: usize = 4;

/// Longest segment that is split and reassembled, with its header, bytes: the size of an Ethernet
/// jumbo frame.
const LONGEST: usize = 9216;

/// Most pieces of one segment.
const MOST: usize = 64;

/// Number of segments that are reassembled at the same time. Two suffice for a segment that
/// overtakes another.
const SEGMENTS: usize = 2;

/// Splits `content`, the bytes of segment `number`, into pieces of at most `room` bytes, header
/// included. `None` if the segment is not split: it fits whole, is too long, or needs too many
/// pieces.
pub(crate) fn cut(number: u16, content: &[u8], room: usize) -> Option<impl Iterator<Item = ([u8; HEADER], &[u8])>> {
    let count = content.len().div_ceil(room.checked_sub(HEADER).filter(|room| *room > 0)?);
    if content.len() > LONGEST || !(2..=MOST).contains(&count) {
        return None;
    }
    let [high, low] = number.to_be_bytes();
    let parts = content.chunks(content.len().div_ceil(count)).enumerate();
    Some(parts.map(move |(place, part)| ([high, low, place as u8, count as u8], part)))
}

/// Content of a probe that is `length` bytes long. It contains a challenge with this number, which
/// the peer answers if the probe arrives.
pub(crate) fn probe(challenge: u64, length: usize) -> Vec<u8> {
    let mut content = [&[0; HEADER], &PathFrame::Challenge(challenge).bytes()[..]].concat();
    content.resize(length.max(content.len()), 0);
    content
}

/// Returns the challenge in a probe. `None` if the content is a piece or malformed.
pub(crate) fn challenge(content: &[u8]) -> Option<PathFrame> {
    let (header, rest) = content.split_first_chunk::<HEADER>()?;
    let challenge = PathFrame::read(rest.get(..path_frame::LENGTH)?)?;
    (header[3] == 0 && matches!(challenge, PathFrame::Challenge(_))).then_some(challenge)
}

/// Segments of which some pieces have arrived. The memory that they use is charged to the account
/// of the connection.
#[derive(Debug)]
pub(crate) struct Assembly {
    account: Account,
    /// In the order of their first pieces, the newest last.
    segments: Vec<Partial>,
}

/// Segment of which pieces are missing.
#[derive(Debug)]
struct Partial {
    number: [u8; 2],
    /// Pieces by index. `None` for a piece that has not arrived.
    pieces: Vec<Option<Box<[u8]>>>,
    /// Total length of the pieces that have arrived, bytes.
    bytes: usize,
}

impl Assembly {
    /// Creates an empty assembly that charges its memory to `account`.
    pub(crate) fn new(account: Account) -> Assembly {
        Assembly { account, segments: Vec::new() }
    }

    /// Adds a piece that the peer has sent. Returns the bytes of the segment if this piece
    /// completes it.
    pub(crate) fn add(&mut self, content: &[u8]) -> Option<Vec<u8>> {
        let (&[high, low, place, count], piece) = content.split_first_chunk::<HEADER>()?;
        let (number, place, count) = ([high, low], usize::from(place), usize::from(count));
        if place >= count || !(2..=MOST).contains(&count) || piece.is_empty() {
            return None;
        }
        let is_it = |partial: &Partial| partial.number == number && partial.pieces.len() == count;
        let index = match self.segments.iter().position(is_it) {
            Some(index) => index,
            None => {
                if self.segments.len() >= SEGMENTS {
                    self.forget(0);
                }
                self.segments.push(Partial { number, pieces: (0..count).map(|_| None).collect(), bytes: 0 });
                self.segments.len() - 1
            }
        };
        let partial = &mut self.segments[index];
        if partial.pieces[place].is_some() {
            return None;
        }
        if partial.bytes + piece.len() > LONGEST || self.account.take(piece.len()).is_err() {
            self.forget(index);
            return None;
        }
        partial.bytes += piece.len();
        partial.pieces[place] = Some(piece.into());
        let whole: Vec<u8> = match partial.pieces.iter().all(Option::is_some) {
            true => partial.pieces.iter().flatten().flat_map(|piece| piece.iter().copied()).collect(),
            false => return None,
        };
        self.forget(index);
        Some(whole)
    }

    fn forget(&mut self, index: usize) {
        let partial = self.segments.remove(index);
        self.account.give_back(partial.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Bounds, Budget};
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    fn datagrams(number: u16, content: &[u8], room: usize) -> Vec<Vec<u8>> {
        cut(number, content, room).unwrap().map(|(header, part)| [&header, part].concat()).collect()
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 % 251) as u8).collect()
    }

    #[test]
    fn a_segment_is_whole_again_whatever_the_order_of_its_pieces() {
        for (length, room, count) in [(1440, 1220, 2), (1440, 516, 3), (9216, 516, 18), (101, 54, 3), (100, 54, 2)] {
            let content = content(length);
            let mut pieces = datagrams(7, &content, room);
            assert_eq!(pieces.len(), count);
            assert!(pieces.iter().all(|piece| piece.len() <= room));
            for turn in 0..count {
                pieces.rotate_left(turn);
                let mut assembly = Assembly::new(Account::default());
                let (last, others) = pieces.split_last().unwrap();
                for piece in others {
                    // Twice: the second one says nothing new.
                    assert_eq!((assembly.add(piece), assembly.add(piece)), (None, None));
                }
                assert_eq!(assembly.add(last).as_ref(), Some(&content));
                assert!(assembly.segments.is_empty());
            }
        }
    }

    #[test]
    fn what_fits_is_not_cut_and_what_is_too_long_is_not_either() {
        for (length, room) in [(100, 104), (100, 4), (100, 0), (LONGEST + 1, 1220), (1440, 20)] {
            assert!(cut(1, &content(length), room).is_none(), "{length} {room}");
        }
    }

    #[test]
    fn two_segments_may_overtake_each_other_and_a_third_takes_the_place_of_the_oldest() {
        let mut assembly = Assembly::new(Account::default());
        let [a, b, c] = [1, 2, 3].map(|number| datagrams(number, &content(1000), 600));
        assert_eq!((assembly.add(&b[0]), assembly.add(&a[1])), (None, None));
        assert_eq!(assembly.add(&a[0]), Some(content(1000)));
        assert_eq!((assembly.add(&c[0]), assembly.add(&a[0])), (None, None));
        assert_eq!(assembly.add(&b[1]), None, "the rest of it is forgotten");
    }

    #[test]
    fn a_hostile_peer_has_no_more_kept_than_is_booked_and_bounded() {
        let budget = Budget::new(Bounds { port: 1 << 20, source: 1 << 20, key: 1 << 20 });
        let account = budget.account(crate::networks::source_of([10, 0, 0, 1].into()), None);
        let mut assembly = Assembly::new(account.clone());
        let mut rng = Rng::stream(1, Purpose::Test, 0);
        for _ in 0..20_000 {
            let mut piece = content(rng.below(1500) as usize);
            for byte in piece.iter_mut().take(HEADER) {
                *byte = rng.below(5) as u8;
            }
            assembly.add(&piece);
            let held: usize = assembly.segments.iter().map(|partial| partial.bytes).sum();
            assert_eq!(budget.used(), held);
            assert!(held <= SEGMENTS * LONGEST && assembly.segments.len() <= SEGMENTS);
        }
        while !assembly.segments.is_empty() {
            assembly.forget(0);
        }
        assert_eq!(budget.used(), 0);
        // Where no memory is left nothing is kept.
        account.take((1 << 20) - 100).unwrap();
        let pieces = datagrams(9, &content(1000), 600);
        assert_eq!((assembly.add(&pieces[0]), assembly.add(&pieces[1])), (None, None));
    }

    #[test]
    fn a_probe_is_as_long_as_it_is_to_be_and_no_piece() {
        for length in [13, 1440] {
            let content = probe(0x0102_0304_0506_0708, length);
            assert_eq!(content.len(), length);
            assert_eq!(content[..13], [0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(challenge(&content), Some(PathFrame::Challenge(0x0102_0304_0506_0708)));
            assert_eq!(Assembly::new(Account::default()).add(&content), None);
        }
        assert_eq!(challenge(&datagrams(0, &content(1000), 600)[0]), None);
        // A response proves nothing here: it is not asked for.
        let mut response = probe(1, 13);
        response[4] = 2;
        assert_eq!((challenge(&response), challenge(&response[..12])), (None, None));
    }
}
