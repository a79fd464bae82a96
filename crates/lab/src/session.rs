//! One session of a campaign. It knows which runs are missing, where records are kept, which runs
//! failed, and how the campaign ends.
//!
//! Records are kept in memory or in a directory ([`Store`]). In a directory, every record is on
//! disk before its run counts as done. The next session reuses the records that an interruption or
//! a full disk has left. [`Session::finish`] puts the records in order.

use crate::backend::{Backend, End, Watch};
use crate::campaign::{Campaign, Run, Work};
use crate::record::Record;
use crate::record::directory::Manifest;
use crate::record::line::Key;
use crate::record::store::Store;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A campaign with its records so far.
#[derive(Debug)]
pub struct Session {
    campaign: Arc<Campaign>,
    /// Key of each point.
    keys: Vec<String>,
    /// Cost of a run of each point, seconds of CPU time.
    costs: Vec<f64>,
    records: Records,
    /// Reasons of the failed runs, by their positions in the campaign.
    failed: BTreeMap<usize, String>,
    /// Time during which runs were made, seconds.
    wall_time_s: f64,
}

/// Where the records are kept.
#[derive(Debug)]
enum Records {
    /// Lines without their newlines.
    Memory(BTreeMap<Key, String>),
    Directory(Box<Store>),
    /// The directory is finished: it has the records in order and is closed.
    Finished,
}

/// Receiver of reports while runs are made.
pub trait Observer {
    /// Reports that runs have ended. Their records are not kept yet.
    ///
    /// # Errors
    /// The reason why the records must not be kept. This ends the session.
    fn on_made(&mut self, _campaign: &Campaign, _made: &[(Run, Result<Record, String>)]) -> io::Result<()> {
        Ok(())
    }

    /// Reports that the records of these runs are kept, except those of failed runs.
    ///
    /// # Errors
    /// The reason to end the session. The records are kept.
    fn on_kept(&mut self, session: &mut Session, runs: &[Run], work: Work) -> io::Result<()>;

    /// Called about every 0.1 s.
    fn on_idle(&mut self) {}
}

/// Reason why runs are missing.
#[derive(Debug)]
pub enum Broken {
    /// The session was stopped.
    Stopped {
        /// Number of runs that have records.
        kept: usize,
    },
    /// Records cannot be kept, the observer ended the session, or the backend makes no more runs.
    Io(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Io(error)
    }
}

impl Session {
    /// Creates a session that keeps its records in memory.
    pub fn in_memory(campaign: Arc<Campaign>) -> Session {
        Session::of(campaign, Records::Memory(BTreeMap::new()))
    }

