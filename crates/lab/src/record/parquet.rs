//! Records as Parquet: the table of [`super::csv`] with typed columns. The type of a column
//! (integers, floating-point numbers or text) is derived from its values. A value that could not be
//! measured is null.
//!
//! The records are read twice: first to find the types, and then to write the values, one row group
//! after another. Only one group is in memory at a time.

use super::{Record, csv};
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;

/// Smallest number of rows in a group; only the last group can have fewer. It bounds the memory
/// that a group needs.
const GROUP: usize = 16_384;

/// Type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    /// The column has only nulls so far. It is written as a column of floating-point numbers.
    #[default]
    Nothing,
    Whole,
    Number,
    Text,
}

impl Kind {
    /// Returns the type of the column after it got one more value.
    fn with(self, value: &Value) -> Kind {
        match (self, value) {
            (kind, Value::Null) => kind,
            (Kind::Nothing | Kind::Whole, value) if value.is_i64() => Kind::Whole,
            (Kind::Nothing | Kind::Whole | Kind::Number, value) if value.is_number() => Kind::Number,
            _ => Kind::Text,
        }
    }

    fn schema(self, name: &str) -> Result<Type> {
        let (physical, converted) = match self {
            Kind::Whole => (Physical::INT64, ConvertedType::NONE),
            Kind::Nothing | Kind::Number => (Physical::DOUBLE, ConvertedType::NONE),
            Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let builder = Type::primitive_type_builder(name, physical).with_converted_type(converted);
        builder.with_repetition(Repetition::OPTIONAL).build()
    }

    fn column(self) -> Column {
        match self {
            Kind::Whole => Column::Whole(Cells::default()),
            Kind::Nothing | Kind::Number => Column::Number(Cells::default()),
            Kind::Text => Column::Text(Cells::default()),
        }
    }
}

/// Values of a column. `there` has those that are not null, and `levels` has one entry for each
/// row: 1 if the row has a value, 0 if it is null.
struct Cells<T> {
    there: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Default for Cells<T> {
    fn default() -> Cells<T> {
        Cells { there: Vec::new(), levels: Vec::new() }
    }
}

impl<T> Cells<T> {
    fn put(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.there.extend(value);
    }

    /// Writes the values as the next column of a row group.
    fn write<D: DataType<T = T>>(&self, group: &mut SerializedRowGroupWriter<'_, impl Write + Send>) -> Result<()> {
        let Some(mut column) = group.next_column()? else { return Ok(()) };
        column.typed::<D>().write_batch(&self.there, Some(&self.levels), None)?;
        column.close()
    }
}

/// Column of a row group in memory.
enum Column {
    Whole(Cells<i64>),
    Number(Cells<f64>),
    Text(Cells<ByteArray>),
}

impl Column {
    fn put(&mut self, value: &Value) {
        match self {
            Column::Whole(cells) => cells.put(value.as_i64()),
            Column::Number(cells) => cells.put(value.as_f64()),
            Column::Text(cells) => {
                cells.put((!value.is_null()).then(|| ByteArray::from(super::plain(value).into_bytes())));
            }
        }
    }

