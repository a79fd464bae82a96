//! The scenarios whose runs a directory holds, as its manifest lists them, and the points of each.

use super::kept::{self, Contents};
use super::line::Key;
use super::rules::{self, Rule};
use meshpace_scenario::effective::{Change, Identity, Outlines, Settings};
use meshpace_scenario::{Files, Part, Scenario, Source, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scenario that was run into a directory, with its seeds and the version of the program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Given {
    /// The scenario's name.
    pub scenario: String,
    /// Text of the scenario.
    pub text: String,
    /// Arguments of `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The first seed.
    pub first_seed: u64,
    /// Number of seeds of each point.
    pub seeds: u64,
    /// SHA-256 of each file that the scenario names, by the name of the file.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Pacing rules written in another language.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Version of meshpace.
    pub version: String,
    /// SHA-256 of the scenario together with its files or rules, if the version that made the
    /// records did not list these. `None` if they are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<String>,
    /// Scenarios that are joined here, if this is a campaign of several scenarios.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Source of the contents of the files.
    #[serde(skip)]
    pub contents: Contents,
}

impl Given {
    /// Creates the entry of a scenario that was read from its file, with its seeds.
    pub fn new(scenario: &Scenario, first_seed: u64, seeds: u64) -> Given {
        let file = |(name, bytes): &(std::path::PathBuf, Vec<u8>)| (name.display().to_string(), kept::sha256(bytes));
        Given {
            scenario: scenario.name.clone(),
            text: scenario.source.text.clone(),
            set: scenario.source.sets.clone(),
            first_seed,
            seeds,
            files: scenario.files.iter().map(file).collect(),
            rules: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            unlisted: None,
            parts: scenario.parts.clone(),
            contents: Contents { read: Arc::new(scenario.files.clone()), directory: None },
        }
    }

    /// Creates an entry from a scenario's text, for tests.
    #[cfg(test)]
    pub(super) fn of_text(text: &str) -> Given {
        Given {
            scenario: "s".to_owned(),
            text: text.to_owned(),
            set: Vec::new(),
            first_seed: 1,
            seeds: 3,
            files: BTreeMap::new(),
            rules: Vec::new(),
            version: "1".to_owned(),
            unlisted: None,
            parts: Vec::new(),
            contents: Contents::default(),
        }
    }

    /// Completes an entry that comes from a manifest without a list of scenarios. `sha256` is the
    /// digest of its text, arguments and files. `now` is the current scenario with its digest. The
    /// files are proved to be unchanged if both digests are equal, or if `sha256` is the digest of
    /// this text with the files of `now`. Without that proof, the digest is kept in `unlisted`.
    #[must_use]
    pub fn proved(mut self, sha256: &str, now: Option<(&Given, &str)>) -> Given {
        if let Some((now, _)) = now.filter(|(_, digest)| sha256 == *digest) {
            return Given { first_seed: self.first_seed, seeds: self.seeds, version: self.version, ..now.clone() };
        }
        let outline = self.outline();
        let is_named = |name: &str| outline.as_ref().is_some_and(|outline| outline.names(name));
        let mut files: Files = now.map(|(now, _)| now.contents.read.to_vec()).unwrap_or_default();
        files.retain(|(name, _)| is_named(&name.display().to_string()));
        if digest(&self.source(), &files) == sha256 {
            self.files = files.iter().map(|(name, bytes)| (name.display().to_string(), kept::sha256(bytes))).collect();
        } else {
            self.unlisted = Some(sha256.to_owned());
        }
        self
    }

    /// True if both have the same text, arguments, files and rules.
    pub fn is_same_scenario(&self, other: &Given) -> bool {
        // The texts of the parts need no comparison, because they are among the files.
        let of = |given: &Given| (given.text.clone(), given.set.clone(), given.files.clone(), given.unlisted.clone());
        of(self) == of(other) && rules::meaning(&self.rules) == rules::meaning(&other.rules)
    }

    /// Appends a scenario to a list. An entry of the same scenario and the same version is removed
    /// if the seeds of both form one range; the new entry then covers that range.
    pub fn put(list: &mut Vec<Given>, mut new: Given) {
        let joined = |old: &Given, new: &Given| {
            let end = |given: &Given| given.first_seed.saturating_add(given.seeds);
            let is_one = old.first_seed <= end(new) && new.first_seed <= end(old);
            let first = old.first_seed.min(new.first_seed);
            (is_one && old.is_same_scenario(new) && (&old.version, &old.scenario) == (&new.version, &new.scenario))
                .then(|| (first, end(old).max(end(new)) - first))
        };
        list.retain(|old| match joined(old, &new) {
            Some(seeds) => {
                (new.first_seed, new.seeds) = seeds;
                false
            }
            None => true,
        });
        list.push(new);
    }

    fn source(&self) -> Source {
        Source { name: self.scenario.clone(), text: self.text.clone(), sets: self.set.clone() }
    }

    /// Returns the outline of the scenario; `None` if this program cannot read the text.
    pub(super) fn outline(&self) -> Option<Outlines> {
        Outlines::read(&self.source(), &self.parts, &self.files)
    }

    /// Returns the content of a file that the scenario names.
    ///
    /// # Errors
    /// Why the content is not available.
    pub fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        let digest = self.files.get(name).ok_or_else(|| format!("{name}: the scenario did not name this file"))?;
        self.contents.load(name, digest)
    }

    /// Makes the directory of the records the source of the files' contents. Contents that this
    /// directory does not keep are copied from `other`, if that scenario has files with the same
    /// digests.
    pub fn find_contents(&mut self, other: Option<&Given>, directory: &Path) {
        let content = |(name, digest): (&String, &String)| {
            let other = other.filter(|_| !kept::has(directory, digest))?;
            let (known, _) = other.files.iter().find(|(_, known)| *known == digest)?;
            Some((PathBuf::from(name), other.load(known).ok()?))
        };
        let read = if self.contents.read.is_empty() {
            Arc::new(self.files.iter().filter_map(content).collect())
        } else {
            Arc::clone(&self.contents.read)
        };
        self.contents = Contents { read, directory: Some(directory.to_owned()) };
    }

    /// Stores the scenario's files in a directory of records, as far as their contents are
    /// available.
    ///
    /// # Errors
    /// Any error of the file system.
    pub(super) fn keep_files(&self, directory: &Path) -> io::Result<()> {
        let missing = self.files.iter().filter(|(_, digest)| !kept::has(directory, digest));
        let contents = missing.filter_map(|(name, _)| self.load(name).ok());
        contents.into_iter().try_for_each(|bytes| kept::keep(directory, &bytes))
    }

    /// Returns the keys of all runs of the scenario.
    pub fn runs(&self) -> impl Iterator<Item = Key> {
        let (first, seeds) = (self.first_seed, self.seeds);
        let of_point = move |point: String| (0..seeds).map(move |number| (point.clone(), first.saturating_add(number)));
        self.keys().flat_map(of_point)
    }

    /// Returns the key of each point; empty if this program cannot read the text.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        let outline = self.outline();
        let number = outline.as_ref().map_or(0, Outlines::points);
        outline.into_iter().flat_map(move |outline| (0..number).filter_map(move |number| outline.key(number)))
    }

    /// Calls `each` with the number, key and identity of every point. There are no calls if this
    /// program cannot read the text.
    pub(super) fn each_point(&self, mut each: impl FnMut(usize, String, Identity)) {
        if let Some(outline) = self.complete() {
            let keys = (0..outline.points()).filter_map(|number| outline.key(number));
            keys.zip(outline.identities())
                .enumerate()
                .for_each(|(number, (key, identity))| each(number, key, identity));
        }
    }

    /// Returns the point with this key; `None` if there is no such point.
    fn written(&self, key: &str) -> Option<Written<'_>> {
        let outline = self.complete()?;
        let number = (0..outline.points()).find(|number| outline.key(*number).is_some_and(|own| own == key))?;
        Some(Written { given: self, settings: outline.point(number)?.1, outline, number })
    }

    /// Returns the outline extended by settings that no file contains: the pacing rules and the
    /// digest of files that are not listed.
    fn complete(&self) -> Option<Outlines> {
        let mut outline = self.outline()?;
        if !self.rules.is_empty() {
            let names: Vec<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
            outline.add(RULES, &kept::sha256(rules::meaning(&self.rules).as_bytes()), &names.join(", "));
        }
        if let Some(digest) = &self.unlisted {
            outline.add(FILES, digest, "not listed by the version of meshpace that made the records");
        }
        Some(outline)
    }
}

