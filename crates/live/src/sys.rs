//! System calls without a safe wrapper, each with the reason why its `unsafe` code is sound.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

mod ioctl {
    nix::ioctl_write_int!(
        /// From linux/if_tun.h. The argument is the address of an `ifreq`, despite the macro's
        /// name.
        tunsetiff, b'T', 202
    );
    nix::ioctl_read_bad!(
        /// From asm-generic/ioctls.h: number of bytes that were passed to a socket and have not
        /// left the host.
        tiocoutq, nix::libc::TIOCOUTQ, nix::libc::c_int
    );
}

/// Network layer of a device of `/dev/net/tun`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// IP packets: a TUN device.
    Packets,
    /// Ethernet frames: a TAP device.
    Frames,
}

/// Makes an open `/dev/net/tun` the device `name` (no packet information, one queue). The device is
/// in the network namespace in which the file was opened.
///
/// # Errors
/// The error of the kernel: missing rights, or a name that is in use or too long.
pub fn attach_tun(tun: &OwnedFd, name: &str, layer: Layer) -> io::Result<()> {
    if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name}: not a device's name")));
    }
    // SAFETY: `ifreq` is a plain C structure of integers; all zero is a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let kind = match layer {
        Layer::Packets => libc::IFF_TUN,
        Layer::Frames => libc::IFF_TAP,
    };
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open as long as `tun` is borrowed, and TUNSETIFF reads and writes
    // one `ifreq`, which `request` is, for the length of the call.
    unsafe { ioctl::tunsetiff(tun.as_raw_fd(), &raw mut request as nix::sys::ioctl::ioctl_param_type) }?;
    Ok(())
}

/// Bytes of kernel memory that a socket's datagrams use until they have left the host.
///
/// # Errors
/// The error of the kernel.
pub fn bytes_not_left(socket: &impl AsRawFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and TIOCOUTQ writes one
    // `int`, which `bytes` is.
    unsafe { ioctl::tiocoutq(socket.as_raw_fd(), &raw mut bytes) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// The kernel's information about a TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Number of retransmitted segments.
    pub retransmissions: u32,
    /// Number of acknowledged bytes, including SYN and FIN.
    pub bytes_acked: u64,
    /// Number of segments with payload that were sent, including retransmissions.
    pub data_segments_out: u32,
}

impl TcpInfo {
    /// Decodes the kernel's bytes.
    pub(crate) fn of(bytes: &[u8; 256]) -> TcpInfo {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let bytes_acked = bytes[120..].first_chunk::<8>().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        TcpInfo { rtt_us: word(68), retransmissions: word(100), bytes_acked, data_segments_out: word(156) }
    }
}

/// Asks the kernel about a TCP connection (tcp(7), TCP_INFO). The field offsets are those of
/// `struct tcp_info` in linux/tcp.h, which only grows at its end. An older kernel leaves fields
/// that it does not know at zero.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn tcp_info(socket: &impl AsRawFd) -> io::Result<TcpInfo> {
    let mut bytes = [0u8; 256];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most
    // `length` bytes to `bytes`, which has as many and outlives the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo::of(&bytes))
}

/// MTU in bytes of the path of a connected IPv6 socket (ipv6(7), IPV6_MTU).
///
/// # Errors
///
/// The socket is not connected.
pub fn ipv6_mtu(socket: &impl AsRawFd) -> io::Result<libc::c_int> {
    let (mut mtu, mut length): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most
    // `length` bytes to `mtu`, which has as many and outlives the call.
    let result = unsafe {
        let value = (&raw mut mtu).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU, value, &raw mut length)
    };
    if result == 0 { Ok(mtu) } else { Err(io::Error::last_os_error()) }
}
