//! `meshpace advise`: who starves in a mesh that is known by a map, a list of links or dumps of its programs, and what to set.

use crate::compare::records_of;
use crate::output::{Failure, end, finish, tell};
use crate::progress::Progress;
use crate::runner::{self, processors};
use crate::{FAILED, REFUSED, prospect};
use clap::Args;
use meshpace_lab::advise::flows::{self, Told};
use meshpace_lab::advise::paths;
use meshpace_lab::advise::routes::{Routes, routes};
use meshpace_lab::advise::{self, Answer, Choice, LEFT_OUT, Mesh, QUESTIONS};
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::Campaign;
use meshpace_lab::field::dumps::{self, Dump};
use meshpace_lab::field::kit::{self, Run};
use meshpace_lab::field::{errors, results, ways};
use meshpace_lab::record::{Record, make_directory};
use meshpace_scenario::quantity::RATE;
use meshpace_scenario::{MAX_SEEDS, Scenario, Source};
use meshpace_tunnel::interrupt::stop_on_interrupt;
use meshpace_tunnel::quantities;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `meshpace advise`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Who hears whom: a map (CSV, GraphML or JSON with places), a table of links (CSV with from, to and etx, metric, delivery, snr_db or hop_mbps), or what
    /// programs tell (NetJSON; jsoninfo or txtinfo of olsrd; a dump of babeld; `batctl o` or `oj`, and `n` or `nj` of B.A.T.M.A.N. V; `iw dev wlan0 station
    /// dump`; meshviewer.json). Where each node tells of its own links, the dumps of several nodes, each named like its node.
    #[arg(required = true)]
    map: Vec<PathBuf>,
    /// A bulk transfer, by the numbers of nodes from 0, or by their names or addresses in a dump; may be given again.
    #[arg(long, value_name = "FROM,TO", required = true)]
    flow: Vec<String>,
    /// The rate of all links, as the number of an MCS.
    #[arg(long, value_name = "MCS", default_value_t = 3)]
    mcs: u8,
    /// Set a key of the scenario that is made of the map, such as radio.path_loss_exponent=2.5 where houses stand apart; as in
    /// `meshpace run`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Time that is measured of each run, whole seconds.
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = whole_seconds)]
    seconds: u64,
    /// Seeds of each choice.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(3..=MAX_SEEDS))]
    seeds: u64,
    /// Runs at a time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// With a dump: what one good hop carries alone, kbit/s or with its unit; then tell what each path carries by the metric of its hops. Hops of which the dump itself
    /// tells what they carry (hop_mbps, expected throughput) need none.
    #[arg(long, value_name = "KBIT/S", value_parser = kbps)]
    hop_goodput: Option<f64>,
    /// What was measured of the flows, in their order (flent, iperf3 -J, iperf -y C), told beside what their hops carry.
    #[arg(long, value_name = "FILE")]
    measured: Vec<PathBuf>,
    /// Write the scenario with what is usual, and its files, into this directory: `meshpace run DIR/advice.toml` repeats it.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print one JSON object for each flow and each choice.
    #[arg(long)]
    json: bool,
}

/// Reads the time of a run.
fn whole_seconds(text: &str) -> Result<u64, String> {
    let seconds = quantities::seconds(text)?;
    let is_right = seconds.fract() == 0.0 && (1.0..=600.0).contains(&seconds);
    if is_right { Ok(seconds as u64) } else { Err("expected whole seconds, 1 s to 600 s".to_owned()) }
}

/// Reads a goodput: kbit/s, or with a unit.
fn kbps(text: &str) -> Result<f64, String> {
    let plain = text.parse::<f64>().is_ok();
    quantities::quantity(&RATE, &if plain { format!("{text} kbit/s") } else { text.to_owned() }).map(|bps| bps / 1e3)
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    end(advice(arguments).map(|text| finish(&text)))
}

/// Mesh that is known, and its measurements.
struct Known {
    mesh: Mesh,
    /// The files that the scenario names, and their contents.
    files: Vec<(String, Vec<u8>)>,
    dump: Option<Dump>,
    /// Measurements by the measuring kit.
    runs: Vec<Run>,
    /// Sentences on what is missing of them.
    notes: Vec<String>,
}

