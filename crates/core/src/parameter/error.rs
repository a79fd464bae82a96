//! The error that names a parameter outside its range.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::fmt;

/// A parameter outside its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterError {
    /// The parameter's key, such as `pacing.alpha`.
    pub name: Cow<'static, str>,
    /// The value that was given.
    pub value: String,
    /// The values that are accepted.
    pub expected: Cow<'static, str>,
}

impl ParameterError {
    /// The same error where the parameter's piece is in this table; empty: in none of its own.
    #[must_use]
    pub fn inside(mut self, table: &str) -> ParameterError {
        if !table.is_empty() {
            self.name = alloc::format!("{table}.{}", self.name).into();
        }
        self
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: expected {}", self.name, self.value, self.expected)
    }
}

impl core::error::Error for ParameterError {}

/// Checks `value` against its range.
///
/// # Errors
/// One naming the parameter unless `ok`.
pub fn require(
    ok: bool,
    name: &'static str,
    value: impl ToString,
    expected: &'static str,
) -> Result<(), ParameterError> {
    if ok {
        Ok(())
    } else {
        Err(ParameterError { name: name.into(), value: value.to_string(), expected: expected.into() })
    }
}
