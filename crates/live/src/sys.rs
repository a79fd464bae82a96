//! System calls that have no safe wrapper: every `unsafe` of the crate, each with the reason why it is sound.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

mod ioctl {
    nix::ioctl_write_int!(
        /// linux/if_tun.h. The kernel takes the address of an `ifreq`, whatever the macro's name says.
        tunsetiff, b'T', 202
    );
    nix::ioctl_read_bad!(
        /// asm-generic/ioctls.h: bytes that a socket has been given and that have not left.
        tiocoutq, nix::libc::TIOCOUTQ, nix::libc::c_int
    );
}

/// Layer of the network that a device of `/dev/net/tun` carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// IP packets: TUN.
    Packets,
    /// Ethernet frames: TAP.
    Frames,
}

/// Makes an open `/dev/net/tun` the device `name` (no packet information, one queue), in the network namespace in
/// which it was opened.
///
/// # Errors
/// The kernel's: no rights, a name that is taken or too long.
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
    // SAFETY: the descriptor is open as long as `tun` is borrowed, and TUNSETIFF reads and writes one `ifreq`, which
    // `request` is, for the length of the call.
    unsafe { ioctl::tunsetiff(tun.as_raw_fd(), &raw mut request as nix::sys::ioctl::ioctl_param_type) }?;
    Ok(())
}

/// Bytes of the kernel's memory that datagrams hold which a socket was given and which have not left.
///
/// # Errors
/// The kernel's.
pub fn bytes_not_left(socket: &impl AsRawFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as `socket` is borrowed, and TIOCOUTQ writes one `int`, which `bytes` is.
    unsafe { ioctl::tiocoutq(socket.as_raw_fd(), &raw mut bytes) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Information that the kernel gives about one of its TCP connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Bytes acknowledged, SYN and FIN included.
    pub bytes_acked: u64,
    /// Segments with payload sent, those again included.
    pub data_segments_out: u32,
}

impl TcpInfo {
    /// What these bytes of the kernel say.
    pub(crate) fn of(bytes: &[u8; 256]) -> TcpInfo {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let bytes_acked = bytes[120..].first_chunk::<8>().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        TcpInfo { rtt_us: word(68), retransmissions: word(100), bytes_acked, data_segments_out: word(156) }
    }
}

/// Asks the kernel about a TCP connection (tcp(7), TCP_INFO). The places are those of `struct tcp_info` in linux/tcp.h, which
/// only grows at its end; an older kernel leaves what it does not know at zero.
///
/// # Errors
/// If it is no TCP socket.
pub fn tcp_info(socket: &impl AsRawFd) -> io::Result<TcpInfo> {
    let mut bytes = [0u8; 256];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most `length` bytes to `bytes`,
    // which has as many and outlives the call.
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

/// The MTU of the way that a connected IPv6 socket's datagrams take, in bytes (ipv6(7), IPV6_MTU).
///
/// # Errors
///
/// The socket is not connected.
pub fn ipv6_mtu(socket: &impl AsRawFd) -> io::Result<libc::c_int> {
    let (mut mtu, mut length): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most `length` bytes to `mtu`, which
    // has as many and outlives the call.
    let result = unsafe {
        let value = (&raw mut mtu).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU, value, &raw mut length)
    };
    if result == 0 { Ok(mtu) } else { Err(io::Error::last_os_error()) }
}
