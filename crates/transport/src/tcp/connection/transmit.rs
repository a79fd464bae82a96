//! Selection of the next segment that a connection sends.

use super::{Connection, State};
use crate::closing::End;
use crate::flags::Flags;
use crate::tcp::Segment;
use crate::tcp::handshake::Due;
use crate::tcp::sending;
use crate::tcp::timers::Timer;

impl Connection {
    /// The next segment that may leave; `None` if no segment may leave now.
    pub(super) fn next_segment(&mut self) -> Option<Segment> {
        if self.reset_due {
            self.reset_due = false;
            let (seq, ack) = (self.sender.flight().sent_end(), self.receiver.expected());
            return Some(Segment { seq, ack, flags: Flags::RST.with(Flags::ACK), ..Segment::default() });
        }
        match self.state {
            State::SynSent | State::SynReceived => self.next_syn(),
            State::Established | State::Ended(End::Closed) => self.next_of_stream(),
            State::Closed | State::Listen | State::Ended(_) => None,
        }
    }

    /// The SYN or SYN-ACK, if one is due.
    fn next_syn(&mut self) -> Option<Segment> {
        if self.handshake.due != Due::Syn {
            return None;
        }
        let now = self.shared.now;
        self.handshake.on_sent(now);
        if self.state == State::SynSent {
            let flags = Flags::SYN.with(self.sender.on_syn(&mut self.shared));
            self.shared.timers.set(Timer::Handshake, now.saturating_add(self.sender.rto()));
            return Some(Segment { window: self.receiver.window(), ..sending::bare(now, 0, flags) });
        }
        if !self.is_ns2() {
            self.shared.timers.set(Timer::Handshake, now.saturating_add(self.handshake.syn_ack_timeout()));
        }
        Some(self.receiver.syn_ack(now))
    }

    fn next_of_stream(&mut self) -> Option<Segment> {
        let data = self.sender.next_segment(&mut self.shared);
        let acknowledges = self.handshake.due == Due::Ack && !self.sender.begins();
        let (now, sent_end) = (self.shared.now, self.sender.flight().sent_end());
        let bare = || acknowledges.then(|| sending::bare(now, sent_end, Flags::ACK));
        if let Some(mut segment) = data.or_else(bare) {
            self.handshake.due = Due::Nothing;
            self.receiver.piggyback(&mut self.shared, &mut segment);
            return Some(segment);
        }
        let mut ack = self.receiver.next_ack(&mut self.shared)?;
        ack.seq = sent_end;
        Some(ack)
    }
}