/// A point as its scenario writes it.
struct Written<'a> {
    given: &'a Given,
    outline: Outlines,
    /// Number of the point in the outline.
    number: usize,
    settings: Settings,
}

impl Written<'_> {
    /// True if the point writes `key` with its default. False if a file that it needs is not known.
    fn is_default(&self, key: &str) -> bool {
        let load = |name: &str| self.given.load(name);
        self.given.unlisted.is_none() && self.outline.is_default(self.number, key, &load)
    }
}

/// Returns the keys whose values differ between two points. If one point writes a key with its
/// default and the other does not write the key, the values are equal.
fn changes(old: Option<&Written<'_>>, new: Option<&Written<'_>>) -> Vec<Change> {
    let none = Settings::default();
    let settings = |point: Option<&Written<'_>>| point.map_or(none.clone(), |point| point.settings.clone());
    let all = settings(old).changes(&settings(new));
    let differs = |change: &&Change| {
        let writer = match (&change.before, &change.after) {
            (Some(_), None) => old,
            (None, Some(_)) => new,
            _ => None,
        };
        !writer.is_some_and(|point| point.is_default(&change.key))
    };
    let changes: Vec<Change> = all.iter().filter(differs).cloned().collect();
    // A default may depend on other keys and so differ between the points.
    if changes.is_empty() { all } else { changes }
}

