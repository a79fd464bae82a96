//! A campaign's records while it runs: one line each, on the disk before the next is begun, so that whatever ends the program
//! loses only the runs under way.
//!
//! `records.partial.jsonl` grows in the order in which runs end. A line without its end, which a kill or a full disk can
//! leave behind, is cut off when the file is opened again. When all runs are there, `records.jsonl` is written whole in the
//! order of the campaign, and the partial file goes.

use super::directory::{MANIFEST, Manifest, RECORDS};
use super::write_whole;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The records so far.
pub const PARTIAL: &str = "records.partial.jsonl";

/// What tells a run from the others of its campaign: the values of its point, and its seed.
pub type Key = (String, u64);

/// A campaign's directory, held open by this program alone.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    partial: File,
    /// Where the last whole line of the partial file ends.
    end: u64,
    /// Lines by run, without their newlines.
    lines: BTreeMap<Key, String>,
}

/// The key of a record's line; None if it is none.
pub fn key_of(line: &str) -> Option<Key> {
    let record: Value = serde_json::from_str(line).ok()?;
    Some((key(record.get("point")?), record.get("seed")?.as_u64()?))
}

/// A point as part of a key.
pub fn key(point: &Value) -> String {
    point.to_string()
}

impl Store {
    /// Opens `directory`, creating it if need be, for the campaign of `manifest`, and takes over the records that are there
    /// from an earlier start of the same campaign, with fewer seeds perhaps.
    ///
    /// # Errors
    /// `AlreadyExists` if there are records of another campaign and `force` is not set, `WouldBlock` if another process
    /// works in it, and whatever the file system refuses.
    pub fn open(directory: &Path, manifest: &Manifest, force: bool) -> io::Result<Store> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(PARTIAL);
        let mut partial = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match partial.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is at work in {}", directory.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        let mut text = Vec::new();
        partial.read_to_end(&mut text)?;
        let mut store = Store { directory: directory.to_owned(), partial, end: 0, lines: BTreeMap::new() };
        match store.found(manifest)? {
            Found::Same => store.take_over(&text)?,
            Found::Nothing if text.is_empty() => {}
            _ if force => store.clear()?,
            Found::Nothing => return Err(store.occupied("records without a manifest")),
            Found::Other(what) => return Err(store.occupied(&what)),
        }
        store.write_manifest(&Manifest { complete: false, ..manifest.clone() })?;
        Ok(store)
    }

    fn occupied(&self, what: &str) -> io::Error {
        let message = format!("{} holds {what}; --force replaces it, --out writes elsewhere", self.directory.display());
        io::Error::new(io::ErrorKind::AlreadyExists, message)
    }

    fn found(&self, manifest: &Manifest) -> io::Result<Found> {
        let path = self.directory.join(MANIFEST);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let there = self.directory.join(RECORDS).exists();
                return Ok(if there { Found::Other("records without a manifest".into()) } else { Found::Nothing });
            }
            Err(error) => return Err(error),
        };
        let Ok(there) = serde_json::from_str::<Manifest>(&text) else {
            return Ok(Found::Other("a manifest that cannot be read".into()));
        };
        Ok(if there.scenario_sha256 != manifest.scenario_sha256 {
            let quality = there.quality.map(|quality| format!(" of quality {quality}")).unwrap_or_default();
            Found::Other(format!("other records of \"{}\"{quality}", there.scenario))
        } else if there.version != manifest.version {
            Found::Other(format!("records of version {}", there.version))
        } else if there.model != manifest.model {
            Found::Other(format!("records of revision {} of the model, this is {}", there.model, manifest.model))
        } else {
            Found::Same
        })
    }

    /// Takes the whole lines of both files; cuts off what a line lacks its end of.
    fn take_over(&mut self, partial: &[u8]) -> io::Result<()> {
        if let Ok(text) = std::fs::read_to_string(self.directory.join(RECORDS)) {
            self.lines.extend(text.lines().filter_map(|line| Some((key_of(line)?, line.to_owned()))));
        }
        for line in partial.split_inclusive(|byte| *byte == b'\n') {
            let whole = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
            let Some((key, line_text)) = whole.and_then(|line| Some((key_of(line)?, line))) else { break };
            self.lines.insert(key, line_text.to_owned());
            self.end += line.len() as u64;
        }
        self.cut()
    }

    fn clear(&mut self) -> io::Result<()> {
        for name in [RECORDS, MANIFEST] {
            match std::fs::remove_file(self.directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.cut()
    }

    /// Leaves of the partial file what is whole.
    fn cut(&mut self) -> io::Result<()> {
        self.partial.set_len(self.end)?;
        self.partial.seek(SeekFrom::Start(self.end)).map(drop)
    }

    fn write_manifest(&self, manifest: &Manifest) -> io::Result<()> {
        let text = serde_json::to_string_pretty(manifest)?;
        write_whole(&self.directory, MANIFEST, format!("{text}\n"))
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
        let written = self.partial.write_all(line.as_bytes()).and_then(|()| self.partial.sync_data());
        if let Err(error) = written {
            // The error of the write is what matters.
            let _ = self.cut();
            return Err(error);
        }
        self.end += line.len() as u64;
        self.lines.insert(key, line.trim_end_matches('\n').to_owned());
        Ok(())
    }

    /// Puts the records of `keys` in place, in this order, and then the manifest.
    ///
    /// # Errors
    /// Whatever the file system refuses; the records so far stay.
    pub fn finish(self, keys: impl Iterator<Item = Key>, manifest: &Manifest) -> io::Result<()> {
        let mut text = String::new();
        for line in keys.filter_map(|key| self.lines.get(&key)) {
            text.push_str(line);
            text.push('\n');
        }
        write_whole(&self.directory, RECORDS, &text)?;
        self.write_manifest(&Manifest { complete: true, ..manifest.clone() })?;
        // The new names survive a power cut only when the directory itself is on the disk.
        File::open(&self.directory)?.sync_all()?;
        std::fs::remove_file(self.directory.join(PARTIAL))
    }
}

/// What a directory holds already.
enum Found {
    /// No records.
    Nothing,
    /// Records of the same campaign, perhaps not all.
    Same,
    /// Something else, in words.
    Other(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            scenario: "s".into(),
            scenario_sha256: "d".into(),
            scenario_text: String::new(),
            set: Vec::new(),
            version: "1".into(),
            model: 1,
            first_seed: 1,
            seeds: 3,
            points: 1,
            failed_runs: 0,
            jobs: 1,
            host: "h".into(),
            wall_time_s: 0.0,
            experiment: None,
            quality: None,
            complete: false,
        }
    }

    fn line(seed: u64) -> String {
        format!("{{\"seed\":{seed},\"point\":{{\"a\":0.1}},\"x\":{seed}}}\n")
    }

    fn key(seed: u64) -> Key {
        ("{\"a\":0.1}".into(), seed)
    }

    fn read(directory: &Path, name: &str) -> String {
        std::fs::read_to_string(directory.join(name)).unwrap()
    }

    #[test]
    fn records_end_up_in_the_order_of_the_campaign() {
        let scratch = tempfile::tempdir().unwrap();
        let mut store = Store::open(scratch.path(), &manifest(), false).unwrap();
        for seed in [3, 1, 2] {
            store.add(key_of(&line(seed)).unwrap(), &line(seed)).unwrap();
        }
        assert_eq!(read(scratch.path(), PARTIAL), [3, 1, 2].map(line).concat());
        store.finish((1..=3).map(key), &manifest()).unwrap();
        assert_eq!(read(scratch.path(), RECORDS), [1, 2, 3].map(line).concat());
        assert!(!scratch.path().join(PARTIAL).exists());
    }

    #[test]
    fn half_a_line_is_cut_off_and_the_rest_is_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let mut store = Store::open(scratch.path(), &manifest(), false).unwrap();
        store.add(key(1), &line(1)).unwrap();
        drop(store);
        for rest in ["", "{\"seed\":2", "{\"seed\":2,\"point\":{\"a\":0.1},\"x\":2}", "no record\n"] {
            let text = line(1) + rest;
            std::fs::write(scratch.path().join(PARTIAL), text).unwrap();
            let store = Store::open(scratch.path(), &manifest(), false).unwrap();
            assert_eq!((store.len(), store.has(&key(1)), store.has(&key(2))), (1, true, false), "{rest}");
            drop(store);
            assert_eq!(read(scratch.path(), PARTIAL), line(1), "{rest}");
        }
    }

    #[test]
    fn what_is_there_is_taken_over_or_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let mut store = Store::open(scratch.path(), &manifest(), false).unwrap();
        store.add(key(1), &line(1)).unwrap();
        store.finish([key(1)].into_iter(), &manifest()).unwrap();
        // More seeds of the same campaign: what is there stays.
        let more = Manifest { seeds: 9, ..manifest() };
        assert!(Store::open(scratch.path(), &more, false).unwrap().has(&key(1)));
        let other = Manifest { scenario_sha256: "e".into(), ..manifest() };
        let refused = Store::open(scratch.path(), &other, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(refused.to_string().contains("--force"), "{refused}");
        assert!(scratch.path().join(RECORDS).exists(), "nothing is touched");
        let model = Manifest { model: 2, ..manifest() };
        let refused = Store::open(scratch.path(), &model, false).unwrap_err().to_string();
        assert!(refused.contains("revision 1 of the model, this is 2"), "{refused}");
        assert!(Store::open(scratch.path(), &other, true).unwrap().is_empty());
        assert!(!scratch.path().join(RECORDS).exists());
    }

    #[test]
    fn two_cannot_work_in_one_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let first = Store::open(scratch.path(), &manifest(), false).unwrap();
        assert_eq!(Store::open(scratch.path(), &manifest(), false).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert!(Store::open(scratch.path(), &manifest(), false).is_ok());
    }
}
