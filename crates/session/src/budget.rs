//! Limits on the memory of the buffers of a port's connections: for all connections together, and
//! for each peer.
//!
//! Buffers allocate memory when bytes arrive or are written, and free it afterwards. A peer may
//! send data that the application does not read, or not accept the data written for it. Such a peer
//! can fill its own share and no more.
//!
//! When the port's memory is used up, a connection that needs more gets it at the expense of the
//! largest connection in the heaviest network. The heaviest network is determined first, then the
//! heaviest network within it, and so on; there the largest connection is ended. The connection
//! that asks gets nothing if its own network would then hold more than half as much as the heaviest
//! one.
//!
//! Many addresses of one network thus hold no more against others than one address does. A
//! connection of a light network is refused only while ended connections have not freed their
//! memory. The price: an attacker with addresses in many networks can fill the memory from all of
//! them. The connection that is then ended may be an honest one that holds much.
//!
//! A connection that is ended frees its memory when its thread next runs it. Until then, sources
//! that hold little may already allocate that memory. During this time the buffers hold at most a
//! quarter more than the limit of the port.

use crate::networks::{ALL, Census, Network};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Limits on the bytes that buffers hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Limit for all connections of the port.
    pub port: usize,
    /// Limit for all connections with one source.
    pub source: usize,
    /// Limit for all connections with the holder of one key.
    pub key: usize,
}

/// Public key of a peer.
type Key = [u8; 32];

/// Reason why memory is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The connections of the port have reached their limit, which is this number of bytes.
    Port(usize),
    /// The connections with one source have reached their limit, which is this number of bytes.
    Source(usize),
    /// The connections with the holder of one key have reached their limit, which is this number of
    /// bytes.
    Key(usize),
    /// The connection, which held this number of bytes, has been ended because it held most when
    /// others needed memory.
    Ended(usize),
    /// The system has no memory for this number of bytes.
    System(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whose, bytes) = match self {
            Refusal::Port(bytes) => ("the connections of this port", bytes),
            Refusal::Source(bytes) => ("the connections with the peer's address", bytes),
            Refusal::Key(bytes) => ("the connections with the peer's key", bytes),
            Refusal::Ended(bytes) => {
                return write!(
                    f,
                    "the buffers of this port need the {bytes} bytes that this connection held, more than others"
                );
            }
            Refusal::System(bytes) => return write!(f, "the system has no memory for a buffer of {bytes} bytes"),
        };
        write!(f, "the buffers of {whose} hold as much as they may, {bytes} bytes")
    }
}

/// Number of bytes that a connection's buffers hold, and the source and key that they count for.
#[derive(Clone, Debug)]
struct Holding {
    source: Network,
    key: Option<Key>,
    bytes: usize,
    /// True once the connection has been ended because it held most.
    is_ended: Arc<AtomicBool>,
    /// Waker that is called when the connection is ended.
    waker: Option<Waker>,
}

impl Holding {
    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Ledger {
    bounds: Bounds,
    used: usize,
    /// Bytes of connections that have been ended and have not freed their memory.
    leaving: usize,
    /// Bytes of each network, without those of ended connections.
    by_network: Census,
    by_key: BTreeMap<Key, usize>,
    holdings: BTreeMap<u64, Holding>,
    /// Connections that have not been ended, sorted by source and bytes.
    by_size: BTreeSet<(Network, usize, u64)>,
    next: u64,
}

impl Ledger {
    fn of_key(&self, key: Key) -> usize {
        self.by_key.get(&key).copied().unwrap_or(0)
    }

