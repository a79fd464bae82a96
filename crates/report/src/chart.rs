//! Charts as self-contained SVG: no script, no style sheet, and no font that must be installed. A
//! page may change all colours except those of transports. It uses the classes `paper`, `ink`,
//! `axis`, `grid` and `halo` (the outline around a label).

use crate::palette::{Fill, Look, Shape, corners, css};
use std::fmt::Write;

/// A value at an x, with the ends of its interval. The ends are NaN if there is no interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// The value. Infinite if no number describes the result; the chart then shows the word "none".
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Point {
    /// Creates a point from a value and the half width of its interval. A half width of NaN means
    /// no interval.
    pub fn new(x: f64, value: f64, half: f64) -> Point {
        Point { x, value, low: value - half, high: value + half }
    }
}

/// Look of a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Style {
    /// Colour of line and marker, in CSS notation.
    pub color: String,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dashes: String,
    /// Shape of the marker.
    pub shape: Shape,
    /// Fill of the marker.
    pub fill: Fill,
}

impl From<Look> for Style {
    fn from(look: Look) -> Style {
        let dashes = look.fill.dashes().map(|(length, gap)| format!("{length} {gap}")).unwrap_or_default();
        Style { color: css(look.color), dashes, shape: look.shape, fill: look.fill }
    }
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Label in the legend.
    pub label: String,
    /// Colour, dashes and marker.
    pub style: Style,
    /// Points, ascending in x.
    pub points: Vec<Point>,
    /// Published values, as pairs of x and value.
    pub published: Vec<(f64, f64)>,
}

/// Lines over one pair of axes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chart {
    /// Description for readers who cannot see the chart.
    pub description: String,
    /// Title of the horizontal axis.
    pub x_title: String,
    /// Title of the vertical axis, above the plot.
    pub y_title: String,
    /// Lines of the chart.
    pub lines: Vec<Line>,
    /// Largest possible value, if there is one. The axis and the intervals end there.
    pub most: Option<f64>,
    /// True if the vertical axis is logarithmic.
    pub log: bool,
    /// True if a legend below the plot names the lines.
    pub legend: bool,
    /// Vertical range. `None` if the values determine it.
    pub range: Option<(f64, f64)>,
    /// True if the points of several lines at the same x are drawn side by side, so that no
    /// interval hides another.
    pub is_shifted: bool,
    /// Names below the horizontal axis; the x of a point is a place in this list, from 0. Lines then
    /// do not connect their points. Empty if the axis has numbers.
    pub names: Vec<String>,
}

pub(crate) const WIDTH: f64 = 400.0;
/// Number of points above which lines have no markers and intervals, because these would hide one
/// another.
const CROWDED: usize = 2000;
const TOP: f64 = 32.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const PLOT: f64 = 216.0;
/// Height of the second row of names below the horizontal axis.
const SECOND_ROW: f64 = 18.0;
/// Multiple of the largest value at which intervals are cut off, so that a wide interval does not
/// flatten the rest of the chart.
const REACH: f64 = 1.5;

/// Number of characters of a label above a bar that fit into a chart.
const BAR_LABEL: usize = 54;

