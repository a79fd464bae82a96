//! The direction of a stream that comes from the far end: bytes by offset, put together, and the credit for more.
//!
//! The two carriers of a session know nothing of each other, so that bytes may come before those in front of them. No byte comes twice: who
//! sends cuts a stream once. What contradicts that is no peer of ours. The bytes are in pages, which are booked as they are: a stream takes
//! memory where bytes wait to be read, and gives it back page by page.

use super::Violation;
use meshpace_session::budget::{Account, Refusal};
use meshpace_session::ring::{ReceiveRing, Unplaced};
use std::collections::BTreeMap;

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

/// Reason why bytes were not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unkept {
    /// The peer breaks a rule of sessions.
    Rules(Violation),
    /// There is no memory for them.
    Memory(Refusal),
}

impl From<Violation> for Unkept {
    fn from(violation: Violation) -> Unkept {
        Unkept::Rules(violation)
    }
}

impl From<Unplaced> for Unkept {
    fn from(unplaced: Unplaced) -> Unkept {
        match unplaced {
            Unplaced::Beyond => Unkept::Rules(Violation("more than there is credit for")),
            Unplaced::Memory(refusal) => Unkept::Memory(refusal),
        }
    }
}

/// One direction.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The bytes that have come and were not read.
    bytes: ReceiveRing,
    /// Offset behind the bytes that are in order.
    next: u64,
    /// What has come behind a gap, from offset to offset; none touches another.
    pieces: BTreeMap<u64, u64>,
    /// Offset up to which the peer may send.
    granted: u64,
    /// Bytes that were promised beyond what was read when credit was given last.
    window: u64,
    /// Bulk goes by BBR.
    wide: bool,
    /// Where the stream ends, once the peer has said so.
    end: Option<u64>,
}

impl Incoming {
    /// Nothing has come; `wide` where bulk goes by BBR. What comes is booked in `account`.
    pub(super) fn new(wide: bool, account: Account) -> Incoming {
        Incoming {
            wide,
            bytes: ReceiveRing::new(WINDOW_WIDE as usize, account),
            next: 0,
            pieces: BTreeMap::new(),
            granted: FIRST,
            window: FIRST,
            end: None,
        }
    }

    /// Bytes came; whether there is more to read than before.
    ///
    /// # Errors
    ///
    /// The stream cannot go on: the bytes contradict others, or there is no memory for them.
    pub(super) fn place(&mut self, offset: u64, bytes: &[u8]) -> Result<bool, Unkept> {
        let end = offset + bytes.len() as u64;
        if end > self.granted {
            return Err(Violation("more than there is credit for").into());
        }
        if self.end.is_some_and(|last| end > last) {
            return Err(Violation("bytes behind the end of a stream").into());
        }
        let before = self.pieces.range(..=offset).next_back().map(|(at, end)| (*at, *end));
        let after = self.pieces.range(offset..).next().map(|(at, end)| (*at, *end));
        if offset < self.next || before.is_some_and(|(_, end)| end > offset) || after.is_some_and(|(at, _)| at < end) {
            return Err(Violation("bytes that have come before").into());
        }
        let begin = before.filter(|(_, end)| *end == offset).map(|(at, _)| at);
        let joined = after.filter(|(at, _)| *at == end);
        let is_new = offset > self.next && begin.is_none() && joined.is_none();
        if is_new && self.pieces.len() >= PIECES {
            return Err(Violation("a stream in too many pieces").into());
        }
        self.bytes.place(offset, bytes)?;
        if let Some((at, _)) = joined {
            self.pieces.remove(&at);
        }
        let end = joined.map_or(end, |(_, end)| end);
        if offset > self.next {
            self.pieces.insert(begin.unwrap_or(offset), end);
            return Ok(false);
        }
        self.next = end;
        self.bytes.deliver(end);
        Ok(true)
    }

    /// The peer says where the stream ends.
    pub(super) fn finish(&mut self, end: u64) -> Result<(), Violation> {
        let highest = self.pieces.last_key_value().map_or(self.next, |(_, end)| *end);
        if self.end.is_some() || end < highest || end > self.granted {
            return Err(Violation("an end that is none"));
        }
        self.end = Some(end);
        Ok(())
    }

