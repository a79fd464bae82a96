//! Modulation and header time that determine how frames of a rate are received.

use super::bit_errors::Modulation;
use meshpace_core::Duration;

/// Properties of the frames of one rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateModel {
    /// Modulation of the frame behind its header.
    pub modulation: Modulation,
    /// Time of preamble and header.
    pub header: Duration,
}
