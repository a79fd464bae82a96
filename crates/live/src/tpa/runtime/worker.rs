//! The thread that runs the connections: it waits for datagrams, for the next time a connection wants to be woken, and for
//! its applications; nobody else touches a session.

mod busy_poll;
mod complaints;
mod strangers;

use super::backlog::Backlog;
use super::connection::Connection;
use super::keylog::KeyLog;
use super::mailbox::{Command, Mailbox};
use super::randomness::{Machine, random};
use super::service::Service;
use super::shared::Shared;
use super::socket::{Addresses, Received, Socket};
use crate::Clock;
use crate::clock::sharpen_timers;
use crate::drive::Deadlines;
use crate::poll::{Poller, Ready};
use crate::tpa::session;
use crate::tpa::session::cipher::Cipher;
use crate::tpa::session::counters::count;
use crate::tpa::session::endpoint::{Accepted, Endpoint, Route, random_names};
use crate::tpa::session::exchange::Exchange;
use crate::tpa::session::failure::Failure;
use crate::tpa::session::handshake::Tag;
use crate::tpa::session::host::{Host, Randomness};
use crate::tpa::session::outbox::Outbox;
use crate::tpa::session::settings::Settings;
use crate::tpa::session::unpredictable::Unpredictable;
use busy_poll::BusyPoll;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use strangers::Strangers;

/// Messages taken from one socket before the timers are looked at again.
const TURN: usize = 32;

/// Up to this a wake-up counts as being on time.
const LATENESS: Duration = Duration::from_millis(1);

/// From this on this process has not been running: stopped, or its machine asleep or overwhelmed.
const ABSENCE: Duration = Duration::from_millis(500);

/// One UDP port in the hands of the runtime.
#[derive(Debug)]
struct Port {
    socket: Socket,
    endpoint: Box<Endpoint>,
    service: Service,
    /// Where connections wait to be accepted, if somebody listens.
    backlog: Option<Arc<Backlog>>,
    /// Connections, and those of them that only answer peers that are late.
    connections: usize,
    lingering: usize,
    out: Outbox,
    strangers: Strangers,
    /// Waits for room in the kernel's buffer.
    blocked: bool,
    /// Whom to tell once all of it has left.
    departures: Vec<SyncSender<()>>,
    /// Nobody holds it any more.
    released: bool,
}

/// Host of the sessions of one port: it answers what they ask of the runtime.
struct PortHost<'a> {
    id: u64,
    backlog: &'a Option<Arc<Backlog>>,
    mailbox: &'a Mailbox,
    keylog: Option<&'a KeyLog>,
}

impl PortHost<'_> {
    /// Where connections are to wait, if somebody listens.
    fn backlog(&self) -> Option<Arc<Backlog>> {
        self.backlog.clone().or_else(|| self.mailbox.listens(self.id))
    }
}

impl Randomness for PortHost<'_> {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        random(bytes)
    }
}

impl Host for PortHost<'_> {
    fn listens(&mut self) -> bool {
        self.backlog().is_some()
    }

    fn has_room(&mut self, address: IpAddr) -> bool {
        self.backlog().is_some_and(|backlog| backlog.has_room(address))
    }

    fn note_keys(&mut self, cipher: Cipher, directions: [(Tag, &[u8; 32]); 2]) {
        if let Some(log) = self.keylog {
            log.note(cipher, directions);
        }
    }
}

/// The thread's own.
pub struct Worker {
    mailbox: Arc<Mailbox>,
    poller: Poller,
    ports: BTreeMap<u64, Port>,
    connections: BTreeMap<u64, Connection>,
    /// Of connections, and of ports for their unfinished handshakes.
    deadlines: Deadlines,
    busy_poll: BusyPoll,
    /// A connection has heard something since the last wait, or was told something to say: its peer may soon say more.
    expects: bool,
    /// Connections that something arrived for in this turn.
    touched: Vec<u64>,
    buffer: Vec<u8>,
    stopped: bool,
}

