//! Buffers for the payload of a stream: two rings that map offsets of the stream to bytes.
//!
//! A transport decides about ranges of offsets: which may be discarded, and which have arrived. The
//! rings hold the bytes of these ranges. Both hold a bounded number of bytes, so that neither a
//! fast writer nor a peer can make them grow without limit.
//!
//! Memory is allocated as bytes arrive. The send ring grows to the size of what has not been
//! acknowledged. The receive ring consists of pages, which are allocated only where bytes have
//! arrived; a byte far ahead costs one page. A ring that has held no bytes yet, or for which `rest`
//! was called, uses no memory.
//!
//! All memory is booked in the connection's [`Account`]. It is reserved in such a way that the
//! process continues if the system has no memory.

use crate::budget::{Account, Refusal};
use std::collections::VecDeque;

/// Size of the smallest send ring that is allocated, bytes.
const LEAST: usize = 4 << 10;

/// Size of a page of the receive ring, bytes.
pub const PAGE: usize = 4 << 10;

/// Send ring: bytes that have been written and not been acknowledged.
#[derive(Debug)]
pub struct SendRing {
    /// Memory of the ring. It grows as needed, up to the capacity.
    bytes: Vec<u8>,
    capacity: usize,
    account: Account,
    /// True if no memory was granted for more than `bytes` when room for one byte more was last
    /// requested.
    was_refused: bool,
    /// Offset in the stream of the oldest byte that is kept.
    start: u64,
    /// Offset after the newest byte.
    end: u64,
}

impl SendRing {
    /// Creates an empty ring for `capacity` bytes, but at least one, whose memory is booked in
    /// `account`.
    pub fn new(capacity: usize, account: Account) -> SendRing {
        SendRing { bytes: Vec::new(), capacity: capacity.max(1), account, was_refused: false, start: 0, end: 0 }
    }

    /// Appends as many of `bytes` as there is room for. Returns their number.
    ///
    /// # Errors
    ///
    /// There is no memory, and the ring holds no bytes whose acknowledgement would make room.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let mut taken = bytes.len().min(self.room());
        if self.grow(self.len() + taken).is_err() {
            // There may be memory for some of the bytes.
            if let Err(refusal) = self.grow(self.len() + 1) {
                if self.bytes.is_empty() {
                    return Err(refusal);
                }
                self.was_refused = true;
            }
            taken = taken.min(self.bytes.len() - self.len());
        }
        if taken == 0 {
            return Ok(0);
        }
        copy_in(&mut self.bytes, self.end, &bytes[..taken]);
        self.end += taken as u64;
        Ok(taken)
    }

    /// Enlarges the memory of the ring to at least `needed` bytes.
    fn grow(&mut self, needed: usize) -> Result<(), Refusal> {
        if needed <= self.bytes.len() {
            return Ok(());
        }
        let size = self.size_for(needed);
        self.account.take(size - self.bytes.len())?;
        let Some(mut larger) = zeroes(size) else {
            self.account.give_back(size - self.bytes.len());
            return Err(Refusal::System(size));
        };
        if let Some((a, b)) = self.range(self.start, self.len()) {
            copy_in(&mut larger, self.start, a);
            copy_in(&mut larger, self.start + a.len() as u64, b);
        }
        (self.bytes, self.was_refused) = (larger, false);
        Ok(())
    }

    /// Size to which the ring grows when it has to hold `needed` bytes and is smaller.
    fn size_for(&self, needed: usize) -> usize {
        needed.max(2 * self.bytes.len()).max(LEAST).min(self.capacity)
    }

    /// Maximum number of bytes that the ring holds.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Allocated memory in bytes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees the memory if the ring is empty.
    pub fn rest(&mut self) {
        if self.is_empty() {
            self.account.give_back(self.bytes.len());
            (self.bytes, self.was_refused) = (Vec::new(), false);
        }
    }

    /// Frees the memory, because nothing will be sent any more. The number of unacknowledged bytes
    /// is still known.
    pub fn forget(&mut self) {
        self.account.give_back(self.bytes.len());
        (self.bytes, self.capacity, self.was_refused) = (Vec::new(), self.len(), false);
    }

    /// Number of bytes for which there is room. Zero if no memory was granted for more than the ring
    /// holds, until some of it is acknowledged.
    #[inline]
    pub fn room(&self) -> usize {
        if self.was_refused && self.is_full() { 0 } else { self.capacity - self.len() }
    }

    /// True if a byte can be written only with more memory.
    fn is_full(&self) -> bool {
        self.len() == self.bytes.len()
    }

    /// True if [`SendRing::write`] would not return zero: it takes at least one byte, or fails. Only
    /// a refusal by the system is not foreseen, and only once.
    #[inline]
    pub fn accepts(&self) -> bool {
        if self.room() == 0 || self.is_empty() || !self.is_full() {
            return self.room() > 0;
        }
        self.account.has_memory_for(self.size_for(self.len() + 1) - self.bytes.len())
    }

    /// Offset after the last byte written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of bytes in the ring.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// True if the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the `length` bytes from `offset`, in two parts if the range wraps around the end of
    /// the ring. `None` if the ring does not hold all of them. A range of zero bytes is always
    /// present.
    pub fn range(&self, offset: u64, length: usize) -> Option<(&[u8], &[u8])> {
        if length == 0 {
            return Some((&[], &[]));
        }
        let kept = offset >= self.start && offset.checked_add(length as u64)? <= self.end;
        (kept && !self.bytes.is_empty()).then(|| {
            let from = (offset % self.bytes.len() as u64) as usize;
            let first = length.min(self.bytes.len() - from);
            (&self.bytes[from..from + first], &self.bytes[..length - first])
        })
    }

    /// Discards all bytes before `offset`, which have been acknowledged. If memory is scarce, an
    /// empty ring frees its memory except for the smallest size. With that memory the connection
    /// can continue even if others use all the rest.
    pub fn release(&mut self, offset: u64) {
        let start = offset.clamp(self.start, self.end);
        if start > self.start {
            self.start = start;
            if self.is_empty() && self.bytes.len() > LEAST && self.account.is_scarce() {
                self.account.give_back(self.bytes.len() - LEAST);
                self.bytes.truncate(LEAST);
                self.bytes.shrink_to_fit();
                self.was_refused = false;
            }
        }
    }
}

