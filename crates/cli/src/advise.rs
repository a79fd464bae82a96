//! `meshpace advise`: which flows starve in a mesh that is known by a map, a list of links or dumps
//! of routing programs, and which settings help.

mod input;
mod model;

use crate::compare::records_of;
use crate::output::{Failure, end, finish, tell};
use crate::progress::Progress;
use crate::runner::{self, processors};
use crate::{FAILED, REFUSED, prospect};
use clap::Args;
use input::Known;
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_command::quantities;
use meshpace_lab::advise::flows::{self, Told};
use meshpace_lab::advise::plan::{self, Plan};
use meshpace_lab::advise::questions::{self, Choice, Question};
use meshpace_lab::advise::rates::Rate;
use meshpace_lab::advise::routes::routes;
use meshpace_lab::advise::{self, Answer, LEFT_OUT, Mesh, paths};
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::Campaign;
use meshpace_lab::field::dumps::{Dump, LeftOut};
use meshpace_lab::field::kit::Run;
use meshpace_lab::field::{errors, results, ways};
use meshpace_lab::record::{Record, make_directory};
use meshpace_scenario::quantity::RATE;
use meshpace_scenario::{MAX_SEEDS, Scenario, Source};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `meshpace advise`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The mesh, as one of: a map with places (CSV, GraphML or JSON); a table of links (CSV with
    /// from, to and one of etx, metric, delivery, snr_db, loss_db, hop_mbps, rate_mbps or mcs); or
    /// a dump of a routing daemon (NetJSON; jsoninfo or txtinfo of olsrd; a dump of babeld; `batctl
    /// o` or `oj`, and `n` or `nj` of B.A.T.M.A.N. V; `iw dev wlan0 station dump`;
    /// meshviewer.json). If each node reports only its own links, give the dumps of several nodes,
    /// and name each file like its node. `-` reads standard input.
    #[arg(required = true)]
    map: Vec<PathBuf>,
    /// Add a bulk transfer between two nodes, given by their numbers (from 0), names or addresses
    /// in the dump. Can be repeated.
    #[arg(long, value_name = "FROM,TO", required = true)]
    flow: Vec<String>,
    /// Set the rate of links for which the dump has no rate: an MCS number of 802.11n, 0 to 7.
    #[arg(long, value_name = "MCS", default_value_t = 3)]
    mcs: u8,
    /// Set the same rate in words, which can also name other standards: "MCS 5", "11 Mbit/s"
    /// (802.11b), "54 Mbit/s" (802.11a and g) [default: the rate of --mcs].
    #[arg(long, value_name = "RATE", conflicts_with = "mcs")]
    rate: Option<Rate>,
    /// Set a key of the scenario that is made from the map, as in `meshpace run`, such as
    /// radio.path_loss_exponent=2.5 where houses stand apart.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Measure each run for this time, in whole seconds.
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = whole_seconds)]
    seconds: u64,
    /// Run each setting with this number of seeds.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(3..=MAX_SEEDS))]
    seeds: u64,
    /// Run this number of simulations at the same time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// With a dump: goodput of one good hop alone, in kbit/s or with a unit. The report then
    /// predicts the goodput of each path from the metrics of its hops. Not needed for hops whose
    /// goodput is in the dump (hop_mbps, expected throughput).
    #[arg(long, value_name = "KBIT/S", value_parser = kbps)]
    hop_goodput: Option<f64>,
    /// Measured results of the flows, in the order of --flow (flent, iperf3 -J, iperf -y C). They
    /// are printed beside the predicted goodput.
    #[arg(long, value_name = "FILE")]
    measured: Vec<PathBuf>,
    /// Write the scenario with the usual settings, and its files, into this directory. `meshpace
    /// run DIR/advice.toml` then repeats the runs.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print one JSON object for each flow and for each setting that was tried.
    #[arg(long)]
    json: bool,
}

/// Parses the measured time of a run.
fn whole_seconds(text: &str) -> Result<u64, String> {
    let seconds = quantities::seconds(text)?;
    let is_right = seconds.fract() == 0.0 && (1.0..=600.0).contains(&seconds);
    if is_right { Ok(seconds as u64) } else { Err("expected whole seconds, 1 s to 600 s".to_owned()) }
}

/// Parses a goodput: a plain number in kbit/s, or a number with a unit.
fn kbps(text: &str) -> Result<f64, String> {
    let plain = text.parse::<f64>().is_ok();
    quantities::quantity(&RATE, &if plain { format!("{text} kbit/s") } else { text.to_owned() }).map(|bps| bps / 1e3)
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    end(advice(arguments).map(|text| finish(&text)))
}

