//! Queue of the datagrams that leave a port, collected into messages.

use super::addresses::Addresses;
use super::message::Message;
use std::collections::VecDeque;

/// Most messages of a socket that may wait for room in the kernel's buffer. The window of one
/// connection is at most 12 segments (TPA) or 255 (quiet trains), so only many connections together
/// reach this limit. Messages beyond it are dropped, as a full interface queue drops packets.
const WAITING: usize = 4096;

/// Most answers that may wait until the other datagrams have left. Only a flood of requests
/// produces more.
const ANSWERS: usize = 256;

/// Datagrams that are about to leave a port.
#[derive(Debug, Default)]
pub struct Outbox {
    open: Message,
    pub full: VecDeque<Message>,
    /// Answers to addresses that have not been verified. They leave after all other datagrams, or
    /// are dropped.
    pub answers: VecDeque<Message>,
    spare: Vec<Message>,
}

impl Outbox {
    /// Appends a datagram of `length` bytes to the queue. `write` appends its bytes.
    pub(crate) fn push(&mut self, to: Addresses, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.open.takes(to, length) {
            self.seal();
        }
        self.open.push(to, length, write);
    }

    /// Appends the datagram `bytes` to the queue.
    pub(crate) fn push_bytes(&mut self, to: Addresses, bytes: &[u8]) {
        self.push(to, bytes.len(), |out| out.extend_from_slice(bytes));
    }

    /// Appends the datagram `bytes` to the queue, in a message that contains nothing else. A router
    /// that receives a whole message drops all of it if its longest datagram does not fit the next
    /// link. A probe of the path's size would therefore take other datagrams with it.
    pub(crate) fn push_alone(&mut self, to: Addresses, bytes: &[u8]) {
        self.seal();
        self.push_bytes(to, bytes);
        self.seal();
    }

    /// Queues an answer to an address whose owner has not proved that it receives datagrams there.
    pub(crate) fn answer(&mut self, to: Addresses, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if self.answers.len() < ANSWERS {
            let mut message = self.spare.pop().unwrap_or_default();
            message.push(to, length, write);
            self.answers.push_back(message);
        }
    }

    /// Queues the datagram `bytes` as an answer, like [`Outbox::answer`].
    pub(crate) fn answer_bytes(&mut self, to: Addresses, bytes: &[u8]) {
        self.answer(to, bytes.len(), |out| out.extend_from_slice(bytes));
    }

    /// Appends `datagrams`, of `length` bytes each, to the queue as one message, and leaves another
    /// buffer in their place. Returns false, and appends nothing, if they are too many for one
    /// message.
    pub(crate) fn push_all(&mut self, to: Addresses, length: usize, datagrams: &mut Vec<u8>) -> bool {
        self.seal();
        self.open.fill(to, length, datagrams)
    }

    /// Completes the current message, so that the next datagram begins another.
    pub fn seal(&mut self) {
        if self.open.content().is_none() {
            return;
        }
        let empty = self.spare.pop().unwrap_or_default();
        let sealed = std::mem::replace(&mut self.open, empty);
        if self.full.len() < WAITING {
            self.full.push_back(sealed);
        }
    }

    /// Keeps the buffer of a message that was sent for use by a later one.
    pub fn recycle(&mut self, mut message: Message) {
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
