//! Distributed coordination function: carrier sensing, backoff, RTS/CTS, acknowledgements, retries.
//!
//! Source: IEEE Std 802.11-1999, 9.2; profile `ns2`: ns-2.35 as measured. The differences between
//! profiles are rows of constants: [`super::rules`].
//!
//! The state machine owns neither a queue nor a clock. The engine calls it at starts and ends of
//! frames and when timers fire. Each call returns one [`Action`]; further actions of the same call
//! are fetched with [`Dcf::next_action`]. While [`Dcf::wants_packet`] is true, the engine hands the
//! next packet to [`Dcf::send`]. NAV and EIFS are stored as times. A station with nothing to send
//! and nothing to answer has no timer. A frame for another station is announced when it leaves its
//! sender ([`Dcf::on_departure`]) and processed lazily, at the next event of this station
//! ([`super::arrivals`]).

mod aggregates;
mod attempt_rate;
mod categories;
mod receiving;
mod responding;
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

/// Request of the MAC to its engine.
#[derive(Clone, PartialEq, Debug)]
pub enum Action<P> {
    /// No action is required.
    None,
    /// Transmit this frame now.
    Transmit(Frame<P>),
    /// Deliver this body, received from neighbour `from`, to the layer above.
    Deliver {
        /// Station that transmitted the frame.
        from: NodeId,
        /// Received body, with this hop counted.
        body: Body<P>,
    },
    /// The retry limit is reached. Routing is notified of the link failure.
    Failed {
        /// Packet that was not delivered, with its next hop.
        queued: Queued<P>,
        /// Number of attempts without an answer: RTS without CTS, data without ACK.
        retries: u32,
    },
    /// The packet was acknowledged, or its broadcast has ended.
    Sent {
        /// Next hop of the packet.
        next_hop: NodeId,
        /// Number of attempts without an answer before the successful one.
        retries: u32,
        /// Air time of the data frame.
        data_air: Duration,
    },
}

/// Report about one attempt to send a unicast packet, made only if reports are switched on
/// ([`Dcf::reporting_attempts`]).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttemptReport<P> {
    /// Packet of the attempt, with its next hop.
    pub queued: Queued<P>,
    /// Air time of this station in the attempt: that of the data frame, and that of the RTS if it
    /// was used.
    pub air_time: Duration,
    /// True if the ACK arrived; for an aggregate, if any answer arrived.
    pub acknowledged: bool,
    /// Content and result of the attempt.
    pub carried: AttemptContent,
}

/// Content of an attempt, and its result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttemptContent {
    /// Category of the frame.
    pub category: Category,
    /// Rate of the data frame.
    pub rate: Rate,
    /// Bytes of the transmitted MPDUs. Zero if the RTS had no answer, or if the attempt was a block
    /// ACK request.
    pub bytes: u32,
    /// Acknowledged bytes among these.
    pub acknowledged: u32,
    /// Bytes that the MAC still holds for the neighbour.
    pub held: u32,
}

/// A frame that ends at a receiver.
#[derive(Clone, Copy, Debug)]
pub struct EndingFrame<'a, P> {
    /// Number of the transmission.
    pub id: u32,
    /// Received power at this station, in W.
    pub power: f64,
    /// Header and content of the frame.
    pub frame: &'a Frame<P>,
    /// MPDUs of an aggregate; empty for any other frame.
    pub mpdus: &'a [Mpdu<P>],
}

/// State of the frame exchange in which this station takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exchange {
    Idle,
    /// The station has sent an RTS and waits for the CTS.
    Rts,
    /// The station has sent a CTS and waits for the data.
    Cts,
    /// The station has sent data and waits for the ACK or block ACK, or for the end of its
    /// broadcast.
    Data,
    /// The station is sending an ACK or block ACK.
    Ack,
}

/// Response that is sent a SIFS after the frame that requires it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    kind: FrameKind,
    to: NodeId,
    category: Category,
    /// Rate of an ACK or block ACK.
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
    /// Number of attempts without an answer so far.
    retries: u32,
    data_air: Duration,
    /// Air time of the expected acknowledgement.
    answer_air: Duration,
}

