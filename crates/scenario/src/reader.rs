//! Reads the keys of one table, remembers which it knows, and reports the rest.

use super::diagnostic::{Problem, Problems};
use super::keys::{self, Form};
use super::quantity::Dimension;
use super::value::{Kind, Origin, Table, Value};
use super::words::{nearest, one_of};
use meshpace_core::parameter::{self, Parameter, Parameters, Range, Slot, Unit};
use std::ops::RangeInclusive;

/// A table being read. A key that is missing or wrong gives `None`; what is wrong is noted, and the scenario refused.
pub struct Reader<'a> {
    table: &'a Table,
    /// Place of the table, if it was written.
    origin: Option<&'a Origin>,
    /// The table's own dotted path; empty at the root.
    path: String,
    /// Of which kind the table is, where its kinds have keys of their own.
    kind: Option<&'static str>,
    known: Vec<&'static str>,
    problems: &'a Problems,
}

/// Sign that a quantity may have.
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
    /// The numbers of this sign.
    const fn range(self) -> Range {
        match self {
            Sign::Positive => Range { is_above: true, ..Range::new(0.0, f64::INFINITY) },
            Sign::NotNegative => Range::new(0.0, f64::INFINITY),
            Sign::Any => Range::ALL,
        }
    }

    /// Those of at most this size.
    const fn to(self, most: f64) -> Range {
        let range = self.range();
        Range { least: if range.least == 0.0 { 0.0 } else { -most }, most, ..range }
    }
}

static NO_KEYS: Table = Table { entries: Vec::new() };

impl<'a> Reader<'a> {
    /// A reader of `table`, which is found at `path`.
    pub fn new(table: &'a Table, origin: Option<&'a Origin>, path: String, problems: &'a Problems) -> Reader<'a> {
        Reader { table, origin, path, kind: None, known: Vec::new(), problems }
    }

    /// The list of problems.
    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// The dotted path of `key`.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of `key`, which is known from now on. A key that is neither declared nor in the table of keys cannot be read.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        let is_listed = self.known.contains(&key) || keys::is_in_table(&self.path(key));
        debug_assert!(is_listed, "{}: declare it, or add it to keys/table.txt", self.path(key));
        if !is_listed {
            return None;
        }
        self.asked(key, None);
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// Whether `key` is written. It is known from now on, also where nothing reads it.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.known.push(key);
        self.value(key).is_some()
    }

    /// Keys that are read from now on belong to a table of this kind: the list of keys tells what each kind takes.
    pub fn is_of(&mut self, kind: &'static str) {
        self.kind = Some(kind);
    }

