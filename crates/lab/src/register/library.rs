//! The register read from its files: those that are part of the program, or a directory of the same form.

use super::data::Published;
use crate::campaign::Work;
use include_dir::{Dir, include_dir};
use meshpace_scenario::estimate::Estimate;
use meshpace_scenario::{Point, Refusal, Scenario, Source, nearest};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// The files that are part of the program, so that everything can be repeated from anywhere.
static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// The list of all ids.
const INDEX: &str = "register.toml";
/// The papers, in the order in which they are shown, and behind them [`STUDIES`].
pub const PAPERS: [&str; 7] = ["AP05", "AP10", "TPA", "LLAP", "DCC", "QT", "HT"];
/// Studies of this project's own: of its own transport, and of the transports over 802.11n. They are shown where some of them was run.
pub const STUDIES: [&str; 2] = ["QT", "HT"];

/// That list, and where the papers are found.
#[derive(Deserialize)]
struct Index {
    /// By the tag of the paper.
    #[serde(default)]
    paper: BTreeMap<String, Place>,
    /// The numbers of its experiments, by the same tag.
    #[serde(flatten)]
    numbers: BTreeMap<String, Vec<String>>,
}

/// Where a paper is found.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    doi: Option<String>,
    page: Option<String>,
}

/// Amount of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// The runs that are judged: minutes for everything.
    Quick,
    /// The same with the other readings, which count for nothing.
    QuickWithReadings,
    /// As much as the papers had, with all readings.
    Paper,
}

/// One experiment of the register.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The published results.
    pub published: Published,
    /// Its file, for messages.
    pub file: String,
    /// The scenario beside that file, if there is one.
    pub scenario: Option<Source>,
    /// Where relative names in the scenario start.
    directory: PathBuf,
    /// Whether that is a directory of [`EMBEDDED`] instead of the disk.
    is_embedded: bool,
}

/// All experiments, in the order of the papers.
#[derive(Clone, Debug, Default)]
pub struct Register {
    /// The experiments that have a file.
    pub experiments: Vec<Experiment>,
    /// The ids that have none.
    pub missing: Vec<String>,
    /// Where it was read from; none for the one that is part of the program.
    pub directory: Option<PathBuf>,
}

/// The runs of one or more experiments at one effort.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The experiment they belong to.
    pub id: String,
    /// Every point of the quality, with the seeds of those that are run.
    pub scenario: Scenario,
    /// Whether each of these points is run: without readings those of other readings alone are not. Records of them that are there already stay.
    pub is_run: Vec<bool>,
    /// The rule by which a point gets more seeds.
    pub until: Option<(super::data::Until, f64)>,
    /// Factor of the seeds that a point may get before a claim or number about it is given up as one that cannot be told; 1 for no
    /// more.
    pub times: u64,
}

/// That many at paper quality, unless the quality says otherwise: rule 3 of "Rules of judgement" in `docs/register.md`.
const TIMES: u64 = 4;

impl Runs {
    /// The points that are run.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.scenario.points.iter().zip(&self.is_run).filter(|(_, is_run)| **is_run).map(|(point, _)| point)
    }

    /// Leaves out the points whose curves, in all of the experiments that show these runs, are other readings of what is judged. A point that is
    /// on no curve stays.
    fn leave_out_other_readings(&mut self, readers: &[&Published]) {
        let others: Vec<BTreeSet<&str>> = readers.iter().map(|published| published.other_readings()).collect();
        for (point, is_run) in self.scenario.points.iter().zip(&mut self.is_run) {
            let values = point.values.iter().cloned().collect();
            let of_reader = |(published, others): (&&Published, &BTreeSet<&str>)| -> Vec<bool> {
                let curves = published.curves.iter().filter(|curve| curve.has(&values));
                curves.map(|curve| others.contains(curve.id.as_str())).collect()
            };
            let is_other: Vec<bool> = readers.iter().zip(&others).flat_map(of_reader).collect();
            *is_run = is_other.is_empty() || is_other.contains(&false);
        }
    }

    /// The work, without the seeds that intervals may still need.
    pub fn work(&self) -> Work {
        let seeds = self.scenario.seeds;
        let cost_s: f64 = self.points().map(|point| Estimate::of(point).cpu_s).sum();
        Work { runs: self.points().count() * seeds as usize, cost_s: cost_s * seeds as f64 }
    }
}

/// Whether a paper's tag or an experiment's number is fit for the names of files. Results are written to a directory that is named after both: a
/// register from somewhere else must not choose another place.
fn is_name(text: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && !text.starts_with('.') && text.chars().all(is_fit)
}

impl Register {
    /// The register that is part of the program.
    ///
    /// # Panics
    /// If it is wrong; a test reads it.
    pub fn embedded() -> Register {
        let find = |name: &str| EMBEDDED.get_file(name).and_then(|file| file.contents_utf8()).map(str::to_owned);
        let register = Register::assemble(Path::new(""), find);
        let mut register = register.unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
        register.experiments.iter_mut().for_each(|experiment| experiment.is_embedded = true);
        register
    }

