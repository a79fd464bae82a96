//! Records of a campaign while it runs. A run counts as done only when its line is on the disk, so
//! that a program that is killed loses only the runs in progress. Memory holds the place of each
//! line, but not the line.
//!
//! `unfinished.jsonl` begins with the campaign's manifest and grows in the order in which runs end.
//! When all runs are done, `records.jsonl` is written as a whole in the order of the campaign. Then
//! the manifest is written, and `unfinished.jsonl` is deleted. Until then older files in the
//! directory are not changed. A kill or a full disk can leave an incomplete last line, which is cut
//! off when the file is opened again. A damaged line is reported, and its run is repeated.
//!
//! The files that the scenarios name are kept beside the records ([`super::kept`]).
//!
//! A directory may hold runs of several scenarios ([`super::given`]). A record belongs to a point
//! of the current scenario if the same settings determine its run, even if its own scenario and
//! point have other names. Whenever the record is read from the store, it has the names of the
//! current scenario. Records of points that the current scenario does not name are kept, after the
//! others.

mod admission;
mod lock;
mod there;

use super::directory::{MANIFEST, Manifest, RECORDS, UNFINISHED};
use super::given::Given;
use super::line::{self, Key, Observed};
use super::places::{self, Found, In, Place, Places};
use super::write::{make_directory, write_whole_by};
use super::write_whole;
pub use admission::Admission;
use lock::Lock;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use there::{There, conflicting};

/// Directory of a campaign. It is locked, so that no other program works in it, unless it was
/// released ([`Store::release`]).
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    manifest: Manifest,
    lock: Lock,
    /// The finished file, if some of its lines belong to the campaign.
    records: Option<File>,
    /// The unfinished file; `None` until there is something to write.
    unfinished: Option<Unfinished>,
    places: Places,
    admission: Admission,
    /// True if records must say what each node lost and sent.
    needs_nodes: bool,
    /// True if the directory has exactly the records of this campaign, in a finished file, and no
    /// others.
    is_finished: bool,
    damaged: Vec<String>,
}

/// The unfinished file, to which lines are appended.
#[derive(Debug)]
struct Unfinished {
    file: File,
    /// Number of bytes written.
    length: u64,
    /// Number of bytes that are certainly on the disk.
    synced: u64,
    /// Runs whose lines were written but are not certainly on the disk.
    waiting: Vec<Key>,
}

impl Store {
    /// Opens `directory` for the campaign of `manifest`, creates it if necessary, and takes over
    /// the records that are there. The last source of the manifest is the current scenario. With
    /// `force`, no records are taken over; the existing ones are replaced when the new ones are
    /// complete.
    ///
    /// # Errors
    /// `AlreadyExists` if the directory has records that the campaign cannot extend, and `force` is
    /// not set; for example, if a point of the current scenario was run with other settings.
    /// `WouldBlock` if another process works in the directory. Also any error of the file system.
    /// Each error names the directory or the file, and leaves the records in the directory
    /// unchanged.
    pub fn open(directory: &Path, manifest: &Manifest, force: bool) -> io::Result<Store> {
        let named = |error: io::Error| named(directory, &error);
        let Some(given) = manifest.sources.last() else {
            return Err(named(io::Error::other("the manifest lists no scenario")));
        };
        make_directory(directory)?;
        let lock = Lock::take(directory)?;
        let There { records, unfinished, sources, replaces } =
            if force { There { replaces: true, ..There::default() } } else { There::find(directory, manifest)? };
        let admission = Admission::new(given, &sources);
        let is_last =
            sources.last().is_some_and(|last| last.is_same_scenario(given) && last.scenario == given.scenario);
        let mut all = sources;
        manifest.sources.iter().for_each(|given| Given::put(&mut all, given.clone()));
        let mut store = Store {
            directory: directory.to_owned(),
            manifest: Manifest { complete: false, records: 0, sources: all, replaces, ..manifest.clone() },
            lock,
            records: None,
            unfinished: None,
            places: Places::default(),
            admission,
            needs_nodes: false,
            is_finished: false,
            damaged: Vec::new(),
        };
        let taken = records.as_ref().map(|(file, _)| store.take_over(file, In::Records)).transpose()?;
        unfinished.as_ref().map_or(Ok(0), |file| store.take_over(file, In::Unfinished))?;
        if let Some((file, manifest)) = records {
            store.is_finished = manifest.complete
                && is_last
                && taken == Some(manifest.records)
                && taken == Some(store.len())
                && manifest.failed_runs == 0
                && unfinished.is_none()
                && !store.places.any_renamed()
                && store.damaged.is_empty();
            store.records = Some(file);
        }
        // With `force`, an older unfinished campaign must not be mistaken for this one.
        if force || unfinished.is_some() {
            store.begin(unfinished)?;
        }
        if !directory.join(MANIFEST).exists() {
            store.write(MANIFEST, &store.manifest)?;
        }
        let kept = store.manifest.sources.iter().try_for_each(|given| given.keep_files(directory));
        kept.map_err(named)?;
        Ok(store)
    }

