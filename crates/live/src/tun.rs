//! TUN and TAP devices. This process reads what the kernel sends to the device, one IP packet or
//! one Ethernet frame at a time, and writes what the kernel is to receive.

use crate::netlink;
use crate::sys::{self, Layer};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;

/// Advice after the error of a process without the required rights.
pub(crate) const MUST_BE_ROOT: &str =
    " (run as root; TPA and the kernel's own TCP need no rights; `meshpace doctor` tells more)";

/// An open TUN or TAP device. The kernel removes the device when this is dropped or when the
/// process ends for any reason.
#[derive(Debug)]
pub struct Tun(OwnedFd);

impl Tun {
    /// Creates the TUN device `name`, which carries IP packets, in the network namespace of the
    /// calling thread. Reading and writing do not wait. The error says what is missing.
    ///
    /// # Errors
    /// The process lacks the rights to create devices (`CAP_NET_ADMIN`, `/dev/net/tun`), or `name`
    /// is in use.
    pub fn create(name: &str) -> io::Result<Tun> {
        Tun::open(name, Layer::Packets)
    }

    /// Like [`Tun::create`], but creates the TAP device `name`, which carries Ethernet frames.
    ///
    /// # Errors
    /// The errors of [`Tun::create`].
    pub fn create_tap(name: &str) -> io::Result<Tun> {
        Tun::open(name, Layer::Frames)
    }

    fn open(name: &str, layer: Layer) -> io::Result<Tun> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let explain = |what: &str, error: io::Error| {
            let hint = if error.kind() == io::ErrorKind::PermissionDenied { MUST_BE_ROOT } else { "" };
            io::Error::new(error.kind(), format!("{what}: {error}{hint}"))
        };
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(|error| explain("/dev/net/tun", error.into()))?;
        let kind = if layer == Layer::Frames { "TAP" } else { "TUN" };
        sys::attach_tun(&file, name, layer).map_err(|error| explain(&format!("{kind} device {name}"), error))?;
        Ok(Tun(file))
    }

    /// Reads one packet or frame. Does not wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if nothing has arrived; the error of the system call about the
    /// device.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, into)?)
    }

    /// Writes one packet or frame.
    ///
    /// # Errors
    /// The error of the system call about the device or the packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.0, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives the device `name` of the calling thread's network namespace a local address, the address
/// of its peer and an MTU in bytes, and sets it up.
///
/// # Errors
/// There is no such device, or the process lacks the right `CAP_NET_ADMIN`.
pub fn configure(name: &str, own: Ipv4Addr, peer: Ipv4Addr, mtu: u16) -> io::Result<()> {
    netlink::assign(name, own, peer)?;
    netlink::switch_on(name, Some(mtu))
}

/// Runs `ip` with these arguments in the calling thread's network namespace.
///
/// # Errors
/// `ip` (iproute2) is not installed, or its error message if it fails.
pub fn ip(arguments: &[&str]) -> io::Result<()> {
    let output =
        Command::new("ip").args(arguments).output().map_err(|e| io::Error::new(e.kind(), format!("ip: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ip {}: {}", arguments.join(" "), complaint.trim())))
}