    /// The register in a directory of the same form.
    ///
    /// # Errors
    /// The faults of its files, one line each.
    pub fn read(directory: &Path) -> Result<Register, Vec<String>> {
        let register = Register::assemble(directory, |name| std::fs::read_to_string(directory.join(name)).ok())?;
        Ok(Register { directory: Some(directory.to_owned()), ..register })
    }

    fn assemble(directory: &Path, find: impl Fn(&str) -> Option<String>) -> Result<Register, Vec<String>> {
        let shown = |name: &str| directory.join(name).display().to_string();
        let index = find(INDEX).ok_or_else(|| vec![format!("{}: it is not there", shown(INDEX))])?;
        let Index { paper: places, numbers: index } =
            toml::from_str(&index).map_err(|error| vec![format!("{}: {error}", shown(INDEX))])?;
        let bad = index.iter().flat_map(|(tag, numbers)| numbers.iter().chain([tag])).filter(|name| !is_name(name));
        let bad: Vec<String> =
            bad.map(|name| format!("{}: {name:?}: expected letters, digits, -, _ and .", shown(INDEX))).collect();
        if !bad.is_empty() {
            return Err(bad);
        }
        let (mut register, mut problems) = (Register::default(), Vec::new());
        for (tag, place) in &places {
            if !index.contains_key(tag) {
                problems.push(format!("{}: paper.{tag}: there is no experiment of {tag}", shown(INDEX)));
            }
            if place.page.as_ref().is_some_and(|page| !page.starts_with("https://") && !page.starts_with("http://")) {
                problems.push(format!("{}: paper.{tag}.page: expected an address with https://", shown(INDEX)));
            }
        }
        // A register of one's own has tags of its own.
        let others = index.keys().map(String::as_str).filter(|tag| !PAPERS.contains(tag));
        let tags: Vec<&str> = PAPERS.into_iter().chain(others).collect();
        for paper in tags {
            for number in index.get(paper).map(Vec::as_slice).unwrap_or_default() {
                let (id, folder) = (format!("{paper}-{number}"), paper.to_lowercase());
                let file = format!("{folder}/{number}.published.toml");
                let Some(text) = find(&file) else {
                    register.missing.push(id);
                    continue;
                };
                let mut published: Published = match toml::from_str(&text) {
                    Ok(published) => published,
                    Err(error) => {
                        problems.push(format!("{}: {error}", shown(&file)));
                        continue;
                    }
                };
                if published.id != id {
                    problems.push(format!("{}: it says id = \"{}\", expected \"{id}\"", shown(&file), published.id));
                }
                if let Some(place) = places.get(paper) {
                    published.doi = published.doi.or_else(|| place.doi.clone());
                    published.page.clone_from(&place.page);
                }
                let name = format!("{folder}/{number}.toml");
                let source = |text| Source { name: shown(&name), text, sets: Vec::new() };
                let scenario = find(&name).map(source);
                let directory = directory.join(&folder);
                let file = shown(&file);
                register.experiments.push(Experiment { published, file, scenario, directory, is_embedded: false });
            }
        }
        if problems.is_empty() { Ok(register) } else { Err(problems) }
    }

