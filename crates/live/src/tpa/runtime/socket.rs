//! A UDP socket that receives and sends many datagrams per system call, and reports the errors that
//! the network has returned.
//!
//! Consecutive datagrams of one size for one peer are sent as one message that the kernel splits
//! (UDP GSO). They are received as one message that the kernel has merged (UDP GRO). Pacing is not
//! affected, because datagrams that are due at different times are not in one message.
//!
//! A socket of `[::]` serves IPv4 as well, whatever the value of `net.ipv6.bindv6only`. Its IPv4
//! peers are represented here by their IPv4 addresses, and not by the mapped IPv6 addresses that
//! the kernel uses (RFC 4291, section 2.5.5.2).

pub use meshpace_session::addresses::Addresses;
pub use meshpace_session::message::Message;

use crate::process::ClosedInChildren;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, getsockopt, recvmsg, sendmsg, setsockopt, sockopt,
};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Size of each kernel buffer that is requested, bytes. A burst has to fit while this process is
/// not running.
const KERNEL_BUFFER: usize = 4 << 20;

/// Maximum number of bytes that are read of the datagram quoted in an error report.
pub const QUOTED: usize = 64;

/// Datagrams that arrived together. All of them have `size` bytes, except that the last may be
/// shorter.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Total number of bytes.
    pub bytes: usize,
    /// Number of bytes of each datagram but the last.
    pub size: usize,
    /// Addresses of sender and receiver.
    pub addresses: Addresses,
    /// Time to live with which the datagrams arrived. 0 if the kernel did not report it.
    pub ttl: u8,
}

/// Error that the network, or this host, reported about a datagram sent to `peer`.
#[derive(Clone, Copy, Debug)]
pub struct Complaint {
    /// Address to which the datagram was sent.
    pub peer: SocketAddr,
    /// The error as an errno value.
    pub errno: i32,
    /// If the datagram was too large, the MTU in bytes.
    pub mtu: u32,
    /// Beginning of the datagram, as far as the error report quotes it.
    pub quoted: [u8; QUOTED],
    /// Number of quoted bytes.
    pub length: usize,
    /// True if this host reported the error because it has just refused to send the datagram.
    pub is_local: bool,
}

/// Address families whose datagrams a socket receives and sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Families {
    /// Only IPv4.
    V4,
    /// Only IPv6.
    V6,
    /// IPv4 and IPv6.
    Both,
}

impl Families {
    /// True if a socket of these families can send to `peer`.
    pub fn reach(self, peer: SocketAddr) -> bool {
        match self {
            Families::V4 => peer.is_ipv4(),
            Families::V6 => peer.is_ipv6(),
            Families::Both => true,
        }
    }
}

impl fmt::Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Families::V4 => "IPv4 alone",
            Families::V6 => "IPv6 alone",
            Families::Both => "IPv4 and IPv6",
        })
    }
}

/// A UDP socket. Children after `fork` have no copy of it.
#[derive(Debug)]
pub struct Socket {
    /// This field is declared before the socket, so that it is dropped first.
    _closed_in_children: ClosedInChildren,
    udp: UdpSocket,
    local: SocketAddr,
    families: Families,
    control: Vec<u8>,
    /// True while the kernel supports splitting messages into datagrams (UDP GSO).
    segments: bool,
}

/// Converts an address from the kernel. `None` if it is not an IP address.
fn address_of(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|address| SocketAddr::V4(SocketAddrV4::from(*address)));
    let address =
        v4.or_else(|| storage.as_sockaddr_in6().map(|address| SocketAddr::V6(SocketAddrV6::from(*address))))?;
    Some(canonical(address))
}

