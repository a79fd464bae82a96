//! Samples for the estimator of the retransmission timer: one timed segment, or the time echo of ACKs.

use crate::tcp::Segment;
use crate::tcp::rtt::{self, Rtt, Sampling};
use meshpace_core::{Duration, Time};

/// The estimator and the segment it times.
#[derive(Clone, Debug)]
pub struct Timing {
    pub(super) rtt: Rtt,
    /// The segment timed: its number and when it was sent.
    timed: Option<(u64, Time)>,
    /// True if segments carry time stamps.
    timestamps: bool,
}

impl Timing {
    /// An estimator without a sample, of a connection with time stamps.
    pub fn new(config: &rtt::Config) -> Timing {
        Timing { rtt: Rtt::new(config), timed: None, timestamps: true }
    }

    /// True if segments carry time stamps.
    pub fn has_timestamps(&self) -> bool {
        self.timestamps
    }

    /// The handshake has agreed on time stamps or not.
    pub fn agree(&mut self, timestamps: bool) {
        self.timestamps = timestamps;
    }

    /// Which segments are timed; without time stamps, one at a time.
    fn sampling(&self) -> Sampling {
        if self.timestamps { self.rtt.sampling() } else { Sampling::OneTimed }
    }

    /// The SYN or SYN-ACK that was sent once, at `sent_at`, is acknowledged.
    pub fn on_handshake(&mut self, sent_at: Time, now: Time) {
        self.rtt.end_backoff();
        let ticks = match self.sampling() {
            Sampling::OneTimed => self.rtt.ticks_between(sent_at, now),
            Sampling::Timestamps => self.rtt.ticks_in(now.since(sent_at)),
        };
        self.rtt.on_sample(ticks);
    }

    /// Segment `number` is sent for the first time.
    pub fn on_sent(&mut self, number: u64, now: Time) {
        if self.timed.is_none() {
            self.timed = Some((number, now));
        }
    }

    /// Gives up the timed segment, which is lost or sent again.
    pub fn forget(&mut self) {
        self.timed = None;
    }

    /// An ACK outside recovery acknowledges all segments before number `acked`.
    pub fn on_ack(&mut self, now: Time, segment: &Segment, acked: u64) {
        if self.sampling() == Sampling::Timestamps {
            self.rtt.on_sample(self.rtt.ticks_in(echo_age(now, segment)));
        }
        if let Some((number, sent_at)) = self.timed
            && acked > number
        {
            self.timed = None;
            self.rtt.end_backoff();
            if self.sampling() == Sampling::OneTimed {
                self.rtt.on_sample(self.rtt.ticks_between(sent_at, now));
            }
        }
    }

    /// A partial ACK does: the back-off ends, yet recovery distorts the RTT, so that it gives no sample.
    pub fn on_partial_ack(&mut self, acked: u64) {
        if let Some((number, _)) = self.timed
            && acked > number
        {
            self.timed = None;
            self.rtt.end_backoff();
        }
    }
}

/// Age of the stamp that `segment` echoes, if less than 2^32 us.
pub fn echo_age(now: Time, segment: &Segment) -> Duration {
    Duration::from_micros(u64::from(crate::tcp::segment::stamp(now).wrapping_sub(segment.ts_ecr)))
}
