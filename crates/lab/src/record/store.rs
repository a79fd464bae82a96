//! A campaign's records while it runs: one line each, on the disk before the next is begun, so that whatever ends the program
//! loses only the runs under way.
//!
//! `unfinished.jsonl` begins with the campaign's manifest and grows in the order in which runs end. When all runs are there,
//! `records.jsonl` is written whole in the order of the campaign, then the manifest, and the unfinished file goes; until then
//! whatever was in the directory stays as it is. A line without its end, which a kill or a full disk can leave behind, is cut
//! off when the file is opened again; a damaged one is told, and its run made again.

use super::directory::{MANIFEST, Manifest, RECORDS};
use super::line::{self, Key, key_of};
use super::write_whole;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The records so far, after the manifest of their campaign.
pub const UNFINISHED: &str = "unfinished.jsonl";

/// A campaign's directory, held open by this program alone.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    manifest: Manifest,
    /// Holds the lock.
    _lock: File,
    /// The unfinished file and its length, once there is something to write.
    unfinished: Option<(File, u64)>,
    /// Lines by run, without their newlines.
    lines: BTreeMap<Key, String>,
    /// Whether the directory has exactly these records and nothing else.
    is_finished: bool,
    damaged: Vec<String>,
}

/// What a directory holds already.
struct Found {
    /// The lines that belong to the campaign.
    lines: BTreeMap<Key, String>,
    /// Lines that are in the unfinished file.
    unfinished: Vec<String>,
    has_unfinished: bool,
    is_complete: bool,
    damaged: Vec<String>,
}

