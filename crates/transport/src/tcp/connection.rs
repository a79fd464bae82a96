//! A full-duplex connection: a sender for our stream and a receiver for the peer's, joined.
//!
//! RFC 9293, sections 3.5 to 3.10, with the answers of RFC 5961 to what could be forged (sections 3.2, 4.2 and 5.2: a reset
//! counts only at the very next offset, a SYN never, everything suspect is answered with an ACK, at most ten in five
//! seconds as in section 7). The two halves are the sender and the receiver that the simulator runs; what one of them
//! would say alone rides on what the other says.
//!
//! Departures: no simultaneous open, no urgent data, no keep-alive. A peer that answers nothing is given up after
//! [`PATIENCE`] (section 3.8.3 asks for 100 s at least). A SYN-ACK is repeated by a doubling timer, at most
//! [`SYN_ACK_ATTEMPTS`] times. What arrives after both ends have closed is answered for [`TIME_WAIT`], shorter than the two
//! maximum lifetimes of section 3.4.2, as common hosts do.

use super::{Config, Flags, Receiver, Segment, Sender};
use crate::output::{Machine, Output};
use crate::stats::Stats;
use crate::{Arrival, PathInfo, Role};
use meshpace_core::{Duration, Time};

/// How long a peer may leave everything unanswered.
pub const PATIENCE: Duration = Duration::from_secs(100);
/// How often a SYN-ACK is sent at most.
pub const SYN_ACK_ATTEMPTS: u32 = 6;
/// How long the end that closed first answers late segments.
pub const TIME_WAIT: Duration = Duration::from_secs(60);
/// The ACKs that suspect segments may bring about in [`CHALLENGE_PERIOD`].
pub const CHALLENGES: u32 = 10;
/// The time after which they may again.
pub const CHALLENGE_PERIOD: Duration = Duration::from_secs(5);

/// What the options of the two SYNs agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// Payload of a full segment that both ends and the path take, in bytes, options subtracted; 1 or more.
    pub segment: u32,
    /// Time stamps (RFC 7323, section 3).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018, section 2). This end reports them if agreed, and uses the peer's if its own
    /// configuration says so too.
    pub sack: bool,
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Both ends closed, everything is acknowledged.
    Closed,
    /// The peer answered the SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer answered nothing for [`PATIENCE`], or the SYN-ACK [`SYN_ACK_ATTEMPTS`] times.
    TimedOut,
    /// This end reset the connection.
    Aborted,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    sender: Sender,
    receiver: Receiver,
    role: Role,
    established: bool,
    end: Option<End>,
    rto_initial: Duration,
    /// When the SYN-ACK was first sent.
    syn_ack_at: Time,
    syn_ack_times: u32,
    /// When it is sent again.
    syn_ack_again_at: Time,
    /// Since when the peer owes an answer; never if it owes none.
    waiting_since: Time,
    reset_due: bool,
    /// Whether the peer's FIN came before ours was sent: then the peer waits for late segments, not this end.
    peer_closed_first: bool,
    /// When late segments are no longer answered.
    forgotten_at: Time,
    challenges: u32,
    challenges_since: Time,
    wakeup: Time,
}

impl Connection {
    /// A closed end that will open the connection ([`Role::Sender`]), or one that listens. `config` must pass
    /// [`Config::check`]. Data flows both ways whatever the role.
    pub fn new(config: &Config, role: Role) -> Connection {
        Connection {
            sender: Sender::half(config, role == Role::Sender),
            receiver: Receiver::half(config),
            role,
            established: false,
            end: None,
            rto_initial: config.rto.initial,
            syn_ack_at: Time::ZERO,
            syn_ack_times: 0,
            syn_ack_again_at: Time::NEVER,
            waiting_since: Time::NEVER,
            reset_due: false,
            peer_closed_first: false,
            forgotten_at: Time::NEVER,
            challenges: 0,
            challenges_since: Time::ZERO,
            wakeup: Time::NEVER,
        }
    }

    /// The application connects. No effect on an end that listens.
    pub fn open(&mut self, now: Time) {
        if self.role == Role::Sender && self.end.is_none() {
            self.sender.open(now);
            self.refresh(now);
        }
    }

