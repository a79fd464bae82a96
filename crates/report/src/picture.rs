//! Page of a user's own scenario: results against the swept values, by flow, over time, and on a
//! map.
//!
//! The horizontal axis is the swept key with the most different numbers, and the lines are the
//! other values of the sweep, unless `[plot]` of the scenario says otherwise. Points that lack the
//! key have plots of their own. Points are means over the seeds. From three seeds on, they have
//! 95 % intervals.

mod data;
mod flows;
mod look;
mod map;
mod numbers;
mod panels;

use crate::chart::{self, Chart, Line, Point};
use crate::parts;
use data::{Group, groups};
pub use map::Map;
use maud::{Markup, PreEscaped, html};
use meshpace_lab::record::Record;
use meshpace_lab::record::metrics::{DELAY, METRICS, Metric, usual};
use meshpace_lab::record::{starvation, tally::Tally};
use meshpace_lab::statistics::Estimate;
use meshpace_lab::summary::{self, Candidate, Mean};
use meshpace_scenario::Plot as Settings;
use panels::{Panel, panels};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One plot: its self-contained SVG, and its numbers.
struct Plot {
    /// Part of the names of its files.
    name: String,
    title: String,
    svg: String,
    csv: String,
    /// True if the plot is as high as two other plots.
    tall: bool,
}

/// Subject of a page.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Title of the scenario.
    pub title: &'a str,
    /// Command that makes the page again.
    pub command: &'a str,
    /// Runs of the scenario.
    pub records: &'a [Record],
    /// Positions of the nodes, if they are known.
    pub map: Option<&'a Map>,
    /// Settings of the scenario's plots.
    pub settings: &'a Settings,
}

/// Largest number of points whose numbers are on the page.
const LISTED: usize = 1000;

/// Largest number of points that have a bar.
const BARS: usize = 200;

/// Writes the page to `page`. Every plot is also written beside it as SVG, with its numbers as CSV,
/// in files that are named after the page.
///
/// # Errors
/// If there are no records, or if a file cannot be written. The message names the file.
pub fn write(page: &Path, subject: &Subject) -> Result<(), String> {
    let groups = groups(subject.records);
    let panels = panels(&groups, subject.settings);
    let plots = plots(&panels, subject);
    if subject.records.is_empty() || plots.is_empty() {
        return Err(format!("{}: there are no records to show", page.display()));
    }
    let stem = page.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    for plot in &plots {
        let svg = subject.settings.width.map_or_else(|| plot.svg.clone(), |inches| chart::sized(&plot.svg, inches));
        parts::write(&page.with_file_name(format!("{stem}-{}.svg", plot.name)), &svg)?;
        if !plot.csv.is_empty() {
            parts::write(&page.with_file_name(format!("{stem}-{}.csv", plot.name)), &plot.csv)?;
        }
    }
    parts::write(page, &render(subject, &groups, &panels, &plots, &stem))
}

fn render(subject: &Subject, groups: &[Group], panels: &[Panel], plots: &[Plot], stem: &str) -> String {
    let seeds: BTreeSet<u64> = subject.records.iter().map(|record| record.seed).collect();
    let file = |plot: &Plot, kind: &str| format!("{stem}-{}.{kind}", plot.name);
    let has = |metric: &&'static Metric| subject.records.iter().any(|record| metric.shown(record).is_some());
    let told: Vec<&Metric> = usual(subject.records).filter(|metric| metric.name != DELAY).filter(has).collect();
    let tally = Tally::of(subject.records);
    let any_starves = tally.starved_runs() > 0;
    let body = html! {
        body { main {
            h1 { (subject.title) }
            (starved(&tally))
            p { "Runs: " (subject.records.len()) ", seeds: " (seeds.len()) ". " @if seeds.len() < summary::LEAST { "Three seeds or more give confidence intervals. " }
                @else { (summary::PLUS_MINUS) " of the mean over the seeds; whiskers in the plots show this interval, limited to possible values. " }
                code { (subject.command) } }
            @for sentence in panels::without_axis(panels) { p { (sentence) } }
            @for panel in panels { (ranking(panel, subject.records)) }
            div class="plots" { @for plot in plots {
                figure class=[plot.tall.then_some("tall")] {
                    (PreEscaped(&plot.svg))
                    figcaption { (plot.title) " (" a href=(file(plot, "svg")) { "SVG" }
                        @if !plot.csv.is_empty() { ", " a href=(file(plot, "csv")) { "CSV" } } ")" }
                }
            } }
            details { summary { "Numbers of every point" }
                @if groups.len() > LISTED { p { "Of " (groups.len()) " points the first " (LISTED) " are listed; the CSV of each plot has all." } }
                div class="wide" { table {
                    tr { th { "point" } @for metric in &told { th { (metric.heading()) } } th { "seeds" } @if any_starves { th { "runs that starve a flow" } } }
                    @for group in groups.iter().take(LISTED) { tr {
                        td { (group.told()) }
                        @for metric in &told { td { (data::told(group.mean(|record| metric.shown(record)).as_ref())) } }
                        td { (group.records.len()) }
                        @if any_starves { td { (starved_runs(group)) } }
                    } }
                } }
            }
        } }
    };
    parts::page(subject.title, include_str!("picture/style.css"), &body)
}

