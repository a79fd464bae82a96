//! A campaign's records while it runs. A run counts as done only when its line is on the disk, so that a program that is ended
//! loses only the runs in progress. Memory holds the place of each line, and not the line.
//!
//! `unfinished.jsonl` begins with the campaign's manifest and grows in the order in which runs end. When all runs are done,
//! `records.jsonl` is written as a whole in the order of the campaign, then the manifest, and `unfinished.jsonl` is deleted; until then
//! older files in the directory are not changed. An incomplete last line, which a kill or a full disk can leave behind, is cut
//! off when the file is opened again; a damaged line is reported, and its run is made again.

use super::directory::{MANIFEST, Manifest, RECORDS};
use super::line::Key;
use super::places::{self, In, Place, Places};
use super::write::{make_directory, write_whole_by};
use super::write_whole;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
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
    /// The finished file, if lines of it belong to the campaign.
    records: Option<File>,
    /// The unfinished file, once there is something to write.
    unfinished: Option<Unfinished>,
    places: Places,
    /// True if the directory has exactly these records, in a finished file, and no others.
    is_finished: bool,
    damaged: Vec<String>,
}

/// The file that grows.
#[derive(Debug)]
struct Unfinished {
    file: File,
    /// Bytes that were written.
    length: u64,
    /// Bytes of them that are surely on the disk.
    synced: u64,
    /// The runs of the others.
    waiting: Vec<Key>,
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
        make_directory(directory)?;
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
        let there = if force { There::default() } else { There::find(directory, manifest)? };
        let mut store = Store {
            directory: directory.to_owned(),
            manifest: Manifest { complete: false, records: 0, ..manifest.clone() },
            _lock: lock,
            records: None,
            unfinished: None,
            places: Places::default(),
            is_finished: false,
            damaged: Vec::new(),
        };
        if let Some((file, manifest)) = there.records {
            let taken = store.take_over(&file)?;
            store.is_finished = manifest.complete
                && taken == manifest.records
                && taken == store.len()
                && manifest.failed_runs == 0
                && there.unfinished.is_none()
                && store.damaged.is_empty();
            store.records = Some(file);
        }
        // With `force` an unfinished campaign of before is not to be taken for this one.
        if force || there.unfinished.is_some() {
            store.begin(there.unfinished)?;
        }
        if !directory.join(MANIFEST).exists() {
            store.write(MANIFEST, &store.manifest)?;
        }
        Ok(store)
    }

    /// Takes the finished file's lines; how many.
    fn take_over(&mut self, file: &File) -> io::Result<usize> {
        let path = self.directory.join(RECORDS);
        let (places, damaged, mut taken) = (&mut self.places, &mut self.damaged, 0);
        let each = |offset, found: Result<(Key, &str), _>| {
            match found {
                Ok((key, line)) => {
                    places.put(key, Place { file: In::Records, offset, length: line.len() as u32 });
                    taken += 1;
                }
                Err(wrong) => damaged.push(told(&path, wrong)),
            }
            Ok(())
        };
        places::scan(file, 0, each).map_err(|error| named(&path, &error))?;
        Ok(taken)
    }

    /// Writes the unfinished file anew, with its head and the good lines of an `earlier` one, and opens it.
    fn begin(&mut self, earlier: Option<File>) -> io::Result<()> {
        let path = self.directory.join(UNFINISHED);
        let head = serde_json::to_string(&self.manifest)? + "\n";
        let (places, damaged) = (&mut self.places, &mut self.damaged);
        let mut length = head.len() as u64;
        let mut write = |out: &mut dyn Write| {
            out.write_all(head.as_bytes())?;
            let Some(earlier) = &earlier else { return Ok(()) };
            places::scan(earlier, 1, |_, found| {
                match found {
                    Ok((key, line)) => {
                        out.write_all(line.as_bytes())?;
                        out.write_all(b"\n")?;
                        places.put(key, Place { file: In::Unfinished, offset: length, length: line.len() as u32 });
                        length += line.len() as u64 + 1;
                    }
                    Err(wrong) => damaged.push(told(&path, wrong)),
                }
                Ok(())
            })
        };
        write_whole_by(&self.directory, UNFINISHED, |out| write(out)).map_err(|error| named(&path, &error))?;
        self.sync_names()?;
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(|error| named(&path, &error))?;
        self.unfinished = Some(Unfinished { file, length, synced: length, waiting: Vec::new() });
        Ok(())
    }

    /// New names survive a power cut only when the directory itself is on the disk.
    fn sync_names(&self) -> io::Result<()> {
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| named(&self.directory, &error))
    }

    fn write(&self, name: &str, manifest: &Manifest) -> io::Result<()> {
        let text = serde_json::to_string_pretty(manifest)?;
        write_whole(&self.directory, name, format!("{text}\n"))
            .map_err(|error| named(&self.directory.join(name), &error))
    }

    /// The manifest of the campaign, before its end.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Damaged records, whose runs are made again, one sentence each.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// True if the directory has these records already, finished.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// True if the record of the run is there.
    pub fn has(&self, key: &Key) -> bool {
        self.places.get(key).is_some()
    }

    /// The line of a run, without its newline.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn line(&self, key: &Key) -> io::Result<Option<String>> {
        self.places.get(key).map(|place| self.read(place)).transpose()
    }

    fn read(&self, place: Place) -> io::Result<String> {
        let (name, file) = match place.file {
            In::Records => (RECORDS, self.records.as_ref()),
            In::Unfinished => (UNFINISHED, self.unfinished.as_ref().map(|unfinished| &unfinished.file)),
        };
        let read = file.ok_or_else(|| io::ErrorKind::NotFound.into()).and_then(|file| places::read(file, place));
        read.map_err(|error| named(&self.directory.join(name), &error))
    }

    /// Every seed of which there is a run, ascending.
    pub fn seeds(&self) -> Vec<u64> {
        self.places.seeds()
    }

    /// Number of runs that are there.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there is no record of a run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the record of a run, `line` with its newline. It outlives this program from now on, and the machine's end from the
    /// next [`Store::sync`] on.
    ///
    /// # Errors
    /// Whatever the file system refuses; of the record nothing is left then.
    pub fn add(&mut self, key: Key, line: &str) -> io::Result<()> {
        if self.unfinished.is_none() {
            self.begin(None)?;
        }
        let path = self.directory.join(UNFINISHED);
        let Some(unfinished) = &mut self.unfinished else { return Ok(()) };
        let Unfinished { file, length, waiting, .. } = unfinished;
        // Something else wrote into it, or what a failed write left could not be cut off: places would be wrong.
        let end = file.seek(SeekFrom::End(0)).map_err(|error| named(&path, &error))?;
        if end != *length {
            let what =
                format!("it ends at byte {end} and the records at {length}; start again: whole records are kept");
            return Err(named(&path, &io::Error::other(what)));
        }
        if let Err(error) = file.write_all(line.as_bytes()) {
            // The error of the write is what matters.
            let _ = file.set_len(*length);
            return Err(named(&path, &error));
        }
        let place = Place { file: In::Unfinished, offset: *length, length: line.trim_end_matches('\n').len() as u32 };
        *length += line.len() as u64;
        waiting.push(key.clone());
        self.is_finished = false;
        self.places.put(key, place);
        Ok(())
    }

    /// Waits until all that was added is on the disk: the records of a chunk together, for a disk takes as long for one.
    ///
    /// # Errors
    /// Whatever the file system refuses; of the records since the last time nothing is left then.
    pub fn sync(&mut self) -> io::Result<()> {
        let Some(unfinished) = self.unfinished.as_mut().filter(|unfinished| unfinished.length > unfinished.synced)
        else {
            return Ok(());
        };
        let waiting = std::mem::take(&mut unfinished.waiting);
        if let Err(error) = unfinished.file.sync_data() {
            let _ = unfinished.file.set_len(unfinished.synced);
            unfinished.length = unfinished.synced;
            waiting.iter().for_each(|key| self.places.remove(key));
            return Err(named(&self.directory.join(UNFINISHED), &error));
        }
        unfinished.synced = unfinished.length;
        Ok(())
    }

    /// Lines in the order of `points`, and of seeds within.
    pub fn in_order<'a>(&'a self, points: &'a [String]) -> impl Iterator<Item = io::Result<String>> + 'a {
        points.iter().flat_map(|point| self.places.of_point(point)).map(|place| self.read(place))
    }

    /// Puts all records in place, in the order of `points`, and then the manifest, which is filled in from them.
    ///
    /// # Errors
    /// Whatever the file system refuses; the records so far stay.
    pub fn finish(self, points: &[String], manifest: &Manifest) -> io::Result<()> {
        // Of a campaign without other readings some points are not run at all.
        let seeds = points.iter().map(|point| self.places.of_point(point).count());
        let seeds: Vec<usize> = seeds.filter(|seeds| *seeds > 0).collect();
        let manifest = Manifest {
            complete: true,
            records: seeds.iter().sum(),
            points: seeds.len(),
            first_seed: self.seeds().first().copied().unwrap_or(manifest.first_seed),
            seeds: seeds.iter().min().map_or(0, |seeds| *seeds as u64),
            ..manifest.clone()
        };
        let write = |out: &mut dyn Write| self.in_order(points).try_for_each(|line| writeln!(out, "{}", line?));
        write_whole_by(&self.directory, RECORDS, |out| write(out))
            .map_err(|error| named(&self.directory.join(RECORDS), &error))?;
        self.write(MANIFEST, &manifest)?;
        self.sync_names()?;
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

fn told(path: &Path, (line, why): (usize, &str)) -> String {
    format!("{}:{line}: the record {why}; its run is made again", path.display())
}

/// Records of a campaign that a directory holds already.
#[derive(Default)]
struct There {
    /// The finished file, with the manifest beside it.
    records: Option<(File, Manifest)>,
    /// The unfinished one.
    unfinished: Option<File>,
}

impl There {
    /// Looks for records of the campaign of `manifest` in `directory`.
    fn find(directory: &Path, manifest: &Manifest) -> io::Result<There> {
        let occupied = |what: &str| {
            let message = format!("{} holds {what}; --force replaces it, --out writes elsewhere", directory.display());
            Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
        };
        let file = |name: &str| match File::open(directory.join(name)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(named(&directory.join(name), &error)),
        };
        let (records, unfinished) = (file(RECORDS)?, file(UNFINISHED)?);
        let beside = match Manifest::read(directory) {
            Ok(beside) => beside,
            Err(_) => return occupied("a manifest.json that cannot be read"),
        };
        let head = match &unfinished {
            Some(file) => {
                let mut line = Vec::new();
                BufReader::new(file)
                    .read_until(b'\n', &mut line)
                    .map_err(|error| named(&directory.join(UNFINISHED), &error))?;
                Some(serde_json::from_slice::<Manifest>(&line).ok())
            }
            None => None,
        };
        let fits = match (&head, &beside) {
            (Some(Some(head)), _) => head.same_campaign(manifest).map_err(|what| format!("the unfinished {what}")),
            (_, Some(beside)) => beside.same_campaign(manifest),
            (Some(None), None) => Err("an unfinished campaign that cannot be read".to_owned()),
            (None, None) if records.is_some() => Err("a records.jsonl without a manifest".to_owned()),
            (None, None) => Ok(()),
        };
        if let Err(what) = fits {
            return occupied(&what);
        }
        // Old records beside the unfinished ones of another campaign are about to be replaced.
        let records = records.zip(beside.filter(|beside| beside.same_campaign(manifest).is_ok()));
        Ok(There { records, unfinished })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::directory::Archive;
    use crate::record::line;

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
            rules: Vec::new(),
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
        store.sync().unwrap();
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
        assert_eq!(store.line(&key(1)).unwrap().as_deref(), Some(line(1).trim_end()));
        assert_eq!(store.line(&key(4)).unwrap(), None);
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
    fn nothing_is_added_behind_what_is_no_record() {
        let scratch = tempfile::tempdir().unwrap();
        let mut store = with(scratch.path(), &[1]);
        let mut file = OpenOptions::new().append(true).open(scratch.path().join(UNFINISHED)).unwrap();
        file.write_all(&line(2).as_bytes()[..9]).unwrap();
        let refused = store.add(key(3), &line(3)).unwrap_err().to_string();
        let whole = read(scratch.path(), UNFINISHED).len();
        let told = format!("it ends at byte {whole} and the records at {}", whole - 9);
        assert!(refused.contains("unfinished.jsonl") && refused.contains(&told), "{refused}");
        assert!(store.has(&key(1)) && !store.has(&key(3)));
        drop(store);
        let mut again = open(scratch.path()).unwrap();
        again.add(key(3), &line(3)).unwrap();
        assert_eq!(again.line(&key(3)).unwrap().as_deref(), Some(line(3).trim_end()));
        assert_eq!(again.len(), 2);
    }

    #[test]
    fn what_is_there_is_taken_over_or_refused_and_stays_until_it_is_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        with(scratch.path(), &[1]).finish(&points(), &manifest()).unwrap();
        // More seeds of the same campaign: what is there stays.
        let more = with(scratch.path(), &[2]);
        let both: Vec<String> = more.in_order(&points()).map(Result::unwrap).collect();
        assert_eq!(both, [1, 2].map(|seed| line(seed).trim_end().to_owned()), "one from each file");
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
