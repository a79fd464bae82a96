//! Campaigns put together: parts of one campaign that were run in several places, or with several ranges of seeds.

use super::directory::{self, MADE_BY, MANIFEST, Manifest, RECORDS};
use super::line::{self, Key, key_of};
use super::store::{Store, UNFINISHED};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One directory to be merged.
struct Part {
    directory: PathBuf,
    manifest: Manifest,
    /// Whole lines, those of the finished file in the order of the campaign.
    lines: Vec<(Key, String)>,
}

/// Puts the records of `inputs` (directories of records, or directories of such directories) into `out`; returns how many it
/// has then. Where all runs of a campaign are there, its records are finished; where some are missing, the campaign is
/// left as one that was interrupted, which goes on where it was.
///
/// # Errors
/// If something cannot be read or written, if parts that belong together are of different scenarios or versions, or if
/// two have different records of one run: then one of them is wrong.
pub fn merge(inputs: &[PathBuf], out: &Path, force: bool) -> Result<usize, String> {
    let mut groups: BTreeMap<PathBuf, Vec<Part>> = BTreeMap::new();
    for input in inputs {
        let found = parts(input)?;
        if found.is_empty() {
            return Err(format!("{}: no {MANIFEST} here or one directory down; {MADE_BY}", input.display()));
        }
        for (place, part) in found {
            groups.entry(place).or_default().push(part);
        }
    }
    let mut count = 0;
    for (place, parts) in groups {
        count += merge_one(&parts, &out.join(place), force)?;
    }
    Ok(count)
}

/// The directories of records in `input`, each with its place in the output.
fn parts(input: &Path) -> Result<Vec<(PathBuf, Part)>, String> {
    let directories = directory::campaigns(input)?;
    let place = |path: &Path| path.strip_prefix(input).unwrap_or(path).to_owned();
    directories.iter().map(|path| Ok((place(path), read(path)?))).collect()
}

fn read(directory: &Path) -> Result<Part, String> {
    let Some(manifest) = Manifest::read(directory)? else {
        return Err(format!("{}: there is no {MANIFEST}", directory.display()));
    };
    let mut lines = Vec::new();
    // The first line of the unfinished file is its head.
    for (name, head) in [(RECORDS, 0), (UNFINISHED, 1)] {
        let path = directory.join(name);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        // A line without its end was being written when the program ended.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for (number, line) in whole.enumerate().skip(head) {
            let at = |why: &str| format!("{}:{}: the record {why}", path.display(), number + 1);
            let record = line::open(line.trim_end_matches('\n')).map_err(at)?;
            lines.push((key_of(&record).ok_or_else(|| at("has no point and seed"))?, line.to_owned()));
        }
    }
    Ok(Part { directory: directory.to_owned(), manifest, lines })
}

fn merge_one(parts: &[Part], out: &Path, force: bool) -> Result<usize, String> {
    let shown = |error: std::io::Error| format!("{}: {error}", out.display());
    let Some(first) = parts.first() else { return Ok(0) };
    for part in &parts[1..] {
        part.manifest.same_campaign(&first.manifest).map_err(|what| {
            format!(
                "{} and {} do not belong together: the second holds {what}",
                first.directory.display(),
                part.directory.display()
            )
        })?;
    }
    let mut manifest = first.manifest.clone();
    let mut store = Store::open(out, &manifest, force).map_err(shown)?;
    for part in parts {
        for (key, line) in &part.lines {
            match store.line(key).map_err(shown)? {
                None => store.add(key.clone(), line).map_err(shown)?,
                Some(there) if there == line.trim_end_matches('\n') => {}
                Some(_) => {
                    return Err(format!(
                        "{}: another record of seed {} at {} than before: one of them is wrong",
                        part.directory.display(),
                        key.1,
                        key.0
                    ));
                }
            }
        }
    }
    store.sync().map_err(shown)?;
    // The order of the points is known from a part that was finished.
    let order = parts.iter().find(|part| part.manifest.complete).map(|part| points(&part.lines)).unwrap_or_default();
    let seeds: Vec<u64> = store.seeds();
    let is_whole = order.len() == manifest.points
        && order.iter().all(|point| seeds.iter().all(|seed| store.has(&(point.clone(), *seed))));
    let count = store.len();
    if is_whole {
        manifest.failed_runs = 0;
        manifest.wall_time_s = parts.iter().map(|part| part.manifest.wall_time_s).sum();
        store.finish(&order, &manifest).map_err(shown)?;
    }
    Ok(count)
}