/// Shortens a label to at most `most` characters by leaving out its middle. Variants often differ
/// only at the beginning or at the end of their labels.
fn shortened(label: &str, most: usize) -> String {
    let letters: Vec<char> = label.chars().collect();
    if letters.len() <= most {
        return label.to_owned();
    }
    let (head, tail) = ((most - 1).div_ceil(2), (most - 1) / 2);
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// Escapes a text for SVG.
pub(crate) fn text(value: &str) -> String {
    value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Beginning of a chart of this height.
pub(crate) fn head(height: f64, description: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"14\" role=\"img\" aria-label=\"{}\"><rect class=\"paper\" width=\"{WIDTH}\" height=\"{height:.0}\" \
         fill=\"#fff\"/><g class=\"ink\" fill=\"#1b1b1b\">",
        text(description)
    )
}

/// Sets the width of a picture in inches, for programs that place it.
pub(crate) fn sized(svg: &str, inches: f64) -> String {
    const VIEW: &str = "viewBox=\"0 0 ";
    let numbers = svg.split_once(VIEW).and_then(|(_, rest)| rest.split_once('"')?.0.split_once(' '));
    match numbers.map(|(width, height)| (width.parse::<f64>(), height.parse::<f64>())) {
        Some((Ok(width), Ok(height))) => {
            let high = inches * height / width;
            svg.replacen(VIEW, &format!("width=\"{inches}in\" height=\"{high:.3}in\" {VIEW}"), 1)
        }
        _ => svg.to_owned(),
    }
}

/// End of a picture.
pub(crate) const TAIL: &str = "</g></svg>";

/// About five round numbers that cover the range from `low` to `high`.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let span = (high - low).max(1e-9);
    let power = 10f64.powf((span / 4.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| span / step <= 6.0);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// The numbers 1, 2 and 5 times every power of ten in a range. If these are more than 9, only the
/// powers of ten.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = || (-9..=12).map(|power| 10f64.powi(power));
    let within = |tick: &f64| (low..=high).contains(tick);
    let all: Vec<f64> = powers().flat_map(|power| [power, 2.0 * power, 5.0 * power]).filter(within).collect();
    if all.len() > 9 { powers().filter(within).collect() } else { all }
}

/// Formats a number without trailing zeros.
fn shown(value: f64) -> String {
    let rounded = format!("{value:.6}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.replace('-', "\u{2212}") }
}

#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// True if a value is on the axis. An interval that continues beyond the axis has no end mark.
    fn has(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn at(&self, value: f64) -> f64 {
        let place = |value: f64| if self.log { value.max(1e-12).ln() } else { value };
        let (low, high) = (place(self.low), place(self.high));
        if high <= low {
            return (self.from + self.to) / 2.0;
        }
        let value = place(value.clamp(self.low, self.high));
        self.from + (value - low) / (high - low) * (self.to - self.from)
    }
}

impl Chart {
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    /// Vertical range in which all of `charts` can be compared.
    pub fn common_range(charts: &[Chart]) -> Option<(f64, f64)> {
        let drawn = charts.iter().filter(|chart| chart.points().next().is_some());
        let ranges = drawn.map(|chart| chart.needed()).map(|(low, high, _)| (low, high));
        ranges.reduce(|(low, high), (other_low, other_high)| (low.min(other_low), high.max(other_high)))
    }

    /// Vertical range with its ticks.
    fn vertical_range(&self) -> (f64, f64, Vec<f64>) {
        match self.range {
            None => self.needed(),
            Some((low, high)) if self.log => (low, high, log_ticks(low, high)),
            Some((low, high)) => {
                let mut marks = ticks(low, high);
                marks.retain(|mark| (low..=high).contains(mark));
                (low, high, marks)
            }
        }
    }

    /// Range that the values need, with its ticks.
    fn needed(&self) -> (f64, f64, Vec<f64>) {
        let published = self.lines.iter().flat_map(|line| &line.published).map(|(_, value)| *value);
        let numbers = self.points().map(|point| point.value).filter(|value| value.is_finite());
        let values: Vec<f64> = numbers.chain(published).collect();
        let largest = values.iter().copied().fold(0.0, f64::max);
        let high = self.points().map(|point| point.high).filter(|high| high.is_finite()).fold(largest, f64::max);
        let high = high.min(REACH * largest.max(1e-9));
        let positive = || values.iter().copied().filter(|value| *value > 0.0);
        if self.log && positive().count() > 0 {
            let low = positive().fold(f64::MAX, f64::min);
            return (low / 1.15, high * 1.15, log_ticks(low / 1.15, high * 1.15));
        }
        let smallest = values.iter().copied().fold(0.0, f64::min);
        // If all values are zero, the ticks are 0 and 1 instead of tiny fractions.
        if smallest == 0.0 && largest == 0.0 && self.most.is_none() {
            return (0.0, 1.0, vec![0.0, 1.0]);
        }
        let most = self.most.filter(|most| largest <= *most);
        let mut marks = ticks(smallest, most.unwrap_or(high).max(1e-9));
        if let Some(most) = most {
            marks.retain(|mark| *mark < most);
            marks.push(most);
        }
        (smallest.min(marks[0]), marks.last().copied().unwrap_or(1.0), marks)
    }

    /// Draws the vertical axis.
    fn vertical(&self, svg: &mut String) -> Scale {
        let (low, high, marks) = self.vertical_range();
        let scale = Scale { low, high, from: TOP + PLOT, to: TOP, log: self.log };
        let _ = write!(svg, "<text x=\"4\" y=\"17\">{}</text>", text(&self.y_title));
        for tick in marks {
            let y = scale.at(tick);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 5.0,
                shown(tick)
            );
        }
        scale
    }

    /// Draws the horizontal axis from the smallest to the largest x, with `room` at both ends. If
    /// at most 12 different values were run, they are the ticks. If all values are whole numbers,
    /// so are the ticks.
    fn horizontal(&self, svg: &mut String, room: f64) -> Scale {
        let of_lines = |line: &Line| -> Vec<f64> {
            line.points.iter().map(|point| point.x).chain(line.published.iter().map(|(x, _)| *x)).collect()
        };
        let mut xs: Vec<f64> = self.lines.iter().flat_map(of_lines).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let (low, high) = (xs.first().copied().unwrap_or(0.0), xs.last().copied().unwrap_or(1.0));
        let scale = Scale { low, high, from: LEFT + room, to: WIDTH - RIGHT - room, log: false };
        let whole = xs.iter().all(|x| x.fract() == 0.0);
        let mut marks = if xs.len() <= 12 { xs } else { ticks(low, high) };
        marks.retain(|mark| (low..=high).contains(mark) && (!whole || mark.fract() == 0.0));
        self.bottom(svg, &scale, &marks);
        scale
    }

    /// Draws a horizontal axis of names. Neighbouring names stand in different rows, so that each has
    /// the room of two.
    fn along_names(&self, svg: &mut String) -> Scale {
        let step = (WIDTH - LEFT - RIGHT) / self.names.len() as f64;
        let (from, to) = (LEFT + step / 2.0, WIDTH - RIGHT - step / 2.0);
        let scale = Scale { low: 0.0, high: self.names.len() as f64 - 1.0, from, to, log: false };
        let most = (2.0 * step / 8.4) as usize;
        for (number, name) in self.names.iter().enumerate() {
            let (x, y) = (scale.at(number as f64), TOP + PLOT);
            let row = y + 20.0 + if number % 2 == 1 { SECOND_ROW } else { 0.0 };
            let name = text(&shortened(name, most.max(3)));
            let _ = write!(
                svg,
                "<path class=\"axis\" d=\"M{x:.1} {y}v5\" stroke=\"#444\"/>\
                 <text x=\"{x:.1}\" y=\"{row}\" text-anchor=\"middle\">{name}</text>"
            );
        }
        self.bottom(svg, &scale, &[]);
        scale
    }

    /// Height that an axis of names needs besides that of an axis of numbers.
    fn below(&self) -> f64 {
        if self.names.is_empty() { 0.0 } else { SECOND_ROW }
    }

    /// Draws a horizontal axis for time. It starts at zero, unless the lines start much later.
    fn along_time(&self, svg: &mut String) -> Scale {
        let ends = self.points().map(|point| point.x);
        let (least, high) = ends.fold((f64::MAX, 1e-9), |(least, high), x| (x.min(least), x.max(high)));
        let low = if least < high / 4.0 { least.min(0.0) } else { least.min(high) };
        let scale = Scale { low, high, from: LEFT, to: WIDTH - RIGHT, log: false };
        let mut marks = ticks(low, high);
        marks.retain(|mark| scale.has(*mark));
        self.bottom(svg, &scale, &marks);
        scale
    }

    fn bottom(&self, svg: &mut String, scale: &Scale, marks: &[f64]) {
        let mut free = f64::MIN;
        for tick in marks {
            let (x, y, label) = (scale.at(*tick), TOP + PLOT, shown(*tick));
            let half = 4.2 * label.chars().count() as f64;
            let _ = write!(svg, "<path class=\"axis\" d=\"M{x:.1} {y}v5\" stroke=\"#444\"/>");
            // A label that would touch the previous one is left out.
            if x - half < free {
                continue;
            }
            free = x + half + 5.0;
            let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", y + 20.0);
        }
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} {0}H{1}\" stroke=\"#444\"/><text x=\"{1}\" y=\"{2}\" text-anchor=\"end\">{3}</text>",
            TOP + PLOT,
            WIDTH - RIGHT,
            TOP + PLOT + 39.0 + self.below(),
            text(&self.x_title)
        );
    }

    /// True if any line has published values.
    fn is_published(&self) -> bool {
        self.lines.iter().any(|line| !line.published.is_empty())
    }

    /// Appends the legend and the end of the chart. `marked` says whether the lines have markers.
    fn named(&self, mut svg: String, marked: bool) -> String {
        if !self.legend {
            return svg + TAIL;
        }
        let from = TOP + PLOT + 58.0 + self.below();
        for (number, line) in self.lines.iter().enumerate() {
            let y = from + 21.0 * number as f64;
            if self.names.is_empty() {
                stroke(&mut svg, &format!("M{LEFT} {y}h28"), &line.style);
            }
            if marked {
                marker(&mut svg, LEFT + 14.0, y, &line.style);
            }
            let _ = write!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", LEFT + 36.0, y + 5.0, text(&line.label));
        }
        if self.is_published() {
            let y = from + 21.0 * self.lines.len() as f64;
            published(&mut svg, LEFT + 14.0, y, "#777");
            let _ = write!(svg, "<text x=\"{}\" y=\"{}\">published</text>", LEFT + 36.0, y + 5.0);
        }
        svg + TAIL
    }

    fn height(&self) -> f64 {
        let rows = self.lines.len() + usize::from(self.is_published());
        TOP + PLOT + 46.0 + self.below() + if self.legend { 4.0 + 21.0 * rows as f64 } else { 0.0 }
    }

    /// Draws lines with markers and intervals; both are left out if there are too many points.
    /// Published values are rings with a cross. A dotted line connects the published values of a
    /// curve if there are at least two.
    pub fn curves(&self) -> String {
        let mut svg = head(self.height(), &self.description);
        let y = self.vertical(&mut svg);
        let has_names = !self.names.is_empty();
        let x = if has_names { self.along_names(&mut svg) } else { self.horizontal(&mut svg, 14.0) };
        let widest = if has_names { 16.0 } else { 4.0 };
        let count = self.lines.len();
        let is_crowded = self.points().count() > CROWDED;
        let step = match self.is_shifted {
            true => self.least_gap(&x).map_or(widest, |gap| (0.6 * gap / count.max(1) as f64).min(widest)),
            false => 0.0,
        };
        for (number, line) in self.lines.iter().enumerate() {
            let aside = step * (number as f64 - (count as f64 - 1.0) / 2.0);
            // A line is interrupted where a point has no number.
            for piece in line.points.split(|point| point.value.is_infinite()).filter(|piece| !piece.is_empty()) {
                let places: Vec<(f64, f64)> =
                    piece.iter().map(|point| (x.at(point.x) + aside, y.at(point.value))).collect();
                if !has_names {
                    stroke(&mut svg, &path(places.iter().copied()), &line.style);
                }
                // A single point has no line, so it always has a marker.
                let is_marked = !is_crowded || places.len() == 1;
                for (point, (px, py)) in piece.iter().zip(&places).filter(|_| is_marked) {
                    interval(&mut svg, *px, &y, point, &line.style.color);
                    marker(&mut svg, *px, *py, &line.style);
                }
            }
            let shown = if is_crowded { 1 } else { usize::MAX };
            for point in line.points.iter().filter(|point| point.value.is_infinite()).take(shown) {
                let (at, above) = (x.at(point.x), TOP + 12.0 + 26.0 * number as f64);
                marker(&mut svg, at, above, &line.style);
                let _ = write!(
                    svg,
                    "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"12\">none</text>",
                    above + 14.0
                );
            }
            let places: Vec<(f64, f64)> =
                line.published.iter().map(|(at, value)| (x.at(*at) + aside, y.at(*value))).collect();
            if places.len() > 1 {
                let _ = write!(
                    svg,
                    "<path class=\"published-curve\" d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\" \
                     stroke-dasharray=\"{PUBLISHED_DASHES}\"/>",
                    path(places.iter().copied()),
                    line.style.color
                );
            }
            for (px, py) in places {
                published(&mut svg, px, py, &line.style.color);
            }
        }
        self.named(svg, true)
    }

    /// Smallest distance between neighbouring points of a line in the chart.
    fn least_gap(&self, x: &Scale) -> Option<f64> {
        let gaps =
            self.lines.iter().flat_map(|line| line.points.windows(2).map(|pair| x.at(pair[1].x) - x.at(pair[0].x)));
        gaps.filter(|gap| *gap > 0.0).min_by(f64::total_cmp)
    }

    /// Draws lines without markers. A band behind each line shows the intervals.
    pub fn bands(&self) -> String {
        let mut svg = head(self.height(), &self.description);
        let y = self.vertical(&mut svg);
        let x = self.along_time(&mut svg);
        // All bands are drawn first, so that none hides a line.
        for line in &self.lines {
            let inside: Vec<&Point> = line.points.iter().filter(|point| point.high.is_finite()).collect();
            let upper = inside.iter().map(|point| (x.at(point.x), y.at(point.high)));
            let lower = inside.iter().rev().map(|point| (x.at(point.x), y.at(point.low)));
            let corners: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            if !corners.is_empty() {
                let _ = write!(
                    svg,
                    "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.13\"/>",
                    corners.join(" "),
                    line.style.color
                );
            }
        }
        for line in &self.lines {
            stroke(&mut svg, &path(line.points.iter().map(|point| (x.at(point.x), y.at(point.value)))), &line.style);
        }
        self.named(svg, false)
    }

    /// Draws upright bars: at each x one bar for each line.
    pub fn columns(&self) -> String {
        let mut svg = head(self.height(), &self.description);
        let y = self.vertical(&mut svg);
        let places = self.points().map(|point| point.x as u64).max().unwrap_or(1).max(1) as f64;
        let slot = (WIDTH - RIGHT - LEFT) / places;
        let x = Scale { low: 1.0, high: places, from: LEFT + slot / 2.0, to: WIDTH - RIGHT - slot / 2.0, log: false };
        let marks: Vec<f64> = (1..=places as u64).map(|place| place as f64).collect();
        self.bottom(&mut svg, &x, &marks);
        let wide = (0.82 * slot / self.lines.len().max(1) as f64).min(40.0);
        for (number, line) in self.lines.iter().enumerate() {
            let aside = wide * (number as f64 - self.lines.len() as f64 / 2.0);
            for point in &line.points {
                let (left, top, bottom) = (x.at(point.x) + aside, y.at(point.value), y.at(0.0));
                let _ = write!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                    0.92 * wide,
                    (bottom - top).max(0.0),
                    line.style.color
                );
                interval(&mut svg, left + 0.46 * wide, &y, point, "#555");
            }
        }
        self.named(svg, true)
    }

    /// Draws a horizontal bar with a label for the first point of each line.
    pub fn bars(&self) -> String {
        let row = 44.0;
        let height = TOP + row * self.lines.len() as f64 + 30.0;
        let mut svg = head(height, &self.description);
        let _ = write!(svg, "<text x=\"4\" y=\"17\">{}</text>", text(&self.y_title));
        let (_, high, marks) = Chart { log: false, ..self.clone() }.vertical_range();
        let x = Scale { low: 0.0, high, from: 12.0, to: WIDTH - 24.0, log: false };
        for tick in marks {
            let at = x.at(tick);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                height - 26.0,
                height - 9.0,
                shown(tick)
            );
        }
        for (number, line) in self.lines.iter().enumerate() {
            let Some(point) = line.points.first() else { continue };
            let y = TOP + row * number as f64;
            let shortened = shortened(&line.label, BAR_LABEL);
            let (start, end) = (x.at(0.0), if point.value.is_finite() { x.at(point.value) } else { x.at(0.0) });
            // A bar without length is invisible, so the value is written instead.
            let word = if point.value.is_infinite() { "none" } else { "0" };
            if point.value.is_infinite() || point.value == 0.0 {
                let _ = write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"700\">{word}</text>",
                    start + 6.0,
                    y + 32.0
                );
            }
            let _ = write!(
                svg,
                "<text x=\"{start}\" y=\"{:.1}\">{}{}</text><rect x=\"{start}\" y=\"{:.1}\" width=\"{:.1}\" height=\"16\" fill=\"{}\"/>",
                y + 14.0,
                if shortened == line.label { String::new() } else { format!("<title>{}</title>", text(&line.label)) },
                text(&shortened),
                y + 19.0,
                (end - start).max(0.0),
                line.style.color
            );
            if point.high.is_finite() {
                let (low, high, middle) = (x.at(point.low), x.at(point.high), y + 27.0);
                let end = |value: f64, at: f64| match x.has(value) {
                    true => format!("M{at:.1} {:.1}v8", middle - 4.0),
                    false => String::new(),
                };
                let ends = end(point.low, low) + &end(point.high, high);
                let _ =
                    write!(svg, "<path class=\"axis\" d=\"M{low:.1} {middle:.1}H{high:.1}{ends}\" stroke=\"#555\"/>");
            }
        }
        svg + TAIL
    }
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in places {
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
    }
    path
}

