//! The distributed coordination function: carrier sensing, backoff, RTS/CTS, acknowledgements, retries.
//!
//! Source: IEEE Std 802.11-1999, 9.2; profile `ns2`: ns-2.35 as measured. Where the profiles
//! differ:
//!
//! | | `ns2` | `ieee` |
//! |---|---|---|
//! | backoff | 0..CW-1 slots, before every frame | 0..CW slots; none if the medium was idle for DIFS and no backoff runs |
//! | after a damaged frame | NAV of EIFS, then DIFS | EIFS instead of DIFS, until a frame is decoded or sent; none after one whose preamble was missed while transmitting |
//! | CTS | if the medium and the NAV are idle | if the NAV is idle |
//! | NAV of an RTS that nothing follows | stays | is reset (9.2.5.4) |
//! | ignored weaker frame | NAV of its air time + EIFS | no effect |
//! | backoff ends on a busy medium | CW doubles, new backoff | cannot happen |
//! | busy medium within the CCA time before a transmission | sensed | not sensed |
//!
//! The machine owns neither queue nor clock: it is told of frame edges and timers and answers with at most one [`Action`];
//! when [`Dcf::wants_packet`] is true it takes the next packet through [`Dcf::send`]. NAV and EIFS are time stamps. A
//! station that has nothing to send and nothing to answer has no timer, and frames for others pass it by: it is told of a
//! frame when that leaves its sender ([`Dcf::on_departure`]) and lives through it when something of its own happens
//! ([`super::arrivals`]).

use super::arrivals::{Arrival, Kept, Moment, Others, Underway};
use super::backoff::Backoff;
use super::frame::{Frame, FrameKind};
use super::timing::{CTS_ACK_BYTES, RTS_BYTES, Timing};
use crate::config::MacProfile;
use crate::link::arp::ARP_BYTES;
use crate::link::queue::Queued;
use crate::packet::{Body, Packet};
use crate::radio::reception::{FrameEnd, FrameStart, Receiver};
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// What the MAC asks for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action<P> {
    /// Nothing.
    None,
    /// Put this frame on the air now.
    Transmit(Frame<P>),
    /// Hand this up: it came from neighbour `from`.
    Deliver {
        /// The transmitter.
        from: NodeId,
        /// What it sent, hop counted.
        body: Body<P>,
    },
    /// The retry limit is reached; routing is told that the link failed.
    Failed {
        /// What was to be sent, and to whom.
        queued: Queued<P>,
        /// Attempts without an answer: RTS without CTS, data without ACK.
        retries: u32,
    },
    /// The packet was acknowledged, or broadcast.
    Sent {
        /// Whom it was for.
        next_hop: NodeId,
        /// Attempts without an answer before.
        retries: u32,
        /// Air time of its data frame.
        data_air: Duration,
    },
}

/// The end of one attempt to send a unicast packet, kept for those who ask ([`Dcf::reporting_attempts`]).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attempted<P> {
    /// What was to be sent, and to whom.
    pub queued: Queued<P>,
    /// Time this station was on the air: the data frame, and the RTS if there was one.
    pub air_time: Duration,
    /// Whether the ACK came.
    pub acknowledged: bool,
}

/// A frame as a receiver hears it end.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a, P> {
    /// Number of the transmission.
    pub id: u32,
    /// Its power here, W.
    pub power: f64,
    /// The frame.
    pub frame: &'a Frame<P>,
}

/// What this station has on the air or waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exchange {
    Idle,
    /// RTS sent, waits for CTS.
    Rts,
    /// CTS sent, waits for data.
    Cts,
    /// Data sent, waits for ACK (or for the end of a broadcast).
    Data,
    /// ACK on the air.
    Ack,
}

/// An answer to be sent a SIFS after the frame that asked for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    kind: FrameKind,
    to: NodeId,
    nav: Duration,
}

/// The packet being sent.
#[derive(Clone, Copy, Debug)]
struct Outgoing<P> {
    packet: Queued<P>,
    bytes: u32,
    uses_rts: bool,
    /// Whether the next attempt begins with an RTS.
    rts_next: bool,
    sequence: u16,
    sent_before: bool,
    /// Attempts without an answer so far.
    retries: u32,
    data_air: Duration,
}

