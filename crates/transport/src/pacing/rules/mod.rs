//! Pacing rules that consist of one file each. They compute the interval between two segments from
//! what a sender measures.
//!
//! A rule is a state machine. It takes samples and ACKs and returns the interval; the gates
//! (`earliest_send`, `free_running`) hold segments back for that time. To add a rule, add a file to
//! this folder and a line to the list below. The line also makes the rule a named transport
//! (NewReno with this pacing) and a `pacing.kind` of scenarios, including its parameters.
//! `super::custom` is for rules that a program which uses this crate defines.
//! `docs/new-pacing-rule.md` shows how to add a rule.

pub use crate::about::About;
pub use meshpace_core::parameter;

use crate::about;
use crate::pacing::Sample;

/// All rules: the file of each and the type in it.
macro_rules! every_rule {
    ($then:ident) => {
        $then! {
            longest_rtt::LongestRtt,
            aggregation_level::AggregationLevel,
        }
    };
}
pub(crate) use every_rule;

/// A pacing rule for one sender.
pub trait Rule: Sized {
    /// Name and parameters of the rule.
    const ABOUT: About;

    /// Creates the state before any measurement. `parameters` are in the order of
    /// [`About::parameters`] and within their ranges.
    fn new(parameters: &[f64]) -> Self;

    /// Takes the measurement that an ACK gave. ACKs of retransmitted segments give none.
    fn on_sample(&mut self, sample: &Sample);

    /// An ACK arrived at a TCP. `_marked` is true if the ACK echoes a congestion mark,
    /// `_slow_start` if the window is in slow start. TPA has no marks and does not call this
    /// method.
    fn on_ack(&mut self, _marked: bool, _slow_start: bool) {}

    /// Interval between two segments from now on, in seconds. If it is 0 or less, segments leave as
    /// the window allows.
    fn interval(&self) -> f64;
}

macro_rules! define {
    ($($module:ident::$Rule:ident,)*) => {
        $(pub mod $module;)*

        about::kinds!(Rule: $($module::$Rule,)*);

        /// State of one of the rules.
        #[derive(Clone, Debug)]
        pub enum State {
            $(#[doc = concat!("[`", stringify!($module), "::", stringify!($Rule), "`].")] $Rule($module::$Rule),)*
        }

        impl State {
            /// Creates the state of the configured rule, before any measurement.
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

            /// An ACK arrived; `marked` is true if it echoes a congestion mark.
            pub fn on_ack(&mut self, marked: bool, slow_start: bool) {
                match self {
                    $(State::$Rule(rule) => rule.on_ack(marked, slow_start),)*
                }
            }

            /// Interval between two segments, in seconds.
            pub fn interval(&self) -> f64 {
                match self {
                    $(State::$Rule(rule) => rule.interval(),)*
                }
            }
        }
    };
}

every_rule!(define);

/// A rule and the values of its parameters.
pub type Config = about::Config<Kind>;
