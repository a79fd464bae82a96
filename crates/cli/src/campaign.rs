//! `meshpace campaign`: splits a campaign into independent pieces for a batch system, and merges
//! the pieces.
//!
//! `export` writes the scenario with the files that it names, its runs split into pieces (those
//! that take longest first), and an array script for Slurm. Each task of the array runs `piece`,
//! which writes a directory of records and resumes if it was killed. `merge` creates the directory
//! that `run --out` would have created.

mod slurm;

use crate::output::{self, Failure, complain, finish, note};
use crate::progress::Progress;
use crate::runner::{self, Told};
use crate::{FAILED, INTERRUPTED, REFUSED, run, share};
use clap::{ArgGroup, Args, Subcommand};
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_command::quantities::seconds;
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::{Campaign, Run, Work};
use meshpace_lab::record::directory::{MANIFEST, host};
use meshpace_lab::record::line::Key;
use meshpace_lab::record::store::Store;
use meshpace_lab::record::{make_directory, write_whole};
use meshpace_lab::session::{Broken, Session};
use meshpace_lab::until::{self, Growing, Until};
use meshpace_lab::workers::{Exported, Growth, Job, Worker, chunks};
use meshpace_scenario::MAX_SEEDS;
use serde::{Deserialize, Serialize};
use slurm::Tasks;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Name of the file that describes an exported campaign.
const EXPORTED: &str = "campaign.json";
/// Name of the directory of the pieces.
const PIECES: &str = "pieces";
/// Name of a directory beside the pieces that lists nodes with different results: a file for each
/// such node, which contains the reason.
const STRANGE: &str = "strange";

/// Exported campaign with the options of its tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    exported: Exported,
    #[serde(default)]
    tasks: Tasks,
}

/// The arguments of `meshpace campaign`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Write a campaign as an array script for a batch system.
    Export(Export),
    /// Run one piece of an exported campaign, as each task of the array does.
    Piece(Piece),
    /// Merge the pieces of an exported campaign, or campaigns that were run in several places or
    /// with different seeds.
    Merge(Merge),
    /// Pack a directory of records, with the files that its scenarios name, into one file that
    /// others can unpack and check.
    Archive(share::Archive),
    /// Check a directory of records: all files must be complete, and some of its runs are repeated
    /// and must give the same results.
    Check(share::Check),
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("system").args(["slurm"]).required(true))]
struct Export {
    /// Scenario file (TOML); `-` reads standard input.
    file: PathBuf,
    /// Write scripts for Slurm.
    #[arg(long)]
    slurm: bool,
    /// Write into this directory, which must be on a file system that all tasks share.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Set a key of the scenario, as in `meshpace run`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Sweep a key over several values, as in `meshpace run`.
    #[arg(long, value_name = "KEY=VALUE,...")]
    sweep: Vec<String>,
    /// Export only the runs whose records are missing in this directory. `merge --out` with the
    /// same directory then completes it.
    #[arg(long, value_name = "DIR")]
    missing_in: Option<PathBuf>,
    /// Begin with this seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run each point with this number of seeds: N, N+1, ... [default: the scenario's sweep.seeds,
    /// or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Add seeds to each point until half of the 95 % confidence interval of this quantity is at
    /// most this share of its mean, such as 'goodput 2 %'. `merge` then adds the pieces that are
    /// still needed. Every point has at least 20 seeds, or --seeds if that is more.
    #[arg(long, value_name = "QUANTITY SHARE %")]
    until: Option<String>,
    /// Stop adding seeds at this number per point.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS), default_value_t = until::MOST, requires = "until")]
    most: u64,
    /// Aim for this CPU time per piece, by the estimate. A batch system needs some seconds to start
    /// each piece.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "600 s")]
    piece: f64,
    #[command(flatten)]
    tasks: Tasks,
}

#[derive(Args, Debug)]
struct Piece {
    /// Directory that `export` wrote.
    directory: PathBuf,
    /// Number of the piece, from 0.
    number: usize,
}

/// The arguments of `meshpace campaign merge`.
#[derive(Args, Debug)]
pub struct Merge {
    /// Directory that `export` wrote; or several directories that `reproduce` or `run --out` wrote,
    /// complete or not.
    #[arg(required = true, value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,
    /// Write the records into this directory.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace records of another campaign in the directory.
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.what {
        What::Export(arguments) => export(arguments),
        What::Piece(arguments) => piece(arguments),
        What::Merge(arguments) => merge(arguments),
        What::Archive(arguments) => share::archive(arguments),
        What::Check(arguments) => share::check(arguments),
    };
    output::end(done.map(|text| finish(&text)))
}

