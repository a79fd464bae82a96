//! `flow.transport`: a name of the table, or a table that spells out pieces and parameters.

use super::diagnostic::{Problem, nearest, one_of};
use super::quantity::{RATE, TIME};
use super::reader::{Reader, Sign};
use super::value::{Kind, Table, Value};
use meshpace_core::{Duration, Rate};
use meshpace_transport::pacing::{
    self, AdaptiveConfig, Dispersion, HopSource, RateLimit, Recovery, Sampling, ShortPath,
};
use meshpace_transport::tcp::{self, rtt, window};
use meshpace_transport::{Config, names, tpa};

/// The name of a transport that is not given.
const DEFAULT_NAME: &str = "tcp-ap";
/// The longest time a parameter can be.
const MAX_SECONDS: f64 = 1e6;

/// The transport of a flow and what records call it.
pub struct Transport {
    /// Its parameters, before those of the flow.
    pub config: Config,
    /// Its name, with what was changed in braces.
    pub label: String,
}

/// Reads the key `transport` of a flow; `None` if it is wrong.
pub fn read(flow: &mut Reader<'_>) -> Option<Transport> {
    match flow.get("transport") {
        None => Some(Transport { config: names::lookup(DEFAULT_NAME)?, label: DEFAULT_NAME.to_owned() }),
        Some(Value { kind: Kind::String(name), .. }) => {
            Some(Transport { config: named(flow, "transport", name)?, label: name.clone() })
        }
        Some(Value { kind: Kind::Table(table), .. }) => {
            let mut keys = flow.table("transport");
            let name = if keys.get("name").is_some() { keys.text("name")? } else { "newreno" };
            let mut config = named(&keys, "name", name)?;
            match &mut config {
                Config::Tcp(config) => read_tcp(&mut keys, config),
                Config::Tpa(config) => read_tpa(&mut keys, config),
                Config::Udp(config) => {
                    if let Some(bps) = keys.quantity("rate", &RATE, Sign::Positive, 1e12) {
                        config.rate = Some(Rate::from_bps((bps.round() as u64).max(1)));
                    }
                }
            }
            keys.finish("a transport");
            Some(Transport { config, label: label(name, table) })
        }
        Some(value) => {
            let expected = "the name of a transport, or a table";
            flow.wrong("transport", format!("expected {expected}, found {}", value.describe()), expected);
            None
        }
    }
}

fn named(reader: &Reader<'_>, key: &str, name: &str) -> Option<Config> {
    let config = names::lookup(name);
    if config.is_none() {
        let table: Vec<&str> = names::table().iter().map(|entry| entry.name).collect();
        reader.problems().add(Problem {
            message: format!("{}: there is no transport \"{name}\"", reader.path(key)),
            origin: reader.origin(key),
            expected: format!("expected {}", one_of(&table)),
            help: nearest(name, table.iter().copied()).map(|name| format!("did you mean \"{name}\"?")),
            point: None,
        });
    }
    config
}

/// `tcp-ap{pacing.alpha=0.5}`.
fn label(name: &str, table: &Table) -> String {
    let mut changes = Vec::new();
    flatten("", table, &mut changes);
    changes.retain(|change| !change.starts_with("name="));
    if changes.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", changes.join(",")) }
}

fn flatten(path: &str, table: &Table, changes: &mut Vec<String>) {
    for entry in &table.entries {
        let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        match &entry.value.kind {
            Kind::Table(inner) => flatten(&path, inner, changes),
            _ => changes.push(format!("{path}={}", entry.value.brief())),
        }
    }
}

fn read_tcp(keys: &mut Reader<'_>, config: &mut tcp::Config) {
    if let Some(segments) = keys.whole("initial_window", 1..=65535, "segments") {
        config.initial_window = segments as u32;
    }
    if let Some(flag) = keys.flag("limited_transmit") {
        config.limited_transmit = flag;
    }
    read_window(keys, &mut config.window);
    read_pacing(keys, &mut config.pacing);
    keys.choice("ack", &[("every-segment", ())], &["delayed", "dynamic", "dack"]);
    if keys.get("rto").is_some() {
        let mut rto = keys.table("rto");
        read_rto(&mut rto, &mut config.rto);
        rto.finish("the retransmission timer");
    }
}