fn stroke(svg: &mut String, path: &str, style: &Style) {
    let dashes =
        if style.dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", style.dashes) };
    let _ = write!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dashes}/>", style.color);
}

fn interval(svg: &mut String, x: f64, y: &Scale, point: &Point, color: &str) {
    if !point.high.is_finite() || !point.low.is_finite() {
        return;
    }
    let (top, bottom) = (y.at(point.high), y.at(point.low));
    let end = |value: f64, at: f64| match y.has(value) {
        true => format!("M{:.1} {at:.1}h6", x - 3.0),
        false => String::new(),
    };
    let ends = end(point.high, top) + &end(point.low, bottom);
    let _ = write!(svg, "<path d=\"M{x:.1} {top:.1}V{bottom:.1}{ends}\" stroke=\"{color}\"/>");
}

/// Dashes of the line through published values.
pub(crate) const PUBLISHED_DASHES: &str = "1 4";

/// Draws a published value: a ring with a cross.
pub(crate) fn published(svg: &mut String, x: f64, y: f64, color: &str) {
    let _ = write!(
        svg,
        "<path class=\"published\" d=\"M{:.1} {:.1}h10m-5 -5v10m-5 -5a5 5 0 1 0 10 0a5 5 0 1 0 -10 0\" fill=\"none\" \
         stroke=\"{color}\" stroke-width=\"1.3\"/>",
        x - 5.0,
        y
    );
}

