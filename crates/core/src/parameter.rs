//! Parameters and the ranges they must lie in: the error that names a value outside its range.

use alloc::string::{String, ToString};
use core::fmt;

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

/// Whether `value` is in its range.
///
/// # Errors
/// One naming the parameter unless `ok`.
pub fn require(
    ok: bool,
    name: &'static str,
    value: impl ToString,
    expected: &'static str,
) -> Result<(), ParameterError> {
    if ok { Ok(()) } else { Err(ParameterError { name, value: value.to_string(), expected }) }
}
