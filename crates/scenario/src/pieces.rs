//! `series`, `watch` and `[batches]`: measurements of parts of a run.

use super::reader::{Reader, Sign};
use meshpace_core::{Duration, NodeId};
use meshpace_settings::quantity::TIME;
use meshpace_settings::value::{Kind, Value};
use meshpace_sim::config::{Batches, Watch};

/// Largest number of windows of a time series, so that records do not become too large.
const MAX_WINDOWS: f64 = 100_000.0;

/// Reads `watch`: the links whose state the time series contains.
pub fn watch(root: &mut Reader<'_>, nodes: usize) -> Vec<Watch> {
    let Some(value) = root.get("watch") else { return Vec::new() };
    let expected = "expected a list such as [{ node = 0, toward = 9 }]";
    let Kind::Array(items) = &value.kind else {
        root.report_invalid("watch", format!("expected a list, found {}", value.describe()), expected);
        return Vec::new();
    };
    if root.value("series").is_none() {
        root.report_invalid("watch", "the scenario has no time series", "expected a window such as series = \"1 s\"");
    }
    let mut watched = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let Value { kind: Kind::Table(table), origin } = item else {
            root.problems().at(
                &item.origin,
                format!("watch.{number}: expected a table, found {}", item.describe()),
                expected,
            );
            continue;
        };
        let mut keys = Reader::new(table, Some(origin), format!("watch.{number}"), root.problems());
        let mut node = |key| {
            if keys.get(key).is_none() {
                keys.report_invalid(key, "is missing", format!("expected {key} = the number of a node"));
            }
            // If there are no nodes, the topology was refused, and that has been reported.
            keys.integer(key, 0..=nodes.max(1) as u64 - 1, "a node").map(|node| NodeId(node as u16))
        };
        if let (Some(node), Some(toward)) = (node("node"), node("toward")) {
            watched.push(Watch { node, toward });
        }
        keys.finish("a watched link");
    }
    watched
}

/// Reads `series` and `[batches]`.
pub fn read(root: &mut Reader<'_>, duration: Duration) -> (Option<Duration>, Option<Batches>) {
    let seconds = duration.as_secs_f64();
    let series = root.quantity("series", &TIME, Sign::Positive, seconds);
    if let Some(window) = series
        && (window < 1e-6 || seconds / window > MAX_WINDOWS)
    {
        root.report_invalid(
            "series",
            format!("more than {MAX_WINDOWS} windows in {seconds} s"),
            "expected a longer window",
        );
        return (None, None);
    }
    let are_wanted = root.value("batches").is_some();
    // The table is always requested, so that the list of keys contains it.
    let mut table = root.table("batches");
    let batches = are_wanted.then(|| {
        let mut batches = Batches::default();
        table.parameters(&mut batches);
        table.finish("batches");
        batches
    });
    (series.map(Duration::from_secs_f64), batches)
}
