//! Where IP packets come from and go to.

use crate::clock::Clock;
use crate::poll::{Poller, Token};
use meshpace_core::Time;
use meshpace_transport::tcp::wire::Check;
use std::io;
use std::net::Ipv4Addr;

/// Something that carries IPv4 packets of one address of ours. What has a default is as for an address that nobody shares,
/// over a link that brings whole packets.
pub trait Interface {
    /// Our address.
    fn address(&self) -> Ipv4Addr;
    /// The longest packet in bytes.
    fn mtu(&self) -> u16;
    /// The time for the connections: an interface of a world of its own has a clock of its own, whose owner calls
    /// [`Stack::take_packets`](super::Stack::take_packets) and [`Stack::run_timers`](super::Stack::run_timers) and never waits.
    fn now(&self) -> Time {
        Clock.now()
    }
    /// The extent to which checksums are verified.
    fn check(&self) -> Check {
        Check::Full
    }
    /// True if everything that is sent to the address is ours. If not, only [claimed](Interface::claim) ports are.
    fn owns_address(&self) -> bool {
        true
    }
    /// Takes a port for ourselves before it is used.
    ///
    /// # Errors
    ///
    /// Somebody else has it: the error says who.
    fn claim(&mut self, _port: u16) -> io::Result<()> {
        Ok(())
    }
    /// Gives a port back.
    fn release(&mut self, _port: u16) {}
    /// Watches for packets.
    ///
    /// # Errors
    ///
    /// The system takes no more descriptors.
    fn watch(&self, poller: &Poller, token: Token) -> io::Result<()>;
    /// Takes a packet.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if there is none; else the device is gone.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize>;
    /// Sends a packet.
    ///
    /// # Errors
    ///
    /// The packet is longer than the device's MTU, its queue is full, or the device is gone.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
}
