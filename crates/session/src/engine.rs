//! The transport inside the datagrams of a connection: TPA, quiet trains, or BBR. The handshake,
//! the tag, encryption, the replay window and the keep-alive are the same for all three.
//!
//! TPA and quiet trains use the headers of the `transport` crate: `tpa::wire` and
//! `train::datagram`. A BBR segment has one of the two headers below, for data or for a report.
//! Numbers and offsets are in network byte order:
//!
//! ```text
//! byte 0       flags: FIN 1, SYN 2 (asks for a report), RST 4, ACK 16 (this is a report)
//! bytes 1-6    number of the segment           highest number that has arrived
//! bytes 7-12   offset of the first byte        offset expected next
//!              in the stream
//! bytes 13-18                                  offset up to which there is room
//! bytes 19-21                                  time since the highest number arrived, 16 us
//! then                                         for each range of numbers, from the highest
//!                                              down, two bytes for how many are missing above
//!                                              it (0 for the first) and two for how many
//!                                              there are
//! ```

use super::exchange::Sending;
use super::handshake::InnerTransport;
use super::unpredictable::Unpredictable;
use meshpace_core::{Duration, Time};
use meshpace_transport::flags::Flags;
use meshpace_transport::stats::Stats;
use meshpace_transport::tcp::End;
use meshpace_transport::tpa::{self, wire};
use meshpace_transport::train::{self, datagram};
use meshpace_transport::{Arrival, Machine, Output, PathInfo, Role, bbr};

/// Bytes by which a quiet train's header is longer than TPA's. The payload of a full segment is
/// shorter by as much.
pub const MORE: u32 = (datagram::HEADER - wire::INSIDE_UDP) as u32;

/// Bytes of the header of a BBR data segment.
const BBR_HEADER: usize = 13;
/// Bytes of a BBR report without ranges.
const BBR_REPORT: usize = 22;

/// Amount of data that is to wait behind what BBR has sent, as time at the rate of the path,
/// seconds.
const AHEAD: f64 = 0.05;

/// Bytes that a BBR receiver takes before it has announced a limit. Every receive buffer has room
/// for as many.
pub(crate) const FIRST_CREDIT: u64 = 64 << 10;

/// TPA's blocks skip fewer than this many transmission numbers each.
const SKIPPED_BY_TPA: u64 = 16;

/// BBR skips one number among at most this many segments at first, and then one among twice as many
/// each time.
const FIRST_SKIP: u64 = 16;
/// Upper bound of the span in which BBR skips one number, segments.
const RAREST_SKIP: u64 = 2048;

/// Payload of a full segment of trains where a full segment of TPA has `segment` bytes.
pub(crate) fn payload(segment: u32) -> u32 {
    segment.saturating_sub(MORE).max(1)
}

/// A segment of any of the three transports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnySegment {
    Tpa(tpa::Segment),
    Train(train::Segment),
    Bbr(bbr::Segment),
}

impl AnySegment {
    /// Segment that a request or an acceptance with this TPA header stands for.
    pub(crate) fn opening(inner: InnerTransport, segment: &tpa::Segment) -> AnySegment {
        match inner {
            InnerTransport::Tpa => AnySegment::Tpa(*segment),
            // The receiver of this SYN answers with a report, which the peer waits for.
            InnerTransport::Bbr => AnySegment::Bbr(bbr::Segment { flags: Flags::SYN, ..bbr::Segment::default() }),
            InnerTransport::Trains => {
                let (window, flags) = (u16::from(segment.window), segment.flags);
                AnySegment::Train(train::Segment { window, flags, ..train::Segment::default() })
            }
        }
    }

    /// Segment that ends a connection from which only the acceptance, with this first block number,
    /// has left.
    pub(crate) fn reset(inner: InnerTransport, block: u16) -> AnySegment {
        match inner {
            InnerTransport::Tpa => {
                AnySegment::Tpa(tpa::Segment { block, flags: Flags::RST, ..tpa::Segment::default() })
            }
            InnerTransport::Bbr => AnySegment::Bbr(bbr::Segment { flags: Flags::RST, ..bbr::Segment::default() }),
            InnerTransport::Trains => {
                AnySegment::Train(train::Segment { flags: Flags::RST, ..train::Segment::default() })
            }
        }
    }

