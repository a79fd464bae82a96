//! Datagrams of one size for one peer, as the kernel takes them together.

use super::addresses::Addresses;

/// Most bytes in one message: what a UDP datagram holds.
const MOST_BYTES: usize = 65507;

/// Most datagrams in one message: the kernel's limit (UDP_MAX_SEGMENTS was 64 before Linux 6.9).
const MOST_DATAGRAMS: usize = 64;

/// Datagrams on their way to the socket, gathered into messages.
#[derive(Debug, Default)]
pub struct Message {
    to: Option<Addresses>,
    bytes: Vec<u8>,
    /// Bytes of each datagram but the last.
    size: usize,
    count: usize,
    /// The last one was shorter: nothing may follow.
    closed: bool,
}

impl Message {
    /// True if a datagram of `length` bytes to `to` still fits.
    pub fn takes(&self, to: Addresses, length: usize) -> bool {
        self.count == 0
            || (self.to == Some(to)
                && !self.closed
                && length <= self.size
                && self.count < MOST_DATAGRAMS
                && self.bytes.len() + length <= MOST_BYTES)
    }

    /// Adds one that fits; its bytes are appended by `write`.
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

    /// Takes `datagrams`, of `length` bytes each, if this is empty and they fit, and gives its own memory for them; whether it did.
    pub fn fill(&mut self, to: Addresses, length: usize, datagrams: &mut Vec<u8>) -> bool {
        let count = datagrams.len() / length.max(1);
        if self.count > 0 || count > MOST_DATAGRAMS || datagrams.len() > MOST_BYTES {
            return false;
        }
        std::mem::swap(&mut self.bytes, datagrams);
        (self.to, self.size, self.count, self.closed) = (Some(to), length, count, false);
        true
    }

    /// To whom, the bytes and the size of each datagram; none if empty.
    pub fn content(&self) -> Option<(Addresses, &[u8], usize)> {
        self.to.filter(|_| self.count > 0).map(|to| (to, &self.bytes[..], self.size))
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.to, self.size, self.count, self.closed) = (None, 0, 0, false);
    }
}
