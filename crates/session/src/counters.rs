//! Counters of a port. The thread that runs the port counts, and any thread may read.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a port: unused datagrams and requests, requests answered with a cookie, and peers
/// that have moved.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) malformed: AtomicU64,
    pub strays: AtomicU64,
    pub(crate) challenges: AtomicU64,
    pub(crate) crowded: AtomicU64,
    pub forged: AtomicU64,
    pub(crate) moves: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Counts of a port since it was opened: unused datagrams and requests, requests answered with a
/// cookie, and peers that have moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounters {
    /// Datagrams that are not valid, and requests without valid terms or for a protection or a
    /// transport that the listener does not have.
    pub malformed: u64,
    /// Datagrams of unknown connections, and requests while nobody listens.
    pub strays: u64,
    /// Connection requests answered with a cookie.
    pub challenges: u64,
    /// Connection requests and moves that were granted no place because a limit was reached.
    pub crowded: u64,
    /// Datagrams with the tag of a connection or handshake that are duplicates or were not sent by
    /// its peer. Also requests whose Noise message does not fit our keys.
    pub forged: u64,
    /// Peers of open connections whose address has changed.
    pub moves: u64,
    /// Connection requests of peers whose keys are not admitted.
    pub refused: u64,
}

impl Counters {
    pub fn read(&self) -> PortCounters {
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

pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
