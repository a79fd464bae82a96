//! Captures the times at which TCP packets pass a device.

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

/// A captured TCP packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Time at which it passed, ns.
    pub at: i64,
    /// Destination address.
    pub to: Ipv4Addr,
    /// Payload in bytes.
    pub payload: usize,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledges: u32,
}

/// Current time of the clock of the time stamps, ns.
pub fn now() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Records the time at which the kernel passes TCP packets to the devices of a network or takes
/// packets from them, until `stop` is set.
pub fn capture(side: &Namespace, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<Packet>> {
    let tap = side
        .run(|| socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll))
        .unwrap();
    setsockopt(&tap, sockopt::ReceiveTimestampns, &true).unwrap();
    // The buffer holds the packets of some seconds, during which a busy machine may not run the
    // reader.
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
            // Only IPv4 without options and TCP are captured (RFC 791, RFC 9293).
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

/// Median of the values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
