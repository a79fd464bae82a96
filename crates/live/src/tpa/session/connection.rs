//! One connection: the protocol inside its datagrams, what is around them, and how far it has come.

mod complaints;
pub(crate) mod forging;
mod opening;
mod path_size;
mod roaming;
mod silence;

pub use complaints::Witness;

use super::addresses::Addresses;
use super::endpoint::Accepted;
use super::engine::{self, AnySegment, Engine};
use super::exchange::{Delivery, Exchange, Phase};
use super::failure::Failure;
use super::framing::{Content, Framing};
use super::handshake::{InnerTransport, Tag, Terms};
use super::outbox::Outbox;
use super::path::hops_travelled;
use super::settings::Settings;
use super::unpredictable::Unpredictable;
use crate::networks::source_of;
use crate::ring::Unplaced;
use complaints::Complaints;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::liveness::Verdict;
use meshpace_transport::tpa::{self, Flags};
use meshpace_transport::{Arrival, Machine, PathInfo, Role, grown_window, pump};
use nix::libc;
use opening::Request;
use path_size::PathSize;
use roaming::Roaming;
use silence::Life;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Interval at which path information is asked for.
const PATH_PERIOD: Duration = Duration::from_secs(1);

/// Stage of a connection.
#[derive(Debug)]
enum Stage {
    /// We ask the peer for it.
    Opening(Box<Request>),
    /// Both ends know each other's tags.
    Open(Framing),
    /// The application has let it go and our direction has arrived; the peer has not closed.
    Orphaned {
        framing: Framing,
        /// Since when.
        since: Time,
    },
    /// The protocol has ended. What stands around datagrams is kept to answer a peer that has not heard so.
    Over {
        /// None if it never was open.
        framing: Option<Framing>,
        /// Since when it has been over, or orphaned.
        since: Time,
    },
}

impl Stage {
    /// The framing of its datagrams, once the handshake has told.
    fn framing(&self) -> Option<&Framing> {
        match self {
            Stage::Opening(_) => None,
            Stage::Open(framing) | Stage::Orphaned { framing, .. } => Some(framing),
            Stage::Over { framing, .. } => framing.as_ref(),
        }
    }

    fn framing_mut(&mut self) -> Option<&mut Framing> {
        match self {
            Stage::Opening(_) => None,
            Stage::Open(framing) | Stage::Orphaned { framing, .. } => Some(framing),
            Stage::Over { framing, .. } => framing.as_mut(),
        }
    }

    /// The stage that follows: at `now` the protocol has ended, or the application no longer needs it.
    fn leave(&mut self, now: Time, has_ended: bool) {
        let before = std::mem::replace(self, Stage::Over { framing: None, since: now });
        *self = match before {
            Stage::Opening(_) if has_ended => Stage::Over { framing: None, since: now },
            Stage::Open(framing) if has_ended => Stage::Over { framing: Some(framing), since: now },
            Stage::Open(framing) => Stage::Orphaned { framing, since: now },
            Stage::Orphaned { framing, since } if has_ended => Stage::Over { framing: Some(framing), since },
            before => before,
        };
    }
}

/// Stream of the application as the protocol has been told of it, and the lengths of its segments and blocks.
#[derive(Debug)]
struct Flow {
    /// Bytes of our stream.
    written: u64,
    /// There will be no more.
    closed: bool,
    /// The window it announces.
    window: u8,
    /// Bytes that may wait to be read, with TPA.
    promised: u64,
    /// Payload of a full segment, bytes.
    segment: usize,
    /// The same of a block.
    block: usize,
}

impl Flow {
    fn new(config: &tpa::Config) -> Flow {
        let (segment, block) = (config.segment as usize, Terms::of(config).block());
        let promised = engine::FIRST_CREDIT.max(3 * block as u64);
        Flow { written: 0, closed: false, window: config.receive_window, promised, segment, block }
    }
}

/// Known properties of the way to the peer.
#[derive(Debug)]
struct Way {
    /// Hops the peer's last packet seems to have come.
    travelled: Option<u8>,
    /// Path information, as its source tells it.
    path: Option<PathInfo>,
    /// When it is asked again.
    asks_at: Time,
}

