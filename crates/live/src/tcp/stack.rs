//! Connections over an interface: the table of connections, their data, and their timers.
//!
//! Besides running the connections, the stack has the following duties of a host (RFC 9293):
//!
//! - Segments for no connection are answered with a reset (section 3.10.7.1).
//! - Initial sequence numbers cannot be guessed (RFC 6528). Here they are random, so that a new
//!   connection between the same ports relies on TIME-WAIT alone.
//! - ICMP errors end only a connection that is being opened (RFC 1122, section 4.2.3.9, and RFC
//!   5927, section 4). An established connection continues to retransmit.
//!
//! A connection that a peer is opening has no buffers yet, and at most [`Limits::opening`] such
//! connections are kept. A flood of SYNs removes the oldest of them and does not use up the memory.
//! An honest peer completes the handshake within one round trip.

mod arrivals;
mod conversation;
mod entry;
mod output;

use super::interface::Interface;
use super::packet::Unreachable;
use crate::clock::sharpen_timers;
use crate::poll::{Poller, Ready};
pub use conversation::{Conversation, Protocol};
use entry::{Entry, Key};
use meshpace_core::{Deadlines, Rate, Time};
use meshpace_session::budget::{Bounds, Budget};
use meshpace_session::networks::source_of;
use meshpace_session::ring::{ReceiveRing, SendRing};
use meshpace_transport::tcp::End;
use meshpace_transport::tcp::wire::{self, Numbers};
use meshpace_transport::{PathInfo, Role, pump};
use nix::libc;
use output::Output;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// First of the ports from which connections are opened (RFC 6335, section 6: dynamic ports).
const FIRST_PORT: u16 = 49_152;

/// Maximum number of packets that are received from the interface before timers are checked again.
const AT_ONCE: usize = 64;

/// Identifier of a connection of a stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id(u64);

/// Limits on what a stack stores.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of bytes per connection that are written and not acknowledged.
    pub send_buffer: usize,
    /// Maximum number of connections that peers have begun to open.
    pub opening: usize,
    /// Maximum number of connections per port that peers have opened and that have not been
    /// accepted.
    pub backlog: usize,
    /// Maximum number of bytes in the buffers of all connections. The connections with one address
    /// may use half of it. A connection that needs more is ended.
    pub buffers: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { send_buffer: 1 << 20, opening: 256, backlog: 64, buffers: 64 << 20 }
    }
}

/// Status of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// True if the handshake is complete.
    pub established: bool,
    /// Number of bytes that can be read.
    pub readable: usize,
    /// Number of bytes that can be written.
    pub writable: usize,
    /// Number of bytes that were written and are not acknowledged.
    pub unacknowledged: u64,
    /// True if the peer has closed and all data have been read.
    pub at_end: bool,
    /// How the connection ended; `None` while it has not.
    pub end: Option<End>,
    /// The last ICMP error about the connection; `None` if there was none.
    pub unreachable: Option<Unreachable>,
    /// MTU in bytes of the interface if it refused a packet of the connection as too long, which
    /// has ended the connection. `None` otherwise.
    pub too_long: Option<u16>,
}

/// Counts of packets that were not used or not sent, and of connections that were removed to make
/// room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trouble {
    /// Packets that are invalid or not for a TCP.
    pub malformed: u64,
    /// Packets with a wrong checksum.
    pub checksums: u64,
    /// Segments that belong to no connection.
    pub strays: u64,
    /// Connections that were removed before they were open, or that were not accepted in time.
    pub pushed_out: u64,
    /// Packets that the interface did not accept.
    pub unsent: u64,
}

#[derive(Debug)]
struct Listener {
    protocol: Protocol,
    /// Connections that are established and not accepted, in order.
    ready: VecDeque<Id>,
}

/// All TCP connections of one interface, run by one thread.
#[derive(Debug)]
pub struct Stack<I> {
    output: Output<I>,
    poller: Poller,
    limits: Limits,
    path: PathInfo,
    follow_time_to_live: bool,
    entries: BTreeMap<Id, Entry>,
    by_key: BTreeMap<Key, Id>,
    listeners: BTreeMap<u16, Listener>,
    /// Connections that peers are opening, the oldest first.
    opening: VecDeque<Id>,
    deadlines: Deadlines,
    next_id: u64,
    trouble: Trouble,
    budget: Budget,
    incoming: Vec<u8>,
    ready: Vec<Ready>,
}

