//! Memory limits for the buffers of a port's connections, and the account that a connection's
//! memory is charged to.

use super::settings::{Limits, Settings};
use crate::budget::{Account, Bounds, Budget};
use crate::networks::source_of;
use std::net::IpAddr;

/// Bytes that the buffers of a port may hold if the memory of the process is not known.
const UNKNOWN: usize = 64 << 20;
/// Lower bound if the memory of the process is known, bytes.
const LEAST: usize = 8 << 20;
/// Upper bound if the memory of the process is known, bytes.
const MOST: usize = 1 << 30;

/// The buffers of a port may hold the memory of the process divided by this number.
const PART: usize = 4;

impl Limits {
    /// Budget of a port's buffers in a process that may use `memory` bytes. `memory` is `None` if
    /// that limit is not known.
    pub fn budget(&self, memory: Option<usize>) -> Budget {
        let usual = memory.map_or(UNKNOWN, |bytes| (bytes / PART).clamp(LEAST, MOST));
        let port = self.buffers.unwrap_or(usual);
        let of = |one: Option<usize>| one.unwrap_or(port / 2);
        Budget::new(Bounds { port, source: of(self.buffers_per_source), key: of(self.buffers_per_key) })
    }
}

impl Settings {
    /// Account of a connection with a peer at this address. `key` is the peer's public key, or
    /// `None` if it is not known.
    pub fn account(&self, peer: IpAddr, key: Option<[u8; 32]>) -> Account {
        self.budget.account(source_of(peer), key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Refusal;

    #[test]
    fn by_default_the_buffers_hold_a_quarter_of_the_memory_within_bounds() {
        const MIB: usize = 1024 * 1024;
        // Without limits on a source and on a key, one connection may hold as much as the port.
        let unbounded = Some(usize::MAX);
        let limits = Limits { buffers_per_source: unbounded, buffers_per_key: unbounded, ..Limits::default() };
        let memory_and_default = [
            (0, 8 * MIB),
            (32 * MIB, 8 * MIB),
            (36 * MIB, 9 * MIB),
            (1000 * MIB, 250 * MIB),
            (4096 * MIB, 1024 * MIB),
            (4100 * MIB, 1024 * MIB),
            (usize::MAX, 1024 * MIB),
        ];
        for (memory, bytes) in memory_and_default {
            let account = limits.budget(Some(memory)).account(source_of(IpAddr::from([10, 0, 0, 1])), None);
            assert_eq!(account.take(bytes + 1), Err(Refusal::Port(bytes)), "{memory} bytes of memory");
            assert_eq!(account.take(bytes), Ok(()), "{memory} bytes of memory");
        }
    }
}
