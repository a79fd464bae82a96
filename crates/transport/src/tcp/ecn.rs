//! Explicit congestion notification: marks instead of losses.
//!
//! RFC 3168, sections 6.1.1 to 6.1.5: both ends agree in the handshake; data sent for the first time is ECN-capable,
//! retransmissions, probes and pure ACKs are not; the receiver echoes a mark (ECE) until the sender says that it has reduced
//! its window (CWR); the sender reduces at most once per window. DCC, section IV, needs the marks counted: there each marked
//! segment is echoed by one ACK, at once, and the window does not react ("disable ECN induced CWND adaptation"). CWR is
//! sent in either form.

use super::segment::Segment;
use crate::about::Named;
use crate::flags::Flags;
use meshpace_core::words;

/// Use of ECN by a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Config {
    /// Not at all.
    Off,
    /// ECN-capable data.
    On {
        /// Echo of marks by the receiver.
        echo: Echo,
        /// True if the sender halves its window for an echo, as for a loss (RFC 3168, section 6.1.2).
        reaction: bool,
    },
}

/// Echo of marks by the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    /// One ACK with an echo, at once, for each marked segment (DCC).
    PerMark,
    /// In every ACK until the sender has reduced its window (RFC 3168, section 6.1.3).
    Latched,
}

words! { Echo: "latched" = Latched, "per-mark" = PerMark }

/// ECN as the RFC has it.
pub const ECN: Named<Config> = Named {
    name: "ecn",
    description: "explicit congestion notification, a mark taken as a loss",
    source: "RFC 3168",
    config: || Config::RFC_3168,
};

impl Config {
    /// ECN as DCC needs it.
    pub const DCC: Config = Config::On { echo: Echo::PerMark, reaction: false };
    /// ECN as the RFC has it.
    pub const RFC_3168: Config = Config::On { echo: Echo::Latched, reaction: true };

    /// True if the connection asks for ECN.
    pub fn is_on(self) -> bool {
        self != Config::Off
    }

    /// The flags that a SYN adds (RFC 3168, section 6.1.1).
    pub fn syn_flags(self) -> Flags {
        if self.is_on() { Flags::ECE.with(Flags::CWR) } else { Flags::NONE }
    }

    /// True if a SYN-ACK agrees.
    pub fn agreed_by(self, syn_ack: &Segment) -> bool {
        self.is_on() && syn_ack.flags.has(Flags::ECE) && !syn_ack.flags.has(Flags::CWR)
    }
}

/// The sender's side.
#[derive(Clone, Debug)]
pub struct Reaction {
    config: Config,
    /// True if both ends agreed on ECN.
    on: bool,
    /// The window has been reduced, or a mark has come back: the next new segment says so.
    cwr_due: bool,
    /// Echoes count again once this offset is acknowledged.
    counts_from: u64,
}

impl Reaction {
    /// Before the handshake.
    pub fn new(config: Config) -> Reaction {
        Reaction { config, on: false, cwr_due: false, counts_from: 0 }
    }

    /// A SYN-ACK arrived.
    pub fn on_syn_ack(&mut self, segment: &Segment) {
        self.on = self.config.agreed_by(segment);
    }

    /// True if both ends agreed on ECN.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// An ACK up to `ack` echoes a mark. Whether the window is to be reduced: as for a loss, once per window of data, and
    /// not while a loss is repaired (RFC 3168, section 6.1.2).
    pub fn on_echo(&mut self, ack: u64, recovering: bool) -> bool {
        if !matches!(self.config, Config::On { reaction: true, .. }) {
            self.cwr_due = true;
            return false;
        }
        ack >= self.counts_from && !recovering
    }

    /// The window was reduced, for whatever reason, when everything before `sent_end` had been sent.
    pub fn on_reduction(&mut self, sent_end: u64) {
        self.cwr_due = self.on;
        self.counts_from = sent_end.saturating_add(1);
    }

    /// The flags that a new data segment adds.
    pub fn data_flags(&mut self) -> Flags {
        if core::mem::take(&mut self.cwr_due) { Flags::CWR } else { Flags::NONE }
    }
}

/// The receiver's side.
#[derive(Clone, Debug)]
pub struct Echoing {
    config: Config,
    /// True if the sender's SYN asked for ECN and this end agrees.
    on: bool,
    /// True if the next ACK carries an echo.
    pending: bool,
}

impl Echoing {
    /// Before the handshake.
    pub fn new(config: Config) -> Echoing {
        Echoing { config, on: false, pending: false }
    }

    /// A SYN arrived.
    pub fn on_syn(&mut self, syn: &Segment) {
        self.on = self.config.is_on() && syn.flags.has(Flags::ECE.with(Flags::CWR));
    }

    /// A data segment arrived, marked or not. Whether an ACK has to leave at once.
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

    /// The flags an ACK adds.
    pub fn ack_flags(&mut self) -> Flags {
        if !self.pending {
            return Flags::NONE;
        }
        if matches!(self.config, Config::On { echo: Echo::PerMark, .. }) {
            self.pending = false;
        }
        Flags::ECE
    }

    /// The flags a SYN-ACK adds.
    pub fn syn_ack_flags(&self) -> Flags {
        if self.on { Flags::ECE } else { Flags::NONE }
    }
}
