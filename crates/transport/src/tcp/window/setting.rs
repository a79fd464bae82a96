//! A parameter of a window rule that a scenario may set.

use super::HopRule;
use core::ops::RangeInclusive;

/// A parameter that a scenario may set, with its range.
#[derive(Debug)]
pub enum Setting<'a> {
    /// Segments, 1 to 65535.
    Segments(&'a mut u32),
    /// A number.
    Number(&'a mut f64, RangeInclusive<f64>),
    /// On or off.
    Flag(&'a mut bool),
    /// One of [`HopRule::NAMED`].
    HopRule(&'a mut HopRule),
}