/// The points of lines, in the order in which they first appear.
fn points(lines: &[(Key, String)]) -> Vec<String> {
    let mut points: Vec<String> = Vec::new();
    for ((point, _), _) in lines {
        if !points.contains(point) {
            points.push(point.clone());
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(version: &str) -> Manifest {
        let usual = crate::record::store::tests::manifest();
        Manifest { version: version.into(), points: 2, wall_time_s: 1.5, ..usual }
    }

    fn line(point: u64, seed: u64) -> String {
        sealed(point, seed, point * seed)
    }

    fn sealed(point: u64, seed: u64, x: u64) -> String {
        let model = meshpace_sim::MODEL_REVISION;
        line::seal(&format!("{{\"seed\":{seed},\"point\":{{\"a\":{point}}},\"model\":{model},\"x\":{x}}}"))
    }

    /// A campaign of two points (7 before 3) with these seeds; left unfinished if told so.
    fn campaign(directory: &Path, seeds: &[u64], version: &str, is_finished: bool) {
        let mut store = Store::open(directory, &manifest(version), false).unwrap();
        let point = |point: u64| format!("{{\"a\":{point}}}");
        for (number, &seed) in [7, 3].iter().flat_map(|point| seeds.iter().map(move |seed| (*point, seed))) {
            store.add((point(number), seed), &line(number, seed)).unwrap();
        }
        store.sync().unwrap();
        if is_finished {
            store.finish(&[point(7), point(3)], &manifest(version)).unwrap();
        }
    }

    #[test]
    fn two_ranges_of_seeds_become_one_campaign() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        campaign(&place("a"), &[1, 2], "1", true);
        campaign(&place("b"), &[2, 3], "1", true);
        assert_eq!(merge(&[place("b"), place("a")], &place("out"), false), Ok(6));
        let expected: String = [7, 3].iter().flat_map(|point| (1..=3).map(move |seed| line(*point, seed))).collect();
        assert_eq!(std::fs::read_to_string(place("out").join(RECORDS)).unwrap(), expected);
        let merged = read(&place("out")).unwrap().manifest;
        assert_eq!((merged.first_seed, merged.seeds, merged.complete, merged.wall_time_s), (1, 3, true, 3.0));
    }

    #[test]
    fn what_is_not_whole_stays_open() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        campaign(&place("a"), &[1], "1", false);
        assert_eq!(merge(&[place("a")], &place("out"), false), Ok(2));
        assert!(!place("out").join(RECORDS).exists() && place("out").join(UNFINISHED).exists());
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        campaign(&place("a"), &[1, 2], "1", true);
        campaign(&place("b"), &[3], "2", true);
        let refused = merge(&[place("a"), place("b")], &place("out"), false).unwrap_err();
        assert!(refused.contains("records of version 2"), "{refused}");
        // One run with two results.
        campaign(&place("c"), &[2], "1", true);
        let path = place("c").join(RECORDS);
        let other = std::fs::read_to_string(&path).unwrap().replace(&line(7, 2), &sealed(7, 2, 15));
        std::fs::write(&path, other).unwrap();
        let refused = merge(&[place("a"), place("c")], &place("other"), false).unwrap_err();
        assert!(refused.contains("seed 2"), "{refused}");
        assert!(merge(&[place("nothing")], &place("third"), false).is_err());
    }
}