    /// Flags of the segment.
    pub fn flags(&self) -> Flags {
        match self {
            AnySegment::Tpa(segment) => segment.flags,
            AnySegment::Train(segment) => segment.flags,
            AnySegment::Bbr(segment) => segment.flags,
        }
    }

    /// Length of the header, bytes.
    pub(crate) fn header(&self) -> usize {
        match self {
            AnySegment::Tpa(_) => wire::INSIDE_UDP,
            AnySegment::Train(_) => datagram::HEADER,
            AnySegment::Bbr(segment) if segment.flags.has(Flags::ACK) => {
                BBR_REPORT + 4 * usize::from(segment.report.count)
            }
            AnySegment::Bbr(_) => BBR_HEADER,
        }
    }

    /// Offset of the payload in the stream, and its length in bytes.
    pub fn range(&self) -> (u64, usize) {
        match self {
            AnySegment::Tpa(segment) => (segment.offset, usize::from(segment.payload)),
            AnySegment::Train(segment) => (segment.seq, usize::from(segment.payload)),
            AnySegment::Bbr(segment) => (segment.seq, usize::from(segment.payload)),
        }
    }

    /// Appends the header to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            AnySegment::Tpa(segment) => out.extend_from_slice(&wire::encode_inside_udp(segment)),
            AnySegment::Train(segment) => out.extend_from_slice(&datagram::encode(segment)),
            AnySegment::Bbr(segment) => write_bbr(segment, out),
        }
    }

    /// Reads a segment of this transport and its payload.
    pub fn read(inner: InnerTransport, content: &[u8]) -> Option<(AnySegment, &[u8])> {
        Some(match inner {
            InnerTransport::Tpa => {
                let (segment, payload) = wire::decode_inside_udp(content).ok()?;
                (AnySegment::Tpa(segment), payload)
            }
            InnerTransport::Trains => {
                let (segment, payload) = datagram::decode(content)?;
                (AnySegment::Train(segment), payload)
            }
            InnerTransport::Bbr => {
                let (segment, payload) = read_bbr(content)?;
                (AnySegment::Bbr(segment), payload)
            }
        })
    }
}

/// The low six bytes of a number.
fn six(number: u64) -> [u8; 6] {
    let [_, _, rest @ ..] = number.to_be_bytes();
    rest
}

fn write_bbr(segment: &bbr::Segment, out: &mut Vec<u8>) {
    out.push(segment.flags.0);
    if !segment.flags.has(Flags::ACK) {
        out.extend_from_slice(&six(segment.number));
        return out.extend_from_slice(&six(segment.seq));
    }
    let report = &segment.report;
    [report.newest, report.expected, report.limit].iter().for_each(|number| out.extend_from_slice(&six(*number)));
    let [_, wait @ ..] = (report.wait_us / 16).min(0xff_ffff).to_be_bytes();
    out.extend_from_slice(&wait);
    for (missing, arrived) in report.ranges.iter().take(usize::from(report.count)) {
        out.extend_from_slice(&missing.to_be_bytes());
        out.extend_from_slice(&arrived.to_be_bytes());
    }
}

fn read_bbr(content: &[u8]) -> Option<(bbr::Segment, &[u8])> {
    let flags = Flags(*content.first()?);
    let number =
        |at: usize| content.get(at..at + 6).map(|bytes| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)));
    if !flags.has(Flags::ACK) {
        let payload = content.get(BBR_HEADER..)?;
        let (number, seq, length) = (number(1)?, number(7)?, u16::try_from(payload.len()).ok()?);
        return Some((bbr::Segment { flags, number, seq, payload: length, ..bbr::Segment::default() }, payload));
    }
    let (head, rest) = content.split_first_chunk::<BBR_REPORT>()?;
    let (ranges, rest) = rest.as_chunks::<4>();
    if !rest.is_empty() || ranges.len() > bbr::RANGES {
        return None;
    }
    let wait_us = 16 * u32::from_be_bytes([0, head[19], head[20], head[21]]);
    let (newest, expected, limit) = (number(1)?, number(7)?, number(13)?);
    let mut report =
        bbr::Report { newest, wait_us, expected, limit, count: ranges.len() as u8, ..bbr::Report::default() };
    for ([a, b, c, d], place) in ranges.iter().zip(&mut report.ranges) {
        *place = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
    }
    Some((bbr::Segment { flags, report, ..bbr::Segment::default() }, &[]))
}

