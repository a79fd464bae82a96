//! Two network namespaces joined by a veth pair, as with containers: no checksums are computed, and
//! segments are up to 64 kB long. This needs root and the command `ip`.

use super::namespace::Namespace;
use crate::netlink;
use crate::tun::ip;
use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long a device may take until it passes packets.
const PATIENCE: Duration = Duration::from_secs(60);

/// Joins `sides` by a pair of devices, both called `name`. The addresses are in a network of 24
/// bits, and the MTU is in bytes.
///
/// # Errors
/// The devices cannot be created or moved: missing rights, a name that is in use, or no `ip`.
pub fn join(sides: [&Namespace; 2], name: &str, addresses: [Ipv4Addr; 2], mtu: u16) -> io::Result<()> {
    // A namespace without a name is identified by a thread in it.
    let (tell, told) = channel();
    let (release, wait) = channel::<()>();
    let resident = sides[1].spawn(move || {
        let _ = tell.send(rustix::thread::gettid().as_raw_nonzero());
        let _ = wait.recv();
    });
    let thread = told.recv().map_err(io::Error::other)?.to_string();
    let made = sides[0].run(|| ip(&["link", "add", name, "type", "veth", "peer", "name", name, "netns", &thread]));
    drop(release);
    let _ = resident.join();
    made?;
    for (side, address) in sides.iter().zip(addresses) {
        side.run(|| {
            ip(&["address", "add", &format!("{address}/24"), "dev", name])?;
            ip(&["link", "set", name, "mtu", &mtu.to_string(), "up"])
        })?;
    }
    sides.iter().try_for_each(|side| side.run(|| wait_until_it_runs(name)))
}

/// Waits until the device passes packets. The kernel does the last step of switching a device on in a queue that all namespaces share,
/// and drops what is sent until then. On a busy machine that can take longer than the 3 s after which the kernel gives up a neighbour that
/// does not answer.
#[expect(clippy::disallowed_methods, reason = "the kernel takes its time")]
fn wait_until_it_runs(name: &str) -> io::Result<()> {
    let (socket, index) = (netlink::socket()?, netlink::index(name)?);
    let until = Instant::now() + PATIENCE;
    while !netlink::link(&socket, index)?.is_running() {
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{name} does not run after {PATIENCE:?}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
