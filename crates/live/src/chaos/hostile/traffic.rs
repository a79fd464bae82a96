//! Bytes between the end under attack and each address, and whether the owner of the address has
//! shown that it receives there.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Factor of the limit for an address that has not answered: it is sent at most this multiple of
/// the bytes that came from it (RFC 9000, section 8.1).
pub(super) const FACTOR: u64 = 3;

/// Bytes from and to an address.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    came: u64,
    left: u64,
    /// True once the owner of the address has received something there.
    hears: bool,
    /// True once something has arrived that the owner sent after it had received something there.
    has_answered: bool,
}

/// Accounts of all addresses.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    accounts: BTreeMap<SocketAddr, Account>,
}

impl Traffic {
    /// Records that the end under attack has opened a connection to this address on its own
    /// initiative.
    pub(super) fn invite(&mut self, at: SocketAddr) {
        self.accounts.entry(at).or_default().has_answered = true;
    }

    /// Records that the owner of an address has received something there.
    pub(super) fn heard(&mut self, at: SocketAddr) {
        self.accounts.entry(at).or_default().hears = true;
    }

    /// True if the owner of an address has received something there by now, so that what it sends
    /// can be an answer.
    pub(super) fn hears(&self, at: SocketAddr) -> bool {
        self.accounts.get(&at).is_some_and(|account| account.hears)
    }

    /// Records a datagram from an address. `answers` is true if its owner sent it after it had
    /// received something there.
    pub(super) fn came(&mut self, from: SocketAddr, bytes: usize, answers: bool) {
        let account = self.accounts.entry(from).or_default();
        account.came += bytes as u64;
        account.has_answered |= answers;
    }

    /// Records a datagram to an address. Returns false if the datagram exceeds the limit.
    pub(super) fn left(&mut self, to: SocketAddr, bytes: usize) -> bool {
        let account = self.accounts.entry(to).or_default();
        account.left += bytes as u64;
        account.has_answered || account.left <= FACTOR * account.came
    }

    /// True if the owner of an address has answered from there.
    pub(super) fn has_answered(&self, at: SocketAddr) -> bool {
        self.accounts.get(&at).is_some_and(|account| account.has_answered)
    }

    /// Bytes that came from an address, and bytes that were sent to it.
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
