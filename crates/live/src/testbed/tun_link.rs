//! Two network namespaces joined by TUN devices through a lossy link. Needs root and `/dev/net/tun`.

use super::carrier::{Carrier, Passed, Sides};
use super::impairment::{Direction, Impairment};
use super::namespace::Namespace;
use crate::poll::Poller;
use crate::tun::{self, Tun};
use std::io;
use std::net::Ipv4Addr;

/// The addresses of the two sides.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// The device's name on both sides.
pub const DEVICE: &str = "lossy";

/// The link. Dropping it ends the loop and removes devices and namespaces, unless threads or processes still live in those.
#[derive(Debug)]
pub struct Link {
    carrier: Carrier,
    /// The networks of the two sides.
    pub sides: [Namespace; 2],
}

struct Tuns([Tun; 2]);

impl Link {
    /// Sets it up with an MTU in bytes; `there` is from side 0 to side 1. With `recording` every packet is kept.
    ///
    /// # Errors
    /// If the process may make neither namespaces nor devices.
    pub fn new(there: Impairment, back: Impairment, mtu: u16, recording: bool) -> io::Result<Link> {
        let sides = [Namespace::new()?, Namespace::new()?];
        let make = |side: usize| {
            sides[side].run(|| {
                // Otherwise the kernel sends neighbour discovery over it.
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

    /// Why there is no such link on this machine, for tests to say so and stop; none if there can be.
    pub fn missing() -> Option<String> {
        match Link::new(Impairment::default(), Impairment::default(), 1500, false) {
            Ok(_) => None,
            Err(error) => Some(format!("no namespaces joined by TUN devices here ({error}); needs root")),
        }
    }

    /// Takes the packets that have entered since the start or the last call; none without recording.
    pub fn take_record(&self) -> Vec<Passed> {
        self.carrier.take_record()
    }
}

impl Sides for Tuns {
    fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.0[0], 0)?;
        poller.add(&self.0[1], 1)
    }

    fn receive(&mut self, side: usize, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.0[side].receive(into)?;
            // What is not IPv4 is none of our business and must not shift the count.
            if length > 0 && into[0] >> 4 == 4 {
                return Ok(length);
            }
        }
    }

    fn send(&self, side: usize, packet: &[u8]) -> io::Result<()> {
        self.0[side].send(packet)
    }
}
