//! Every key that a scenario may have.
//!
//! Names, defaults and meanings are `keys/table.txt`; the reader takes no key that is not there. What may be written comes from
//! the reader itself: it reads the scenarios of `prototypes`, which together make it ask for everything, and what it
//! asks for is recorded. The table adds that only where a bound depends on the rest of the scenario or is checked later.

mod page;
mod prototypes;
mod schema;

pub use page::page;
pub use schema::schema;

use super::Source;
use super::diagnostic::{Problems, nearest, one_of};
use super::quantity::Dimension;
use super::reader::Sign;
use meshpace_transport::pacing::rules::Kind;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const TABLE: &str = include_str!("keys/table.txt");
const SOURCES: &str = include_str!("keys/sources.txt");

/// Where the parameters of pacing rules are, which their own files list.
const RULES: &str = "flow.transport.pacing";

/// What may be written for a key.
#[derive(Clone, PartialEq, Debug)]
pub enum Form {
    /// A string.
    Text,
    /// true or false.
    Flag,
    /// A whole number.
    Whole {
        /// The least.
        least: u64,
        /// The largest.
        most: u64,
        /// Of what.
        what: String,
    },
    /// A number without a unit.
    Number {
        /// The least.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// A number with a unit, as a string.
    Quantity {
        /// What it is, with its article.
        name: &'static str,
        /// An example.
        example: &'static str,
        /// Its units, the usual one first.
        units: Vec<&'static str>,
        /// Which sign it may have.
        sign: Sign,
    },
    /// One of these strings.
    Choice(Vec<&'static str>),
    /// A table with keys of its own.
    Table,
}

/// A key.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// Its dotted name, without the numbers of flows and the like.
    pub name: String,
    /// What may be written: any of these.
    pub forms: Vec<Form>,
    /// The same by the kinds of thing that have the key (of pacing, of topology, ...), where they take different values; empty
    /// where all take the same.
    pub by_kind: Vec<(Vec<&'static str>, Vec<Form>)>,
    /// What may be written where the reader does not say it by itself: this counts, then.
    pub written: Option<String>,
    /// What its absence means: TOML, or words in parentheses; `None` if there is no default.
    pub default: Option<String>,
    /// What it is for.
    pub meaning: String,
    /// Where it is from: a paper's section, an RFC, a standard, another program; empty for what is this program's own.
    pub source: String,
}

/// The forms of a key, each with the kind of thing that has the key, if its table is of several kinds.
type Asked = Vec<(Option<&'static str>, Form)>;

/// What a reader asked for.
#[derive(Default, Debug)]
pub struct Recording(RefCell<BTreeMap<String, Asked>>);

impl Recording {
    /// Notes that the key at `path` is read for a thing of this kind, as `form` if that is known.
    pub fn note(&self, path: &str, kind: Option<&'static str>, form: Option<Form>) {
        let mut asked = self.0.borrow_mut();
        let forms = asked.entry(without_numbers(path).into_owned()).or_default();
        forms.extend(form.map(|form| (kind, form)));
    }
}

/// Forms, those of one sort taken together: what any of them takes.
fn merged(forms: impl Iterator<Item = Form>) -> Vec<Form> {
    let mut found: Vec<Form> = Vec::new();
    for form in forms {
        if !found.iter_mut().any(|earlier| earlier.widen(&form)) {
            found.push(form);
        }
    }
    found
}

/// The forms by kind, kinds that take the same together; nothing if all take the same.
fn by_kind(asked: &Asked) -> Vec<(Vec<&'static str>, Vec<Form>)> {
    let mut kinds: Vec<&'static str> = Vec::new();
    for kind in asked.iter().filter_map(|(kind, _)| *kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut groups: Vec<(Vec<&'static str>, Vec<Form>)> = Vec::new();
    for kind in kinds {
        let forms = merged(asked.iter().filter(|(of, _)| *of == Some(kind)).map(|(_, form)| form.clone()));
        match groups.iter_mut().find(|group| group.1 == forms) {
            Some(group) => group.0.push(kind),
            None => groups.push((vec![kind], forms)),
        }
    }
    if groups.len() > 1 { groups } else { Vec::new() }
}

impl Form {
    /// A quantity of this dimension.
    pub fn quantity(dimension: &Dimension, sign: Sign) -> Form {
        Form::Quantity { name: dimension.name, example: dimension.example, units: dimension.units(), sign }
    }

    /// Takes in `other`; false if it is of another kind.
    fn widen(&mut self, other: &Form) -> bool {
        match (self, other) {
            (Form::Whole { least, most, what }, Form::Whole { least: l, most: m, what: w }) if what == w => {
                (*least, *most) = ((*least).min(*l), (*most).max(*m));
            }
            (Form::Number { least, most }, Form::Number { least: l, most: m }) => {
                (*least, *most) = (least.min(*l), most.max(*m));
            }
            (Form::Quantity { name, sign, .. }, Form::Quantity { name: n, sign: s, .. }) if name == n => {
                if *sign == Sign::Positive || *s == Sign::Any {
                    *sign = *s;
                }
            }
            (Form::Choice(names), Form::Choice(more)) => {
                for name in more {
                    if !names.contains(name) {
                        names.push(name);
                    }
                }
            }
            (one, other) => return one == other,
        }
        true
    }

    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Form::Text => "string".to_owned(),
            Form::Flag => "true or false".to_owned(),
            Form::Whole { least, most, what } if *most >= i64::MAX as u64 => {
                format!("whole number from {least} ({what})")
            }
            Form::Whole { least, most, what } => format!("whole number, {least} to {most} ({what})"),
            Form::Number { least, most } => format!("number, {least} to {most}"),
            Form::Quantity { name, example, units, sign } => {
                let bound = match sign {
                    Sign::Positive => "above zero, ",
                    Sign::NotNegative => "zero or more, ",
                    Sign::Any => "",
                };
                let name = name.split_once(' ').map_or(*name, |(_, name)| name);
                format!("{name}, {bound}as \"{example}\" ({})", units.join(", "))
            }
            Form::Choice(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                one_of(&names.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Form::Table => "table".to_owned(),
        }
    }
}

impl Key {
    /// What may be written, in words.
    pub fn takes(&self) -> String {
        let all = |forms: &[Form]| forms.iter().map(Form::describe).collect::<Vec<_>>().join("; or ");
        match &self.written {
            Some(written) => written.clone(),
            None if self.by_kind.is_empty() => all(&self.forms),
            None => {
                let groups = self.by_kind.iter().map(|(kinds, forms)| format!("{}: {}", kinds.join(", "), all(forms)));
                groups.collect::<Vec<_>>().join("; ")
            }
        }
    }

    /// Whether it is a list of tables.
    pub fn is_list_of_tables(&self) -> bool {
        self.written.as_deref().is_some_and(|written| written.starts_with("list of tables"))
    }
}

/// Where a key is from: the line of the table of sources with the longest name that it has or is below.
fn source(name: &str) -> &'static str {
    static BY_NAME: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
        let lines = SOURCES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('|'));
        lines.map(|(name, source)| (name.trim(), source.trim())).collect()
    });
    let above = std::iter::successors(Some(name), |name| name.rsplit_once('.').map(|(above, _)| above));
    above.into_iter().find_map(|name| BY_NAME.get(name)).unwrap_or(&"")
}

/// `flow.0.transport` is `flow.transport`.
fn without_numbers(path: &str) -> Cow<'_, str> {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if path.split('.').any(is_number) {
        let parts: Vec<&str> = path.split('.').filter(|part| !is_number(part)).collect();
        return Cow::Owned(parts.join("."));
    }
    Cow::Borrowed(path)
}