/// Settings that all runs share.
struct Setting<'a> {
    arguments: &'a Arguments,
    known: &'a Known,
    mesh: Mesh,
    /// Keys of the scenario for the radio and the MAC.
    keys: Vec<(&'static str, String)>,
    /// Names and contents of the files that the scenario names.
    files: Vec<(String, Vec<u8>)>,
    /// Ends of the flows, as nodes of the scenario.
    ends: Vec<(usize, usize)>,
    questions: [Question; 4],
    jobs: usize,
}

impl Setting<'_> {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        let found = self.files.iter().find(|(known, _)| known == name);
        found.map(|(_, bytes)| bytes.clone()).ok_or_else(|| format!("{name}: this file does not exist"))
    }

    fn sets(&self, varied: Option<(&Question, &Choice)>) -> Vec<String> {
        let sets = questions::sets(&self.questions, varied);
        sets.into_iter().chain(self.arguments.set.clone()).collect()
    }

    /// Creates the campaign of these flows with these settings.
    fn campaign(&self, flows: &[(usize, usize)], sets: Vec<String>) -> Result<Arc<Campaign>, Failure> {
        let refused = |why: String| (REFUSED, why);
        let file = self.arguments.map[0].display();
        let text = advise::scenario(&self.mesh, flows, &self.keys, self.arguments.seconds).map_err(refused)?;
        let source = Source { name: format!("the scenario made of {file}"), text, sets };
        let scenario = Scenario::read_with(source, &|name: &str| self.load(name), "advice");
        let scenario = scenario.map_err(|why| {
            tell(&format!("{}\n", why.render(console::colors_enabled_stderr())));
            refused(String::new())
        })?;
        advise::nodes_within(scenario.points[0].config.positions.len()).map_err(refused)?;
        let campaign = Campaign { scenario, first_seed: 1, seeds: self.arguments.seeds };
        match prospect::too_much(&campaign, self.jobs) {
            Some(why) => Err(refused(format!("{file}: {why}; reduce --seconds or --seeds"))),
            None => Ok(Arc::new(campaign)),
        }
    }

    /// Writes the scenario with the usual settings and its files, so that `meshpace run` repeats
    /// it.
    fn keep(&self, directory: &Path) -> Result<(), String> {
        let names = match (&self.mesh, &self.known.map) {
            (Mesh::Places(name), Some((_, copy, _))) => Some((name.clone(), *copy)),
            _ => None,
        };
        let mesh = names.as_ref().map_or_else(|| self.mesh.clone(), |(_, copy)| Mesh::Places((*copy).to_owned()));
        let scenario = advise::scenario(&mesh, &self.ends, &self.keys, self.arguments.seconds)?;
        let scenario = advise::written(&scenario, &self.sets(None));
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
        };
        make_directory(directory).map_err(|error| error.to_string())?;
        for (name, bytes) in &self.files {
            let copy = names.as_ref().filter(|(given, _)| given == name).map_or(name.as_str(), |(_, copy)| copy);
            write(copy, bytes)?;
        }
        write("advice.toml", scenario.as_bytes())
    }
}

/// Runs the scenarios that are made from the mesh.
struct Machine<'a, 'b> {
    setting: &'a Setting<'a>,
    progress: &'a Progress,
    threads: &'a mut Threads<'b>,
}

impl Machine<'_, '_> {
    fn run(&mut self, campaign: &Arc<Campaign>) -> Result<Vec<Record>, Failure> {
        records_of(campaign, self.threads, self.progress, &self.setting.arguments.map[0])
    }

    /// Returns the records `first`, and those of further seeds that are run until the goodputs are
    /// precise enough ([`flows::more_seeds`]).
    fn repeated(&mut self, campaign: &Arc<Campaign>, first: &[Record]) -> Result<Vec<Record>, Failure> {
        let mut records = first.to_vec();
        loop {
            let seeds = flows::more_seeds(&records, first.len()) as u64;
            if seeds == 0 {
                return Ok(records);
            }
            let first_seed = campaign.first_seed + records.len() as u64;
            let more = Arc::new(Campaign { scenario: campaign.scenario.clone(), first_seed, seeds });
            self.progress.more(more.work());
            records.extend(self.run(&more)?);
        }
    }

