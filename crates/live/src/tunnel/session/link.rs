//! A session in real time: two connections, a thread that reads them, and the threads of the streams.

use super::carrier::Carrier;
use super::handing::{Handing, Sending, Takes};
use super::machine::{Datagrams, STREAMS, Session, Side};
use super::sink::Sink;
use crate::Clock;
use crate::tpa::{Selector, TpaStream};
use crate::tunnel::carried_by::CarriedBy;
use meshpace_core::Time;
use meshpace_session::budget::{Account, Payer};
use meshpace_transport::Stats;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;

/// Bytes read from a carrier at a time, and how often before the other one is looked at.
const BLOCK: usize = 32 << 10;
const BLOCKS: usize = 4;

/// How long the express carrier's ACKs wait for an answer to ride on.
const HOLD: std::time::Duration = std::time::Duration::from_millis(10);

/// What streams share. Cloning gives another handle.
#[derive(Clone, Debug)]
pub(in crate::tunnel) struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// By [`Carrier`].
    carriers: [TpaStream; 2],
    peer: SocketAddr,
    selector: Selector,
}

/// A stream by its number, and where its users wait.
pub(super) type Place = (u32, Arc<Condvar>);

/// The state machine, and who waits for it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) session: Session,
    /// Why the session is over.
    failure: Option<(io::ErrorKind, String)>,
    /// Where the users of each stream wait.
    waiting: BTreeMap<u32, Arc<Condvar>>,
    /// Where datagrams go, by flow.
    pub(super) sinks: BTreeMap<u32, Arc<dyn Sink>>,
    handing: Handing,
}

impl Link {
    /// A session over two connections whose preambles have passed; [`Link::run`] has it begin.
    ///
    /// # Errors
    ///
    /// None: the result is that of `std::net`.
    pub(in crate::tunnel) fn new(side: Side, carriers: [TpaStream; 2]) -> io::Result<Link> {
        // Nobody waits when they are dropped: what has not arrived is told to nobody any more.
        for carrier in &carriers {
            carrier.set_nonblocking(true)?;
        }
        let express = &carriers[Carrier::Express as usize];
        express.hold_acks(HOLD);
        let peer = express.peer_addr()?;
        let session = Session::new(side).booked_in(express.account());
        let is_bbr = carriers[Carrier::Bulk as usize].unsent().is_some();
        let state = State {
            session: if is_bbr { session.over_bbr() } else { session },
            failure: None,
            waiting: BTreeMap::new(),
            sinks: BTreeMap::new(),
            handing: Handing::default(),
        };
        Ok(Link(Arc::new(Inner { state: Mutex::new(state), carriers, peer, selector: Selector::default() })))
    }

