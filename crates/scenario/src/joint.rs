//! A campaign of several scenarios in one file. Each `[[part]]` names a file, and may set and sweep
//! keys of it.
//!
//! The points of all parts become the points of one scenario. The first value of each point is
//! `part`, the name of its part, so that points of different parts always differ.

use super::files::Load;
use super::plot::{Plot, is_plot};
use super::toml_text::toml_text;
use super::{MAX_POINTS, MAX_SEEDS, PART, Point, Points, Refusal, Scenario, Source, digest};
use meshpace_settings::diagnostic::{Problem, Problems};
use meshpace_settings::one_of;
use meshpace_settings::value::{Entry, Kind, Origin, Table, Value};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Keys of the campaign's file.
const KEYS: [&str; 4] = ["title", "seeds", "plot", PART];
/// Keys of a part.
const KEYS_OF_PART: [&str; 4] = ["name", "file", "set", "sweep"];
/// Largest number of parts.
const MOST: usize = 1000;

/// A scenario that is part of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Name of the part in the campaign.
    pub name: String,
    /// Name of the scenario's file, as the campaign spells it.
    pub file: String,
    /// Text of the scenario.
    pub text: String,
    /// `--set` arguments of the part. Those of the command line come last.
    pub sets: Vec<String>,
}

impl Part {
    /// Name in the campaign of a file that the part calls `file`.
    pub fn name_of(&self, file: &str) -> PathBuf {
        self.directory().join(file)
    }

    /// Name in the part of a file that the campaign calls `file`.
    pub fn own_name_of<'a>(&self, file: &'a str) -> &'a str {
        Path::new(file).strip_prefix(self.directory()).ok().and_then(Path::to_str).unwrap_or(file)
    }

    /// Source of the part's scenario.
    pub fn source(&self) -> Source {
        Source { name: self.file.clone(), text: self.text.clone(), sets: self.sets.clone() }
    }

    fn directory(&self) -> &Path {
        Path::new(&self.file).parent().unwrap_or(Path::new(""))
    }
}

/// Tree of a text if it is a campaign of several scenarios; otherwise `None`.
pub fn tree(text: &str) -> Option<Table> {
    text.contains(PART).then_some(())?;
    let (document, errors) = toml::de::DeTable::parse_recoverable(text);
    let root = Table::from_toml(document.get_ref(), &Origin::File);
    (errors.is_empty() && root.get(PART).is_some()).then_some(root)
}

/// Reads a campaign whose tree is `root`. The files of its scenarios come from `load`.
///
/// # Errors
/// All errors of the campaign's file, or all errors of the first scenario that is refused.
pub fn read(root: &Table, source: Source, load: Load<'_>, stem: &str) -> Result<Scenario, Refusal> {
    let problems = Problems::default();
    let (title, seeds, parts) = head(root, &source.sets, load, &problems);
    let problems = problems.into_vec();
    if !problems.is_empty() {
        return Err(Refusal { source, problems });
    }
    let mut all = Scenario {
        name: title.unwrap_or_else(|| stem.to_owned()),
        digest: String::new(),
        points: Points::default(),
        seeds: 1,
        plot: Plot::default(),
        warnings: Vec::new(),
        source,
        files: Vec::new(),
        parts: Vec::new(),
    };
    let mut points: Vec<Point> = Vec::new();
    for part in parts {
        let load = |name: &str| load(&part.name_of(name).display().to_string());
        let read = Scenario::read_with(part.source(), &load, &part.name)?;
        all.seeds = all.seeds.max(read.seeds);
        all.warnings.extend(read.warnings.iter().map(|warning| format!("{}: {warning}", part.name)));
        all.files.push((PathBuf::from(&part.file), part.text.clone().into_bytes()));
        let name_of = |name: &Path| part.name_of(&name.display().to_string());
        all.files.extend(read.files.into_iter().map(|(name, bytes)| (name_of(&name), bytes)));
        let named = |point: Point| {
            let name = (PART.to_owned(), part.name.clone().into());
            Point { values: std::iter::once(name).chain(point.values).collect(), ..point }
        };
        points.extend(read.points.into_vec().into_iter().map(named));
        all.parts.push(part);
    }
    if points.len() > MAX_POINTS {
        let message = format!("{} points are more than {MAX_POINTS}", points.len());
        let problem = Problem { message, origin: None, expected: String::new(), help: None, point: None };
        return Err(Refusal { source: all.source, problems: vec![problem] });
    }
    let problems = Problems::default();
    let mut swept: Vec<&str> = Vec::new();
    for (key, _) in points.iter().flat_map(|point| &point.values) {
        if !swept.contains(&key.as_str()) {
            swept.push(key);
        }
    }
    all.plot = Plot::take_joint(root, Some(&swept), &all.source.sets, &problems);
    let problems = problems.into_vec();
    if !problems.is_empty() {
        return Err(Refusal { source: all.source, problems });
    }
    all.points = points.into();
    all.seeds = seeds.unwrap_or(all.seeds);
    all.files.sort();
    all.files.dedup();
    all.digest = digest(&all.source, &all.files);
    Ok(all)
}