/// State machine of the transport.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per connection")]
pub(crate) enum Engine {
    Tpa(tpa::Connection),
    Train(Trains),
    Bbr(Bbr),
}

/// Returns the number of bytes that the application has read since `taken` was last brought up to
/// date, and updates it. Of the `delivered` bytes `available` have not been read.
fn newly_taken(taken: &mut u64, delivered: u64, available: usize) -> u64 {
    let before = *taken;
    *taken = delivered.saturating_sub(available as u64).max(before);
    *taken - before
}

/// Quiet trains.
#[derive(Debug)]
pub(crate) struct Trains {
    machine: train::Connection,
    role: Role,
    /// The receive window, bytes.
    window: usize,
    /// Bytes that the application is known to have read.
    taken: u64,
    /// True if the peer is to be probed.
    probe_due: bool,
}

impl Trains {
    /// Number of full segments that are announced for `receive_buffer` bytes, where TPA's segments
    /// have `segment` bytes. The buffer has room for one more: a peer may probe a closed window
    /// with a whole segment.
    pub(crate) fn max_window(trains: &train::Config, segment: u32, receive_buffer: usize) -> u8 {
        let room = receive_buffer / payload(segment) as usize;
        room.saturating_sub(1).clamp(1, usize::from(u8::MAX)).min(usize::from(trains.max_window)) as u8
    }

    /// Reports what the application has read: all bytes delivered except the `available` ones that
    /// still wait for it.
    pub(crate) fn on_taken(&mut self, available: usize) {
        let more = newly_taken(&mut self.taken, self.machine.delivered(), available);
        self.machine.take(more);
    }

    /// The receive window, bytes.
    pub(crate) fn window(&self) -> usize {
        self.window
    }
}

/// BBR.
#[derive(Debug)]
pub(crate) struct Bbr {
    machine: bbr::Connection,
    /// Bytes that the application is known to have read.
    taken: u64,
    /// Number of sent segments after which the next number is skipped.
    skips_at: u64,
    /// Largest number of segments between the next skipped number and the one after it.
    skip_span: u64,
}

impl Bbr {
    /// Reports what the application has read: all bytes delivered except the `available` ones that
    /// still wait for it. The window grows with that if `may` allows it.
    pub(crate) fn on_taken(&mut self, available: usize, may: impl FnOnce() -> bool) {
        let more = newly_taken(&mut self.taken, self.machine.delivered(), available);
        self.machine.take(more, may);
    }

    /// The receive window, bytes.
    pub(crate) fn window(&self) -> usize {
        usize::try_from(self.machine.receive_window()).unwrap_or(usize::MAX)
    }

    /// Skips a number if enough segments have left since the last skipped number.
    fn skip_if_due(&mut self, unpredictable: &mut Unpredictable) {
        let sent = self.machine.stats().segments_sent;
        if sent < self.skips_at {
            return;
        }
        if self.skips_at > 0 {
            self.machine.skip_number();
            self.skip_span = (2 * self.skip_span).min(RAREST_SKIP);
        }
        self.skips_at = sent + 1 + unpredictable.draw() % self.skip_span;
    }
}

/// Calls the same method on whichever state machine is in use.
macro_rules! either {
    ($self:ident, $machine:ident => $call:expr) => {
        match $self {
            Engine::Tpa($machine) => $call,
            Engine::Train(Trains { machine: $machine, .. }) => $call,
            Engine::Bbr(Bbr { machine: $machine, .. }) => $call,
        }
    };
}

