//! A UDP socket that takes and gives many datagrams per system call and tells what the network said about them.
//!
//! Consecutive datagrams of one size for one peer leave as one message that the kernel cuts up (UDP GSO), and arrive as one
//! that it has put together (UDP GRO). Pacing is not affected: what is due at different times is not in one message.

use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt, sockopt,
};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Most bytes in one message: what a UDP datagram holds.
const MOST_BYTES: usize = 65507;

/// Most datagrams in one message: the kernel's limit (UDP_MAX_SEGMENTS was 64 before Linux 6.9).
const MOST_DATAGRAMS: usize = 64;

/// Room the kernel is asked for, so that a burst finds place while this process is not running.
const KERNEL_BUFFER: usize = 4 << 20;

/// A datagram's sender or receiver, and its own address where the socket is bound to all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// The other end.
    pub peer: SocketAddrV4,
    /// Ours; none if the socket has just one.
    pub own: Option<Ipv4Addr>,
}

/// Datagrams that arrived together: all of `size` bytes but the last.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes of all.
    pub bytes: usize,
    /// Bytes of each but the last.
    pub size: usize,
    /// Between whom.
    pub addresses: Addresses,
    /// Time to live they arrived with; 0 if the kernel did not say.
    pub ttl: u8,
}

/// What the network reported about datagrams sent to `peer`.
#[derive(Clone, Copy, Debug)]
pub struct Complaint {
    /// To whom they were.
    pub peer: SocketAddrV4,
    /// The error as errno.
    pub errno: i32,
    /// For a datagram that is too big, the MTU in bytes.
    pub mtu: u32,
}

/// The socket.
#[derive(Debug)]
pub struct Socket {
    udp: UdpSocket,
    local: SocketAddrV4,
    control: Vec<u8>,
    /// The kernel cuts messages up.
    segments: bool,
}

impl Socket {
    /// Bound to `local`.
    pub fn bind(local: SocketAddrV4) -> io::Result<Socket> {
        let udp = UdpSocket::bind(local)?;
        udp.set_nonblocking(true)?;
        let SocketAddr::V4(local) = udp.local_addr()? else { return Err(io::ErrorKind::Unsupported.into()) };
        // What the kernel does not give: less room is less speed, nothing else.
        let _ = setsockopt(&udp, sockopt::RcvBuf, &KERNEL_BUFFER);
        let _ = setsockopt(&udp, sockopt::SndBuf, &KERNEL_BUFFER);
        let _ = setsockopt(&udp, sockopt::UdpGroSegment, &true);
        setsockopt(&udp, sockopt::Ipv4RecvTtl, &true)?;
        setsockopt(&udp, sockopt::Ipv4RecvErr, &true)?;
        if local.ip().is_unspecified() {
            setsockopt(&udp, sockopt::Ipv4PacketInfo, &true)?;
        }
        // One segment, one frame: a path too narrow is reported, not hidden by fragments.
        set_ip_mtu_discover(&udp, Ipv4PathMtuDiscovery::DO)?;
        let control =
            nix::cmsg_space!(libc::c_int, libc::c_int, libc::in_pktinfo, libc::sock_extended_err, libc::sockaddr_in);
        Ok(Socket { udp, local, control, segments: true })
    }

    /// Its own address.
    pub fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// The MTU of the way from an own address to `peer` in bytes, as far as this host knows. To be asked in the network
    /// namespace of the socket.
    pub fn mtu_between(own: Ipv4Addr, peer: SocketAddrV4) -> io::Result<u32> {
        // Only a connected socket can be asked.
        let probe = UdpSocket::bind((own, 0))?;
        probe.connect(peer)?;
        Ok(nix::sys::socket::getsockopt(&probe, sockopt::IpMtu)? as u32)
    }

