//! When data segments leave a device.

use meshpace_live::testbed::Namespace;
use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// Data segments that left, by destination: when, in ns, and with how much payload.
pub type Departures = BTreeMap<Ipv4Addr, Vec<(i64, usize)>>;

/// Writes down when the kernel hands data segments to the device, until told to stop.
pub fn capture(side: &Namespace, stop: &Arc<AtomicBool>) -> JoinHandle<Departures> {
    let tap = side
        .run(|| socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll))
        .unwrap();
    setsockopt(&tap, sockopt::ReceiveTimestampns, &true).unwrap();
    setsockopt(&tap, sockopt::ReceiveTimeout, &TimeVal::milliseconds(50)).unwrap();
    let stop = stop.clone();
    std::thread::spawn(move || {
        let mut departures = Departures::new();
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
            let payload =
                usize::from(u16::from_be_bytes([packet[2], packet[3]])) - 20 - usize::from(packet[32] >> 4) * 4;
            let to = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
            if payload > 0 {
                departures.entry(to).or_default().push((stamp.unwrap(), payload));
            }
        }
        departures
    })
}