    fn rows(&self) -> usize {
        match self {
            Column::Whole(cells) => cells.levels.len(),
            Column::Number(cells) => cells.levels.len(),
            Column::Text(cells) => cells.levels.len(),
        }
    }
}

/// Writes the Parquet file of the records that `records` yields. The function `records` is called
/// twice and must yield the same records each time. Nothing is written if there are none. `keys`
/// are the keys of the sweep.
///
/// # Errors
/// Any error of `records`, and of writing.
pub fn write<W, I>(into: W, keys: &[String], records: impl Fn() -> I) -> io::Result<()>
where
    W: Write + Send,
    I: Iterator<Item = io::Result<Record>>,
{
    let names = csv::header_of(keys);
    let (mut kinds, mut is_empty) = (vec![Kind::Nothing; names.len()], true);
    for record in records() {
        is_empty = false;
        for row in csv::values_of(&record?, keys) {
            kinds.iter_mut().zip(&row).for_each(|(kind, value)| *kind = kind.with(value));
        }
    }
    if is_empty {
        return Ok(());
    }
    write_table(into, keys, &names, &kinds, records()).map_err(|error| match error {
        ParquetError::External(error) => io::Error::other(error),
        error => io::Error::other(error),
    })
}

fn write_table<W: Write + Send>(
    into: W,
    keys: &[String],
    names: &[String],
    kinds: &[Kind],
    records: impl Iterator<Item = io::Result<Record>>,
) -> Result<()> {
    let fields = names.iter().zip(kinds).map(|(name, kind)| kind.schema(name).map(Arc::new)).collect::<Result<_>>()?;
    let schema = Type::group_type_builder("record").with_fields(fields).build()?;
    let mut writer = SerializedFileWriter::new(into, Arc::new(schema), Arc::new(WriterProperties::builder().build()))?;
    let columns = || kinds.iter().map(|kind| kind.column()).collect::<Vec<Column>>();
    let mut group = columns();
    for record in records {
        for row in csv::values_of(&record?, keys) {
            group.iter_mut().zip(&row).for_each(|(column, value)| column.put(value));
        }
        if group[0].rows() >= GROUP {
            write_group(&mut writer, &std::mem::replace(&mut group, columns()))?;
        }
    }
    if group[0].rows() > 0 {
        write_group(&mut writer, &group)?;
    }
    writer.close().map(drop)
}

fn write_group<W: Write + Send>(writer: &mut SerializedFileWriter<W>, columns: &[Column]) -> Result<()> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        match column {
            Column::Whole(cells) => cells.write::<Int64Type>(&mut group)?,
            Column::Number(cells) => cells.write::<DoubleType>(&mut group)?,
            Column::Text(cells) => cells.write::<ByteArrayType>(&mut group)?,
        }
    }
    group.close().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn read_back(records: &[Record]) -> SerializedFileReader<std::fs::File> {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("records.parquet");
        let file = std::fs::File::create(&path).unwrap();
        let keys = crate::record::keys_of(records.iter().map(|record| record.point.keys().map(String::as_str)));
        write(file, &keys, || records.iter().cloned().map(Ok)).unwrap();
        SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap()
    }

    #[test]
    fn a_file_of_many_records_has_several_groups_and_one_type_for_a_column() {
        let record = |seed: usize| {
            // Whole in the first group, and a number only in the last record.
            let jain = if seed == 3 * GROUP / 2 { 0.5.into() } else { Value::from(1) };
            let object =
                serde_json::json!({"scenario": "s", "seed": seed, "point": {}, "jain": jain, "flows": [{"id": 0}]});
            crate::record::record(object)
        };
        let records: Vec<Record> = (1..=3 * GROUP / 2).map(record).collect();
        let reader = read_back(&records);
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let (mut seeds, mut last) = (0, 0.0);
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let column = |name: &str| row.get_column_iter().position(|(other, _)| other == name).unwrap();
            seeds += 1;
            assert_eq!(row.get_long(column("seed")).unwrap(), seeds);
            last = row.get_double(column("jain")).unwrap();
        }
        assert_eq!((seeds as usize, last), (records.len(), 0.5));
    }

    #[test]
    fn a_file_can_be_read_back_with_types_and_gaps() {
        let record = |seed: u64, jain: Value| {
            crate::record::record(serde_json::json!({
                "scenario": "s", "seed": seed, "point": {"topology.hops": 4, "flow.rate": "20 kbit/s"}, "jain": jain,
                "aggregate_goodput_bps": 1.5, "flows": [{"id": 0, "timeouts": 2}, {"id": 1, "timeouts": 3}],
            }))
        };
        let reader = read_back(&[record(1, Value::Null), record(2, 0.5.into())]);
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