    /// Checks whether a connection may hold `bytes` more.
    fn check(&self, holding: &Holding, bytes: usize) -> Result<(), Refusal> {
        let Bounds { port, source, key } = self.bounds;
        if holding.is_ended() {
            return Err(Refusal::Ended(holding.bytes));
        }
        let of_source = self.by_network.amount(holding.source).saturating_add(bytes);
        if of_source > source {
            return Err(Refusal::Source(source));
        }
        if holding.key.is_some_and(|holder| self.of_key(holder).saturating_add(bytes) > key) {
            return Err(Refusal::Key(key));
        }
        let needed = self.used.saturating_add(bytes);
        // Memory of ended connections is still in use. It is reserved for sources that hold little:
        // other sources would otherwise use up the additional quarter before a new peer arrives.
        let is_light = || of_source <= self.leaving / 2 || self.heaviest_over(holding.source, bytes).is_some();
        if needed - self.leaving > port || needed > port.saturating_add(port / 4) || (needed > port && !is_light()) {
            return Err(Refusal::Port(port));
        }
        Ok(())
    }

    /// Returns the connection that has to be ended for one of `source` that needs `bytes` more.
    /// `None` if the memory of connections already ended is sufficient.
    fn heaviest_instead_of(&self, source: Network, bytes: usize) -> Option<u64> {
        let is_enough = self.used.saturating_add(bytes) - self.leaving <= self.bounds.port;
        if is_enough { None } else { self.heaviest_over(source, bytes) }
    }

    /// Returns the largest connection of the heaviest source whose network holds more than twice
    /// what the network of `source` would hold with `bytes` more.
    fn heaviest_over(&self, source: Network, bytes: usize) -> Option<u64> {
        let mut around = ALL;
        for own in source.around() {
            let (most, heaviest) = self.by_network.heaviest_in(around)?;
            if own != heaviest && self.by_network.amount(own).saturating_add(bytes) <= most / 2 {
                let victim = self.by_network.heaviest_source(heaviest);
                let mut sizes = self.by_size.range((victim, 0, 0)..=(victim, usize::MAX, u64::MAX));
                return sizes.next_back().map(|(.., id)| *id);
            }
            around = own;
        }
        None
    }

    /// Ends a connection. Returns its waker.
    fn end(&mut self, id: u64) -> Option<Waker> {
        let holding = self.holdings.get_mut(&id).filter(|holding| !holding.is_ended())?;
        holding.is_ended.store(true, Ordering::Relaxed);
        let (source, bytes) = (holding.source, holding.bytes);
        self.by_size.remove(&(source, bytes, id));
        self.by_network.remove(source, bytes);
        self.leaving += bytes;
        holding.waker.clone()
    }

    /// Records that a connection holds `bytes` more or less, depending on `by`.
    fn book(&mut self, id: u64, bytes: usize, by: fn(usize, usize) -> usize) {
        let Some(holding) = self.holdings.get_mut(&id) else { return };
        let before = holding.bytes;
        holding.bytes = by(before, bytes);
        let (source, key, after) = (holding.source, holding.key, holding.bytes);
        self.used = by(self.used, bytes);
        if holding.is_ended() {
            self.leaving = by(self.leaving, bytes);
        } else {
            self.by_size.remove(&(source, before, id));
            self.by_size.insert((source, after, id));
            self.by_network.remove(source, before);
            self.by_network.add(source, after);
        }
        if let Some(key) = key {
            match by(self.of_key(key), bytes) {
                0 => drop(self.by_key.remove(&key)),
                bytes => drop(self.by_key.insert(key, bytes)),
            }
        }
    }
}

/// Memory budget of a port. A clone is another handle of the same budget.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<Ledger>>);

impl Budget {
    /// Creates a budget of which nothing is used.
    pub fn new(bounds: Bounds) -> Budget {
        let ledger = Ledger {
            bounds,
            used: 0,
            leaving: 0,
            by_network: Census::default(),
            by_key: BTreeMap::new(),
            holdings: BTreeMap::new(),
            by_size: BTreeSet::new(),
            next: 0,
        };
        Budget(Arc::new(Mutex::new(ledger)))
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of bytes in use.
    pub fn used(&self) -> usize {
        self.lock().used
    }

    /// True if connections that were ended have not freed their memory.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().leaving > 0
    }