/// Content of a datagram of the peer.
#[derive(Debug)]
pub(crate) enum Opened<'a> {
    /// A segment and its payload.
    Segment(AnySegment, &'a [u8]),
    /// Something about its address, which was seen to.
    Path,
    /// A piece of a segment, which [`Connection::on_piece`] is to have.
    Piece(&'a [u8]),
}

/// What this end has of its own.
#[derive(Debug)]
struct Own {
    /// Our tag: what the peer's datagrams begin with.
    tag: Tag,
    /// Role of this end: sender if it opened the connection, receiver if the peer did.
    role: Role,
    unpredictable: Unpredictable,
}

/// What the connection takes of the limits of its peer's source.
#[derive(Debug)]
struct Place {
    /// True if it counts among the connections of the source: the peer has opened it, or has moved since.
    is_counted: bool,
    /// The peer's address that pays for the memory of the buffers.
    payer: IpAddr,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    settings: Arc<Settings>,
    addresses: Addresses,
    own: Own,
    engine: Engine,
    /// When the engine wants to be polled again.
    engine_at: Time,
    /// The latest time that the engine has heard.
    told: Time,
    stage: Stage,
    flow: Flow,
    life: Life,
    complaints: Complaints,
    roaming: Roaming,
    place: Place,
    way: Way,
    size: PathSize,
    /// Segments on their way out; empty in between.
    leaving: Vec<AnySegment>,
}

fn engine(settings: &Settings, config: &tpa::Config, role: Role) -> Engine {
    Engine::new(config, settings.trains.as_ref(), settings.receive_buffer, role)
}

impl Connection {
    /// Opens one, with `tag` for its own, a random number that encryption begins with, and numbers that the peer cannot predict. The
    /// request leaves with the next [`Connection::work`].
    pub fn open(
        settings: Arc<Settings>,
        addresses: Addresses,
        config: &tpa::Config,
        (tag, secret, unpredictable): (Tag, [u8; 32], Unpredictable),
        now: Time,
    ) -> Connection {
        let request = Request::new(config, &settings, (tag, secret));
        let stage = Stage::Opening(Box::new(request));
        let own = (tag, Role::Sender, stage, unpredictable);
        let mut connection = Connection::new(settings, addresses, config, own, now);
        connection.look_up_path(now);
        connection.engine.open(now);
        connection
    }

    /// Accepts one, with the settings for what is inside, whose peer has shown that it has our tag, by a datagram that arrived with `ttl`; none if that says anything but what
    /// opens it.
    pub fn accept(
        settings: Arc<Settings>,
        accepted: Accepted<'_>,
        ttl: u8,
        now: Time,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) -> Option<Connection> {
        let Accepted { addresses, tag, config, framing, unpredictable, request, segment, payload, .. } = accepted;
        let own = (tag, Role::Receiver, Stage::Open(framing), unpredictable);
        let mut connection = Connection::new(settings, addresses, &config, own, now);
        connection.look_up_path(now);
        if request.inner() == InnerTransport::Bbr {
            connection.engine = Engine::bbr(&config, connection.settings.receive_buffer);
        }
        let opening = AnySegment::opening(request.inner(), &request.segment);
        connection.engine.on_segment(now, &opening, Arrival::default());
        // Its SYN+ACK has left: the acceptance.
        let _ = connection.engine.poll(now);
        if segment.flags().has(Flags::SYN) {
            // A question for a sign of life: its ACK was lost, and who asks takes the connection for open.
            connection.engine.on_confirmed(now, &request.segment);
        }
        connection.on_opened(now, (&segment, payload), ttl, exchange, out);
        // A reset, or what no end says at this point: a connection of that would have no timer that ends it.
        let has_opened =
            matches!(connection.engine.state(), tpa::State::Established | tpa::State::Ended(tpa::End::Closed));
        has_opened.then_some(connection)
    }

    fn new(
        settings: Arc<Settings>,
        addresses: Addresses,
        config: &tpa::Config,
        (tag, role, stage, unpredictable): (Tag, Role, Stage, Unpredictable),
        now: Time,
    ) -> Connection {
        Connection {
            addresses,
            own: Own { tag, role, unpredictable },
            engine: engine(&settings, config, role),
            engine_at: Time::NEVER,
            told: now,
            stage,
            flow: Flow::new(config),
            life: Life::new(now, &settings),
            complaints: Complaints::default(),
            roaming: Roaming::default(),
            place: Place { is_counted: role == Role::Receiver, payer: addresses.peer.ip() },
            way: Way { travelled: None, path: None, asks_at: now },
            size: PathSize::default(),
            leaving: Vec::new(),
            settings,
        }
    }

    /// The peer's address.
    pub fn peer(&self) -> SocketAddr {
        self.addresses.peer
    }

    /// Our tag.
    pub fn tag(&self) -> Tag {
        self.own.tag
    }

    /// The peer's tag, once the handshake has told.
    pub fn peer_tag(&self) -> Option<Tag> {
        self.stage.framing().map(Framing::to)
    }

    /// The transport that its datagrams carry.
    pub fn inner(&self) -> InnerTransport {
        self.engine.inner()
    }

    /// Number of ranges of the peer's stream that have arrived beyond a gap.
    pub(crate) fn ranges(&self) -> usize {
        self.engine.ranges()
    }

    /// True if the round trip of the path to the peer was measured.
    pub(crate) fn knows_round_trip(&self) -> bool {
        self.engine.knows_round_trip()
    }

    /// Payload of a full segment of trains, bytes.
    pub(crate) fn payload(&self) -> u64 {
        engine::payload(self.flow.segment as u32).into()
    }

    /// True if the peer opened it.
    pub fn is_theirs(&self) -> bool {
        self.own.role == Role::Receiver
    }

    /// True if it counts among the connections of its peer's source.
    pub fn has_place(&self) -> bool {
        self.place.is_counted
    }

    /// True if it only answers a peer that is late.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over { .. })
    }

    /// The time as the engine is to hear it: never earlier than before.
    fn tell_time(&mut self, now: Time) -> Time {
        self.told = self.told.max(now);
        self.told
    }

    /// Opens a datagram with our tag that came between these addresses; none if the peer did not send it. With a segment,
    /// [`Connection::on_opened`] is to follow.
    pub(crate) fn open_datagram<'a>(
        &mut self,
        now: Time,
        at: Addresses,
        datagram: &'a mut [u8],
        out: &mut Outbox,
    ) -> Option<Opened<'a>> {
        let is_elsewhere = at.peer != self.addresses.peer;
        let framing = self.stage.framing_mut()?;
        let Some((number, is_new)) = framing.number(datagram) else {
            // Without encryption the address is all that shows who it is.
            let content = if is_elsewhere || framing.is_sealed() { None } else { framing.open(datagram) };
            return match content? {
                Content::Segment(segment, payload) => Some(Opened::Segment(segment, payload)),
                Content::Path(_) | Content::Piece(_) => None,
            };
        };
        if !is_new {
            if !is_elsewhere && self.roaming.is_doubted_by(number) && framing.is_authentic(datagram) {
                self.roaming.stays(now);
            }
            return None;
        }
        let content = framing.open(datagram)?;
        let is_newest = self.roaming.see(number);
        if !is_elsewhere && self.roaming.is_doubted_by(number) {
            self.roaming.stays(now);
        }
        if is_elsewhere && is_newest {
            self.on_elsewhere(now, at, number, out);
        }
        Some(match content {
            Content::Segment(segment, payload) => Opened::Segment(segment, payload),
            Content::Path(frame) => {
                self.on_path_frame(now, at, frame, out);
                Opened::Path
            }
            Content::Piece(piece) => Opened::Piece(piece),
        })
    }

    /// A segment that the peer sent, in a datagram that arrived with `ttl`.
    pub(crate) fn on_opened(
        &mut self,
        now: Time,
        (segment, payload): (&AnySegment, &[u8]),
        ttl: u8,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) {
        let travelled = hops_travelled(ttl);
        if travelled.is_some() && travelled != self.way.travelled {
            self.way.travelled = travelled;
            self.look_up_path(now);
        }
        self.life.unheard = None;
        self.on_segment(now, segment, payload, exchange, out);
    }

    fn on_segment(
        &mut self,
        now: Time,
        segment: &AnySegment,
        payload: &[u8],
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) {
        let now = self.tell_time(now);
        self.life.peer.on_heard(now);
        self.complaints.forget();
        let arrival = Arrival { hops: self.way.travelled.unwrap_or(0), ..Arrival::default() };
        if let Some(offset) = self.engine.on_segment(now, segment, arrival) {
            self.life.used = now;
            if exchange.wishes.read_closed {
                // As TCP: who closes without having read what comes tells the peer so.
                exchange.wishes.abort = true;
            } else {
                match exchange.receive.place(offset, payload) {
                    Ok(()) => exchange.receive.deliver(self.engine.delivered()),
                    Err(unplaced) => {
                        exchange.fail(match unplaced {
                            Unplaced::Beyond => {
                                Failure::new(libc::EPROTO, "the peer sent beyond the window it was given")
                            }
                            Unplaced::Memory(refusal) => Failure::new(libc::ENOBUFS, refusal.to_string()),
                        });
                        self.engine.abort(now);
                    }
                }
            }
        }
        self.work(now, exchange, out);
    }

    /// The application, a timer or an earlier event may have changed something.
    pub fn work(&mut self, now: Time, exchange: &mut Exchange, out: &mut Outbox) {
        let now = self.tell_time(now);
        if now >= self.way.asks_at {
            self.look_up_path(now);
        }
        self.hear_application(now, exchange);
        let opening = self.engine.state() == tpa::State::SynSent;
        if self.stage.framing().is_some_and(Framing::is_sealed) {
            self.engine.watch_for_deception(&mut self.own.unpredictable);
        }
        let mut leaving = std::mem::take(&mut self.leaving);
        self.engine_at = pump(&mut self.engine, now, |_, segment| leaving.push(segment));
        let mut broken = false;
        if opening {
            leaving.last().into_iter().for_each(|segment| self.request(segment, out));
        } else if !self.send_ahead(&leaving, out) {
            broken = !self.send(now, &leaving, exchange, out);
        }
        leaving.clear();
        self.leaving = leaving;
        if broken {
            // The transport contradicts itself; better an end than wrong bytes.
            exchange.fail(Failure::new(libc::EIO, "a segment was to be sent whose bytes are gone"));
            self.engine.abort(now);
            self.engine_at = pump(&mut self.engine, now, |_, _| {});
        }
        self.note(now, exchange);
    }

    /// Hands over the whole block that was sealed beforehand, if it is what leaves; whether it did.
    fn send_ahead(&mut self, leaving: &[AnySegment], out: &mut Outbox) -> bool {
        let framing = self.stage.framing_mut().filter(|_| self.size.limit().is_none());
        framing.is_some_and(|framing| framing.send_ahead(self.addresses, leaving, out))
    }

    /// Sends these segments, in pieces where the path is too narrow for them; false if bytes of one are gone.
    fn send(&mut self, now: Time, leaving: &[AnySegment], exchange: &Exchange, out: &mut Outbox) -> bool {
        let Some(framing) = self.stage.framing_mut() else { return true };
        let (limit, to) = (self.size.limit().unwrap_or(usize::MAX), self.addresses);
        let (mut longest, mut is_whole) = (0, true);
        for segment in leaving {
            let (offset, payload) = segment.range();
            let Some((a, b)) = exchange.send.range(offset, payload) else {
                is_whole = false;
                continue;
            };
            let length = framing.length(segment, payload);
            longest = longest.max(length.min(limit));
            if length <= limit || !framing.push_pieces(to, segment, (a, b), limit, out) {
                out.push(to, length, |out| framing.write(out, segment, a, b));
            }
        }
        self.watch_size(now, longest, out);
        is_whole
    }

    /// Takes over what the application has wished since the last call.
    fn hear_application(&mut self, now: Time, exchange: &mut Exchange) {
        if let Some(refusal) = exchange.account.ended() {
            exchange.fail(Failure::new(libc::ENOBUFS, refusal.to_string()));
            exchange.wishes.abort = true;
        }
        if exchange.wishes.abort && !self.engine.is_done() {
            self.engine.abort(now);
            exchange.fail(Failure::new(libc::ECONNABORTED, "aborted by this end"));
        }
        if std::mem::take(&mut exchange.wishes.probe) && self.engine.state() == tpa::State::Established {
            self.engine.probe(now);
        }
        if let Some(delay) = exchange.wishes.hold_acks.take() {
            self.engine.hold_acks(delay);
        }
        if std::mem::take(&mut exchange.wishes.make_room) {
            self.engine.make_room(now);
        }
        if let Some(waits) = exchange.wishes.waits_to_fill.take() {
            self.engine.set_waits_to_fill(now, waits);
        }
        let end = exchange.send.end();
        if end > self.flow.written {
            if self.has_arrived() {
                self.life.peer.on_heard(now);
            }
            self.life.used = now;
            self.engine.write(now, end - self.flow.written);
            self.flow.written = end;
        }
        if std::mem::take(&mut exchange.wishes.flush) {
            self.engine.push(now);
        }
        let has_failed = exchange.failure().is_some();
        if exchange.wishes.write_closed && !self.flow.closed && !has_failed {
            if self.has_arrived() {
                self.life.peer.on_heard(now);
            }
            self.flow.closed = true;
            self.engine.close(now);
        }
        if !has_failed {
            self.announce_window(now, exchange);
        }
    }

    /// Tells the engine how much more the application has room for.
    fn announce_window(&mut self, now: Time, exchange: &mut Exchange) {
        if let Engine::Train(trains) = &mut self.engine {
            let available = exchange.receive.available();
            trains.on_taken(available);
            // Half of the window is enough to go on with: only beyond that does reading have to be told.
            exchange.window_closed = 2 * available >= trains.window();
            return;
        }
        if let Engine::Bbr(bbr) = &mut self.engine {
            let available = exchange.receive.available();
            bbr.on_taken(available, || !exchange.account.is_scarce());
            exchange.window_closed = 4 * available >= bbr.window();
            return;
        }
        let taken = exchange.receive.taken();
        let flow = &mut self.flow;
        let most = exchange.receive.capacity() as u64;
        flow.promised = grown_window(flow.promised, taken, most, || !exchange.account.is_scarce());
        let left = usize::try_from(flow.promised).unwrap_or(usize::MAX).saturating_sub(exchange.receive.available());
        let room = exchange.receive.room().min(left);
        // A window promises room for a block, and is closed only between blocks: the rest of one is not refused half-way, for then
        // it would have to be repeated. Once closed it opens only when there is room for a while.
        let promised = room + self.engine.begun() as usize;
        let open = if exchange.window_closed { room >= 2 * self.flow.block } else { promised >= self.flow.block };
        exchange.window_closed = !open;
        let window = if open { (room / self.flow.segment).clamp(1, 255) as u8 } else { 0 };
        if window != self.flow.window {
            self.flow.window = window;
            self.engine.on_window(now, window);
        }
    }

    /// Notes the state of the engine for the application.
    fn note(&mut self, now: Time, exchange: &mut Exchange) {
        if self.place.payer != self.addresses.peer.ip() {
            self.place.payer = self.addresses.peer.ip();
            exchange.account.set_source(source_of(self.place.payer));
        }
        let has_moved = self.engine.stats().acked_bytes != exchange.stats.acked_bytes;
        if has_moved {
            self.life.used = now;
        }
        self.note_stuck(now, has_moved);
        exchange.send.release(self.engine.acknowledged());
        exchange.busy = self.engine.is_busy();
        exchange.end_of_stream |= self.engine.has_peer_closed();
        if exchange.delivery != Delivery::Finished {
            exchange.delivery = if self.engine.is_finished() {
                Delivery::Finished
            } else if self.awaits_final_ack() {
                Delivery::AwaitsFinalAck
            } else {
                Delivery::UnderWay
            };
        }
        match (self.engine.state(), &mut exchange.phase) {
            (tpa::State::Established, Phase::Opening { .. }) => exchange.phase = Phase::Open,
            (tpa::State::Ended(tpa::End::Closed), Phase::Opening { .. } | Phase::Open) => exchange.phase = Phase::Done,
            (tpa::State::Ended(_), Phase::Opening { .. } | Phase::Open) if self.awaits_final_ack() => exchange.end(),
            (tpa::State::Ended(_), Phase::Opening { refusal }) => {
                let refusal = refusal.take();
                exchange.fail(match self.engine.has_timed_out() {
                    true => self.silence(now, refusal, true, Verdict::Gone),
                    false => Failure::new(libc::ECONNREFUSED, "the peer refused the connection"),
                });
            }
            (tpa::State::Ended(tpa::End::Deceived), Phase::Open) => exchange.fail(Failure::new(
                libc::EPROTO,
                "the peer acknowledged data that had not arrived there: this end has ended the connection",
            )),
            (tpa::State::Ended(_), Phase::Open) => exchange.fail(match self.engine.has_timed_out() {
                true => self.silence(now, None, false, Verdict::Gone),
                false => Failure::new(libc::ECONNRESET, "the peer reset the connection"),
            }),
            _ => {}
        }
        let (has_ended, dropped) = (self.engine.is_done(), exchange.wishes.dropped);
        let orphaned = dropped && exchange.delivery == Delivery::Finished && matches!(self.stage, Stage::Open(_));
        if orphaned || (has_ended && !self.is_over()) {
            self.stage.leave(now, has_ended);
        }
        if has_ended && (dropped || exchange.account.ended().is_some()) {
            // Only the engine is needed to answer a peer that is late.
            exchange.free();
        } else if has_ended {
            exchange.settle();
        }
        exchange.sending = self.engine.sending();
        exchange.doubted = self.complaints.doubted();
        (exchange.stats, exchange.travelled) = (*self.engine.stats(), self.way.travelled);
        exchange.narrowed = self.size.packet;
    }

    /// Copies what the next block will say, if that is to be sealed while the peer's answer is awaited. [`Connection::seal_ahead`] is to
    /// follow, and needs the bytes no more.
    pub fn gather(&mut self, exchange: &Exchange) -> bool {
        if self.size.limit().is_some() {
            return false;
        }
        let following = self.engine.following();
        self.stage.framing_mut().is_some_and(|framing| framing.gather(following, &exchange.send))
    }

    /// Seals what was gathered.
    pub fn seal_ahead(&mut self) {
        if let Some(framing) = self.stage.framing_mut() {
            framing.seal_ahead();
        }
    }

    /// True if the peer has all that was written.
    fn has_arrived(&self) -> bool {
        self.engine.acknowledged() == self.flow.written
    }

    /// True if all data have arrived both ways and only the acknowledgement of our closing has not. The peer may be gone by
    /// now, and nobody needs it.
    fn awaits_final_ack(&self) -> bool {
        self.flow.closed && self.engine.has_peer_closed() && self.has_arrived()
    }

    /// Asks for the path to the peer, and tells the engine if it has changed.
    fn look_up_path(&mut self, now: Time) {
        self.way.asks_at = Time::NEVER;
        let Some(source) = &self.settings.path else { return };
        self.way.asks_at = now + PATH_PERIOD;
        let path = source.path(self.addresses.peer.ip(), self.way.travelled);
        if let Some(path) = path.filter(|path| Some(*path) != self.way.path) {
            self.way.path = Some(path);
            self.tell_path();
        }
    }

    /// Tells the engine of the path, as far as it is known.
    fn tell_path(&mut self) {
        if let Some(path) = self.way.path {
            self.engine.on_path(path);
        }
    }
}