    /// The application hands over `bytes` to send.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.sender.write(now, bytes);
        self.refresh(now);
    }

    /// The application will write no more. It may go on reading.
    pub fn close(&mut self, now: Time) {
        self.sender.close(now);
        self.refresh(now);
    }

    /// The application gives the connection up: a reset is sent if there is anyone to tell.
    pub fn abort(&mut self, now: Time) {
        if self.end.is_none() {
            self.reset_due = self.established || self.receiver.is_opening();
            self.finish(End::Aborted, now);
        }
        self.refresh(now);
    }

    /// The application has taken `bytes` more of what was delivered.
    pub fn take(&mut self, now: Time, bytes: u64) {
        self.receiver.take(bytes);
        self.refresh(now);
    }

    /// What the options of the two SYNs agree on; to be told before the segment that completes the exchange of SYNs.
    pub fn on_agreed(&mut self, now: Time, agreed: &Agreed) {
        self.sender.agree(now, agreed);
        self.receiver.agree(agreed);
    }

    /// The path to the peer is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.sender.on_path(path);
    }

    /// A segment of this connection arrived. `more` are the blocks beyond a gap that it reports besides its own, as offsets
    /// in the stream. Whether its payload is part of the peer's stream: what is not must not touch what has arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, more: &[(u64, u64)], arrival: Arrival) -> bool {
        let is_taken = match self.end {
            None if self.established => self.on_established(now, segment, more, arrival),
            None => self.on_opening(now, segment, more, arrival),
            Some(End::Closed) if segment.flags.has(Flags::FIN) && now < self.forgotten_at => {
                self.challenge(now);
                false
            }
            Some(_) => false,
        };
        self.refresh(now);
        is_taken
    }

    fn on_opening(&mut self, now: Time, segment: &Segment, more: &[(u64, u64)], arrival: Arrival) -> bool {
        if self.role == Role::Sender {
            self.sender.on_segment(now, segment, arrival);
            if self.sender.is_established() {
                self.established = true;
                self.waiting_since = Time::NEVER;
                self.receiver.join(segment.ts_val);
            } else if self.sender.is_done() {
                self.finish(End::Refused, now);
            }
            return false;
        }
        if segment.flags.has(Flags::ACK) && segment.ack > 0 {
            // It acknowledges what was never sent; whoever has no connection for it answers (RFC 9293, section 3.10.7.4).
            return false;
        }
        let is_plain = !segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::RST);
        if self.receiver.is_opening() && segment.flags.has(Flags::ACK) && is_plain {
            self.established = true;
            self.syn_ack_again_at = Time::NEVER;
            self.receiver.join(segment.ts_val);
            let times = self.syn_ack_times.max(1);
            self.sender.establish(now, segment.window, self.syn_ack_at, times);
            return self.on_established(now, segment, more, arrival);
        }
        let was_opening = self.receiver.is_opening();
        self.receiver.on_segment(now, segment, arrival);
        if was_opening && self.receiver.is_done() {
            self.finish(End::Reset, now);
        }
        false
    }

    fn on_established(&mut self, now: Time, segment: &Segment, more: &[(u64, u64)], arrival: Arrival) -> bool {
        let flags = segment.flags;
        let end =
            segment.seq.saturating_add(u64::from(segment.payload)).saturating_add(u64::from(flags.has(Flags::FIN)));
        if flags.has(Flags::RST) {
            if segment.seq == self.receiver.expected() {
                self.finish(End::Reset, now);
            } else if self.receiver.is_acceptable(segment.seq, end) {
                self.challenge(now);
            }
            return false;
        }
        if flags.has(Flags::SYN) {
            self.challenge(now);
            return false;
        }
        if !self.receiver.is_acceptable(segment.seq, end) {
            if segment.payload > 0 || flags.has(Flags::FIN) {
                // What was there already: counted, and acknowledged at once.
                self.receiver.on_stream(now, segment, arrival.ce);
            } else {
                self.challenge(now);
            }
            return false;
        }
        if !flags.has(Flags::ACK) {
            return false;
        }
        if segment.ack > self.sender.sent_end() {
            self.challenge(now);
            return false;
        }
        self.waiting_since = Time::NEVER;
        for &(start, end) in more {
            self.sender.on_block(start, end);
        }
        self.sender.on_segment(now, segment, arrival);
        let was_closed = self.receiver.is_closed();
        self.receiver.on_stream(now, segment, arrival.ce);
        if self.receiver.is_closed() && !was_closed {
            self.peer_closed_first = !self.sender.fin_sent();
        }
        self.end_if_over(now);
        true
    }

    fn end_if_over(&mut self, now: Time) {
        if self.sender.is_finished() && self.receiver.is_closed() {
            self.finish(End::Closed, now);
        }
    }

    fn finish(&mut self, end: End, now: Time) {
        self.end = Some(end);
        let waits = end == End::Closed && !self.peer_closed_first;
        self.forgotten_at = if waits { now.saturating_add(TIME_WAIT) } else { now };
    }

    /// Answers a suspect segment with where this end stands.
    fn challenge(&mut self, now: Time) {
        if now.since(self.challenges_since) > CHALLENGE_PERIOD {
            self.challenges_since = now;
            self.challenges = 0;
        }
        if self.challenges < CHALLENGES {
            self.challenges += 1;
            self.receiver.acknowledge();
        }
    }

    /// A timer is due.
    fn on_timer(&mut self, now: Time) {
        if self.end.is_some() {
            self.refresh(now);
            return;
        }
        if self.waiting_since != Time::NEVER && now >= self.waiting_since + PATIENCE {
            self.reset_due = self.established;
            self.finish(End::TimedOut, now);
        } else if self.syn_ack_again_at <= now {
            self.syn_ack_again_at = Time::NEVER;
            if self.syn_ack_times < SYN_ACK_ATTEMPTS {
                self.receiver.repeat_syn_ack();
            } else {
                self.finish(End::TimedOut, now);
            }
        } else {
            self.sender.on_timer(now);
            self.receiver.on_timer(now);
        }
        self.refresh(now);
    }

    /// The next segment that may leave now.
    fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let segment = self.next_segment(now);
        self.refresh(now);
        segment
    }

    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.reset_due {
            self.reset_due = false;
            let (seq, ack) = (self.sender.sent_end(), self.receiver.expected());
            return Some(Segment { seq, ack, flags: Flags::RST.with(Flags::ACK), ..Segment::default() });
        }
        if !matches!(self.end, None | Some(End::Closed)) {
            return None;
        }
        if !self.established && self.role == Role::Receiver {
            let syn_ack = self.receiver.poll_transmit(now)?;
            if self.syn_ack_times == 0 {
                self.syn_ack_at = now;
            }
            self.syn_ack_again_at = now.saturating_add(self.rto_initial * (1 << self.syn_ack_times.min(6)));
            self.syn_ack_times += 1;
            return Some(syn_ack);
        }
        if let Some(mut segment) = self.sender.poll_transmit(now) {
            if segment.flags.has(Flags::ACK) {
                self.receiver.ride(&mut segment);
            }
            return Some(segment);
        }
        if !self.established {
            return None;
        }
        let mut ack = self.receiver.poll_transmit(now)?;
        ack.seq = self.sender.sent_end();
        Some(ack)
    }

    fn refresh(&mut self, now: Time) {
        if self.end.is_some() {
            self.wakeup =
                if self.end == Some(End::Closed) && now < self.forgotten_at { self.forgotten_at } else { Time::NEVER };
            return;
        }
        if !self.sender.awaits_answer() {
            self.waiting_since = Time::NEVER;
        } else if self.waiting_since == Time::NEVER {
            self.waiting_since = now;
        }
        self.wakeup = self
            .sender
            .next_wakeup()
            .min(self.receiver.next_wakeup())
            .min(self.syn_ack_again_at)
            .min(self.waiting_since.saturating_add(PATIENCE));
    }

    /// Payload bytes that arrived in order.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Payload bytes the peer has acknowledged: whoever keeps them for repetition may let them go.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the peer has closed its stream and all of it has arrived.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    /// How the connection ended, if it has.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether the connection has ended and late segments need no answer any more.
    pub fn is_forgotten(&self, now: Time) -> bool {
        self.end.is_some() && now >= self.forgotten_at && !self.reset_due
    }

    /// The blocks beyond a gap, for ACKs with room for several.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.receiver.blocks()
    }

    /// The offset behind everything sent, a FIN counting as one byte.
    pub fn outstanding_end(&self) -> u64 {
        self.sender.sent_end()
    }

    /// The offset that is expected next from the peer.
    pub fn expected(&self) -> u64 {
        self.receiver.expected()
    }

    /// What the sending half counted.
    pub fn sent(&self) -> &Stats {
        self.sender.stats()
    }

    /// What the receiving half counted.
    pub fn received(&self) -> &Stats {
        self.receiver.stats()
    }

    /// The sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }
}

impl Machine for Connection {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        if self.wakeup <= now {
            self.on_timer(now);
        }
        let segment = self.poll_transmit(now);
        Output::new(segment, self.wakeup)
    }
}