impl Store {
    /// Opens `directory`, creating it if need be, for the campaign of `manifest`, and takes over the records that are there
    /// from an earlier start of the same campaign, of other seeds perhaps. With `force` it takes over none; those that are
    /// there are replaced when the new ones are complete.
    ///
    /// # Errors
    /// `AlreadyExists` if there are records of another campaign and `force` is not set, `WouldBlock` if another process
    /// works in it, and whatever the file system refuses; each names the directory or the file.
    pub fn open(directory: &Path, manifest: &Manifest, force: bool) -> io::Result<Store> {
        let named = |error: io::Error| named(directory, &error);
        std::fs::create_dir_all(directory).map_err(named)?;
        // The directory itself is locked: there is no file whose removal could let two in.
        let lock = File::open(directory).map_err(named)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is at work in {}", directory.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::Error(error)) => return Err(named(error)),
            Ok(()) => {}
        }
        let found = if force { Found::nothing() } else { find(directory, manifest)? };
        let mut store = Store {
            directory: directory.to_owned(),
            manifest: Manifest { complete: false, records: 0, ..manifest.clone() },
            _lock: lock,
            unfinished: None,
            is_finished: found.is_complete && !found.has_unfinished && found.damaged.is_empty(),
            lines: found.lines,
            damaged: found.damaged,
        };
        if found.has_unfinished {
            store.begin(&found.unfinished)?;
        } else if force {
            // An unfinished campaign of before is not to be taken for this one.
            store.begin(&[])?;
        }
        if !directory.join(MANIFEST).exists() {
            store.write(MANIFEST, &store.manifest)?;
        }
        Ok(store)
    }

    /// Writes the unfinished file anew, with its head and these lines, and opens it.
    fn begin(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = serde_json::to_string(&self.manifest)?;
        text.push('\n');
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        let path = self.directory.join(UNFINISHED);
        write_whole(&self.directory, UNFINISHED, &text).map_err(|error| named(&path, &error))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| named(&path, &error))?;
        self.unfinished = Some((file, text.len() as u64));
        Ok(())
    }

    fn write(&self, name: &str, manifest: &Manifest) -> io::Result<()> {
        let text = serde_json::to_string_pretty(manifest)?;
        write_whole(&self.directory, name, format!("{text}\n"))
            .map_err(|error| named(&self.directory.join(name), &error))
    }

    /// What was found damaged and will be run again, one sentence each.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Whether the directory has these records already, finished.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether the run is there.
    pub fn has(&self, key: &Key) -> bool {
        self.lines.contains_key(key)
    }

    /// The line of a run, without its newline.
    pub fn line(&self, key: &Key) -> Option<&str> {
        self.lines.get(key).map(String::as_str)
    }

    /// Every seed of which there is a run, ascending.
    pub fn seeds(&self) -> Vec<u64> {
        let seeds: std::collections::BTreeSet<u64> = self.lines.keys().map(|(_, seed)| *seed).collect();
        seeds.into_iter().collect()
    }

    /// How many runs are there.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no run is there.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds the record of a run, `line` with its newline; when this returns it is on the disk.
    ///
    /// # Errors
    /// Whatever the file system refuses; of the record nothing is left then.
    pub fn add(&mut self, key: Key, line: &str) -> io::Result<()> {
        if self.unfinished.is_none() {
            self.begin(&[])?;
        }
        let path = self.directory.join(UNFINISHED);
        let Some((file, length)) = &mut self.unfinished else { return Ok(()) };
        if let Err(error) = file.write_all(line.as_bytes()).and_then(|()| file.sync_data()) {
            // The error of the write is what matters.
            let _ = file.set_len(*length);
            return Err(named(&path, &error));
        }
        *length += line.len() as u64;
        self.is_finished = false;
        self.lines.insert(key, line.trim_end_matches('\n').to_owned());
        Ok(())
    }

    /// Lines in the order of `points`, and of seeds within.
    pub fn in_order<'a>(&'a self, points: &'a [String]) -> impl Iterator<Item = &'a str> {
        points.iter().flat_map(|point| {
            let all = (point.clone(), 0)..=(point.clone(), u64::MAX);
            self.lines.range(all).map(|(_, line)| line.as_str())
        })
    }

    /// Puts all records in place, in the order of `points`, and then the manifest, which is filled in from them.
    ///
    /// # Errors
    /// Whatever the file system refuses; the records so far stay.
    pub fn finish(self, points: &[String], manifest: &Manifest) -> io::Result<()> {
        let mut text = String::new();
        for line in self.in_order(points) {
            text.push_str(line);
            text.push('\n');
        }
        let of_point = |point: &String| self.lines.range((point.clone(), 0)..=(point.clone(), u64::MAX)).count() as u64;
        let manifest = Manifest {
            complete: true,
            records: self.in_order(points).count(),
            first_seed: self.seeds().first().copied().unwrap_or(manifest.first_seed),
            seeds: points.iter().map(of_point).min().unwrap_or(0),
            ..manifest.clone()
        };
        write_whole(&self.directory, RECORDS, &text).map_err(|error| named(&self.directory.join(RECORDS), &error))?;
        self.write(MANIFEST, &manifest)?;
        // The new names survive a power cut only when the directory itself is on the disk.
        File::open(&self.directory)?.sync_all()?;
        match std::fs::remove_file(self.directory.join(UNFINISHED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(named(&self.directory.join(UNFINISHED), &error))
            }
            _ => Ok(()),
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Found {
    fn nothing() -> Found {
        Found {
            lines: BTreeMap::new(),
            unfinished: Vec::new(),
            has_unfinished: false,
            is_complete: false,
            damaged: Vec::new(),
        }
    }

    /// Takes the whole lines of a file, all but the first `skipped`.
    fn take(&mut self, path: &Path, text: &[u8], skipped: usize) -> Vec<String> {
        let mut taken = Vec::new();
        for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate().skip(skipped) {
            // A line without its end was being written when the program ended.
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let opened = std::str::from_utf8(line).map_err(|_| "is damaged: it is no text");
            let opened = opened.and_then(|line| {
                let record = line::open(line)?;
                Ok((key_of(&record).ok_or("has no point and seed")?, line))
            });
            match opened {
                Ok((key, line)) => {
                    taken.push(line.to_owned());
                    self.lines.insert(key, line.to_owned());
                }
                Err(why) => self.damaged.push(format!(
                    "{}:{}: the record {why}; its run is made again",
                    path.display(),
                    number + 1
                )),
            }
        }
        taken
    }
}

/// What of the campaign of `manifest` is in `directory`.
fn find(directory: &Path, manifest: &Manifest) -> io::Result<Found> {
    let occupied = |what: &str| {
        let message = format!("{} holds {what}; --force replaces it, --out writes elsewhere", directory.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
    };
    let content = |name: &str| match std::fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(named(&directory.join(name), &error)),
    };
    let (records, unfinished) = (content(RECORDS)?, content(UNFINISHED)?);
    let there = match Manifest::read(directory) {
        Ok(there) => there,
        Err(_) => return occupied("a manifest.json that cannot be read"),
    };
    let mut found = Found::nothing();
    let head = unfinished.as_deref().map(|text| {
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice::<Manifest>(line).ok()
    });
    let fits = match (&head, &there) {
        (Some(Some(head)), _) => head.same_campaign(manifest).map_err(|what| format!("the unfinished {what}")),
        (_, Some(there)) => there.same_campaign(manifest),
        (Some(None), None) => Err("an unfinished campaign that cannot be read".to_owned()),
        (None, None) if records.is_some() => Err("a records.jsonl without a manifest".to_owned()),
        (None, None) => return Ok(found),
    };
    if let Err(what) = fits {
        return occupied(&what);
    }
    // Old records beside the unfinished ones of another campaign are about to be replaced.
    if let (Some(text), Some(there)) = (&records, &there)
        && there.same_campaign(manifest).is_ok()
    {
        let taken = found.take(&directory.join(RECORDS), text, 0).len();
        found.is_complete =
            there.complete && taken == there.records && taken == found.lines.len() && there.failed_runs == 0;
    }
    if let Some(text) = &unfinished {
        found.has_unfinished = true;
        found.unfinished = found.take(&directory.join(UNFINISHED), text, 1);
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::directory::Archive;

    pub fn manifest() -> Manifest {
        Manifest {
            scenario: "s".into(),
            scenario_sha256: "d".into(),
            scenario_text: String::new(),
            set: Vec::new(),
            version: "1".into(),
            format: line::FORMAT,
            model: meshpace_sim::MODEL_REVISION,
            first_seed: 1,
            seeds: 3,
            points: 1,
            records: 0,
            failed_runs: 0,
            jobs: 1,
            host: "h".into(),
            wall_time_s: 0.0,
            experiment: None,
            quality: None,
            complete: false,
        }
    }

    const POINT: &str = "{\"a\":0.1}";

    fn line(seed: u64) -> String {
        let model = meshpace_sim::MODEL_REVISION;
        line::seal(&format!("{{\"seed\":{seed},\"point\":{POINT},\"model\":{model},\"x\":{seed}}}"))
    }

    fn key(seed: u64) -> Key {
        (POINT.into(), seed)
    }

    fn points() -> Vec<String> {
        vec![POINT.to_owned()]
    }

    fn open(directory: &Path) -> io::Result<Store> {
        Store::open(directory, &manifest(), false)
    }

    fn with(directory: &Path, seeds: &[u64]) -> Store {
        let mut store = open(directory).unwrap();
        for &seed in seeds {
            store.add(key(seed), &line(seed)).unwrap();
        }
        store
    }

    fn read(directory: &Path, name: &str) -> String {
        std::fs::read_to_string(directory.join(name)).unwrap()
    }

    #[test]
    fn records_end_up_in_the_order_of_the_campaign() {
        let scratch = tempfile::tempdir().unwrap();
        let store = with(scratch.path(), &[3, 1, 2]);
        assert!(read(scratch.path(), UNFINISHED).ends_with(&[3, 1, 2].map(line).concat()));
        store.finish(&points(), &manifest()).unwrap();
        assert_eq!(read(scratch.path(), RECORDS), [1, 2, 3].map(line).concat());
        assert!(!scratch.path().join(UNFINISHED).exists());
        let archive = Archive::read(scratch.path()).unwrap().unwrap();
        assert_eq!((archive.manifest.records, archive.manifest.seeds, archive.records.len()), (3, 3, 3));
        assert!(open(scratch.path()).unwrap().is_finished());
    }

    #[test]
    fn half_a_line_is_cut_off_and_a_damaged_one_is_named_and_the_rest_is_kept() {
        let scratch = tempfile::tempdir().unwrap();
        drop(with(scratch.path(), &[1]));
        let whole = read(scratch.path(), UNFINISHED);
        let damaged = line(2).replace("\"x\":2", "\"x\":3");
        for (rest, told) in [("", 0), ("{\"seed\":2", 0), (line(2).trim_end(), 0), ("no record\n", 1), (&damaged, 1)] {
            std::fs::write(scratch.path().join(UNFINISHED), format!("{whole}{rest}")).unwrap();
            let store = open(scratch.path()).unwrap();
            assert_eq!((store.len(), store.has(&key(1)), store.has(&key(2))), (1, true, false), "{rest}");
            assert_eq!(store.damaged().len(), told, "{rest}");
            assert!(store.damaged().iter().all(|what| what.contains("unfinished.jsonl:3: the record ")));
            drop(store);
            assert_eq!(read(scratch.path(), UNFINISHED), whole, "{rest}");
        }
        // What stands behind a damaged line is whole.
        std::fs::write(scratch.path().join(UNFINISHED), format!("{whole}{damaged}{}", line(3))).unwrap();
        assert!(open(scratch.path()).unwrap().has(&key(3)));
    }

    #[test]
    fn what_is_there_is_taken_over_or_refused_and_stays_until_it_is_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        with(scratch.path(), &[1]).finish(&points(), &manifest()).unwrap();
        // More seeds of the same campaign: what is there stays.
        let more = with(scratch.path(), &[2]);
        assert!(more.has(&key(1)));
        more.finish(&points(), &manifest()).unwrap();
        assert_eq!(read(scratch.path(), RECORDS), [1, 2].map(line).concat());
        let other = Manifest { scenario_sha256: "e".into(), ..manifest() };
        let refused = Store::open(scratch.path(), &other, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(refused.to_string().contains("--force"), "{refused}");
        for (strange, told) in [
            (Manifest { model: 0, ..manifest() }, "no revision of the model"),
            (Manifest { model: u32::MAX, ..manifest() }, "revision 4294967295 of the model"),
            (Manifest { format: 0, ..manifest() }, "the format without checksums"),
        ] {
            std::fs::write(scratch.path().join(MANIFEST), serde_json::to_string(&strange).unwrap()).unwrap();
            let refused = open(scratch.path()).unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
            let refused = Archive::read(scratch.path()).unwrap_err();
            assert!(refused.contains(told) && refused.contains("--force"), "{refused}");
        }
        let mut replaced = Store::open(scratch.path(), &other, true).unwrap();
        assert!(replaced.is_empty());
        replaced.add(key(7), &line(7)).unwrap();
        drop(replaced);
        assert_eq!(read(scratch.path(), RECORDS), [1, 2].map(line).concat(), "until the new ones are complete");
        let resumed = Store::open(scratch.path(), &other, false).unwrap();
        assert_eq!((resumed.len(), resumed.has(&key(7))), (1, true));
        resumed.finish(&points(), &other).unwrap();
        assert_eq!(read(scratch.path(), RECORDS), line(7));
    }

    #[test]
    fn what_is_damaged_doubled_or_missing_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        with(scratch.path(), &[1, 2, 3]).finish(&points(), &manifest()).unwrap();
        let whole = read(scratch.path(), RECORDS);
        for (text, told) in [
            (whole.replace("\"x\":2", "\"x\":7"), "records.jsonl:2: the record is damaged"),
            (whole.clone() + &line(2), "records.jsonl:4: the record is there twice"),
            (line(1) + &line(3), "2 records, and the manifest counts 3"),
            (whole.trim_end().to_owned(), "records.jsonl:3: the record is cut off"),
        ] {
            std::fs::write(scratch.path().join(RECORDS), text).unwrap();
            let error = Archive::read(scratch.path()).unwrap_err();
            assert!(error.contains(told), "{told}: {error}");
            assert!(!open(scratch.path()).unwrap().is_finished(), "{told}");
        }
    }

    #[test]
    fn two_cannot_work_in_one_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let first = open(scratch.path()).unwrap();
        assert_eq!(open(scratch.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(open(scratch.path()).is_ok());
    }
}