impl Engine {
    /// TPA with the agreed terms; or, with `trains`, quiet trains whose segments are as long as
    /// TPA's, headers included.
    pub(crate) fn new(
        config: &tpa::Config,
        trains: Option<&train::Config>,
        receive_buffer: usize,
        role: Role,
    ) -> Engine {
        let Some(trains) = trains else { return Engine::Tpa(tpa::Connection::new(config, role)) };
        let segment = payload(config.segment);
        let max_window = Trains::max_window(trains, config.segment, receive_buffer).into();
        let config = train::Config { segment, max_window, ..trains.of_host() };
        let (machine, window) = (train::Connection::new(&config, role), segment as usize * usize::from(max_window));
        Engine::Train(Trains { machine, role, window, taken: 0, probe_due: false })
    }

    /// Open BBR connection whose segments are as long as TPA's under these terms, headers included.
    pub(crate) fn bbr(config: &tpa::Config, receive_buffer: usize) -> Engine {
        let more = (BBR_HEADER - wire::INSIDE_UDP) as u32;
        let segment = config.segment.saturating_sub(more).max(1);
        let config = bbr::Config { segment, receive_buffer: receive_buffer as u64, first_credit: FIRST_CREDIT };
        let machine = bbr::Connection::new(&config);
        Engine::Bbr(Bbr { machine, taken: 0, skips_at: 0, skip_span: FIRST_SKIP })
    }

    /// Detects a peer that acknowledges data it has not received, to make this end send faster than
    /// the path carries (RFC 9000, section 21.4). TPA and BBR leave out numbers of segments that
    /// the peer cannot predict; trains judge the echoes of time stamps. To be called before every
    /// poll of a connection whose datagrams are encrypted.
    pub(crate) fn watch_for_deception(&mut self, unpredictable: &mut Unpredictable) {
        match self {
            Engine::Tpa(machine) => machine.skip_next(|| (unpredictable.draw() % SKIPPED_BY_TPA) as u8),
            Engine::Train(trains) => trains.machine.judge_echoes(),
            Engine::Bbr(bbr) => bbr.skip_if_due(unpredictable),
        }
    }

    /// Restarts congestion control and the round-trip estimate because the peer is reached over
    /// another path from now on (RFC 9000, section 9.4). TPA starts with the parameters of
    /// `config`.
    pub(crate) fn restart_control(&mut self, now: Time, config: &tpa::Config) {
        match self {
            Engine::Tpa(machine) => machine.restart_control(now, config),
            Engine::Train(trains) => trains.machine.restart_control(),
            Engine::Bbr(bbr) => bbr.machine.restart_control(),
        }
    }

    /// True if the round-trip time of the path has been measured.
    pub(crate) fn knows_round_trip(&self) -> bool {
        match self {
            Engine::Tpa(machine) => machine.sender().estimator().ertt().is_some(),
            Engine::Train(trains) => trains.machine.sender().knows_round_trip(),
            Engine::Bbr(bbr) => bbr.machine.control().min_rtt().is_some(),
        }
    }