/// Reads title, seeds and parts of a campaign.
fn head(
    root: &Table,
    sets: &[String],
    load: Load<'_>,
    problems: &Problems,
) -> (Option<String>, Option<u64>, Vec<Part>) {
    refuse_others(root, &KEYS, "a campaign of several scenarios", problems);
    let title = text(root, "title", problems);
    let seeds = root.get("seeds").and_then(|value| {
        let seeds = value.whole().filter(|seeds| (1..=MAX_SEEDS).contains(seeds));
        if seeds.is_none() {
            problems.at(
                &value.origin,
                format!("seeds: expected a whole number from 1 to {MAX_SEEDS}"),
                "seeds per point",
            );
        }
        seeds
    });
    let mut parts: Vec<Part> = Vec::new();
    let Some(Value { kind: Kind::Array(items), origin }) = root.get(PART) else {
        root.entry(PART).into_iter().for_each(|entry| expect_tables(&entry.origin, problems));
        return (title, seeds, parts);
    };
    if items.len() > MOST {
        problems.at(origin, format!("{PART}: {} are more than {MOST}", items.len()), "expected fewer");
        return (title, seeds, parts);
    }
    for item in items {
        let Kind::Table(table) = &item.kind else {
            expect_tables(&item.origin, problems);
            continue;
        };
        let Some(part) = part(table, &item.origin, sets, load, problems) else { continue };
        if parts.iter().any(|other| other.name == part.name) {
            let message = format!("{PART}: two parts have the name {:?}", part.name);
            problems.at(&item.origin, message, "expected a different name for each part");
        }
        parts.push(part);
    }
    (title, seeds, parts)
}

/// Reads one part. The arguments of the command line follow its own.
fn part(table: &Table, origin: &Origin, sets: &[String], load: Load<'_>, problems: &Problems) -> Option<Part> {
    refuse_others(table, &KEYS_OF_PART, "a part of a campaign", problems);
    let Some(file) = text(table, "file", problems) else {
        if table.get("file").is_none() {
            problems.at(
                origin,
                format!("{PART}: file is missing"),
                "expected the file of a scenario, such as file = \"chain.toml\"",
            );
        }
        return None;
    };
    let content = match scenario_text(&file, load) {
        Ok(content) => content,
        Err(why) => {
            let origin = table.entry("file").map_or(origin, |entry| &entry.value.origin);
            problems.at(origin, format!("file: {why}"), "expected the file of a scenario");
            return None;
        }
    };
    let stem = Path::new(&file).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name = text(table, "name", problems).unwrap_or(stem);
    let own = own_sets(table, problems).into_iter().chain(sweeps(table, problems));
    // What plots are like is said of the campaign.
    let common = sets.iter().filter(|set| !is_plot(set)).cloned();
    Some(Part { name, file, text: content, sets: own.chain(common).collect() })
}

/// Text of a scenario that is not itself a campaign of several scenarios.
fn scenario_text(file: &str, load: Load<'_>) -> Result<String, String> {
    let content = String::from_utf8(load(file)?).map_err(|_| format!("{file}: not UTF-8 text"))?;
    match tree(&content) {
        Some(_) => Err(format!("{file}: this file is itself a campaign of several scenarios")),
        None => Ok(content),
    }
}

/// Reads the arguments of `set`, such as `set = ["topology.hops=4"]`.
fn own_sets(table: &Table, problems: &Problems) -> Vec<String> {
    let Some(value) = table.get("set") else { return Vec::new() };
    let argument = |item: &Value| if let Kind::String(text) = &item.kind { Some(text.clone()) } else { None };
    let arguments = match &value.kind {
        Kind::Array(items) => items.iter().map(argument).collect::<Option<Vec<String>>>(),
        _ => None,
    };
    arguments.unwrap_or_else(|| {
        problems.at(
            &value.origin,
            "set: expected a list of arguments",
            "expected a list such as set = [\"topology.hops=4\"]",
        );
        Vec::new()
    })
}

/// Converts `sweep`, such as `sweep = { "topology.hops" = [2, 4] }`, into arguments.
fn sweeps(table: &Table, problems: &Problems) -> Vec<String> {
    let Some(value) = table.get("sweep") else { return Vec::new() };
    let Kind::Table(axes) = &value.kind else {
        problems.at(
            &value.origin,
            "sweep: expected a table",
            "expected keys with lists, such as sweep.\"topology.hops\" = [2, 4]",
        );
        return Vec::new();
    };
    let argument = |axis: &Entry| match &axis.value.kind {
        Kind::Array(_) => Some(format!("sweep.{:?}={}", axis.key, toml_text(&axis.value))),
        _ => {
            let message = format!("sweep.{}: expected a list of values", axis.key);
            problems.at(&axis.origin, message, "write the dotted key in quotes, such as \"topology.hops\" = [2, 4]");
            None
        }
    };
    axes.entries.iter().filter_map(argument).collect()
}

fn text(table: &Table, key: &str, problems: &Problems) -> Option<String> {
    let value = table.get(key)?;
    match &value.kind {
        Kind::String(text) if !text.trim().is_empty() => Some(text.clone()),
        _ => {
            problems.at(&value.origin, format!("{key}: expected a string in quotes"), "expected a string");
            None
        }
    }
}

fn expect_tables(origin: &Origin, problems: &Problems) {
    problems.at(origin, format!("{PART}: expected a list of tables"), "expected [[part]], in two brackets");
}

fn refuse_others(table: &Table, keys: &[&str], what: &str, problems: &Problems) {
    for entry in table.entries.iter().filter(|entry| !keys.contains(&entry.key.as_str())) {
        let message = format!("{}: unknown key in {what}", entry.key);
        problems.at(&entry.origin, message, format!("expected {}", one_of(keys)));
    }
}
