//! The parameters of a transport and the ranges they must lie in.

use crate::{tcp, tpa, udp};
use alloc::string::{String, ToString};
use core::fmt;

/// Which transport a flow uses, with all its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// A TCP.
    Tcp(tcp::Config),
    /// UDP.
    Udp(udp::Config),
    /// TPA.
    Tpa(tpa::Config),
}

impl Config {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::Tcp(config) => config.check(),
            Config::Udp(config) => config.check(),
            Config::Tpa(config) => config.check(),
        }
    }

    /// Payload bytes of a full segment or datagram.
    pub fn segment(&self) -> u32 {
        match self {
            Config::Tcp(config) => config.segment,
            Config::Udp(config) => config.segment,
            Config::Tpa(config) => config.segment,
        }
    }
}

/// A parameter outside its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterError {
    /// The parameter's key, such as `pacing.alpha`.
    pub name: &'static str,
    /// The value that was given.
    pub value: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: expected {}", self.name, self.value, self.expected)
    }
}

impl core::error::Error for ParameterError {}

/// An error naming the parameter unless `ok`.
pub(crate) fn require(
    ok: bool,
    name: &'static str,
    value: impl ToString,
    expected: &'static str,
) -> Result<(), ParameterError> {
    if ok { Ok(()) } else { Err(ParameterError { name, value: value.to_string(), expected }) }
}