    /// Reads this transport's segment and its payload from the content of a datagram.
    pub(crate) fn read<'a>(&self, content: &'a [u8]) -> Option<(AnySegment, &'a [u8])> {
        AnySegment::read(self.inner(), content)
    }

    /// Kind of transport.
    pub(crate) fn inner(&self) -> InnerTransport {
        match self {
            Engine::Tpa(_) => InnerTransport::Tpa,
            Engine::Train(_) => InnerTransport::Trains,
            Engine::Bbr(_) => InnerTransport::Bbr,
        }
    }

    /// Progress of BBR's sender. `None` for another transport.
    pub(crate) fn sending(&self) -> Option<Sending> {
        let Engine::Bbr(Bbr { machine, .. }) = self else { return None };
        let control = machine.control();
        // In start-up BBR looks for the rate of the path, and ACKs arrive in bunches. Only its
        // window may then limit the sender.
        let looks = if control.phase() == bbr::Phase::Startup { control.window() } else { 0 };
        let ahead = looks.max((AHEAD * control.rate()) as u64) as usize;
        Some(Sending { cut: machine.sender().cut(), ahead })
    }

    pub(crate) fn open(&mut self, now: Time) {
        match self {
            Engine::Tpa(machine) => machine.open(now),
            Engine::Train(trains) => trains.machine.open(),
            Engine::Bbr(_) => {}
        }
    }

    pub(crate) fn write(&mut self, now: Time, bytes: u64) {
        match self {
            Engine::Tpa(machine) => machine.write(now, bytes),
            Engine::Train(trains) => trains.machine.write(bytes),
            Engine::Bbr(bbr) => bbr.machine.write(bytes),
        }
    }

    /// Sends what was written even if it does not fill a TPA block. Trains and BBR wait for
    /// nothing.
    pub(crate) fn push(&mut self, now: Time) {
        if let Engine::Tpa(machine) = self {
            machine.push(now);
        }
    }

    /// Sets whether a TPA block that is not full waits for more data.
    pub(crate) fn set_waits_to_fill(&mut self, now: Time, waits: bool) {
        if let Engine::Tpa(machine) = self {
            machine.set_waits_to_fill(now, waits);
        }
    }

    pub(crate) fn close(&mut self, now: Time) {
        match self {
            Engine::Tpa(machine) => machine.close(now),
            Engine::Train(trains) => trains.machine.close(),
            Engine::Bbr(bbr) => bbr.machine.close(),
        }
    }

    pub(crate) fn abort(&mut self, now: Time) {
        match self {
            Engine::Tpa(machine) => machine.abort(now),
            Engine::Train(trains) => trains.machine.abort(),
            Engine::Bbr(bbr) => bbr.machine.abort(),
        }
    }

    /// Tells the transport that the peer has our acceptance, which the peer has shown by other
    /// means than an ACK. `request` is the header of the peer's request.
    pub(crate) fn on_confirmed(&mut self, now: Time, request: &tpa::Segment) {
        match self {
            Engine::Tpa(machine) => machine.on_confirmed(now, request.window),
            Engine::Train(trains) => trains.machine.on_confirmed(request.window.into()),
            Engine::Bbr(_) => {}
        }
    }

    /// Probes the peer of an open connection: it answers a SYN with an ACK at once.
    pub(crate) fn probe(&mut self, now: Time) {
        match self {
            Engine::Tpa(machine) => machine.probe(now),
            Engine::Train(trains) => trains.probe_due = true,
            Engine::Bbr(bbr) => bbr.machine.probe(),
        }
    }

    /// Handles a segment of the peer. Returns the offset in the stream where its payload belongs,
    /// if the payload is to be kept.
    pub(crate) fn on_segment(&mut self, now: Time, segment: &AnySegment, arrival: Arrival) -> Option<u64> {
        match (self, segment) {
            (Engine::Tpa(machine), AnySegment::Tpa(segment)) => {
                machine.on_segment(now, segment, arrival).map(|placement| placement.offset)
            }
            (Engine::Train(Trains { machine, .. }), AnySegment::Train(segment)) => {
                let mut segment = *segment;
                if segment.flags.has(Flags::RST) {
                    // The datagram already shows that the peer sent the reset. In TCP the right
                    // sequence number has to show that.
                    segment.seq = machine.expected();
                }
                let is_taken = machine.on_segment(now, &segment, arrival);
                (is_taken && segment.payload > 0).then_some(segment.seq)
            }
            (Engine::Bbr(Bbr { machine, .. }), AnySegment::Bbr(segment)) => {
                machine.on_segment(now, segment).then_some(segment.seq)
            }
            _ => None,
        }
    }

    /// Number of ranges of the peer's stream that have arrived beyond a gap. Zero for TPA, which
    /// keeps a map of fixed size.
    pub(crate) fn ranges(&self) -> usize {
        match self {
            Engine::Tpa(_) => 0,
            Engine::Train(trains) => trains.machine.ranges(),
            Engine::Bbr(bbr) => bbr.machine.ranges(),
        }
    }

    /// The application has room for this many segments.
    pub(crate) fn on_window(&mut self, now: Time, segments: u8) {
        if let Engine::Tpa(machine) = self {
            machine.set_receive_window(now, segments);
        }
    }

    /// Lets ACKs wait up to `delay` for data that can carry them. Trains and BBR do not delay ACKs
    /// in this way.
    pub(crate) fn hold_acks(&mut self, delay: Duration) {
        if let Engine::Tpa(machine) = self {
            machine.hold_acks(delay);
        }
    }

    /// Makes room for a small message that leaves by another connection to the same peer. Only
    /// trains do so.
    pub(crate) fn make_room(&mut self, now: Time) {
        if let Engine::Train(trains) = self {
            trains.machine.make_room(now);
        }
    }

    pub(crate) fn on_path(&mut self, path: PathInfo) {
        match self {
            Engine::Tpa(machine) => machine.on_path(path),
            Engine::Train(trains) => trains.machine.on_path(path),
            Engine::Bbr(_) => {}
        }
    }

    /// The peer is reached at another address from now on: what waits for a long retransmission
    /// timer is sent again at once. Trains do nothing: their timer is at most 2 s.
    pub(crate) fn on_peer_moved(&mut self, now: Time) {
        match self {
            Engine::Tpa(machine) => machine.on_peer_moved(now),
            Engine::Train(_) => {}
            Engine::Bbr(bbr) => bbr.machine.on_peer_moved(now),
        }
    }

    pub(crate) fn on_route_failure(&mut self, now: Time) {
        if let Engine::Tpa(machine) = self {
            machine.on_route_failure(now);
        }
    }

    /// Payload bytes of the peer received without a gap.
    pub(crate) fn delivered(&self) -> u64 {
        either!(self, machine => machine.delivered())
    }

    /// Number of those bytes that belong to a TPA block which has not arrived completely.
    pub(crate) fn begun(&self) -> u64 {
        match self {
            Engine::Tpa(machine) => machine.begun(),
            Engine::Train(_) | Engine::Bbr(_) => 0,
        }
    }

    /// Bytes of our stream that the peer has acknowledged for good.
    pub(crate) fn acknowledged(&self) -> u64 {
        either!(self, machine => machine.acknowledged())
    }

    pub(crate) fn stats(&self) -> &Stats {
        either!(self, machine => machine.stats())
    }

    pub(crate) fn is_done(&self) -> bool {
        either!(self, machine => machine.is_done())
    }

    /// True if the peer has closed and everything it sent has been delivered.
    pub(crate) fn has_peer_closed(&self) -> bool {
        match self {
            Engine::Tpa(machine) => machine.has_peer_closed(),
            Engine::Train(trains) => trains.machine.peer_has_closed(),
            Engine::Bbr(bbr) => bbr.machine.peer_has_closed(),
        }
    }

    /// State of the connection, as TPA names it.
    pub(crate) fn state(&self) -> tpa::State {
        let Trains { machine, role, .. } = match self {
            Engine::Tpa(machine) => return machine.state(),
            Engine::Train(trains) => trains,
            Engine::Bbr(bbr) => {
                return bbr.machine.end().map_or(tpa::State::Established, tpa::State::Ended);
            }
        };
        match (machine.end(), role) {
            (Some(end), _) => tpa::State::Ended(end),
            _ if machine.is_established() => tpa::State::Established,
            (None, Role::Sender) => tpa::State::SynSent,
            (None, Role::Receiver) => tpa::State::SynReceived,
        }
    }

    /// True if the state machine itself has given up on the peer. Only trains do.
    pub(crate) fn has_timed_out(&self) -> bool {
        matches!(self, Engine::Train(trains) if trains.machine.end() == Some(End::TimedOut))
    }

    /// True if data are in flight, so that the peer will be heard soon. With BBR: true if data wait
    /// to be sent.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Engine::Tpa(machine) => machine.sender().outstanding() > 0,
            Engine::Train(trains) => trains.machine.outstanding_end() > trains.machine.acknowledged(),
            // With BBR, data that are written while nothing waits may leave at once.
            Engine::Bbr(bbr) => bbr.machine.sender().unsent() > 0,
        }
    }

    /// True if the peer's window is closed: segments then only probe whether it has opened.
    pub(crate) fn is_shut(&self) -> bool {
        match self {
            Engine::Tpa(machine) => machine.sender().is_shut(),
            Engine::Train(trains) => trains.machine.sender().is_shut(),
            Engine::Bbr(bbr) => bbr.machine.sender().is_shut(),
        }
    }

    /// True if all our data and the end of our stream have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        either!(self, machine => machine.sender().is_finished())
    }

    /// True if the end of our stream has been sent and is not known to have arrived.
    pub(crate) fn waits_for_end(&self) -> bool {
        let has_left = match self {
            Engine::Tpa(machine) => machine.sender().fin_times() > 0,
            Engine::Train(trains) => trains.machine.sender().has_sent_fin(),
            Engine::Bbr(bbr) => bbr.machine.sender().has_sent_fin(),
        };
        has_left && !self.is_finished()
    }

    /// Segments of the next TPA block as they will leave if nothing unforeseen happens. Empty where
    /// that is not known.
    pub(crate) fn following(&self) -> impl Iterator<Item = tpa::Segment> {
        let machine = match self {
            Engine::Tpa(machine) => Some(machine),
            Engine::Train(_) | Engine::Bbr(_) => None,
        };
        machine.into_iter().flat_map(tpa::Connection::following)
    }
}

