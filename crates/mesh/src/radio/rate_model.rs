//! Reception of frames of a rate.

use super::bit_errors::Modulation;
use meshpace_core::Duration;

/// The frames of one rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateModel {
    /// Their modulation.
    pub modulation: Modulation,
    /// Time of preamble and header.
    pub header: Duration,
}
