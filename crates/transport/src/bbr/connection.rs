//! One end of a connection that is open: both directions, their ends, and resets.

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

/// One end. Whoever runs it knows that segments are the peer's: a reset is believed.
#[derive(Clone, Debug)]
pub struct Connection {
    sender: Sender,
    receiver: Receiver,
    end: Option<End>,
    reset_due: bool,
    stats: Stats,
}

impl Connection {
    /// Open, nothing written yet.
    pub fn new(config: &Config) -> Connection {
        Connection {
            sender: Sender::new(config),
            receiver: Receiver::new(config.segment, config.receive_buffer, config.first_credit),
            end: None,
            reset_due: false,
            stats: Stats::default(),
        }
    }

    /// The application hands over `bytes`.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application will write no more; what it wrote is still sent.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// The application gives up: the peer is told once.
    pub fn abort(&mut self) {
        self.reset_due |= self.end.is_none();
        self.end = self.end.or(Some(End::Aborted));
    }

    /// The application has taken `bytes` more of what was delivered. The receive window grows with that if it `may`.
    pub fn take(&mut self, bytes: u64, may: impl FnOnce() -> bool) {
        self.receiver.take(bytes, may);
    }

    /// Bytes beyond what the application has taken that the peer may send.
    pub fn receive_window(&self) -> u64 {
        self.receiver.window()
    }

    /// Asks the peer for a sign of life.
    pub fn probe(&mut self) {
        self.sender.ask();
    }

    /// Leaves out the number of the next segment, so that a peer which reports it is found out (RFC 9000, section 21.4). The
    /// driver calls it at times that the peer cannot predict.
    pub fn skip_number(&mut self) {
        self.sender.skip_number();
    }

    /// The peer is reached over another path from now on: the model of the path begins anew.
    pub fn restart_control(&mut self) {
        self.sender.restart_control();
    }

    /// The peer is reached at another address from now on: a timer that has been doubled is due at once.
    pub fn on_peer_moved(&mut self, now: Time) {
        self.sender.on_peer_moved(now);
    }

    /// A segment that the peer sent. Whether its payload is part of the peer's stream: what is not must not touch what has arrived.
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

    /// Payload bytes that are never sent again, all from the start on.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// True if the peer has closed and everything it sent is delivered.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    #[cfg(test)]
    pub(super) fn receiver_taken(&self) -> u64 {
        self.receiver.taken()
    }

    /// The sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The model of the path.
    pub fn control(&self) -> &Control {
        self.sender.control()
    }

    /// Way in which it has ended, if it has.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// True if it has ended.
    pub fn is_done(&self) -> bool {
        self.end.is_some()
    }

    /// The counters.
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
