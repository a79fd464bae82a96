//! A port with its connections: the whole session of a program that has one thread.
//!
//! The runtime of `meshpace-live` does the same with a socket and a thread, and shares the state of
//! each connection with the threads of applications. It therefore uses [`Endpoint`] and
//! [`Connection`] itself.

use super::addresses::Addresses;
use super::cipher::Cipher;
use super::connection::{Connection, Opened, Report, Witness};
use super::counters::{Counters, PortCounters, count};
use super::endpoint::{Endpoint, Route, random_names};
use super::exchange::Exchange;
use super::handshake::{InnerTransport, Tag, Terms};
use super::host::{Host, Randomness, random};
use super::outbox::Outbox;
use super::settings::Settings;
use super::unpredictable::Unpredictable;
use meshpace_core::{Deadlines, Time};
use meshpace_transport::tpa;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Time to live of arriving datagrams: that of a neighbour.
const TTL: u8 = 64;

/// Host of the endpoint: its random numbers, whether there is a listener, and the keys that were
/// recorded.
struct Runner {
    randomness: Box<dyn Randomness + Send>,
    listens: bool,
    /// First key of each direction, by the tag with which the datagrams of the direction begin.
    keys: BTreeMap<Tag, (Cipher, [u8; 32])>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys must not appear in logs.
        f.debug_struct("Runner").field("listens", &self.listens).finish_non_exhaustive()
    }
}

impl Randomness for Runner {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.randomness.fill(bytes)
    }
}

impl Host for Runner {
    fn listens(&mut self) -> bool {
        self.listens
    }

    fn has_room(&mut self, _: IpAddr) -> bool {
        self.listens
    }

    fn note_keys(&mut self, cipher: Cipher, directions: [(Tag, &[u8; 32]); 2]) {
        self.keys.extend(directions.map(|(tag, key)| (tag, (cipher, *key))));
    }
}

/// A connection of a [`Port`], the state that it shares with its application, and the application.
#[derive(Debug)]
pub struct Party<A> {
    #[doc(hidden)]
    pub session: Connection,
    /// State that the connection shares with its application.
    pub exchange: Exchange,
    /// The application: whatever the program wants to remember about the connection.
    pub application: A,
}

impl<A> Party<A> {
    /// The peer's address. It changes when the peer has moved.
    pub fn peer(&self) -> SocketAddr {
        self.session.peer()
    }
}

/// Result of processing a received datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrived {
    /// The connection is unknown, or has found that the datagram is not from its peer.
    Refused,
    /// The endpoint has processed it, and no connection is affected.
    Settled,
    /// The datagram belongs to this connection, which has processed it.
    Told(u64),
    /// The datagram has completed the handshake of this new connection.
    Accepted(u64),
}

/// A port with its connections. Each connection has a number, and an application of type `A`.
///
/// The program calls the port when something happens:
///
/// - [`Port::receive`] when a datagram has arrived,
/// - [`Port::wake`] at the time that [`Port::next_wakeup`] names,
/// - [`Port::open`] to open a connection, and [`Port::complain`] when the network reports an error.
///
/// These calls name the connections for which there may be news. The application then reads and
/// writes through [`Port::exchange`]. After that, and whenever else the application has read,
/// written or closed, [`Port::update`] follows. At last the program sends what [`Port::leaving`]
/// returns.
#[derive(Debug)]
pub struct Port<A = ()> {
    #[doc(hidden)]
    pub endpoint: Endpoint,
    settings: Arc<Settings>,
    runner: Runner,
    #[doc(hidden)]
    pub parties: BTreeMap<u64, Party<A>>,
    /// Times at which the connections have to be run.
    deadlines: Deadlines,
    next: u64,
    #[doc(hidden)]
    pub out: Outbox,
}

impl<A> Port<A> {
    /// Creates a port at `address`, which accepts connections if `listens`. `randomness` has to be
    /// fit for cryptographic keys.
    ///
    /// # Errors
    ///
    /// `randomness` has no random numbers.
    pub fn new(
        now: Time,
        address: SocketAddr,
        settings: Settings,
        listens: bool,
        randomness: impl Randomness + Send + 'static,
    ) -> io::Result<Port<A>> {
        let settings = Arc::new(settings);
        let mut runner = Runner { randomness: Box::new(randomness), listens, keys: BTreeMap::new() };
        let counters = Arc::new(Counters::default());
        let endpoint = Endpoint::new(now, address, Arc::clone(&settings), counters, &mut runner)?;
        let (parties, deadlines) = (BTreeMap::new(), Deadlines::default());
        Ok(Port { endpoint, settings, runner, parties, deadlines, next: 0, out: Outbox::default() })
    }

    /// Sets whether there is a listener from now on.
    pub fn set_listens(&mut self, listens: bool) {
        self.runner.listens = listens;
    }

    /// Settings of the port.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counts of the port's datagrams.
    pub fn counters(&self) -> PortCounters {
        self.endpoint.counters().read()
    }

