//! Access to fields of JSON, with error messages for people.

use super::Wrong;
use serde_json::{Map as Object, Value};

pub use meshpace_scenario::json_lines::Lines;

/// The list at a key.
pub fn list<'a>(object: &'a Object<String, Value>, key: &str) -> Result<&'a [Value], Wrong> {
    let found = object.get(key).and_then(Value::as_array);
    found.map(Vec::as_slice).ok_or_else(|| ("1".to_owned(), format!("expected a list \"{key}\"")))
}

/// The text at a key.
pub fn name<'a>(entry: &'a Value, key: &str) -> Result<&'a str, String> {
    entry.get(key).and_then(Value::as_str).ok_or_else(|| format!("expected a text \"{key}\""))
}

/// The number at a key, which may also be written as a text.
pub fn number(entry: &Value, key: &str) -> Result<f64, String> {
    let value = entry.get(key).ok_or_else(|| format!("expected a number \"{key}\""))?;
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.filter(|number| number.is_finite()).ok_or_else(|| format!("expected a number \"{key}\", found {value}"))
}
