//! One end of a connection: opens, carries trains in both directions, closes, and resets.
//!
//! The handshake is that of TCP (RFC 9293, section 3.5): SYN, SYN-ACK, and an ACK that is sent with
//! the first data. Each direction is closed by a FIN after its last byte. A reset counts only at
//! exactly the next expected offset. Suspicious segments are answered with an ACK (RFC 5961,
//! sections 3.2, 4.2 and 5.2). SYN and SYN-ACK are retransmitted with a doubling timer. ACKs with
//! feedback are segments of their own, because they have to be sent when a train ends. Data
//! segments carry only the acknowledgement number and the window. [`Profile`] says where a host
//! differs from an agent of a simulator.

mod status;

use super::access::Access;
use super::receiver::Receiver;
use super::segment::{Segment, stamp};
use super::sender::Sender;
use super::timeout::Timeout;
use super::{Config, Profile};
use crate::closing::{Challenges, End, PATIENCE, SYN_ACK_ATTEMPTS, State, TIME_WAIT};
use crate::flags::Flags;
use crate::output::{Machine, Output};
use crate::stats::Stats;
use crate::{Arrival, PathInfo, Role};
use meshpace_core::Time;

/// Number of times that an agent sends a SYN-ACK without another SYN arriving: two minutes with the
/// default timer.
const AGENT_SYN_ATTEMPTS: u32 = 60;
/// Number of times that an agent sends a FIN that nobody acknowledges, after the peer's own FIN.
const FIN_ATTEMPTS: u32 = 6;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    state: State,
    role: Role,
    sender: Sender,
    receiver: Receiver,
    stats: Stats,
    challenges: Challenges,
    /// True if a SYN or SYN-ACK has to be sent.
    syn_due: bool,
    syn_times: u32,
    /// Time at which the SYN or SYN-ACK is retransmitted.
    syn_at: Time,
    syn_timeout: Timeout,
    /// Timeouts in a row of the closing FIN, after the peer's own FIN.
    fin_timeouts: u32,
    reset_due: bool,
    /// True if the handshake was completed.
    established: bool,
    /// True if the peer's FIN arrived before this end sent its own. The peer then waits for late
    /// segments, and not this end.
    peer_closed_first: bool,
    /// Time at which a host gives up a peer that does not answer.
    give_up_at: Time,
    /// Time until which a host answers late segments.
    forget_at: Time,
}

impl Connection {
    /// Creates the end that will open the connection, or the one that listens, by `role`. `config`
    /// must pass [`Config::check`].
    pub fn new(config: &Config, role: Role) -> Connection {
        Connection {
            config: config.clone(),
            state: State::of(role),
            role,
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            stats: Stats::default(),
            challenges: Challenges::default(),
            syn_due: false,
            syn_times: 0,
            syn_at: Time::NEVER,
            syn_timeout: Timeout::new(&config.timeout),
            fin_timeouts: 0,
            reset_due: false,
            established: false,
            peer_closed_first: false,
            give_up_at: Time::NEVER,
            forget_at: Time::NEVER,
        }
    }

    fn is_host(&self) -> bool {
        self.config.profile == Profile::Host
    }

