//! A lossy link for UDP within one process, over loopback, that needs no rights.

use super::carrier::{Carrier, Passed, Sides};
use super::impairment::{Direction, Impairment};
use crate::poll::Poller;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// A relay between one client and a server: the client sends to [`Relay::address`].
#[derive(Debug)]
pub struct Relay {
    carrier: Carrier,
    address: SocketAddr,
}

struct Sockets {
    front: UdpSocket,
    /// The client: whoever sent to the front last.
    client: Option<SocketAddr>,
    back: UdpSocket,
}

impl Relay {
    /// Starts one in front of `server`; `there` is from the client to the server.
    ///
    /// # Errors
    /// If no socket can be had.
    pub fn new(server: SocketAddr, there: Impairment, back: Impairment, recording: bool) -> io::Result<Relay> {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = front.local_addr()?;
        let behind = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        behind.connect(server)?;
        front.set_nonblocking(true)?;
        behind.set_nonblocking(true)?;
        let sockets = Sockets { front, client: None, back: behind };
        let directions = [Direction::new(there, 0), Direction::new(back, 1)];
        Ok(Relay { carrier: Carrier::start(sockets, directions, recording)?, address })
    }

    /// Where the client is to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has entered since the start or the last call; nothing without recording.
    pub fn take_record(&self) -> Vec<Passed> {
        self.carrier.take_record()
    }
}

impl Sides for Sockets {
    fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.front, 0)?;
        poller.add(&self.back, 1)
    }

    fn receive(&mut self, side: usize, into: &mut [u8]) -> io::Result<usize> {
        if side == 1 {
            return self.back.recv(into);
        }
        let (length, client) = self.front.recv_from(into)?;
        self.client = Some(client);
        Ok(length)
    }

    fn send(&self, side: usize, packet: &[u8]) -> io::Result<()> {
        match (side, self.client) {
            (1, _) => self.back.send(packet).map(|_| ()),
            (_, Some(client)) => self.front.send_to(packet, client).map(|_| ()),
            (_, None) => Ok(()),
        }
    }
}
