//! One end of the wire: an endpoint, its connections, and an application at each of them.

use super::plan::stream;
use crate::tpa::session::addresses::Addresses;
use crate::tpa::session::cipher::Cipher;
use crate::tpa::session::connection::{Connection, Opened, Witness};
use crate::tpa::session::counters::Counters;
use crate::tpa::session::endpoint::{Endpoint, Route, random_names};
use crate::tpa::session::exchange::{Delivery, Exchange, Phase};
use crate::tpa::session::handshake::{Tag, Terms};
use crate::tpa::session::host::{Host, Randomness, random};
use crate::tpa::session::outbox::Outbox;
use crate::tpa::session::settings::Settings;
use meshpace_core::{Rng, Time};
use meshpace_transport::tpa;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What every eight bytes of a stream begin with: nobody else says so.
pub const MARK: [u8; 4] = [0xa5, 0x5a, 0xc3, 0x3c];

/// Byte `at` of a stream.
fn byte(stream: u64, at: u64) -> u8 {
    match (at % 8) as usize {
        place @ 0..4 => MARK[place],
        place => ((stream ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * place)) as u8,
    }
}

/// How a connection ended for its application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It has not.
    None,
    /// Everything has arrived both ways.
    Well,
    /// It failed with this errno.
    Failed(i32),
}

/// An application: it writes a stream, reads another, and checks it.
#[derive(Debug)]
pub struct Application {
    /// The stream that it writes and how long that is; the one that it reads.
    writes: (u64, u64),
    reads: u64,
    /// It does not read before.
    reads_at: Time,
    /// It does not close when it has written all.
    rests: bool,
    rng: Rng,
    written: u64,
    /// Bytes read, each of them right.
    pub read: u64,
    has_read_all: bool,
    pub ending: Ending,
}

impl Application {
    /// One that writes `bytes`, whose peer's stream is that of the connection with the tag of who opens, the other way.
    pub fn new(opener: Tag, is_opener: bool, bytes: u64, reads_at: Time) -> Application {
        let [writes, reads] = [is_opener, !is_opener].map(|ours| opener ^ u64::from(ours));
        let rng = stream(opener, 7 + u64::from(is_opener));
        let (written, read, has_read_all) = (0, 0, false);
        let (rests, ending) = (false, Ending::None);
        Application { writes: (writes, bytes), reads, reads_at, rests, rng, written, read, has_read_all, ending }
    }

    /// Does what it can; whether it did anything.
    fn act(&mut self, now: Time, exchange: &mut Exchange) -> bool {
        let mut acted = false;
        let (stream, bytes) = self.writes;
        while self.written < bytes && !exchange.wishes.write_closed {
            let length = (1 + self.rng.below(700)).min(bytes - self.written);
            let chunk: Vec<u8> = (self.written..self.written + length).map(|at| byte(stream, at)).collect();
            let Some(Ok(taken)) = exchange.write(&chunk) else { break };
            self.written += taken as u64;
            acted = true;
        }
        let has_written_all = self.written == bytes && !exchange.is_opening() && !self.rests;
        if has_written_all && !exchange.wishes.write_closed {
            exchange.wishes.write_closed = true;
            acted = true;
        }
        let mut into = [0; 512];
        while !self.has_read_all && now >= self.reads_at && !exchange.wishes.read_closed {
            let most = 1 + self.rng.below(512) as usize;
            match exchange.read(&mut into[..most]) {
                Some(Ok(0)) => self.has_read_all = true,
                Some(Ok(length)) => {
                    for found in &into[..length] {
                        assert_eq!(*found, byte(self.reads, self.read), "byte {} of a stream", self.read);
                        self.read += 1;
                    }
                }
                Some(Err(_)) | None => break,
            }
            acted = true;
        }
        if self.ending == Ending::None {
            self.ending = match &exchange.phase {
                Phase::Failed(failure) => Ending::Failed(failure.errno),
                Phase::Done => Ending::Well,
                _ if self.has_read_all && exchange.delivery == Delivery::Finished => Ending::Well,
                _ => Ending::None,
            };
        }
        // What has come it reads before it goes.
        let waits = !self.has_read_all && self.reads_at > now;
        if self.ending != Ending::None && !waits && !exchange.wishes.dropped {
            exchange.let_go();
            acted = true;
        }
        acted
    }
}

