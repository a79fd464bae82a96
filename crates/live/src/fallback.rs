//! Connections that use TPA if the peer supports it, and TCP otherwise (TPA paper, section 6).
//!
//! TCP does not encrypt. If the options contain a secret or known keys, TCP is therefore never
//! tried, even if TPA fails, unless the caller sets [`Fallback::Plaintext`]. From this end a wrong
//! secret, a path that drops UDP, and a refusal that may be forged look alike.
//!
//! TPA and TCP are raced as RFC 8305 does for IPv6 and IPv4. TPA has a head start of 250 ms (its
//! section 5); then TCP to the port of the same number is tried in parallel. TCP opens in one round
//! trip and TPA in two. An open TCP connection therefore waits for TPA until one second after the
//! beginning, which is the longest time that the fallback takes.
//!
//! A dialer remembers for ten minutes which transport a peer supported (RFC 6555, section 4.2).
//! With a peer that had only TCP, a connection begins with TCP. With a peer that had TPA, only TPA
//! is tried until it fails. Each dialer has its own memory.
//!
//! A refusal is not proved to come from the peer. Without keys, TPA protects only against passive
//! attackers. An attacker who can forge a refusal can also answer in the peer's name. Without keys
//! a refusal therefore makes TCP start at once. But this affects only that connection, because only
//! silence is remembered as a lack of TPA.
//!
//! With keys, a refusal does not make anything start earlier. A lack of TPA is then not remembered
//! at all, since silence proves nothing either: every connection begins with TPA.

use crate::Clock;
use crate::tpa::any_port;
use crate::tpa::{Options, Selector, TpaPort, TpaStream};
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;

/// Maximum number of peers that are remembered.
const PEERS: usize = 4096;

/// Selector tokens of the two transports in the race.
const TPA: u64 = 0;
const TCP: u64 = 1;

/// A connection of either transport.
#[derive(Debug)]
pub enum Stream {
    /// TPA, which the peer supports.
    Tpa(TpaStream),
    /// TCP, because the peer does not support TPA.
    Tcp(TcpStream),
}

/// Rule for the transport that may replace TPA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fallback {
    /// TCP may replace TPA unless the options contain a secret or known keys. The default.
    #[default]
    Unkeyed,
    /// TCP, which does not encrypt, may replace TPA even with a secret or known keys.
    Plaintext,
}

/// Transport that a peer supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Has {
    Tpa,
    Tcp,
}

/// Times of the race between TPA and TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// Time for which TPA is tried alone. Default 250 ms.
    pub head_start: Duration,
    /// Time from the beginning after which an open TCP connection is used although TPA might still
    /// open. Default 1 s.
    pub patience: Duration,
    /// Time for which the transport of a peer is remembered. Default 10 minutes.
    pub memory: Duration,
}

impl Default for Race {
    fn default() -> Race {
        Race {
            head_start: Duration::from_millis(250),
            patience: Duration::from_secs(1),
            memory: Duration::from_secs(600),
        }
    }
}

/// Opens connections, and remembers which transport each peer supported.
#[derive(Debug)]
pub struct Dialer {
    options: Options,
    race: Race,
    fallback: Fallback,
    peers: Mutex<BTreeMap<SocketAddr, (Time, Has)>>,
    /// One port per address family, created when it is needed.
    ports: Mutex<[Option<TpaPort>; 2]>,
}

impl Dialer {
    /// Creates a dialer with these options for TPA. Their connect timeout applies to both
    /// transports.
    pub fn new(options: Options, race: Race) -> Dialer {
        let fallback = Fallback::default();
        Dialer { options, race, fallback, peers: Mutex::default(), ports: Mutex::default() }
    }

    /// Returns the dialer with another rule for the transport that may replace TPA.
    #[must_use]
    pub fn fallback(self, fallback: Fallback) -> Dialer {
        Dialer { fallback, ..self }
    }

