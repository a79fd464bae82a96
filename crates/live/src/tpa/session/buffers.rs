//! Memory of the buffers of a port's connections: its bounds, and who pays for what a connection holds.

use super::settings::{Limits, Settings};
use crate::budget::{Account, Bounds, Budget};
use crate::networks::source_of;
use std::net::IpAddr;

/// Bytes that the buffers of a port may hold where the memory of the process is not known; and least and most where it is.
const UNKNOWN: usize = 64 << 20;
const LEAST: usize = 8 << 20;
const MOST: usize = 1 << 30;

/// The part of the memory of the process, as a divisor, that the buffers of a port may hold.
const PART: usize = 4;

impl Limits {
    /// The memory of a port's buffers where the process may use `memory` bytes, as far as that is known.
    pub fn budget(&self, memory: Option<usize>) -> Budget {
        let usual = memory.map_or(UNKNOWN, |bytes| (bytes / PART).clamp(LEAST, MOST));
        let port = self.buffers.unwrap_or(usual);
        let of = |one: Option<usize>| one.unwrap_or(port / 2);
        Budget::new(Bounds { port, source: of(self.buffers_per_source), key: of(self.buffers_per_key) })
    }
}

impl Settings {
    /// The account of a connection with a peer at this address, and with this key if it is known.
    pub fn account(&self, peer: IpAddr, key: Option<[u8; 32]>) -> Account {
        self.budget.account(source_of(peer), key)
    }
}
