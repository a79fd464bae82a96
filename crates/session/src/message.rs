//! Batches of datagrams that have one size and one destination, which the kernel accepts in one
//! call.

use super::addresses::Addresses;

/// Most bytes in one message: the longest payload of a UDP datagram.
const MOST_BYTES: usize = 65507;

/// Most datagrams in one message. This is the limit of the kernel: UDP_MAX_SEGMENTS was 64 before
/// Linux 6.9.
const MOST_DATAGRAMS: usize = 64;

/// Message for the socket: a batch of datagrams that are still to be sent.
#[derive(Debug, Default)]
pub struct Message {
    to: Option<Addresses>,
    bytes: Vec<u8>,
    /// Length of each datagram except the last, bytes.
    size: usize,
    count: usize,
    /// True if the last datagram was shorter than `size`, so that no other may follow it.
    closed: bool,
}

impl Message {
    /// True if a datagram of `length` bytes to `to` still fits.
    #[inline]
    pub fn takes(&self, to: Addresses, length: usize) -> bool {
        self.count == 0
            || (self.to == Some(to)
                && !self.closed
                && length <= self.size
                && self.count < MOST_DATAGRAMS
                && self.bytes.len() + length <= MOST_BYTES)
    }

    /// Adds a datagram for which [`Message::takes`] has returned true. `write` appends its bytes.
    pub fn push(&mut self, to: Addresses, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if self.count == 0 {
            (self.to, self.size) = (Some(to), length);
        }
        self.closed = length < self.size;
        self.count += 1;
        let before = self.bytes.len();
        write(&mut self.bytes);
        debug_assert_eq!(self.bytes.len() - before, length, "the length that was announced");
    }

    /// Adopts the buffer `datagrams`, which contains datagrams of `length` bytes each, and leaves
    /// its own buffer in exchange. Returns false and changes nothing if this message is not empty
    /// or the datagrams do not fit into one message.
    pub fn fill(&mut self, to: Addresses, length: usize, datagrams: &mut Vec<u8>) -> bool {
        let count = datagrams.len() / length.max(1);
        if self.count > 0 || count > MOST_DATAGRAMS || datagrams.len() > MOST_BYTES {
            return false;
        }
        std::mem::swap(&mut self.bytes, datagrams);
        (self.to, self.size, self.count, self.closed) = (Some(to), length, count, false);
        true
    }

    /// Returns the destination, the bytes, and the length of each datagram; the last datagram may
    /// be shorter. `None` if the message is empty.
    #[inline]
    pub fn content(&self) -> Option<(Addresses, &[u8], usize)> {
        self.to.filter(|_| self.count > 0).map(|to| (to, &self.bytes[..], self.size))
    }

    /// Empties the message.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.to, self.size, self.count, self.closed) = (None, 0, 0, false);
    }
}
