//! Reads scenario files in TOML. The result is checked configurations, or a list of all errors.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod chain;
mod dscp;
pub mod effective;
pub mod estimate;
mod files;
mod flow;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod joint;
pub mod json_lines;
pub mod keys;
mod link;
mod links;
mod mesh;
mod overrides;
mod partition;
mod path;
mod pieces;
mod plot;
mod points;
mod programs;
mod propagation;
mod rates;
mod reader;
mod sweep;
mod toml_text;
mod topology;
mod traffic;
mod transport;
mod warnings;

pub use files::{Load, MOST as LARGEST_FILE, read as read_file};
pub use joint::Part;
pub use meshpace_settings::{Problem, Refusal, Source, diagnostic, nearest, one_of, quantity, value};
pub use plot::{FIGURE_WIDTHS, METRICS as PLOTTED, Plot};
pub use points::Points;
pub use programs::Program;
pub use topology::{Draw, Unplaced};

use meshpace_core::{Duration, NodeId, Parameter, parameter};
use meshpace_mesh::config::{Propagation, RadioConfig, RoutingConfig};
use meshpace_mesh::radio::connectivity::components;
use meshpace_mesh::radio::{Channel, Neighbours};
use meshpace_mesh::routing::HopCount;
use meshpace_settings::diagnostic::Problems;
use meshpace_settings::value::{Origin, Table, Value};
use meshpace_sim::Mobility;
use points::Checked;
use reader::Reader;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use sweep::Sweep;
use topology::Topology;

/// Longest run, seconds of simulated time (31 years).
const MAX_SECONDS: f64 = 1e9;
/// Largest number of points of a sweep.
pub const MAX_POINTS: usize = 1_000_000;
/// Largest number of pairs of nodes that sense each other for which the length of paths is checked
/// when a scenario is read. So many pairs need about 2 GB.
const MAX_PAIRS_IN_READING: f64 = 5e7;
/// Number of points above which a sweep is large. The combinations of values of a large sweep are
/// checked during the campaign instead of before it.
pub const LARGE: usize = 1_000;
/// Key of a part's name in the values of its points, in a campaign of several scenarios.
pub const PART: &str = "part";
/// Maximum number of seeds per point.
pub const MAX_SEEDS: u64 = 1_000_000;
/// Length of a run, and the part of it that is not measured.
static DURATION: Parameter = parameter!(duration: Duration = Duration::from_secs(200) => TIME.above(0.0).to(MAX_SECONDS), Basic,
    "simulated time of a run");
static WARMUP: Parameter = parameter!(warmup: Duration = Duration::ZERO => TIME.to(MAX_SECONDS), Basic,
    "time at the start that is not measured; \"auto\" finds it for each run: the first time after the start of the last flow at which goodput is steady");
static STARVED_AFTER: Parameter = parameter!(starved_after: f64 = 0.1 => number(0.001, 1.0), Expert,
    "share of the measured time; a flow that has data to send and a path but delivers nothing for longer counts as starved");

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Title, or the name of the file without its extension.
    pub name: String,
    /// SHA-256 of everything that the scenario was read from, in hexadecimal.
    pub digest: String,
    /// Points of the sweep. A scenario without a sweep has one point.
    pub points: Points,
    /// Seeds per point.
    pub seeds: u64,
    /// Settings of the report.
    pub plot: Plot,
    /// Warnings about settings that are allowed but probably not intended, one sentence each.
    pub warnings: Vec<String>,
    /// Source of the scenario.
    pub source: Source,
    /// Files that the scenario names, with their contents, by name.
    pub files: Files,
    /// Scenarios of a campaign of several; empty for a single scenario.
    pub parts: Vec<Part>,
}

/// Files by the names that the scenario has for them, with their contents.
pub type Files = Vec<(PathBuf, Vec<u8>)>;

