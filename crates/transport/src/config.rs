//! The parameters of a transport and the ranges they must lie in.

use crate::{flush, tcp, tpa, train, udp};
use alloc::string::String;
use meshpace_core::ParameterError;

/// The transport of a flow, with all its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// A TCP.
    Tcp(tcp::Config),
    /// UDP.
    Udp(udp::Config),
    /// TPA.
    Tpa(tpa::Config),
    /// Quiet trains.
    Train(train::Config),
    /// Flush.
    Flush(flush::Config),
}

impl Config {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::Tcp(config) => config.check(),
            Config::Udp(config) => config.check(),
            Config::Tpa(config) => config.check(),
            Config::Train(config) => config.check(),
            Config::Flush(config) => config.check(),
        }
    }

    /// Payload bytes of a full segment or datagram.
    pub fn segment(&self) -> u32 {
        match self {
            Config::Tcp(config) => config.segment,
            Config::Udp(config) => config.segment,
            Config::Tpa(config) => config.segment,
            Config::Train(config) => config.segment,
            Config::Flush(config) => config.segment,
        }
    }

    /// Its pieces in one line, for people, with the parameters that tell it from others.
    pub fn describe(&self) -> String {
        match self {
            Config::Tcp(config) => config.describe(),
            Config::Udp(config) => config.describe(),
            Config::Tpa(config) => config.describe(),
            Config::Train(config) => config.describe(),
            Config::Flush(config) => config.describe(),
        }
    }
}
