//! The direction of a stream that comes from the far end: bytes by offset, put together, and the credit for more.
//!
//! The two carriers of a session know nothing of each other, so that bytes may come before those in front of them. No byte comes twice: who
//! sends cuts a stream once. What contradicts that is no peer of ours.

use super::Violation;
use crate::budget::Account;
use std::collections::{BTreeMap, VecDeque};

/// Bytes that a stream may send before anybody has read from it.
pub(super) const FIRST: u64 = 16 << 10;
/// Bytes that it may send beyond what was read, as soon as somebody reads, and at most, once as much was read. Credit crosses the trains that
/// it is for and costs them more than its bytes: it is to be seldom.
const EARLY: u64 = 64 << 10;
pub(super) const WINDOW: u64 = 1 << 20;
/// The same where bulk goes by BBR, whose paths may hold much and are not disturbed by credit.
const EARLY_WIDE: u64 = 256 << 10;
const WINDOW_WIDE: u64 = 4 << 20;
/// Pieces behind a gap that are kept: who sends changes from one carrier to the other and back eight times at most while bulk is under way.
const PIECES: usize = 32;

/// One direction.
#[derive(Debug)]
pub(super) struct Incoming {
    /// In order, not read yet.
    arrived: VecDeque<u8>,
    /// Offset after it.
    next: u64,
    /// What has come behind a gap; none touches another.
    pieces: BTreeMap<u64, VecDeque<u8>>,
    /// Bytes that were moved from one piece to another.
    #[cfg(test)]
    moved: u64,
    /// Bytes read.
    taken: u64,
    /// Offset up to which the peer may send.
    granted: u64,
    /// Bytes that were promised beyond what was read when credit was given last.
    window: u64,
    /// Bulk goes by BBR.
    wide: bool,
    /// Memory of the session.
    account: Account,
    /// Where the stream ends, once the peer has said so.
    end: Option<u64>,
}

impl Incoming {
    /// Nothing has come; `wide` where bulk goes by BBR. What comes is booked in `account`.
    pub(super) fn new(wide: bool, account: Account) -> Incoming {
        Incoming {
            wide,
            account,
            arrived: VecDeque::new(),
            next: 0,
            pieces: BTreeMap::new(),
            #[cfg(test)]
            moved: 0,
            taken: 0,
            granted: FIRST,
            window: FIRST,
            end: None,
        }
    }

    /// Bytes came; whether there is more to read than before.
    pub(super) fn place(&mut self, offset: u64, bytes: &[u8]) -> Result<bool, Violation> {
        let end = offset + bytes.len() as u64;
        if end > self.granted {
            return Err(Violation("more than there is credit for"));
        }
        if self.end.is_some_and(|last| end > last) {
            return Err(Violation("bytes behind the end of a stream"));
        }
        if offset < self.next {
            return Err(Violation("bytes that have come before"));
        }
        if offset > self.next {
            return self.keep(offset, end, bytes).map(|()| false);
        }
        if self.pieces.first_key_value().is_some_and(|(at, _)| *at < end) {
            return Err(Violation("bytes that have come before"));
        }
        self.book(bytes.len())?;
        let piece = self.pieces.remove(&end).unwrap_or_default();
        reserve(&mut self.arrived, bytes.len() + piece.len())?;
        self.next = end + piece.len() as u64;
        self.arrived.extend(bytes);
        self.arrived.extend(piece);
        Ok(true)
    }

    /// What lies behind a gap.
    fn keep(&mut self, offset: u64, end: u64, bytes: &[u8]) -> Result<(), Violation> {
        let before = self.pieces.range(..=offset).next_back().map(|(at, piece)| (*at, at + piece.len() as u64));
        let after = self.pieces.range(offset..).next().map(|(at, _)| *at);
        if before.is_some_and(|(_, its_end)| its_end > offset) || after.is_some_and(|at| at < end) {
            return Err(Violation("bytes that have come before"));
        }
        self.book(bytes.len())?;
        let mut rest = if after == Some(end) { self.pieces.remove(&end).unwrap_or_default() } else { VecDeque::new() };
        let at = match before {
            Some((at, its_end)) if its_end == offset => at,
            _ if self.pieces.len() >= PIECES => return Err(Violation("a stream in too many pieces")),
            _ => offset,
        };
        let mut piece = self.pieces.remove(&at).unwrap_or_default();
        #[cfg(test)]
        {
            self.moved += piece.len().min(rest.len()) as u64;
        }
        // The shorter one moves, so that a byte moves as often as the logarithm of the window at most, in whatever order the pieces come.
        if piece.len() >= rest.len() {
            reserve(&mut piece, bytes.len() + rest.len())?;
            piece.extend(bytes);
            piece.extend(rest);
            rest = piece;
        } else {
            reserve(&mut rest, bytes.len() + piece.len())?;
            bytes.iter().rev().for_each(|byte| rest.push_front(*byte));
            piece.iter().rev().for_each(|byte| rest.push_front(*byte));
        }
        self.pieces.insert(at, rest);
        Ok(())
    }

