//! Merges campaigns: parts of one campaign that were run in several places, or with several ranges
//! of seeds.

use super::directory::{self, MADE_BY, MANIFEST, Manifest, RECORDS, UNFINISHED};
use super::given::{Given, conflict};
use super::line::{self, Key, key_of};
use super::points::Points;
use super::rules;
use super::store::Store;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// One directory to be merged.
struct Part {
    directory: PathBuf,
    /// Manifest of the campaign that was run there last, finished or unfinished.
    manifest: Manifest,
    /// Complete lines: first those of the finished file, in the order of the campaign, then those
    /// of the unfinished file.
    lines: Vec<(Key, String)>,
}

impl Part {
    /// Lists the part's scenarios in its manifest, and finds the contents of their files.
    fn find_sources(&mut self, now: Option<(&Given, &str)>) {
        self.manifest.sources = self.manifest.given(now);
        self.manifest.sources.iter_mut().for_each(|given| given.find_contents(None, &self.directory));
    }
}

/// Merges the records of `inputs` into `out` and returns the number of records in `out`. Each input
/// is a directory of records, or a directory of such directories. If all runs of a campaign are
/// there, its records are finished. Otherwise the campaign is left like an interrupted one, and the
/// missing runs can be made later.
///
/// # Errors
/// If something cannot be read or written, if a point that two parts have was run with different
/// settings, or if the parts are of different revisions of the model. Also if two parts have
/// different records of one run, because one of them must be wrong.
pub fn merge(inputs: &[PathBuf], out: &Path, force: bool) -> Result<usize, String> {
    let mut groups: BTreeMap<PathBuf, Vec<Part>> = BTreeMap::new();
    for input in inputs {
        let found = parts(input)?;
        if found.is_empty() {
            return Err(format!(
                "{}: neither this directory nor its subdirectories have a {MANIFEST}; {MADE_BY}",
                input.display()
            ));
        }
        for (place, part) in found {
            groups.entry(place).or_default().push(part);
        }
    }
    let mut count = 0;
    for (place, parts) in groups {
        count += merge_one(parts, &out.join(place), force)?;
    }
    Ok(count)
}

/// Finds the directories of records in `input`. Returns each with its relative path, which is also
/// its path in the output.
fn parts(input: &Path) -> Result<Vec<(PathBuf, Part)>, String> {
    let directories = directory::campaigns(input)?;
    let place = |path: &Path| path.strip_prefix(input).unwrap_or(path).to_owned();
    directories.iter().map(|path| Ok((place(path), read(path)?))).collect()
}

fn read(directory: &Path) -> Result<Part, String> {
    let Some(manifest) = Manifest::read(directory)? else {
        return Err(format!("{}: this directory has no {MANIFEST}", directory.display()));
    };
    let head = unfinished_head(&directory.join(UNFINISHED))?;
    let replaces = head.as_ref().is_some_and(|head| head.replaces);
    let mut lines = Vec::new();
    // The first line of the unfinished file is its head, which is no record.
    for (name, skipped) in [(RECORDS, 0), (UNFINISHED, 1)] {
        let path = directory.join(name);
        let text = match std::fs::read_to_string(&path) {
            _ if replaces && name == RECORDS => continue,
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        // A last line without a newline is incomplete: the program ended while it wrote the line.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for (number, line) in whole.enumerate().skip(skipped) {
            let at = |why: &str| format!("{}:{}: the record {why}", path.display(), number + 1);
            let record = line::open(line.trim_end_matches('\n')).map_err(at)?;
            lines.push((key_of(&record).ok_or_else(|| at("has no point and seed"))?, line.to_owned()));
        }
    }
    Ok(Part { directory: directory.to_owned(), manifest: head.unwrap_or(manifest), lines })
}

/// Reads the manifest in the first line of an unfinished file. `None` if there is no such file, or
/// if the line is no manifest.
fn unfinished_head(path: &Path) -> Result<Option<Manifest>, String> {
    let mut line = String::new();
    let read = File::open(path).and_then(|file| BufReader::new(file).read_line(&mut line));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
        Ok(_) => Ok(serde_json::from_str(&line).ok()),
    }
}

