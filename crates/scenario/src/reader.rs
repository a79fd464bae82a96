//! Reads one TOML table of a scenario. Keys that are written but never requested are reported as
//! unknown.

use super::keys::{self, Form};
use meshpace_core::parameter::{self, Parameter, Parameters, Range, Slot, Unit};
use meshpace_settings::diagnostic::{Problem, Problems};
use meshpace_settings::quantity::Dimension;
use meshpace_settings::value::{Kind, Origin, Table, Value};
use meshpace_settings::{nearest, one_of};
use std::ops::RangeInclusive;

/// A table that is being read. A key that is missing or wrong gives `None`. Each error is added to
/// the [`Problems`], and a scenario with a problem is not run.
pub struct Reader<'a> {
    table: &'a Table,
    /// Place of the table in the file, or the `--set` argument that wrote it. `None` if the table
    /// is not written.
    origin: Option<&'a Origin>,
    /// Dotted path of the table; empty at the root.
    path: String,
    /// Value of the table's `kind`, if the keys that are allowed depend on it.
    kind: Option<&'static str>,
    /// Keys that were requested. All others are unknown.
    known: Vec<&'static str>,
    problems: &'a Problems,
}

/// Signs that a quantity may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// Above zero.
    Positive,
    /// Zero or more.
    NotNegative,
    /// Any.
    Any,
}

impl Sign {
    /// Range of the numbers that have this sign.
    const fn range(self) -> Range {
        match self {
            Sign::Positive => Range { excludes_least: true, ..Range::new(0.0, f64::INFINITY) },
            Sign::NotNegative => Range::new(0.0, f64::INFINITY),
            Sign::Any => Range::ALL,
        }
    }

    /// Range of the numbers that have this sign and an absolute value of at most `most`.
    const fn at_most(self, most: f64) -> Range {
        let range = self.range();
        Range { least: if range.least == 0.0 { 0.0 } else { -most }, most, ..range }
    }
}

static EMPTY_TABLE: Table = Table { entries: Vec::new() };

