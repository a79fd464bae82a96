//! Runs of a directory, made again from what the directory keeps: the texts of the scenarios and
//! the files that they name.

use crate::campaign::{self, Campaign, Run};
use crate::record::archive::Archive;
use crate::record::directory::quoted;
use crate::record::given::Given;
use crate::record::kept::sha256;
use crate::record::line::point_key;
use crate::record::points::Points;
use crate::record::rules::Rule;
use crate::record::{Record, nodes};
use crate::selection::Selection;
use crate::words::values;
use meshpace_scenario::{Scenario, Source};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest number of points that a refusal lists.
const LISTED: usize = 12;

/// A directory of records with its scenarios.
pub struct Directory {
    path: PathBuf,
    archive: Archive,
    sources: Vec<Given>,
    points: Points,
    /// Scenarios that were already read, by their positions in `sources`.
    scenarios: BTreeMap<usize, Scenario>,
}

/// Comparison of a run that was made again with its record.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// Fingerprint in the record.
    pub kept: String,
    /// Fingerprint of the run that was made now.
    pub made: String,
    /// Columns with different values, except names.
    pub differing: Vec<String>,
    /// Columns that the record does not have.
    pub lacking: Vec<String>,
}

impl Compared {
    /// True if the fingerprints are equal, and so are all values that the record has.
    pub fn is_same(&self) -> bool {
        self.kept == self.made && self.differing.is_empty()
    }
}

impl Directory {
    /// Opens a directory of records of this revision of the model.
    ///
    /// # Errors
    /// There are no records, they cannot be read, or they are of another revision.
    pub fn open(path: &Path) -> Result<Directory, String> {
        let shown = |why: String| format!("{}: {why}", path.display());
        let archive = Archive::read(path)?.ok_or_else(|| shown("it has no runs yet".to_owned()))?;
        if archive.manifest.strange()?.is_some() {
            let (told, version) = (archive.manifest.model_told(), &archive.manifest.version);
            return Err(shown(format!("its records are of {told}; repeat their runs with meshpace {version}")));
        }
        let mut sources = archive.manifest.given(None);
        sources.iter_mut().for_each(|given| given.find_contents(None, path));
        let points = Points::of(&sources);
        Ok(Directory { path: path.to_owned(), archive, sources, points, scenarios: BTreeMap::new() })
    }

    /// Records of the directory, and notes on them for the reader.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Scenarios of the directory, in order.
    pub fn sources(&self) -> &[Given] {
        &self.sources
    }

    /// Checks that each record belongs to a scenario of the manifest.
    ///
    /// # Errors
    /// The first record that does not.
    pub fn belong(&self) -> Result<(), String> {
        let shown = |why: String| format!("{}: {why}", self.path.display());
        self.archive.records.iter().try_for_each(|record| self.place(record).map(drop)).map_err(shown)
    }

    /// Record of the only selected point with this seed.
    ///
    /// # Errors
    /// There is no such record, or there are several.
    pub fn find(&self, point: &Selection, seed: u64) -> Result<Record, String> {
        let records: Vec<&Record> = self.archive.records.iter().filter(|record| record.seed == seed).collect();
        if records.is_empty() {
            return Err(format!("{}: no record has the seed {seed}", self.path.display()));
        }
        let found = point.of(records)?;
        // A point may have all keys of the selection and more. A point with exactly these keys is
        // preferred.
        let is_whole = |record: &&&Record| record.point.len() == point.arguments().len();
        let whole: Vec<&Record> = found.iter().filter(is_whole).copied().collect();
        match (&found[..], &whole[..]) {
            ([one], _) | (_, [one]) => Ok((*one).clone()),
            (several, _) => {
                let told: Vec<String> = several.iter().take(LISTED).map(|record| options(&record.point)).collect();
                let (count, told) = (several.len(), told.join("; "));
                let more = if count > LISTED { format!("; and {} more", count - LISTED) } else { String::new() };
                Err(format!("{count} points have the seed {seed}: choose one of {told}{more}"))
            }
        }
    }

    /// Draws up to `count` different records. The number `draw` determines which ones. Only records
    /// that [`Directory::make`] can make again are drawn.
    pub fn draw(&self, count: usize, draw: u64) -> Vec<Record> {
        let is_native =
            |record: &&Record| self.place(record).is_ok_and(|(source, _)| self.sources[source].rules.is_empty());
        let mut records: Vec<&Record> = self.archive.records.iter().filter(is_native).collect();
        records.sort_by_cached_key(|record| sha256(format!("{draw} {} {}", record.seed, key(record)).as_bytes()));
        records.into_iter().take(count).cloned().collect()
    }

    /// Scenario of a record, and the number of its point.
    ///
    /// # Errors
    /// No scenario of the directory has the point, or a file does not exist.
    pub fn scenario(&mut self, record: &Record) -> Result<(&Scenario, usize), String> {
        let (source, number) = self.place(record)?;
        if !self.scenarios.contains_key(&source) {
            let scenario = read(&self.sources[source]).map_err(|why| format!("{}: {why}", self.path.display()))?;
            self.scenarios.insert(source, scenario);
        }
        let scenario = self.scenarios.get(&source).filter(|scenario| number < scenario.points.len());
        Ok((scenario.ok_or_else(|| format!("{}: the points of its scenario have changed", key(record)))?, number))
    }

