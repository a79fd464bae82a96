//! Network device of a node, from which the mesh reads frames and to which it writes them. It is a
//! TAP device. If this process may not open `/dev/net/tun`, it is a packet socket at the far end of
//! a veth pair (packet(7), veth(4)).
//!
//! The far ends are in a network namespace of their own, the hub, which contains nothing else. The
//! hub exists as long as one of the packet sockets.

use crate::sys;
use crate::sysctl::set;
use meshpace_core::NodeId;
use meshpace_live::testbed::Namespace;
use meshpace_live::tun::{Tun, ip};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Name of the device in every node.
pub const DEVICE: &str = "mesh0";

/// The mesh's access to the device of a node.
#[derive(Debug)]
pub enum Device {
    /// The TAP device of the node.
    Tap(Tun),
    /// Packet socket at the far end of the node's veth device.
    Wire(OwnedFd),
}

impl Device {
    /// Reads one frame that the node sends.
    ///
    /// # Errors [`io::ErrorKind::WouldBlock`] if there is no frame, or the system's error about the
    /// device.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Device::Tap(tap) => tap.receive(into),
            Device::Wire(socket) => Ok(rustix::io::read(socket, into)?),
        }
    }

    /// Delivers a frame to the node.
    ///
    /// # Errors The system's error about the device or the frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        match self {
            Device::Tap(tap) => tap.send(frame),
            Device::Wire(socket) => Ok(rustix::io::write(socket, frame).map(drop)?),
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Device::Tap(tap) => tap.as_fd(),
            Device::Wire(socket) => socket.as_fd(),
        }
    }
}

/// Checks that this process may create TAP devices with `/dev/net/tun`.
///
/// # Errors The system's error about the file.
pub fn tun_is_open() -> io::Result<()> {
    rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    Ok(())
}

/// Namespace of the far ends of veth pairs. Needed while the pairs are created.
#[derive(Debug)]
pub struct Hub {
    namespace: Namespace,
    /// A thread in the namespace. A namespace without a name is identified by one of its threads.
    thread: i32,
    resident: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Hub {
    /// Creates an empty hub. IPv6 is switched off, so that the kernel itself sends nothing.
    ///
    /// # Errors If no namespace can be created.
    pub fn new() -> io::Result<Hub> {
        let namespace = Namespace::new()?;
        namespace.run(|| match std::path::Path::new("/proc/sys/net/ipv6").exists() {
            true => set("net.ipv6.conf.all.disable_ipv6", "1").and(set("net.ipv6.conf.default.disable_ipv6", "1")),
            false => Ok(()),
        })?;
        let (tell, told) = channel();
        let (release, wait) = channel::<()>();
        let resident = namespace.spawn(move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_nonzero());
            // Waits until the other end of the channel is dropped.
            let _ = wait.recv();
        });
        let thread = told.recv().map_err(io::Error::other)?.get();
        Ok(Hub { namespace, thread, resident: Some((release, resident)) })
    }

    /// Creates the device of a node in the calling thread's namespace. Returns its far end.
    ///
    /// # Errors Missing privileges, or a kernel without veth or packet sockets.
    pub fn wire(&self, node: NodeId, mtu: u16) -> io::Result<Device> {
        let far = format!("far{}", node.0);
        ip(&["link", "add", DEVICE, "type", "veth", "peer", "name", &far, "netns", &self.thread.to_string()])?;
        // Without this call packets arrive without checksums and in units of up to 64 kB.
        sys::fill_checksums(DEVICE)?;
        self.namespace.run(|| {
            ip(&["link", "set", &far, "mtu", &mtu.to_string(), "up"])?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            // The socket receives nothing before it is bound to its device.
            let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
            let index = rustix::net::netdevice::name_to_index(&socket, &far)?;
            sys::bind_to_device(&socket, index)?;
            Ok(Device::Wire(socket))
        })
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Some((release, resident)) = self.resident.take() {
            drop(release);
            let _ = resident.join();
        }
    }
}