/// The lines of the table, in its order, and the parameters of pacing rules behind it; without forms.
fn listed() -> Vec<Key> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut keys: Vec<Key> = lines
        .map(|line| {
            let mut columns = line.splitn(4, '|').map(str::trim);
            let mut next = || columns.next().unwrap_or_default().to_owned();
            let (name, written, default, meaning) = (next(), next(), next(), next());
            let written = Some(written).filter(|written| !written.is_empty());
            let (default, source) = (Some(default).filter(|value| value != "-"), source(&name).to_owned());
            Key { name, forms: Vec::new(), by_kind: Vec::new(), written, default, meaning, source }
        })
        .collect();
    for about in Kind::ALL.iter().map(|kind| kind.about()) {
        for parameter in about.parameters {
            let name = format!("{RULES}.{}", parameter.name);
            let meaning = format!("{}: parameter of the rule", about.name);
            match keys.iter_mut().find(|key| key.name == name) {
                Some(key) => key.meaning = format!("{}; {meaning}", key.meaning),
                None => {
                    let default = Some(format!("{:?}", parameter.default));
                    let source = source(&name).to_owned();
                    keys.push(Key {
                        name,
                        forms: Vec::new(),
                        by_kind: Vec::new(),
                        written: None,
                        default,
                        meaning,
                        source,
                    });
                }
            }
        }
    }
    // Rules' parameters stay beside the other keys of flows.
    keys.sort_by_key(|key| ["sweep", "plot"].iter().any(|last| key.name.starts_with(last)));
    keys
}

