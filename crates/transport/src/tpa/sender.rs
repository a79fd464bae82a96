//! The sending half of a connection: cuts the stream into blocks, sends rounds, and keeps the
//! timers.
//!
//! TPA, sections 3.2 to 3.5. Rule for sending: the number of outstanding segments (sent, neither
//! acknowledged nor timed out) stays at or below min(cwnd, WinSize). With pacing (TPA-AP, section
//! 5.2) each segment also waits for its interval, whether it is a first copy or a retransmission.
//!
//! Departures and choices where the paper is silent:
//! - A block that cannot be filled is sent after the fill timeout, or at once when the application
//!   has closed; on hosts, at once (`supply`).
//! - In a short block the last segments may be too few to make the receiver send an ACK before its
//!   timer expires. Their first retransmission timers are longer by that ACK delay. Otherwise an
//!   RTO near the RTT would retransmit them although nothing is lost.
//! - A closed window is probed with a data segment, first after one RTO, later as the segment's
//!   timer allows.
//! - An ACK that names a transmission or a place that was never sent is ignored as a whole.

mod fin;

use super::block::Block;
use super::congestion::{Congestion, State};
use super::estimator::Estimator;
use super::flight::{Flight, Timer};
use super::segment::{ALL, Segment, block_after};
use super::supply::Supply;
use super::window::Window;
use super::{Config, congestion};
use crate::flags::Flags;
use crate::pacing::{HopSource, Pacer, Release, Sample, Sampling};
use crate::path::{Arrival, ENDLESS, PathInfo};
use crate::stats::Stats;
use fin::{Claim, Fin};
use meshpace_core::{Duration, Time};

/// Receive window of the peer, and how the peer acknowledges.
#[derive(Clone, Debug)]
struct Peer {
    /// Number of segments that share an ACK of the peer, and how long that ACK may wait.
    ack_every: u8,
    ack_delay: Duration,
    /// WinSize of the peer, in segments.
    window: u8,
    /// Time of the next probe of a closed window; `Time::NEVER` if the window is open or a segment
    /// is outstanding.
    persist_at: Time,
    /// True if one segment may be sent although the window is closed.
    probe: bool,
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Payload of a full segment in bytes.
    segment: u32,
    /// K: segments in a full block.
    block_segments: u8,

    estimator: Estimator,
    congestion: Congestion,
    /// Limit of outstanding segments in the normal state.
    window: Window,
    pacer: Pacer,
    path: PathInfo,
    /// Source of the number of hops that the pacing uses.
    hops: HopSource,
    /// True if the pacing times the oldest segment that an ACK acknowledges, and not the one that
    /// the ACK names.
    times_oldest: bool,

    supply: Supply,
    /// The block in transmission. If it has no segments, its number and start are those of the next
    /// block.
    block: Block,
    flight: Flight,
    fin: Fin,
    peer: Peer,
    /// Time at which a silent sender probes if no notice of recovery arrives.
    silent_until: Time,
}

impl Sender {
    /// Creates a sender without any data.
    pub fn new(config: &Config) -> Sender {
        let ack_every = config.ack.segments(config.congestion.window);
        let (agreed, rule) = (config.congestion.window, config.window);
        Sender {
            segment: config.segment,
            block_segments: config.block_segments,
            estimator: Estimator::new(&config.rto),
            congestion: Congestion::new(&config.congestion),
            window: Window::new(rule, config.segment, config.block_segments, agreed, ack_every),
            pacer: Pacer::new(&config.pacing, config.segment),
            path: PathInfo::UNKNOWN,
            hops: config.pacing.hop_source(),
            times_oldest: config.pacing.sampling() == Sampling::OldestNew,
            supply: Supply::new(config.fill_timeout, config.waits_to_fill),
            block: Block::new(config.first_block, 0, 0, 0, false),
            flight: Flight::default(),
            fin: Fin::new(config.fin_follows),
            peer: Peer { ack_every, ack_delay: config.ack_delay, window: 0, persist_at: Time::NEVER, probe: false },
            silent_until: Time::ZERO,
        }
    }