    /// Opens a connection to a host and port with either transport.
    ///
    /// # Errors
    ///
    /// The errors of both transports, if neither opens. With a secret or known keys and without
    /// [`Fallback::Plaintext`]: the error of TPA.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<Stream> {
        if self.is_keyed() && self.fallback == Fallback::Unkeyed {
            return self.port(peer)?.connect(peer).map(Stream::Tpa).map_err(|error| only_tpa(&error));
        }
        let tcp = || TcpStream::connect_timeout(&peer, time_of(self.options.connect_timeout)).map(Stream::Tcp);
        let tpa = || self.port(peer)?.connect(peer).map(Stream::Tpa);
        let (first, second, has) = match self.remembered(peer) {
            None => return self.try_both(peer),
            Some(Has::Tpa) => (tpa(), &tcp as &dyn Fn() -> io::Result<Stream>, Has::Tcp),
            Some(Has::Tcp) => (tcp(), &tpa as &dyn Fn() -> io::Result<Stream>, Has::Tpa),
        };
        let Err(error) = first else { return first };
        // The peer no longer supports the transport that was remembered.
        self.forget(peer);
        let stream = second().map_err(|other| match has {
            Has::Tcp => neither(peer, &error, &other),
            Has::Tpa => neither(peer, &other, &error),
        })?;
        if has == Has::Tpa || self.shows_lack(&error) {
            self.remember(peer, has);
        }
        Ok(stream)
    }

    /// True if the options require TPA peers to authenticate.
    fn is_keyed(&self) -> bool {
        self.options.security.knows_peer()
    }

    /// True if this failure of TPA is to be remembered. Only an attacker on the path can cause
    /// silence, and without keys that is sufficient protection.
    fn shows_lack(&self, error: &io::Error) -> bool {
        !self.is_keyed() && error.kind() == io::ErrorKind::TimedOut
    }

    /// Races TPA and TCP.
    fn try_both(&self, peer: SocketAddr) -> io::Result<Stream> {
        let begun = Clock.now();
        let selector = Selector::default();
        let mut tpa = self.port(peer)?.connect_nonblocking(peer);
        let mut tcp: Option<Receiver<io::Result<TcpStream>>> = None;
        let mut open = None;
        let mut failed = None;
        loop {
            let waker = selector.waker(TPA);
            let state = match &tpa {
                Ok(stream) => stream.poll_open(&Context::from_waker(&waker)),
                Err(_) => Poll::Pending,
            };
            match state {
                Poll::Ready(Ok(())) => {
                    let stream = tpa?;
                    stream.set_nonblocking(false)?;
                    self.remember(peer, Has::Tpa);
                    return Ok(Stream::Tpa(stream));
                }
                Poll::Ready(Err(error)) => tpa = Err(error),
                Poll::Pending => {}
            }
            let now = Clock.now();
            // TPA's failure may be caused by a forged message. With keys it therefore does not make
            // TCP start earlier.
            let is_refused = tpa.is_err() && !self.is_keyed();
            if tcp.is_none() && (is_refused || now >= begun + self.race.head_start) {
                tcp = Some(self.begin_tcp(peer, &selector)?);
            }
            match tcp.as_ref().map(Receiver::try_recv) {
                Some(Ok(Ok(stream))) => open = Some(stream),
                Some(Ok(Err(error))) => failed = Some(error),
                Some(Err(TryRecvError::Disconnected | TryRecvError::Empty)) | None => {}
            }
            if let Some(stream) = open.take_if(|_| is_refused || now >= begun + self.race.patience) {
                if !self.is_keyed() && tpa.as_ref().err().is_none_or(|error| self.shows_lack(error)) {
                    self.remember(peer, Has::Tcp);
                }
                return Ok(Stream::Tcp(stream));
            }
            if let (Err(tpa), Some(tcp)) = (&tpa, &failed) {
                return Err(neither(peer, tpa, tcp));
            }
            // The next event is the start of TCP, or the end of the wait for TPA. TPA's own timeout
            // also wakes this thread.
            selector.wait(match (&tcp, &open) {
                (None, _) => begun + self.race.head_start,
                (Some(_), Some(_)) => begun + self.race.patience,
                (Some(_), None) => Time::NEVER,
            });
        }
    }

    /// Opens a TCP connection on a separate thread.
    fn begin_tcp(&self, peer: SocketAddr, selector: &Selector) -> io::Result<Receiver<io::Result<TcpStream>>> {
        let (sender, receiver) = channel();
        let (timeout, waker) = (time_of(self.options.connect_timeout), selector.waker(TCP));
        thread::Builder::new().name("tcp".into()).spawn(move || {
            // The receiver may have been dropped.
            let _ = sender.send(TcpStream::connect_timeout(&peer, timeout));
            waker.wake();
        })?;
        Ok(receiver)
    }

    fn port(&self, peer: SocketAddr) -> io::Result<TpaPort> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut ports[usize::from(peer.is_ipv6())];
        if place.is_none() {
            *place = Some(TpaPort::with_options(any_port(peer), self.options.clone())?);
        }
        place.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remembered(&self, peer: SocketAddr) -> Option<Has> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, has) = *peers.get(&peer)?;
        (Clock.now().since(since) < self.race.memory).then_some(has)
    }

    fn remember(&self, peer: SocketAddr, has: Has) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= PEERS
            && !peers.contains_key(&peer)
            && let Some(oldest) = peers.iter().min_by_key(|(_, (since, _))| *since).map(|(peer, _)| *peer)
        {
            peers.remove(&oldest);
        }
        peers.insert(peer, (Clock.now(), has));
    }

    fn forget(&self, peer: SocketAddr) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&peer);
    }
}

fn time_of(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.0)
}

fn only_tpa(error: &io::Error) -> io::Error {
    let text = format!("{error}; TCP is not tried, since it does not encrypt and keys are set (Fallback::Plaintext)");
    io::Error::new(error.kind(), text)
}

fn neither(peer: SocketAddr, tpa: &io::Error, tcp: &io::Error) -> io::Error {
    io::Error::new(tcp.kind(), format!("{peer}: neither TPA ({tpa}) nor TCP ({tcp})"))
}

impl Stream {
    /// Closes one direction or both.
    ///
    /// # Errors
    ///
    /// The error of the connection.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Stream::Tpa(stream) => stream.shutdown(how),
            Stream::Tcp(stream) => stream.shutdown(how),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tpa(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tpa(stream) => stream.write(from),
            Stream::Tcp(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tpa(stream) => stream.flush(),
            Stream::Tcp(stream) => stream.flush(),
        }
    }
}