    /// Scenario with a single point, without its pacing rules in Python.
    ///
    /// # Errors
    /// There is no such point, or a file does not exist.
    pub fn of_point(&mut self, point: &Map<String, Value>) -> Result<Scenario, String> {
        let record = self.archive.records.iter().find(|record| record.point == *point).cloned();
        let shown = Value::Object(point.clone());
        let record = record.ok_or_else(|| format!("{}: no record is of the point {shown}", self.path.display()))?;
        let (scenario, number) = self.scenario(&record)?;
        Ok(Scenario { points: vec![scenario.points[number].clone()].into(), seeds: 1, ..scenario.clone() })
    }

    /// Makes the run of a record again.
    ///
    /// # Errors
    /// The scenario cannot be read, the run needs a pacing rule in Python, or the run fails.
    pub fn make(&mut self, record: &Record) -> Result<Compared, String> {
        let (source, _) = self.place(record)?;
        if let rules @ [rule, ..] = &self.sources[source].rules[..] {
            let (name, line) = (&rule.name, self.in_python(record, rules));
            return Err(format!(
                "the pacing rule {name} is in Python; this line repeats the run, with the rule as RULE:\n{line}"
            ));
        }
        let (scenario, number) = self.scenario(record)?;
        let campaign = Campaign { scenario: scenario.clone(), first_seed: record.seed, seeds: 1 };
        let with_nodes = record.nodes.is_some();
        let simulate = move |point: &meshpace_scenario::Point, run: Run| match with_nodes {
            true => {
                let (outcome, nodes) = nodes::run(&point.config, run.seed);
                (outcome, Some(nodes))
            }
            false => campaign::simulate(point, run),
        };
        let made = campaign.make(Run { index: 0, point: number, seed: record.seed }, &simulate)?;
        compare(record, &made.judged())
    }

    /// Position of a record's scenario in `sources`, and the number of its point in the scenario.
    fn place(&self, record: &Record) -> Result<(usize, usize), String> {
        let place = self.points.place(&key(record));
        let (source, number) =
            place.ok_or_else(|| format!("no scenario of the manifest has the point {}", key(record)))?;
        match self.sources[source].unlisted.is_some() {
            true => Err("the version of meshpace that made the records did not keep the files of scenarios".to_owned()),
            false => Ok((source, number)),
        }
    }

    /// Line of Python that makes a run with pacing rules again.
    fn in_python(&self, record: &Record, rules: &[Rule]) -> String {
        let point = python(&Value::Object(record.point.clone()));
        let paced = |rule: &Rule| {
            let text = |text: &str| Value::from(text).to_string();
            let flows = rule.flows.as_ref().map(|flows| format!(", flows={flows:?}")).unwrap_or_default();
            let id = rule.id.as_ref().map(|id| format!(", id={}", text(id))).unwrap_or_default();
            format!(".paced(RULE, name={}{flows}{id})", text(&rule.name))
        };
        let directory = Value::from(self.path.display().to_string());
        let paced: String = rules.iter().map(paced).collect();
        format!("meshpace.Scenario.kept({directory}, {point}){paced}.run(seed={})", record.seed)
    }
}

/// A value as Python writes it.
fn python(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), python(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// Options `--point KEY=VALUE` that choose this point, quoted for a shell.
fn options(point: &Map<String, Value>) -> String {
    values(point).iter().map(|value| format!("--point {}", quoted(value))).collect::<Vec<_>>().join(" ")
}

/// Key of a record's point.
pub fn key(record: &Record) -> String {
    point_key(&Value::Object(record.point.clone()))
}

/// Reads a scenario with the files that the directory keeps.
fn read(given: &Given) -> Result<Scenario, String> {
    let source = Source { name: given.scenario.clone(), text: given.text.clone(), sets: given.set.clone() };
    Scenario::read_with(source, &|name| given.load(name), &given.scenario).map_err(|refusal| refusal.render(false))
}

/// Compares all columns of two records, except the names of the scenario and the point.
fn compare(kept: &Record, made: &Record) -> Result<Compared, String> {
    let fields = |record: &Record| match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err("the record cannot be written".to_owned()),
    };
    let (old, new) = (fields(kept)?, fields(made)?);
    let (mut differing, mut lacking) = (Vec::new(), Vec::new());
    let columns = old.keys().chain(new.keys().filter(|column| !old.contains_key(*column)));
    for column in columns.filter(|column| !["scenario", "point"].contains(&column.as_str())) {
        match (old.get(column).unwrap_or(&Value::Null), new.get(column).unwrap_or(&Value::Null)) {
            (old, new) if old == new => {}
            (Value::Null, _) => lacking.push(column.clone()),
            _ => differing.push(column.clone()),
        }
    }
    Ok(Compared { kept: kept.fingerprint.clone(), made: made.fingerprint.clone(), differing, lacking })
}
