//! A full-duplex connection: a sender for our stream, a receiver for the peer's stream, and the
//! opening and closing of both.
//!
//! RFC 9293, sections 3.5 to 3.10, with the responses of RFC 5961 to segments that may be forged
//! (sections 3.2, 4.2 and 5.2). A reset is accepted only at exactly the next expected offset, a SYN
//! is never accepted, and every suspect segment is answered with an ACK. The simulator and the
//! sockets use this same type; [`Profile`] says where agents of ns-2 behave differently. The ACK of
//! the SYN-ACK is carried by the first data segment if there is data; otherwise a bare ACK leaves.
//!
//! Departures: no simultaneous open, no urgent data, no keep-alive. `handshake` and `closing` name
//! the departures of the handshake and of the end.

mod status;
mod transmit;

use super::handshake::{Agreed, Due, Handshake};
use super::receiving::Receiver;
use super::sending::Sender;
use super::timers::{Shared, Timer};
use super::{Config, Flags, Profile, Segment};
use crate::closing::{Challenges, End, PATIENCE, SYN_ACK_ATTEMPTS, State, TIME_WAIT};
use crate::output::{Machine, Output};
use crate::path::{Arrival, PathInfo, Role};
use meshpace_core::Time;

/// Largest number of times that an agent of ns-2 sends its FIN.
const FIN_ATTEMPTS: u8 = 6;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    profile: Profile,
    role: Role,
    state: State,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    shared: Shared,
    challenges: Challenges,
    /// True if a reset has to be sent.
    reset_due: bool,
    /// True if the peer's FIN arrived before ours was sent. In that case the peer is in TIME-WAIT
    /// and this end is not.
    peer_closed_first: bool,
    wakeup: Time,
}

impl Connection {
    /// Creates a closed end that will open the connection ([`Role::Sender`]), or an end that
    /// listens. `config` must pass [`Config::check`]. Data flows in both directions whatever the
    /// role.
    pub fn new(config: &Config, role: Role) -> Connection {
        Connection {
            profile: config.profile,
            role,
            state: State::of(role),
            handshake: Handshake::new(config.rto.initial),
            sender: Sender::new(config),
            receiver: Receiver::new(config, config.profile == Profile::Ns2),
            shared: Shared::default(),
            challenges: Challenges::default(),
            reset_due: false,
            peer_closed_first: false,
            wakeup: Time::NEVER,
        }
    }

    fn is_ns2(&self) -> bool {
        self.profile == Profile::Ns2
    }