    /// Opens the account of a connection with a peer of this source, and with this key if it is
    /// known.
    pub fn account(&self, source: Network, key: Option<Key>) -> Account {
        let mut ledger = self.lock();
        let id = ledger.next;
        ledger.next += 1;
        ledger.by_size.insert((source, 0, id));
        let is_ended = Arc::new(AtomicBool::new(false));
        ledger.holdings.insert(id, Holding { source, key, bytes: 0, is_ended: Arc::clone(&is_ended), waker: None });
        Account(Some(Arc::new(Open { budget: self.clone(), id, is_ended })))
    }
}

#[derive(Debug)]
struct Open {
    budget: Budget,
    id: u64,
    is_ended: Arc<AtomicBool>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut ledger = self.budget.lock();
        let bytes = ledger.holdings.get(&self.id).map_or(0, |holding| holding.bytes);
        ledger.book(self.id, bytes, usize::saturating_sub);
        if let Some(holding) = ledger.holdings.remove(&self.id) {
            ledger.by_size.remove(&(holding.source, holding.bytes, self.id));
        }
    }
}

/// Identity for which connections are counted together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Payer {
    /// Holder of a known key.
    Key(Key),
    /// Source, if keys are not known.
    Source(Network),
}

impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Payer::Key(_) => "this key",
            Payer::Source(_) => "this address",
        })
    }
}

/// Account of the memory of one connection's buffers. A clone is another handle of the same
/// account. The default account has no limit.
#[derive(Clone, Debug, Default)]
pub struct Account(Option<Arc<Open>>);

impl Account {
    /// Requests `bytes` more for a buffer.
    ///
    /// # Errors
    ///
    /// Names the limit that has been reached.
    pub fn take(&self, bytes: usize) -> Result<(), Refusal> {
        let Some(open) = &self.0 else { return Ok(()) };
        let mut ended = Vec::new();
        let taken = {
            let mut ledger = open.budget.lock();
            loop {
                let Some(holding) = ledger.holdings.get(&open.id) else { break Ok(()) };
                let checked = ledger.check(holding, bytes);
                let instead = match checked {
                    Err(Refusal::Port(_)) => ledger.heaviest_instead_of(holding.source, bytes),
                    _ => None,
                };
                let Some(other) = instead else {
                    if checked.is_ok() {
                        ledger.book(open.id, bytes, usize::saturating_add);
                    }
                    break checked;
                };
                ended.extend(ledger.end(other));
            }
        };
        // The wakers are called without the lock, because a woken thread may request memory at
        // once.
        ended.into_iter().for_each(Waker::wake);
        taken
    }

    /// True if [`Account::take`] of this number of bytes would be granted now.
    pub fn has_memory_for(&self, bytes: usize) -> bool {
        let Some(open) = &self.0 else { return true };
        let ledger = open.budget.lock();
        let Some(holding) = ledger.holdings.get(&open.id) else { return true };
        match ledger.check(holding, bytes) {
            Ok(()) => true,
            Err(Refusal::Port(_)) => ledger.heaviest_instead_of(holding.source, bytes).is_some(),
            Err(_) => false,
        }
    }

    /// Records that a buffer has freed `bytes`.
    pub fn give_back(&self, bytes: usize) {
        if let Some(open) = &self.0 {
            open.budget.lock().book(open.id, bytes, usize::saturating_sub);
        }
    }

    /// Sets the waker to be called when the connection is ended because others need its memory.
    pub fn wake_when_ended(&self, waker: Waker) {
        let Some(open) = &self.0 else { return };
        if let Some(holding) = open.budget.lock().holdings.get_mut(&open.id) {
            holding.waker = Some(waker);
        }
    }

    /// The reason if the connection was ended because others need its memory; `None` otherwise.
    pub(crate) fn ended(&self) -> Option<Refusal> {
        let open = self.0.as_ref().filter(|open| open.is_ended.load(Ordering::Relaxed))?;
        let held = open.budget.lock().holdings.get(&open.id).map_or(0, |holding| holding.bytes);
        Some(Refusal::Ended(held))
    }

    /// Identity for which this connection is counted, with the peer's current address. `None` for
    /// an account without limits.
    pub fn payer(&self) -> Option<Payer> {
        let open = self.0.as_ref()?;
        let ledger = open.budget.lock();
        let holding = ledger.holdings.get(&open.id)?;
        Some(holding.key.map_or(Payer::Source(holding.source), Payer::Key))
    }

