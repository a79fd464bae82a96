//! A scenario as it was read.

use crate::errors;
use meshpace_scenario::estimate::Estimate;
use meshpace_scenario::{Scenario as Read, Source};
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;

/// A scenario that can be run.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Scenario {
    pub read: Read,
}

#[pymethods]
impl Scenario {
    /// Reads a text. `file` is what messages call it, `directory` where names of files in it start, `stem` its name unless it has a
    /// title, `sets` are `key=value`.
    #[new]
    fn new(
        py: Python<'_>,
        text: String,
        file: String,
        directory: PathBuf,
        stem: &str,
        sets: Vec<String>,
    ) -> PyResult<Scenario> {
        let source = Source { name: file, text, sets };
        match py.detach(|| Read::read(source, &directory, stem)) {
            Ok(read) => Ok(Scenario { read }),
            Err(refusal) => Err(errors::refusal(py, &refusal)),
        }
    }

    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    #[getter]
    fn file(&self) -> &str {
        &self.read.source.name
    }

    #[getter]
    fn text(&self) -> &str {
        &self.read.source.text
    }

    #[getter]
    fn sets(&self) -> Vec<String> {
        self.read.source.sets.clone()
    }

    #[getter]
    fn digest(&self) -> &str {
        &self.read.digest
    }

    #[getter]
    fn seeds(&self) -> u64 {
        self.read.seeds
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.read.warnings.clone()
    }

    /// The points as JSON: objects of what is swept.
    fn points(&self) -> String {
        let point = |point: &meshpace_scenario::Point| Value::Object(point.values.iter().cloned().collect());
        Value::Array(self.read.points.iter().map(point).collect()).to_string()
    }

    /// What a run of each point takes, about: seconds of CPU time, bytes of memory.
    fn estimates(&self) -> Vec<(f64, f64)> {
        let estimate = |point| {
            let Estimate { cpu_s, bytes } = Estimate::of(point);
            (cpu_s, bytes)
        };
        self.read.points.iter().map(estimate).collect()
    }
}