impl Worker {
    /// The thread that takes the commands in `mailbox`, and waits with its `poller`.
    pub fn new(mailbox: Arc<Mailbox>, poller: Poller) -> Worker {
        Worker {
            mailbox,
            poller,
            ports: BTreeMap::new(),
            connections: BTreeMap::new(),
            touched: Vec::new(),
            deadlines: Deadlines::default(),
            busy_poll: BusyPoll::default(),
            expects: false,
            buffer: vec![0; 1 << 16],
            stopped: false,
        }
    }

    /// Until nobody needs it any more.
    ///
    /// # Errors
    ///
    /// The system's, while waiting.
    pub fn run(&mut self) -> io::Result<()> {
        sharpen_timers();
        let mut ready = Vec::new();
        let mut absent = false;
        while !self.stopped {
            let expects = std::mem::take(&mut self.expects);
            self.busy_poll.wait(&self.poller, self.deadlines.next(), expects, &mut ready)?;
            // Timers first: what is due does not wait for what has just come. But after an absence the answers they wait for
            // may long be here: these are taken first, and nobody is heard until then.
            let catches_up = absent;
            if !catches_up {
                absent = !self.wake_due(false);
            }
            for Ready { token, readable, writable, error } in ready.drain(..) {
                if error {
                    let _ = self.complaints(token);
                }
                if writable && let Some(port) = self.ports.get_mut(&token) {
                    port.blocked = false;
                    let _ = self.poller.watch_writable(&port.socket, token, false);
                    self.flush(token);
                }
                // Receiving also clears an error that is in no queue.
                if readable || error {
                    self.receive(token);
                }
            }
            if catches_up {
                absent = !self.wake_due(true);
            }
            if !absent {
                self.obey();
            }
        }
        Ok(())
    }

    /// Wakes whose time has come; false if that was so long ago that this process has not been running, unless it has caught
    /// up since.
    fn wake_due(&mut self, caught_up: bool) -> bool {
        loop {
            let now = Clock.now();
            if !caught_up && now.since(self.deadlines.next()) >= ABSENCE {
                return false;
            }
            let Some((due, id)) = self.deadlines.pop_due(now) else { return true };
            // The protocol hears the time it asked for, not the time at which this thread came to it: pacing counts from one
            // segment to the next, and lateness must not add up. Only a real delay is told.
            let told = if now.since(due) <= LATENESS { due } else { now };
            if let Some(port) = self.ports.get_mut(&id) {
                port.endpoint.wake(now, &mut port.out);
                self.deadlines.set(id, port.endpoint.next_wakeup());
                self.flush(id);
                continue;
            }
            if let Some(port) = self.work(id, told) {
                self.flush(port);
            }
        }
    }

    fn obey(&mut self) {
        for command in self.mailbox.take() {
            match command {
                Command::Bind { id, socket, endpoint, service } => {
                    let port = Port {
                        socket,
                        endpoint,
                        service,
                        backlog: None,
                        connections: 0,
                        lingering: 0,
                        out: Outbox::default(),
                        strangers: Strangers::default(),
                        blocked: false,
                        departures: Vec::new(),
                        released: false,
                    };
                    self.ports.insert(id, port);
                }
                Command::Release { port } => {
                    if let Some(found) = self.ports.get_mut(&port) {
                        found.released = true;
                    }
                    self.close_if_unused(port);
                }
                Command::Listen { port, backlog } => {
                    if let Some(port) = self.ports.get_mut(&port) {
                        port.backlog = Some(backlog);
                    }
                }
                Command::Unlisten { port } => {
                    if let Some(port) = self.ports.get_mut(&port) {
                        port.backlog = None;
                    }
                }
                Command::Connect { port, shared, settings, config } => {
                    self.connect(port, shared, settings, *config);
                }
                Command::Touch(id) => {
                    self.expects = true;
                    if let Some(port) = self.work(id, Clock.now()) {
                        self.flush(port);
                    }
                }
                Command::Dispatch { id, left } => {
                    let number = self.work(id, Clock.now());
                    if let Some((number, port)) = number.and_then(|number| Some((number, self.ports.get_mut(&number)?)))
                    {
                        port.departures.push(left);
                        self.flush(number);
                    } else {
                        // A connection that is no more has nothing left to say.
                        let _ = left.try_send(());
                    }
                }
                Command::Survey { to } => {
                    let _ = to.try_send(self.connections.values().filter_map(Connection::unfinished).collect());
                }
                Command::Stop => self.stopped = true,
            }
        }
    }

