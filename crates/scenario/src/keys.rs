//! Every key that a scenario may have.
//!
//! Keys that a piece declares ([`mod@meshpace_core::parameter`]) come from its declarations; the reader is given those and nothing else. Names,
//! defaults and meanings of the other keys are `keys/table.txt`; the reader takes no other. What may be written comes from the reader itself: it
//! reads the scenarios of `prototypes`, which together make it ask for everything, and what it asks for is recorded. The table adds that
//! only where a bound depends on the rest of the scenario or is checked later.

mod page;
mod prototypes;
mod schema;

pub use meshpace_core::parameter::Level;
pub use meshpace_settings::form::Form;
pub use meshpace_settings::recording::{Asked, Recording};
pub use page::page;
pub use schema::schema;

use super::Source;
use meshpace_settings::diagnostic::Problems;
use meshpace_settings::nearest;
use meshpace_settings::recording::{in_words, without_numbers};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const TABLE: &str = include_str!("keys/table.txt");

/// A key.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// Its dotted name, without the numbers of flows and the like.
    pub name: String,
    /// Accepted forms: any of these.
    pub forms: Vec<Form>,
    /// The same by the kinds of thing that have the key (of pacing, of topology, ...), where they take different values; empty
    /// where all take the same.
    pub by_kind: Vec<(Vec<&'static str>, Vec<Form>)>,
    /// Accepted values in words where the reader does not say it by itself: this counts, then.
    pub written: Option<String>,
    /// Meaning of its absence: TOML, or words in parentheses; `None` if there is no default.
    pub default: Option<String>,
    /// Its purpose.
    pub meaning: String,
    /// Its source: a paper's section, an RFC, a standard, another program; empty for what is this program's own.
    pub source: String,
    /// Its audience.
    pub level: Level,
}

impl Key {
    /// Accepted values, in words.
    pub fn takes(&self) -> String {
        let all = |forms: &[Form]| forms.iter().map(Form::describe).collect::<Vec<_>>().join("; or ");
        match &self.written {
            Some(written) => written.clone(),
            None if self.by_kind.is_empty() => all(&self.forms),
            None => {
                in_words(&self.by_kind.iter().map(|(kinds, forms)| (kinds.clone(), all(forms))).collect::<Vec<_>>())
            }
        }
    }

    /// True if it is a list of tables.
    pub fn is_list_of_tables(&self) -> bool {
        self.written.as_deref().is_some_and(|written| written.starts_with("list of tables"))
    }

    /// True if one of `keys` is below it.
    fn is_above(&self, keys: &[(usize, Key)]) -> bool {
        keys.iter().any(|(_, key)| key.name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('.')))
    }

    /// A key of the table or of a declaration, with what is asked for it.
    fn complete(self, asked: &Asked) -> Key {
        let with = |own: String, declared: String| match (own.is_empty(), declared.is_empty()) {
            (_, true) => own,
            (true, false) => declared,
            (false, false) => format!("{own}; {declared}"),
        };
        Key {
            forms: asked.forms(),
            by_kind: asked.by_kind(),
            meaning: with(self.meaning, asked.meaning()),
            source: with(self.source, asked.source()),
            level: asked.level().map_or(self.level, |level| level.min(self.level)),
            ..self
        }
    }
}

/// The lines of the table, in its order; without forms.
fn table() -> Vec<Key> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut columns = line.splitn(6, '|').map(str::trim);
            let mut next = || columns.next().unwrap_or_default().to_owned();
            let (name, level, written, default, meaning, source) = (next(), next(), next(), next(), next(), next());
            let written = Some(written).filter(|written| !written.is_empty());
            let default = Some(default).filter(|value| value != "-");
            let level = if level == "expert" { Level::Expert } else { Level::Basic };
            Key { name, forms: Vec::new(), by_kind: Vec::new(), written, default, meaning, source, level }
        })
        .collect()
}

/// True if the key at `path` is in the table, so that the reader may ask for it without a declaration.
pub(crate) fn is_in_table(path: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| table().into_iter().map(|key| key.name).collect());
    NAMES.contains(without_numbers(path).as_ref())
}

/// True if the key at `path` is one of all keys, of the table or declared.
pub fn is_listed(path: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| all().into_iter().map(|key| key.name).collect());
    NAMES.contains(without_numbers(path).as_ref())
}

/// Keys that the reader asks for in a scenario; `Err` if it refuses the scenario.
///
/// # Errors
/// The scenario is refused.
pub fn asked(text: &str, load: super::Load<'_>) -> Result<BTreeMap<String, Asked>, String> {
    let problems = Problems::recorded();
    let source = Source { name: "scenario.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    super::read(&source, load, "scenario", usize::MAX, &problems);
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

/// Every key in the order in which the reader asks, each followed by what is below it; sections in the order of the table.
pub fn all() -> Vec<Key> {
    let recording = Recording::default();
    let (texts, load) = examples();
    for text in texts {
        let mut asked: Vec<(String, Asked)> = asked(&text, load).unwrap_or_default().into_iter().collect();
        asked.sort_by_key(|(_, asked)| asked.place());
        asked.into_iter().for_each(|(path, asked)| recording.add(&path, asked));
    }
    let mut asked = recording.0.into_inner();
    let table = table().into_iter().map(|key| {
        let asked = asked.remove(&key.name);
        (asked.as_ref().map_or(usize::MAX, Asked::place), key.complete(&asked.unwrap_or_default()))
    });
    let mut keys: Vec<(usize, Key)> = table.collect();
    keys.extend(asked.into_iter().filter(|(_, asked)| asked.is_declared()).map(|(name, asked)| {
        let (default, level) = (asked.unset(), Level::Expert);
        let (forms, by_kind, written) = (Vec::new(), Vec::new(), None);
        let key = Key { name, forms, by_kind, written, default, meaning: String::new(), source: String::new(), level };
        (asked.place(), key.complete(&asked))
    }));
    let is_section = |(_, key): &(usize, Key)| !key.name.contains('.') && key.is_above(&keys);
    let (sections, mut others): (Vec<_>, Vec<_>) = keys.iter().cloned().partition(is_section);
    others.sort_by_key(|(place, _)| *place);
    let keys: Vec<Key> = others.into_iter().chain(sections).map(|(_, key)| key).collect();
    let mut ordered = Vec::with_capacity(keys.len());
    below(&keys, "", &mut ordered);
    ordered
}

/// The keys directly below `table`, each followed by those below it.
fn below(keys: &[Key], table: &str, ordered: &mut Vec<Key>) {
    for key in keys.iter().filter(|key| key.name.rsplit_once('.').map_or("", |(above, _)| above) == table) {
        ordered.push(key.clone());
        below(keys, &key.name, ordered);
    }
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
