//! Memory that the buffers of a port's connections may hold, altogether and for each peer that makes them hold it.
//!
//! Buffers take what they need when bytes arrive or are written, and give it back. A peer that sends what nobody reads, or takes nothing
//! of what was written for it, can fill its own share and no more. While a quarter of the port's memory or less is left, a source may hold
//! as much as is left for the others, so that one that comes later still finds some.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that buffers may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Of all connections of the port.
    pub port: usize,
    /// Of all connections with one source.
    pub source: usize,
    /// Of all connections with the holder of one key.
    pub key: usize,
}

/// Whose connections count together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Payer {
    /// A source: an IPv4 address or an IPv6 network of 64 bits, with the length of its network.
    Source([u8; 9]),
    /// The holder of a public key.
    Key([u8; 32]),
}

/// Reason why there is no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The connections of the port hold as much as they may.
    Port(usize),
    /// Those with one source do.
    Source(usize),
    /// Those with the holder of one key do.
    Key(usize),
    /// The system has none.
    System(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whose, bytes) = match self {
            Refusal::Port(bytes) => ("the connections of this port", bytes),
            Refusal::Source(bytes) => ("the connections with the peer's address", bytes),
            Refusal::Key(bytes) => ("the connections with the peer's key", bytes),
            Refusal::System(bytes) => return write!(f, "the system has no memory for a buffer of {bytes} bytes"),
        };
        write!(f, "the buffers of {whose} hold as much as they may, {bytes} bytes")
    }
}

/// What a connection's buffers hold, and who pays for it.
#[derive(Clone, Copy, Debug)]
struct Holding {
    source: Payer,
    key: Option<Payer>,
    bytes: usize,
}

#[derive(Debug)]
struct Ledger {
    bounds: Bounds,
    used: usize,
    by_payer: BTreeMap<Payer, usize>,
    holdings: BTreeMap<u64, Holding>,
    next: u64,
}

impl Ledger {
    fn of(&self, payer: Payer) -> usize {
        self.by_payer.get(&payer).copied().unwrap_or(0)
    }

    /// Checks that a connection may hold `bytes` more.
    fn check(&self, holding: &Holding, bytes: usize) -> Result<(), Refusal> {
        let Bounds { port, source, key } = self.bounds;
        let left = port.saturating_sub(self.used);
        if bytes > left {
            return Err(Refusal::Port(port));
        }
        let of_source = self.of(holding.source).saturating_add(bytes);
        // Where one source may have all, it is alone or among friends.
        let is_shared_out = source < port && left - bytes < port / 4;
        if of_source > source || (is_shared_out && of_source > left - bytes) {
            return Err(Refusal::Source(source.min(of_source)));
        }
        match holding.key {
            Some(payer) if self.of(payer).saturating_add(bytes) > key => Err(Refusal::Key(key)),
            _ => Ok(()),
        }
    }

    fn change(&mut self, payer: Payer, by: impl FnOnce(usize) -> usize) {
        match by(self.of(payer)) {
            0 => drop(self.by_payer.remove(&payer)),
            bytes => drop(self.by_payer.insert(payer, bytes)),
        }
    }

    /// A connection holds `bytes` more, or less.
    fn book(&mut self, id: u64, bytes: usize, by: fn(usize, usize) -> usize) {
        let Some(holding) = self.holdings.get_mut(&id) else { return };
        holding.bytes = by(holding.bytes, bytes);
        let payers = [Some(holding.source), holding.key];
        self.used = by(self.used, bytes);
        payers.into_iter().flatten().for_each(|payer| self.change(payer, |before| by(before, bytes)));
    }
}

/// The memory of a port. Cloning gives another handle.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<Ledger>>);

impl Budget {
    /// Nothing is held yet.
    pub fn new(bounds: Bounds) -> Budget {
        let ledger = Ledger { bounds, used: 0, by_payer: BTreeMap::new(), holdings: BTreeMap::new(), next: 0 };
        Budget(Arc::new(Mutex::new(ledger)))
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that are held.
    pub fn used(&self) -> usize {
        self.lock().used
    }

    /// The account of a connection with a peer of this source, and with this key if that is known.
    pub fn account(&self, source: Payer, key: Option<Payer>) -> Account {
        let mut ledger = self.lock();
        let id = ledger.next;
        ledger.next += 1;
        ledger.holdings.insert(id, Holding { source, key, bytes: 0 });
        Account(Some(Arc::new(Open { budget: self.clone(), id })))
    }
}

#[derive(Debug)]
struct Open {
    budget: Budget,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut ledger = self.budget.lock();
        let bytes = ledger.holdings.get(&self.id).map_or(0, |holding| holding.bytes);
        ledger.book(self.id, bytes, usize::saturating_sub);
        ledger.holdings.remove(&self.id);
    }
}

