//! One connection in the hands of the runtime: the state machine, who opened it, and when to give up.

use super::handshake::{Cookie, Kind, Opening, Terms};
use super::listener::Backlog;
use super::outbox::Outbox;
use super::path::hops_travelled;
use super::shared::{Failure, Shared, State, Status};
use super::socket::Addresses;
use crate::ring::{ReceiveRing, SendRing};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::{self, Flags, Segment};
use meshpace_transport::{Arrival, PathInfo, pump};
use nix::libc;
use std::sync::Arc;

/// How long a connection that is over still answers a peer that has not heard so.
const TIME_WAIT: Duration = Duration::from_secs(10);

/// How long a connection that its application has let go may wait for its peer to close.
const ORPHAN: Duration = Duration::from_secs(60);

/// How often path information is asked for.
const PATH_PERIOD: Duration = Duration::from_secs(1);

/// Challenges answered per connection attempt: one is regular, another may follow a listener's restart.
const CHALLENGES: u8 = 4;

/// Refusals of an open connection's datagrams without a sign of life in between that end it. ICMP can be forged; whoever
/// forges it must be quicker than the peer.
const REFUSALS: u8 = 3;

/// Which end opened the connection.
#[derive(Debug)]
enum Origin {
    /// We: what our SYN carries, and how many challenges it has met.
    Ours { opening: Opening, challenges: u8, syn: Option<Segment> },
    /// The peer: what our SYN+ACK carries, and where the application waits for it.
    Theirs { opening: Opening, backlog: Arc<Backlog>, since: Time },
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) port: u64,
    pub(super) addresses: Addresses,
    pub(super) shared: Arc<Shared>,
    machine: tpa::Connection,
    /// When the machine wants to be polled again.
    machine_at: Time,
    origin: Origin,
    /// Bytes of the stream the machine knows to be written.
    written: u64,
    /// Payload of a full segment and of a block.
    segment: usize,
    block: usize,
    /// When the connection was asked for.
    since: Time,
    /// When the peer was last heard, or when we last had nothing to hear about.
    heard: Time,
    refusals: u8,
    /// What the network last complained about, in case the silence lasts.
    complaint: Option<i32>,
    travelled: Option<u8>,
    path: Option<PathInfo>,
    path_at: Time,
    /// The latest time the machine has heard.
    told: Time,
    /// The machine knows that the application will write no more.
    closed: bool,
    /// The window the machine announces.
    window_told: u8,
    /// When the connection was over, or, its application gone, our direction.
    over_at: Option<Time>,
}

impl Connection {
    /// Opens one: the SYN leaves with the next [`Connection::work`].
    pub(super) fn open(
        port: u64,
        addresses: Addresses,
        shared: Arc<Shared>,
        config: &tpa::Config,
        nonce: [u8; 8],
        now: Time,
    ) -> Connection {
        let opening = Opening { kind: Kind::Request, terms: Terms::of(config), nonce, cookie: Cookie::default() };
        let machine = tpa::Connection::new(config, meshpace_transport::Role::Sender);
        let origin = Origin::Ours { opening, challenges: 0, syn: None };
        let mut connection = Connection::new(port, addresses, shared, config, machine, origin, now);
        connection.look_up_path(now);
        connection.machine.open(now);
        connection
    }

    /// Accepts one: the SYN+ACK leaves with the next [`Connection::work`].
    pub(super) fn accept(
        port: u64,
        addresses: Addresses,
        shared: Arc<Shared>,
        config: &tpa::Config,
        (syn, request): (&Segment, &Opening),
        backlog: Arc<Backlog>,
        now: Time,
    ) -> Connection {
        let opening = Opening { kind: Kind::Acceptance, cookie: Cookie::default(), ..*request };
        let machine = tpa::Connection::new(config, meshpace_transport::Role::Receiver);
        let origin = Origin::Theirs { opening, backlog, since: now };
        let mut connection = Connection::new(port, addresses, shared, config, machine, origin, now);
        connection.look_up_path(now);
        connection.machine.on_segment(now, syn, Arrival::default());
        connection
    }

    fn new(
        port: u64,
        addresses: Addresses,
        shared: Arc<Shared>,
        config: &tpa::Config,
        machine: tpa::Connection,
        origin: Origin,
        now: Time,
    ) -> Connection {
        let segment = config.segment as usize;
        Connection {
            port,
            addresses,
            shared,
            machine,
            machine_at: Time::NEVER,
            origin,
            written: 0,
            segment,
            block: segment * usize::from(config.block_segments),
            since: now,
            heard: now,
            refusals: 0,
            complaint: None,
            travelled: None,
            path: None,
            path_at: now,
            told: now,
            closed: false,
            window_told: config.receive_window,
            over_at: None,
        }
    }

