//! One connection: the transport inside its datagrams, the framing around it, and the stage of the
//! connection.

mod complaints;
pub mod forging;
mod opening;
mod path_size;
mod roaming;
mod silence;

pub use complaints::{Report, Witness};

use super::addresses::Addresses;
use super::endpoint::Accepted;
use super::engine::{self, AnySegment, Engine};
use super::exchange::{Delivery, Exchange, Phase};
use super::failure::{Failure, Reason};
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
use opening::Request;
use path_size::PathSize;
use roaming::Roaming;
use silence::Life;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Interval at which the connection asks for path information.
const PATH_PERIOD: Duration = Duration::from_secs(1);

/// Stage of a connection.
#[derive(Debug)]
enum Stage {
    /// This end has asked the peer for the connection.
    Opening(Box<Request>),
    /// Both ends know each other's tags.
    Open(Framing),
    /// The application has let go of the connection and our stream has arrived, but the peer has
    /// not closed.
    Orphaned {
        framing: Framing,
        /// Start of this stage.
        since: Time,
    },
    /// The transport has ended. The framing is kept to answer a peer that has not noticed yet.
    Over {
        /// `None` if the connection never was open.
        framing: Option<Framing>,
        /// Time at which the connection ended, or was orphaned if it was.
        since: Time,
    },
}

impl Stage {
    /// Framing of the connection's datagrams. `None` until the handshake has settled it.
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

