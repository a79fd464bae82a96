//! One connection in the runtime: its session, and the state that it shares with its application.

use super::backlog::Backlog;
use super::shared::Shared;
use meshpace_core::Time;
use meshpace_session::Host;
use meshpace_session::addresses::Addresses;
use meshpace_session::connection::{Opened, Report, Witness};
use meshpace_session::endpoint::Endpoint;
use meshpace_session::exchange::Phase;
use meshpace_session::failure::Failure;
use meshpace_session::handshake::{Opening, Tag};
use meshpace_session::outbox::Outbox;
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection of the runtime.
#[derive(Debug)]
pub struct Connection {
    /// Number of the port that the connection uses.
    pub port: u64,
    session: meshpace_session::connection::Connection,
    shared: Arc<Shared>,
    /// True once the connection is counted among those that only answer a late peer (`lingering` of
    /// its port).
    pub lingers: bool,
}

impl Connection {
    /// Creates a connection on port number `port`.
    pub fn new(port: u64, session: meshpace_session::connection::Connection, shared: Arc<Shared>) -> Connection {
        Connection { port, session, shared, lingers: false }
    }

    /// Address of the peer.
    pub fn peer(&self) -> SocketAddr {
        self.session.peer()
    }

    /// Tag of this end.
    pub fn tag(&self) -> Tag {
        self.session.tag()
    }

    /// Tag of the peer. `None` until the handshake has revealed it.
    pub fn peer_tag(&self) -> Option<Tag> {
        self.session.peer_tag()
    }

    /// True if the connection counts against the limit of its peer's source.
    pub fn has_place(&self) -> bool {
        self.session.has_place()
    }

    /// True if the connection has ended and only answers a late peer.
    pub fn is_over(&self) -> bool {
        self.session.is_over()
    }

    /// Shared state of the connection. `None` if the connection has ended.
    pub fn unfinished(&self) -> Option<Arc<Shared>> {
        (!self.shared.lock().exchange.is_over()).then(|| Arc::clone(&self.shared))
    }

    /// Time at which the connection has to be run next.
    pub fn next_wakeup(&self) -> Time {
        self.session.next_wakeup()
    }

    /// Adds a connection that was accepted to `backlog`, where it waits for the application. Aborts
    /// it if nobody listens any more.
    pub fn offer(&mut self, now: Time, backlog: Option<Arc<Backlog>>, out: &mut Outbox) {
        if !self.shared.lock().exchange.is_open() || backlog.is_some_and(|to| to.offer(Arc::clone(&self.shared))) {
            return;
        }
        let mut state = self.shared.lock();
        state.exchange.wishes.abort = true;
        self.session.work(now, &mut state.exchange, out);
    }

    /// Handles a datagram with the connection's tag that arrived between these addresses. Returns
    /// false if the peer did not send it. [`Connection::tell_application`] has to be called
    /// afterwards.
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

    /// Handles an answer to the connection's request, with the message of the Noise handshake, from
    /// address `from`. Returns false if that is not the peer's answer.
    /// [`Connection::tell_application`] has to be called afterwards.
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

    /// Handles a message from the peer's address which says that it does not know the connection.
    pub fn on_stray(&mut self, now: Time, out: &mut Outbox) {
        let mut state = self.shared.lock();
        self.session.on_stray(now, &mut state.exchange, out);
        self.shared.unlock_and_tell(state);
    }

    /// Handles an error about a datagram of the connection.
    pub fn on_complaint(&mut self, now: Time, report: Report, witness: Witness, out: &mut Outbox) {
        let mut state = self.shared.lock();
        self.session.on_complaint(now, report, witness, &mut state.exchange, out);
        self.shared.unlock_and_tell(state);
    }

    /// Runs the connection after the application, a timer or an earlier event may have changed
    /// something.
    pub fn work(&mut self, now: Time, out: &mut Outbox) {
        let mut state = self.shared.lock();
        state.called = false;
        self.session.work(now, &mut state.exchange, out);
        self.shared.unlock_and_tell(state);
    }

    /// Changes to the new address of the peer, if the peer has answered there and `endpoint` grants
    /// connection `id` a place for that address.
    pub fn move_if_due(&mut self, now: Time, id: u64, endpoint: &mut Endpoint, out: &mut Outbox) {
        if now >= self.session.moves_at() {
            let mut state = self.shared.lock();
            self.session.move_if_due(now, id, endpoint, &mut state.exchange, out);
            self.shared.unlock_and_tell(state);
        }
    }

    /// Probes the peer or gives up if that is due. Returns whether the connection can be removed.
    pub fn expire(&mut self, now: Time, out: &mut Outbox) -> bool {
        if now >= self.session.looks_at() {
            let mut state = self.shared.lock();
            self.session.expire(now, &mut state.exchange, out);
            self.shared.unlock_and_tell(state);
        }
        self.session.forgets_at() <= now
    }

    /// Wakes the application if there is news for it. To be called once after all datagrams that
    /// were received together.
    pub fn tell_application(&mut self) {
        self.shared.unlock_and_tell(self.shared.lock());
    }

    /// Encrypts the next block ahead of time, if possible, while the peer's answer is awaited.
    pub fn prepare(&mut self) {
        let gathered = self.session.gather(&self.shared.lock().exchange);
        if gathered {
            self.session.seal_ahead();
        }
    }

    /// Ends the connection with `failure`, because the runtime has ended.
    pub fn fail(&self, failure: &Failure) {
        if !matches!(self.shared.lock().exchange.phase, Phase::Done) {
            self.shared.fail(failure.clone());
        }
    }
}
