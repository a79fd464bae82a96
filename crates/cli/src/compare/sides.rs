//! Sides that are compared: several scenarios or directories, variants of one, or the values of a key that it sweeps.

use super::{Arguments, Progress, records_of};
use crate::output::{Failure, note};
use crate::run::load;
use crate::{REFUSED, prospect};
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::{Campaign, Work};
use meshpace_lab::compare::LEAST;
use meshpace_lab::record::Record;
use meshpace_lab::record::archive::Archive;
use meshpace_lab::selection::Selection;
use meshpace_lab::variants::{self, MOST};
use meshpace_scenario::Scenario;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One side: what people call it, and its records.
pub struct Side {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub records: Vec<Record>,
}

/// All sides, and what made them.
pub struct Sides {
    /// Title of the comparison.
    pub title: String,
    /// Two or more.
    pub sides: Vec<Side>,
    /// The arguments of --set that all have.
    pub common: Vec<String>,
    /// True if output for programs has the names: always, but where there were only ever two sides, `a` and `b`.
    pub is_named: bool,
    /// Scenarios that were run; none if records were read.
    pub scenarios: Vec<Scenario>,
    /// The key whose values are the sides, if one scenario has them all.
    pub axis: Option<String>,
    /// The files of the scenarios.
    pub files: Vec<PathBuf>,
}

/// Runner of the scenarios.
pub struct Machine<'a> {
    /// The command.
    pub arguments: &'a Arguments,
    /// Runs at a time.
    pub jobs: usize,
    /// Set to stop.
    pub stop: &'a Arc<AtomicBool>,
}

/// Where the records of a side are from.
enum Place {
    Directory(Vec<Record>),
    File(PathBuf, Box<Scenario>),
}

