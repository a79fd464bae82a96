//! Two network namespaces that TUN devices join through a lossy link. This needs root and
//! `/dev/net/tun`.

use super::account::Traffic;
use super::carrier::{Carrier, Passed, Sides};
use super::impairment::{Direction, Impairment};
use super::namespace::Namespace;
use crate::poll::Poller;
use crate::tun::{self, Tun};
use std::io;
use std::net::Ipv4Addr;

/// Addresses of the two sides.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// Name of the device on both sides.
pub const DEVICE: &str = "lossy";

/// A link between two namespaces. Dropping it ends the loop and removes the devices and the
/// namespaces, unless threads or processes are still in the namespaces.
#[derive(Debug)]
pub struct Link {
    carrier: Carrier,
    /// Namespaces of the two sides.
    pub sides: [Namespace; 2],
}

struct Tuns([Tun; 2]);

impl Link {
    /// Creates the link with an MTU in bytes. `there` is the impairment from side 0 to side 1, and
    /// `back` that of the opposite direction. With `recording`, every packet is recorded.
    ///
    /// # Errors
    /// The process may not create namespaces or devices.
    pub fn new(there: Impairment, back: Impairment, mtu: u16, recording: bool) -> io::Result<Link> {
        let sides = [Namespace::new()?, Namespace::new()?];
        let make = |side: usize| {
            sides[side].run(|| {
                // Without this, the kernel would send neighbour discovery over the device.
                let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
                let device = Tun::create(DEVICE)?;
                tun::configure(DEVICE, ADDRESSES[side], ADDRESSES[1 - side], mtu)?;
                Ok::<Tun, io::Error>(device)
            })
        };
        let tuns = Tuns([make(0)?, make(1)?]);
        let directions = [Direction::new(there, 0), Direction::new(back, 1)];
        Ok(Link { carrier: Carrier::start(tuns, directions, recording)?, sides })
    }

    /// Reason why such a link is impossible on this machine, with which tests skip themselves.
    /// `None` if it is possible.
    pub fn missing() -> Option<String> {
        match Link::new(Impairment::default(), Impairment::default(), 1500, false) {
            Ok(_) => None,
            Err(error) => Some(format!("no namespaces joined by TUN devices here ({error}); needs root")),
        }
    }

    /// Counters of the directions from side 0 and from side 1. `None` if the loop does not answer.
    pub fn account(&self) -> Option<[Traffic; 2]> {
        self.carrier.account()
    }

    /// Number of packets that the device of `side` dropped because the link had not yet read the
    /// packets before them.
    ///
    /// # Errors
    /// The kernel does not list the device.
    pub fn overflow(&self, side: usize) -> io::Result<u64> {
        let listing = self.sides[side].run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
        dropped(&listing).ok_or_else(|| io::Error::other(format!("no counters of {DEVICE} in /proc/net/dev")))
    }

    /// Faults of the link, one per line, for a test whose connection has stalled. Empty if the link
    /// carried or dropped every packet as the impairments say.
    pub fn faults(&self) -> String {
        let Some(account) = self.account() else { return "the link's loop does not answer\n".to_owned() };
        let mut faults = String::new();
        for (side, traffic) in account.iter().enumerate() {
            if let Some(fault) = traffic.fault() {
                faults += &format!("from side {side}: {fault}\n");
            }
            match self.overflow(side) {
                Ok(0) => {}
                Ok(dropped) => faults += &format!("from side {side}: the device dropped {dropped} packets unread\n"),
                Err(error) => faults += &format!("from side {side}: {error}\n"),
            }
        }
        faults
    }

    /// Takes the packets that have entered since the start or the last call. Empty without
    /// recording.
    pub fn take_record(&self) -> Vec<Passed> {
        self.carrier.take_record()
    }
}

/// Number of packets dropped at transmission, from the text of `/proc/net/dev`.
fn dropped(listing: &str) -> Option<u64> {
    let line = listing.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    // A line has eight counters of reception, and then bytes, packets, errors and drops of
    // transmission.
    line.split_whitespace().nth(11)?.parse().ok()
}

impl Sides for Tuns {
    const TAKES_PRECEDENCE: bool = true;

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.0[0], 0)?;
        poller.add(&self.0[1], 1)
    }

    fn receive(&mut self, side: usize, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.0[side].receive(into)?;
            // Packets other than IPv4 are ignored, because they must not change the count of
            // packets.
            if length > 0 && into[0] >> 4 == 4 {
                return Ok(length);
            }
        }
    }

    fn send(&self, side: usize, packet: &[u8]) -> io::Result<()> {
        self.0[side].send(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_at_transmission_are_read_from_the_listing() {
        let listing = "Inter-|   Receive  |  Transmit\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n \
                       lossy: 100 2 0 7 0 0 0 0 900 9 0 5 0 0 0 0\n";
        assert_eq!(dropped(listing), Some(5));
        assert_eq!(dropped("lo: 0 0 0 0 0 0 0 0 0 0 0 0\n"), None);
    }
}
