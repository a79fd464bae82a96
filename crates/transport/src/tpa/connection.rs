//! One end of a connection: opens, carries data in both directions, closes, and resets.
//!
//! TPA, section 3.1, gives only the flags; all other rules are choices of this project. The
//! handshake is SYN, SYN+ACK, ACK as in TCP (RFC 9293, section 3.5), and each of them names its
//! sender's first block. A direction is closed by a FIN, in a block of its own after the last data
//! block (`sender/fin.rs`). SYN and SYN+ACK are retransmitted with a doubling RTO; the FIN uses the timers of data.
//! The handshake gives no RTT sample, since it has no TxSeqNumber. A reset is accepted if it names
//! a block that could come next, or the block that it answers.

use super::Config;
use super::receiver::{Placement, Receiver};
use super::segment::Segment;
use super::sender::Sender;
use crate::closing::{End, State};
use crate::flags::Flags;
use crate::output::{Machine, Output};
use crate::path::{Arrival, PathInfo, Role};
use crate::stats::Stats;
use meshpace_core::{Duration, Time};

/// Number of times that a SYN+ACK is sent without another SYN arriving. Also the least number of
/// times that a FIN is sent, once the peer has closed, before the connection ends without an ACK of
/// it. A FIN is retransmitted for at least the longest RTO as well: with an RTO near the RTT, six
/// attempts take little time.
const ATTEMPTS: u32 = 6;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    state: State,
    role: Role,
    sender: Sender,
    receiver: Receiver,
    stats: Stats,
    first_block: u16,
    close_with_peer: bool,
    /// A SYN or SYN+ACK has to be sent.
    syn_due: bool,
    syn_times: u32,
    /// Time at which the SYN or SYN+ACK is retransmitted.
    syn_at: Time,
    syn_timeout: Duration,
    max_timeout: Duration,
    reset_due: bool,
    /// A probe of the peer has to be sent.
    probe_due: bool,
    wakeup: Time,
}

impl Connection {
    /// Creates the end that will open the connection, or the one that listens, by `role`. `config`
    /// must pass [`Config::check`].
    pub fn new(config: &Config, role: Role) -> Connection {
        Connection {
            state: State::of(role),
            role,
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            stats: Stats::default(),
            first_block: config.first_block,
            close_with_peer: config.close_with_peer,
            syn_due: false,
            syn_times: 0,
            syn_at: Time::NEVER,
            syn_timeout: config.rto.initial,
            max_timeout: config.rto.max,
            reset_due: false,
            probe_due: false,
            wakeup: Time::NEVER,
        }
    }

