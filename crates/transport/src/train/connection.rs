//! One end of a connection: opens, carries trains both ways, closes, resets.
//!
//! As TCP (RFC 9293, section 3.5): SYN, SYN-ACK, and an ACK that rides on the first data; each direction is closed by a FIN
//! after its last byte. A reset counts only at the very next offset (RFC 5961, section 3.2). SYN and SYN-ACK are repeated by a
//! doubling timer. ACKs are segments of their own, never data's: they have to leave when a train ends and carry feedback.

use super::Config;
use super::receiver::Receiver;
use super::segment::{Segment, stamp};
use super::sender::Sender;
use super::timeout::Timeout;
use crate::flags::Flags;
use crate::output::{Machine, Output};
use crate::stats::Stats;
use crate::{Arrival, PathInfo, Role};
use meshpace_core::Time;

/// How often a SYN-ACK is sent before the end listens again: for two minutes with the default timer.
const SYN_ATTEMPTS: u32 = 60;
/// How often a FIN that nobody acknowledges is sent after the peer's own.
const FIN_ATTEMPTS: u32 = 6;

/// Where the connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not opened yet.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// A SYN is out.
    SynSent,
    /// A SYN-ACK is out.
    SynReceived,
    /// Data may flow.
    Established,
    /// Both directions are closed.
    Done,
    /// Aborted by either end.
    Reset,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    state: State,
    role: Role,
    sender: Sender,
    receiver: Receiver,
    stats: Stats,
    /// A SYN or SYN-ACK is to be sent.
    syn_due: bool,
    syn_times: u32,
    /// When it is repeated.
    syn_at: Time,
    syn_timeout: Timeout,
    /// Timeouts of the closing FIN in a row, after the peer's own.
    fin_timeouts: u32,
    reset_due: bool,
}

impl Connection {
    /// A closed end that will open the connection, or one that listens. `config` must pass [`Config::check`].
    pub fn new(config: &Config, role: Role) -> Connection {
        Connection {
            state: match role {
                Role::Sender => State::Closed,
                Role::Receiver => State::Listen,
            },
            role,
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            stats: Stats::default(),
            syn_due: false,
            syn_times: 0,
            syn_at: Time::NEVER,
            syn_timeout: Timeout::new(&config.timeout),
            fin_timeouts: 0,
            reset_due: false,
        }
    }

    /// The application connects. No effect on an end that listens.
    pub fn open(&mut self) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.syn_due = true;
        }
    }

    /// The application hands over `bytes`, at either end.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application always has more.
    pub fn write_endless(&mut self) {
        self.sender.write_endless();
    }

    /// The application will write no more; what it wrote is still sent.
    pub fn close(&mut self) {
        if self.state == State::Closed {
            self.state = State::Done;
        }
        self.sender.close();
    }

    /// The application gives up: the peer is told once.
    pub fn abort(&mut self) {
        self.reset_due = matches!(self.state, State::SynReceived | State::Established);
        self.state = State::Reset;
    }

    /// A segment of the peer arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            let listens = matches!(self.state, State::Closed | State::Listen | State::Done);
            let refused = self.state == State::SynSent && flags.has(Flags::ACK) && segment.ack == 0;
            let in_order = self.state != State::SynSent && segment.seq == self.receiver.expected();
            if !listens && (refused || in_order) {
                self.state = State::Reset;
            }
        } else {
            match self.state {
                State::Closed | State::Reset => {}
                State::Listen => self.on_listen(segment),
                State::SynSent => self.on_syn_sent(segment),
                State::SynReceived if flags.has(Flags::SYN) => self.syn_due |= !flags.has(Flags::ACK),
                State::SynReceived => {
                    if flags.has(Flags::ACK) && segment.ack <= self.sender.sent_end() {
                        self.establish(segment);
                        self.on_established(now, segment, arrival);
                    }
                }
                State::Established | State::Done => self.on_established(now, segment, arrival),
            }
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
            self.establish(segment);
            // It rides on data if there is any.
            if !self.sender.has_written() {
                self.receiver.acknowledge();
            }
        }
    }

    fn establish(&mut self, segment: &Segment) {
        self.state = State::Established;
        self.syn_due = false;
        self.syn_at = Time::NEVER;
        self.sender.establish(segment.window);
    }

    fn on_established(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        let flags = segment.flags;
        if flags.has(Flags::SYN) {
            // Our ACK of the SYN-ACK was lost, or the SYN is late: say where we are (RFC 5961, section 4.2).
            self.receiver.acknowledge();
            return;
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        if self.state == State::Established {
            let before = self.sender.acknowledged();
            self.sender.on_ack(now, segment, &mut self.stats);
            if self.sender.acknowledged() > before {
                self.fin_timeouts = 0;
            }
        }
        self.receiver.on_segment(now, segment, arrival.ce, &mut self.stats);
        if self.receiver.is_closed() && self.role == Role::Receiver && !self.sender.has_written() {
            // An end that listened and has written nothing closes with its peer.
            self.sender.close();
        }
        self.end_if_over();
    }

    fn end_if_over(&mut self) {
        if self.receiver.is_closed() && self.sender.is_finished() {
            self.state = State::Done;
        }
    }

    /// A timer may be due.
    fn on_timer(&mut self, now: Time) {
        if self.syn_at <= now {
            self.syn_at = Time::NEVER;
            if self.state == State::SynReceived && self.syn_times >= SYN_ATTEMPTS {
                self.state = State::Listen;
            } else {
                self.stats.timeouts += 1;
                self.syn_timeout.on_expiry();
                self.syn_due = true;
            }
        }
        if self.state == State::Established {
            let timeouts = self.stats.timeouts;
            self.sender.on_timer(now, &mut self.stats);
            if self.receiver.is_closed() && self.stats.timeouts > timeouts {
                self.fin_timeouts += 1;
                if self.fin_timeouts >= FIN_ATTEMPTS && self.sender.has_only_fin() {
                    // Everything is delivered both ways; only the last word is missing.
                    self.state = State::Done;
                }
            }
        }
        self.receiver.on_timer(now);
    }

    /// The path to the peer is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.sender.on_path(path);
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
        let due = matches!(self.state, State::Established | State::Done) && self.receiver.owes_ack();
        due.then(|| {
            self.stats.acks_sent += 1;
            let mut ack = self.receiver.answer(now);
            ack.seq = self.sender.sent_end();
            ack
        })
    }

    /// When a timer is due, or the next segment may leave.
    fn wakeup(&self) -> Time {
        match self.state {
            State::SynSent | State::SynReceived => self.syn_at,
            State::Established => self.sender.next_wakeup().min(self.receiver.next_wakeup()),
            State::Done => self.receiver.next_wakeup(),
            State::Closed | State::Listen | State::Reset => Time::NEVER,
        }
    }

    /// Payload bytes of the peer received without a gap.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Whether the connection has ended: both directions closed, or reset.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done | State::Reset)
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// What was counted.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }
}

impl Machine for Connection {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        self.on_timer(now);
        let segment = self.next_segment(now);
        if self.state == State::Established {
            self.sender.settle(now);
        }
        Output::new(segment, self.wakeup())
    }
}
