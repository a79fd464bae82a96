//! Records as tables for other programs, by Arrow's C stream interface (the PyCapsule protocol of Arrow). Batches are made as they
//! are asked for, so that a table may be larger than memory.
//!
//! Columns are the fields of a record, from the types that make it: numbers, whole numbers and text. What could not be measured is null.
//! Lists (series, batches, completions) have no column; they are in the records themselves.

use crate::errors;
use crate::lines::Lines;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use meshpace_lab::record::fields::{self, Of};
use meshpace_lab::record::plain;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;

/// Records in a batch.
const BATCH: usize = 2048;

/// Meaning of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// A run.
    Runs,
    /// A flow of a run.
    Flows,
    /// The value itself.
    Whole,
}

impl Rows {
    fn name(self) -> &'static str {
        match self {
            Rows::Runs => "runs",
            Rows::Flows => "flows",
            Rows::Whole => "whole",
        }
    }
}

/// Where the value of a column is.
#[derive(Clone, Debug)]
enum Place {
    Run(String),
    Point(String),
    Flow(String),
    Pacing(String),
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    place: Place,
    kind: DataType,
}

impl Column {
    fn value<'a>(&self, record: &'a Value, flow: &'a Value) -> Option<&'a Value> {
        match &self.place {
            Place::Run(name) => record.get(name),
            Place::Point(name) => record.get("point")?.get(name),
            Place::Flow(name) => flow.get(name),
            Place::Pacing(name) => flow.get("pacing")?.get(name),
        }
        .filter(|value| !value.is_null())
    }
}

/// A table that other programs take over.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Table {
    lines: Lines,
    rows: Rows,
    columns: Vec<Column>,
}

impl Table {
    /// The table of records.
    pub fn new(lines: Lines, rows: Rows) -> io::Result<Table> {
        let mut points: Vec<(String, DataType)> = Vec::new();
        for line in lines.iter()? {
            let point: Value = serde_json::from_str(&line?)?;
            for (key, value) in point.get("point").and_then(Value::as_object).into_iter().flatten() {
                let kind = kind_of(value);
                match points.iter_mut().find(|(known, _)| known == key) {
                    Some((_, known)) => *known = wider(known, &kind),
                    None => points.push((key.clone(), kind)),
                }
            }
        }
        Ok(Table { columns: columns(rows, &points), lines, rows })
    }