impl<P> Outgoing<P> {
    fn done<Q>(&self) -> Action<Q> {
        Action::Sent { next_hop: self.packet.next_hop, retries: self.retries, data_air: self.data_air }
    }
}

/// The last sequence number heard from a neighbour.
#[derive(Clone, Copy, Debug)]
struct LastHeard {
    from: NodeId,
    sequence: u16,
}

/// One station.
///
/// The first cache line holds all that a frame for somebody else touches where nothing else goes on, the first two what it
/// touches where a frame waits to be sent: in a large mesh that is nearly all there is to do.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Dcf<P> {
    underway: Underway,
    /// The end of this station's own transmission.
    transmitting_until: Time,
    /// Until when the medium is reserved, as far as is known.
    nav_until: Time,
    me: NodeId,
    /// No frame is at the receiver, one at most is on its way, and nothing waits for the medium: a frame for somebody
    /// else comes and goes without being looked at in between.
    calm: bool,
    /// Whether there is anything in `others`.
    crowded: bool,
    /// `ieee`: the frame that arrives began while this station was transmitting: its preamble was missed.
    missed_start: bool,
    /// `ieee`: whether EIFS must pass from when the medium became idle.
    after_error: bool,
    /// `ieee`: the NAV came from an RTS. It falls at `nav_until` unless a frame is heard before; then it lasts for all of
    /// `nav_beyond`.
    nav_provisional: bool,
    exchange: Exchange,
    receiver: Receiver,
    /// The frame that [`Receiver::keeps`].
    kept: Option<Kept>,
    backoff: Backoff,
    /// Fires a SIFS after a frame that is to be followed up.
    defer: Time,
    /// Fires when an exchange times out or a transmission without answer ends.
    timeout: Time,
    /// `ieee`: when the medium became idle.
    idle_since: Time,
    /// Whether the MAC holds or has just finished a packet, so that the queue must wait.
    occupied: bool,
    wants_packet: bool,
    next_sequence: u16,
    cw: u32,
    short_retries: u32,
    long_retries: u32,
    answer: Option<Answer>,
    nav_beyond: Time,
    others: Others,
    outgoing: Option<Outgoing<P>>,
    heard: Vec<LastHeard>,
    reports_attempts: bool,
    attempted: Option<Attempted<P>>,
    rng: Rng,
}

/// How long the medium will be reserved at least when `frame`, which may be lost to a collision, is over.
#[inline]
fn least_nav(frame: &Kept, t: &Timing) -> Duration {
    match t.profile {
        MacProfile::Ns2 if frame.is_told => Duration::ZERO,
        MacProfile::Ns2 if frame.decodable => t.eifs.min(Duration(u64::from(frame.nav_ns))),
        MacProfile::Ns2 => t.eifs,
        // After a frame that is lost a longer space follows instead.
        MacProfile::Ieee => Duration::ZERO,
    }
}

impl<P: Packet> Dcf<P> {
    /// An idle station. `rng` draws its backoffs.
    pub fn new(me: NodeId, timing: &Timing, rng: Rng) -> Self {
        Dcf {
            underway: Underway::default(),
            transmitting_until: Time::ZERO,
            nav_until: Time::ZERO,
            me,
            calm: true,
            crowded: false,
            missed_start: false,
            after_error: false,
            nav_provisional: false,
            exchange: Exchange::Idle,
            receiver: Receiver::default(),
            kept: None,
            backoff: Backoff::Off,
            defer: Time::NEVER,
            timeout: Time::NEVER,
            idle_since: Time::ZERO,
            occupied: false,
            wants_packet: false,
            next_sequence: 1,
            cw: timing.cw_min,
            short_retries: 0,
            long_retries: 0,
            answer: None,
            nav_beyond: Time::ZERO,
            others: Others::default(),
            outgoing: None,
            heard: Vec::new(),
            reports_attempts: false,
            attempted: None,
            rng,
        }
    }

    /// The same station, keeping a note of every attempt for [`Dcf::take_attempt`].
    pub fn reporting_attempts(self, reports_attempts: bool) -> Self {
        Dcf { reports_attempts, ..self }
    }

    /// The attempt that ended in the last call, if attempts are reported.
    #[inline]
    pub fn take_attempt(&mut self) -> Option<Attempted<P>> {
        self.attempted.take()
    }