impl Known {
    /// A node for people.
    fn name(&self, node: usize) -> String {
        let named = self.dump.as_ref().and_then(|dump| dump.nodes.get(node).cloned());
        named.unwrap_or_else(|| node.to_string())
    }

    /// The file of this name.
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        let found = self.files.iter().find(|(known, _)| known == name);
        found.map(|(_, bytes)| bytes.clone()).ok_or_else(|| format!("{name}: there is no such file"))
    }
}

/// Runner of the scenarios that are made of the mesh.
struct Machine<'a, 'b> {
    arguments: &'a Arguments,
    known: &'a Known,
    progress: &'a Progress,
    threads: &'a mut Threads<'b>,
}

impl Machine<'_, '_> {
    fn run(&mut self, campaign: &Arc<Campaign>) -> Result<Vec<Record>, Failure> {
        records_of(campaign, self.threads, self.progress, &self.arguments.map[0])
    }

    /// Mean goodput of a flow with nobody else sending, bit/s.
    fn alone(&mut self, ends: (usize, usize), jobs: usize) -> Result<Option<f64>, Failure> {
        let campaign = campaign(self.arguments, self.known, &[ends], advise::sets(None), jobs)?;
        self.progress.more(campaign.work());
        Ok(flows::alone(&self.run(&campaign)?))
    }
}

/// The campaign with these settings.
fn campaign(
    arguments: &Arguments,
    known: &Known,
    flows: &[(usize, usize)],
    sets: Vec<String>,
    jobs: usize,
) -> Result<Arc<Campaign>, Failure> {
    let refused = |why: String| (REFUSED, why);
    let file = arguments.map[0].display();
    let text = advise::scenario(&known.mesh, flows, arguments.mcs, arguments.seconds).map_err(refused)?;
    let name = match &known.mesh {
        Mesh::Places(name) if Path::new(name) != arguments.map[0] => {
            format!("the scenario made of {file}, which is {name} in it")
        }
        _ => format!("the scenario made of {file}"),
    };
    let source = Source { name, text, sets: sets.into_iter().chain(arguments.set.clone()).collect() };
    let scenario = Scenario::read_with(source, &|name: &str| known.load(name), "advice");
    let scenario = scenario.map_err(|why| {
        tell(&format!("{}\n", why.render(console::colors_enabled_stderr())));
        refused(String::new())
    })?;
    advise::nodes_within(scenario.points[0].config.positions.len()).map_err(refused)?;
    let campaign = Campaign { scenario, first_seed: 1, seeds: arguments.seeds };
    match prospect::too_much(&campaign, jobs) {
        Some(why) => Err(refused(format!("{file}: {why}; use fewer --seconds or --seeds"))),
        None => Ok(Arc::new(campaign)),
    }
}

