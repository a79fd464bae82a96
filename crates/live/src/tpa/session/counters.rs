//! Counters of a port: counted by whoever runs it, read by anybody.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a port: datagrams and requests that it has not used, requests answered with a cookie, peers that have moved.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) malformed: AtomicU64,
    pub(crate) strays: AtomicU64,
    pub(crate) challenges: AtomicU64,
    pub(crate) crowded: AtomicU64,
    pub(crate) forged: AtomicU64,
    pub(crate) moves: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Counts of a port since it was opened: datagrams and requests that it has not used, requests answered with a cookie, peers that have moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounters {
    /// Datagrams that are no TPA segment, or a SYN without sensible terms.
    pub malformed: u64,
    /// Datagrams of no connection known.
    pub strays: u64,
    /// Connection requests answered with a cookie.
    pub challenges: u64,
    /// Connection requests that found no place, or whose source had enough.
    pub crowded: u64,
    /// Datagrams with the tag of a connection that its peer did not send, or that came a second time.
    pub forged: u64,
    /// Peers of open connections whose address has changed.
    pub moves: u64,
    /// Connection requests of peers whose keys are not admitted.
    pub refused: u64,
}

impl Counters {
    pub(crate) fn read(&self) -> PortCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PortCounters {
            malformed: get(&self.malformed),
            strays: get(&self.strays),
            challenges: get(&self.challenges),
            crowded: get(&self.crowded),
            forged: get(&self.forged),
            moves: get(&self.moves),
            refused: get(&self.refused),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
