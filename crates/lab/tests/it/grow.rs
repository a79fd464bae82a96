//! Tests that a directory of records follows its scenario: after any edit, its records are those of
//! a new run of the edited file, or the edit is refused and the directory is unchanged. A new run
//! is the reference.

use meshpace_core::rng::{Purpose, Rng};
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::{Campaign, Run, Work};
use meshpace_lab::record::directory::{MANIFEST, Manifest, RECORDS};
use meshpace_lab::record::line;
use meshpace_lab::record::rules::Rule;
use meshpace_lab::session::{Observer, Session};
use meshpace_scenario::{Scenario, Source};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Number of edits in a normal run, and with `MESHPACE_SLOW=1`.
const EDITS: [usize; 2] = [60, 500];

/// A scenario that is edited: five nodes of a map in a row, and flows from the first to some of the
/// others.
#[derive(Clone)]
struct Draft {
    title: Option<u64>,
    comments: u64,
    plot: bool,
    /// Duration in milliseconds, and the notation in which it is written.
    duration: (u64, u64),
    /// Durations that are swept in addition to the points.
    durations: Vec<u64>,
    segment: Option<u64>,
    series: Option<u64>,
    transport: &'static str,
    /// Name of the map, as a number.
    map: u64,
    /// Distance in metres by which the last node is moved.
    moved: u64,
    /// Destinations of the flow, which are the points of the sweep.
    ends: Vec<u64>,
    first_seed: u64,
    seeds: u64,
    /// Constant of a pacing rule in another language.
    rule: u64,
    /// Bit mask of the entries of [`DEFAULTS`] that are written.
    defaults: u64,
    /// True if the default of a key is the only value of a sweep.
    is_default_swept: bool,
}

/// Keys with their defaults, and the table that contains them.
const DEFAULTS: [(&str, &str); 6] = [
    ("", "warmup = '0 s'\n"),
    ("[topology]\n", "allow_partition = false\n"),
    ("[[flow]]\n", "traffic = 'ftp'\ncount = 1\n"),
    ("[radio]\n", "rate = '2e3 kbit/s'\nrts_cts = true\n"),
    ("[mac]\n", "profile = 'ns2'\nshort_retry_limit = 7\n"),
    ("[link]\n", "queue = { kind = 'drop-tail' }\nrepeat_gap = '0.025 s'\n"),
];

/// Kinds of edits.
const KINDS: [&str; 15] = [
    "comment",
    "title",
    "plot",
    "units",
    "value",
    "key",
    "file",
    "name of the file",
    "rule",
    "seeds",
    "points",
    "sweep",
    "series",
    "default",
    "swept default",
];
/// Kinds of edits that change no run: they are never refused and cause no runs.
const FREE: [&str; 6] = ["comment", "title", "plot", "units", "name of the file", "default"];

impl Draft {
    fn new() -> Draft {
        Draft {
            title: None,
            comments: 0,
            plot: false,
            duration: (400, 0),
            durations: Vec::new(),
            segment: None,
            series: None,
            transport: "newreno",
            map: 0,
            moved: 0,
            ends: vec![1, 3],
            first_seed: 1,
            seeds: 2,
            rule: 1,
            defaults: 0,
            is_default_swept: false,
        }
    }

    fn edit(&mut self, kind: &str, random: &mut Rng) {
        match kind {
            "comment" => self.comments += 1,
            "title" => self.title = Some(random.below(1000)),
            "plot" => self.plot = !self.plot,
            "units" => self.duration.1 = (self.duration.1 + 1 + random.below(2)) % 3,
            "value" if random.below(2) == 0 => self.duration.0 = 300 + random.below(4) * 50,
            "value" => self.transport = ["newreno", "tcp-ap", "cubic"][random.below(3) as usize],
            "key" => self.segment = if self.segment.is_some() { None } else { Some(500 + random.below(100)) },
            "file" => self.moved = random.below(20),
            "name of the file" => self.map = random.below(1000),
            "rule" => self.rule = random.below(3),
            "seeds" => (self.first_seed, self.seeds) = (1 + random.below(2), 1 + random.below(3)),
            "points" => {
                let mut ends = vec![1, 2, 3, 4];
                for place in 0..ends.len() {
                    ends.swap(place, place + random.below((4 - place) as u64) as usize);
                }
                ends.truncate(1 + random.below(4) as usize);
                self.ends = ends;
            }
            "sweep" if self.durations.is_empty() => self.durations = vec![self.duration.0, 300 + random.below(4) * 50],
            "sweep" => self.durations.clear(),
            "series" => self.series = if self.series.is_some() { None } else { Some(100) },
            "default" => self.defaults ^= 1 << random.below(DEFAULTS.len() as u64),
            "swept default" => self.is_default_swept = !self.is_default_swept,
            _ => unreachable!("{kind}"),
        }
        let mut seen = BTreeSet::new();
        self.durations.retain(|duration| seen.insert(*duration));
    }

