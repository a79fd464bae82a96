//! The figures of an experiment, redrawn from its records.

use super::palette::{self, Look};
use super::parts::{chip, digits, number, swatch};
use super::plot::{self, Bar, Curve as Plotted, FLOW_DASHES, Frame};
use maud::{Markup, PreEscaped, html};
use meshpace_lab::register::data::{Curve, Figure, FigureKind, Metric};
use meshpace_lab::register::judge::{Cell, cells};
use meshpace_lab::register::observations::Observations;
use meshpace_lab::register::select::X;
use meshpace_lab::statistics::{Estimate, estimate};
use serde_json::Value;

/// Draws the figures of one experiment.
pub struct Painter<'a> {
    /// What is drawn.
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

    /// The curves of a figure.
    fn curves(&self, figure: &Figure) -> Vec<&Curve> {
        let shown = |curve: &&Curve| figure.curves.is_empty() || figure.curves.contains(&curve.id);
        self.observations.published.curves.iter().filter(shown).collect()
    }

    /// How a curve looks: as the transport it is named after or says, or else grey.
    fn look(&self, curve: &Curve) -> Look {
        let named = |curve: &Curve| palette::look(curve.look.as_ref().unwrap_or(&curve.id));
        let strangers = self.observations.published.curves.iter().filter(|other| named(other).is_none());
        let number = strangers.into_iter().position(|other| other.id == curve.id).unwrap_or(0);
        named(curve).unwrap_or_else(|| palette::other(number))
    }

    fn label(&self, curve: &Curve) -> String {
        self.observations.published.label(&curve.id)
    }

    fn estimate(&self, panel: usize, curve: &Curve, metric: &Metric, flow: Option<usize>, x: &X) -> Estimate {
        estimate(&self.observations.values(panel, curve, metric, flow, x), self.observations.published.level)
    }

    /// A figure.
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

    fn legend(&self, curves: &[&Curve]) -> Markup {
        html! { ul.legend { @for curve in curves { li { (swatch(&self.look(curve))) (self.label(curve)) } } } }
    }

    fn against_x(&self, figure: &Figure, metric: &Metric) -> Markup {
        let curves = self.curves(figure);
        let bar = |panel: usize, curve: &Curve, x: &X| {
            let ours = self.estimate(panel, curve, metric, None, x);
            let half = ours.half_width;
            ours.mean.is_finite().then_some(Bar {
                x: x.value,
                low: ours.mean - half,
                value: ours.mean,
                high: ours.mean + half,
            })
        };
        let xs = self.observations.xs();
        let all: Vec<Vec<Plotted>> = (0..self.panels())
            .map(|panel| {
                let plotted = |curve: &&Curve| Plotted {
                    look: self.look(curve),
                    bars: xs.iter().filter_map(|x| bar(panel, curve, x)).collect(),
                };
                curves.iter().map(plotted).collect()
            })
            .collect();
        let range = range(all.iter().flatten().flat_map(|curve| &curve.bars).copied(), figure.log);
        let (Some(range), Some(first), Some(last)) = (range, xs.first(), xs.last()) else {
            return html! { p.note { "No runs." } };
        };
        let horizontal = self.observations.published.x.as_ref().map_or("", |axis| axis.title.as_str());
        let heading = metric.heading();
        html! {
            (self.legend(&curves))
            div.panels { @for (panel, plotted) in all.iter().enumerate() {
                @let description = format!("{heading} against {horizontal}. The values are in the table below.");
                @let frame = Frame { description: &description, horizontal, vertical: &heading, x: (first.value, last.value),
                    y: range, log: figure.log };
                figure { figcaption { (self.panel_head(panel)) } (PreEscaped(plot::curves(&frame, plotted))) }
            } }
            details { summary { "All numbers" } (self.numbers(&curves, metric)) }
        }
    }

    /// Every number of a metric: x down, curves across, a table for each panel.
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
            p.note { (self.label(curve.0)) ": at every x the best " (curve.1.noun) ", chosen and shown by the same runs, which favours it by about as \
                much as its interval is wide." }
        } }
    }

    /// The value of the tuned parameter that was chosen, and those that were tried.
    fn chosen(&self, panel: usize, curve: &Curve, x: &X) -> Option<String> {
        let choices = self.observations.choices(panel, curve, x);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let best = choices.iter().max_by(|a, b| mean(&a.values).total_cmp(&mean(&b.values)))?;
        Some(format!("{} of {} to {}", best.text, choices.first()?.text, choices.last()?.text))
    }

    /// A plot for each curve and x with one bar for each flow.
    fn per_flow(&self, figure: &Figure, metric: &Metric) -> Markup {
        let curves = self.curves(figure);
        let mut plots: Vec<(usize, &Curve, &X, Vec<Bar>)> = Vec::new();
        for panel in 0..self.panels() {
            for &curve in &curves {
                for x in self.observations.xs() {
                    let flows = self.flows(panel, curve, metric, x);
                    let bar = |flow: usize| {
                        let ours = self.estimate(panel, curve, metric, Some(flow), x);
                        let value = if ours.mean.is_finite() { ours.mean } else { 0.0 };
                        Bar { x: flow as f64 + 1.0, low: value - ours.half_width, value, high: value + ours.half_width }
                    };
                    if flows > 0 {
                        plots.push((panel, curve, x, (0..flows).map(bar).collect()));
                    }
                }
            }
        }
        let highest = plots
            .iter()
            .flat_map(|(_, _, _, bars)| bars)
            .map(|bar| if bar.high.is_finite() { bar.high } else { bar.value });
        let range = (0.0, 1.08 * highest.fold(0.0, f64::max));
        let heading = metric.heading();
        html! {
            div.panels.small { @for (panel, curve, x, bars) in &plots {
                @let description = format!("{heading} of each flow, {}.", self.label(curve));
                @let frame = Frame { description: &description, horizontal: "flow", vertical: &heading, x: (0.0, 0.0), y: range, log: false };
                figure {
                    figcaption { h4 { (self.label(curve)) @if !x.text.is_empty() { ", " (x.text) } }
                        @if self.panels() > 1 { (self.panel_head(*panel)) } }
                    (PreEscaped(plot::bars(&frame, self.look(curve).color, bars)))
                }
            } }
            details { summary { "All numbers" } div.scroll { table {
                caption { (heading) " of each flow" }
                thead { tr { th scope="col" { } @for flow in 0..plots.iter().map(|plot| plot.3.len()).max().unwrap_or(0) { th scope="col" { (flow + 1) } } } }
                tbody { @for (panel, curve, x, bars) in &plots { tr {
                    td { (self.label(curve)) @if !x.text.is_empty() { ", " (x.text) }
                        @if let Some(panel) = self.observations.published.panels.get(*panel) { br; small { (panel.title) } } }
                    @for bar in bars { td { (digits(bar.value)) @if bar.high.is_finite() { " " small { "± " (digits(bar.high - bar.value)) } } } }
                } } }
            } } }
        }
    }

    fn flows(&self, panel: usize, curve: &Curve, metric: &Metric, x: &X) -> usize {
        let records = self.observations.records(panel, curve, x);
        records.first().map_or(0, |record| metric.of_each(record).len())
    }

    /// A plot for each curve: a quantity of each flow against time, in the run of the first seed.
    fn against_time(&self, figure: &Figure, metric: &Metric) -> Markup {
        let mut plots = Vec::new();
        for panel in 0..self.panels() {
            for curve in self.curves(figure) {
                for x in self.observations.xs() {
                    if let Some(record) = self.observations.records(panel, curve, x).first() {
                        plots.push((panel, curve, x, metric.over_time(record), seed(record)));
                    }
                }
            }
        }
        let points = || plots.iter().flat_map(|plot| plot.3.iter().flatten()).copied();
        let end = points().map(|(at, _)| at).fold(0.0, f64::max);
        // The highest of a thousand values is an outlier; it is cut off rather than allowed to flatten everything else.
        let mut values: Vec<f64> = points().map(|(_, value)| value).collect();
        values.sort_by(f64::total_cmp);
        let highest = values.get((0.995 * values.len() as f64) as usize).or(values.last()).copied().unwrap_or(1.0);
        let heading = metric.heading();
        let flows = plots.iter().map(|plot| plot.3.len()).max().unwrap_or(0);
        html! {
            @if flows > 1 { ul.legend { @for flow in 0..flows { li { (flow_swatch(flow)) "flow " (flow + 1) } } } }
            div.panels { @for (panel, curve, x, lines, seed) in &plots {
                @let description = format!("{heading} against time, {}.", self.label(curve));
                @let frame = Frame { description: &description, horizontal: "time, s", vertical: &heading, x: (0.0, end),
                    y: (0.0, (1.1 * highest).max(1e-6)), log: false };
                figure {
                    figcaption { h4 { (self.label(curve)) @if !x.text.is_empty() { ", " (x.text) } }
                        @if self.panels() > 1 { (self.panel_head(*panel)) }
                        p.note { "seed " (seed) } }
                    (PreEscaped(plot::lines(&frame, self.look(curve).color, lines)))
                }
            } }
        }
    }

    /// The distribution of runs, or of flows.
    fn distribution(&self, figure: &Figure, metric: &Metric) -> Markup {
        let curves = self.curves(figure);
        let samples = |panel: usize, curve: &Curve| {
            let records = self.observations.xs().iter().flat_map(|x| self.observations.records(panel, curve, x));
            let of = |record: &Value| {
                if metric.is_of_each() { metric.of_each(record) } else { metric.of(record, None).into_iter().collect() }
            };
            let mut values: Vec<f64> = records.flat_map(of).filter(|value| value.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let all: Vec<Vec<(Look, Vec<f64>)>> = (0..self.panels())
            .map(|panel| curves.iter().map(|curve| (self.look(curve), samples(panel, curve))).collect())
            .collect();
        let end = all.iter().flatten().filter_map(|(_, values)| values.last()).copied().fold(0.0, f64::max);
        let heading = metric.heading();
        html! {
            (self.legend(&curves))
            div.panels { @for (panel, plotted) in all.iter().enumerate() {
                @let description = format!("Share of samples of {heading} that are no larger.");
                @let frame = Frame { description: &description, horizontal: &heading, vertical: "share", x: (0.0, (1.02 * end).max(1e-6)), y: (0.0, 1.02), log: false };
                figure { figcaption { (self.panel_head(panel)) } (PreEscaped(plot::steps(&frame, plotted))) }
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

    /// Rows are curves; columns are metrics, each for every x.
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

    /// The published number below ours.
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

fn seed(record: &Value) -> u64 {
    record.get("seed").and_then(Value::as_u64).unwrap_or(0)
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * (sorted.len().checked_sub(1)? as f64);
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// The vertical range of a figure: from zero, or for a logarithmic one around the values.
fn range(bars: impl Iterator<Item = Bar> + Clone, log: bool) -> Option<(f64, f64)> {
    let bars = bars.filter(move |bar| !log || bar.value > 0.0);
    let smallest = bars.clone().map(|bar| bar.value).min_by(f64::total_cmp)?;
    let largest = bars.clone().map(|bar| bar.value).max_by(f64::total_cmp)?;
    // An interval that reaches far is cut off rather than allowed to flatten everything else.
    let top = bars
        .clone()
        .map(|bar| bar.high)
        .filter(|high| high.is_finite())
        .fold(largest, f64::max)
        .min(1.5 * largest.max(1e-9));
    if log {
        let low = bars.map(|bar| bar.low).filter(|low| low.is_finite()).fold(smallest, f64::min).max(smallest / 2.0);
        return Some((low / 1.15, top * 1.15));
    }
    Some((smallest.min(0.0), if top > 0.0 { 1.08 * top } else { 1.0 }))
}

fn flow_swatch(flow: usize) -> Markup {
    let dashes = FLOW_DASHES[flow % FLOW_DASHES.len()].map(|(length, gap)| format!("{length} {gap}"));
    // The first has the colour of its transport, whichever that is.
    let color = if flow.is_multiple_of(2) { "currentColor" } else { "#666666" };
    html! { svg.flow viewBox="0 0 30 16" aria-hidden="true" { line x1="0" y1="8" x2="30" y2="8" stroke=(color) stroke-width="2.5" stroke-dasharray=[dashes] {} } }
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
