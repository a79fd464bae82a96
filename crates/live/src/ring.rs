//! The bytes behind the ranges: two rings that map offsets of a stream to payload.
//!
//! A transport decides about ranges and knows which may be forgotten and which have arrived; these hold what it talks about.
//! Both have a fixed size, so that neither a fast writer nor a peer can make them grow. A ring that has held nothing yet, or was
//! told to rest, takes no memory.

/// Bytes that have been written and not been acknowledged.
#[derive(Debug)]
pub struct SendRing {
    /// Empty, or as many as the capacity.
    bytes: Box<[u8]>,
    capacity: usize,
    /// Offset in the stream of the oldest byte kept.
    start: u64,
    /// Offset behind the newest.
    end: u64,
}

impl SendRing {
    /// An empty ring for `capacity` bytes, at least one.
    pub fn new(capacity: usize) -> SendRing {
        SendRing { bytes: Box::default(), capacity: capacity.max(1), start: 0, end: 0 }
    }

    /// Takes as many of `bytes` as there is room for; returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        if taken == 0 {
            return 0;
        }
        wake(&mut self.bytes, self.capacity);
        copy_in(&mut self.bytes, self.end, &bytes[..taken]);
        self.end += taken as u64;
        taken
    }

    /// Bytes it holds at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Gives the memory back if nothing is kept.
    pub fn rest(&mut self) {
        if self.is_empty() {
            self.bytes = Box::default();
        }
    }

    /// Bytes it has room for.
    pub fn room(&self) -> usize {
        self.capacity - self.len()
    }

    /// Offset behind the last byte written.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes kept.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// True if no bytes are kept.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The `length` bytes from `offset`, in two pieces where the ring turns over; none if they are not all kept. No bytes are
    /// kept everywhere.
    pub fn range(&self, offset: u64, length: usize) -> Option<(&[u8], &[u8])> {
        if length == 0 {
            return Some((&[], &[]));
        }
        let kept = offset >= self.start && offset.checked_add(length as u64)? <= self.end;
        kept.then(|| {
            let from = (offset % self.bytes.len() as u64) as usize;
            let first = length.min(self.bytes.len() - from);
            (&self.bytes[from..from + first], &self.bytes[..length - first])
        })
    }

    /// Everything before `offset` is acknowledged and may be forgotten.
    pub fn release(&mut self, offset: u64) {
        self.start = offset.clamp(self.start, self.end);
    }
}

/// Bytes that have arrived and not been read, in order or not.
#[derive(Debug)]
pub struct ReceiveRing {
    /// Empty, or as many as the capacity.
    bytes: Box<[u8]>,
    capacity: usize,
    /// Offset of the next byte to be read.
    read: u64,
    /// Offset behind the last byte without a gap.
    delivered: u64,
    /// Offset behind the last byte placed, with or without gaps before it.
    placed: u64,
    /// Offset that stands at the beginning of `bytes`, the ring's length further round again. An empty ring begins at its
    /// beginning: as long as the reader keeps up, the same few bytes of memory are used, and the processor has them at hand.
    origin: u64,
}

impl ReceiveRing {
    /// An empty ring for `capacity` bytes, at least one.
    pub fn new(capacity: usize) -> ReceiveRing {
        ReceiveRing { bytes: Box::default(), capacity: capacity.max(1), read: 0, delivered: 0, placed: 0, origin: 0 }
    }

    /// Puts `bytes` at `offset` of the stream. What was delivered already stays as it was; false, and nothing kept, if
    /// they reach beyond the ring.
    #[must_use]
    pub fn place(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Some(end) = offset.checked_add(bytes.len() as u64) else { return false };
        if end > self.limit() {
            return false;
        }
        if end <= self.delivered {
            return true;
        }
        wake(&mut self.bytes, self.capacity);
        if self.placed <= self.read {
            self.origin = self.read;
        }
        self.placed = self.placed.max(end);
        let known = self.delivered.saturating_sub(offset);
        copy_in(&mut self.bytes, offset + known - self.origin, &bytes[known as usize..]);
        true
    }

    /// Everything before `offset` has arrived: what the transport says it delivered.
    pub fn deliver(&mut self, offset: u64) {
        debug_assert!(offset <= self.limit(), "delivered beyond the ring");
        self.delivered = offset.clamp(self.delivered, self.limit());
    }

