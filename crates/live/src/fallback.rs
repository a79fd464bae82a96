//! A connection by TPA where the peer has it, and by TCP where it has not (TPA paper, section 6).
//!
//! TCP does not encrypt. So with a secret or known keys in the options no TCP is tried, whatever becomes of TPA, unless the caller asks
//! for [`Fallback::Plaintext`]: a wrong secret, UDP that is dropped and a refusal that anybody may have forged look alike from here.
//!
//! Raced as RFC 8305 does it between IPv6 and IPv4: TPA has a head start of 250 ms (its section 5), then TCP to the port of the same
//! number is tried beside it. TCP opens in one round trip and TPA in two, so a TCP connection that is open
//! waits for TPA until a second after the beginning: that is the longest that falling back takes. What a peer had is remembered for
//! ten minutes (RFC 6555, section 4.2): with one that had only TCP a connection begins with TCP, with one that had TPA only TPA is
//! tried until it fails. A dialer's memory is its own.
//!
//! Nobody proves that a refusal is the peer's. Without keys TPA protects only from those who do nothing but listen, and
//! whoever can forge a refusal can as well answer for the peer: it makes TCP's turn come at once. But it is gone with that connection: only
//! silence is remembered as a lack of TPA. With keys a refusal makes nothing come earlier, and that a peer has no TPA is not
//! remembered at all, since silence proves nothing either: every connection begins with TPA.

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

/// Peers remembered at most.
const PEERS: usize = 4096;

/// Tokens of the race.
const TPA: u64 = 0;
const TCP: u64 = 1;

/// A connection of either kind.
#[derive(Debug)]
pub enum Stream {
    /// The peer has TPA.
    Tpa(TpaStream),
    /// It has not.
    Tcp(TcpStream),
}

/// Rule for the transport that may take TPA's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fallback {
    /// TCP, unless the options have a secret or known keys: then nothing. The default.
    #[default]
    Unkeyed,
    /// TCP, which does not encrypt, even in place of TPA with a secret or known keys.
    Plaintext,
}

/// Transport that a peer had.
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
    /// Time after the beginning from which a TCP connection that is open is taken although TPA might still open. Default 1 s.
    pub patience: Duration,
    /// Time for which it is remembered what a peer had. Default 10 minutes.
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

/// Opens connections and remembers what peers had.
#[derive(Debug)]
pub struct Dialer {
    options: Options,
    race: Race,
    fallback: Fallback,
    peers: Mutex<BTreeMap<SocketAddr, (Time, Has)>>,
    /// One port per family, made when it is needed.
    ports: Mutex<[Option<TpaPort>; 2]>,
}

impl Dialer {
    /// With these options for TPA. Their connect time-out is that of both.
    pub fn new(options: Options, race: Race) -> Dialer {
        let fallback = Fallback::default();
        Dialer { options, race, fallback, peers: Mutex::default(), ports: Mutex::default() }
    }

    /// The same with another opinion on what may take TPA's place.
    #[must_use]
    pub fn fallback(self, fallback: Fallback) -> Dialer {
        Dialer { fallback, ..self }
    }

    /// Opens a connection to a host's port of either kind.
    ///
    /// # Errors
    ///
    /// Neither opens: what both say. With a secret or known keys and without [`Fallback::Plaintext`]: what TPA says.
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
        // It has changed.
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

    /// True if the options have TPA's peers prove who they are.
    fn is_keyed(&self) -> bool {
        self.options.security.knows_peer()
    }

    /// True if a failure of TPA is to be remembered: nobody can forge a silence without standing in the way, and without keys that is enough.
    fn shows_lack(&self, error: &io::Error) -> bool {
        !self.is_keyed() && error.kind() == io::ErrorKind::TimedOut
    }

    /// The race.
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
            // What TPA failed of may be forged: with keys it makes nothing come earlier.
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
            // What is due next: TCP's start, or the end of the patience with TPA. TPA's own time-out wakes too.
            selector.wait(match (&tcp, &open) {
                (None, _) => begun + self.race.head_start,
                (Some(_), Some(_)) => begun + self.race.patience,
                (Some(_), None) => Time::NEVER,
            });
        }
    }

    /// Opens a TCP connection on a thread of its own.
    fn begin_tcp(&self, peer: SocketAddr, selector: &Selector) -> io::Result<Receiver<io::Result<TcpStream>>> {
        let (sender, receiver) = channel();
        let (timeout, waker) = (time_of(self.options.connect_timeout), selector.waker(TCP));
        thread::Builder::new().name("tcp".into()).spawn(move || {
            // Nobody may want it any more.
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
    /// The connection's.
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
