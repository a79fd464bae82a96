//! Records as tables for other programs, through Arrow's C stream interface (the PyCapsule protocol
//! of Arrow). Batches are created on request, so that a table may be larger than memory.
//!
//! The columns are the fields of a record, as declared in its table of columns: numbers, whole
//! numbers and text. A value that could not be measured is null. Lists (series, batches,
//! completions) have no column; they are only in the records themselves.

use crate::errors;
use crate::lines::Lines;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use meshpace_lab::record::column::{PACING, POINT, SEED};
use meshpace_lab::record::{Columns, FlowRecord, Kind, PacingRecord, Record, plain};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;

/// Number of records in a batch.
const BATCH: usize = 2048;

/// Meaning of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// One run per row.
    Runs,
    /// One flow of a run per row.
    Flows,
    /// The object of the line itself.
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

/// Source of a column's value.
#[derive(Clone, Debug)]
enum Place {
    Run(fn(&Record) -> Value),
    Point(String),
    Flow(fn(&FlowRecord) -> Value),
    Pacing(fn(&PacingRecord) -> Value),
    Member(String),
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    place: Place,
    kind: DataType,
}

/// Source of the values of a row.
#[derive(Clone, Copy)]
enum Row<'a> {
    Run(&'a Record),
    Flow(&'a Record, &'a FlowRecord),
    Object(&'a Value),
}

impl Column {
    fn value(&self, row: Row<'_>) -> Option<Value> {
        match (&self.place, row) {
            (Place::Run(of), Row::Run(record) | Row::Flow(record, _)) => Some(of(record)),
            (Place::Point(key), Row::Run(record) | Row::Flow(record, _)) => record.point.get(key).cloned(),
            (Place::Flow(of), Row::Flow(_, flow)) => Some(of(flow)),
            (Place::Pacing(of), Row::Flow(_, flow)) => flow.pacing.as_ref().map(of),
            (Place::Member(name), Row::Object(object)) => object.get(name).cloned(),
            _ => None,
        }
        .filter(|value| !value.is_null())
    }
}

/// Parsed lines of a batch.
enum Batch {
    Records(Vec<Record>),
    Objects(Vec<Value>),
}

impl Batch {
    fn read(rows: Rows, lines: impl Iterator<Item = io::Result<String>>) -> io::Result<Batch> {
        Ok(match rows {
            Rows::Runs | Rows::Flows => {
                Batch::Records(lines.map(|line| Ok(Record::read(&line?)?)).collect::<io::Result<_>>()?)
            }
            Rows::Whole => {
                Batch::Objects(lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect::<io::Result<_>>()?)
            }
        })
    }

    fn is_empty(&self) -> bool {
        match self {
            Batch::Records(records) => records.is_empty(),
            Batch::Objects(objects) => objects.is_empty(),
        }
    }

    fn rows(&self, rows: Rows) -> Vec<Row<'_>> {
        match self {
            Batch::Records(records) if rows == Rows::Flows => {
                records.iter().flat_map(|record| record.flows.iter().map(move |flow| Row::Flow(record, flow))).collect()
            }
            Batch::Records(records) => records.iter().map(Row::Run).collect(),
            Batch::Objects(objects) => objects.iter().map(Row::Object).collect(),
        }
    }
}

/// Table that is exported to other programs.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Table {
    lines: Lines,
    rows: Rows,
    columns: Vec<Column>,
}

