//! The comparison as text for a terminal, and as the page `validation/results.md`.

use super::{Point, Sample, Table, Verdict};
use std::fmt::Write;

/// Heading of the page, which says how it was made.
pub struct Heading<'a> {
    /// Command that makes the page again.
    pub command: &'a str,
    /// Version of the program.
    pub version: &'a str,
}

/// Text of a value with about four significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "-".into(),
        x if x >= 100.0 => format!("{value:.1}"),
        x if x >= 1.0 => format!("{value:.2}"),
        0.0 => "0".into(),
        _ => format!("{value:.4}"),
    }
}

fn with_interval(sample: &Sample) -> String {
    if sample.half_width.is_nan() {
        number(sample.mean)
    } else {
        let digits = if sample.mean.abs() >= 100.0 {
            1
        } else if sample.mean.abs() >= 1.0 {
            2
        } else {
            4
        };
        format!("{} ± {:.digits$}", number(sample.mean), sample.half_width)
    }
}

fn error(point: &Point) -> String {
    match &point.reference {
        Some(reference) if reference.mean != 0.0 => format!("{:+.2} %", point.ours.error_pct(reference)),
        _ => String::new(),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::NotMet => "NOT MET",
        Verdict::Shown => "shown",
    }
}

fn cells(point: &Point) -> [String; 7] {
    [
        point.case.clone(),
        point.reference.as_ref().map(with_interval).unwrap_or_default(),
        with_interval(&point.ours),
        point.ours.n.to_string(),
        error(point),
        point.rule.clone(),
        verdict(point.verdict).into(),
    ]
}

/// Titles of the columns. The second one is the source of the reference.
fn head(table: &Table) -> [&str; 7] {
    ["point", table.source, "meshpace", "runs", "error", "rule", "verdict"]
}

/// Largest absolute error in per cent among the points that have a rule and a reference other than
/// zero.
fn largest_error(table: &Table) -> f64 {
    let judged = table.points.iter().filter(|point| point.verdict != Verdict::Shown);
    judged
        .filter_map(|point| point.reference.as_ref().map(|reference| point.ours.error_pct(reference).abs()))
        .filter(|error| error.is_finite())
        .fold(0.0, f64::max)
}

/// Text of one table for a terminal.
pub fn text(table: &Table) -> String {
    let mut grid = comfy_table::Table::new();
    grid.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    grid.set_header(head(table));
    for point in &table.points {
        grid.add_row(cells(point));
    }
    let (met, judged) = table.score();
    format!("{} ({})\n{grid}\n{met} of {judged} points met\n", table.title, table.unit)
}

/// The whole comparison as a page.
pub fn markdown(heading: &Heading, tables: &[Table]) -> String {
    let mut page = String::new();
    let _ = write!(
        page,
        "# meshpace against ns-2.35, ns-3.44 and theory\n\nWritten by `{}`, version {}. Reference: `reference/`, whose README says \
         how it was measured, and ns-3 or theory where a table says so. Seeds are 1, 2, 3, ...; the same command gives the same page on every machine.\n\nValues are \
         means over runs ± the half width of the 95 % confidence interval (Student's t). *Joined* means |a - b| <= \
         sqrt(wa² + wb²), with wa and wb the half widths of the two intervals: stricter than letting the intervals \
         overlap.\n\n| comparison | points met | largest error |\n|---|---|---|\n",
        heading.command, heading.version
    );
    for table in tables {
        let (met, judged) = table.score();
        let score = if judged == 0 { "shown only".into() } else { format!("{met} of {judged}") };
        let error = if judged == 0 { String::new() } else { format!("{:.1} %", largest_error(table)) };
        let _ = writeln!(page, "| [{}](#{}) | {score} | {error} |", table.title, anchor(table.title));
    }
    for table in tables {
        let _ = write!(page, "\n## {}\n\n{} Unit: {}.\n\n", table.title, table.rule, table.unit);
        let _ = writeln!(page, "| {} |\n|{}", head(table).join(" | "), "---|".repeat(head(table).len()));
        for point in &table.points {
            let _ = writeln!(page, "| {} |", cells(point).join(" | "));
        }
    }
    page
}

/// Anchor that a Markdown viewer gives to a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-');
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
