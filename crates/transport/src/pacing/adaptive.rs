//! Adaptive pacing: one segment leaves per interval. The interval is the smoothed propagation delay
//! over four hops, stretched by the variation of the RTT.
//!
//! S. ElRakabawy, A. Klemm, C. Lindemann, "TCP with Adaptive Pacing for Multihop Wireless
//! Networks", MobiHoc 2005 (AP05), section 4. The authors released an agent for ns-2. Each point in
//! which that agent differs from the paper is a field of [`AdaptiveConfig`].

use super::carrier_sense::CarrierSense;
use super::out_of_interference::{OutOfInterference, Sensing};
use crate::about::Named;
use alloc::format;
use alloc::string::String;
use meshpace_core::{Duration, parameters, words};

/// Default of N, the number of samples from which the variation is computed (AP05, section 4.5).
pub const DEFAULT_HISTORY: usize = 50;

parameters! {
    /// Parameters of adaptive pacing. The defaults are those of the paper; [`AdaptiveConfig::released`] has those of its authors' agent.
    ///
    /// More than 15 fields: one for each point in which the papers and the released agent differ. Any combination is meant to be
    /// possible, and each is a key of scenarios.
    #[derive(Clone, PartialEq, Debug)]
    pub struct AdaptiveConfig {
        /// weight of the old average of the delay
        alpha: f64 = 0.7 => number(0.0, 1.0), Basic, "AP05, section 4.5";
        /// number of round trips from which the dispersion is computed
        history: usize = DEFAULT_HISTORY => whole("samples", 2, 65536), Basic, "AP05, section 4.5";
        /// hops after which the channel can be reused
        reuse_hops: u8 = 4 => whole("hops", 1, 255), Expert, "AP05, section 4.3";
        /// s_d, bytes of a data packet besides its payload
        data_overhead: u32 = 40 => whole("bytes", 0, 65535), Expert, "AP05, section 4.3";
        /// s_a, size of an ACK in bytes
        ack_size: u32 = 40 => whole("bytes", 0, 65535), Expert, "AP05, section 4.3";
        /// source of the number of hops
        hops: HopSource = HopSource::RoutingTable => choice(HopSource::WORDS), Expert,
            "AP05, section 4.3; the agent its authors released";
        /// delay that is used on paths shorter than reuse_hops
        short_path: ShortPath = ShortPath::WholePath => choice(ShortPath::WORDS), Expert,
            "AP05, section 4.3; the agent its authors released";
        /// measure of contention
        dispersion: Dispersion = Dispersion::CovRtt => choice(Dispersion::WORDS), Expert,
            "AP05, section 4.2; the agent its authors released";
        /// weight of the measure of contention
        dispersion_factor: f64 = 2.0 => number(0.0, 1e6), Expert, "AP05, section 4";
        /// K, factor that is applied to the quantity named by scaling
        scale: f64 = 1.0 => number(1.0, 1000.0), Basic, "TPA, section 5.3";
        /// whether K multiplies the samples or their deviations
        // TPA's table 6 comes out with the deviations, not with its equation as printed.
        scaling: Scaling = Scaling::Deviations => choice(Scaling::WORDS), Basic, "TPA, section 5.3";
        /// tick of the clock for RTT samples; samples are whole ticks, at least one; 0 s: exact
        /// samples
        rtt_clock: Duration = Duration::ZERO => TIME.or_none(), Expert, "ns-2, tcpTick_";
        /// upper limit of delay samples; samples that reach it are discarded
        delay_limit: Option<Duration> = None => TIME.above(0.0).or_none(), Expert, "the agent that the authors of AP05 released";
        /// largest accepted queueing delay per hop; the average replaces larger ones
        queueing_limit: Option<Duration> = None => TIME.above(0.0).or_none(), Expert,
            "the agent that the authors of AP05 released";
        /// interval before the first sample; 0 s: no pacing until then, the window alone limits
        initial_interval: Duration = Duration::ZERO => TIME.from(0.0), Expert, "the agent that the authors of AP05 released";
        /// ACKs that give samples of the RTT
        sampling: Sampling = Sampling::NewDataKarn => choice(Sampling::WORDS), Basic,
            "AP05, section 4.5; the agent its authors released";
        /// how the interval delays segments
        limit: RateLimit = RateLimit::EarliestSend => choice(RateLimit::WORDS), Basic,
            "AP05, section 4.4; the agent its authors released";
        /// how retransmissions are paced after a loss
        recovery: Recovery = Recovery::Restart => choice(Recovery::WORDS), Expert, "the agent that the authors of AP05 released";
    }
    others {
        /// The delay that sets the interval. AP05: the four-hop delay, from the RTT.
        measure: Measure = Measure::RoundTrip;
    }
    also |config| match &config.measure {
        Measure::OutOfInterference(config) => config.check().map_err(|error| error.inside("interference")),
        Measure::RoundTrip | Measure::OneWay => Ok(()),
    };
}

