//! LLAP's parameters and the readings of what its paper leaves open.

use meshpace_core::Duration;
use meshpace_core::parameter::{ParameterError, require};

/// What a relay's PD delays (item 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RelayDelay {
    /// Each packet waits PD from its arrival.
    #[default]
    Hold,
    /// Packets for one destination are released at least PD apart.
    Space,
}

/// When a relay's PD is updated (item 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayUpdate {
    /// Whenever a packet for the destination has been sent.
    #[default]
    Transmission,
    /// Whenever a packet for the destination has been overheard.
    Overhearing,
}

/// What a relay's PD adds the difference NHT - HT to (item 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayBase {
    /// The PD before, as the equation is printed: an integrator, which runs ahead of an HT that lags.
    #[default]
    Previous,
    /// What the packet that has just been sent did wait for its PD, so that an HT that contains this wait meets the same PD.
    Waited,
}

/// What the queue limit counts (item 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// Every input queue has the limit to itself.
    #[default]
    PerQueue,
    /// All input queues of a node share one limit.
    PerNode,
}

/// LLAP's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LlapConfig {
    /// Weight on the old value of HT and NHT. Range [0, 1), default 0.8 (LLAP, IV.B).
    pub alpha: f64,
    /// Packets an input queue holds, and the transmission queue. Range 1 to 10000, default 25 (LLAP, IV.A).
    pub queue: usize,
    /// What a relay's PD delays.
    pub relay_delay: RelayDelay,
    /// When a relay's PD is updated.
    pub delay_update: DelayUpdate,
    /// What the difference of the delays is added to.
    pub delay_base: DelayBase,
    /// Whether PD may wind below zero (item 2); it then delays nothing until the debt is paid. Default no.
    pub negative_delay: bool,
    /// Upper bound of PD, and of the source's spacing. Range 1 ms to 60 s, default 1 s (item 2).
    pub max_delay: Duration,
    /// Whether local and relayed packets for one destination have queues of their own (item 4). Default yes.
    pub by_origin: bool,
    /// Whether pure TCP ACKs are paced as any traffic (item 6), or go straight to the transmission queue. Default yes.
    pub pace_acks: bool,
    /// How long a packet may take to be overheard before it is forgotten (item 8). Range 1 ms to 60 s, default 1 s.
    pub patience: Duration,
    /// What the limit of the input queues counts.
    pub limit: QueueLimit,
}

impl Default for LlapConfig {
    fn default() -> Self {
        LlapConfig {
            alpha: 0.8,
            queue: 25,
            relay_delay: RelayDelay::Hold,
            delay_update: DelayUpdate::Transmission,
            delay_base: DelayBase::Previous,
            negative_delay: false,
            max_delay: Duration::from_secs(1),
            by_origin: true,
            pace_acks: true,
            patience: Duration::from_secs(1),
            limit: QueueLimit::PerQueue,
        }
    }
}

impl LlapConfig {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn check(&self) -> Result<(), ParameterError> {
        let span = Duration::from_millis(1)..=Duration::from_secs(60);
        require((0.0..1.0).contains(&self.alpha), "llap.alpha", self.alpha, "at least 0 and less than 1")?;
        require((1..=10_000).contains(&self.queue), "llap.queue", self.queue, "1 to 10000 packets")?;
        require(span.contains(&self.max_delay), "llap.max_delay", self.max_delay, "1 ms to 60 s")?;
        require(span.contains(&self.patience), "llap.patience", self.patience, "1 ms to 60 s")
    }
}