/// One point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Values of the sweep at this point, in the sweep's order.
    pub values: Vec<(String, serde_json::Value)>,
    /// Configuration of the runs. Positions and ends that are drawn for each seed are those of
    /// seed 1; see [`Point::drawn`].
    pub config: meshpace_sim::Config,
    /// Name of each flow's transport in records.
    pub transports: Vec<String>,
    /// Name of each flow, if the scenario gives it one.
    pub names: Vec<Option<String>>,
    /// Draw of positions and of ends of flows for each seed.
    pub draw: Option<Draw>,
    /// Programs of an emulation, in the order in which they start.
    pub programs: Vec<Program>,
    /// True if each run determines its own warm-up. The warm-up in `config` then ends with the
    /// start of the last flow.
    pub finds_warmup: bool,
    /// Share of the measured interval. A flow that delivers nothing for longer is starved.
    pub starved_after: f64,
}

impl Point {
    /// The point with the positions and ends that are drawn for `seed`.
    ///
    /// # Errors
    /// If no suitable placement was found.
    pub fn drawn(&self, seed: u64) -> Result<Cow<'_, Point>, Unplaced> {
        let Some(draw) = &self.draw else { return Ok(Cow::Borrowed(self)) };
        let drawn = draw.of(seed)?;
        let mut point = self.clone();
        if let Some(positions) = drawn.positions {
            point.config.positions = positions;
        }
        for (flow, (from, to)) in point.config.flows.iter_mut().zip(drawn.ends.into_iter().flatten()) {
            (flow.from, flow.to) = (NodeId(from as u16), NodeId(to as u16));
        }
        Ok(Cow::Owned(point))
    }
}

impl Scenario {
    /// Reads a scenario, or a campaign of several ([`Part`]). File names are relative to
    /// `directory`. The name of a scenario without a title is `stem`.
    ///
    /// # Errors
    /// All errors of the scenario, in the order of the file as far as possible.
    pub fn read(source: Source, directory: &Path, stem: &str) -> Result<Scenario, Refusal> {
        Scenario::read_with(source, &|name| files::from_disk(directory, name), stem)
    }

    /// Reads a scenario whose files come from `load`.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn read_with(source: Source, load: Load<'_>, stem: &str) -> Result<Scenario, Refusal> {
        Scenario::checked(source, load, stem, usize::MAX)
    }

    /// Reads a scenario that is run as a campaign. If its sweep has more than [`LARGE`] points,
    /// only a selection is built and checked: every value of every axis occurs in it. An error in
    /// another combination of values is reported by [`Points::build`].
    ///
    /// # Errors
    /// As [`Scenario::read`], except for errors that only a combination of values has.
    pub fn read_sweep(source: Source, directory: &Path, stem: &str) -> Result<Scenario, Refusal> {
        Scenario::read_sweep_with(source, &|name| files::from_disk(directory, name), stem)
    }

    /// Reads a scenario that is run as a campaign, whose files come from `load`.
    ///
    /// # Errors
    /// As [`Scenario::read_sweep`].
    pub fn read_sweep_with(source: Source, load: Load<'_>, stem: &str) -> Result<Scenario, Refusal> {
        Scenario::checked(source, load, stem, LARGE)
    }

    /// Reads a scenario, or a campaign of several. If a sweep has at most `most` points, all of
    /// them are built.
    fn checked(source: Source, load: Load<'_>, stem: &str, most: usize) -> Result<Scenario, Refusal> {
        if let Some(root) = joint::tree(&source.text) {
            return joint::read(&root, source, load, stem);
        }
        let problems = Problems::default();
        let scenario = read(&source, load, stem, most, &problems);
        let mut problems = problems.into_vec();
        if problems.is_empty() {
            return Ok(scenario);
        }
        problems.sort_by_key(|problem| match &problem.origin {
            Some(Origin::File(span)) => (0, span.start),
            Some(Origin::Set(index)) => (1, *index),
            None => (2, 0),
        });
        Err(Refusal { source, problems })
    }
}

