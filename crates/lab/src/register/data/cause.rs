//! Causes for which a claim is not reproduced. The list is fixed, so that causes can be counted.

use serde::{Deserialize, Serialize};

/// Cause why a claim is not reproduced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The routing protocol, or a version of it without a description.
    Routing,
    /// Properties of the radio.
    Radio,
    /// Parameters that the paper does not give.
    Parameters,
    /// Length or number of runs.
    RunLength,
    /// Hardware that is not available here.
    Hardware,
    /// The authors' code is not published, and the text does not settle it.
    NoCode,
    /// No reading of the paper supports it. At least two readings were tried.
    Unsupported,
    /// The cause is not known yet.
    Open,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 8] = [
        Cause::Routing,
        Cause::Radio,
        Cause::Parameters,
        Cause::RunLength,
        Cause::Hardware,
        Cause::NoCode,
        Cause::Unsupported,
        Cause::Open,
    ];

    /// Meaning of the cause, in a sentence for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Cause::Routing => "The routing protocol decides it, or a version of it that nobody describes.",
            Cause::Radio => "What the radio is like decides it.",
            Cause::Parameters => "It depends on parameters that the paper does not give.",
            Cause::RunLength => "How long was run, or how often, decides it.",
            Cause::Hardware => "It was measured on hardware that cannot be had here.",
            Cause::NoCode => "The authors' code is not published, and the text does not settle it.",
            Cause::Unsupported => "No reading of the paper supports it; two at least were tried.",
            Cause::Open => "It is not known yet.",
        }
    }

    /// The cause in words.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Routing => "routing",
            Cause::Radio => "radio",
            Cause::Parameters => "parameters",
            Cause::RunLength => "run length",
            Cause::Hardware => "hardware",
            Cause::NoCode => "no code",
            Cause::Unsupported => "unsupported",
            Cause::Open => "open",
        }
    }
}
