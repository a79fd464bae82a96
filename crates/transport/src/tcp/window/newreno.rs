//! The congestion window of NewReno: RFC 5681, section 3.1, exactly as [`Base`](super::Base)
//! implements it.

use super::Rule;

/// NewReno needs no state besides the window. A clamped window is NewReno with a lower limit.
#[derive(Clone, PartialEq, Debug)]
pub struct NewReno;

impl Rule for NewReno {}
