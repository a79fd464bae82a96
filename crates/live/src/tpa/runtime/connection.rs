//! One connection in the hands of the runtime: its session, and what it shares with its application.

use super::backlog::Backlog;
use super::shared::Shared;
use crate::tpa::session;
use crate::tpa::session::addresses::Addresses;
use crate::tpa::session::connection::{Opened, Witness};
use crate::tpa::session::endpoint::Endpoint;
use crate::tpa::session::exchange::Phase;
use crate::tpa::session::failure::Failure;
use crate::tpa::session::handshake::{Opening, Tag};
use crate::tpa::session::host::Host;
use crate::tpa::session::outbox::Outbox;
use meshpace_core::Time;
use std::net::SocketAddr;
use std::sync::Arc;

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// The port it is of.
    pub port: u64,
    session: session::connection::Connection,
    shared: Arc<Shared>,
    /// It is counted among those that are over.
    pub lingers: bool,
}

impl Connection {
    /// Of `port`.
    pub fn new(port: u64, session: session::connection::Connection, shared: Arc<Shared>) -> Connection {
        Connection { port, session, shared, lingers: false }
    }

    /// The peer's address.
    pub fn peer(&self) -> SocketAddr {
        self.session.peer()
    }

    /// Our tag.
    pub fn tag(&self) -> Tag {
        self.session.tag()
    }

    /// The peer's tag, once the handshake has told.
    pub fn peer_tag(&self) -> Option<Tag> {
        self.session.peer_tag()
    }

    /// True if it counts among the connections of its peer's source.
    pub fn has_place(&self) -> bool {
        self.session.has_place()
    }

    /// True if it only answers a peer that is late.
    pub fn is_over(&self) -> bool {
        self.session.is_over()
    }

    /// It, as its application holds it, unless it has ended.
    pub fn unfinished(&self) -> Option<Arc<Shared>> {
        (!self.shared.lock().exchange.is_over()).then(|| Arc::clone(&self.shared))
    }

    /// When to come back.
    pub fn next_wakeup(&self) -> Time {
        self.session.next_wakeup()
    }

    /// It has been accepted, and waits in `backlog` for its application, if that is still there.
    pub fn offer(&mut self, now: Time, backlog: Option<Arc<Backlog>>, out: &mut Outbox) {
        if !self.shared.lock().exchange.is_open() || backlog.is_some_and(|to| to.offer(Arc::clone(&self.shared))) {
            return;
        }
        let mut state = self.shared.lock();
        state.exchange.wishes.abort = true;
        self.session.work(now, &mut state.exchange, out);
    }

    /// A datagram with its tag arrived between these addresses; false if the peer did not send it. [`Connection::tell_application`] is to
    /// follow.
    pub fn on_datagram(&mut self, now: Time, at: Addresses, datagram: &mut [u8], ttl: u8, out: &mut Outbox) -> bool {
        let (segment, payload) = match self.session.open_datagram(now, at, datagram, out) {
            Some(Opened::Segment(segment, payload)) => (segment, payload),
            Some(Opened::Path) => return true,
            Some(Opened::Piece(piece)) => {
                let mut state = self.shared.lock();
                state.called = false;
                self.session.on_piece(now, piece, ttl, &mut state.exchange, out);
                return true;
            }
            None => return false,
        };
        let mut state = self.shared.lock();
        state.called = false;
        self.session.on_opened(now, (&segment, payload), ttl, &mut state.exchange, out);
        true
    }

    /// An answer to its request, with Noise's message, came from the address `from`; false if that is not the peer's.
    /// [`Connection::tell_application`] is to follow.
    pub fn on_answer(
        &mut self,
        now: Time,
        from: SocketAddr,
        answer: (&Opening, &[u8]),
        host: &mut dyn Host,
        out: &mut Outbox,
    ) -> bool {
        let mut state = self.shared.lock();
        self.session.on_answer(now, from, answer, host, &mut state.exchange, out)
    }

    /// The peer's address says that it does not know it.
    pub fn on_stray(&mut self, now: Time, out: &mut Outbox) {
        let mut state = self.shared.lock();
        self.session.on_stray(now, &mut state.exchange, out);
        self.shared.unlock_and_tell(state);
    }

    /// A datagram of it met this error; with what the way carries, 0 if nobody says.
    pub fn on_complaint(&mut self, now: Time, complaint: (i32, u32), witness: Witness, out: &mut Outbox) {
        let mut state = self.shared.lock();
        self.session.on_complaint(now, complaint, witness, &mut state.exchange, out);
        self.shared.unlock_and_tell(state);
    }

    /// The application, a timer or an earlier event may have changed something.
    pub fn work(&mut self, now: Time, out: &mut Outbox) {
        let mut state = self.shared.lock();
        state.called = false;
        self.session.work(now, &mut state.exchange, out);
        self.shared.unlock_and_tell(state);
    }

    /// Follows its peer, which has answered at another address, if `endpoint` grants connection `id` a place there.
    pub fn move_if_due(&mut self, now: Time, id: u64, endpoint: &mut Endpoint, out: &mut Outbox) {
        if now >= self.session.moves_at() {
            let mut state = self.shared.lock();
            self.session.move_if_due(now, id, endpoint, &mut state.exchange, out);
            self.shared.unlock_and_tell(state);
        }
    }

    /// Asks the peer for a sign of life or gives up if it is time; whether the connection is to be forgotten.
    pub fn expire(&mut self, now: Time, out: &mut Outbox) -> bool {
        if now >= self.session.looks_at() {
            let mut state = self.shared.lock();
            self.session.expire(now, &mut state.exchange, out);
            self.shared.unlock_and_tell(state);
        }
        self.session.forgets_at() <= now
    }

    /// Wakes the application if there is news for it. To be called once after everything that came together.
    pub fn tell_application(&mut self) {
        self.shared.unlock_and_tell(self.shared.lock());
    }

    /// Does beforehand what can be done for the next block while the peer's answer is awaited.
    pub fn prepare(&mut self) {
        let gathered = self.session.gather(&self.shared.lock().exchange);
        if gathered {
            self.session.seal_ahead();
        }
    }

    /// Nobody runs it any more.
    pub fn fail(&self, failure: &Failure) {
        if !matches!(self.shared.lock().exchange.phase, Phase::Done) {
            self.shared.fail(failure.clone());
        }
    }
}