    /// The experiment called `id`, whatever its case.
    pub fn find(&self, id: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.published.id.eq_ignore_ascii_case(id))
    }

    /// The experiment whose runs `experiment` shows: itself, another, or none if nothing can be run.
    ///
    /// # Errors
    /// If there is no such experiment, or it has no scenario of its own.
    pub fn owner<'a>(&'a self, experiment: &'a Experiment) -> Result<Option<&'a Experiment>, String> {
        let published = &experiment.published;
        let wrong = |what: String| Err(format!("{}: {what}", experiment.file));
        match (&published.runs, &experiment.scenario) {
            _ if published.unjudged.is_some() => Ok(None),
            (None, Some(_)) => Ok(Some(experiment)),
            (None, None) => {
                wrong("there is no scenario beside it, and it has neither `runs` nor `unjudged`".to_owned())
            }
            (Some(_), Some(_)) => {
                wrong("`runs` names another experiment's runs, but there is a scenario beside it".to_owned())
            }
            (Some(id), None) => match self.find(id) {
                Some(owner) if owner.scenario.is_some() => Ok(Some(owner)),
                Some(_) => wrong(format!("`runs`: {id} has no scenario of its own")),
                None => wrong(format!("`runs`: there is no experiment {id}")),
            },
        }
    }

    /// The experiments that `ids` name: ids, tags of papers, or `all`; all of them without any.
    ///
    /// # Errors
    /// If one is no experiment: what was meant perhaps, and what there is.
    pub fn choose(&self, ids: &[String]) -> Result<Vec<&Experiment>, String> {
        let mut chosen: Vec<&Experiment> = Vec::new();
        let every = ["all".to_owned()];
        for id in if ids.is_empty() { &every[..] } else { ids } {
            let wanted = |experiment: &&Experiment| {
                id == "all"
                    || experiment.published.id.eq_ignore_ascii_case(id)
                    || experiment.paper().eq_ignore_ascii_case(id)
            };
            let found: Vec<&Experiment> = self.experiments.iter().filter(wanted).collect();
            if found.is_empty() {
                let known: Vec<&str> =
                    self.experiments.iter().map(|experiment| experiment.published.id.as_str()).collect();
                let all = "`meshpace scenarios` lists what this version has";
                if self.missing.iter().any(|missing| missing.eq_ignore_ascii_case(id)) {
                    return Err(format!("{id} is not in the register yet; {all}"));
                }
                let near = nearest(&id.to_ascii_uppercase(), known.iter().copied());
                let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_else(|| ";".to_owned());
                return Err(format!("{id} is no experiment{near} {all}"));
            }
            chosen.extend(found);
        }
        Ok(chosen)
    }

    /// The runs of experiments, each set of them once; with that many `seeds` instead of as many as the effort has.
    ///
    /// # Errors
    /// As [`Register::runs`].
    pub fn plans(&self, chosen: &[&Experiment], effort: Effort, seeds: Option<u64>) -> Result<Vec<Runs>, String> {
        let mut plans: Vec<Runs> = Vec::new();
        for experiment in chosen {
            let Some(mut runs) = self.runs(experiment, effort)? else { continue };
            if let Some(seeds) = seeds {
                runs.scenario.seeds = seeds;
                (runs.until, runs.times) = (None, 1);
            }
            if !plans.iter().any(|other| other.id == runs.id) {
                plans.push(runs);
            }
        }
        Ok(plans)
    }

    /// The runs of `experiment`; None if nothing can be run.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn runs(&self, experiment: &Experiment, effort: Effort) -> Result<Option<Runs>, String> {
        let Some(owner) = self.owner(experiment)? else { return Ok(None) };
        let mut runs = owner.own_runs(effort)?;
        if effort == Effort::Quick {
            let is_read_by = |other: &&Experiment| {
                self.owner(other).is_ok_and(|its| its.is_some_and(|its| its.published.id == runs.id))
            };
            let readers: Vec<&Published> =
                self.experiments.iter().filter(is_read_by).map(|other| &other.published).collect();
            runs.leave_out_other_readings(&readers);
        }
        Ok(Some(runs))
    }
}

impl Experiment {
    /// Tag of its paper, the part of the id before the dash.
    pub fn paper(&self) -> &str {
        self.published.id.split('-').next().unwrap_or_default()
    }

    fn own_runs(&self, effort: Effort) -> Result<Runs, String> {
        let quality = match effort {
            Effort::Quick | Effort::QuickWithReadings => &self.published.quality.quick,
            Effort::Paper => &self.published.quality.paper,
        };
        let Some(source) = &self.scenario else { return Err(format!("{}: no scenario", self.file)) };
        let source = Source { sets: quality.set.clone(), ..source.clone() };
        let refused = |refusal: Refusal| refusal.render(false);
        let id = &self.published.id;
        let embedded = |name: &str| {
            let file = EMBEDDED.get_file(self.directory.join(name));
            file.map(|file| file.contents().to_vec()).ok_or_else(|| format!("{name}: it is not part of the program"))
        };
        let scenario = match self.is_embedded {
            true => Scenario::read_with(source, &embedded, id),
            false => Scenario::read(source, &self.directory, id),
        };
        let mut scenario = scenario.map_err(refused)?;
        for (key, values) in &quality.only {
            let Value::Array(values) = values else {
                return Err(format!("{}: quality: only.\"{key}\": expected a list of values of the sweep", self.file));
            };
            let swept = |value: &Value| {
                let of_key = scenario.points.iter().flat_map(|point| &point.values).filter(|(other, _)| other == key);
                of_key.into_iter().any(|(_, other)| super::select::same(value, other))
            };
            if let Some(stranger) = values.iter().find(|value| !swept(value)) {
                return Err(format!("{}: quality: only.\"{key}\": {stranger} is not in the sweep", self.file));
            }
            let mut points = scenario.points.into_vec();
            points.retain(|point| {
                let chosen = |(other, value): &(String, Value)| {
                    other != key || values.iter().any(|chosen| super::select::same(chosen, value))
                };
                point.values.iter().all(chosen)
            });
            scenario.points = points.into();
        }
        if let Some(seeds) = quality.seeds {
            scenario.seeds = seeds;
        }
        if !quality.only.is_empty() {
            scenario.digest = digest(&scenario.digest, &quality.only);
        }
        let until = quality.until.clone().map(|until| (until, self.published.level));
        let usual = if effort == Effort::Paper { TIMES } else { 1 };
        let times = quality.times.map_or(usual, NonZeroU64::get);
        let is_run = vec![true; scenario.points.len()];
        Ok(Runs { id: self.published.id.clone(), scenario, is_run, until, times })
    }
}

/// The digest of a scenario of which only some points are run.
fn digest(scenario: &str, only: &serde_json::Map<String, Value>) -> String {
    let mut hash = Sha256::new();
    hash.update(scenario);
    hash.update(serde_json::to_vec(only).unwrap_or_default());
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
