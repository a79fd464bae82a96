//! What leaves a port, and what this host and the network have against it.

use super::super::connection::complaints::Witness;
use super::super::handshake::{Kind, Opening, Tag, tag_of};
use super::super::socket::{Complaint, QUOTED};
use super::Worker;
use crate::Clock;
use nix::libc;
use std::io;
use std::net::SocketAddr;

/// How often a datagram is tried again that was refused for what the network had said about an earlier one.
const TRIES: u32 = 4;

impl Worker {
    /// Sends what a port has gathered.
    pub(super) fn flush(&mut self, id: u64) {
        let mut tries = 0;
        while let Some(port) = self.ports.get_mut(&id) {
            port.out.seal();
            let Some(message) = port.out.full.front().filter(|_| !port.blocked) else { return };
            let Some((to, bytes, size)) = message.content() else { return };
            match port.socket.send(to, bytes, size) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    port.blocked = true;
                    let _ = self.poller.watch_writable(&port.socket, id, true);
                    return;
                }
                // What the network said about an earlier datagram, to whomever, is told now and then forgotten.
                Err(_) if tries < TRIES => {
                    tries += 1;
                    continue;
                }
                result => {
                    tries = 0;
                    // All of a message goes one way: the first connection of it speaks for the others.
                    let whose = whose(&bytes[..size.min(bytes.len())]);
                    let done = port.out.full.pop_front();
                    done.into_iter().for_each(|message| port.out.recycle(message));
                    // A refusal is the network's, never this host's.
                    let errno = result.err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
                    if let Some(errno) = errno.filter(|errno| *errno != libc::ECONNREFUSED) {
                        let mtu = self.complaints(id).filter(|_| errno == libc::EMSGSIZE);
                        self.complain(id, to.peer, whose, (errno, mtu.unwrap_or(0)), Witness::Host);
                    }
                }
            }
        }
    }

    /// What the network has said about datagrams of a port. Returns the MTU that this host has last named itself, when it
    /// refused a datagram.
    pub(super) fn complaints(&mut self, id: u64) -> Option<u32> {
        let mut here = None;
        while let Some(port) = self.ports.get_mut(&id)
            && let Some(Complaint { peer, errno, mtu, quoted, length, is_local }) = port.socket.complaint()
        {
            if is_local {
                here = Some(mtu).filter(|_| errno == libc::EMSGSIZE).or(here);
            } else {
                self.complain(id, peer, whose(&quoted[..length.min(QUOTED)]), (errno, mtu), Witness::Network);
            }
        }
        here
    }

    /// Tells the connection that the datagram was of, if it is one. What it sends then waits for the next flush.
    fn complain(&mut self, id: u64, peer: SocketAddr, whose: Whose, (errno, mtu): (i32, u32), witness: Witness) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let number = match whose {
            Whose::Peer(tag) => port.by_peer.get(&(peer, tag)).copied(),
            Whose::Ours(tag) => port.by_tag.get(&tag).copied(),
            Whose::Nobody => None,
        };
        let Some((number, connection)) = number.and_then(|number| Some((number, self.connections.get_mut(&number)?)))
        else {
            return;
        };
        if connection.addresses.peer != peer {
            return;
        }
        let now = Clock.now();
        connection.on_complaint(now, errno, mtu, witness, &mut port.out);
        // At the next turn of the loop: whoever is flushing must find the connection and its port.
        self.deadlines.set(number, now);
    }
}

/// Whose a datagram of ours was, by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    /// Of the connection with the peer of this tag.
    Peer(Tag),
    /// The request of the connection with this tag of ours.
    Ours(Tag),
    Nobody,
}

fn whose(datagram: &[u8]) -> Whose {
    match tag_of(datagram) {
        Some(0) => match Opening::decode_head(datagram) {
            Some((Kind::Request, tag)) => Whose::Ours(tag),
            _ => Whose::Nobody,
        },
        Some(tag) => Whose::Peer(tag),
        None => Whose::Nobody,
    }
}
