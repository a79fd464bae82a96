//! System calls without a safe interface. All `unsafe` code of the crate is here, each block with
//! the reason why it is sound.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use nix::libc;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io;
use std::mem::size_of;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Priority of the thread that runs the mesh: above all threads without real-time priority, below
/// the kernel's own threads for interrupts (50).
const PRIORITY: libc::c_int = 10;

/// Gives the calling thread real-time priority (sched(7), SCHED_FIFO), so that it runs as soon as
/// it is ready. Threads and processes that it starts do not inherit the priority.
pub fn take_priority() -> io::Result<()> {
    // SAFETY: `sched_param` is a plain C structure of integers; all zero is a value of it.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = PRIORITY;
    // SAFETY: 0 is the calling thread, and the kernel reads one `sched_param`, which `parameter` is, for the length of the
    // call.
    let result =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel kill the program of `command` when the thread that starts it ends, which is
/// also the case when this process is killed.
pub fn die_with_parent(command: &mut Command) {
    // SAFETY: the closure runs in the child between fork and exec and makes one system call, prctl, which allocates nothing
    // and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Binds a packet socket to the device with number `index`. The socket receives all frames that
/// arrive at the device, but not those that it sends itself (packet(7)).
pub fn bind_to_device(socket: impl AsFd, index: u32) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    let yes: libc::c_int = 1;
    // SAFETY: the kernel reads one `c_int`, which `yes` is, for the length of the call.
    let ignored = unsafe {
        libc::setsockopt(
            descriptor,
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const yes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if ignored != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `sockaddr_ll` is a plain C structure of integers; all zero is a value of it.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as libc::c_int;
    // SAFETY: the kernel reads one `sockaddr_ll`, which `address` is, for the length of the call.
    let bound = unsafe {
        libc::bind(descriptor, (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    };
    if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// ETHTOOL_STXCSUM: sets whether the device computes checksums of the packets that it sends.
const SET_CHECKSUMS: u32 = 0x17;

/// Makes the kernel compute checksums before it passes packets to a device of the calling thread's
/// namespace. The kernel then also divides data into segments: a device that computes no checksums
/// receives no more than its MTU at a time.
pub fn fill_checksums(device: &str) -> io::Result<()> {
    let any = UdpSocket::bind(("127.0.0.1", 0))?;
    let mut value = EthtoolValue { command: SET_CHECKSUMS, data: 0 };
    // SAFETY: `ifreq` is a plain C structure; all zero is a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte of the name stays zero.
    for (place, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: SIOCETHTOOL reads one `ifreq` and, through its pointer, one `ethtool_value`; both live for the length of the call.
    let result = unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