impl<'a> Reader<'a> {
    /// Creates a reader of `table`, which is at `path`.
    pub fn new(table: &'a Table, origin: Option<&'a Origin>, path: String, problems: &'a Problems) -> Reader<'a> {
        Reader { table, origin, path, kind: None, known: Vec::new(), problems }
    }

    /// List of problems.
    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// Dotted path of `key`.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the value of `key`. [`Reader::finish`] then does not report the key as unknown. The
    /// key must be declared as a parameter or listed in keys/table.txt. For any other key the
    /// method panics in a debug build and returns `None` in a release build.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        let is_listed = self.known.contains(&key) || keys::is_in_table(&self.path(key));
        debug_assert!(is_listed, "{}: declare it, or add it to keys/table.txt", self.path(key));
        if !is_listed {
            return None;
        }
        self.record_read(key, None);
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// Returns whether `key` is written. [`Reader::finish`] then does not report the key, even if
    /// its value is never read.
    pub fn allow(&mut self, key: &'static str) -> bool {
        self.known.push(key);
        self.value(key).is_some()
    }

    /// Sets the table's kind. docs/keys.md lists keys that are read after this call under that
    /// kind.
    pub fn set_kind(&mut self, kind: &'static str) {
        self.kind = Some(kind);
    }

    /// Sets the kind to the name of the first of `kinds` for which `matches` holds. If there is
    /// none, the table has no kind.
    pub fn set_kind_matching<T>(&mut self, kinds: &[(&'static str, T)], matches: impl Fn(&T) -> bool) {
        self.kind = kinds.iter().find(|(_, kind)| matches(kind)).map(|(name, _)| *name);
    }

    /// Records for the list of keys, if one is being made, that `key` is read as `form`. The form
    /// is `None` if only the presence of the key is requested.
    fn record_read(&self, key: &str, form: Option<Form>) {
        if let Some(recording) = self.problems.recording() {
            recording.note(&self.path(key), self.kind, form);
        }
    }

    /// Returns the value of `key` without making the key known.
    pub fn value(&self, key: &str) -> Option<&'a Value> {
        self.table.get(key)
    }

    /// Place where `key` is written; the place of the table if the key is not written.
    pub fn origin(&self, key: &str) -> Option<Origin> {
        self.table.get(key).map(|value| &value.origin).or(self.origin).cloned()
    }

    /// Reports that the value of `key` is wrong.
    pub fn report_invalid(&self, key: &str, message: impl AsRef<str>, expected: impl Into<String>) {
        self.problems.add(Problem {
            message: format!("{}: {}", self.path(key), message.as_ref()),
            origin: self.origin(key),
            expected: expected.into(),
            help: None,
            point: None,
        });
    }

    /// Reports that `keys` contradict each other. The message names the first key. The place is the
    /// first key that `--set` wrote, since that is the likely cause. Without one it is the first
    /// key that is written, or else the table.
    pub fn report_conflict(&self, keys: &[&str], message: impl AsRef<str>, expected: impl Into<String>) {
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

    /// Reports that `value` is not what is expected, such as "true or false".
    fn report_unexpected(&self, key: &str, value: &Value, expected: impl Into<String>) {
        let expected = expected.into();
        self.report_invalid(
            key,
            format!("expected {expected}, found {}", value.describe()),
            format!("expected {expected}"),
        );
    }

    /// Reads the parameters that a component declares. A parameter that is missing or wrong keeps
    /// its value.
    pub fn parameters(&mut self, piece: &mut dyn Parameters) {
        let mut tables: Vec<(&'static str, Reader<'a>)> = Vec::new();
        for slot in piece.slots() {
            if slot.table.is_empty() {
                self.parameter(slot);
                continue;
            }
            let index = tables.iter().position(|(table, _)| *table == slot.table).unwrap_or_else(|| {
                let table = Reader { kind: self.kind, ..self.table(slot.table) };
                tables.push((slot.table, table));
                tables.len() - 1
            });
            tables[index].1.parameter(slot);
        }
        for (_, table) in tables {
            let context = format!("[{}]", table.path);
            table.finish(&context);
        }
    }

    /// Reads a parameter that is not a field of a component. Returns the written value or the
    /// default.
    pub fn standalone<T: parameter::Kind + Default>(&mut self, parameter: &'static Parameter) -> T {
        let mut value: T = (parameter.default)().and_then(|default| T::of(&default)).unwrap_or_default();
        self.parameter(Slot::new(parameter, &mut value));
        value
    }

    /// As [`Reader::standalone`], but returns `None` if `word` is written instead of a value.
    pub fn standalone_or<T: parameter::Kind + Default>(
        &mut self,
        parameter: &'static Parameter,
        word: &'static str,
    ) -> Option<T> {
        self.record_read(parameter.key, Some(Form::Choice(vec![word])));
        match self.value(parameter.key) {
            Some(Value { kind: Kind::String(text), .. }) if text == word => {
                self.known.push(parameter.key);
                None
            }
            // A text without digits is a wrong word, not a quantity with a wrong unit.
            Some(value @ Value { kind: Kind::String(text), .. }) if !text.contains(|c: char| c.is_ascii_digit()) => {
                self.report_unexpected(parameter.key, value, format!("\"{word}\", or a number and a unit"));
                self.known.push(parameter.key);
                None
            }
            _ => Some(self.standalone(parameter)),
        }
    }

    /// Reads one parameter of a component. A parameter that is missing or wrong keeps its value.
    pub fn parameter(&mut self, Slot { parameter, setting, .. }: Slot<'_>) {
        if let Some(recording) = self.problems.recording() {
            recording.declare(&self.path(parameter.key), self.kind, parameter, setting.get());
        }
        self.known.push(parameter.key);
        if let Some(value) = self.read_declared(parameter) {
            setting.set(&value);
        }
    }

    /// Returns the value that is written for a parameter, in the type, unit and range that the
    /// parameter declares.
    fn read_declared(&mut self, parameter: &Parameter) -> Option<parameter::Value> {
        let (key, form) = (parameter.key, parameter.form);
        if form.or_none {
            self.record_read(key, Some(Form::Choice(vec!["none"])));
            if matches!(self.value(key), Some(Value { kind: Kind::String(text), .. }) if text == "none") {
                return Some(parameter::Value::Word("none"));
            }
        }
        match form.unit {
            Unit::Flag => self.flag(key).map(parameter::Value::Flag),
            Unit::Number => self.number(key, form.range).map(parameter::Value::Number),
            Unit::Whole(noun) => self.integer_in(key, form.range, noun).map(parameter::Value::Whole),
            Unit::Wholes(count, noun) => self.integers(key, count, form.range, noun).map(parameter::Value::Wholes),
            Unit::Choice(words) => {
                let choices: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
                self.choice(key, &choices, &[]).map(parameter::Value::Word)
            }
            unit => {
                let number = self.quantity_in(key, Dimension::of(unit)?, form.range, form.stated());
                number.map(parameter::Value::Number)
            }
        }
    }

    /// Reads a string.
    pub fn text(&mut self, key: &'static str) -> Option<&'a str> {
        self.record_read(key, Some(Form::Text));
        let value = self.get(key)?;
        match &value.kind {
            Kind::String(text) => Some(text),
            _ => {
                self.report_unexpected(key, value, "a string in quotes");
                None
            }
        }
    }

    /// Reads `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.record_read(key, Some(Form::Flag));
        let value = self.get(key)?;
        match value.kind {
            Kind::Bool(flag) => Some(flag),
            _ => {
                self.report_unexpected(key, value, "true or false");
                None
            }
        }
    }

    /// Reads an integer within `range`. `noun` names what the integer counts, for messages.
    pub fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>, noun: &str) -> Option<u64> {
        self.integer_in(key, Range::new(*range.start() as f64, *range.end() as f64), noun)
    }

    fn integer_in(&mut self, key: &'static str, range: Range, noun: &str) -> Option<u64> {
        self.record_read(key, Some(Form::Whole { range, what: noun.to_owned() }));
        let value = self.get(key)?;
        let number = value.whole().filter(|number| range.contains(*number as f64));
        if number.is_none() {
            let bound = range.words(|number| number.to_string());
            self.report_unexpected(key, value, format!("a whole number of {noun}, {bound}"));
        }
        number
    }

    /// Reads a list of `count` integers within `range`. `noun` names what they count, for messages.
    fn integers(&mut self, key: &'static str, count: usize, range: Range, noun: &str) -> Option<Vec<u64>> {
        self.record_read(key, Some(Form::Wholes { count, what: noun.to_owned() }));
        let value = self.get(key)?;
        let numbers = match &value.kind {
            Kind::Array(items) => items.iter().map(Value::whole).collect::<Option<Vec<u64>>>(),
            _ => None,
        };
        let all_in_range = |numbers: &Vec<u64>| numbers.iter().all(|number| range.contains(*number as f64));
        let numbers = numbers.filter(|numbers| numbers.len() == count && all_in_range(numbers));
        if numbers.is_none() {
            let bound = range.words(|number| number.to_string());
            self.report_unexpected(key, value, format!("a list of {count} {noun}, each {bound}"));
        }
        numbers
    }

    /// Reads a number without a unit, within `range`.
    fn number(&mut self, key: &'static str, range: Range) -> Option<f64> {
        self.record_read(key, Some(Form::Number { range }));
        let value = self.get(key)?;
        let number = match value.kind {
            Kind::Integer(number) => number as f64,
            Kind::Float(number) => number,
            _ => f64::NAN,
        };
        if range.contains(number) {
            return Some(number);
        }
        let bound = range.words(|number| number.to_string());
        // The result is "a number from 0 to 1", "a number of at least 2" or "a number above 0".
        let preposition = match (range.least.is_finite(), range.most.is_finite()) {
            (true, true) if !range.excludes_least && !range.excludes_most => "from ",
            (true, _) if !range.excludes_least => "of ",
            _ => "",
        };
        self.report_unexpected(key, value, format!("a number {preposition}{bound}"));
        None
    }

    /// Reads a quantity whose absolute value is at most `max`, in the dimension's base unit, such
    /// as s, m or bit/s.
    pub fn quantity(&mut self, key: &'static str, dimension: &'static Dimension, sign: Sign, max: f64) -> Option<f64> {
        self.quantity_in(key, dimension, sign.at_most(max), sign.range())
    }

    /// Reads a quantity within `range`. Documentation and messages give the range `stated`, which
    /// may leave out a technical upper limit.
    fn quantity_in(
        &mut self,
        key: &'static str,
        dimension: &'static Dimension,
        range: Range,
        stated: Range,
    ) -> Option<f64> {
        self.record_read(key, Some(Form::Quantity { dimension, range: stated }));
        let value = self.get(key)?;
        match parse_quantity_in(value, dimension, &range, &stated) {
            Ok(number) => Some(number),
            Err(expected) => {
                self.report_unexpected(key, value, expected);
                None
            }
        }
    }

    /// Reads one of `choices`. If the key is `kind`, the table's kind is set as well. A word of
    /// `later` is reported as not supported by this version.
    pub fn choice<T: Clone>(&mut self, key: &'static str, choices: &[(&'static str, T)], later: &[&str]) -> Option<T> {
        self.record_read(key, Some(Form::Choice(choices.iter().map(|(name, _)| *name).collect())));
        let value = self.get(key)?;
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let Kind::String(text) = &value.kind else {
            self.report_unexpected(key, value, quoted(&names));
            return None;
        };
        if let Some((name, choice)) = choices.iter().find(|(name, _)| name == text) {
            if key == "kind" {
                self.set_kind(name);
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

    /// Reader of the table at `key`. If the key is missing or not a table, the reader has an empty
    /// table.
    pub fn table(&mut self, key: &'static str) -> Reader<'a> {
        let path = self.path(key);
        self.record_read(key, Some(Form::Table));
        match self.get(key) {
            Some(Value { kind: Kind::Table(table), origin }) => Reader::new(table, Some(origin), path, self.problems),
            Some(value) => {
                self.report_unexpected(key, value, format!("a table: [{path}]"));
                Reader::new(&EMPTY_TABLE, Some(&value.origin), path, self.problems)
            }
            None => Reader::new(&EMPTY_TABLE, self.origin, path, self.problems),
        }
    }

    /// Reports the keys that were never requested. `context` names the thing that does not have
    /// them, such as "a chain".
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

/// Returns the quantity in the dimension's base unit. The error contains the words that follow
/// "expected" in the message.
pub fn parse_quantity(value: &Value, dimension: &Dimension, sign: Sign, max: f64) -> Result<f64, String> {
    parse_quantity_in(value, dimension, &sign.at_most(max), &sign.range())
}

fn parse_quantity_in(value: &Value, dimension: &Dimension, range: &Range, stated: &Range) -> Result<f64, String> {
    let number = match &value.kind {
        Kind::String(text) => dimension.parse(text)?,
        Kind::Integer(_) | Kind::Float(_) => {
            let unit = dimension.usual;
            return Err(format!("{} with its unit: write \"{} {unit}\"", dimension.name, value.brief()));
        }
        _ => return Err(format!("{} such as \"{}\"", dimension.name, dimension.example)),
    };
    if range.contains(number) {
        return Ok(number);
    }
    if stated.contains(number) {
        return Err(format!("{} of absolute value at most {:e} {}", dimension.name, range.most, base_unit(dimension)));
    }
    let bound = dimension.bound(stated);
    let of = if bound.starts_with("above") || bound.starts_with("below") { "" } else { "of " };
    Err(format!("{} {of}{bound}", dimension.name))
}

fn base_unit(dimension: &Dimension) -> &'static str {
    if dimension.usual == "Mbit/s" { "bit/s" } else { dimension.usual }
}
