//! The distributed coordination function: carrier sensing, backoff, RTS/CTS, acknowledgements, retries.
//!
//! Source: IEEE Std 802.11-1999, 9.2; profile `ns2`: ns-2.35 as measured. What differs between them is a row of constants each: [`super::rules`].
//!
//! The machine owns neither queue nor clock: it is told of frame edges and timers and answers with at most one [`Action`];
//! when [`Dcf::wants_packet`] is true it takes the next packet through [`Dcf::send`]. NAV and EIFS are time stamps. A
//! station that has nothing to send and nothing to answer has no timer. A frame for another station is announced to it when it
//! leaves its sender ([`Dcf::on_departure`]) and processed lazily, at the station's own next event ([`super::arrivals`]).

mod aggregates;
mod answering;
mod categories;
mod chosen;
mod hearing;
mod sending;
mod sensing;

use super::arrivals::{LaterArrivals, LockedFrame, NextArrival};
use super::backoff::Backoff;
use super::block_ack::BlockAck;
use super::frame::{Frame, FrameKind, Mpdu};
use super::rate_control::Rates;
use super::timing::{Access, CTS_ACK_BYTES, Timing};
use crate::body::{Body, Queued};
use crate::category::Category;
use crate::packet::{AttemptRequest, Packet};
use crate::radio::FrameRate;
use crate::radio::reception::Receiver;
use alloc::boxed::Box;
use alloc::vec::Vec;
use categories::Categories;
use meshpace_core::{Duration, NodeId, Rate, Rng, Time};

/// Request of the MAC to its driver.
#[derive(Clone, PartialEq, Debug)]
pub enum Action<P> {
    /// Nothing.
    None,
    /// Put this frame on the air now.
    Transmit(Frame<P>),
    /// Hand this up: it came from neighbour `from`.
    Deliver {
        /// The transmitter.
        from: NodeId,
        /// Content that it sent, with this hop counted.
        body: Body<P>,
    },
    /// The retry limit is reached; routing is told that the link failed.
    Failed {
        /// Content that was to be sent, and its next hop.
        queued: Queued<P>,
        /// Attempts without an answer: RTS without CTS, data without ACK.
        retries: u32,
    },
    /// The packet was acknowledged, or broadcast.
    Sent {
        /// The next hop that it was for.
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
    /// Content that was to be sent, and its next hop.
    pub queued: Queued<P>,
    /// Time this station was on the air: the data frame, and the RTS if there was one.
    pub air_time: Duration,
    /// True if the ACK came; after an aggregate, any answer.
    pub acknowledged: bool,
    /// Content and result of the attempt.
    pub carried: Carried,
}

/// Content of an attempt, and its result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Carried {
    /// The category of the frame.
    pub category: Category,
    /// The rate of data.
    pub rate: Rate,
    /// Bytes that were on the air in MPDUs: none if the RTS had no answer, or if it only attempt_request for a block ACK.
    pub bytes: u32,
    /// Those of them that are acknowledged.
    pub acknowledged: u32,
    /// Bytes that the MAC still holds for the neighbour.
    pub held: u32,
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
    /// MPDUs of an aggregate; empty for any other frame.
    pub mpdus: &'a [Mpdu<P>],
}

/// Exchange of frames that this station takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exchange {
    Idle,
    /// RTS sent, waits for CTS.
    Rts,
    /// CTS sent, waits for data.
    Cts,
    /// Data sent, waits for ACK or block ACK (or for the end of a broadcast).
    Data,
    /// ACK or block ACK on the air.
    Ack,
}

/// An answer to be sent a SIFS after the frame that attempt_request for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    kind: FrameKind,
    to: NodeId,
    category: Category,
    /// Of an ACK or block ACK.
    rate: FrameRate,
    nav: Duration,
}

/// The packet being sent.
#[derive(Clone, Copy, Debug)]
struct Outgoing<P> {
    packet: Queued<P>,
    bytes: u32,
    uses_rts: bool,
    /// True if the next attempt begins with an RTS.
    rts_next: bool,
    sequence: u16,
    sent_before: bool,
    rate: FrameRate,
    /// Attempts without an answer so far.
    retries: u32,
    data_air: Duration,
    /// Air time of what acknowledges it.
    answer_air: Duration,
}

