//! Scenarios.

use crate::{errors, pacing};
use meshpace_lab::rerun::Directory;
use meshpace_lab::robust::{self, Choice};
use meshpace_lab::workers::{Job, Worker};
use meshpace_scenario::estimate::Estimate;
use meshpace_scenario::{Scenario as Read, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// A scenario that can be run.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Scenario {
    pub read: Read,
    /// Scenario as it was read, without Python pacing rules.
    plain: Read,
    /// Python pacing rules of the scenario.
    rules: Vec<Paced>,
    /// True if the scenario is one point of a directory of records. The text may then have further
    /// points.
    is_kept: bool,
}

/// A Python pacing rule and the flows that use it. `None` means all flows.
#[derive(Clone)]
struct Paced {
    name: String,
    rule: Arc<Py<PyAny>>,
    flows: Option<Vec<usize>>,
    /// Identity that the author of the rule has chosen, if any.
    id: Option<String>,
    raised: pacing::Raised,
}

/// State of a rule: name, factory, flows, and the identity that its author has chosen.
type RuleState = (String, Py<PyAny>, Option<Vec<usize>>, Option<String>);

/// State of a pickled scenario: its job as JSON, and its rules.
type State = (String, Vec<RuleState>);

impl Paced {
    fn apply(&self, read: &mut Read) -> PyResult<()> {
        let mut points = std::mem::take(&mut read.points).into_vec();
        for point in &mut points {
            let count = point.config.flows.len();
            for index in self.flows.clone().unwrap_or_else(|| (0..count).collect()) {
                let Some(flow) = point.config.flows.get_mut(index) else {
                    return Err(PyValueError::new_err(format!(
                        "flows: there is no flow {index}; there are {count}, from 0 on"
                    )));
                };
                pacing::pace(&mut flow.transport, &self.name, &self.rule, &self.raised).map_err(|what| {
                    PyValueError::new_err(format!("flow {index} is {what}: a pacing rule needs TCP or TPA"))
                })?;
                self.name.clone_into(&mut point.transports[index]);
            }
        }
        read.points = points.into();
        Ok(())
    }
}

/// A model: its name for people, the reason if it is not applicable, and otherwise the scenarios
/// with this model.
type Model = (String, Option<String>, Vec<Scenario>);

/// Other choices of the model under which scenarios are compared
/// ([`meshpace_lab::robust::choices`]).
#[pyfunction]
pub fn models(py: Python<'_>, scenarios: Vec<Py<Scenario>>) -> PyResult<Vec<Model>> {
    let plain: Vec<Read> = scenarios.iter().map(|scenario| scenario.get().plain.clone()).collect();
    let choices = py.detach(|| robust::choices(&plain));
    let with_rules = |(plain, scenario): (Read, &Py<Scenario>)| {
        let rules = scenario.get().rules.clone();
        let mut read = plain.clone();
        rules.iter().try_for_each(|paced| paced.apply(&mut read))?;
        Ok(Scenario { read, plain, rules, is_kept: scenario.get().is_kept })
    };
    let model = |choice: Choice| match choice.scenarios {
        Err(why) => Ok((choice.name, Some(why), Vec::new())),
        Ok(changed) => {
            let changed = changed.into_iter().zip(&scenarios).map(with_rules).collect::<PyResult<_>>()?;
            Ok((choice.name, None, changed))
        }
    };
    choices.into_iter().map(model).collect()
}

/// Scenario of a job, which is JSON. It has no Python pacing rules.
#[pyfunction]
pub fn restored_scenario(py: Python<'_>, job: &str) -> PyResult<Scenario> {
    let read = || {
        let job: Job = serde_json::from_str(job).map_err(|why| why.to_string())?;
        Ok::<_, String>(Worker::new(&job)?.into_campaign().scenario)
    };
    let read = read().map_err(|why| errors::worker(py, why))?;
    Ok(Scenario { plain: read.clone(), read, rules: Vec::new(), is_kept: false })
}

