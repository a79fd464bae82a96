//! Exceptions. Their types are defined in Python, in `meshpace/_errors.py`.

use meshpace_scenario::Refusal;
use meshpace_scenario::value::Origin;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;

/// Creates an exception of type `kind` of `meshpace._errors` from these arguments.
fn raise<'py>(py: Python<'py>, kind: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py.import("meshpace._errors").and_then(|errors| errors.getattr(kind)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Error: records cannot be kept, read or compared.
pub fn records(py: Python<'_>, why: impl Into<String>) -> PyErr {
    raise(py, "RecordsError", (why.into(),))
}

/// Converts an error of the campaign's code. A Python exception that the error contains is returned
/// as it is; any other error becomes an error of records.
pub fn of_io(py: Python<'_>, error: io::Error) -> PyErr {
    match error.downcast::<PyErr>() {
        Ok(exception) => exception,
        Err(error) => records(py, error.to_string()),
    }
}

/// Error: a worker runs another version of the program.
pub fn worker(py: Python<'_>, why: String) -> PyErr {
    raise(py, "WorkerError", (why,))
}

/// Error: a scenario is refused. It contains every problem with its file, line, column and key.
pub fn refusal(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let problem = |problem: &meshpace_scenario::Problem| -> PyResult<Py<PyDict>> {
        let dict = PyDict::new(py);
        let key = problem.message.split_once(':').map(|(key, _)| key).filter(|key| !key.contains(char::is_whitespace));
        dict.set_item("message", &problem.message)?;
        dict.set_item("key", key)?;
        dict.set_item("expected", &problem.expected)?;
        dict.set_item("help", &problem.help)?;
        dict.set_item("point", &problem.point)?;
        dict.set_item("file", &refusal.source.name)?;
        let place = match &problem.origin {
            Some(Origin::File(span)) => Some(place(&refusal.source.text, span.start)),
            Some(Origin::Set(_)) | None => None,
        };
        dict.set_item("line", place.map(|(line, _)| line))?;
        dict.set_item("column", place.map(|(_, column)| column))?;
        let set = match &problem.origin {
            Some(Origin::Set(index)) => refusal.source.sets.get(*index),
            _ => None,
        };
        dict.set_item("set", set)?;
        Ok(dict.unbind())
    };
    match refusal.problems.iter().map(problem).collect::<PyResult<Vec<_>>>() {
        Ok(problems) => raise(py, "ScenarioError", (refusal.render(false), problems)),
        Err(error) => error,
    }
}

/// Line and column of a byte; both count from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
