//! Declaration of records: the macro `columns!` makes a type of record and the table of its columns from one list of fields.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Place among the columns of a run of the values of its sweep, which have columns of their own in a table. The columns before it tell
/// the run from others: its scenario and its seed.
pub const POINT: usize = 2;
/// The column of the run whose values need all 64 bits.
pub const SEED: &str = "seed";
/// The column of the flow whose fields have columns of their own in a table.
pub const PACING: &str = "pacing";
/// The field of the flow that is called otherwise in a table with columns of the run.
const ID: &str = "id";

/// Type of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
    /// Text.
    Text,
    /// An object or a list. JSON has it; a table with one value in each cell has no column for it.
    Nested,
}

/// A type that a field of a record may have.
pub trait Field: Serialize {
    /// The kind of its column.
    const KIND: Kind;
    /// The value of a field that was not measured.
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

/// A column: a field of records of the type `R`.
#[derive(Clone, Copy, Debug)]
pub struct Column<R: 'static> {
    /// Name of the field.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Value of the field in a record, as JSON has it: `null` if it could not be measured.
    pub of: fn(&R) -> Value,
    /// Place among the columns of CSV and Parquet that programs may count. Columns without one follow in the order of the table.
    pub place: Option<u8>,
}

impl<R> Column<R> {
    /// Its name in a table that has columns of runs and of flows.
    pub fn heading(&self) -> &'static str {
        if self.name == ID { "flow" } else { self.name }
    }
}

/// A type of record with its table of columns.
pub trait Columns: Sized + 'static {
    /// The columns, in the order of the JSON object.
    const COLUMNS: &'static [Column<Self>];

    /// The column of that name.
    fn column(name: &str) -> Option<&'static Column<Self>> {
        Self::COLUMNS.iter().find(|column| column.name == name)
    }

    /// The number in the field of that name; `None` if there is no such field, or if it was not measured.
    fn number(&self, name: &str) -> Option<f64> {
        (Self::column(name)?.of)(self).as_f64()
    }

    /// The list of numbers in the field of that name; nothing if there is no such field.
    fn numbers(&self, name: &str) -> Vec<Option<f64>> {
        let list = Self::column(name).map(|column| (column.of)(self)).unwrap_or_default();
        list.as_array().into_iter().flatten().map(Value::as_f64).collect()
    }
}

/// A number. It is NaN in a record and `null` in JSON if it could not be measured.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(deserializer).map(|number| number.unwrap_or(f64::NAN))
}

/// A number that only some runs measure: `None` if the field is not there, NaN if it is `null`.
pub fn measured<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    number(deserializer).map(Some)
}

/// Declares a type of record. Each entry is a field: its meaning, the attributes of serde, its name and type, after `=` its value by what
/// the record is made of, and after `at` its [`place`](Column::place). The meanings are those of the page docs/records.md.
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
            /// The record of what was measured.
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
            /// A record of which nothing was measured.
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
