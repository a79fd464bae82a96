//! Acknowledgement rules: when the receiver sends an ACK.
//!
//! RFC 5681, section 4.2: whatever the rule, an ACK leaves at once for a segment out of order, for one that fills all or
//! part of a gap, for one that brings nothing new, and for a FIN. ns-2 fills gaps under the delay unless its
//! `RFC2581_immediate_ack_` is set, which it is by default. A rule decides only about the rest: new data in order.

mod delayed;
mod dynamic;

pub use delayed::Delayed;
pub use dynamic::Dynamic;

use crate::about::Named;
use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::{ParameterError, Parameters, Slots};
use meshpace_core::{Duration, Time};

/// When the receiver sends an ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Config {
    /// At once for every data segment (RFC 5681, section 4.2 allows it; ns-2 `TCPSink`).
    EverySegment,
    /// After two segments or a while (RFC 1122, section 4.2.3.2; ns-2 `TCPSink/DelAck`).
    Delayed(Delayed),
    /// After d segments or a while, d growing from 1 to 4 with the sequence number (Altman and Jimenez).
    Dynamic(Dynamic),
}

/// Delayed ACKs.
pub const DELACK: Named<Config> = Named {
    name: "delack",
    description: "one ACK for two segments or after 100 ms",
    source: "RFC 1122, section 4.2.3.2",
    config: || Config::Delayed(Delayed::default()),
};
/// ACKs delayed more and more.
pub const DYN_DELACK: Named<Config> = Named {
    name: "dyn-delack",
    description: "one ACK for 1 to 4 segments or after 100 ms",
    source: "Altman and Jimenez, PWC 2003",
    config: || Config::Dynamic(Dynamic::default()),
};

impl Parameters for Config {
    fn slots(&mut self) -> Slots<'_> {
        match self {
            Config::EverySegment => Slots::new(),
            Config::Delayed(config) => config.slots(),
            Config::Dynamic(config) => config.slots(),
        }
    }
}

impl Config {
    /// Every rule with its defaults, by the name that scenarios have for it.
    pub fn kinds() -> [(&'static str, Config); 3] {
        [
            ("every-segment", Config::EverySegment),
            ("delayed", Config::Delayed(Delayed::default())),
            ("dynamic", Config::Dynamic(Dynamic::default())),
        ]
    }

    /// Its name in a sentence.
    pub fn noun(&self) -> &'static str {
        match self {
            Config::EverySegment => "acknowledging every segment",
            Config::Delayed(_) => "delayed acknowledgements",
            Config::Dynamic(_) => "dynamic delayed acknowledgements",
        }
    }

    /// The rule in a few words, for people.
    pub fn describe(&self) -> String {
        match self {
            Config::EverySegment => String::from("every segment"),
            Config::Delayed(delayed) => format!("every {} or {} s", delayed.segments, delayed.timer.as_secs_f64()),
            Config::Dynamic(dynamic) => {
                let [l1, l2, l3] = dynamic.thresholds;
                format!("every 1..4 (from segment {l1}, {l2}, {l3}) or {} s", dynamic.timer.as_secs_f64())
            }
        }
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::EverySegment => Ok(()),
            Config::Delayed(config) => config.check(),
            Config::Dynamic(config) => config.check(),
        }
    }

    /// Segments one ACK waits for when the newest in order is number `n` of the stream, counted from 1, and the sender's
    /// window is limited to `limit` segments.
    pub fn segments_per_ack(&self, n: u64, limit: u32) -> u32 {
        match self {
            Config::EverySegment => 1,
            Config::Delayed(config) => config.segments_per_ack(limit),
            Config::Dynamic(config) => config.segments_per_ack(n),
        }
    }

    /// The longest wait of the first of them.
    fn timer(&self) -> Duration {
        match self {
            Config::EverySegment => Duration::ZERO,
            Config::Delayed(config) => config.timer,
            Config::Dynamic(config) => config.timer,
        }
    }
}

/// A receiver's rule and what it has not acknowledged yet.
#[derive(Clone, Debug)]
pub struct Policy {
    config: Config,
    /// The limit of the sender's window, segments.
    limit: u32,
    /// Segments in order since the last ACK.
    waiting: u32,
    /// Time at which they are acknowledged at the latest.
    deadline: Time,
}

impl Policy {
    /// Nothing waits. `limit` is the largest window of the sender in segments.
    pub fn new(config: &Config, limit: u32) -> Policy {
        Policy { config: config.clone(), limit, waiting: 0, deadline: Time::NEVER }
    }

    /// Segment number `n` of the stream, from 1, has arrived in order. Whether an ACK leaves now.
    pub fn on_in_order(&mut self, now: Time, n: u64) -> bool {
        self.waiting += 1;
        if self.waiting >= self.config.segments_per_ack(n, self.limit) {
            return true;
        }
        if self.deadline == Time::NEVER {
            self.deadline = now.saturating_add(self.config.timer());
        }
        false
    }

    /// An ACK leaves, for whichever reason: it covers all that waited.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.waiting = 0;
        self.deadline = Time::NEVER;
    }

    /// Time at which an ACK is due; [`Time::NEVER`] if nothing waits.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }
}