/// A connection and its application.
#[derive(Debug)]
pub struct Party {
    pub session: Connection,
    pub exchange: Exchange,
    pub application: Application,
}

/// Who runs the endpoint.
#[derive(Debug)]
struct Runner {
    rng: Rng,
    listens: bool,
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

    fn note_keys(&mut self, _: Cipher, _: [(Tag, &[u8; 32]); 2]) {}
}

/// One end.
#[derive(Debug)]
pub struct End {
    pub endpoint: Endpoint,
    settings: Arc<Settings>,
    runner: Runner,
    pub parties: BTreeMap<u64, Party>,
    /// What has become of the connections that are forgotten.
    pub gone: Vec<Application>,
    /// Connections that were accepted.
    pub accepted: usize,
    next: u64,
    pub out: Outbox,
    /// What an application does here: bytes written, and when it begins to read.
    habits: (u64, Time),
    /// Whether applications do not close when they have written all.
    pub rests: bool,
}

impl End {
    /// At `address`, with random numbers from `seed`.
    pub fn new(
        now: Time,
        address: SocketAddr,
        settings: Settings,
        (seed, index): (u64, u64),
        listens: bool,
        habits: (u64, Time),
    ) -> End {
        let settings = Arc::new(settings);
        let mut runner = Runner { rng: stream(seed, index), listens };
        let counters = Arc::new(Counters::default());
        let endpoint = Endpoint::new(now, address, Arc::clone(&settings), counters, &mut runner).unwrap();
        End {
            endpoint,
            settings,
            runner,
            parties: BTreeMap::new(),
            gone: Vec::new(),
            accepted: 0,
            next: 0,
            out: Outbox::default(),
            habits,
            rests: false,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.endpoint.local()
    }

    /// Whether there is a listener from now on.
    pub fn set_listens(&mut self, listens: bool) {
        self.runner.listens = listens;
    }

    /// Opens a connection.
    pub fn open(&mut self, now: Time, peer: SocketAddr) {
        let (tag, first_block) = random_names(&mut self.runner).unwrap();
        let secret = random(&mut self.runner).unwrap();
        let config = tpa::Config { first_block, ..self.settings.transport.clone() };
        let settings = Arc::clone(&self.settings).with(self.settings.inside());
        let exchange = Exchange::new(&settings, Terms::of(&config).block());
        let addresses = Addresses { peer, own: None };
        let session = Connection::open(settings, addresses, &config, (tag, secret), now);
        let application = Application::new(tag, true, self.habits.0, self.habits.1);
        let id = self.next;
        self.next += 1;
        self.endpoint.connect(tag, id);
        self.parties.insert(id, Party { session, exchange, application });
        self.work(id, now);
    }

    /// A datagram has come from the address `from`; false if it was known to be nobody's.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> bool {
        let addresses = Addresses { peer: from, own: None };
        let End { endpoint, runner, parties, out, .. } = self;
        let id = match endpoint.on_datagram(now, addresses, datagram, runner, out) {
            Route::Done => return true,
            Route::Segment(id, datagram) => {
                let Some(Party { session, exchange, .. }) = parties.get_mut(&id) else { return false };
                match session.open_datagram(now, addresses, datagram, out) {
                    Some(Opened::Segment(segment, payload)) => {
                        session.on_opened(now, (&segment, payload), 64, exchange, out);
                    }
                    Some(Opened::Path) => {}
                    None => return false,
                }
                id
            }
            Route::Answer(id, answer, message) => {
                let Some(Party { session, exchange, .. }) = parties.get_mut(&id) else { return false };
                if !session.on_answer(now, from, (&answer, message), runner, exchange, out) {
                    return false;
                }
                if let Some(tag) = session.peer_tag() {
                    endpoint.name_peer(from, tag, id);
                }
                id
            }
            Route::Stray(id) => {
                let Some(Party { session, exchange, .. }) = parties.get_mut(&id) else { return false };
                session.on_stray(now, exchange, out);
                id
            }
            Route::Accepted(accepted) => {
                let (handshake, opener) = (accepted.number, accepted.request.opener);
                let settings = Arc::clone(&self.settings).with(accepted.request.inside());
                let mut exchange = Exchange::new(&settings, accepted.request.terms.block());
                let session = Connection::accept(settings, *accepted, 64, now, &mut exchange, out);
                let Some(session) = session else {
                    endpoint.finish(handshake, None);
                    return true;
                };
                let id = self.next;
                self.next += 1;
                self.accepted += 1;
                endpoint.finish(handshake, Some(id));
                let application = Application::new(opener, false, self.habits.0, self.habits.1);
                parties.insert(id, Party { session, exchange, application });
                id
            }
        };
        self.after(id, now);
        true
    }