impl<I: Interface> Stack<I> {
    /// Creates a stack without connections. The timers of the calling thread are made more precise.
    ///
    /// # Errors
    /// The system provides no descriptor to wait with, or the interface cannot be watched.
    pub fn new(interface: I, limits: Limits) -> io::Result<Stack<I>> {
        sharpen_timers();
        let poller = Poller::new()?;
        interface.watch(&poller, 0)?;
        let output = Output {
            interface,
            next_number: random::<2>().map_or(0, u16::from_ne_bytes),
            sent: 0,
            unsent: 0,
            buffer: Vec::with_capacity(1 << 16),
        };
        Ok(Stack {
            output,
            poller,
            limits,
            path: PathInfo { hops: 1, rate: Rate::from_mbps(2), received_power_dbm: None },
            follow_time_to_live: false,
            entries: BTreeMap::new(),
            by_key: BTreeMap::new(),
            listeners: BTreeMap::new(),
            opening: VecDeque::new(),
            deadlines: Deadlines::default(),
            next_id: 0,
            trouble: Trouble::default(),
            budget: Budget::new(Bounds { port: limits.buffers, source: limits.buffers / 2, key: usize::MAX }),
            incoming: vec![0; 1 << 16],
            ready: Vec::new(),
        })
    }

    /// Sets the path information for connections. With `follow_time_to_live`, the number of hops is
    /// derived from the time to live of the peer's packets, once packets have arrived.
    pub fn set_path(&mut self, path: PathInfo, follow_time_to_live: bool) {
        (self.path, self.follow_time_to_live) = (path, follow_time_to_live);
    }

    fn now(&self) -> Time {
        self.output.interface.now()
    }

    /// The stack's interface.
    pub fn interface(&self) -> &I {
        &self.output.interface
    }

    /// Returns a handle that wakes [`Stack::step`] from another thread.
    pub fn waker(&self) -> crate::poll::Waker {
        self.poller.waker()
    }

