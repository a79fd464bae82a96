//! Table of the window rules: their parameters, their names and the state that is built from them.

use super::{Base, Constant, Cubic, CubicConfig, Few, HopRule, Kind, NewReno, OneFile, State, Window, few};
use crate::about::Named;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use meshpace_core::parameter;
use meshpace_core::parameter::{Parameter, ParameterError, Parameters, Slot, Slots};

/// Default number of segments of a clamped window and of a constant window.
const USUAL_LIMIT: u32 = 3;

/// Rule that the congestion window follows.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// NewReno (RFC 6582, RFC 5681).
    NewReno,
    /// NewReno whose window never exceeds `segments` (TPA, section 5: TCP-2 and TCP-3; AP05,
    /// section 5).
    Clamp {
        /// The limit in segments, 1 or more.
        segments: u32,
    },
    /// NewReno with a limit of the window that depends on the number of hops (Chen, Xue, Nahrstedt,
    /// ICC 2003).
    HopLimit(HopRule),
    /// NewReno that grows by a fraction of a segment in congestion avoidance (TCP-FeW; DCC, section
    /// V).
    Few {
        /// Segments by which the window grows per round trip, above 0 and at most 1. Default 0.01
        /// (DCC, section V).
        increment: f64,
    },
    /// A window that no loss and no ACK changes (DCC, section V).
    Constant {
        /// Size of the window in segments, 1 or more.
        segments: u32,
    },
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
    /// A rule of one file.
    OneFile(OneFile),
}

/// Congestion window limit (CWL) from the table of hops.
pub const CWL: Named<Config> = Named {
    name: "cwl",
    description: "NewReno with a window limit by a table of hops, such as 3 segments for 7 to 10 hops",
    source: "Chen, Xue, Nahrstedt, ICC 2003; AP05, section 5",
    config: || Config::HopLimit(HopRule::Table),
};
/// Congestion window limit (CWL) of a quarter of the hops.
pub const CWL_H4: Named<Config> = Named {
    name: "cwl-h4",
    description: "NewReno with a window limit of a quarter of the hops",
    source: "AP05, sections 4.3 and 5: a path of h hops carries h/4 packets",
    config: || Config::HopLimit(HopRule::Quarter),
};
/// TCP-FeW, whose window grows by a fraction of a segment.
pub const FEW: Named<Config> = Named {
    name: "few",
    description: "NewReno whose window grows by 0.01 segments per round trip",
    source: "Nahm, Helmy, Kuo, MobiHoc 2005; DCC, section 5",
    config: || Config::Few { increment: few::INCREMENT },
};
/// CUBIC with the parameters of its RFC.
pub const CUBIC: Named<Config> = Named {
    name: "cubic",
    description: "CUBIC, the default of most hosts today",
    source: "RFC 9438, without HyStart++",
    config: || Config::Cubic(CubicConfig::default()),
};

/// Declaration of `segments`: the size of a constant window, or the limit of a clamped one.
static SEGMENTS: Parameter =
    parameter!(segments: u32 = USUAL_LIMIT => whole("segments", 1, 65535), Basic, "largest window");
/// Declaration of `rule`, by which the limit follows from the number of hops.
static RULE: Parameter = parameter!(rule: HopRule = HopRule::Table => choice(HopRule::WORDS), Expert, "rule that computes the window limit from the hops",
    "Chen et al., ICC 2003; AP05, section 5");
/// Declaration of `increment`, the growth of FeW.
static INCREMENT: Parameter = parameter!(increment: f64 = few::INCREMENT => number(0.0, 1.0).above(0.0), Expert,
    "growth of the window per round trip",
    "Nahm et al., MobiHoc 2005; DCC, section V");

impl Parameters for Config {
    fn slots(&mut self) -> Slots<'_> {
        match self {
            Config::NewReno => Slots::new(),
            Config::Clamp { segments } | Config::Constant { segments } => vec![Slot::new(&SEGMENTS, segments)],
            Config::HopLimit(rule) => vec![Slot::new(&RULE, rule)],
            Config::Few { increment } => vec![Slot::new(&INCREMENT, increment)],
            Config::Cubic(config) => config.slots(),
            Config::OneFile(config) => config.slots(),
        }
    }
}

