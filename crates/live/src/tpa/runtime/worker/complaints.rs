//! Sending a port's datagrams, and handling the errors that this host and the network report about
//! them.

use super::Worker;
use crate::Clock;
use crate::tpa::errno;
use crate::tpa::runtime::socket::{Complaint, QUOTED};
use meshpace_session::connection::{Report, Witness};
use nix::libc;
use std::io;
use std::net::SocketAddr;

/// Number of retries of a datagram. A send fails if the network reported an error about an earlier
/// datagram.
const TRIES: u32 = 4;

impl Worker {
    /// Sends the datagrams that a port has collected, and then its answers to unverified addresses.
    pub(super) fn flush(&mut self, id: u64) {
        self.send_gathered(id);
        self.answer_strangers(id);
    }

    fn send_gathered(&mut self, id: u64) {
        let mut tries = 0;
        while let Some(port) = self.ports.get_mut(&id) {
            port.out.seal();
            let Some(message) = port.out.full.front() else {
                for left in port.departures.drain(..) {
                    // Sending fails if the requesting thread has stopped waiting.
                    let _ = left.try_send(());
                }
                return;
            };
            if port.blocked {
                return;
            }
            let Some((to, bytes, size)) = message.content() else { return };
            match port.socket.send(to, bytes, size) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    port.blocked = true;
                    let _ = self.poller.watch_writable(&port.socket, id, true);
                    return;
                }
                // The kernel reports the network's error about an earlier datagram, to any peer,
                // once and then clears it.
                Err(_) if tries < TRIES => {
                    tries += 1;
                    continue;
                }
                result => {
                    tries = 0;
                    // ECONNREFUSED is a report of the network, never of this host.
                    let errno = result.err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
                    let errno = errno.filter(|errno| *errno != libc::ECONNREFUSED);
                    // All datagrams of a message have the same path: the first datagram's
                    // connection is informed on behalf of the others.
                    let whose = errno
                        .and_then(|_| port.endpoint.sender_of(to.peer, &bytes[..size.min(bytes.len())]))
                        .map(|number| (number, to.peer));
                    let done = port.out.full.pop_front();
                    done.into_iter().for_each(|message| port.out.recycle(message));
                    if let Some(errno) = errno {
                        let mtu = self.complaints(id).filter(|_| errno == libc::EMSGSIZE);
                        self.complain(id, whose, errno::report(errno, mtu.unwrap_or(0)), Witness::Host);
                    }
                }
            }
        }
    }

    /// Informs connections of errors that were reported about datagrams of a port. Returns the MTU
    /// that this host named last when it refused a datagram; `None` if it named none.
    pub(super) fn complaints(&mut self, id: u64) -> Option<u32> {
        let mut here = None;
        while let Some(port) = self.ports.get_mut(&id)
            && let Some(Complaint { peer, errno, mtu, quoted, length, is_local }) = port.socket.complaint()
        {
            if is_local {
                here = Some(mtu).filter(|_| errno == libc::EMSGSIZE).or(here);
            } else {
                let whose = port.endpoint.sender_of(peer, &quoted[..length.min(QUOTED)]);
                self.complain(id, whose.map(|number| (number, peer)), errno::report(errno, mtu), Witness::Network);
            }
        }
        here
    }

    /// Informs the connection that sent the datagram, if it is known. What the connection then
    /// sends waits for the next flush.
    fn complain(&mut self, id: u64, whose: Option<(u64, SocketAddr)>, report: Report, witness: Witness) {
        let (Some(port), Some((number, peer))) = (self.ports.get_mut(&id), whose) else { return };
        let Some(connection) = self.connections.get_mut(&number).filter(|known| known.peer() == peer) else { return };
        let now = Clock.now();
        connection.on_complaint(now, report, witness, &mut port.out);
        // The connection runs in the next iteration of the loop, because the caller that is
        // flushing must still find the connection and its port.
        self.deadlines.set(number, now);
    }
}
