//! The thread that runs the connections: it waits for datagrams, for the next time a connection wants to be woken, and for
//! its applications; nobody else touches a state machine.

use super::connection::Connection;
use super::handshake::{Baker, Kind, Opening};
use super::listener::{Backlog, Counters, count};
use super::options::Options;
use super::shared::{Failure, Shared, Status};
use super::socket::{Addresses, Message, Received, Socket};
use crate::Clock;
use crate::clock::sharpen_timers;
use crate::drive::Deadlines;
use crate::poll::{Poller, Ready, Waker};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::{self, Flags, Segment, wire};
use nix::libc;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Messages taken from one socket before the timers are looked at again.
const TURN: usize = 32;

/// Answers to segments of unknown connections per second and port: as many as the kernel gives for datagrams to unknown
/// ports (net.ipv4.icmp_ratelimit), so that nobody can use a port to flood others.
const ANSWERS_PER_SECOND: u32 = 1000;

/// Messages that may wait for room in the kernel's buffer, per socket. Windows are 12 segments at most; what comes on top is
/// dropped, as a full interface queue would.
const WAITING: usize = 4096;

/// Half-open connections per port. Each lasts a round trip unless its peer gives up.
const HALF_OPEN: usize = 256;

/// Up to this a wake-up counts as being on time.
const LATENESS: Duration = Duration::from_millis(1);

/// What applications ask of the runtime.
#[derive(Debug)]
pub(super) enum Command {
    /// A port was bound.
    Bind { id: u64, socket: Socket, options: Arc<Options>, counters: Arc<Counters> },
    /// Nobody holds the port any more; its connections may.
    Release { port: u64 },
    /// Accept connections.
    Listen { port: u64, backlog: Arc<Backlog> },
    /// No longer.
    Unlisten { port: u64 },
    /// Open a connection.
    Connect { port: u64, shared: Arc<Shared>, config: Box<tpa::Config> },
    /// Look at a connection.
    Touch(u64),
    /// Nobody needs the runtime any more.
    Stop,
}

/// How applications reach the thread. Connections hold this and no handle: that would keep the thread alive for ever.
#[derive(Debug)]
pub(super) struct Mailbox {
    commands: Mutex<Vec<Command>>,
    waker: Waker,
    ids: AtomicU64,
}

/// A runtime: one thread for any number of ports and connections. It ends with its last handle, port and stream.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Owner>);

#[derive(Debug)]
struct Owner(Arc<Mailbox>);

impl Handle {
    /// Starts one.
    pub fn start() -> io::Result<Handle> {
        let poller = Poller::new()?;
        let mailbox = Arc::new(Mailbox { commands: Mutex::default(), waker: poller.waker(), ids: AtomicU64::new(1) });
        let mut key = [0; 16];
        random(&mut key)?;
        let mut worker = Worker::new(Arc::clone(&mailbox), poller, Baker::new(key));
        std::thread::Builder::new().name("tpa".into()).spawn(move || worker.run())?;
        Ok(Handle(Arc::new(Owner(mailbox))))
    }

    /// The one of this process, started when first asked for.
    pub fn global() -> io::Result<Handle> {
        static GLOBAL: Mutex<Option<Handle>> = Mutex::new(None);
        let mut global = GLOBAL.lock().expect("nobody panics while holding it");
        match &*global {
            Some(handle) => Ok(handle.clone()),
            None => Ok(global.insert(Handle::start()?).clone()),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.0.0.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn send(&self, command: Command) {
        self.0.0.send(command);
    }

    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.0.0)
    }
}

impl Mailbox {
    pub(super) fn touch(&self, id: u64) {
        self.send(Command::Touch(id));
    }

    fn send(&self, command: Command) {
        let mut commands = self.commands.lock().expect("nobody panics while holding it");
        commands.push(command);
        let first = commands.len() == 1;
        drop(commands);
        if first {
            self.waker.wake();
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.send(Command::Stop);
    }
}

/// Fills `bytes` with unpredictable ones.
fn random(bytes: &mut [u8]) -> io::Result<()> {
    let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    if got == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Segments on their way out of a port.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    open: Message,
    full: VecDeque<Message>,
    spare: Vec<Message>,
}

impl Outbox {
    /// Puts a segment behind the others; its payload comes in two pieces.
    pub(super) fn push(&mut self, to: Addresses, segment: &Segment, a: &[u8], b: &[u8]) {
        let length = wire::INSIDE_UDP + a.len() + b.len();
        if !self.open.takes(to, length) {
            self.seal();
        }
        self.open.push(to, length, |bytes| {
            bytes.extend_from_slice(&wire::encode_inside_udp(segment));
            bytes.extend_from_slice(a);
            bytes.extend_from_slice(b);
        });
    }