/// Name for the pacing rules as a setting, which is not a key of a scenario.
pub const RULES: &str = "the pacing rules of Python";
/// Name for the content of files as a setting, used if the manifest does not list the files. It is
/// not a key of a scenario.
pub const FILES: &str = "the content of the files that it names";

/// Largest number of changed keys that a message names.
const NAMED: usize = 3;

/// Explains why records of the point `key` do not fit the scenario `new`: the changed keys with
/// both values, and remedies. `old` are the scenarios of the records.
pub fn conflict(key: &str, old: &[Given], new: &[Given]) -> String {
    let [before, after] = [old, new].map(|list| list.iter().rev().find_map(|given| given.written(key)));
    let changes = changes(before.as_ref(), after.as_ref());
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not written".to_owned());
    let told = |change: &Change| format!("{}: {} → {}", change.key, shown(&change.before), shown(&change.after));
    let mut listed: Vec<String> = changes.iter().take(NAMED).map(told).collect();
    if changes.len() > NAMED {
        listed.push(format!("{} more keys", changes.len() - NAMED));
    }
    let point = match key {
        "{}" => String::new(),
        _ => format!(" at the point {key}"),
    };
    format!(
        "records{point} that were made with other values ({}); write the new records to another directory with --out DIR{}",
        listed.join(", "),
        remedy(&changes)
    )
}

/// Explains how records with both values can be stored in one directory; empty if that is
/// impossible.
fn remedy(changes: &[Change]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "DEFAULT".to_owned());
    let sweep = |change: &Change| {
        let is_key = ![RULES, FILES].contains(&change.key.as_str()) && !is_list(change);
        is_key.then(|| match change.is_file {
            true => format!("--sweep '{}=OLD,NEW'", change.key),
            false => format!("--sweep '{}={},{}'", change.key, value(&change.before), value(&change.after)),
        })
    };
    let sweeps: Option<Vec<String>> = changes.iter().map(sweep).collect();
    let Some(sweeps) = sweeps.filter(|sweeps| (1..=NAMED).contains(&sweeps.len())) else { return String::new() };
    let mut told = format!(", or make the key part of each point with {}", sweeps.join(" "));
    if changes.iter().any(|change| change.is_file) {
        told += ", where OLD and NEW are two files with both contents";
    }
    if changes.iter().any(|change| change.before.is_none() || change.after.is_none()) {
        told += ", where DEFAULT is the value of a key that is not written (meshpace keys)";
    }
    told
}

/// True if the change is in the number of tables in a list. No value of a sweep can set that
/// number.
fn is_list(change: &Change) -> bool {
    [&change.before, &change.after].into_iter().flatten().any(|value| value.ends_with(" tables"))
}