    /// The application opens the connection. No effect on an end that listens.
    pub fn open(&mut self, now: Time) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.syn_due = true;
            self.refresh(now);
        }
    }

    /// Takes `bytes` that the application writes, at either end.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.sender.write(now, bytes);
        self.refresh(now);
    }

    /// Takes data without end: the application always has more to send.
    pub fn write_endless(&mut self, now: Time) {
        self.sender.write_endless(now);
        self.refresh(now);
    }

    /// Releases all data written so far: they are sent without waiting for their block to fill.
    pub fn push(&mut self, now: Time) {
        self.sender.push();
        self.refresh(now);
    }

    /// Sets whether a block that is not full waits for more data: [`Config::waits_to_fill`].
    pub fn set_waits_to_fill(&mut self, now: Time, waits: bool) {
        self.sender.set_waits_to_fill(waits);
        self.refresh(now);
    }

    /// The application will write no more. Data written before are still sent.
    pub fn close(&mut self, now: Time) {
        if self.state == State::Closed {
            self.state = State::Ended(End::Closed);
        }
        self.sender.close();
        self.refresh(now);
    }

    /// The application aborts the connection. The peer gets one reset.
    pub fn abort(&mut self, now: Time) {
        self.reset_due = self.state.has_peer();
        self.state = State::Ended(End::Aborted);
        self.refresh(now);
    }

    /// Probes whether the peer is alive: a SYN of an open connection makes it answer with an ACK at
    /// once. No effect while the connection is not open.
    pub fn probe(&mut self, now: Time) {
        self.probe_due = self.state == State::Established;
        self.refresh(now);
    }

    /// Sets the receive window: the application can take `segments` more. A window above 0 promises
    /// room for the rest of a block. While there is less room, the window has to be 0.
    pub fn set_receive_window(&mut self, now: Time, segments: u8) {
        self.receiver.set_window(segments);
        self.refresh(now);
    }

    /// Makes both ends delay the ACK of the end of a block by up to `delay`, so that the ACK of a
    /// request can be sent with the response. This is for an open connection whose peer does the
    /// same. If the peer does not, the retransmission of a lost segment is delayed by that time.
    pub fn hold_acks(&mut self, delay: Duration) {
        self.receiver.hold_acks(delay);
        self.sender.expect_held_acks(delay);
    }

    /// Processes a segment of the peer. Returns where its payload belongs, if it contains new data.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, arrival: Arrival) -> Option<Placement> {
        self.sender.on_frame(arrival.received_power_dbm);
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            if self.believes_reset(segment) {
                let is_refusal = self.state == State::SynSent;
                self.state = State::Ended(if is_refusal { End::Refused } else { End::Reset });
                self.refresh(now);
            }
            return None;
        }
        let placement = match self.state {
            State::Established | State::Ended(End::Closed) => self.on_established(now, segment, arrival),
            State::Closed | State::Ended(_) => return None,
            State::Listen => {
                if flags.has(Flags::SYN) && !flags.has(Flags::ACK) {
                    self.on_syn(segment);
                }
                None
            }
            State::SynSent => {
                if flags.has(Flags::SYN.with(Flags::ACK)) && segment.ack_block == self.first_block {
                    self.receiver.start(segment.block);
                    self.receiver.acks().at_once();
                    self.establish(segment.window);
                }
                None
            }
            State::SynReceived => self.on_syn_received(now, segment, arrival),
        };
        self.refresh(now);
        placement
    }

    /// A SYN arrived at a listening end: answers with a SYN+ACK.
    fn on_syn(&mut self, segment: &Segment) {
        self.state = State::SynReceived;
        self.receiver.start(segment.block);
        self.sender.establish(segment.window);
        self.syn_due = true;
        self.syn_times = 0;
    }

    fn on_syn_received(&mut self, now: Time, segment: &Segment, arrival: Arrival) -> Option<Placement> {
        let flags = segment.flags;
        if flags.has(Flags::SYN) {
            if flags.has(Flags::ACK) {
                return None;
            }
            if self.receiver.expects(segment.block) {
                // The SYN+ACK was lost or is late.
                self.syn_due = true;
            } else if self.syn_at == Time::NEVER && !self.syn_due {
                // The host that sent the first SYN has not answered the last SYN+ACK and is gone.
                // This SYN comes from another one.
                self.on_syn(segment);
            }
            return None;
        }
        let acknowledges = flags.has(Flags::ACK) && segment.ack_block == self.first_block;
        // Only a peer that has received the SYN+ACK sends data.
        let follows = segment.place != 0 && self.receiver.expects(segment.block);
        if !acknowledges && !follows {
            return None;
        }
        self.establish(segment.window);
        self.on_established(now, segment, arrival)
    }

    /// The peer has shown, by other means than an ACK, that it has received the SYN+ACK. `window`
    /// is its receive window. No effect unless this end still waits for that confirmation.
    pub fn on_confirmed(&mut self, now: Time, window: u8) {
        if self.state == State::SynReceived {
            self.establish(window);
            self.refresh(now);
        }
    }

    fn establish(&mut self, window: u8) {
        self.state = State::Established;
        self.syn_due = false;
        self.syn_at = Time::NEVER;
        self.sender.establish(window);
    }

    fn on_established(&mut self, now: Time, segment: &Segment, arrival: Arrival) -> Option<Placement> {
        let flags = segment.flags;
        if flags.has(Flags::SYN) {
            // The ACK of the SYN+ACK was lost, or the SYN is late: answer with an ACK.
            if self.state == State::Established {
                self.receiver.acks().at_once();
            }
            return None;
        }
        let is_believed = !flags.has(Flags::ACK) || self.sender.on_ack(now, segment, arrival, &mut self.stats);
        if !is_believed && self.state == State::Established {
            self.reset_due = true;
            self.state = State::Ended(End::Deceived);
            return None;
        }
        let placement = self.receiver.on_segment(now, segment, &mut self.stats);
        if self.receiver.has_fin() {
            if self.close_with_peer && self.role == Role::Receiver && !self.sender.has_written() {
                self.sender.close();
            }
            if self.sender.is_finished() {
                self.state = State::Ended(End::Closed);
            }
        }
        placement
    }

    fn believes_reset(&self, segment: &Segment) -> bool {
        let answers = segment.flags.has(Flags::ACK) && segment.ack_block == self.sender.block_number();
        match self.state {
            State::Closed | State::Listen | State::Ended(_) => false,
            State::SynSent => answers,
            State::SynReceived | State::Established => answers || self.receiver.expects(segment.block),
        }
    }

    /// Processes the timers that are due.
    fn on_timer(&mut self, now: Time) {
        if self.syn_at <= now {
            self.syn_at = Time::NEVER;
            // After its last SYN+ACK this end keeps waiting. The peer may have been open since the
            // first SYN+ACK, and no other message would tell it that this end is not open.
            if self.state != State::SynReceived || self.syn_times < ATTEMPTS {
                self.stats.timeouts += 1;
                self.syn_due = true;
            }
        }
        if self.state == State::Established {
            self.sender.on_timer(now, &mut self.stats);
            let tried =
                self.sender.fin_times() >= ATTEMPTS && now >= self.sender.fin_since().saturating_add(self.max_timeout);
            if self.receiver.has_fin() && tried && self.sender.outstanding() == 0 {
                // Everything is delivered in both directions; only the ACK of the FIN is missing.
                self.state = State::Ended(End::Closed);
            }
        }
        self.receiver.acks().on_timer(now);
        self.refresh(now);
    }

    /// The network reports that the route to the peer broke.
    pub fn on_route_failure(&mut self, now: Time) {
        self.sender.on_route_failure(now);
        self.refresh(now);
    }

    /// True if the sender waits for a notice of recovery instead of probing.
    pub fn is_silent(&self) -> bool {
        self.sender.waits_for_notice()
    }

    /// The network reports that the route to the peer is back.
    pub fn on_route_recovered(&mut self, now: Time) {
        self.sender.on_route_recovered();
        self.refresh(now);
    }

    /// Makes the next block skip its first `numbers` transmission numbers, unless a number was
    /// already set for it. A peer that acknowledges data which it has not received names a skipped
    /// number sooner or later, and the connection then ends (RFC 9000, section 21.4). The driver
    /// chooses numbers that the peer cannot predict.
    pub fn skip_next(&mut self, numbers: impl FnOnce() -> u8) {
        self.sender.skip_next(numbers);
    }

    /// The peer is reached over another path from now on. Congestion control, pacing and the RTT
    /// estimate start anew with the parameters of `config`.
    pub fn restart_control(&mut self, now: Time, config: &Config) {
        self.sender.restart_control(config);
        self.refresh(now);
    }

    /// The peer has another address from now on. Segments that wait for a backed-off timer are sent
    /// again at once.
    pub fn on_peer_moved(&mut self, now: Time) {
        self.sender.on_peer_moved();
        self.refresh(now);
    }

    /// The path to the peer is known now, or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.sender.on_path(path);
    }

    /// Returns the next segment that may be sent now.
    fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let segment = self.next_segment(now);
        self.refresh(now);
        segment
    }

    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        let window = self.receiver.window();
        if self.reset_due {
            self.reset_due = false;
            return Some(Segment { block: self.sender.block_number(), flags: Flags::RST, ..Segment::default() });
        }
        if self.syn_due {
            self.syn_due = false;
            let timeout = Duration(self.syn_timeout.0.saturating_mul(1 << self.syn_times.min(32)));
            self.syn_times = self.syn_times.saturating_add(1);
            self.syn_at = now.saturating_add(timeout.min(self.max_timeout));
            let mut syn = Segment { block: self.first_block, window, flags: Flags::SYN, ..Segment::default() };
            if self.state == State::SynReceived {
                self.receiver.acknowledge(&mut syn);
            }
            return Some(syn);
        }
        if core::mem::take(&mut self.probe_due) && self.state == State::Established {
            return Some(Segment { block: self.first_block, window, flags: Flags::SYN, ..Segment::default() });
        }
        let data = if self.state == State::Established { self.sender.poll(now, &mut self.stats) } else { None };
        if let Some(mut segment) = data {
            segment.window = window;
            if self.receiver.acks().is_pending() {
                self.receiver.acknowledge(&mut segment);
            }
            return Some(segment);
        }
        let due = matches!(self.state, State::Established | State::Ended(End::Closed)) && self.receiver.owes_ack();
        due.then(|| {
            let mut ack = Segment { window, ..Segment::default() };
            self.receiver.answer(&mut ack);
            self.stats.acks_sent += 1;
            ack
        })
    }

    fn refresh(&mut self, now: Time) {
        self.wakeup = match self.state {
            State::SynSent | State::SynReceived => self.syn_at,
            State::Established => {
                self.sender.settle(now);
                self.sender.next_wakeup(now).min(self.receiver.next_wakeup())
            }
            State::Ended(End::Closed) => self.receiver.next_wakeup(),
            State::Closed | State::Listen | State::Ended(_) => Time::NEVER,
        };
    }

    /// Segments of the next block, as they will be sent if nothing unforeseen happens: see
    /// [`Sender::following`].
    pub fn following(&self) -> impl Iterator<Item = Segment> {
        let window = self.receiver.window();
        self.sender.following().map(move |segment| Segment { window, ..segment })
    }

    /// Payload bytes of the peer that were received without a gap.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Number of the [`delivered`](Connection::delivered) bytes that belong to a block which is not
    /// complete yet.
    pub fn begun(&self) -> u64 {
        self.receiver.begun()
    }

    /// Number of bytes from the start of this end's stream that the peer has certainly received.
    /// Their payload need not be kept any longer. The number grows block by block.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// True if the peer has closed and everything that it sent is delivered: its stream has ended.
    pub fn has_peer_closed(&self) -> bool {
        self.receiver.has_fin()
    }

    /// True if the connection has ended, for whatever reason.
    pub fn is_done(&self) -> bool {
        self.state.end().is_some()
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the sending half.
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
