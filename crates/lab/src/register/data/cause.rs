//! Why a claim is not reproduced, from a list that can be counted.

use serde::{Deserialize, Serialize};

/// A cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The routing protocol, or a version of it that nobody describes.
    Routing,
    /// What the radio is like.
    Radio,
    /// Parameters that the paper does not give.
    Parameters,
    /// How long was run, or how often.
    RunLength,
    /// Hardware that cannot be had here.
    Hardware,
    /// The authors' code is not published, and the text does not settle it.
    NoCode,
    /// No reading of the paper supports it; two at least were tried.
    Unsupported,
    /// Not known yet.
    Open,
}

impl Cause {
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
