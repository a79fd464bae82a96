//! When TCP packets pass a device.

use meshpace_live::testbed::Namespace;
use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use rustix::time::{ClockId, clock_gettime};
use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// A TCP packet that passed.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When, ns.
    pub at: i64,
    /// Where it goes.
    pub to: Ipv4Addr,
    /// Bytes of payload.
    pub payload: usize,
    /// Number of its first byte.
    pub sequence: u32,
    /// The number that it acknowledges.
    pub acknowledges: u32,
}

/// The clock of the time stamps, ns.
pub fn now() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Writes down when the kernel hands TCP packets to the devices of a network or takes them from there, until told to stop.
pub fn capture(side: &Namespace, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<Packet>> {
    let tap = side
        .run(|| socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll))
        .unwrap();
    setsockopt(&tap, sockopt::ReceiveTimestampns, &true).unwrap();
    // Room for the packets of some seconds, in which a busy machine may not run the reader.
    setsockopt(&tap, sockopt::RcvBufForce, &(8 << 20)).unwrap();
    setsockopt(&tap, sockopt::ReceiveTimeout, &TimeVal::milliseconds(50)).unwrap();
    let stop = stop.clone();
    std::thread::spawn(move || {
        let mut packets = Vec::new();
        let mut bytes = [0; 2048];
        let mut space = cmsg_space!(TimeSpec);
        while !stop.load(Relaxed) {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            let Ok(message) = recvmsg::<()>(tap.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty()) else {
                continue;
            };
            let stamp = message.cmsgs().unwrap().find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp.num_nanoseconds()),
                _ => None,
            });
            let packet = &bytes;
            // IPv4 without options, TCP (RFC 791, RFC 9293).
            if packet[0] != 0x45 || packet[9] != 6 {
                continue;
            }
            let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            let word = |at: usize| u32::from_be_bytes(*packet[at..].first_chunk().unwrap());
            packets.push(Packet {
                at: stamp.unwrap(),
                to: Ipv4Addr::from(word(16)),
                payload: length - 20 - usize::from(packet[32] >> 4) * 4,
                sequence: word(24),
                acknowledges: word(28),
            });
        }
        packets
    })
}

/// The middle of some values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