impl Machine for Engine {
    type Segment = AnySegment;

    fn poll(&mut self, now: Time) -> Output<AnySegment> {
        match self {
            Engine::Tpa(machine) => machine.poll(now).map(AnySegment::Tpa),
            Engine::Bbr(bbr) => bbr.machine.poll(now).map(AnySegment::Bbr),
            Engine::Train(trains) => {
                if std::mem::take(&mut trains.probe_due) {
                    let question = train::Segment { flags: Flags::SYN, ..train::Segment::default() };
                    return Output::Transmit(AnySegment::Train(question));
                }
                trains.machine.poll(now).map(AnySegment::Train)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_bbr_is_read_as_it_was_written() {
        let mut report = bbr::Report {
            newest: 0x0102_0304_0506,
            wait_us: 16 * 0x21_2223,
            expected: 0x0708_090a_0b0c,
            limit: 0x1112_1314_1516,
            count: 2,
            ..bbr::Report::default()
        };
        (report.ranges[0], report.ranges[1]) = ((0, 0x3132), (0x4142, 0x5152));
        let said = AnySegment::Bbr(bbr::Segment { flags: Flags::ACK, report, ..bbr::Segment::default() });
        let mut bytes = Vec::new();
        said.write(&mut bytes);
        let expected: &[u8] = &[
            16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x21, 0x22, 0x23, 0, 0,
            0x31, 0x32, 0x41, 0x42, 0x51, 0x52,
        ];
        assert_eq!((&bytes[..], bytes.len()), (expected, said.header()));
        assert_eq!(AnySegment::read(InnerTransport::Bbr, &bytes), Some((said, &[][..])));
        assert_eq!(AnySegment::read(InnerTransport::Bbr, &bytes[..bytes.len() - 1]), None);
        bytes.resize(BBR_REPORT + 4 * (bbr::RANGES + 1), 0);
        assert_eq!(AnySegment::read(InnerTransport::Bbr, &bytes), None, "more ranges than there is room for");
        let data = bbr::Segment { flags: Flags::FIN, number: 9, seq: 1 << 40, payload: 5, ..bbr::Segment::default() };
        let (data, mut bytes) = (AnySegment::Bbr(data), Vec::new());
        data.write(&mut bytes);
        assert_eq!(bytes, [1, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0]);
        assert_eq!(bytes.len(), data.header());
        bytes.extend_from_slice(b"hello");
        assert_eq!(AnySegment::read(InnerTransport::Bbr, &bytes), Some((data, &b"hello"[..])));
        assert_eq!(AnySegment::read(InnerTransport::Bbr, &bytes[..12]), None);
    }

    #[test]
    fn the_first_room_of_bbr_is_that_of_the_page() {
        // The same number is the room of the peer and the limit of this end before the first report.
        let Engine::Bbr(bbr) = Engine::bbr(&tpa::Config::default(), 4 << 20) else { panic!("an engine of BBR") };
        assert_eq!(bbr.machine.receive_window(), 64 * 1024);
    }
}