    /// So many bytes are to be kept.
    fn book(&self, bytes: usize) -> Result<(), Violation> {
        self.account.take(bytes).map_err(|_| Violation("more than the buffers of its connections may hold"))
    }

    /// The peer says where the stream ends.
    pub(super) fn finish(&mut self, end: u64) -> Result<(), Violation> {
        let highest = self.pieces.last_key_value().map_or(self.next, |(at, piece)| at + piece.len() as u64);
        if self.end.is_some() || end < highest || end > self.granted {
            return Err(Violation("an end that is none"));
        }
        self.end = Some(end);
        Ok(())
    }

    /// Reads what is there.
    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let length = into.len().min(self.arrived.len());
        let (a, b) = self.arrived.as_slices();
        let first = length.min(a.len());
        into[..first].copy_from_slice(&a[..first]);
        into[first..length].copy_from_slice(&b[..length - first]);
        self.arrived.drain(..length);
        if self.arrived.is_empty() {
            // A stream that is silent keeps no memory.
            self.arrived = VecDeque::new();
        }
        self.taken += length as u64;
        self.account.give_back(length);
        length
    }

    /// Nothing more will come: what lies behind a gap is forgotten, what is in order may still be read.
    pub(super) fn forget(&mut self) {
        let given_up = self.kept() - self.arrived.len();
        self.account.give_back(given_up);
        self.pieces = BTreeMap::new();
    }

    /// Whether everything was read, the end included.
    pub(super) fn is_over(&self) -> bool {
        self.end == Some(self.taken)
    }

    /// Bytes that the peer may still send, or that wait to be read.
    pub(super) fn promised(&self) -> u64 {
        self.granted - self.taken
    }

    /// How much beyond what was read the peer may be promised, where all streams may be promised `left` bytes more.
    pub(super) fn window(&self, left: u64) -> u64 {
        let window = if self.wide {
            // As a sender does that looks for the rate of the path, which this is not to hold back.
            (4 * self.taken).clamp(EARLY_WIDE, WINDOW_WIDE)
        } else {
            self.taken.clamp(EARLY, WINDOW)
        };
        window.min(left / 8).max(FIRST)
    }

    /// Whether the peer should be told of new credit, if `window` bytes are to be promised: when a quarter is left of the last, or less than that
    /// may be under way; where bulk goes by BBR already when three quarters are.
    pub(super) fn is_due(&self, window: u64) -> bool {
        if self.wide {
            return self.end.is_none() && self.taken + window > self.granted && self.promised() <= window / 4 * 3;
        }
        let spare = (self.window / 4).max(EARLY / 2).min(self.window / 2);
        self.end.is_none() && self.taken + window > self.granted && self.promised() <= spare
    }

    /// Promises `window` bytes beyond what was read: the offset up to which the peer may send, and by how much that is more than before.
    pub(super) fn grant(&mut self, window: u64) -> (u64, u64) {
        let before = self.granted;
        if self.taken + window > before {
            (self.granted, self.window) = (self.taken + window, window);
        }
        (self.granted, self.granted - before)
    }

    /// Bytes kept.
    pub(super) fn kept(&self) -> usize {
        self.arrived.len() + self.pieces.values().map(VecDeque::len).sum::<usize>()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.account.give_back(self.kept());
    }
}