/// Warning about starved flows, at the top of the page. Empty if there are none.
fn starved(tally: &Tally) -> Markup {
    let sentences = tally.sentences();
    html! { @if let Some((first, others)) = sentences.split_first() {
        div class="starved" role="note" { p { strong { (first) } } @for sentence in others { p { (sentence) } } }
    } }
}

/// Number of runs of a point in which a flow was starved.
fn starved_runs(group: &Group) -> usize {
    group.records.iter().filter(|record| starvation::starves(record)).count()
}

/// Ranking of the lines: for each metric the mean over the axis, calculated seed by seed. The best
/// line is marked if it is clearly better than every other and starves no flow.
fn ranking(panel: &Panel, records: &[Record]) -> Markup {
    let axis = panel.axis.as_deref();
    let label = |group: &Group| axis.map_or_else(|| group.told(), |axis| group.label_without(axis));
    let mut lines: Vec<(String, Vec<&Group>)> = Vec::new();
    for group in &panel.groups {
        let label = label(group);
        match lines.iter_mut().find(|line| line.0 == label) {
            Some(line) => line.1.push(group),
            None => lines.push((label, vec![group])),
        }
    }
    if lines.len() < 2 {
        return html! {};
    }
    // Number of runs in which a flow was starved, and number of all runs, by line.
    let starved: Vec<(usize, usize)> = lines
        .iter()
        .map(|(_, groups)| {
            (groups.iter().map(|of| starved_runs(of)).sum(), groups.iter().map(|of| of.records.len()).sum())
        })
        .collect();
    let cell = |number: usize, metric: &Metric| Candidate {
        values: data::over_groups(&lines[number].1, |record| metric.shown(record)),
        starves: starved[number].0 > 0,
    };
    let mean = |candidate: &Candidate| Mean::of(&candidate.values.values().copied().collect::<Vec<_>>());
    let columns: Vec<(&Metric, Vec<Candidate>)> = usual(records)
        .map(|metric| (metric, (0..lines.len()).map(|number| cell(number, metric)).collect::<Vec<_>>()))
        .filter(|(_, cells)| cells.iter().any(|cell| mean(cell).is_some()))
        .collect();
    let best: Vec<Option<usize>> = columns
        .iter()
        .map(|(metric, cells)| summary::best(cells, metric.more_is_better, crate::parts::digits))
        .collect();
    let any_starves = starved.iter().any(|(starved, _)| *starved > 0);
    html! {
        h2 { "Which is best" @if !panel.told.is_empty() { ": " (panel.told) } }
        p { @if let Some(axis) = axis { "Means over all values of " (axis) ", comparing runs with the same seed. " }
            "“▸” marks the best mean of a column: clearly better than every other row (runs with the same seed are compared, and the 95 % confidence interval of the difference excludes 0), \
             and no flow is starved in any run of that row."
            @if best.iter().all(Option::is_none) { " Here " strong { "no row is marked" } "." }
            @if any_starves { " " span class="starves" { "✗" } ": runs in which a flow was starved. “none”: a starved flow has no delay, so the run has none either." } }
        div class="wide" { table class="rank" {
            tr { th { } @if any_starves { th { "runs that starve a flow" } } @for (metric, _) in &columns { th { (metric.heading()) } } }
            @for (number, line) in lines.iter().enumerate() { tr {
                td { (line.0) }
                @if any_starves { @match starved[number] {
                    (0, _) => td { "–" },
                    (starved, runs) => td class="starves" { "✗ " (starved) " of " (runs) },
                } }
                @for ((_, cells), best) in columns.iter().zip(&best) {
                    td class=[(*best == Some(number)).then_some("best")] { (data::told(mean(&cells[number]).as_ref())) }
                }
            } }
        } }
    }
}

/// Metrics that the scenario chooses, in its order. Without a choice, the usual metrics.
fn drawn(settings: &Settings, records: &[Record]) -> Vec<&'static Metric> {
    let called = |name: &&str| METRICS.iter().find(|metric| metric.plot == Some(name));
    match &settings.metrics {
        Some(names) => names.iter().filter_map(called).collect(),
        None => usual(records).collect(),
    }
}