impl<P: Packet> Outgoing<P> {
    /// Applies the request of the packet to the next attempt. Returns whether the packet is to be
    /// given up instead; `None` if the packet makes no request.
    #[inline(always)]
    fn apply_request(&mut self, t: &Timing) -> Option<bool> {
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

/// State of the packets that the station takes from the queue, one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PacketState {
    /// The station has no packet, and the queue was empty.
    None,
    /// The station has a packet, so the queue must wait.
    Sending,
    /// The station has finished a packet and requests the next one.
    Done,
}

/// Contention window in slots, and the numbers of attempts without an answer that count against the
/// retry limits (IEEE Std 802.11-1999, 9.2.4, 9.2.5.3).
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

/// Sequence number of the next packet, and the last sequence number received from each neighbour,
/// which detects duplicates.
#[derive(Clone, Debug)]
struct Sequences {
    next: u16,
    received: Vec<LastReceived>,
}

/// Reports of attempts, if they are switched on.
#[derive(Clone, Copy, Debug)]
struct Attempts<P> {
    are_reported: bool,
    /// Report of the attempt that ended in the last call.
    last: Option<AttemptReport<P>>,
}

/// Last sequence number received from a neighbour in a category.
#[derive(Clone, Copy, Debug)]
struct LastReceived {
    from: NodeId,
    category: Category,
    sequence: u16,
}

/// MAC of one station.
///
/// The first two cache lines hold all fields that a frame for another station uses. In a large
/// mesh, such frames are nearly all of the work.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Dcf<P> {
    next_arrival: NextArrival,
    /// Time at which this station's own transmission ends.
    transmitting_until: Time,
    /// NAV: time until which the medium is reserved, as far as the station knows.
    nav_until: Time,
    me: NodeId,
    /// True if the receiver holds no frame and at most one frame is on its way, so that the frame
    /// can be processed as a whole after its end.
    single_arrival: bool,
    /// True if `later_arrivals` holds a frame.
    has_later_arrivals: bool,
    /// `ieee`: true if the arriving frame began while this station was transmitting, so that its
    /// preamble was missed.
    missed_start: bool,
    /// `ieee`: true if EIFS must pass after the medium became idle.
    after_error: bool,
    /// `ieee`: true if the NAV came from an RTS. The NAV is reset at `nav_until` unless a frame
    /// arrives before that time; then it lasts until `nav_beyond`.
    nav_provisional: bool,
    exchange: Exchange,
    receiver: Receiver,
    /// Frame that the receiver is locked onto, under the rule of ns-2 ([`Receiver::holds`]).
    locked: Option<LockedFrame>,
    backoff: Backoff,
    /// Timer that fires a SIFS after a frame that requires a next frame.
    sifs_timer: Time,
    /// Timer that fires when an exchange times out, or when a transmission without an answer ends.
    timeout: Time,
    /// `ieee`: time at which the medium became idle.
    idle_since: Time,
    packets: PacketState,
    /// Category of the packet being sent; with EDCA, the active category.
    category: Category,
    contention: Contention,
    answer: Option<Answer>,
    /// End of the NAV of an RTS if it is not reset, see `nav_provisional`.
    nav_beyond: Time,
    later_arrivals: LaterArrivals,
    outgoing: Option<Outgoing<P>>,
    sequences: Sequences,
    attempts: Attempts<P>,
    /// 802.11n: aggregates of this station.
    block_ack: Option<Box<BlockAck<P>>>,
    /// Rate control: state by neighbour.
    rates: Option<Box<Rates>>,
    /// EDCA: state of the other categories.
    categories: Option<Box<Categories<P>>>,
    /// Number of frames for this station that were lost to another frame.
    collisions: u64,
    rng: Rng,
}

