//! Sides of a comparison: several scenarios or directories, variants of one scenario, or the values
//! of a key that one of them sweeps.

use super::{Arguments, Progress, records_of};
use crate::output::{Failure, note};
use crate::run::load;
use crate::{REFUSED, prospect};
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::{Campaign, Work};
use meshpace_lab::compare::LEAST;
use meshpace_lab::record::archive::Archive;
use meshpace_lab::record::excerpt::{Excerpt, Excerpts};
use meshpace_lab::selection::Selection;
use meshpace_lab::variants::{self, MOST};
use meshpace_scenario::Scenario;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One side of a comparison: its name for people, and its runs.
pub struct Side {
    /// Name of the side.
    pub name: String,
    /// Runs of the side.
    pub runs: Vec<Excerpt>,
}

impl Side {
    /// References to its runs, in the form that comparisons take.
    pub fn all(&self) -> Vec<&Excerpt> {
        self.runs.iter().collect()
    }
}

/// All sides and their sources.
pub struct Sides {
    /// Title of the comparison.
    pub title: String,
    /// The sides, two or more.
    pub sides: Vec<Side>,
    /// Arguments of `--set` that apply to all sides.
    pub common: Vec<String>,
    /// True if output for programs contains the names of the sides. It is false for the kinds of
    /// comparison that originally had exactly two sides, `a` and `b`.
    pub is_named: bool,
    /// Scenarios that were run; empty if records were read.
    pub scenarios: Vec<Scenario>,
    /// Key whose values are the sides, if one scenario has them all.
    pub axis: Option<String>,
    /// Files of the scenarios.
    pub files: Vec<PathBuf>,
}

/// Runs the scenarios of the command.
pub struct Machine<'a> {
    /// Arguments of the command.
    pub arguments: &'a Arguments,
    /// Number of simultaneous runs.
    pub jobs: usize,
    /// Set to true to stop the runs.
    pub stop: &'a Arc<AtomicBool>,
}

/// Source of the records of a side.
enum Place {
    Directory(Vec<Excerpt>),
    File(PathBuf, Box<Scenario>),
}