    /// True if less than a quarter is left of the limit of the port, the source or the key. Windows
    /// do not grow then.
    pub fn is_scarce(&self) -> bool {
        let Some(open) = &self.0 else { return false };
        let ledger = open.budget.lock();
        let Some(holding) = ledger.holdings.get(&open.id) else { return false };
        let is_near = |used: usize, bound: usize| used >= bound - bound / 4;
        is_near(ledger.used, ledger.bounds.port)
            || is_near(ledger.by_network.amount(holding.source), ledger.bounds.source)
            || holding.key.is_some_and(|key| is_near(ledger.of_key(key), ledger.bounds.key))
    }

    /// True if `source` may hold the bytes of this connection in addition to what it already holds.
    pub(crate) fn has_room_at(&self, source: Network) -> bool {
        let Some(open) = &self.0 else { return true };
        let ledger = open.budget.lock();
        let Some(holding) = ledger.holdings.get(&open.id) else { return true };
        let held = ledger.by_network.amount(source);
        holding.source == source || held.saturating_add(holding.bytes) <= ledger.bounds.source
    }

    /// Changes the peer's source. From now on all bytes of the connection count for the new source,
    /// even if its limit is exceeded.
    pub(crate) fn set_source(&self, source: Network) {
        let Some(open) = &self.0 else { return };
        let mut ledger = open.budget.lock();
        let Some(holding) = ledger.holdings.get_mut(&open.id) else { return };
        let (before, bytes) = (std::mem::replace(&mut holding.source, source), holding.bytes);
        if !holding.is_ended() {
            ledger.by_size.remove(&(before, bytes, open.id));
            ledger.by_size.insert((source, bytes, open.id));
            ledger.by_network.remove(before, bytes);
            ledger.by_network.add(source, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::source_of;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    fn source(host: u8) -> Network {
        at([10, host, host, host])
    }

    fn at(address: [u8; 4]) -> Network {
        source_of(address.into())
    }

    fn budget() -> Budget {
        Budget::new(Bounds { port: 1000, source: 500, key: 300 })
    }

    /// Takes a byte at a time until that is refused; returns how many were taken.
    fn fill(account: &Account) -> usize {
        (0..2000).take_while(|_| account.take(1).is_ok()).count()
    }

    #[test]
    fn the_connections_of_a_source_and_of_a_key_count_together() {
        let budget = budget();
        let [a, b] = [0; 2].map(|_| budget.account(source(1), None));
        assert_eq!((a.take(300), b.take(201)), (Ok(()), Err(Refusal::Source(500))));
        assert!(!a.is_scarce());
        assert_eq!(b.take(200), Ok(()));
        assert!(a.is_scarce() && b.is_scarce());
        let [c, d] = [2, 3].map(|number| budget.account(source(number), Some([7; 32])));
        assert_eq!((c.take(200), d.take(101)), (Ok(()), Err(Refusal::Key(300))));
        assert_eq!((d.take(100), budget.used()), (Ok(()), 800));
        b.give_back(150);
        drop((a, c));
        assert_eq!((budget.used(), d.take(200)), (150, Ok(())));
        drop((b, d));
        let ledger = budget.lock();
        assert_eq!((ledger.used, ledger.by_key.len(), ledger.holdings.len()), (0, 0, 0));
        assert!(ledger.by_network.is_empty() && ledger.by_size.is_empty());
    }

    struct Calls(AtomicUsize);

    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_comes_late_gets_memory_from_the_connection_that_holds_most() {
        let budget = budget();
        let greedy: Vec<Account> = (1..=2).map(|number| budget.account(source(number), None)).collect();
        let calls = Arc::new(Calls(AtomicUsize::new(0)));
        greedy.iter().for_each(|account| account.wake_when_ended(Arc::clone(&calls).into()));
        assert_eq!(greedy.iter().map(fill).collect::<Vec<_>>(), [500, 500]);
        let late = budget.account(source(9), None);
        assert_eq!((late.take(10), calls.0.load(Ordering::Relaxed)), (Ok(()), 1));
        let ended: Vec<bool> = greedy.iter().map(|account| account.ended().is_some()).collect();
        assert_eq!(ended.iter().filter(|ended| **ended).count(), 1, "{ended:?}");
        // A connection that was ended gets nothing more, and others use what it leaves, before and after it has left.
        let gone = usize::from(ended[1]);
        assert!(matches!(greedy[gone].take(1), Err(Refusal::Ended(500))));
        assert_eq!(budget.used(), 1010);
        assert!(budget.has_ended());
        assert_eq!(fill(&late), 240, "a quarter more than the port may hold");
        let mut left = greedy;
        drop(left.remove(gone));
        assert!(!budget.has_ended());
        assert_eq!((budget.used(), fill(&late)), (750, 250));
    }

    #[test]
    fn what_is_leaving_is_for_those_who_hold_little() {
        let budget = budget();
        let greedy: Vec<Account> = (1..=4).map(|number| budget.account(source(number), None)).collect();
        greedy.iter().for_each(|account| assert_eq!(account.take(250), Ok(())));
        let newcomers = [8, 9].map(|number| budget.account(source(number), None));
        assert_eq!(newcomers[0].take(10), Ok(()));
        // One of the four has been ended and still holds its memory: the others get none of it, and another newcomer does.
        assert_eq!(greedy.iter().filter(|account| account.ended().is_some()).count(), 1);
        assert_eq!(greedy.iter().map(fill).sum::<usize>(), 0);
        assert_eq!(newcomers[1].take(100), Ok(()));
    }

    #[test]
    fn many_addresses_of_a_network_are_weighed_together() {
        let budget = Budget::new(Bounds { port: 10_000, source: 5_000, key: 5_000 });
        // 250 addresses, each of which holds less than the newcomers from elsewhere.
        let light: Vec<Account> = (1..=250).map(|host| budget.account(at([10, 1, 1, host]), None)).collect();
        light.iter().for_each(|account| assert_eq!(account.take(40), Ok(())));
        for address in [[10, 1, 2, 1], [10, 2, 1, 1], [11, 1, 1, 1], [192, 0, 2, 1]] {
            let newcomer = budget.account(at(address), None);
            assert_eq!(newcomer.take(100), Ok(()), "{address:?}");
            assert!(newcomer.ended().is_none());
        }
        // In the network itself all are alike, and nobody gives way.
        assert_eq!(budget.account(at([10, 1, 1, 251]), None).take(200), Err(Refusal::Port(10_000)));
    }

    #[test]
    fn nobody_takes_from_who_holds_less_than_twice_as_much() {
        let budget = budget();
        let [a, b] = [1, 2].map(|number| budget.account(source(number), None));
        assert_eq!((a.take(500), b.take(250)), (Ok(()), Ok(())));
        let c = budget.account(source(3), None);
        assert_eq!((c.take(250), c.take(1)), (Ok(()), Err(Refusal::Port(1000))));
        assert!(a.ended().is_none() && b.ended().is_none());
    }

    #[test]
    fn who_moves_takes_along_what_it_holds() {
        let budget = budget();
        let [mover, other] = [1, 2].map(|number| budget.account(source(number), None));
        assert_eq!((mover.take(300), other.take(200)), (Ok(()), Ok(())));
        assert!(mover.has_room_at(source(2)));
        mover.set_source(source(2));
        assert_eq!((other.take(1), budget.lock().by_network.amount(source(1))), (Err(Refusal::Source(500)), 0));
        let another = budget.account(source(1), None);
        assert_eq!(another.take(100), Ok(()));
        assert!(!another.has_room_at(source(2)) && another.has_room_at(source(1)));
    }

    #[test]
    fn an_account_of_nobody_is_bound_by_nothing() {
        let account = Account::default();
        assert_eq!((account.take(usize::MAX), account.is_scarce()), (Ok(()), false));
    }
}
