//! Plots as SVG with text that stays text. Colours other than those of the transports are left to the page's style
//! sheet, so that they follow a dark theme: ink is black here, grid lines are a light grey.

use super::palette::{Look, Shape};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::error::Error;

/// Width and height in pixels before the page scales it.
const SIZE: (u32, u32) = (460, 380);
/// The colour of grid lines; the style sheet replaces it.
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// The colour of lines that mark a published or neutral value.
const MARK: RGBColor = RGBColor(0x66, 0x66, 0x66);

/// A value with its interval at a hop count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// Hops.
    pub hops: u64,
    /// Lower end of the interval.
    pub low: f64,
    /// The value.
    pub value: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// How it looks.
    pub look: Look,
    /// Its points, by hop count.
    pub bars: Vec<Bar>,
}

/// What a plot shows besides its curves.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What a reader who cannot see the plot is told.
    pub description: &'a str,
    /// Label of the vertical axis.
    pub vertical: &'a str,
    /// First and last hop count.
    pub hops: (u64, u64),
    /// Lowest and highest value.
    pub range: (f64, f64),
    /// Values to label on the vertical axis; of a plot of percentages only how many.
    pub ticks: &'a [f64],
}

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// A plot with a logarithmic vertical axis: equal distances are equal ratios.
pub fn logarithmic(frame: &Frame, curves: &[Curve]) -> String {
    draw(frame, |area| {
        let vertical = (frame.range.0..frame.range.1).log_scale().with_key_points(frame.ticks.to_vec());
        chart(area, frame, vertical, curves, &[])
    })
}

/// A plot of percentages with a line at zero and one at each published value.
pub fn percentages(frame: &Frame, curves: &[Curve], published: &[f64]) -> String {
    draw(frame, |area| {
        let vertical = frame.range.0..frame.range.1;
        let marks: Vec<(f64, bool)> =
            [(0.0, false)].into_iter().chain(published.iter().map(|value| (*value, true))).collect();
        chart(area, frame, vertical, curves, &marks)
    })
}

fn draw(frame: &Frame, paint: impl Fn(&Drawing) -> Drawn) -> String {
    let mut svg = String::new();
    let painted = {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        paint(&area).and_then(|()| Ok(area.present()?))
    };
    // Writing to a string cannot fail; a range without extent can be refused, and then there is nothing to see.
    if painted.is_err() {
        return String::new();
    }
    let description = frame.description.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{description}\" "), 1)
}

fn chart<Y>(area: &Drawing, frame: &Frame, vertical: Y, curves: &[Curve], marks: &[(f64, bool)]) -> Drawn
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64> + Ranged<ValueType = f64>,
{
    let (first, last) = (frame.hops.0 as f64, frame.hops.1 as f64);
    let across = first - 0.6..last + 0.6;
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .margin_right(12)
        .x_label_area_size(48)
        .y_label_area_size(66)
        .build_cartesian_2d(across, vertical)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(BLACK)
        .x_labels(frame.hops.1 as usize + 1)
        .y_labels(frame.ticks.len().max(2))
        .x_label_formatter(&|hops| format!("{hops:.0}"))
        .y_label_formatter(&|value| format!("{value:.0}").replace('-', "\u{2212}"))
        .x_desc("hops")
        .y_desc(frame.vertical)
        .label_style(("sans-serif", 17))
        .axis_desc_style(("sans-serif", 17))
        .draw()?;
    for (value, dashed) in marks {
        let ends = [(first - 0.6, *value), (last + 0.6, *value)];
        if *dashed {
            chart.draw_series(DashedLineSeries::new(ends, 7, 5, MARK.stroke_width(2)))?;
        } else {
            chart.draw_series(LineSeries::new(ends, BLACK.stroke_width(1)))?;
        }
    }
    for (number, curve) in curves.iter().enumerate() {
        // Curves stand side by side at each hop count, so that no error bar hides another.
        let aside = 0.16 * (number as f64 - (curves.len() as f64 - 1.0) / 2.0);
        let color = curve.look.color;
        let clamp = |value: f64| value.clamp(frame.range.0, frame.range.1);
        let at = |bar: &Bar| bar.hops as f64 + aside;
        let line = curve.bars.iter().map(|bar| (at(bar), clamp(bar.value)));
        if curve.look.hollow {
            chart.draw_series(DashedLineSeries::new(line, 6, 4, color.stroke_width(2)))?;
        } else {
            chart.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
        }
        chart.draw_series(curve.bars.iter().filter(|bar| bar.low.is_finite() && bar.high.is_finite()).map(|bar| {
            let (low, high) = (clamp(bar.low), clamp(bar.high));
            ErrorBar::new_vertical(at(bar), low, clamp(bar.value), high, color.stroke_width(2), 8)
        }))?;
        let middles = || curve.bars.iter().map(|bar| EmptyElement::at((at(bar), clamp(bar.value))));
        let line = color.stroke_width(2);
        // A hollow marker is filled with the colour of the page.
        let inside = if curve.look.hollow { WHITE.filled() } else { color.filled() };
        match curve.look.shape {
            Shape::Disc => chart
                .draw_series(middles().map(|at| at + Circle::new((0, 0), 5, inside) + Circle::new((0, 0), 5, line)))?,
            Shape::Cross => {
                let stroke = |from, to| PathElement::new(vec![from, to], color.stroke_width(3));
                chart.draw_series(middles().map(|at| at + stroke((-5, -5), (5, 5)) + stroke((-5, 5), (5, -5))))?
            }
            shape => {
                let corners = corners(shape);
                let outline: Vec<(i32, i32)> = corners.iter().chain(&corners[..2]).copied().collect();
                let marker = |at| at + Polygon::new(corners.to_vec(), inside) + PathElement::new(outline.clone(), line);
                chart.draw_series(middles().map(marker))?
            }
        };
    }
    Ok(())
}

/// Corners of the markers that are polygons, in pixels around the middle.
fn corners(shape: Shape) -> &'static [(i32, i32)] {
    match shape {
        Shape::Disc | Shape::Cross => &[],
        Shape::Triangle => &[(0, -7), (6, 4), (-6, 4)],
        Shape::Square => &[(-5, -5), (5, -5), (5, 5), (-5, 5)],
        Shape::Diamond => &[(0, -7), (7, 0), (0, 7), (-7, 0)],
        Shape::Funnel => &[(0, 7), (6, -4), (-6, -4)],
    }
}
