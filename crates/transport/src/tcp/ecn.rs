//! Explicit congestion notification (ECN): congested nodes mark packets instead of dropping them.
//!
//! RFC 3168, sections 6.1.1 to 6.1.5: both ends agree on ECN in the handshake. Data sent for the
//! first time is ECN-capable; retransmissions, probes and pure ACKs are not. The receiver echoes a
//! mark (ECE) until the sender reports that it has reduced its window (CWR). The sender reduces its
//! window at most once per window of data. DCC, section IV, needs the number of marks: there each
//! marked segment is echoed at once by one ACK, and the window does not react ("disable ECN induced
//! CWND adaptation"). CWR is sent in both variants.

use super::segment::Segment;
use crate::about::Named;
use crate::flags::Flags;
use meshpace_core::words;

/// Use of ECN by a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Config {
    /// ECN is not used.
    Off,
    /// New data is ECN-capable.
    On {
        /// Method by which the receiver echoes marks.
        echo: Echo,
        /// True if the sender halves its window after an echo, as after a loss (RFC 3168, section
        /// 6.1.2).
        reaction: bool,
    },
}

/// Method by which the receiver echoes marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    /// One ACK with an echo leaves at once for each marked segment (DCC).
    PerMark,
    /// Every ACK carries an echo until the sender has reduced its window (RFC 3168, section 6.1.3).
    Latched,
}

words! { Echo: "latched" = Latched, "per-mark" = PerMark }

/// ECN as RFC 3168 specifies it.
pub const ECN: Named<Config> = Named {
    name: "ecn",
    description: "explicit congestion notification; a mark counts as a loss",
    source: "RFC 3168",
    config: || Config::RFC_3168,
};

impl Config {
    /// ECN as DCC needs it.
    pub const DCC: Config = Config::On { echo: Echo::PerMark, reaction: false };
    /// ECN as RFC 3168 specifies it.
    pub const RFC_3168: Config = Config::On { echo: Echo::Latched, reaction: true };

    /// True if the connection asks for ECN.
    pub fn is_on(self) -> bool {
        self != Config::Off
    }

    /// Flags that a SYN adds to ask for ECN (RFC 3168, section 6.1.1).
    pub fn syn_flags(self) -> Flags {
        if self.is_on() { Flags::ECE.with(Flags::CWR) } else { Flags::NONE }
    }

    /// True if the SYN-ACK agrees to the use of ECN.
    pub fn agreed_by(self, syn_ack: &Segment) -> bool {
        self.is_on() && syn_ack.flags.has(Flags::ECE) && !syn_ack.flags.has(Flags::CWR)
    }
}

/// ECN state of the sender.
#[derive(Clone, Debug)]
pub struct Reaction {
    config: Config,
    /// True if both ends agreed on ECN.
    on: bool,
    /// True if the window has been reduced, or if an echo arrived and the window does not react.
    /// The next new segment reports it with CWR.
    cwr_due: bool,
    /// Echoes count again once this offset is acknowledged.
    counts_from: u64,
}

impl Reaction {
    /// Creates the state before the handshake.
    pub fn new(config: Config) -> Reaction {
        Reaction { config, on: false, cwr_due: false, counts_from: 0 }
    }

    /// The SYN-ACK arrived. ECN is on if the SYN-ACK agrees.
    pub fn on_syn_ack(&mut self, segment: &Segment) {
        self.on = self.config.agreed_by(segment);
    }

    /// True if both ends agreed on ECN.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// An ACK of everything before `ack` echoes a mark. Returns whether the window has to be
    /// reduced: as after a loss, once per window of data, and not during the repair of a loss (RFC
    /// 3168, section 6.1.2).
    pub fn on_echo(&mut self, ack: u64, recovering: bool) -> bool {
        if !matches!(self.config, Config::On { reaction: true, .. }) {
            self.cwr_due = true;
            return false;
        }
        ack >= self.counts_from && !recovering
    }

    /// The window was reduced, for whatever reason. Everything before `sent_end` had been sent at
    /// that time.
    pub fn on_reduction(&mut self, sent_end: u64) {
        self.cwr_due = self.on;
        self.counts_from = sent_end.saturating_add(1);
    }

    /// Flags that a new data segment adds.
    pub fn data_flags(&mut self) -> Flags {
        if core::mem::take(&mut self.cwr_due) { Flags::CWR } else { Flags::NONE }
    }
}

/// ECN state of the receiver.
#[derive(Clone, Debug)]
pub struct Echoing {
    config: Config,
    /// True if the sender's SYN asked for ECN and this end agrees.
    on: bool,
    /// True if the next ACK carries an echo.
    pending: bool,
}

impl Echoing {
    /// Creates the state before the handshake.
    pub fn new(config: Config) -> Echoing {
        Echoing { config, on: false, pending: false }
    }

    /// A SYN arrived. ECN is on if the SYN asks for it and this end uses it.
    pub fn on_syn(&mut self, syn: &Segment) {
        self.on = self.config.is_on() && syn.flags.has(Flags::ECE.with(Flags::CWR));
    }

    /// A data segment arrived; `marked` says whether it carries a congestion mark. Returns whether
    /// an ACK has to leave at once.
    pub fn on_data(&mut self, segment: &Segment, marked: bool) -> bool {
        if !self.on {
            return false;
        }
        let latched = matches!(self.config, Config::On { echo: Echo::Latched, .. });
        if latched && segment.flags.has(Flags::CWR) {
            self.pending = false;
        }
        self.pending |= marked;
        marked && !latched
    }

    /// Flags that an ACK adds.
    pub fn ack_flags(&mut self) -> Flags {
        if !self.pending {
            return Flags::NONE;
        }
        if matches!(self.config, Config::On { echo: Echo::PerMark, .. }) {
            self.pending = false;
        }
        Flags::ECE
    }

    /// Flags that a SYN-ACK adds.
    pub fn syn_ack_flags(&self) -> Flags {
        if self.on { Flags::ECE } else { Flags::NONE }
    }
}
