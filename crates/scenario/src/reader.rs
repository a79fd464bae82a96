//! Reads the keys of one table, remembers which it knows, and reports the rest.

use super::diagnostic::{Problem, Problems, nearest, one_of};
use super::keys::{self, Form};
use super::quantity::Dimension;
use super::value::{Kind, Origin, Table, Value};
use std::ops::RangeInclusive;

/// A table being read. A key that is missing or wrong gives `None`; what is wrong is noted, and the scenario refused.
pub struct Reader<'a> {
    table: &'a Table,
    /// Where the table was written, if it was.
    origin: Option<&'a Origin>,
    /// The table's own dotted path; empty at the root.
    path: String,
    /// Of which kind the table is, where its kinds have keys of their own.
    kind: Option<&'static str>,
    known: Vec<&'static str>,
    problems: &'a Problems,
}

/// Which sign a quantity may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// Above zero.
    Positive,
    /// Zero or more.
    NotNegative,
    /// Any.
    Any,
}

static NO_KEYS: Table = Table { entries: Vec::new() };

impl<'a> Reader<'a> {
    /// A reader of `table`, which is found at `path`.
    pub fn new(table: &'a Table, origin: Option<&'a Origin>, path: String, problems: &'a Problems) -> Reader<'a> {
        Reader { table, origin, path, kind: None, known: Vec::new(), problems }
    }

    /// Where problems go.
    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// The dotted path of `key`.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of `key`, which is known from now on. A key that `meshpace keys` does not list cannot be read.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        let is_listed = keys::is_listed(&self.path(key));
        debug_assert!(is_listed, "{}: add it to keys/table.txt", self.path(key));
        if !is_listed {
            return None;
        }
        self.asked(key, None);
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// What is read from now on belongs to a table of this kind: the list of keys tells what each kind takes.
    pub fn is_of(&mut self, kind: &'static str) {
        self.kind = Some(kind);
    }

    /// Tells a recording, if there is one, that `key` is read as `form`.
    fn asked(&self, key: &str, form: Option<Form>) {
        if let Some(recording) = self.problems.recording() {
            recording.note(&self.path(key), self.kind, form);
        }
    }

    /// The value of `key`, without making it known.
    pub fn value(&self, key: &str) -> Option<&'a Value> {
        self.table.get(key)
    }

    /// Where `key` was written, or else its table.
    pub fn origin(&self, key: &str) -> Option<Origin> {
        self.table.get(key).map(|value| &value.origin).or(self.origin).cloned()
    }

    /// Notes that `key` is wrong.
    pub fn wrong(&self, key: &str, message: impl AsRef<str>, expected: impl Into<String>) {
        self.problems.add(Problem {
            message: format!("{}: {}", self.path(key), message.as_ref()),
            origin: self.origin(key),
            expected: expected.into(),
            help: None,
            point: None,
        });
    }

    /// Notes that `keys` do not go together. The first is named; the place is that of a `--set` argument for any of
    /// them, because the file went together without it.
    pub fn disagree(&self, keys: &[&str], message: impl AsRef<str>, expected: impl Into<String>) {
        let set = keys.iter().find_map(|key| self.table.get(key)?.set_by());
        let written = keys.iter().find(|key| self.table.get(key).is_some());
        self.problems.add(Problem {
            message: format!("{}: {}", self.path(keys[0]), message.as_ref()),
            origin: set.or_else(|| self.origin(written.unwrap_or(&keys[0]))),
            expected: expected.into(),
            help: None,
            point: None,
        });
    }

    fn mismatch(&self, key: &str, value: &Value, expected: impl Into<String>) {
        let expected = expected.into();
        self.wrong(key, format!("expected {expected}, found {}", value.describe()), format!("expected {expected}"));
    }

    /// A string.
    pub fn text(&mut self, key: &'static str) -> Option<&'a str> {
        self.asked(key, Some(Form::Text));
        let value = self.get(key)?;
        match &value.kind {
            Kind::String(text) => Some(text),
            _ => {
                self.mismatch(key, value, "a string in quotes");
                None
            }
        }
    }

    /// true or false.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.asked(key, Some(Form::Flag));
        let value = self.get(key)?;
        match value.kind {
            Kind::Bool(flag) => Some(flag),
            _ => {
                self.mismatch(key, value, "true or false");
                None
            }
        }
    }

    /// A whole number of `what` within `range`.
    pub fn whole(&mut self, key: &'static str, range: RangeInclusive<u64>, what: &str) -> Option<u64> {
        self.asked(key, Some(Form::Whole { least: *range.start(), most: *range.end(), what: what.to_owned() }));
        let value = self.get(key)?;
        match value.kind {
            Kind::Integer(number) if u64::try_from(number).is_ok_and(|number| range.contains(&number)) => {
                Some(number as u64)
            }
            _ => {
                self.mismatch(key, value, format!("a whole number of {what}, {} to {}", range.start(), range.end()));
                None
            }
        }
    }