fn export(arguments: &Export) -> Result<String, Failure> {
    let refused = |why: String| (REFUSED, why);
    let sets = run::sets(&arguments.set, &arguments.sweep).map_err(refused)?;
    let scenario = run::load_sweep(&arguments.file, &sets).map_err(|_| refused(String::new()))?;
    let until = arguments.until.as_ref().map(|text| Until::parse(text, arguments.seeds, arguments.most));
    let until = until.transpose().map_err(|why| refused(format!("--until: {why}")))?;
    let seeds = until.map_or_else(|| arguments.seeds.unwrap_or(scenario.seeds), |until| until.first());
    let most = until.map_or(seeds, |until| until.most());
    if arguments.seed.checked_add(most - 1).is_none() {
        return Err(refused(format!(
            "--seed {} is too large for {most} seeds: the last seed would exceed 2^64",
            arguments.seed
        )));
    }
    let campaign = Arc::new(Campaign { scenario, first_seed: arguments.seed, seeds });
    let todo = match &arguments.missing_in {
        Some(directory) => lacking(&campaign, directory)?,
        None => campaign.all().collect(),
    };
    let (runs, cost_s) = (todo.len(), Work::of(&todo, &campaign.costs()).cost_s);
    if runs == 0 {
        return Ok("0 runs: the directory already has all of them\n".to_owned());
    }
    let pieces = pieces(&campaign, todo, arguments.piece);
    let job = Job::handed_out(&campaign.scenario).map_err(refused)?;
    let number = pieces.len();
    arguments.tasks.check(number).map_err(refused)?;
    let growth = arguments.until.clone();
    let growth = growth.map(|until| Growth { until, most: arguments.most, piece_s: arguments.piece });
    let exported = Exported { job, first_seed: arguments.seed, seeds, pieces, growth };
    let written = Written { exported, tasks: arguments.tasks.clone() };
    if arguments.out.join(EXPORTED).exists() {
        let place = arguments.out.display();
        return Err(refused(format!(
            "{place} already has a campaign: delete it, or choose another directory with --out"
        )));
    }
    make_directory(&arguments.out.join(PIECES)).map_err(|error| refused(error.to_string()))?;
    let submit = write(&arguments.out, &written, &campaign.scenario.name, 0)?;
    let place = arguments.out.display();
    let records = arguments.missing_in.as_deref().unwrap_or(Path::new("RECORDS")).display();
    note(&format!(
        "{cost_s:.0} s of CPU time by the estimate; --piece sets the time of a piece, also in seconds, such as --piece 30s"
    ));
    let (runs, pieces) = (count("run", runs), count("piece", number));
    Ok(format!("{runs} in {pieces}\n{submit}meshpace campaign merge {place} --out {records}\n"))
}

/// Returns the runs of a campaign whose records are not in a directory. The records there are not
/// changed.
///
/// # Errors
/// The errors of a command that adds records to the directory.
fn lacking(campaign: &Arc<Campaign>, directory: &Path) -> Result<Vec<Run>, Failure> {
    if !directory.join(MANIFEST).exists() {
        return Err((
            REFUSED,
            format!("{}: not a directory of records, because it has no {MANIFEST}", directory.display()),
        ));
    }
    let session = runner::open(campaign, Some(directory), &campaign.manifest(1), false)?;
    Ok(session.partition(campaign.all()).1)
}

/// "1 piece", "2 pieces".
fn count(noun: &str, number: usize) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Splits runs into pieces that take about `piece_s` seconds each by the estimate, and returns the
/// keys of the runs of each piece.
fn pieces(campaign: &Campaign, runs: Vec<Run>, piece_s: f64) -> Vec<Vec<Key>> {
    let keys = campaign.keys();
    let keys_of = |chunk: Vec<Run>| chunk.into_iter().map(|run| run.key(&keys)).collect();
    chunks(campaign, runs, 1, Some(piece_s)).into_iter().map(keys_of).collect()
}

/// Writes the campaign and the scripts for its pieces from number `first` on. Returns the commands
/// that submit the scripts.
fn write(directory: &Path, written: &Written, name: &str, first: usize) -> Result<String, Failure> {
    let text = serde_json::to_string(written).map_err(|error| (FAILED, error.to_string()))?;
    let failed = |error: std::io::Error| (FAILED, format!("{}: {error}", directory.display()));
    let commands = written.tasks.write(directory, name, first..written.exported.pieces.len()).map_err(failed)?;
    write_whole(directory, EXPORTED, text).map_err(failed)?;
    Ok(commands)
}