    /// Mean goodput of a flow while no other flow sends, bit/s; `None` if it is not known.
    fn alone(&mut self, ends: (usize, usize)) -> Result<Option<f64>, Failure> {
        let campaign = self.setting.campaign(&[ends], self.setting.sets(None))?;
        self.progress.more(campaign.work());
        Ok(flows::alone(&self.run(&campaign)?))
    }
}

/// Results of all simulations.
struct Simulated {
    told: Vec<Told>,
    answers: Vec<Answer>,
    /// Number of pairs of nodes that hear each other, and how many of these pairs have a link that
    /// is too weak for routing.
    pairs: (usize, usize),
}

fn advice(arguments: &Arguments) -> Result<String, Failure> {
    let refused = |why: String| (REFUSED, why);
    let mut known = input::read(&arguments.map).map_err(refused)?;
    let ends: Vec<(usize, usize)> = arguments
        .flow
        .iter()
        .map(|flow| input::ends(flow, known.dump.as_ref()))
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    let rate = arguments.rate.unwrap_or(Rate::Mcs(arguments.mcs));
    if let Rate::Mcs(mcs) = rate {
        format!("MCS {mcs}").parse::<Rate>().map_err(refused)?;
    }
    if let Some(dump) = &mut known.dump {
        plan::fill_shares(dump, rate);
    }
    let ways = known.dump.as_ref().map(|dump| ways_of(dump, &ends)).transpose().map_err(refused)?;
    let plan = match (&known.dump, &ways) {
        (Some(dump), Some(ways)) => Some(model::of_dump(arguments, &known, dump, ways, rate)?),
        _ => None,
    };
    let paths = paths_of(arguments, &known, ways.as_deref().unwrap_or_default(), plan.as_ref()).map_err(refused)?;
    let setting = setting(arguments, &known, &ends, rate, plan.as_ref());
    // The scenario is checked before any file is written, so that a refused scenario leaves no
    // files behind.
    let usual = setting.campaign(&setting.ends, setting.sets(None))?;
    if let Some(directory) = &arguments.keep {
        setting.keep(directory).map_err(|why| (FAILED, why))?;
    }
    let mut found = match plan.as_ref().and_then(|plan| plan.not_simulated.as_ref().map(|why| (plan, why))) {
        None => simulated(&setting, &usual, plan.as_ref())?,
        Some((plan, why)) => {
            let name = |node: usize| known.name(node);
            let told: Vec<Told> = paths
                .iter()
                .zip(&plan.routes)
                .zip(&ends)
                .map(|((path, route), (from, to))| flows::predicted(path, route, [name(*from), name(*to)]))
                .collect();
            if told.is_empty() {
                return Err(refused(format!(
                    "{}: {why}; and the goodput of each hop is not known",
                    arguments.map[0].display()
                )));
            }
            Simulated { told, answers: Vec::new(), pairs: plan.pairs }
        }
    };
    if let (false, Some(kbps)) = (paths.is_empty(), paths.iter().map(|path| path.measured_kbps).sum::<Option<f64>>()) {
        advise::measured(&mut found.answers, 1e3 * kbps);
    }
    Ok(page(&setting, plan.as_ref(), &paths, found))
}

/// Collects the settings that all runs share.
fn setting<'a>(
    arguments: &'a Arguments,
    known: &'a Known,
    ends: &[(usize, usize)],
    rate: Rate,
    plan: Option<&Plan>,
) -> Setting<'a> {
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    let questions = questions::questions(&known.state);
    let (mesh, keys, files, ends) = match (plan, known.places(), &known.map) {
        (Some(plan), ..) => {
            let files = vec![
                ("links.csv".to_owned(), plan.links.clone().into_bytes()),
                ("map.json".to_owned(), plan.map.clone().into_bytes()),
            ];
            (Mesh::Routed(plan.nodes.len()), plan.keys.clone(), files, plan.ends.clone())
        }
        (None, Some(mesh), Some((name, _, bytes))) => {
            (mesh, plan::keys_of(rate), vec![(name.clone(), bytes.clone())], ends.to_vec())
        }
        (None, ..) => (Mesh::Routed(0), Vec::new(), Vec::new(), ends.to_vec()),
    };
    Setting { arguments, known, mesh, keys, files, ends, questions, jobs }
}

