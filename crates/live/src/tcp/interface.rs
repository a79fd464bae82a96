//! Interface through which the stack receives and sends IP packets.

use crate::clock::Clock;
use crate::poll::{Poller, Token};
use meshpace_core::Time;
use meshpace_transport::tcp::wire::Check;
use std::io;
use std::net::Ipv4Addr;

/// Interface that receives and sends the IPv4 packets of one local address. The default methods are
/// for an address that only this process uses, over a link that delivers whole packets.
pub trait Interface {
    /// Local address.
    fn address(&self) -> Ipv4Addr;
    /// Length of the longest packet in bytes.
    fn mtu(&self) -> u16;
    /// Current time of the connections. An interface may have its own clock, for example in a
    /// simulation. The owner of the stack then calls
    /// [`Stack::take_packets`](super::Stack::take_packets) and
    /// [`Stack::run_timers`](super::Stack::run_timers), and never waits.
    fn now(&self) -> Time {
        Clock.now()
    }
    /// Extent to which checksums are verified.
    fn check(&self) -> Check {
        Check::Full
    }
    /// True if all packets to the address belong to this process. Otherwise only those for
    /// [claimed](Interface::claim) ports do.
    fn owns_address(&self) -> bool {
        true
    }
    /// Reserves a port for this process before the port is used.
    ///
    /// # Errors
    ///
    /// Another program uses the port. The error says which.
    fn claim(&mut self, _port: u16) -> io::Result<()> {
        Ok(())
    }
    /// Releases a reserved port.
    fn release(&mut self, _port: u16) {}
    /// Adds the interface to a poller, which reports arriving packets.
    ///
    /// # Errors
    ///
    /// The system allows no more descriptors.
    fn watch(&self, poller: &Poller, token: Token) -> io::Result<()>;
    /// Receives a packet.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if no packet is waiting; otherwise the device no longer works.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize>;
    /// Sends a packet.
    ///
    /// # Errors
    ///
    /// The packet is longer than the device's MTU, the device's queue is full, or the device no
    /// longer works.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
}
