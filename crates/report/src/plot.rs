//! Plots as SVG with text that stays text. Colours other than those of the transports are left to the page's style
//! sheet, so that they follow a dark theme: ink is black here, grid lines are a light grey.

use super::compact::compact;
use super::palette::{Fill, Look, Shape, corners};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::error::Error;

/// Width and height in pixels before the page scales it.
const SIZE: (u32, u32) = (460, 360);
/// The colour of grid lines; the style sheet replaces it.
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// The colour of every other flow in a plot over time; the style sheet replaces it.
const SECOND: RGBColor = RGBColor(0x66, 0x66, 0x66);

/// A value with its interval at an x.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// Where it is.
    pub x: f64,
    /// Lower end of the interval; NaN without one.
    pub low: f64,
    /// The value.
    pub value: f64,
    /// Upper end of the interval; NaN without one.
    pub high: f64,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// How it looks.
    pub look: Look,
    /// Its points, ascending in x.
    pub bars: Vec<Bar>,
}

/// What a plot shows besides its curves.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What a reader who cannot see the plot is told.
    pub description: &'a str,
    /// Label of the horizontal axis.
    pub horizontal: &'a str,
    /// Label of the vertical axis.
    pub vertical: &'a str,
    /// Least and largest x.
    pub x: (f64, f64),
    /// Lowest and highest value.
    pub y: (f64, f64),
    /// Whether the vertical axis is logarithmic: equal distances are equal ratios.
    pub log: bool,
}

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// Curves with markers and intervals.
pub fn curves(frame: &Frame, curves: &[Curve]) -> String {
    let span = (frame.x.1 - frame.x.0).max(1e-9);
    // Curves stand side by side at each x, so that no error bar hides another.
    let least = least_step(curves).unwrap_or(span);
    let step = (0.6 * least / curves.len().max(1) as f64).min(span / 90.0);
    let beside = 0.06 * span;
    drawn(frame, (frame.x.0 - beside, frame.x.1 + beside), |plot, _| {
        for (number, curve) in curves.iter().enumerate() {
            let aside = step * (number as f64 - (curves.len() as f64 - 1.0) / 2.0);
            plot.curve(curve, aside)?;
        }
        Ok(())
    })
}

/// The least distance between neighbouring points.
fn least_step(curves: &[Curve]) -> Option<f64> {
    let steps = curves.iter().flat_map(|curve| curve.bars.windows(2).map(|pair| pair[1].x - pair[0].x));
    steps.filter(|step| *step > 0.0).min_by(f64::total_cmp)
}

/// One bar for each flow, at 1, 2, 3, ...
pub fn bars(frame: &Frame, color: RGBColor, bars: &[Bar]) -> String {
    drawn(frame, (0.4, bars.len().max(1) as f64 + 0.6), |plot, _| plot.rectangles(color, bars))
}

/// A line for each flow against time.
pub fn lines(frame: &Frame, color: RGBColor, lines: &[Vec<(f64, f64)>]) -> String {
    drawn(frame, frame.x, |plot, _| {
        for (number, line) in lines.iter().enumerate() {
            let color = if number.is_multiple_of(2) { color } else { SECOND };
            plot.line(line, color, FLOW_DASHES[number % FLOW_DASHES.len()])?;
        }
        Ok(())
    })
}

/// How the lines of flows differ besides their colour.
pub const FLOW_DASHES: [Option<(u32, u32)>; 6] =
    [None, Some((7, 3)), Some((2, 3)), Some((12, 4)), Some((5, 5)), Some((1, 5))];

/// Shares of samples that are no larger than a value.
pub fn steps(frame: &Frame, curves: &[(Look, Vec<f64>)]) -> String {
    drawn(frame, frame.x, |plot, _| {
        for (look, samples) in curves {
            let mut line = vec![(frame.x.0, 0.0)];
            for (number, value) in samples.iter().enumerate() {
                let share = |count: usize| count as f64 / samples.len() as f64;
                line.extend([(*value, share(number)), (*value, share(number + 1))]);
            }
            line.push((frame.x.1, 1.0));
            plot.line(&line, look.color, look.fill.dashes())?;
        }
        Ok(())
    })
}

/// A chart with either kind of vertical axis.
trait Plot {
    fn curve(&mut self, curve: &Curve, aside: f64) -> Drawn;
    fn rectangles(&mut self, color: RGBColor, bars: &[Bar]) -> Drawn;
    fn line(&mut self, line: &[(f64, f64)], color: RGBColor, dashes: Option<(u32, u32)>) -> Drawn;
}

struct Chart<'a, 'b, X, Y>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    context: ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>,
    range: (f64, f64),
}

fn drawn(frame: &Frame, across: (f64, f64), paint: impl Fn(&mut dyn Plot, &Frame) -> Drawn) -> String {
    let mut svg = String::new();
    let painted = {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let chart = || -> Drawn {
            if frame.log {
                let vertical = (frame.y.0..frame.y.1).log_scale().with_key_points(ticks(frame.y));
                chart(&area, frame, across, vertical, &paint)?;
            } else {
                chart(&area, frame, across, frame.y.0..frame.y.1, &paint)?;
            }
            Ok(area.present()?)
        };
        chart()
    };
    // Writing to a string cannot fail; a range without extent can be refused, and then there is nothing to see.
    if painted.is_err() {
        return String::new();
    }
    let description = frame.description.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    compact(&svg).replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{description}\" "), 1)
}

/// 1, 2 and 5 of every power of ten in a range.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let powers = (-6..=9).map(|power| 10f64.powi(power));
    powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]).filter(|tick| (low..=high).contains(tick)).collect()
}