    /// The same station with another receiver than that of ns-2.
    pub fn with_receiver(self, receiver: Receiver) -> Self {
        let calm = receiver.keeps_one();
        Dcf { receiver, calm, ..self }
    }

    /// Lengthens the backoff that runs or waits by `extra` (LRED's adaptive pacing).
    pub fn extend_backoff(&mut self, extra: Duration) {
        self.backoff.extend(extra);
    }

    /// Whether the station can take a packet with [`Dcf::send`].
    #[inline]
    pub fn wants_packet(&self) -> bool {
        !self.occupied || self.wants_packet
    }

    /// There is nothing to send: the station rests until the next [`Dcf::send`].
    #[inline]
    pub fn rest(&mut self) {
        self.occupied = false;
        self.wants_packet = false;
    }

    /// When [`Dcf::on_timer`] must be called next; [`Time::NEVER`] if it need not. What becomes of the frames that the station
    /// has been told of can only move it to later: then the call finds nothing to do.
    #[inline]
    pub fn next_wakeup(&self, t: &Timing) -> Time {
        let at = self.defer.min(self.timeout);
        let busy = self.receiver.busy_until();
        let (from, remaining_ns) = match self.backoff {
            Backoff::Off => return at,
            Backoff::Running { from, remaining_ns } => (from, remaining_ns),
            // Neither the end of the frame that arrives nor that of the NAV needs a timer: the backoff expires DIFS and what
            // remains after both, or later.
            Backoff::Paused { remaining_ns } if self.exchange == Exchange::Idle => {
                let quiet = self.kept.map_or(Duration::ZERO, |kept| least_nav(&kept, t));
                let idle = busy.saturating_add(quiet).max(self.nav_until);
                (idle.saturating_add(t.difs), remaining_ns)
            }
            Backoff::Paused { .. } => return at,
        };
        let remaining = Duration(u64::from(remaining_ns));
        let expiry = from.saturating_add(remaining);
        let locks = busy == Time::ZERO && self.receiver.keeps_one();
        match self.underway.first() {
            // A frame that begins before pauses it, and it goes on DIFS after that at the earliest.
            Some(next) if locks && next.start < expiry && expiry.since(next.start) >= t.commit => {
                let idle = (next.frame.end + least_nav(&next.into(), t)).max(self.nav_until);
                let elapsed = (next.start + t.commit).since(from);
                at.min(idle + t.difs + remaining.saturating_sub(elapsed))
            }
            _ => at.min(expiry),
        }
    }

    /// A packet to send. Only while [`Dcf::wants_packet`], and after [`Dcf::catch_up`].
    pub fn send(&mut self, now: Time, packet: Queued<P>, t: &Timing) {
        debug_assert!(self.wants_packet() && self.outgoing.is_none());
        let size = match &packet.body {
            Body::Data(data) => data.size(),
            Body::Aodv(message) => message.size(),
            Body::Olsr(message) => message.size(),
            Body::Arp { .. } => ARP_BYTES,
        };
        let bytes = size + t.data_overhead;
        let broadcast = packet.next_hop.is_broadcast();
        let uses_rts = !broadcast && t.uses_rts(bytes);
        let data_air = t.air_time(bytes, if broadcast { t.basic_rate } else { t.rate });
        let sequence = self.next_sequence;
        // Sequence numbers have 12 bits; 0 means "none heard yet" in the duplicate filter.
        self.next_sequence = if sequence == 4095 { 1 } else { sequence + 1 };
        self.outgoing = Some(Outgoing {
            packet,
            bytes,
            uses_rts,
            rts_next: uses_rts,
            sequence,
            sent_before: false,
            retries: 0,
            data_air,
        });
        self.occupied = true;
        self.wants_packet = false;
        // A station about to answer contends afterwards.
        let answering = self.defer != Time::NEVER && self.medium_idle(now);
        if !self.backoff.busy() && !answering {
            self.contend(now, t);
        }
        self.note_calm();
    }

