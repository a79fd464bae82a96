//! Configuration of the link layer: a queue discipline, and optionally a marker.

use super::dcc::DccConfig;
use super::fq_codel::FqCodelConfig;
use super::fq_codel_airtime::FqCodelAirtimeConfig;
use super::llap::LlapConfig;
use super::lred::LredConfig;
use meshpace_core::parameter::{ParameterError, Parameters, Slots};
use meshpace_core::{Duration, parameters};

/// Queue discipline.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum QueueConfig {
    /// One queue of `radio.queue` packets ([`LinkConfig::limit`]), drop-tail, routing packets
    /// first.
    #[default]
    DropTail,
    /// Link-layer adaptive pacing. `radio.queue` does not apply.
    Llap(LlapConfig),
    /// FQ-CoDel (RFC 8290). `radio.queue` does not apply.
    FqCodel(FqCodelConfig),
    /// FQ-CoDel for each neighbour, with the neighbours scheduled by air time (Linux's mac80211).
    /// `radio.queue` does not apply.
    FqCodelAirtime(FqCodelAirtimeConfig),
}

impl Parameters for QueueConfig {
    fn slots(&mut self) -> Slots<'_> {
        match self {
            QueueConfig::DropTail => Slots::new(),
            QueueConfig::Llap(config) => config.slots(),
            QueueConfig::FqCodel(config) => config.slots(),
            QueueConfig::FqCodelAirtime(config) => config.slots(),
        }
    }
}

impl Parameters for MarkerConfig {
    fn slots(&mut self) -> Slots<'_> {
        match self {
            MarkerConfig::None => Slots::new(),
            MarkerConfig::Lred(config) => config.slots(),
            MarkerConfig::Dcc(config) => config.slots(),
        }
    }
}

impl QueueConfig {
    /// All disciplines with their defaults, by their names in scenarios.
    pub fn kinds() -> [(&'static str, QueueConfig); 4] {
        [
            ("drop-tail", QueueConfig::DropTail),
            ("llap", QueueConfig::Llap(LlapConfig::default())),
            ("fq-codel", QueueConfig::FqCodel(FqCodelConfig::default())),
            ("fq-codel-airtime", QueueConfig::FqCodelAirtime(FqCodelAirtimeConfig::default())),
        ]
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The error names the first parameter that is outside its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            QueueConfig::DropTail => Ok(()),
            QueueConfig::Llap(config) => config.check(),
            QueueConfig::FqCodel(config) => config.check(),
            QueueConfig::FqCodelAirtime(config) => config.check(),
        }
    }
}

/// Marker, which marks or drops packets when they leave for the MAC.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum MarkerConfig {
    /// No marker.
    #[default]
    None,
    /// LRED: marks or drops by the average number of retries.
    Lred(LredConfig),
    /// DCC: marks by the congestion index of the link.
    Dcc(DccConfig),
}

impl MarkerConfig {
    /// All markers with their defaults, by their names in scenarios.
    pub fn kinds() -> [(&'static str, MarkerConfig); 3] {
        [
            ("none", MarkerConfig::None),
            ("lred", MarkerConfig::Lred(LredConfig::default())),
            ("dcc", MarkerConfig::Dcc(DccConfig::default())),
        ]
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The error names the first parameter that is outside its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            MarkerConfig::None => Ok(()),
            MarkerConfig::Lred(config) => config.check(),
            MarkerConfig::Dcc(config) => config.check(),
        }
    }
}

parameters! {
    /// Repetition of broadcasts of routing and ARP. A broadcast has no acknowledgement (IEEE
    /// 802.11-1999, section 9.2.7): on a busy path hardly one of four gets through, and its sender
    /// does not notice the loss. ns-2 sends a broadcast once.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Repeats {
        /// number of times that a broadcast of routing or ARP is sent again, because broadcasts
        /// have no acknowledgement
        count as repeats: u8 = 0 => whole("times", 0, 20), Basic;
        /// time between two transmissions of the same broadcast, with link.repeats
        // The default is somewhat more than the time of a data frame over three hops that share the
        // channel at 2 Mbit/s (23 ms). Two transmissions at a shorter distance would collide with
        // the same segment on its path.
        gap as repeat_gap: Duration = Duration::from_millis(25) => TIME.above(0.0), Expert;
    }
}

parameters! {
    /// Random delay without a queue, such as that of hosts, of power saving or of retransmitted
    /// frames. It serves to study transports that react to delay. Packets of a flow stay in their
    /// order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Jitter {
        /// largest delay that is added to packets with payload when they enter the mesh at their
        /// source; drawn for each flow, uniform from 0 to this value; acknowledgements are not
        /// delayed
        max_delay as jitter: Duration = Duration::ZERO => TIME.to(60.0), Expert;
        /// how long a delay drawn for link.jitter is used; 0 s draws a new one for each packet
        hold as jitter_time: Duration = Duration::from_secs(1) => TIME.from(0.0), Expert;
    }
}

/// Configuration of the link layer. Any queue discipline can be combined with any marker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// Limit of the drop-tail queue in packets, as the MAC profile counts it (`ns2`: one waiting
    /// packet less). Default 50.
    pub limit: usize,
    /// Queue discipline of each node.
    pub queue: QueueConfig,
    /// Marker of each node.
    pub marker: MarkerConfig,
    /// Repetition of broadcasts of routing and ARP.
    pub repeats: Repeats,
    /// Random delay that is not caused by a queue.
    pub jitter: Jitter,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            limit: 50,
            queue: QueueConfig::default(),
            marker: MarkerConfig::default(),
            repeats: Repeats::default(),
            jitter: Jitter::default(),
        }
    }
}

impl LinkConfig {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The error names the first parameter that is outside its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.queue.check().map_err(|error| error.inside("queue"))?;
        self.marker.check().map_err(|error| error.inside("marker"))?;
        self.repeats.check()?;
        self.jitter.check()
    }
}