/// Whether the key at `path` is listed.
pub fn is_listed(path: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| listed().into_iter().map(|key| key.name).collect());
    NAMES.contains(without_numbers(path).as_ref())
}

/// What the reader asks for in a scenario; `Err` if it refuses the scenario.
///
/// # Errors
/// The scenario is refused.
pub fn asked(text: &str, load: super::Load<'_>) -> Result<Vec<String>, String> {
    record(text, load).map(|asked| asked.into_keys().collect())
}

fn record(text: &str, load: super::Load<'_>) -> Result<BTreeMap<String, Asked>, String> {
    let problems = Problems::recorded();
    let source = Source { name: "scenario.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    super::read(&source, load, "scenario", &problems);
    let asked = problems.recording().map(|recording| recording.0.take()).unwrap_or_default();
    match problems.into_vec().first() {
        Some(problem) => Err(problem.message.clone()),
        None => Ok(asked),
    }
}

/// The scenarios that together make the reader ask for everything, and what loads their files.
pub fn examples() -> (Vec<String>, super::Load<'static>) {
    (prototypes::all(), &prototypes::load)
}

/// Every key, in the order of the table.
pub fn all() -> Vec<Key> {
    let all = Recording::default();
    let (texts, load) = examples();
    for (path, forms) in texts.iter().filter_map(|text| record(text, load).ok()).flatten() {
        all.note(&path, None, None);
        forms.into_iter().for_each(|(kind, form)| all.note(&path, kind, Some(form)));
    }
    let mut asked = all.0.into_inner();
    let with_forms = |key: Key| {
        let asked = asked.remove(&key.name).unwrap_or_default();
        Key { by_kind: by_kind(&asked), forms: merged(asked.into_iter().map(|(_, form)| form)), ..key }
    };
    listed().into_iter().map(with_forms).collect()
}

/// The keys of `section` and below: `flow`, `flow.transport`, or one key.
///
/// # Errors
/// There are none; the message says which sections there are.
pub fn of(section: &str) -> Result<Vec<Key>, String> {
    let all = all();
    let section = without_numbers(section);
    let is_below =
        |name: &str| name.strip_prefix(section.as_ref()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let found: Vec<Key> = all.iter().filter(|key| is_below(&key.name)).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let near = nearest(&section, all.iter().map(|key| key.name.as_str()));
    let hint = near.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
    let there = sections(&all).join(", ");
    Err(format!("no key or section is called {section}.{hint} The sections are {there}"))
}

/// The sections: tables at the top of a scenario.
pub fn sections(all: &[Key]) -> Vec<&str> {
    let mut sections: Vec<&str> = all.iter().filter_map(|key| Some(key.name.split_once('.')?.0)).collect();
    sections.dedup();
    sections
}