    fn text(&self) -> String {
        let time = |ms: u64| match self.duration.1 {
            0 => format!("'{ms} ms'"),
            1 => format!("\"0.{ms:03} s\""),
            _ => format!("'{}us'", ms * 1000),
        };
        let mut text: String = (0..self.comments % 7).map(|number| format!("# Comment {number}.\n\n")).collect();
        self.title.iter().for_each(|title| text += &format!("title = 'Draft \"{title}\"'\n"));
        text += &format!("duration = {}\n", time(self.duration.0));
        self.series.iter().for_each(|series| text += &format!("series = '{series} ms'\n"));
        let default = |table: &str| {
            let written = |number: &usize| self.defaults & 1 << number != 0;
            let number = DEFAULTS.iter().position(|(of, _)| *of == table).filter(written);
            number.map_or("", |number| DEFAULTS[number].1)
        };
        text += default("");
        for table in ["[radio]\n", "[mac]\n", "[link]\n"] {
            text += &format!("{table}{}", default(table));
        }
        text += &format!("[topology]\nkind = 'nodes'\nfile = 'map-{}.csv'\n", self.map);
        text += &format!("{}[[flow]]\n{}", default("[topology]\n"), default("[[flow]]\n"));
        text += "to = 1\nfrom = 0\nstart = '0 s'\n";
        text += &format!("transport = '{}'\n", self.transport);
        self.segment.iter().for_each(|segment| text += &format!("segment = {segment}\n"));
        text += "[sweep]\n";
        if !self.durations.is_empty() {
            let durations: Vec<String> = self.durations.iter().map(|ms| time(*ms)).collect();
            text += &format!("duration = [{}]\n", durations.join(", "));
        }
        text += &format!("'flow.to' = {:?}\n", self.ends);
        if self.is_default_swept {
            text += "'flow.start_jitter' = ['100 ms']\n";
        }
        if self.plot {
            text += "[plot]\nlogarithmic = true\n";
        }
        text
    }

    fn campaign(&self, directory: &Path) -> Arc<Campaign> {
        let map = format!("x_m,y_m\n0,0\n150,0\n300,0\n450,0\n{},0\n", 580 + self.moved);
        fs::write(directory.join(format!("map-{}.csv", self.map)), map).unwrap();
        let source = Source { name: "draft.toml".to_owned(), text: self.text(), sets: Vec::new() };
        let scenario = Scenario::read(source, directory, "draft").unwrap_or_else(|why| panic!("{why}"));
        Arc::new(Campaign { scenario, first_seed: self.first_seed, seeds: self.seeds })
    }

    /// Runs the campaign into a directory. Returns the number of runs, or the reason for a refusal.
    fn run(&self, directory: &Path, out: &Path) -> Result<usize, String> {
        let campaign = self.campaign(directory);
        let rule = Rule {
            name: "mine".to_owned(),
            id: None,
            source: format!("# {}", self.comments),
            parts: [("K".to_owned(), self.rule.to_string())].into(),
            flows: None,
        };
        let manifest = campaign.manifest(1).with_rules(vec![rule], campaign.scenario.digest.clone());
        let session = Session::open(Arc::clone(&campaign), out, &manifest, false);
        let mut session = session.map_err(|error| error.to_string())?;
        let (_, todo) = session.partition(campaign.all());
        let made = todo.len();
        let failed = session.make(todo, &mut Threads::new(1, &Arc::default()), &mut Nobody).unwrap();
        assert_eq!(failed, 0);
        session.finish(1).unwrap();
        Ok(made)
    }
}

struct Nobody;