    fn connect(&mut self, id: u64, shared: Arc<Shared>, settings: Arc<Settings>, config: tpa::Config) {
        let names = random_names(&mut Machine)
            .and_then(|names| Ok((names, session::host::random(&mut Machine)?, Unpredictable::new(&mut Machine)?)));
        let ((tag, first_block), secret, unpredictable) = match names {
            Ok(names) => names,
            Err(error) => return shared.fail(Failure::of(&error, format!("no random numbers: {error}"))),
        };
        let config = tpa::Config { first_block, ..config };
        let now = Clock.now();
        let addresses = Addresses { peer: shared.peer, own: None };
        let number = shared.id;
        let Some(port) = self.ports.get_mut(&id) else { return };
        port.endpoint.connect(tag, number);
        port.connections += 1;
        let own = (tag, secret, unpredictable);
        let session = session::connection::Connection::open(settings, addresses, &config, own, now);
        self.connections.insert(number, Connection::new(id, session, shared));
        self.work(number, now);
        self.flush(id);
    }

    /// Lets a connection do what is due; returns its port, to be flushed.
    fn work(&mut self, id: u64, now: Time) -> Option<u64> {
        let connection = self.connections.get_mut(&id)?;
        let number = connection.port;
        let port = self.ports.get_mut(&number)?;
        connection.work(now, &mut port.out);
        self.settle(id, now);
        Some(number)
    }

