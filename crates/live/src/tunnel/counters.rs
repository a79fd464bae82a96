//! What a tunnel has carried and is carrying.

use super::carried_by::CarriedBy;
use super::far::Far;
use super::session::{Datagrams, Link};
use meshpace_transport::Stats;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one end of a tunnel has done.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Totals {
    /// Streams open now.
    pub open: u64,
    /// Streams opened since the start, those now open included.
    pub opened: u64,
    /// Streams that could not be connected at the far end.
    pub refused: u64,
    /// Streams that were broken off instead of closed.
    pub aborted: u64,
    /// Bytes from here to the far end, those of datagrams included.
    pub sent: u64,
    /// Bytes from the far end to here, those of datagrams included.
    pub received: u64,
    /// Hops to the far end, as the last packet of an open stream came; none if nobody knows.
    pub hops: Option<u8>,
    /// Longest IP packet that the path to a far end was found to carry, bytes, of the streams and sessions that are open;
    /// `None` while nothing says that a path drops any.
    pub narrowed: Option<u32>,
    /// What the transport has counted.
    pub stats: Stats,
    /// Sessions open now.
    pub sessions: u64,
    /// Sessions opened since the start, those now open included.
    pub sessions_opened: u64,
    /// What streams come and go by now, or did last; none before the first.
    pub carried_by: Option<CarriedBy>,
    /// What flows of datagrams have carried.
    pub datagrams: Datagrams,
}

#[derive(Debug, Default)]
struct Inner {
    past: Totals,
    streams: BTreeMap<u64, Arc<Far>>,
    sessions: BTreeMap<u64, Link>,
    /// The number of the latest stream or session.
    latest: u64,
    /// Who is told what happens.
    observer: Option<Observer>,
}

/// Something that has happened to a stream, by its number, or to a session with a far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A session has begun.
    SessionBegan(SocketAddr),
    /// One is over.
    SessionOver(SocketAddr),
    /// A stream is open.
    StreamOpened(u64),
    /// One is over, and how: `closed`, `aborted` or `refused`.
    StreamOver(u64, &'static str),
}

/// Who is told.
#[derive(Clone)]
struct Observer(Arc<dyn Fn(Event) + Send + Sync>);

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer")
    }
}

/// Counts for everybody who carries. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Mutex<Inner>>);

/// How a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Both directions were closed.
    Closed,
    /// It was broken off.
    Aborted,
    /// The far end was not connected.
    Refused,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Closed => "closed",
            End::Aborted => "aborted",
            End::Refused => "refused",
        }
    }
}

impl Counters {
    /// Has `observer` told what happens from now on, by the threads of the streams: it is not to keep them waiting.
    pub fn watch(&self, observer: impl Fn(Event) + Send + Sync + 'static) {
        self.lock().observer = Some(Observer(Arc::new(observer)));
    }

    /// Tells the observer, if there is one, under no lock.
    fn tell(&self, event: Event) {
        let observer = self.lock().observer.clone();
        if let Some(Observer(tell)) = observer {
            tell(event);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream is open from now on; its number.
    pub(super) fn open(&self, stream: &Arc<Far>) -> u64 {
        let mut inner = self.lock();
        inner.past.carried_by = Some(stream.carried_by());
        inner.past.opened += 1;
        inner.latest += 1;
        let number = inner.latest;
        inner.streams.insert(number, Arc::clone(stream));
        drop(inner);
        self.tell(Event::StreamOpened(number));
        number
    }

    /// Bytes were carried.
    pub(super) fn carried(&self, sent: usize, received: usize) {
        let mut inner = self.lock();
        inner.past.sent += sent as u64;
        inner.past.received += received as u64;
    }

    /// No stream came about.
    pub(super) fn refused(&self) {
        self.lock().past.refused += 1;
    }

    /// A stream that was begun is begun again.
    pub(super) fn never_was(&self, number: u64) {
        let mut inner = self.lock();
        inner.streams.remove(&number);
        inner.past.opened -= 1;
    }

    /// A stream has ended.
    pub(super) fn close(&self, number: u64, end: End) {
        let mut inner = self.lock();
        inner.past.aborted += u64::from(end == End::Aborted);
        inner.past.refused += u64::from(end == End::Refused);
        if let Some(stream) = inner.streams.remove(&number) {
            inner.past.stats += stream.own_stats();
            inner.past.hops = stream.hops().or(inner.past.hops);
        }
        drop(inner);
        self.tell(Event::StreamOver(number, end.name()));
    }

    /// A session has begun; its number.
    pub(super) fn begin(&self, session: &Link) -> u64 {
        let mut inner = self.lock();
        inner.latest += 1;
        let number = inner.latest;
        inner.sessions.insert(number, session.clone());
        inner.past.sessions_opened += 1;
        drop(inner);
        self.tell(Event::SessionBegan(session.peer()));
        number
    }

    /// A session is over.
    pub(super) fn end(&self, number: u64) {
        let mut inner = self.lock();
        let ended = inner.sessions.remove(&number);
        if let Some(session) = &ended {
            inner.past.stats += session.stats();
            inner.past.refused += session.refused();
            inner.past.datagrams += Datagrams { flows: 0, ..session.datagrams() };
        }
        drop(inner);
        ended.iter().for_each(|session| self.tell(Event::SessionOver(session.peer())));
    }

    /// Has all far ends hear from this end.
    pub(super) fn probe(&self) {
        let inner = self.lock();
        let (streams, sessions) = (inner.streams.values().cloned().collect::<Vec<_>>(), inner.sessions.clone());
        drop(inner);
        streams.iter().for_each(|stream| stream.probe());
        sessions.values().for_each(Link::probe);
    }

    /// Breaks off all streams and sessions, here and at their far ends.
    pub(super) fn break_off(&self) {
        let inner = self.lock();
        let (streams, sessions) = (inner.streams.values().cloned().collect::<Vec<_>>(), inner.sessions.clone());
        drop(inner);
        streams.iter().for_each(|stream| stream.abort());
        sessions.values().for_each(Link::abort);
    }

    /// So many datagrams were lost for want of a session or a flow, or of a way to their target.
    pub(super) fn datagrams_lost(&self, count: u64) {
        self.lock().past.datagrams.dropped += count;
    }

    /// What has been done so far.
    pub fn totals(&self) -> Totals {
        let inner = self.lock();
        let (open, sessions) = (inner.streams.len() as u64, inner.sessions.len() as u64);
        let mut totals = Totals { open, sessions, ..inner.past };
        let least = |known: Option<u32>, one: Option<u32>| known.into_iter().chain(one).min();
        for stream in inner.streams.values() {
            totals.narrowed = least(totals.narrowed, stream.narrowed());
            totals.stats += stream.own_stats();
            totals.hops = stream.hops().or(totals.hops);
        }
        for session in inner.sessions.values() {
            totals.narrowed = least(totals.narrowed, session.narrowed());
            totals.stats += session.stats();
            totals.hops = session.hops().or(totals.hops);
            totals.refused += session.refused();
            totals.datagrams += session.datagrams();
        }
        totals.sent += totals.datagrams.sent_bytes;
        totals.received += totals.datagrams.received_bytes;
        totals
    }
}
