//! Reader of a directory of records. The directory may be finished, unfinished, or of another
//! revision of the model.

use super::Record;
use super::directory::{MADE_BY, MANIFEST, Manifest, RECORDS, UNFINISHED};
use super::line::{self, FORMAT, Key, key_of};
use meshpace_scenario::MAX_POINTS;
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Records of a directory. No run has two records.
#[derive(Clone, PartialEq, Debug)]
pub struct Archive<T = Record> {
    /// Manifest of the records. It is the manifest of the unfinished campaign if there is one.
    pub manifest: Manifest,
    /// Records. If all are in the finished file, they have the order of that file; if some are of
    /// an unfinished campaign, they have the order of the campaign's points.
    pub records: Vec<T>,
    /// Notes for a reader, one sentence each: the campaign is unfinished, a line is damaged, or the
    /// records are of another revision of the model. Each note names the directory or the file.
    pub notes: Vec<String>,
    /// True if all records are in the finished file.
    pub is_finished: bool,
}

impl Archive {
    /// Reads a directory. Returns `None` if the campaign is unfinished and no run has a record yet.
    ///
    /// # Errors
    /// The file and line at fault, and what the user can do.
    pub fn read(directory: &Path) -> Result<Option<Archive>, String> {
        Archive::read_as(directory, compact)
    }
}

impl<T> Archive<T> {
    /// The same, of which only what `taken` makes of each record is held.
    ///
    /// # Errors
    /// As for [`Archive::read`].
    pub fn read_as(directory: &Path, mut taken: impl FnMut(Record) -> T) -> Result<Option<Archive<T>>, String> {
        let Some(beside) = Manifest::read(directory)? else {
            return Err(format!("{}: this directory has no {MANIFEST}; {MADE_BY}", directory.display()));
        };
        let unfinished = Unfinished::read(directory, &beside, &mut taken)?;
        let (mut finished, mut notes) = (Finished::default(), Vec::new());
        if !unfinished.as_ref().is_some_and(|unfinished| unfinished.head.replaces) {
            strange(&beside, directory, &mut notes)?;
            finished = Finished::read(directory, &beside, unfinished.is_some(), &mut taken)?;
        }
        let (manifest, records, is_finished) = match unfinished {
            None => (beside, finished.records, true),
            Some(Unfinished { head, records: more, damaged }) => {
                strange(&head, directory, &mut notes)?;
                let records = joined(finished, more, &head);
                let there = records.len();
                notes.push(format!(
                    "{}: the campaign is incomplete: {there} runs exist, and the same command runs the rest",
                    directory.display()
                ));
                notes.extend(damaged);
                (head, records, false)
            }
        };
        Ok((manifest.complete || !records.is_empty()).then_some(Archive { manifest, records, notes, is_finished }))
    }
}

/// Adds to `notes` what a reader should know about the records of a manifest, unless the same note
/// is there already.
fn strange(manifest: &Manifest, directory: &Path, notes: &mut Vec<String>) -> Result<(), String> {
    let named = |what| format!("{}: {what}", directory.display());
    let note = manifest.strange().map_err(named)?.map(named);
    notes.extend(note.filter(|note| !notes.contains(note)));
    Ok(())
}

/// Records of the finished file, or the part of each that is held.
struct Finished<T> {
    records: Vec<T>,
    /// Number of the point, and seed, of each record.
    runs: Vec<(usize, u64)>,
    /// Number of each point.
    points: BTreeMap<String, usize>,
}

impl<T> Default for Finished<T> {
    fn default() -> Finished<T> {
        Finished { records: Vec::new(), runs: Vec::new(), points: BTreeMap::new() }
    }
}

