//! Connections that have not said yet what they are to be, and carriers whose session has not begun: all on one thread, so that a stranger
//! who says nothing takes some memory for a while, and no thread.

use super::session::{Carrier, NAME};
use super::{Beginning, decode, missing};
use crate::Clock;
use crate::tpa::places::{Places, Verdict};
use crate::tpa::{Selector, TpaStream};
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// How long a connection may take to say what it is to be, and a carrier to find the other one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that may wait here. Beyond that the network that has most gives one up (`places`).
const MOST: usize = 1024;

/// For how long one keeps its place where others have no less.
const KEPT: Duration = Duration::from_secs(1);

/// A connection that waits.
#[derive(Debug)]
struct Waiting {
    stream: TpaStream,
    peer: SocketAddr,
    until: Time,
    said: Vec<u8>,
    /// It is this carrier of the session of this name.
    carrier: Option<(Carrier, [u8; NAME])>,
}

/// What has come of a connection, or of two.
#[derive(Debug)]
pub(super) enum Ready {
    /// A stream to this target.
    Stream(TpaStream, SocketAddr, String),
    /// The two carriers of a session, express first.
    Session([TpaStream; 2], SocketAddr),
    /// It is nothing that is known: it is to be told.
    Malformed(TpaStream, SocketAddr, io::Error),
    /// It is given up, for this reason.
    Gone(SocketAddr, io::Error),
}

/// Those that wait, by their tokens.
#[derive(Debug)]
pub(super) struct Hall {
    waiting: BTreeMap<u64, Waiting>,
    places: Places,
    next: u64,
}

impl Hall {
    /// Nobody yet; tokens begin with `first`.
    pub(super) fn new(first: u64) -> Hall {
        Hall { waiting: BTreeMap::new(), places: Places::new(MOST, KEPT), next: first }
    }

    /// When [`Hall::give_up`] has something to do.
    pub(super) fn next_wakeup(&self) -> Time {
        // All wait for as long.
        self.waiting.values().next().map_or(Time::NEVER, |waiting| waiting.until)
    }

    /// One more; what has come of whom.
    ///
    /// # Errors
    ///
    /// As [`TpaStream::set_nonblocking`].
    pub(super) fn enter(
        &mut self,
        selector: &Selector,
        stream: TpaStream,
        peer: SocketAddr,
    ) -> io::Result<Option<Ready>> {
        let now = Clock.now();
        stream.set_nonblocking(true)?;
        let crowded = || io::Error::other("too many connections that have not said where they go");
        let gone = match self.places.ask(now, peer.ip()) {
            Verdict::Free => None,
            Verdict::InsteadOf(token) => self.leave(token).map(|other| other.give_up(crowded())),
            Verdict::Refused => {
                stream.abort();
                return Ok(Some(Ready::Gone(peer, crowded())));
            }
        };
        let token = self.next;
        self.next += 1;
        self.places.take(now, token, peer.ip());
        let (until, said) = (now + PATIENCE, Vec::new());
        self.waiting.insert(token, Waiting { stream, peer, until, said, carrier: None });
        selector.waker(token).wake();
        Ok(gone)
    }

    fn leave(&mut self, token: u64) -> Option<Waiting> {
        self.places.give_back(token);
        self.waiting.remove(&token)
    }

    /// A connection may have said more, or have failed.
    pub(super) fn look(&mut self, selector: &Selector, token: u64) -> Option<Ready> {
        let waiting = self.waiting.get_mut(&token).filter(|waiting| waiting.carrier.is_none())?;
        let waker = selector.waker(token);
        let read = match waiting.read(&Context::from_waker(&waker)) {
            Poll::Pending => return None,
            Poll::Ready(read) => read,
        };
        match read.and_then(|()| decode(&waiting.said)) {
            Ok(Beginning::Carrier(carrier, name)) => self.join(token, carrier, name),
            Ok(Beginning::Stream(target)) => {
                self.leave(token).map(|Waiting { stream, peer, .. }| Ready::Stream(stream, peer, target))
            }
            Err(error) => self.leave(token).map(|Waiting { stream, peer, .. }| Ready::Malformed(stream, peer, error)),
        }
    }

    /// A carrier looks for the other one of its session, from the same address.
    fn join(&mut self, token: u64, carrier: Carrier, name: [u8; NAME]) -> Option<Ready> {
        let source = self.waiting.get(&token)?.peer.ip();
        let mut of_session = self
            .waiting
            .iter()
            .filter(|(_, other)| other.peer.ip() == source && other.carrier.is_some_and(|(_, other)| other == name));
        let Some((other, found)) = of_session.next().map(|(token, other)| (*token, other.carrier)) else {
            self.waiting.get_mut(&token)?.carrier = Some((carrier, name));
            return None;
        };
        let own = self.leave(token)?;
        if found.is_some_and(|(found, _)| found == carrier) {
            return Some(own.give_up(io::Error::new(io::ErrorKind::AlreadyExists, "a second carrier of one kind")));
        }
        let (other, peer) = (self.leave(other)?, own.peer);
        let carriers = match carrier {
            Carrier::Express => [own.stream, other.stream],
            Carrier::Bulk => [other.stream, own.stream],
        };
        Some(Ready::Session(carriers, peer))
    }

    /// The first of those whose time is over.
    pub(super) fn give_up(&mut self) -> Option<Ready> {
        let (token, first) = self.waiting.first_key_value()?;
        if Clock.now() < first.until {
            return None;
        }
        let why = match first.carrier {
            None => "nobody said where it goes",
            Some((Carrier::Bulk, _)) => "a bulk carrier without a session",
            Some((Carrier::Express, _)) => "a session without a bulk carrier",
        };
        let token = *token;
        self.leave(token).map(|waiting| waiting.give_up(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl Waiting {
    /// Reads what the connection begins with, and nothing behind it; ready once that is all there.
    ///
    /// # Errors
    ///
    /// The connection's, or what it says is not the beginning of anything.
    fn read(&mut self, context: &Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let length = self.said.len();
            let more = match missing(&self.said) {
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(more) => more,
                Err(error) => return Poll::Ready(Err(error)),
            };
            self.said.resize(length + more, 0);
            let got = self.stream.poll_read(context, &mut self.said[length..]);
            self.said.truncate(length + if let Poll::Ready(Ok(got)) = &got { *got } else { 0 });
            match got {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn give_up(self, why: io::Error) -> Ready {
        self.stream.abort();
        Ready::Gone(self.peer, why)
    }
}
