//! Named transports: each name stands for a combination of pieces and their parameters.
//!
//! If a transport differs from the defaults in one piece, its name is in the file of that piece
//! ([`Named`](crate::about::Named)). This file has the names of combinations. A name may be
//! extended by `+` and one of [`modifiers`]: `few+delack` is `few` with a receiver that delays its
//! ACKs. The rows of the table with a `+` are those that the papers name; they are built in the
//! same way.

use crate::pacing::rules::{self, Kind, every_rule};
use crate::pacing::{self, AdaptiveConfig, DccConfig, Sampling, adaptive};
use crate::tcp::{self, ack, ecn, recovery, window};
use crate::tpa::names as tpa;
use crate::{Config, flush, train, udp};
use alloc::string::String;
use meshpace_core::Duration;

/// A row of the table of named transports.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name in scenario files.
    pub name: &'static str,
    /// Description in one line, for people.
    pub description: &'static str,
    /// Source of the transport: paper or RFC, and section.
    pub source: &'static str,
    /// Function that builds the parameters of the transport.
    pub build: fn() -> Config,
}

impl Entry {
    /// Describes the pieces and parameters of the transport in one line.
    pub fn parameters(&self) -> String {
        (self.build)().describe()
    }
}

/// Builds the row of a piece. `$transport` makes a transport of the piece.
macro_rules! piece {
    ($transport:path, $piece:path) => {
        Entry {
            name: $piece.name,
            description: $piece.description,
            source: $piece.source,
            build: || $transport(($piece.config)()),
        }
    };
}

const PUBLISHED: &[Entry] = &[
    Entry {
        name: "newreno",
        description: "TCP NewReno, every segment acknowledged, no pacing",
        source: "RFC 6582, RFC 5681, RFC 3042; parameters of ns-2.35",
        build: || Config::Tcp(tcp::Config::default()),
    },
    Entry {
        name: "newreno+delack",
        description: "NewReno with delayed ACKs",
        source: "RFC 1122, section 4.2.3.2, timer 100 ms; TPA, section 5 (there TCP-uc)",
        build: || modified("newreno+delack"),
    },
    Entry {
        name: "newreno+dyn-delack",
        description: "NewReno with one ACK for 1 to 4 segments, which grows during the transfer",
        source: "Altman, Jimenez, PWC 2003; AP05, section 5",
        build: || modified("newreno+dyn-delack"),
    },
    Entry {
        name: "tcp-2",
        description: "NewReno limited to 2 segments, delayed ACKs",
        source: "TPA, section 5",
        build: || Config::Tcp(clamped(2)),
    },
    Entry {
        name: "tcp-3",
        description: "NewReno limited to 3 segments, delayed ACKs",
        source: "TPA, section 5",
        build: || Config::Tcp(clamped(3)),
    },
    piece!(windowed, window::CWL),
    piece!(windowed, window::CWL_H4),
    piece!(windowed, window::FEW),
    piece!(windowed, window::CUBIC),
    Entry {
        name: "newreno+tack",
        description: "NewReno with TACK's rule of acknowledging",
        source: "Li et al., SIGCOMM 2020, section 4.1",
        build: || modified("newreno+tack"),
    },
    Entry {
        name: "tcp-daa",
        description: "NewReno limited to 4 segments, one ACK for up to 4 segments in order",
        source: "de Oliveira, Braun, INFOCOM 2005",
        build: || Config::Tcp(daa()),
    },
    Entry {
        name: "copa",
        description: "Copa without its competitive mode: a rate inverse to the queueing delay",
        source: "Arun, Balakrishnan, NSDI 2018, section 2.1",
        build: || modelled(window::Kind::Copa),
    },
    Entry {
        name: "bbr",
        description: "BBR version 1, which estimates the bottleneck rate and the shortest round trip",
        source: "Cardwell et al., ACM Queue 14(5), 2016",
        build: || modelled(window::Kind::Bbr),
    },
    piece!(paced, adaptive::TCP_AP),
    Entry {
        name: "tcp-ap-released",
        description: "TCP with adaptive pacing as in the agent that its authors released",
        source: "the AP05 authors' ns-2 agent, September 2005",
        build: || Config::Tcp(tcp_ap_released()),
    },
    Entry {
        name: "tcp-ap-released-karn",
        description: "the released agent with the paper's rule for RTT samples (Karn); AP05 is judged by this reading",
        source: "the AP05 authors' ns-2 agent, September 2005; AP05, section 4.5",
        build: || Config::Tcp(tcp_ap_released_karn()),
    },
    Entry {
        name: "tcp-ap+delack",
        description: "TCP-AP with delayed ACKs",
        source: "AP05; RFC 1122; TPA, section 5",
        build: || modified("tcp-ap+delack"),
    },
    Entry {
        name: "tcp-ap+dyn-delack",
        description: "TCP-AP with one ACK for 1 to 4 segments",
        source: "AP05, section 5",
        build: || modified("tcp-ap+dyn-delack"),
    },
    piece!(Config::Tpa, tpa::TPA_2),
    piece!(Config::Tpa, tpa::TPA_3),
    piece!(Config::Tpa, tpa::TPA_STAR_2),
    piece!(Config::Tpa, tpa::TPA_STAR_3),
    piece!(Config::Tpa, tpa::TPA_AP_2),
    piece!(Config::Tpa, tpa::TPA_AP_3),
    piece!(Config::Tpa, tpa::TPA_STAR_AP_2),
    piece!(Config::Tpa, tpa::TPA_STAR_AP_3),
    piece!(paced, adaptive::TCP_AP_MAD),
    piece!(paced, adaptive::TCP_AP_SYNC),
    Entry {
        name: "tcp-ap-sync+dyn-delack",
        description: "TCP-AP with synchronized clocks and one ACK for 1 to 4 segments",
        source: "AP05, section 5, figure 15",
        build: || modified("tcp-ap-sync+dyn-delack"),
    },
    piece!(paced, adaptive::TCP_AP_OID),
    Entry {
        name: "dcc",
        description: "TCP whose rate follows the congestion marks of the link layer; the window ignores them",
        source: "DCC, section 4",
        build: || Config::Tcp(dcc()),
    },
    piece!(Config::Flush, flush::FLUSH),
    piece!(Config::Train, train::QUIET_TRAIN),
    piece!(Config::Train, train::QUIET_TRAIN_MARKS),
    piece!(Config::Train, train::QUIET_TRAIN_COMPETITIVE),
    piece!(Config::Train, train::QUIET_TRAIN_CONTENDING),
    Entry {
        name: "quiet-train-solo",
        description: "trains of segment pairs with silence between them; works with the receiver of any TCP",
        source: "docs/quiet-trains.md",
        build: || Config::Tcp(solo()),
    },
    Entry {
        name: "paced-pairs",
        description: "the pacing of quiet-train-solo without the silence after a train",
        source: "docs/quiet-trains.md: what silence gives",
        build: || Config::Tcp(pairs(ack::Delayed::default())),
    },
    Entry {
        name: "paced-pairs-8",
        description: "paced pairs of the same kind with one ACK for eight segments or after 0.5 s",
        source: "docs/quiet-trains.md: what silence gives",
        build: || Config::Tcp(pairs(THINNED)),
    },
    piece!(Config::Udp, udp::UDP),
];

