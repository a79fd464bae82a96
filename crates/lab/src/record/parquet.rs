//! Records as Parquet: the table of [`super::csv`] with types. A column is of whole numbers, of numbers, or of text, as
//! the values in it are; what could not be measured is null.

use super::csv;
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;
use std::sync::Arc;

/// One column.
enum Column {
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
}

impl Column {
    fn of(values: &[Value]) -> Column {
        let there = || values.iter().filter(|value| !value.is_null());
        if there().next().is_some() && there().all(Value::is_i64) {
            Column::Whole(values.iter().map(Value::as_i64).collect())
        } else if there().all(Value::is_number) {
            Column::Number(values.iter().map(Value::as_f64).collect())
        } else {
            let text = |value: &Value| (!value.is_null()).then(|| super::plain(value));
            Column::Text(values.iter().map(text).collect())
        }
    }

    fn schema(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, converted) = match self {
            Column::Whole(_) => (Physical::INT64, ConvertedType::NONE),
            Column::Number(_) => (Physical::DOUBLE, ConvertedType::NONE),
            Column::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let builder = Type::primitive_type_builder(name, physical).with_converted_type(converted);
        builder.with_repetition(Repetition::OPTIONAL).build()
    }
}

/// The file of these records.
///
/// # Errors
/// None are known: it writes to memory.
pub fn file(records: &[Value]) -> Result<Vec<u8>, ParquetError> {
    let Some(first) = records.first() else { return Ok(Vec::new()) };
    let rows: Vec<Vec<Value>> = records.iter().flat_map(csv::values_of).collect();
    let columns: Vec<(String, Column)> = csv::header_of(first)
        .into_iter()
        .enumerate()
        .map(|(number, name)| (name, Column::of(&rows.iter().map(|row| row[number].clone()).collect::<Vec<_>>())))
        .collect();
    let fields = columns.iter().map(|(name, column)| column.schema(name).map(Arc::new)).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("record").with_fields(fields).build()?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    for (_, column) in &columns {
        let Some(mut into) = group.next_column()? else { break };
        match column {
            Column::Whole(values) => {
                let (there, levels) = split(values);
                into.typed::<Int64Type>().write_batch(&there, Some(&levels), None)?;
            }
            Column::Number(values) => {
                let (there, levels) = split(values);
                into.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
            }
            Column::Text(values) => {
                let (there, levels) = split(values);
                let there: Vec<ByteArray> = there.into_iter().map(|text| ByteArray::from(text.into_bytes())).collect();
                into.typed::<ByteArrayType>().write_batch(&there, Some(&levels), None)?;
            }
        }
        into.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// The values that are there, and for each row whether one is: 1 or 0.
fn split<T: Clone>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (values.iter().flatten().cloned().collect(), values.iter().map(|value| i16::from(value.is_some())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn a_file_can_be_read_back_with_types_and_gaps() {
        let record = |seed: u64, jain: Value| {
            serde_json::json!({
                "scenario": "s", "seed": seed, "point": {"topology.hops": 4, "flow.rate": "20 kbit/s"}, "jain": jain,
                "aggregate_goodput_bps": 1.5, "flows": [{"id": 0, "timeouts": 2}, {"id": 1, "timeouts": 3}],
            })
        };
        let bytes = file(&[record(1, Value::Null), record(2, 0.5.into())]).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("records.parquet");
        std::fs::write(&path, bytes).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 4, "one for each flow");
        let column = |name: &str| rows[0].get_column_iter().position(|(other, _)| other == name).unwrap();
        assert_eq!(rows[2].get_long(column("seed")).unwrap(), 2);
        assert_eq!(rows[3].get_long(column("timeouts")).unwrap(), 3);
        assert_eq!(rows[0].get_long(column("topology.hops")).unwrap(), 4);
        assert_eq!(rows[0].get_string(column("flow.rate")).unwrap(), "20 kbit/s");
        assert_eq!(rows[0].get_double(column("aggregate_goodput_bps")).unwrap(), 1.5);
        assert!(rows[0].get_double(column("jain")).is_err(), "null");
        assert_eq!(rows[3].get_double(column("jain")).unwrap(), 0.5);
    }
}