    /// Takes over the lines of a file. Returns the number of complete lines that are not damaged.
    fn take_over(&mut self, file: &File, within: In) -> io::Result<usize> {
        let path = self.directory.join(within.name());
        // The first line of the unfinished file is its head, which is no record.
        let skipped = usize::from(within == In::Unfinished);
        let (places, damaged, admission, mut taken) = (&mut self.places, &mut self.damaged, &self.admission, 0);
        let directory = &self.directory;
        // Lines of one point often follow each other, so the result for the last point is cached.
        let mut last: Option<(String, String)> = None;
        let each = |found: Result<Found, _>| {
            match found {
                Ok(Found { key: (own, seed), scenario, mut place }) => {
                    let key = match &last {
                        Some((known, key)) if *known == own => key.clone(),
                        _ => admission.admit(&own).map_err(|what| conflicting(directory, &what))?,
                    };
                    place.is_renamed = key != own || admission.names(&key) && scenario != admission.scenario();
                    places.put((key.clone(), seed), place);
                    last = Some((own, key));
                    taken += 1;
                }
                Err((line, why)) => {
                    damaged.push(format!("{}:{line}: the record {why}; its run is repeated", path.display()));
                }
            }
            Ok(())
        };
        places::scan(file, within, skipped, each).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => error,
            _ => named(&path, &error),
        })?;
        Ok(taken)
    }

    /// Writes a new unfinished file and opens it. It begins with the head and contains the
    /// undamaged lines of `earlier`, if that is given.
    fn begin(&mut self, earlier: Option<File>) -> io::Result<()> {
        let path = self.directory.join(UNFINISHED);
        let head = serde_json::to_string(&self.manifest)? + "\n";
        let mut length = head.len() as u64;
        let mut places = self.places.in_file(In::Unfinished);
        let mut write = |out: &mut dyn Write| {
            out.write_all(head.as_bytes())?;
            for place in &mut places {
                let Some(earlier) = &earlier else { break };
                let line = places::read(earlier, **place)? + "\n";
                out.write_all(line.as_bytes())?;
                place.offset = length;
                length += line.len() as u64;
            }
            Ok(())
        };
        write_whole_by(&self.directory, UNFINISHED, |out| write(out)).map_err(|error| named(&path, &error))?;
        self.sync_names()?;
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(|error| named(&path, &error))?;
        self.unfinished = Some(Unfinished { file, length, synced: length, waiting: Vec::new() });
        Ok(())
    }

    /// Writes the directory itself to the disk. Without that, new names of files may not survive a
    /// power failure.
    fn sync_names(&self) -> io::Result<()> {
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| named(&self.directory, &error))
    }

    fn write(&self, name: &str, manifest: &Manifest) -> io::Result<()> {
        let text = serde_json::to_string_pretty(manifest)?;
        write_whole(&self.directory, name, format!("{text}\n"))
            .map_err(|error| named(&self.directory.join(name), &error))
    }

    /// Lets other programs work in the directory until [`Store::resume`]. Records can still be read
    /// meanwhile.
    pub fn release(&mut self) {
        self.lock.release(&self.directory);
    }

    /// Locks the directory again after [`Store::release`]. This is necessary before records are
    /// added.
    ///
    /// # Errors
    /// `WouldBlock` if another process works in the directory. Also an error if the records have
    /// changed since the directory was released.
    pub fn resume(&mut self) -> io::Result<()> {
        self.lock.resume(&self.directory)
    }

    /// Returns the manifest of the campaign in its state before the campaign ends.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns one sentence for each damaged record. The runs of these records are repeated.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// True if the directory already has exactly these records, in a finished file.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// From now on a record counts only if it says what each node lost and sent.
    pub fn require_nodes(&mut self) {
        self.needs_nodes = true;
    }

    /// True if there is a record of the run that has all additional data that the campaign
    /// requires.
    pub fn has(&self, key: &Key) -> bool {
        let wanted = Observed { nodes: self.needs_nodes, ..self.admission.observed(&key.0) };
        self.places.get(key).is_some_and(|place| place.observed.covers(wanted))
    }

    /// True if there is a record of the run, but it lacks some of the required additional data.
    pub fn lacks(&self, key: &Key) -> bool {
        self.places.get(key).is_some() && !self.has(key)
    }

    /// Creates the rules by which records of these scenarios are assigned to points, see
    /// [`Admission::admit`].
    pub fn admission_of(&self, sources: &[Given]) -> Admission {
        Admission::new(self.admission.given(), sources)
    }

    /// Returns the line of a run, without its newline; `None` if there is no record.
    ///
    /// # Errors
    /// If the line cannot be read.
    pub fn line(&self, key: &Key) -> io::Result<Option<String>> {
        self.places.get(key).map(|place| self.read(&key.0, place)).transpose()
    }

    /// Returns the line of a record of a point, with the names that the current scenario uses. The
    /// line is unchanged if the current scenario does not have the point.
    ///
    /// # Errors
    /// If the line is no record.
    pub fn today(&self, point: &str, line: &str) -> io::Result<String> {
        if self.admission.names(point) { self.renamed(point, line) } else { Ok(line.to_owned()) }
    }

    fn renamed(&self, point: &str, line: &str) -> io::Result<String> {
        let renamed = line::renamed(line, self.admission.scenario(), point);
        renamed.map_err(|why| io::Error::other(format!("the record {why}")))
    }

    /// Reads the line at a place of a point, with the names that the current scenario uses.
    fn read(&self, point: &str, place: Place) -> io::Result<String> {
        let file = match place.file {
            In::Records => self.records.as_ref(),
            In::Unfinished => self.unfinished.as_ref().map(|unfinished| &unfinished.file),
        };
        let line = file.ok_or_else(|| io::ErrorKind::NotFound.into()).and_then(|file| places::read(file, place));
        let line = line.and_then(|line| if place.is_renamed { self.renamed(point, &line) } else { Ok(line) });
        line.map_err(|error| named(&self.directory.join(place.file.name()), &error))
    }

    /// Number of runs that have a record.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if no run has a record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the record of a run; `line` includes its newline. From now on the record survives the
    /// end of this program. It survives a crash of the machine after the next [`Store::sync`].
    ///
    /// # Errors
    /// Any error of the file system. Nothing of the record remains in the file then.
    pub fn add(&mut self, key: Key, line: &str) -> io::Result<()> {
        if self.unfinished.is_none() {
            self.begin(None)?;
        }
        let path = self.directory.join(UNFINISHED);
        let Some(unfinished) = &mut self.unfinished else { return Ok(()) };
        let Unfinished { file, length, waiting, .. } = unfinished;
        // If the length differs, another program wrote into the file, or the rest of a failed write
        // could not be cut off. The places of further lines would be wrong.
        let end = file.seek(SeekFrom::End(0)).map_err(|error| named(&path, &error))?;
        if end != *length {
            let what = format!(
                "it ends at byte {end}, but the records end at {length}; run the command again: complete records are kept"
            );
            return Err(named(&path, &io::Error::other(what)));
        }
        if let Err(error) = file.write_all(line.as_bytes()) {
            // The error of the write is the one to report, so an error of this call is ignored.
            let _ = file.set_len(*length);
            return Err(named(&path, &error));
        }
        let wanted = Observed { nodes: self.needs_nodes, ..self.admission.observed(&key.0) };
        let length_of_line = line.trim_end_matches('\n').len() as u32;
        let place = Place {
            file: In::Unfinished,
            offset: *length,
            length: length_of_line,
            observed: wanted,
            is_renamed: false,
        };
        *length += line.len() as u64;
        waiting.push(key.clone());
        self.is_finished = false;
        self.places.put(key, place);
        Ok(())
    }

    /// Waits until all records that were added are on the disk. It is called once for the records
    /// of a chunk, because writing one record to the disk takes as long as writing many.
    ///
    /// # Errors
    /// Any error of the file system. None of the records since the last successful call is kept
    /// then.
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

    /// Returns all lines. Those of `points` come first in the given order, and those of other
    /// points follow in the order of the files. Lines of one point have ascending seeds.
    pub fn in_order<'a>(&'a self, points: &'a [String]) -> impl Iterator<Item = io::Result<String>> + 'a {
        let named: BTreeSet<&str> = points.iter().map(String::as_str).collect();
        let others = self.places.points().into_iter().filter(move |point| !named.contains(point));
        let all = points.iter().map(String::as_str).chain(others);
        all.flat_map(move |point| self.places.of_point(point).map(move |(_, place)| self.read(point, place)))
    }

    /// Writes the file of all records, those of `points` first and in their order, and then the
    /// manifest. Fields of the manifest that count records are derived from the records.
    ///
    /// # Errors
    /// Any error of the file system. The records made so far are kept.
    pub fn finish(self, points: &[String], manifest: &Manifest) -> io::Result<()> {
        // A campaign without other readings does not run some of its points.
        let of_point = |point: &String| self.places.of_point(point).map(|(seed, _)| seed).collect::<Vec<u64>>();
        let seeds: Vec<Vec<u64>> = points.iter().map(of_point).filter(|seeds| !seeds.is_empty()).collect();
        let manifest = Manifest {
            complete: true,
            records: self.len(),
            points: seeds.len(),
            first_seed: seeds.iter().flatten().min().copied().unwrap_or(manifest.first_seed),
            seeds: seeds.iter().map(Vec::len).min().unwrap_or(0) as u64,
            sources: self.manifest.sources.clone(),
            replaces: false,
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

impl In {
    /// Name of the file.
    fn name(self) -> &'static str {
        match self {
            In::Records => RECORDS,
            In::Unfinished => UNFINISHED,
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
pub(super) mod tests;
