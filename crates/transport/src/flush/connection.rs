//! One end of a connection: opens with one round trip, carries objects in one direction, and ends
//! when the last object has arrived.

use super::Config;
use super::receiver::Receiver;
use super::segment::Segment;
use super::sender::Sender;
use crate::flags::Flags;
use crate::output::{Machine, Output};
use crate::path::{ENDLESS, PathInfo, Role};
use crate::stats::Stats;
use crate::train::timeout::Timeout;
use meshpace_core::Time;

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not opened yet, or waiting for a SYN.
    Closed,
    /// A SYN was sent.
    Opening,
    /// Data may flow.
    Open,
    /// Closed before it was opened.
    Unused,
}

/// One end of a connection: the source for [`Role::Sender`], the sink for [`Role::Receiver`].
#[derive(Clone, Debug)]
pub struct Connection {
    role: Role,
    state: State,
    sender: Sender,
    receiver: Receiver,
    stats: Stats,
    /// True if a SYN, or the answer to one, has to be sent.
    syn_due: bool,
    /// Time at which the SYN is retransmitted.
    syn_at: Time,
    syn_timeout: Timeout,
}

impl Connection {
    /// Creates a closed source, or a sink that listens. `config` must pass [`Config::check`].
    pub fn new(config: &Config, role: Role) -> Connection {
        Connection {
            role,
            state: State::Closed,
            sender: Sender::new(config),
            receiver: Receiver::new(config.segment),
            stats: Stats::default(),
            syn_due: false,
            syn_at: Time::NEVER,
            syn_timeout: Timeout::new(&config.timeout),
        }
    }

    fn is_source(&self) -> bool {
        self.role == Role::Sender
    }

    /// The application opens the connection. No effect on a sink.
    pub fn open(&mut self) {
        if self.is_source() && self.state == State::Closed {
            self.state = State::Opening;
            self.syn_due = true;
        }
    }

    /// Takes `bytes` that the application writes. A sink sends nothing.
    pub fn write(&mut self, bytes: u64) {
        if self.is_source() {
            self.sender.write(bytes);
        }
    }

    /// Takes data without end: the application always has more to send.
    pub fn write_endless(&mut self) {
        self.write(ENDLESS);
    }

    /// The application will write no more. Data written before are still sent. A sink closes with
    /// its source.
    pub fn close(&mut self) {
        if self.is_source() {
            if self.state == State::Closed {
                self.state = State::Unused;
            }
            self.sender.close();
        }
    }

    /// The path to the peer is known now, or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.sender.on_path(&path);
    }

    /// Processes a segment of the peer.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        match (self.role, self.state) {
            (Role::Sender, State::Opening) if segment.flags.has(Flags::SYN.with(Flags::ACK)) => {
                self.state = State::Open;
                self.syn_due = false;
                self.syn_at = Time::NEVER;
            }
            (Role::Sender, State::Open) if segment.flags == Flags::ACK => {
                self.sender.on_answer(now, segment, &mut self.stats);
            }
            (Role::Receiver, State::Closed | State::Open) if segment.flags.has(Flags::SYN) => {
                self.state = State::Open;
                self.syn_due = true;
            }
            (Role::Receiver, State::Open) => self.receiver.on_segment(segment, &mut self.stats),
            _ => {}
        }
    }

    /// Payload bytes delivered in order to the application; 0 at a source.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// True if everything has arrived, or the connection was closed before it was opened.
    pub fn is_done(&self) -> bool {
        match self.role {
            Role::Sender => self.state == State::Unused || self.sender.is_finished(),
            Role::Receiver => self.receiver.is_closed(),
        }
    }

    /// Returns the sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Returns the counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if core::mem::take(&mut self.syn_due) {
            let flags = if self.is_source() { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
            if self.is_source() {
                self.syn_at = now.saturating_add(self.syn_timeout.rto());
            }
            return Some(Segment { flags, ..Segment::default() });
        }
        if self.state != State::Open {
            return None;
        }
        if self.is_source() {
            return self.sender.poll(now, &mut self.stats);
        }
        let answer = self.receiver.answer();
        self.stats.acks_sent += u64::from(answer.is_some());
        answer
    }

    fn wakeup(&self) -> Time {
        match self.state {
            State::Opening => self.syn_at,
            State::Open if self.is_source() => self.sender.next_wakeup(),
            _ => Time::NEVER,
        }
    }
}

impl Machine for Connection {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        if self.state == State::Opening && self.syn_at <= now {
            self.syn_at = Time::NEVER;
            self.stats.timeouts += 1;
            self.syn_timeout.on_expiry();
            self.syn_due = true;
        }
        if self.state == State::Open && self.is_source() {
            self.sender.on_timer(now, &mut self.stats);
        }
        let segment = self.next_segment(now);
        Output::new(segment, self.wakeup())
    }
}