/// Reads the exported campaign of a directory, if this program gives the same results as the
/// program that exported it.
fn read(directory: &Path) -> Result<(Written, Campaign), Failure> {
    let path = directory.join(EXPORTED);
    let refused = |why: String| (REFUSED, format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let way = match error.kind() {
            std::io::ErrorKind::NotFound => "; `meshpace campaign export FILE --out DIR` creates such a directory",
            _ => "",
        };
        refused(format!("{error}{way}"))
    })?;
    let written: Written = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    let exported = &written.exported;
    let worker = Worker::new(&exported.job).map_err(refused)?;
    let campaign = Campaign { first_seed: exported.first_seed, seeds: exported.seeds, ..worker.into_campaign() };
    Ok((written, campaign))
}

/// Name of this node: its name in Slurm if a task of Slurm runs here, and the name of the machine
/// otherwise.
fn node() -> String {
    std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| host())
}

/// Reads the campaign for a piece. If this node gives other results, it is noted beside the pieces,
/// so that its pieces are run on other nodes. The note is removed once the node gives the right
/// results.
fn read_here(directory: &Path) -> Result<(Written, Campaign), Failure> {
    let (node, strange) = (node(), directory.join(PIECES).join(STRANGE));
    let read = read(directory);
    match &read {
        Ok(_) => drop(std::fs::remove_file(strange.join(&node))),
        Err((_, why)) if directory.join(EXPORTED).exists() => {
            // If the note cannot be written either, the error message of the task still gives the
            // reason.
            drop(make_directory(&strange).and_then(|()| write_whole(&strange, &node, why)));
        }
        Err(_) => {}
    }
    read.map_err(|(status, why)| (status, format!("node {node}: {why}")))
}

/// Returns the nodes that give other results as an option of `sbatch`, and the reasons.
fn strange(pieces: &Path) -> (String, String) {
    let entries = std::fs::read_dir(pieces.join(STRANGE)).into_iter().flatten().flatten();
    let mut nodes: Vec<(String, String)> = entries
        .map(|entry| {
            let why = std::fs::read_to_string(entry.path()).unwrap_or_default();
            (entry.file_name().to_string_lossy().into_owned(), why)
        })
        .collect();
    nodes.sort();
    if nodes.is_empty() {
        return Default::default();
    }
    let names: Vec<&str> = nodes.iter().map(|(node, _)| node.as_str()).collect();
    let reasons = nodes.iter().map(|(node, why)| format!("; node {node} is excluded: {why}"));
    (format!(" --exclude={}", names.join(",")), reasons.collect())
}

fn piece(arguments: &Piece) -> Result<String, Failure> {
    let (Written { exported, tasks }, campaign) = read_here(&arguments.directory)?;
    let number = arguments.number;
    let Some(piece) = exported.pieces.get(number) else {
        return Err((
            REFUSED,
            format!("there is no piece {number}: the pieces are 0 to {}", exported.pieces.len() - 1),
        ));
    };
    let campaign = Arc::new(campaign);
    let place = arguments.directory.join(PIECES).join(number.to_string());
    let mut session = runner::open(&campaign, Some(&place), &campaign.manifest(1).without_files(), false)?;
    let points: BTreeMap<&str, usize> =
        session.keys().iter().enumerate().map(|(point, key)| (key.as_str(), point)).collect();
    let run =
        |(index, (point, seed)): (usize, &Key)| Some(Run { index, point: *points.get(point.as_str())?, seed: *seed });
    let runs: Vec<Run> = piece.iter().enumerate().filter_map(run).collect();
    let progress = Progress::new(session.work(&runs));
    let (known, todo) = session.partition(runs);
    progress.known(session.work(&known));
    // The log of a task has these lines, so that a task that waits and one that works differ.
    let resumed = if known.is_empty() { String::new() } else { format!(", {} are kept from before", known.len()) };
    note(&format!("piece {number} on {}: {}{resumed}", node(), count("run", piece.len())));
    let stop = stop_on_interrupt();
    runner::silence_panics();
    let made = session.make(todo, &mut Threads::new(1, &stop), &mut Told(&progress));
    progress.finish();
    let broken = |broken| match broken {
        Broken::Stopped { kept } => {
            let directory = arguments.directory.canonicalize().unwrap_or_else(|_| arguments.directory.clone());
            let again = tasks.again(&directory, &[number], "");
            (
                INTERRUPTED,
                format!("piece {number} interrupted, {kept} of {} runs kept; resumed by: {again}", piece.len()),
            )
        }
        broken => runner::broken(broken, Some(&place)),
    };
    match made.map_err(broken)? {
        0 => note(&format!("piece {number}: complete")),
        failed => return Err((FAILED, format!("piece {number}: {} failed", count("run", failed)))),
    }
    // The records stay in the unfinished file: a piece is never the whole campaign, and `merge`
    // takes a finished directory for one.
    Ok(String::new())
}

