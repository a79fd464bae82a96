//! One connection in the hands of the runtime: the state machine, who opened it, and when to give up.

pub(super) mod complaints;
mod opening;

use super::cover::Cover;
use super::engine::{Engine, Inside};
use super::half_open::HalfOpen;
use super::handshake::{Tag, Terms};
use super::listener::Backlog;
use super::options::Options;
use super::outbox::Outbox;
use super::path::hops_travelled;
use super::shared::{Failure, Shared, State, Status};
use super::socket::Addresses;
use crate::ring::{ReceiveRing, SendRing};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::liveness::{Liveness, Verdict};
use meshpace_transport::{Arrival, Machine, PathInfo, Role, pump, tpa};
use nix::libc;
use opening::Request;
use std::sync::Arc;

/// How long a connection that is over still answers a peer that has not heard so.
const TIME_WAIT: Duration = Duration::from_secs(10);

/// How long a connection that its application has let go may wait for its peer to close.
const ORPHAN: Duration = Duration::from_secs(60);

/// How often path information is asked for.
const PATH_PERIOD: Duration = Duration::from_secs(1);

/// Which end opened the connection.
#[derive(Debug)]
enum Origin {
    /// We.
    Ours(Box<Request>),
    /// The peer; where the application waits for it.
    Theirs(Arc<Backlog>),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) port: u64,
    pub(super) addresses: Addresses,
    pub(super) shared: Arc<Shared>,
    /// Our tag: what the peer's datagrams begin with.
    pub(super) tag: Tag,
    machine: Engine,
    /// When the machine wants to be polled again.
    machine_at: Time,
    origin: Origin,
    /// What is around segments, once the handshake has told.
    cover: Option<Cover>,
    /// Segments on their way out; empty in between.
    leaving: Vec<Inside>,
    /// Bytes of the stream the machine knows to be written.
    written: u64,
    /// Payload of a full segment and of a block.
    segment: usize,
    block: usize,
    /// When the connection was asked for.
    since: Time,
    /// When the peer was last heard, and when it is taken for gone.
    life: Liveness,
    /// When data last moved, either way.
    used: Time,
    /// What had been acknowledged when the network last said that segments are too big.
    narrow_at: u64,
    complaints: u8,
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
    /// The runtime counts it among those that are over.
    pub(super) lingers: bool,
}

impl Connection {
    /// Opens one: the request leaves with the next [`Connection::work`].
    pub(super) fn open(
        port: u64,
        addresses: Addresses,
        shared: Arc<Shared>,
        config: &tpa::Config,
        tag: Tag,
        now: Time,
    ) -> Connection {
        let request = Request::new(config, &shared.options, tag);
        let machine = shared.engine(config, Role::Sender);
        let origin = Origin::Ours(Box::new(request));
        let mut connection = Connection::new(port, addresses, shared, config, (tag, machine, origin), now);
        connection.look_up_path(now);
        connection.machine.open(now);
        connection
    }

    /// Accepts one whose peer has shown that it has our tag, by a datagram that `cover` has opened and that is to be handed over next. It
    /// is to be kept only if it [`Connection::has_opened`] then.
    pub(super) fn accept(
        half_open: &HalfOpen,
        cover: Cover,
        shared: Arc<Shared>,
        config: &tpa::Config,
        now: Time,
    ) -> Connection {
        let machine = shared.engine(config, Role::Receiver);
        let origin = Origin::Theirs(Arc::clone(&half_open.backlog));
        let HalfOpen { port, addresses, tag, .. } = *half_open;
        let mut connection = Connection::new(port, addresses, shared, config, (tag, machine, origin), now);
        connection.cover = Some(cover);
        connection.look_up_path(now);
        let request = &half_open.request;
        connection.machine.on_segment(now, &Inside::opening(request.trains, &request.segment), Arrival::default());
        // Its SYN+ACK has left: the acceptance.
        let _ = connection.machine.poll(now);
        connection
    }