/// Draws the marker of a line.
pub(crate) fn marker(svg: &mut String, x: f64, y: f64, style: &Style) {
    let Style { color, shape, fill, .. } = style;
    let inside = if *fill == Fill::Full { color.as_str() } else { "#fff" };
    let class = if *fill == Fill::Full { "" } else { " class=\"paper\"" };
    let _ = match shape {
        Shape::Disc => write!(
            svg,
            "<circle{class} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"{inside}\" stroke=\"{color}\" stroke-width=\"1.6\"/>"
        ),
        Shape::Cross => write!(
            svg,
            "<path d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\" stroke=\"{color}\" stroke-width=\"2.4\"/>",
            x - 4.0,
            y - 4.0
        ),
        shape => {
            let corners = corners(*shape).iter();
            let places: Vec<String> = corners
                .map(|(a, b)| format!("{:.1},{:.1}", x + 0.72 * f64::from(*a), y + 0.72 * f64::from(*b)))
                .collect();
            write!(
                svg,
                "<polygon{class} points=\"{}\" fill=\"{inside}\" stroke=\"{color}\" stroke-width=\"1.6\"/>",
                places.join(" ")
            )
        }
    };
    let _ = match fill {
        Fill::Dot => write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.4\" fill=\"{color}\"/>"),
        Fill::Stroke => write!(svg, "<path d=\"M{:.1} {y:.1}h4\" stroke=\"{color}\" stroke-width=\"1.6\"/>", x - 2.0),
        Fill::Full | Fill::Hollow => Ok(()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::palette::other;
    use std::collections::BTreeSet;

    fn chart(points: &[(f64, f64, f64)]) -> Chart {
        let points = points.iter().map(|(x, value, half)| Point::new(*x, *value, *half)).collect();
        let line = Line { label: "a <b>".to_owned(), style: other(0).into(), points, published: Vec::new() };
        Chart { y_title: "Jain's index".to_owned(), lines: vec![line], legend: true, ..Chart::default() }
    }

    #[test]
    fn points_stand_at_their_place_unless_they_are_to_stand_side_by_side() {
        let one = chart(&[(1.0, 10.0, 1.0), (2.0, 20.0, 1.0)]);
        let lines = [one.lines[0].clone(), one.lines[0].clone()].to_vec();
        // The horizontal parts of the paths of both lines.
        let begins = |is_shifted: bool| -> BTreeSet<String> {
            let svg = Chart { lines: lines.clone(), is_shifted, legend: false, ..one.clone() }.curves();
            let paths = svg.split("<path ").filter(|path| path.contains("fill=\"none\""));
            paths.filter_map(|path| Some(path.split("d=\"M").nth(1)?.split(' ').next()?.to_owned())).collect()
        };
        assert_eq!(begins(false).len(), 1, "{:?}", begins(false));
        assert_eq!(begins(true).len(), 2, "{:?}", begins(true));
    }

    #[test]
    fn each_name_is_a_tick_and_its_points_are_not_connected() {
        let names = ["town", "chain", "grid"].map(str::to_owned).to_vec();
        let named = Chart { names, is_shifted: true, ..chart(&[(0.0, 10.0, 1.0), (1.0, 20.0, 1.0), (2.0, 15.0, 1.0)]) };
        let svg = named.curves();
        // The width of the plot is divided among three names: ticks in the middle of each third.
        let third = (WIDTH - LEFT - RIGHT) / 3.0;
        for (number, name) in named.names.iter().enumerate() {
            let x = LEFT + third * (number as f64 + 0.5);
            let label = svg.split("<text ").find(|text| text.contains(&format!(">{name}</text>"))).unwrap();
            assert!(label.starts_with(&format!("x=\"{x:.1}\"")), "{label}");
            // A path of the tick, and one of the interval.
            assert_eq!(svg.matches(&format!("d=\"M{x:.1} ")).count(), 2, "{svg}");
        }
        assert!(!svg.contains("fill=\"none\" stroke"), "no line connects the points: {svg}");
    }

    #[test]
    fn a_label_that_does_not_fit_keeps_both_ends() {
        assert_eq!(shortened("newreno", 7), "newreno");
        assert_eq!(shortened("tcp-ap{alpha=0.5}", 10), "tcp-a…0.5}");
        assert_eq!(shortened("ÄÖÜäöüß", 4), "ÄÖ…ß");
    }

    #[test]
    fn published_values_of_a_curve_are_joined_by_a_dotted_line() {
        let drawn = |published: Vec<(f64, f64)>| {
            let points = vec![Point::new(1.0, 10.0, f64::NAN), Point::new(2.0, 20.0, f64::NAN)];
            let line = Line { label: "a".to_owned(), style: other(0).into(), points, published };
            let svg = Chart { lines: vec![line], ..Chart::default() }.curves();
            ["class=\"published-curve\"", "class=\"published\""].map(|class| svg.matches(class).count())
        };
        assert_eq!(drawn(vec![]), [0, 0]);
        assert_eq!(drawn(vec![(1.0, 12.0)]), [0, 1]);
        assert_eq!(drawn(vec![(1.0, 12.0), (2.0, 19.0)]), [1, 2]);
    }

    #[test]
    fn no_axis_and_no_interval_goes_beyond_what_there_can_be() {
        // The same distance from tick to tick up to the end, however small the values are.
        for value in [0.04, 0.5, 0.55, 1.0] {
            let (_, _, marks) = Chart { most: Some(1.0), ..chart(&[(1.0, value, 0.01)]) }.vertical_range();
            let steps: Vec<f64> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps.len() > 2 && steps.iter().all(|step| (step - steps[0]).abs() < 1e-9), "{value}: {marks:?}");
        }
        let chart = Chart { most: Some(1.0), ..chart(&[(1.0, 0.97, 0.2), (2.0, 0.5, 0.01)]) };
        let (low, high, marks) = chart.vertical_range();
        assert_eq!((low, high), (0.0, 1.0));
        assert_eq!(marks.last(), Some(&1.0));
        // The same distance from tick to tick, however small the values are.
        // The top of the plot is where 1 is; the interval of 0.97 would end at 1.17.
        let svg = chart.curves();
        let tops: Vec<f64> = svg
            .split("V")
            .filter_map(|part| part.rsplit(' ').next()?.parse().ok())
            .filter(|y: &f64| *y < TOP - 0.1)
            .collect();
        assert!(tops.is_empty(), "{tops:?}");
    }

    #[test]
    fn an_interval_that_is_cut_off_has_no_end_there() {
        // Reaches far beyond its value on both sides, and below zero: an end on neither.
        let (wide, narrow) =
            (chart(&[(1.0, 10.0, 100.0), (2.0, 10.0, 1.0)]), chart(&[(1.0, 10.0, 1.0), (2.0, 10.0, 1.0)]));
        let ends = |svg: &str, end: &str| svg.matches(end).count();
        assert_eq!((ends(&wide.curves(), "h6"), ends(&narrow.curves(), "h6")), (2, 4));
        assert_eq!((ends(&wide.bars(), "v8"), ends(&narrow.bars(), "v8")), (0, 2));
    }

    #[test]
    fn a_time_begins_at_zero() {
        let svg = chart(&[(1.0, 1.0, 0.0), (3.0, 1.0, 0.0), (5.0, 1.0, 0.0)]).bands();
        assert!(
            svg.contains("text-anchor=\"middle\">0</text>") && svg.contains("text-anchor=\"middle\">5</text>"),
            "{svg}"
        );
    }

    #[test]
    fn ticks_stand_at_what_was_run_and_only_at_whole_numbers_of_what_is_counted() {
        let svg = chart(&[(1.0, 1.0, 0.0), (2.0, 1.0, 0.0), (4.0, 1.0, 0.0)]).curves();
        for (label, is_there) in [("1", true), ("2", true), ("4", true), ("3", false), ("1.5", false)] {
            assert_eq!(svg.contains(&format!("text-anchor=\"middle\">{label}</text>")), is_there, "{label}");
        }
        let many: Vec<(f64, f64, f64)> = (1..=14).map(|x| (f64::from(x), 1.0, 0.0)).collect();
        assert!(!chart(&many).curves().contains("2.5</text>"));
        assert_eq!(log_ticks(3.0, 60.0), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!([shown(-20.0), shown(-1e-9), shown(0.5)], ["\u{2212}20", "0", "0.5"]);
    }

    #[test]
    fn nothing_to_draw_is_no_panic_and_text_is_quoted() {
        assert_eq!(chart(&[(1.0, 0.0, 0.0), (2.0, 0.0, 0.0)]).vertical_range(), (0.0, 1.0, vec![0.0, 1.0]));
        for log in [false, true] {
            let empty = Chart { description: "a \"b\" < c".to_owned(), log, ..Chart::default() };
            for svg in [empty.curves(), empty.bands(), empty.bars(), empty.columns()] {
                assert!(svg.contains("aria-label=\"a &quot;b&quot; &lt; c\"") && !svg.contains("NaN"), "{svg}");
            }
        }
        let svg = Chart { log: true, ..chart(&[(1.0, 0.0, f64::NAN), (1.0, 5.0, f64::NAN)]) }.curves();
        assert!(svg.contains("a &lt;b&gt;") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn what_is_none_is_written_and_not_drawn() {
        let some = chart(&[(1.0, 2.0, 0.1), (2.0, f64::INFINITY, f64::NAN), (3.0, 4.0, 0.1)]);
        let whole = chart(&[(1.0, 2.0, 0.1), (2.0, 3.0, 0.1), (3.0, 4.0, 0.1)]);
        let svg = some.curves();
        assert!(svg.contains(">none</text>") && !svg.contains("inf") && !svg.contains("NaN"), "{svg}");
        assert_eq!(some.vertical_range(), whole.vertical_range(), "the axis is that of the numbers");
        let bars = chart(&[(1.0, f64::INFINITY, f64::NAN)]).bars();
        assert!(bars.contains(">none</text>") && !bars.contains("inf") && !bars.contains("NaN"), "{bars}");
        assert!(chart(&[(1.0, 0.0, f64::NAN)]).bars().contains(">0</text>"), "a bar of nothing is none to see");
        assert!(!whole.curves().contains("none</text>"));
    }
}
