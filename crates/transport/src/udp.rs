//! UDP: a source that sends what is written, at most at its rate, and a sink that counts.
//!
//! RFC 768. ns-2 counts 20 bytes for the IP and UDP headers together, and so do sizes here.

use crate::config::{ParameterError, require};
use meshpace_core::Rate;

/// Bytes of the IP and UDP headers together (ns-2 convention; 28 on the wire).
pub const HEADER_BYTES: u32 = 20;

/// A datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its number, from 0.
    pub number: u64,
    /// Payload bytes.
    pub payload: u16,
}

/// Parameters of a UDP flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Payload of a full datagram in bytes, 1..=65507. Default 1460 (AP05, section 5).
    pub segment: u32,
    /// Payload rate at which the source spaces its datagrams; `None` sends as soon as data is written.
    pub rate: Option<Rate>,
}

impl Default for Config {
    fn default() -> Config {
        Config { segment: 1460, rate: None }
    }
}

impl Config {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        require((1..=65507).contains(&self.segment), "segment", self.segment, "1 to 65507 bytes")?;
        if let Some(rate) = self.rate {
            require(rate.0 > 0, "rate", rate, "a rate above zero")?;
        }
        Ok(())
    }
}
