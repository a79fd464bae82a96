//! LLAP's parameters and the readings of what its paper leaves open.

use meshpace_core::{Duration, parameters, words};

/// Packets that a relay's PD delays (item 1).
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

/// Base to which a relay's PD adds the difference NHT - HT (item 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayBase {
    /// The PD before, as the equation is printed: an integrator, which runs ahead of an HT that lags.
    #[default]
    Previous,
    /// The wait for its PD of the packet that has just been sent, so that an HT that contains this wait meets the same PD.
    Waited,
}

/// Packets that the queue limit counts (item 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// Every input queue has the limit to itself.
    #[default]
    PerQueue,
    /// All input queues of a node share one limit.
    PerNode,
}

words! { RelayDelay: "hold" = Hold, "space" = Space }
words! { DelayUpdate: "transmission" = Transmission, "overhearing" = Overhearing }
words! { DelayBase: "previous" = Previous, "waited" = Waited }
words! { QueueLimit: "per-queue" = PerQueue, "per-node" = PerNode }

parameters! {
    /// LLAP's parameters.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct LlapConfig {
        /// weight of the old average
        alpha: f64 = 0.8 => number(0.0, 1.0).below(1.0), Basic, "LLAP, IV.B";
        /// packets of an input queue, and of the transmission queue
        queue: usize = 25 => whole("packets", 1, 10_000), Basic, "LLAP, IV.A";
        /// a relay's delay holds each packet, or spaces those to one destination
        relay_delay: RelayDelay = RelayDelay::Hold => choice(RelayDelay::WORDS), Basic, "LLAP, section III";
        /// after what a relay's delay is updated
        delay_update: DelayUpdate = DelayUpdate::Transmission => choice(DelayUpdate::WORDS), Basic, "LLAP, section III";
        /// what a relay's delay adds the difference to: its last value, or what the packet sent last waited for it
        delay_base: DelayBase = DelayBase::Previous => choice(DelayBase::WORDS), Expert, "LLAP, section III";
        /// whether the delay may shrink below zero, and then delays nothing until the debt is paid
        negative_delay: bool = false => FLAG, Basic, "LLAP, section III";
        /// the longest delay, and spacing of the source
        max_delay: Duration = Duration::from_secs(1) => TIME.from(1e-3).to(60.0), Basic;
        /// local and relayed packets to one destination have queues of their own
        by_origin: bool = true => FLAG, Basic;
        /// whether ACKs are delayed too, or go straight to the transmission queue
        pace_acks: bool = true => FLAG, Basic;
        /// how long a packet may take to be overheard before it is forgotten
        patience: Duration = Duration::from_secs(1) => TIME.from(1e-3).to(60.0), Basic;
        /// what the limit of the input queues counts
        limit: QueueLimit = QueueLimit::PerQueue => choice(QueueLimit::WORDS), Basic, "LLAP, section III";
    }
}