/// What the buffers of one connection hold. Cloning gives another handle; the default is bound by nothing.
#[derive(Clone, Debug, Default)]
pub struct Account(Option<Arc<Open>>);

impl Account {
    /// A buffer is to hold `bytes` more.
    ///
    /// # Errors
    ///
    /// Whose bound is reached.
    pub fn take(&self, bytes: usize) -> Result<(), Refusal> {
        let Some(open) = &self.0 else { return Ok(()) };
        let mut ledger = open.budget.lock();
        if let Some(holding) = ledger.holdings.get(&open.id) {
            ledger.check(holding, bytes)?;
        }
        ledger.book(open.id, bytes, usize::saturating_add);
        Ok(())
    }

    /// A buffer holds `bytes` less.
    pub fn give_back(&self, bytes: usize) {
        if let Some(open) = &self.0 {
            open.budget.lock().book(open.id, bytes, usize::saturating_sub);
        }
    }

    /// True if less than a quarter is left of what the port, the source or the key may hold: windows do not grow then.
    pub fn is_scarce(&self) -> bool {
        let Some(open) = &self.0 else { return false };
        let ledger = open.budget.lock();
        let Some(holding) = ledger.holdings.get(&open.id) else { return false };
        let is_near = |used: usize, bound: usize| used >= bound - bound / 4;
        is_near(ledger.used, ledger.bounds.port)
            || is_near(ledger.of(holding.source), ledger.bounds.source)
            || holding.key.is_some_and(|key| is_near(ledger.of(key), ledger.bounds.key))
    }

    /// The peer has another source from now on, which pays for all that is held, also if that is more than it may.
    pub fn set_source(&self, source: Payer) {
        let Some(open) = &self.0 else { return };
        let mut ledger = open.budget.lock();
        let Some(holding) = ledger.holdings.get_mut(&open.id) else { return };
        let (before, bytes) = (std::mem::replace(&mut holding.source, source), holding.bytes);
        ledger.change(before, |held| held.saturating_sub(bytes));
        ledger.change(source, |held| held.saturating_add(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u8) -> Payer {
        Payer::Source([number; 9])
    }

    fn budget() -> Budget {
        Budget::new(Bounds { port: 1000, source: 500, key: 300 })
    }

    #[test]
    fn the_connections_of_a_source_and_of_a_key_count_together() {
        let budget = budget();
        let [a, b] = [0; 2].map(|_| budget.account(source(1), None));
        assert_eq!((a.take(300), b.take(201)), (Ok(()), Err(Refusal::Source(500))));
        assert!(!a.is_scarce());
        assert_eq!(b.take(200), Ok(()));
        assert!(a.is_scarce() && b.is_scarce());
        let [c, d] = [2, 3].map(|number| budget.account(source(number), Some(Payer::Key([7; 32]))));
        assert_eq!((c.take(200), d.take(101)), (Ok(()), Err(Refusal::Key(300))));
        assert_eq!((d.take(100), budget.used()), (Ok(()), 800));
        b.give_back(150);
        drop((a, c));
        assert_eq!((budget.used(), d.take(200)), (150, Ok(())));
        drop((b, d));
        let ledger = budget.lock();
        assert_eq!((ledger.used, ledger.by_payer.len(), ledger.holdings.len()), (0, 0, 0));
    }

    #[test]
    fn a_source_that_comes_late_finds_some() {
        let budget = budget();
        let greedy: Vec<Account> = (1..=5).map(|number| budget.account(source(number), None)).collect();
        let taken: Vec<usize> =
            greedy.iter().map(|account| (0..1000).filter(|_| account.take(1).is_ok()).count()).collect();
        assert_eq!(taken[0], 500);
        assert!(taken.is_sorted_by(|a, b| a >= b) && taken[4] > 10, "{taken:?}");
        assert_eq!(budget.account(source(9), None).take(10), Ok(()));
    }

    #[test]
    fn who_has_moved_takes_along_what_it_holds() {
        let budget = budget();
        let [mover, other] = [1, 2].map(|number| budget.account(source(number), None));
        assert_eq!((mover.take(400), other.take(200)), (Ok(()), Ok(())));
        mover.set_source(source(2));
        assert_eq!((other.take(1), budget.lock().of(source(1))), (Err(Refusal::Source(500)), 0));
        assert_eq!(budget.account(source(1), None).take(100), Ok(()));
    }

    #[test]
    fn an_account_of_nobody_is_bound_by_nothing() {
        let account = Account::default();
        assert_eq!((account.take(usize::MAX), account.is_scarce()), (Ok(()), false));
    }
}
