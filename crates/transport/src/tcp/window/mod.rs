//! When may I send more: the growth of the congestion window.

mod newreno;

/// The congestion window of a connection.
pub use newreno::NewReno as Window;

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

impl Config {
    /// The window of a connection whose receiver takes `max_window` segments.
    ///
    /// A clamp lowers the limit, as ns-2 users do with `window_`, so that limited transmit and recovery keep to it too.
    pub fn build(&self, max_window: u32) -> Window {
        match self {
            Config::NewReno => Window::new(max_window),
            Config::Clamp { segments } => Window::new(max_window.min(*segments)),
        }
    }

    /// The most segments such a window can hold if its receiver takes `max_window` segments.
    pub fn limit(&self, max_window: u32) -> u32 {
        match self {
            Config::NewReno => max_window,
            Config::Clamp { segments } => max_window.min(*segments),
        }
    }
}