    fn schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(&column.name, column.kind.clone(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}

/// The type of a value of a sweep, or of a table of no records.
fn kind_of(value: &Value) -> DataType {
    match value {
        Value::Number(number) if number.is_i64() => DataType::Int64,
        Value::Number(_) => DataType::Float64,
        Value::Null => DataType::Null,
        _ => DataType::Utf8,
    }
}

fn wider(one: &DataType, other: &DataType) -> DataType {
    match (one, other) {
        (one, other) if one == other => one.clone(),
        (DataType::Null, kind) | (kind, DataType::Null) => kind.clone(),
        (DataType::Int64 | DataType::Float64, DataType::Int64 | DataType::Float64) => DataType::Float64,
        _ => DataType::Utf8,
    }
}

/// The columns, in the order of the record's fields.
fn columns(rows: Rows, points: &[(String, DataType)]) -> Vec<Column> {
    let mut columns = Vec::new();
    let of_point = |columns: &mut Vec<Column>| {
        columns.extend(points.iter().map(|(key, kind)| Column {
            name: key.clone(),
            place: Place::Point(key.clone()),
            kind: if *kind == DataType::Null { DataType::Utf8 } else { kind.clone() },
        }));
    };
    for (name, schema) in fields::properties(Of::Run).into_iter().flatten() {
        if name == "point" {
            of_point(&mut columns);
        } else if let Some(kind) = scalar(name, schema)
            && (rows == Rows::Runs || matches!(name.as_str(), "scenario" | "seed"))
        {
            columns.push(Column { name: name.clone(), place: Place::Run(name.clone()), kind });
        }
    }
    if rows != Rows::Flows {
        return columns;
    }
    for (name, schema) in fields::properties(Of::Flow).into_iter().flatten() {
        if name == "pacing" {
            let pacing = fields::schema()["$defs"]["PacingRecord"]["properties"].as_object();
            for (name, schema) in pacing.into_iter().flatten() {
                let Some(kind) = scalar(name, schema) else { continue };
                columns.push(Column { name: format!("pacing.{name}"), place: Place::Pacing(name.clone()), kind });
            }
        } else if let Some(kind) = scalar(name, schema) {
            let column = if name == "id" { "flow" } else { name };
            columns.push(Column { name: column.to_owned(), place: Place::Flow(name.clone()), kind });
        }
    }
    columns
}

/// The type of a field; none of what is no single value. Counts are signed, so that differences of them are right; a seed may need
/// all 64 bits.
fn scalar(name: &str, schema: &Value) -> Option<DataType> {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &str| kinds.contains(&kind);
    match name {
        "seed" => Some(DataType::UInt64),
        _ if is("integer") => Some(DataType::Int64),
        _ if is("number") => Some(DataType::Float64),
        _ if is("string") => Some(DataType::Utf8),
        _ => None,
    }
}

/// Batches as they are asked for.
struct Batches {
    lines: Box<dyn Iterator<Item = io::Result<String>> + Send>,
    rows: Rows,
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl Batches {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut records: Vec<Value> = Vec::new();
        for line in self.lines.by_ref().take(BATCH) {
            records.push(serde_json::from_str(&line?).map_err(|why| ArrowError::JsonError(why.to_string()))?);
        }
        if records.is_empty() {
            return Ok(None);
        }
        let rows = rows_of(self.rows, &records);
        let arrays = self.columns.iter().map(|column| array(column, &rows)).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map(Some)
    }
}

/// The rows of some records: each is a record, and of it a flow.
fn rows_of(rows: Rows, records: &[Value]) -> Vec<(&Value, &Value)> {
    let mut pairs = Vec::new();
    for record in records {
        let flows = record.get("flows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match rows {
            Rows::Runs | Rows::Whole => pairs.push((record, &Value::Null)),
            Rows::Flows => pairs.extend(flows.iter().map(|flow| (record, flow))),
        }
    }
    pairs
}

fn array(column: &Column, rows: &[(&Value, &Value)]) -> ArrayRef {
    let values = rows.iter().map(|(record, flow)| column.value(record, flow));
    match column.kind {
        DataType::Int64 => {
            let mut builder = Int64Builder::with_capacity(rows.len());
            values.for_each(|value| builder.append_option(value.and_then(Value::as_i64)));
            Arc::new(builder.finish())
        }
        DataType::UInt64 => {
            let mut builder = UInt64Builder::with_capacity(rows.len());
            values.for_each(|value| builder.append_option(value.and_then(Value::as_u64)));
            Arc::new(builder.finish())
        }
        DataType::Float64 => {
            let mut builder = Float64Builder::with_capacity(rows.len());
            values.for_each(|value| builder.append_option(value.and_then(Value::as_f64)));
            Arc::new(builder.finish())
        }
        _ => {
            let mut builder = StringBuilder::with_capacity(rows.len(), 16 * rows.len());
            values.for_each(|value| builder.append_option(value.map(plain)));
            Arc::new(builder.finish())
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[pymethods]
impl Table {
    /// The rows of the records from number `first` on, of `most` records at most: a JSON array each, in the order of the columns. None after the
    /// last record.
    fn rows(&self, py: Python<'_>, first: usize, most: usize) -> PyResult<Option<Vec<String>>> {
        let read = || -> io::Result<Option<Vec<String>>> {
            let records: Vec<Value> = self
                .lines
                .iter()?
                .skip(first)
                .take(most)
                .map(|line| Ok(serde_json::from_str(&line?)?))
                .collect::<io::Result<_>>()?;
            let row = |(record, flow): &(&Value, &Value)| {
                let cell = |column: &Column| match (column.value(record, flow), &column.kind) {
                    (None, _) => Value::Null,
                    (Some(value), DataType::Utf8) => Value::String(plain(value)),
                    (Some(value), _) => value.clone(),
                };
                Value::Array(self.columns.iter().map(cell).collect()).to_string()
            };
            Ok((!records.is_empty()).then(|| rows_of(self.rows, &records).iter().map(row).collect()))
        };
        py.detach(read).map_err(|error| errors::of_io(py, error))
    }

    /// All that it is made of: the lines of its records, and what a row is; for [`restored`].
    fn state(&self, py: Python<'_>) -> PyResult<(Vec<String>, &'static str)> {
        let read = || self.lines.iter()?.collect::<io::Result<Vec<String>>>();
        let lines = py.detach(read).map_err(|error| errors::of_io(py, error))?;
        Ok((lines, self.rows.name()))
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// The stream of the table's batches, as Arrow's PyCapsule protocol has it. Another schema cannot be asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows to answer with the schema that there is.
        drop(requested_schema);
        let lines = self.lines.iter().map_err(|error| errors::of_io(py, error))?;
        let batches = Batches { lines, rows: self.rows, columns: self.columns.clone(), schema: self.schema() };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The schema of the table, likewise.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema());
        let schema = schema.map_err(|error| errors::records(py, error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// The table of a list of objects, each a line of JSON.
#[pyfunction]
pub fn table(py: Python<'_>, lines: Vec<String>) -> PyResult<Table> {
    let mut kinds: Vec<(String, DataType)> = Vec::new();
    for line in &lines {
        let object: Map<String, Value> =
            serde_json::from_str(line).map_err(|why| errors::records(py, why.to_string()))?;
        for (key, value) in &object {
            match kinds.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => *known = wider(known, &kind_of(value)),
                None => kinds.push((key.clone(), kind_of(value))),
            }
        }
    }
    let column = |(key, kind): (String, DataType)| Column {
        name: key.clone(),
        place: Place::Run(key),
        kind: if kind == DataType::Null { DataType::Utf8 } else { kind },
    };
    let columns = kinds.into_iter().map(column).collect();
    Ok(Table { lines: Lines::Memory(Arc::new(lines)), rows: Rows::Whole, columns })
}

/// The table of which this is the [`Table::state`].
#[pyfunction]
pub fn restored(py: Python<'_>, lines: Vec<String>, rows: &str) -> PyResult<Table> {
    let rows = match rows {
        "runs" => Rows::Runs,
        "flows" => Rows::Flows,
        _ => return table(py, lines),
    };
    py.detach(|| Table::new(Lines::Memory(Arc::new(lines)), rows)).map_err(|error| errors::of_io(py, error))
}
