//! Acknowledgement rules: they decide when the receiver sends an ACK.
//!
//! RFC 5681, section 4.2: whatever the rule, an ACK leaves at once for a segment out of order, for
//! a segment that fills all or part of a gap, for a segment that brings nothing new, and for a FIN.
//! ns-2 delays the ACK of a segment that fills a gap unless its `RFC2581_immediate_ack_` is set,
//! which is the default. A rule therefore decides only about new data in order.

mod adaptive;
mod delayed;
mod dynamic;
mod linux;
mod tack;

pub use adaptive::Adaptive;
pub use delayed::Delayed;
pub use dynamic::Dynamic;
pub use linux::Linux;
pub use tack::Tack;

use crate::about::Named;
use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::{ParameterError, Parameters, Slots};
use meshpace_core::{Duration, Time};

/// Rule that decides when the receiver sends an ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Config {
    /// At once for every data segment (RFC 5681, section 4.2 allows it; ns-2 `TCPSink`).
    EverySegment,
    /// After two segments or after a timer (RFC 1122, section 4.2.3.2; ns-2 `TCPSink/DelAck`).
    Delayed(Delayed),
    /// After d segments or after a timer, where d grows from 1 to 4 with the sequence number
    /// (Altman and Jimenez).
    Dynamic(Dynamic),
    /// After L segments, but at most beta times per shortest round trip (TACK).
    Tack(Tack),
    /// After up to four segments while they arrive in order, and after two segments once a
    /// disturbance occurred (TCP-DAA).
    Adaptive(Adaptive),
    /// After two segments or after a timer; at the start, after a long gap and for segments with
    /// PSH after each segment (Linux).
    Linux(Linux),
}

/// Delayed ACKs of RFC 1122.
pub const DELACK: Named<Config> = Named {
    name: "delack",
    description: "one ACK for two segments or after 100 ms",
    source: "RFC 1122, section 4.2.3.2",
    config: || Config::Delayed(Delayed::default()),
};
/// Dynamic delayed ACKs, which cover more segments as the transfer goes on.
pub const DYN_DELACK: Named<Config> = Named {
    name: "dyn-delack",
    description: "one ACK for 1 to 4 segments or after 100 ms",
    source: "Altman and Jimenez, PWC 2003",
    config: || Config::Dynamic(Dynamic::default()),
};
/// Acknowledgements by the rule of TACK.
pub const TACK: Named<Config> = Named {
    name: "tack",
    description: "one ACK for two segments, but at most four ACKs per shortest round trip",
    source: "Li et al., SIGCOMM 2020, section 4.1: its rule of acknowledging",
    config: || Config::Tack(Tack::default()),
};
/// Adaptive delayed ACKs of TCP-DAA, which cover more segments while they arrive in order.
pub const DAA: Named<Config> = Named {
    name: "daa",
    description: "one ACK for up to four segments in order, or for two after losses or reordering",
    source: "de Oliveira, Braun, INFOCOM 2005",
    config: || Config::Adaptive(Adaptive::default()),
};
/// Delayed ACKs as Linux implements them.
pub const LINUX_DELACK: Named<Config> = Named {
    name: "linux-delack",
    description: "ACKs of a Linux receiver: one for two segments or after 44 ms, and one for each segment at the start and after a long gap",
    source: "Linux 6.18, tcp_input.c",
    config: || Config::Linux(Linux::default()),
};

impl Parameters for Config {
    fn slots(&mut self) -> Slots<'_> {
        match self {
            Config::EverySegment => Slots::new(),
            Config::Delayed(config) => config.slots(),
            Config::Dynamic(config) => config.slots(),
            Config::Tack(config) => config.slots(),
            Config::Adaptive(config) => config.slots(),
            Config::Linux(config) => config.slots(),
        }
    }
}

impl Config {
    /// Every rule with its default parameters, and the name that scenarios use for it.
    pub fn kinds() -> [(&'static str, Config); 6] {
        [
            ("every-segment", Config::EverySegment),
            ("delayed", Config::Delayed(Delayed::default())),
            ("dynamic", Config::Dynamic(Dynamic::default())),
            ("tack", Config::Tack(Tack::default())),
            ("adaptive", Config::Adaptive(Adaptive::default())),
            ("linux", Config::Linux(Linux::default())),
        ]
    }

    /// Noun for this rule, for use in a sentence.
    pub fn noun(&self) -> &'static str {
        match self {
            Config::EverySegment => "acknowledging every segment",
            Config::Delayed(_) => "delayed acknowledgements",
            Config::Dynamic(_) => "dynamic delayed acknowledgements",
            Config::Tack(_) => "acknowledgements of TACK",
            Config::Adaptive(_) => "adaptive delayed acknowledgements",
            Config::Linux(_) => "delayed acknowledgements of Linux",
        }
    }

