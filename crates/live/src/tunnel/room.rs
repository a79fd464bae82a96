//! Room for streams at an exit: each takes a descriptor and two threads.
//!
//! Some descriptors are kept back for all else that the process does, and half of the memory: what the threads of a stream take is in no
//! budget of buffers. What is left is shared out: a source, an IPv4 address or an IPv6 network
//! of 64 bits, may have half as many streams as are left for all, a wider network 31 times as many as are left. So whoever takes what he can
//! get leaves twice as much to others, and so do several, one after the other.

use crate::memory;
use meshpace_session::networks::{Census, networks, source_of};
use nix::sys::resource::{Resource, getrlimit};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// Descriptors, and threads, that streams leave alone: the ports, files, names that are looked up, what the rest of the program opens.
const RESERVED: u64 = 64;

/// Threads of a stream.
const THREADS: u64 = 2;

/// Bytes of a stream that no budget of buffers counts: of each thread 8 to 12 KiB of the stack, and what the kernel keeps for both threads
/// and the socket, 51 KiB (measured in a memory control group, 200 streams that carry).
const UNCOUNTED: usize = 72 << 10;

/// Which part of the memory that the process may use streams may take so.
const PART: usize = 2;

/// Streams at most, however many descriptors there may be: twice as many threads.
const MOST: usize = 8192;

/// How many streams have to be left for each of a source.
const LEFT_OVER_SOURCE: usize = 2;

/// How many a wider network may have for each that is left.
const NETWORK_OVER_LEFT: usize = 31;

/// The room of an exit. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Room(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    census: Census,
}

/// Room for one stream, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    source: IpAddr,
}

/// Streams that the process has descriptors, threads and memory for.
fn most() -> usize {
    let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(now, _)| now);
    let threads = getrlimit(Resource::RLIMIT_NPROC).map_or(u64::MAX, |(now, _)| now);
    static OF_GROUPS: LazyLock<u64> = LazyLock::new(|| memory::threads().map_or(u64::MAX, |threads| threads as u64));
    static MEMORY: LazyLock<usize> = LazyLock::new(|| memory::limit().unwrap_or(usize::MAX));
    most_with(descriptors, threads.min(*OF_GROUPS), *MEMORY)
}

/// As many as so many descriptors, threads and bytes of memory are enough for.
fn most_with(descriptors: u64, threads: u64, memory: usize) -> usize {
    let of_threads = threads.saturating_sub(RESERVED) / THREADS;
    let most = usize::try_from(descriptors.saturating_sub(RESERVED).min(of_threads)).unwrap_or(MOST);
    most.min(memory / PART / UNCOUNTED).min(MOST)
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for another stream from `source`; none if it has enough.
    pub(super) fn take(&self, source: IpAddr) -> Option<Place> {
        self.take_of(most(), source)
    }

    fn take_of(&self, most: usize, source: IpAddr) -> Option<Place> {
        let mut taken = self.lock();
        let left = most.saturating_sub(taken.all);
        let [wider @ .., own] = networks(source);
        let may = left > 0
            && taken.census.amount(own) * LEFT_OVER_SOURCE < left
            && wider.iter().all(|network| taken.census.amount(*network) < left * NETWORK_OVER_LEFT);
        may.then(|| {
            taken.all += 1;
            taken.census.add(own, 1);
            Place { room: self.clone(), source }
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        taken.all -= 1;
        taken.census.remove(source_of(self.source), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_of_descriptors_threads_and_memory_bounds_streams() {
        const NONE: u64 = u64::MAX;
        assert_eq!(most_with(1024, NONE, usize::MAX), 960);
        assert_eq!(most_with(1024, 564, usize::MAX), 250);
        assert_eq!(most_with(NONE, NONE, usize::MAX), 8192);
        // Their threads and sockets take no more than half of 128 MiB, however many descriptors there are.
        let of_memory = most_with(20_000, NONE, 128 << 20);
        assert!(of_memory > 900 && of_memory * (72 << 10) <= 64 << 20, "{of_memory}");
    }

    /// As many places as an address can get.
    fn all(room: &Room, source: [u8; 4]) -> Vec<Place> {
        std::iter::from_fn(|| room.take_of(960, IpAddr::from(source))).collect()
    }

    #[test]
    fn whoever_takes_all_he_gets_leaves_more_to_others() {
        let room = Room::default();
        let mut taken = vec![all(&room, [10, 0, 0, 1])];
        assert_eq!(taken[0].len(), 320);
        taken.extend((2..=8).map(|host| all(&room, [10, 0, 0, host])));
        assert!(taken[1].len() > 200 && taken.iter().all(|places| places.len() > 10));
        // Neighbours, and others.
        assert!(!all(&room, [10, 0, 0, 9]).is_empty());
        assert!(all(&room, [192, 0, 2, 1]).len() > 10);
        // However many addresses a network has, others find some.
        taken.extend((9..=255).map(|host| all(&room, [10, 0, 0, host])));
        assert!(all(&room, [192, 0, 2, 1]).len() > 5);
        taken.clear();
        assert_eq!(all(&room, [10, 0, 0, 1]).len(), 320, "all is given back");
    }
}
