//! Thread that runs the connections. It waits for datagrams, for the next deadline of a connection,
//! and for commands of applications. No other thread uses a session.

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
use crate::poll::{Poller, Ready};
use busy_poll::BusyPoll;
use meshpace_core::{Deadlines, Duration, Time};
use meshpace_session::cipher::Cipher;
use meshpace_session::counters::count;
use meshpace_session::endpoint::{Accepted, Endpoint, Route, random_names};
use meshpace_session::exchange::Exchange;
use meshpace_session::failure::Failure;
use meshpace_session::handshake::Tag;
use meshpace_session::outbox::Outbox;
use meshpace_session::settings::Settings;
use meshpace_session::unpredictable::Unpredictable;
use meshpace_session::{Host, Randomness};
use meshpace_transport::tpa;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use strangers::Strangers;

/// Maximum number of messages that are received from one socket before the timers are checked
/// again.
const TURN: usize = 32;

/// Wake-ups that are late by at most this time count as on time.
const LATENESS: Duration = Duration::from_millis(1);

/// Wake-ups that are late by at least this time show that the process was not running: it was
/// stopped, or the machine was suspended or overloaded.
const ABSENCE: Duration = Duration::from_millis(500);

/// State of one UDP port in the runtime.
#[derive(Debug)]
struct Port {
    socket: Socket,
    endpoint: Box<Endpoint>,
    service: Service,
    /// Queue of connections that wait to be accepted; `None` if nobody listens.
    backlog: Option<Arc<Backlog>>,
    /// Number of connections, including those that only answer late peers.
    connections: usize,
    /// Number of connections that only answer late peers.
    lingering: usize,
    out: Outbox,
    strangers: Strangers,
    /// True while the port waits for room in the kernel's send buffer.
    blocked: bool,
    /// Threads that are notified once everything in `out` has been sent.
    departures: Vec<SyncSender<()>>,
    /// True once the application has dropped all handles of the port.
    released: bool,
}

/// Implementation of [`Host`] for the sessions of one port.
struct PortHost<'a> {
    id: u64,
    backlog: &'a Option<Arc<Backlog>>,
    mailbox: &'a Mailbox,
    keylog: Option<&'a KeyLog>,
}

impl PortHost<'_> {
    /// Queue of connections that wait to be accepted; `None` if nobody listens.
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

/// State of the runtime's thread.
pub struct Worker {
    mailbox: Arc<Mailbox>,
    poller: Poller,
    ports: BTreeMap<u64, Port>,
    connections: BTreeMap<u64, Connection>,
    /// Deadlines of connections, and of ports for their unfinished handshakes.
    deadlines: Deadlines,
    busy_poll: BusyPoll,
    /// True if a connection has received a datagram since the last wait, or its application has
    /// called: its peer may answer soon.
    expects: bool,
    /// Connections that have received a datagram in this iteration.
    touched: Vec<u64>,
    buffer: Vec<u8>,
    stopped: bool,
}

impl Worker {
    /// Creates the state of a thread that executes the commands in `mailbox` and waits with
    /// `poller`.
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

    /// Runs until [`Command::Stop`].
    ///
    /// # Errors
    ///
    /// The error of the system call that waits.
    pub fn run(&mut self) -> io::Result<()> {
        sharpen_timers();
        let mut ready = Vec::new();
        let mut absent = false;
        while !self.stopped {
            let expects = std::mem::take(&mut self.expects);
            self.busy_poll.wait(&self.poller, self.deadlines.next(), expects, &mut ready)?;
            // Expired timers are handled before new datagrams. After an absence of this process,
            // however, the answers that the timers wait for may already have arrived. The datagrams
            // are then received first, and commands of applications wait until then.
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
                // Receiving also clears an error that is not in the error queue.
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

    /// Runs all connections and ports whose deadline has passed. Returns false if a deadline passed
    /// so long ago that this process was not running, unless `caught_up` says that the datagrams of
    /// that time have been received.
    fn wake_due(&mut self, caught_up: bool) -> bool {
        loop {
            let now = Clock.now();
            if !caught_up && now.since(self.deadlines.next()) >= ABSENCE {
                return false;
            }
            let Some((due, id)) = self.deadlines.pop_due(now) else { return true };
            // The protocol is given the time that it requested, and not the time at which this
            // thread got to it. Pacing counts from one segment to the next, and lateness must not
            // accumulate. A delay above `LATENESS` is reported.
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
                        // A connection that no longer exists has nothing left to send.
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
            .and_then(|names| Ok((names, meshpace_session::random(&mut Machine)?, Unpredictable::new(&mut Machine)?)));
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
        let session = meshpace_session::connection::Connection::open(settings, addresses, &config, own, now);
        self.connections.insert(number, Connection::new(id, session, shared));
        self.work(number, now);
        self.flush(id);
    }

    /// Runs a connection and returns the number of its port, which then has to be flushed.
    fn work(&mut self, id: u64, now: Time) -> Option<u64> {
        let connection = self.connections.get_mut(&id)?;
        let number = connection.port;
        let port = self.ports.get_mut(&number)?;
        connection.work(now, &mut port.out);
        self.settle(id, now);
        Some(number)
    }

    /// Updates the deadline of a connection after any event, or removes the connection if it is
    /// finished.
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

    /// Informs the applications of all connections that received datagrams in this iteration, and
    /// updates their deadlines.
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

    /// Closes a port without handles once no connection of it is active. Connections that only
    /// answer late peers end with the port, so that the port can be bound again at once. A late
    /// peer then gets no answer, but it already has all data.
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
                    // What the peers wait for is sent before the own application is woken.
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
                    // Receiving returned a pending error, which is in the error queue, too.
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

    /// Handles the datagram, received with `ttl`, that completes a handshake. Creates the
    /// connection if the datagram is valid.
    fn accept(&mut self, id: u64, now: Time, accepted: Accepted<'_>, ttl: u8) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let (handshake, addresses) = (accepted.number, accepted.addresses);
        let settings = Arc::clone(&port.service.settings).with(accepted.request.inner());
        let peer_key = accepted.peer_key;
        let account = settings.account(addresses.peer.ip(), peer_key);
        let mut exchange = Exchange::new(&settings, accepted.request.terms.block(), account);
        let session = meshpace_session::connection::Connection::accept(
            settings,
            accepted,
            ttl,
            now,
            &mut exchange,
            &mut port.out,
        );
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

    /// Ends all commands, connections and backlogs with `failure`, because the thread ends.
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
