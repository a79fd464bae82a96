//! Causes of a gain. The same comparison is made in several panels, each of which adds one cause.
//! The gain is divided into factors whose product is the whole gain.

use super::parts::signs;
use maud::{Markup, html};
use meshpace_lab::register::Gain;
use meshpace_lab::register::data::{Curve, Decomposition, Metric};
use meshpace_lab::register::observations::Observations;
use meshpace_lab::register::select::X;

/// Gain at one x and its factors. A factor is `None` if the runs of its two panels have the same
/// results.
struct Row<'a> {
    x: &'a X,
    whole: Gain,
    factors: Vec<Option<Gain>>,
}

/// Section of an experiment.
pub fn section(decomposition: &Decomposition, observations: &Observations) -> Markup {
    let published = observations.published;
    let Some(metric) = published.metric(&published.first_metric()) else { return html! {} };
    let Some(over) = published.curve(&decomposition.over) else { return html! {} };
    html! {
        h3 { "Where the gain comes from" }
        p { "The comparison is repeated with one cause added after the other. This splits the gain into factors whose product is the total:" }
        ul { @for step in &decomposition.steps { li { strong { (step.noun) } ": " (step.meaning) } } }
        @for of in decomposition.of.iter().filter_map(|id| published.curve(id)) {
            @let rows: Vec<Row> = observations.xs().iter().filter_map(|x| row(decomposition, observations, &metric, of, over, x)).collect();
            @if !rows.is_empty() { div.scroll { table {
                caption { (published.label(&of.id)) span { " against " (published.label(&over.id)) ", with 95 % confidence intervals" } }
                thead { tr {
                    th scope="col" { (published.x.as_ref().map_or("", |axis| &axis.title)) }
                    th scope="col" { "whole gain" }
                    @for step in &decomposition.steps { th scope="col" { (step.noun) } }
                } }
                tbody { @for row in &rows { tr {
                    td { (row.x.text) }
                    td { (with_interval(&row.whole)) }
                    @for factor in &row.factors { td {
                        @match factor { Some(factor) => (with_interval(factor)), None => small { "none: the same runs" } }
                    } }
                } } }
            } } }
        }
    }
}

fn row<'a>(
    decomposition: &Decomposition,
    observations: &Observations,
    metric: &Metric,
    of: &Curve,
    over: &Curve,
    x: &'a X,
) -> Option<Row<'a>> {
    let values = |panel: usize, curve: &Curve| observations.values(panel, curve, metric, None, x);
    let panels = &observations.published.panels;
    let number = |id: &String| panels.iter().position(|panel| panel.id == *id);
    let numbers = decomposition.steps.iter().map(|step| number(&step.panel)).collect::<Option<Vec<usize>>>()?;
    let gain = |panel: usize| Gain::of(&values(panel, of), &values(panel, over));
    let gains = numbers.iter().map(|panel| gain(*panel)).collect::<Option<Vec<Gain>>>()?;
    let same = |a: usize, b: usize| [of, over].iter().all(|curve| values(a, curve) == values(b, curve));
    let mut factors = vec![Some(*gains.first()?)];
    for (pair, panels) in gains.windows(2).zip(numbers.windows(2)) {
        factors.push((!same(panels[0], panels[1])).then(|| pair[1].divided_by(&pair[0])));
    }
    Some(Row { x, whole: *gains.last()?, factors })
}

fn with_interval(gain: &Gain) -> Markup {
    let (low, high) = gain.interval_pct();
    html! { (signs(&format!("{:+.1} %", gain.pct()))) " " small { (signs(&format!("({low:+.1} to {high:+.1})"))) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_lab::register::data::Published;
    use meshpace_lab::register::observations::parse;
    use std::sync::Arc;

    #[test]
    fn factors_multiply_to_the_whole() {
        let published: Published = toml::from_str(
            r#"
            id = "X"
            title = "X"
            source = "X"
            curve = [{ id = "a" }, { id = "b" }]
            panel = [
                { id = "all", title = "all", point = { routing = "both" } },
                { id = "air", title = "air", point = { routing = "air" } },
            ]
            [decomposition]
            of = ["a"]
            over = "b"
            step = [{ panel = "air", noun = "air", meaning = "m" }, { panel = "all", noun = "routes", meaning = "m" }]
            "#,
        )
        .unwrap();
        let mut lines = String::new();
        for (routing, a, b) in [("both", 3e5, 1e5), ("air", 1.5e5, 1e5)] {
            for (curve, value) in [("a", a), ("b", b)] {
                for seed in 1..=3 {
                    let point = serde_json::json!({"flow.transport": curve, "routing": routing});
                    let bps = value + f64::from(seed);
                    lines += &format!(
                        "{}\n",
                        serde_json::json!({"seed": seed, "point": point, "aggregate_goodput_bps": bps})
                    );
                }
            }
        }
        let observations = Observations::new(&published, Arc::new(parse(&lines).unwrap()));
        let page = section(published.decomposition.as_ref().unwrap(), &observations).into_string();
        // Three times as much: half more on the air, twice as much by the routes.
        for told in ["+200.0 %", "+50.0 %", "+100.0 %"] {
            assert!(page.contains(told), "{told}: {page}");
        }
    }
}
