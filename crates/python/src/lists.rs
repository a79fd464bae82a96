//! Names that a scenario can use: transports and keys, as lines of JSON.

use meshpace_scenario::keys::{self as known, Level};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;

/// Named transports, one object each: name, description, parameters, source.
#[pyfunction]
pub fn transports() -> Vec<String> {
    let entries = meshpace_transport::names::table();
    let object = |entry: &meshpace_transport::names::Entry| {
        let (name, description, source) = (entry.name, entry.description, entry.source);
        json!({"name": name, "description": description, "parameters": entry.parameters(), "source": source})
    };
    entries.iter().map(|entry| object(entry).to_string()).collect()
}

/// Keys of a scenario, one object each. The keys for all users come first. `section` restricts the
/// list to one section or key.
#[pyfunction]
pub fn keys(section: Option<&str>) -> PyResult<Vec<String>> {
    let found = match section {
        None => Ok(known::all()),
        Some(section) => known::of(section),
    };
    let mut found = found.map_err(PyValueError::new_err)?;
    found.sort_by_key(|key| key.level);
    let line = |key: known::Key| {
        let level = if key.level == Level::Basic { "basic" } else { "expert" };
        let takes = key.takes();
        let known::Key { name, default, meaning, source, .. } = key;
        json!({"key": name, "takes": takes, "default": default, "meaning": meaning, "source": source, "level": level})
            .to_string()
    };
    Ok(found.into_iter().map(line).collect())
}
