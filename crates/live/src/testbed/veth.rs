//! Two network namespaces joined by a veth pair, as containers are: checksums that nobody fills in, segments that travel 64 kB at
//! a time. Needs root and the command `ip`.

use super::namespace::Namespace;
use crate::tun::ip;
use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc::channel;

/// Joins `sides` by a pair of devices, both called `name`, with these addresses in a network of 24 bits and this MTU in bytes.
///
/// # Errors
/// If the devices cannot be made or moved: rights, a name that is taken, no `ip`.
pub fn join(sides: [&Namespace; 2], name: &str, addresses: [Ipv4Addr; 2], mtu: u16) -> io::Result<()> {
    // A namespace without a name is given by a thread that lives there.
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
    Ok(())
}
