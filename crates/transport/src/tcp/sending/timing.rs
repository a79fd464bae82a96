//! RTT samples for the retransmission timer, from one timed segment or from the time stamps that
//! ACKs echo.

use crate::tcp::Segment;
use crate::tcp::rtt::{self, Rtt, Sampling};
use meshpace_core::{Duration, Time};

/// The estimator of the retransmission timer and the segment that is timed.
#[derive(Clone, Debug)]
pub struct Timing {
    pub(super) rtt: Rtt,
    /// The timed segment: its number and the time at which it was sent. `None` if no segment is
    /// timed.
    timed: Option<(u64, Time)>,
    /// True if segments carry time stamps.
    timestamps: bool,
}

impl Timing {
    /// Creates an estimator without a sample, for a connection with time stamps.
    pub fn new(config: &rtt::Config) -> Timing {
        Timing { rtt: Rtt::new(config), timed: None, timestamps: true }
    }

    /// True if segments carry time stamps.
    pub fn has_timestamps(&self) -> bool {
        self.timestamps
    }

    /// Takes the agreement on time stamps from the handshake.
    pub fn agree(&mut self, timestamps: bool) {
        self.timestamps = timestamps;
    }

    /// Segments that give samples. Without time stamps one segment at a time is timed.
    fn sampling(&self) -> Sampling {
        if self.timestamps { self.rtt.sampling() } else { Sampling::OneTimed }
    }

    /// An ACK of our SYN or SYN-ACK arrived, which was sent only once, at `sent_at`.
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

    /// Stops timing the segment, because it is lost or sent again.
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

    /// A partial ACK acknowledges all segments before number `acked`. It ends the back-off but
    /// gives no sample, because recovery distorts the RTT.
    pub fn on_partial_ack(&mut self, acked: u64) {
        if let Some((number, _)) = self.timed
            && acked > number
        {
            self.timed = None;
            self.rtt.end_backoff();
        }
    }
}

/// Age of the time stamp that `segment` echoes, modulo 2^32 us.
pub fn echo_age(now: Time, segment: &Segment) -> Duration {
    Duration::from_micros(u64::from(crate::tcp::segment::stamp(now).wrapping_sub(segment.ts_ecr)))
}
