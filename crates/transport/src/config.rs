//! The parameters of a transport, and the check of their ranges.

use crate::{flush, tcp, tpa, train, udp};
use alloc::string::String;
use meshpace_core::ParameterError;

/// The transport of a flow, with all its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// TCP in any combination of its pieces.
    Tcp(tcp::Config),
    /// UDP.
    Udp(udp::Config),
    /// TPA, which sends and repairs data in blocks.
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
    /// Names the first parameter that is out of its range, with its value and its range.
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

    /// Describes the pieces in one line for people, with the parameters that distinguish the
    /// transport from others.
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
