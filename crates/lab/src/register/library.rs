//! The register read from its files: the files that are embedded in the program, or a directory of
//! the same form.

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

/// Files that are embedded in the program, so that the experiments can be repeated from anywhere.
static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// Name of the file that lists the ids of all experiments.
const INDEX: &str = "register.toml";
/// Tags of the papers in the order in which they are shown. The tags of [`STUDIES`] stand at the
/// end.
pub const PAPERS: [&str; 7] = ["AP05", "AP10", "TPA", "LLAP", "DCC", "QT", "HT"];
/// Tags of this project's own studies: of its own transport, and of the transports over 802.11n. A
/// study is shown if some of its experiments were run.
pub const STUDIES: [&str; 2] = ["QT", "HT"];

/// Contents of the file [`INDEX`].
#[derive(Deserialize)]
struct Index {
    /// Where each paper is found, by the paper's tag.
    #[serde(default)]
    paper: BTreeMap<String, Place>,
    /// Numbers of each paper's experiments, by the paper's tag.
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

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// The runs that are judged. All experiments together take minutes.
    Quick,
    /// The runs of `Quick` and those of the other readings, which count for no verdict.
    QuickWithReadings,
    /// As many runs as in the papers, with all readings.
    Paper,
}

/// One experiment of the register.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Published results of the experiment.
    pub published: Published,
    /// Path of the file with the published results, for messages.
    pub file: String,
    /// Scenario beside that file, if there is one.
    pub scenario: Option<Source>,
    /// Directory at which relative file names in the scenario start.
    directory: PathBuf,
    /// Whether `directory` is a directory of [`EMBEDDED`] instead of one on disk.
    is_embedded: bool,
}

/// All experiments, in the order of the papers.
#[derive(Clone, Debug, Default)]
pub struct Register {
    /// Experiments that have a file.
    pub experiments: Vec<Experiment>,
    /// Ids that stand in the index but have no file.
    pub missing: Vec<String>,
    /// Directory that the register was read from. `None` for the register that is embedded in the
    /// program.
    pub directory: Option<PathBuf>,
}

/// The runs of one or more experiments at one effort.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Id of the experiment that the runs belong to.
    pub id: String,
    /// Scenario with all points of the quality, and with the number of seeds.
    pub scenario: Scenario,
    /// For each of these points, whether it is run. Without the other readings, points that only
    /// serve other readings are not run. Records of such points that exist already are kept.
    pub is_run: Vec<bool>,
    /// Rule by which a point gets more seeds, and the confidence level of its interval.
    pub until: Option<(super::data::Until, f64)>,
    /// Largest factor by which the number of seeds of a point is raised while a claim or number
    /// about it cannot be told. A claim that still cannot be told then gets that verdict. 1 means
    /// no more seeds.
    pub times: u64,
}

/// Usual value of [`Runs::times`] at paper quality: rule 3 of "Rules of judgement" in
/// `docs/register.md`.
const TIMES: u64 = 4;

impl Runs {
    /// Points that are run.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.scenario.points.iter().zip(&self.is_run).filter(|(_, is_run)| **is_run).map(|(point, _)| point)
    }

    /// Leaves out the points that serve only other readings: all their curves, in every experiment
    /// that shows these runs, are other readings. A point that is on no curve stays.
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

    /// Amount of work, without the additional seeds that intervals may need.
    pub fn work(&self) -> Work {
        let seeds = self.scenario.seeds;
        let cost_s: f64 = self.points().map(|point| Estimate::of(point).cpu_s).sum();
        Work { runs: self.points().count() * seeds as usize, cost_s: cost_s * seeds as f64 }
    }
}

/// Returns whether a paper's tag or an experiment's number can be used in file names. Results are
/// written to a directory that is named after both, and a register from elsewhere must not choose a
/// directory outside.
fn is_name(text: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && !text.starts_with('.') && text.chars().all(is_fit)
}

impl Register {
    /// Reads the register that is embedded in the program.
    ///
    /// # Panics
    /// Panics if a file of the embedded register is faulty. A test reads the register.
    pub fn embedded() -> Register {
        let find = |name: &str| EMBEDDED.get_file(name).and_then(|file| file.contents_utf8()).map(str::to_owned);
        let register = Register::assemble(Path::new(""), find);
        let mut register = register.unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
        register.experiments.iter_mut().for_each(|experiment| experiment.is_embedded = true);
        register
    }

    /// Reads a register from a directory of the same form as the embedded one.
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
        // A user's own register may have tags that are not in `PAPERS`.
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

    /// Experiment called `id`; upper and lower case are the same.
    pub fn find(&self, id: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.published.id.eq_ignore_ascii_case(id))
    }

    /// Experiment whose runs `experiment` shows: itself or another one. `None` if nothing can be
    /// run.
    ///
    /// # Errors
    /// The named experiment does not exist, or it has no scenario of its own.
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

    /// Experiments that `ids` name. Each of `ids` is an id, the tag of a paper, or `all`. An empty
    /// list means all experiments.
    ///
    /// # Errors
    /// One of `ids` names no experiment. The message suggests a similar id and says how to list all
    /// of them.
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
                return Err(format!("there is no experiment {id}{near} {all}"));
            }
            chosen.extend(found);
        }
        Ok(chosen)
    }

    /// Runs of the `chosen` experiments; runs that several experiments share are listed once.
    /// `seeds` replaces the effort's number of seeds, if it is given.
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

    /// Runs of `experiment` at an effort. `None` if nothing can be run.
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
    /// Tag of the experiment's paper: the part of the id before the dash.
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

/// Digest of a scenario of which only some points are run.
fn digest(scenario: &str, only: &serde_json::Map<String, Value>) -> String {
    let mut hash = Sha256::new();
    hash.update(scenario);
    hash.update(serde_json::to_vec(only).unwrap_or_default());
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
