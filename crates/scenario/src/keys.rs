//! List of all keys that a scenario may have.
//!
//! Keys that a component declares ([`mod@meshpace_core::parameter`]) are listed from its
//! declarations, and the reader is given exactly these. Name, default and meaning of every other
//! key are in `keys/table.txt`; the reader accepts no further keys.
//!
//! The accepted values come from the reader itself. It reads the scenarios of `prototypes`, which
//! together make it request every key, and these requests are recorded. The table contains accepted
//! values only where a bound depends on the rest of the scenario or is checked later.

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

/// A key of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// Dotted name, without the numbers of flows and of other list entries.
    pub name: String,
    /// Accepted forms. A value may have any of them.
    pub forms: Vec<Form>,
    /// Accepted forms by the kinds (of pacing, of topology, ...) that have the key. Empty if all
    /// kinds accept the same values.
    pub by_kind: Vec<(Vec<&'static str>, Vec<Form>)>,
    /// Accepted values in words, if the reader cannot describe them. This text then replaces the
    /// forms.
    pub written: Option<String>,
    /// Meaning of an absent key: TOML, or words in parentheses. `None` if the key has no default.
    pub default: Option<String>,
    /// Purpose of the key.
    pub meaning: String,
    /// Source of the key: a paper's section, an RFC, a standard or another program. Empty if this
    /// program is the source.
    pub source: String,
    /// Level of the users who need the key.
    pub level: Level,
}

impl Key {
    /// Description of the accepted values in words.
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

    /// True if the key is a list of tables.
    pub fn is_list_of_tables(&self) -> bool {
        self.written.as_deref().is_some_and(|written| written.starts_with("list of tables"))
    }

    /// True if one of `keys` is inside this key.
    fn is_above(&self, keys: &[(usize, Key)]) -> bool {
        keys.iter().any(|(_, key)| key.name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Completes a key of the table or of a declaration with what the reader recorded for it.
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

/// Keys of the table, in its order and without forms.
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

/// True if the key at `path` is in the table. The reader may then request it without a declaration.
pub(crate) fn is_in_table(path: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| table().into_iter().map(|key| key.name).collect());
    NAMES.contains(without_numbers(path).as_ref())
}

/// True if the key at `path` is in the table or is declared.
pub fn is_listed(path: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| all().into_iter().map(|key| key.name).collect());
    NAMES.contains(without_numbers(path).as_ref())
}

/// Returns the keys that the reader requests in a scenario.
///
/// # Errors
/// If the scenario is refused.
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

/// Scenarios that together make the reader request every key, and the loader of their files.
pub fn examples() -> (Vec<String>, super::Load<'static>) {
    (prototypes::all(), &prototypes::load)
}

/// All keys. Each is followed by the keys inside it. Sections are in the order of the table; all
/// other keys are in the order of the reader's requests.
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

/// Appends to `ordered` the keys directly inside `table`, each followed by the keys inside it.
fn below(keys: &[Key], table: &str, ordered: &mut Vec<Key>) {
    for key in keys.iter().filter(|key| key.name.rsplit_once('.').map_or("", |(above, _)| above) == table) {
        ordered.push(key.clone());
        below(keys, &key.name, ordered);
    }
}

/// Keys at and inside `section`: `flow`, `flow.transport`, or one key.
///
/// # Errors
/// If there is no such key. The message lists the sections.
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
    Err(format!("there is no key or section {section}.{hint} The sections are {there}"))
}

/// Sections: the tables at the top of a scenario.
pub fn sections(all: &[Key]) -> Vec<&str> {
    let mut sections: Vec<&str> = all.iter().filter_map(|key| Some(key.name.split_once('.')?.0)).collect();
    sections.dedup();
    sections
}