macro_rules! entries {
    ($($module:ident::$Rule:ident,)*) => {
        &[$(Entry {
            name: Kind::$Rule.about().name,
            description: Kind::$Rule.about().description,
            source: Kind::$Rule.about().source,
            build: || ruled(Kind::$Rule),
        },)*]
    };
}

/// Rows of NewReno with each of the pacing rules that consist of one file.
const RULED: &[Entry] = every_rule!(entries);

static TABLE: [Entry; PUBLISHED.len() + RULED.len()] = {
    let mut table = [PUBLISHED[0]; PUBLISHED.len() + RULED.len()];
    let mut place = 0;
    while place < table.len() {
        table[place] = if place < PUBLISHED.len() { PUBLISHED[place] } else { RULED[place - PUBLISHED.len()] };
        place += 1;
    }
    table
};

/// Suffix that modifies a named TCP.
#[derive(Clone, Copy, Debug)]
pub struct Modifier {
    /// The word after the `+`.
    pub name: &'static str,
    /// Description in one line, for people.
    pub description: &'static str,
    /// Source of the modifier: paper or RFC, and section.
    pub source: &'static str,
    /// Function that changes the parameters of a TCP.
    pub apply: fn(&mut tcp::Config),
}

/// Builds the modifier of a piece. `$change` puts the piece into `$config`, the parameters of a
/// TCP.
macro_rules! modifier {
    ($piece:path, |$config:ident, $value:ident| $change:expr) => {
        Modifier {
            name: $piece.name,
            description: $piece.description,
            source: $piece.source,
            apply: |$config| {
                let $value = ($piece.config)();
                $change;
            },
        }
    };
}

const MODIFIERS: &[Modifier] = &[
    modifier!(recovery::SACK, |tcp, sack| tcp.sack = sack),
    modifier!(window::ABC, |tcp, limit| tcp.byte_counting = Some(limit)),
    modifier!(ecn::ECN, |tcp, ecn| tcp.ecn = ecn),
    modifier!(ack::DELACK, |tcp, ack| tcp.ack = ack),
    modifier!(ack::DYN_DELACK, |tcp, ack| tcp.ack = ack),
    modifier!(ack::TACK, |tcp, ack| tcp.ack = ack),
    modifier!(ack::DAA, |tcp, ack| tcp.ack = ack),
    modifier!(ack::LINUX_DELACK, |tcp, ack| tcp.ack = ack),
];

