//! Where programs send datagrams into a tunnel: a UDP port of this machine. Each of its clients, by address and port, has a flow of its own, so
//! that what comes back goes to who has asked.

use super::Refusal;
use super::counters::Counters;
use super::dialing::Dialing;
use super::session::{Class, Flow, Sink};
use crate::{Clock, accept};
use meshpace_core::{Duration, Time};
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// A flow through which nothing has passed for so long is over, as RFC 4787 recommends it to NATs.
pub(super) const IDLE: Duration = Duration::from_secs(300);
/// How often that is looked at.
pub(super) const LOOK: std::time::Duration = std::time::Duration::from_secs(1);
/// How long datagrams are passed over after there was no session or no way to the target.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest datagram of UDP, and a byte.
pub(super) const LONGEST: usize = 65_536;
/// How long a datagram may wait if nothing else is said.
const LIFE: Duration = Duration::from_secs(1);

/// A UDP port here, where its datagrams go, seen from the far end, and what becomes of those that wait: `[address:]port:host:port[,class]`, the
/// class being `reliable`, `latest` or `expires=SECONDS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpForward {
    /// The own address and port.
    pub local: String,
    /// The target, `host:port`.
    pub target: String,
    /// What becomes of datagrams that wait, in both directions.
    pub class: Class,
}

impl FromStr for UdpForward {
    type Err = String;

    fn from_str(text: &str) -> Result<UdpForward, String> {
        let (ports, class) = text.split_once(',').map_or((text, None), |(ports, class)| (ports, Some(class)));
        let wrong = |_| format!("{text}: expected [ADDRESS:]PORT:HOST:PORT[,CLASS]");
        let super::Forward { local, target } = ports.parse().map_err(wrong)?;
        let class = match class {
            None => Some(Class::Expiring(LIFE)),
            Some("reliable") => Some(Class::Reliable),
            Some("latest") => Some(Class::Latest),
            Some(other) => other.strip_prefix("expires=").and_then(life).map(Class::Expiring),
        };
        let no_class = || format!("{text}: datagrams are reliable, latest or expires=SECONDS, 0.001 to 3600");
        Ok(UdpForward { local, target, class: class.ok_or_else(no_class)? })
    }
}

/// Reads a number of seconds.
fn life(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (0.001..=3600.0).contains(&seconds).then(|| Duration::from_millis((seconds * 1e3).round() as u64))
}

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
            if flow.send(bytes).is_ok() {
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
            self.counters.datagram_lost();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_have_a_class() {
        let read = |text: &str| text.parse::<UdpForward>();
        let ms = |ms| Class::Expiring(Duration::from_millis(ms));
        for (text, class) in [
            ("53:host:53", ms(1000)),
            ("53:host:53,reliable", Class::Reliable),
            ("53:host:53,latest", Class::Latest),
            ("53:host:53,expires=0.25", ms(250)),
        ] {
            let (local, target) = ("127.0.0.1:53".to_owned(), "host:53".to_owned());
            assert_eq!(read(text), Ok(UdpForward { local, target, class }), "{text}");
        }
        assert_eq!(read("[::]:5:[fe80::1]:6,latest").unwrap().target, "[fe80::1]:6");
        for bad in ["53:host", "53:host:53,", "53:host:53,fast", "53:host:53,expires=0", "53:host:53,expires=x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