fn merge(arguments: &Merge) -> Result<String, Failure> {
    match &arguments.directories[..] {
        [directory] if directory.join(EXPORTED).exists() => merge_pieces(directory, arguments),
        directories => {
            let merged = meshpace_lab::record::merge::merge(directories, &arguments.out, arguments.force);
            let count = merged.map_err(|why| (REFUSED, why))?;
            Ok(format!("{}: {count} runs\n", arguments.out.display()))
        }
    }
}

/// Merges the pieces of an exported campaign.
fn merge_pieces(directory: &Path, arguments: &Merge) -> Result<String, Failure> {
    let (written, campaign) = read(directory)?;
    let exported = &written.exported;
    let pieces = directory.join(PIECES);
    let there: Vec<PathBuf> = (0..exported.pieces.len())
        .map(|number| pieces.join(number.to_string()))
        .filter(|place| place.is_dir())
        .collect();
    if there.is_empty() {
        return Err((
            REFUSED,
            format!("{}: no piece has been run yet; submit the scripts that `campaign export` wrote", pieces.display()),
        ));
    }
    let count =
        meshpace_lab::record::merge::merge(&there, &arguments.out, arguments.force).map_err(|why| (REFUSED, why))?;
    let manifest = campaign.manifest(1);
    // With `--until`, a point may get more seeds than the campaign begins with.
    let seeds = exported.growth.as_ref().map_or(campaign.seeds, |growth| growth.most);
    let campaign = Arc::new(Campaign { seeds, ..campaign });
    let mut session = runner::open(&campaign, Some(&arguments.out), &manifest, false)?;
    let missing = session.store().map(|store| missing(exported, store)).unwrap_or_default();
    if !missing.is_empty() {
        let (exclude, reasons) = strange(&pieces);
        return Err((
            FAILED,
            format!(
                "{count} of {} runs are merged into {}{reasons}; for the others submit their pieces, and then merge again: {}",
                exported.pieces.iter().map(Vec::len).sum::<usize>(),
                arguments.out.display(),
                written.tasks.again(directory, &missing, &exclude)
            ),
        ));
    }
    let broken = |error: std::io::Error| runner::broken(error.into(), None);
    if let Some(growth) = &exported.growth {
        grow(directory, &written, growth, &session)?;
    }
    session.finish(1).map_err(broken)?;
    Ok(format!("{}: {count} runs\n", arguments.out.display()))
}

/// Adds pieces to the campaign in `directory` for the runs that a confidence interval still needs.
/// `session` has the records so far.
///
/// # Errors
/// If such pieces were added: the commands that run them.
fn grow(directory: &Path, written: &Written, growth: &Growth, session: &Session) -> Result<(), Failure> {
    let exported = &written.exported;
    let until = Until::parse(&growth.until, Some(exported.seeds), growth.most).map_err(|why| (REFUSED, why))?;
    let broken = |error: std::io::Error| runner::broken(error.into(), None);
    let mut growing = Growing::new(until, session.campaign());
    let missing = growing.missing(session).map_err(broken)?;
    if missing.is_empty() {
        growing.told(session).map_err(broken)?.iter().for_each(|sentence| complain(sentence));
        return Ok(());
    }
    let (runs, first) = (missing.len(), exported.pieces.len());
    let mut grown = written.clone();
    grown.exported.pieces.extend(pieces(session.campaign(), missing, growth.piece_s));
    let submit = write(directory, &grown, &session.campaign().scenario.name, first)?;
    let more = grown.exported.pieces.len() - first;
    let (rule, submit) = (&growth.until, submit.trim_end().replace('\n', "; "));
    let (runs, more) = (count("more run", runs), count("more piece", more));
    Err((FAILED, format!("{rule} needs {runs}, in {more}; merge again after: {submit}")))
}

/// Returns the numbers of the pieces for which some record is missing.
fn missing(exported: &Exported, store: &Store) -> Vec<usize> {
    let is_whole = |piece: &Vec<Key>| piece.iter().all(|key| store.has(key));
    (0..exported.pieces.len()).filter(|number| !is_whole(&exported.pieces[*number])).collect()
}
