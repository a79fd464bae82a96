//! Records, in memory or in a file, and the tables, plots and reports made from them.

use crate::errors;
use crate::frame::{Rows, Table};
use crate::lines::Lines;
use meshpace_lab::record::Record;
use meshpace_lab::record::archive::Archive;
use meshpace_lab::record::directory::RECORDS;
use meshpace_lab::record::tally::Tally;
use meshpace_lab::robust::{Robust, Trial};
use meshpace_lab::selection::Selection;
use meshpace_report::picture::{self, Subject};
use meshpace_scenario::{Plot, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use std::borrow::Borrow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Records of a campaign.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Records {
    lines: Lines,
    count: usize,
}

impl Records {
    /// Records that are these lines.
    pub fn of(lines: Vec<String>) -> Records {
        Records { count: lines.len(), lines: Lines::Memory(Arc::new(lines)) }
    }

    /// Records in a file.
    pub fn in_file(path: PathBuf) -> io::Result<Records> {
        let lines = Lines::File(Arc::new(path));
        Ok(Records { count: lines.iter()?.count(), lines })
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.count
    }

    /// All lines.
    pub fn all(&self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        self.lines.iter()
    }
}

#[pymethods]
impl Records {
    fn __len__(&self) -> usize {
        self.count
    }

    /// Returns at most `most` lines from number `first` on.
    fn lines(&self, py: Python<'_>, first: usize, most: usize) -> PyResult<Vec<String>> {
        let read = || self.lines.iter()?.skip(first).take(most).collect::<io::Result<Vec<String>>>();
        py.detach(read).map_err(|error| errors::of_io(py, error))
    }

    /// Sentences about the flows that starved, and the number of runs in which a flow starved.
    fn starved(&self, py: Python<'_>) -> PyResult<(Vec<String>, usize)> {
        let counted = || -> io::Result<(Vec<String>, usize)> {
            let mut tally = Tally::default();
            for line in self.lines.iter()? {
                let record = Record::read(&line?)?;
                tally.add(&record);
            }
            Ok((tally.sentences(), tally.starved_runs()))
        };
        py.detach(counted).map_err(|error| errors::of_io(py, error))
    }

    /// Records that meet all conditions. A condition has the form of `--where` of the command.
    #[pyo3(name = "where")]
    fn selected(&self, py: Python<'_>, conditions: Vec<String>) -> PyResult<Records> {
        let select = || -> Result<Records, String> {
            let lines = self.lines.iter().and_then(|lines| lines.map(|line| Told::read(line?)).collect());
            let told: Vec<Told> = lines.map_err(|error: io::Error| error.to_string())?;
            let selected = Selection::parse(&conditions)?.of(told)?;
            Ok(Records::of(selected.into_iter().map(|Told { line, .. }| line).collect()))
        };
        py.detach(select).map_err(|why| errors::records(py, why))
    }

    /// Table with one row per run.
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| Table::new(self.lines.clone(), Rows::Runs)).map_err(|error| errors::of_io(py, error))
    }

    /// Table with one row per flow of each run.
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| Table::new(self.lines.clone(), Rows::Flows)).map_err(|error| errors::of_io(py, error))
    }
}

/// A line, and the record in it.
struct Told {
    line: String,
    record: Record,
}

impl Told {
    fn read(line: String) -> io::Result<Told> {
        let record = Record::read(&line)?;
        Ok(Told { line, record })
    }
}

impl Borrow<Record> for Told {
    fn borrow(&self) -> &Record {
        &self.record
    }
}

/// Records that are these lines.
#[pyfunction]
pub fn records(lines: Vec<String>) -> Records {
    Records::of(lines)
}

/// Records of a directory, which need not be finished, with its manifest as JSON and notes for the
/// reader.
#[pyfunction]
pub fn open(py: Python<'_>, directory: PathBuf) -> PyResult<(Records, String, Vec<String>)> {
    let read = py.detach(|| -> Result<(Records, String, Vec<String>), String> {
        let none = || format!("{}: no run in this directory is complete", directory.display());
        let archive = Archive::read(&directory)?.ok_or_else(none)?;
        let manifest = serde_json::to_string(&archive.manifest).map_err(|error| error.to_string())?;
        let records = match archive.is_finished {
            true => Records { lines: Lines::File(Arc::new(directory.join(RECORDS))), count: archive.records.len() },
            false => {
                Records::of(archive.records.iter().map(|record| record.json_line().trim_end().to_owned()).collect())
            }
        };
        Ok((records, manifest, archive.notes))
    });
    read.map_err(|why| errors::records(py, why))
}

