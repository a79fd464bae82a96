//! Checks that the files of a register fit together: every name that they use exists, and every
//! curve has runs.

use super::data::{Cause, Check, Metric, Numbers, Published, Term};
use super::library::{Effort, Experiment, Register};
use super::names::check_term;
use super::reference::{Reference, references};
use super::select::X;
use meshpace_scenario::Scenario;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Lists all problems in the files of a register, one line each.
pub fn problems(register: &Register) -> Vec<String> {
    register.experiments.iter().flat_map(|experiment| problems_of(register, experiment)).collect()
}

fn problems_of(register: &Register, experiment: &Experiment) -> Vec<String> {
    let mut told = Vec::new();
    names(&experiment.published, &mut told);
    told.extend(strange_references(register, experiment.published.texts()));
    match register.runs(experiment, Effort::Paper) {
        Err(why) => return vec![why],
        Ok(Some(runs)) => {
            points(&experiment.published, &runs.scenario, &mut told);
            if let Err(why) = register.runs(experiment, Effort::Quick) {
                told.push(why);
            }
        }
        Ok(None) => {}
    }
    told.into_iter().map(|problem| format!("{}: {problem}", experiment.file)).collect()
}

/// Adds a message for each name that is used but not defined.
fn names(published: &Published, told: &mut Vec<String>) {
    for metric in &published.metrics {
        told.extend(metric.check().err());
    }
    causes(published, told);
    for text in published.texts() {
        if let Err(why) = references(text) {
            told.push(why);
        }
    }
    for reference in own_references(published) {
        reference.check(published, "finding, note or reading", told);
    }
    let curve = |id: &str, place: &str, told: &mut Vec<String>| {
        if published.curve(id).is_none() {
            told.push(format!("{place}: there is no curve \"{id}\""));
        }
    };
    let metric = |id: &str, place: &str, told: &mut Vec<String>| {
        let found = published.metric(id);
        if found.is_none() {
            told.push(format!("{place}: there is no metric \"{id}\""));
        }
        found
    };
    for reading in published.curves.iter().filter_map(|curve| curve.reading_of.as_ref()) {
        curve(reading, "reading_of", told);
    }
    for whole in &published.beside {
        whole.curves.iter().for_each(|(one, other)| [one, other].into_iter().for_each(|id| curve(id, "beside", told)));
    }
    if let Some(parts) = &published.decomposition {
        parts.of.iter().chain([&parts.over]).for_each(|id| curve(id, "decomposition", told));
        for step in &parts.steps {
            if !published.panels.iter().any(|panel| panel.id == step.panel) {
                told.push(format!("decomposition: there is no panel \"{}\"", step.panel));
            }
        }
    }
    for (number, figure) in published.figures.iter().enumerate() {
        let place = format!("figure {}", number + 1);
        figure.metrics.iter().for_each(|id| drop(metric(id, &place, told)));
        figure.curves.iter().chain(&figure.over).for_each(|id| curve(id, &place, told));
        if let Some(id) = figure.panels.iter().find(|id| published.panels.iter().all(|panel| panel.id != **id)) {
            told.push(format!("{place}: there is no panel \"{id}\""));
        }
        if figure.metrics.is_empty() {
            told.push(format!("{place}: it has no metrics"));
        }
    }
    for (id, numbers) in &published.published {
        curve(id, "published", told);
        for (id, numbers) in numbers {
            metric(id, "published", told);
            if matches!(numbers, Numbers::ByX(_)) && published.x.is_none() {
                told.push(format!("published: numbers of {id} by x, but there is no [x]"));
            }
        }
    }
    if let Some(until) = &published.quality.paper.until {
        metric(&until.metric, "quality.paper.until", told);
    }
    for claim in &published.claims {
        let place = format!("claim \"{}\"", claim.text);
        claim.check.terms().into_iter().for_each(|term| check_term(published, term, &place, told));
        claim.also.iter().for_each(|id| curve(id, &place, told));
        if let Some(panel) = &claim.panel
            && !published.panels.iter().any(|other| other.id == *panel)
        {
            told.push(format!("{place}: there is no panel \"{panel}\""));
        }
        if let Check::TunedBelow { of, .. } = &claim.check
            && published.curve(&of.curve).is_some_and(|curve| curve.tuned.is_none())
        {
            told.push(format!("{place}: the curve \"{}\" is not tuned", of.curve));
        }
    }
}

/// Checks that the readings support the stated causes. A cause that was not investigated has to be
/// "open".
fn causes(published: &Published, told: &mut Vec<String>) {
    let deciding = published.readings.iter().filter(|reading| reading.decides).count();
    if deciding > 1 {
        told.push("reading: one measurement decides, not several".to_owned());
    }
    let causes: BTreeSet<Cause> =
        published.claims.iter().filter_map(|claim| claim.cause).chain(published.cause).collect();
    for cause in causes.into_iter().filter(|_| published.unjudged.is_none()) {
        let looked_for = [Cause::Routing, Cause::Unsupported, Cause::NoCode, Cause::Parameters].contains(&cause);
        let id = cause.words().replace(' ', "_");
        if looked_for && published.readings.len() < 2 {
            told.push(format!(
                "cause: \"{id}\" needs two readings at least that were tried, as [[reading]], or is \"open\""
            ));
        } else if cause == Cause::Routing && deciding == 0 {
            told.push(format!("cause: \"{id}\" needs two readings, one of which `decides`, or is \"open\""));
        }
    }
}

