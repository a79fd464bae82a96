//! Reading of a directory of records, whatever state it is in: finished, unfinished, or of another revision of the model.

use super::Record;
use super::directory::{MADE_BY, MANIFEST, Manifest, RECORDS, UNFINISHED};
use super::line::{self, FORMAT, Key, key_of, point_key};
use meshpace_scenario::MAX_POINTS;
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// A directory's records, none twice.
#[derive(Clone, PartialEq, Debug)]
pub struct Archive {
    /// Their manifest; that of the unfinished campaign if there is one.
    pub manifest: Manifest,
    /// The records: those of the finished file in its order, or, if some are of an unfinished campaign, in the order of its points.
    pub records: Vec<Record>,
    /// Notes for a reader, one sentence each: the campaign is unfinished, or of another revision. Each names the directory.
    pub notes: Vec<String>,
    /// True if all records are in the finished file.
    pub is_finished: bool,
}

impl Archive {
    /// Reads a directory; `None` if none of its runs is there yet.
    ///
    /// # Errors
    /// The file and line that is wrong, and what to do.
    pub fn read(directory: &Path) -> Result<Option<Archive>, String> {
        let Some(beside) = Manifest::read(directory)? else {
            return Err(format!("{}: there is no {MANIFEST}; {MADE_BY}", directory.display()));
        };
        let unfinished = Unfinished::read(directory, &beside)?;
        let (mut records, mut notes) = (Vec::new(), Vec::new());
        if !unfinished.as_ref().is_some_and(|unfinished| unfinished.head.replaces) {
            strange(&beside, directory, &mut notes)?;
            records = finished(directory, &beside, unfinished.is_some())?;
        }
        let (manifest, is_finished) = match unfinished {
            None => (beside, true),
            Some(Unfinished { head, records: more, damaged }) => {
                strange(&head, directory, &mut notes)?;
                records = joined(records, more, &head);
                let there = records.len();
                notes.push(format!(
                    "{}: the campaign is unfinished: {there} runs are there, and the same command makes the rest",
                    directory.display()
                ));
                notes.extend(damaged);
                (head, false)
            }
        };
        Ok((manifest.complete || !records.is_empty()).then_some(Archive { manifest, records, notes, is_finished }))
    }
}

/// Notes what a reader should know of the records of a manifest, once.
fn strange(manifest: &Manifest, directory: &Path, notes: &mut Vec<String>) -> Result<(), String> {
    let named = |what| format!("{}: {what}", directory.display());
    let note = manifest.strange().map_err(named)?.map(named);
    notes.extend(note.filter(|note| !notes.contains(note)));
    Ok(())
}

/// The records of the finished file, as many as the manifest counts unless a command that adds to them was interrupted.
fn finished(directory: &Path, manifest: &Manifest, is_open: bool) -> Result<Vec<Record>, String> {
    let path = directory.join(RECORDS);
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut reader = match File::open(&path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound && (is_open || !manifest.complete) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(error)),
    };
    // The manifest counts the records, unless it was written by hand.
    let mut records = Vec::with_capacity(manifest.records.min(MAX_POINTS));
    let (mut keys, mut line) = (BTreeSet::new(), Vec::new());
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let at = |why: &str| {
            format!("{}:{number}: the record {why}; the command that made it makes it again", path.display())
        };
        let line = line.strip_suffix(b"\n").ok_or_else(|| at("is cut off"))?;
        let (key, record) = opened(line, manifest).map_err(|why| at(&why))?;
        if !keys.insert(key) {
            return Err(at("is there twice"));
        }
        records.push(record);
    }
    if records.len() != manifest.records && !is_open {
        return Err(format!(
            "{}: it has {} records, and the manifest counts {}; the command that made them puts that right",
            path.display(),
            records.len(),
            manifest.records
        ));
    }
    Ok(records)
}

/// The record in a line of a directory with this manifest.
fn opened(line: &[u8], manifest: &Manifest) -> Result<(Key, Record), String> {
    let line = std::str::from_utf8(line).map_err(|_| "is damaged: it is no text")?;
    // The first format had no checksums.
    let record = match manifest.format < FORMAT {
        true => serde_json::from_str(line).map_err(|_| "is no whole record")?,
        false => line::open(line)?,
    };
    let key = key_of(&record).ok_or("has no point and seed")?;
    let record: Record = serde_json::from_value(record).map_err(|why| format!("is none of this format: {why}"))?;
    match record.model == manifest.model {
        true => Ok((key, compact(record.judged()))),
        false => Err("is of another revision of the model than the manifest says".to_owned()),
    }
}

/// The same record without memory that it does not use: a directory may have a hundred thousand of them.
fn compact(mut record: Record) -> Record {
    record.flows.shrink_to_fit();
    let mut point = Map::with_capacity(record.point.len());
    point.append(&mut record.point);
    record.point = point;
    record
}

/// The file of an unfinished campaign.
struct Unfinished {
    head: Manifest,
    records: Vec<(Key, Record)>,
    /// Lines that cannot be read, a sentence each.
    damaged: Vec<String>,
}

impl Unfinished {
    /// Reads the file of a directory whose finished manifest is `beside`; `None` if there is none. Its last line may be incomplete.
    fn read(directory: &Path, beside: &Manifest) -> Result<Option<Unfinished>, String> {
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
                Ok(record) => unfinished.records.push(record),
                Err(why) => {
                    let told = format!("{}:{}: the record {why}, and is left out", path.display(), number + 1);
                    unfinished.damaged.push(told);
                }
            }
        }
        Ok(Some(unfinished))
    }
}

/// The records of both files, each run once, in the order of the campaign's points; points that it does not name are last.
fn joined(records: Vec<Record>, more: Vec<(Key, Record)>, head: &Manifest) -> Vec<Record> {
    let key = |record: &Record| (point_key(&record.point.clone().into()), record.seed);
    let given = head.given(None);
    let points = given.last().into_iter().flat_map(|given| given.keys());
    let mut order: BTreeMap<String, usize> = points.enumerate().map(|(number, key)| (key, number)).collect();
    let mut all: BTreeMap<(usize, u64), Record> = BTreeMap::new();
    for ((point, seed), record) in records.into_iter().map(|record| (key(&record), record)).chain(more) {
        let next = order.len();
        all.insert((*order.entry(point).or_insert(next), seed), record);
    }
    all.into_values().collect()
}
