//! `[[flow]]`: sender, receiver, application, times, transport and name of each flow.

use super::MAX_SECONDS;
use super::dscp;
use super::files::Load;
use super::reader::Reader;
use super::topology::Topology;
use super::traffic;
use super::transport::pacing::usual_interference;
use super::transport::{self, Transport};
use meshpace_core::{Duration, NodeId, Parameter, Time, parameter};
use meshpace_mesh::MeshConfig;
use meshpace_settings::diagnostic::Problem;
use meshpace_settings::value::{Kind, Origin, Value};
use meshpace_sim::config::TraceWrite;
use meshpace_sim::{Flow, Traffic};
use meshpace_transport::pacing::OutOfInterference;
use meshpace_transport::{Config, names};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Largest number of characters of a flow's name.
const LONGEST_NAME: usize = 40;

static COUNT: Parameter = parameter!(count: u64 = 1 => whole("flows alike", 1, 1000), Basic, "number of equal flows");
static SEGMENT: Parameter = parameter!(segment: Option<u32> = None => whole("bytes", 1, 65495).or("the transport's"), Basic,
    "payload of a segment");
static MAX_WINDOW: Parameter = parameter!(max_window: Option<u32> = None => whole("segments", 1, 65535).or("the transport's"), Basic,
    "largest number of segments in flight", "ns-2, window_");
static START: Parameter = parameter!(start: Duration = Duration::from_secs(1) => TIME.to(MAX_SECONDS), Basic, "time at which the flow starts");
static START_JITTER: Parameter = parameter!(start_jitter: Duration = Duration::from_millis(100) => TIME.to(MAX_SECONDS), Expert,
    "random time that is added to the start: uniform from 0 to this value, drawn from the seed");
static STOP: Parameter = parameter!(stop: Option<Duration> = None => TIME.above(0.0).to(MAX_SECONDS).or("the end of the run"), Basic,
    "time at which its application stops");