fn read(source: &Source, load: Load<'_>, stem: &str, most: usize, problems: &Problems) -> Scenario {
    let mut scenario = Scenario {
        name: stem.to_owned(),
        digest: String::new(),
        points: Points::default(),
        seeds: 1,
        plot: Plot::default(),
        warnings: Vec::new(),
        source: source.clone(),
        files: Vec::new(),
        parts: Vec::new(),
    };
    let (document, errors) = toml::de::DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        for error in errors {
            let span = error.span().unwrap_or(0..0);
            problems.at(&Origin::File(span), format!("not TOML: {}", error.message()), "here");
        }
        return scenario;
    }
    let mut root = Table::from_toml(document.get_ref(), &Origin::File);
    overrides::apply(&mut root, &source.sets, problems);
    let sweep = Sweep::take(&mut root, problems);
    scenario.seeds = sweep.seeds;
    scenario.plot = Plot::take(&mut root, Some(&sweep.keys()), &source.sets, problems);
    if problems.count() > 0 && sweep.points() > MAX_POINTS {
        return scenario;
    }
    let singles = if sweep.points() > most { sweep.singles() } else { BTreeSet::new() };
    // If the selection would leave out few points, all points are built.
    if singles.is_empty() || singles.len() > sweep.points() / 4 {
        let mut points = Vec::new();
        read_points(0..sweep.points(), &sweep, &root, load, &mut scenario, problems, |_, point| points.push(point));
        scenario.points = points.into();
    } else {
        let mut checked = Checked::default();
        read_points(singles, &sweep, &root, load, &mut scenario, problems, |number, point| checked.add(number, &point));
        if problems.count() == 0 {
            scenario.points = checked.plan(root, sweep, scenario.files.clone()).into();
        }
    }
    scenario
}

/// Reads the points in `numbers` and passes each to `each`. Sets the scenario's name, warnings,
/// files and digest.
fn read_points(
    numbers: impl IntoIterator<Item = usize>,
    sweep: &Sweep,
    root: &Table,
    load: Load<'_>,
    scenario: &mut Scenario,
    problems: &Problems,
    mut each: impl FnMut(usize, Point),
) {
    let mut files = Vec::new();
    for number in numbers {
        problems.enter(None);
        let (tree, values) = sweep.point(number, root, problems);
        problems.enter((!values.is_empty()).then(|| {
            let values = values.iter().map(|(key, value)| format!("{key} = {value}"));
            values.collect::<Vec<_>>().join(", ")
        }));
        let (point, title, read) = read_point(&tree, values, load, sweep.seeds, problems);
        for warning in warnings::of(&point).into_iter().chain(problems.take_notes()) {
            if !scenario.warnings.contains(&warning) {
                scenario.warnings.push(warning);
            }
        }
        each(number, point);
        if let Some(title) = title.filter(|_| number == 0) {
            scenario.name = title;
        }
        files.extend(read);
        // An error in one point is often an error in all. After more than 20 errors, further points
        // are not read.
        if problems.count() > 20 {
            break;
        }
    }
    files.sort();
    files.dedup();
    scenario.digest = digest(&scenario.source, &files);
    scenario.files = files;
}

