//! Error that names a parameter outside its range.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::fmt;

/// A parameter whose value is outside its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterError {
    /// Key of the parameter, such as `pacing.alpha`.
    pub name: Cow<'static, str>,
    /// Value that was given.
    pub value: String,
    /// Description of the accepted values.
    pub expected: Cow<'static, str>,
}

impl ParameterError {
    /// Prefixes the key with the table that holds the parameter. An empty `table` leaves the key as
    /// it is.
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

/// Returns an error about the parameter `name` unless `ok` is true.
///
/// # Errors
/// The error names the parameter, its value and the expected values.
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