/// Delay from which the interval is computed, and the measurement behind it.
#[derive(Clone, PartialEq, Debug)]
pub enum Measure {
    /// Propagation delay over `reuse_hops` hops, computed from the RTT (AP05, section 4.3).
    RoundTrip,
    /// Propagation delay over `reuse_hops` hops, computed from the one-way delay that the receiver
    /// echoes. Both clocks have to be synchronized (AP05, section 5, figure 15). The dispersion is
    /// still that of the RTT. If the peer echoes no one-way delay, the RTT is used.
    OneWay,
    /// The out-of-interference delay (AP10, section IV.E).
    OutOfInterference(OutOfInterference),
}

/// Term of the dispersion that the factor K multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scaling {
    /// K multiplies the samples but not their mean, as TPA, section 5.3, equation 3 is printed. The
    /// result is at least K - 1 even without jitter.
    Samples,
    /// K multiplies the deviations, so the result is K times the dispersion.
    Deviations,
}

/// Source of the number of hops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HopSource {
    /// The sender's routing table (AP05, section 4.3).
    RoutingTable,
    /// The number of hops that the ACK travelled (released agent).
    AckTravelled,
}

/// Delay that is used on paths shorter than the reuse distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShortPath {
    /// The delay of the whole path, n = h (AP05, section 4.3).
    WholePath,
    /// The delay of one hop (released agent).
    OneHop,
}

/// Measure of variation that stretches the interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispersion {
    /// Coefficient of variation of the RTT samples, with divisor N - 1 (AP05, equation of cov).
    CovRtt,
    /// Mean absolute deviation of the RTT samples divided by their mean.
    MadRtt,
    /// Mean absolute deviation of the n-hop delay samples divided by their mean (released agent).
    MadDelay,
}

/// The ACKs that give an RTT sample, and the segment whose sending time counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// ACKs of new data that cover no retransmitted segment (Karn's rule). The sample is the time
    /// since the newest covered segment was sent.
    NewDataKarn,
    /// ACKs of new data whose newest covered segment was sent only once.
    NewData,
    /// ACKs of new data that cover no retransmitted segment. The sample is the time since the
    /// oldest covered segment was sent. A receiver with delayed ACKs echoes the time stamp of that
    /// segment (RFC 7323, section 4.3; ns-2's `DelAck`). This is a reading of TPA, section 5.3.
    OldestNew,
    /// Every ACK, including duplicates and the ACK of the SYN. The sample is the age of the time
    /// stamp that the ACK echoes (released agent).
    EveryEcho,
}

/// Gate that decides when a segment that the window allows may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateLimit {
    /// A segment leaves at once if an interval has passed since the last one, otherwise when the
    /// interval ends.
    EarliestSend,
    /// Segments enter a FIFO as the window allows. Each tick of a free-running timer sends one of
    /// them (released agent).
    FreeRunning,
}

/// Effect of loss recovery on pacing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Retransmissions leave at once and restart the interval.
    Restart,
    /// Retransmissions are paced too, and leave before new data.
    Paced,
    /// A fast retransmit leaves at once and empties the FIFO. Pacing is then off until the next ACK
    /// (released agent).
    OffUntilAck,
}

