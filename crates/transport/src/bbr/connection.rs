//! One end of an open connection: both directions, their ends, and resets.

use super::Config;
use super::control::Control;
use super::receiver::Receiver;
use super::segment::Segment;
use super::sender::Sender;
use crate::closing::End;
use crate::flags::Flags;
use crate::output::{Machine, Output};
use crate::stats::Stats;
use meshpace_core::Time;

/// One end of a connection. Its driver guarantees that segments come from the peer, so that every
/// reset is accepted.
#[derive(Clone, Debug)]
pub struct Connection {
    sender: Sender,
    receiver: Receiver,
    end: Option<End>,
    reset_due: bool,
    stats: Stats,
}

impl Connection {
    /// Creates an end of an open connection without any data.
    pub fn new(config: &Config) -> Connection {
        Connection {
            sender: Sender::new(config),
            receiver: Receiver::new(config.segment, config.receive_buffer, config.first_credit),
            end: None,
            reset_due: false,
            stats: Stats::default(),
        }
    }

    /// Takes `bytes` that the application writes.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application will write no more. Data written before are still sent.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// The application aborts the connection. The peer gets one reset.
    pub fn abort(&mut self) {
        self.reset_due |= self.end.is_none();
        self.end = self.end.or(Some(End::Aborted));
    }

    /// The application has taken `bytes` more of the delivered data. The receive window may grow
    /// because of that if `may` allows it.
    pub fn take(&mut self, bytes: u64, may: impl FnOnce() -> bool) {
        self.receiver.take(bytes, may);
    }

    /// Receive window: bytes beyond what the application has taken that the peer may send.
    pub fn receive_window(&self) -> u64 {
        self.receiver.window()
    }

    /// Probes whether the peer is alive.
    pub fn probe(&mut self) {
        self.sender.ask();
    }

    /// Skips the number of the next segment, to detect a peer that reports segments which it has
    /// not received (RFC 9000, section 21.4). The driver calls this at times that the peer cannot
    /// predict.
    pub fn skip_number(&mut self) {
        self.sender.skip_number();
    }

    /// The peer is reached over another path from now on: the model of the path starts anew.
    pub fn restart_control(&mut self) {
        self.sender.restart_control();
    }

    /// The peer has another address from now on: a backed-off timer expires at once.
    pub fn on_peer_moved(&mut self, now: Time) {
        self.sender.on_peer_moved(now);
    }

    /// Processes a segment of the peer. Returns whether its payload is part of the peer's stream.
    /// Other payload must not overwrite data that have arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> bool {
        if !matches!(self.end, None | Some(End::Closed)) {
            return false;
        }
        if segment.flags.has(Flags::RST) {
            self.end = self.end.or(Some(End::Reset));
            return false;
        }
        if segment.flags.has(Flags::SYN) {
            self.receiver.ask();
            return false;
        }
        if segment.flags.has(Flags::ACK) {
            if !self.sender.on_report(now, &segment.report, &mut self.stats) && self.end.is_none() {
                self.reset_due = true;
                self.end = Some(End::Deceived);
            }
            self.end_if_closed();
            return false;
        }
        let is_kept = segment.carries() && self.receiver.on_data(now, segment, &mut self.stats);
        self.end_if_closed();
        is_kept
    }

    fn end_if_closed(&mut self) {
        if self.end.is_none() && self.receiver.is_closed() && self.sender.is_finished() {
            self.end = Some(End::Closed);
        }
    }

    /// Payload bytes of the peer received without a gap.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Number of ranges of the peer's stream that have arrived beyond a gap.
    pub fn ranges(&self) -> usize {
        self.receiver.ranges()
    }

    /// Number of payload bytes from the start of the stream that are never sent again.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// True if the peer has closed and everything that it sent is delivered.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    #[cfg(test)]
    pub(super) fn receiver_taken(&self) -> u64 {
        self.receiver.taken()
    }

    /// Returns the sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Returns the model of the path.
    pub fn control(&self) -> &Control {
        self.sender.control()
    }

    /// How the connection ended; `None` if it has not.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// True if the connection has ended.
    pub fn is_done(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Machine for Connection {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        if core::mem::take(&mut self.reset_due) {
            return Output::Transmit(Segment { flags: Flags::RST, ..Segment::default() });
        }
        if !matches!(self.end, None | Some(End::Closed)) {
            return Output::Idle;
        }
        if let Some(report) = self.receiver.report(now) {
            self.stats.acks_sent += 1;
            return Output::Transmit(report);
        }
        if self.end.is_some() {
            return Output::Idle;
        }
        self.sender.on_time(now, &mut self.stats);
        let segment = self.sender.next_segment(now, &mut self.stats);
        Output::new(segment, self.sender.next_wakeup().min(self.receiver.next_wakeup()))
    }
}