    fn new(
        port: u64,
        addresses: Addresses,
        shared: Arc<Shared>,
        config: &tpa::Config,
        (tag, machine, origin): (Tag, Engine, Origin),
        now: Time,
    ) -> Connection {
        let segment = config.segment as usize;
        let Options { keep_alive, silence_timeout, .. } = *shared.options;
        Connection {
            port,
            addresses,
            shared,
            tag,
            machine,
            machine_at: Time::NEVER,
            origin,
            cover: None,
            leaving: Vec::new(),
            written: 0,
            segment,
            block: Terms::of(config).block(),
            since: now,
            life: Liveness::new(now, keep_alive.unwrap_or(Duration::MAX), silence_timeout),
            used: now,
            narrow_at: 0,
            complaints: 0,
            complaint: None,
            travelled: None,
            path: None,
            path_at: now,
            told: now,
            closed: false,
            window_told: config.receive_window,
            over_at: None,
            lingers: false,
        }
    }

    /// Whether the first segment has finished the handshake.
    pub(super) fn has_opened(&self) -> bool {
        matches!(self.machine.state(), tpa::State::Established | tpa::State::Done)
    }

    /// Whether it only answers a peer that is late.
    pub(super) fn is_over(&self) -> bool {
        self.over_at.is_some() && self.machine.is_done()
    }

    /// The time as the machine is to hear it: never earlier than before.
    fn tell_time(&mut self, now: Time) -> Time {
        self.told = self.told.max(now);
        self.told
    }

    /// A datagram with our tag arrived; false if the peer did not send it.
    pub(super) fn on_datagram(&mut self, now: Time, datagram: &mut [u8], ttl: u8, out: &mut Outbox) -> bool {
        let Some((segment, payload)) = self.cover.as_mut().and_then(|cover| cover.open(datagram)) else { return false };
        self.on_opened(now, &segment, payload, ttl, out);
        true
    }

    /// A segment that the peer sent.
    pub(super) fn on_opened(&mut self, now: Time, segment: &Inside, payload: &[u8], ttl: u8, out: &mut Outbox) {
        let travelled = hops_travelled(ttl);
        if travelled.is_some() && travelled != self.travelled {
            self.travelled = travelled;
            self.look_up_path(now);
        }
        self.on_segment(now, segment, payload, out);
    }

