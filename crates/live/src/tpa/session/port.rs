//! A port and its connections in virtual time. It does what `tpa::runtime` does with a socket and a
//! thread, but needs neither.

use crate::tpa::session::addresses::Addresses;
use crate::tpa::session::cipher::Cipher;
use crate::tpa::session::connection::{Connection, Opened, Report, Witness};
use crate::tpa::session::counters::{Counters, count};
use crate::tpa::session::endpoint::{Endpoint, Route, random_names};
use crate::tpa::session::exchange::Exchange;
use crate::tpa::session::handshake::{InnerTransport, Tag, Terms};
use crate::tpa::session::host::{Host, Randomness, random};
use crate::tpa::session::outbox::Outbox;
use crate::tpa::session::settings::Settings;
use crate::tpa::session::unpredictable::Unpredictable;
use meshpace_core::{Rng, Time};
use meshpace_transport::tpa;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Time to live of arriving datagrams: that of a neighbour.
const TTL: u8 = 64;

/// Host of the endpoint: its random numbers, whether there is a listener, and the keys that were
/// recorded.
#[derive(Debug)]
struct Runner {
    rng: Rng,
    listens: bool,
    /// First key of each direction, by the tag with which the datagrams of the direction begin.
    keys: BTreeMap<Tag, (Cipher, [u8; 32])>,
}

impl Randomness for Runner {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.rng.next_u64().to_le_bytes()[..chunk.len()]));
        Ok(())
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

/// A connection, the state that it shares with its application, and the application.
#[derive(Debug)]
pub(crate) struct Party<A> {
    pub(crate) session: Connection,
    pub(crate) exchange: Exchange,
    pub(crate) application: A,
}

/// Result of processing a received datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrived {
    /// The connection is unknown, or has found that the datagram is not from its peer.
    Refused,
    /// The endpoint has processed it, and no connection is affected.
    Settled,
    /// The datagram belongs to this connection, which has processed it.
    Told(u64),
    /// The datagram has completed the handshake of this new connection.
    Accepted(u64),
}

/// A port with its connections.
#[derive(Debug)]
pub(crate) struct Port<A> {
    pub(crate) endpoint: Endpoint,
    settings: Arc<Settings>,
    runner: Runner,
    pub(crate) parties: BTreeMap<u64, Party<A>>,
    next: u64,
    pub(crate) out: Outbox,
}

impl<A> Port<A> {
    /// Creates a port at `address` that takes its random numbers from `rng`.
    pub(crate) fn new(now: Time, address: SocketAddr, settings: Settings, rng: Rng, listens: bool) -> Port<A> {
        let settings = Arc::new(settings);
        let mut runner = Runner { rng, listens, keys: BTreeMap::new() };
        let counters = Arc::new(Counters::default());
        let endpoint = Endpoint::new(now, address, Arc::clone(&settings), counters, &mut runner);
        // Random numbers from `Rng` never fail.
        let endpoint = endpoint.expect("random numbers");
        Port { endpoint, settings, runner, parties: BTreeMap::new(), next: 0, out: Outbox::default() }
    }

    /// Sets whether there is a listener from now on.
    pub(crate) fn set_listens(&mut self, listens: bool) {
        self.runner.listens = listens;
    }

    /// Settings of the port.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the first key of each direction, by the tag with which the datagrams of the
    /// direction begin.
    pub(crate) fn keys(&self) -> &BTreeMap<Tag, (Cipher, [u8; 32])> {
        &self.runner.keys
    }

    /// Opens a connection with the transport `inner`, and returns its number. `application` gets
    /// our tag. The caller then calls [`Port::work`].
    pub(crate) fn open(
        &mut self,
        now: Time,
        peer: SocketAddr,
        inner: InnerTransport,
        application: impl FnOnce(Tag) -> A,
    ) -> u64 {
        // Random numbers from `Rng` never fail.
        let (tag, first_block) = random_names(&mut self.runner).expect("random numbers");
        let secret = random(&mut self.runner).expect("random numbers");
        let unpredictable = Unpredictable::new(&mut self.runner).expect("random numbers");
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
        id
    }

    /// Processes a datagram from the address `from`. If it opens a connection, `application` gets
    /// the tag of the opener. The caller then calls [`Port::settle`] for the connection that the
    /// result names.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &mut [u8],
        application: impl FnOnce(Tag) -> A,
    ) -> Arrived {
        let addresses = Addresses { peer: from, own: None };
        let Port { endpoint, settings, runner, parties, next, out } = self;
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
    pub(crate) fn complain(&mut self, now: Time, peer: SocketAddr, datagram: &[u8], report: Report) -> Option<u64> {
        let id = self.endpoint.sender_of(peer, datagram)?;
        let Party { session, exchange, .. } = self.parties.get_mut(&id).filter(|known| known.session.peer() == peer)?;
        session.on_complaint(now, report, Witness::Network, exchange, &mut self.out);
        Some(id)
    }

    /// Performs the actions of a connection that are due.
    pub(crate) fn work(&mut self, id: u64, now: Time) {
        if let Some(Party { session, exchange, .. }) = self.parties.get_mut(&id) {
            session.work(now, exchange, &mut self.out);
        }
    }

    /// Completes a step of a connection, after its application has reacted to what happened.
    /// Returns the connections that were ended because others need their memory; the caller has to
    /// inform their applications.
    pub(crate) fn settle(&mut self, id: u64, now: Time) -> Vec<u64> {
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
        ended
    }

    /// Removes a connection, and returns it, if it is due to be forgotten.
    pub(crate) fn forget_if_due(&mut self, id: u64, now: Time) -> Option<Party<A>> {
        if self.parties.get(&id)?.session.forgets_at() > now {
            return None;
        }
        let party = self.parties.remove(&id)?;
        let session = &party.session;
        self.endpoint.forget(session.tag(), session.peer(), session.peer_tag(), session.has_place());
        Some(party)
    }

    /// Runs the endpoint itself if its time has come.
    pub(crate) fn wake_endpoint(&mut self, now: Time) {
        if self.endpoint.next_wakeup() <= now {
            self.endpoint.wake(now, &mut self.out);
        }
    }

    /// Removes all outgoing datagrams from the queue and returns them, each with its destination.
    pub(crate) fn leaving(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
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