fn plots(panels: &[Panel], subject: &Subject) -> Vec<Plot> {
    let drawn = drawn(subject.settings, subject.records);
    let mut plots: Vec<Plot> = Vec::new();
    for (number, panel) in panels.iter().enumerate() {
        let axis = panel.axis.as_deref();
        let of_panel = drawn.iter().filter_map(|metric| against_axis(panel, metric, subject.settings));
        let mut of_panel: Vec<Plot> = of_panel.collect();
        of_panel.extend(flows::bars(&panel.groups, axis, subject.settings));
        of_panel.extend(flows::over_time(&panel.groups, axis, subject.settings));
        for plot in &mut of_panel {
            if panels.len() > 1 {
                plot.name = format!("{}-{}", plot.name, number + 1);
                plot.title = format!("{}; {}", plot.title, panel.told);
            }
        }
        plots.extend(of_panel);
    }
    plots.extend(subject.map.map(|map| Plot {
        name: "map".to_owned(),
        title: format!("nodes, links and flows of the last point, {}", map.of),
        svg: map.draw(subject.settings),
        csv: String::new(),
        tall: false,
    }));
    plots
}

fn csv_row(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

/// Half width as a CSV cell; empty if there is no interval.
fn half(estimate: &Estimate) -> String {
    if estimate.half_width.is_finite() { estimate.half_width.to_string() } else { String::new() }
}

/// Numbers of a plot: a metric against the axis of a panel. Without an axis, the metric of each
/// point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Drawing {
    /// Title of the plot.
    pub title: String,
    /// Name of its panel: values that its points have in common, in words. Empty if there is only
    /// one panel.
    pub panel: String,
    /// Title of the horizontal axis. `None` if there is no axis, so that the points have names
    /// only.
    pub x_title: Option<String>,
    /// Title of the vertical axis, with the unit.
    pub y_title: String,
    /// Largest possible value, if there is one.
    pub most: Option<f64>,
    /// True if the vertical axis is logarithmic.
    pub logarithmic: bool,
    /// Label of the horizontal axis of a figure.
    pub x_label: Option<String>,
    /// Label of the vertical axis of a figure.
    pub y_label: String,
    /// Title of a figure; `None` if the scenario sets none.
    pub heading: Option<String>,
    /// Width of a figure in inches; `None` if the scenario sets none.
    pub width: Option<f64>,
    /// Height of a figure in inches; `None` if the scenario sets none.
    pub height: Option<f64>,
    /// True if the points of several lines at the same x are drawn side by side.
    pub shifted: bool,
    /// Values of the horizontal axis and their labels, if they are names. The x of a row is a place
    /// in this list, from 0. Empty if the values are numbers.
    pub x_names: Vec<(String, String)>,
    /// Every point of every line, in the order of the records.
    pub rows: Vec<Row>,
}

/// A point of a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Label of the line. Without an axis, label of the point.
    pub line: String,
    /// Label of the line in a figure.
    pub label: String,
    /// Colour of the line, as "#rrggbb"; `None` if the scenario sets none.
    pub colour: Option<String>,
    /// Position on the axis; place of the name on an axis of names, number of the point if there is
    /// no axis.
    pub x: f64,
    /// Mean over the runs. `None` if a run has no value that a number can describe.
    pub mean: Option<f64>,
    /// Half width of the 95 % interval; `None` if there is no interval.
    pub half_width: Option<f64>,
    /// Number of runs with a value.
    pub seeds: usize,
}

/// Numbers of the plots of one metric, as the page of `records` draws them: one drawing for each
/// panel. `quantity` is a name of `plot.metrics` or of the metric itself.
///
/// # Errors
/// If there is no such metric. The message lists the metrics.
pub fn drawings(records: &[Record], quantity: &str, settings: &Settings) -> Result<Vec<Drawing>, String> {
    let called = |metric: &&Metric| metric.plot == Some(quantity) || metric.name == quantity;
    let metric = METRICS.iter().filter(|metric| metric.plot.is_some()).find(called).ok_or_else(|| {
        let names: Vec<&str> = METRICS.iter().filter_map(|metric| metric.plot).collect();
        format!("there is no quantity \"{quantity}\": expected one of {}", names.join(", "))
    })?;
    let groups = groups(records);
    Ok(panels(&groups, settings).iter().filter_map(|panel| drawing(panel, metric, settings)).collect())
}