impl<P: Packet> Outgoing<P> {
    /// Prepares the next attempt as the packet asks: whether it is to be given up instead; None if it asks nothing.
    #[inline(always)]
    fn ask(&mut self, t: &Timing) -> Option<bool> {
        match self.packet.body.attempt_request(self.retries)? {
            AttemptRequest::At(rate) => {
                self.rate = rate;
                self.data_air = t.air_at(rate, self.bytes);
                self.answer_air = t.air_at(rate.answer(), CTS_ACK_BYTES);
                Some(false)
            }
            AttemptRequest::GiveUp => Some(true),
        }
    }
}

impl<P> Outgoing<P> {
    fn done<Q>(&self) -> Action<Q> {
        Action::Sent { next_hop: self.packet.next_hop, retries: self.retries, data_air: self.data_air }
    }
}

/// The packets that the station takes from the queue, one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PacketState {
    /// It has none, and the queue had none.
    None,
    /// It has one: the queue must wait.
    Sending,
    /// It is done with one and asks for the next.
    Done,
}

/// The contention window, in slots, and the attempts without an answer that are counted against the retry limits
/// (IEEE Std 802.11-1999, 9.2.4, 9.2.5.3).
#[derive(Clone, Copy, Debug)]
struct Contention {
    cw: u32,
    short_retries: u32,
    long_retries: u32,
}

impl Contention {
    fn new(category: Category, t: &Timing) -> Contention {
        Contention { cw: t.access[category as usize].cw_min, short_retries: 0, long_retries: 0 }
    }
}

/// Sequence numbers: of the next packet, and the last one heard of each neighbour, by which repeated frames are known.
#[derive(Clone, Debug)]
struct Sequences {
    next: u16,
    heard: Vec<LastHeard>,
}

/// Log of attempts, if somebody asks for it.
#[derive(Clone, Copy, Debug)]
struct Attempts<P> {
    are_reported: bool,
    /// The one that ended in the last call.
    last: Option<Attempted<P>>,
}

/// The last sequence number heard from a neighbour, of a category.
#[derive(Clone, Copy, Debug)]
struct LastHeard {
    from: NodeId,
    category: Category,
    sequence: u16,
}

/// One station.
///
/// The first two cache lines hold all that a frame for another station touches: in a large mesh that is nearly all there is to do.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Dcf<P> {
    next_arrival: NextArrival,
    /// The end of this station's own transmission.
    transmitting_until: Time,
    /// Until when the medium is reserved, as far as is known.
    nav_until: Time,
    me: NodeId,
    /// No frame is at the receiver and at most one is on its way, so that it can be processed as a whole after its end.
    single_arrival: bool,
    /// True if there is anything in `later_arrivals`.
    has_later_arrivals: bool,
    /// `ieee`: the frame that arrives began while this station was transmitting: its preamble was missed.
    missed_start: bool,
    /// `ieee`: whether EIFS must pass from when the medium became idle.
    after_error: bool,
    /// `ieee`: the NAV came from an RTS. It falls at `nav_until` unless a frame is heard before; then it lasts for all of
    /// `nav_beyond`.
    nav_provisional: bool,
    exchange: Exchange,
    receiver: Receiver,
    /// The frame that the receiver is locked onto, under the rule of ns-2 ([`Receiver::holds`]).
    locked: Option<LockedFrame>,
    backoff: Backoff,
    /// Fires a SIFS after a frame that is to be followed up.
    defer: Time,
    /// Fires when an exchange times out or a transmission without answer ends.
    timeout: Time,
    /// `ieee`: when the medium became idle.
    idle_since: Time,
    packets: PacketState,
    /// That of what is sent; with EDCA that of the category in front.
    category: Category,
    contention: Contention,
    answer: Option<Answer>,
    nav_beyond: Time,
    later_arrivals: LaterArrivals,
    outgoing: Option<Outgoing<P>>,
    sequences: Sequences,
    attempts: Attempts<P>,
    /// 802.11n: what it aggregates.
    block_ack: Option<Box<BlockAck<P>>>,
    /// Rate control: what is known of neighbours.
    rates: Option<Box<Rates>>,
    /// EDCA: the other categories.
    categories: Option<Box<Categories<P>>>,
    /// Frames for this station that were lost to another one.
    collisions: u64,
    rng: Rng,
}

