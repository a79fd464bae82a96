//! When may I send more: the growth of the congestion window.

use crate::config::{ParameterError, require};

/// Which rule the congestion window follows.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// NewReno (RFC 6582, RFC 5681).
    NewReno,
    /// NewReno whose window never exceeds `segments`: the congestion window limit of Chen et al. (AP05, section 5).
    Clamp {
        /// The limit in segments, 1 or more.
        segments: u32,
    },
}

impl Config {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::NewReno => Ok(()),
            Config::Clamp { segments } => require(*segments >= 1, "window.segments", segments, "1 or more segments"),
        }
    }
}