    /// Moves what is there into `into`; returns how many bytes.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let length = into.len().min(self.available());
        if length == 0 {
            return 0;
        }
        let from = ((self.read - self.origin) % self.bytes.len() as u64) as usize;
        let first = length.min(self.bytes.len() - from);
        into[..first].copy_from_slice(&self.bytes[from..from + first]);
        into[first..length].copy_from_slice(&self.bytes[..length - first]);
        self.read += length as u64;
        length
    }

    /// Gives the memory back if nothing is kept.
    pub fn rest(&mut self) {
        if self.placed <= self.read {
            self.bytes = Box::default();
        }
    }

    /// Bytes that can be read.
    pub fn available(&self) -> usize {
        (self.delivered - self.read) as usize
    }

    /// Bytes that may still come behind the last one without a gap.
    pub fn room(&self) -> usize {
        (self.limit() - self.delivered) as usize
    }

    /// Offset behind the last byte it could hold.
    fn limit(&self) -> u64 {
        self.read.saturating_add(self.capacity as u64)
    }
}

/// Takes memory for a ring that has none.
fn wake(bytes: &mut Box<[u8]>, capacity: usize) {
    if bytes.is_empty() {
        *bytes = vec![0; capacity].into();
    }
}

/// Writes `bytes` at `offset` of a stream that goes round in `ring`; there are not more than it holds.
fn copy_in(ring: &mut [u8], offset: u64, bytes: &[u8]) {
    let from = (offset % ring.len() as u64) as usize;
    let first = bytes.len().min(ring.len() - from);
    ring[from..from + first].copy_from_slice(&bytes[..first]);
    ring[..bytes.len() - first].copy_from_slice(&bytes[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    fn joined((a, b): (&[u8], &[u8])) -> Vec<u8> {
        [a, b].concat()
    }

    #[test]
    fn what_is_written_can_be_sent_again_until_released() {
        let mut ring = SendRing::new(8);
        assert_eq!(ring.write(b"abcdef"), 6);
        assert_eq!(joined(ring.range(2, 3).unwrap()), b"cde");
        ring.release(4);
        assert_eq!(ring.write(b"ghijklm"), 6, "two were left, four came free");
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
        let mut ring = ReceiveRing::new(8);
        assert!(ring.place(3, b"def"));
        let mut out = [0; 16];
        assert_eq!(ring.read(&mut out), 0);
        assert!(ring.place(0, b"abc"));
        ring.deliver(6);
        assert_eq!((ring.available(), ring.room()), (6, 2));
        assert!(!ring.place(6, b"ghi"), "three bytes, two have room");
        assert!(!ring.place(u64::MAX, b"x"));
        assert!(ring.place(4, b"XXgh"), "what is delivered stays");
        assert_eq!(ring.read(&mut out[..4]), 4);
        ring.deliver(8);
        assert_eq!(ring.read(&mut out[4..]), 4);
        assert_eq!(&out[..8], b"abcdefgh");
    }

    #[test]
    fn memory_is_taken_when_it_is_needed_and_given_back() {
        let (mut send, mut receive) = (SendRing::new(8), ReceiveRing::new(8));
        assert_eq!((send.room(), receive.room(), send.bytes.len(), receive.bytes.len()), (8, 8, 0, 0));
        assert_eq!(send.write(b"abc"), 3);
        assert!(receive.place(1, b"bc"));
        send.rest();
        receive.rest();
        assert_eq!((send.bytes.len(), receive.bytes.len()), (8, 8), "something is kept");
        send.release(3);
        assert!(receive.place(0, b"a"));
        receive.deliver(3);
        assert_eq!(receive.read(&mut [0; 9]), 3);
        send.rest();
        receive.rest();
        assert_eq!((send.bytes.len(), receive.bytes.len()), (0, 0));
        assert_eq!(send.write(b"de"), 2);
        assert_eq!(joined(send.range(3, 2).unwrap()), b"de");
    }

    #[test]
    fn a_stream_in_random_pieces_stays_what_it_was() {
        let stream: Vec<u8> = (0..10_000u32).map(|i| (i * 7 % 251) as u8).collect();
        for seed in 0..20 {
            let mut rng = Rng::stream(seed, Purpose::Test, 1);
            let (mut send, mut receive) = (SendRing::new(257), ReceiveRing::new(101));
            let mut out = Vec::new();
            let (mut written, mut moved) = (0, 0);
            while out.len() < stream.len() {
                let piece = rng.below(200) as usize;
                written += send.write(&stream[written..stream.len().min(written + piece)]);
                let length = ((send.end() - moved) as usize).min(receive.room()).min(1 + rng.below(60) as usize);
                let bytes = joined(send.range(moved, length).unwrap());
                // The second half first.
                let half = length / 2;
                assert!(receive.place(moved + half as u64, &bytes[half..]));
                assert!(receive.place(moved, &bytes[..half]));
                moved += length as u64;
                receive.deliver(moved);
                send.release(moved);
                let mut into = vec![0; rng.below(90) as usize];
                let got = receive.read(&mut into);
                out.extend_from_slice(&into[..got]);
            }
            assert_eq!(out, stream, "seed {seed}");
        }
    }
}
