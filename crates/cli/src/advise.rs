//! `meshpace advise`: what to set in a mesh that is known by a map, a list of links or a dump of its routing daemon.

use crate::compare::records_of;
use crate::output::{Failure, end, finish};
use crate::progress::Progress;
use crate::runner::{self, processors};
use crate::{FAILED, REFUSED, prospect};
use clap::Args;
use meshpace_lab::advise::{self, Answer, Choice, LEFT_OUT, Mesh, QUESTIONS};
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::Campaign;
use meshpace_lab::field::{path, results};
use meshpace_scenario::dumps::{self, Dump};
use meshpace_scenario::{MAX_SEEDS, Scenario, Source};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `meshpace advise`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Who hears whom: a map (CSV, GraphML or JSON with places), a list of links as of radio.links, or what a routing daemon tells (NetJSON,
    /// jsoninfo or txtinfo of olsrd, a dump of babeld, JSON of batman-adv).
    map: PathBuf,
    /// A bulk transfer, by the numbers of nodes from 0, or by their names in a dump; may be given again.
    #[arg(long, value_name = "FROM,TO", required = true)]
    flow: Vec<String>,
    /// The rate of all links, as the number of an MCS.
    #[arg(long, value_name = "MCS", default_value_t = 3)]
    mcs: u8,
    /// Set a key of the scenario that is made of the map, such as radio.path_loss_exponent=2.5 where houses stand apart; as in
    /// `meshpace run`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seconds that are measured of each run.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Seeds of each choice.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(3..=MAX_SEEDS))]
    seeds: u64,
    /// Runs at a time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// With a dump: what one good hop carries alone, kbit/s; then tell what each path carries by the metric of its hops.
    #[arg(long, value_name = "KBIT/S")]
    hop_goodput: Option<f64>,
    /// With --hop-goodput: what was measured of the flows, in their order (flent, iperf3 -J, iperf -y C), told beside it.
    #[arg(long, value_name = "FILE", requires = "hop_goodput")]
    measured: Vec<PathBuf>,
    /// Print one JSON object for each choice and line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    end(advice(arguments).map(|text| finish(&text)))
}

/// What is known of the mesh.
struct Known {
    mesh: Mesh,
    /// The file that the scenario names, and its content.
    file: (String, Vec<u8>),
    dump: Option<Dump>,
}

fn advice(arguments: &Arguments) -> Result<String, Failure> {
    let refused = |why: String| (REFUSED, why);
    let known = read(&arguments.map).map_err(refused)?;
    let flows: Vec<(usize, usize)> =
        arguments.flow.iter().map(|flow| ends(flow, known.dump.as_ref())).collect::<Result<_, _>>().map_err(refused)?;
    let text = advise::scenario(&known.mesh, &flows, arguments.mcs, arguments.seconds).map_err(refused)?;
    let mut told = String::new();
    if let Some(hop) = arguments.hop_goodput {
        told.push_str(&paths(arguments, &known, &flows, hop).map_err(refused)?);
    }
    let load = |sets: Vec<String>| {
        let name = format!("the scenario made of {}", arguments.map.display());
        let source = Source { name, text: text.clone(), sets: sets.into_iter().chain(arguments.set.clone()).collect() };
        let file = |name: &str| match name == known.file.0 {
            true => Ok(known.file.1.clone()),
            false => Err(format!("{name}: there is no such file")),
        };
        Scenario::read_with(source, &file, "advice").map_err(|why| refused(why.to_string()))
    };
    let stop = runner::stop_on_interrupt();
    runner::silence_panics();
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    let campaign = |sets| {
        let scenario = load(sets)?;
        advise::nodes_within(scenario.points[0].config.positions.len()).map_err(refused)?;
        let campaign = Campaign { scenario, first_seed: 1, seeds: arguments.seeds };
        match prospect::too_much(&campaign, jobs) {
            Some(why) => Err(refused(format!("{}: {why}; use fewer --seconds or --seeds", arguments.map.display()))),
            None => Ok(Arc::new(campaign)),
        }
    };
    let usual = campaign(advise::sets(None))?;
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
    let mut run = |campaign| records_of(campaign, &mut threads, &progress, &arguments.map);
    let usual = run(&usual)?;
    advise::hops_within(&usual).map_err(refused)?;
    for (question, tried) in QUESTIONS.iter().zip(&tried) {
        let tried: Vec<_> =
            tried.iter().map(|(choice, campaign)| Ok((*choice, run(campaign)?))).collect::<Result<_, Failure>>()?;
        let answers = advise::answers(question, &usual, &tried).map_err(|why| (FAILED, why))?;
        told.push_str(&shown(question.name, question.usual.name, &answers, arguments.json));
    }
    progress.finish();
    if !arguments.json {
        told.push_str(&format!("\n{LEFT_OUT}\n"));
    }
    Ok(told)
}