    /// Enters the next stage at `now`. `has_ended` says that the transport has ended; otherwise the
    /// application no longer needs the connection.
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

/// State of the application's stream as reported to the transport, and the lengths of its segments
/// and blocks.
#[derive(Debug)]
struct Flow {
    /// Bytes written to our stream.
    written: u64,
    /// True if the application has closed our stream.
    closed: bool,
    /// Receive window last announced, segments. Used with TPA.
    window: u8,
    /// Limit on the received bytes that may wait to be read. Used with TPA.
    promised: u64,
    /// Payload of a full segment, bytes.
    segment: usize,
    /// Payload of a full block, bytes.
    block: usize,
}

impl Flow {
    fn new(config: &tpa::Config) -> Flow {
        let (segment, block) = (config.segment as usize, Terms::of(config).block());
        let promised = engine::FIRST_CREDIT.max(3 * block as u64);
        Flow { written: 0, closed: false, window: config.receive_window, promised, segment, block }
    }
}

/// Known properties of the path to the peer.
#[derive(Debug)]
struct Way {
    /// Number of hops that the peer's last packet seems to have travelled. `None` if that is not
    /// known.
    travelled: Option<u8>,
    /// Path information that its source returned last. `None` if the source has returned none yet.
    path: Option<PathInfo>,
    /// Time of the next request for path information.
    asks_at: Time,
}

/// Content of a datagram from the peer.
#[derive(Debug)]
pub enum Opened<'a> {
    /// A segment and its payload.
    Segment(AnySegment, &'a [u8]),
    /// A path challenge or response, which has been handled already.
    Path,
    /// A piece of a segment. The caller passes it to [`Connection::on_piece`].
    Piece(&'a [u8]),
}

/// Tag, role and random numbers of this end.
#[derive(Debug)]
struct Own {
    /// Our tag, with which the peer's datagrams begin.
    tag: Tag,
    /// Role of this end: sender if it opened the connection, receiver if the peer did.
    role: Role,
    unpredictable: Unpredictable,
}

/// Share of the limits of the peer's source that the connection uses.
#[derive(Debug)]
struct Place {
    /// True if the connection counts among those of the source: the peer opened it, or has moved
    /// since.
    is_counted: bool,
    /// Address of the peer to which the memory of the buffers is charged.
    payer: IpAddr,
}

/// A connection of a port.
#[derive(Debug)]
pub struct Connection {
    settings: Arc<Settings>,
    addresses: Addresses,
    own: Own,
    engine: Engine,
    /// Time at which the engine wants to be polled again.
    engine_at: Time,
    /// Latest time that the engine has been given.
    told: Time,
    stage: Stage,
    flow: Flow,
    life: Life,
    complaints: Complaints,
    roaming: Roaming,
    place: Place,
    way: Way,
    size: PathSize,
    /// Segments on their way to the outbox. Empty between calls.
    leaving: Vec<AnySegment>,
}

fn engine(settings: &Settings, config: &tpa::Config, role: Role) -> Engine {
    Engine::new(config, settings.trains.as_ref(), settings.receive_buffer, role)
}

impl Connection {
    /// Opens a connection. The tuple holds our tag, the random number from which the encryption
    /// starts, and a source of numbers that the peer cannot predict. The request leaves with the
    /// next [`Connection::work`].
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

    /// Accepts a connection whose peer has shown that it has our tag, by a datagram that arrived
    /// with IP time to live `ttl`. `settings` are those for the agreed transport. Returns `None` if
    /// the segment in that datagram does not open the connection.
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
        // The acceptance of the handshake, which has left already, took the place of this SYN+ACK.
        let _ = connection.engine.poll(now);
        if segment.flags().has(Flags::SYN) {
            // The segment probes whether we are alive. The peer takes the connection for open, but
            // its ACK of our acceptance was lost.
            connection.engine.on_confirmed(now, &request.segment);
        }
        connection.on_opened(now, (&segment, payload), ttl, exchange, out);
        // A reset, or a segment that no end sends at this point, does not open the connection. Such
        // a connection would have no timer that ends it.
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
    #[inline]
    pub fn peer(&self) -> SocketAddr {
        self.addresses.peer
    }

    /// Our tag.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.own.tag
    }

    /// The peer's tag. `None` until the handshake has shown it.
    #[inline]
    pub fn peer_tag(&self) -> Option<Tag> {
        self.stage.framing().map(Framing::to)
    }

    /// Transport that the connection's datagrams carry.
    pub fn inner(&self) -> InnerTransport {
        self.engine.inner()
    }

    /// Number of ranges of the peer's stream that have arrived beyond a gap.
    pub fn ranges(&self) -> usize {
        self.engine.ranges()
    }

    /// True if the round-trip time of the path to the peer has been measured.
    pub fn knows_round_trip(&self) -> bool {
        self.engine.knows_round_trip()
    }

    /// Payload of a full segment of trains, bytes.
    pub fn payload(&self) -> u64 {
        engine::payload(self.flow.segment as u32).into()
    }

    /// True if the peer opened the connection.
    pub fn is_theirs(&self) -> bool {
        self.own.role == Role::Receiver
    }

    /// True if the connection counts among those of its peer's source.
    #[inline]
    pub fn has_place(&self) -> bool {
        self.place.is_counted
    }

    /// True if the connection has ended and only answers a peer that has not noticed yet.
    #[inline]
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over { .. })
    }

    /// Returns the time to pass to the engine, which never goes back.
    fn tell_time(&mut self, now: Time) -> Time {
        self.told = self.told.max(now);
        self.told
    }

    /// Opens a datagram with our tag that arrived between these addresses. Returns `None` if the
    /// peer did not send it. If it holds a segment, [`Connection::on_opened`] has to follow.
    pub fn open_datagram<'a>(
        &mut self,
        now: Time,
        at: Addresses,
        datagram: &'a mut [u8],
        out: &mut Outbox,
    ) -> Option<Opened<'a>> {
        let is_elsewhere = at.peer != self.addresses.peer;
        let framing = self.stage.framing_mut()?;
        let Some((number, is_new)) = framing.number(datagram) else {
            // Without encryption only the address shows who sent the datagram.
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

    /// Handles a segment of the peer. Its datagram arrived with IP time to live `ttl`.
    pub fn on_opened(
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
                // As in TCP, an end that closes without reading what arrives tells the peer so with
                // a reset.
                exchange.wishes.abort = true;
            } else {
                match exchange.receive.place(offset, payload) {
                    Ok(()) => exchange.receive.deliver(self.engine.delivered()),
                    Err(unplaced) => {
                        exchange.fail(match unplaced {
                            Unplaced::Beyond => {
                                Failure::new(Reason::Protocol, "the peer sent beyond the window it was given")
                            }
                            Unplaced::Memory(refusal) => Failure::new(Reason::NoMemory, refusal.to_string()),
                        });
                        self.engine.abort(now);
                    }
                }
            }
        }
        self.work(now, exchange, out);
    }

    /// Does all work that is due. To be called when the application, a timer or an earlier event
    /// may have changed something.
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
            // The transport asks for bytes that were released already. Ending the connection is
            // better than sending wrong bytes.
            exchange.fail(Failure::new(Reason::Internal, "a segment was to be sent whose bytes are gone"));
            self.engine.abort(now);
            self.engine_at = pump(&mut self.engine, now, |_, _| {});
        }
        self.note(now, exchange);
    }

    /// Sends the whole block that was sealed in advance if `leaving` is just that block. Returns
    /// whether it did.
    fn send_ahead(&mut self, leaving: &[AnySegment], out: &mut Outbox) -> bool {
        let framing = self.stage.framing_mut().filter(|_| self.size.limit().is_none());
        framing.is_some_and(|framing| framing.send_ahead(self.addresses, leaving, out))
    }

    /// Sends these segments, cut into pieces where the path is too narrow for them. Returns false
    /// if the bytes of a segment are no longer in the send buffer.
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

    /// Applies the requests that the application has made since the last call.
    fn hear_application(&mut self, now: Time, exchange: &mut Exchange) {
        if let Some(refusal) = exchange.account.ended() {
            exchange.fail(Failure::new(Reason::NoMemory, refusal.to_string()));
            exchange.wishes.abort = true;
        }
        if exchange.wishes.abort && !self.engine.is_done() {
            self.engine.abort(now);
            exchange.fail(Failure::new(Reason::Aborted, "aborted by this end"));
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

    /// Tells the engine how much room the application's receive buffer has.
    fn announce_window(&mut self, now: Time, exchange: &mut Exchange) {
        if let Engine::Train(trains) = &mut self.engine {
            let available = exchange.receive.available();
            trains.on_taken(available);
            // The peer can go on while half of the window is free. Reading has to be reported only
            // while more than that is used.
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
        // An open window offers room for a whole block, and closes only between blocks. If the rest
        // of a block were refused, the peer would have to repeat it. Once closed, the window opens
        // only when there is room for two blocks.
        let promised = room + self.engine.begun() as usize;
        let open = if exchange.window_closed { room >= 2 * self.flow.block } else { promised >= self.flow.block };
        exchange.window_closed = !open;
        let window = if open { (room / self.flow.segment).clamp(1, 255) as u8 } else { 0 };
        if window != self.flow.window {
            self.flow.window = window;
            self.engine.on_window(now, window);
        }
    }

    /// Copies the state of the engine to the state shared with the application.
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
                    false => Failure::new(Reason::Refused, "the peer refused the connection"),
                });
            }
            (tpa::State::Ended(tpa::End::Deceived), Phase::Open) => exchange.fail(Failure::new(
                Reason::Protocol,
                "the peer acknowledged data that had not arrived there: this end has ended the connection",
            )),
            (tpa::State::Ended(_), Phase::Open) => exchange.fail(match self.engine.has_timed_out() {
                true => self.silence(now, None, false, Verdict::Gone),
                false => Failure::new(Reason::Reset, "the peer reset the connection"),
            }),
            _ => {}
        }
        let (has_ended, dropped) = (self.engine.is_done(), exchange.wishes.dropped);
        let orphaned = dropped && exchange.delivery == Delivery::Finished && matches!(self.stage, Stage::Open(_));
        if orphaned || (has_ended && !self.is_over()) {
            self.stage.leave(now, has_ended);
        }
        if has_ended && (dropped || exchange.account.ended().is_some()) {
            // Answering a late peer needs the engine alone.
            exchange.free();
        } else if has_ended {
            exchange.settle();
        }
        exchange.sending = self.engine.sending();
        exchange.doubted = self.complaints.doubted();
        (exchange.stats, exchange.travelled) = (*self.engine.stats(), self.way.travelled);
        exchange.narrowed = self.size.packet;
    }

    /// Copies the content of the next block if it can be sealed while we wait for the peer's
    /// answer. Returns whether there is something to seal: [`Connection::seal_ahead`] has to
    /// follow, which no longer needs the send buffer.
    pub fn gather(&mut self, exchange: &Exchange) -> bool {
        if self.size.limit().is_some() {
            return false;
        }
        let following = self.engine.following();
        self.stage.framing_mut().is_some_and(|framing| framing.gather(following, &exchange.send))
    }

    /// Seals the block that was gathered.
    pub fn seal_ahead(&mut self) {
        if let Some(framing) = self.stage.framing_mut() {
            framing.seal_ahead();
        }
    }

    /// True if the peer has acknowledged everything that was written.
    fn has_arrived(&self) -> bool {
        self.engine.acknowledged() == self.flow.written
    }

    /// True if all data have arrived in both directions and only the ACK of our FIN is missing. The
    /// peer may be gone by now, and is no longer needed.
    fn awaits_final_ack(&self) -> bool {
        self.flow.closed && self.engine.has_peer_closed() && self.has_arrived()
    }

    /// Asks for path information, and passes it to the engine if it has changed.
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

    /// Passes the known path information, if any, to the engine.
    fn tell_path(&mut self) {
        if let Some(path) = self.way.path {
            self.engine.on_path(path);
        }
    }
}