fn merge_one(mut parts: Vec<Part>, out: &Path, force: bool) -> Result<usize, String> {
    let shown = |error: std::io::Error| format!("{}: {error}", out.display());
    let Some((place, last)) = parts.last().map(|part| (part.directory.clone(), part.manifest.clone())) else {
        return Ok(0);
    };
    let given = last.given(None);
    let now = given.last().map(|given| (given, last.scenario_sha256.as_str()));
    for part in &mut parts {
        if part.manifest.same_model(&last).is_err() {
            let told = |directory: &Path, manifest: &Manifest| {
                format!("{} holds records of {}", directory.display(), manifest.model_told())
            };
            let one = told(&part.directory, &part.manifest);
            return Err(format!("{one}, and {}: they cannot be merged", told(&place, &last)));
        }
        part.find_sources(now);
    }
    let mut there = (!force && out.join(MANIFEST).exists()).then(|| read(out)).transpose()?;
    there.iter_mut().for_each(|there| there.find_sources(now));
    agree(there.iter().chain(&parts))?;
    let mut sources = Vec::new();
    parts.iter().flat_map(|part| &part.manifest.sources).for_each(|given| Given::put(&mut sources, given.clone()));
    let mut manifest = Manifest { sources, ..last };
    let mut store = Store::open(out, &manifest, force).map_err(shown)?;
    let mut is_whole = true;
    for part in &parts {
        let admission = store.admission_of(&part.manifest.sources);
        let key = |(point, seed): &Key| admission.admit(point).map(|point| (point, *seed));
        for (own, line) in &part.lines {
            let key = key(own).map_err(|what| format!("{}: {what}", part.directory.display()))?;
            add(&mut store, key, line).map_err(|why| format!("{}: {why}", part.directory.display()))?;
        }
        is_whole &= part.manifest.complete || {
            let given = part.manifest.sources.last();
            given.into_iter().flat_map(Given::runs).all(|own| key(&own).is_ok_and(|key| store.has(&key)))
        };
    }
    store.sync().map_err(shown)?;
    let count = store.len();
    if is_whole {
        manifest.failed_runs = 0;
        manifest.wall_time_s = parts.iter().map(|part| part.manifest.wall_time_s).sum();
        let order: Vec<String> = manifest.sources.last().into_iter().flat_map(Given::keys).collect();
        store.finish(&order, &manifest).map_err(shown)?;
    }
    Ok(count)
}

/// Adds the line of a run. Nothing is added if the same line is already there.
fn add(store: &mut Store, key: Key, line: &str) -> Result<(), String> {
    let line = store.today(&key.0, line.trim_end_matches('\n')).map_err(|error| error.to_string())?;
    match store.line(&key).map_err(|error| error.to_string())? {
        Some(there) if there == line => Ok(()),
        Some(_) if !store.lacks(&key) => {
            Err(format!("two different records of seed {} at {}: one of them is wrong", key.1, key.0))
        }
        _ => store.add(key, &(line + "\n")).map_err(|error| error.to_string()),
    }
}