fn read_point(
    tree: &Table,
    values: Vec<(String, serde_json::Value)>,
    load: Load<'_>,
    seeds: u64,
    problems: &Problems,
) -> (Point, Option<String>, Files) {
    let mut root = Reader::new(tree, None, String::new(), problems);
    let title = root.text("title").map(str::to_owned);
    let duration: Duration = root.standalone(&DURATION);
    let warmup: Option<Duration> = root.standalone_or(&WARMUP, "auto");
    if warmup.is_some_and(|warmup| warmup >= duration) {
        let message = format!("there is nothing to measure: the run ends at {} s", duration.as_secs_f64());
        root.report_conflict(&["warmup", "duration"], message, "expected a warmup shorter than the duration");
    }
    let starved_after = root.standalone(&STARVED_AFTER);
    let (series, batches) = pieces::read(&mut root, duration);
    let (mut mesh, mesh_files) = mesh::read(&mut root, load);
    let mut channel = Channel::new(&mesh.radio);
    let mut topology = Topology::read(&mut root, load, &channel, topology::usual_spacing(&mesh.radio, &channel));
    let watch = pieces::watch(&mut root, topology.positions.len());
    let programs = programs::read(&mut root, topology.positions.len());
    let flow::Flows { flows, labels, names, traces, files } = flow::read(&mut root, &topology, &mesh, duration, load);
    let last_start = warnings::last_start(&flows);
    if warmup.is_none() && last_start >= duration {
        let message = format!("there is nothing to measure: the last flow starts at {} s", last_start.as_secs_f64());
        root.report_conflict(&["warmup", "duration"], message, "expected flows that start before the end");
    }
    propagation::refuse_miscounted_attenuators(&root, &mesh.radio, topology.positions.len());
    if topology.mobility == Mobility::Still {
        accept_weak_links(&mut mesh.radio, &mut channel, &topology, &flows);
    }
    // A list of links that could not be read has been reported already. Nodes that move may be
    // separated for a time.
    let has_links = !matches!(&mesh.radio.propagation, Propagation::Links(links) if links.all().is_empty());
    if topology.mobility == Mobility::Still && !topology.allow_partition && has_links {
        refuse_partition(&root, &topology, &channel, &flows);
    }
    if topology.mobility == Mobility::Still {
        refuse_long_paths(&root, &topology, &channel, &flows, mesh.routing);
    }
    if topology.mobility != Mobility::Still && mesh.routing == RoutingConfig::Static {
        refuse_static_routes(&root);
    }
    // The keys `sweep` and `plot` were taken out of the tree before. They are requested here so
    // that they are not unknown.
    root.get("sweep");
    root.table("plot");
    let place = root.value("topology").and_then(Value::set_by).or_else(|| root.origin("topology"));
    root.finish("a scenario");
    let positions = std::mem::take(&mut topology.positions);
    let firewall = topology.accepted_links();
    let mobility = topology.mobility;
    let config = meshpace_sim::Config {
        duration,
        warmup: warmup.unwrap_or(last_start),
        positions,
        mobility,
        firewall,
        mesh,
        flows,
        traces,
        series,
        watch,
        batches,
    };
    topology.files.extend(files);
    topology.files.extend(mesh_files);
    let limit = topology.longest_partition;
    let (draw, finds_warmup) = (topology.draw, warmup.is_none());
    let point = Point { values, config, transports: labels, names, draw, programs, finds_warmup, starved_after };
    if let Some(limit) = limit
        && problems.count() == 0
        && let Some(message) = partition::fault(&point, &channel, limit, seeds)
    {
        problems.add(Problem {
            message,
            origin: place,
            expected: "expected a path between the ends of every flow, but for a time".to_owned(),
            help: Some(partition::HELP.to_owned()),
            point: None,
        });
    }
    (point, title, topology.files)
}

/// Allows the use of links that carry fewer than half of the frames, if a flow has no path in both
/// directions without them. Only links from a file are concerned: the file says that frames arrive
/// over them.
fn accept_weak_links(
    radio: &mut RadioConfig,
    channel: &mut Channel,
    topology: &Topology,
    flows: &[meshpace_sim::Flow],
) {
    let Propagation::Links(links) = &mut radio.propagation else { return };
    let allowed: Option<BTreeSet<_>> =
        topology.accepted_links().map(|links| links.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect());
    let is_link = |from: NodeId, to: NodeId| channel.is_link(from, to, 0.0);
    let both_ways = links.all().iter().map(|&(from, to, _)| (from, to)).filter(|&(from, to)| {
        let is_allowed = allowed.as_ref().is_none_or(|allowed| allowed.contains(&(from, to)));
        is_allowed && is_link(from, to) && is_link(to, from)
    });
    let mut neighbours: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    both_ways.for_each(|(from, to)| neighbours.entry(from).or_default().push(to));
    let is_connected = |flow: &meshpace_sim::Flow| {
        let (mut seen, mut waiting) = (BTreeSet::from([flow.from]), vec![flow.from]);
        while let Some(node) = waiting.pop() {
            waiting.extend(neighbours.get(&node).into_iter().flatten().filter(|next| seen.insert(**next)));
        }
        seen.contains(&flow.to)
    };
    if !flows.iter().all(is_connected) {
        links.accept_weak_links();
        *channel = Channel::new(radio);
    }
}

