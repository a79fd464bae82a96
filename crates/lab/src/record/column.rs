//! Macro `columns!`: it declares a type of record and the table of its columns from one list of
//! fields.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Index of the column `point` among the columns of a run. A table replaces this column by one
/// column for each key of the sweep. The columns before it, scenario and seed, identify the run.
pub const POINT: usize = 2;
/// Name of the run's column whose values need all 64 bits.
pub const SEED: &str = "seed";
/// Name of the flow's column whose fields are separate columns in a table.
pub const PACING: &str = "pacing";
/// Name of the flow's field that has another heading in a table that also has columns of the run.
const ID: &str = "id";

/// Type of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Integers.
    Whole,
    /// Floating-point numbers.
    Number,
    /// Text.
    Text,
    /// Objects or lists. They occur in JSON only: a table with one value in each cell has no column
    /// for them.
    Nested,
}

/// Type that a field of a record can have.
pub trait Field: Serialize {
    /// Type of the values in the column of such a field.
    const KIND: Kind;
    /// Value of a field that was not measured.
    fn unmeasured() -> Self;
}

macro_rules! fields {
    ($($type:ty, $kind:ident, $unmeasured:expr;)*) => {
        $(impl Field for $type {
            const KIND: Kind = Kind::$kind;
            fn unmeasured() -> $type {
                $unmeasured
            }
        })*
    };
}

fields! {
    f64, Number, f64::NAN;
    u64, Whole, 0;
    u32, Whole, 0;
    u16, Whole, 0;
    u8, Whole, 0;
    usize, Whole, 0;
    String, Text, String::new();
    Map<String, Value>, Nested, Map::new();
    Value, Nested, Value::Null;
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    fn unmeasured() -> Option<T> {
        None
    }
}

impl<T: Serialize> Field for Vec<T> {
    const KIND: Kind = Kind::Nested;
    fn unmeasured() -> Vec<T> {
        Vec::new()
    }
}

/// Column of a table: a field of records of the type `R`.
#[derive(Clone, Copy, Debug)]
pub struct Column<R: 'static> {
    /// Name of the field.
    pub name: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// Returns the JSON value of the field of a record: `null` if it could not be measured.
    pub of: fn(&R) -> Value,
    /// Fixed position of the column in CSV and Parquet, on which programs that count columns rely.
    /// Columns with `None` follow in the order of the declaration.
    pub place: Option<u8>,
}

impl<R> Column<R> {
    /// Heading of the column in a table that has columns of runs and columns of flows.
    pub fn heading(&self) -> &'static str {
        if self.name == ID { "flow" } else { self.name }
    }
}

/// Type of record that has a table of columns.
pub trait Columns: Sized + 'static {
    /// The columns, in the order of the JSON object.
    const COLUMNS: &'static [Column<Self>];

    /// Returns the column with this name.
    fn column(name: &str) -> Option<&'static Column<Self>> {
        Self::COLUMNS.iter().find(|column| column.name == name)
    }

    /// Returns the number in the field `name`. `None` if there is no such field, if it is not a
    /// number, or if it was not measured.
    fn number(&self, name: &str) -> Option<f64> {
        (Self::column(name)?.of)(self).as_f64()
    }

    /// Returns the list of numbers in the field `name`; empty if there is no such field.
    fn numbers(&self, name: &str) -> Vec<Option<f64>> {
        let list = Self::column(name).map(|column| (column.of)(self)).unwrap_or_default();
        list.as_array().into_iter().flatten().map(Value::as_f64).collect()
    }
}

/// Deserializes a number that may not have been measured: NaN in a record, `null` in JSON.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(deserializer).map(|number| number.unwrap_or(f64::NAN))
}

/// Deserializes a number that only some runs measure: `None` if the field is absent, NaN if it is
/// `null`.
pub fn measured<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    number(deserializer).map(Some)
}

/// Declares a type of record. Each entry is a field: its meaning, the attributes of serde, its name
/// and its type. After `=` stands the expression that computes its value from the source of the
/// record, and after `at` its [`place`](Column::place). The page docs/records.md shows the
/// meanings.
macro_rules! columns {
    (
        $(#[$about:meta])*
        pub struct $record:ident from $source:ident: $from:ty {
            $( $(#[$attribute:meta])* $field:ident: $type:ty = $value:expr $(, at $place:literal)?; )*
        }
    ) => {
        columns! {
            $(#[$about])*
            pub struct $record { $( $(#[$attribute])* $field: $type $(, at $place)?; )* }
        }

        impl $record {
            /// Creates the record from its source.
            fn of($source: $from) -> $record {
                $record { $( $field: $value, )* }
            }
        }
    };
    (
        $(#[$about:meta])*
        pub struct $record:ident {
            $( $(#[$attribute:meta])* $field:ident: $type:ty $(, at $place:literal)?; )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default)]
        pub struct $record {
            $( $(#[$attribute])* pub $field: $type, )*
        }

        impl Default for $record {
            /// Creates a record without any measurements.
            fn default() -> $record {
                $record { $( $field: $crate::record::column::Field::unmeasured(), )* }
            }
        }

        impl $crate::record::column::Columns for $record {
            const COLUMNS: &'static [$crate::record::column::Column<$record>] = &[
                $( $crate::record::column::Column {
                    name: stringify!($field),
                    kind: <$type as $crate::record::column::Field>::KIND,
                    of: |record| serde_json::to_value(&record.$field).unwrap_or_default(),
                    place: columns!(@place $($place)?),
                }, )*
            ];
        }

        impl $crate::record::column::Field for $record {
            const KIND: $crate::record::column::Kind = $crate::record::column::Kind::Nested;
            fn unmeasured() -> $record {
                $record::default()
            }
        }
    };
    (@place) => { None };
    (@place $place:literal) => { Some($place) };
}
pub(super) use columns;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PacingRecord, Record};

    columns! {
        /// A record with one more field than it had.
        pub struct Extended from seed: u64 {
            /// The first.
            seed: u64 = seed, at 1;
            /// The one that was added.
            #[serde(deserialize_with = "number")]
            twice: f64 = 2.0 * seed as f64;
        }
    }

    #[test]
    fn an_entry_makes_the_field_its_json_its_column_and_its_value() {
        let record = Extended::of(4);
        assert_eq!(serde_json::to_string(&record).unwrap(), r#"{"seed":4,"twice":8.0}"#);
        assert_eq!((record.number("twice"), Extended::default().number("twice")), (Some(8.0), None));
        assert_eq!(Extended::column("twice").map(|column| (column.kind, column.place)), Some((Kind::Number, None)));
        assert!(serde_json::from_str::<Extended>(r#"{"seed":4}"#).unwrap().twice.is_nan(), "records of before");
        let schema = schemars::schema_for!(Extended).to_value();
        assert_eq!(schema["properties"]["twice"]["description"], "The one that was added.");
    }

    #[test]
    fn the_columns_that_have_a_meaning_of_their_own_are_where_they_are_looked_for() {
        assert_eq!(Record::COLUMNS[POINT].name, "point");
        assert!(Record::column(SEED).is_some() && Record::column(PACING).is_none());
        assert!(crate::record::FlowRecord::column(PACING).is_some() && PacingRecord::COLUMNS.len() == 4);
    }
}
