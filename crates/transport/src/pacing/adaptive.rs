//! Adaptive pacing: one segment per smoothed 4-hop propagation delay, stretched by the variation of the RTT.
//!
//! S. ElRakabawy, A. Klemm, C. Lindemann, "TCP with Adaptive Pacing for Multihop Wireless Networks", MobiHoc 2005 (AP05),
//! section 4. Every point in which the agent its authors released differs from the paper is a field of its own.

use super::carrier_sense::CarrierSense;
use super::out_of_interference::{OutOfInterference, Sensing};
use crate::about::Named;
use alloc::format;
use alloc::string::String;
use meshpace_core::Duration;
use meshpace_core::parameter::{ParameterError, require};

/// N, the samples the variation is computed from, unless told otherwise (AP05, section 4.5).
pub const DEFAULT_HISTORY: usize = 50;

/// Parameters of adaptive pacing.
///
/// More than 15 fields: one for each point in which the papers and the released agent differ. Any combination is meant to be
/// possible, and each is a key of scenarios.
#[derive(Clone, PartialEq, Debug)]
pub struct AdaptiveConfig {
    /// Weight on the old value of the smoothed delay, 0..=1. Default 0.7 (AP05, section 4.5).
    pub alpha: f64,
    /// Samples the dispersion is computed from, 2 or more. Default 50 (AP05, section 4.5).
    pub history: usize,
    /// Hops after which the channel can be used again, 1 or more. Default 4 (AP05, section 4.3).
    pub reuse_hops: u8,
    /// Bytes added to the payload to give s_d. Paper 40, released 112.
    pub data_overhead: u32,
    /// s_a, size of an ACK in bytes. Paper 40, released 112.
    pub ack_size: u32,
    /// The delay that paces. AP05: over four hops, from the RTT.
    pub measure: Measure,
    /// Where h comes from. Paper: routing table; released: hops the ACK travelled.
    pub hops: HopSource,
    /// What is done below `reuse_hops` hops. Paper: h-hop delay; released: one-hop delay.
    pub short_path: ShortPath,
    /// The measure of variation. Paper: cov of the RTT; released: mean absolute deviation over mean of the delay.
    pub dispersion: Dispersion,
    /// Factor before the dispersion, 0 or more. Default 2 (AP05, equation of R).
    pub dispersion_factor: f64,
    /// K, by which the RTT samples are scaled in the dispersion, 1 or more. Default 1; TPA, section 5.3, tries 2 and 3.
    pub scale: f64,
    /// What K scales. Default the deviations: TPA's Table 6 comes out with them, not with its equation as printed.
    pub scaling: Scaling,
    /// The clock of RTT samples: they are rounded to whole ticks of it, and to one at least, as ns-2's agents do (`tcpTick_`,
    /// 0.1 s up to ns-2.26). Papers: 0 s, exact samples.
    pub rtt_clock: Duration,
    /// Delay samples not inside (0, this) are ignored. Paper: none; released: 0.5 s.
    pub delay_limit: Option<Duration>,
    /// Queueing delays per hop above this are replaced by their average. Paper: none; released: 0.5 s.
    pub queueing_limit: Option<Duration>,
    /// Interval before the first sample. Paper: 0 s (as the window allows); released: 0.05 s.
    pub initial_interval: Duration,
    /// Which ACKs give a sample.
    pub sampling: Sampling,
    /// When a segment may leave. Paper: earliest send time; released: FIFO with a free-running timer.
    pub limit: RateLimit,
    /// What recovery does to pacing.
    pub recovery: Recovery,
}

/// The delay that paces, and what it is computed from.
#[derive(Clone, PartialEq, Debug)]
pub enum Measure {
    /// The propagation delay over `reuse_hops` hops, from the RTT (AP05, section 4.3).
    RoundTrip,
    /// The same from the one-way delay that the receiver echoes, both clocks being synchronized (AP05, section 5, figure
    /// 15). The dispersion stays that of the RTT; a peer that echoes nothing is measured by the RTT.
    OneWay,
    /// The out-of-interference delay (AP10, section IV.E).
    OutOfInterference(OutOfInterference),
}