impl<T> Finished<T> {
    /// Reads the finished file. The number of its records has to be the number in the manifest,
    /// unless `is_open`: then a command that adds records was interrupted.
    fn read(
        directory: &Path,
        manifest: &Manifest,
        is_open: bool,
        taken: &mut impl FnMut(Record) -> T,
    ) -> Result<Finished<T>, String> {
        let path = directory.join(RECORDS);
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let mut found = Finished::default();
        let mut reader = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound && (is_open || !manifest.complete) => {
                return Ok(found);
            }
            Err(error) => return Err(failed(error)),
        };
        // The manifest counts the records, unless it was written by hand.
        found.records.reserve_exact(manifest.records.min(MAX_POINTS));
        let (mut seen, mut line) = (BTreeSet::new(), Vec::new());
        for number in 1.. {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            let at = |why: &str| {
                format!("{}:{number}: the record {why}; the command that made it repeats the run", path.display())
            };
            let line = line.strip_suffix(b"\n").ok_or_else(|| at("is cut off"))?;
            let ((point, seed), record) = opened(line, manifest).map_err(|why| at(&why))?;
            let next = found.points.len();
            let run = (*found.points.entry(point).or_insert(next), seed);
            if !seen.insert(run) {
                return Err(at("occurs twice"));
            }
            found.runs.push(run);
            found.records.push(taken(record));
        }
        if found.records.len() != manifest.records && !is_open {
            return Err(format!(
                "{}: it has {} records, but the manifest counts {}; the command that made them corrects this",
                path.display(),
                found.records.len(),
                manifest.records
            ));
        }
        Ok(found)
    }

    /// The records, each with the key of its run.
    fn keyed(self) -> impl Iterator<Item = (Key, T)> {
        let mut points: Vec<(usize, String)> = self.points.into_iter().map(|(point, number)| (number, point)).collect();
        points.sort_unstable();
        let key = move |(point, seed): (usize, u64)| (points[point].1.clone(), seed);
        self.runs.into_iter().map(key).zip(self.records)
    }
}

/// Parses one line of a directory that has this manifest.
fn opened(line: &[u8], manifest: &Manifest) -> Result<(Key, Record), String> {
    let line = std::str::from_utf8(line).map_err(|_| "is damaged: it is not text")?;
    // Lines of the first format had no checksums.
    let record = match manifest.format < FORMAT {
        true => serde_json::from_str(line).map_err(|_| "is not a complete record")?,
        false => line::open(line)?,
    };
    let key = key_of(&record).ok_or("has no point and seed")?;
    let record: Record = serde_json::from_value(record).map_err(|why| format!("does not have this format: {why}"))?;
    match record.model == manifest.model {
        true => Ok((key, record.judged())),
        false => Err("has another revision of the model than the manifest".to_owned()),
    }
}

/// Returns the same record without spare capacity in its list and map. A directory may have a
/// hundred thousand records.
fn compact(mut record: Record) -> Record {
    record.flows.shrink_to_fit();
    let mut point = Map::with_capacity(record.point.len());
    point.append(&mut record.point);
    record.point = point;
    record
}

/// Content of the file of an unfinished campaign.
struct Unfinished<T> {
    head: Manifest,
    records: Vec<(Key, T)>,
    /// One sentence for each line that cannot be read.
    damaged: Vec<String>,
}

impl<T> Unfinished<T> {
    /// Reads the unfinished file of a directory; `None` if there is no such file. `beside` is the
    /// manifest of the directory, used if the file's own head cannot be read. An incomplete last
    /// line is ignored.
    fn read(
        directory: &Path,
        beside: &Manifest,
        taken: &mut impl FnMut(Record) -> T,
    ) -> Result<Option<Unfinished<T>>, String> {
        let path = directory.join(UNFINISHED);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let mut lines =
            text.split_inclusive(|byte| *byte == b'\n').enumerate().filter(|(_, line)| line.ends_with(b"\n"));
        let head = lines.next().and_then(|(_, line)| serde_json::from_slice(line).ok());
        let mut unfinished =
            Unfinished { head: head.unwrap_or_else(|| beside.clone()), records: Vec::new(), damaged: Vec::new() };
        for (number, line) in lines {
            match opened(&line[..line.len() - 1], &unfinished.head) {
                Ok((key, record)) => unfinished.records.push((key, taken(record))),
                Err(why) => {
                    let told = format!("{}:{}: the record {why}; it is ignored", path.display(), number + 1);
                    unfinished.damaged.push(told);
                }
            }
        }
        Ok(Some(unfinished))
    }
}

/// Merges the records of the finished and the unfinished file. Each run occurs once; the unfinished
/// file takes precedence. The records have the order of the campaign's points, and points that the
/// campaign does not name come last.
fn joined<T>(finished: Finished<T>, more: Vec<(Key, T)>, head: &Manifest) -> Vec<T> {
    let given = head.given(None);
    let points = given.last().into_iter().flat_map(|given| given.keys());
    let mut order: BTreeMap<String, usize> = points.enumerate().map(|(number, key)| (key, number)).collect();
    let mut all: BTreeMap<(usize, u64), T> = BTreeMap::new();
    for ((point, seed), record) in finished.keyed().chain(more) {
        let next = order.len();
        all.insert((*order.entry(point).or_insert(next), seed), record);
    }
    all.into_values().collect()
}
