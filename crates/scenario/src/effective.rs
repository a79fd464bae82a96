//! Effective scenario of each point of a sweep: the settings that decide the results of its runs.
//! `--set` and `[sweep]` are applied, quantities are in base units, and a file is represented by
//! its content.
//!
//! Title, `[plot]`, comments and white space do not change results and are left out. The settings
//! are calculated from the text without building the points. A sweep of many points can so be
//! compared quickly with the content of a directory of records.
//!
//! Two points whose settings differ may still be the same run, because writing a key with its
//! default changes nothing. [`Outline::built`] answers that question. Only the built point can
//! answer it, because many defaults depend on other keys.

mod built;
mod defaults;
mod identities;
mod outlines;

use super::sweep::{Sweep, Values};
use super::toml_text::toml_text;
use super::{MAX_POINTS, overrides, transport};
pub use identities::{Digest, Identity};
use meshpace_core::Duration;
use meshpace_settings::diagnostic::{Problems, Source};
use meshpace_settings::quantity::{Dimension, TIME};
use meshpace_settings::value::{Kind, Origin, Table, Value};
pub use outlines::Outlines;
use std::collections::BTreeMap;

/// Keys that add content to a record and do not change the run.
pub const OBSERVED: [&str; 2] = ["series", "watch"];
/// Absolute value up to which every whole number is represented exactly by a floating-point number.
const EXACT: u64 = 1 << 53;
/// Number of digits of a file's digest in a message.
const DIGITS: usize = 8;

/// A scenario with its `--set` arguments. No point of it is built.
#[derive(Debug)]
pub struct Outline {
    root: Table,
    sweep: Sweep,
    /// SHA-256 of the files that the scenario names, by name.
    files: BTreeMap<String, String>,
    /// Settings that are not in a file: key, meaning, and value as it was written.
    added: Vec<(String, String, String)>,
}

impl Outline {
    /// Reads the outline of a text with its arguments. `files` contains the SHA-256 of each file
    /// that the text names. `None` if the text is not a valid scenario.
    pub fn read(source: &Source, files: BTreeMap<String, String>) -> Option<Outline> {
        let (document, errors) = toml::de::DeTable::parse_recoverable(&source.text);
        if !errors.is_empty() {
            return None;
        }
        let problems = Problems::default();
        let mut root = Table::from_toml(document.get_ref(), &Origin::File);
        overrides::apply(&mut root, &source.sets, &problems);
        let sweep = Sweep::take(&mut root, &problems);
        root.remove("plot");
        root.remove("title");
        (problems.count() == 0 && sweep.points() <= MAX_POINTS).then_some(Outline {
            root,
            sweep,
            files,
            added: Vec::new(),
        })
    }

    /// Adds to every point a setting that is not in a file, such as a pacing rule written in
    /// another language.
    pub fn add(&mut self, key: &str, meaning: &str, written: &str) {
        self.added.push((key.to_owned(), meaning.to_owned(), written.to_owned()));
    }

    /// Values of point `number` as the JSON object that identifies the point in records.
    pub fn key(&self, number: usize) -> String {
        self.sweep.key(number)
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.sweep.points()
    }

    /// Values and settings of point `number`.
    pub fn point(&self, number: usize) -> (Values, Settings) {
        // The arguments and the sweep were checked when the outline was read.
        let (tree, values) = self.sweep.point(number, &self.root, &Problems::default());
        let mut settings = Settings::default();
        for entry in &tree.entries {
            settings.gather(entry.key.clone(), &entry.value, &self.files);
        }
        self.added.iter().for_each(|(key, meaning, written)| settings.add(key, meaning, written));
        (values, settings)
    }

    /// True if `text` occurs as a value. A file of that name may then be one that the scenario
    /// reads.
    pub fn names(&self, text: &str) -> bool {
        self.root.entries.iter().any(|entry| entry.value.has_string(text)) || self.sweep.has_string(text)
    }
}

/// Settings that decide the results of a point's runs, by dotted key.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Settings(BTreeMap<String, Setting>);

