//! A comparison point by point as a table for people.

use super::{Line, Metric, at_points, cell, metric};

/// Points that a table for people has at most.
pub const MOST_ROWS: usize = 200;

/// A table for people: a row for each point, a column for each metric.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Metric and unit of each column.
    pub heads: Vec<String>,
    /// The point of each row, and its cells: "+12.3 ± 4.0 * tcp-ap".
    pub rows: Vec<(String, Vec<String>)>,
    /// Points that were left out, because there are too many.
    pub left_out: usize,
}

/// What the table of [`table`] means, for its head.
pub const LEGEND: &str =
    "The variant named after `*` is clearly better, after the correction for all metrics at this point";

/// The comparison at each point; `None` if only one point was compared.
pub fn table(lines: &[Line], names: [&str; 2]) -> Option<Table> {
    let points = at_points(lines);
    let metrics: Vec<&Metric> =
        lines.iter().filter(|line| line.is_shown).filter_map(|line| metric(line.metric)).collect();
    let none = ["none in both".to_owned(), format!("none for {}", names[0]), format!("none for {}", names[1])];
    let shown = |line: &Line| {
        let better = line.better_in_family.map(|side| format!(" * {}", names[side as usize]));
        cell(line, [&none[0], &none[1], &none[2]]) + &better.unwrap_or_default()
    };
    let row = |(place, lines): &(String, Vec<&Line>)| {
        let of = |metric: &&Metric| lines.iter().find(|line| line.metric == metric.name);
        (
            place.clone(),
            metrics.iter().map(|metric| of(metric).map_or_else(|| "–".to_owned(), |line| shown(line))).collect(),
        )
    };
    (!points.is_empty()).then(|| Table {
        heads: metrics.iter().map(|metric| metric.noun_and_unit()).collect(),
        rows: points.iter().take(MOST_ROWS).map(row).collect(),
        left_out: points.len().saturating_sub(MOST_ROWS),
    })
}