    /// The network says something about a datagram to `peer` that began like this.
    pub fn complain(&mut self, now: Time, peer: SocketAddr, datagram: &[u8], complaint: (i32, u32)) {
        let Some(id) = self.endpoint.sender_of(peer, datagram) else { return };
        let Some(Party { session, exchange, .. }) = self.parties.get_mut(&id) else { return };
        session.on_complaint(now, complaint, Witness::Network, exchange, &mut self.out);
        self.after(id, now);
    }

    /// Lets go of all connections.
    pub fn abort(&mut self, now: Time) {
        for id in self.parties.keys().copied().collect::<Vec<_>>() {
            if let Some(party) = self.parties.get_mut(&id) {
                party.exchange.let_go();
            }
            self.work(id, now);
        }
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Time) {
        if self.endpoint.next_wakeup() <= now {
            self.endpoint.wake(now, &mut self.out);
        }
        for id in self.parties.keys().copied().collect::<Vec<_>>() {
            let party = &self.parties[&id];
            if party.session.next_wakeup() <= now || party.application.reads_at == now {
                self.work(id, now);
            }
        }
    }

    /// When to be woken.
    pub fn next_wakeup(&self, now: Time) -> Time {
        let of = |party: &Party| {
            let reads_at = party.application.reads_at;
            party.session.next_wakeup().min(if reads_at > now { reads_at } else { Time::NEVER })
        };
        self.parties.values().map(of).fold(self.endpoint.next_wakeup(), Time::min)
    }

    /// Looks at all connections.
    pub fn work_all(&mut self, now: Time) {
        self.parties.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| self.work(id, now));
    }

    fn work(&mut self, id: u64, now: Time) {
        let Some(Party { session, exchange, .. }) = self.parties.get_mut(&id) else { return };
        session.work(now, exchange, &mut self.out);
        self.after(id, now);
    }

    /// After anything happened to a connection: its application acts, and it may be over.
    fn after(&mut self, id: u64, now: Time) {
        let Some(Party { session, exchange, application }) = self.parties.get_mut(&id) else { return };
        application.rests = self.rests;
        for _ in 0..1000 {
            if !application.act(now, exchange) {
                break;
            }
            session.work(now, exchange, &mut self.out);
        }
        if session.gather(exchange) {
            session.seal_ahead();
        }
        if let Some(before) = session.take_move() {
            let (peer_tag, is_theirs) = (session.peer_tag(), session.is_theirs());
            self.endpoint.relocate((before, session.peer()), peer_tag, id, is_theirs);
        }
        session.expire(now, exchange, &mut self.out);
        if application.act(now, exchange) {
            session.work(now, exchange, &mut self.out);
        }
        if session.forgets_at() <= now
            && let Some(Party { session, mut exchange, mut application }) = self.parties.remove(&id)
        {
            // An application that has not read yet still can: what has arrived is its own.
            application.reads_at = Time::ZERO;
            application.act(now, &mut exchange);
            self.endpoint.forget(session.tag(), session.peer(), session.peer_tag(), session.is_theirs());
            self.gone.push(application);
        }
    }

    /// What leaves, and to whom.
    pub fn leaving(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.out.seal();
        let mut all = Vec::new();
        while let Some(message) = self.out.full.pop_front() {
            if let Some((to, bytes, size)) = message.content() {
                all.extend(bytes.chunks(size.max(1)).map(|datagram| (to.peer, datagram.to_vec())));
            }
            self.out.recycle(message);
        }
        all
    }

    /// All applications there have been.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.gone.iter().chain(self.parties.values().map(|party| &party.application))
    }
}
