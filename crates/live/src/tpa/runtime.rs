//! The thread that runs the connections: it waits for datagrams, for the next time a connection wants to be woken, and for
//! its applications; nobody else touches a state machine.

mod complaints;
mod haste;
mod requests;

use super::connection::Connection;
use super::cookie::Baker;
use super::half_open::HalfOpen;
use super::handle::{Command, Mailbox};
use super::handshake::{Tag, stray, tag_of};
use super::listener::{Backlog, Counters, count};
use super::options::Options;
use super::outbox::Outbox;
use super::shared::{Failure, Shared};
use super::socket::{Addresses, Received, Socket};
use super::sources::Sources;
use crate::Clock;
use crate::clock::sharpen_timers;
use crate::drive::Deadlines;
use crate::poll::{Poller, Ready};
use haste::Haste;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Messages taken from one socket before the timers are looked at again.
const TURN: usize = 32;

/// Answers to datagrams of unknown connections per second and port: as many as the kernel gives for datagrams to unknown
/// ports (net.ipv4.icmp_ratelimit), so that nobody can use a port to flood others.
const ANSWERS_PER_SECOND: u32 = 1000;

/// Up to this a wake-up counts as being on time.
const LATENESS: Duration = Duration::from_millis(1);

/// From this on this process has not been running: stopped, or its machine asleep or overwhelmed.
const ABSENCE: Duration = Duration::from_millis(500);

/// Fills `bytes` with unpredictable ones.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    if got == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A tag that nobody can guess.
pub(super) fn random_tag() -> io::Result<Tag> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    // Zero has another meaning, and comes once in 2^64 times.
    Ok(Tag::from_be_bytes(bytes).max(1))
}

/// One UDP port in the hands of the runtime.
#[derive(Debug)]
struct Port {
    socket: Socket,
    options: Arc<Options>,
    counters: Arc<Counters>,
    backlog: Option<Arc<Backlog>>,
    /// Connections and unfinished handshakes by our tag.
    by_tag: BTreeMap<Tag, u64>,
    /// The same by the peer's address and tag, as far as it is known.
    by_peer: BTreeMap<(SocketAddr, Tag), u64>,
    sources: Sources,
    /// Connections, and those of them that only answer peers that are late.
    connections: usize,
    lingering: usize,
    out: Outbox,
    /// Waits for room in the kernel's buffer.
    blocked: bool,
    released: bool,
    /// Answers still to be given in this second.
    answers: u32,
    answers_since: Time,
}

impl Port {
    /// Whether an answer to a stranger may be given now.
    fn may_answer(&mut self, now: Time) -> bool {
        if now.since(self.answers_since) >= Duration::from_secs(1) {
            (self.answers, self.answers_since) = (ANSWERS_PER_SECOND, now);
        }
        let may = self.answers > 0;
        self.answers = self.answers.saturating_sub(1);
        may
    }
}

/// The thread's own.
pub(super) struct Worker {
    mailbox: Arc<Mailbox>,
    poller: Poller,
    baker: Baker,
    ports: BTreeMap<u64, Port>,
    connections: BTreeMap<u64, Connection>,
    half_open: BTreeMap<u64, HalfOpen>,
    deadlines: Deadlines,
    haste: Haste,
    /// A connection has heard something since the last wait, or was told something to say: its peer may soon say more.
    expects: bool,
    /// Connections that something arrived for in this turn.
    touched: Vec<u64>,
    buffer: Vec<u8>,
    stopped: bool,
}