/// Lists the comparisons that more than one claim makes, one line each. Rule 8 of "Rules of
/// judgement" in `docs/register.md` forbids them.
pub fn judged_twice(published: &Published) -> Vec<String> {
    let mut told = Vec::new();
    for (number, claim) in published.claims.iter().enumerate() {
        let own = claim.check.comparisons();
        for before in published.claims[..number].iter().filter(|before| before.panel == claim.panel) {
            if before.check.comparisons().iter().any(|other| own.contains(other)) {
                told.push(format!("{}: \"{}\" and \"{}\" judge the same", published.id, before.text, claim.text));
            }
        }
    }
    told
}

/// References in an experiment's texts to numbers of the same experiment.
fn own_references(published: &Published) -> Vec<Reference> {
    let all = published.texts().filter_map(|text| references(text).ok()).flatten();
    all.filter(|reference| reference.experiment.is_none()).collect()
}

/// Lists the references in `texts` to other experiments that cannot be resolved: the experiment or
/// a name in it does not exist. References that name no experiment are not checked here.
pub fn strange_references<'a>(register: &Register, texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut told = Vec::new();
    for text in texts {
        let all = references(text).map_err(|why| told.push(why)).unwrap_or_default();
        for reference in all {
            let Some(id) = &reference.experiment else { continue };
            match register.find(id) {
                Some(experiment) => reference.check(&experiment.published, id, &mut told),
                None => told.push(format!("there is no experiment \"{id}\"")),
            }
        }
    }
    told
}

type Point = Map<String, Value>;

/// Adds a message for each curve that has no point in the sweep, or several points at one x. Also
/// checks that every x of a term or a published number exists, and that a scenario has a time
/// series if a metric needs one.
fn points(published: &Published, scenario: &Scenario, told: &mut Vec<String>) {
    let all: Vec<Point> = scenario.points.iter().map(|point| point.values.iter().cloned().collect()).collect();
    let mut xs: Vec<X> = Vec::new();
    let nothing = Point::new();
    let everything =
        super::data::Panel { id: String::new(), title: String::new(), note: String::new(), point: nothing };
    let panels = if published.panels.is_empty() { vec![&everything] } else { published.panels.iter().collect() };
    for panel in panels {
        for curve in &published.curves {
            let its: Vec<&Point> = all.iter().filter(|point| panel.has(point) && curve.has(point)).collect();
            let place = if panel.id.is_empty() { String::new() } else { format!(" in the panel \"{}\"", panel.id) };
            if its.is_empty() {
                told.push(format!("no point of the sweep is of the curve \"{}\"{place}", curve.id));
            }
            for point in &its {
                let x = published.x.as_ref().map(|axis| (axis, axis.of(point)));
                if let Some((axis, x)) = &x
                    && x.as_ref().is_none_or(|x| x.value.is_nan())
                {
                    told.push(format!(
                        "x.key: \"{}\" is no number in the sweep of the curve \"{}\"",
                        axis.key, curve.id
                    ));
                    return;
                }
                let same_x = |other: &&&Point| {
                    published.x.as_ref().and_then(|axis| axis.of(other)) == x.clone().and_then(|(_, x)| x)
                };
                let twins: Vec<&&Point> = its.iter().filter(same_x).collect();
                if twins.len() > 1 && curve.tuned.is_none() {
                    let differs = |key: &&String| twins.iter().any(|twin| twin.get(*key) != point.get(*key));
                    let keys: Vec<&str> = point.keys().filter(differs).map(String::as_str).collect();
                    told.push(format!(
                        "the curve \"{}\"{place} has several points at one x: they differ in {}",
                        curve.id,
                        keys.join(", ")
                    ));
                    break;
                }
                if let Some(x) = x.and_then(|(_, x)| x)
                    && !xs.contains(&x)
                {
                    xs.push(x);
                }
            }
        }
    }
    let known = |term: &&Term| term.x.is_none_or(|x| xs.iter().any(|other| other.value == x));
    for reference in own_references(published) {
        for term in reference.terms().filter(|term| !known(term)) {
            told.push(format!("finding, note or reading: there is no x {}", term.x.unwrap_or(f64::NAN)));
        }
    }
    for claim in &published.claims {
        for term in claim.check.terms().into_iter().filter(|term| !known(term)) {
            told.push(format!("claim \"{}\": there is no x {}", claim.text, term.x.unwrap_or(f64::NAN)));
        }
    }
    for numbers in published.published.values().flat_map(|metrics| metrics.values()) {
        if let Numbers::ByX(numbers) = numbers {
            for x in numbers.keys().filter(|x| !xs.iter().any(|other| other.text == **x)) {
                told.push(format!("published: there is no x \"{x}\""));
            }
        }
    }
    let needs_series = published
        .metrics
        .iter()
        .cloned()
        .chain(published.figures.iter().flat_map(|figure| &figure.metrics).filter_map(|id| published.metric(id)));
    if let Some(metric) = needs_series.into_iter().find(Metric::is_series)
        && scenario.points.iter().any(|point| point.config.series.is_none())
    {
        told.push(format!("the metric \"{}\" needs a time series: add `series = \"2 s\"` to the scenario", metric.id));
    }
}