fn advice(arguments: &Arguments) -> Result<String, Failure> {
    let refused = |why: String| (REFUSED, why);
    let mut known = read(&arguments.map).map_err(refused)?;
    let ends: Vec<(usize, usize)> =
        arguments.flow.iter().map(|flow| ends(flow, known.dump.as_ref())).collect::<Result<_, _>>().map_err(refused)?;
    let ways = known.dump.as_ref().map(|dump| ways_of(dump, &ends)).transpose().map_err(refused)?;
    if let (Some(dump), Some(ways)) = (&known.dump, &ways) {
        let (links, map) = advise::files(dump, ways);
        known.files = vec![("links.csv".to_owned(), links.into_bytes()), ("map.json".to_owned(), map.into_bytes())];
    }
    let paths = shown_paths(arguments, &known, ways.as_deref().unwrap_or_default()).map_err(refused)?;
    let stop = stop_on_interrupt();
    runner::silence_panics();
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    let campaign = |sets| campaign(arguments, &known, &ends, sets, jobs);
    let usual = campaign(advise::sets(None))?;
    if let Some(directory) = &arguments.keep {
        keep(directory, arguments, &known, &ends).map_err(|why| (FAILED, why))?;
    }
    let tried: Vec<Vec<(Choice, Arc<Campaign>)>> = QUESTIONS
        .iter()
        .map(|question| {
            let others = question.others.iter();
            others.map(|choice| Ok((*choice, campaign(advise::sets(Some((question, choice))))?))).collect()
        })
        .collect::<Result<_, Failure>>()?;
    // One bar for everything: a choice by itself is soon tried.
    let progress = Progress::new(usual.work());
    tried.iter().flatten().for_each(|(_, campaign)| progress.more(campaign.work()));
    let mut threads = Threads::new(jobs, &stop);
    let mut machine = Machine { arguments, known: &known, progress: &progress, threads: &mut threads };
    let records = machine.run(&usual)?;
    advise::hops_within(&records).map_err(refused)?;
    let routes = routes(&usual.scenario.points[0].config);
    let mut told = flows::told(&records, &routes.of, &|node| known.name(node));
    for told in told.iter_mut().filter(|told| told.starved_runs() > 0) {
        let (from, to) = ends[told.flow];
        told.alone_bps = if ends.len() > 1 { machine.alone((from, to), jobs)? } else { Some(told.goodput_bps) };
        told.back_alone_bps = machine.alone((to, from), jobs)?;
    }
    let (mut answers, mut shown_answers) = (Vec::new(), String::new());
    for (question, tried) in QUESTIONS.iter().zip(&tried) {
        let tried: Vec<_> = tried
            .iter()
            .map(|(choice, campaign)| Ok((*choice, machine.run(campaign)?)))
            .collect::<Result<_, Failure>>()?;
        let found = advise::answers(question, &records, &tried).map_err(|why| (FAILED, why))?;
        shown_answers.push_str(&shown(question.name, question.usual.name, &found, arguments.json));
        answers.extend(found);
    }
    progress.finish();
    let helps = advise::helps(&answers);
    let hops = told.iter().map(|told| told.route.hops.len()).max().unwrap_or(0);
    let sure = errors::words(ends.len(), hops);
    if arguments.json {
        let of_flows: String = told.iter().map(|told| format!("{}\n", json!(told))).collect();
        let last = json!({"helps": helps, "error": sure, "links": routes.links, "weak_links": routes.too_weak});
        return Ok(format!("{of_flows}{paths}{shown_answers}{last}\n"));
    }
    Ok(format!(
        "{}{paths}\n# What helps\n\n{helps}{shown_answers}\n# How sure\n\n{sure}\n\n{LEFT_OUT}\n",
        first(&told, &routes, &known, arguments.mcs)
    ))
}

/// First part of the advice, which comes before any setting: flows that starve, links that are too weak, dumps that are missing.
fn first(told: &[Told], routes: &Routes, known: &Known, mcs: u8) -> String {
    let mut text = "# Who gets what (with what is usual)\n\n".to_owned();
    told.iter().for_each(|told| text.push_str(&flows::words(told, &|node| known.name(node))));
    if routes.too_weak > 0 {
        text.push_str(&format!(
            "{} of {} pairs that hear each other are too weak for MCS {mcs}: fewer than half of the frames arrive, and no route uses them\n",
            routes.too_weak, routes.links
        ));
    }
    if let Some(missing) = known.dump.as_ref().and_then(Dump::missing) {
        text.push_str(&format!("Not all is known: {missing}\n"));
    }
    known.notes.iter().for_each(|note| text.push_str(&format!("Not measured: {note}\n")));
    text
}

/// Writes the scenario with what is usual, so that `meshpace run` repeats it.
fn keep(directory: &Path, arguments: &Arguments, known: &Known, ends: &[(usize, usize)]) -> Result<(), String> {
    let scenario = advise::scenario(&known.mesh, ends, arguments.mcs, arguments.seconds)?;
    let sets: Vec<String> = advise::sets(None).into_iter().chain(arguments.set.clone()).collect();
    let scenario = advise::written(&scenario, &sets);
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    };
    make_directory(directory).map_err(|error| error.to_string())?;
    known.files.iter().try_for_each(|(name, bytes)| write(name, bytes))?;
    write("advice.toml", scenario.as_bytes())
}