fn read_window(keys: &mut Reader<'_>, window: &mut window::Config) {
    let kinds = [("newreno", false), ("clamp", true)];
    match keys.get("window") {
        None => {}
        Some(Value { kind: Kind::Table(_), .. }) => {
            let mut keys = keys.table("window");
            let clamp = keys.choice("kind", &kinds, &["few", "constant"]);
            let clamp = clamp.unwrap_or(matches!(window, window::Config::Clamp { .. }));
            if clamp {
                let old = if let window::Config::Clamp { segments } = window { *segments } else { 3 };
                let segments = keys.whole("segments", 1..=65535, "segments").map_or(old, |segments| segments as u32);
                *window = window::Config::Clamp { segments };
            } else {
                *window = window::Config::NewReno;
            }
            keys.finish(if clamp { "a clamped window" } else { "a window" });
        }
        Some(_) => match keys.choice("window", &kinds, &["few", "constant"]) {
            Some(false) => *window = window::Config::NewReno,
            Some(true) => *window = window::Config::Clamp { segments: 3 },
            None => {}
        },
    }
}

fn read_pacing(keys: &mut Reader<'_>, pacing: &mut pacing::Config) {
    let kinds = [("none", false), ("adaptive", true)];
    let later = ["clocks", "dcc", "scale"];
    match keys.get("pacing") {
        None => {}
        Some(Value { kind: Kind::Table(_), .. }) => {
            let mut keys = keys.table("pacing");
            let profiles = [("paper", AdaptiveConfig::paper()), ("released", AdaptiveConfig::released())];
            let adaptive = keys.choice("kind", &kinds, &later).unwrap_or(true);
            if !adaptive {
                *pacing = pacing::Config::None;
                keys.finish("a sender without pacing");
                return;
            }
            let before = if let pacing::Config::Adaptive(config) = pacing { Some(config.clone()) } else { None };
            let profile = keys.choice("profile", &profiles, &[]);
            let mut config = profile.or(before).unwrap_or_else(AdaptiveConfig::paper);
            read_adaptive(&mut keys, &mut config);
            keys.finish("adaptive pacing");
            *pacing = pacing::Config::Adaptive(config);
        }
        Some(_) => match keys.choice("pacing", &kinds, &later) {
            Some(false) => *pacing = pacing::Config::None,
            Some(true) => *pacing = pacing::Config::Adaptive(AdaptiveConfig::paper()),
            None => {}
        },
    }
}

fn read_adaptive(keys: &mut Reader<'_>, config: &mut AdaptiveConfig) {
    assign(&mut config.alpha, keys.number("alpha", 0.0..=1.0));
    assign(&mut config.history, keys.whole("history", 2..=65536, "samples").map(|n| n as usize));
    assign(&mut config.reuse_hops, keys.whole("reuse_hops", 1..=255, "hops").map(|n| n as u8));
    assign(&mut config.data_overhead, keys.whole("data_overhead", 0..=65535, "bytes").map(|n| n as u32));
    assign(&mut config.ack_size, keys.whole("ack_size", 0..=65535, "bytes").map(|n| n as u32));
    let hops = [("routing-table", HopSource::RoutingTable), ("ack-travelled", HopSource::AckTravelled)];
    assign(&mut config.hops, keys.choice("hops", &hops, &[]));
    let short_path = [("whole-path", ShortPath::WholePath), ("one-hop", ShortPath::OneHop)];
    assign(&mut config.short_path, keys.choice("short_path", &short_path, &[]));
    let dispersion =
        [("cov-rtt", Dispersion::CovRtt), ("mad-rtt", Dispersion::MadRtt), ("mad-delay", Dispersion::MadDelay)];
    assign(&mut config.dispersion, keys.choice("dispersion", &dispersion, &[]));
    assign(&mut config.dispersion_factor, keys.number("dispersion_factor", 0.0..=1e6));
    assign(&mut config.delay_limit, limit(keys, "delay_limit"));
    assign(&mut config.queueing_limit, limit(keys, "queueing_limit"));
    assign(&mut config.initial_interval, time(keys, "initial_interval", Sign::NotNegative));
    let sampling = [
        ("new-data-karn", Sampling::NewDataKarn),
        ("new-data", Sampling::NewData),
        ("every-echo", Sampling::EveryEcho),
    ];
    assign(&mut config.sampling, keys.choice("sampling", &sampling, &[]));
    let limit = [("earliest-send", RateLimit::EarliestSend), ("free-running", RateLimit::FreeRunning)];
    assign(&mut config.limit, keys.choice("limit", &limit, &[]));
    let recovery =
        [("restart", Recovery::Restart), ("paced", Recovery::Paced), ("off-until-ack", Recovery::OffUntilAck)];
    assign(&mut config.recovery, keys.choice("recovery", &recovery, &[]));
}

