//! The congestion window of NewReno: RFC 5681, section 3.1, as [`Base`](super::Base) has it, and nothing else.

use super::Rule;

/// NewReno has no state beyond the window itself. A clamp is NewReno with a lower limit.
#[derive(Clone, PartialEq, Debug)]
pub struct NewReno;

impl Rule for NewReno {}