impl Machine<'_> {
    /// Runs or reads the sides that the command names.
    pub fn sides(&self) -> Result<Sides, Failure> {
        let Arguments { a, others, set, by, .. } = self.arguments;
        if !others.is_empty() {
            let places: Vec<&PathBuf> = std::iter::once(a).chain(others).collect();
            return self.of_places(&places, set);
        }
        let found = match by {
            Some(_) => variants::Variants { variants: Vec::new(), common: set.clone() },
            None => variants::of_sets(set).map_err(|why| (REFUSED, why))?,
        };
        if found.variants.is_empty() {
            return self.of_axis(a, set);
        }
        if a.is_dir() {
            return Err(unchangeable(a));
        }
        let scenarios =
            found.variants.iter().map(|variant| self.read(a, &[found.common.as_slice(), &variant.sets].concat()));
        let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
        let files = vec![a.clone(); scenarios.len()];
        let made = self.run_once(&scenarios, &files)?;
        let names = found.variants.into_iter().map(|variant| variant.name);
        let sides: Vec<Side> = names.zip(made).map(|(name, runs)| Side { name, runs }).collect();
        let title = scenarios[0].name.clone();
        let is_named = sides.len() > 2 || !found.common.is_empty() || set.len() < 2;
        Ok(Sides { title, sides, common: found.common, is_named, scenarios, axis: None, files })
    }

    /// Makes one side of each place, with the same settings for all.
    fn of_places(&self, places: &[&PathBuf], set: &[String]) -> Result<Sides, Failure> {
        let place = |place: &&PathBuf| match place.is_dir() {
            true if !set.is_empty() => Err(unchangeable(place)),
            true => Ok(Place::Directory(self.stored(place)?)),
            false => Ok(Place::File((*place).clone(), Box::new(self.read(place, set)?))),
        };
        let read: Vec<Place> = places.iter().map(place).collect::<Result<_, _>>()?;
        let of_file = |place: &Place| match place {
            Place::Directory(_) => None,
            Place::File(file, scenario) => Some((file.clone(), (**scenario).clone())),
        };
        let (files, scenarios): (Vec<PathBuf>, Vec<Scenario>) = read.iter().filter_map(of_file).unzip();
        let mut made = self.run_once(&scenarios, &files)?.into_iter();
        let names = names(places);
        let mut sides = Vec::new();
        for (place, name) in read.into_iter().zip(names) {
            let runs = match place {
                Place::Directory(runs) => runs,
                Place::File(..) => made.next().unwrap_or_default(),
            };
            sides.push(Side { name, runs });
        }
        let title = sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>().join(", ");
        let is_named = sides.len() > 2;
        // If some sides were read from directories, the sides cannot be run again together.
        let scenarios = if scenarios.len() == sides.len() { scenarios } else { Vec::new() };
        Ok(Sides { title, sides, common: set.to_vec(), is_named, scenarios, axis: None, files })
    }

    /// Makes one side of each value of a key that one scenario or directory sweeps.
    fn of_axis(&self, place: &Path, set: &[String]) -> Result<Sides, Failure> {
        let by = self.arguments.by.as_deref();
        let axis = |points: &[&Map<String, Value>]| -> Result<String, Failure> {
            let swept = variants::swept(points);
            if swept.is_empty() && by.is_none() {
                let message = "there is nothing to compare with: give a second scenario or directory, or values such as --set flow.transport=newreno,tcp-ap, or two --set, or a scenario that sweeps a key";
                return Err((REFUSED, message.to_owned()));
            }
            let key = variants::axis(&swept, by).map_err(|why| (REFUSED, format!("{}: {why}", place.display())))?;
            let mut values: Vec<&Value> = Vec::new();
            for value in points.iter().filter_map(|point| point.get(&key)) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            match values.len() {
                ..=MOST => Ok(key),
                many => {
                    Err((REFUSED, format!("{key} has {many} values, but at most {MOST} can be compared side by side")))
                }
            }
        };
        let (key, runs, scenarios, title);
        if place.is_dir() {
            if !set.is_empty() {
                return Err(unchangeable(place));
            }
            runs = self.stored(place)?;
            key = axis(&runs.iter().map(|run| &*run.point).collect::<Vec<_>>())?;
            scenarios = Vec::new();
            title = place.display().to_string();
        } else {
            let scenario = self.read(place, set)?;
            let point = |point: &meshpace_scenario::Point| point.values.iter().cloned().collect();
            let points: Vec<Map<String, Value>> = scenario.points.iter().map(point).collect();
            key = axis(&points.iter().collect::<Vec<_>>())?;
            title = scenario.name.clone();
            scenarios = vec![scenario];
            runs = self.run_once(&scenarios, &[place.to_owned()])?.remove(0);
        }
        let sides = parted(vec![runs], Some(&key), &[]);
        let files = vec![place.to_owned(); scenarios.len()];
        Ok(Sides { title, sides, common: set.to_vec(), is_named: true, scenarios, axis: Some(key), files })
    }

    /// Returns the runs of a directory, or runs a scenario with the settings `sets` and returns its
    /// runs.
    pub fn runs(&self, place: &Path, sets: &[String]) -> Result<Vec<Excerpt>, Failure> {
        match place.is_dir() {
            true if !sets.is_empty() => Err(unchangeable(place)),
            true => self.stored(place),
            false => Ok(self.run_once(&[self.read(place, sets)?], &[place.to_owned()])?.remove(0)),
        }
    }

    /// Reads the records of a directory that `--where` selects.
    fn stored(&self, directory: &Path) -> Result<Vec<Excerpt>, Failure> {
        let selected = || {
            let selection = Selection::parse(&self.arguments.selected).map_err(|why| format!("--where {why}"))?;
            let mut excerpts = Excerpts::default();
            let archive = Archive::read_as(directory, |record| excerpts.of(&record))?;
            let archive =
                archive.ok_or_else(|| format!("{}: no run in this directory is complete", directory.display()))?;
            archive.notes.iter().for_each(|sentence| note(sentence));
            let selected = selection.of_runs(archive.records, |run| &run.point);
            selected.map_err(|why| format!("{}: --where: {why}", directory.display()))
        };
        selected().map_err(|why| (REFUSED, why))
    }

    /// Reads the scenario in a file with the settings `sets`. Returns an error if there is
    /// `--where`, which applies to records only.
    fn read(&self, file: &Path, sets: &[String]) -> Result<Scenario, Failure> {
        if let Some(condition) = self.arguments.selected.first() {
            let way = format!("set it instead: --set {condition}");
            return Err((
                REFUSED,
                format!("{}: --where selects records, but this is a scenario; {way}", file.display()),
            ));
        }
        load(file, sets).map_err(|_| (REFUSED, String::new()))
    }

    /// Creates the campaign of a scenario.
    pub fn campaign(&self, scenario: Scenario) -> Campaign {
        let seeds = self.arguments.seeds.unwrap_or(scenario.seeds.max(LEAST as u64));
        Campaign { scenario, first_seed: self.arguments.seed, seeds }
    }

    /// Work of all these scenarios together.
    pub fn work(&self, scenarios: &[Scenario]) -> Work {
        let mut work = Work::default();
        scenarios.iter().for_each(|scenario| work += self.campaign(scenario.clone()).work());
        work
    }

    /// Runs scenarios and returns the runs of each. `files` are the files of the scenarios, for
    /// messages.
    pub fn run(
        &self,
        scenarios: &[Scenario],
        files: &[PathBuf],
        progress: &Progress,
    ) -> Result<Vec<Vec<Excerpt>>, Failure> {
        let mut threads = Threads::new(self.jobs, self.stop);
        let one = |(scenario, file): (&Scenario, &PathBuf)| {
            let campaign = Arc::new(self.campaign(scenario.clone()));
            if campaign.first_seed.checked_add(campaign.seeds - 1).is_none() {
                let message = format!(
                    "--seed {} is too large for {} seeds: the last seed would exceed 2^64",
                    campaign.first_seed, campaign.seeds
                );
                return Err((REFUSED, message));
            }
            if let Some(why) = prospect::too_much(&campaign, self.jobs) {
                let way = "run each scenario with --out, and compare the directories";
                return Err((REFUSED, format!("{}: {why}; {way}", file.display())));
            }
            Ok(Excerpts::of_all(&records_of(&campaign, &mut threads, progress, file)?))
        };
        scenarios.iter().zip(files).map(one).collect()
    }

    /// Like [`Machine::run`], with a progress bar of its own.
    fn run_once(&self, scenarios: &[Scenario], files: &[PathBuf]) -> Result<Vec<Vec<Excerpt>>, Failure> {
        let progress = Progress::new(self.work(scenarios));
        let made = self.run(scenarios, files, &progress);
        progress.finish();
        made
    }
}

