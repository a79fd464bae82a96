//! The thread that runs the connections: it waits for datagrams, for the next time a connection wants to be woken, and for
//! its applications; nobody else touches a state machine.

mod requests;

use super::connection::Connection;
use super::handle::{Command, Mailbox};
use super::handshake::Baker;
use super::listener::{Backlog, Counters, count};
use super::options::Options;
use super::outbox::Outbox;
use super::shared::{Failure, Shared, Status};
use super::socket::{Addresses, Received, Socket};
use crate::Clock;
use crate::clock::sharpen_timers;
use crate::drive::Deadlines;
use crate::poll::{Poller, Ready};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::{self, Flags, Segment, wire};
use nix::libc;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;

/// Messages taken from one socket before the timers are looked at again.
const TURN: usize = 32;

/// Answers to segments of unknown connections per second and port: as many as the kernel gives for datagrams to unknown
/// ports (net.ipv4.icmp_ratelimit), so that nobody can use a port to flood others.
const ANSWERS_PER_SECOND: u32 = 1000;

/// Up to this a wake-up counts as being on time.
const LATENESS: Duration = Duration::from_millis(1);

/// From this on this process has not been running: stopped, or its machine asleep or overwhelmed.
const ABSENCE: Duration = Duration::from_millis(500);

/// Fills `bytes` with unpredictable ones.
pub(super) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    if got == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// One UDP port in the hands of the runtime.
#[derive(Debug)]
struct Port {
    socket: Socket,
    options: Arc<Options>,
    counters: Arc<Counters>,
    backlog: Option<Arc<Backlog>>,
    /// The connections by peer.
    by_peer: BTreeMap<SocketAddrV4, u64>,
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
    deadlines: Deadlines,
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
            deadlines: Deadlines::default(),
            buffer: vec![0; 1 << 16],
            stopped: false,
        }
    }

    /// Until nobody needs it any more.
    pub(super) fn run(&mut self) {
        sharpen_timers();
        let mut ready = Vec::new();
        let mut absent = false;
        while !self.stopped {
            if let Err(error) = self.poller.wait(self.deadlines.next(), &mut ready) {
                return self.fail_all(&error);
            }
            // Timers first: what is due does not wait for what has just come. But after an absence the answers they wait for
            // may long be here: these are taken first, and nobody is heard until then.
            let catches_up = absent;
            if !catches_up {
                absent = !self.wake_due(false);
            }
            for Ready { token, readable, writable, error } in ready.drain(..) {
                if error {
                    self.complaints(token, None);
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
                    if let Err(error) = self.poller.add(&socket, id) {
                        // Without it nothing will ever arrive: whoever connects is told.
                        eprintln!("meshpace: UDP port {}: {error}", socket.local());
                    }
                    let port = Port {
                        socket,
                        options,
                        counters,
                        backlog: None,
                        by_peer: BTreeMap::new(),
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
                    if let Some(port) = self.work(id, Clock.now()) {
                        self.flush(port);
                    }
                }
                Command::Stop => self.stopped = true,
            }
        }
    }

    fn connect(&mut self, id: u64, shared: Arc<Shared>, mut config: tpa::Config) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        if let Some(other) = port.by_peer.get(&shared.peer).copied() {
            if self.connections.get(&other).is_some_and(|connection| !connection.is_over()) {
                let message = format!("{} and {} are connected already", shared.local, shared.peer);
                return fail(&shared, Failure::new(libc::EADDRINUSE, message));
            }
            self.forget(other);
        }
        let mut bytes = [0; 10];
        if let Err(error) = random(&mut bytes) {
            return fail(&shared, Failure::of(&error, format!("no random numbers: {error}")));
        }
        let [nonce @ .., a, b] = bytes;
        config.first_block = u16::from_be_bytes([a, b]) % tpa::segment::BLOCK_NUMBERS;
        let now = Clock.now();
        let addresses = Addresses { peer: shared.peer, own: None };
        let number = shared.id;
        let Some(port) = self.ports.get_mut(&id) else { return };
        port.by_peer.insert(shared.peer, number);
        let connection = Connection::open(id, addresses, shared, &config, nonce, now);
        self.connections.insert(number, connection);
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
        let Some(port) = self.ports.get_mut(&connection.port) else { return };
        if connection.expire(now, &mut port.out) {
            let number = connection.port;
            self.flush(number);
            self.forget(id);
        } else {
            self.deadlines.set(id, connection.next_wakeup());
        }
    }

    /// After what came from `peer` has been handled, all at once.
    fn settle_peer(&mut self, id: u64, now: Time, peer: SocketAddrV4) {
        let Some(number) = self.ports.get(&id).and_then(|port| port.by_peer.get(&peer)).copied() else { return };
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.tell_application();
        }
        self.settle(number, now);
    }

    fn forget(&mut self, id: u64) {
        self.deadlines.set(id, Time::NEVER);
        let Some(connection) = self.connections.remove(&id) else { return };
        if let Some(port) = self.ports.get_mut(&connection.port)
            && port.by_peer.get(&connection.addresses.peer) == Some(&id)
        {
            port.by_peer.remove(&connection.addresses.peer);
        }
        self.close_if_unused(connection.port);
    }

    fn close_if_unused(&mut self, id: u64) {
        let unused = |port: &Port| port.released && port.by_peer.is_empty();
        if self.ports.get(&id).is_some_and(unused)
            && let Some(port) = self.ports.remove(&id)
        {
            let _ = self.poller.remove(&port.socket);
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
                    for datagram in buffer[..received.bytes].chunks(received.size.max(1)) {
                        self.on_datagram(id, now, &received, datagram);
                    }
                    self.buffer = buffer;
                    self.settle_peer(id, now, received.addresses.peer);
                    self.flush(id);
                }
                Err(error) => {
                    self.buffer = buffer;
                    if error.kind() == io::ErrorKind::WouldBlock {
                        return;
                    }
                    // A complaint that was waiting; it is in the queue of errors too.
                    self.complaints(id, None);
                }
            }
        }
    }

    fn on_datagram(&mut self, id: u64, now: Time, received: &Received, datagram: &[u8]) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let Ok((segment, payload)) = wire::decode_inside_udp(datagram) else {
            return count(&port.counters.malformed);
        };
        let peer = received.addresses.peer;
        if let Some(number) = port.by_peer.get(&peer).copied()
            && let Some(connection) = self.connections.get_mut(&number)
        {
            let again = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && connection.is_over();
            if !again {
                return connection.on_segment(now, &segment, payload, received.ttl, &mut port.out);
            }
            // The last one is over; the peer begins another.
        }
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST);
        match port.backlog.clone() {
            Some(backlog) if opens => self.on_request(id, now, received, &segment, payload, backlog),
            _ => {
                count(&port.counters.strays);
                if let Some(reset) = Segment::reset_for(&segment).filter(|_| port.may_answer(now)) {
                    port.out.push(received.addresses, &reset, &[], &[]);
                }
            }
        }
    }

    /// Sends what a port has gathered.
    fn flush(&mut self, id: u64) {
        let mut tried = false;
        while let Some(port) = self.ports.get_mut(&id) {
            port.out.seal();
            let Some(message) = port.out.full.front().filter(|_| !port.blocked) else { return };
            let Some((to, bytes, size)) = message.content() else { return };
            match port.socket.send(to, bytes, size) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    port.blocked = true;
                    let _ = self.poller.watch_writable(&port.socket, id, true);
                    return;
                }
                // What the network said about an earlier datagram is told now and then forgotten.
                Err(_) if !tried => {
                    tried = true;
                    continue;
                }
                result => {
                    tried = false;
                    let done = port.out.full.pop_front();
                    done.into_iter().for_each(|message| port.out.recycle(message));
                    if let Err(error) = result {
                        self.complaints(id, Some(to.peer));
                        self.complain(id, to.peer, error.raw_os_error().unwrap_or(libc::EIO), 0);
                    }
                }
            }
        }
    }

    /// What the network has said about datagrams of a port; `last` is whom the last one was for, if it has just been
    /// refused. This host's own complaints do not name the port they are about.
    fn complaints(&mut self, id: u64, last: Option<SocketAddrV4>) {
        while let Some(port) = self.ports.get_mut(&id)
            && let Some(complaint) = port.socket.complaint()
        {
            let here = last.filter(|last| complaint.peer.port() == 0 && complaint.peer.ip() == last.ip());
            self.complain(id, here.unwrap_or(complaint.peer), complaint.errno, complaint.mtu);
        }
    }

    /// Tells the connection with `peer`, if there is one. What it sends then waits for the next flush.
    fn complain(&mut self, id: u64, peer: SocketAddrV4, errno: i32, mtu: u32) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let Some(number) = port.by_peer.get(&peer).copied() else { return };
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let now = Clock.now();
        connection.on_complaint(now, errno, mtu, &mut port.out);
        // At the next turn of the loop: whoever is flushing must find the connection and its port.
        self.deadlines.set(number, now);
    }

    /// The thread cannot go on.
    fn fail_all(&mut self, error: &io::Error) {
        for connection in self.connections.values() {
            fail(&connection.shared, Failure::of(error, format!("waiting for datagrams: {error}")));
        }
    }
}

fn fail(shared: &Shared, failure: Failure) {
    let mut state = shared.lock();
    (state.failure, state.status) = (Some(failure), Status::Failed);
    shared.wake_readers(&state);
    shared.wake_writers(&state);
}