impl Worker {
    pub(super) fn new(mailbox: Arc<Mailbox>, poller: Poller, baker: Baker) -> Worker {
        Worker {
            mailbox,
            poller,
            baker,
            ports: BTreeMap::new(),
            connections: BTreeMap::new(),
            half_open: BTreeMap::new(),
            touched: Vec::new(),
            deadlines: Deadlines::default(),
            haste: Haste::default(),
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
    pub(super) fn run(&mut self) -> io::Result<()> {
        sharpen_timers();
        let mut ready = Vec::new();
        let mut absent = false;
        while !self.stopped {
            let expects = std::mem::take(&mut self.expects);
            self.haste.wait(&self.poller, self.deadlines.next(), expects, &mut ready)?;
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
            if let Some(port) = self.half_open.get(&id).map(|half_open| half_open.port) {
                self.repeat_acceptance(id, now);
                self.flush(port);
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
                Command::Bind { id, socket, options, counters } => {
                    let now = Clock.now();
                    let port = Port {
                        socket,
                        sources: Sources::new(options.limits),
                        options,
                        counters,
                        backlog: None,
                        by_tag: BTreeMap::new(),
                        by_peer: BTreeMap::new(),
                        connections: 0,
                        lingering: 0,
                        out: Outbox::default(),
                        blocked: false,
                        released: false,
                        answers: ANSWERS_PER_SECOND,
                        answers_since: now,
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
                Command::Connect { port, shared, config } => self.connect(port, shared, *config),
                Command::Touch(id) => {
                    self.expects = true;
                    if let Some(port) = self.work(id, Clock.now()) {
                        self.flush(port);
                    }
                }
                Command::Stop => self.stopped = true,
            }
        }
    }

    fn connect(&mut self, id: u64, shared: Arc<Shared>, mut config: tpa::Config) {
        let mut bytes = [0; 2];
        let tag = match random_tag().and_then(|tag| random(&mut bytes).map(|()| tag)) {
            Ok(tag) => tag,
            Err(error) => {
                let failure = Failure::of(&error, format!("no random numbers: {error}"));
                return shared.fail(&mut shared.lock(), failure);
            }
        };
        config.first_block = u16::from_be_bytes(bytes) % tpa::segment::BLOCK_NUMBERS;
        let now = Clock.now();
        let addresses = Addresses { peer: shared.peer, own: None };
        let number = shared.id;
        let Some(port) = self.ports.get_mut(&id) else { return };
        port.by_tag.insert(tag, number);
        port.connections += 1;
        self.connections.insert(number, Connection::open(id, addresses, shared, &config, tag, now));
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
        port.by_tag.remove(&connection.tag);
        if let Some(tag) = connection.peer_tag() {
            port.by_peer.remove(&(connection.addresses.peer, tag));
        }
        port.connections -= 1;
        port.lingering -= usize::from(connection.lingers);
        if connection.is_theirs() {
            port.sources.close(connection.addresses.peer.ip());
        }
        self.close_if_unused(connection.port);
    }

    /// Closes a port that nobody holds once no connection of it is alive. Those that would only answer late peers end with
    /// it, so that the port can be bound again at once: a peer that is late finds nobody, and has everything.
    fn close_if_unused(&mut self, id: u64) {
        let unused = |port: &Port| port.released && port.connections == port.lingering;
        let Some(port) = self.ports.get_mut(&id).filter(|port| unused(port)) else { return };
        // Whoever has an acceptance of ours takes the connection for open.
        let unfinished = port.by_tag.values().filter_map(|number| self.half_open.get(number));
        unfinished.for_each(|half_open| half_open.reset(&mut port.out));
        self.flush(id);
        let Some(port) = self.ports.remove(&id) else { return };
        let _ = self.poller.remove(&port.socket);
        for number in port.by_tag.into_values() {
            self.deadlines.set(number, Time::NEVER);
            self.connections.remove(&number);
            self.half_open.remove(&number);
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
                    if self.baker.is_due(now) {
                        self.rotate_keys(now);
                    }
                    for datagram in buffer[..received.bytes].chunks_mut(received.size.max(1)) {
                        self.on_datagram(id, now, &received, datagram);
                    }
                    self.buffer = buffer;
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

    fn rotate_keys(&mut self, now: Time) {
        let mut secrets = [[0; 16]; 2];
        // Without random numbers the old keys must do.
        if random(secrets.as_flattened_mut()).is_ok() {
            self.baker.rotate(now, secrets);
        }
    }

    fn on_datagram(&mut self, id: u64, now: Time, received: &Received, datagram: &mut [u8]) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let tag = match tag_of(datagram) {
            None => return count(&port.counters.malformed),
            Some(0) => return self.on_opening(id, now, received, datagram),
            Some(tag) => tag,
        };
        let peer = received.addresses.peer;
        let Some(number) = port.by_tag.get(&tag).copied() else {
            count(&port.counters.strays);
            if datagram.len() >= super::handshake::STRAY_BYTES && port.may_answer(now) {
                port.out.push_bytes(received.addresses, &stray(tag));
            }
            return;
        };
        let authentic = if let Some(connection) = self.connections.get_mut(&number) {
            connection.addresses.peer == peer && connection.on_datagram(now, datagram, received.ttl, &mut port.out)
        } else {
            let theirs = self.half_open.get(&number).is_some_and(|half_open| half_open.addresses.peer == peer);
            theirs && self.on_first_datagram(number, now, received, datagram)
        };
        if authentic {
            if self.touched.last() != Some(&number) {
                self.touched.push(number);
            }
        } else if let Some(port) = self.ports.get(&id) {
            count(&port.counters.forged);
        }
    }

    /// The thread takes no more: everybody who waits, or will ask, is told why.
    pub(super) fn fail_all(&mut self, failure: &Failure) {
        for command in self.mailbox.end(failure) {
            match command {
                Command::Connect { shared, .. } => shared.fail(&mut shared.lock(), failure.clone()),
                Command::Listen { backlog, .. } => backlog.fail(failure),
                _ => {}
            }
        }
        for connection in self.connections.values() {
            let mut state = connection.shared.lock();
            if state.status != super::shared::Status::Done {
                connection.shared.fail(&mut state, failure.clone());
            }
        }
        for backlog in self.ports.values().filter_map(|port| port.backlog.as_ref()) {
            backlog.fail(failure);
        }
    }
}
