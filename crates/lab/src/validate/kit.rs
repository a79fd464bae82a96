//! A mesh that was measured with the kit: predictions for its paths beside the measurements
//! (docs/measuring-kit.md).

use super::{Point, Sample, Table, Verdict};
use crate::field::kit::{self, Run};
use crate::field::predict::{FITTED, Measured, Prediction, Worth, predict};
use crate::field::ways;
use std::path::Path;

/// Number of paths below which the share of paths inside their error interval is not shown.
const FEW: usize = 10;

/// Compares the paths of two or more hops in the directory of a mesh. Also returns sentences on
/// what is missing there.
///
/// # Errors
/// A sentence that says what is wrong with the directory, or that there is no such path.
pub fn measured(directory: &Path) -> Result<(Table, Vec<String>), String> {
    let kit = kit::read(directory)?;
    let mbps = ways::mbps(&kit.dump);
    let mut notes = kit.notes.clone();
    let (mut points, mut paths) = (Vec::new(), Vec::new());
    for run in &kit.runs {
        let name = |node: usize| kit.dump.nodes[node].clone();
        let Some(way) = ways::way(&kit.dump, run.from, run.to) else {
            notes.push(format!(
                "no way from {} to {} is known: run the kit on the nodes between",
                name(run.from),
                name(run.to)
            ));
            continue;
        };
        if way.len() == 2 {
            continue;
        }
        let nodes: Vec<String> = way.iter().map(|&node| name(node)).collect();
        let hops: Vec<Option<f64>> =
            way.windows(2).map(|hop| mbps.get(&(hop[0], hop[1])).map(|mbps| 1e3 * mbps)).collect();
        if let Some(place) = hops.iter().position(Option::is_none) {
            let (from, to) = (&nodes[place], &nodes[place + 1]);
            notes.push(format!(
                "{}: the hop from {from} to {to} was not measured: run the kit on {from} with the address of {to}",
                nodes.join("-")
            ));
            continue;
        }
        let hops: Vec<f64> = hops.into_iter().flatten().collect();
        let found = predict(&hops);
        paths.push(Measured { hops: hops.len(), bound: found.bound, goodput: run.goodput_bps / 1e3 });
        points.push(point(&nodes, run, &found));
    }
    if points.is_empty() {
        let why = if notes.is_empty() { "all measurements are of one hop".to_owned() } else { notes.join("; ") };
        return Err(format!("{}: no path of two or more hops whose hops were measured: {why}", directory.display()));
    }
    points.extend(worth(&paths));
    let table = Table {
        name: "field_kit",
        title: "Paths of a measured mesh",
        source: "measured",
        unit: "kbit/s",
        rule: "Predicted by what each hop carried alone (docs/field.md). The bar is that of nine of ten paths in the testbed of Battlemesh v11: no rule for other meshes.",
        points,
    };
    Ok((table, notes))
}

fn shown(case: String, reference: Option<Sample>, ours: Sample, rule: String) -> Point {
    Point { case, reference, ours, rule, verdict: Verdict::Shown }
}

fn point(nodes: &[String], run: &Run, found: &Prediction) -> Point {
    let kbps = run.goodput_bps / 1e3;
    let busy = run.busy.map(|share| format!(", channel busy {:.0} %", 100.0 * share)).unwrap_or_default();
    let (low, high) = found.bar.unwrap_or((found.goodput, found.goodput));
    let held = if (low..=high).contains(&kbps) { "within" } else { "outside of" };
    let rule = format!("{held} {low:.0} to {high:.0}");
    shown(nodes.join("-") + &busy, Some(Sample::single(kbps)), Sample::single(found.goodput), rule)
}

/// Medians by number of hops. With many paths, also the rank correlation and the share of paths
/// inside their error interval.
fn worth(paths: &[Measured]) -> Vec<Point> {
    let worth = Worth::of(&FITTED, paths);
    let medians = worth.medians.iter().filter(|one| one.paths > 1).map(|one| {
        let of = |value| Sample { n: one.paths, ..Sample::single(value) };
        shown(
            format!("median of {} paths of {} hops", one.paths, one.hops),
            Some(of(one.measured)),
            of(one.predicted),
            String::new(),
        )
    });
    let mut points: Vec<Point> = medians.collect();
    if paths.len() >= FEW {
        let (held, all) = worth.held();
        let of = |value| Sample { n: all, ..Sample::single(value) };
        let rank = worth.rank.unwrap_or(f64::NAN);
        points.push(shown("rank correlation".to_owned(), None, of(rank), String::new()));
        points.push(shown("share within the bar".to_owned(), None, of(held as f64 / all as f64), String::new()));
    }
    points
}
