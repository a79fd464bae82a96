//! Addresses as C has them.

use crate::fault::Errno;
use libc::{c_int, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The address a caller points at.
///
/// # Safety
///
/// `address` is null or points at `length` readable bytes.
pub(crate) unsafe fn address_in(address: *const sockaddr, length: socklen_t) -> Result<SocketAddr, Errno> {
    if address.is_null() {
        return Err(Errno::from(libc::EFAULT));
    }
    if (length as usize) < size_of::<sockaddr_in>() {
        return Err(Errno::from(libc::EINVAL));
    }
    let whole = address;
    // SAFETY: there are enough bytes by the test above and the caller's promise; any bytes are a `sockaddr_in`, and reading
    // does not ask for its alignment.
    let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
    match c_int::from(address.sin_family) {
        libc::AF_INET => {
            let host = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Ok(SocketAddrV4::new(host, u16::from_be(address.sin_port)).into())
        }
        libc::AF_INET6 if (length as usize) < size_of::<sockaddr_in6>() => Err(Errno::from(libc::EINVAL)),
        libc::AF_INET6 => {
            // SAFETY: as above, for the longer address, by the test of the length.
            let address = unsafe { whole.cast::<sockaddr_in6>().read_unaligned() };
            let (host, port) = (Ipv6Addr::from(address.sin6_addr.s6_addr), u16::from_be(address.sin6_port));
            Ok(SocketAddrV6::new(host, port, address.sin6_flowinfo, address.sin6_scope_id).into())
        }
        _ => Err(Errno::from(libc::EAFNOSUPPORT)),
    }
}

/// Writes an address where a caller wants it, as much as fits, and its whole length.
///
/// # Safety
///
/// `address` is null, or `length` points at a length and `address` at that many writable bytes.
pub(crate) unsafe fn address_out(from: SocketAddr, address: *mut sockaddr, length: *mut socklen_t) {
    if address.is_null() || length.is_null() {
        return;
    }
    let (v4, v6);
    let (full, size) = match from {
        SocketAddr::V4(from) => {
            v4 = sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: from.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*from.ip()).to_be() },
                sin_zero: [0; 8],
            };
            ((&raw const v4).cast::<u8>(), size_of::<sockaddr_in>())
        }
        SocketAddr::V6(from) => {
            v6 = sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: from.port().to_be(),
                sin6_flowinfo: from.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: from.ip().octets() },
                sin6_scope_id: from.scope_id(),
            };
            ((&raw const v6).cast::<u8>(), size_of::<sockaddr_in6>())
        }
    };
    // SAFETY: the caller's promise: the length may be read and written, and not more bytes are written than it says. Source
    // and destination are different objects.
    unsafe {
        let room = (*length as usize).min(size);
        std::ptr::copy_nonoverlapping(full, address.cast::<u8>(), room);
        *length = size as socklen_t;
    }
}