/// Runs the campaign with the usual settings, and one campaign for every choice of every question.
fn simulated(setting: &Setting<'_>, usual: &Arc<Campaign>, plan: Option<&Plan>) -> Result<Simulated, Failure> {
    let stop = stop_on_interrupt();
    runner::silence_panics();
    let tried: Vec<Vec<(Choice, Arc<Campaign>)>> = setting
        .questions
        .iter()
        .map(|question| {
            let campaign = |choice: &Choice| {
                Ok((choice.clone(), setting.campaign(&setting.ends, setting.sets(Some((question, choice))))?))
            };
            question.others.iter().map(campaign).collect()
        })
        .collect::<Result<_, Failure>>()?;
    // One progress bar covers all campaigns, because a single choice takes little time.
    let progress = Progress::new(usual.work());
    tried.iter().flatten().for_each(|(_, campaign)| progress.more(campaign.work()));
    let mut threads = Threads::new(setting.jobs, &stop);
    let mut machine = Machine { setting, progress: &progress, threads: &mut threads };
    let records = machine.run(usual)?;
    advise::hops_within(&records).map_err(|why| (REFUSED, why))?;
    let repeated = machine.repeated(usual, &records)?;
    let told = told(&mut machine, usual, plan, &repeated)?;
    let mut answers = Vec::new();
    let asked = setting.questions.iter().zip(&tried).filter(|(_, tried)| !tried.is_empty());
    for (question, tried) in asked {
        let tried: Vec<_> = tried
            .iter()
            .map(|(choice, campaign)| Ok((choice.clone(), machine.run(campaign)?)))
            .collect::<Result<_, Failure>>()?;
        answers.extend(advise::answers(question, &records, &tried).map_err(|why| (FAILED, why))?);
    }
    progress.finish();
    Ok(Simulated { answers, ..told })
}

/// Returns the results of the flows with the usual settings.
fn told(
    machine: &mut Machine<'_, '_>,
    usual: &Arc<Campaign>,
    plan: Option<&Plan>,
    records: &[Record],
) -> Result<Simulated, Failure> {
    let setting = machine.setting;
    let of_scenario = routes(&usual.scenario.points[0].config);
    let routes = plan.map_or(of_scenario.of.as_slice(), |plan| plan.routes.as_slice());
    let node = |node: usize| plan.and_then(|plan| plan.nodes.get(node).copied()).unwrap_or(node);
    let mut told = flows::told(records, routes, &|place| setting.known.name(node(place)));
    for told in &mut told {
        if let Some(plan) = plan {
            told.basis.clone_from(&plan.basis);
            told.assumed_rate = plan.assumed.map(|rate| rate.to_string());
            // If a cable lies between the router and the station that sends, the flow's end is the
            // router.
            let ends = plan.routes[told.flow].nodes();
            if let (Some(first), Some(last)) = (ends.first(), ends.last()) {
                told.ends = [setting.known.name(*first), setting.known.name(*last)];
            }
        } else {
            let rate = setting.arguments.rate.unwrap_or(Rate::Mcs(setting.arguments.mcs));
            told.basis = format!("at an assumed {rate}; set it with --rate");
            told.assumed_rate = Some(rate.to_string());
        }
        if told.starved_runs() > 0 {
            let (from, to) = setting.ends[told.flow];
            told.alone_bps = if setting.ends.len() > 1 { machine.alone((from, to))? } else { Some(told.goodput_bps) };
            told.back_alone_bps = machine.alone((to, from))?;
        }
    }
    let pairs = plan.map_or((of_scenario.links, of_scenario.too_weak), |plan| plan.pairs);
    Ok(Simulated { told, answers: Vec::new(), pairs })
}