/// The way of each flow by the mesh's own routing.
fn ways_of(dump: &Dump, ends: &[(usize, usize)]) -> Result<Vec<Vec<usize>>, String> {
    let way = |&(from, to): &(usize, usize)| {
        let name = |node: usize| dump.nodes.get(node).cloned().unwrap_or_else(|| node.to_string());
        if from.max(to) >= dump.nodes.len() {
            return Err(format!(
                "--flow {from},{to}: the mesh has the nodes 0 to {}",
                dump.nodes.len().saturating_sub(1)
            ));
        }
        let missing = || dump.missing().unwrap_or_else(|| "they are not linked".to_owned());
        ways::way(dump, from, to)
            .ok_or_else(|| format!("no way from {} to {} is known: {}", name(from), name(to), missing()))
    };
    ends.iter().map(way).collect()
}

fn shown(question: &str, usual: &str, answers: &[Answer], as_json: bool) -> String {
    if as_json {
        return answers.iter().map(|answer| format!("{}\n", json!(answer))).collect();
    }
    let choices: String = answers.iter().map(advise::told).collect();
    format!("\n# {question} (usual: {usual})\n\n{choices}")
}

/// Columns of a map that say where a node is.
const PLACES: [&str; 8] = ["x", "x_m", "lat", "latitude", "lon", "lng", "long", "longitude"];

/// The files as the scenario takes them.
fn read(files: &[PathBuf]) -> Result<Known, String> {
    if let Some(directory) = files.iter().find(|file| file.is_dir()) {
        if files.len() > 1 {
            return Err(format!("{}: a directory of the measuring kit is given alone", directory.display()));
        }
        let kit = kit::read(directory)?;
        return Ok(Known { runs: kit.runs, notes: kit.notes, ..of_dump(kit.dump) });
    }
    let [file] = files else { return several(files) };
    let bytes = bytes_of(file)?;
    let extension = file.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
    let titles: Vec<&str> = head.lines().next().unwrap_or_default().split(',').map(str::trim).collect();
    let is_table = titles.contains(&"from") && titles.contains(&"to");
    // What radio.links takes as it is: measures of the radio between numbers.
    let is_of_radio = ["loss_db", "snr_db", "delivery"].iter().any(|measure| titles.contains(measure));
    if is_table && is_of_radio && has_numbers(&bytes, &titles) {
        let mesh = Mesh::Links(nodes(&bytes, &titles).map_err(|why| format!("{}: {why}", file.display()))?);
        return Ok(of_file(mesh, "links.csv", bytes));
    }
    let is_place = |title: &&str| PLACES.contains(&title.to_ascii_lowercase().as_str());
    let is_map = match extension.as_str() {
        "csv" => !is_table && titles.iter().any(is_place),
        other => matches!(other, "graphml" | "xml"),
    };
    if is_map {
        let name = format!("map.{extension}");
        return Ok(of_file(Mesh::Places(name.clone()), &name, bytes));
    }
    let text = String::from_utf8_lossy(&bytes);
    let has_places = ["\"latitude\"", "\"lat\"", "\"x_m\""].iter().any(|key| text.contains(key));
    match dumps::read(&bytes) {
        // Links without any measure beside places: the radio says who hears whom.
        Ok(dump) if dump.metric == dumps::Metric::Hops && has_places && !is_table => {
            Ok(of_file(Mesh::Places("map.json".to_owned()), "map.json", bytes))
        }
        Ok(dump) => Ok(of_dump(dump)),
        Err(_) if head.contains("\"nodes\"") && has_places => {
            Ok(of_file(Mesh::Places("map.json".to_owned()), "map.json", bytes))
        }
        Err((place, why)) => Err(format!("{}:{place}: {why}", file.display())),
    }
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, String> {
    meshpace_scenario::read_file(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn of_dump(dump: Dump) -> Known {
    Known {
        mesh: Mesh::Routed(dump.nodes.len()),
        files: Vec::new(),
        dump: Some(dump),
        runs: Vec::new(),
        notes: Vec::new(),
    }
}

/// A mesh that the scenario takes from this file.
fn of_file(mesh: Mesh, name: &str, bytes: Vec<u8>) -> Known {
    let files = vec![(name.to_owned(), bytes)];
    Known { mesh, files, dump: None, runs: Vec::new(), notes: Vec::new() }
}

/// Dumps of several nodes, each named like its file.
fn several(files: &[PathBuf]) -> Result<Known, String> {
    let dump = |file: &PathBuf| {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let dump =
            dumps::read(&bytes_of(file)?).map_err(|(place, why)| format!("{}:{place}: {why}", file.display()))?;
        Ok((name, dump))
    };
    let dumps: Vec<(String, Dump)> = files.iter().map(dump).collect::<Result<_, String>>()?;
    Ok(of_dump(dumps::merge(&dumps)))
}

/// True if both ends of every link are numbers.
fn has_numbers(bytes: &[u8], titles: &[&str]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let places: Vec<usize> =
        ["from", "to"].iter().filter_map(|name| titles.iter().position(|title| title == name)).collect();
    let is_number = |line: &str| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        places
            .iter()
            .all(|&place| cells.get(place).is_none_or(|cell| cell.chars().all(|letter| letter.is_ascii_digit())))
    };
    text.lines().skip(1).all(is_number)
}

/// One more than the largest number of a node in a list of links. What else is wrong with it the scenario's reader tells.
fn nodes(bytes: &[u8], titles: &[&str]) -> Result<usize, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let column = |name: &str| titles.iter().position(|title| *title == name);
    let numbers = text.lines().skip(1).flat_map(|line| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        ["from", "to"].map(|name| column(name).and_then(|place| cells.get(place)?.parse::<u16>().ok()))
    });
    numbers.flatten().max().map(|largest| usize::from(largest) + 1).ok_or_else(|| "no link in it".to_owned())
}

