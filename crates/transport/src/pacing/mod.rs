//! Pacing: decides when the next segment that the window allows may leave. It does not depend on
//! TCP.

pub mod adaptive;
pub mod carrier_sense;
pub mod custom;
pub mod dcc;
pub mod dispersion;
pub mod earliest_send;
pub mod estimator;
pub mod free_running;
pub mod interval;
pub mod link_delay;
pub mod out_of_interference;
pub mod pacer;
pub mod rules;

pub use adaptive::{AdaptiveConfig, Dispersion, HopSource, Measure, RateLimit, Recovery, Sampling, Scaling, ShortPath};
pub use carrier_sense::{CarrierSense, PowerSource};
pub use dcc::DccConfig;
pub use earliest_send::Release;
pub use estimator::{Estimator, Sample};
pub use interval::Feedback;
pub use link_delay::{LinkDelay, RtsCts};
pub use out_of_interference::{OutOfInterference, Sensing};
pub use pacer::{Pacer, Supply};

use crate::train::solo;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use meshpace_core::parameter::{ParameterError, Parameters, Slots};

/// Kind of pacing that a sender uses.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// No pacing: segments leave as the window allows.
    None,
    /// Adaptive pacing of TCP-AP (AP05).
    Adaptive(AdaptiveConfig),
    /// A rate that echoed congestion marks control (DCC).
    Dcc(DccConfig),
    /// Trains of pairs with silence between the trains (docs/quiet-trains.md). Only TCP has it.
    Trains(solo::Config),
    /// The rate that the window rule asks for, if it asks for one. Only TCP has it.
    Window,
    /// A rule of one file.
    Rule(rules::Config),
    /// A rule of the program that uses this crate.
    Custom(custom::Config),
}

impl Parameters for Config {
    fn slots(&mut self) -> Slots<'_> {
        match self {
            Config::None | Config::Window | Config::Custom(_) => Slots::new(),
            Config::Adaptive(config) => config.slots(),
            Config::Dcc(config) => config.slots(),
            Config::Trains(config) => config.slots(),
            Config::Rule(config) => config.slots(),
        }
    }
}

impl Config {
    /// Every kind with its default parameters, and the name that scenarios use for it.
    pub fn kinds() -> Vec<(&'static str, Config)> {
        let mut kinds = vec![
            ("none", Config::None),
            ("adaptive", Config::Adaptive(AdaptiveConfig::default())),
            ("dcc", Config::Dcc(DccConfig::default())),
            ("trains", Config::Trains(solo::Config::default())),
            ("by-window", Config::Window),
        ];
        kinds.extend(rules::Kind::ALL.iter().map(|kind| (kind.about().name, Config::Rule(rules::Config::new(*kind)))));
        kinds
    }

    /// True if `other` is of the same kind, whatever its parameters.
    pub fn is_same_kind(&self, other: &Config) -> bool {
        match (self, other) {
            (Config::Rule(one), Config::Rule(other)) => one.kind() == other.kind(),
            _ => core::mem::discriminant(self) == core::mem::discriminant(other),
        }
    }

    /// Noun for this pacing, for use in a sentence.
    pub fn noun(&self) -> &'static str {
        match self {
            Config::None => "a sender without pacing",
            Config::Adaptive(_) => "adaptive pacing",
            Config::Dcc(_) => "pacing by marks",
            Config::Trains(_) => "pacing by trains",
            Config::Window => "pacing by the window rule",
            Config::Rule(_) | Config::Custom(_) => "pacing by this rule",
        }
    }

    /// True if the receiver has to echo one-way delays.
    pub fn needs_one_way_delay(&self) -> bool {
        matches!(self, Config::Adaptive(AdaptiveConfig { measure: Measure::OneWay, .. }))
    }

    /// The ACKs that give a sample.
    pub fn sampling(&self) -> Sampling {
        match self {
            Config::Adaptive(config) => config.sampling,
            _ => Sampling::NewDataKarn,
        }
    }

    /// Source of the number of hops.
    pub fn hop_source(&self) -> HopSource {
        match self {
            Config::Adaptive(config) => config.hops,
            _ => HopSource::RoutingTable,
        }
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is out of its range, with its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::None | Config::Window | Config::Custom(_) => Ok(()),
            Config::Adaptive(config) => config.check(),
            Config::Dcc(config) => config.check(),
            Config::Trains(config) => config.check(),
            Config::Rule(config) => config.check(),
        }
    }

    /// Describes the rule in a few words, for people.
    pub fn describe(&self) -> String {
        match self {
            Config::None => String::from("no pacing"),
            Config::Adaptive(config) => format!("paced by {}", config.describe()),
            Config::Dcc(config) => format!("paced by marks, alpha {}, beta {}", config.alpha, config.beta),
            Config::Trains(config) if config.silence => format!("in pairs, {}", config.control.describe()),
            Config::Trains(config) => format!("in pairs without silence, {}", config.control.describe()),
            Config::Window => String::from("paced by the window rule"),
            Config::Rule(config) => format!("paced by {}", config.describe()),
            Config::Custom(config) => format!("paced by {}", config.name()),
        }
    }
}