/// Scenario of one point of a directory of records, without its Python pacing rules. `point` is the
/// JSON of the point's values.
#[pyfunction]
pub fn kept_scenario(py: Python<'_>, directory: PathBuf, point: &str) -> PyResult<Scenario> {
    let read = || {
        let point = serde_json::from_str(point).map_err(|why| why.to_string())?;
        Directory::open(&directory)?.of_point(&point)
    };
    let read = py.detach(read).map_err(|why: String| errors::records(py, why))?;
    Ok(Scenario { plain: read.clone(), read, rules: Vec::new(), is_kept: true })
}

impl Scenario {
    /// Exceptions of the scenario's pacing rules.
    pub fn raised(&self) -> Vec<pacing::Raised> {
        self.rules.iter().map(|paced| paced.raised.clone()).collect()
    }
}

#[pymethods]
impl Scenario {
    /// Reads a text. Messages call it `file`, and names of files in it are relative to `directory`.
    /// `stem` is the scenario's name if it has no title. `sets` are arguments of the form
    /// `key=value`.
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
            Ok(read) => Ok(Scenario { plain: read.clone(), read, rules: Vec::new(), is_kept: false }),
            Err(refusal) => Err(errors::refusal(py, &refusal)),
        }
    }

    /// Returns a copy in which a Python rule paces some flows, or all. `rule` is called for each
    /// sender with the payload of its segments in bytes, and returns the sender's rule. `id` is the
    /// identity that the author of the rule has chosen, if any.
    #[pyo3(signature = (name, rule, flows, id))]
    fn paced(&self, name: &str, rule: Py<PyAny>, flows: Option<Vec<usize>>, id: Option<String>) -> PyResult<Scenario> {
        let mut read = self.read.clone();
        let rule = Arc::new(rule);
        let paced = Paced { name: name.to_owned(), rule, flows, id, raised: pacing::Raised::default() };
        paced.apply(&mut read)?;
        let rules = self.rules.iter().cloned().chain([paced]).collect();
        Ok(Scenario { read, plain: self.plain.clone(), rules, is_kept: self.is_kept })
    }

    /// Names of the Python pacing rules. A scenario with such rules can only be run in this
    /// process.
    #[getter]
    fn rules(&self) -> Vec<String> {
        self.rules.iter().map(|paced| paced.name.clone()).collect()
    }

    /// State for pickling. [`restored_scenario`] and `paced` create the scenario from it.
    fn state(&self, py: Python<'_>) -> PyResult<State> {
        if self.is_kept {
            let why = "a point of a directory of records is run in this process: it is not pickled";
            return Err(PyValueError::new_err(why));
        }
        let job = Job::of(&self.plain).map_err(|why| errors::records(py, why))?;
        let job = serde_json::to_string(&job).map_err(|why| errors::records(py, why.to_string()))?;
        Ok((job, self.paced_by(py)))
    }

    /// Python pacing rules: name, factory, flows, and the identity that its author has chosen.
    fn paced_by(&self, py: Python<'_>) -> Vec<RuleState> {
        let rule =
            |paced: &Paced| (paced.name.clone(), paced.rule.clone_ref(py), paced.flows.clone(), paced.id.clone());
        self.rules.iter().map(rule).collect()
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

    /// Points as JSON: one object with the swept values each.
    fn points(&self) -> String {
        let point = |point: &meshpace_scenario::Point| Value::Object(point.values.iter().cloned().collect());
        Value::Array(self.read.points.iter().map(point).collect()).to_string()
    }

    /// Estimated cost of a run of each point: CPU time in seconds, memory in bytes.
    fn estimates(&self) -> Vec<(f64, f64)> {
        let estimate = |point| {
            let Estimate { cpu_s, bytes } = Estimate::of(point);
            (cpu_s, bytes)
        };
        self.read.points.iter().map(estimate).collect()
    }
}