impl Drop for SendRing {
    fn drop(&mut self) {
        self.account.give_back(self.bytes.len());
    }
}

/// Reason why bytes were not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unplaced {
    /// The bytes extend beyond the capacity of the ring.
    Beyond,
    /// There is no memory for the bytes.
    Memory(Refusal),
}

/// Receive ring: bytes that have arrived and have not been read, in order or not.
#[derive(Debug)]
pub struct ReceiveRing {
    /// Pages of the stream, beginning with the page of the next byte to be read. A page is empty if
    /// nothing has arrived there.
    pages: VecDeque<Vec<u8>>,
    /// A page that has been read, for reuse as the next page that is needed.
    spare: Vec<u8>,
    /// Number of allocated pages, including the spare one.
    held: usize,
    capacity: usize,
    account: Account,
    /// Offset of the next byte to be read.
    read: u64,
    /// Offset after the last byte without a gap before it.
    delivered: u64,
    /// Offset after the last byte that was stored, with or without gaps before it.
    placed: u64,
    /// Offset at which the first page begins. An empty ring restarts at the beginning of its first
    /// page. As long as the reader keeps up, the same few bytes of memory are used and stay in the
    /// processor's cache.
    origin: u64,
}

impl ReceiveRing {
    /// Creates an empty ring for `capacity` bytes, but at least one, whose memory is booked in
    /// `account`.
    pub fn new(capacity: usize, account: Account) -> ReceiveRing {
        ReceiveRing {
            pages: VecDeque::new(),
            spare: Vec::new(),
            held: 0,
            capacity: capacity.max(1),
            account,
            read: 0,
            delivered: 0,
            placed: 0,
            origin: 0,
        }
    }

    /// Stores `bytes` at `offset` of the stream. Bytes that were already delivered are not changed.
    ///
    /// # Errors
    ///
    /// The bytes extend beyond the capacity of the ring, and nothing is stored; or there is no
    /// memory for all of them.
    pub fn place(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Unplaced> {
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= self.limit()).ok_or(Unplaced::Beyond)?;
        if end <= self.delivered {
            return Ok(());
        }
        if self.placed <= self.read {
            self.origin = self.read;
        }
        self.placed = self.placed.max(end);
        let known = self.delivered.saturating_sub(offset);
        let (mut at, mut rest) = (offset + known, &bytes[known as usize..]);
        while !rest.is_empty() {
            let (number, from) = self.locate(at);
            let page = self.page(number).map_err(Unplaced::Memory)?;
            let (now, later) = rest.split_at(rest.len().min(PAGE - from));
            page[from..from + now.len()].copy_from_slice(now);
            (at, rest) = (at + now.len() as u64, later);
        }
        Ok(())
    }