    /// Creates a session that keeps its records in `directory`. Records of an earlier session are
    /// reused unless `force`.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(campaign: Arc<Campaign>, directory: &Path, manifest: &Manifest, force: bool) -> io::Result<Session> {
        let store = Store::open(directory, manifest, force)?;
        Ok(Session::of(campaign, Records::Directory(Box::new(store))))
    }

    fn of(campaign: Arc<Campaign>, records: Records) -> Session {
        let (keys, costs) = (campaign.keys(), campaign.costs());
        Session { campaign, keys, costs, records, failed: BTreeMap::new(), wall_time_s: 0.0 }
    }

    /// Campaign of the session.
    pub fn campaign(&self) -> &Campaign {
        &self.campaign
    }

    /// Keys of the campaign's points.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Directory of the session, if it has one and has not finished it.
    pub fn store(&self) -> Option<&Store> {
        match &self.records {
            Records::Directory(store) => Some(store),
            Records::Memory(_) | Records::Finished => None,
        }
    }

    /// Requires of each record that it has what each node lost and sent. Other records do not count
    /// from now on.
    pub fn require_nodes(&mut self) {
        if let Records::Directory(store) = &mut self.records {
            store.require_nodes();
        }
    }

    /// Number of `runs` whose records exist but lack something that is to be observed in them.
    /// These runs are made again.
    pub fn lacking(&self, runs: &[Run]) -> usize {
        let lacks = |run: &&Run| self.store().is_some_and(|store| store.lacks(&run.key(&self.keys)));
        runs.iter().filter(lacks).count()
    }

    /// True if this session has finished and closed its directory.
    pub fn is_finished(&self) -> bool {
        matches!(self.records, Records::Finished)
    }

    /// True if a run has a record.
    pub fn has(&self, run: Run) -> bool {
        match &self.records {
            Records::Memory(lines) => lines.contains_key(&run.key(&self.keys)),
            Records::Directory(store) => store.has(&run.key(&self.keys)),
            Records::Finished => true,
        }
    }

    /// Line of a run without its newline. `None` if there is no record, or if the session has
    /// finished its directory.
    ///
    /// # Errors
    /// The line cannot be read.
    pub fn line(&self, run: Run) -> io::Result<Option<String>> {
        let key = run.key(&self.keys);
        match &self.records {
            Records::Memory(lines) => Ok(lines.get(&key).cloned()),
            Records::Directory(store) => store.line(&key),
            Records::Finished => Ok(None),
        }
    }

    /// Line of a run, as [`Session::line`]. A session in memory drops the line.
    ///
    /// # Errors
    /// The line cannot be read.
    pub fn take(&mut self, run: Run) -> io::Result<Option<String>> {
        match &mut self.records {
            Records::Memory(lines) => Ok(lines.remove(&run.key(&self.keys))),
            _ => self.line(run),
        }
    }

    /// Lines of all runs that have records, in the order of the campaign.
    ///
    /// # Errors
    /// A line cannot be read.
    pub fn lines(&self) -> io::Result<Vec<String>> {
        self.campaign.all().filter_map(|run| self.line(run).transpose()).collect()
    }

    /// Splits `runs` into those that have records and those that are missing.
    pub fn partition(&self, runs: impl IntoIterator<Item = Run>) -> (Vec<Run>, Vec<Run>) {
        runs.into_iter().partition(|run| self.has(*run))
    }

    /// Estimated cost of `runs`.
    pub fn work(&self, runs: &[Run]) -> Work {
        Work::of(runs, &self.costs)
    }

    /// Positions of the runs that failed when runs were made last, each with the reason.
    pub fn failed(&self) -> &BTreeMap<usize, String> {
        &self.failed
    }

    /// Lets other programs work in the directory until [`Session::resume`]. Records can still be
    /// read in the meantime.
    pub fn release(&mut self) {
        if let Records::Directory(store) = &mut self.records {
            store.release();
        }
    }

    /// Locks the directory again after [`Session::release`], before runs are made.
    ///
    /// # Errors
    /// `WouldBlock` if another process works in the directory. Also fails if the records have
    /// changed since the directory was released.
    pub fn resume(&mut self) -> io::Result<()> {
        if let Records::Directory(store) = &mut self.records { store.resume() } else { Ok(()) }
    }

    /// Makes the runs of `todo` with `backend` and keeps the records. A record that exists already
    /// is not replaced. Returns how many runs failed.
    ///
    /// # Errors
    /// The reason why not all runs were made. Records that were made until then are kept.
    pub fn make(
        &mut self,
        todo: Vec<Run>,
        backend: &mut dyn Backend,
        observer: &mut dyn Observer,
    ) -> Result<usize, Broken> {
        #[expect(clippy::disallowed_methods, reason = "wall time for the manifest, never for a record")]
        let begun = Instant::now();
        self.failed.clear();
        let campaign = Arc::clone(&self.campaign);
        let end = backend.make(&campaign, todo, &mut Keeper { session: self, observer });
        self.wall_time_s += begun.elapsed().as_secs_f64();
        match (end?, &self.records) {
            (End::Complete, _) => Ok(self.failed.len()),
            (End::Stopped, Records::Directory(store)) => Err(Broken::Stopped { kept: store.len() }),
            (End::Stopped, _) => Err(Broken::Stopped { kept: 0 }),
        }
    }

    /// Puts the records of a directory in order and closes it. The manifest says that `jobs` runs
    /// were made at a time. A directory that was finished before and a session in memory do not
    /// change.
    ///
    /// # Errors
    /// Any error of the file system. The records so far are kept.
    pub fn finish(&mut self, jobs: usize) -> io::Result<()> {
        if self.store().is_none() {
            return Ok(());
        }
        match std::mem::replace(&mut self.records, Records::Finished) {
            Records::Directory(store) if !store.is_finished() => {
                let manifest = Manifest {
                    jobs,
                    failed_runs: self.failed.len(),
                    wall_time_s: self.wall_time_s,
                    ..store.manifest().clone()
                };
                store.finish(&self.keys, &manifest)
            }
            _ => Ok(()),
        }
    }
}

/// Receiver of the backend's reports that keeps the records.
struct Keeper<'a> {
    session: &'a mut Session,
    observer: &'a mut dyn Observer,
}