fn shown(question: &str, usual: &str, answers: &[Answer], as_json: bool) -> String {
    if as_json {
        return answers.iter().map(|answer| format!("{}\n", json!(answer))).collect();
    }
    let choices: String = answers.iter().map(advise::told).collect();
    format!("\n# {question} (usual: {usual})\n\n{choices}")
}

/// The file as the scenario takes it.
fn read(file: &Path) -> Result<Known, String> {
    let bytes = meshpace_scenario::read_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let extension = file.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
    let titles: Vec<&str> = head.lines().next().unwrap_or_default().split(',').map(str::trim).collect();
    if extension == "csv" && titles.contains(&"from") && titles.contains(&"to") {
        let mesh = Mesh::Links(nodes(&bytes, &titles).map_err(|why| format!("{}: {why}", file.display()))?);
        return Ok(Known { mesh, file: ("links.csv".to_owned(), bytes), dump: None });
    }
    if matches!(extension.as_str(), "csv" | "graphml" | "xml") {
        let name = format!("map.{extension}");
        return Ok(Known { mesh: Mesh::Places(name.clone()), file: (name, bytes), dump: None });
    }
    match dumps::read(&bytes) {
        Ok(dump) => {
            let links = advise::link_list(&dump);
            let mesh = Mesh::Links(dump.nodes.len());
            Ok(Known { mesh, file: ("links.csv".to_owned(), links.into_bytes()), dump: Some(dump) })
        }
        // A map with places has no metric.
        Err(_) if head.contains("\"nodes\"") => {
            let name = "map.json".to_owned();
            Ok(Known { mesh: Mesh::Places(name.clone()), file: (name, bytes), dump: None })
        }
        Err((place, why)) => Err(format!("{}:{place}: {why}", file.display())),
    }
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
        let named = dump.and_then(|dump| dump.nodes.iter().position(|name| name == word));
        named.or_else(|| word.parse().ok()).ok_or_else(expected)
    };
    Ok((node(from)?, node(to)?))
}

/// What each path carries by the metric of its hops, and what was measured.
fn paths(arguments: &Arguments, known: &Known, flows: &[(usize, usize)], hop: f64) -> Result<String, String> {
    let dump = known.dump.as_ref().ok_or("--hop-goodput: a map and a list of links have no metric; give a dump")?;
    if !(hop.is_finite() && hop > 0.0) {
        return Err("--hop-goodput: expected a number above 0".to_owned());
    }
    let links = advise::metrics(dump);
    let mut alone = Vec::new();
    for &(from, to) in flows {
        let path = path::shortest(&links, from, to).ok_or_else(|| format!("no path from {from} to {to}"))?;
        let hops: Vec<f64> = path::metrics(&links, &path).iter().map(|etx| hop / etx).collect();
        alone.push((path::alone(&hops), path));
    }
    let shares = path::shared(&alone.iter().map(|(alone, _)| *alone).collect::<Vec<f64>>(), &[]);
    let mut text = String::new();
    for (number, ((alone, path), share)) in alone.iter().zip(shares).enumerate() {
        let mut measured = Value::Null;
        if let Some(file) = arguments.measured.get(number) {
            let found = meshpace_scenario::read_file(file)
                .map_err(|error| error.to_string())
                .and_then(|bytes| results::read(&bytes));
            let found = found.map_err(|why| format!("{}: {why}", file.display()))?;
            measured = json!(found.iter().map(|one| one.goodput_bps / 1e3).sum::<f64>() / found.len() as f64);
        }
        if arguments.json {
            let line = json!({"flow": number, "path": path, "alone_kbps": alone, "shared_kbps": share, "measured_kbps": measured});
            text.push_str(&format!("{line}\n"));
            continue;
        }
        let path: Vec<String> = path.iter().map(usize::to_string).collect();
        let beside = measured.as_f64().map(|kbps| format!("; measured {kbps:.0}")).unwrap_or_default();
        text.push_str(&format!(
            "flow {number}, {}: by the metric of its hops {alone:.0} kbit/s alone, {share:.0} as a fair share{beside}\n",
            path.join("-")
        ));
    }
    Ok(text)
}