    /// Describes the rule in a few words, for people.
    pub fn describe(&self) -> String {
        match self {
            Config::EverySegment => String::from("every segment"),
            Config::Delayed(delayed) => format!("every {} or {} s", delayed.segments, delayed.timer.as_secs_f64()),
            Config::Dynamic(dynamic) => {
                let [l1, l2, l3] = dynamic.thresholds;
                format!("every 1..4 (from segment {l1}, {l2}, {l3}) or {} s", dynamic.timer.as_secs_f64())
            }
            Config::Tack(tack) => format!("every {} or {}/RTT", tack.segments, tack.beta),
            Config::Adaptive(adaptive) => format!("every 1..{} in order", adaptive.segments),
            Config::Linux(linux) => format!("every 2 or {} s, as Linux", linux.timer.as_secs_f64()),
        }
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is out of its range, with its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::EverySegment => Ok(()),
            Config::Delayed(config) => config.check(),
            Config::Dynamic(config) => config.check(),
            Config::Tack(config) => config.check(),
            Config::Adaptive(config) => config.check(),
            Config::Linux(config) => config.check(),
        }
    }

    /// Longest wait of the first waiting segment. It is zero for the rules that do not use it:
    /// every segment, and adaptive ACKs, which compute their own deadline.
    fn timer(&self) -> Duration {
        match self {
            Config::EverySegment => Duration::ZERO,
            Config::Delayed(config) => config.timer,
            Config::Dynamic(config) => config.timer,
            Config::Tack(config) => config.timer,
            Config::Adaptive(_) => Duration::ZERO,
            Config::Linux(config) => config.timer,
        }
    }
}

/// State that a rule keeps about earlier segments.
#[derive(Clone, Debug)]
enum Memory {
    Nothing,
    Tack(tack::State),
    Adaptive(adaptive::State),
    Linux(linux::State),
}

/// The receiver's rule and the segments that it has not acknowledged yet.
#[derive(Clone, Debug)]
pub struct Policy {
    config: Config,
    memory: Memory,
    /// Limit of the sender's window in segments.
    limit: u32,
    /// Number of segments in order since the last ACK.
    waiting: u32,
    /// Latest time at which the waiting segments are acknowledged; [`Time::NEVER`] if no segment
    /// waits.
    deadline: Time,
}

impl Policy {
    /// Creates the rule with no segment waiting. `limit` is the largest window of the sender in
    /// segments.
    pub fn new(config: &Config, limit: u32) -> Policy {
        let memory = match config {
            Config::Tack(config) => Memory::Tack(tack::State::new(config)),
            Config::Adaptive(config) => Memory::Adaptive(adaptive::State::new(config)),
            Config::Linux(config) => Memory::Linux(linux::State::new(config)),
            _ => Memory::Nothing,
        };
        Policy { config: config.clone(), memory, limit, waiting: 0, deadline: Time::NEVER }
    }

    /// A segment with data arrived. `progress` is true if it is in order or fills a gap.
    /// `round_trip` is the age of this end's time stamp that the segment echoes, or `None` if it
    /// echoes none.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, progress: bool, round_trip: Option<Duration>) {
        match (&mut self.memory, &self.config, round_trip) {
            (Memory::Tack(state), _, Some(round_trip)) => state.on_round_trip(now, round_trip),
            (Memory::Adaptive(state), _, _) => state.on_arrival(now),
            (Memory::Linux(state), Config::Linux(config), _) if progress => state.on_progress(now, config),
            _ => {}
        }
    }

    /// A segment arrived that is not simply the next one in order: it is out of order, fills a gap,
    /// brings nothing new or carries the FIN. An ACK leaves at once, whatever the rule.
    #[inline]
    pub fn on_disorder(&mut self) {
        if let Memory::Adaptive(state) = &mut self.memory {
            state.on_disturbance();
        }
    }

    /// Segment number `n` of the stream, counted from 1, has arrived in order. Returns whether an
    /// ACK leaves now.
    pub fn on_in_order(&mut self, now: Time, n: u64) -> bool {
        self.waiting += 1;
        let enough = match (&self.config, &self.memory) {
            (Config::EverySegment, _) => 1,
            (Config::Delayed(config), _) => config.segments_per_ack(self.limit),
            (Config::Dynamic(config), _) => config.segments_per_ack(n),
            (Config::Tack(config), _) => config.segments,
            (Config::Adaptive(_), Memory::Adaptive(state)) => state.segments(),
            (Config::Adaptive(config), _) => config.segments,
            (Config::Linux(config), Memory::Linux(state)) => state.segments(n, config),
            (Config::Linux(_), _) => 2,
        };
        let has_enough = self.waiting >= enough;
        match &mut self.memory {
            Memory::Tack(state) if has_enough && now < state.earliest() => {
                self.deadline = state.earliest();
                return false;
            }
            Memory::Adaptive(state) if has_enough => state.on_enough(),
            // Each new segment starts the wait of this rule again.
            Memory::Adaptive(state) => self.deadline = state.deadline(now, self.waiting),
            _ => {}
        }
        if has_enough {
            return true;
        }
        if self.deadline == Time::NEVER {
            self.deadline = now.saturating_add(self.config.timer());
            if let Memory::Tack(state) = &self.memory {
                self.deadline = self.deadline.max(state.earliest());
            }
        }
        false
    }

    /// The deadline of the waiting segments has passed and an ACK leaves.
    pub fn on_deadline(&mut self, now: Time) {
        self.on_disorder();
        self.on_ack_sent(now);
    }

    /// An ACK leaves, for whatever reason. It covers all waiting segments.
    #[inline]
    pub fn on_ack_sent(&mut self, now: Time) {
        self.waiting = 0;
        self.deadline = Time::NEVER;
        match &mut self.memory {
            Memory::Tack(state) => state.on_ack_sent(now),
            Memory::Linux(state) => state.on_ack_sent(),
            _ => {}
        }
    }

    /// Time at which an ACK is due; [`Time::NEVER`] if no segment waits.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }
}