fn chart<Y>(
    area: &Drawing,
    frame: &Frame,
    across: (f64, f64),
    vertical: Y,
    paint: &impl Fn(&mut dyn Plot, &Frame) -> Drawn,
) -> Drawn
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
{
    let mut context = ChartBuilder::on(area)
        .margin(6)
        .margin_right(14)
        .x_label_area_size(48)
        .y_label_area_size(68)
        .build_cartesian_2d(across.0..across.1, vertical)?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(BLACK)
        .x_labels(11)
        .y_labels(7)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|value| short(*value))
        .x_desc(frame.horizontal)
        .y_desc(frame.vertical)
        .label_style(("sans-serif", 17))
        .axis_desc_style(("sans-serif", 17))
        .draw()?;
    paint(&mut Chart { context, range: frame.y }, frame)
}

/// A number on an axis: as few digits as it needs.
fn short(value: f64) -> String {
    let rounded = (value * 1e4).round() / 1e4;
    let text = if rounded == rounded.trunc() { format!("{rounded:.0}") } else { format!("{rounded}") };
    if text == "-0" { "0".to_owned() } else { text.replace('-', "\u{2212}") }
}

impl<X, Y> Plot for Chart<'_, '_, X, Y>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    fn curve(&mut self, curve: &Curve, aside: f64) -> Drawn {
        let (low, high) = self.range;
        let clamp = |value: f64| value.clamp(low, high);
        let Look { color, shape, fill } = curve.look;
        let line: Vec<(f64, f64)> = curve.bars.iter().map(|bar| (bar.x + aside, clamp(bar.value))).collect();
        self.line(&line, color, fill.dashes())?;
        let whiskers = curve.bars.iter().filter(|bar| bar.low.is_finite() && bar.high.is_finite());
        self.context.draw_series(whiskers.map(|bar| {
            let (low, high) = (clamp(bar.low), clamp(bar.high));
            ErrorBar::new_vertical(bar.x + aside, low, clamp(bar.value), high, color.stroke_width(2), 8)
        }))?;
        let middles = || line.iter().map(|at| EmptyElement::at(*at));
        let edge = color.stroke_width(2);
        // A hollow marker is filled with the colour of the page.
        let inside = if fill == Fill::Full { color.filled() } else { WHITE.filled() };
        match shape {
            Shape::Disc => {
                let marker = |at| at + Circle::new((0, 0), 5, inside) + Circle::new((0, 0), 5, edge);
                self.context.draw_series(middles().map(marker))?;
            }
            Shape::Cross => {
                let stroke = |from, to| PathElement::new(vec![from, to], color.stroke_width(3));
                let marker = |at| at + stroke((-5, -5), (5, 5)) + stroke((-5, 5), (5, -5));
                self.context.draw_series(middles().map(marker))?;
            }
            shape => {
                let corners = corners(shape);
                let outline: Vec<(i32, i32)> = corners.iter().chain(&corners[..2]).copied().collect();
                let marker = |at| at + Polygon::new(corners.to_vec(), inside) + PathElement::new(outline.clone(), edge);
                self.context.draw_series(middles().map(marker))?;
            }
        }
        match fill {
            Fill::Dot => {
                self.context.draw_series(middles().map(|at| at + Circle::new((0, 0), 2, color.filled())))?;
            }
            Fill::Stroke => {
                let stroke = || PathElement::new(vec![(-3, 0), (3, 0)], color.stroke_width(2));
                self.context.draw_series(middles().map(|at| at + stroke()))?;
            }
            Fill::Full | Fill::Hollow => {}
        }
        Ok(())
    }

    fn rectangles(&mut self, color: RGBColor, bars: &[Bar]) -> Drawn {
        let (low, high) = self.range;
        let clamp = |value: f64| value.clamp(low, high);
        self.context.draw_series(
            bars.iter()
                .map(|bar| Rectangle::new([(bar.x - 0.32, low), (bar.x + 0.32, clamp(bar.value))], color.filled())),
        )?;
        let whiskers = bars.iter().filter(|bar| bar.low.is_finite() && bar.high.is_finite());
        self.context.draw_series(whiskers.map(|bar| {
            ErrorBar::new_vertical(bar.x, clamp(bar.low), clamp(bar.value), clamp(bar.high), BLACK.stroke_width(2), 10)
        }))?;
        Ok(())
    }

    fn line(&mut self, line: &[(f64, f64)], color: RGBColor, dashes: Option<(u32, u32)>) -> Drawn {
        let (low, high) = self.range;
        let line: Vec<(f64, f64)> = line.iter().map(|(x, value)| (*x, value.clamp(low, high))).collect();
        match dashes {
            None => {
                self.context.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
            }
            Some((length, gap)) => {
                self.context.draw_series(DashedLineSeries::new(line, length, gap, color.stroke_width(2)))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_an_axis_are_short() {
        assert_eq!(
            ["100", "0.5", "\u{2212}20", "0"],
            [short(100.0), short(0.5), short(-20.0), short(-1e-9)].map(|s| s).each_ref().map(String::as_str)
        );
        assert_eq!(ticks((3.0, 60.0)), [5.0, 10.0, 20.0, 50.0]);
    }

    #[test]
    fn nothing_to_draw_is_no_picture_and_no_panic() {
        let frame = Frame {
            description: "a \"b\" < c",
            horizontal: "x",
            vertical: "y",
            x: (0.0, 1.0),
            y: (0.0, 2.0),
            log: false,
        };
        assert!(curves(&frame, &[]).contains("aria-label=\"a &quot;b&quot; &lt; c\""));
        let _ = curves(&Frame { y: (0.0, 0.0), log: true, ..frame }, &[]);
    }
}