    /// Whether several frames are on their way.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Reads from the cache lines that a frame touches as it leaves its sender, so that a processor fetches those of several
    /// stations at a time. What it returns means nothing.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.transmitting_until.0 ^ self.timeout.0
    }

    /// As [`Dcf::touch`], for a frame that ends at a station that it may be for.
    #[inline]
    pub fn touch_more(&self) -> u64 {
        self.touch() ^ self.idle_since.0
    }

    /// A frame leaves its sender `now` and will arrive here, not before. Returns whether that may move
    /// [`Dcf::next_wakeup`].
    #[inline]
    pub fn on_departure(&mut self, now: Moment, arrival: Arrival, t: &Timing) -> bool {
        match self.underway.first() {
            None => self.underway.replace(arrival),
            Some(&passed) if self.calm && passed.frame.end < now.time() => {
                self.pass(passed, t);
                self.underway.replace(arrival);
            }
            Some(_) => {
                self.live_through(now, t);
                self.crowded |= self.underway.push(arrival, &mut self.others);
                self.note_calm();
            }
        }
        !self.calm && self.backoff.busy()
    }

    /// Lets the station live through what begins and ends here before `now`.
    #[inline]
    pub fn catch_up(&mut self, now: Moment, t: &Timing) {
        if self.underway.begins() < now || self.kept.is_some() && self.receiver.busy_until() <= now.time() {
            self.live_through(now, t);
            self.note_calm();
        }
        self.follow_nav(now.time(), t);
    }

    /// What a frame for somebody else does to a station that is calm all the time.
    #[inline]
    fn pass(&mut self, frame: Arrival, t: &Timing) {
        debug_assert!(!frame.is_told);
        let (start, end) = (frame.start, frame.frame.end);
        self.missed_start = start < self.transmitting_until;
        let decoded = frame.frame.decodable && !self.missed_start;
        if self.end_reception(end, decoded, t) && decoded {
            self.hear_nav(end, frame.nav_ns);
        }
    }

    fn live_through(&mut self, now: Moment, t: &Timing) {
        loop {
            let begins = self.underway.begins();
            match self.kept {
                Some(kept)
                    if !kept.is_told && Moment::end(self.receiver.busy_until(), kept.sender) < begins.min(now) =>
                {
                    self.on_foreign_end(kept, t);
                }
                _ if begins < now => {
                    let arrival = if self.crowded {
                        let first = self.underway.pop(&mut self.others);
                        self.crowded = !self.others.is_empty();
                        first
                    } else {
                        self.underway.take()
                    };
                    self.on_frame_start(arrival, t);
                }
                _ => return,
            }
        }
    }

    /// Notes whether the station is calm: after whatever may have changed it.
    #[inline]
    fn note_calm(&mut self) {
        self.calm = self.kept.is_none()
            && !self.crowded
            && !self.backoff.busy()
            && !self.nav_provisional
            && self.receiver.keeps_one();
    }

    /// Lets the backoff resume if the medium is idle since a NAV ended, at `now` at the latest: no timer told the station.
    #[inline]
    fn follow_nav(&mut self, now: Time, t: &Timing) {
        if matches!(self.backoff, Backoff::Paused { .. }) && self.nav_until <= now {
            self.sense(self.nav_until, t);
        }
    }

    /// A frame begins to arrive.
    fn on_frame_start(&mut self, arrival: Arrival, t: &Timing) {
        let (now, frame) = (arrival.start, arrival.frame);
        self.follow_nav(now, t);
        let transmitting = now < self.transmitting_until;
        match self.receiver.on_start(now, frame, transmitting) {
            FrameStart::Locked => {
                self.missed_start = transmitting;
                if self.nav_provisional {
                    self.nav_provisional = false;
                    if now < self.nav_until {
                        self.nav_until = self.nav_beyond;
                    }
                }
                self.sense_onset(now, t);
            }
            FrameStart::Sensed => self.sense_onset(now, t),
            FrameStart::Ignored => {
                if t.profile == MacProfile::Ns2 {
                    self.set_nav(now, t.field(t.eifs + frame.end.since(now)));
                }
            }
            FrameStart::Collided => self.missed_start &= transmitting,
            FrameStart::Interference => {}
        }
        if self.receiver.keeps(frame.id) {
            self.kept = Some(Kept::from(&arrival));
        }
    }

    /// A frame for somebody else ends that the receiver has kept.
    fn on_foreign_end(&mut self, frame: Kept, t: &Timing) {
        let now = self.receiver.busy_until();
        self.kept = None;
        self.follow_nav(now, t);
        let Some(outcome) = self.receiver.end_kept() else { return };
        let decoded = outcome == FrameEnd::Decoded;
        if self.end_reception(now, decoded, t) && decoded {
            self.hear_nav(now, frame.nav_ns);
        }
        self.sense(now, t);
    }

    #[inline]
    fn hear_nav(&mut self, now: Time, nav_ns: u32) {
        if nav_ns > 0 {
            self.set_nav(now, Duration(u64::from(nav_ns)));
        }
    }

    /// Something that was received, decoded or not, has ended. False if this station is on the air itself and does not notice.
    #[inline]
    fn end_reception(&mut self, now: Time, decoded: bool, t: &Timing) -> bool {
        if t.profile == MacProfile::Ieee {
            self.idle_since = now;
        }
        if now < self.transmitting_until {
            return false;
        }
        if decoded {
            self.after_error = false;
        } else if t.profile == MacProfile::Ns2 {
            self.set_nav(now, t.eifs);
        } else {
            // 9.2.3.4 counts what the PHY began to receive.
            self.after_error |= !self.missed_start;
        }
        true
    }

    /// The medium becomes busy.
    #[inline]
    fn sense_onset(&mut self, now: Time, t: &Timing) {
        // A station about to transmit within the CCA time does not notice and goes ahead.
        if self.backoff.expiry().is_none_or(|at| at.since(now) >= t.commit) {
            self.sense(now, t);
        }
    }

    /// Whether transmission `id`, which ends now, has been received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        now >= self.transmitting_until && self.receiver.decodes(now, id)
    }

    /// A frame ends here that the station was to be told of.
    #[inline]
    pub fn on_frame_end(&mut self, now: Time, heard: Heard<'_, P>, t: &Timing) -> Action<P> {
        self.catch_up(Moment::end(now, heard.frame.from), t);
        let kept = self.receiver.keeps(heard.id);
        let Some(outcome) = self.receiver.on_end(now, heard.id, heard.power) else { return Action::None };
        if kept {
            self.kept = None;
        }
        let mut action = Action::None;
        let decoded = outcome == FrameEnd::Decoded;
        if outcome == FrameEnd::Quiet {
            self.idle_since = now;
        } else if self.end_reception(now, decoded, t) && decoded {
            action = self.on_decoded(now, heard.frame, t);
        }
        self.sense(now, t);
        self.note_calm();
        action
    }

    fn on_decoded(&mut self, now: Time, frame: &Frame<P>, t: &Timing) -> Action<P> {
        if frame.to != self.me {
            if frame.nav > Duration::ZERO {
                let extended = self.set_nav(now, frame.nav);
                if t.profile == MacProfile::Ieee && extended && frame.kind == FrameKind::Rts {
                    // 9.2.5.4: no frame within 2 SIFS + CTS + 2 slots of the RTS resets the NAV.
                    self.nav_provisional = true;
                    self.nav_beyond = self.nav_until;
                    self.nav_until = self.nav_until.min(now + t.sifs * 2 + t.cts_air + t.slot * 2);
                }
            }
            if !frame.to.is_broadcast() {
                return Action::None;
            }
        }
        let awaited = match self.exchange {
            Exchange::Rts => frame.kind == FrameKind::Cts,
            Exchange::Data => frame.kind == FrameKind::Ack,
            _ => true,
        };
        if t.profile == MacProfile::Ieee && !awaited {
            // 9.2.5.7, 9.2.8: any other valid frame means that the exchange failed; it is processed all the same.
            self.timeout = now;
        }
        match frame.kind {
            FrameKind::Rts => {
                if (self.exchange == Exchange::Idle || self.timeout == now) && self.answer.is_none() {
                    let nav = t.field(frame.nav.saturating_sub(t.sifs + t.cts_air));
                    self.answer = Some(Answer { kind: FrameKind::Cts, to: frame.from, nav });
                    if self.exchange == Exchange::Idle {
                        self.resume(now, t);
                    }
                }
                Action::None
            }
            FrameKind::Cts => {
                if self.exchange == Exchange::Rts {
                    self.timeout = Time::NEVER;
                    self.short_retries = 0;
                    if let Some(outgoing) = &mut self.outgoing {
                        outgoing.rts_next = false;
                    }
                    self.resume(now, t);
                }
                Action::None
            }
            FrameKind::Ack => {
                if self.exchange != Exchange::Data {
                    return Action::None;
                }
                self.timeout = Time::NEVER;
                self.note_attempt(true, t);
                let Some(sent) = self.outgoing.take() else { return Action::None };
                if sent.uses_rts {
                    self.long_retries = 0
                } else {
                    self.short_retries = 0
                }
                self.cw = t.cw_min;
                self.start_backoff(now, t);
                self.resume(now, t);
                sent.done()
            }
            FrameKind::Data => self.on_data(now, frame, t),
        }
    }

    fn on_data(&mut self, now: Time, frame: &Frame<P>, t: &Timing) -> Action<P> {
        if frame.to == self.me {
            let acknowledge = Answer { kind: FrameKind::Ack, to: frame.from, nav: Duration::ZERO };
            if t.uses_rts(frame.bytes) && t.profile == MacProfile::Ns2 {
                // ns-2 takes such a frame only as the answer to its own CTS.
                if self.exchange != Exchange::Cts {
                    return Action::None;
                }
                self.timeout = Time::NEVER;
                self.answer = Some(acknowledge);
                self.resume(now, t);
            } else {
                if t.profile == MacProfile::Ieee && self.exchange == Exchange::Cts {
                    self.timeout = Time::NEVER;
                } else if self.answer.is_some() {
                    return Action::None;
                }
                self.answer = Some(acknowledge);
                // While an answer to a frame of this station's own is awaited, the ACK follows the end of that wait.
                if self.timeout == Time::NEVER {
                    self.resume(now, t);
                }
            }
            if self.is_duplicate(frame) {
                return Action::None;
            }
        }
        match &frame.body {
            Some(body) => {
                let mut body = body.clone();
                if let Body::Data(packet) = &mut body {
                    packet.count_hop();
                }
                Action::Deliver { from: frame.from, body }
            }
            None => Action::None,
        }
    }

    /// Whether the last frame from this neighbour had the same sequence number (9.2.9).
    fn is_duplicate(&mut self, frame: &Frame<P>) -> bool {
        match self.heard.iter_mut().find(|h| h.from == frame.from) {
            Some(last) => core::mem::replace(&mut last.sequence, frame.sequence) == frame.sequence,
            None => {
                self.heard.push(LastHeard { from: frame.from, sequence: frame.sequence });
                false
            }
        }
    }

    /// One of the timers is due. Call again while [`Dcf::next_wakeup`] is not later than `now`.
    pub fn on_timer(&mut self, now: Time, t: &Timing) -> Action<P> {
        self.catch_up(Moment::timer(now), t);
        let action = self.on_due(now, t);
        self.note_calm();
        action
    }

    fn on_due(&mut self, now: Time, t: &Timing) -> Action<P> {
        if self.timeout <= now {
            self.timeout = Time::NEVER;
            return self.on_timeout(now, t);
        }
        if self.defer <= now {
            self.defer = Time::NEVER;
            if self.answer.is_some() && !matches!(self.exchange, Exchange::Cts | Exchange::Ack) {
                return self.transmit_answer(now, t);
            }
            return self.transmit_outgoing(now, t);
        }
        if self.backoff.expiry().is_some_and(|at| at <= now) {
            self.backoff = Backoff::Off;
            // While an answer is due the frame waits; it contends anew afterwards.
            return if self.answer.is_some() { Action::None } else { self.transmit_outgoing(now, t) };
        }
        self.sense(now, t);
        Action::None
    }

    fn on_timeout(&mut self, now: Time, t: &Timing) -> Action<P> {
        self.idle_since = now;
        let action = match self.exchange {
            Exchange::Idle => Action::None,
            Exchange::Cts | Exchange::Ack => {
                self.answer = None;
                Action::None
            }
            Exchange::Rts => {
                self.note_attempt(false, t);
                self.short_retries += 1;
                if self.short_retries >= t.short_retry_limit {
                    self.short_retries = 0;
                    self.give_up(t)
                } else {
                    self.retry(now, t);
                    Action::None
                }
            }
            Exchange::Data => self.on_data_timeout(now, t),
        };
        self.resume(now, t);
        action
    }

    fn on_data_timeout(&mut self, now: Time, t: &Timing) -> Action<P> {
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        if outgoing.packet.next_hop.is_broadcast() {
            let sent = outgoing.done();
            self.outgoing = None;
            self.cw = t.cw_min;
            self.start_backoff(now, t);
            return sent;
        }
        self.note_attempt(false, t);
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        let (retries, limit) = if outgoing.uses_rts {
            (&mut self.long_retries, t.long_retry_limit)
        } else {
            (&mut self.short_retries, t.short_retry_limit)
        };
        *retries += 1;
        if *retries >= limit {
            *retries = 0;
            self.give_up(t)
        } else {
            outgoing.rts_next = outgoing.uses_rts;
            self.retry(now, t);
            Action::None
        }
    }

    /// An attempt to send the packet in hand is over.
    fn note_attempt(&mut self, acknowledged: bool, t: &Timing) {
        let Some(outgoing) = &mut self.outgoing else { return };
        outgoing.retries += u32::from(!acknowledged);
        if self.reports_attempts {
            let sent_rts = outgoing.uses_rts || self.exchange == Exchange::Rts;
            let rts = if sent_rts { t.rts_air } else { Duration::ZERO };
            let data = if self.exchange == Exchange::Data { outgoing.data_air } else { Duration::ZERO };
            self.attempted = Some(Attempted { queued: outgoing.packet.clone(), air_time: rts + data, acknowledged });
        }
    }

    fn give_up(&mut self, t: &Timing) -> Action<P> {
        self.cw = t.cw_min;
        match self.outgoing.take() {
            Some(Outgoing { packet: queued, retries, .. }) => Action::Failed { queued, retries },
            None => Action::None,
        }
    }

    fn retry(&mut self, now: Time, t: &Timing) {
        self.widen(t);
        self.start_backoff(now, t);
    }

    fn widen(&mut self, t: &Timing) {
        self.cw = (2 * self.cw + 1).min(t.cw_max);
    }

    /// An exchange ended or a frame was answered: what comes next?
    fn resume(&mut self, now: Time, t: &Timing) {
        if self.answer.is_some() {
            self.defer = now + t.sifs;
        } else if let Some(outgoing) = &self.outgoing {
            if !self.backoff.busy() {
                if outgoing.rts_next || !outgoing.uses_rts {
                    self.contend(now, t);
                } else {
                    // The CTS is here.
                    self.defer = now + t.sifs;
                }
            }
        } else if self.occupied {
            self.wants_packet = true;
        }
        self.exchange = Exchange::Idle;
        self.sense(now, t);
    }

    /// Begins to contend for the medium with the frame in hand.
    fn contend(&mut self, now: Time, t: &Timing) {
        if t.profile == MacProfile::Ieee && self.medium_idle(now) && now.since(self.idle_since) >= self.interframe(t) {
            // 9.2.5.1: idle for DIFS already. The frame leaves with the timer, at once.
            self.backoff = Backoff::Running { from: now, remaining_ns: 0 };
        } else {
            self.start_backoff(now, t);
        }
    }

    /// Draws a backoff; counting down begins an interframe space after the medium is idle.
    fn start_backoff(&mut self, now: Time, t: &Timing) {
        let slots = match t.profile {
            MacProfile::Ns2 => self.rng.below(u64::from(self.cw)),
            MacProfile::Ieee => self.rng.below(u64::from(self.cw) + 1),
        };
        self.backoff = Backoff::paused(t.slot * slots);
        self.sense(now, t);
    }

    /// The interframe space before a frame that is not an answer.
    fn interframe(&self, t: &Timing) -> Duration {
        if self.after_error { t.eifs } else { t.difs }
    }

    /// Lets the backoff follow the state of the medium.
    #[inline]
    fn sense(&mut self, now: Time, t: &Timing) {
        match self.backoff {
            Backoff::Off => {}
            Backoff::Paused { .. } => {
                if self.medium_idle(now) {
                    let from = match t.profile {
                        MacProfile::Ns2 => now + t.difs,
                        MacProfile::Ieee => {
                            // The space counts from when the medium, physical or virtual, became idle.
                            let idle_since = self.idle_since.max(self.nav_until.min(now));
                            (idle_since + self.interframe(t)).max(now)
                        }
                    };
                    self.backoff.resume(from);
                }
            }
            Backoff::Running { .. } => {
                if !self.medium_idle(now) {
                    self.backoff.pause(now, t.slot, t.commit);
                }
            }
        }
    }

    /// Physical and virtual carrier sense, and no exchange of this station's own.
    #[inline]
    fn medium_idle(&self, now: Time) -> bool {
        !self.receiver.busy() && self.exchange == Exchange::Idle && self.nav_until <= now
    }

    /// Extends the NAV; false if it was longer already.
    fn set_nav(&mut self, now: Time, span: Duration) -> bool {
        let until = now + span;
        let longer = until > self.nav_until;
        if longer {
            self.nav_until = until;
            self.nav_provisional = false;
        }
        longer
    }

    fn transmit_answer(&mut self, now: Time, t: &Timing) -> Action<P> {
        let Some(answer) = self.answer else { return Action::None };
        let (exchange, timeout) = match answer.kind {
            FrameKind::Cts => {
                let free = match t.profile {
                    MacProfile::Ns2 => self.medium_idle(now),
                    MacProfile::Ieee => self.nav_until <= now,
                };
                if !free {
                    self.answer = None;
                    self.resume(now, t);
                    return Action::None;
                }
                (Exchange::Cts, t.data_timeout(answer.nav))
            }
            _ => (Exchange::Ack, t.ack_air),
        };
        let frame = Frame {
            kind: answer.kind,
            from: self.me,
            to: answer.to,
            bytes: CTS_ACK_BYTES,
            at_data_rate: false,
            air_time: t.ack_air,
            nav: answer.nav,
            sequence: 0,
            retry: false,
            body: None,
        };
        self.transmit(now, frame, exchange, timeout, t)
    }

    fn transmit_outgoing(&mut self, now: Time, t: &Timing) -> Action<P> {
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        let to = outgoing.packet.next_hop;
        let (uses_rts, rts_next, bytes) = (outgoing.uses_rts, outgoing.rts_next, outgoing.bytes);
        // Under `ieee` the backoff runs only while the medium is idle, or was until the CCA time before its end.
        let free = match t.profile {
            MacProfile::Ns2 => self.medium_idle(now),
            MacProfile::Ieee => true,
        };
        if !free {
            if let Some(outgoing) = &mut self.outgoing {
                outgoing.rts_next = uses_rts;
            }
            self.retry(now, t);
            return Action::None;
        }
        let Some(outgoing) = &mut self.outgoing else { return Action::None };
        let data_air = outgoing.data_air;
        if rts_next {
            let frame = Frame {
                kind: FrameKind::Rts,
                from: self.me,
                to,
                bytes: RTS_BYTES,
                at_data_rate: false,
                air_time: t.rts_air,
                nav: t.field(t.sifs * 3 + t.cts_air + data_air + t.ack_air),
                sequence: 0,
                retry: false,
                body: None,
            };
            return self.transmit(now, frame, Exchange::Rts, t.answer_timeout(t.rts_air, t.cts_air), t);
        }
        let broadcast = to.is_broadcast();
        let frame = Frame {
            kind: FrameKind::Data,
            from: self.me,
            to,
            bytes,
            at_data_rate: !broadcast,
            air_time: data_air,
            nav: if broadcast { Duration::ZERO } else { t.field(t.ack_air + t.sifs) },
            sequence: outgoing.sequence,
            retry: outgoing.sent_before,
            body: Some(outgoing.packet.body.clone()),
        };
        outgoing.sent_before = true;
        let timeout = if broadcast { data_air } else { t.answer_timeout(data_air, t.ack_air) };
        self.transmit(now, frame, Exchange::Data, timeout, t)
    }

    fn transmit(&mut self, now: Time, frame: Frame<P>, exchange: Exchange, timeout: Duration, t: &Timing) -> Action<P> {
        self.exchange = exchange;
        self.sense(now, t);
        self.transmitting_until = now + frame.air_time;
        self.after_error = false;
        self.receiver.on_own_transmission();
        self.timeout = now + timeout;
        Action::Transmit(frame)
    }
}