    /// Takes what is there; [`io::ErrorKind::WouldBlock`] if nothing is.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Received> {
        let mut parts = [IoSliceMut::new(into)];
        let message =
            recvmsg::<SockaddrIn>(self.udp.as_raw_fd(), &mut parts, Some(&mut self.control), MsgFlags::MSG_DONTWAIT)?;
        let peer = message.address.ok_or(io::ErrorKind::InvalidData)?.into();
        let bytes = message.bytes;
        let mut received = Received { bytes, size: bytes, addresses: Addresses { peer, own: None }, ttl: 0 };
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::UdpGroSegments(size) => received.size = size as usize,
                ControlMessageOwned::Ipv4Ttl(ttl) => received.ttl = ttl as u8,
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    received.addresses.own = Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr)));
                }
                _ => {}
            }
        }
        Ok(received)
    }

    /// The next complaint of the network; none if there is none.
    pub fn complaint(&mut self) -> Option<Complaint> {
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        loop {
            let message = recvmsg::<SockaddrIn>(self.udp.as_raw_fd(), &mut [], Some(&mut self.control), flags).ok()?;
            let peer = message.address;
            for control in message.cmsgs().ok()? {
                if let (ControlMessageOwned::Ipv4RecvErr(error, _), Some(peer)) = (control, peer) {
                    return Some(Complaint { peer: peer.into(), errno: error.ee_errno as i32, mtu: error.ee_info });
                }
            }
        }
    }

    /// Sends `bytes` as datagrams of `size` bytes each, the last perhaps shorter.
    pub fn send(&mut self, to: Addresses, bytes: &[u8], size: usize) -> io::Result<()> {
        if self.segments && bytes.len() > size {
            match self.send_message(to, bytes, Some(size as u16)) {
                // Too big for the device, or the device cannot: one by one, which says which it is.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE)) => {}
                Err(error) if error.raw_os_error() == Some(libc::EIO) => self.segments = false,
                done => return done,
            }
        }
        bytes.chunks(size.max(1)).try_for_each(|datagram| self.send_message(to, datagram, None))
    }

    fn send_message(&self, to: Addresses, bytes: &[u8], size: Option<u16>) -> io::Result<()> {
        let info = to.own.map(|own| libc::in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: libc::in_addr { s_addr: u32::from(own).to_be() },
            ipi_addr: libc::in_addr { s_addr: 0 },
        });
        let control: [Option<ControlMessage>; 2] =
            [size.as_ref().map(ControlMessage::UdpGsoSegments), info.as_ref().map(ControlMessage::Ipv4PacketInfo)];
        let control = match control {
            [Some(a), Some(b)] => &[a, b][..],
            [Some(a), None] | [None, Some(a)] => &[a][..],
            [None, None] => &[],
        };
        let peer = SockaddrIn::from(to.peer);
        sendmsg(self.udp.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_DONTWAIT, Some(&peer))?;
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

/// Datagrams on their way to the socket, gathered into messages.
#[derive(Debug, Default)]
pub struct Message {
    to: Option<Addresses>,
    bytes: Vec<u8>,
    /// Bytes of each datagram but the last.
    size: usize,
    count: usize,
    /// The last one was shorter: nothing may follow.
    closed: bool,
}

impl Message {
    /// Whether a datagram of `length` bytes to `to` still fits.
    pub fn takes(&self, to: Addresses, length: usize) -> bool {
        self.count == 0
            || (self.to == Some(to)
                && !self.closed
                && length <= self.size
                && self.count < MOST_DATAGRAMS
                && self.bytes.len() + length <= MOST_BYTES)
    }

    /// Adds one that fits; its bytes are appended by `write`.
    pub fn push(&mut self, to: Addresses, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if self.count == 0 {
            (self.to, self.size) = (Some(to), length);
        }
        self.closed = length < self.size;
        self.count += 1;
        let before = self.bytes.len();
        write(&mut self.bytes);
        debug_assert_eq!(self.bytes.len() - before, length, "the length that was announced");
    }

    /// To whom, the bytes and the size of each datagram; none if empty.
    pub fn content(&self) -> Option<(Addresses, &[u8], usize)> {
        self.to.filter(|_| self.count > 0).map(|to| (to, &self.bytes[..], self.size))
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.to, self.size, self.count, self.closed) = (None, 0, 0, false);
    }
}