    /// The application opens the connection. No effect on an end that listens.
    pub fn open(&mut self) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.syn_due = true;
        }
    }

    /// The two SYNs agree on full segments of `segment` bytes, which counts if it is less than the
    /// configured size. To be called before the segment that completes the exchange of SYNs.
    pub fn on_agreed(&mut self, segment: u32) {
        if segment < self.config.segment {
            self.config.segment = segment;
            self.sender.agree(&self.config);
            self.receiver = Receiver::new(&self.config);
        }
    }

    /// From now on, an acknowledgement ends the connection if it echoes a time stamp that no
    /// segment had: its peer claims data that it has not received (RFC 9000, section 21.4). This is
    /// for peers in whose name nobody else can send.
    pub fn judge_echoes(&mut self) {
        self.sender.judge_echoes();
    }

    /// The peer is reached over another path from now on: estimates, control and timer start anew
    /// (RFC 9000, section 9.4).
    pub fn restart_control(&mut self) {
        self.sender.restart_control(&self.config);
    }

    /// Takes `bytes` that the application writes, at either end.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// A small message of the same sender is sent by another connection, over the same path. For a
    /// second, the interval leaves room for more of them, on paths where several segments are in
    /// flight at the same time.
    pub fn make_room(&mut self, now: Time) {
        self.sender.make_room(now);
    }

    /// Takes data without end: the application always has more to send.
    pub fn write_endless(&mut self) {
        self.sender.write_endless();
    }

    /// The application has taken `bytes` more of the delivered data. The application of an agent
    /// takes everything at once.
    pub fn take(&mut self, bytes: u64) {
        self.receiver.take(bytes);
    }

    /// The application will write no more. Data written before are still sent.
    pub fn close(&mut self) {
        if self.state == State::Closed {
            self.state = State::Ended(End::Closed);
        }
        self.sender.close();
    }

    /// The application aborts the connection. The peer gets one reset.
    pub fn abort(&mut self) {
        if self.end().is_none() {
            self.reset_due = self.state.has_peer();
            self.state = State::Ended(End::Aborted);
        }
    }

    /// Processes a segment of the peer. Returns whether its payload is part of the peer's stream.
    /// Other payload must not overwrite data that have arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, arrival: Arrival) -> bool {
        if segment.flags.has(Flags::RST) {
            self.on_reset(now, segment);
            return false;
        }
        match self.state {
            State::Listen => self.on_listen(segment),
            State::SynSent => self.on_syn_sent(segment),
            State::SynReceived => return self.on_syn_received(now, segment, arrival),
            State::Established => return self.on_established(now, segment, arrival),
            State::Ended(End::Closed) if self.answers_late(now) => {
                return self.on_established(now, segment, arrival);
            }
            State::Closed | State::Ended(_) => {}
        }
        false
    }

    fn on_reset(&mut self, now: Time, segment: &Segment) {
        match self.state {
            State::SynSent if segment.flags.has(Flags::ACK) && segment.ack == 0 => {
                self.state = State::Ended(End::Refused);
            }
            State::SynReceived | State::Established if segment.seq == self.receiver.expected() => {
                self.state = State::Ended(End::Reset);
            }
            State::Established => self.challenge(now),
            _ => {}
        }
    }

    fn on_listen(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) {
            self.state = State::SynReceived;
            self.receiver.on_syn(segment);
            self.syn_due = true;
            self.syn_times = 0;
        }
    }

    fn on_syn_sent(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::SYN.with(Flags::ACK)) && segment.ack == 0 {
            self.receiver.on_syn(segment);
            self.establish(segment.window);
            // The ACK is part of the first data segment if there are data.
            if !self.sender.has_written() {
                self.receiver.acknowledge();
            }
        }
    }

    fn on_syn_received(&mut self, now: Time, segment: &Segment, arrival: Arrival) -> bool {
        let flags = segment.flags;
        if flags.has(Flags::SYN) {
            self.syn_due |= !flags.has(Flags::ACK);
        } else if flags.has(Flags::ACK) && segment.ack <= self.sender.sent_end() {
            self.establish(segment.window);
            return self.on_established(now, segment, arrival);
        }
        false
    }

    /// The peer has shown, by other means than an ACK, that it has received the SYN-ACK. `window`
    /// is its receive window. No effect unless this end still waits for that confirmation.
    pub fn on_confirmed(&mut self, window: u16) {
        if self.state == State::SynReceived {
            self.establish(window);
        }
    }

    fn establish(&mut self, window: u16) {
        self.state = State::Established;
        self.established = true;
        self.syn_due = false;
        self.syn_at = Time::NEVER;
        self.give_up_at = Time::NEVER;
        self.sender.establish(window);
    }

    fn on_established(&mut self, now: Time, segment: &Segment, arrival: Arrival) -> bool {
        let flags = segment.flags;
        if flags.has(Flags::SYN) {
            // The ACK of the SYN-ACK was lost, or the SYN is late: answer with an ACK (RFC 5961,
            // section 4.2).
            self.challenge(now);
            return false;
        }
        if !flags.has(Flags::ACK) {
            return false;
        }
        if self.is_host() && !self.is_acceptable(segment) {
            self.challenge(now);
            return false;
        }
        self.give_up_at = Time::NEVER;
        if self.state == State::Established {
            let before = self.sender.acknowledged();
            if !self.sender.on_ack(now, segment, &mut self.stats) {
                self.reset_due = true;
                self.state = State::Ended(End::Deceived);
                return false;
            }
            if self.sender.acknowledged() > before {
                self.fin_timeouts = 0;
            }
        }
        let was_closed = self.receiver.is_closed();
        let is_taken = self.receiver.on_segment(now, segment, arrival.ce, &mut self.stats);
        if self.receiver.is_closed() {
            if !was_closed {
                self.peer_closed_first = !self.sender.has_sent_fin();
            }
            if !self.is_host() && self.role == Role::Receiver && !self.sender.has_written() {
                // An agent that listened and has written nothing closes when its peer has.
                self.sender.close();
            }
        }
        self.end_if_over(now);
        is_taken
    }

    /// True if the sequence and acknowledgement numbers of a segment fit the two streams. An
    /// attacker who does not see the streams can hardly guess both numbers (RFC 9293, section
    /// 3.10.7.4; RFC 5961, section 5.2).
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let acks = self.sender.oldest_ack()..=self.sender.sent_end();
        self.receiver.is_acceptable(segment.seq) && acks.contains(&segment.ack)
    }

    fn end_if_over(&mut self, now: Time) {
        if self.state == State::Established && self.receiver.is_closed() && self.sender.is_finished() {
            self.state = State::Ended(End::Closed);
            if self.is_host() && !self.peer_closed_first {
                self.forget_at = now.saturating_add(TIME_WAIT);
            }
        }
    }

    /// True if late segments are still answered. An agent always answers them.
    fn answers_late(&self, now: Time) -> bool {
        !self.is_host() || (self.forget_at != Time::NEVER && now < self.forget_at)
    }

    /// Answers a suspicious segment with an ACK of the current state. A host limits the number of
    /// such answers.
    fn challenge(&mut self, now: Time) {
        if !self.is_host() || self.challenges.answers(now) {
            self.receiver.acknowledge();
        }
    }

    /// Processes the timers that are due.
    fn on_timer(&mut self, now: Time) {
        if self.give_up_at <= now && self.end().is_none() {
            self.reset_due = self.state == State::Established;
            self.state = State::Ended(End::TimedOut);
        }
        if self.syn_at <= now {
            self.on_syn_timer();
        }
        if self.state == State::Established {
            let timeouts = self.stats.timeouts;
            self.sender.on_timer(now, &mut self.stats);
            if !self.is_host() && self.receiver.is_closed() && self.stats.timeouts > timeouts {
                self.fin_timeouts += 1;
                if self.fin_timeouts >= FIN_ATTEMPTS && self.sender.has_only_fin() {
                    // Everything is delivered in both directions; only the ACK of the FIN is
                    // missing.
                    self.state = State::Ended(End::Closed);
                }
            }
        }
        self.receiver.on_timer(now);
    }

    fn on_syn_timer(&mut self) {
        self.syn_at = Time::NEVER;
        let attempts = if self.is_host() { SYN_ACK_ATTEMPTS } else { AGENT_SYN_ATTEMPTS };
        if self.state == State::SynReceived && self.syn_times >= attempts {
            // An agent keeps waiting. Its peer may have been open since the first SYN-ACK, and
            // no other message would tell it that this end is not open.
            if self.is_host() {
                self.state = State::Ended(End::TimedOut);
            }
        } else if matches!(self.state, State::SynSent | State::SynReceived) {
            self.stats.timeouts += 1;
            self.syn_timeout.on_expiry();
            self.syn_due = true;
        }
    }

    /// Sets the timers of everything that waits. To be called after every other call.
    fn settle(&mut self, now: Time) {
        if self.state == State::Established {
            self.sender.settle(now);
        }
        let awaits = match self.state {
            State::SynSent => true,
            State::Established => self.sender.awaits_answer(),
            _ => false,
        };
        if !(awaits && self.is_host()) {
            self.give_up_at = Time::NEVER;
        } else if self.give_up_at == Time::NEVER {
            self.give_up_at = now.saturating_add(PATIENCE);
        }
    }

    /// The path to the peer is known now, or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.sender.on_path(path);
    }

    /// Sets cost and capacity of one access to the channel, where the links aggregate packets.
    pub fn on_access(&mut self, access: Access) {
        self.sender.on_access(access);
    }

    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.reset_due {
            self.reset_due = false;
            return Some(Segment { seq: self.sender.sent_end(), flags: Flags::RST, ..Segment::default() });
        }
        if self.syn_due {
            self.syn_due = false;
            self.syn_times = self.syn_times.saturating_add(1);
            self.syn_at = now.saturating_add(self.syn_timeout.rto());
            let mut syn = Segment { ts_val: stamp(now), ..Segment::default() };
            if self.state == State::SynReceived {
                self.receiver.ride(&mut syn);
            }
            syn.flags = syn.flags.with(Flags::SYN);
            syn.window = self.receiver.window();
            return Some(syn);
        }
        let has_data = self.state == State::Established;
        if let Some(mut segment) = has_data.then(|| self.sender.poll(now, &mut self.stats)).flatten() {
            self.receiver.ride(&mut segment);
            return Some(segment);
        }
        let answers = matches!(self.state, State::Established | State::Ended(End::Closed));
        let due = answers && self.receiver.owes_ack();
        due.then(|| {
            self.stats.acks_sent += 1;
            let mut ack = self.receiver.answer(now);
            ack.seq = self.sender.sent_end();
            ack
        })
    }

    /// Time at which a timer is due, or the next segment may be sent.
    fn wakeup(&self, now: Time) -> Time {
        match self.state {
            State::SynSent | State::SynReceived => self.syn_at.min(self.give_up_at),
            State::Established => self.sender.next_wakeup().min(self.receiver.next_wakeup()).min(self.give_up_at),
            State::Ended(End::Closed) if self.forget_at > now => self.receiver.next_wakeup().min(self.forget_at),
            State::Ended(End::Closed) => self.receiver.next_wakeup(),
            State::Closed | State::Listen | State::Ended(_) => Time::NEVER,
        }
    }
}

impl Machine for Connection {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        self.on_timer(now);
        let segment = self.next_segment(now);
        self.settle(now);
        Output::new(segment, self.wakeup(now))
    }
}
