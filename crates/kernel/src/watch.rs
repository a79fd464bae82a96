//! Keeps the hops in the map of a loaded congestion control up to date. They come from the routes
//! of routing daemons and from the paths of an 802.11s mesh.
//!
//! The kernel reports when routes or neighbours change. It does not report changes of mesh paths;
//! they are read at every check. Tables are always read as a whole, so that nothing is missed if
//! the kernel drops reports.

mod link;
mod mesh_paths;
mod routes;

use crate::object::Paths;
use crate::{Destination, Error, Path};
use link::Link;
use mesh_paths::MeshPaths;
use netlink_sys::Socket;
use netlink_sys::constants::NETLINK_ROUTE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Hops by destination.
pub type Hops = BTreeMap<Destination, u8>;

/// Routes that are taken into account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sources {
    /// Devices whose routes count. If empty, all devices but the loopback.
    pub devices: Vec<String>,
    /// Contribution of one hop to a route's metric: 1 where daemons write hops, 96 or 256 with
    /// babeld's wired and wireless links.
    pub metric_per_hop: u32,
}

/// Multicast groups of rtnetlink (`linux/rtnetlink.h`): neighbours, IPv4 routes and IPv6 routes.
const GROUPS: [u32; 3] = [3, 7, 11];

/// Reads routes and mesh paths of the network namespace in which it was created.
pub struct Watcher {
    sources: Sources,
    routes: Link,
    changes: Socket,
    mesh: Option<MeshPaths>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("sources", &self.sources).finish_non_exhaustive()
    }
}

impl Watcher {
    /// Subscribes to the kernel's reports.
    ///
    /// # Errors [`Error::Refused`] if a device does not exist, [`Error::Failed`] if a query to the
    /// kernel fails.
    pub fn new(sources: Sources) -> Result<Watcher, Error> {
        let begin = || {
            let mut changes = Socket::new(NETLINK_ROUTE)?;
            changes.bind_auto()?;
            changes.set_non_blocking(true)?;
            for group in GROUPS {
                changes.add_membership(group).map_err(|error| named("rtnetlink's groups", error))?;
            }
            let mesh = MeshPaths::new().map_err(|error| named("nl80211", error))?;
            Ok::<_, io::Error>((Link::new(NETLINK_ROUTE)?, changes, mesh))
        };
        let (routes, changes, mesh) = begin().map_err(|error| Error::failed("netlink", error))?;
        let watcher = Watcher { sources, routes, changes, mesh };
        for device in &watcher.sources.devices {
            if watcher.routes.index(device).is_none() {
                return Err(Error::Refused(format!("--watch-device {device}: there is no such device")));
            }
        }
        Ok(watcher)
    }

    /// True if this machine has 802.11 devices, whose mesh paths are read.
    pub fn reads_mesh_paths(&self) -> bool {
        self.mesh.is_some()
    }

    /// Waits until routes or neighbours may have changed, for `at_most` at the longest.
    ///
    /// # Errors If the kernel's reports cannot be received.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.changes, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // The content of the reports is not used: all tables are read again. A full receive buffer
        // (ENOBUFS) has the same meaning.
        let mut said = Vec::with_capacity(1 << 16);
        loop {
            said.clear();
            match self.changes.recv(&mut said, 0) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the hops that routes and mesh paths give now. For a host with a mesh path, the hops of
    /// the mesh path are used.
    ///
    /// # Errors If a query to the kernel fails.
    pub fn read(&mut self) -> io::Result<Hops> {
        let stations = match &mut self.mesh {
            Some(mesh) => mesh.read().map_err(|error| named("mesh paths", error))?,
            None => BTreeMap::new(),
        };
        let hosts = if stations.is_empty() { BTreeMap::new() } else { routes::hosts(&mut self.routes, &stations)? };
        // A device that does not exist has no routes.
        let devices: Vec<u32> = self.sources.devices.iter().filter_map(|device| self.routes.index(device)).collect();
        let devices = (!self.sources.devices.is_empty()).then_some(devices);
        let mut hops = routes::read(&mut self.routes, devices.as_deref(), self.sources.metric_per_hop, &hosts)?;
        hops.extend(hosts.into_iter().map(|(host, hops)| (Destination::host(host), hops)));
        Ok(hops)
    }
}

fn named(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Change of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The destination is this many hops away now.
    Set(Destination, u8),
    /// No hops are known for the destination any more: the default path holds again.
    Removed(Destination),
}

/// Writes hops into the map of a congestion control.
#[derive(Debug)]
pub struct Follower {
    paths: Paths,
    usual: Path,
    /// Destinations of the command line, which are never changed.
    told: Vec<Destination>,
    written: Hops,
}

impl Follower {
    /// Follower for `paths`. Rates and delays are those of `usual`; destinations in `told` are
    /// never changed.
    pub fn new(paths: Paths, usual: Path, told: Vec<Destination>) -> Follower {
        Follower { paths, usual, told, written: Hops::new() }
    }

    /// Updates the map to the hops in `found`. Entries that cannot be written are skipped; the
    /// first error is returned beside the changes.
    pub fn follow(&mut self, mut found: Hops) -> (Vec<Change>, Option<Error>) {
        found.retain(|destination, _| !self.told.contains(destination));
        let (mut changes, mut failure) = (Vec::new(), None);
        let gone: Vec<Destination> =
            self.written.keys().filter(|destination| !found.contains_key(destination)).copied().collect();
        for destination in gone {
            match self.paths.remove(&destination) {
                Ok(()) => {
                    self.written.remove(&destination);
                    changes.push(Change::Removed(destination));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        for (destination, hops) in found {
            if self.written.get(&destination) == Some(&hops) {
                continue;
            }
            match self.paths.set(&destination, &Path { hops, always: true, ..self.usual }) {
                Ok(()) => {
                    self.written.insert(destination, hops);
                    changes.push(Change::Set(destination, hops));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        (changes, failure)
    }
}