    /// Returns the number of the page that contains an offset, and the position in the page.
    fn locate(&self, offset: u64) -> (usize, usize) {
        let distance = (offset - self.origin) as usize;
        (distance / PAGE, distance % PAGE)
    }

    /// Returns a page, which is allocated if necessary.
    fn page(&mut self, number: usize) -> Result<&mut [u8], Refusal> {
        if number >= self.pages.len() {
            let more = number + 1 - self.pages.len();
            self.pages.try_reserve(more).map_err(|_| Refusal::System(more))?;
            self.pages.resize_with(number + 1, Vec::new);
        }
        if self.pages[number].is_empty() {
            if self.spare.is_empty() {
                self.account.take(PAGE)?;
                let Some(page) = zeroes(PAGE) else {
                    self.account.give_back(PAGE);
                    return Err(Refusal::System(PAGE));
                };
                (self.spare, self.held) = (page, self.held + 1);
            }
            self.pages[number] = std::mem::take(&mut self.spare);
        }
        Ok(&mut self.pages[number])
    }

    /// Marks everything before `offset` as arrived, as the transport reports it.
    pub fn deliver(&mut self, offset: u64) {
        debug_assert!(offset <= self.limit(), "delivered beyond the ring");
        self.delivered = offset.clamp(self.delivered, self.limit());
    }

    /// Moves readable bytes into `into`. Returns their number.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let length = into.len().min(self.available());
        let mut rest = &mut into[..length];
        while !rest.is_empty() {
            let (number, from) = self.locate(self.read);
            let (now, later) = rest.split_at_mut(rest.len().min(PAGE - from));
            match self.pages.get(number) {
                Some(page) if !page.is_empty() => now.copy_from_slice(&page[from..from + now.len()]),
                // This does not happen, because the transport delivers only bytes that were stored.
                _ => now.fill(0),
            }
            self.read += now.len() as u64;
            rest = later;
            self.forget_read();
        }
        if length > 0 && self.placed <= self.read {
            self.shrink(1);
        }
        length
    }

    /// Removes the first pages if they have been read completely. One of them is kept for reuse.
    fn forget_read(&mut self) {
        while self.read - self.origin >= PAGE as u64 && self.placed > self.read {
            self.origin += PAGE as u64;
            let page = self.pages.pop_front().unwrap_or_default();
            if self.spare.is_empty() {
                self.spare = page;
            } else if !page.is_empty() {
                self.held -= 1;
                self.account.give_back(PAGE);
            }
        }
    }

    /// Frees the memory except for the first `most` pages. The ring has to be empty.
    fn shrink(&mut self, most: usize) {
        self.pages.truncate(most);
        self.pages.shrink_to(most.max(16));
        self.spare = Vec::new();
        let left = self.pages.iter().filter(|page| !page.is_empty()).count();
        self.account.give_back((self.held - left) * PAGE);
        self.held = left;
        self.origin = self.read;
    }

    /// Allocated memory in bytes.
    pub fn memory(&self) -> usize {
        self.pages.iter().chain([&self.spare]).map(Vec::capacity).sum()
    }

    /// Frees the memory if the ring is empty.
    pub fn rest(&mut self) {
        if self.placed <= self.read {
            self.shrink(0);
        }
    }

    /// Discards the bytes after a gap, because nothing more will arrive. Bytes in order can still
    /// be read.
    pub fn forget_beyond(&mut self) {
        self.placed = self.delivered;
        if self.delivered <= self.read {
            return self.shrink(0);
        }
        let (last, _) = self.locate(self.delivered - 1);
        let given_up = self.pages.drain((last + 1).min(self.pages.len())..).filter(|page| !page.is_empty()).count();
        self.held -= given_up;
        self.account.give_back(given_up * PAGE);
    }

    /// Number of bytes that can be read.
    #[inline]
    pub fn available(&self) -> usize {
        (self.delivered - self.read) as usize
    }

    /// Maximum number of bytes that the ring holds.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of bytes that have been read.
    pub fn taken(&self) -> u64 {
        self.read
    }

    /// Number of bytes that may still arrive after the last byte without a gap before it.
    pub fn room(&self) -> usize {
        (self.limit() - self.delivered) as usize
    }

    /// Offset after the last byte that the ring could hold.
    fn limit(&self) -> u64 {
        self.read.saturating_add(self.capacity as u64)
    }
}

