//! Adaptive pacing: one segment per smoothed 4-hop propagation delay, stretched by the variation of the RTT.
//!
//! S. ElRakabawy, A. Klemm, C. Lindemann, "TCP with Adaptive Pacing for Multihop Wireless Networks", MobiHoc 2005 (AP05),
//! section 4. Every point in which the agent its authors released differs from the paper is a field of its own.

use super::carrier_sense::CarrierSense;
use super::out_of_interference::{OutOfInterference, Sensing};
use crate::about::Named;
use alloc::format;
use alloc::string::String;
use meshpace_core::{Duration, parameters, words};

/// N, the samples the variation is computed from, unless told otherwise (AP05, section 4.5).
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
        /// round trips for the dispersion
        history: usize = DEFAULT_HISTORY => whole("samples", 2, 65536), Basic, "AP05, section 4.5";
        /// hops after which the channel can be used again
        reuse_hops: u8 = 4 => whole("hops", 1, 255), Expert, "AP05, section 4.3";
        /// s_d, bytes of a data packet beside its payload
        data_overhead: u32 = 40 => whole("bytes", 0, 65535), Expert, "AP05, section 4.3";
        /// s_a, bytes of an ACK
        ack_size: u32 = 40 => whole("bytes", 0, 65535), Expert, "AP05, section 4.3";
        /// who knows the hops
        hops: HopSource = HopSource::RoutingTable => choice(HopSource::WORDS), Expert,
            "AP05, section 4.3; the agent its authors released";
        /// the delay on paths shorter than reuse_hops
        short_path: ShortPath = ShortPath::WholePath => choice(ShortPath::WORDS), Expert,
            "AP05, section 4.3; the agent its authors released";
        /// measure of contention
        dispersion: Dispersion = Dispersion::CovRtt => choice(Dispersion::WORDS), Expert,
            "AP05, section 4.2; the agent its authors released";
        /// its weight
        dispersion_factor: f64 = 2.0 => number(0.0, 1e6), Expert, "AP05, section 4";
        /// K, factor of what scaling names
        scale: f64 = 1.0 => number(1.0, 1000.0), Basic, "TPA, section 5.3";
        /// whether samples or deviations are scaled
        // TPA's table 6 comes out with the deviations, not with its equation as printed.
        scaling: Scaling = Scaling::Deviations => choice(Scaling::WORDS), Basic, "TPA, section 5.3";
        /// tick of the clock that RTT samples are read from, rounded to whole ones, and to one at least; 0 s: exact samples
        rtt_clock: Duration = Duration::ZERO => TIME.or_none(), Expert, "ns-2, tcpTick_";
        /// largest delay that is taken
        delay_limit: Option<Duration> = None => TIME.above(0.0).or_none(), Expert, "the agent that the authors of AP05 released";
        /// largest queueing delay per hop that is taken; the average takes the place of what is above
        queueing_limit: Option<Duration> = None => TIME.above(0.0).or_none(), Expert,
            "the agent that the authors of AP05 released";
        /// before the first sample; 0 s: as the window allows
        initial_interval: Duration = Duration::ZERO => TIME.from(0.0), Expert, "the agent that the authors of AP05 released";
        /// which ACKs are samples
        sampling: Sampling = Sampling::NewDataKarn => choice(Sampling::WORDS), Basic,
            "AP05, section 4.5; the agent its authors released";
        /// how the interval holds segments back
        limit: RateLimit = RateLimit::EarliestSend => choice(RateLimit::WORDS), Basic,
            "AP05, section 4.4; the agent its authors released";
        /// pacing after a loss
        recovery: Recovery = Recovery::Restart => choice(Recovery::WORDS), Expert, "the agent that the authors of AP05 released";
    }
    others {
        /// The delay that paces. AP05: over four hops, from the RTT.
        measure: Measure = Measure::RoundTrip;
    }
    also |config| match &config.measure {
        Measure::OutOfInterference(config) => config.check().map_err(|error| error.inside("interference")),
        Measure::RoundTrip | Measure::OneWay => Ok(()),
    };
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

/// Term of the dispersion that K scales.
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

/// Effect of loss recovery on pacing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Retransmissions leave at once and restart the interval.
    Restart,
    /// Retransmissions wait for their turn, before new data.
    Paced,
    /// A fast retransmit leaves at once and empties the FIFO; pacing is off until the next ACK (released agent).
    OffUntilAck,
}

words! { Scaling: "samples" = Samples, "deviations" = Deviations }
words! { HopSource: "routing-table" = RoutingTable, "ack-travelled" = AckTravelled }
words! { ShortPath: "whole-path" = WholePath, "one-hop" = OneHop }
words! { Dispersion: "cov-rtt" = CovRtt, "mad-rtt" = MadRtt, "mad-delay" = MadDelay }
words! { Sampling: "new-data-karn" = NewDataKarn, "new-data" = NewData, "oldest-new" = OldestNew, "every-echo" = EveryEcho }
words! { RateLimit: "earliest-send" = EarliestSend, "free-running" = FreeRunning }
words! { Recovery: "restart" = Restart, "paced" = Paced, "off-until-ack" = OffUntilAck }

/// TCP-AP.
pub const TCP_AP: Named<AdaptiveConfig> = Named {
    name: "tcp-ap",
    description: "TCP with adaptive pacing as the paper prints it: the default of its readings",
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
        AdaptiveConfig::default()
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

    /// Input of the estimate of the sensing range, if there is one.
    pub fn carrier_sense(&self) -> Option<&CarrierSense> {
        match &self.measure {
            Measure::OutOfInterference(OutOfInterference { sensing: Sensing::Estimated(config), .. }) => Some(config),
            _ => None,
        }
    }

    /// Its measure and parameters, for people.
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