/// Formats the whole answer as text or as JSON.
fn page(setting: &Setting<'_>, plan: Option<&Plan>, paths: &[paths::Path], found: Simulated) -> String {
    let (arguments, known) = (setting.arguments, setting.known);
    let Simulated { told, answers, pairs } = found;
    let not_simulated = plan.and_then(|plan| plan.not_simulated.as_deref());
    let helps = match not_simulated {
        Some(why) => format!(
            "Nothing was simulated, so no setting was tried: {why}. The weakest hop limits the flow: improve that hop, or use a route without it.\n"
        ),
        None => advise::helps(&answers),
    };
    let hops = told.iter().map(|told| told.route.hops.len()).max().unwrap_or(0);
    let sure = match not_simulated {
        Some(_) => {
            "On measured paths, the goodput of nine in ten was 0.52 to 2.75 times such a prediction (docs/field.md)."
                .to_owned()
        }
        None => errors::words(setting.ends.len(), hops),
    };
    let left_out = known.dump.as_ref().map(|dump| dump.left_out.as_slice()).unwrap_or_default();
    let questions = setting.questions.iter().map(|question| {
        let of: Vec<&Answer> = answers.iter().filter(|answer| answer.question == question.name).collect();
        (question, of)
    });
    if arguments.json {
        let mut text: String = told.iter().map(|told| format!("{}\n", json!(told))).collect();
        paths.iter().for_each(|path| text.push_str(&format!("{}\n", json!(path))));
        answers.iter().for_each(|answer| text.push_str(&format!("{}\n", json!(answer))));
        let left_out: Vec<Value> =
            left_out.iter().map(|entry| json!({"place": entry.place, "why": entry.why})).collect();
        let last = json!({"helps": helps, "error": sure, "links": pairs.0, "weak_links": pairs.1, "left_out": left_out, "state": questions::state_words(&known.state)});
        return format!("{text}{last}\n");
    }
    let mut text = first(&told, pairs, known, left_out);
    paths.iter().for_each(|path| text.push_str(&paths::words(path, &|node| known.name(node))));
    text.push_str(&format!("\n# What helps\n\n{helps}"));
    for (question, of) in questions.filter(|(_, of)| !of.is_empty()) {
        let choices: String = of.into_iter().map(advise::told).collect();
        text.push_str(&format!("\n# {} (usual: {})\n\n{choices}", question.name, question.usual.name));
    }
    text.push_str(&format!("\n# How certain this is\n\n{sure}\n"));
    if not_simulated.is_none() {
        text.push_str(&format!("\n{LEFT_OUT}\n"));
    }
    text
}

/// Largest number of left-out entries that the text lists. The number of all entries is printed,
/// too.
const LISTED: usize = 8;

/// First part of the advice, before any setting: results of the flows, links that are too weak,
/// dumps and measurements that are missing, and entries that were left out.
fn first(told: &[Told], pairs: (usize, usize), known: &Known, left_out: &[LeftOut]) -> String {
    let state = if known.state.is_found {
        format!("the settings of the mesh: {}", questions::state_words(&known.state))
    } else {
        "the usual settings".to_owned()
    };
    let mut text = format!("# Goodput of each flow (with {state})\n\n");
    told.iter().for_each(|told| text.push_str(&flows::words(told, &|node| known.name(node))));
    if pairs.1 > 0 {
        text.push_str(&format!(
            "{} of {} links are too weak: fewer than half of their frames arrive, and no route uses them\n",
            pairs.1, pairs.0
        ));
    }
    if let Some(missing) = known.dump.as_ref().and_then(Dump::missing) {
        text.push_str(&format!("Incomplete data: {missing}\n"));
    }
    known.notes.iter().for_each(|note| text.push_str(&format!("Not measured: {note}\n")));
    if !left_out.is_empty() {
        text.push_str(&format!("{} entries of the input were ignored:\n", left_out.len()));
        for LeftOut { place, why } in left_out.iter().take(LISTED) {
            text.push_str(&format!("   {place}: {why}\n"));
        }
        if left_out.len() > LISTED {
            text.push_str(&format!("   and {} more; --json lists all of them\n", left_out.len() - LISTED));
        }
    }
    text
}

/// Returns the path of each flow according to the mesh's own routing.
fn ways_of(dump: &Dump, ends: &[(usize, usize)]) -> Result<Vec<Vec<usize>>, String> {
    let way = |&(from, to): &(usize, usize)| {
        let name = |node: usize| dump.nodes.get(node).cloned().unwrap_or_else(|| node.to_string());
        let missing = || dump.missing().unwrap_or_else(|| "no links connect them".to_owned());
        ways::way(dump, from, to)
            .ok_or_else(|| format!("no path from {} to {} is known: {}", name(from), name(to), missing()))
    };
    ends.iter().map(way).collect()
}

/// Predicts the goodput of each path from what each of its hops carries alone, or otherwise from
/// its metric, and adds the measured goodput. The result is empty if neither is known for some hop.
fn paths_of(
    arguments: &Arguments,
    known: &Known,
    ways: &[Vec<usize>],
    plan: Option<&Plan>,
) -> Result<Vec<paths::Path>, String> {
    let hop_kbps = arguments.hop_goodput;
    let Some(dump) = known.dump.as_ref() else {
        return match hop_kbps {
            Some(_) => {
                Err("--hop-goodput needs the metrics of a dump, and a map has none; give a dump of a routing daemon"
                    .to_owned())
            }
            None => Ok(Vec::new()),
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
    let by_rate = plan.is_some_and(|plan| plan.not_simulated.is_some());
    Ok(paths::paths(dump, ways, paths::Sources { hop_kbps, by_rate }, &measured))
}
