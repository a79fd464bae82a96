//! A full-duplex connection: a sender for our stream, a receiver for the peer's, and what opens and closes them.
//!
//! RFC 9293, sections 3.5 to 3.10, with the answers of RFC 5961 to what could be forged (sections 3.2, 4.2 and 5.2: a reset
//! counts only at the very next offset, a SYN never, everything suspect is answered with an ACK). The simulator and the
//! sockets run this same type; [`Profile`] says what agents of ns-2 do otherwise. The ACK of the SYN-ACK rides with the first
//! data segment if there is data; a bare ACK leaves only if there is none.
//!
//! Departures: no simultaneous open, no urgent data, no keep-alive; those of the handshake and of the end are named in
//! `handshake` and `closing`.

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

/// The most times that an agent of ns-2 sends its closing FIN.
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
    /// A reset is to be sent.
    reset_due: bool,
    /// True if the peer's FIN came before ours was sent: then the peer waits for late segments, not this end.
    peer_closed_first: bool,
    wakeup: Time,
}

impl Connection {
    /// A closed end that will open the connection ([`Role::Sender`]), or one that listens. `config` must pass
    /// [`Config::check`]. Data flows both ways whatever the role.
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

    /// The application connects. No effect on an end that listens.
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

    /// The application will write no more. It may go on reading.
    pub fn close(&mut self, now: Time) {
        self.shared.now = now;
        self.sender.close();
        if self.state == State::Closed {
            self.finish(End::Closed);
        }
        self.settle();
    }

    /// The application gives the connection up: a reset is sent if there is anyone to tell.
    pub fn abort(&mut self, now: Time) {
        self.shared.now = now;
        if self.end().is_none() {
            self.reset_due = self.state.has_peer();
            self.finish(End::Aborted);
        }
        self.settle();
    }

    /// The application has taken `bytes` more of what was delivered. Under [`Profile::Ns2`] it takes everything at once.
    pub fn take(&mut self, now: Time, bytes: u64) {
        self.shared.now = now;
        self.receiver.take(bytes);
        self.settle();
    }

    /// Takes the agreement of the two SYNs' options; to be called before the segment that completes the exchange of SYNs.
    pub fn on_agreed(&mut self, now: Time, agreed: &Agreed) {
        self.shared.now = now;
        self.sender.agree(&mut self.shared, agreed.segment, agreed.timestamps, agreed.sack);
        self.receiver.agree(agreed.sack);
    }

    /// The path to the peer is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.sender.on_path(path);
    }

    /// A segment of this connection arrived. `blocks` are those beyond a gap that its header reported, as offsets in the
    /// stream. Whether its payload is part of the peer's stream: what is not must not touch what has arrived.
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
                // The peer has not seen our last word.
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
            // It acknowledges what was never sent; whoever has no connection for it answers (RFC 9293, section 3.10.7.4).
        } else if flags.has(Flags::RST) {
            // Only one at the exact next offset is believed (RFC 5961, section 3.2).
            if segment.seq == 0 {
                self.finish(End::Reset);
            }
        } else if flags.has(Flags::SYN) {
            // Our SYN-ACK was lost or is late.
            if !flags.has(Flags::ACK) {
                self.on_listen(segment);
            }
        } else if flags.has(Flags::ACK) {
            // An agent of ns-2 does not time its SYN-ACK.
            self.establish(segment, (!self.is_ns2()).then_some(self.handshake.sent_at));
            return self.on_established(segment, blocks, arrival);
        }
        false
    }

    /// The handshake is over with this segment; if `sent_at` is given, the exchange is timed from then.
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
                // What was there already: counted, and acknowledged at once.
                self.receiver.on_data(&mut self.shared, segment, arrival.ce);
            } else {
                self.challenge();
            }
            return false;
        }
        if !flags.has(Flags::ACK) {
            return false;
        }
        // Nor is one believed that is older than a window can make it (RFC 5961, section 5.2). An agent of ns-2 looks at the
        // upper end alone.
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
            // To an agent of ns-2 whose own FIN is out the peer's does not count here.
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
            // An agent of ns-2 that was only written to has nothing more to say.
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

    /// True if a late segment is still answered. A peer repeats what is unacknowledged from its first byte on, a segment without
    /// FIN maybe (RFC 9293, section 3.10.7.4). An agent of ns-2 stays, and answers a FIN alone.
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

    /// A suspect segment arrived. The sending agent of ns-2 takes no notice.
    fn challenge(&mut self) {
        if !self.is_ns2() || self.role == Role::Receiver {
            self.answer();
        }
    }

    /// Answers with where this end stands.
    fn answer(&mut self) {
        if self.is_ns2() || self.challenges.answers(self.shared.now) {
            self.receiver.acknowledge();
        }
    }

    /// A timer is due.
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

    /// After everything else: sets the timers of what waits.
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

    /// A peer that owes an answer is given up some day.
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