fn windowed(window: window::Config) -> Config {
    Config::Tcp(tcp::Config { window, ..tcp::Config::default() })
}

fn paced(pacing: AdaptiveConfig) -> Config {
    Config::Tcp(tcp::Config { pacing: pacing::Config::Adaptive(pacing), ..tcp::Config::default() })
}

fn ruled(kind: Kind) -> Config {
    Config::Tcp(tcp::Config { pacing: pacing::Config::Rule(rules::Config::new(kind)), ..tcp::Config::default() })
}

fn dcc() -> tcp::Config {
    tcp::Config { pacing: pacing::Config::Dcc(DccConfig::default()), ecn: ecn::Config::DCC, ..tcp::Config::default() }
}

/// Parameters of `quiet-train-solo`: a constant window that does not limit the pacing, SACK, and a
/// retransmission timer that allows for delayed ACKs.
fn solo() -> tcp::Config {
    tcp::Config {
        window: window::Config::Constant { segments: 64 },
        pacing: pacing::Config::Trains(train::solo::Config::default()),
        ack: ack::Config::Delayed(ack::Delayed::default()),
        sack: true,
        rto: tcp::rtt::Config {
            initial: Duration::from_secs(1),
            min: Duration::from_secs(1),
            max: Duration::from_secs(2),
            sampling: tcp::rtt::Sampling::Timestamps,
            ..tcp::rtt::Config::default()
        },
        ..tcp::Config::default()
    }
}

/// Delayed ACKs with one ACK for eight segments.
const THINNED: ack::Delayed = ack::Delayed { segments: 8, timer: Duration::from_millis(500), linux_window_2: false };

/// The pacing of `quiet-train-solo` without the silence after a train.
fn pairs(delayed: ack::Delayed) -> tcp::Config {
    let trains = train::solo::Config { silence: false, ..train::solo::Config::default() };
    // Without the silence a whole window may be in flight when the path stops delivering. So the
    // back-off of the timer has the usual upper limit of TCP.
    let rto = tcp::rtt::Config { max: tcp::rtt::Config::default().max, ..solo().rto };
    tcp::Config { pacing: pacing::Config::Trains(trains), ack: ack::Config::Delayed(delayed), rto, ..solo() }
}

/// TCP with a window rule that asks for a rate, and with SACK.
fn modelled(kind: window::Kind) -> Config {
    let window = window::Config::OneFile(window::OneFile::new(kind));
    Config::Tcp(tcp::Config { window, pacing: pacing::Config::Window, sack: true, ..tcp::Config::default() })
}

fn daa() -> tcp::Config {
    tcp::Config {
        window: window::Config::Clamp { segments: 4 },
        ack: ack::Config::Adaptive(ack::Adaptive::default()),
        ..tcp::Config::default()
    }
}

fn clamped(segments: u32) -> tcp::Config {
    tcp::Config {
        window: window::Config::Clamp { segments },
        ack: ack::Config::Delayed(ack::Delayed::default()),
        ..tcp::Config::default()
    }
}

/// The reading of AP05 that `meshpace reproduce` uses for its verdict.
fn tcp_ap_released_karn() -> tcp::Config {
    let adaptive = AdaptiveConfig { sampling: Sampling::NewDataKarn, ..AdaptiveConfig::released() };
    tcp::Config { pacing: pacing::Config::Adaptive(adaptive), ..tcp_ap_released() }
}

fn tcp_ap_released() -> tcp::Config {
    let mut config =
        tcp::Config { pacing: pacing::Config::Adaptive(AdaptiveConfig::released()), ..tcp::Config::default() };
    config.rto.backoff = false;
    config
}

/// The table of all named transports.
pub fn table() -> &'static [Entry] {
    &TABLE
}

/// The suffixes that may follow the name of any TCP.
pub fn modifiers() -> &'static [Modifier] {
    MODIFIERS
}

/// The parameters of the transport called `name`; `None` if there is no such transport.
pub fn lookup(name: &str) -> Option<Config> {
    match TABLE.iter().find(|entry| entry.name == name) {
        Some(entry) => Some((entry.build)()),
        None => modify(name),
    }
}

/// Builds a row of the table whose name is another name with a suffix.
fn modified(name: &str) -> Config {
    modify(name).unwrap_or_else(|| Config::Tcp(tcp::Config::default()))
}

/// Builds the transport of a name with a `+`, from the name before the last `+` and the modifier
/// after it.
fn modify(name: &str) -> Option<Config> {
    let (base, word) = name.rsplit_once('+')?;
    let modifier = MODIFIERS.iter().find(|modifier| modifier.name == word)?;
    let mut config = lookup(base)?;
    let Config::Tcp(tcp) = &mut config else { return None };
    (modifier.apply)(tcp);
    Some(config)
}
