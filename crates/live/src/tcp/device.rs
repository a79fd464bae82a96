//! Interface with its own address behind a TUN device. All packets that the host routes to the
//! address belong to this process, so the host's own TCP never interferes.
//!
//! The host reaches the address through the device. Other hosts reach it if this host forwards
//! packets (`net.ipv4.ip_forward`) and they have a route back. The device is removed when the
//! process ends for any reason.

use super::interface::Interface;
use crate::netlink;
use crate::poll::{Poller, Token};
use crate::tun::{self, Tun};
use std::io;
use std::net::Ipv4Addr;

/// A TUN device and the address behind it.
#[derive(Debug)]
pub struct Device {
    tun: Tun,
    address: Ipv4Addr,
    mtu: u16,
}

impl Device {
    /// Creates the device `name`, with the host's address `host` on this side and `address` behind
    /// it. This needs root (or `CAP_NET_ADMIN`) and `/dev/net/tun`.
    ///
    /// # Errors
    /// The process may not create devices (`CAP_NET_ADMIN`, `/dev/net/tun`), or `name` is in use.
    pub fn create(name: &str, host: Ipv4Addr, address: Ipv4Addr, mtu: u16) -> io::Result<Device> {
        if address == host || address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
            let text = format!("{address} cannot stand behind {host}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        // If there is no route to the address, no other device uses it.
        let known = netlink::route(&netlink::socket()?, address.into());
        if known.is_ok_and(|route| route.bits() == 32) {
            let text = format!("{address} is in use: this host has a route to just this address");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        let tun = Tun::create(name)?;
        tun::configure(name, host, address, mtu)?;
        Ok(Device { tun, address, mtu })
    }
}

impl Interface for Device {
    fn address(&self) -> Ipv4Addr {
        self.address
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn watch(&self, poller: &Poller, token: Token) -> io::Result<()> {
        poller.add(&self.tun, token)
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.tun.receive(into)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet)
    }
}
