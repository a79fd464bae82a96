//! Pacing rules of one file each: from what a sender measures to the time between two segments.
//!
//! A rule is a state machine. It is told of samples and ACKs and asked for the interval; the gates (`earliest_send`, `free_running`)
//! hold segments back for that time. A file in this folder and a line in the list below make a rule; the line
//! also makes it a named transport (NewReno with this pacing) and a `pacing.kind` of scenarios, parameters included.
//! `super::custom` is for rules of a program that uses this crate. `docs/new-pacing-rule.md` shows how to add one.

pub use crate::about::About;
pub use meshpace_core::parameter;

use crate::about;
use crate::pacing::Sample;

/// Every rule: its file and the type in it.
macro_rules! every_rule {
    ($then:ident) => {
        $then! {
            longest_rtt::LongestRtt,
            aggregation_level::AggregationLevel,
        }
    };
}
pub(crate) use every_rule;

/// A pacing rule.
pub trait Rule: Sized {
    /// Its name and its parameters.
    const ABOUT: About;

    /// Nothing known yet. `parameters` are in the order of [`About::parameters`] and in their ranges.
    fn new(parameters: &[f64]) -> Self;

    /// An ACK gave a measurement (not of a segment that was sent twice).
    fn on_sample(&mut self, sample: &Sample);

    /// An ACK arrived at a TCP, with an echoed congestion mark or not; its window may be in slow start. TPA has no marks.
    fn on_ack(&mut self, _marked: bool, _slow_start: bool) {}

    /// The time between two segments from now on, seconds; 0 or less: as the window allows.
    fn interval(&self) -> f64;
}

macro_rules! define {
    ($($module:ident::$Rule:ident,)*) => {
        $(pub mod $module;)*

        about::kinds!(Rule: $($module::$Rule,)*);

        /// A rule at work.
        #[derive(Clone, Debug)]
        pub enum State {
            $(#[doc = concat!("[`", stringify!($module), "::", stringify!($Rule), "`].")] $Rule($module::$Rule),)*
        }

        impl State {
            /// Nothing known yet.
            pub fn new(config: &Config) -> State {
                let parameters = config.parameters();
                match config.kind() {
                    $(Kind::$Rule => State::$Rule(Rule::new(parameters)),)*
                }
            }

            /// Takes a measurement.
            pub fn on_sample(&mut self, sample: &Sample) {
                match self {
                    $(State::$Rule(rule) => rule.on_sample(sample),)*
                }
            }

            /// An ACK arrived, with an echoed mark or not.
            pub fn on_ack(&mut self, marked: bool, slow_start: bool) {
                match self {
                    $(State::$Rule(rule) => rule.on_ack(marked, slow_start),)*
                }
            }

            /// The time between two segments, seconds.
            pub fn interval(&self) -> f64 {
                match self {
                    $(State::$Rule(rule) => rule.interval(),)*
                }
            }
        }
    };
}

every_rule!(define);

/// A rule with the values of its parameters.
pub type Config = about::Config<Kind>;
