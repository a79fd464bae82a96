//! Figures of an experiment, redrawn from its records.

use super::chart::{Chart, Line, Point, Style};
use super::palette::{self, Look};
use super::parts::{chip, digits, number, ring, swatch};
use maud::{Markup, PreEscaped, html};
use meshpace_lab::record::Record;
use meshpace_lab::register::Gain;
use meshpace_lab::register::data::{Curve, Figure, FigureKind, Metric};
use meshpace_lab::register::judge::{Cell, cells};
use meshpace_lab::register::observations::Observations;
use meshpace_lab::register::select::X;
use meshpace_lab::statistics::{Estimate, estimate};

/// Draws the figures of one experiment.
pub struct Painter<'a> {
    /// Observations of the experiment.
    pub observations: &'a Observations<'a>,
}

impl Painter<'_> {
    fn panels(&self) -> usize {
        self.observations.published.panels.len().max(1)
    }

    fn panel_head(&self, panel: usize) -> Markup {
        html! { @if let Some(panel) = self.observations.published.panels.get(panel) {
            h4 { (panel.title) } p.note { (panel.note) }
        } }
    }

    /// Curves of a figure that were run.
    fn curves(&self, figure: &Figure) -> Vec<&Curve> {
        let is_meant = |curve: &Curve| figure.curves.is_empty() || figure.curves.contains(&curve.id);
        let shown = |curve: &&Curve| is_meant(curve) && self.observations.has_runs(&curve.id);
        self.observations.published.curves.iter().filter(shown).collect()
    }

    /// Look of a curve: that of the transport in its `look` or its name. A curve of no known
    /// transport is grey.
    pub fn look(&self, curve: &Curve) -> Look {
        let named = |curve: &Curve| palette::look(curve.look.as_ref().unwrap_or(&curve.id));
        let strangers = self.observations.published.curves.iter().filter(|other| named(other).is_none());
        let number = strangers.into_iter().position(|other| other.id == curve.id).unwrap_or(0);
        named(curve).unwrap_or_else(|| palette::other(number))
    }

    fn label(&self, curve: &Curve) -> String {
        self.observations.published.label(&curve.id)
    }

    pub fn estimate(&self, panel: usize, curve: &Curve, metric: &Metric, flow: Option<usize>, x: &X) -> Estimate {
        estimate(&self.observations.values(panel, curve, metric, flow, x), self.observations.published.level)
    }

    /// Draws a figure.
    pub fn figure(&self, figure: &Figure) -> Markup {
        let metrics = figure.metrics.iter().filter_map(|id| self.observations.published.metric(id)).collect::<Vec<_>>();
        html! {
            @if let Some(title) = &figure.title { h3 { (title) } }
            @match figure.kind {
                FigureKind::Table => (self.table(figure, &metrics)),
                _ => @for metric in &metrics {
                    @if figure.title.is_none() || metrics.len() > 1 { h3 { (capital(&metric.title)) } }
                    @match figure.kind {
                        FigureKind::Curves => (self.against_x(figure, metric)),
                        FigureKind::Bars => (self.per_flow(figure, metric)),
                        FigureKind::Time => (self.against_time(figure, metric)),
                        FigureKind::Cdf => (self.distribution(figure, metric)),
                        FigureKind::Table => {},
                    }
                }
            }
        }
    }

    fn legend(&self, curves: &[&Curve], is_published: bool) -> Markup {
        html! { ul.legend {
            @for curve in curves { li { (swatch(&self.look(curve))) (self.label(curve)) } }
            @if is_published { li { (ring()) "published" } }
        } }
    }

    fn against_x(&self, figure: &Figure, metric: &Metric) -> Markup {
        let curves = self.curves(figure);
        let id = |panel: usize| self.observations.published.panels.get(panel).map(|panel| panel.id.as_str());
        let is_shown = |panel: &usize| {
            figure.panels.is_empty() || id(*panel).is_some_and(|id| figure.panels.iter().any(|shown| shown == id))
        };
        let panels: Vec<usize> = (0..self.panels()).filter(is_shown).collect();
        let over = figure.over.as_ref().and_then(|id| self.observations.published.curve(id));
        let drawn = |panel: &usize| match over {
            Some(over) => self.ratios(*panel, &curves, over, metric),
            None => self.chart(*panel, &curves, metric, figure.log),
        };
        let mut charts: Vec<Chart> = panels.iter().map(drawn).collect();
        let log = charts.iter().any(|chart| chart.log);
        charts.iter_mut().for_each(|chart| chart.log = log);
        if charts.iter().all(|chart| chart.lines.iter().all(|line| line.points.is_empty())) {
            return html! { p.note { "No runs." } };
        }
        let is_published = charts.iter().any(|chart| chart.lines.iter().any(|line| !line.published.is_empty()));
        let common = Chart::common_range(&charts);
        html! {
            (self.legend(&curves, is_published))
            div.panels { @for (panel, chart) in panels.into_iter().zip(charts) {
                figure {
                    figcaption { (self.panel_head(panel)) }
                    @if chart.lines.iter().all(|line| line.points.is_empty()) { p.note { "Not run here." } }
                    @else { (PreEscaped(Chart { range: common, ..chart }.curves())) }
                }
            } }
            // The numbers of a ratio are in the figure of its metric.
            @if over.is_none() { details { summary { "All numbers" } (self.numbers(&curves, metric)) } }
        }
    }

    /// Chart of a metric against x in one panel, as the ratio to the curve `over`, with the
    /// interval of the ratio.
    fn ratios(&self, panel: usize, curves: &[&Curve], over: &Curve, metric: &Metric) -> Chart {
        let line = |curve: &&Curve| {
            let point = |x: &X| {
                let values = |curve: &Curve| self.observations.values(panel, curve, metric, None, x);
                let gain = Gain::of(&values(curve), &values(over))?;
                let (low, high) = gain.interval_pct();
                let ratio = |pct: f64| 1.0 + pct / 100.0;
                // The reference curve is 1 everywhere and has no interval.
                let (low, high) = if curve.id == over.id { (f64::NAN, f64::NAN) } else { (ratio(low), ratio(high)) };
                Some(Point { x: x.value, value: ratio(gain.pct()), low, high })
            };
            Line {
                label: self.label(curve),
                style: self.look(curve).into(),
                points: self.observations.xs().iter().filter_map(point).collect(),
                published: Vec::new(),
            }
        };
        let horizontal = self.observations.published.x.as_ref().map_or("", |axis| axis.title.as_str());
        let heading = format!("{}, ratio to {}", metric.title, self.label(over));
        Chart {
            description: format!("{heading}, against {horizontal}."),
            x_title: horizontal.to_owned(),
            y_title: heading,
            lines: curves.iter().map(line).collect(),
            ..Chart::default()
        }
    }

    /// Chart of a metric against x in one panel. Published values are drawn in the first panel,
    /// which is the paper's own.
    pub fn chart(&self, panel: usize, curves: &[&Curve], metric: &Metric, log: bool) -> Chart {
        let xs = self.observations.xs();
        let published: Vec<Cell> = if panel == 0 { cells(self.observations, 0) } else { Vec::new() };
        let line = |curve: &&Curve| {
            let point = |x: &X| {
                let ours = self.estimate(panel, curve, metric, None, x);
                ours.mean.is_finite().then_some(Point::new(x.value, ours.mean, ours.half_width))
            };
            let is_own = |cell: &&Cell| cell.curve == curve.id && cell.metric == metric.id;
            let own = published.iter().filter(|_| curve.reading_of.is_none()).filter(is_own);
            Line {
                label: self.label(curve),
                style: self.look(curve).into(),
                points: xs.iter().filter_map(point).collect(),
                published: own.map(|cell| (cell.x.value, cell.published.mean())).collect(),
            }
        };
        let lines: Vec<Line> = curves.iter().map(line).collect();
        let horizontal = self.observations.published.x.as_ref().map_or("", |axis| axis.title.as_str());
        let heading = metric.heading();
        Chart {
            description: format!("{heading} against {horizontal}. The values are in the table below."),
            x_title: horizontal.to_owned(),
            y_title: heading,
            log: log && spans(&lines),
            lines,
            ..Chart::default()
        }
    }

    /// Tables with all numbers of a metric, one for each panel. Rows are the values of x, columns
    /// are the curves.
    fn numbers(&self, curves: &[&Curve], metric: &Metric) -> Markup {
        let published = self.observations.published;
        html! { @for panel in 0..self.panels() {
            div.scroll { table {
                caption { (metric.heading()) @if let Some(panel) = published.panels.get(panel) { span { ", " (panel.title) } } }
                thead { tr {
                    th scope="col" { (published.x.as_ref().map_or("", |axis| &axis.title)) }
                    @for curve in curves { th scope="col" { (self.label(curve)) } }
                } }
                tbody { @for x in self.observations.xs() { tr {
                    td { (x.text) }
                    @for curve in curves { td {
                        (number(&self.estimate(panel, curve, metric, None, x)))
                        @if curve.tuned.is_some() { @if let Some(chosen) = self.chosen(panel, curve, x) { br; small { (chosen) } } }
                    } }
                } } }
            } }
        }
        @for curve in curves.iter().filter_map(|curve| curve.tuned.as_ref().map(|tuned| (curve, tuned))) {
            p.note { (self.label(curve.0)) ": at every x the best " (curve.1.noun) ", selected by the same runs that are shown; this raises it by about the width of its interval." }
        } }
    }

    /// Text with the chosen value of the tuned parameter and the range of values that were tried.
    fn chosen(&self, panel: usize, curve: &Curve, x: &X) -> Option<String> {
        let choices = self.observations.choices(panel, curve, x);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let best = choices.iter().max_by(|a, b| mean(&a.values).total_cmp(&mean(&b.values)))?;
        Some(format!("{} of {} to {}", best.text, choices.first()?.text, choices.last()?.text))
    }

    /// Draws one chart for each panel and x. It has a group of bars for each flow, with one bar for
    /// each curve.
    fn per_flow(&self, figure: &Figure, metric: &Metric) -> Markup {
        let curves = self.curves(figure);
        let places = (0..self.panels()).flat_map(|panel| self.observations.xs().iter().map(move |x| (panel, x)));
        let charts: Vec<(usize, &X, Chart)> = places
            .map(|(panel, x)| (panel, x, self.columns(panel, x, &curves, metric)))
            .filter(|(_, _, chart)| chart.lines.iter().any(|line| !line.points.is_empty()))
            .collect();
        let all: Vec<Chart> = charts.iter().map(|(_, _, chart)| chart.clone()).collect();
        let common = Chart::common_range(&all);
        let flows = all.iter().flat_map(|chart| &chart.lines).map(|line| line.points.len()).max().unwrap_or(0);
        html! {
            (self.legend(&curves, false))
            div.panels { @for (panel, x, chart) in &charts {
                figure {
                    figcaption { @if !x.text.is_empty() { h4 { (self.x_told(x)) } }
                        @if self.panels() > 1 { (self.panel_head(*panel)) } }
                    (PreEscaped(Chart { range: common, ..chart.clone() }.columns()))
                }
            } }
            details { summary { "All numbers" } div.scroll { table {
                caption { (metric.heading()) " of each flow" }
                thead { tr { th scope="col" { } @for flow in 1..=flows { th scope="col" { (flow) } } } }
                tbody { @for (panel, x, chart) in &charts { @for line in chart.lines.iter().filter(|line| !line.points.is_empty()) { tr {
                    td { (line.label) @if !x.text.is_empty() { ", " (self.x_told(x)) }
                        @if let Some(panel) = self.observations.published.panels.get(*panel) { br; small { (panel.title) } } }
                    @for point in &line.points { td { (digits(point.value))
                        @if point.high.is_finite() { " " small { "± " (digits(point.high - point.value)) } } } }
                } } } }
            } } }
        }
    }

    /// Value of x with its unit, such as "7 hops" or "20 kbit/s".
    fn x_told(&self, x: &X) -> String {
        match &self.observations.published.x {
            Some(axis) if axis.title == "hops" && x.value == 1.0 => "1 hop".to_owned(),
            Some(axis) if !x.text.contains(' ') => format!("{} {}", x.text, axis.title),
            _ => x.text.clone(),
        }
    }

    /// Chart with the bars of each flow in one panel at one x.
    fn columns(&self, panel: usize, x: &X, curves: &[&Curve], metric: &Metric) -> Chart {
        let line = |curve: &&Curve| {
            let point = |flow: usize| {
                let ours = self.estimate(panel, curve, metric, Some(flow), x);
                let value = if ours.mean.is_finite() { ours.mean } else { 0.0 };
                Point::new(flow as f64 + 1.0, value, ours.half_width)
            };
            Line {
                label: self.label(curve),
                style: self.look(curve).into(),
                points: (0..self.flows(panel, curve, metric, x)).map(point).collect(),
                published: Vec::new(),
            }
        };
        let heading = metric.heading();
        Chart {
            description: format!("{heading} of each flow. The values are in the table below."),
            x_title: "flow".to_owned(),
            y_title: heading,
            lines: curves.iter().map(line).collect(),
            ..Chart::default()
        }
    }

    fn flows(&self, panel: usize, curve: &Curve, metric: &Metric, x: &X) -> usize {
        let records = self.observations.records(panel, curve, x);
        records.first().map_or(0, |record| metric.of_each(record).len())
    }

    /// Draws one plot for each curve: a metric of each flow against time, in the run of the first
    /// seed.
    fn against_time(&self, figure: &Figure, metric: &Metric) -> Markup {
        let mut plots = Vec::new();
        for panel in 0..self.panels() {
            for curve in self.curves(figure) {
                for x in self.observations.xs() {
                    if let Some(record) = self.observations.records(panel, curve, x).first() {
                        plots.push((panel, curve, x, metric.over_time(record), record.seed));
                    }
                }
            }
        }
        let points = || plots.iter().flat_map(|plot| plot.3.iter().flatten()).copied();
        // The vertical axis ends a little above the 99.5th percentile. Outliers are cut off, so
        // that they do not flatten the rest.
        let mut values: Vec<f64> = points().map(|(_, value)| value).collect();
        values.sort_by(f64::total_cmp);
        let highest = values.get((0.995 * values.len() as f64) as usize).or(values.last()).copied().unwrap_or(1.0);
        let heading = metric.heading();
        let flows = plots.iter().map(|plot| plot.3.len()).max().unwrap_or(0);
        let chart = |curve: &Curve, lines: &[Vec<(f64, f64)>]| Chart {
            description: format!("{heading} against time, {}.", self.label(curve)),
            x_title: "time, s".to_owned(),
            y_title: heading.clone(),
            lines: lines.iter().enumerate().map(|(flow, line)| flow_line(&self.look(curve), flow, line)).collect(),
            range: Some((0.0, (1.1 * highest).max(1e-6))),
            ..Chart::default()
        };
        html! {
            @if flows > 1 { ul.legend { @for flow in 0..flows { li { (flow_swatch(flow)) "flow " (flow + 1) } } } }
            div.panels { @for (panel, curve, x, lines, seed) in &plots {
                figure {
                    figcaption { h4 { (self.label(curve)) @if !x.text.is_empty() { ", " (self.x_told(x)) } }
                        @if self.panels() > 1 { (self.panel_head(*panel)) }
                        p.note { "seed " (seed) } }
                    (PreEscaped(chart(curve, lines).bands()))
                }
            } }
        }
    }

    /// Draws the distribution of a metric over runs, or over flows.
    fn distribution(&self, figure: &Figure, metric: &Metric) -> Markup {
        let curves = self.curves(figure);
        let samples = |panel: usize, curve: &Curve| {
            let records = self.observations.xs().iter().flat_map(|x| self.observations.records(panel, curve, x));
            let of = |record: &Record| {
                if metric.is_of_each() { metric.of_each(record) } else { metric.of(record, None).into_iter().collect() }
            };
            let mut values: Vec<f64> = records.flat_map(of).filter(|value| value.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let all: Vec<Vec<(Look, Vec<f64>)>> = (0..self.panels())
            .map(|panel| curves.iter().map(|curve| (self.look(curve), samples(panel, curve))).collect())
            .collect();
        let heading = metric.heading();
        let chart = |plotted: &[(Look, Vec<f64>)]| Chart {
            description: format!("Share of samples of {heading} that are no larger."),
            x_title: heading.clone(),
            y_title: "share of samples".to_owned(),
            lines: plotted.iter().map(|(look, values)| stairs(*look, values)).collect(),
            most: Some(1.0),
            ..Chart::default()
        };
        html! {
            (self.legend(&curves, false))
            div.panels { @for (panel, plotted) in all.iter().enumerate() {
                figure { figcaption { (self.panel_head(panel)) } (PreEscaped(chart(plotted).bands())) }
            } }
            div.scroll { table {
                caption { "Quantiles" }
                thead { tr { th scope="col" { } @for head in ["samples", "mean", "10 %", "median", "90 %"] { th scope="col" { (head) } } } }
                tbody { @for plotted in &all { @for (curve, (_, values)) in curves.iter().zip(plotted) { tr {
                    td { (self.label(curve)) }
                    td { (values.len()) }
                    td { (digits(values.iter().sum::<f64>() / values.len() as f64)) }
                    @for share in [0.1, 0.5, 0.9] { td { (quantile(values, share).map_or("–".to_owned(), digits)) } }
                } } } }
            } }
        }
    }

    /// Table with a row for each curve, and a column for each metric and x.
    fn table(&self, figure: &Figure, metrics: &[Metric]) -> Markup {
        let curves = self.curves(figure);
        let columns: Vec<(&Metric, &X)> =
            metrics.iter().flat_map(|metric| self.observations.xs().iter().map(move |x| (metric, x))).collect();
        html! { @for panel in 0..self.panels() {
            @let cells = cells(self.observations, panel);
            (self.panel_head(panel))
            div.scroll { table {
                thead { tr {
                    th scope="col" { }
                    @for (metric, x) in &columns { th scope="col" {
                        @if x.text.is_empty() { (metric.heading()) } @else {
                            (x.text) @if let Some(axis) = &self.observations.published.x {
                                " " (if x.value == 1.0 && axis.title == "hops" { "hop" } else { &axis.title })
                            }
                            @if metrics.len() > 1 { br; (metric.heading()) }
                        }
                    } }
                } }
                tbody { @for curve in &curves { tr {
                    td { (self.label(curve)) }
                    @for (metric, x) in &columns {
                        @let is_this = |cell: &&Cell| cell.curve == curve.id && cell.metric == metric.id && cell.x == **x;
                        td { (number(&self.estimate(panel, curve, metric, None, x)))
                            @if let Some(cell) = cells.iter().find(is_this) { (self.beside(cell)) } }
                    }
                } } }
            } }
        } }
    }

    /// The published number and the verdict on it, below our number.
    fn beside(&self, cell: &Cell) -> Markup {
        let half = cell.published.half_width();
        html! {
            br; small { "paper " (digits(cell.published.mean())) @if half > 0.0 { " ± " (digits(half)) } }
            br; (chip(cell.verdict))
            @if !cell.against.is_empty() && cell.verdict == meshpace_lab::register::Verdict::Differs {
                br; small { "order to " (cell.against.iter().map(|id| self.observations.published.label(id)).collect::<Vec<_>>().join(", ")) }
            }
        }
    }
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * (sorted.len().checked_sub(1)? as f64);
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// Ratio of the largest to the smallest value above which a logarithmic axis is used.
const LINEAR: f64 = 30.0;

/// True if the values differ so much that a linear axis would hide the small ones.
fn spans(lines: &[Line]) -> bool {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.value).filter(|value| *value > 0.0);
    values().fold(0.0, f64::max) > LINEAR * values().fold(f64::MAX, f64::min)
}

/// Dashes that distinguish the lines of flows, in addition to their colours.
const FLOW_DASHES: [&str; 6] = ["", "7 3", "2 3", "12 4", "5 5", "1 5"];

/// Line of a flow over time. The first, third, fifth, ... flow has the colour of its transport; the
/// flows between them are grey.
fn flow_line(look: &Look, flow: usize, line: &[(f64, f64)]) -> Line {
    let own = Style::from(*look);
    let color = if flow.is_multiple_of(2) { own.color.clone() } else { "#777777".to_owned() };
    let dashes = FLOW_DASHES[flow % FLOW_DASHES.len()].to_owned();
    let points = line.iter().map(|(at, value)| Point::new(*at, *value, f64::NAN)).collect();
    Line { label: format!("flow {}", flow + 1), style: Style { color, dashes, ..own }, points, published: Vec::new() }
}

/// Empirical distribution function: the share of the sorted samples that are at most a value.
fn stairs(look: Look, samples: &[f64]) -> Line {
    let share = |count: usize| count as f64 / samples.len() as f64;
    let steps = samples.iter().enumerate();
    let steps = steps.flat_map(|(number, value)| [(*value, share(number)), (*value, share(number + 1))]);
    let points = steps.map(|(value, share)| Point::new(value, share, f64::NAN)).collect();
    Line { label: String::new(), style: look.into(), points, published: Vec::new() }
}

fn flow_swatch(flow: usize) -> Markup {
    // The swatch stands for flows of any transport, so it has no transport's colour.
    let color = if flow.is_multiple_of(2) { "currentColor" } else { "#777777" };
    let dashes = FLOW_DASHES[flow % FLOW_DASHES.len()];
    html! { svg.flow viewBox="0 0 30 16" aria-hidden="true" { line x1="0" y1="8" x2="30" y2="8" stroke=(color) stroke-width="2.5" stroke-dasharray=(dashes) {} } }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_few_values() {
        let values = [1.0, 2.0, 3.0, 4.0, 10.0];
        assert_eq!(quantile(&values, 0.5), Some(3.0));
        assert!((quantile(&values, 0.9).unwrap() - 7.6).abs() < 1e-9);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