/// Flows and the names that records use for them.
#[derive(Default, Debug)]
pub struct Flows {
    /// Flows, by number.
    pub flows: Vec<Flow>,
    /// Label of each flow's transport.
    pub labels: Vec<String>,
    /// Name of each flow, if it has one.
    pub names: Vec<Option<String>>,
    /// Traces that the flows replay.
    pub traces: Vec<Vec<TraceWrite>>,
    /// Files that were read, with their contents, for the digest.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// The flows of one `[[flow]]` table, with everything that belongs to them.
struct One {
    /// Number of identical flows.
    count: u64,
    flow: Flow,
    label: String,
    name: Option<String>,
    trace: Option<Vec<TraceWrite>>,
    file: Option<(PathBuf, Vec<u8>)>,
}

impl Flows {
    fn add(&mut self, one: One) {
        let One { count, mut flow, label, name, trace, file } = one;
        if let (Traffic::Trace { number }, Some(trace)) = (&mut flow.traffic, trace) {
            *number = self.traces.len() as u16;
            self.traces.push(trace);
        }
        self.flows.extend(std::iter::repeat_n(flow, count as usize));
        self.labels.extend(std::iter::repeat_n(label, count as usize));
        self.names.extend(numbered(name.as_deref(), count as usize));
        self.files.extend(file);
    }
}

/// Names of the flows of one table. If there are several, each name ends with a number.
fn numbered(name: Option<&str>, count: usize) -> impl Iterator<Item = Option<String>> {
    (1..=count).map(move |number| match count {
        1 => name.map(str::to_owned),
        _ => name.map(|name| format!("{name} {number}")),
    })
}

/// Makes the flows if the topology determines their number. There is one table for each of them, or
/// one table for all.
fn make_flows(all: &mut Flows, root: &Reader<'_>, topology: &Topology, tables: usize) {
    let ends = &topology.default_ends;
    if tables != 1 && tables != ends.len() {
        let message =
            format!("topology.flows creates {} flows, but the scenario has {tables} [[flow]] tables", ends.len());
        root.report_invalid("flow", message, format!("expected one [[flow]] for all of them, or {}", ends.len()));
    } else if let (1, [flow], [label]) = (tables, all.flows.as_slice(), all.labels.as_slice()) {
        let (flow, label) = (flow.clone(), label.clone());
        all.names = numbered(all.names.first().cloned().flatten().as_deref(), ends.len()).collect();
        all.labels = vec![label; ends.len()];
        let with_ends =
            |&(from, to): &(u64, u64)| Flow { from: NodeId(from as u16), to: NodeId(to as u16), ..flow.clone() };
        all.flows = ends.iter().map(with_ends).collect();
    }
}

/// Reads every `[[flow]]`.
pub fn read(
    root: &mut Reader<'_>,
    topology: &Topology,
    mesh: &MeshConfig,
    duration: Duration,
    load: Load<'_>,
) -> Flows {
    let usual = usual_interference(mesh);
    let mut all = Flows::default();
    match root.get("flow") {
        Some(Value { kind: Kind::Array(items), .. }) if !items.is_empty() && items.len() <= usize::from(u16::MAX) => {
            for (number, item) in items.iter().enumerate() {
                let path = format!("flow.{number}");
                let Kind::Table(table) = &item.kind else {
                    let message = format!("{path}: expected a table, found {}", item.describe());
                    root.problems().at(&item.origin, message, "expected [[flow]]");
                    continue;
                };
                let mut keys = Reader::new(table, Some(&item.origin), path, root.problems());
                let set_by = root.value("duration").and_then(Value::set_by);
                let flow = read_one(&mut keys, number, topology, &usual, (duration, set_by), load);
                keys.finish("a flow");
                if let Some(flow) = flow {
                    all.add(flow);
                }
            }
            if all.flows.len() > usize::from(u16::MAX) {
                root.report_invalid(
                    "flow",
                    format!("{} flows with their counts", all.flows.len()),
                    "expected at most 65535",
                );
            }
            if topology.makes_flows {
                make_flows(&mut all, root, topology, items.len());
            }
            refuse_shared_names(root, items, &all.names);
        }
        Some(value) => root.report_invalid(
            "flow",
            format!("expected 1 to 65535 flows, found {}", value.describe()),
            "expected [[flow]], in two brackets: there can be several",
        ),
        // A scenario that has programs instead of flows is for `meshpace emulate`.
        None if root.value("program").is_some() => {}
        None => root.problems().add(Problem {
            message: "flow: the scenario has no flow".to_owned(),
            origin: None,
            expected: String::new(),
            help: Some("add a table such as\n[[flow]]\nfrom = 0\nto = 7".to_owned()),
            point: None,
        }),
    }
    all
}

fn read_one(
    keys: &mut Reader<'_>,
    number: usize,
    topology: &Topology,
    usual: &OutOfInterference,
    (duration, duration_set_by): (Duration, Option<Origin>),
    load: Load<'_>,
) -> Option<One> {
    let before = keys.problems().count();
    // Ends that the topology gives to flows that name none. A chain gives the same ends to all
    // flows.
    let default = match topology.default_ends.as_slice() {
        [only] => Some(*only),
        several => several.get(number).copied(),
    };
    for key in ["from", "to"].into_iter().filter(|_| topology.makes_flows) {
        if keys.get(key).is_some() {
            keys.report_invalid(
                key,
                "topology.flows already selects the nodes of the flows",
                format!("expected no {key}"),
            );
        }
    }
    let from = end(keys, "from", topology, default.map(|ends| ends.0));
    let to = end(keys, "to", topology, default.map(|ends| ends.1));
    if let (Some(from), Some(to)) = (from, to)
        && from == to
    {
        keys.report_invalid("to", format!("from and to are both node {to}"), "expected a node that differs from from");
    }

    let name = name(keys);
    let count: u64 = keys.standalone(&COUNT);
    if topology.makes_flows && count > 1 {
        keys.report_invalid("count", "topology.flows already sets the number of flows", "expected no count");
    }

    let segment: Option<u32> = keys.standalone(&SEGMENT);
    let max_window: Option<u32> = keys.standalone(&MAX_WINDOW);
    let application = traffic::read(keys, load, segment);
    let segment = segment.or(application.segment);

    let (start, start_jitter, stop) = times(keys, duration, duration_set_by);
    let dscp = dscp::read(keys, "dscp");
    let transport = match application.transport.filter(|_| keys.get("transport").is_none()) {
        Some(name) => Transport { config: names::lookup(name)?, label: name.to_owned() },
        None => transport::read(keys, usual)?,
    };
    let mut config = transport.config;
    match &mut config {
        Config::Tcp(tcp) => {
            tcp.segment = segment.unwrap_or(tcp.segment);
            tcp.max_window = max_window.unwrap_or(tcp.max_window);
        }
        Config::Tpa(tpa) => {
            tpa.segment = segment.unwrap_or(tpa.segment);
            // The header of TPA has 8 bits for the window.
            tpa.receive_window = max_window.map_or(tpa.receive_window, |segments| segments.min(255) as u8);
        }
        Config::Train(train) => {
            train.segment = segment.unwrap_or(train.segment);
            train.max_window = max_window.map_or(train.max_window, |segments| segments as u16);
        }
        Config::Flush(flush) => flush.segment = segment.unwrap_or(flush.segment),
        Config::Udp(udp) => {
            udp.segment = segment.unwrap_or(udp.segment);
            let is_http = matches!(application.traffic, Traffic::Http { .. });
            if is_http || !application.is_limited && udp.rate.is_none() {
                let expected = "expected traffic = \"cbr\" and a rate, because nothing else limits UDP";
                keys.report_invalid("transport", "udp does not limit its rate", expected);
            }
        }
    }
    if let Err(error) = config.check() {
        let key = if error.name == "segment" || error.name == "max_window" { error.name.as_ref() } else { "transport" };
        let place = if key == "transport" { format!("{}: ", error.name) } else { String::new() };
        let message = format!("{place}expected {}, found {}", error.expected, error.value);
        keys.report_invalid(key, message, format!("expected {}", error.expected));
    }
    if keys.problems().count() > before {
        return None;
    }
    let (from, to) = (NodeId(from? as u16), NodeId(to? as u16));
    let flow = Flow { from, to, transport: config, traffic: application.traffic, start, start_jitter, stop, dscp };
    Some(One { count, flow, label: transport.label, name, trace: application.trace, file: application.file })
}

/// Reads `name`: one line of printable characters.
fn name(keys: &mut Reader<'_>) -> Option<String> {
    let name = keys.text("name")?;
    let length = name.chars().count();
    if name.trim() != name || !(1..=LONGEST_NAME).contains(&length) || name.chars().any(is_unprintable) {
        let expected = format!("expected 1 to {LONGEST_NAME} printable characters, no space at either end");
        keys.report_invalid("name", format!("{name:?} is not a valid name of a flow"), expected);
    }
    Some(name.to_owned())
}

/// True for a character that cannot appear in a line of text: control characters, and characters
/// that break lines or change the direction of writing.
fn is_unprintable(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Refuses a name that two flows have. A name with the number that [`numbered`] adds counts as
/// well.
fn refuse_shared_names(root: &Reader<'_>, items: &[Value], names: &[Option<String>]) {
    let mut seen = BTreeSet::new();
    for name in names.iter().flatten().filter(|name| !seen.insert(name.as_str())) {
        let own = |item: &&Value| match &item.kind {
            Kind::Table(table) => {
                matches!(table.get("name"), Some(Value { kind: Kind::String(own), .. }) if own == name)
            }
            _ => false,
        };
        let origin = items.iter().rev().find(own).and_then(|item| match &item.kind {
            Kind::Table(table) => table.get("name").map(|name| name.origin.clone()),
            _ => None,
        });
        root.problems().add(Problem {
            message: format!("flow.name: two flows have the name \"{name}\""),
            origin: origin.or_else(|| root.origin("flow")),
            expected: "expected a different name for every flow".to_owned(),
            help: None,
            point: None,
        });
    }
}

fn end(keys: &mut Reader<'_>, key: &'static str, topology: &Topology, default: Option<u64>) -> Option<u64> {
    let nodes = topology.positions.len() as u64;
    let Some(value) = keys.get(key) else {
        if default.is_none() && nodes > 0 {
            keys.report_invalid(key, "is missing", format!("{key} = the number of a node"));
        }
        return default;
    };
    match value.kind {
        Kind::Integer(node) if node >= 0 && (node as u64) < nodes => Some(node as u64),
        // A topology that could not be read has no nodes. That has been reported already.
        Kind::Integer(_) if nodes == 0 => None,
        Kind::Integer(node) => {
            let set_by = value.set_by().or_else(|| topology.set_by.clone());
            let path = keys.path(key);
            let help = match (&value.origin, &set_by, default) {
                (Origin::File(_), Some(_), Some(usual)) => Some(format!("write --set {path}={usual} as well")),
                (Origin::File(_), Some(_), None) => Some(format!("write --set {path}=NODE as well")),
                (_, _, Some(usual)) => Some(format!("without {path} it is node {usual}")),
                _ => None,
            };
            keys.problems().add(Problem {
                message: format!(
                    "{}: there is no node {node}: the topology has nodes 0 to {}",
                    keys.path(key),
                    nodes - 1
                ),
                origin: set_by.or_else(|| Some(value.origin.clone())),
                expected: format!("expected 0 to {}", nodes - 1),
                help,
                point: None,
            });
            None
        }
        _ => {
            let message = format!("expected the number of a node, found {}", value.describe());
            keys.report_invalid(key, message, "expected a node number");
            None
        }
    }
}

fn times(keys: &mut Reader<'_>, duration: Duration, duration_set_by: Option<Origin>) -> (Time, Duration, Option<Time>) {
    let start = Time::ZERO + keys.standalone(&START);
    let jitter = keys.standalone(&START_JITTER);
    let stop = keys.standalone::<Option<Duration>>(&STOP).map(|stop| Time::ZERO + stop);
    if start.0 >= duration.0 {
        let set_by = keys.value("start").and_then(Value::set_by).or(duration_set_by);
        keys.problems().add(Problem {
            message: format!(
                "{}: the flow starts at {} s, after the end of the run",
                keys.path("start"),
                start.as_secs_f64()
            ),
            origin: set_by.or_else(|| keys.origin("start")),
            expected: format!("expected less than the duration, {} s", duration.as_secs_f64()),
            help: None,
            point: None,
        });
    }
    if stop.is_some_and(|stop| stop <= start) {
        let expected = format!("expected more than {} s", start.as_secs_f64());
        keys.report_conflict(&["stop", "start"], "the flow stops before it starts", expected);
    }
    (start, jitter, stop)
}