fn read_rto(keys: &mut Reader<'_>, config: &mut rtt::Config) {
    assign(&mut config.initial, time(keys, "initial", Sign::Positive));
    assign(&mut config.min, time(keys, "min", Sign::Positive));
    assign(&mut config.max, time(keys, "max", Sign::Positive));
    assign(&mut config.tick, time(keys, "tick", Sign::Positive));
    assign(&mut config.backoff, keys.flag("backoff"));
    let sampling = [("one-timed", rtt::Sampling::OneTimed), ("timestamps", rtt::Sampling::Timestamps)];
    assign(&mut config.sampling, keys.choice("sampling", &sampling, &[]));
}

fn read_tpa(keys: &mut Reader<'_>, config: &mut tpa::Config) {
    assign(&mut config.congestion.window, keys.whole("window", 1..=12, "segments").map(|n| n as u8));
    assign(&mut config.block_segments, keys.whole("block_segments", 1..=12, "segments").map(|n| n as u8));
    assign(&mut config.fill_timeout, time(keys, "fill_timeout", Sign::NotNegative));
    let ack = [("every-other", tpa::ack::Rule::EveryOther), ("every-window", tpa::ack::Rule::EveryWindow)];
    assign(&mut config.ack, keys.choice("ack", &ack, &[]));
    assign(&mut config.ack_delay, time(keys, "ack_delay", Sign::NotNegative));
    let notices = [
        ("none", tpa::congestion::Notices::None),
        ("failure", tpa::congestion::Notices::Failure),
        ("failure-and-recovery", tpa::congestion::Notices::FailureAndRecovery),
    ];
    assign(&mut config.congestion.notices, keys.choice("notices", &notices, &[]));
    read_pacing(keys, &mut config.pacing);
    if keys.get("rto").is_some() {
        let mut rto = keys.table("rto");
        assign(&mut config.rto.g, rto.number("g", 0.0..=1.0));
        assign(&mut config.rto.h, rto.number("h", 0.0..=1.0));
        assign(&mut config.rto.g1, rto.number("g1", 0.0..=1.0));
        assign(&mut config.rto.h1, rto.number("h1", 0.0..=1.0));
        assign(&mut config.rto.deviation_from_old, rto.flag("deviation_from_old"));
        assign(&mut config.rto.margin, time(&mut rto, "margin", Sign::NotNegative));
        assign(&mut config.rto.initial, time(&mut rto, "initial", Sign::Positive));
        assign(&mut config.rto.min, time(&mut rto, "min", Sign::Positive));
        assign(&mut config.rto.max, time(&mut rto, "max", Sign::Positive));
        rto.finish("the retransmission timer");
    }
}

fn assign<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn time(keys: &mut Reader<'_>, key: &'static str, sign: Sign) -> Option<Duration> {
    keys.quantity(key, &TIME, sign, MAX_SECONDS).map(Duration::from_secs_f64)
}

/// A time, or "none" to switch the limit off.
fn limit(keys: &mut Reader<'_>, key: &'static str) -> Option<Option<Duration>> {
    match keys.get(key) {
        Some(Value { kind: Kind::String(text), .. }) if text == "none" => Some(None),
        _ => time(keys, key, Sign::Positive).map(Some),
    }
}