impl Observer for Nobody {
    fn on_kept(&mut self, _session: &mut Session, _runs: &[Run], _work: Work) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of a directory's records.
fn lines(directory: &Path) -> Vec<String> {
    fs::read_to_string(directory.join(RECORDS)).unwrap().lines().map(str::to_owned).collect()
}

/// A record without these fields.
fn without(line: &str, fields: &[&str]) -> String {
    let Ok(Value::Object(mut record)) = line::open(line) else { panic!("{line}") };
    fields.iter().for_each(|key| drop(record.shift_remove(*key)));
    Value::Object(record).to_string()
}

/// A record without the parts that may be renamed: its scenario and its point.
fn rest(line: &str) -> String {
    without(line, &["scenario", "point", "check"])
}

/// A record that also lacks the observations made beside the run. A record without these is
/// replaced.
fn run(line: &str) -> String {
    without(line, &["scenario", "point", "check", "series"])
}

fn key(line: &str) -> line::Key {
    line::key_of(&line::open(line).unwrap()).unwrap()
}

/// Checks a directory after an accepted edit. `before` are its lines before the edit, `fresh` those
/// of a new run, and `made` is the number of runs that were carried out.
fn check(before: &[String], after: &[String], fresh: &[String], made: usize) {
    let keys: BTreeSet<line::Key> = fresh.iter().map(|line| key(line)).collect();
    let (named, others): (Vec<&String>, Vec<&String>) = after.iter().partition(|line| keys.contains(&key(line)));
    assert!(named.into_iter().eq(fresh), "the runs of the file are those of a fresh run, in its order");
    // Records that the file does not name are kept, whatever their names are.
    let known: BTreeSet<String> = before.iter().map(|line| rest(line)).collect();
    assert!(others.into_iter().all(|line| known.contains(&rest(line))), "nothing else comes in");
    let there: BTreeSet<String> = after.iter().map(|line| run(line)).collect();
    assert_eq!(before.iter().find(|line| !there.contains(&run(line))), None, "no record is lost");
    let needed = fresh.iter().filter(|line| !known.contains(&rest(line))).count();
    assert!(made <= needed, "{made} runs were made and {needed} are needed");
}

#[test]
fn a_directory_follows_its_scenario_or_refuses_it() {
    let edits = EDITS[usize::from(std::env::var("MESHPACE_SLOW").is_ok_and(|slow| slow == "1"))];
    let seed = std::env::var("MESHPACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(57);
    let mut random = Rng::stream(seed, Purpose::Test, 0);
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let mut draft = Draft::new();
    draft.run(scratch.path(), &out).unwrap();
    let mut outcomes = [0, 0];
    for number in 0..edits {
        let kind = KINDS[random.below(KINDS.len() as u64) as usize];
        let mut edited = draft.clone();
        edited.edit(kind, &mut random);
        // Visible only if the test fails.
        println!("MESHPACE_SEED={seed}: edit {number}, {kind}:\n{}", edited.text());
        let read = |name: &str| fs::read(out.join(name)).unwrap();
        let (before, manifest) = (lines(&out), read(MANIFEST));
        let made = edited.run(scratch.path(), &out);
        let fresh = scratch.path().join(format!("fresh-{number}"));
        edited.run(scratch.path(), &fresh).unwrap();
        outcomes[usize::from(made.is_ok())] += 1;
        match made {
            Ok(made) => {
                check(&before, &lines(&out), &lines(&fresh), made);
                // A point may have the name of other runs, but sweeping a default causes no runs.
                assert!(made == 0 || !FREE.contains(&kind) && kind != "swept default", "{made} runs");
                let listed = Manifest::read(&out).unwrap().unwrap().sources;
                assert_eq!(listed.last().map(|given| given.text.clone()), Some(edited.text()));
                draft = edited;
            }
            Err(why) => {
                println!("{why}");
                assert!(!FREE.contains(&kind) && kind != "seeds", "{why}");
                assert!(lines(&out) == before && read(MANIFEST) == manifest, "a refusal changes nothing");
                assert!(why.contains(" → ") && why.contains("--out"), "{why}");
            }
        }
        fs::remove_dir_all(fresh).unwrap();
    }
    assert!(outcomes.iter().all(|count| *count > edits / 10), "{outcomes:?}");
}