    /// Reads what is there.
    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let length = self.bytes.read(into);
        // A stream that is silent keeps no memory.
        self.bytes.rest();
        length
    }

    /// Bytes read.
    fn taken(&self) -> u64 {
        self.bytes.taken()
    }

    /// Nothing more will come: what lies behind a gap is forgotten, what is in order may still be read.
    pub(super) fn forget(&mut self) {
        self.bytes.forget_beyond();
        self.pieces = BTreeMap::new();
    }

    /// Whether everything was read, the end included.
    pub(super) fn is_over(&self) -> bool {
        self.end == Some(self.taken())
    }

    /// Bytes that the peer may still send, or that wait to be read.
    pub(super) fn promised(&self) -> u64 {
        self.granted - self.taken()
    }

    /// How much beyond what was read the peer may be promised, where all streams may be promised `left` bytes more.
    pub(super) fn window(&self, left: u64) -> u64 {
        let window = if self.wide {
            // As a sender does that looks for the rate of the path, which this is not to hold back.
            (4 * self.taken()).clamp(EARLY_WIDE, WINDOW_WIDE)
        } else {
            self.taken().clamp(EARLY, WINDOW)
        };
        window.min(left / 8).max(FIRST)
    }

    /// Whether the peer should be told of new credit, if `window` bytes are to be promised: when a quarter is left of the last, or less than that
    /// may be under way; where bulk goes by BBR already when three quarters are.
    pub(super) fn is_due(&self, window: u64) -> bool {
        if self.wide {
            return self.end.is_none() && self.taken() + window > self.granted && self.promised() <= window / 4 * 3;
        }
        let spare = (self.window / 4).max(EARLY / 2).min(self.window / 2);
        self.end.is_none() && self.taken() + window > self.granted && self.promised() <= spare
    }

    /// Promises `window` bytes beyond what was read: the offset up to which the peer may send, and by how much that is more than before.
    pub(super) fn grant(&mut self, window: u64) -> (u64, u64) {
        let before = self.granted;
        if self.taken() + window > before {
            (self.granted, self.window) = (self.taken() + window, window);
        }
        (self.granted, self.granted - before)
    }

    /// Bytes kept.
    pub(super) fn kept(&self) -> usize {
        let pieces: u64 = self.pieces.iter().map(|(at, end)| end - at).sum();
        (self.next - self.taken() + pieces) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_session::budget::{Bounds, Budget};
    use meshpace_session::networks::source_of;
    use meshpace_session::ring::PAGE;

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
    fn what_is_kept_is_booked_by_pages_and_given_back_as_it_is_read() {
        let most = 5 * PAGE;
        let budget = Budget::new(Bounds { port: most, source: most, key: most });
        let mut incoming = Incoming::new(false, budget.account(source_of([127, 0, 0, 1].into()), None));
        // Two pages, the second with a gap before it, and then all up to it.
        incoming.place(PAGE as u64 + 50, &[1; 30]).unwrap();
        incoming.place(0, &[1; 40]).unwrap();
        assert_eq!((incoming.kept(), budget.used()), (70, 2 * PAGE));
        incoming.place(40, &[1; PAGE + 10]).unwrap();
        incoming.read(&mut vec![0; PAGE + 79]);
        assert!((1..=2).contains(&(budget.used() / PAGE)), "{} bytes for the byte that is left", budget.used());
        incoming.read(&mut [0; 10]);
        assert_eq!((incoming.kept(), budget.used()), (0, 0), "a stream that is silent keeps no memory");
        // What lies behind a gap is forgotten with the stream, what is in order is not.
        let at = PAGE as u64 + 80;
        incoming.place(at, &[1; 10]).unwrap();
        incoming.place(at + 9000, &[1; 10]).unwrap();
        assert!(budget.used() > PAGE);
        incoming.forget();
        assert_eq!((incoming.kept(), budget.used()), (10, PAGE));
        drop(incoming);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn without_memory_nothing_is_kept_and_no_rule_is_broken() {
        let budget = Budget::new(Bounds { port: PAGE, source: PAGE, key: PAGE });
        let mut incoming = Incoming::new(false, budget.account(source_of([127, 0, 0, 1].into()), None));
        assert_eq!(incoming.place(0, &[1; PAGE]), Ok(true));
        assert_eq!(incoming.place(PAGE as u64, b"x"), Err(Unkept::Memory(Refusal::Source(PAGE))));
        assert_eq!(budget.used(), PAGE);
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