impl Drop for ReceiveRing {
    fn drop(&mut self) {
        self.account.give_back(self.held * PAGE);
    }
}

/// Allocates `length` zero bytes. `None` if the system has no memory for them.
fn zeroes(length: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).ok()?;
    bytes.resize(length, 0);
    Some(bytes)
}

/// Copies `bytes` to `offset` of a stream that wraps around in `ring`. There must not be more bytes
/// than the ring holds.
fn copy_in(ring: &mut [u8], offset: u64, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let from = (offset % ring.len() as u64) as usize;
    let first = bytes.len().min(ring.len() - from);
    ring[from..from + first].copy_from_slice(&bytes[..first]);
    ring[..bytes.len() - first].copy_from_slice(&bytes[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Bounds, Budget};
    use crate::networks::source_of;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    fn joined((a, b): (&[u8], &[u8])) -> Vec<u8> {
        [a, b].concat()
    }

    #[test]
    fn a_ring_that_is_forgotten_says_how_much_was_not_acknowledged() {
        let mut ring = SendRing::new(1000, Account::default());
        assert_eq!(ring.write(&[7; 300]).unwrap(), 300);
        ring.release(100);
        ring.forget();
        assert_eq!((ring.len(), ring.room(), ring.range(150, 10)), (200, 0, None));
        assert_eq!(ring.range(150, 0), Some((&[][..], &[][..])));
        ring.release(300);
        assert!(ring.is_empty());
    }

    #[test]
    fn what_is_written_can_be_sent_again_until_released() {
        let mut ring = SendRing::new(8, Account::default());
        assert_eq!(ring.write(b"abcdef"), Ok(6));
        assert_eq!(joined(ring.range(2, 3).unwrap()), b"cde");
        ring.release(4);
        assert_eq!(ring.write(b"ghijklm"), Ok(6), "two were left, four came free");
        assert_eq!(joined(ring.range(4, 8).unwrap()), b"efghijkl");
        assert_eq!(ring.range(3, 2), None, "released");
        assert_eq!(ring.range(11, 2), None, "not written");
        assert_eq!(ring.range(u64::MAX, 2), None);
        assert_eq!(joined(ring.range(0, 0).unwrap()), b"", "an ACK");
        ring.release(100);
        assert!(ring.is_empty());
        assert_eq!(ring.end(), 12);
    }

    #[test]
    fn what_arrives_out_of_order_waits_for_its_turn() {
        let mut ring = ReceiveRing::new(8, Account::default());
        assert_eq!(ring.place(3, b"def"), Ok(()));
        let mut out = [0; 16];
        assert_eq!(ring.read(&mut out), 0);
        assert_eq!(ring.place(0, b"abc"), Ok(()));
        ring.deliver(6);
        assert_eq!((ring.available(), ring.room()), (6, 2));
        assert_eq!(ring.place(6, b"ghi"), Err(Unplaced::Beyond), "three bytes, two have room");
        assert_eq!(ring.place(u64::MAX, b"x"), Err(Unplaced::Beyond));
        assert_eq!(ring.place(4, b"XXgh"), Ok(()), "what is delivered stays");
        assert_eq!(ring.read(&mut out[..4]), 4);
        ring.deliver(8);
        assert_eq!(ring.read(&mut out[4..]), 4);
        assert_eq!(&out[..8], b"abcdefgh");
    }

    /// An account that may hold so much, and where that is seen.
    fn account(bytes: usize) -> (Budget, Account) {
        let budget = Budget::new(Bounds { port: bytes, source: bytes, key: bytes });
        let account = budget.account(source_of([127, 0, 0, 1].into()), None);
        (budget, account)
    }

    #[test]
    fn memory_is_taken_where_bytes_are_and_given_back() {
        let (budget, account) = account(usize::MAX);
        let (mut send, mut receive) = (SendRing::new(1 << 22, account.clone()), ReceiveRing::new(1 << 22, account));
        assert_eq!((send.room(), receive.room(), budget.used()), (1 << 22, 1 << 22, 0));
        assert_eq!(send.write(b"abc"), Ok(3));
        assert_eq!(budget.used(), LEAST);
        // A byte at the end of the window, and one at its beginning.
        assert_eq!(receive.place((1 << 22) - 1, b"z"), Ok(()));
        assert_eq!(receive.place(1, b"bc"), Ok(()));
        assert_eq!(budget.used(), LEAST + 2 * PAGE);
        send.rest();
        receive.rest();
        assert_eq!(budget.used(), LEAST + 2 * PAGE, "something is kept");
        send.release(3);
        send.rest();
        assert_eq!(budget.used(), 2 * PAGE);
        assert_eq!(receive.place(0, &vec![7; 100_000]), Ok(()));
        receive.deliver(100_000);
        assert_eq!(receive.read(&mut vec![0; 200_000]), 100_000);
        // The page of the last byte, the one that is read from, and a spare one.
        assert_eq!(budget.used(), 3 * PAGE);
        assert_eq!(send.write(b"de"), Ok(2));
        assert_eq!(joined(send.range(3, 2).unwrap()), b"de");
        drop((send, receive));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_reader_that_keeps_up_uses_one_page() {
        let (budget, account) = account(usize::MAX);
        let mut receive = ReceiveRing::new(1 << 20, account);
        let mut at = 0;
        for length in [1000, 5000, 100, 20_000, 3] {
            assert_eq!(receive.place(at, &vec![7; length]), Ok(()));
            at += length as u64;
            receive.deliver(at);
            assert_eq!(receive.read(&mut vec![0; 100_000]), length);
            assert_eq!(budget.used(), PAGE);
        }
        receive.rest();
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn without_memory_a_ring_takes_no_more_and_says_so() {
        // One byte less than a ring of 10,000 bytes needs to double.
        let (budget, account) = account(19_999);
        let mut send = SendRing::new(1 << 20, account.clone());
        assert_eq!(send.write(&[1; 10_000]), Ok(10_000));
        // No more than it has memory for, until something is acknowledged. That is known before it is tried.
        assert!(send.room() > 0 && !send.accepts());
        assert_eq!((send.write(&[2; 100_000]), send.room()), (Ok(0), 0));
        send.release(1000);
        assert!(send.accepts());
        assert_eq!((send.write(&[2; 100_000]), send.room(), send.accepts()), (Ok(1000), 0, false));
        assert_eq!(joined(send.range(9_999, 2).unwrap()), [1, 2]);
        let mut receive = ReceiveRing::new(1 << 20, account.clone());
        assert_eq!(receive.place(0, &[3; 2 * PAGE]), Ok(()));
        let refused = Refusal::Source(19_999);
        // What lies behind a gap is forgotten once nothing more will come, what is in order is not.
        receive.deliver(10);
        receive.forget_beyond();
        assert_eq!((receive.read(&mut [0; 20]), budget.used()), (10, 10_000 + PAGE));
        receive.rest();
        assert_eq!(receive.place(10, &[3; 2 * PAGE]), Ok(()));
        assert_eq!(receive.place(10 + 2 * PAGE as u64, b"x"), Err(Unplaced::Memory(refused)));
        assert_eq!(SendRing::new(1 << 20, account.clone()).write(b"x"), Err(refused));
        drop((send, receive));
        assert_eq!(budget.used(), 0);
        // Where there is no memory for all, a part is taken, as long as there is memory for twice as much.
        let mut send = SendRing::new(1 << 20, account);
        for taken in [LEAST, LEAST, 2 * LEAST, 0] {
            assert_eq!((send.accepts(), send.write(&[1; 100_000])), (taken > 0, Ok(taken)));
        }
    }

    #[test]
    fn a_stream_in_random_pieces_stays_what_it_was() {
        let stream: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        for seed in 0..20 {
            let mut rng = Rng::stream(seed, Purpose::Test, 1);
            let (mut send, mut receive) =
                (SendRing::new(20_257, Account::default()), ReceiveRing::new(10_101, Account::default()));
            let mut out = Vec::new();
            let (mut written, mut moved) = (0, 0);
            while out.len() < stream.len() {
                let piece = rng.below(9_000) as usize;
                written += send.write(&stream[written..stream.len().min(written + piece)]).unwrap();
                let length = ((send.end() - moved) as usize).min(receive.room()).min(1 + rng.below(6_000) as usize);
                let bytes = joined(send.range(moved, length).unwrap());
                // The second half first.
                let half = length / 2;
                assert_eq!(receive.place(moved + half as u64, &bytes[half..]), Ok(()));
                assert_eq!(receive.place(moved, &bytes[..half]), Ok(()));
                moved += length as u64;
                receive.deliver(moved);
                send.release(moved);
                let mut into = vec![0; rng.below(9_000) as usize];
                let got = receive.read(&mut into);
                out.extend_from_slice(&into[..got]);
            }
            assert_eq!(out, stream, "seed {seed}");
        }
    }
}