    /// Numbers of the connections.
    pub fn connections(&self) -> impl Iterator<Item = u64> {
        self.parties.keys().copied()
    }

    /// Connection `id`. `None` if it has been removed.
    pub fn party(&self, id: u64) -> Option<&Party<A>> {
        self.parties.get(&id)
    }

    /// State that connection `id` shares with its application. `None` if the connection has been
    /// removed.
    pub fn exchange(&mut self, id: u64) -> Option<&mut Exchange> {
        self.parties.get_mut(&id).map(|party| &mut party.exchange)
    }

    /// Returns the first key of each direction, by the tag with which the datagrams of the
    /// direction begin.
    #[doc(hidden)]
    pub fn keys(&self) -> &BTreeMap<Tag, (Cipher, [u8; 32])> {
        &self.runner.keys
    }

    /// Opens a connection to `peer` with the transport of the settings, and returns its number.
    /// [`Port::update`] has to follow.
    ///
    /// # Errors
    ///
    /// There are no random numbers.
    pub fn open(&mut self, now: Time, peer: SocketAddr, application: A) -> io::Result<u64> {
        self.open_with(now, peer, self.settings.inner(), |_| application)
    }

    /// Like [`Port::open`], with the transport `inner`. `application` gets our tag.
    ///
    /// # Errors
    ///
    /// The errors of [`Port::open`].
    #[doc(hidden)]
    pub fn open_with(
        &mut self,
        now: Time,
        peer: SocketAddr,
        inner: InnerTransport,
        application: impl FnOnce(Tag) -> A,
    ) -> io::Result<u64> {
        let (tag, first_block) = random_names(&mut self.runner)?;
        let secret = random(&mut self.runner)?;
        let unpredictable = Unpredictable::new(&mut self.runner)?;
        let config = tpa::Config { first_block, ..self.settings.transport.clone() };
        let settings = Arc::clone(&self.settings).with(inner);
        let account = settings.account(peer.ip(), settings.security.only_peer());
        let exchange = Exchange::new(&settings, Terms::of(&config).block(), account);
        let addresses = Addresses { peer, own: None };
        let session = Connection::open(settings, addresses, &config, (tag, secret, unpredictable), now);
        let id = self.next;
        self.next += 1;
        self.endpoint.connect(tag, id);
        self.parties.insert(id, Party { session, exchange, application: application(tag) });
        self.note_deadline(id);
        Ok(id)
    }

    /// Processes a datagram from the address `from`, and decrypts it in place. If it opens a
    /// connection, `application` makes the application of that connection from the tag of the
    /// opener.
    pub fn receive(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &mut [u8],
        application: impl FnOnce(Tag) -> A,
    ) -> Arrived {
        let arrived = self.on_datagram(now, from, datagram, application);
        if let Arrived::Told(id) | Arrived::Accepted(id) = arrived {
            self.note_deadline(id);
        }
        arrived
    }

    fn on_datagram(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &mut [u8],
        application: impl FnOnce(Tag) -> A,
    ) -> Arrived {
        let addresses = Addresses { peer: from, own: None };
        let Port { endpoint, settings, runner, parties, next, out, .. } = self;
        match endpoint.on_datagram(now, addresses, datagram, runner, out) {
            Route::Done => Arrived::Settled,
            Route::Segment(id, datagram) => {
                let Some(Party { session, exchange, .. }) = parties.get_mut(&id) else { return Arrived::Refused };
                match session.open_datagram(now, addresses, datagram, out) {
                    Some(Opened::Segment(segment, payload)) => {
                        session.on_opened(now, (&segment, payload), TTL, exchange, out);
                    }
                    Some(Opened::Path) => {}
                    Some(Opened::Piece(piece)) => session.on_piece(now, piece, TTL, exchange, out),
                    None => {
                        count(&endpoint.counters().forged);
                        return Arrived::Refused;
                    }
                }
                Arrived::Told(id)
            }
            Route::Answer(id, answer, message) => {
                let Some(Party { session, exchange, .. }) = parties.get_mut(&id) else { return Arrived::Refused };
                if !session.on_answer(now, from, (&answer, message), runner, exchange, out) {
                    return Arrived::Refused;
                }
                if let Some(tag) = session.peer_tag() {
                    endpoint.name_peer(from, tag, id);
                }
                Arrived::Told(id)
            }
            Route::Stray(id) => {
                let Some(Party { session, exchange, .. }) = parties.get_mut(&id) else { return Arrived::Refused };
                session.on_stray(now, exchange, out);
                Arrived::Told(id)
            }
            Route::Accepted(accepted) => {
                let (handshake, opener) = (accepted.number, accepted.request.opener);
                let settings = Arc::clone(settings).with(accepted.request.inner());
                let account = settings.account(accepted.addresses.peer.ip(), accepted.peer_key);
                let mut exchange = Exchange::new(&settings, accepted.request.terms.block(), account);
                let session = Connection::accept(settings, *accepted, TTL, now, &mut exchange, out);
                let Some(session) = session else {
                    endpoint.finish(handshake, None);
                    return Arrived::Settled;
                };
                let id = *next;
                *next += 1;
                endpoint.finish(handshake, Some(id));
                parties.insert(id, Party { session, exchange, application: application(opener) });
                Arrived::Accepted(id)
            }
        }
    }