/// What K scales in the dispersion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scaling {
    /// The samples but not their mean, as TPA, section 5.3, equation 3 is printed: at least K - 1 even without jitter.
    Samples,
    /// The deviations: K times the dispersion.
    Deviations,
}

/// Where the number of hops comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HopSource {
    /// The sender's routing table (AP05, section 4.3).
    RoutingTable,
    /// The hops the ACK travelled (released agent).
    AckTravelled,
}

/// The delay used on paths shorter than the reuse distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShortPath {
    /// The delay of the whole path, n = h (AP05, section 4.3).
    WholePath,
    /// The delay of one hop (released agent).
    OneHop,
}

/// The measure of variation that stretches the interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispersion {
    /// Coefficient of variation of the RTT samples, divisor N - 1 (AP05, equation of cov).
    CovRtt,
    /// Mean absolute deviation over mean of the RTT samples.
    MadRtt,
    /// Mean absolute deviation over mean of the n-hop delay samples (released agent).
    MadDelay,
}

/// Which ACKs give an RTT sample, and of which segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// An ACK of new data that covers no segment sent more than once; time since its newest segment was sent.
    NewDataKarn,
    /// An ACK of new data whose newest segment was sent once.
    NewData,
    /// An ACK of new data that covers no segment sent more than once; time since its oldest segment was sent, as the time stamp
    /// tells that a receiver with delayed ACKs echoes (RFC 7323, section 4.3; ns-2's `DelAck`). A reading of TPA, section 5.3.
    OldestNew,
    /// The time echo of every ACK, duplicates and the SYN's included (released agent).
    EveryEcho,
}

/// When a segment the window allows may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateLimit {
    /// At once if an interval has passed since the last one, otherwise then.
    EarliestSend,
    /// Segments enter a FIFO as the window allows; each tick of a free-running timer sends one (released agent).
    FreeRunning,
}

/// What loss recovery does to pacing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Retransmissions leave at once and restart the interval.
    Restart,
    /// Retransmissions wait for their turn, before new data.
    Paced,
    /// A fast retransmit leaves at once and empties the FIFO; pacing is off until the next ACK (released agent).
    OffUntilAck,
}

/// TCP-AP.
pub const TCP_AP: Named<AdaptiveConfig> = Named {
    name: "tcp-ap",
    description: "TCP with adaptive pacing as the paper describes it",
    source: "AP05, section 4",
    config: AdaptiveConfig::paper,
};
/// TCP-AP with the other measure of spread.
pub const TCP_AP_MAD: Named<AdaptiveConfig> = Named {
    name: "tcp-ap-mad",
    description: "TCP-AP with the mean absolute deviation of the RTT instead of its standard deviation",
    source: "AP05, with the measure that the released agent prefers",
    config: || AdaptiveConfig { dispersion: Dispersion::MadRtt, ..AdaptiveConfig::paper() },
};
/// TCP-AP with one-way delays.
pub const TCP_AP_SYNC: Named<AdaptiveConfig> = Named {
    name: "tcp-ap-sync",
    description: "TCP-AP with synchronized clocks: the receiver echoes the one-way delay",
    source: "AP05, section 5, figure 15",
    config: AdaptiveConfig::synchronized,
};
/// The refined TCP-AP.
pub const TCP_AP_OID: Named<AdaptiveConfig> = Named {
    name: "tcp-ap-oid",
    description: "TCP-AP paced by the out-of-interference delay, its range estimated from received power",
    source: "AP10, sections 3 and 4; for two-ray ground, exponent 4, threshold -78.07 dBm",
    config: AdaptiveConfig::out_of_interference,
};

