//! Output of `meshpace compare --against`: compares one value of a swept key with every other
//! value, point by point.

use super::Format;
use super::print::{COLUMNS, cells};
use meshpace_lab::compare::{Line, Metric, cell, metric};
use meshpace_lab::record::metrics::{DELAY, GOODPUT, JAIN_2S};
use meshpace_lab::rivals::Rival;
use meshpace_lab::summary::{CORRECTED, PLUS_MINUS};
use serde_json::Value;

/// Metrics of the table. The other formats contain all metrics.
const SHOWN: [&str; 3] = [GOODPUT, JAIN_2S, DELAY];

/// Texts for a delay without a value on both sides, on the first side, or on the second side. There
/// is no difference then.
const NONE: [&str; 3] = ["none in both", "none in the given", "none"];

/// One metric of one comparison.
struct Row<'a> {
    point: String,
    value: &'a str,
    line: &'a Line,
}

/// Formats all comparisons, in pieces of whole lines.
pub fn pieces<'a>(rivals: &'a [Rival], given: &str, format: Format) -> Box<dyn Iterator<Item = String> + 'a> {
    match format {
        Format::Json => Box::new(rivals.iter().map(|rival| rows(rival).map(|row| json(&row)).collect())),
        Format::Csv => Box::new(csv(rivals)),
        Format::Md => Box::new(std::iter::once(markdown(rivals, given))),
    }
}

fn rows(rival: &Rival) -> impl Iterator<Item = Row<'_>> {
    let Rival { point, value, lines } = rival;
    let point = Value::from(point.clone()).to_string();
    lines.iter().map(move |line| Row { point: point.clone(), value, line })
}

/// JSON object of a line of `compare`, extended by the point and the other value.
fn json(row: &Row<'_>) -> String {
    let mut object = serde_json::to_value(row.line).unwrap_or_default();
    object["point"] = Value::from(row.point.as_str());
    object["value"] = Value::from(row.value);
    format!("{object}\n")
}

fn csv(rivals: &[Rival]) -> impl Iterator<Item = String> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let row =
        move |Row { point, value, line }: Row<'_>| format!("{},{},{}\n", quoted(&point), quoted(value), cells(line));
    let pieces = rivals.iter().map(move |rival| rows(rival).map(row).collect());
    std::iter::once(format!("point,value,{COLUMNS}\n")).chain(pieces)
}

fn markdown(rivals: &[Rival], given: &str) -> String {
    let is_measured =
        |metric: &&Metric| rivals.iter().any(|rival| rival.line(metric.name).is_some_and(|line| line.is_shown));
    let metrics = SHOWN.iter().filter_map(|name| metric(name));
    let shown: Vec<&Metric> = metrics.filter(is_measured).collect();
    let heads: String = shown.iter().map(|metric| format!(" {} |", metric.noun_and_unit())).collect();
    let mut text = format!(
        "# Every other value minus {given}\n\nRuns with the same seed are compared with each other. {PLUS_MINUS}. {CORRECTED} `*`: this value is clearly better than the given one, and starves no flow.\n\n| point | value |{heads}\n|---|---|{}\n",
        "---|".repeat(shown.len())
    );
    for rival in rivals {
        text.push_str(&format!("| {} | {} |", rival.place(), rival.value));
        for metric in &shown {
            let star = if rival.is_better(metric.name) { " *" } else { "" };
            let cell = rival.line(metric.name).map_or_else(String::new, |line| cell(line, NONE));
            text.push_str(&format!(" {cell}{star} |"));
        }
        text.push('\n');
    }
    // A run with a single flow has no Jain's index.
    if shown.iter().any(|metric| metric.name == JAIN_2S) {
        text.push_str(&in_both(rivals));
    }
    text
}

/// Lists the values that are better in both goodput and Jain's index over 2 s.
fn in_both(rivals: &[Rival]) -> String {
    let points = rivals.chunk_by(|one, other| one.point == other.point).count();
    let both: Vec<&Rival> = rivals.iter().filter(|rival| rival.is_better_in_both()).collect();
    let mut text = format!(
        "\nBetter in both goodput and Jain's index over 2 s: {} of {} comparisons at {points} points.\n",
        both.len(),
        rivals.len(),
    );
    for rival in both {
        let place = rival.place();
        let at = if place.is_empty() { "" } else { " at " };
        text.push_str(&format!("- {}{at}{place}\n", rival.value));
    }
    text
}
