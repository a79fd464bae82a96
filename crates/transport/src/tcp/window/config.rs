//! The table of window rules: parameters, names and what each is built from.

use super::{Base, Constant, Cubic, CubicConfig, Few, HopRule, Kind, NewReno, OneFile, State, Window, few};
use crate::about::Named;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use meshpace_core::parameter;
use meshpace_core::parameter::{Parameter, ParameterError, Parameters, Slot, Slots};

/// The segments of a clamp and of a constant window that does not say.
const USUAL_LIMIT: u32 = 3;

/// Which rule the congestion window follows.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// NewReno (RFC 6582, RFC 5681).
    NewReno,
    /// NewReno whose window never exceeds `segments` (TPA, section 5: TCP-2 and TCP-3; AP05, section 5).
    Clamp {
        /// The limit in segments, 1 or more.
        segments: u32,
    },
    /// NewReno whose window never exceeds what the number of hops allows (Chen, Xue, Nahrstedt, ICC 2003).
    HopLimit(HopRule),
    /// NewReno that grows by a fraction in congestion avoidance (TCP-FeW; DCC, section V).
    Few {
        /// Segments by which the window grows per round trip, above 0 and at most 1. Default 0.01 (DCC, section V).
        increment: f64,
    },
    /// A window that never changes, whatever is lost (DCC, section V).
    Constant {
        /// Its size in segments, 1 or more.
        segments: u32,
    },
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
    /// A rule of one file.
    OneFile(OneFile),
}

/// CWL by the table of hops.
pub const CWL: Named<Config> = Named {
    name: "cwl",
    description: "NewReno with its window limited by the number of hops, by table: 3 segments for 7 to 10 hops",
    source: "Chen, Xue, Nahrstedt, ICC 2003; AP05, section 5",
    config: || Config::HopLimit(HopRule::Table),
};
/// CWL of a quarter of the hops.
pub const CWL_H4: Named<Config> = Named {
    name: "cwl-h4",
    description: "NewReno with its window limited to a quarter of the hops",
    source: "AP05, sections 4.3 and 5: a path of h hops carries h/4 packets",
    config: || Config::HopLimit(HopRule::Quarter),
};
/// TCP-FeW.
pub const FEW: Named<Config> = Named {
    name: "few",
    description: "NewReno whose window grows by 0.01 segments per round trip",
    source: "Nahm, Helmy, Kuo, MobiHoc 2005; DCC, section 5",
    config: || Config::Few { increment: few::INCREMENT },
};
/// CUBIC.
pub const CUBIC: Named<Config> = Named {
    name: "cubic",
    description: "CUBIC, what most of today's hosts run",
    source: "RFC 9438, without HyStart++",
    config: || Config::Cubic(CubicConfig::default()),
};

/// The size of a window that does not grow by itself, and of one that may not grow further.
static SEGMENTS: Parameter =
    parameter!(segments: u32 = USUAL_LIMIT => whole("segments", 1, 65535), Basic, "the window");
/// Rule by which the limit follows from the hops.
static RULE: Parameter = parameter!(rule: HopRule = HopRule::Table => choice(HopRule::WORDS), Expert, "window from hops",
    "Chen et al., ICC 2003; AP05, section 5");
/// Growth of FeW.
static INCREMENT: Parameter = parameter!(increment: f64 = few::INCREMENT => number(0.0, 1.0).above(0.0), Expert,
    "growth per round trip",
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
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        parameter::check(&mut self.clone())
    }

    /// The window of a connection whose receiver takes `max_window` segments; slow start ends at `ssthresh` segments, if not
    /// with a loss.
    ///
    /// A clamp lowers the limit, as ns-2 users do with `window_`, so that limited transmit and recovery keep to it too.
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

    /// True if the window ever changes.
    pub fn grows(&self) -> bool {
        !matches!(self, Config::Constant { .. })
    }

    /// The most segments such a window can hold if its receiver takes `max_window` segments.
    pub fn limit(&self, max_window: u32) -> u32 {
        match self {
            Config::Clamp { segments } | Config::Constant { segments } => max_window.min(*segments),
            _ => max_window,
        }
    }
    /// Every kind with its defaults, by the name that scenarios have for it.
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

    /// True if `other` is of the same kind, its parameters apart.
    pub fn is_same_kind(&self, other: &Config) -> bool {
        match (self, other) {
            (Config::OneFile(one), Config::OneFile(other)) => one.kind() == other.kind(),
            _ => core::mem::discriminant(self) == core::mem::discriminant(other),
        }
    }

    /// Its name in a sentence.
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

    /// The rule with the parameters that tell it from others, for people.
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