/// Splits records into sides: the records of one scenario by the values of `axis`, or the records
/// of several scenarios with their `names`.
pub fn parted(mut runs: Vec<Vec<Excerpt>>, axis: Option<&str>, names: &[&str]) -> Vec<Side> {
    match axis {
        Some(axis) if !runs.is_empty() => {
            let parts = variants::by(runs.remove(0), axis);
            parts.into_iter().map(|(name, runs)| Side { name, runs }).collect()
        }
        _ => names.iter().zip(runs).map(|(name, runs)| Side { name: (*name).to_owned(), runs }).collect(),
    }
}

fn unchangeable(place: &Path) -> Failure {
    (REFUSED, format!("{}: --set cannot change existing records; give the scenario file instead", place.display()))
}

/// Names of several places for people: the file names without extension if they differ, and
/// otherwise the paths.
fn names(places: &[&PathBuf]) -> Vec<String> {
    let stem = |place: &&PathBuf| {
        place.file_stem().map_or_else(|| place.display().to_string(), |stem| stem.display().to_string())
    };
    let stems: Vec<String> = places.iter().map(stem).collect();
    let differ = |names: &[String]| names.iter().enumerate().all(|(number, name)| !names[..number].contains(name));
    if differ(&stems) {
        return stems;
    }
    variants::numbered(&places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>())
}
