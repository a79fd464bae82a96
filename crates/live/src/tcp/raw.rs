//! Interface with one of the host's own addresses, through raw sockets. This is closest to the
//! user-space framework of AP10, section IV.H.
//!
//! The host's TCP receives the same segments. A packet filter drops the resets with which it
//! answers them ([`super::filter`]), and a bound socket prevents the host from giving the port to
//! another program. Segments of the host's own connections are ignored: only claimed ports are
//! handled.
//!
//! Packets arrive as the kernel has them. With offloading they may be longer than any segment on
//! the link, and their checksum may be one that the network card would have computed.

use super::filter::{Filter, MARK, tables};
use super::interface::Interface;
use crate::poll::{Poller, Token};
use crate::tun::MUST_BE_ROOT;
use meshpace_transport::tcp::wire::Check;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt as options};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// Size of the kernel's receive buffer in bytes: a window of data from a fast sender.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Raw sockets on an address of the host.
#[derive(Debug)]
pub struct Raw {
    address: Ipv4Addr,
    mtu: u16,
    sends: OwnedFd,
    receives: OwnedFd,
    errors: OwnedFd,
    /// Sockets that reserve the claimed ports.
    claimed: BTreeMap<u16, OwnedFd>,
    filter: Filter,
}

impl Raw {
    /// Opens raw sockets on `address`, which must belong to the host, for packets of up to `mtu`
    /// bytes. This needs root (or `CAP_NET_RAW` and `CAP_NET_ADMIN`) and the command `nft`.
    ///
    /// # Errors
    /// The process may not open raw sockets (`CAP_NET_RAW`), `address` does not belong to this
    /// host, or nftables cannot be set up.
    pub fn open(address: Ipv4Addr, mtu: u16) -> io::Result<Raw> {
        let explain = |what: &'static str| {
            move |error: Errno| {
                let error = io::Error::from(error);
                let hint = if error.kind() == io::ErrorKind::PermissionDenied { MUST_BE_ROOT } else { "" };
                io::Error::new(error.kind(), format!("{what}: {error}{hint}"))
            }
        };
        let socket = |protocol, what| {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            rustix::net::socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(protocol)).map_err(explain(what))
        };
        let bind = |socket: &OwnedFd| {
            let error = |error: Errno| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("{address}: {error}"))
            };
            rustix::net::bind(socket, &SocketAddrV4::new(address, 0)).map_err(error)
        };
        let sends = socket(ipproto::RAW, "raw socket")?;
        setsockopt(&sends, sockopt::Mark, &MARK)?;
        let receives = socket(ipproto::TCP, "raw socket")?;
        // A buffer above the system's limit needs CAP_NET_ADMIN. Without that right the usual size
        // is used.
        let _ = options::set_socket_recv_buffer_size_force(&receives, RECEIVE_BUFFER);
        let errors = socket(ipproto::ICMP, "raw socket")?;
        bind(&receives)?;
        bind(&errors)?;
        let filter = Filter::install(address)?;
        Ok(Raw { address, mtu, sends, receives, errors, claimed: BTreeMap::new(), filter })
    }
}

impl Interface for Raw {
    fn address(&self) -> Ipv4Addr {
        self.address
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn check(&self) -> Check {
        Check::Offloaded
    }

    fn owns_address(&self) -> bool {
        false
    }

    fn claim(&mut self, port: u16) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC;
        let keeper = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        match rustix::net::bind(&keeper, &SocketAddrV4::new(self.address, port)) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                let others = tables()?.len() > 1;
                let who = if others { "another program, perhaps another meshpace," } else { "another program" };
                return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{who} has port {port}")));
            }
            Err(error) => return Err(error.into()),
        }
        self.filter.add(port)?;
        self.claimed.insert(port, keeper);
        Ok(())
    }

    fn release(&mut self, port: u16) {
        if self.claimed.remove(&port).is_some() {
            // An entry that cannot be removed does no harm, and is removed together with the table.
            let _ = self.filter.remove(port);
        }
    }

    fn watch(&self, poller: &Poller, token: Token) -> io::Result<()> {
        poller.add(&self.receives, token)?;
        poller.add(&self.errors, token)
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::net::recv(&self.receives, &mut *into, RecvFlags::empty()) {
                Ok((length, _)) if self.is_ours(&into[..length]) => return Ok(length),
                Ok(_) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(rustix::net::recv(&self.errors, into, RecvFlags::empty())?.0)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let to = packet.get(16..20).and_then(|bytes| bytes.first_chunk::<4>());
        let to = to.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no IPv4 packet"))?;
        rustix::net::sendto(&self.sends, packet, SendFlags::empty(), &SocketAddrV4::new((*to).into(), 0))?;
        Ok(())
    }
}

impl Raw {
    /// True if a TCP packet is for a claimed port.
    fn is_ours(&self, packet: &[u8]) -> bool {
        let port = packet.first().and_then(|first| {
            let start = usize::from(first & 0xf) * 4 + 2;
            packet.get(start..start + 2).map(|port| u16::from_be_bytes([port[0], port[1]]))
        });
        port.is_some_and(|port| self.claimed.contains_key(&port))
    }
}