fn ends(flow: &str, dump: Option<&Dump>) -> Result<(usize, usize), String> {
    let expected = || format!("--flow {flow}: expected FROM,TO, two nodes");
    let (from, to) = flow.split_once(',').ok_or_else(expected)?;
    let node = |word: &str| {
        let word = word.trim();
        let named = dump.and_then(|dump| dump.find(word));
        let unknown = || match dump {
            Some(dump) => format!("--flow {flow}: there is no node \"{word}\" among {}", listed(&dump.nodes)),
            None => expected(),
        };
        named.or_else(|| word.parse().ok()).ok_or_else(unknown)
    };
    Ok((node(from)?, node(to)?))
}

/// The first names of many.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ") + &more
}

/// Table of the goodput of each path by that of each of its hops alone, or else by its metric, with the measured one; empty where neither is known.
fn shown_paths(arguments: &Arguments, known: &Known, ways: &[Vec<usize>]) -> Result<String, String> {
    let hop = arguments.hop_goodput;
    let Some(dump) = known.dump.as_ref() else {
        return match hop {
            Some(_) => Err("--hop-goodput: a map and a list of links have no metric; give a dump".to_owned()),
            None => Ok(String::new()),
        };
    };
    let measured = |flow: usize, way: &Vec<usize>| match arguments.measured.get(flow) {
        Some(file) => {
            let found = meshpace_scenario::read_file(file)
                .map_err(|error| error.to_string())
                .and_then(|bytes| results::read(&bytes));
            let found = found.map_err(|why| format!("{}: {why}", file.display()))?;
            Ok(Some(found.iter().map(|one| one.goodput_bps / 1e3).sum::<f64>() / found.len() as f64))
        }
        None => {
            let of_flow = |run: &&Run| Some((&run.from, &run.to)) == way.first().zip(way.last());
            Ok(known.runs.iter().find(of_flow).map(|run| run.goodput_bps / 1e3))
        }
    };
    let measured: Vec<Option<f64>> =
        ways.iter().enumerate().map(|(flow, way)| measured(flow, way)).collect::<Result<_, String>>()?;
    let found = paths::paths(dump, ways, hop, &measured);
    let line = |one: &paths::Path| match arguments.json {
        true => format!("{}\n", json!(one)),
        false => paths::words(one, &|node| known.name(node)),
    };
    Ok(found.iter().map(line).collect())
}