impl Machine<'_> {
    /// The sides that the command names, run or read.
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
        let records = self.run_once(&scenarios, &files)?;
        let names = found.variants.into_iter().map(|variant| variant.name);
        let sides: Vec<Side> = names.zip(records).map(|(name, records)| Side { name, records }).collect();
        let title = scenarios[0].name.clone();
        let is_named = sides.len() > 2 || !found.common.is_empty() || set.len() < 2;
        Ok(Sides { title, sides, common: found.common, is_named, scenarios, axis: None, files })
    }

    /// A side for each place, with the same settings.
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
            let records = match place {
                Place::Directory(records) => records,
                Place::File(..) => made.next().unwrap_or_default(),
            };
            sides.push(Side { name, records });
        }
        let title = sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>().join(", ");
        let is_named = sides.len() > 2;
        // Sides of which some were read cannot be run again together.
        let scenarios = if scenarios.len() == sides.len() { scenarios } else { Vec::new() };
        Ok(Sides { title, sides, common: set.to_vec(), is_named, scenarios, axis: None, files })
    }

    /// A side for each value of a key that one scenario or directory sweeps.
    fn of_axis(&self, place: &Path, set: &[String]) -> Result<Sides, Failure> {
        let by = self.arguments.by.as_deref();
        let axis = |points: &[&Map<String, Value>]| -> Result<String, Failure> {
            let swept = variants::swept(points);
            if swept.is_empty() && by.is_none() {
                let message = "give a second scenario or directory, or the values that are compared: --set flow.transport=newreno,tcp-ap, or --set \
                               twice, or a scenario that sweeps a key";
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
                many => Err((
                    REFUSED,
                    format!("{key} has {many} values, more than can be read side by side: {MOST} at most"),
                )),
            }
        };
        let (key, records, scenarios, title);
        if place.is_dir() {
            if !set.is_empty() {
                return Err(unchangeable(place));
            }
            records = self.stored(place)?;
            key = axis(&records.iter().map(|record| &record.point).collect::<Vec<_>>())?;
            scenarios = Vec::new();
            title = place.display().to_string();
        } else {
            let scenario = self.read(place, set)?;
            let point = |point: &meshpace_scenario::Point| point.values.iter().cloned().collect();
            let points: Vec<Map<String, Value>> = scenario.points.iter().map(point).collect();
            key = axis(&points.iter().collect::<Vec<_>>())?;
            title = scenario.name.clone();
            scenarios = vec![scenario];
            records = self.run_once(&scenarios, &[place.to_owned()])?.remove(0);
        }
        let sides = parted(vec![records], Some(&key), &[]);
        let files = vec![place.to_owned(); scenarios.len()];
        Ok(Sides { title, sides, common: set.to_vec(), is_named: true, scenarios, axis: Some(key), files })
    }

    /// The records of a directory, or of a scenario with `sets`, which is run.
    pub fn records(&self, place: &Path, sets: &[String]) -> Result<Vec<Record>, Failure> {
        match place.is_dir() {
            true if !sets.is_empty() => Err(unchangeable(place)),
            true => self.stored(place),
            false => Ok(self.run_once(&[self.read(place, sets)?], &[place.to_owned()])?.remove(0)),
        }
    }

    /// The records of a directory that --where selects.
    fn stored(&self, directory: &Path) -> Result<Vec<Record>, Failure> {
        let selected = || {
            let selection = Selection::parse(&self.arguments.selected).map_err(|why| format!("--where {why}"))?;
            let archive = Archive::read(directory)?;
            let archive = archive.ok_or_else(|| format!("{}: no run here is finished", directory.display()))?;
            archive.notes.iter().for_each(|sentence| note(sentence));
            selection.of(archive.records).map_err(|why| format!("{}: --where: {why}", directory.display()))
        };
        selected().map_err(|why| (REFUSED, why))
    }

    /// The scenario of a file with `sets`; --where is for records.
    fn read(&self, file: &Path, sets: &[String]) -> Result<Scenario, Failure> {
        if let Some(condition) = self.arguments.selected.first() {
            let way = format!("set it instead: --set {condition}");
            return Err((
                REFUSED,
                format!("{}: --where selects from records, and this is a scenario; {way}", file.display()),
            ));
        }
        load(file, sets).map_err(|_| (REFUSED, String::new()))
    }

    /// The campaign of a scenario.
    pub fn campaign(&self, scenario: Scenario) -> Campaign {
        let seeds = self.arguments.seeds.unwrap_or(scenario.seeds.max(LEAST as u64));
        Campaign { scenario, first_seed: self.arguments.seed, seeds }
    }

    /// The work of several.
    pub fn work(&self, scenarios: &[Scenario]) -> Work {
        let mut work = Work::default();
        scenarios.iter().for_each(|scenario| work += self.campaign(scenario.clone()).work());
        work
    }

    /// Runs scenarios, which are from these files: the records of each.
    pub fn run(
        &self,
        scenarios: &[Scenario],
        files: &[PathBuf],
        progress: &Progress,
    ) -> Result<Vec<Vec<Record>>, Failure> {
        let mut threads = Threads::new(self.jobs, self.stop);
        let one = |(scenario, file): (&Scenario, &PathBuf)| {
            let campaign = Arc::new(self.campaign(scenario.clone()));
            if campaign.first_seed.checked_add(campaign.seeds - 1).is_none() {
                let message = format!("--seed {} leaves no room for {} seeds", campaign.first_seed, campaign.seeds);
                return Err((REFUSED, message));
            }
            if let Some(why) = prospect::too_much(&campaign, self.jobs) {
                let way = "run it by itself with --out, and compare the directories";
                return Err((REFUSED, format!("{}: {why}; {way}", file.display())));
            }
            records_of(&campaign, &mut threads, progress, file)
        };
        scenarios.iter().zip(files).map(one).collect()
    }

    /// The same with progress of its own.
    fn run_once(&self, scenarios: &[Scenario], files: &[PathBuf]) -> Result<Vec<Vec<Record>>, Failure> {
        let progress = Progress::new(self.work(scenarios));
        let records = self.run(scenarios, files, &progress);
        progress.finish();
        records
    }
}

/// Records as sides: those of one scenario by the values of `axis`, or else those of several by their `names`.
pub fn parted(mut records: Vec<Vec<Record>>, axis: Option<&str>, names: &[&str]) -> Vec<Side> {
    match axis {
        Some(axis) if !records.is_empty() => {
            let parts = variants::by(records.remove(0), axis);
            parts.into_iter().map(|(name, records)| Side { name, records }).collect()
        }
        _ => names.iter().zip(records).map(|(name, records)| Side { name: (*name).to_owned(), records }).collect(),
    }
}

fn unchangeable(place: &Path) -> Failure {
    (REFUSED, format!("{}: records cannot be changed by --set", place.display()))
}

/// Names of several places for people: the names of the files where those differ, or else their paths.
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