    fn on_segment(&mut self, now: Time, segment: &Inside, payload: &[u8], out: &mut Outbox) {
        let now = self.tell_time(now);
        self.life.on_heard(now);
        self.complaints = 0;
        let arrival = Arrival { hops: self.travelled.unwrap_or(0), ..Arrival::default() };
        let offset = self.machine.on_segment(now, segment, arrival);
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if let Some(offset) = offset {
            self.used = now;
            if state.deaf {
                // As TCP: who closes without having read what comes tells the peer so.
                state.abort = true;
            } else if state.receive.place(offset, payload) {
                state.receive.deliver(self.machine.delivered());
            } else {
                shared.fail(&mut state, Failure::new(libc::EPROTO, "the peer sent beyond the window it was given"));
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
        let opening = self.machine.state() == tpa::State::SynSent;
        let mut leaving = std::mem::take(&mut self.leaving);
        self.machine_at = pump(&mut self.machine, now, |_, segment| leaving.push(segment));
        let mut broken = false;
        if opening {
            leaving.last().into_iter().for_each(|segment| self.request(segment, out));
        } else if let Some(cover) = &mut self.cover
            && !cover.send_ahead(self.addresses, &leaving, out)
        {
            for segment in &leaving {
                let (offset, length) = segment.range();
                let Some((a, b)) = state.send.range(offset, length) else {
                    broken = true;
                    continue;
                };
                out.push(self.addresses, cover.length(segment, length), |out| cover.write(out, segment, a, b));
            }
        }
        leaving.clear();
        self.leaving = leaving;
        if broken {
            // The transport contradicts itself; better an end than wrong bytes.
            self.shared.fail(state, Failure::new(libc::EIO, "a segment was to be sent whose bytes are gone"));
            self.machine.abort(now);
            self.machine_at = pump(&mut self.machine, now, |_, _| {});
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
                self.shared.fail(state, Failure::new(libc::ECONNABORTED, "aborted by this end"));
            }
        }
        if let Some(delay) = state.hold_acks.take() {
            self.machine.hold_acks(delay);
        }
        let end = state.send.end();
        if end > self.written {
            if self.machine.acknowledged() == self.written {
                self.life.on_heard(now);
            }
            self.used = now;
            self.machine.write(now, end - self.written);
            self.written = end;
        }
        if state.closed && !self.closed && state.status != Status::Failed {
            if self.machine.acknowledged() == self.written {
                self.life.on_heard(now);
            }
            self.closed = true;
            self.machine.close(now);
        }
        if state.status == Status::Failed {
            return;
        }
        if let Engine::Train(trains) = &mut self.machine {
            let available = state.receive.available();
            trains.on_taken(available);
            // Half of the window is enough to go on with: only beyond that does reading have to be told.
            state.window_closed = 2 * available >= trains.window();
            return;
        }
        let room = state.receive.room();
        // A window promises room for a block, and is closed only between blocks: the rest of one is not refused half-way, for then
        // it would have to be repeated. Once closed it opens only when there is room for a while.
        let promised = room + self.machine.begun() as usize;
        let open = if state.window_closed { room >= 2 * self.block } else { promised >= self.block };
        state.window_closed = !open;
        let window = if open { (room / self.segment).clamp(1, 255) as u8 } else { 0 };
        if window != self.window_told {
            self.window_told = window;
            self.machine.on_window(now, window);
        }
    }

    /// What the machine has come to.
    fn note(&mut self, now: Time, state: &mut State) {
        if self.machine.stats().acked_bytes != state.stats.acked_bytes {
            self.used = now;
        }
        state.send.release(self.machine.acknowledged());
        state.busy = self.machine.is_busy();
        state.finished |= self.machine.is_finished();
        state.end_of_stream |= self.machine.has_peer_closed();
        state.lacks_last_word = self.lacks_last_word();
        match self.machine.state() {
            tpa::State::Established if state.status == Status::Opening => {
                state.status = Status::Open;
                if let Origin::Theirs(backlog) = &self.origin
                    && !backlog.offer(Arc::clone(&self.shared))
                {
                    state.abort = true;
                }
            }
            tpa::State::Done if state.status != Status::Failed => state.status = Status::Done,
            tpa::State::Reset if matches!(state.status, Status::Opening | Status::Open) => match state.status {
                _ if self.lacks_last_word() => self.end(state),
                status if self.machine.has_timed_out() => {
                    let refusal = state.refusal.take();
                    let failure = self.silence(now, refusal, status == Status::Opening, Verdict::Gone);
                    self.shared.fail(state, failure);
                }
                Status::Opening => {
                    self.shared.fail(state, Failure::new(libc::ECONNREFUSED, "the peer refused the connection"));
                }
                _ => self.shared.fail(state, Failure::new(libc::ECONNRESET, "the peer reset the connection")),
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
        (state.stats, state.travelled) = (*self.machine.stats(), self.travelled);
        if state.status == Status::Opening {
            // What fails wakes them by itself.
            return;
        }
        let news = state.status != Status::Open || state.finished;
        let to_read = news || state.end_of_stream || state.receive.available() > 0;
        // Not for every block: a writer that fills a quarter of the ring at a time keeps up.
        let to_write = news || state.send.room() >= state.send.capacity() / 4;
        self.shared.unlock_and_wake(state, to_read, to_write);
    }

    /// Does beforehand what can be done for the next block while the peer's answer is awaited.
    pub(super) fn prepare(&mut self) {
        let Some(cover) = &mut self.cover else { return };
        let state = self.shared.lock();
        let gathered = cover.gather(self.machine.following(), &state.send);
        drop(state);
        if gathered {
            cover.seal_ahead();
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
        let path = source.path(self.addresses.peer.ip(), self.travelled);
        if let Some(path) = path.filter(|path| Some(*path) != self.path) {
            self.path = Some(path);
            self.machine.on_path(path);
        }
    }

    /// Whether the peer opened it.
    pub(super) fn is_theirs(&self) -> bool {
        matches!(self.origin, Origin::Theirs(_))
    }

    /// What the peer calls itself, once the handshake has told.
    pub(super) fn peer_tag(&self) -> Option<Tag> {
        self.cover.as_ref().map(Cover::to)
    }
}