    fn seal(&mut self) {
        let empty = self.spare.pop().unwrap_or_default();
        let sealed = std::mem::replace(&mut self.open, empty);
        if sealed.content().is_some() && self.full.len() < WAITING {
            self.full.push_back(sealed);
        }
    }

    fn recycle(&mut self, mut message: Message) {
        message.clear();
        if self.spare.len() < 64 {
            self.spare.push(message);
        }
    }
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

struct Worker {
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
    fn new(mailbox: Arc<Mailbox>, poller: Poller, baker: Baker) -> Worker {
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

    fn run(&mut self) {
        sharpen_timers();
        let mut ready = Vec::new();
        while !self.stopped {
            if let Err(error) = self.poller.wait(self.deadlines.next(), &mut ready) {
                return self.fail_all(&error);
            }
            // Timers first: what is due does not wait for what has just come.
            self.wake_due();
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
            self.obey();
        }
    }

    fn wake_due(&mut self) {
        loop {
            let now = Clock.now();
            let Some((due, id)) = self.deadlines.pop_due(now) else { return };
            // The protocol hears the time it asked for, not the time at which this thread came to it: pacing counts from one
            // segment to the next, and lateness must not add up. Only a real delay is told.
            let told = if now.since(due) <= LATENESS { due } else { now };
            if let Some(port) = self.work(id, told) {
                self.flush(port);
            }
        }
    }

    fn obey(&mut self) {
        let commands = std::mem::take(&mut *self.mailbox.commands.lock().expect("nobody panics while holding it"));
        for command in commands {
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

    /// A SYN for a listener.
    fn on_request(
        &mut self,
        id: u64,
        now: Time,
        received: &Received,
        syn: &Segment,
        payload: &[u8],
        backlog: Arc<Backlog>,
    ) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let addresses = received.addresses;
        let request = Opening::decode(payload).filter(|opening| opening.kind == Kind::Request);
        let Some(request) = request else { return count(&port.counters.malformed) };
        let base = tpa::Config { close_with_peer: false, ..port.options.transport.clone() };
        let Some(mut config) = request.terms.apply(&base) else { return count(&port.counters.malformed) };
        if !self.baker.accepts(now, addresses.peer, syn.block, &request) {
            count(&port.counters.challenges);
            let cookie = self.baker.cookie(now, addresses.peer, syn.block, &request);
            let challenge = Opening { kind: Kind::Challenge, cookie, ..request };
            let flags = Flags::SYN.with(Flags::ACK);
            let answer = Segment { ack_block: syn.block, flags, ..Segment::default() };
            return port.out.push(addresses, &answer, &challenge.encode(), &[]);
        }
        let counters = Arc::clone(&port.counters);
        if !backlog.has_room() || !self.make_room(id, now) {
            return count(&counters.crowded);
        }
        let mut bytes = [0; 2];
        if random(&mut bytes).is_err() {
            return;
        }
        config.first_block = u16::from_be_bytes(bytes) % tpa::segment::BLOCK_NUMBERS;
        if let Some(old) = self.ports.get(&id).and_then(|port| port.by_peer.get(&addresses.peer)).copied() {
            self.forget(old);
        }
        let handle = self.mailbox.ids.fetch_add(1, Ordering::Relaxed);
        let Some(port) = self.ports.get_mut(&id) else { return };
        let block = config.segment as usize * usize::from(config.block_segments);
        let mut local = port.socket.local();
        if let Some(own) = addresses.own {
            local.set_ip(own);
        }
        let mailbox = Arc::clone(&self.mailbox);
        let shared = Arc::new(Shared::new(handle, local, addresses.peer, block, Arc::clone(&port.options), mailbox));
        let connection = Connection::accept(id, addresses, shared, &config, (syn, &request), backlog, now);
        port.by_peer.insert(addresses.peer, handle);
        self.connections.insert(handle, connection);
        self.work(handle, now);
    }

    /// Whether a port may have another half-open connection, after forgetting one that has been so for too long: its cookie
    /// was good, but whoever does not go on must not keep others out.
    fn make_room(&mut self, id: u64, now: Time) -> bool {
        let Some(port) = self.ports.get(&id) else { return false };
        let half_open = |number: &u64| Some((self.connections.get(number)?.half_open_since()?, *number));
        let (mut oldest, mut count) = (None, 0);
        for found in port.by_peer.values().filter_map(half_open) {
            count += 1;
            oldest = Some(oldest.map_or(found, |oldest: (Time, u64)| oldest.min(found)));
        }
        match oldest {
            Some((since, number)) if count >= HALF_OPEN => {
                let stale = now.since(since) >= port.options.transport.rto.initial;
                if stale {
                    self.forget(number);
                }
                stale
            }
            _ => true,
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