impl<P: Packet> Dcf<P> {
    /// An idle station. `rng` draws its backoffs.
    pub fn new(me: NodeId, timing: &Timing, rng: Rng) -> Self {
        Dcf {
            next_arrival: NextArrival::default(),
            transmitting_until: Time::ZERO,
            nav_until: Time::ZERO,
            me,
            single_arrival: true,
            has_later_arrivals: false,
            missed_start: false,
            after_error: false,
            nav_provisional: false,
            exchange: Exchange::Idle,
            receiver: Receiver::default(),
            locked: None,
            backoff: Backoff::Off,
            defer: Time::NEVER,
            timeout: Time::NEVER,
            idle_since: Time::ZERO,
            packets: PacketState::None,
            category: Category::BestEffort,
            contention: Contention::new(Category::BestEffort, timing),
            answer: None,
            nav_beyond: Time::ZERO,
            later_arrivals: LaterArrivals::default(),
            outgoing: None,
            sequences: Sequences { next: 1, heard: Vec::new() },
            attempts: Attempts { are_reported: false, last: None },
            block_ack: BlockAck::new(timing).map(Box::new),
            rates: timing.rates.map(|_| Box::default()),
            categories: Categories::new(timing).map(Box::new),
            collisions: 0,
            rng,
        }
    }

    /// The same station, keeping a note of every attempt for [`Dcf::take_attempt`].
    pub fn reporting_attempts(self, reports_attempts: bool) -> Self {
        Dcf { attempts: Attempts { are_reported: reports_attempts, last: None }, ..self }
    }

    /// The attempt that ended in the last call, if attempts are reported.
    #[inline]
    pub fn take_attempt(&mut self) -> Option<Attempted<P>> {
        self.attempts.last.take()
    }

    /// Unicast frames for this station that were lost to other frames that arrived at the same time.
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// The same station with another receiver than that of ns-2.
    pub fn with_receiver(self, receiver: Receiver) -> Self {
        let single_arrival = receiver.is_first_lock();
        Dcf { receiver, single_arrival, ..self }
    }

    /// Access of the category in front to the medium.
    #[inline]
    fn access<'t>(&self, t: &'t Timing) -> &'t Access {
        &t.access[self.category as usize]
    }

    /// Lengthens the backoff that runs or waits by `extra` (LRED's adaptive pacing).
    pub fn extend_backoff(&mut self, extra: Duration) {
        self.backoff.extend(extra);
    }

    /// True if the station can take a packet with [`Dcf::send`].
    #[inline]
    pub fn wants_packet(&self) -> bool {
        self.packets != PacketState::Sending
    }

    /// There is nothing to send until the next [`Dcf::send`].
    #[inline]
    pub fn rest(&mut self) {
        self.packets = PacketState::None;
    }

    /// A packet to send. Only while [`Dcf::wants_packet`], and after [`Dcf::catch_up`].
    pub fn send(&mut self, now: Time, packet: Queued<P>, t: &Timing) {
        debug_assert!(self.wants_packet() && self.outgoing.is_none());
        let bytes = packet.body.size() + t.rules.data_overhead;
        let broadcast = packet.next_hop.is_broadcast();
        let uses_rts = !broadcast && t.uses_rts(bytes);
        let data_air = t.data_air(bytes, broadcast);
        let sequence = self.sequences.next;
        // Sequence numbers have 12 bits; 0 means "none heard yet" in the duplicate filter.
        self.sequences.next = if sequence == 4095 { 1 } else { sequence + 1 };
        self.start_batch(&packet, bytes);
        let mut outgoing = Outgoing {
            packet,
            bytes,
            uses_rts,
            rts_next: uses_rts,
            sequence,
            sent_before: false,
            rate: if broadcast { FrameRate::BASIC } else { FrameRate::DATA },
            retries: 0,
            data_air,
            answer_air: t.ack_air,
        };
        outgoing.ask(t);
        self.outgoing = Some(outgoing);
        self.packets = PacketState::Sending;
        // A station about to answer contends afterwards.
        let answering = self.defer != Time::NEVER && self.medium_idle(now);
        if !self.backoff.busy() && !answering {
            self.contend(now, t);
        }
        self.update_single_arrival();
    }

    /// True if more than one frame is on its way.
    #[inline]
    pub fn has_later_arrivals(&self) -> bool {
        self.has_later_arrivals
    }

    /// The end of this station's own transmission; in the past if it is not on the air.
    #[inline]
    pub fn transmitting_until(&self) -> Time {
        self.transmitting_until
    }

    /// Time at which the exchange under way times out; [`Time::NEVER`] if nothing is waited for.
    #[inline]
    pub fn timeout(&self) -> Time {
        self.timeout
    }

    /// Until when the medium is reserved as far as this station knew when it last looked; in the past if it is not.
    pub fn nav_until(&self) -> Time {
        self.nav_until
    }

    /// The backoff timer, likewise.
    pub fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// Since when the medium is idle, as of the last time that the station looked.
    #[inline]
    pub fn idle_since(&self) -> Time {
        self.idle_since
    }
}
