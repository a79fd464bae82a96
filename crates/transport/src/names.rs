//! Named transports: each is a triple of pieces with its parameters.

use crate::pacing::{self, AdaptiveConfig};
use crate::tcp::{self, window};
use crate::{Config, udp};

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

const TABLE: &[Entry] = &[
    Entry {
        name: "newreno",
        description: "TCP NewReno, every segment acknowledged, no pacing",
        source: "RFC 6582, RFC 5681, RFC 3042; parameters of ns-2.35",
        build: || Config::Tcp(tcp::Config::default()),
    },
    Entry {
        name: "cwl",
        description: "NewReno with its window limited to 3 segments, the limit for chains of 7 to 10 hops",
        source: "Chen, Xue, Nahrstedt, ICC 2003; AP05, section 5",
        build: || Config::Tcp(tcp::Config { window: window::Config::Clamp { segments: 3 }, ..tcp::Config::default() }),
    },
    Entry {
        name: "tcp-ap",
        description: "TCP with adaptive pacing as the paper describes it",
        source: "AP05, sections 3 and 4",
        build: || Config::Tcp(tcp_ap()),
    },
    Entry {
        name: "tcp-ap-released",
        description: "TCP with adaptive pacing as in the agent its authors released",
        source: "the AP05 authors' ns-2 agent, September 2005",
        build: || Config::Tcp(tcp_ap_released()),
    },
    Entry {
        name: "udp",
        description: "UDP at the rate the application writes",
        source: "RFC 768; header size of ns-2",
        build: || Config::Udp(udp::Config::default()),
    },
];

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
    TABLE
}

/// The parameters of the transport called `name`.
pub fn lookup(name: &str) -> Option<Config> {
    TABLE.iter().find(|entry| entry.name == name).map(|entry| (entry.build)())
}
