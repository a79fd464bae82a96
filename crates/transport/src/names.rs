//! Named transports: each is a triple of pieces with its parameters.
//!
//! A name may be extended by `+` and one of [`modifiers`]: `few+delack` is `few` whose receiver delays its ACKs. The rows
//! of the table that have a `+` are those the papers name; the rule builds them like any other.

use crate::describe::describe;
use crate::pacing::rules::{self, Kind, every_rule};
use crate::pacing::{self, AdaptiveConfig, DccConfig, Dispersion};
use crate::tcp::window::{self, CubicConfig, HopRule};
use crate::tcp::{self, ack};
use crate::{Config, tpa, train, udp};
use alloc::string::String;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Builds its parameters.
    pub build: fn() -> Config,
}

impl Entry {
    /// Its pieces and parameters in one line.
    pub fn parameters(&self) -> String {
        describe(&(self.build)())
    }
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
        description: "NewReno with one ACK for 1 to 4 segments, more as the transfer goes on",
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
    Entry {
        name: "cwl",
        description: "NewReno with its window limited by the number of hops, by table: 3 segments for 7 to 10 hops",
        source: "Chen, Xue, Nahrstedt, ICC 2003; AP05, section 5",
        build: || windowed(window::Config::HopLimit(HopRule::Table)),
    },
    Entry {
        name: "cwl-h4",
        description: "NewReno with its window limited to a quarter of the hops",
        source: "AP05, sections 4.3 and 5: a path of h hops carries h/4 packets",
        build: || windowed(window::Config::HopLimit(HopRule::Quarter)),
    },
    Entry {
        name: "few",
        description: "NewReno whose window grows by 0.01 segments per round trip",
        source: "Nahm, Helmy, Kuo, MobiHoc 2005; DCC, section 5",
        build: || windowed(window::Config::Few { increment: 0.01 }),
    },
    Entry {
        name: "cubic",
        description: "CUBIC, what most of today's hosts run",
        source: "RFC 9438, without HyStart++",
        build: || windowed(window::Config::Cubic(CubicConfig::default())),
    },
    Entry {
        name: "tcp-ap",
        description: "TCP with adaptive pacing as the paper describes it",
        source: "AP05, section 4",
        build: || Config::Tcp(tcp_ap()),
    },
    Entry {
        name: "tcp-ap-released",
        description: "TCP with adaptive pacing as in the agent its authors released",
        source: "the AP05 authors' ns-2 agent, September 2005",
        build: || Config::Tcp(tcp_ap_released()),
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
    Entry {
        name: "tpa-2",
        description: "TPA with a window of 2 segments, one ACK for 2 segments",
        source: "TPA, section 3",
        build: || Config::Tpa(tpa::names::plain(2, tpa::ack::Rule::EveryOther)),
    },
    Entry {
        name: "tpa-3",
        description: "TPA with a window of 3 segments, one ACK for 2 segments",
        source: "TPA, section 3",
        build: || Config::Tpa(tpa::names::plain(3, tpa::ack::Rule::EveryOther)),
    },
    Entry {
        name: "tpa*-2",
        description: "TPA with a window of 2 segments, one ACK for 2 segments",
        source: "TPA, section 3",
        build: || Config::Tpa(tpa::names::plain(2, tpa::ack::Rule::EveryWindow)),
    },
    Entry {
        name: "tpa*-3",
        description: "TPA with a window of 3 segments, one ACK for 3 segments",
        source: "TPA, section 3",
        build: || Config::Tpa(tpa::names::plain(3, tpa::ack::Rule::EveryWindow)),
    },
    Entry {
        name: "tpa-ap-2",
        description: "TPA with a window of 2 segments, one ACK for 2 segments, adaptive pacing",
        source: "TPA, sections 3 and 5.2; AP05",
        build: || Config::Tpa(tpa::names::paced(2, tpa::ack::Rule::EveryOther)),
    },
    Entry {
        name: "tpa-ap-3",
        description: "TPA with a window of 3 segments, one ACK for 2 segments, adaptive pacing",
        source: "TPA, sections 3 and 5.2; AP05",
        build: || Config::Tpa(tpa::names::paced(3, tpa::ack::Rule::EveryOther)),
    },
    Entry {
        name: "tpa*-ap-2",
        description: "TPA with a window of 2 segments, one ACK for 2 segments, adaptive pacing",
        source: "TPA, sections 3 and 5.2; AP05",
        build: || Config::Tpa(tpa::names::paced(2, tpa::ack::Rule::EveryWindow)),
    },
    Entry {
        name: "tpa*-ap-3",
        description: "TPA with a window of 3 segments, one ACK for 3 segments, adaptive pacing",
        source: "TPA, sections 3 and 5.2; AP05",
        build: || Config::Tpa(tpa::names::paced(3, tpa::ack::Rule::EveryWindow)),
    },
    Entry {
        name: "tcp-ap-mad",
        description: "TCP-AP with the mean absolute deviation of the RTT instead of its standard deviation",
        source: "AP05, with the measure that the released agent prefers",
        build: || paced(AdaptiveConfig { dispersion: Dispersion::MadRtt, ..AdaptiveConfig::paper() }),
    },
    Entry {
        name: "tcp-ap-sync",
        description: "TCP-AP with synchronized clocks: the receiver echoes the one-way delay",
        source: "AP05, section 5, figure 15",
        build: || paced(AdaptiveConfig::synchronized()),
    },
    Entry {
        name: "tcp-ap-sync+dyn-delack",
        description: "TCP-AP with synchronized clocks and one ACK for 1 to 4 segments",
        source: "AP05, section 5, figure 15",
        build: || modified("tcp-ap-sync+dyn-delack"),
    },
    Entry {
        name: "tcp-ap-oid",
        description: "TCP-AP paced by the out-of-interference delay, its range estimated from received power",
        source: "AP10, sections 3 and 4; for two-ray ground, exponent 4, threshold -78.07 dBm",
        build: || paced(AdaptiveConfig::out_of_interference()),
    },
    Entry {
        name: "dcc",
        description: "TCP whose rate follows the congestion marks of the link layer; the window ignores them",
        source: "DCC, section 4",
        build: || Config::Tcp(dcc()),
    },
    Entry {
        name: "quiet-train",
        description: "trains of paced segments with silence between, one ACK per train; both ends have to know it",
        source: "docs/quiet-trains.md",
        build: || Config::Train(train::Config::default()),
    },
    Entry {
        name: "quiet-train+marks",
        description: "quiet trains that take marks of relays for delay, for links with a marker",
        source: "docs/quiet-trains.md",
        build: || Config::Train(train::Config::heeding_marks()),
    },
    Entry {
        name: "udp",
        description: "UDP at the rate the application writes",
        source: "RFC 768; header size of ns-2",
        build: || Config::Udp(udp::Config::default()),
    },
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

/// NewReno with each of the pacing rules of one file.
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

/// What a name may be extended by.
#[derive(Clone, Copy, Debug)]
pub struct Modifier {
    /// The word after the `+`.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Changes a TCP's parameters.
    pub apply: fn(&mut tcp::Config),
}

const MODIFIERS: &[Modifier] = &[
    Modifier {
        name: "sack",
        description: "selective acknowledgements (RFC 2018, RFC 6675)",
        apply: |config| config.sack = true,
    },
    Modifier {
        name: "abc",
        description: "a window that grows by what ACKs cover, not by their number (RFC 3465, L = 2)",
        apply: |config| config.byte_counting = Some(window::LIMIT),
    },
    Modifier {
        name: "ecn",
        description: "explicit congestion notification, a mark taken as a loss (RFC 3168)",
        apply: |config| config.ecn = tcp::ecn::Config::RFC_3168,
    },
    Modifier {
        name: "delack",
        description: "one ACK for two segments or after 100 ms (RFC 1122)",
        apply: |config| config.ack = ack::Config::Delayed(ack::Delayed::default()),
    },
    Modifier {
        name: "dyn-delack",
        description: "one ACK for 1 to 4 segments or after 100 ms (Altman and Jimenez)",
        apply: |config| config.ack = ack::Config::Dynamic(ack::Dynamic::default()),
    },
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
    tcp::Config {
        pacing: pacing::Config::Dcc(DccConfig::default()),
        ecn: tcp::ecn::Config::DCC,
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

fn tcp_ap() -> tcp::Config {
    tcp::Config { pacing: pacing::Config::Adaptive(AdaptiveConfig::paper()), ..tcp::Config::default() }
}

fn tcp_ap_released() -> tcp::Config {
    let mut config =
        tcp::Config { pacing: pacing::Config::Adaptive(AdaptiveConfig::released()), ..tcp::Config::default() };
    config.rto.backoff = false;
    config
}

/// All named transports.
pub fn table() -> &'static [Entry] {
    &TABLE
}

/// What any name of a TCP may be extended by.
pub fn modifiers() -> &'static [Modifier] {
    MODIFIERS
}

/// The parameters of the transport called `name`.
pub fn lookup(name: &str) -> Option<Config> {
    match TABLE.iter().find(|entry| entry.name == name) {
        Some(entry) => Some((entry.build)()),
        None => modify(name),
    }
}

/// The transport of a row whose name follows from others.
fn modified(name: &str) -> Config {
    modify(name).unwrap_or_else(|| Config::Tcp(tcp::Config::default()))
}

/// Builds a name with a `+` from what stands before its last one.
fn modify(name: &str) -> Option<Config> {
    let (base, word) = name.rsplit_once('+')?;
    let modifier = MODIFIERS.iter().find(|modifier| modifier.name == word)?;
    let mut config = lookup(base)?;
    let Config::Tcp(tcp) = &mut config else { return None };
    (modifier.apply)(tcp);
    Some(config)
}
