//! The sending half of a connection: cuts blocks, sends rounds, keeps the timers.
//!
//! TPA, sections 3.2 to 3.5. Send rule: segments outstanding (sent, neither acknowledged nor timed out) stay below
//! min(cwnd, WinSize). With pacing (TPA-AP, section 5.2) each segment, first copy or not, also waits for its interval.
//!
//! Departures and choices where the paper is silent:
//! - A block that cannot be filled leaves after the fill timeout, or at once when the application has closed; on hosts, at once
//!   (`supply`).
//! - In a short block the last segments may be too few to make the receiver acknowledge before its timer. Their first
//!   timers last longer by that much; otherwise an RTO near the RTT would repeat them without any loss.
//! - A closed window is probed with a data segment, first after one RTO, then as its timers allow.
//! - An ACK that names a transmission or a place never sent is ignored altogether.

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
use meshpace_core::{Duration, Time};

/// The FIN.
#[derive(Clone, Debug)]
struct Fin {
    /// Time at which it was first sent.
    since: Time,
    /// It is acknowledged.
    acknowledged: bool,
}

/// Window of the receiver and its way of acknowledging.
#[derive(Clone, Debug)]
struct Peer {
    /// Segments it lets share an ACK, and how long an ACK may wait.
    ack_every: u8,
    ack_delay: Duration,
    /// WinSize.
    window: u8,
    /// Time at which a closed window is probed next; never if it is open or something is outstanding.
    persist_at: Time,
    /// One segment may leave although the window is closed.
    probe: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Payload of a full segment.
    segment: u32,
    /// K: segments in a full block.
    block_segments: u8,

    estimator: Estimator,
    congestion: Congestion,
    /// Segments that may be outstanding while all is well.
    window: Window,
    pacer: Pacer,
    path: PathInfo,
    /// Where the pacing has the number of hops from.
    hops: HopSource,
    /// True if the pacing times the oldest segment that an ACK acknowledges instead of the one that the ACK names.
    times_oldest: bool,

    supply: Supply,
    /// The block under way, or the number and start of the next one if it has no segments.
    block: Block,
    flight: Flight,
    fin: Fin,
    peer: Peer,
    /// While silent: when to probe if no notice comes.
    silent_until: Time,
}