    /// Opens a connection. The parameters of `protocol` must pass their `check`.
    ///
    /// # Errors
    /// `InvalidInput` if `to` is not an address to connect to or the MTU leaves no room for a
    /// segment; `AddrInUse` if no port is free; the error of the interface about the port.
    pub fn connect(&mut self, to: SocketAddrV4, protocol: impl Into<Protocol>) -> io::Result<Id> {
        if to.port() == 0 || to.ip().is_unspecified() || to.ip().is_broadcast() || to.ip().is_multicast() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{to} cannot be connected to")));
        }
        let port = self.free_port(to)?;
        let key = (*to.ip(), to.port(), port);
        let path_mss = self.path_mss()?;
        let protocol = protocol.into().with_segments_up_to(u32::from(path_mss) - wire::TIMESTAMP_BYTES);
        let window = protocol.window();
        let offer = protocol.options(wire::offer(path_mss, window));
        let numbers = Numbers {
            own: random_number()?,
            peer: 0,
            own_scale: offer.window_scale.unwrap_or(0),
            peer_scale: 0,
            timestamps: true,
        };
        let mut connection = protocol.connection(Role::Sender);
        connection.on_path(self.path);
        let now = self.now();
        connection.open(now);
        let buffers = buffers(&self.budget, *to.ip(), self.limits.send_buffer, window as usize);
        let entry = Entry {
            key,
            connection,
            protocol,
            numbers,
            syn_options: offer,
            syns: (0, Time::ZERO),
            path_mss,
            buffers: Some(buffers),
            window: window as usize,
            hops: 0,
            closed: false,
            accepted: true,
            claimed: true,
            released: false,
            unreachable: None,
            too_long: None,
        };
        let id = self.insert(entry);
        self.pump(id, now);
        Ok(id)
    }

    /// Listens on a port.
    ///
    /// # Errors
    /// `InvalidInput` for port 0; `AddrInUse` if the stack already listens on the port; the error
    /// of the interface about the port.
    pub fn listen(&mut self, port: u16, protocol: impl Into<Protocol>) -> io::Result<()> {
        if port == 0 || self.listeners.contains_key(&port) {
            let kind = if port == 0 { io::ErrorKind::InvalidInput } else { io::ErrorKind::AddrInUse };
            return Err(io::Error::new(kind, format!("port {port} cannot be listened to")));
        }
        self.output.interface.claim(port)?;
        self.listeners.insert(port, Listener { protocol: protocol.into(), ready: VecDeque::new() });
        Ok(())
    }

    /// Accepts a connection to a port. Returns the connection and its peer; `None` if no connection
    /// is waiting.
    pub fn accept(&mut self, port: u16) -> Option<(Id, SocketAddrV4)> {
        loop {
            let id = self.listeners.get_mut(&port)?.ready.pop_front()?;
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.accepted = true;
                return Some((id, SocketAddrV4::new(entry.key.0, entry.key.1)));
            }
        }
    }

    /// Writes as many bytes as there is room for. Returns their number.
    pub fn write(&mut self, id: Id, bytes: &[u8]) -> usize {
        let now = self.now();
        let Some(entry) = self.entries.get_mut(&id) else { return 0 };
        let Some((send, _)) = &mut entry.buffers else { return 0 };
        if entry.connection.end().is_some() {
            return 0;
        }
        let Ok(taken) = send.write(bytes) else {
            // There is no memory, and no data whose acknowledgement would free some.
            self.abort(id);
            return 0;
        };
        entry.connection.write(now, taken as u64);
        self.pump(id, now);
        taken
    }

    /// Reads bytes that have arrived. Returns their number.
    pub fn read(&mut self, id: Id, into: &mut [u8]) -> usize {
        let now = self.now();
        let Some(entry) = self.entries.get_mut(&id) else { return 0 };
        let Some((_, receive)) = &mut entry.buffers else { return 0 };
        let taken = receive.read(into);
        if taken > 0 {
            entry.connection.take(now, taken as u64);
            self.pump(id, now);
        }
        taken
    }

    /// Closes our direction: nothing more will be written.
    pub fn close(&mut self, id: Id) {
        let now = self.now();
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.closed = true;
            entry.connection.close(now);
            self.pump(id, now);
        }
    }

    /// Resets the connection.
    pub fn abort(&mut self, id: Id) {
        let now = self.now();
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.connection.abort(now);
            self.pump(id, now);
            self.forget_if_over(id, now);
        }
    }

    /// Releases a connection. It is closed if it is still open, and removed once the peer needs no
    /// more answers.
    pub fn release(&mut self, id: Id) {
        let now = self.now();
        let Some(entry) = self.entries.get_mut(&id) else { return };
        (entry.released, entry.closed) = (true, true);
        entry.connection.close(now);
        self.pump(id, now);
        self.forget_if_over(id, now);
    }

    /// Status of a connection. `None` if the connection does not exist, or does not exist any more.
    pub fn status(&self, id: Id) -> Option<Status> {
        let entry = self.entries.get(&id)?;
        let connection = &entry.connection;
        let (readable, writable, unacknowledged) = match &entry.buffers {
            Some((send, receive)) => (receive.available(), send.room(), send.end() - connection.acknowledged()),
            None => (0, 0, 0),
        };
        Some(Status {
            established: connection.is_established(),
            readable,
            writable: if connection.end().is_some() { 0 } else { writable },
            unacknowledged,
            at_end: readable == 0 && connection.peer_has_closed(),
            end: connection.end(),
            unreachable: entry.unreachable,
            too_long: entry.too_long,
        })
    }

    /// Number of hops that is assumed for a connection.
    pub fn hops(&self, id: Id) -> u8 {
        let measured = self.entries.get(&id).map_or(0, |entry| entry.hops);
        if measured > 0 { measured } else { self.path.hops }
    }

    /// Protocol state of a connection, with its counters and its pacing.
    pub fn connection(&self, id: Id) -> Option<&Conversation> {
        self.entries.get(&id).map(|entry| &entry.connection)
    }

    /// Number of connections, including those that are being opened and those in TIME-WAIT.
    pub fn connections(&self) -> usize {
        self.entries.len()
    }

    /// Counts of packets that were not used or not sent, and of connections that were removed to
    /// make room.
    pub fn trouble(&self) -> Trouble {
        Trouble { unsent: self.output.unsent, ..self.trouble }
    }

    /// Number of IP packets sent.
    pub fn packets_sent(&self) -> u64 {
        self.output.sent
    }

    /// Resets a connection if it has not ended, because its owner ends.
    pub fn abandon(&mut self, id: Id) {
        if self.entries.get(&id).is_some_and(|entry| entry.connection.end().is_none()) {
            self.abort(id);
        }
    }

    /// Waits until a packet arrives, a timer expires or `until` is reached, and then handles
    /// packets and timers.
    ///
    /// # Errors
    /// Waiting fails, or the interface cannot be read.
    pub fn step(&mut self, until: Time) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        let waited = self.poller.wait(until.min(self.deadlines.next()), &mut ready);
        let readable = !ready.is_empty();
        self.ready = ready;
        waited?;
        if readable {
            self.take_packets()?;
        }
        self.run_timers();
        Ok(())
    }

    /// Handles the expired timers without waiting.
    pub fn run_timers(&mut self) {
        let now = self.now();
        while let Some((_, id)) = self.deadlines.pop_due(now) {
            let id = Id(id);
            self.pump(id, now);
            self.forget_if_over(id, now);
        }
    }

    /// Time at which the next timer expires; [`Time::NEVER`] if none is set.
    pub fn next_wakeup(&self) -> Time {
        self.deadlines.next()
    }

    /// Handles waiting packets, at most 64, without waiting. For interfaces that cannot be watched.
    ///
    /// # Errors
    /// The interface cannot be read.
    pub fn take_packets(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.incoming);
        let mut result = Ok(());
        for _ in 0..AT_ONCE {
            match self.output.interface.receive(&mut buffer) {
                Ok(length) => self.on_packet(self.now(), &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.incoming = buffer;
        result
    }

    /// Sends the waiting segments of a connection, and sets its next deadline.
    fn pump(&mut self, id: Id, now: Time) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let output = &mut self.output;
        let wakeup = pump(entry, now, |entry, segment| {
            let sent = output.send(entry, &segment);
            // No packet of this size will ever be sent. The connection is ended with an error,
            // because otherwise it would stall silently.
            if entry.too_long.is_none() && matches!(sent, Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE)) {
                entry.too_long = Some(output.interface.mtu());
                entry.connection.abort(now);
            }
        });
        if let Some((send, _)) = &mut entry.buffers {
            send.release(entry.connection.acknowledged());
        }
        self.deadlines.set(id.0, wakeup);
    }

    fn insert(&mut self, entry: Entry) -> Id {
        let id = Id(self.next_id);
        self.next_id += 1;
        self.by_key.insert(entry.key, id);
        self.entries.insert(id, entry);
        id
    }

    fn remove(&mut self, id: Id) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.by_key.remove(&entry.key);
        self.deadlines.set(id.0, Time::NEVER);
        if entry.claimed {
            self.output.interface.release(entry.key.2);
        }
    }

    /// Removes a connection that neither the application nor the peer needs.
    fn forget_if_over(&mut self, id: Id, now: Time) {
        let Some(entry) = self.entries.get(&id) else { return };
        let never_open = !entry.connection.is_established() && !entry.accepted;
        if entry.connection.is_forgotten(now) && (entry.released || never_open) {
            self.opening.retain(|opening| *opening != id);
            self.remove(id);
        }
    }

    /// Number of bytes that fit into a packet in addition to headers without options.
    fn path_mss(&self) -> io::Result<u16> {
        let mtu = self.output.interface.mtu();
        // By RFC 791 every link carries packets of 68 bytes, but headers of 60 and 60 bytes would
        // leave no room in them. The minimum is therefore a little larger.
        let least = 20 + wire::LONGEST as u16 + 8;
        let mss = mtu.checked_sub(20 + wire::BARE as u16).filter(|_| mtu >= least);
        mss.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("an MTU of {mtu} bytes; {least} are needed"))
        })
    }

    fn free_port(&mut self, to: SocketAddrV4) -> io::Result<u16> {
        let span = u16::MAX - FIRST_PORT;
        let start = random::<2>().map(u16::from_ne_bytes)? % span;
        let mut last = io::Error::new(io::ErrorKind::AddrInUse, "no free port");
        for step in 0..span {
            let port = FIRST_PORT + (start + step) % span;
            if self.by_key.contains_key(&(*to.ip(), to.port(), port)) || self.listeners.contains_key(&port) {
                continue;
            }
            match self.output.interface.claim(port) {
                Ok(()) => return Ok(port),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

/// Creates the buffers of a connection with a peer. Their memory is limited by `budget`.
fn buffers(budget: &Budget, peer: Ipv4Addr, send: usize, window: usize) -> (SendRing, ReceiveRing) {
    let account = budget.account(source_of(peer.into()), None);
    (SendRing::new(send, account.clone()), ReceiveRing::new(window, account))
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    if filled == N { Ok(bytes) } else { Err(io::Error::other("no random numbers")) }
}

fn random_number() -> io::Result<u32> {
    random::<4>().map(u32::from_ne_bytes)
}