words! { Scaling: "samples" = Samples, "deviations" = Deviations }
words! { HopSource: "routing-table" = RoutingTable, "ack-travelled" = AckTravelled }
words! { ShortPath: "whole-path" = WholePath, "one-hop" = OneHop }
words! { Dispersion: "cov-rtt" = CovRtt, "mad-rtt" = MadRtt, "mad-delay" = MadDelay }
words! { Sampling: "new-data-karn" = NewDataKarn, "new-data" = NewData, "oldest-new" = OldestNew, "every-echo" = EveryEcho }
words! { RateLimit: "earliest-send" = EarliestSend, "free-running" = FreeRunning }
words! { Recovery: "restart" = Restart, "paced" = Paced, "off-until-ack" = OffUntilAck }

/// TCP-AP as the paper describes it.
pub const TCP_AP: Named<AdaptiveConfig> = Named {
    name: "tcp-ap",
    description: "TCP with adaptive pacing as printed in the paper (the default reading)",
    source: "AP05, section 4",
    config: AdaptiveConfig::paper,
};
/// TCP-AP with the mean absolute deviation of the RTT as its dispersion.
pub const TCP_AP_MAD: Named<AdaptiveConfig> = Named {
    name: "tcp-ap-mad",
    description: "TCP-AP with the mean absolute deviation of the RTT instead of its standard deviation",
    source: "AP05, with the measure that the released agent prefers",
    config: || AdaptiveConfig { dispersion: Dispersion::MadRtt, ..AdaptiveConfig::paper() },
};
/// TCP-AP with one-way delays between synchronized clocks.
pub const TCP_AP_SYNC: Named<AdaptiveConfig> = Named {
    name: "tcp-ap-sync",
    description: "TCP-AP with synchronized clocks: the receiver echoes the one-way delay",
    source: "AP05, section 5, figure 15",
    config: AdaptiveConfig::synchronized,
};
/// The refined TCP-AP of AP10, paced by the out-of-interference delay.
pub const TCP_AP_OID: Named<AdaptiveConfig> = Named {
    name: "tcp-ap-oid",
    description: "TCP-AP paced by the out-of-interference delay, with the sensing range estimated from received power",
    source: "AP10, sections 3 and 4; for two-ray ground, exponent 4, threshold -78.07 dBm",
    config: AdaptiveConfig::out_of_interference,
};

impl AdaptiveConfig {
    /// Parameters of TCP-AP as the paper describes it.
    pub fn paper() -> AdaptiveConfig {
        AdaptiveConfig::default()
    }

    /// Parameters of TCP-AP as its authors' agent for ns-2 implements it.
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

    /// Parameters of TCP-AP with synchronized clocks (AP05, section 5, figure 15).
    pub fn synchronized() -> AdaptiveConfig {
        AdaptiveConfig { measure: Measure::OneWay, ..AdaptiveConfig::paper() }
    }

    /// Parameters of the refined TCP-AP (AP10), for the two-ray ground model. S_data is the payload
    /// alone, because AP10's numbers follow only in this way.
    pub fn out_of_interference() -> AdaptiveConfig {
        AdaptiveConfig {
            measure: Measure::OutOfInterference(OutOfInterference::default()),
            data_overhead: 0,
            ..AdaptiveConfig::paper()
        }
    }

    /// Parameters of the estimate of the sensing range; `None` if the range is not estimated.
    pub fn carrier_sense(&self) -> Option<&CarrierSense> {
        match &self.measure {
            Measure::OutOfInterference(OutOfInterference { sensing: Sensing::Estimated(config), .. }) => Some(config),
            _ => None,
        }
    }

    /// Describes the measure and its parameters for people.
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
        let samples = match self.sampling {
            Sampling::NewDataKarn => "",
            Sampling::NewData => ", samples of new data",
            Sampling::OldestNew => ", samples of the oldest segment",
            Sampling::EveryEcho => ", every echo a sample",
        };
        let scale = if self.scale == 1.0 { String::new() } else { format!(", K {}", self.scale) };
        format!("{measure}, alpha {}, N {}, {dispersion}{scale}{timer}{samples}", self.alpha, self.history)
    }
}