impl AdaptiveConfig {
    /// TCP-AP as the paper describes it.
    pub fn paper() -> AdaptiveConfig {
        AdaptiveConfig {
            alpha: 0.7,
            history: DEFAULT_HISTORY,
            reuse_hops: 4,
            data_overhead: 40,
            ack_size: 40,
            measure: Measure::RoundTrip,
            hops: HopSource::RoutingTable,
            short_path: ShortPath::WholePath,
            dispersion: Dispersion::CovRtt,
            dispersion_factor: 2.0,
            scale: 1.0,
            scaling: Scaling::Deviations,
            rtt_clock: Duration::ZERO,
            delay_limit: None,
            queueing_limit: None,
            initial_interval: Duration::ZERO,
            sampling: Sampling::NewDataKarn,
            limit: RateLimit::EarliestSend,
            recovery: Recovery::Restart,
        }
    }

    /// TCP-AP as its authors' agent for ns-2 does it.
    pub fn released() -> AdaptiveConfig {
        AdaptiveConfig {
            data_overhead: 112,
            ack_size: 112,
            hops: HopSource::AckTravelled,
            short_path: ShortPath::OneHop,
            dispersion: Dispersion::MadDelay,
            delay_limit: Some(Duration::from_millis(500)),
            queueing_limit: Some(Duration::from_millis(500)),
            initial_interval: Duration::from_millis(50),
            sampling: Sampling::EveryEcho,
            limit: RateLimit::FreeRunning,
            recovery: Recovery::OffUntilAck,
            ..AdaptiveConfig::paper()
        }
    }

    /// TCP-AP with synchronized clocks (AP05, section 5, figure 15).
    pub fn synchronized() -> AdaptiveConfig {
        AdaptiveConfig { measure: Measure::OneWay, ..AdaptiveConfig::paper() }
    }

    /// The refined TCP-AP (AP10), for the two-ray ground model. S_data is the payload alone, as AP10's numbers need it.
    pub fn out_of_interference() -> AdaptiveConfig {
        AdaptiveConfig {
            measure: Measure::OutOfInterference(OutOfInterference::default()),
            data_overhead: 0,
            ..AdaptiveConfig::paper()
        }
    }

    /// What the estimate of the sensing range needs, if there is one.
    pub fn carrier_sense(&self) -> Option<&CarrierSense> {
        match &self.measure {
            Measure::OutOfInterference(OutOfInterference { sensing: Sensing::Estimated(config), .. }) => Some(config),
            _ => None,
        }
    }

    /// What it measures and with which parameters, for people.
    pub fn describe(&self) -> String {
        let measure = match &self.measure {
            Measure::RoundTrip => format!("the {}-hop delay", self.reuse_hops),
            Measure::OneWay => format!("the {}-hop delay of synchronized clocks", self.reuse_hops),
            Measure::OutOfInterference(oid) => match &oid.sensing {
                Sensing::Fixed(hops) => format!("the delay over {hops} + 1 hops"),
                Sensing::Estimated(sense) => {
                    format!("the out-of-interference delay, p {}, T_cs {} dBm", sense.exponent, sense.threshold_dbm)
                }
            },
        };
        let dispersion = match self.dispersion {
            Dispersion::CovRtt => "cov of the RTT",
            Dispersion::MadRtt => "mean deviation of the RTT",
            Dispersion::MadDelay => "mean deviation of the delay",
        };
        let timer = match self.limit {
            RateLimit::EarliestSend => "",
            RateLimit::FreeRunning => ", free-running timer",
        };
        let scale = if self.scale == 1.0 { String::new() } else { format!(", K {}", self.scale) };
        format!("{measure}, alpha {}, N {}, {dispersion}{scale}{timer}", self.alpha, self.history)
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        require((0.0..=1.0).contains(&self.alpha), "pacing.alpha", self.alpha, "0 to 1")?;
        require((2..=65536).contains(&self.history), "pacing.history", self.history, "2 to 65536 samples")?;
        require(self.reuse_hops >= 1, "pacing.reuse_hops", self.reuse_hops, "1 or more hops")?;
        require(self.scale >= 1.0 && self.scale <= 1000.0, "pacing.scale", self.scale, "1 to 1000")?;
        if let Measure::OutOfInterference(config) = &self.measure {
            config.check()?;
        }
        require(
            self.dispersion_factor >= 0.0 && self.dispersion_factor.is_finite(),
            "pacing.dispersion_factor",
            self.dispersion_factor,
            "0 or more",
        )
    }
}