    /// [`Link::run`], with streams by their places; `came` is called when something has come.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub(super) fn begin(
        &self,
        mut asked: impl FnMut(Place, String) + Send + 'static,
        mut came: impl FnMut(&Link) + Send + 'static,
        over: impl FnOnce(&io::Error) + Send + 'static,
    ) -> io::Result<()> {
        let link = self.clone();
        thread::Builder::new().name("session".into()).spawn(move || {
            let error = link.drive(&mut asked, &mut came);
            let error = io::Error::new(error.kind(), format!("the session with {} is over: {error}", link.0.peer));
            link.fail(&error);
            over(&error);
        })?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine, while the session lasts.
    ///
    /// # Errors
    ///
    /// Why it is over.
    pub(super) fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        state.check()?;
        Ok(state)
    }

    /// The machine, also once the session is over.
    pub(super) fn look(&self) -> MutexGuard<'_, State> {
        self.lock()
    }

    /// Opens a stream to a target; its place.
    ///
    /// # Errors
    ///
    /// The session is over, or has too many streams.
    pub(super) fn place(&self, target: &str) -> io::Result<Place> {
        let mut state = self.enter()?;
        let crowded = || io::Error::other(format!("{STREAMS} streams are open, which is the most"));
        let number = state.session.open(Clock.now(), target).ok_or_else(crowded)?;
        let place = (number, state.wait_at(number));
        self.hand_over(&mut state);
        Ok(place)
    }

    /// Whether streams can be opened.
    pub(in crate::tunnel) fn is_alive(&self) -> bool {
        self.lock().failure.is_none()
    }

    /// Whose sessions count together with this one, as the far end's address is now.
    pub(in crate::tunnel) fn payer(&self) -> Option<Payer> {
        self.0.carriers[Carrier::Express as usize].account().payer()
    }

    /// Whether neither a stream nor a flow is open.
    pub(in crate::tunnel) fn is_idle(&self) -> bool {
        self.lock().session.is_idle()
    }

    /// Whether the far end, or somebody in its place, says that it does not know the session, and nothing has contradicted that yet.
    pub(in crate::tunnel) fn is_doubted(&self) -> bool {
        self.doubted().is_some()
    }

    /// Since when, of the carrier where it began first.
    pub(in crate::tunnel) fn doubted(&self) -> Option<Time> {
        self.0.carriers.iter().filter_map(TpaStream::doubted).min()
    }

    /// Has the far end hear from this end.
    pub(in crate::tunnel) fn probe(&self) {
        self.0.carriers.iter().for_each(TpaStream::probe);
    }

    /// The far end's address.
    pub(in crate::tunnel) fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// What carries its bulk.
    pub(in crate::tunnel) fn carried_by(&self) -> CarriedBy {
        match self.0.carriers[Carrier::Bulk as usize].unsent() {
            Some(_) => CarriedBy::Bbr,
            None => CarriedBy::Session,
        }
    }

    /// Ends the session.
    pub(in crate::tunnel) fn abort(&self) {
        self.0.carriers.iter().for_each(TpaStream::abort);
    }

    /// What both carriers have counted.
    pub(in crate::tunnel) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.0.carriers.iter().for_each(|carrier| stats += carrier.stats());
        stats
    }

    /// What its flows have carried.
    pub(in crate::tunnel) fn datagrams(&self) -> Datagrams {
        self.lock().session.datagrams()
    }

    /// Streams that this end has refused by the bounds of a session.
    pub(in crate::tunnel) fn refused(&self) -> u64 {
        self.lock().session.refused()
    }

    /// Memory of its buffers.
    pub(in crate::tunnel) fn account(&self) -> Account {
        self.0.carriers[Carrier::Express as usize].account()
    }

    /// Hops that the peer's last packet seems to have come.
    pub(in crate::tunnel) fn hops(&self) -> Option<u8> {
        self.0.carriers.iter().find_map(TpaStream::hops)
    }

    /// Longest IP packet that the path was found to carry, bytes; `None` while nothing says that it drops any.
    pub(in crate::tunnel) fn narrowed(&self) -> Option<u32> {
        self.0.carriers.iter().filter_map(TpaStream::narrowed).min()
    }

    /// Hands to the carriers what they can send soon, and wakes whom that concerns.
    pub(super) fn hand_over(&self, state: &mut State) {
        let now = Clock.now();
        for carrier in Carrier::ALL {
            let State { session, handing, .. } = &mut *state;
            let mut connection = &self.0.carriers[carrier as usize];
            if handing.hand_over(now, session, carrier, &mut connection).is_err() {
                // The thread that reads the carriers is told, and why the connection has failed.
                self.abort();
            }
        }
        if state.handing.take_small() {
            self.0.carriers[Carrier::Bulk as usize].make_room();
        }
        for number in state.session.take_touched() {
            if let Some(waiting) = state.waiting.get(&number) {
                waiting.notify_all();
            }
        }
    }

    /// Until the session is over; why.
    fn drive(&self, asked: &mut dyn FnMut(Place, String), came: &mut dyn FnMut(&Link)) -> io::Error {
        let waker = self.0.selector.waker(0);
        let context = Context::from_waker(&waker);
        let mut buffer = vec![0; BLOCK];
        loop {
            // First whom to wake, then what there is: nothing is missed in between.
            let mut more = false;
            for carrier in Carrier::ALL {
                let connection = &self.0.carriers[carrier as usize];
                if let Poll::Ready(Err(error)) = connection.poll_finished(&context) {
                    return error;
                }
                match self.receive(carrier, &context, &mut buffer, came) {
                    Ok(all) => more |= !all,
                    Err(error) => return error,
                }
            }
            let mut state = self.lock();
            self.hand_over(&mut state);
            if self.is_doubted() {
                // Whoever waits for an answer may have it elsewhere.
                state.waiting.values().for_each(|waiting| waiting.notify_all());
            }
            let wanted = state.session.take_asked();
            let places: Vec<(Place, String)> =
                wanted.into_iter().map(|(number, target)| ((number, state.wait_at(number)), target)).collect();
            drop(state);
            places.into_iter().for_each(|(place, target)| asked(place, target));
            if !more {
                self.0.selector.wait(Time::NEVER);
            }
        }
    }

    /// Takes what has come by a carrier; whether that was all.
    fn receive(
        &self,
        carrier: Carrier,
        context: &Context<'_>,
        buffer: &mut [u8],
        came: &mut dyn FnMut(&Link),
    ) -> io::Result<bool> {
        for _ in 0..BLOCKS {
            match self.0.carriers[carrier as usize].poll_read(context, buffer) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Ok(0)) => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the far end has left"));
                }
                Poll::Ready(Ok(length)) => {
                    let taken = self.lock().session.on_bytes(Clock.now(), carrier, &buffer[..length]);
                    taken.map_err(|violation| io::Error::new(io::ErrorKind::InvalidData, violation.to_string()))?;
                    came(self);
                }
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        Ok(false)
    }

    fn fail(&self, error: &io::Error) {
        self.abort();
        let mut state = self.lock();
        state.failure = Some((error.kind(), error.to_string()));
        state.sinks.clear();
        state.waiting.values().for_each(|waiting| waiting.notify_all());
    }
}

impl Takes for &TpaStream {
    fn sending(&self) -> Sending {
        Sending { stats: self.stats(), under_way: self.unacknowledged(), unsent: self.unsent() }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            taken => taken,
        }
    }
}

impl State {
    /// # Errors
    ///
    /// Why the session is over.
    pub(super) fn check(&self) -> io::Result<()> {
        match &self.failure {
            None => Ok(()),
            Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
        }
    }

    fn wait_at(&mut self, number: u32) -> Arc<Condvar> {
        Arc::clone(self.waiting.entry(number).or_default())
    }

    /// Nobody uses a stream any more.
    pub(super) fn release(&mut self, number: u32) {
        self.session.release(number);
        self.waiting.remove(&number);
    }
}