    /// A number without a unit within `range`.
    pub fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        self.asked(key, Some(Form::Number { least: *range.start(), most: *range.end() }));
        let value = self.get(key)?;
        let number = match value.kind {
            Kind::Integer(number) => number as f64,
            Kind::Float(number) => number,
            _ => f64::NAN,
        };
        if range.contains(&number) {
            return Some(number);
        }
        self.mismatch(key, value, format!("a number from {} to {}", range.start(), range.end()));
        None
    }

    /// A quantity in base units, at most `max` in size.
    pub fn quantity(&mut self, key: &'static str, dimension: &Dimension, sign: Sign, max: f64) -> Option<f64> {
        self.asked(key, Some(Form::quantity(dimension, sign)));
        let value = self.get(key)?;
        match quantity_of(value, dimension, sign, max) {
            Ok(number) => Some(number),
            Err(expected) => {
                self.mismatch(key, value, expected);
                None
            }
        }
    }

    /// One of `choices`; those in `later` are named as not supported by this version.
    pub fn choice<T: Clone>(&mut self, key: &'static str, choices: &[(&'static str, T)], later: &[&str]) -> Option<T> {
        self.asked(key, Some(Form::Choice(choices.iter().map(|(name, _)| *name).collect())));
        let value = self.get(key)?;
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let Kind::String(text) = &value.kind else {
            self.mismatch(key, value, quoted(&names));
            return None;
        };
        if let Some((name, choice)) = choices.iter().find(|(name, _)| name == text) {
            if key == "kind" {
                self.is_of(name);
            }
            return Some(choice.clone());
        }
        let (message, help) = if later.contains(&text.as_str()) {
            (format!("\"{text}\" is not supported in this version, which has {}", quoted(&names)), None)
        } else {
            let help = nearest(text, names.iter().copied()).map(|name| format!("did you mean \"{name}\"?"));
            (format!("expected {}, found the string \"{text}\"", quoted(&names)), help)
        };
        self.problems.add(Problem {
            message: format!("{}: {message}", self.path(key)),
            origin: Some(value.origin.clone()),
            expected: format!("expected {}", quoted(&names)),
            help,
            point: None,
        });
        None
    }

    /// The table at `key`; an empty one if the key is missing or no table.
    pub fn table(&mut self, key: &'static str) -> Reader<'a> {
        let path = self.path(key);
        self.asked(key, Some(Form::Table));
        match self.get(key) {
            Some(Value { kind: Kind::Table(table), origin }) => Reader::new(table, Some(origin), path, self.problems),
            Some(value) => {
                self.mismatch(key, value, format!("a table: [{path}]"));
                Reader::new(&NO_KEYS, Some(&value.origin), path, self.problems)
            }
            None => Reader::new(&NO_KEYS, self.origin, path, self.problems),
        }
    }

    /// Reports the keys that nobody asked for. `context` says for what they were unknown, such as "a chain".
    pub fn finish(self, context: &str) {
        for entry in self.table.entries.iter().filter(|entry| !self.known.contains(&entry.key.as_str())) {
            let near = nearest(&entry.key, self.known.iter().copied());
            self.problems.add(Problem {
                message: format!("{}: unknown key in {context}", self.path(&entry.key)),
                origin: Some(entry.origin.clone()),
                expected: format!("expected {}", one_of(&self.known)),
                help: near.map(|key| format!("did you mean `{key}`?")),
                point: None,
            });
        }
    }
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    one_of(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The quantity in base units, or what was expected.
pub fn quantity_of(value: &Value, dimension: &Dimension, sign: Sign, max: f64) -> Result<f64, String> {
    let number = match &value.kind {
        Kind::String(text) => dimension.parse(text)?,
        Kind::Integer(_) | Kind::Float(_) => {
            let unit = dimension.usual;
            return Err(format!("{} with its unit: write \"{} {unit}\"", dimension.name, value.brief()));
        }
        _ => return Err(format!("{} such as \"{}\"", dimension.name, dimension.example)),
    };
    let allowed = match sign {
        Sign::Positive => number > 0.0,
        Sign::NotNegative => number >= 0.0,
        Sign::Any => true,
    };
    if !allowed {
        let bound = if sign == Sign::Positive { "above zero" } else { "of zero or more" };
        return Err(format!("{} {bound}", dimension.name));
    }
    if number.abs() > max {
        return Err(format!("{} of at most {max:e} {}", dimension.name, base_unit(dimension)));
    }
    Ok(number)
}

fn base_unit(dimension: &Dimension) -> &'static str {
    if dimension.usual == "Mbit/s" { "bit/s" } else { dimension.usual }
}
