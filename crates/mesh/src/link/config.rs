//! The configuration of the link layer: one queue discipline, and one marker or none in addition.

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
    /// One queue of `radio.queue` packets ([`LinkConfig::limit`]), drop-tail, routing packets first.
    #[default]
    DropTail,
    /// Link-layer adaptive pacing. `radio.queue` does not apply.
    Llap(LlapConfig),
    /// FQ-CoDel (RFC 8290). `radio.queue` does not apply.
    FqCodel(FqCodelConfig),
    /// FQ-CoDel for each neighbour, in turn by air time (Linux's mac80211). `radio.queue` does not apply.
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
    /// Every kind with its defaults, by the name that scenarios have for it.
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
    /// The first parameter that is not.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            QueueConfig::DropTail => Ok(()),
            QueueConfig::Llap(config) => config.check(),
            QueueConfig::FqCodel(config) => config.check(),
            QueueConfig::FqCodelAirtime(config) => config.check(),
        }
    }
}

/// Marker that marks or drops packets as they leave for the MAC.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum MarkerConfig {
    /// Nothing does.
    #[default]
    None,
    /// By the average number of retries.
    Lred(LredConfig),
    /// By the congestion index of the link.
    Dcc(DccConfig),
}

impl MarkerConfig {
    /// Every kind with its defaults, by the name that scenarios have for it.
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
    /// The first parameter that is not.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            MarkerConfig::None => Ok(()),
            MarkerConfig::Lred(config) => config.check(),
            MarkerConfig::Dcc(config) => config.check(),
        }
    }
}

parameters! {
    /// Number of times that a broadcast of routing or ARP leaves again. A broadcast has no acknowledgement (IEEE 802.11-1999, section 9.2.7): on
    /// a busy path hardly one of four gets through, and nobody notices. Not in ns-2, where it leaves once.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Repeats {
        /// how often a broadcast of routing or ARP leaves again: broadcasts have no acknowledgement
        count as repeats: u8 = 0 => whole("times", 0, 20), Basic;
        /// time from one of them to the next
        // Somewhat more than a data frame takes over three hops that share the channel at 2 Mbit/s (23 ms): two that leave earlier meet the same segment on its way.
        gap as repeat_gap: Duration = Duration::from_millis(25) => TIME.above(0.0), Expert;
    }
}

parameters! {
    /// Delay that no queue causes, as that of hosts, of power saving or of frames sent again, to see what it does to transports that go by delay. Packets of a
    /// flow stay in their order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Jitter {
        /// how late packets with payload enter the mesh at their source: drawn for each flow, uniform from 0 to this; acknowledgements are not late
        most as jitter: Duration = Duration::ZERO => TIME.to(60.0), Expert;
        /// how long one draw holds; 0 s: for one packet
        hold as jitter_time: Duration = Duration::from_secs(1) => TIME.from(0.0), Expert;
    }
}

/// The link layer: any queue discipline with any marker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// Limit of the drop-tail queue in packets, as the MAC profile counts it (`ns2`: one waiting packet less). Default 50.
    pub limit: usize,
    /// The queue discipline.
    pub queue: QueueConfig,
    /// The marker.
    pub marker: MarkerConfig,
    /// Repetition of broadcasts of routing and ARP.
    pub repeats: Repeats,
    /// Delay that no queue causes.
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
    /// The first parameter that is not.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.queue.check().map_err(|error| error.inside("queue"))?;
        self.marker.check().map_err(|error| error.inside("marker"))?;
        self.repeats.check()?;
        self.jitter.check()
    }
}
