//! Plots as SVG, each complete in itself: no script, no style sheet, no font that has to be there.

use crate::palette::{self, css};
use std::fmt::Write;

/// A line of a chart: points of x, mean and half width of the interval (NaN for none).
pub struct Line {
    /// What it is.
    pub label: String,
    /// Ascending in x.
    pub points: Vec<(f64, f64, f64)>,
}

/// A chart of lines over one pair of axes.
pub struct Chart {
    /// Below.
    pub x_title: String,
    /// Above.
    pub y_title: String,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// Nodes in metres, links and flows by their numbers.
pub struct Map {
    /// Places.
    pub nodes: Vec<(f64, f64)>,
    /// Who is connected with whom.
    pub links: Vec<(usize, usize)>,
    /// From whom to whom.
    pub flows: Vec<(usize, usize)>,
    /// Of which run it is, in words.
    pub of: String,
}

const WIDTH: f64 = 520.0;
const TOP: f64 = 34.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const PLOT: f64 = 250.0;
/// M. Okabe and K. Ito, "Color Universal Design", 2008, the darker ones.
const COLORS: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const DASHES: [&str; 4] = ["", "7 4", "2 3", "12 4 2 4"];

fn text(value: &str) -> String {
    value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn head(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"13\" role=\"img\"><title>{0}</title><rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>",
        text(title)
    )
}

/// The colour of a line: that of its transport wherever it has one.
fn color(label: &str, number: usize) -> String {
    let own = label.split(", ").find_map(palette::look);
    own.map_or_else(|| COLORS[number % COLORS.len()].to_owned(), |look| css(look.color))
}

/// Colour and dashes of each line: lines of one colour differ in their dashes.
fn looks(lines: &[Line]) -> Vec<(String, &'static str)> {
    let mut looks: Vec<(String, &'static str)> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let color = color(&line.label, number);
        let before = looks.iter().filter(|look| look.0 == color).count();
        looks.push((color, DASHES[before % DASHES.len()]));
    }
    looks
}

/// About five round numbers from zero or below to the top.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let span = (high - low).max(1e-9);
    let power = 10f64.powf((span / 4.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| span / step <= 6.0);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

fn shown(value: f64) -> String {
    let rounded = format!("{value:.6}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low).max(1e-12) * (self.to - self.from)
    }
}

impl Chart {
    fn values(&self) -> impl Iterator<Item = &(f64, f64, f64)> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    /// The vertical axis from zero, its grid drawn into `svg`.
    fn vertical(&self, svg: &mut String) -> Scale {
        let half = |half: f64| if half.is_finite() { half } else { 0.0 };
        let high = self.values().map(|(_, mean, width)| mean + half(*width)).fold(1e-9, f64::max);
        let ticks = ticks(0.0, high);
        let scale = Scale { low: 0.0, high: ticks.last().copied().unwrap_or(1.0), from: TOP + PLOT, to: TOP };
        let _ = write!(svg, "<text x=\"8\" y=\"18\">{}</text>", text(&self.y_title));
        for tick in ticks {
            let y = scale.at(tick);
            let _ = write!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                shown(tick)
            );
        }
        scale
    }

    /// The horizontal axis. Where few values were run, these are its ticks: nobody runs half a hop.
    fn horizontal(&self, svg: &mut String, fewest: bool) -> Scale {
        let mut xs: Vec<f64> = self.values().map(|point| point.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let (low, high) = (xs.first().copied().unwrap_or(0.0), xs.last().copied().unwrap_or(1.0));
        let scale = Scale { low, high, from: LEFT + 12.0, to: WIDTH - RIGHT - 12.0 };
        let marks = if fewest && xs.len() <= 12 { xs } else { ticks(low, high) };
        for tick in marks.into_iter().filter(|tick| (low..=high).contains(tick)) {
            let (x, y) = (scale.at(tick), TOP + PLOT);
            let _ = write!(
                svg,
                "<path d=\"M{x:.1} {y}v5\" stroke=\"#444\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                y + 19.0,
                shown(tick)
            );
        }
        let _ = write!(
            svg,
            "<path d=\"M{LEFT} {0}H{1}\" stroke=\"#444\"/><text x=\"{1}\" y=\"{2}\" text-anchor=\"end\">{3}</text>",
            TOP + PLOT,
            WIDTH - RIGHT,
            TOP + PLOT + 38.0,
            text(&self.x_title)
        );
        scale
    }

    fn legend(&self, svg: &mut String, from: f64) {
        for (number, (line, (stroke, dashes))) in self.lines.iter().zip(looks(&self.lines)).enumerate() {
            let y = from + 20.0 * number as f64;
            let _ = write!(
                svg,
                "<path d=\"M{LEFT} {y}h28\" stroke=\"{stroke}\" stroke-width=\"2.5\" stroke-dasharray=\"{dashes}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                LEFT + 36.0,
                y + 4.0,
                text(&line.label)
            );
        }
    }

    fn height(&self) -> f64 {
        TOP + PLOT + 56.0 + 20.0 * self.lines.len() as f64
    }

    /// Lines with markers and intervals.
    pub fn curves(&self) -> String {
        self.drawn(|svg, line, stroke, x, y| {
            for (at, mean, half) in &line.points {
                let (px, py) = (x.at(*at), y.at(*mean));
                if half.is_finite() {
                    let (top, bottom) = (y.at(mean + half), y.at((mean - half).max(0.0)));
                    let _ = write!(
                        svg,
                        "<path d=\"M{px:.1} {top:.1}V{bottom:.1}M{0:.1} {top:.1}h8M{0:.1} {bottom:.1}h8\" stroke=\"{stroke}\"/>",
                        px - 4.0
                    );
                }
                let _ = write!(svg, "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3.5\" fill=\"{stroke}\"/>");
            }
        })
    }

    /// Lines with a band as wide as the interval.
    pub fn bands(&self) -> String {
        self.drawn(|svg, line, stroke, x, y| {
            let inside: Vec<_> = line.points.iter().filter(|point| point.2.is_finite()).collect();
            let upper = inside.iter().map(|(at, mean, half)| format!("{:.1},{:.1}", x.at(*at), y.at(mean + half)));
            let lower = inside
                .iter()
                .rev()
                .map(|(at, mean, half)| format!("{:.1},{:.1}", x.at(*at), y.at((mean - half).max(0.0))));
            let corners: Vec<String> = upper.chain(lower).collect();
            if !corners.is_empty() {
                let _ =
                    write!(svg, "<polygon points=\"{}\" fill=\"{stroke}\" fill-opacity=\"0.18\"/>", corners.join(" "));
            }
        })
    }

    fn drawn(&self, more: impl Fn(&mut String, &Line, &str, &Scale, &Scale)) -> String {
        let mut svg = head(self.height(), &self.y_title);
        let y = self.vertical(&mut svg);
        let x = self.horizontal(&mut svg, true);
        for (line, (stroke, dashes)) in self.lines.iter().zip(looks(&self.lines)) {
            let points: Vec<String> =
                line.points.iter().map(|(at, mean, _)| format!("{:.1},{:.1}", x.at(*at), y.at(*mean))).collect();
            let _ = write!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>",
                points.join(" "),
            );
            more(&mut svg, line, &stroke, &x, &y);
        }
        self.legend(&mut svg, TOP + PLOT + 58.0);
        svg + "</svg>"
    }

    /// A bar for each line's first point, lying, with its label.
    pub fn bars(&self) -> String {
        let row = 44.0;
        let height = TOP + row * self.lines.len() as f64 + 30.0;
        let mut svg = head(height, &self.y_title);
        let _ = write!(svg, "<text x=\"8\" y=\"18\">{}</text>", text(&self.y_title));
        let half = |half: f64| if half.is_finite() { half } else { 0.0 };
        let high = self.values().map(|(_, mean, width)| mean + half(*width)).fold(1e-9, f64::max);
        let marks = ticks(0.0, high);
        let x = Scale { low: 0.0, high: marks.last().copied().unwrap_or(1.0), from: 12.0, to: WIDTH - 24.0 };
        for tick in marks {
            let at = x.at(tick);
            let _ = write!(
                svg,
                "<path d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                height - 26.0,
                height - 10.0,
                shown(tick)
            );
        }
        for (number, line) in self.lines.iter().enumerate() {
            let Some((_, mean, width)) = line.points.first() else { continue };
            let y = TOP + row * number as f64;
            let (start, end) = (x.at(0.0), x.at(*mean));
            let _ = write!(
                svg,
                "<text x=\"{start}\" y=\"{:.1}\">{}</text><rect x=\"{start}\" y=\"{:.1}\" width=\"{:.1}\" height=\"16\" fill=\"{}\"/>",
                y + 14.0,
                text(&line.label),
                y + 19.0,
                (end - start).max(0.0),
                color(&line.label, number)
            );
            if width.is_finite() {
                let (low, high, middle) = (x.at((mean - width).max(0.0)), x.at(mean + width), y + 27.0);
                let _ = write!(
                    svg,
                    "<path d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {0:.1}v8M{high:.1} {0:.1}v8\" stroke=\"#111\"/>",
                    middle - 4.0
                );
            }
        }
        svg + "</svg>"
    }
}

impl Map {
    /// The map: links grey, flows in colour, nodes with their numbers as long as there is room.
    pub fn draw(&self) -> String {
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let values = self.nodes.iter().map(of);
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
        };
        let ((left, right), (bottom, top)) = (ends(|node| node.0), ends(|node| node.1));
        let (wide, high) = ((right - left).max(1.0), (top - bottom).max(1.0));
        // One scale for both directions.
        let factor = ((WIDTH - 60.0) / wide).min(420.0 / high);
        let height = high.min(420.0 / factor) * factor + 70.0;
        let place = |node: usize| {
            let (x, y) = self.nodes[node];
            (30.0 + (x - left) * factor, height - 40.0 - (y - bottom) * factor)
        };
        let mut svg = head(height, "nodes, links and flows");
        for (one, other) in &self.links {
            let ((x, y), (to_x, to_y)) = (place(*one), place(*other));
            let _ = write!(svg, "<path d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\" stroke=\"#ccc\"/>");
        }
        for (number, (from, to)) in self.flows.iter().enumerate() {
            let ((x, y), (to_x, to_y)) = (place(*from), place(*to));
            // Bent, so that a flow along a chain does not hide its links.
            let (bend_x, bend_y) =
                ((x + to_x) / 2.0 + (y - to_y) * 0.12, (y + to_y) / 2.0 - (to_x - x).abs() * 0.06 - 12.0);
            let stroke = COLORS[number % COLORS.len()];
            let _ = write!(
                svg,
                "<path d=\"M{x:.1} {y:.1}Q{bend_x:.1} {bend_y:.1} {to_x:.1} {to_y:.1}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\"/>\
                 <circle cx=\"{to_x:.1}\" cy=\"{to_y:.1}\" r=\"7\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\"/>"
            );
        }
        let named = self.nodes.len() <= 60;
        for node in 0..self.nodes.len() {
            let (x, y) = place(node);
            let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#333\"/>");
            if named {
                let _ = write!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{node}</text>",
                    y + 18.0
                );
            }
        }
        let _ = write!(
            svg,
            "<text x=\"8\" y=\"{:.1}\">{:.0} m by {:.0} m; a ring is where a flow ends</text>",
            height - 6.0,
            right - left,
            top - bottom
        );
        svg + "</svg>"
    }
}