impl<P: Packet> Dcf<P> {
    /// Creates an idle station. `rng` draws its backoffs.
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
            sifs_timer: Time::NEVER,
            timeout: Time::NEVER,
            idle_since: Time::ZERO,
            packets: PacketState::None,
            category: Category::BestEffort,
            contention: Contention::new(Category::BestEffort, timing),
            answer: None,
            nav_beyond: Time::ZERO,
            later_arrivals: LaterArrivals::default(),
            outgoing: None,
            sequences: Sequences { next: 1, received: Vec::new() },
            attempts: Attempts { are_reported: false, last: None },
            block_ack: BlockAck::new(timing).map(Box::new),
            rates: timing.rates.map(|_| Box::default()),
            categories: Categories::new(timing).map(Box::new),
            collisions: 0,
            rng,
        }
    }

    /// Returns this station with reports of attempts switched on or off. [`Dcf::take_attempt`]
    /// returns the reports.
    pub fn reporting_attempts(self, reports_attempts: bool) -> Self {
        Dcf { attempts: Attempts { are_reported: reports_attempts, last: None }, ..self }
    }

    /// Report of the attempt that ended in the last call; `None` if no attempt ended or reports are
    /// switched off.
    #[inline]
    pub fn take_attempt(&mut self) -> Option<AttemptReport<P>> {
        self.attempts.last.take()
    }

    /// Number of unicast frames for this station that were lost to other frames that arrived at the
    /// same time.
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// Returns this station with `receiver` in place of the receiver of ns-2.
    pub fn with_receiver(self, receiver: Receiver) -> Self {
        let single_arrival = receiver.is_first_lock();
        Dcf { receiver, single_arrival, ..self }
    }

    /// Access parameters of the active category.
    #[inline]
    fn access<'t>(&self, t: &'t Timing) -> &'t Access {
        &t.access[self.category as usize]
    }

    /// Adds `extra` to the backoff, whether it runs or is stopped (LRED's adaptive pacing).
    pub fn extend_backoff(&mut self, extra: Duration) {
        self.backoff.extend(extra);
    }

    /// True if the station can take a packet with [`Dcf::send`].
    #[inline]
    pub fn wants_packet(&self) -> bool {
        self.packets != PacketState::Sending
    }

    /// Notes that the queue is empty. The station requests no packet until the next [`Dcf::send`].
    #[inline]
    pub fn note_empty_queue(&mut self) {
        self.packets = PacketState::None;
    }

    /// Starts to send a packet. Only permitted while [`Dcf::wants_packet`], and after
    /// [`Dcf::catch_up`].
    pub fn send(&mut self, now: Time, packet: Queued<P>, t: &Timing) {
        debug_assert!(self.wants_packet() && self.outgoing.is_none());
        let bytes = packet.body.size() + t.rules.data_overhead;
        let broadcast = packet.next_hop.is_broadcast();
        let uses_rts = !broadcast && t.uses_rts(bytes);
        let data_air = t.data_air(bytes, broadcast);
        let sequence = self.sequences.next;
        // Sequence numbers have 12 bits. The number 0 is skipped.
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
        outgoing.apply_request(t);
        self.outgoing = Some(outgoing);
        self.packets = PacketState::Sending;
        // A station with a response to send contends after the response.
        let answering = self.sifs_timer != Time::NEVER && self.medium_idle(now);
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

    /// Time at which this station's own transmission ends. In the past if the station is not
    /// transmitting.
    #[inline]
    pub fn transmitting_until(&self) -> Time {
        self.transmitting_until
    }

    /// Time at which the current exchange times out; [`Time::NEVER`] if the station expects no
    /// answer.
    #[inline]
    pub fn timeout(&self) -> Time {
        self.timeout
    }

    /// NAV: time until which the medium is reserved, as of the station's last update. In the past
    /// if the medium is not reserved.
    pub fn nav_until(&self) -> Time {
        self.nav_until
    }

    /// Backoff timer, as of the station's last update.
    pub fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// Time since which the medium is idle, as of the station's last update.
    #[inline]
    pub fn idle_since(&self) -> Time {
        self.idle_since
    }
}