impl Config {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is out of its range, with its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        parameter::check(&mut self.clone())
    }

    /// Builds the window of a connection whose receiver accepts `max_window` segments. Slow start
    /// ends at `ssthresh` segments, or earlier with a loss.
    ///
    /// A clamp lowers the limit, as users of ns-2 do with `window_`, so limited transmit and
    /// recovery keep to the limit too.
    pub fn build(&self, max_window: u32, ssthresh: u32) -> Window {
        let state = match self {
            Config::NewReno | Config::Clamp { .. } => State::NewReno(NewReno),
            Config::HopLimit(rule) => State::HopLimit(*rule),
            Config::Few { increment } => State::Few(Few { increment: *increment }),
            Config::Constant { .. } => State::Constant(Constant),
            Config::Cubic(config) => State::Cubic(Cubic::new(config)),
            Config::OneFile(config) => State::one_file(config),
        };
        let limit = self.limit(max_window);
        let base = if self.grows() { Base::new(limit, ssthresh) } else { Constant::base(limit) };
        Window::new(base, state, max_window)
    }

    /// True if the window can change.
    pub fn grows(&self) -> bool {
        !matches!(self, Config::Constant { .. })
    }

    /// The largest window in segments for a receiver that accepts `max_window` segments.
    pub fn limit(&self, max_window: u32) -> u32 {
        match self {
            Config::Clamp { segments } | Config::Constant { segments } => max_window.min(*segments),
            _ => max_window,
        }
    }
    /// Every kind with its default parameters, and the name that scenarios use for it.
    pub fn kinds() -> Vec<(&'static str, Config)> {
        let mut kinds = vec![
            ("newreno", Config::NewReno),
            ("clamp", Config::Clamp { segments: USUAL_LIMIT }),
            ("hop-limit", Config::HopLimit(HopRule::Table)),
            ("few", Config::Few { increment: few::INCREMENT }),
            ("constant", Config::Constant { segments: USUAL_LIMIT }),
            ("cubic", Config::Cubic(CubicConfig::default())),
        ];
        kinds.extend(Kind::ALL.iter().map(|kind| (kind.about().name, Config::OneFile(OneFile::new(*kind)))));
        kinds
    }

    /// True if `other` is of the same kind, whatever its parameters.
    pub fn is_same_kind(&self, other: &Config) -> bool {
        match (self, other) {
            (Config::OneFile(one), Config::OneFile(other)) => one.kind() == other.kind(),
            _ => core::mem::discriminant(self) == core::mem::discriminant(other),
        }
    }

    /// Noun for this window, for use in a sentence.
    pub fn noun(&self) -> &'static str {
        match self {
            Config::NewReno => "a window",
            Config::Clamp { .. } => "a clamped window",
            Config::HopLimit(_) => "a window limited by hops",
            Config::Few { .. } => "a window that grows by a fraction",
            Config::Constant { .. } => "a constant window",
            Config::Cubic(_) => "a window of CUBIC",
            Config::OneFile(_) => "a window of this rule",
        }
    }

    /// Describes the rule for people, with the parameters that distinguish it from other rules.
    pub fn describe(&self) -> String {
        match self {
            Config::NewReno => String::from("NewReno"),
            Config::Clamp { segments } => format!("NewReno up to {segments}"),
            Config::HopLimit(HopRule::Table) => String::from("NewReno up to 1..5 by hops"),
            Config::HopLimit(HopRule::Quarter) => String::from("NewReno up to h/4"),
            Config::Few { increment } => format!("FeW {increment}"),
            Config::Constant { segments } => format!("constant {segments}"),
            Config::Cubic(cubic) => format!("CUBIC, C {}, beta {}", cubic.c, cubic.beta),
            Config::OneFile(config) => config.describe(),
        }
    }
}