impl Sender {
    /// Nothing written yet.
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
            fin: Fin { since: Time::NEVER, acknowledged: false },
            peer: Peer { ack_every, ack_delay: config.ack_delay, window: 0, persist_at: Time::NEVER, probe: false },
            silent_until: Time::ZERO,
        }
    }

    /// The application hands over `bytes`.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.supply.write(now, bytes, self.block.end());
        if !self.supply.waits_to_fill() {
            self.block.grow(self.waiting(), self.segment, self.block_segments);
        }
    }

    /// The application always has more.
    pub fn write_endless(&mut self, now: Time) {
        self.write(now, ENDLESS);
    }

    /// What was written leaves without waiting for its block to fill.
    pub fn push(&mut self) {
        self.supply.push();
    }

    /// Sets whether a block that is not full waits for more: see `supply`.
    pub fn set_waits_to_fill(&mut self, waits: bool) {
        self.supply.set_waits_to_fill(waits);
    }

    /// The application will write no more. Of data without end only the block under way is still sent.
    pub fn close(&mut self) {
        self.supply.close(self.block.end());
    }

    /// The handshake is done; the peer takes `window` segments.
    pub fn establish(&mut self, window: u8) {
        self.peer.window = window;
    }

    /// Bytes written and not in a block yet.
    fn waiting(&self) -> u64 {
        self.supply.after(self.block.end())
    }

    /// True if no block is under way.
    fn is_idle(&self) -> bool {
        self.block.count == 0
    }

    /// Starts a block if none is under way and one is full or must not wait any longer.
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

    /// True if the peer takes nothing for now.
    pub fn is_shut(&self) -> bool {
        self.peer.window == 0
    }

    /// Segments that may be outstanding while all is well, whatever the peer takes.
    pub fn window(&self) -> u8 {
        self.window.segments()
    }

    /// Segments that may be outstanding now, whatever the peer takes.
    #[inline]
    pub fn allowed(&self) -> u8 {
        self.congestion.window(self.window.segments())
    }

    /// True if nothing is sent until a notice of recovery.
    pub fn waits_for_notice(&self) -> bool {
        self.congestion.is_silent()
    }

    /// True if the sender keeps still until a notice of recovery, or until it has waited too long for one.
    fn is_silent(&self, now: Time) -> bool {
        self.congestion.is_silent() && now < self.silent_until
    }

    /// The peer acknowledges the end of a block up to `delay` later.
    pub fn expect_held_acks(&mut self, delay: Duration) {
        self.peer.ack_delay = delay;
    }

    /// The next data segment that may leave.
    pub fn poll(&mut self, now: Time, stats: &mut Stats) -> Option<Segment> {
        self.begin_block(now);
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

    /// True if the receiver's count reaches an ACK at or after `place` without its timer, if nothing is lost.
    fn is_acknowledged_promptly(&self, place: u8) -> bool {
        let counted = self.block.count - self.block.count % self.peer.ack_every;
        place < counted || self.block.fin || self.congestion.state() != State::Normal || self.is_full_block()
    }

    fn is_full_block(&self) -> bool {
        self.block.count == self.block_segments
    }

    /// A frame of the peer arrived, received with this power by the radio.
    pub fn on_frame(&mut self, power_dbm: Option<f32>) {
        self.pacer.on_frame(power_dbm);
    }

    /// A segment with the ACK flag arrived.
    ///
    /// Returns false if it claims the arrival of what the peer cannot have received.
    pub fn on_ack(&mut self, now: Time, segment: &Segment, arrival: Arrival, stats: &mut Stats) -> bool {
        let before = segment.ack_block == block_after(self.block.number, 4095);
        if before {
            // Late, but the window it tells may be news.
            self.peer.window = segment.window;
            return true;
        }
        if segment.ack_block != self.block.number || !self.block.has_sent(segment.ack_places) {
            return true;
        }
        if self.flight.is_deceiving(segment.ack_tx, segment.ack_places) {
            return false;
        }
        // A transmission number of 0 is an ACK that nothing triggered: of the handshake, or of a window that opens.
        if segment.ack_tx != 0 && !self.flight.has_sent(segment.ack_tx) {
            return true;
        }
        self.peer.window = segment.window;
        let sample = self.flight.name(segment.ack_tx, segment.ack_places);
        let new = self.block.acknowledge(segment.ack_places & ALL);
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
        for place in bits(new) {
            stats.acked_bytes += u64::from(self.block.range(place, self.segment).1);
        }
        if self.block.is_complete() {
            self.fin.acknowledged = self.block.fin;
            self.window.on_block_delivered(now, self.block.bytes, self.is_full_block());
            self.block = Block::new(block_after(self.block.number, 1), self.block.end(), 0, 0, false);
            self.flight.restart();
        }
        true
    }

    /// The next block leaves out its first `numbers` of transmissions, so that a peer which acknowledges unseen is found out.
    pub fn skip_next(&mut self, numbers: impl FnOnce() -> u8) {
        self.flight.skip_next(numbers);
    }

    /// Time at which the oldest of `places` that were acknowledged for the first time was last sent.
    fn oldest_of(&self, places: u16) -> Option<Time> {
        bits(places).filter_map(|place| self.flight.sent_at(place)).min()
    }

    /// Gives the pacing a sample.
    fn pace(&mut self, rtt: f64, arrival: Arrival, stats: &mut Stats) {
        let hops = if self.hops == HopSource::AckTravelled && arrival.hops > 0 { arrival.hops } else { self.path.hops };
        let sample =
            Sample { rtt, one_way: None, hops, rate: self.path.rate, path_power_dbm: self.path.received_power_dbm };
        self.pacer.on_sample(&sample, stats);
    }

    /// Timers may be due.
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

    /// The peer is reached over another path from now on: congestion control, pacing and the estimate of the round trip begin anew,
    /// as `config` has them (RFC 9000, section 9.4).
    pub fn restart_control(&mut self, config: &Config) {
        self.estimator = Estimator::new(&config.rto);
        self.window.on_route_change();
        self.pacer = Pacer::new(&config.pacing, self.segment);
        self.flight.restart_samples();
    }

    /// The peer is reached at another address from now on. What has waited for a doubled timer leaves again at once: the last copy went to where
    /// the peer no longer is, and the timer may be as long as a minute.
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

    /// The path is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        if path.hops != self.path.hops {
            self.window.on_route_change();
        }
        self.path = path;
    }

    /// To be called after everything else: starts the persist timer if only the peer's window holds data back.
    pub fn settle(&mut self, now: Time) {
        let blocked =
            self.peer.window == 0 && self.block.outstanding() == 0 && self.block.next().is_some() && !self.peer.probe;
        if !blocked {
            self.peer.persist_at = Time::NEVER;
        } else if self.peer.persist_at == Time::NEVER {
            let rto = self.estimator.backed_off(self.congestion.backoff());
            // An RTO of next to nothing must not become a flood.
            self.peer.persist_at = now.saturating_add(rto.max(self.peer.ack_delay).max(SHORTEST_PERSIST));
        }
    }

    /// Time at which [`Sender::on_timer`] is due, or a segment may leave.
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

    /// The segments of the block after the one under way, as they leave if all of that arrives and they are not congested; none
    /// unless a full block waits. What has to be done to each can so be done beforehand.
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

    /// True if the FIN is acknowledged.
    pub fn is_finished(&self) -> bool {
        self.fin.acknowledged
    }

    /// Number of times that the FIN has been sent.
    pub fn fin_times(&self) -> u32 {
        if self.block.fin { self.flight.count() } else { 0 }
    }

    /// Time at which the FIN was first sent; never if it was not.
    pub fn fin_since(&self) -> Time {
        self.fin.since
    }

    /// Segments sent, neither acknowledged nor timed out.
    pub fn outstanding(&self) -> u32 {
        self.block.outstanding().count_ones()
    }

    /// True if anything was ever written.
    pub fn has_written(&self) -> bool {
        self.supply.has_any()
    }

    /// Bytes before the block under way: all of them are acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.block.start
    }

    /// The number of the block under way or next.
    pub fn block_number(&self) -> u16 {
        self.block.number
    }

    /// The congestion control.
    pub fn congestion(&self) -> &congestion::Congestion {
        &self.congestion
    }

    /// The estimator of the RTO.
    pub fn estimator(&self) -> &Estimator {
        &self.estimator
    }

    /// The pacing.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
}

/// A closed window is not probed more often than this.
const SHORTEST_PERSIST: Duration = Duration::from_millis(10);

/// The places in a bitmap, lowest first.
fn bits(mut places: u16) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let place = (places != 0).then(|| places.trailing_zeros() as u8);
        places &= places.wrapping_sub(1);
        place
    })
}