/// Comparison of two sets of records, seed by seed, as JSON: one object per metric, each with a
/// sentence for people.
#[pyfunction]
pub fn compare(py: Python<'_>, a: &Records, b: &Records, names: [String; 2]) -> PyResult<String> {
    let compared = py.detach(|| Ok::<_, String>(told(&trial("as written", a, b)?, &names, |_| None)));
    compared.map_err(|why| errors::records(py, why))
}

/// Comparison that also says whether each answer holds under other models. `others` has the name
/// and the two sets of records of each model. `not_applicable` has the name and the reason of each
/// model that cannot be used.
#[pyfunction]
pub fn compare_robustly(
    py: Python<'_>,
    a: &Records,
    b: &Records,
    others: Vec<(String, Py<Records>, Py<Records>)>,
    not_applicable: Vec<(String, String)>,
    names: [String; 2],
) -> PyResult<String> {
    let compared = py.detach(|| -> Result<String, String> {
        let written = trial("as written", a, b)?;
        let others = others.iter().map(|(model, a, b)| trial(model, a.get(), b.get()));
        let robust = Robust { written, others: others.collect::<Result<_, _>>()?, not_applicable };
        let of = |metric: &str| Some(robust.json(metric, [&names[0], &names[1]]));
        Ok(told(&robust.written, &names, of))
    });
    compared.map_err(|why| errors::records(py, why))
}

fn trial(model: &str, a: &Records, b: &Records) -> Result<Trial, String> {
    let [a, b] = [a, b].map(|side| side.lines.records().map_err(|error| error.to_string()));
    Ok(Trial { model: model.to_owned(), lines: meshpace_lab::compare::compare(&a?, &b?)? })
}

/// Lines of a comparison as JSON. Each has its sentence, and the value that `robust` returns for
/// its metric.
fn told(trial: &Trial, names: &[String; 2], robust: impl Fn(&str) -> Option<Value>) -> String {
    let told = trial.lines.iter().map(|line| {
        let mut value = serde_json::to_value(line).unwrap_or_default();
        value["words"] = meshpace_lab::compare::words(line, [&names[0], &names[1]]).into();
        if let Some(robust) = robust(line.metric) {
            value["robust"] = robust;
        }
        value
    });
    Value::Array(told.collect()).to_string()
}

/// Numbers of the plots of one metric on the page of `meshpace report`, as JSON: one drawing for
/// each panel. `text` and `sets` are the scenario whose `[plot]` is used; `x` and `lines` override
/// its settings.
#[pyfunction]
pub fn drawings(
    py: Python<'_>,
    records: &Records,
    quantity: &str,
    text: String,
    sets: Vec<String>,
    x: Option<String>,
    lines: Option<Vec<String>>,
) -> PyResult<String> {
    let made = py.detach(|| -> Result<String, String> {
        let records = records.lines.records().map_err(|error| error.to_string())?;
        let settings = Plot::from_source(&Source { name: String::new(), text, sets });
        let settings = Plot { x: x.or(settings.x), lines: lines.or(settings.lines), ..settings };
        let drawings = picture::drawings(&records, quantity, &settings)?;
        serde_json::to_string(&drawings).map_err(|error| error.to_string())
    });
    made.map_err(PyValueError::new_err)
}

/// Writes the page of plots that `meshpace report` writes. `text` and `sets` are the scenario whose
/// `[plot]` is used.
#[pyfunction]
pub fn report(
    py: Python<'_>,
    records: &Records,
    page: PathBuf,
    title: &str,
    command: &str,
    text: String,
    sets: Vec<String>,
) -> PyResult<()> {
    let written = py.detach(|| {
        let values = records.lines.iter().and_then(|lines| {
            lines.map(|text| Record::from_line(&text?).map_err(io::Error::other)).collect::<io::Result<Vec<Record>>>()
        });
        let settings = Plot::from_source(&Source { name: title.to_owned(), text, sets });
        let records = &values.map_err(|error| error.to_string())?;
        picture::write(&page, &Subject { title, command, records, map: None, settings: &settings })
    });
    written.map_err(|why| errors::records(py, why))
}
