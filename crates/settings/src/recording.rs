//! Recording of the keys that a reader requests while it reads the scenarios of `prototypes`. It
//! contains what may be written for each key, and the declarations of the keys that a component
//! declares as parameters.

use super::form::Form;
use meshpace_core::Parameter;
use meshpace_core::parameter::{Level, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Kind of the table that contains a key, if different kinds of this table have keys of their own.
pub type Kind = Option<&'static str>;

/// Requests for one key.
#[derive(Clone, Default, Debug)]
pub struct Asked {
    /// Number of keys that were requested before this one.
    place: usize,
    /// Accepted forms, each with its kind of table.
    forms: Vec<(Kind, Form)>,
    /// Declarations of the key, each with its kind of table and the value that an unwritten key
    /// has.
    declared: Vec<(Kind, &'static Parameter, Option<Value>)>,
}

/// Requests of a reader, by key.
#[derive(Default, Debug)]
pub struct Recording(pub RefCell<BTreeMap<String, Asked>>);

impl Recording {
    fn change(&self, path: &str, change: impl FnOnce(&mut Asked)) {
        let mut asked = self.0.borrow_mut();
        let place = asked.len();
        change(asked.entry(without_numbers(path).into_owned()).or_insert_with(|| Asked { place, ..Asked::default() }));
    }

    /// Records that the key at `path` is read for a table of this kind, with its `form` if that is
    /// known.
    pub fn note(&self, path: &str, kind: Kind, form: Option<Form>) {
        self.change(path, |asked| asked.forms.extend(form.map(|form| (kind, form))));
    }

    /// Records the declaration of the key at `path`. `unset` is its value where the key is not
    /// written.
    pub fn declare(&self, path: &str, kind: Kind, parameter: &'static Parameter, unset: Option<Value>) {
        self.change(path, |asked| asked.declared.push((kind, parameter, unset)));
    }

    /// Adds the requests of another reader for the key at `path`.
    pub fn add(&self, path: &str, other: Asked) {
        self.change(path, |asked| {
            asked.forms.extend(other.forms);
            asked.declared.extend(other.declared);
        });
    }
}

/// Groups values by the kinds that have them: kinds with the same value are in one group.
fn by_kind<T: PartialEq>(all: impl Iterator<Item = (Kind, T)>) -> Vec<(Vec<&'static str>, T)> {
    let mut groups: Vec<(Vec<&'static str>, T)> = Vec::new();
    for (kind, value) in all {
        match groups.iter_mut().find(|group| group.1 == value) {
            Some((kinds, _)) => kinds.extend(kind.filter(|kind| !kinds.contains(kind))),
            None => groups.push((kind.into_iter().collect(), value)),
        }
    }
    groups
}

/// Describes groups in words: `adaptive: 0.7; dcc: 0.1`.
pub fn in_words(groups: &[(Vec<&'static str>, String)]) -> String {
    let words = |(kinds, text): &(Vec<&'static str>, String)| match kinds.is_empty() {
        true => text.clone(),
        false => format!("{}: {text}", kinds.join(", ")),
    };
    groups.iter().map(words).collect::<Vec<_>>().join("; ")
}

impl Asked {
    /// Position of the key in the order of requests.
    pub fn place(&self) -> usize {
        self.place
    }

    /// True if a component declares the key as a parameter.
    pub fn is_declared(&self) -> bool {
        !self.declared.is_empty()
    }

    /// Declarations of the key, each with its kind of table.
    pub fn declarations(&self) -> impl Iterator<Item = (Kind, &'static Parameter)> {
        self.declared.iter().map(|(kind, parameter, _)| (*kind, *parameter))
    }

    /// Accepted forms, merged over all kinds.
    pub fn forms(&self) -> Vec<Form> {
        Form::merged(self.forms.iter().map(|(_, form)| form.clone()))
    }

    /// Accepted forms by kind; empty if all kinds accept the same.
    pub fn by_kind(&self) -> Vec<(Vec<&'static str>, Vec<Form>)> {
        let mut kinds: Vec<&'static str> = Vec::new();
        for kind in self.forms.iter().filter_map(|(kind, _)| *kind) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let of =
            |kind| Form::merged(self.forms.iter().filter(|(of, _)| *of == Some(kind)).map(|(_, form)| form.clone()));
        let groups = by_kind(kinds.into_iter().map(|kind| (Some(kind), of(kind))));
        if groups.len() > 1 { groups } else { Vec::new() }
    }

    /// Meaning of an unwritten key: TOML, or words in parentheses.
    pub fn unset(&self) -> Option<String> {
        let mut unset: Vec<(Kind, String)> = Vec::new();
        for (kind, parameter, value) in &self.declared {
            let form = &parameter.form;
            let text = match value {
                // A default that depends on something else is described in words.
                Some(value) if form.absence.is_empty() || (parameter.default)().is_none() => form.write(value),
                None if form.or_none => "\"none\"".to_owned(),
                _ => format!("({})", form.absence),
            };
            match unset.iter_mut().find(|(of, _)| of == kind) {
                Some((_, before)) if *before != text => *before = "(by name)".to_owned(),
                Some(_) => {}
                None => unset.push((*kind, text)),
            }
        }
        match &mut by_kind(unset.into_iter())[..] {
            [] => None,
            [(_, all)] => Some(std::mem::take(all)),
            several => {
                for (_, text) in several.iter_mut() {
                    *text = text.trim_matches(['(', ')', '"']).to_owned();
                }
                Some(format!("({})", in_words(several)))
            }
        }
    }

    /// Purpose of the key, from its declarations.
    pub fn meaning(&self) -> String {
        in_words(&by_kind(self.declared.iter().map(|(kind, parameter, _)| (*kind, parameter.meaning.to_owned()))))
    }

    /// Source of the key, from its declarations.
    pub fn source(&self) -> String {
        let sources = by_kind(self.declared.iter().map(|(kind, parameter, _)| (*kind, parameter.source.to_owned())));
        match &sources[..] {
            [(_, all)] => all.clone(),
            several => {
                let known: Vec<_> = several.iter().filter(|(_, source)| !source.is_empty()).cloned().collect();
                in_words(&known)
            }
        }
    }

    /// Level of the users who need the key: the simplest level of its declarations.
    pub fn level(&self) -> Option<Level> {
        self.declared.iter().map(|(_, parameter, _)| parameter.level).min()
    }
}

/// Removes the indices from a path: `flow.0.transport` becomes `flow.transport`.
pub fn without_numbers(path: &str) -> Cow<'_, str> {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if path.split('.').any(is_number) {
        let parts: Vec<&str> = path.split('.').filter(|part| !is_number(part)).collect();
        return Cow::Owned(parts.join("."));
    }
    Cow::Borrowed(path)
}
