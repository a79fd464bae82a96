//! The answer to a user's own question as one page: what was swept against what came out, flow by flow, over time, on a map.
//!
//! The horizontal axis is the swept key with the most numbers in it, the lines are the other values of the sweep. Points are
//! means over the seeds with 95 % intervals, from three seeds on.

mod data;
mod svg;

use data::{Group, groups};
use maud::{DOCTYPE, PreEscaped, html};
use meshpace_lab::record::write_whole;
use meshpace_lab::statistics::Estimate;
use serde_json::Value;
use std::path::Path;
pub use svg::Map;
use svg::{Chart, Line};

/// One plot: its SVG, complete in itself, and its numbers.
struct Plot {
    /// What its files are called.
    name: &'static str,
    title: String,
    svg: String,
    csv: String,
}

/// A quantity drawn against the axis.
struct Quantity {
    name: &'static str,
    title: &'static str,
    scale: f64,
    of: fn(&Value) -> Option<f64>,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        name: "goodput",
        title: "goodput, kbit/s",
        scale: 1e-3,
        of: |record| field(record, "aggregate_goodput_bps"),
    },
    Quantity {
        name: "jain",
        title: "Jain's index",
        scale: 1.0,
        of: |record| several(record).then(|| field(record, "jain")).flatten(),
    },
    Quantity {
        name: "retransmissions",
        title: "retransmissions, %",
        scale: 100.0,
        of: |record| field(record, "retransmission_index"),
    },
    Quantity {
        name: "delay",
        title: "95th percentile of the delay, ms, of the slowest flow",
        scale: 1e3,
        of: |record| worst(record, "delay_p95_s"),
    },
];

/// Flows of a point that have a bar.
const BARS: usize = 12;

/// Points, and flows of each, that have a line over time.
const LINES: usize = 6;

fn field(record: &Value, name: &str) -> Option<f64> {
    record.get(name)?.as_f64()
}

fn flows(record: &Value) -> &[Value] {
    record.get("flows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn several(record: &Value) -> bool {
    flows(record).len() > 1
}

fn worst(record: &Value, name: &str) -> Option<f64> {
    flows(record).iter().filter_map(|flow| flow.get(name)?.as_f64()).reduce(f64::max)
}

/// Writes the page of `records` to `page`, and beside it every plot as SVG and its numbers as CSV, named after the page.
///
/// # Errors
/// If there are no records, or a file cannot be written, which is named.
pub fn write(page: &Path, title: &str, command: &str, records: &[Value], map: Option<&Map>) -> Result<(), String> {
    let plots = plots(records, map);
    if records.is_empty() || plots.is_empty() {
        return Err(format!("{}: there are no records to show", page.display()));
    }
    let stem = page.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let directory = page.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let put = |name: &str, text: &str| {
        write_whole(directory, name, text).map_err(|error| format!("{}: {error}", directory.join(name).display()))
    };
    for plot in &plots {
        put(&format!("{stem}-{}.svg", plot.name), &plot.svg)?;
        if !plot.csv.is_empty() {
            put(&format!("{stem}-{}.csv", plot.name), &plot.csv)?;
        }
    }
    let name = page.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    put(&name, &render(title, command, records, &plots, &stem))
}

fn render(title: &str, command: &str, records: &[Value], plots: &[Plot], stem: &str) -> String {
    let groups = groups(records);
    let seeds: std::collections::BTreeSet<u64> =
        records.iter().filter_map(|record| record.get("seed")?.as_u64()).collect();
    let style = "body{margin:0;font:16px/1.5 system-ui,sans-serif;color:#1b1b1b;background:#fff}\
        main{max-width:76rem;margin:0 auto;padding:1rem}\
        .plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.5rem}\
        figure{margin:0;min-width:0}svg{width:100%;height:auto;display:block}figcaption{font-size:.9rem}\
        .wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}\
        td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
        code{overflow-wrap:anywhere}h1{font-size:1.6rem}@media print{figure{break-inside:avoid}}";
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { main {
                h1 { (title) }
                p { "Runs: " (records.len()) ", seeds: " (seeds.len()) ". " @if seeds.len() < 3 { "Three seeds or more give intervals. " } code { (command) } }
                div class="plots" { @for plot in plots {
                    figure {
                        (PreEscaped(&plot.svg))
                        figcaption { (plot.title) " (" a href=(format!("{stem}-{}.svg", plot.name)) { "SVG" }
                            @if !plot.csv.is_empty() { ", " a href=(format!("{stem}-{}.csv", plot.name)) { "CSV" } } ")" }
                    }
                } }
                h2 { "Numbers" }
                div class="wide" { table {
                    tr { th { "point" } th { "goodput, kbit/s" } th { "Jain's index" } th { "retransmissions, %" } th { "seeds" } }
                    @for group in &groups { tr {
                        td { (group.told()) }
                        @for quantity in &QUANTITIES[..3] { td { (group.number(|record| (quantity.of)(record).map(|value| quantity.scale * value))) } }
                        td { (group.records.len()) }
                    } }
                } }
            } }
        }
    };
    page.into_string()
}