    /// Processes an error that the network reports about a datagram to `peer`; `datagram` is the
    /// beginning of that datagram. Returns the connection that sent it.
    pub fn complain(&mut self, now: Time, peer: SocketAddr, datagram: &[u8], report: Report) -> Option<u64> {
        let id = self.endpoint.sender_of(peer, datagram)?;
        let Party { session, exchange, .. } = self.parties.get_mut(&id).filter(|known| known.session.peer() == peer)?;
        session.on_complaint(now, report, Witness::Network, exchange, &mut self.out);
        self.note_deadline(id);
        Some(id)
    }

    /// Time of the next [`Port::wake`]; [`Time::NEVER`] if there is nothing to wait for.
    pub fn next_wakeup(&self) -> Time {
        self.deadlines.next().min(self.endpoint.next_wakeup())
    }

    /// Performs all actions that are due. Returns the connections for whose applications there may
    /// be news; [`Port::update`] has to follow for each.
    pub fn wake(&mut self, now: Time) -> Vec<u64> {
        self.wake_endpoint(now);
        let due: Vec<u64> = std::iter::from_fn(|| self.deadlines.pop_due(now)).map(|(_, id)| id).collect();
        due.iter().for_each(|id| self.work(*id, now));
        due
    }

    /// Runs connection `id` after its application has read, written or closed, or has found nothing
    /// to do. Removes the connection, and returns it, once it is over. Its exchange then says how
    /// it has ended, and may still have bytes to read.
    pub fn update(&mut self, id: u64, now: Time) -> Option<Party<A>> {
        self.work(id, now);
        self.settle(id, now);
        self.forget_if_due(id, now)
    }

    /// Stores the time at which a connection has to be run.
    fn note_deadline(&mut self, id: u64) {
        let at = self.parties.get(&id).map_or(Time::NEVER, |party| party.session.next_wakeup());
        self.deadlines.set(id, at);
    }

    /// Performs the actions of a connection that are due.
    #[doc(hidden)]
    pub fn work(&mut self, id: u64, now: Time) {
        if let Some(Party { session, exchange, .. }) = self.parties.get_mut(&id) {
            session.work(now, exchange, &mut self.out);
        }
        self.note_deadline(id);
    }

    /// Completes a step of a connection, after its application has reacted to what happened.
    /// Returns the connections that were ended because others need their memory; the caller has to
    /// inform their applications.
    #[doc(hidden)]
    pub fn settle(&mut self, id: u64, now: Time) -> Vec<u64> {
        let Some(Party { session, exchange, .. }) = self.parties.get_mut(&id) else { return Vec::new() };
        if session.gather(exchange) {
            session.seal_ahead();
        }
        session.move_if_due(now, id, &mut self.endpoint, exchange, &mut self.out);
        session.expire(now, exchange, &mut self.out);
        let mut ended = Vec::new();
        if self.settings.budget.has_ended() {
            for (id, Party { session, exchange, .. }) in &mut self.parties {
                if exchange.account.ended().is_some() {
                    session.work(now, exchange, &mut self.out);
                    ended.push(*id);
                }
            }
        }
        ended.iter().for_each(|id| self.note_deadline(*id));
        self.note_deadline(id);
        ended
    }

    /// Removes a connection, and returns it, if it is due to be forgotten.
    #[doc(hidden)]
    pub fn forget_if_due(&mut self, id: u64, now: Time) -> Option<Party<A>> {
        if self.parties.get(&id)?.session.forgets_at() > now {
            return None;
        }
        let party = self.parties.remove(&id)?;
        self.note_deadline(id);
        let session = &party.session;
        self.endpoint.forget(session.tag(), session.peer(), session.peer_tag(), session.has_place());
        Some(party)
    }

    /// Runs the endpoint itself if its time has come.
    #[doc(hidden)]
    pub fn wake_endpoint(&mut self, now: Time) {
        if self.endpoint.next_wakeup() <= now {
            self.endpoint.wake(now, &mut self.out);
        }
    }

    /// Removes all outgoing datagrams from the queue and returns them, each with its destination.
    pub fn leaving(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.out.seal();
        let mut all = Vec::new();
        let Outbox { full, answers, .. } = &mut self.out;
        full.append(answers);
        while let Some(message) = self.out.full.pop_front() {
            if let Some((to, bytes, size)) = message.content() {
                all.extend(bytes.chunks(size.max(1)).map(|datagram| (to.peer, datagram.to_vec())));
            }
            self.out.recycle(message);
        }
        all
    }
}