/// Takes memory for so many more bytes.
fn reserve(bytes: &mut VecDeque<u8>, more: usize) -> Result<(), Violation> {
    bytes.try_reserve(more).map_err(|_| Violation("more than this host has memory for"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Bounds, Budget};
    use crate::networks::source_of;

    #[test]
    fn bytes_that_come_in_any_order_are_moved_seldom() {
        // A window of 4 MiB, of which the first byte does not come.
        let begun = || {
            let mut incoming = Incoming::new(true, Account::default());
            incoming.place(0, &vec![7; FIRST as usize]).unwrap();
            incoming.taken = 1 << 20;
            (incoming.next, incoming.granted) = (1 << 20, (1 << 20) + WINDOW_WIDE);
            incoming
        };
        let (first, bytes) = ((1 << 20) + 1, 1_000_000);
        let descending = (0..bytes).rev().collect::<Vec<u64>>();
        // Two ends that meet: first from the left, then from the right, in turn.
        let meeting = (0..bytes).map(|place| if place % 2 == 0 { place / 2 } else { bytes - 1 - place / 2 }).collect();
        // Runs of eight pieces, filled from the right, that are joined by what comes last.
        let joined = (0..bytes).map(|place| (place % 8) * bytes / 8 + (bytes / 8 - 1 - place / 8)).collect();
        for order in [(0..bytes).collect(), descending, meeting, joined] {
            let mut incoming = begun();
            for offset in &order {
                incoming.place(first + offset, &[*offset as u8]).unwrap();
            }
            assert!(incoming.moved <= 4 * bytes, "{} bytes moved", incoming.moved);
            incoming.arrived.clear();
            incoming.place(1 << 20, &[255]).unwrap();
            assert!(incoming.arrived.iter().skip(1).copied().eq((0..bytes).map(|offset| offset as u8)));
        }
    }

    #[test]
    fn credit_keeps_ahead_of_a_path_of_long_round_trips() {
        // What is granted travels half a round trip, and so do the bytes: a reader that is quick, and 500 kB that the path holds.
        let most = |wide: bool| {
            let mut incoming = Incoming::new(wide, Account::default());
            let (mut offset, mut limits) = (0_u64, std::collections::VecDeque::from([FIRST; 10]));
            for _ in 0..200 {
                // A tenth of a round trip: 50 kB pass if there is credit for them.
                let limit = limits.pop_front().unwrap();
                let bytes = limit.saturating_sub(offset).min(50_000);
                incoming.place(offset, &vec![7; bytes as usize]).unwrap();
                offset += bytes;
                while incoming.read(&mut [0; 4096]) > 0 {}
                let window = incoming.window(u64::MAX);
                let granted = if incoming.is_due(window) { incoming.grant(window).0 } else { incoming.granted };
                limits.push_back(granted);
            }
            offset
        };
        // 10 MB in 20 round trips, less the first ones; with the credit of trains a third is missing.
        assert!(most(true) > 9_000_000, "{}", most(true));
        assert!(most(false) < 7_000_000, "{}", most(false));
    }

    fn read(incoming: &mut Incoming) -> Vec<u8> {
        let mut into = [0; 64];
        let length = incoming.read(&mut into);
        into[..length].to_vec()
    }

    #[test]
    fn pieces_are_put_together() {
        let mut incoming = Incoming::new(false, Account::default());
        assert_eq!(incoming.place(6, b"gh"), Ok(false));
        assert_eq!(incoming.place(2, b"cd"), Ok(false));
        assert_eq!(incoming.place(4, b"ef"), Ok(false));
        assert_eq!((incoming.pieces.len(), incoming.kept()), (1, 6));
        assert_eq!(incoming.finish(8), Ok(()));
        assert_eq!(incoming.place(0, b"ab"), Ok(true));
        assert!(!incoming.is_over());
        assert_eq!(read(&mut incoming), b"abcdefgh");
        assert!(incoming.is_over() && incoming.kept() == 0);
    }

    #[test]
    fn what_contradicts_itself_is_told() {
        let begun = || {
            let mut incoming = Incoming::new(false, Account::default());
            incoming.place(0, b"abcd").unwrap();
            incoming.place(8, b"ij").unwrap();
            incoming
        };
        for (offset, bytes) in [(3, &b"x"[..]), (0, b"abcd"), (8, b"i"), (9, b"x"), (7, b"xx"), (4, b"xxxxx")] {
            assert!(begun().place(offset, bytes).is_err(), "{offset}");
        }
        assert!(begun().place(FIRST - 1, b"xx").is_err(), "beyond the credit");
        assert!(begun().place(FIRST - 1, b"x").is_ok());
        for end in [0, 3, 9, FIRST + 1] {
            assert!(begun().finish(end).is_err(), "{end}");
        }
        let mut ended = begun();
        ended.finish(11).unwrap();
        assert!(ended.finish(11).is_err() && ended.place(11, b"x").is_err() && ended.place(10, b"x").is_ok());
        let mut crumbs = Incoming::new(false, Account::default());
        let kept = (1..100).take_while(|place| crumbs.place(2 * place, b"x").is_ok()).count();
        assert_eq!(kept, PIECES);
    }

    #[test]
    fn what_is_kept_is_booked_and_without_memory_the_session_ends() {
        let budget = Budget::new(Bounds { port: 100, source: 100, key: 100 });
        let mut incoming = Incoming::new(false, budget.account(source_of([127, 0, 0, 1].into()), None));
        incoming.place(50, &[1; 30]).unwrap();
        incoming.place(0, &[1; 40]).unwrap();
        assert!(incoming.place(40, &[1; 5]).is_ok() && incoming.place(100, &[1; 26]).is_err());
        assert_eq!(budget.used(), 75);
        incoming.read(&mut [0; 20]);
        incoming.forget();
        assert_eq!(budget.used(), 25);
        drop(incoming);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn credit_follows_reading() {
        let mut incoming = Incoming::new(false, Account::default());
        let all = vec![7; FIRST as usize];
        incoming.place(0, &all).unwrap();
        assert!(!incoming.is_due(FIRST));
        incoming.read(&mut vec![0; FIRST as usize / 2]);
        assert!(incoming.is_due(FIRST) && incoming.is_due(WINDOW));
        assert_eq!(incoming.grant(WINDOW), (FIRST / 2 + WINDOW, WINDOW - FIRST / 2));
        assert_eq!(incoming.promised(), WINDOW);
        assert!(!incoming.is_due(WINDOW));
        // It is never taken back.
        assert_eq!(incoming.grant(FIRST), (FIRST / 2 + WINDOW, 0));
        // Who reads more may be promised more, as long as there is enough for all.
        assert_eq!([incoming.window(u64::MAX), incoming.window(0)], [EARLY, FIRST]);
        let more = vec![7; 200_000];
        incoming.place(FIRST, &more).unwrap();
        incoming.read(&mut vec![0; 300_000]);
        assert_eq!([incoming.window(u64::MAX), incoming.window(1_000_000)], [FIRST + 200_000, 125_000]);
    }
}
