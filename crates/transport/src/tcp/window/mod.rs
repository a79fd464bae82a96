//! Window rules: the growth of the congestion window, its reduction after a loss, and its limits.
//!
//! A rule implements [`Rule`], whose default methods are those of RFC 5681. The rules of the papers
//! have parameters of several kinds, which `config` lists. A rule of one file has only numbers as
//! parameters. Its file in this folder and a line in the list below make it a `window.kind` of
//! scenarios, including its parameters. `docs/new-window-rule.md` builds such a rule step by step.

mod base;
#[cfg(test)]
mod bottleneck;
mod byte_counting;
mod config;
mod congestion_window;
mod constant;
mod cubic;
mod few;
mod hop_limit;
mod newreno;
mod rule;

pub use crate::about::About;
pub use base::Base;
pub use byte_counting::{ABC, ByteCounting, LIMIT};
pub use config::{CUBIC, CWL, CWL_H4, Config, FEW};
pub use congestion_window::Window;
pub use constant::Constant;
pub use cubic::{Cubic, CubicConfig};
pub use few::{Few, increase as few_increase};
pub use hop_limit::HopRule;
pub use meshpace_core::parameter;
pub use newreno::NewReno;
pub use rule::{Ack, Described, Rule};

use crate::about;

/// All rules: those of the papers, then those of one file, each with the type in it.
macro_rules! every_rule {
    ($then:ident) => {
        $then! {
            [NewReno(NewReno), HopLimit(HopRule), Few(Few), Constant(Constant), Cubic(Cubic)]
            gaimd::Gaimd,
            copa::Copa,
            bbr::Bbr,
        }
    };
}

macro_rules! define {
    ([$($Published:ident($State:ident)),*] $($module:ident::$Rule:ident,)*) => {
        $(pub mod $module;)*

        about::kinds!(Described: $($module::$Rule,)*);

        /// State of one of the rules.
        #[derive(Clone, PartialEq, Debug)]
        enum State {
            $($Published($State),)*
            $($Rule($module::$Rule),)*
        }

        impl State {
            /// Creates a rule of one file, before any loss.
            fn one_file(config: &OneFile) -> State {
                match config.kind() {
                    $(Kind::$Rule => State::$Rule(Described::new(config.parameters())),)*
                }
            }
        }

        impl Rule for State {
            fn on_hops(&mut self, base: &mut Base, hops: u8, max_window: u32) {
                match self {
                    $(State::$Published(rule) => rule.on_hops(base, hops, max_window),)*
                    $(State::$Rule(rule) => rule.on_hops(base, hops, max_window),)*
                }
            }

            fn restart(&mut self, base: &mut Base, segments: u32) {
                match self {
                    $(State::$Published(rule) => rule.restart(base, segments),)*
                    $(State::$Rule(rule) => rule.restart(base, segments),)*
                }
            }

            fn on_ack(&mut self, base: &mut Base, ack: &Ack) {
                match self {
                    $(State::$Published(rule) => rule.on_ack(base, ack),)*
                    $(State::$Rule(rule) => rule.on_ack(base, ack),)*
                }
            }

            fn on_counted_ack(&mut self, base: &mut Base, step: f64, ack: &Ack) {
                match self {
                    $(State::$Published(rule) => rule.on_counted_ack(base, step, ack),)*
                    $(State::$Rule(rule) => rule.on_counted_ack(base, step, ack),)*
                }
            }

            fn on_fast_retransmit(&mut self, base: &mut Base, inflation: u32) {
                match self {
                    $(State::$Published(rule) => rule.on_fast_retransmit(base, inflation),)*
                    $(State::$Rule(rule) => rule.on_fast_retransmit(base, inflation),)*
                }
            }

            fn on_timeout(&mut self, base: &mut Base, inflation: u32) {
                match self {
                    $(State::$Published(rule) => rule.on_timeout(base, inflation),)*
                    $(State::$Rule(rule) => rule.on_timeout(base, inflation),)*
                }
            }

            fn interval(&self, base: &Base) -> f64 {
                match self {
                    $(State::$Published(rule) => rule.interval(base),)*
                    $(State::$Rule(rule) => rule.interval(base),)*
                }
            }

            fn deflate(&mut self, base: &mut Base, segments: u32) {
                match self {
                    $(State::$Published(rule) => rule.deflate(base, segments),)*
                    $(State::$Rule(rule) => rule.deflate(base, segments),)*
                }
            }
        }
    };
}

every_rule!(define);

/// A rule of one file and the values of its parameters.
pub type OneFile = about::Config<Kind>;
