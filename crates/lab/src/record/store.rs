//! A campaign's records while it runs. A run counts as done only when its line is on the disk, so that a program that is ended
//! loses only the runs in progress. Memory holds the place of each line, and not the line.
//!
//! `unfinished.jsonl` begins with the campaign's manifest and grows in the order in which runs end. When all runs are done,
//! `records.jsonl` is written as a whole in the order of the campaign, then the manifest, and `unfinished.jsonl` is deleted; until then
//! older files in the directory are not changed. An incomplete last line, which a kill or a full disk can leave behind, is cut
//! off when the file is opened again; a damaged line is reported, and its run is made again.
//!
//! The files that the scenarios name are kept beside the records ([`super::kept`]).
//!
//! A directory may hold runs of several scenarios ([`super::given`]). A record belongs to a point of today's scenario if the same
//! settings decide its run, whatever its own scenario and point are called; it is called as today's scenario calls it
//! whenever it is read from here. Records of points that today's scenario does not name stay, behind the others.

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

/// A campaign's directory. No other program works in it unless it was released ([`Store::release`]).
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    manifest: Manifest,
    lock: Lock,
    /// The finished file, if lines of it belong to the campaign.
    records: Option<File>,
    /// The unfinished file, once there is something to write.
    unfinished: Option<Unfinished>,
    places: Places,
    admission: Admission,
    /// True if records need what each node lost and sent.
    needs_nodes: bool,
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
    /// Opens `directory`, creating it if need be, for the campaign of `manifest`, the last of whose sources is today's scenario, and takes
    /// over the records that are there. With `force` it takes over none; those that are there are replaced when the new ones are complete.
    ///
    /// # Errors
    /// `AlreadyExists` if a record there belongs to a point of today's scenario and was made with other settings, and `force` is not
    /// set; `WouldBlock` if another process works in the directory; and whatever the file system refuses. Each names the directory or
    /// the file. Nothing in the directory has changed then.
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
        // With `force` an unfinished campaign of before is not to be taken for this one.
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

    /// Takes the lines of a file; how many.
    fn take_over(&mut self, file: &File, within: In) -> io::Result<usize> {
        let path = self.directory.join(within.name());
        // The first line of the unfinished file is its head.
        let skipped = usize::from(within == In::Unfinished);
        let (places, damaged, admission, mut taken) = (&mut self.places, &mut self.damaged, &self.admission, 0);
        let directory = &self.directory;
        // Lines of one point often stand one after the other.
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
                    damaged.push(format!("{}:{line}: the record {why}; its run is made again", path.display()));
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

    /// Writes the unfinished file anew, with its head and the good lines of an `earlier` one, and opens it.
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

    /// Lets other programs work in the directory until [`Store::resume`]. Records can be read meanwhile.
    pub fn release(&mut self) {
        self.lock.release(&self.directory);
    }

    /// Locks the directory again after [`Store::release`], before anything is added.
    ///
    /// # Errors
    /// `WouldBlock` if another process works in the directory; and if its records have changed since it was released.
    pub fn resume(&mut self) -> io::Result<()> {
        self.lock.resume(&self.directory)
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

    /// From now on a record counts only if it has what each node lost and sent.
    pub fn require_nodes(&mut self) {
        self.needs_nodes = true;
    }

    /// True if the record of the run is there, with everything that is to be observed in it.
    pub fn has(&self, key: &Key) -> bool {
        let wanted = Observed { nodes: self.needs_nodes, ..self.admission.observed(&key.0) };
        self.places.get(key).is_some_and(|place| place.observed.covers(wanted))
    }

    /// True if the record of the run is there, and lacks something that is to be observed in it.
    pub fn lacks(&self, key: &Key) -> bool {
        self.places.get(key).is_some() && !self.has(key)
    }

    /// Where a record of these scenarios belongs, see [`Admission::admit`].
    pub fn admission_of(&self, sources: &[Given]) -> Admission {
        Admission::new(self.admission.given(), sources)
    }

    /// The line of a run, without its newline.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn line(&self, key: &Key) -> io::Result<Option<String>> {
        self.places.get(key).map(|place| self.read(&key.0, place)).transpose()
    }

    /// The line of a record of a point, as today's scenario calls both if it has the point.
    ///
    /// # Errors
    /// If it is no record.
    pub fn today(&self, point: &str, line: &str) -> io::Result<String> {
        if self.admission.names(point) { self.renamed(point, line) } else { Ok(line.to_owned()) }
    }

    fn renamed(&self, point: &str, line: &str) -> io::Result<String> {
        let renamed = line::renamed(line, self.admission.scenario(), point);
        renamed.map_err(|why| io::Error::other(format!("the record {why}")))
    }

    /// The line at a place of a point, as today's scenario calls it.
    fn read(&self, point: &str, place: Place) -> io::Result<String> {
        let file = match place.file {
            In::Records => self.records.as_ref(),
            In::Unfinished => self.unfinished.as_ref().map(|unfinished| &unfinished.file),
        };
        let line = file.ok_or_else(|| io::ErrorKind::NotFound.into()).and_then(|file| places::read(file, place));
        let line = line.and_then(|line| if place.is_renamed { self.renamed(point, &line) } else { Ok(line) });
        line.map_err(|error| named(&self.directory.join(place.file.name()), &error))
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

    /// All lines: those of `points` in their order, the others in the order of their arrival; of each point in the order of seeds.
    pub fn in_order<'a>(&'a self, points: &'a [String]) -> impl Iterator<Item = io::Result<String>> + 'a {
        let named: BTreeSet<&str> = points.iter().map(String::as_str).collect();
        let others = self.places.points().into_iter().filter(move |point| !named.contains(point));
        let all = points.iter().map(String::as_str).chain(others);
        all.flat_map(move |point| self.places.of_point(point).map(move |(_, place)| self.read(point, place)))
    }

    /// Puts all records in place, those of `points` first and in their order, and then the manifest, which is filled in from them.
    ///
    /// # Errors
    /// Whatever the file system refuses; the records so far stay.
    pub fn finish(self, points: &[String], manifest: &Manifest) -> io::Result<()> {
        // Of a campaign without other readings some points are not run at all.
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