    /// The application opens the connection. This has no effect on an end that listens.
    pub fn open(&mut self, now: Time) {
        self.shared.now = now;
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.handshake.due = Due::Syn;
            self.settle();
        }
    }

    /// The application hands over `bytes` to send.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.shared.now = now;
        self.sender.write(now, bytes);
        self.settle();
    }

    /// The application always has more to send.
    pub fn write_endless(&mut self, now: Time) {
        self.shared.now = now;
        self.sender.write_endless(now);
        self.settle();
    }

    /// The application will write no more. It may continue to read.
    pub fn close(&mut self, now: Time) {
        self.shared.now = now;
        self.sender.close();
        if self.state == State::Closed {
            self.finish(End::Closed);
        }
        self.settle();
    }

    /// The application aborts the connection. A reset is sent if there is a peer that may know the
    /// connection.
    pub fn abort(&mut self, now: Time) {
        self.shared.now = now;
        if self.end().is_none() {
            self.reset_due = self.state.has_peer();
            self.finish(End::Aborted);
        }
        self.settle();
    }

    /// The application has read `bytes` more of the delivered data. Under [`Profile::Ns2`] it reads
    /// everything at once.
    pub fn take(&mut self, now: Time, bytes: u64) {
        self.shared.now = now;
        self.receiver.take(bytes);
        self.settle();
    }

    /// Takes the agreement of the options of both SYNs. To be called before the segment that
    /// completes the exchange of SYNs is handled.
    pub fn on_agreed(&mut self, now: Time, agreed: &Agreed) {
        self.shared.now = now;
        self.sender.agree(&mut self.shared, agreed.segment, agreed.timestamps, agreed.sack);
        self.receiver.agree(agreed.sack);
    }

    /// The path to the peer has become known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.sender.on_path(path);
    }

    /// A segment of this connection arrived. `blocks` are the blocks beyond a gap that its header
    /// reported, as offsets in the stream. Returns whether its payload is part of the peer's
    /// stream. If it is not, the caller must not store it, so that it cannot change data that has
    /// arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, blocks: &[(u64, u64)], arrival: Arrival) -> bool {
        self.shared.now = now;
        self.sender.on_frame(arrival.received_power_dbm);
        let is_taken = match self.state {
            State::Established => self.on_established(segment, blocks, arrival),
            State::SynReceived => self.on_syn_received(segment, blocks, arrival),
            State::Listen => {
                self.on_listen(segment);
                false
            }
            State::SynSent => {
                self.on_syn_sent(segment, arrival);
                false
            }
            State::Ended(End::Closed) if self.answers_late(segment) => {
                // The peer has not received our last ACK.
                self.answer();
                false
            }
            State::Closed | State::Ended(_) => false,
        };
        self.settle();
        is_taken
    }

    fn on_syn_sent(&mut self, segment: &Segment, arrival: Arrival) {
        let flags = segment.flags;
        if !flags.has(Flags::ACK) || segment.ack != 0 {
            return;
        }
        if flags.has(Flags::RST) {
            self.finish(End::Refused);
        } else if flags.has(Flags::SYN) {
            self.sender.on_syn_ack(&mut self.shared, segment, arrival);
            self.receiver.on_syn_ack(segment.ts_val);
            self.establish(segment, Some(self.handshake.sent_at));
            self.handshake.due = Due::Ack;
        }
    }

    fn on_listen(&mut self, segment: &Segment) {
        let flags = segment.flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST);
        if opens {
            self.state = State::SynReceived;
            self.receiver.on_syn(segment);
            self.handshake.due = Due::Syn;
        }
    }

    fn on_syn_received(&mut self, segment: &Segment, blocks: &[(u64, u64)], arrival: Arrival) -> bool {
        let flags = segment.flags;
        if flags.has(Flags::ACK) && segment.ack > 0 {
            // The segment acknowledges data that was never sent. The code that handles segments
            // without a connection answers it (RFC 9293, section 3.10.7.4).
        } else if flags.has(Flags::RST) {
            // A reset is accepted only at exactly the next expected offset (RFC 5961, section 3.2).
            if segment.seq == 0 {
                self.finish(End::Reset);
            }
        } else if flags.has(Flags::SYN) {
            // The SYN was repeated, because our SYN-ACK was lost or is late.
            if !flags.has(Flags::ACK) {
                self.on_listen(segment);
            }
        } else if flags.has(Flags::ACK) {
            // An agent of ns-2 takes no RTT sample from its SYN-ACK.
            self.establish(segment, (!self.is_ns2()).then_some(self.handshake.sent_at));
            return self.on_established(segment, blocks, arrival);
        }
        false
    }

    /// This segment completes the handshake. If `sent_at` is given, the exchange is an RTT sample
    /// that began at this time.
    fn establish(&mut self, segment: &Segment, sent_at: Option<Time>) {
        self.state = State::Established;
        self.handshake.due = Due::Nothing;
        self.shared.timers.stop(Timer::Handshake);
        self.shared.timers.stop(Timer::GiveUp);
        let times = if self.role == Role::Receiver && self.is_ns2() { 1 } else { self.handshake.times.max(1) };
        self.sender.establish(&mut self.shared, segment.window, times, sent_at);
    }

    fn on_established(&mut self, segment: &Segment, blocks: &[(u64, u64)], arrival: Arrival) -> bool {
        let flags = segment.flags;
        let end =
            segment.seq.saturating_add(u64::from(segment.payload)).saturating_add(u64::from(flags.has(Flags::FIN)));
        if flags.has(Flags::RST) {
            if segment.seq == self.receiver.expected() {
                self.finish(End::Reset);
            } else if self.receiver.is_acceptable(segment.seq, end) {
                self.challenge();
            }
            return false;
        }
        if flags.has(Flags::SYN) {
            self.answer();
            return false;
        }
        let is_bare = segment.payload == 0 && !flags.has(Flags::FIN);
        if !self.receiver.is_acceptable(segment.seq, end) {
            if !is_bare {
                // The data had arrived before, which is counted as a duplicate, or lies beyond the
                // window. It is acknowledged at once.
                self.receiver.on_data(&mut self.shared, segment, arrival.ce);
            } else {
                self.challenge();
            }
            return false;
        }
        if !flags.has(Flags::ACK) {
            return false;
        }
        // An ACK is not accepted either if it is older than the peer's window allows (RFC 5961,
        // section 5.2). An agent of ns-2 checks only the upper end.
        let oldest = if self.is_ns2() { 0 } else { self.sender.flight().lowest_acceptable_ack() };
        if segment.ack > self.sender.flight().sent_end() || segment.ack < oldest {
            self.challenge();
            return false;
        }
        self.shared.timers.stop(Timer::GiveUp);
        self.sender.on_ack(&mut self.shared, segment, blocks, arrival);
        let was_closed = self.receiver.is_closed();
        let mut is_taken = true;
        if !is_bare {
            is_taken = self.receiver.on_data(&mut self.shared, segment, arrival.ce);
        } else {
            self.receiver.on_bare(self.shared.now, segment);
            // An agent of ns-2 whose own stream is not finished does not count the peer's FIN here.
            let closes = self.is_ns2() && !self.sender.is_finished();
            let next = if closes { self.receiver.delivered() } else { self.receiver.expected() };
            if segment.seq != next {
                self.challenge();
            }
        }
        if self.receiver.is_closed() {
            if !was_closed {
                self.peer_closed_first = !self.sender.flight().fin_sent();
            }
            // An agent of ns-2 that has only received data has nothing to send, so it closes too.
            if self.is_ns2() && self.role == Role::Receiver && !self.sender.flight().has_written() {
                self.sender.close();
            }
            if self.sender.is_finished() {
                self.finish(End::Closed);
            }
        }
        is_taken
    }

    fn finish(&mut self, end: End) {
        self.state = State::Ended(end);
        self.shared.timers = Default::default();
        if end == End::Closed && !self.peer_closed_first && !self.is_ns2() {
            self.shared.timers.set(Timer::TimeWait, self.shared.now.saturating_add(TIME_WAIT));
        }
    }

    /// True if a late segment is still answered. A peer retransmits from its first unacknowledged
    /// byte, so the segment need not have the FIN (RFC 9293, section 3.10.7.4). An agent of ns-2
    /// stays forever and answers only a FIN.
    fn answers_late(&self, segment: &Segment) -> bool {
        let fin = segment.flags.has(Flags::FIN);
        if self.is_ns2() {
            return fin;
        }
        (fin || segment.payload > 0) && self.shared.timers.runs(Timer::TimeWait) && !self.is_due(Timer::TimeWait)
    }

    fn is_due(&self, timer: Timer) -> bool {
        self.shared.timers.is_due(timer, self.shared.now)
    }

    /// A suspect segment arrived. The sending agent of ns-2 ignores it.
    fn challenge(&mut self) {
        if !self.is_ns2() || self.role == Role::Receiver {
            self.answer();
        }
    }

    /// Answers with an ACK that carries the next expected offset. A host limits the rate of these
    /// ACKs.
    fn answer(&mut self) {
        if self.is_ns2() || self.challenges.answers(self.shared.now) {
            self.receiver.acknowledge();
        }
    }

    /// Handles the timers that are due.
    fn on_timer(&mut self, now: Time) {
        self.shared.now = now;
        if let State::Ended(_) = self.state {
            return self.settle_end();
        }
        if self.is_due(Timer::GiveUp) {
            self.reset_due = self.state == State::Established;
            self.finish(End::TimedOut);
        } else if self.is_due(Timer::Handshake) {
            self.on_handshake_timer();
        } else if self.is_ns2()
            && self.receiver.is_closed()
            && self.is_due(Timer::Retransmission)
            && self.sender.flight().fin_transmissions() >= FIN_ATTEMPTS
        {
            self.finish(End::Closed);
        } else {
            self.sender.on_timer(&mut self.shared);
            self.receiver.on_timer(&mut self.shared);
        }
        self.settle();
    }

    fn on_handshake_timer(&mut self) {
        self.shared.timers.stop(Timer::Handshake);
        if self.role == Role::Sender {
            self.sender.on_timer(&mut self.shared);
            self.shared.stats.timeouts += 1;
            self.sender.on_syn_timeout();
            self.handshake.due = Due::Syn;
        } else if self.handshake.times < SYN_ACK_ATTEMPTS {
            self.handshake.due = Due::Syn;
        } else {
            self.finish(End::TimedOut);
        }
    }

    /// Sets the timers for everything that waits. To be called after all other changes of the
    /// state.
    fn settle(&mut self) {
        if let State::Ended(_) = self.state {
            return self.settle_end();
        }
        self.sender.settle(&mut self.shared);
        if !self.is_ns2() {
            self.settle_patience();
        }
        self.wakeup = self.shared.timers.next();
    }

    /// Sets the timer after which a peer that does not answer is given up.
    fn settle_patience(&mut self) {
        let awaits = match self.state {
            State::SynSent => self.handshake.times > 0,
            State::Established => self.sender.awaits_answer(),
            _ => false,
        };
        let timers = &mut self.shared.timers;
        if !awaits {
            timers.stop(Timer::GiveUp);
        } else if !timers.runs(Timer::GiveUp) {
            timers.set(Timer::GiveUp, self.shared.now.saturating_add(PATIENCE));
        }
    }

    fn settle_end(&mut self) {
        let forgets_at = self.shared.timers.at(Timer::TimeWait);
        self.wakeup = if forgets_at > self.shared.now { forgets_at } else { Time::NEVER };
    }
}

impl Machine for Connection {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        if self.wakeup <= now {
            self.on_timer(now);
        }
        self.shared.now = now;
        let segment = self.next_segment();
        self.settle();
        Output::new(segment, self.wakeup)
    }
}