    /// The same with the name of the first of `kinds` that `is_one` holds for.
    pub fn is_of_one<T>(&mut self, kinds: &[(&'static str, T)], is_one: impl Fn(&T) -> bool) {
        self.kind = kinds.iter().find(|(_, kind)| is_one(kind)).map(|(name, _)| *name);
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

    /// Place of `key`, or else of its table.
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

    /// Reads what a piece declares; a parameter that is not there keeps its value.
    pub fn parameters(&mut self, piece: &mut dyn Parameters) {
        let mut tables: Vec<(&'static str, Reader<'a>)> = Vec::new();
        for slot in piece.slots() {
            if slot.table.is_empty() {
                self.parameter(slot);
                continue;
            }
            let place = tables.iter().position(|(table, _)| *table == slot.table).unwrap_or_else(|| {
                let table = Reader { kind: self.kind, ..self.table(slot.table) };
                tables.push((slot.table, table));
                tables.len() - 1
            });
            tables[place].1.parameter(slot);
        }
        for (_, table) in tables {
            table.finish("this table");
        }
    }

    /// A parameter that no piece keeps: what is written, or its default.
    pub fn one<T: parameter::Kind + Default>(&mut self, parameter: &'static Parameter) -> T {
        let mut value: T = (parameter.default)().and_then(|default| T::of(&default)).unwrap_or_default();
        self.parameter(Slot::new(parameter, &mut value));
        value
    }

    /// Reads one parameter of a piece; if it is not there it keeps its value.
    pub fn parameter(&mut self, Slot { parameter, setting, .. }: Slot<'_>) {
        if let Some(recording) = self.problems.recording() {
            recording.declare(&self.path(parameter.key), self.kind, parameter, setting.get());
        }
        self.known.push(parameter.key);
        if let Some(value) = self.declared(parameter) {
            setting.set(&value);
        }
    }

    /// The value of a parameter as its declaration has it.
    fn declared(&mut self, parameter: &Parameter) -> Option<parameter::Value> {
        let (key, form) = (parameter.key, parameter.form);
        if form.or_none {
            self.asked(key, Some(Form::Choice(vec!["none"])));
            if matches!(self.value(key), Some(Value { kind: Kind::String(text), .. }) if text == "none") {
                return Some(parameter::Value::Word("none"));
            }
        }
        match form.unit {
            Unit::Flag => self.flag(key).map(parameter::Value::Flag),
            Unit::Number => self.number(key, form.range).map(parameter::Value::Number),
            Unit::Whole(what) => self.whole_in(key, form.range, what).map(parameter::Value::Whole),
            Unit::Wholes(count, what) => self.wholes(key, count, form.range, what).map(parameter::Value::Wholes),
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
        self.whole_in(key, Range::new(*range.start() as f64, *range.end() as f64), what)
    }

    fn whole_in(&mut self, key: &'static str, range: Range, what: &str) -> Option<u64> {
        self.asked(key, Some(Form::Whole { range, what: what.to_owned() }));
        let value = self.get(key)?;
        let number = value.whole().filter(|number| range.contains(*number as f64));
        if number.is_none() {
            let bound = range.words(|number| number.to_string());
            self.mismatch(key, value, format!("a whole number of {what}, {bound}"));
        }
        number
    }

    /// A list of `count` whole numbers of `what` within `range`.
    fn wholes(&mut self, key: &'static str, count: usize, range: Range, what: &str) -> Option<Vec<u64>> {
        self.asked(key, Some(Form::Wholes { count, what: what.to_owned() }));
        let value = self.get(key)?;
        let numbers = match &value.kind {
            Kind::Array(items) => items.iter().map(Value::whole).collect::<Option<Vec<u64>>>(),
            _ => None,
        };
        let is_inside = |numbers: &Vec<u64>| numbers.iter().all(|number| range.contains(*number as f64));
        let numbers = numbers.filter(|numbers| numbers.len() == count && is_inside(numbers));
        if numbers.is_none() {
            self.mismatch(key, value, format!("a list of {count} {what}"));
        }
        numbers
    }

    /// A number without a unit within `range`.
    fn number(&mut self, key: &'static str, range: Range) -> Option<f64> {
        self.asked(key, Some(Form::Number { range }));
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
        let preposition = match (range.least.is_finite(), range.most.is_finite()) {
            (true, true) if !range.is_above && !range.is_below => "from ",
            (true, _) if !range.is_above => "of ",
            _ => "",
        };
        self.mismatch(key, value, format!("a number {preposition}{bound}"));
        None
    }

    /// A quantity in base units, at most `max` in size.
    pub fn quantity(&mut self, key: &'static str, dimension: &'static Dimension, sign: Sign, max: f64) -> Option<f64> {
        self.quantity_in(key, dimension, sign.to(max), sign.range())
    }

    /// A quantity within `range`, of which `stated` is said beforehand.
    fn quantity_in(
        &mut self,
        key: &'static str,
        dimension: &'static Dimension,
        range: Range,
        stated: Range,
    ) -> Option<f64> {
        self.asked(key, Some(Form::Quantity { dimension, range: stated }));
        let value = self.get(key)?;
        match quantity_within(value, dimension, &range, &stated) {
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
    quantity_within(value, dimension, &sign.to(max), &sign.range())
}

fn quantity_within(value: &Value, dimension: &Dimension, range: &Range, stated: &Range) -> Result<f64, String> {
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
        return Err(format!("{} of at most {:e} {}", dimension.name, range.most, base_unit(dimension)));
    }
    let bound = dimension.bound(stated);
    let of = if bound.starts_with("above") || bound.starts_with("below") { "" } else { "of " };
    Err(format!("{} {of}{bound}", dimension.name))
}

fn base_unit(dimension: &Dimension) -> &'static str {
    if dimension.usual == "Mbit/s" { "bit/s" } else { dimension.usual }
}