fn plots(records: &[Value], map: Option<&Map>) -> Vec<Plot> {
    let groups = groups(records);
    let mut plots: Vec<Plot> = QUANTITIES.iter().filter_map(|quantity| against_axis(&groups, quantity)).collect();
    plots.extend(per_flow(&groups));
    plots.extend(over_time(&groups));
    plots.extend(map.map(|map| Plot {
        name: "map",
        title: format!("nodes, links and flows of the first point, {}", map.of),
        svg: map.draw(),
        csv: String::new(),
    }));
    plots
}

fn csv_row(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

/// The half width as a cell; an empty one where there is no interval.
fn half(estimate: &Estimate) -> String {
    if estimate.half_width.is_finite() { estimate.half_width.to_string() } else { String::new() }
}

fn against_axis(groups: &[Group], quantity: &Quantity) -> Option<Plot> {
    let axis = data::axis(groups);
    let mut lines: Vec<Line> = Vec::new();
    let mut csv =
        csv_row(&["line", axis.as_deref().unwrap_or("point"), "mean", "half_width", "seeds"].map(str::to_owned));
    for (number, group) in groups.iter().enumerate() {
        let Some(estimate) = group.estimate(|record| (quantity.of)(record).map(|value| quantity.scale * value)) else {
            continue;
        };
        let (label, x) = match &axis {
            Some(axis) => (group.label_without(axis), group.x(axis)?),
            None => (group.told(), number as f64),
        };
        let count = estimate.count.to_string();
        csv.push_str(&csv_row(&[label.clone(), x.to_string(), estimate.mean.to_string(), half(&estimate), count]));
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.points.push((x, estimate.mean, estimate.half_width)),
            None => lines.push(Line { label, points: vec![(x, estimate.mean, estimate.half_width)] }),
        }
    }
    if lines.is_empty() {
        return None;
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let x_title = axis.as_ref().map_or_else(String::new, |axis| data::with_unit(axis, groups));
    let chart = Chart { x_title, y_title: quantity.title.to_owned(), lines };
    let svg = if axis.is_some() { chart.curves() } else { chart.bars() };
    let title = axis.map_or_else(|| quantity.title.to_owned(), |axis| format!("{} against {axis}", quantity.title));
    Some(Plot { name: quantity.name, title, svg, csv })
}

/// Goodput of each flow, at the first place of the axis for every line.
fn per_flow(groups: &[Group]) -> Option<Plot> {
    let axis = data::axis(groups);
    let mut shown: Vec<&Group> = Vec::new();
    for group in groups {
        let label = |group: &Group| axis.as_ref().map_or_else(|| group.told(), |axis| group.label_without(axis));
        if !shown.iter().any(|other| label(other) == label(group)) {
            shown.push(group);
        }
    }
    let mut csv = csv_row(&["point", "flow", "mean", "half_width"].map(str::to_owned));
    let mut lines = Vec::new();
    for group in shown.iter().filter(|group| group.records.first().is_some_and(|record| several(record))) {
        for flow in 0..flows(group.records[0]).len().min(BARS) {
            let goodput = |record: &Value| flows(record).get(flow)?.get("goodput_bps")?.as_f64().map(|bps| bps * 1e-3);
            let Some(estimate) = group.estimate(goodput) else { continue };
            let label = group.flow_label(flow);
            csv.push_str(&csv_row(&[group.told(), flow.to_string(), estimate.mean.to_string(), half(&estimate)]));
            lines.push(Line { label, points: vec![(lines.len() as f64, estimate.mean, estimate.half_width)] });
        }
    }
    if lines.is_empty() {
        return None;
    }
    let chart = Chart { x_title: String::new(), y_title: "goodput, kbit/s".to_owned(), lines };
    Some(Plot {
        name: "flows",
        title: format!("goodput of each flow, {BARS} at most of a point"),
        svg: chart.bars(),
        csv,
    })
}

/// Goodput over time, the mean over the seeds, where the records have a series.
fn over_time(groups: &[Group]) -> Option<Plot> {
    let mut csv = csv_row(&["point", "flow", "time_s", "mean", "half_width"].map(str::to_owned));
    let mut lines = Vec::new();
    for group in groups.iter().take(LINES) {
        let Some(first) = group.records.first().and_then(|record| record.get("series")) else { continue };
        let window = first.get("window_s").and_then(Value::as_f64).unwrap_or(1.0);
        let start = first.get("start_s").and_then(Value::as_f64).unwrap_or(0.0);
        let count = first.get("flows").and_then(Value::as_array).map_or(0, Vec::len);
        for flow in 0..count.min(LINES) {
            let values = |record: &Value| -> Vec<f64> {
                let list = record.pointer(&format!("/series/flows/{flow}/goodput_bps")).and_then(Value::as_array);
                list.into_iter().flatten().filter_map(Value::as_f64).collect()
            };
            let all: Vec<Vec<f64>> = group.records.iter().map(|record| values(record)).collect();
            let label = group.flow_label(flow);
            let mut points = Vec::new();
            for number in 0..all.iter().map(Vec::len).min().unwrap_or(0) {
                let at: Vec<f64> = all.iter().map(|values| values[number] * 1e-3).collect();
                let Some(estimate) = data::estimate_of(&at) else { continue };
                let time = start + (number as f64 + 0.5) * window;
                csv.push_str(&csv_row(&[
                    group.told(),
                    flow.to_string(),
                    time.to_string(),
                    estimate.mean.to_string(),
                    half(&estimate),
                ]));
                points.push((time, estimate.mean, estimate.half_width));
            }
            lines.push(Line { label, points });
        }
    }
    lines.retain(|line| line.points.len() > 1);
    if lines.is_empty() {
        return None;
    }
    let chart = Chart { x_title: "time, s".to_owned(), y_title: "goodput, kbit/s".to_owned(), lines };
    Some(Plot {
        name: "time",
        title: format!("goodput over time, the middles of the windows; {LINES} points and {LINES} flows at most"),
        svg: chart.bands(),
        csv,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn records() -> Vec<Value> {
        let mut records = Vec::new();
        for transport in ["newreno", "tcp-ap"] {
            for hops in [4, 2] {
                for seed in 1..=3 {
                    let goodput = 1e5 / f64::from(hops) + f64::from(seed) * 100.0;
                    let flow = json!({"transport": transport, "goodput_bps": goodput / 2.0});
                    records.push(json!({
                        "seed": seed, "point": {"flow.transport": transport, "topology.hops": hops}, "jain": 0.9,
                        "aggregate_goodput_bps": goodput, "retransmission_index": 0.1, "flows": [flow, flow],
                        "series": {"start_s": 4.0, "window_s": 1.0, "flows": [{"goodput_bps": [1e3, 2e3, null]}]},
                    }));
                }
            }
        }
        records
    }

    #[test]
    fn numbers_with_different_units_are_no_axis() {
        let of = |rates: [&str; 2]| {
            let record = |rate: &str| json!({"seed": 1, "point": {"link.rate": rate}, "aggregate_goodput_bps": 1.0});
            rates.map(record).to_vec()
        };
        let (mixed, same) = (of(["500 kbit/s", "1 Mbit/s"]), of(["1 Mbit/s", "2 Mbit/s"]));
        assert_eq!(data::axis(&groups(&mixed)), None);
        let same = groups(&same);
        assert_eq!(data::axis(&same).as_deref(), Some("link.rate"));
        assert_eq!(data::with_unit("link.rate", &same), "link.rate, Mbit/s");
    }

    #[test]
    fn a_sweep_becomes_lines_over_its_numbers_with_files_beside() {
        let scratch = tempfile::tempdir().unwrap();
        let page = scratch.path().join("out.html");
        let map = Map {
            nodes: vec![(0.0, 0.0), (200.0, 0.0)],
            links: vec![(0, 1)],
            flows: vec![(0, 1)],
            of: "seed 1".to_owned(),
        };
        write(&page, "A <chain>", "meshpace run", &records(), Some(&map)).unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("A &lt;chain&gt;") && !text.contains("NaN") && !text.contains("<script"));
        assert!(text.contains("goodput, kbit/s against topology.hops"));
        for name in ["goodput", "jain", "retransmissions", "flows", "time", "map"] {
            let svg = std::fs::read_to_string(scratch.path().join(format!("out-{name}.svg"))).unwrap();
            assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>") && !svg.contains("NaN"), "{name}");
            assert!(text.contains(&svg), "{name} is in the page");
        }
        let csv = std::fs::read_to_string(scratch.path().join("out-goodput.csv")).unwrap();
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!((rows[0], rows.len()), ("line,topology.hops,mean,half_width,seeds", 5));
        // 100 kbit/s over four hops is 25; the seeds add 0.2 on average.
        assert!(rows.iter().any(|row| row.starts_with("newreno,4,25.2,") && row.ends_with(",3")), "{csv}");
        let time = std::fs::read_to_string(scratch.path().join("out-time.csv")).unwrap();
        let first = time.lines().nth(1).unwrap();
        assert!(first.contains(",0,4.5,1,"), "the middle of the first window, its goodput in kbit/s: {first}");
        assert!(write(&page, "nothing", "", &[], None).is_err());
    }
}