    /// Takes `bytes` that the application writes.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.supply.write(now, bytes, self.block.end());
        if !self.supply.waits_to_fill() {
            self.block.grow(self.waiting(), self.segment, self.block_segments);
        }
    }

    /// Takes data without end: the application always has more to send.
    pub fn write_endless(&mut self, now: Time) {
        self.write(now, ENDLESS);
    }

    /// Releases all data written so far: they are sent without waiting for their block to fill.
    pub fn push(&mut self) {
        self.supply.push();
    }

    /// Sets whether a block that is not full waits for more data: see `supply`.
    pub fn set_waits_to_fill(&mut self, waits: bool) {
        self.supply.set_waits_to_fill(waits);
    }

    /// The application will write no more. If it wrote data without end, only the current block is
    /// still sent.
    pub fn close(&mut self) {
        self.supply.close(self.block.end());
    }

    /// The handshake is complete; the peer can receive `window` segments.
    pub fn establish(&mut self, window: u8) {
        self.peer.window = window;
    }

    /// Bytes that are written and not in a block yet.
    fn waiting(&self) -> u64 {
        self.supply.after(self.block.end())
    }

    /// True if no block is in transmission.
    fn is_idle(&self) -> bool {
        self.block.count == 0
    }

    /// Starts a block if none is in transmission, and the data fill a block or must not wait any
    /// longer.
    fn begin_block(&mut self, now: Time) {
        if !self.is_idle() || self.fin.acknowledged {
            return;
        }
        let waiting = self.waiting();
        let full = self.segment * u32::from(self.block_segments);
        let Block { number, start, .. } = self.block;
        if waiting == 0 {
            if self.supply.is_closing() {
                self.block = Block::new(number, start, 0, 1, true);
            }
            return;
        }
        if waiting < u64::from(full) && !self.supply.is_released(now, start) {
            return;
        }
        let bytes = waiting.min(u64::from(full)) as u32;
        self.block = Block::new(number, start, bytes, bytes.div_ceil(self.segment) as u8, false);
        self.supply.on_block_begun(now);
    }

    fn has_room(&self) -> bool {
        let outstanding = self.block.outstanding().count_ones();
        outstanding < u32::from(self.allowed().min(self.peer.window)) || (self.peer.probe && outstanding == 0)
    }

    /// True if the peer's window is closed.
    pub fn is_shut(&self) -> bool {
        self.peer.window == 0
    }

    /// Limit of outstanding segments in the normal state, whatever the peer's window is.
    pub fn window(&self) -> u8 {
        self.window.segments()
    }

    /// Limit of outstanding segments in the current state, whatever the peer's window is.
    #[inline]
    pub fn allowed(&self) -> u8 {
        self.congestion.window(self.window.segments())
    }

    /// True if congestion control is frozen and expects a notice of recovery.
    pub fn waits_for_notice(&self) -> bool {
        self.congestion.is_silent()
    }

    /// True if the sender sends nothing: it waits for a notice of recovery and has not yet waited
    /// for too long.
    fn is_silent(&self, now: Time) -> bool {
        self.congestion.is_silent() && now < self.silent_until
    }

    /// From now on the peer acknowledges the end of a block up to `delay` later.
    pub fn expect_held_acks(&mut self, delay: Duration) {
        self.peer.ack_delay = delay;
    }

    /// Returns the next data segment that may be sent now.
    pub fn poll(&mut self, now: Time, stats: &mut Stats) -> Option<Segment> {
        self.begin_block(now);
        if let Some(fin) = self.fin_ahead(now) {
            return Some(fin);
        }
        if self.is_silent(now) || self.pacer.release(now) != Release::Now || !self.has_room() {
            return None;
        }
        let (place, again) = self.block.take_next()?;
        let alone = self.flight.count() == 0 && !self.block.fin && self.window.on_block_begun(now);
        let tx = self.flight.record(now, place);
        let probe = self.congestion.state() == State::Frozen;
        let rto = self.estimator.backed_off(self.congestion.backoff());
        let wait = if again || self.is_acknowledged_promptly(place) { Duration::ZERO } else { self.peer.ack_delay };
        self.flight.timers[usize::from(place)] = Timer { at: now.saturating_add(rto).saturating_add(wait), probe };
        self.peer.probe = false;
        self.peer.persist_at = Time::NEVER;
        self.silent_until = now.saturating_add(self.estimator.max());
        let (offset, payload) = self.block.range(place, self.segment);
        if self.block.fin {
            self.fin.since = self.fin.since.min(now);
        } else {
            stats.segments_sent += 1;
            stats.retransmissions += u64::from(again);
            self.pacer.on_sent(now, stats);
        }
        Some(Segment {
            offset,
            block: self.block.number,
            place: 1 << place,
            payload,
            tx,
            congested: alone || self.congestion.state() != State::Normal,
            last: place + 1 == self.block.count,
            flags: if self.block.fin { Flags::FIN } else { Flags::NONE },
            ..Segment::default()
        })
    }

    /// True if, without losses, the receiver's segment count triggers an ACK at `place` or after
    /// it, so that no ACK timer has to expire.
    fn is_acknowledged_promptly(&self, place: u8) -> bool {
        let counted = self.block.count - self.block.count % self.peer.ack_every;
        place < counted || self.block.fin || self.congestion.state() != State::Normal || self.is_full_block()
    }

    fn is_full_block(&self) -> bool {
        self.block.count == self.block_segments
    }

    /// A frame of the peer was received with this power by the radio.
    pub fn on_frame(&mut self, power_dbm: Option<f32>) {
        self.pacer.on_frame(power_dbm);
    }

    /// Processes a segment with the ACK flag.
    ///
    /// Returns false if the segment acknowledges data that the peer cannot have received.
    pub fn on_ack(&mut self, now: Time, segment: &Segment, arrival: Arrival, stats: &mut Stats) -> bool {
        match self.claim_about_fin_ahead(segment) {
            Claim::Nothing => {}
            Claim::Impossible => return false,
            // A receiver accepts a FIN only after all of the block before it.
            Claim::Received => {
                self.acknowledge(ALL, stats);
                self.finish_block(now);
            }
        }
        let before = segment.ack_block == block_after(self.block.number, 4095);
        if before {
            // The ACK is late, but its receive window may still be newer than the last known one.
            self.peer.window = segment.window;
            return true;
        }
        let is_possible = self.block.has_sent(segment.ack_places) || self.is_whole_before_fin(segment);
        if segment.ack_block != self.block.number || !is_possible {
            return true;
        }
        if self.flight.is_deceiving(segment.ack_tx, segment.ack_places) {
            return false;
        }
        // An AckTxSeqNumber of 0 means that no transmission triggered this ACK: it belongs to the
        // handshake, or announces that the window has opened.
        if segment.ack_tx != 0 && !self.flight.has_sent(segment.ack_tx) {
            return true;
        }
        self.peer.window = segment.window;
        let sample = self.flight.name(segment.ack_tx, segment.ack_places);
        let new = self.acknowledge(segment.ack_places & ALL, stats);
        if let Some(sent_at) = sample {
            self.estimator.on_sample(now.since(sent_at).as_secs_f64());
            self.window.on_round_trip(now, now.since(sent_at));
        }
        let paced_from = if self.times_oldest { self.oldest_of(new) } else { sample };
        if let Some(sent_at) = paced_from.filter(|_| !self.block.fin) {
            self.pace(now.since(sent_at).as_secs_f64(), arrival, stats);
        }
        if new == 0 && sample.is_none() {
            stats.duplicate_acks += 1;
            return true;
        }
        let latest = self.flight.latest().is_some_and(|place| self.block.is_acknowledged(place));
        if self.congestion.on_ack(latest) {
            self.estimator.on_route_change();
        }
        if self.block.is_complete() {
            self.finish_block(now);
        }
        true
    }

    /// Marks `places` of the current block as acknowledged. Returns the places that were not
    /// acknowledged before.
    fn acknowledge(&mut self, places: u16, stats: &mut Stats) -> u16 {
        let new = self.block.acknowledge(places);
        stats.acked_bytes += bits(new).map(|place| u64::from(self.block.range(place, self.segment).1)).sum::<u64>();
        new
    }

    /// Ends the current block, of which every segment is acknowledged.
    fn finish_block(&mut self, now: Time) {
        self.fin.acknowledged = self.block.fin;
        self.window.on_block_delivered(now, self.block.bytes, self.is_full_block());
        self.block = Block::new(block_after(self.block.number, 1), self.block.end(), 0, 0, false);
        self.flight.restart();
        self.adopt_fin_ahead();
    }

    /// Makes the next block skip its first `numbers` transmission numbers, to detect a peer that
    /// acknowledges segments without having received them.
    pub fn skip_next(&mut self, numbers: impl FnOnce() -> u8) {
        self.flight.skip_next(numbers);
    }

    /// Last transmission time of the oldest of `places`, which were just acknowledged for the first
    /// time.
    fn oldest_of(&self, places: u16) -> Option<Time> {
        bits(places).filter_map(|place| self.flight.sent_at(place)).min()
    }

    /// Gives the pacing a round-trip sample.
    fn pace(&mut self, rtt: f64, arrival: Arrival, stats: &mut Stats) {
        let hops = if self.hops == HopSource::AckTravelled && arrival.hops > 0 { arrival.hops } else { self.path.hops };
        let sample =
            Sample { rtt, one_way: None, hops, rate: self.path.rate, path_power_dbm: self.path.received_power_dbm };
        self.pacer.on_sample(&sample, stats);
    }

    /// Processes the retransmission timers and the persist timer that have expired.
    pub fn on_timer(&mut self, now: Time, stats: &mut Stats) {
        for place in bits(self.block.outstanding()) {
            let timer = self.flight.timers[usize::from(place)];
            if timer.at <= now {
                stats.timeouts += 1;
                self.block.mark(place);
                self.congestion.on_timeout(timer.probe);
            }
        }
        if self.peer.persist_at <= now {
            self.peer.persist_at = Time::NEVER;
            self.peer.probe = true;
        }
    }

    /// The network reports that the route broke.
    pub fn on_route_failure(&mut self, now: Time) {
        if self.congestion.on_route_failure() {
            self.silent_until = now.saturating_add(self.estimator.max());
        }
    }

    /// The network reports that the route is back.
    pub fn on_route_recovered(&mut self) {
        if self.congestion.on_route_recovered() {
            self.window.on_route_change();
            self.estimator.on_route_change();
        }
    }

    /// The peer is reached over another path from now on. Congestion control, pacing and the RTT
    /// estimate start anew with the parameters of `config` (RFC 9000, section 9.4).
    pub fn restart_control(&mut self, config: &Config) {
        self.estimator = Estimator::new(&config.rto);
        self.window.on_route_change();
        self.pacer = Pacer::new(&config.pacing, self.segment);
        self.flight.restart_samples();
    }

    /// The peer has another address from now on. Segments that wait for a backed-off timer are sent
    /// again at once: the last copy went to the old address, and the timer may be as long as a
    /// minute.
    pub fn on_peer_moved(&mut self) {
        if !self.congestion.on_peer_moved() {
            return;
        }
        self.window.on_route_change();
        self.estimator.on_route_change();
        bits(self.block.outstanding()).for_each(|place| self.block.mark(place));
        if self.peer.persist_at != Time::NEVER {
            self.peer.persist_at = Time::NEVER;
            self.peer.probe = true;
        }
    }

    /// The path is known now, or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        if path.hops != self.path.hops {
            self.window.on_route_change();
        }
        self.path = path;
    }

    /// Starts the persist timer if only the peer's window holds data back. To be called after every
    /// other call.
    pub fn settle(&mut self, now: Time) {
        let blocked =
            self.peer.window == 0 && self.block.outstanding() == 0 && self.block.next().is_some() && !self.peer.probe;
        if !blocked {
            self.peer.persist_at = Time::NEVER;
        } else if self.peer.persist_at == Time::NEVER {
            let rto = self.estimator.backed_off(self.congestion.backoff());
            // A very small RTO must not cause a flood of probes.
            self.peer.persist_at = now.saturating_add(rto.max(self.peer.ack_delay).max(SHORTEST_PERSIST));
        }
    }

    /// Time at which [`Sender::on_timer`] is due, or the next segment may be sent.
    pub fn next_wakeup(&self, now: Time) -> Time {
        let mut next = self.peer.persist_at;
        for place in bits(self.block.outstanding()) {
            next = next.min(self.flight.timers[usize::from(place)].at);
        }
        if self.is_idle() && self.waiting() > 0 {
            next = next.min(self.supply.fill_by(self.block.end()));
        }
        if self.block.next().is_some() && self.has_room() {
            let earliest = match self.pacer.release(now) {
                Release::Now => now,
                Release::At(at) => at,
            };
            let earliest = if self.is_silent(now) { earliest.max(self.silent_until) } else { earliest };
            if earliest > now {
                next = next.min(earliest);
            }
        }
        next
    }

    /// Segments of the block after the current one, as they will be sent if the current block
    /// arrives completely and the sender is not congested. Empty unless data for a full block are
    /// waiting. The driver can use them to prepare packets in advance.
    pub fn following(&self) -> impl Iterator<Item = Segment> {
        let Block { number, start, bytes, .. } = self.block;
        let (segment, count) = (self.segment, self.block_segments);
        let waits = !self.is_idle() && self.waiting() >= u64::from(segment * u32::from(count));
        (0..count).filter(move |_| waits).map(move |place| Segment {
            offset: start + u64::from(bytes) + u64::from(segment * u32::from(place)),
            block: block_after(number, 1),
            place: 1 << place,
            payload: segment as u16,
            tx: self.flight.next_first() + place,
            last: place + 1 == count,
            ..Segment::default()
        })
    }

    /// Number of segments that were sent and are neither acknowledged nor timed out.
    pub fn outstanding(&self) -> u32 {
        self.block.outstanding().count_ones()
    }

    /// True if the application has written anything.
    pub fn has_written(&self) -> bool {
        self.supply.has_any()
    }

    /// Number of bytes before the current block, all of which are acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.block.start
    }

    /// Number of the current block, or of the next one if none is in transmission.
    pub fn block_number(&self) -> u16 {
        self.block.number
    }

    /// Returns the congestion control.
    pub fn congestion(&self) -> &congestion::Congestion {
        &self.congestion
    }

    /// Returns the estimator of the RTO.
    pub fn estimator(&self) -> &Estimator {
        &self.estimator
    }

    /// Returns the pacer.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
}

/// Shortest time between two probes of a closed window.
const SHORTEST_PERSIST: Duration = Duration::from_millis(10);

/// The places in a bitmap, lowest first.
fn bits(mut places: u16) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let place = (places != 0).then(|| places.trailing_zeros() as u8);
        places &= places.wrapping_sub(1);
        place
    })
}