/// Converts an IPv4-mapped IPv6 address to the IPv4 address. Other addresses are returned
/// unchanged.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The unspecified address, which stands for all addresses of this host, in the address family of
/// `peer`.
pub(crate) fn any_address(peer: SocketAddr) -> IpAddr {
    if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

impl Socket {
    /// Creates a socket bound to `local`. A socket of `[::]` serves only IPv6 if another socket
    /// already uses the port for IPv4.
    ///
    /// # Errors
    ///
    /// The address is in use or does not belong to this host, or the system cannot create such a
    /// socket.
    pub fn bind(local: SocketAddr) -> io::Result<Socket> {
        let local = canonical(local);
        let families = match local.ip() {
            IpAddr::V4(_) => Families::V4,
            IpAddr::V6(ip) if ip.is_unspecified() => Families::Both,
            IpAddr::V6(_) => Families::V6,
        };
        match Socket::bind_for(local, families) {
            Err(error) if families == Families::Both && error.kind() == io::ErrorKind::AddrInUse => {
                Socket::bind_for(local, Families::V6)
            }
            bound => bound,
        }
    }

    fn bind_for(local: SocketAddr, families: Families) -> io::Result<Socket> {
        let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let udp = UdpSocket::from(rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?);
        let closed_in_children = ClosedInChildren::new(&udp)?;
        // Errors are ignored: a smaller buffer only reduces the throughput.
        let _ = setsockopt(&udp, sockopt::RcvBuf, &KERNEL_BUFFER);
        let _ = setsockopt(&udp, sockopt::SndBuf, &KERNEL_BUFFER);
        let _ = setsockopt(&udp, sockopt::UdpGroSegment, &true);
        // Fragmentation is forbidden: each segment is one frame, and a path with a smaller MTU is
        // reported. The kernel keeps sending even if an ICMP message reports a smaller path MTU,
        // because the receiver of the report first checks it.
        if families != Families::V6 {
            setsockopt(&udp, sockopt::Ipv4RecvTtl, &true)?;
            setsockopt(&udp, sockopt::Ipv4RecvErr, &true)?;
            set_ip_mtu_discover(&udp, Ipv4PathMtuDiscovery::PROBE)?;
        }
        if families != Families::V4 {
            setsockopt(&udp, sockopt::Ipv6V6Only, &(families == Families::V6))?;
            setsockopt(&udp, sockopt::Ipv6RecvHopLimit, &true)?;
            setsockopt(&udp, sockopt::Ipv6RecvErr, &true)?;
            set_ipv6_mtu_discover(&udp, Ipv6PathMtuDiscovery::PROBE)?;
        }
        match local.ip() {
            IpAddr::V4(address) if address.is_unspecified() => setsockopt(&udp, sockopt::Ipv4PacketInfo, &true)?,
            IpAddr::V6(address) if address.is_unspecified() => setsockopt(&udp, sockopt::Ipv6RecvPacketInfo, &true)?,
            _ => {}
        }
        rustix::net::bind(&udp, &local)?;
        let local = udp.local_addr()?;
        let control =
            nix::cmsg_space!(libc::c_int, libc::c_int, libc::in6_pktinfo, libc::sock_extended_err, libc::sockaddr_in6);
        Ok(Socket { _closed_in_children: closed_in_children, udp, local, families, control, segments: true })
    }

    /// Share of the socket's send buffer that is used by datagrams that have not left the host. 0
    /// if the kernel does not report it.
    pub fn load(&self) -> f64 {
        let held = crate::sys::bytes_not_left(&self.udp).unwrap_or(0);
        getsockopt(&self.udp, sockopt::SndBuf).map_or(0.0, |buffer| held as f64 / buffer.max(1) as f64)
    }

    /// The local address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Address families that the socket serves.
    pub fn families(&self) -> Families {
        self.families
    }

    /// MTU in bytes of the path from a local address to `peer`, as far as the first device
    /// determines it. The handshake finds out whether the rest of the path has the same MTU. To be
    /// called in the network namespace of the socket.
    ///
    /// # Errors
    ///
    /// There is no route from that address to `peer`.
    pub fn mtu_between(own: SocketAddr, peer: SocketAddr) -> io::Result<u32> {
        // The kernel reports the MTU only for a connected socket. For an unspecified local address,
        // the probe uses the address family of the peer.
        let mut own = if own.ip().is_unspecified() { SocketAddr::new(any_address(peer), 0) } else { own };
        own.set_port(0);
        let probe = UdpSocket::bind(own)?;
        probe.connect(peer)?;
        // The routing table is queried only by address. That is not sufficient for a link-local
        // address, which needs the link as well.
        let is_of_a_link = matches!(peer, SocketAddr::V6(peer) if peer.scope_id() > 0);
        if !is_of_a_link && let Ok(Some(mtu)) = super::kernel_route::mtu(peer.ip()) {
            return Ok(mtu);
        }
        let mtu = match peer {
            SocketAddr::V4(_) => nix::sys::socket::getsockopt(&probe, sockopt::IpMtu)?,
            SocketAddr::V6(_) => crate::sys::ipv6_mtu(&probe)?,
        };
        Ok(mtu as u32)
    }

    /// Receives the datagrams of one message.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if none is waiting; otherwise an error that the network
    /// reported about an earlier datagram.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Received> {
        let mut parts = [IoSliceMut::new(into)];
        let fd = self.udp.as_raw_fd();
        let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut self.control), MsgFlags::MSG_DONTWAIT)?;
        let peer = message.address.as_ref().and_then(address_of).ok_or(io::ErrorKind::InvalidData)?;
        let bytes = message.bytes;
        let mut received = Received { bytes, size: bytes, addresses: Addresses { peer, own: None }, ttl: 0 };
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::UdpGroSegments(size) => received.size = size as usize,
                ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => received.ttl = ttl as u8,
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    received.addresses.own = Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr)).into());
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    received.addresses.own = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).to_canonical());
                }
                _ => {}
            }
        }
        Ok(received)
    }

    /// Returns the next error report about a datagram of this socket. `None` if there is none.
    pub fn complaint(&mut self) -> Option<Complaint> {
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        loop {
            let mut quoted = [0; QUOTED];
            let mut parts = [IoSliceMut::new(&mut quoted)];
            let fd = self.udp.as_raw_fd();
            let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut self.control), flags).ok()?;
            let (peer, length) = (message.address.as_ref().and_then(address_of), message.bytes);
            let error = message.cmsgs().ok()?.find_map(|control| match control {
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => Some(error),
                _ => None,
            });
            if let (Some(error), Some(peer)) = (error, peer) {
                let is_local = error.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
                let (errno, mtu) = (error.ee_errno as i32, error.ee_info);
                return Some(Complaint { peer, errno, mtu, quoted, length, is_local });
            }
        }
    }

    /// Sends `bytes` as datagrams of `size` bytes each. The last may be shorter.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if the send buffer has no room. Otherwise the reason for which
    /// this host refuses the datagram, or an error that the network reported about an earlier
    /// datagram.
    pub fn send(&mut self, to: Addresses, bytes: &[u8], size: usize) -> io::Result<()> {
        if self.segments && bytes.len() > size {
            match self.send_message(to, bytes, Some(size as u16)) {
                // The datagrams are too large for the device, or the device does not support the
                // operation. Sending them one by one shows which of both is the case.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE)) => {}
                Err(error) if error.raw_os_error() == Some(libc::EIO) => self.segments = false,
                done => return done,
            }
        }
        bytes.chunks(size.max(1)).try_for_each(|datagram| self.send_message(to, datagram, None))
    }

    fn send_message(&self, to: Addresses, bytes: &[u8], size: Option<u16>) -> io::Result<()> {
        let (mut v4, mut v6) = (None, None);
        match to.own {
            Some(IpAddr::V4(own)) => {
                v4 = Some(libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from(own).to_be() },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                });
            }
            Some(IpAddr::V6(own)) => {
                // A link-local address needs the interface number of its link.
                let scope = if let SocketAddr::V6(peer) = to.peer { peer.scope_id() } else { 0 };
                v6 = Some(libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr { s6_addr: own.octets() },
                    ipi6_ifindex: scope as _,
                });
            }
            None => {}
        }
        let own = v4.as_ref().map(ControlMessage::Ipv4PacketInfo);
        let own = own.or(v6.as_ref().map(ControlMessage::Ipv6PacketInfo));
        let control = match (size.as_ref().map(ControlMessage::UdpGsoSegments), own) {
            (Some(a), Some(b)) => &[a, b][..],
            (Some(a), None) | (None, Some(a)) => &[a][..],
            (None, None) => &[],
        };
        let peer = SockaddrStorage::from(match to.peer {
            SocketAddr::V4(peer) if self.local.is_ipv6() => (peer.ip().to_ipv6_mapped(), peer.port()).into(),
            peer => peer,
        });
        sendmsg(self.udp.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_DONTWAIT, Some(&peer))?;
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}