/// Checks that each point that occurs in several parts was run with the same settings in all of
/// them, and that all parts used the same pacing rules.
fn agree<'a>(parts: impl Iterator<Item = &'a Part>) -> Result<(), String> {
    let mut seen: BTreeMap<&str, (Rc<Points>, &Part)> = BTreeMap::new();
    let mut last: Option<(Rc<Points>, &Part)> = None;
    for part in parts {
        let sources = &part.manifest.sources;
        let points = match &last {
            Some((points, before)) if before.manifest.sources == *sources => Rc::clone(points),
            _ => Rc::new(Points::of(sources)),
        };
        let apart = |before: &Part, what: String| {
            let (one, other) = (before.directory.display(), part.directory.display());
            format!("{one} and {other} do not belong together: the first holds {what}")
        };
        if let Some((_, before)) = &last {
            let (old, new) = (before.manifest.sources.last(), sources.last());
            let changed = old.zip(new).and_then(|(old, new)| rules::difference(&old.rules, &new.rules));
            changed.map_or(Ok(()), |what| Err(apart(before, format!("records of {what}"))))?;
        }
        for ((point, _), _) in &part.lines {
            let (before, earlier) = seen.entry(point).or_insert_with(|| (Rc::clone(&points), part));
            if Rc::ptr_eq(before, &points) {
                continue;
            }
            if !before.fits(point, &points, point) && !points.fits(point, before, point) {
                return Err(apart(earlier, conflict(point, &earlier.manifest.sources, sources)));
            }
        }
        last = Some((points, part));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the manifest of the campaign of a text. An empty text stands for a campaign of the
    /// points 7 and 3.
    fn manifest(text: &str) -> Manifest {
        let usual = crate::record::store::tests::manifest();
        let sources = vec![Given::of_text(if text.is_empty() { "[sweep]\na = [7, 3]\n" } else { text })];
        Manifest { sources, points: 2, wall_time_s: 1.5, ..usual }
    }

    fn line(point: u64, seed: u64) -> String {
        sealed(point, seed, point * seed)
    }

    fn sealed(point: u64, seed: u64, x: u64) -> String {
        let model = meshpace_sim::MODEL_REVISION;
        line::seal(&format!(
            "{{\"scenario\":\"s\",\"seed\":{seed},\"point\":{{\"a\":{point}}},\"model\":{model},\"x\":{x}}}"
        ))
    }

    /// Writes a campaign of two points (7 before 3) with these seeds, and finishes it if
    /// `is_finished` is set.
    fn campaign(directory: &Path, seeds: &[u64], text: &str, is_finished: bool) {
        let mut store = Store::open(directory, &manifest(text), false).unwrap();
        let point = |point: u64| format!("{{\"a\":{point}}}");
        for (number, &seed) in [7, 3].iter().flat_map(|point| seeds.iter().map(move |seed| (*point, seed))) {
            store.add((point(number), seed), &line(number, seed)).unwrap();
        }
        store.sync().unwrap();
        if is_finished {
            store.finish(&[point(7), point(3)], &manifest(text)).unwrap();
        }
    }

    #[test]
    fn two_ranges_of_seeds_become_one_campaign() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        campaign(&place("a"), &[1, 2], "", true);
        campaign(&place("b"), &[2, 3], "", true);
        assert_eq!(merge(&[place("b"), place("a")], &place("out"), false), Ok(6));
        let expected: String = [7, 3].iter().flat_map(|point| (1..=3).map(move |seed| line(*point, seed))).collect();
        assert_eq!(std::fs::read_to_string(place("out").join(RECORDS)).unwrap(), expected);
        let merged = read(&place("out")).unwrap().manifest;
        assert_eq!((merged.first_seed, merged.seeds, merged.complete, merged.wall_time_s), (1, 3, true, 3.0));
    }

    #[test]
    fn two_halves_of_a_sweep_become_one_campaign() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        let half = |name: &str, point: u64| {
            let made = manifest(&format!("[sweep]\na = [{point}]\n"));
            let mut store = Store::open(&place(name), &made, false).unwrap();
            let key = format!("{{\"a\":{point}}}");
            store.add((key.clone(), 1), &line(point, 1)).unwrap();
            store.finish(&[key], &made).unwrap();
        };
        half("a", 7);
        half("b", 3);
        assert_eq!(merge(&[place("a"), place("b")], &place("out"), false), Ok(2));
        let records = std::fs::read_to_string(place("out").join(RECORDS)).unwrap();
        assert_eq!(records, line(3, 1) + &line(7, 1), "the points of the last one are first");
        assert_eq!(read(&place("out")).unwrap().manifest.sources.len(), 2);
        // The same again, into the directory that is there.
        assert_eq!(merge(&[place("a"), place("b")], &place("out"), false), Ok(2));
        assert_eq!(std::fs::read_to_string(place("out").join(RECORDS)).unwrap(), records);
    }

    #[test]
    fn what_is_not_whole_stays_open() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        campaign(&place("a"), &[1], "", false);
        assert_eq!(merge(&[place("a")], &place("out"), false), Ok(2));
        assert!(!place("out").join(RECORDS).exists() && place("out").join(UNFINISHED).exists());
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        campaign(&place("a"), &[1, 2], "", true);
        campaign(&place("b"), &[3], "c = true\n[sweep]\na = [7, 3]\n", true);
        let refused = merge(&[place("a"), place("b")], &place("out"), false).unwrap_err();
        assert!(refused.contains("c: not written → true") && refused.contains("{\"a\":7}"), "{refused}");
        assert!(!place("out").exists(), "nothing is written");
        // One run with two results.
        campaign(&place("c"), &[2], "", true);
        let path = place("c").join(RECORDS);
        let other = std::fs::read_to_string(&path).unwrap().replace(&line(7, 2), &sealed(7, 2, 15));
        std::fs::write(&path, other).unwrap();
        let refused = merge(&[place("a"), place("c")], &place("other"), false).unwrap_err();
        assert!(refused.contains("seed 2"), "{refused}");
        assert!(merge(&[place("nothing")], &place("third"), false).is_err());
    }
}