/// One setting.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Setting {
    /// Meaning of the value. Two values have equal meanings if and only if they have the same
    /// effect.
    meaning: String,
    /// The value as it was written, for messages.
    written: String,
    /// True if the value names a file.
    is_file: bool,
}

/// A key that has different values in two scenarios.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The key.
    pub key: String,
    /// Value before the change, in TOML; `None` if it was not written.
    pub before: Option<String>,
    /// Value after the change, in TOML; `None` if it is not written.
    pub after: Option<String>,
    /// True if a value is the name of a file. Messages show such a value with the first digits of
    /// the file's digest.
    pub is_file: bool,
}

impl Settings {
    fn add(&mut self, key: &str, meaning: &str, written: &str) {
        let setting = Setting { meaning: meaning.to_owned(), written: written.to_owned(), is_file: false };
        self.0.insert(key.to_owned(), setting);
    }

    /// Digest of the settings that decide the results of the run.
    pub fn digest(&self) -> Digest {
        self.deciding().map(|(key, meaning)| Digest::of(key, meaning)).sum()
    }

    /// Digest of the deciding settings whose values cannot be defaults. Two points with the same
    /// digest may be the same run; [`Outline::built`] decides whether they are.
    pub fn digest_without_defaults(&self) -> Digest {
        let kept = self.deciding().filter(|(key, meaning)| !defaults::may_be(key, meaning));
        kept.map(|(key, meaning)| Digest::of(defaults::name(key), meaning)).sum()
    }

    fn deciding(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter().filter(|(key, _)| !is_observed(key));
        pairs.map(|(key, setting)| (key.as_str(), setting.meaning.as_str()))
    }

    /// Meanings of the keys of [`OBSERVED`]; `None` for a key that is not written.
    pub fn observed(&self) -> [Option<String>; OBSERVED.len()] {
        OBSERVED.map(|observed| {
            let of_key = self.0.iter().filter(|(key, _)| is_part(key, observed));
            let meanings: Vec<String> = of_key.map(|(key, setting)| format!("{key} = {}", setting.meaning)).collect();
            (!meanings.is_empty()).then(|| meanings.join("\n"))
        })
    }

    /// Keys whose values have a different meaning in `after`.
    pub fn changes(&self, after: &Settings) -> Vec<Change> {
        let keys = self.0.keys().chain(after.0.keys().filter(|key| !self.0.contains_key(*key)));
        let change = |key: &String| {
            let (before, after) = (self.0.get(key), after.0.get(key));
            let is_same = before.map(|setting| &setting.meaning) == after.map(|setting| &setting.meaning);
            let written = |setting: Option<&Setting>| setting.map(|setting| setting.written.clone());
            let is_file = [before, after].into_iter().flatten().any(|setting| setting.is_file);
            (!is_same).then(|| Change { key: key.clone(), before: written(before), after: written(after), is_file })
        };
        let changes: Vec<Change> = keys.filter_map(change).collect();
        // A table that exists only because of the keys in it is not reported. Its keys are.
        let is_of_keys = |change: &Change| {
            let (before, after) = (change.before.as_deref(), change.after.as_deref());
            let is_table = before.or(after) == Some("{}") && before.is_some() != after.is_some();
            is_table && changes.iter().any(|other| other.key != change.key && is_part(&other.key, &change.key))
        };
        changes.iter().filter(|change| !is_of_keys(change)).cloned().collect()
    }

    fn gather(&mut self, key: String, value: &Value, files: &BTreeMap<String, String>) {
        match &value.kind {
            _ if is_transport(&key) => self.add(&key, &transport_meaning(value), &written(value)),
            Kind::Table(table) if !table.entries.is_empty() => {
                table.entries.iter().for_each(|entry| self.gather(format!("{key}.{}", entry.key), &entry.value, files));
            }
            Kind::Array(items) if !items.is_empty() && items.iter().all(|item| matches!(item.kind, Kind::Table(_))) => {
                self.add(&key, &format!("{} tables", items.len()), &format!("{} tables", items.len()));
                for (number, item) in items.iter().enumerate() {
                    // The number of tables, added above, already accounts for an empty table.
                    if !matches!(&item.kind, Kind::Table(table) if table.entries.is_empty()) {
                        self.gather(format!("{key}.{number}"), item, files);
                    }
                }
            }
            // The value of a `name` key is never a quantity, even if it looks like one.
            Kind::String(name) if key.ends_with(".name") => self.add(&key, &format!("{name:?}"), &written(value)),
            Kind::String(name) if files.contains_key(name) => {
                let content: String = files[name].chars().take(DIGITS).collect();
                let written = format!("{name} (SHA-256 {content}...)");
                self.0.insert(key, Setting { meaning: meaning(value, files), written, is_file: true });
            }
            _ => self.add(&key, &meaning(value, files), &written(value)),
        }
    }
}