    /// Since when the peer has been keeping us waiting for the end of the handshake it began; none if it has not.
    pub(super) fn half_open_since(&self) -> Option<Time> {
        match &self.origin {
            Origin::Theirs { since, .. } if self.machine.state() == tpa::State::SynReceived => Some(*since),
            _ => None,
        }
    }

    /// Whether the peer may open another one from the same address.
    pub(super) fn is_over(&self) -> bool {
        self.over_at.is_some() && self.machine.is_done()
    }

    /// The time as the machine is to hear it: never earlier than before.
    fn tell_time(&mut self, now: Time) -> Time {
        self.told = self.told.max(now);
        self.told
    }

    /// A datagram that decodes arrived.
    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment, payload: &[u8], ttl: u8, out: &mut Outbox) {
        if let Origin::Ours { opening, challenges, syn } = &mut self.origin
            && self.machine.state() == tpa::State::SynSent
            && segment.flags.has(Flags::SYN)
        {
            // An answer without our nonce is somebody else's.
            let Some(answer) = Opening::decode(payload).filter(|answer| answer.nonce == opening.nonce) else { return };
            match answer.kind {
                Kind::Challenge => {
                    if *challenges < CHALLENGES && answer.cookie != opening.cookie {
                        *challenges += 1;
                        opening.cookie = answer.cookie;
                        if let Some(syn) = syn {
                            let bytes = opening.encode();
                            out.push(self.addresses, syn, &bytes, &[]);
                        }
                    }
                    return;
                }
                Kind::Acceptance if answer.terms == opening.terms => {}
                _ => return,
            }
        }
        if self.machine.state() == tpa::State::SynSent && !segment.flags.has(Flags::SYN) {
            // The peer remembers a connection from before (RFC 9293, section 3.10.7.3): it is to forget it.
            if let Some(reset) = Segment::reset_for(segment).filter(|_| segment.flags.has(Flags::ACK)) {
                out.push(self.addresses, &reset, &[], &[]);
                return;
            }
        }
        let now = self.tell_time(now);
        let travelled = hops_travelled(ttl);
        if travelled.is_some() && travelled != self.travelled {
            self.travelled = travelled;
            self.look_up_path(now);
        }
        (self.heard, self.refusals) = (now, 0);
        let arrival = Arrival { hops: travelled.unwrap_or(0), ..Arrival::default() };
        let placement = self.machine.on_segment(now, segment, arrival);
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if let Some(placement) = placement {
            if state.deaf {
                // As TCP: who closes without having read what comes tells the peer so.
                state.abort = true;
            } else if state.receive.place(placement.offset, payload) {
                state.receive.deliver(self.machine.delivered());
            } else {
                self.fail(&mut state, Failure::new(libc::EPROTO, "the peer sent beyond the window it was given"));
                self.machine.abort(now);
            }
        }
        self.work_locked(now, &mut state, out);
    }

    /// The application, a timer or an earlier event may have changed something.
    pub(super) fn work(&mut self, now: Time, out: &mut Outbox) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        self.work_locked(now, &mut state, out);
        drop(state);
        self.tell_application();
    }

    fn work_locked(&mut self, now: Time, state: &mut State, out: &mut Outbox) {
        let now = self.tell_time(now);
        state.called = false;
        if now >= self.path_at {
            self.look_up_path(now);
        }
        self.hear_application(now, state);
        let (addresses, origin, send) = (self.addresses, &mut self.origin, &state.send);
        let mut broken = false;
        self.machine_at = pump(&mut self.machine, now, |_, segment| {
            if segment.flags.has(Flags::SYN) {
                let opening = match origin {
                    Origin::Ours { opening, syn, .. } => {
                        *syn = Some(segment);
                        *opening
                    }
                    Origin::Theirs { opening, .. } => *opening,
                };
                out.push(addresses, &segment, &opening.encode(), &[]);
            } else if let Some((a, b)) = send.range(segment.offset, usize::from(segment.payload)) {
                out.push(addresses, &segment, a, b);
            } else {
                broken = true;
            }
        });
        if broken {
            // The transport contradicts itself; better an end than wrong bytes.
            self.fail(state, Failure::new(libc::EIO, "a segment was to be sent whose bytes are gone"));
            self.machine.abort(now);
            self.machine_at = pump(&mut self.machine, now, |_, segment| out.push(addresses, &segment, &[], &[]));
        }
        self.note(now, state);
        if state.abort && !self.machine.is_done() {
            // Nobody waits for it any more: once more round, which ends it.
            self.work_locked(now, state, out);
        }
    }

    /// What the application has wished since.
    fn hear_application(&mut self, now: Time, state: &mut State) {
        if state.abort && !self.machine.is_done() {
            self.machine.abort(now);
            if state.failure.is_none() {
                self.fail(state, Failure::new(libc::ECONNABORTED, "aborted by this end"));
            }
        }
        let end = state.send.end();
        if end > self.written {
            if self.machine.acknowledged() == self.written {
                self.heard = self.heard.max(now);
            }
            self.machine.write(now, end - self.written);
            self.written = end;
        }
        if state.closed && !self.closed && state.status != Status::Failed {
            if self.machine.acknowledged() == self.written {
                self.heard = self.heard.max(now);
            }
            self.closed = true;
            self.machine.close(now);
        }
        if state.status == Status::Failed {
            return;
        }
        let room = state.receive.room();
        // A window promises room for a block. Once closed it opens only when there is room for a while.
        let open = if state.window_closed { room >= 2 * self.block } else { room >= self.block };
        state.window_closed = !open;
        let window = if open { (room / self.segment).clamp(1, 255) as u8 } else { 0 };
        if window != self.window_told {
            self.window_told = window;
            self.machine.set_receive_window(now, window);
        }
    }

    /// What the machine has come to.
    fn note(&mut self, now: Time, state: &mut State) {
        state.send.release(self.machine.acknowledged());
        state.busy = self.machine.sender().outstanding() > 0;
        state.finished |= self.machine.sender().is_finished();
        state.end_of_stream |= self.machine.has_peer_closed();
        state.lacks_last_word = self.lacks_last_word();
        match self.machine.state() {
            tpa::State::Established if state.status == Status::Opening => {
                state.status = Status::Open;
                if let Origin::Theirs { backlog, .. } = &self.origin
                    && !backlog.offer(Arc::clone(&self.shared))
                {
                    state.abort = true;
                }
            }
            tpa::State::Done if state.status != Status::Failed => state.status = Status::Done,
            tpa::State::Reset if matches!(state.status, Status::Opening | Status::Open) => match state.status {
                _ if self.lacks_last_word() => self.end(state),
                Status::Opening => {
                    self.fail(state, Failure::new(libc::ECONNREFUSED, "the peer refused the connection"));
                }
                _ => self.fail(state, Failure::new(libc::ECONNRESET, "the peer reset the connection")),
            },
            _ => {}
        }
        if self.machine.is_done() || (state.dropped && state.finished) {
            self.over_at.get_or_insert(now);
        }
        if self.machine.is_done() && state.dropped {
            // Only the machine is needed to answer a peer that is late.
            (state.send, state.receive) = (SendRing::new(0), ReceiveRing::new(0));
        }
    }

    /// Wakes the application if there is news for it. To be called once after everything that came together.
    pub(super) fn tell_application(&mut self) {
        let mut state = self.shared.lock();
        state.stats = *self.machine.stats();
        let news = state.status != Status::Open || state.finished;
        if news || state.end_of_stream || state.receive.available() > 0 {
            self.shared.wake_readers(&state);
        }
        // Not for every block: a writer that fills a quarter of the ring at a time keeps up.
        if news || state.send.room() >= state.send.capacity() / 4 {
            self.shared.wake_writers(&state);
        }
    }

    /// Whether all data have arrived both ways and only the acknowledgement of our closing has not. The peer may be gone by
    /// now, and nobody needs it.
    fn lacks_last_word(&self) -> bool {
        self.closed && self.machine.has_peer_closed() && self.machine.acknowledged() == self.written
    }

    /// The connection is over, and well.
    fn end(&self, state: &mut State) {
        state.finished = true;
        state.status = Status::Done;
    }

    /// What the way to the peer is, now.
    fn look_up_path(&mut self, now: Time) {
        self.path_at = Time::NEVER;
        let Some(source) = &self.shared.options.path else { return };
        self.path_at = now + PATH_PERIOD;
        let path = source.path(*self.addresses.peer.ip(), self.travelled);
        if let Some(path) = path.filter(|path| Some(*path) != self.path) {
            self.path = Some(path);
            self.machine.on_path(path);
        }
    }

    /// The network complained about a datagram of ours.
    pub(super) fn on_complaint(&mut self, now: Time, errno: i32, mtu: u32, out: &mut Outbox) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if state.status == Status::Failed {
            return;
        }
        match errno {
            libc::EMSGSIZE => {
                let mtu = if mtu > 0 { mtu.to_string() } else { "less".to_owned() };
                let message = format!(
                    "segments of {} bytes need an MTU of {}, the way to {} has {mtu}: choose smaller ones",
                    self.segment,
                    self.segment + tpa::HEADER_BYTES as usize,
                    self.addresses.peer,
                );
                self.fail(&mut state, Failure::new(libc::EMSGSIZE, message));
                self.machine.abort(now);
            }
            libc::ECONNREFUSED => {
                self.refusals += 1;
                if self.lacks_last_word() {
                    self.end(&mut state);
                    self.machine.abort(now);
                } else if state.status == Status::Opening || self.refusals >= REFUSALS {
                    let message = format!("nobody listens on UDP port {}", self.addresses.peer);
                    self.fail(&mut state, Failure::new(libc::ECONNREFUSED, message));
                    self.machine.abort(now);
                }
            }
            _ => {
                // No route, or none for a while. Some transports want to know.
                if matches!(errno, libc::EHOSTUNREACH | libc::ENETUNREACH) {
                    self.machine.on_route_failure(now);
                }
                self.complaint = Some(errno);
                if state.status == Status::Opening {
                    let reason = std::io::Error::from_raw_os_error(errno);
                    self.fail(&mut state, Failure::new(errno, format!("{}: {reason}", self.addresses.peer)));
                    self.machine.abort(now);
                }
            }
        }
        self.work_locked(now, &mut state, out);
    }

    /// The connection fails for its application.
    fn fail(&self, state: &mut State, failure: Failure) {
        state.failure = Some(failure);
        state.status = Status::Failed;
        self.shared.wake_readers(state);
        self.shared.wake_writers(state);
    }

    /// Whether something is expected from the peer.
    fn expects_peer(&self) -> bool {
        let sender = self.machine.sender();
        self.machine.acknowledged() < self.written
            || (self.machine.state() == tpa::State::Established && sender.fin_times() > 0 && !sender.is_finished())
    }

    /// When the peer has been silent for too long.
    fn gives_up_at(&self) -> Time {
        let options = &self.shared.options;
        match self.machine.state() {
            tpa::State::SynSent => self.since + options.connect_timeout,
            tpa::State::Established if self.expects_peer() => self.heard + options.silence_timeout,
            _ => Time::NEVER,
        }
    }

    /// Gives up if it is time. Returns whether the connection is to be forgotten.
    pub(super) fn expire(&mut self, now: Time, out: &mut Outbox) -> bool {
        if now >= self.gives_up_at() {
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            let silence = now.since(if state.status == Status::Opening { self.since } else { self.heard });
            let errno = self.complaint.unwrap_or(libc::ETIMEDOUT);
            let reason = self.complaint.map(|errno| format!(" ({})", std::io::Error::from_raw_os_error(errno)));
            let message = format!(
                "no answer from {} for {:.0} s{}",
                self.addresses.peer,
                silence.as_secs_f64(),
                reason.unwrap_or_default()
            );
            if self.lacks_last_word() {
                self.end(&mut state);
            } else {
                self.fail(&mut state, Failure::new(errno, message));
            }
            self.machine.abort(now);
            self.work_locked(now, &mut state, out);
            drop(state);
            self.tell_application();
        }
        // A handshake of the peer's that was never finished.
        let lapsed = matches!(self.origin, Origin::Theirs { .. }) && self.machine.state() == tpa::State::Listen;
        lapsed || self.forgets_at() <= now
    }

    fn forgets_at(&self) -> Time {
        let Some(over) = self.over_at else { return Time::NEVER };
        match self.machine.state() {
            tpa::State::Reset | tpa::State::Closed => over,
            tpa::State::Done => over + TIME_WAIT,
            // The application is gone and the peer has not closed.
            _ => over + ORPHAN,
        }
    }

    /// When to come back.
    pub(super) fn next_wakeup(&self) -> Time {
        let path = if self.machine.is_done() { Time::NEVER } else { self.path_at };
        self.machine_at.min(self.gives_up_at()).min(self.forgets_at()).min(path)
    }
}
