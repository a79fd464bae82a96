//! `flow.transport`: the name of a known transport, or a table with components and parameters.

pub mod pacing;
mod tcp;

use super::reader::Reader;
use meshpace_settings::diagnostic::Problem;
use meshpace_settings::value::{Kind, Table, Value};
use meshpace_settings::{nearest, one_of};
use meshpace_transport::pacing::{Config as Pacing, Measure, OutOfInterference};
use meshpace_transport::{Config, names};

/// Name of the transport of a flow that names none.
const DEFAULT_NAME: &str = "tcp-ap";
/// Name of the transport that a table without a name modifies.
const DEFAULT_PIECES: &str = "newreno";

/// Transport of a flow, and its label in records.
pub struct Transport {
    /// Configuration of the transport, before keys of the flow are applied.
    pub config: Config,
    /// Name of the transport, followed by the changes in braces.
    pub label: String,
}

/// Reads the key `transport` of a flow; `None` if the key is wrong. `usual` is the
/// out-of-interference delay that belongs to the radio.
pub fn read(flow: &mut Reader<'_>, usual: &OutOfInterference) -> Option<Transport> {
    match flow.get("transport") {
        None => Some(Transport { config: names::lookup(DEFAULT_NAME)?, label: DEFAULT_NAME.to_owned() }),
        Some(Value { kind: Kind::String(name), .. }) => {
            Some(Transport { config: named(flow, "transport", name, usual)?, label: name.clone() })
        }
        Some(Value { kind: Kind::Table(table), .. }) => {
            let mut keys = flow.table("transport");
            let name = if keys.get("name").is_some() { keys.text("name")? } else { DEFAULT_PIECES };
            let mut config = named(&keys, "name", name, usual)?;
            keys.set_kind(match &config {
                Config::Tcp(_) => "TCP",
                Config::Tpa(_) => "TPA",
                Config::Train(_) => "quiet-train",
                Config::Flush(_) => "flush",
                Config::Udp(_) => "udp",
            });
            match &mut config {
                Config::Tcp(config) => tcp::read(&mut keys, config, usual),
                Config::Tpa(config) => {
                    keys.parameters(config);
                    pacing::read(&mut keys, &mut config.pacing, usual);
                }
                Config::Train(config) => keys.parameters(config),
                Config::Flush(config) => keys.parameters(config),
                Config::Udp(config) => keys.parameters(config),
            }
            keys.finish("a transport");
            Some(Transport { config, label: label(name, table) })
        }
        Some(value) => {
            let expected = "the name of a transport, or a table";
            flow.report_invalid("transport", format!("expected {expected}, found {}", value.describe()), expected);
            None
        }
    }
}

/// TOML table with the same meaning as the plain name of a transport.
pub fn spelled_out(name: &str) -> String {
    format!("{{ name = {name:?} }}")
}

fn named(reader: &Reader<'_>, key: &str, name: &str, usual: &OutOfInterference) -> Option<Config> {
    let mut config = names::lookup(name);
    let pacing = match &mut config {
        Some(Config::Tcp(config)) => Some(&mut config.pacing),
        Some(Config::Tpa(config)) => Some(&mut config.pacing),
        _ => None,
    };
    if let Some(Pacing::Adaptive(config)) = pacing
        && let Measure::OutOfInterference(interference) = &mut config.measure
    {
        *interference = usual.clone();
    }
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

/// Label such as `tcp-ap{pacing.alpha=0.5}`.
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