    /// After anything happened to a connection: when it is to be woken, or whether it is to be forgotten.
    fn settle(&mut self, id: u64, now: Time) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let number = connection.port;
        let Some(port) = self.ports.get_mut(&number) else { return };
        connection.move_if_due(now, id, &mut port.endpoint, &mut port.out);
        if connection.expire(now, &mut port.out) {
            self.flush(number);
            return self.forget(id);
        }
        self.deadlines.set(id, connection.next_wakeup());
        if connection.is_over() && !std::mem::replace(&mut connection.lingers, true) {
            port.lingering += 1;
            if port.released {
                self.flush(number);
                self.close_if_unused(number);
            }
        }
    }

    /// After what came together has been handled.
    fn settle_touched(&mut self, now: Time) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.dedup();
        for number in touched.drain(..) {
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.tell_application();
                connection.prepare();
            }
            self.settle(number, now);
        }
        self.touched = touched;
    }

    fn forget(&mut self, id: u64) {
        self.deadlines.set(id, Time::NEVER);
        let Some(connection) = self.connections.remove(&id) else { return };
        let Some(port) = self.ports.get_mut(&connection.port) else { return };
        port.endpoint.forget(connection.tag(), connection.peer(), connection.peer_tag(), connection.has_place());
        port.connections -= 1;
        port.lingering -= usize::from(connection.lingers);
        self.close_if_unused(connection.port);
    }

    /// Closes a port that nobody holds once no connection of it is alive. Those that would only answer late peers end with
    /// it, so that the port can be bound again at once: a peer that is late finds nobody, and has everything.
    fn close_if_unused(&mut self, id: u64) {
        let unused = |port: &Port| port.released && port.connections == port.lingering;
        let Some(port) = self.ports.get_mut(&id).filter(|port| unused(port)) else { return };
        port.endpoint.reset_unfinished(&mut port.out);
        self.flush(id);
        let Some(port) = self.ports.remove(&id) else { return };
        let _ = self.poller.remove(&port.socket);
        self.deadlines.set(id, Time::NEVER);
        for number in port.endpoint.connections() {
            self.deadlines.set(number, Time::NEVER);
            self.connections.remove(&number);
        }
    }

    fn receive(&mut self, id: u64) {
        for _ in 0..TURN {
            let Some(port) = self.ports.get_mut(&id) else { return };
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = port.socket.receive(&mut buffer);
            match received {
                Ok(received) => {
                    let now = Clock.now();
                    for datagram in buffer[..received.bytes].chunks_mut(received.size.max(1)) {
                        self.on_datagram(id, now, &received, datagram);
                    }
                    self.buffer = buffer;
                    if let Some(port) = self.ports.get(&id) {
                        self.deadlines.set(id, port.endpoint.next_wakeup());
                    }
                    // First what the peer waits for, then the own application.
                    self.flush(id);
                    self.expects |= !self.touched.is_empty();
                    self.settle_touched(now);
                    self.flush(id);
                }
                Err(error) => {
                    self.buffer = buffer;
                    if error.kind() == io::ErrorKind::WouldBlock {
                        return;
                    }
                    // A complaint that was waiting; it is in the queue of errors too.
                    let _ = self.complaints(id);
                }
            }
        }
    }

    fn on_datagram(&mut self, id: u64, now: Time, received: &Received, datagram: &mut [u8]) {
        let Worker { mailbox, ports, connections, touched, .. } = self;
        let Some(port) = ports.get_mut(&id) else { return };
        let (from, out) = (received.addresses.peer, &mut port.out);
        let keylog = port.service.keylog.as_deref();
        let mut host = PortHost { id, backlog: &port.backlog, mailbox, keylog };
        match port.endpoint.on_datagram(now, received.addresses, datagram, &mut host, out) {
            Route::Done => {}
            Route::Segment(number, datagram) => {
                let connection = connections.get_mut(&number);
                if !connection
                    .is_some_and(|known| known.on_datagram(now, received.addresses, datagram, received.ttl, out))
                {
                    count(&port.endpoint.counters().forged);
                } else if touched.last() != Some(&number) {
                    touched.push(number);
                }
            }
            Route::Answer(number, answer, message) => {
                let Some(connection) = connections.get_mut(&number) else { return };
                if !connection.on_answer(now, from, (&answer, message), &mut host, out) {
                    return count(&port.endpoint.counters().strays);
                }
                if let Some(tag) = connection.peer_tag() {
                    port.endpoint.name_peer(from, tag, number);
                }
                touched.push(number);
            }
            Route::Stray(number) => {
                if let Some(connection) = connections.get_mut(&number) {
                    connection.on_stray(now, out);
                    touched.push(number);
                }
            }
            Route::Accepted(accepted) => self.accept(id, now, *accepted, received.ttl),
        }
    }

    /// A handshake is finished by a datagram that arrived with `ttl`: a connection begins, if that is what it says.
    fn accept(&mut self, id: u64, now: Time, accepted: Accepted<'_>, ttl: u8) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let (handshake, addresses) = (accepted.number, accepted.addresses);
        let settings = Arc::clone(&port.service.settings).with(accepted.request.inner());
        let peer_key = accepted.peer_key;
        let account = settings.account(addresses.peer.ip(), peer_key);
        let mut exchange = Exchange::new(&settings, accepted.request.terms.block(), account);
        let session =
            session::connection::Connection::accept(settings, accepted, ttl, now, &mut exchange, &mut port.out);
        let Some(session) = session else { return port.endpoint.finish(handshake, None) };
        let number = self.mailbox.next_id();
        port.endpoint.finish(handshake, Some(number));
        let mut local = port.endpoint.local();
        if let Some(own) = addresses.own {
            local.set_ip(own);
        }
        let mailbox = Arc::clone(&self.mailbox);
        let shared = Arc::new(Shared::new(number, (local, addresses.peer), peer_key, exchange, mailbox));
        let mut connection = Connection::new(id, session, shared);
        let backlog = port.backlog.clone().or_else(|| self.mailbox.listens(id));
        connection.offer(now, backlog, &mut port.out);
        port.connections += 1;
        self.connections.insert(number, connection);
        self.touched.push(number);
    }

    /// The thread takes no more: everybody who waits, or will ask, is told why.
    pub fn fail_all(&mut self, failure: &Failure) {
        for command in self.mailbox.end(failure) {
            match command {
                Command::Connect { shared, .. } => shared.fail(failure.clone()),
                Command::Listen { backlog, .. } => backlog.fail(failure),
                _ => {}
            }
        }
        self.connections.values().for_each(|connection| connection.fail(failure));
        for backlog in self.ports.values().filter_map(|port| port.backlog.as_ref()) {
            backlog.fail(failure);
        }
    }
}