fn refuse_partition(root: &Reader<'_>, topology: &Topology, channel: &Channel, flows: &[meshpace_sim::Flow]) {
    let links = topology.accepted_links();
    let components = components(&topology.positions, channel, links.as_deref());
    // Two nodes that the topology makes neighbours, although they are too far apart.
    let has_distances = channel.link_range().is_finite();
    let gap = topology.links.iter().flatten().filter(|_| has_distances).find_map(|&(a, b)| {
        let place = |node: u64| topology.positions.get(node as usize).copied();
        let (one, other) = (place(a)?, place(b)?);
        let distance = one.distance(other);
        (!channel.is_link(NodeId(a as u16), NodeId(b as u16), distance))
            .then(|| format!("; nodes {a} and {b} are neighbours in the topology, but {} m apart", rounded(distance)))
    });
    // With an attenuator per node, or with shadowing, every link has a range of its own.
    let reach = match channel.has_one_range() {
        true => format!(" up to {} m", rounded(channel.link_range())),
        false => String::new(),
    };
    for flow in flows {
        if components[flow.from.index()] != components[flow.to.index()] {
            root.problems().add(Problem {
                message: format!(
                    "topology: there is no path of links{} between node {} and node {}{}",
                    reach,
                    flow.from.0,
                    flow.to.0,
                    gap.as_deref().unwrap_or_default()
                ),
                origin: root.value("topology").and_then(Value::set_by).or_else(|| root.origin("topology")),
                expected: "expected a path between the ends of every flow".to_owned(),
                help: Some(match has_distances {
                    true => "move the nodes closer, or set topology.allow_partition = true".to_owned(),
                    false => {
                        "add the links of a path to radio.links, or set topology.allow_partition = true".to_owned()
                    }
                }),
                point: None,
            });
        }
    }
}

/// Refuses paths that have more hops than a packet's time to live.
fn refuse_long_paths(
    root: &Reader<'_>,
    topology: &Topology,
    channel: &Channel,
    flows: &[meshpace_sim::Flow],
    routing: RoutingConfig,
) {
    let limit = u64::from(routing.time_to_live());
    if topology.positions.len() as u64 <= limit + 1 {
        return;
    }
    // The path lengths of a very dense mesh are not checked, because building its neighbour table
    // is expensive. The estimate reports the cost of the run before the mesh is built.
    if estimate::pairs(&topology.positions, channel) > MAX_PAIRS_IN_READING {
        return;
    }
    let mut adjacency = Neighbours::new(channel, &topology.positions).adjacency();
    if let Some(links) = topology.accepted_links() {
        let links: BTreeSet<_> = links.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        for (node, neighbours) in adjacency.iter_mut().enumerate() {
            let node = NodeId(node as u16);
            neighbours.retain(|&other| links.contains(&(node, other)));
        }
    }
    let mut count = HopCount::default();
    for (number, flow) in flows.iter().enumerate() {
        let hops = count.between(&adjacency, flow.from, flow.to, u64::MAX);
        let Some(hops) = hops.filter(|&hops| hops > limit) else { continue };
        root.problems().add(Problem {
            message: format!(
                "topology: flow {number} needs {hops} hops from node {} to node {}, but packets are dropped after {limit} hops",
                flow.from.0, flow.to.0
            ),
            origin: root.value("topology").and_then(Value::set_by).or_else(|| root.origin("topology")),
            expected: format!("expected at most {limit} hops between the ends of every flow"),
            help: (routing.time_to_live() < RoutingConfig::Static.time_to_live())
                .then(|| "the limit is the network diameter of AODV; other routing protocols allow more hops".to_owned()),
            point: None,
        });
    }
}

/// Formats metres with three significant digits.
fn rounded(metres: f64) -> String {
    let decimals = (2 - metres.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{metres:.decimals$}")
}

fn refuse_static_routes(root: &Reader<'_>) {
    let routing = root.value("routing");
    root.problems().add(Problem {
        message: "routing.protocol: static routes do not follow nodes that move".to_owned(),
        origin: routing.and_then(Value::set_by).or_else(|| root.origin("routing")).or_else(|| root.origin("topology")),
        expected: "expected a routing protocol such as \"aodv\"".to_owned(),
        help: None,
        point: None,
    });
}

/// SHA-256 of everything that a scenario is read from. Each part is preceded by its length, so that
/// no two scenarios share a digest.
pub fn digest(source: &Source, files: &[(PathBuf, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(source.text.as_bytes());
    source.sets.iter().for_each(|argument| part(argument.as_bytes()));
    for (name, bytes) in files {
        part(name.to_string_lossy().as_bytes());
        part(bytes);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
