//! What only the kernel's own interface offers: every `unsafe` of the crate, each with the reason why it is sound.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

mod ioctl {
    nix::ioctl_write_int!(
        /// linux/if_tun.h. The kernel takes the address of an `ifreq`, whatever the macro's name says.
        tunsetiff, b'T', 202
    );
}

/// Makes an open `/dev/net/tun` the TUN device `name` (no packet information, one queue), in the network namespace in
/// which it was opened.
pub fn attach_tun(tun: &OwnedFd, name: &str) -> io::Result<()> {
    if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name}: not a device's name")));
    }
    // SAFETY: `ifreq` is a plain C structure of integers; all zero is a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open as long as `tun` is borrowed, and TUNSETIFF reads and writes one `ifreq`, which
    // `request` is, for the length of the call.
    unsafe { ioctl::tunsetiff(tun.as_raw_fd(), &raw mut request as u64) }?;
    Ok(())
}
