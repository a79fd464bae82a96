//! Figure at the top of the page: goodput against hops, with a switch for the routing. The switch
//! works without a script.

use super::Chapter;
use crate::chart::Chart;
use crate::figure::Painter;
use crate::parts::{digits, ring, swatch};
use maud::{Markup, PreEscaped, html};
use meshpace_lab::register::Observations;
use meshpace_lab::register::data::{Curve, Published};
use meshpace_lab::statistics::Estimate;
use std::sync::Arc;

/// Curves that are shown: NewReno, and TCP-AP, which the papers are about. If the experiment judges
/// one reading of TCP-AP, that reading is shown.
fn shown(published: &Published) -> [&'static str; 2] {
    ["newreno", if published.curve("ap").is_some() { "ap" } else { "tcp-ap" }]
}

/// Draws the figure from the first experiment with runs that plots goodput against hops with
/// several kinds of routing.
pub fn figure(chapters: &[&Chapter]) -> Markup {
    let found = chapters
        .iter()
        .find_map(|chapter| Some((chapter, chapter.collection?)).filter(|_| fits(&chapter.experiment.published)));
    let Some((chapter, collection)) = found else { return html! {} };
    let published = &chapter.experiment.published;
    let observations = Observations::new(published, Arc::clone(&collection.records));
    let painter = Painter { observations: &observations };
    let names = shown(published);
    let curves: Vec<&Curve> = names.iter().filter_map(|id| published.curve(id)).collect();
    let Some(metric) = published.metric("goodput") else { return html! {} };
    let charts: Vec<Chart> =
        (0..published.panels.len()).map(|panel| painter.chart(panel, &curves, &metric, false)).collect();
    let range = Chart::common_range(&charts);
    let compared = |panel: usize| {
        let at = |curve: &Curve| -> Vec<(f64, Estimate)> {
            let xs = observations.xs().iter();
            xs.map(|x| (x.value, painter.estimate(panel, curve, &metric, None, x)))
                .filter(|(_, ours)| ours.mean.is_finite())
                .collect()
        };
        let (usual, paced) = (at(curves[0]), at(curves[1]));
        let both =
            usual.iter().rev().find_map(|(x, usual)| Some((*x, *usual, paced.iter().find(|(other, _)| other == x)?.1)));
        html! { @if let Some((x, usual, paced)) = both {
            "At " (digits(x).trim_end_matches(".0").trim_end_matches(".00")) " hops " (published.label(names[1])) " carries " (told(&paced)) " kbit/s, " (published.label(names[0])) " "
            (told(&usual)) " kbit/s."
        } }
    };
    html! { section.lead { h2 { "What pacing does over several hops" }
        p { "One transfer goes over a chain of radios that all share one channel. Every further hop costs goodput, because neighbours cannot send at the same \
            time. " (published.label(names[0])) " sends its segments in bursts, and bursts collide; " (published.label(names[1])) " spaces them by how long a segment needs \
            over four hops. Collisions that look like broken links make the routing protocol search for a new route, so choose the routing:" }
        div.switch {
            @for (number, panel) in published.panels.iter().enumerate() {
                input type="radio" name="routing" id={ "routing-" (number) } checked[number == 0];
                label for={ "routing-" (number) } { (panel.title) }
            }
            div.faces { @for (panel, chart) in charts.into_iter().enumerate() {
                figure { (PreEscaped(Chart { range, ..chart }.curves())) figcaption { (compared(panel)) } }
            } }
        }
        ul.legend { @for curve in &curves { li { (swatch(&painter.look(curve))) (published.label(&curve.id)) } }
            @if published.published.values().any(|row| row.contains_key("goodput")) { li { (ring()) "published" } } }
        p.note { "Points are means, whiskers their 95 % confidence intervals. From " a href={ "#" (published.id) } { (published.id) } ", where all curves are." }
    } }
}

fn told(ours: &Estimate) -> String {
    // The interval is shown from `LEAST` runs on. An interval from fewer runs has no meaning.
    if ours.half_width.is_finite() && ours.count >= meshpace_lab::compare::LEAST {
        format!("{} ± {}", digits(ours.mean), digits(ours.half_width))
    } else {
        digits(ours.mean)
    }
}

fn fits(published: &Published) -> bool {
    published.x.as_ref().is_some_and(|axis| axis.key == "topology.hops")
        && published.panels.len() > 1
        && published.panels.iter().all(|panel| panel.point.keys().any(|key| key.starts_with("routing")))
        && shown(published).iter().all(|id| published.curve(id).is_some())
        && published.metric("goodput").is_some()
}