fn is_observed(key: &str) -> bool {
    OBSERVED.iter().any(|observed| is_part(key, observed))
}

/// True if `key` is `whole` or a key inside `whole`.
fn is_part(key: &str, whole: &str) -> bool {
    key.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// True for the transport of a flow, such as `flow.0.transport`.
fn is_transport(key: &str) -> bool {
    let mut parts = key.split('.');
    (parts.next(), parts.nth(1), parts.next()) == (Some("flow"), Some("transport"), None)
}

/// Meaning of a flow's transport. Records label a transport by its table as it is written. Two
/// spellings of the same table are therefore two transports.
fn transport_meaning(value: &Value) -> String {
    match &value.kind {
        Kind::String(name) => transport::spelled_out(name),
        _ => written(value),
    }
}

/// Meaning of a value. Two values have the same meaning if and only if every reader of the key
/// treats them alike.
fn meaning(value: &Value, files: &BTreeMap<String, String>) -> String {
    match &value.kind {
        Kind::String(text) => match (files.get(text), Dimension::parse_any(text)) {
            // The extension of the name may determine the format of the content.
            (Some(content), _) => format!("file *.{} {content}", text.rsplit('.').next().unwrap_or_default()),
            // Every reader converts a time to whole nanoseconds.
            (None, Some((dimension, seconds))) if *dimension == TIME => {
                format!("{} {}", TIME.name, Duration::from_secs_f64(seconds).0)
            }
            (None, Some((dimension, number))) => format!("{} {number:?}", dimension.name),
            (None, None) => format!("{text:?}"),
        },
        // A key that takes fractions also takes whole numbers.
        Kind::Integer(number) if number.unsigned_abs() <= EXACT => format!("{:?}", *number as f64),
        Kind::Integer(number) => number.to_string(),
        Kind::Float(number) => format!("{number:?}"),
        Kind::Bool(flag) => flag.to_string(),
        Kind::Other(text) => format!("other {text}"),
        Kind::Array(items) => {
            format!("[{}]", items.iter().map(|item| meaning(item, files)).collect::<Vec<_>>().join(", "))
        }
        Kind::Table(table) => {
            let mut entries: Vec<String> = table
                .entries
                .iter()
                .map(|entry| format!("{:?} = {}", entry.key, meaning(&entry.value, files)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// The value in TOML. A string has no quotes if an argument of `--sweep` takes it without them.
fn written(value: &Value) -> String {
    match &value.kind {
        Kind::String(text) if is_plain(text) => text.clone(),
        _ => toml_text(value),
    }
}

/// True if an argument takes the text as a string although it has no quotes.
fn is_plain(text: &str) -> bool {
    let has_letter = text.chars().any(char::is_alphabetic) && text != "true" && text != "false";
    has_letter && text.chars().all(|c| c.is_alphanumeric() || " ./_+-".contains(c)) && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str, sets: &[&str]) -> Settings {
        outline(text, sets, &[]).point(0).1
    }

    pub(super) fn outline(text: &str, sets: &[&str], files: &[(&str, &str)]) -> Outline {
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets };
        let files = files.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect();
        Outline::read(&source, files).unwrap()
    }

    const TEXT: &str =
        "title = 'One'\nduration = '2 s'\n[topology]\nhops = 2\n[[flow]]\ntransport = 'cubic'\nrate = '5 Mbit/s'\n";

    #[test]
    fn what_decides_nothing_is_left_out() {
        let first = settings(TEXT, &[]);
        for same in [
            "# A comment.\n[[flow]]\nrate = '5e3 kbit/s'\n\ntransport = { name = \"cubic\" }\n[topology]\nhops = 2\n[plot]\nlogarithmic = true\n",
            "duration = '1 s'\ntopology = { hops = 0x2 }\nflow = [{ transport = 'cubic', rate = '5.0 Mbit/s' }]\n",
        ] {
            let other = settings(same, &["duration=2000000us"]);
            assert_eq!((first.changes(&other), first.digest()), (vec![], other.digest()), "{same}");
        }
    }

    #[test]
    fn a_change_names_its_key_and_both_values() {
        let first = settings(TEXT, &[]);
        let told = |text: &str, sets: &[&str]| {
            let other = settings(text, sets);
            assert_ne!(first.digest(), other.digest());
            let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let of = |change: Change| format!("{}: {} → {}", change.key, shown(change.before), shown(change.after));
            first.changes(&other).into_iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(told(TEXT, &["duration=3 s"]), ["duration: 2 s → 3 s"]);
        assert_eq!(told(TEXT, &["flow.segment=512"]), ["flow.0.segment: - → 512"]);
        assert_eq!(told(&TEXT.replace("hops = 2\n", ""), &[]), ["topology.hops: 2 → -"]);
        assert_eq!(told(&format!("{TEXT}[[flow]]\n"), &[]), ["flow: 1 tables → 2 tables"]);
        assert_eq!(
            told(TEXT, &["flow.0.transport={ name = 'cubic', pacing = 'none' }"]),
            ["flow.0.transport: cubic → { name = \"cubic\", pacing = \"none\" }"]
        );
    }

    #[test]
    fn an_empty_piece_is_not_a_missing_one() {
        for (one, other) in [
            ("[batches]\n[[flow]]\n", "[[flow]]\n"),
            ("[[flow]]\ntransport = { name = 'newreno', pacing = {} }\n", "[[flow]]\ntransport = 'newreno'\n"),
            ("[[flow]]\nname = '1 s'\n", "[[flow]]\nname = '1000 ms'\n"),
        ] {
            assert_ne!(settings(one, &[]).digest(), settings(other, &[]).digest(), "{one}");
        }
    }

    #[test]
    fn a_swept_value_is_the_same_as_one_that_is_written() {
        let swept = format!("{TEXT}[sweep]\n'topology.hops' = [1, 2]\n'duration' = ['2 s', '0.5 min']\n");
        let outline = outline(&swept, &[], &[]);
        let point = outline.point(2);
        assert_eq!((outline.points(), point.0[0].1.clone()), (4, serde_json::json!(2)));
        assert_eq!(point.1.digest(), settings(TEXT, &[]).digest());
        assert_ne!(outline.point(3).1.digest(), point.1.digest());
    }

    #[test]
    fn a_file_is_its_content_whatever_its_name() {
        let text = |name: &str| format!("[topology]\nkind = 'nodes'\nfile = '{name}'\n[[flow]]\n");
        let of = |name: &str, content: &str| outline(&text(name), &[], &[(name, content)]).point(0).1.digest();
        assert_eq!(of("a.csv", "1"), of("b.csv", "1"));
        assert_ne!(of("a.csv", "1"), of("a.csv", "2"));
        assert_ne!(of("a.csv", "1"), of("a.json", "1"));
        assert!(outline(&text("a.csv"), &[], &[]).names("a.csv") && !outline(&text("a.csv"), &[], &[]).names("a"));
    }

    #[test]
    fn what_is_observed_is_told_apart_from_the_run() {
        let (plain, series) = (settings(TEXT, &[]), settings(TEXT, &["series=1 s"]));
        assert_eq!(plain.digest(), series.digest());
        assert_eq!(plain.observed(), [None, None]);
        assert!(series.observed()[0].is_some() && series.observed() != settings(TEXT, &["series=2 s"]).observed());
        let watched = settings(TEXT, &["series=1 s", "watch=[{ node = 0, toward = 1 }]"]);
        assert_eq!((watched.digest(), watched.observed()[1].is_some()), (plain.digest(), true));
        assert_ne!(settings(TEXT, &["batches.count=2"]).digest(), plain.digest());
    }
}
