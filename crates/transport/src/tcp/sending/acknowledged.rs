//! Handling of an ACK of the peer: the window grows, recovery continues, and RTT samples are taken.

use super::timing::echo_age;
use super::{Sender, State, Urgent};
use crate::flags::Flags;
use crate::pacing::{Feedback, HopSource, Sample, Sampling};
use crate::path::Arrival;
use crate::tcp::Segment;
use crate::tcp::recovery::Action;
use crate::tcp::timers::{Shared, Timer};
use crate::train::solo::Progress;

impl Sender {
    /// The SYN-ACK arrived.
    pub fn on_syn_ack(&mut self, shared: &mut Shared, segment: &Segment, arrival: Arrival) {
        self.marks.on_syn_ack(segment);
        self.pacer.resume();
        if self.sampling() == Sampling::EveryEcho {
            self.sample_echo(shared, segment, arrival);
        }
    }

    /// A segment arrived whose acknowledgement covers only data that was sent. `blocks` are the
    /// blocks beyond a gap that its header reported; blocks in the segment's extension are used
    /// too.
    pub fn on_ack(&mut self, shared: &mut Shared, segment: &Segment, blocks: &[(u64, u64)], arrival: Arrival) {
        let probed = self.is_host() && self.flight.blocked_by_peer();
        self.take_ack(shared, segment, blocks, arrival);
        if probed && !self.flight.blocked_by_peer() {
            // The back-off came from unanswered probes of a closed window and says nothing about
            // the path.
            self.timing.rtt.end_backoff();
        }
    }

    fn take_ack(&mut self, shared: &mut Shared, segment: &Segment, blocks: &[(u64, u64)], arrival: Arrival) {
        if !self.flight.has_segments() {
            // There is nothing to acknowledge, so only the window of the peer is new.
            self.flight.set_peer_window(segment.window);
            return;
        }
        let marked = self.marks.is_on() && segment.flags.has(Flags::ECE);
        self.pacer.on_ack(&Feedback { marked, slow_start: self.window.in_slow_start(), rate: self.path.rate });
        if self.sampling() == Sampling::EveryEcho {
            self.sample_echo(shared, segment, arrival);
        }
        if marked && self.marks.on_echo(segment.ack, self.recovery.is_recovering()) {
            self.recovery.on_mark(&mut self.window);
            self.marks.on_reduction(self.flight.sent_end());
        }
        for (start, end) in blocks.iter().copied().chain(segment.sack_blocks()) {
            self.recovery.on_report(&mut self.flight, start, end);
        }
        if segment.ack > self.flight.una() {
            self.flight.set_peer_window(segment.window);
            self.on_new_ack(shared, segment, arrival);
        } else if segment.ack == self.flight.una() {
            let same_window = self.flight.set_peer_window(segment.window);
            let is_bare = segment.payload == 0 && !segment.flags.has(Flags::FIN);
            if self.flight.outstanding() && same_window && is_bare {
                self.on_duplicate_ack(shared);
            }
        }
    }

    fn on_new_ack(&mut self, shared: &mut Shared, segment: &Segment, arrival: Arrival) {
        let now = shared.now;
        let acknowledged = self.flight.on_ack(segment.ack);
        shared.stats.acked_bytes += acknowledged.bytes;
        self.active_at = now;
        if acknowledged.segments == 0 {
            // Only a part of a segment is acknowledged. The window does not grow, but the peer is
            // alive.
            self.restart_timer(shared);
            return;
        }
        let fresh = acknowledged.newest.filter(|_| !acknowledged.covers_retransmission);
        let progress = Progress {
            now,
            sent_at: fresh.map(|cut| cut.sent_at),
            segments: acknowledged.segments,
            stamp: self.timing.has_timestamps().then_some(segment.ts_val),
            outstanding: self.flight.outstanding(),
        };
        self.pacer.on_progress(&progress, &mut shared.stats);
        let timed = match self.sampling() {
            Sampling::NewDataKarn => acknowledged.newest.filter(|_| !acknowledged.covers_retransmission),
            Sampling::OldestNew => acknowledged.oldest.filter(|_| !acknowledged.covers_retransmission),
            Sampling::NewData => acknowledged.newest.filter(|segment| segment.transmissions == 1),
            Sampling::EveryEcho => None,
        };
        if let Some(cut) = timed {
            self.sample(shared, now.since(cut.sent_at).as_secs_f64(), segment, arrival);
        }
        let acked = self.flight.first();
        self.window.on_clock(now, self.timing.rtt.smoothed().as_secs_f64());
        let sample = fresh.map(|cut| now.since(cut.sent_at).as_secs_f64());
        self.window.on_sample(sample, self.flight.highest().saturating_sub(acked));
        match self.recovery.on_new_ack(acknowledged.segments, acked, &mut self.window) {
            Action::Partial { restart_timer } => {
                self.timing.on_partial_ack(acked);
                if restart_timer {
                    self.restart_timer(shared);
                }
                if !self.pacer.on_partial_ack(now, acked, &mut shared.stats) {
                    self.urgent = Urgent::Retransmission;
                }
            }
            _ => {
                self.urgent = Urgent::Nothing;
                self.timing.on_ack(now, segment, acked);
                if self.flight.outstanding() {
                    self.restart_timer(shared);
                } else {
                    shared.timers.stop(Timer::Retransmission);
                }
            }
        }
        self.pacer.on_window(self.window.interval());
        if self.flight.is_finished() {
            self.state = State::Finished;
            shared.timers.stop(Timer::Retransmission);
        }
    }

    fn on_duplicate_ack(&mut self, shared: &mut Shared) {
        shared.stats.duplicate_acks += 1;
        if self.recovery.on_duplicate_ack(&self.flight, &mut self.window) {
            shared.stats.fast_retransmits += 1;
            self.restart_timer(shared);
            self.timing.forget();
            self.urgent = Urgent::Retransmission;
            self.marks.on_reduction(self.flight.sent_end());
            self.pacer.on_fast_retransmit();
        }
    }

    /// The ACKs that give the pacing a sample. If the connection has no time stamps,
    /// [`Sampling::NewData`] replaces [`Sampling::EveryEcho`].
    fn sampling(&self) -> Sampling {
        match self.config.pacing.sampling() {
            Sampling::EveryEcho if !self.timing.has_timestamps() => Sampling::NewData,
            sampling => sampling,
        }
    }

    fn sample_echo(&mut self, shared: &mut Shared, segment: &Segment, arrival: Arrival) {
        self.sample(shared, echo_age(shared.now, segment).as_secs_f64(), segment, arrival);
    }

    fn sample(&mut self, shared: &mut Shared, rtt: f64, segment: &Segment, arrival: Arrival) {
        let travelled = self.config.pacing.hop_source() == HopSource::AckTravelled && arrival.hops > 0;
        let sample = Sample {
            rtt,
            one_way: segment.one_way_delay(),
            hops: if travelled { arrival.hops } else { self.path.hops },
            rate: self.path.rate,
            path_power_dbm: self.path.received_power_dbm,
        };
        self.pacer.on_sample(&sample, &mut shared.stats);
    }
}