impl Table {
    /// Creates the table of records.
    pub fn new(lines: Lines, rows: Rows) -> io::Result<Table> {
        let mut points: Vec<(String, DataType)> = Vec::new();
        for line in lines.iter()? {
            for (key, value) in &Record::read(&line?)?.point {
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

/// Type of a swept value, or of a value in a table of other objects.
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

/// Columns, in the order of the record's fields.
fn columns(rows: Rows, points: &[(String, DataType)]) -> Vec<Column> {
    let mut columns = Vec::new();
    let of_point = |columns: &mut Vec<Column>| {
        columns.extend(points.iter().map(|(key, kind)| Column {
            name: key.clone(),
            place: Place::Point(key.clone()),
            kind: if *kind == DataType::Null { DataType::Utf8 } else { kind.clone() },
        }));
    };
    for (number, column) in Record::COLUMNS.iter().enumerate() {
        if number == POINT {
            of_point(&mut columns);
        } else if let Some(kind) = scalar(column.kind)
            && (rows == Rows::Runs || number < POINT)
        {
            let kind = if column.name == SEED { DataType::UInt64 } else { kind };
            columns.push(Column { name: column.name.to_owned(), place: Place::Run(column.of), kind });
        }
    }
    if rows != Rows::Flows {
        return columns;
    }
    for column in FlowRecord::COLUMNS {
        if column.name == PACING {
            columns.extend(PacingRecord::COLUMNS.iter().filter_map(|column| {
                let name = format!("{PACING}.{}", column.name);
                Some(Column { name, place: Place::Pacing(column.of), kind: scalar(column.kind)? })
            }));
        } else if let Some(kind) = scalar(column.kind) {
            columns.push(Column { name: column.heading().to_owned(), place: Place::Flow(column.of), kind });
        }
    }
    columns
}

/// Type of a column; `None` for a column that is not a single value. Counts are signed, so that
/// differences between them are correct.
fn scalar(kind: Kind) -> Option<DataType> {
    match kind {
        Kind::Whole => Some(DataType::Int64),
        Kind::Number => Some(DataType::Float64),
        Kind::Text => Some(DataType::Utf8),
        Kind::Nested => None,
    }
}

/// Batches, created on request.
struct Batches {
    lines: Box<dyn Iterator<Item = io::Result<String>> + Send>,
    rows: Rows,
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl Batches {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let batch = Batch::read(self.rows, self.lines.by_ref().take(BATCH));
        let batch = batch.map_err(|why| ArrowError::JsonError(why.to_string()))?;
        if batch.is_empty() {
            return Ok(None);
        }
        let rows = batch.rows(self.rows);
        let arrays = self.columns.iter().map(|column| array(column, &rows)).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map(Some)
    }
}

fn array(column: &Column, rows: &[Row<'_>]) -> ArrayRef {
    let values = rows.iter().map(|row| column.value(*row));
    match column.kind {
        DataType::Int64 => {
            let mut builder = Int64Builder::with_capacity(rows.len());
            values.for_each(|value| builder.append_option(value.and_then(|value| value.as_i64())));
            Arc::new(builder.finish())
        }
        DataType::UInt64 => {
            let mut builder = UInt64Builder::with_capacity(rows.len());
            values.for_each(|value| builder.append_option(value.and_then(|value| value.as_u64())));
            Arc::new(builder.finish())
        }
        DataType::Float64 => {
            let mut builder = Float64Builder::with_capacity(rows.len());
            values.for_each(|value| builder.append_option(value.and_then(|value| value.as_f64())));
            Arc::new(builder.finish())
        }
        _ => {
            let mut builder = StringBuilder::with_capacity(rows.len(), 16 * rows.len());
            values.for_each(|value| builder.append_option(value.as_ref().map(plain)));
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
    /// Rows of the records from number `first` on, of at most `most` records. Each row is a JSON
    /// array in the order of the columns. `None` after the last record.
    fn rows(&self, py: Python<'_>, first: usize, most: usize) -> PyResult<Option<Vec<String>>> {
        let read = || -> io::Result<Option<Vec<String>>> {
            let batch = Batch::read(self.rows, self.lines.iter()?.skip(first).take(most))?;
            let row = |row: &Row<'_>| {
                let cell = |column: &Column| match (column.value(*row), &column.kind) {
                    (None, _) => Value::Null,
                    (Some(value), DataType::Utf8) => Value::String(plain(&value)),
                    (Some(value), _) => value,
                };
                Value::Array(self.columns.iter().map(cell).collect()).to_string()
            };
            Ok((!batch.is_empty()).then(|| batch.rows(self.rows).iter().map(row).collect()))
        };
        py.detach(read).map_err(|error| errors::of_io(py, error))
    }

    /// State of the table for [`restored`]: the lines of its records, and the meaning of a row.
    fn state(&self, py: Python<'_>) -> PyResult<(Vec<String>, &'static str)> {
        let read = || self.lines.iter()?.collect::<io::Result<Vec<String>>>();
        let lines = py.detach(read).map_err(|error| errors::of_io(py, error))?;
        Ok((lines, self.rows.name()))
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Stream of the table's batches for Arrow's PyCapsule protocol. A requested schema is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows a producer to answer with its own schema.
        drop(requested_schema);
        let lines = self.lines.iter().map_err(|error| errors::of_io(py, error))?;
        let batches = Batches { lines, rows: self.rows, columns: self.columns.clone(), schema: self.schema() };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// Schema of the table for Arrow's PyCapsule protocol.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema());
        let schema = schema.map_err(|error| errors::records(py, error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// Creates the table of a list of objects, each a line of JSON.
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
        place: Place::Member(key),
        kind: if kind == DataType::Null { DataType::Utf8 } else { kind },
    };
    let columns = kinds.into_iter().map(column).collect();
    Ok(Table { lines: Lines::Memory(Arc::new(lines)), rows: Rows::Whole, columns })
}

/// Creates a table from its [`Table::state`].
#[pyfunction]
pub fn restored(py: Python<'_>, lines: Vec<String>, rows: &str) -> PyResult<Table> {
    let rows = match rows {
        "runs" => Rows::Runs,
        "flows" => Rows::Flows,
        _ => return table(py, lines),
    };
    py.detach(|| Table::new(Lines::Memory(Arc::new(lines)), rows)).map_err(|error| errors::of_io(py, error))
}