fn drawing(panel: &Panel, metric: &Metric, settings: &Settings) -> Option<Drawing> {
    let axis = panel.axis.as_deref();
    let mut rows = Vec::new();
    for (number, group) in panel.groups.iter().enumerate() {
        let Some(mean) = group.mean(|record| metric.shown(record)) else { continue };
        let (line, x) = match axis {
            Some(axis) if !panel.names.is_empty() => {
                let value = group.value(axis);
                (group.label_without(axis), panel.names.iter().position(|name| *name == value)? as f64)
            }
            Some(axis) => (group.label_without(axis), group.x(axis)?),
            None => (group.told(), number as f64),
        };
        let number = |value: f64| Some(value).filter(|value| mean.none == 0 && value.is_finite());
        let (half_width, seeds) = (number(mean.numbers.half_width), mean.numbers.count + mean.none);
        let (label, colour) = (settings.label(&line), settings.colour(&line).cloned());
        rows.push(Row { line, label, colour, x, mean: number(mean.numbers.mean), half_width, seeds });
    }
    let none = if rows.iter().any(|row| row.mean.is_none()) { "; none where a flow was starved" } else { "" };
    let title = axis.map_or_else(|| metric.heading(), |axis| format!("{} against {axis}", metric.heading()));
    let name = metric.plot.unwrap_or(metric.name);
    let called = |text: String, name: &str| settings.labels.get(name).cloned().unwrap_or_else(|| settings.label(&text));
    // Names have no unit, even if they consist of several words.
    let x_title = |axis: &str| match panel.names.is_empty() {
        true => data::with_unit(axis, &panel.groups),
        false => axis.to_owned(),
    };
    (!rows.is_empty()).then(|| Drawing {
        title: title + none,
        panel: panel.told.clone(),
        x_title: axis.map(x_title),
        y_title: metric.heading(),
        most: metric.most,
        logarithmic: settings.logarithmic && axis.is_some(),
        x_label: axis.map(|axis| called(x_title(axis), axis)),
        y_label: called(metric.heading(), name),
        heading: settings.titles.get(name).cloned(),
        width: settings.width,
        height: settings.height,
        shifted: settings.shifted || !panel.names.is_empty(),
        x_names: panel.names.iter().map(|name| (name.clone(), settings.label(name))).collect(),
        rows,
    })
}

fn against_axis(panel: &Panel, metric: &Metric, settings: &Settings) -> Option<Plot> {
    let axis = panel.axis.as_deref();
    let drawing = drawing(panel, metric, settings)?;
    let mut csv = csv_row(&["line", axis.unwrap_or("point"), "mean", "half_width", "seeds"].map(str::to_owned));
    let mut drawn: Vec<(String, Vec<Point>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for row in drawing.rows {
        // The delay of a starved flow does not exist. It is an empty cell here and `null` in JSON.
        let [mean, half_width] =
            [row.mean, row.half_width].map(|value| value.map(|value| value.to_string()).unwrap_or_default());
        let x = panel.names.get(row.x as usize).cloned().unwrap_or_else(|| row.x.to_string());
        csv.push_str(&csv_row(&[row.line.clone(), x, mean, half_width, row.seeds.to_string()]));
        let point = Point::new(row.x, row.mean.unwrap_or(f64::INFINITY), row.half_width.unwrap_or(f64::NAN));
        let place = *places.entry(row.line.clone()).or_insert(drawn.len());
        match drawn.get_mut(place) {
            Some(line) => line.1.push(point),
            None => drawn.push((row.line, vec![point])),
        }
    }
    // The page shows a limited number of bars; the CSV contains all points.
    let all = drawn.len();
    let title = match &drawing.heading {
        Some(heading) => format!("{heading}: {}", drawing.title),
        None => drawing.title,
    };
    let title = match axis.is_none() && all > BARS {
        true => format!("{title}; the first {BARS} of {all} points"),
        false => title,
    };
    drawn.truncate(if axis.is_none() { BARS } else { all });
    drawn.iter_mut().for_each(|line| line.1.sort_by(|a, b| a.x.total_cmp(&b.x)));
    let labels: Vec<String> = drawn.iter().map(|line| line.0.clone()).collect();
    let styles = look::styles(&labels, settings);
    let line = |((line, points), style): ((String, Vec<Point>), _)| Line {
        label: settings.label(&line),
        style,
        points,
        published: Vec::new(),
    };
    let chart = Chart {
        description: title.clone(),
        x_title: drawing.x_label.unwrap_or_default(),
        y_title: drawing.y_label,
        lines: drawn.into_iter().zip(styles).map(line).collect(),
        most: drawing.most,
        log: drawing.logarithmic,
        legend: true,
        range: None,
        is_shifted: drawing.shifted,
        names: drawing.x_names.into_iter().map(|(_, label)| label).collect(),
    };
    let svg = if axis.is_some() { chart.curves() } else { chart.bars() };
    Some(Plot { name: metric.plot.unwrap_or(metric.name).to_owned(), title, svg, csv, tall: false })
}

#[cfg(test)]
mod tests;
