//! Goodput of each flow: as bars, and as lines over time.

use super::data::{self, Group};
use super::{Plot, csv_row, half, look};
use crate::chart::{Chart, Line, Point};
use meshpace_lab::record::Record;
use meshpace_scenario::Plot as Settings;
use std::collections::BTreeSet;

/// Largest number of flows of a point that have a bar.
const BARS: usize = 12;

/// Number of bars from which the plot is higher than other plots.
const TALL: usize = 7;

/// Largest number of points, and of flows of each point, that have a line over time.
const LINES: usize = 6;

/// Creates a line for each label.
fn lines(drawn: Vec<(String, Vec<Point>)>, settings: &Settings) -> Vec<Line> {
    let labels: Vec<String> = drawn.iter().map(|(label, _)| label.clone()).collect();
    let styles = look::styles(&labels, settings);
    let line = |((label, points), style): ((String, Vec<Point>), _)| Line {
        label: settings.label(&label),
        style,
        points,
        published: Vec::new(),
    };
    drawn.into_iter().zip(styles).map(line).collect()
}

/// Plot of the goodput of each flow, at the first value of the axis for every line.
pub fn bars(groups: &[&Group], axis: Option<&str>, settings: &Settings) -> Option<Plot> {
    let label = |group: &Group| axis.map_or_else(|| group.told(), |axis| group.label_without(axis));
    let mut labels = BTreeSet::new();
    let shown: Vec<&&Group> = groups.iter().filter(|group| labels.insert(label(group))).collect();
    let mut csv = csv_row(&["point", "flow", "transport", "mean", "half_width", "name"].map(str::to_owned));
    let mut drawn = Vec::new();
    let mut is_cut = false;
    let several = |group: &&&&Group| group.records.first().is_some_and(|record| record.flows.len() > 1);
    for group in shown.iter().filter(several) {
        let count = group.records[0].flows.len();
        is_cut |= count > BARS;
        for flow in 0..count.min(BARS) {
            let goodput = |record: &Record| record.flows.get(flow).map(|flow| flow.goodput_bps * 1e-3);
            let Some(estimate) = group.estimate(goodput) else { continue };
            csv.push_str(&csv_row(&[
                group.told(),
                flow.to_string(),
                group.transport(flow).to_owned(),
                estimate.mean.to_string(),
                half(&estimate),
                group.name(flow).unwrap_or_default().to_owned(),
            ]));
            let at = drawn.len() as f64;
            drawn.push((group.flow_label(flow), vec![Point::new(at, estimate.mean, estimate.half_width)]));
        }
    }
    if drawn.is_empty() {
        return None;
    }
    let at = axis.map_or(String::new(), |axis| format!(" at the first value of {axis}"));
    let cut = if is_cut { format!(", of the first {BARS} of a point") } else { String::new() };
    let title = format!("goodput of each flow{at}{cut}");
    let tall = drawn.len() >= TALL;
    let (description, y_title) = (title.clone(), "goodput of each flow, kbit/s".to_owned());
    let chart = Chart { description, y_title, lines: lines(drawn, settings), ..Chart::default() };
    Some(Plot { name: "flows".to_owned(), title, svg: chart.bars(), csv, tall })
}

/// Selects the point in the middle of the axis for each line. Without an axis, all points.
fn middles<'a>(groups: &[&'a Group<'a>], axis: Option<&str>) -> Vec<&'a Group<'a>> {
    let Some(axis) = axis else { return groups.to_vec() };
    let mut lines: Vec<(String, Vec<&Group>)> = Vec::new();
    for group in groups {
        let label = group.label_without(axis);
        match lines.iter_mut().find(|line| line.0 == label) {
            Some(line) => line.1.push(group),
            None => lines.push((label, vec![group])),
        }
    }
    let middle = |(_, mut points): (String, Vec<&'a Group<'a>>)| {
        points.sort_by(|a, b| a.x(axis).unwrap_or(0.0).total_cmp(&b.x(axis).unwrap_or(0.0)));
        points[points.len() / 2]
    };
    lines.into_iter().map(middle).collect()
}

/// Plot of goodput over time, as the mean over the seeds. `None` if the records contain no time
/// series.
pub fn over_time(groups: &[&Group], axis: Option<&str>, settings: &Settings) -> Option<Plot> {
    let mut csv = csv_row(&["point", "flow", "transport", "time_s", "mean", "half_width", "name"].map(str::to_owned));
    let mut drawn = Vec::new();
    let middles = middles(groups, axis);
    let mut is_cut = middles.len() > LINES;
    for group in middles.into_iter().take(LINES) {
        let Some(first) = group.records.first().and_then(|record| record.series.as_ref()) else { continue };
        let count = first.flows.len();
        is_cut |= count > LINES;
        for flow in 0..count.min(LINES) {
            let values = |record: &&Record| -> Vec<f64> {
                let flow = record.series.as_ref().and_then(|series| series.flows.get(flow));
                flow.map(|flow| flow.goodput_bps.clone()).unwrap_or_default()
            };
            let all: Vec<Vec<f64>> = group.records.iter().map(values).collect();
            let mut points = Vec::new();
            for number in 0..all.iter().map(Vec::len).min().unwrap_or(0) {
                let at: Vec<f64> = all.iter().map(|values| values[number] * 1e-3).collect();
                let Some(estimate) = data::estimate_of(&at) else { continue };
                let time = first.start_s + (number as f64 + 0.5) * first.window_s;
                csv.push_str(&csv_row(&[
                    group.told(),
                    flow.to_string(),
                    group.transport(flow).to_owned(),
                    time.to_string(),
                    estimate.mean.to_string(),
                    half(&estimate),
                    group.name(flow).unwrap_or_default().to_owned(),
                ]));
                points.push(Point::new(time, estimate.mean, estimate.half_width));
            }
            drawn.push((group.flow_label(flow), points));
        }
    }
    drawn.retain(|(_, points)| points.len() > 1);
    if drawn.is_empty() {
        return None;
    }
    let at = axis.map_or(String::new(), |axis| format!(", for each line at the middle value of {axis}"));
    let cut = if is_cut { format!("; {LINES} lines and {LINES} flows at most") } else { String::new() };
    let title = format!("goodput over time{at}{cut}");
    let (description, x_title, y_title) = (title.clone(), "time, s".to_owned(), "goodput over time, kbit/s".to_owned());
    let chart =
        Chart { description, x_title, y_title, lines: lines(drawn, settings), legend: true, ..Chart::default() };
    Some(Plot { name: "time".to_owned(), title, svg: chart.bands(), csv, tall: false })
}
