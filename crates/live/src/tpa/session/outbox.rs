//! Datagrams on their way out of a port, gathered into messages.

use super::addresses::Addresses;
use super::message::Message;
use std::collections::VecDeque;

/// Messages of a socket that may wait for room in the kernel's buffer. One connection has a window of 12 segments (TPA) or 255 (quiet
/// trains) at most, so only many of them reach this; messages beyond it are dropped, as a full interface queue drops packets.
const WAITING: usize = 4096;

/// Datagrams on their way out of a port.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    open: Message,
    pub(crate) full: VecDeque<Message>,
    spare: Vec<Message>,
}

impl Outbox {
    /// Puts a datagram of `length` bytes, which `write` appends, behind the others.
    pub(crate) fn push(&mut self, to: Addresses, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.open.takes(to, length) {
            self.seal();
        }
        self.open.push(to, length, write);
    }

    /// Puts the datagram `bytes` behind the others.
    pub(crate) fn push_bytes(&mut self, to: Addresses, bytes: &[u8]) {
        self.push(to, bytes.len(), |out| out.extend_from_slice(bytes));
    }

    /// Puts `datagrams`, of `length` bytes each, behind the others as one message, and leaves other memory in their place; false, and nothing
    /// done, if they are too many for one.
    pub(crate) fn push_all(&mut self, to: Addresses, length: usize, datagrams: &mut Vec<u8>) -> bool {
        self.seal();
        self.open.fill(to, length, datagrams)
    }

    /// Completes the present message: the next datagram begins another.
    pub(crate) fn seal(&mut self) {
        if self.open.content().is_none() {
            return;
        }
        let empty = self.spare.pop().unwrap_or_default();
        let sealed = std::mem::replace(&mut self.open, empty);
        if self.full.len() < WAITING {
            self.full.push_back(sealed);
        }
    }

    /// Keeps a message's memory for another.
    pub(crate) fn recycle(&mut self, mut message: Message) {
        message.clear();
        if self.spare.len() < 64 {
            self.spare.push(message);
        }
    }
}
