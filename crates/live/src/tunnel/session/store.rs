//! Memory for the datagrams of a session that wait: for a carrier, or for the address of their target.
//!
//! Each flow bounds what waits in it, but a far end opens many flows. All flows of a session share a store, which bounds their sum, and
//! what it keeps is booked in the account of the session's connection. A datagram that it refuses is dropped.

use meshpace_session::budget::Account;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that wait in all flows of a session.
pub(super) const STORE: usize = 16 << 20;
/// Bytes that a datagram takes besides its own: its place in a queue that doubles as it grows, and what the allocator adds.
pub(super) const PLACE: usize = 128;

/// The store of a session. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub(in crate::tunnel) struct Store(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    account: Account,
    held: AtomicUsize,
}

impl Store {
    /// An empty store that is booked in `account`.
    pub(super) fn new(account: Account) -> Store {
        Store(Arc::new(Inner { account, held: AtomicUsize::new(0) }))
    }

    /// Room for a datagram of `length` bytes, until it is dropped; none if there is no memory for it.
    pub(in crate::tunnel) fn room(&self, length: usize) -> Option<Kept> {
        let size = length + PLACE;
        let fits = |held: usize| Some(held + size).filter(|sum| *sum <= STORE);
        self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        // From here on dropping it gives the memory back.
        let mut kept = Kept { bytes: Vec::new(), booked: 0, size, store: self.clone() };
        self.0.account.take(size).ok()?;
        kept.booked = size;
        Some(kept)
    }

    /// A copy of a datagram; none if there is no memory for it.
    pub(in crate::tunnel) fn keep(&self, datagram: &[u8]) -> Option<Kept> {
        let mut kept = self.room(datagram.len())?;
        kept.bytes.try_reserve_exact(datagram.len()).ok()?;
        kept.bytes.extend_from_slice(datagram);
        Some(kept)
    }

    /// Bytes that are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }
}

/// A datagram that waits.
#[derive(Debug)]
pub(in crate::tunnel) struct Kept {
    bytes: Vec<u8>,
    /// Bytes booked in the account, and those counted in the store.
    booked: usize,
    size: usize,
    store: Store,
}

impl std::ops::Deref for Kept {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.store.0.account.give_back(self.booked);
        self.store.0.held.fetch_sub(self.size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_session::budget::{Bounds, Budget};
    use meshpace_session::networks::source_of;

    #[test]
    fn datagrams_are_kept_as_far_as_the_session_and_its_source_may() {
        let size = 1000 + PLACE;
        let bytes = 3 * size;
        let budget = Budget::new(Bounds { port: bytes, source: bytes, key: bytes });
        let store = Store::new(budget.account(source_of([127, 0, 0, 1].into()), None));
        let mut kept: Vec<Kept> = std::iter::from_fn(|| store.keep(&[7; 1000])).collect();
        assert_eq!((kept.len(), store.held(), budget.used()), (3, bytes, bytes));
        kept.pop();
        assert_eq!((store.held(), budget.used()), (2 * size, 2 * size));
        kept.clear();
        assert_eq!((store.held(), budget.used()), (0, 0));
        // Without an account the bound of the session is left. An empty datagram takes memory, too.
        let store = Store::default();
        let kept: Vec<Kept> = std::iter::from_fn(|| store.keep(b"")).collect();
        assert_eq!((kept.len(), kept.iter().all(|kept| kept.is_empty())), (STORE / PLACE, true));
    }
}
