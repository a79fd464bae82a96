//! Datagrams on their way out of a port, gathered into messages.

use super::addresses::Addresses;
use super::message::Message;
use std::collections::VecDeque;

/// Messages of a socket that may wait for room in the kernel's buffer. One connection has a window of 12 segments (TPA) or 255 (quiet
/// trains) at most, so only many of them reach this; messages beyond it are dropped, as a full interface queue drops packets.
const WAITING: usize = 4096;

/// Answers that may wait until the other datagrams have left. More come together only from a flood.
const ANSWERS: usize = 256;

/// Datagrams on their way out of a port.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    open: Message,
    pub(crate) full: VecDeque<Message>,
    /// Answers to addresses that have proved nothing. They leave behind all other datagrams, or not at all.
    pub(crate) answers: VecDeque<Message>,
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

    /// Puts the datagram `bytes` behind the others in a message of its own. A router that is handed a message whole drops all
    /// of it where its longest datagram does not pass, so a probe of the path's size would take others with it.
    pub(crate) fn push_alone(&mut self, to: Addresses, bytes: &[u8]) {
        self.seal();
        self.push_bytes(to, bytes);
        self.seal();
    }

    /// Answers an address that has not proved that its owner receives what is sent there.
    pub(crate) fn answer(&mut self, to: Addresses, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if self.answers.len() < ANSWERS {
            let mut message = self.spare.pop().unwrap_or_default();
            message.push(to, length, write);
            self.answers.push_back(message);
        }
    }

    /// The same with the datagram `bytes`.
    pub(crate) fn answer_bytes(&mut self, to: Addresses, bytes: &[u8]) {
        self.answer(to, bytes.len(), |out| out.extend_from_slice(bytes));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_alone_shares_a_message_with_nothing() {
        let to = Addresses { peer: ([10, 0, 0, 1], 7).into(), own: None };
        let mut out = Outbox::default();
        for length in [100, 100] {
            out.push_bytes(to, &vec![0; length]);
        }
        out.push_alone(to, &[1; 100]);
        out.push_bytes(to, &[2; 60]);
        out.seal();
        let lengths: Vec<usize> =
            out.full.iter().map(|message| message.content().map_or(0, |(_, bytes, _)| bytes.len())).collect();
        assert_eq!(lengths, [200, 100, 60]);
    }
}
