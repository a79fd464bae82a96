//! Bytes between the end under attack and each address, and whether the owner of the address has shown that it hears there.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// An address gets no more than so many times the bytes that came from it before it has answered (RFC 9000, section 8.1).
pub(super) const FACTOR: u64 = 3;

/// Bytes from and to an address.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    came: u64,
    left: u64,
    /// Its owner has received something there.
    hears: bool,
    /// Something has come from its owner that was sent after it had received something there.
    has_answered: bool,
}

/// All addresses.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    accounts: BTreeMap<SocketAddr, Account>,
}

impl Traffic {
    /// The end under attack has opened a connection to this address of its own accord.
    pub(super) fn invite(&mut self, at: SocketAddr) {
        self.accounts.entry(at).or_default().has_answered = true;
    }

    /// The owner of an address has received something there.
    pub(super) fn heard(&mut self, at: SocketAddr) {
        self.accounts.entry(at).or_default().hears = true;
    }

    /// True if the owner of an address has received something there by now: what it sends can be an answer.
    pub(super) fn hears(&self, at: SocketAddr) -> bool {
        self.accounts.get(&at).is_some_and(|account| account.hears)
    }

    /// A datagram has come from an address; `answers` if its owner sent it after it had received something there.
    pub(super) fn came(&mut self, from: SocketAddr, bytes: usize, answers: bool) {
        let account = self.accounts.entry(from).or_default();
        account.came += bytes as u64;
        account.has_answered |= answers;
    }

    /// A datagram leaves for an address; false if it is one too many.
    pub(super) fn left(&mut self, to: SocketAddr, bytes: usize) -> bool {
        let account = self.accounts.entry(to).or_default();
        account.left += bytes as u64;
        account.has_answered || account.left <= FACTOR * account.came
    }

    /// True if the owner of an address has answered there.
    pub(super) fn has_answered(&self, at: SocketAddr) -> bool {
        self.accounts.get(&at).is_some_and(|account| account.has_answered)
    }

    /// Bytes that came from an address and that left for it.
    pub(super) fn of(&self, at: SocketAddr) -> (u64, u64) {
        self.accounts.get(&at).map_or((0, 0), |account| (account.came, account.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_has_not_answered_gets_three_times_what_came_from_it() {
        let at = |host: u8| SocketAddr::from(([10, 0, 0, host], 1));
        let mut traffic = Traffic::default();
        traffic.came(at(1), 100, false);
        assert!(traffic.left(at(1), 200) && traffic.left(at(1), 100));
        assert!(!traffic.left(at(1), 1), "one byte more");
        assert!(!traffic.left(at(2), 1), "an address that nothing came from");
        traffic.came(at(3), 10, true);
        assert!(traffic.left(at(3), 1_000));
        traffic.invite(at(4));
        assert!(traffic.left(at(4), 1_000));
    }
}
