//! A scenario as a tree of values. Each value knows where it was written, so that an error can
//! point there.

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Place of a key or value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Range of bytes of the scenario file.
    File(Range<usize>),
    /// Index of a `--set` argument.
    Set(usize),
}

/// A value and where it was written.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Value in the types of TOML.
    pub kind: Kind,
    /// Place where the value was written.
    pub origin: Origin,
}

/// Values of TOML.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// A string.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction, an infinity or NaN.
    Float(f64),
    /// true or false.
    Bool(bool),
    /// A value that no key accepts: a date, or an integer beyond 64 bits, as written.
    Other(String),
    /// A list.
    Array(Vec<Value>),
    /// A table.
    Table(Table),
}

/// Keys and values in the order in which they were written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Entries in the order of the file.
    pub entries: Vec<Entry>,
}

/// A key, where it was written, and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Name of the key.
    pub key: String,
    /// Place of the key.
    pub origin: Origin,
    /// Value of the key.
    pub value: Value,
}

impl Table {
    /// Returns the entry of `key`.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the value of `key` for modification.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
    }

    /// Sets `key`. An existing entry keeps its position.
    pub fn set(&mut self, key: &str, origin: Origin, value: Value) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => (entry.origin, entry.value) = (origin, value),
            None => self.entries.push(Entry { key: key.to_owned(), origin, value }),
        }
    }

    /// Removes `key` from the table and returns its entry.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let place = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(place))
    }

    /// Converts a parsed table; `origin` maps a span of it to the place where it was written.
    pub fn from_toml(table: &DeTable<'_>, origin: &impl Fn(Range<usize>) -> Origin) -> Table {
        let mut entries: Vec<_> = table.iter().collect();
        // The parser sorts by name, but sweeps need the order of the file.
        entries.sort_by_key(|(key, _)| key.span().start);
        let entries = entries
            .into_iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                origin: origin(key.span()),
                value: Value::from_toml(value.get_ref(), value.span(), origin),
            })
            .collect();
        Table { entries }
    }
}

impl Value {
    /// Converts a parsed value.
    pub fn from_toml(value: &DeValue<'_>, span: Range<usize>, origin: &impl Fn(Range<usize>) -> Origin) -> Value {
        let kind = match value {
            DeValue::String(text) => Kind::String(text.to_string()),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => Kind::Integer(number),
                Err(_) => Kind::Other(integer.as_str().to_owned()),
            },
            DeValue::Float(float) => match float.as_str().parse() {
                Ok(number) => Kind::Float(number),
                Err(_) => Kind::Other(float.as_str().to_owned()),
            },
            DeValue::Boolean(flag) => Kind::Bool(*flag),
            DeValue::Datetime(date) => Kind::Other(date.to_string()),
            DeValue::Array(array) => {
                Kind::Array(array.iter().map(|item| Value::from_toml(item.get_ref(), item.span(), origin)).collect())
            }
            DeValue::Table(table) => Kind::Table(Table::from_toml(table, origin)),
        };
        Value { kind, origin: origin(span) }
    }

    /// Returns the value as a whole number from 0 on; `None` if it is not one.
    pub fn whole(&self) -> Option<u64> {
        if let Kind::Integer(number) = self.kind { u64::try_from(number).ok() } else { None }
    }

    /// Text of the value in one line, for messages and labels. Strings have no quotes.
    pub fn brief(&self) -> String {
        match &self.kind {
            Kind::String(text) | Kind::Other(text) => text.clone(),
            Kind::Integer(number) => number.to_string(),
            Kind::Float(number) => number.to_string(),
            Kind::Bool(flag) => flag.to_string(),
            Kind::Array(items) => format!("[{}]", items.iter().map(Value::brief).collect::<Vec<_>>().join(", ")),
            Kind::Table(table) => {
                let entries = table.entries.iter().map(|entry| format!("{} = {}", entry.key, entry.value.brief()));
                format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Description of the value, for "expected ..., found ...".
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::String(text) => format!("the string \"{text}\""),
            Kind::Array(_) => "a list".to_owned(),
            Kind::Table(_) => "a table".to_owned(),
            _ => self.brief(),
        }
    }

    /// Converts the value to JSON, for records.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.kind {
            Kind::String(text) | Kind::Other(text) => text.as_str().into(),
            Kind::Integer(number) => (*number).into(),
            Kind::Float(number) => (*number).into(),
            Kind::Bool(flag) => (*flag).into(),
            Kind::Array(items) => items.iter().map(Value::to_json).collect(),
            Kind::Table(table) => {
                serde_json::Value::Object(table.entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect())
            }
        }
    }

    /// The `--set` argument that gave the value or a part of it; `None` if none did.
    pub fn set_by(&self) -> Option<Origin> {
        match (&self.origin, &self.kind) {
            (Origin::Set(_), _) => Some(self.origin.clone()),
            (_, Kind::Array(items)) => items.iter().find_map(Value::set_by),
            (_, Kind::Table(table)) => table.entries.iter().find_map(|entry| entry.value.set_by()),
            _ => None,
        }
    }

    /// True if the value is this string or contains it.
    pub fn has_string(&self, text: &str) -> bool {
        match &self.kind {
            Kind::String(own) => own == text,
            Kind::Array(items) => items.iter().any(|item| item.has_string(text)),
            Kind::Table(table) => table.entries.iter().any(|entry| entry.value.has_string(text)),
            _ => false,
        }
    }
}
