//! Where programs send datagrams into a tunnel: a UDP port of this machine. Each of its clients, by address and port, has a flow of its own, so
//! that what comes back goes to who has asked.

use super::Refusal;
use super::counters::Counters;
use super::dialing::Dialing;
use super::forward::UdpForward;
use super::session::{Flow, Sink};
use crate::{Clock, accept};
use meshpace_core::{Duration, Time};
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// A flow through which nothing has passed for so long is over, as RFC 4787 recommends it to NATs.
pub(super) const IDLE: Duration = Duration::from_secs(300);
/// How often that is looked at.
pub(super) const LOOK: std::time::Duration = std::time::Duration::from_secs(1);
/// How long datagrams are passed over after there was no session or no way to the target.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest datagram of UDP, and a byte.
const LONGEST: usize = 65_536;

/// A client of the port.
#[derive(Debug)]
struct Client {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    /// When something passed last, nanoseconds.
    used: AtomicU64,
    /// Why the far end has ended the flow; 0 if it has not, or says nothing.
    refused: AtomicU8,
}

impl Client {
    fn touch(&self) {
        self.used.store(Clock.now().0, Ordering::Relaxed);
    }

    fn used(&self) -> Time {
        Time(self.used.load(Ordering::Relaxed))
    }
}

impl Sink for Client {
    fn deliver(&self, datagram: &[u8]) {
        self.touch();
        // A client that is gone, or reads nothing, loses it as it would have without a tunnel.
        let to = SockaddrStorage::from(self.address);
        let _ = sendto(self.socket.as_raw_fd(), datagram, &to, MsgFlags::MSG_DONTWAIT);
    }

    fn on_end(&self, why: Option<Refusal>) {
        self.refused.store(why.map_or(0, |why| why as u8), Ordering::Relaxed);
    }
}

/// A port that takes datagrams.
#[derive(Debug)]
pub(super) struct Inlet {
    socket: Arc<UdpSocket>,
    forward: UdpForward,
    dialing: Dialing,
    counters: Counters,
    complain: fn(&str),
    clients: BTreeMap<SocketAddr, (Flow, Arc<Client>)>,
    /// Nothing is tried before.
    not_before: Time,
    /// What was complained of last.
    complained: String,
}

impl Inlet {
    /// Takes what comes to `socket` once it runs.
    ///
    /// # Errors
    ///
    /// None: the result is that of `std::net`.
    pub(super) fn new(
        socket: UdpSocket,
        forward: &UdpForward,
        dialing: &Dialing,
        counters: &Counters,
        complain: fn(&str),
    ) -> io::Result<Inlet> {
        socket.set_read_timeout(Some(LOOK))?;
        Ok(Inlet {
            socket: Arc::new(socket),
            forward: forward.clone(),
            dialing: dialing.clone(),
            counters: counters.clone(),
            complain,
            clients: BTreeMap::new(),
            not_before: Time::ZERO,
            complained: String::new(),
        })
    }

    /// A handle to its socket.
    ///
    /// # Errors
    ///
    /// There is no descriptor for it.
    pub(super) fn socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone().map(OwnedFd::from)
    }

    /// Until it is closed, which whoever shuts its socket down says first. Then the flows of its clients are over.
    pub(super) fn run(mut self, is_closed: &AtomicBool) {
        let mut buffer = vec![0; LONGEST];
        let mut looked = Clock.now();
        loop {
            let came = self.socket.recv_from(&mut buffer);
            if is_closed.load(Ordering::Acquire) {
                return;
            }
            match came {
                Ok((length, from)) => self.take(&buffer[..length], from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An ICMP message about what was sent to a client, say.
                Err(_) => accept::pause(),
            }
            let now = Clock.now();
            if now.since(looked) >= Duration(LOOK.as_nanos() as u64) {
                looked = now;
                self.clients.retain(|_, (flow, client)| flow.is_open() && now.since(client.used()) < IDLE);
            }
        }
    }

    /// A datagram from a client.
    fn take(&mut self, bytes: &[u8], from: SocketAddr) {
        if let Some((flow, client)) = self.clients.get(&from) {
            client.touch();
            // Where the far end seems to have begun anew there is another session, or will be.
            if !flow.is_doubted() && flow.send(bytes).is_ok() {
                return;
            }
            let refused = client.refused.load(Ordering::Relaxed);
            self.clients.remove(&from);
            if refused != 0 {
                self.fail(&format!("{}: {}", self.forward.target, Refusal::of(refused)));
            }
        }
        let now = Clock.now();
        let sent = now >= self.not_before
            && match self.begin(from).and_then(|(flow, client)| flow.send(bytes).map(|()| (flow, client))) {
                Ok(begun) => {
                    self.clients.insert(from, begun);
                    true
                }
                Err(error) => {
                    self.fail(&format!("{}: {error}", self.forward.target));
                    false
                }
            };
        if !sent {
            self.counters.datagrams_lost(1);
        }
    }

    /// Says so, once, and lets some time pass.
    fn fail(&mut self, what: &str) {
        self.not_before = Clock.now() + PAUSE;
        if self.complained != what {
            (self.complain)(what);
            self.complained = what.to_owned();
        }
    }

    /// A flow for a client. If there are too many, that of the one that was silent for longest is over.
    fn begin(&mut self, address: SocketAddr) -> io::Result<(Flow, Arc<Client>)> {
        let (link, _) = self.dialing.session(&self.counters, self.complain)?;
        let (socket, used) = (Arc::clone(&self.socket), AtomicU64::new(Clock.now().0));
        let client = Arc::new(Client { socket, address, used, refused: AtomicU8::new(0) });
        let open = || link.open_flow(self.forward.class, &self.forward.target, Arc::clone(&client) as Arc<dyn Sink>);
        let flow = match open() {
            Ok(flow) => flow,
            Err(error) => {
                let oldest = self.clients.iter().min_by_key(|(_, (_, client))| client.used());
                let oldest = oldest.map(|(address, _)| *address).filter(|_| link.is_alive());
                drop(self.clients.remove(&oldest.ok_or(error)?));
                open()?
            }
        };
        Ok((flow, client))
    }
}
