//! Parameters of LLAP, and the readings where its paper leaves a choice.

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

/// Event at which a relay's PD is updated (item 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayUpdate {
    /// A packet for the destination has been sent.
    #[default]
    Transmission,
    /// A packet for the destination has been overheard.
    Overhearing,
}

/// Base to which a relay's PD adds the difference NHT - HT (item 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayBase {
    /// The previous PD, as the equation is printed. This is an integrator, which overshoots if HT
    /// lags.
    #[default]
    Previous,
    /// The time for which the packet sent last waited for its PD. An HT that contains this wait is
    /// then compared with the same PD.
    Waited,
}

/// Packets that the queue limit counts (item 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// Every input queue has its own limit.
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
    /// Parameters of LLAP.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct LlapConfig {
        /// weight of the old average
        alpha: f64 = 0.8 => number(0.0, 1.0).below(1.0), Basic, "LLAP, IV.B";
        /// packets of an input queue, and of the transmission queue
        queue: usize = 25 => whole("packets", 1, 10_000), Basic, "LLAP, IV.A";
        /// whether a relay's delay holds each packet, or spaces the packets to one destination
        relay_delay: RelayDelay = RelayDelay::Hold => choice(RelayDelay::WORDS), Basic, "LLAP, section III";
        /// event after which a relay's delay is updated
        delay_update: DelayUpdate = DelayUpdate::Transmission => choice(DelayUpdate::WORDS), Basic, "LLAP, section III";
        /// value to which a relay's delay adds the difference: its previous value, or the time for
        /// which the packet sent last waited
        delay_base: DelayBase = DelayBase::Previous => choice(DelayBase::WORDS), Expert, "LLAP, section III";
        /// whether the delay may become negative; it then delays no packet until it is positive
        /// again
        negative_delay: bool = false => FLAG, Basic, "LLAP, section III";
        /// longest delay, and longest spacing at the source
        max_delay: Duration = Duration::from_secs(1) => TIME.from(1e-3).to(60.0), Basic;
        /// whether local and relayed packets to one destination have separate queues
        by_origin: bool = true => FLAG, Basic;
        /// whether ACKs are delayed too, or go directly to the transmission queue
        pace_acks: bool = true => FLAG, Basic;
        /// how long a packet may take to be overheard before it is forgotten
        patience: Duration = Duration::from_secs(1) => TIME.from(1e-3).to(60.0), Basic;
        /// whether the limit of the input queues applies to each queue or to all queues of a node
        limit: QueueLimit = QueueLimit::PerQueue => choice(QueueLimit::WORDS), Basic, "LLAP, section III";
    }
}
