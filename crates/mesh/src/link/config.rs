//! The configuration of the link layer: one queue discipline, and one marker or none in addition.

use super::dcc::DccConfig;
use super::fq_codel::FqCodelConfig;
use super::fq_codel_airtime::FqCodelAirtimeConfig;
use super::llap::LlapConfig;
use super::lred::LredConfig;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, ParameterError};

/// Which packet waits where.
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

impl QueueConfig {
    /// Whether every parameter is in its range.
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

/// What marks or drops packets as they leave for the MAC.
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
    /// Whether every parameter is in its range.
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

/// The link layer: any queue discipline with any marker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// Limit of the drop-tail queue in packets, as the MAC profile counts it (`ns2`: one waiting packet less). Default 50.
    pub limit: usize,
    /// The queue discipline.
    pub queue: QueueConfig,
    /// The marker.
    pub marker: MarkerConfig,
    /// What becomes of broadcasts of routing and ARP.
    pub repeats: Repeats,
}

/// How often a broadcast of routing or ARP leaves again. A broadcast has no acknowledgement (IEEE 802.11-1999, section 9.2.7): on
/// a busy path hardly one of four gets through, and nobody notices. Not in ns-2, where it leaves once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeats {
    /// How often again, 0 to [`Repeats::MOST`]. Default 0.
    pub count: u8,
    /// Time from one to the next, above 0 s. Default 11 ms, somewhat more than a data frame's exchange at 2 Mbit/s takes.
    pub gap: Duration,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats { count: 0, gap: Duration::from_millis(11) }
    }
}

impl Repeats {
    /// The largest count.
    pub const MOST: u8 = 20;
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            limit: 50,
            queue: QueueConfig::default(),
            marker: MarkerConfig::default(),
            repeats: Repeats::default(),
        }
    }
}

impl LinkConfig {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.queue.check()?;
        self.marker.check()?;
        let Repeats { count, gap } = self.repeats;
        require(count <= Repeats::MOST, "repeats", count, "0 to 20")?;
        require(gap > Duration::ZERO, "repeat_gap", gap, "above 0 s")
    }
}
