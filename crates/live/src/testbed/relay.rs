//! UDP relay over loopback that delays, loses and duplicates datagrams. It is a thread of this
//! process and needs no privileges.

use super::carrier::{Carrier, Passed, Sides};
use super::impairment::{Direction, Impairment};
use crate::poll::Poller;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// A relay between one client and a server. The client sends to [`Relay::address`].
#[derive(Debug)]
pub struct Relay {
    carrier: Carrier,
    address: SocketAddr,
}

struct Sockets {
    /// Socket to which the client sends, side 0.
    client_socket: UdpSocket,
    /// Address of the client: the one that sent to the socket last.
    client: Option<SocketAddr>,
    /// Socket that is connected to the server, side 1.
    server_socket: UdpSocket,
}

impl Relay {
    /// Starts a relay to `server`. `to_server` is the impairment of datagrams from the client to
    /// the server, and `to_client` that of the opposite direction.
    ///
    /// # Errors
    /// A socket or the thread cannot be created.
    pub fn new(server: SocketAddr, to_server: Impairment, to_client: Impairment, recording: bool) -> io::Result<Relay> {
        let client_socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = client_socket.local_addr()?;
        let server_socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        server_socket.connect(server)?;
        client_socket.set_nonblocking(true)?;
        server_socket.set_nonblocking(true)?;
        let sockets = Sockets { client_socket, client: None, server_socket };
        let directions = [Direction::new(to_server, 0), Direction::new(to_client, 1)];
        Ok(Relay { carrier: Carrier::start(sockets, directions, recording)?, address })
    }

    /// Address to which the client has to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets whether all datagrams in both directions are lost from now on.
    pub fn set_down(&self, down: bool) {
        self.carrier.set_down(down);
    }

    /// Takes the datagrams that have entered since the start or the last call, including those that
    /// were then lost. Empty without recording.
    pub fn take_record(&self) -> Vec<Passed> {
        self.carrier.take_record()
    }
}

impl Sides for Sockets {
    const TAKES_PRECEDENCE: bool = false;

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.add(&self.client_socket, 0)?;
        poller.add(&self.server_socket, 1)
    }

    fn receive(&mut self, side: usize, into: &mut [u8]) -> io::Result<usize> {
        if side == 1 {
            return self.server_socket.recv(into);
        }
        let (length, client) = self.client_socket.recv_from(into)?;
        self.client = Some(client);
        Ok(length)
    }

    fn send(&self, side: usize, packet: &[u8]) -> io::Result<()> {
        match (side, self.client) {
            (1, _) => self.server_socket.send(packet).map(|_| ()),
            (_, Some(client)) => self.client_socket.send_to(packet, client).map(|_| ()),
            // There is no client yet to which the packet could be sent.
            (_, None) => Ok(()),
        }
    }
}