impl Watch for Keeper<'_> {
    fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()> {
        let session = &mut *self.session;
        self.observer.on_made(&session.campaign, &made)?;
        let runs: Vec<Run> = made.iter().map(|(run, _)| *run).collect();
        for (run, result) in made {
            match (result, &mut session.records) {
                (Err(why), _) => drop(session.failed.insert(run.index, why)),
                (Ok(record), Records::Memory(lines)) => {
                    lines.insert(run.key(&session.keys), record.json_line().trim_end().to_owned());
                }
                (Ok(record), Records::Directory(store)) => {
                    let key = run.key(&session.keys);
                    if !store.has(&key) {
                        store.add(key, &record.json_line())?;
                    }
                }
                (Ok(_), Records::Finished) => {}
            }
        }
        if let Records::Directory(store) = &mut session.records {
            store.sync()?;
        }
        let work = session.work(&runs);
        self.observer.on_kept(session, &runs, work)
    }

    fn on_idle(&mut self) {
        self.observer.on_idle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Threads;
    use crate::campaign;
    use crate::record::directory::RECORDS;
    use meshpace_scenario::{Scenario, Source};

    /// Campaign of two points with two seeds each.
    fn campaign() -> Arc<Campaign> {
        let text = "duration = '2 s'\n[[flow]]\n[sweep]\n\"topology.hops\" = [1, 2]\n".to_owned();
        let source = Source { name: "test".to_owned(), text, sets: Vec::new() };
        let scenario = Scenario::read(source, Path::new("."), "test").unwrap();
        Arc::new(Campaign { scenario, first_seed: 1, seeds: 2 })
    }

    /// Observer that counts runs and ends the session when `most` are kept.
    struct Counting {
        most: usize,
        made: usize,
        kept: usize,
    }

    impl Counting {
        fn until(most: usize) -> Counting {
            Counting { most, made: 0, kept: 0 }
        }
    }

    impl Observer for Counting {
        fn on_made(&mut self, _campaign: &Campaign, made: &[(Run, Result<Record, String>)]) -> io::Result<()> {
            self.made += made.len();
            if self.kept >= self.most { Err(io::Error::other("enough")) } else { Ok(()) }
        }

        fn on_kept(&mut self, session: &mut Session, runs: &[Run], work: Work) -> io::Result<()> {
            assert!(runs.iter().all(|run| session.has(*run) || session.failed().contains_key(&run.index)));
            assert_eq!((work.runs, session.work(runs)), (runs.len(), work));
            self.kept += runs.len();
            Ok(())
        }
    }

    /// Makes the missing runs with one thread, one after the other.
    fn make(session: &mut Session, observer: &mut Counting) -> Result<usize, Broken> {
        let (_, todo) = session.partition(session.campaign().all());
        let stop = Arc::default();
        for run in todo {
            session.make(vec![run], &mut Threads::new(1, &stop), observer)?;
        }
        Ok(session.failed().len())
    }

    #[test]
    fn a_session_goes_on_where_another_was_ended_and_leaves_the_same_bytes() {
        let scratch = tempfile::tempdir().unwrap();
        let (campaign, whole, parts) = (campaign(), scratch.path().join("whole"), scratch.path().join("parts"));
        let manifest = campaign.manifest(1);
        let open = |place: &Path| Session::open(Arc::clone(&campaign), place, &manifest, false).unwrap();
        let mut session = open(&whole);
        let mut all = Counting::until(4);
        assert_eq!((make(&mut session, &mut all).unwrap(), all.made), (0, 4));
        session.finish(1).unwrap();

        let mut session = open(&parts);
        let ended = make(&mut session, &mut Counting::until(1)).unwrap_err();
        assert!(matches!(ended, Broken::Io(error) if error.to_string() == "enough"));
        drop(session);
        let mut session = open(&parts);
        assert_eq!(session.partition(campaign.all()).0.len(), 1, "what came after the end is not kept");
        let mut rest = Counting::until(4);
        assert_eq!((make(&mut session, &mut rest).unwrap(), rest.made), (0, 3));
        let lines = session.lines().unwrap();
        session.finish(1).unwrap();
        assert!(session.has(campaign.run(0)) && session.store().is_none(), "the directory is free for others");

        let read = |place: &Path| std::fs::read_to_string(place.join(RECORDS)).unwrap();
        assert_eq!(read(&parts), read(&whole));
        assert_eq!(read(&whole), lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    #[test]
    fn a_stop_says_how_many_runs_are_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let campaign = campaign();
        let manifest = campaign.manifest(1);
        let mut session = Session::open(Arc::clone(&campaign), scratch.path(), &manifest, false).unwrap();
        let stop = Arc::default();
        let mut threads = Threads::new(1, &stop);
        session.make(vec![campaign.run(2)], &mut threads, &mut Counting::until(4)).unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let ended = session.make(vec![campaign.run(3)], &mut threads, &mut Counting::until(4));
        assert!(matches!(ended, Err(Broken::Stopped { kept: 1 })), "{ended:?}");
    }

    #[test]
    fn a_run_that_failed_is_named_and_memory_gives_up_what_is_taken() {
        let campaign = campaign();
        let mut session = Session::in_memory(Arc::clone(&campaign));
        let stop = Arc::default();
        let simulate = |point: &meshpace_scenario::Point, run: Run| {
            assert!(run.index != 2, "run two is broken");
            campaign::simulate(point, run)
        };
        let mut threads = Threads { jobs: 2, stop: &stop, simulate: Arc::new(simulate) };
        let failed = session.make(campaign.all().collect(), &mut threads, &mut Counting::until(4)).unwrap();
        let told: Vec<_> = session.failed().iter().map(|(place, why)| (*place, why.as_str())).collect();
        assert_eq!((failed, told), (1, vec![(2, "run two is broken")]));
        assert_eq!(session.lines().unwrap().len(), 3);
        let line = session.take(campaign.run(0)).unwrap().unwrap();
        assert_eq!(Record::from_line(&line).unwrap().seed, 1);
        assert_eq!((session.take(campaign.run(0)).unwrap(), session.take(campaign.run(2)).unwrap()), (None, None));
        assert_eq!(session.lines().unwrap().len(), 2);
    }
}
