//! The page: a scoreboard by paper, then a section for each experiment.

use super::figure::Painter;
use super::parts::{chip, class, signs};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use meshpace_lab::register::collection::Collection;
use meshpace_lab::register::judge::{self, Judgement, cells, judge};
use meshpace_lab::register::observations::Observations;
use meshpace_lab::register::{Experiment, PAPERS, Register, Verdict};
use std::path::Path;
use std::sync::Arc;

/// Everything a page is made from.
pub struct Book<'a> {
    /// What was published.
    pub register: &'a Register,
    /// What was run.
    pub chapters: &'a [&'a Collection],
    /// The directory of the page, if it links to the records in it; none if it is read elsewhere.
    pub links: Option<&'a Path>,
}

/// What became of an experiment.
enum State<'a> {
    /// It was judged: each of its claims and published numbers.
    Judged(Vec<Verdict>, &'a Collection),
    /// It cannot be, and never is run.
    Unjudged(&'a str),
    /// Its runs are not here.
    NotRun,
}

impl<'a> Book<'a> {
    /// The page as HTML, complete in itself.
    pub fn render(&self) -> String {
        let states: Vec<(&Experiment, State)> =
            self.register.experiments.iter().map(|experiment| (experiment, self.state(experiment))).collect();
        let shown = || states.iter().filter(|(_, state)| !matches!(state, State::NotRun | State::Unjudged(_)));
        let is_one = shown().count() == 1;
        let title = match shown().next() {
            Some((only, _)) if is_one => format!("{}: {}", only.published.id, only.published.title),
            _ => "Published experiments, repeated".to_owned(),
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) }
                    style { (PreEscaped(include_str!("style.css"))) }
                }
                body { main {
                    @if is_one {
                        @for (experiment, state) in shown() { @if let State::Judged(verdicts, chapter) = state {
                            (self.section(experiment, Verdict::of_all(verdicts.iter().copied()), chapter, true))
                        } }
                    } @else {
                        (self.front(&states))
                        @for (experiment, state) in &states { @match state {
                            State::Judged(verdicts, chapter) => (self.section(experiment, Verdict::of_all(verdicts.iter().copied()), chapter, false)),
                            State::Unjudged(why) => (unjudged(experiment, why)),
                            State::NotRun => {},
                        } }
                    }
                    footer { "Written by meshpace. Colours: Okabe and Ito; Tol." }
                } }
            }
        };
        page.into_string()
    }

    fn state(&self, experiment: &'a Experiment) -> State<'a> {
        if let Some(why) = &experiment.published.unjudged {
            return State::Unjudged(why);
        }
        let owner = self.register.owner(experiment).ok().flatten();
        let chapter = owner
            .and_then(|owner| self.chapters.iter().find(|chapter| chapter.runs.as_ref() == Some(&owner.published.id)));
        match chapter {
            Some(chapter) => {
                let observations = Observations::new(&experiment.published, Arc::clone(&chapter.records));
                State::Judged(judge::all(&observations), chapter)
            }
            None => State::NotRun,
        }
    }

    fn front(&self, states: &[(&Experiment, State)]) -> Markup {
        let of = |paper: &str, state: &dyn Fn(&State) -> bool| {
            states.iter().filter(|(experiment, found)| experiment.paper() == paper && state(found)).count()
        };
        let with = |paper: &str, verdict: Verdict| {
            of(paper, &|state| match state {
                State::Judged(found, _) => Verdict::of_all(found.iter().copied()) == verdict,
                State::Unjudged(_) => verdict == Verdict::CannotBeJudged,
                State::NotRun => false,
            })
        };
        let parts = |paper: &str, verdict: Verdict| {
            let of_paper = states.iter().filter(|(experiment, _)| experiment.paper() == paper);
            let judged = of_paper.filter_map(|(_, state)| match state {
                State::Judged(verdicts, _) => Some(verdicts),
                _ => None,
            });
            judged.flatten().filter(|found| **found == verdict).count()
        };
        let missing = |paper: &str| {
            let without_file = self.register.missing.iter().filter(|id| id.split('-').next() == Some(paper)).count();
            without_file + of(paper, &|state| matches!(state, State::NotRun))
        };
        let total =
            |paper: &str| Verdict::ALL.iter().map(|verdict| with(paper, *verdict)).sum::<usize>() + missing(paper);
        let quick = self.chapters.iter().any(|chapter| chapter.made.quality.as_deref() != Some("paper"));
        let seconds: f64 = self.chapters.iter().map(|chapter| chapter.made.wall_time_s).sum();
        let runs: usize = self.chapters.iter().map(|chapter| chapter.records.len()).sum();
        html! {
            header {
                p.eyebrow { "meshpace" }
                h1 { "Published experiments, repeated" }
                p.source { "Five papers on reliable transport over several 802.11 hops: every figure, table and statement that reports a result, run \
                    again and held against what was published." }
            }
            section.short aria-label="Summary" {
                p { (runs) " runs in " (duration(seconds)) ". "
                    @if quick { "Not all of them have the length and the number of seeds of the papers: read this as a first look." } }
                p { em { "Reproduced" } ": the numbers agree. " em { "In shape" } ": the direction does, the numbers do not. " em { "Differs" }
                    ": neither. An experiment is as good as the least of its claims and published numbers; \"7 of 9\" behind its title: so \
                    many of them are reproduced, or are in shape." }
            }
            section { h2 { "By paper" } div.scroll { table.board {
                thead { tr {
                    th scope="col" { "paper" }
                    @for verdict in Verdict::ALL { th scope="col" { (chip(verdict)) } }
                    th scope="col" { "not run" } th scope="col" { "all" } th scope="col" { }
                } }
                tbody { @for paper in PAPERS { tr {
                    td { a href={ "#" (paper) } { (paper) } }
                    @for verdict in Verdict::ALL { td { (with(paper, verdict)) } }
                    td { (missing(paper)) } td { (total(paper)) }
                    td { div.bar aria-hidden="true" {
                        @for verdict in Verdict::ALL {
                            span class=(class(verdict)) style={ "flex-grow:" (with(paper, verdict)) } {}
                        }
                        span.missing style={ "flex-grow:" (missing(paper)) } {}
                    } }
                } } }
            } } }
            section { h2 { "By claim and published number" }
                p.note { "The same without the rule that one miss is enough: every statement and every number that a paper prints counts once." }
                div.scroll { table.board {
                thead { tr {
                    th scope="col" { "paper" }
                    @for verdict in Verdict::ALL { th scope="col" { (chip(verdict)) } }
                    th scope="col" { "all" } th scope="col" { }
                } }
                tbody { @for paper in PAPERS { tr {
                    td { a href={ "#" (paper) } { (paper) } }
                    @for verdict in Verdict::ALL { td { (parts(paper, verdict)) } }
                    td { (Verdict::ALL.iter().map(|verdict| parts(paper, *verdict)).sum::<usize>()) }
                    td { div.bar aria-hidden="true" {
                        @for verdict in Verdict::ALL { span class=(class(verdict)) style={ "flex-grow:" (parts(paper, verdict)) } {} }
                    } }
                } } }
            } } }
            section { h2 { "By experiment" }
                @for paper in PAPERS {
                    h3 id=(paper) { (paper) }
                    ul.index {
                        @for (experiment, state) in states.iter().filter(|(experiment, _)| experiment.paper() == paper) {
                            @if !matches!(state, State::NotRun) { li { (index_entry(experiment, state)) } }
                        }
                    }
                    @let left = states.iter().filter(|(experiment, state)| experiment.paper() == paper && matches!(state, State::NotRun));
                    @let left: Vec<&str> = left.map(|(experiment, _)| experiment.published.id.as_str()).collect();
                    @if !left.is_empty() { p.note { "Not run here: " (left.join(", ")) "." } }
                    @let missing = self.register.missing.iter().filter(|id| id.split('-').next() == Some(paper));
                    @let missing: Vec<&str> = missing.map(String::as_str).collect();
                    @if !missing.is_empty() { p.note { "Not in the register yet: " (missing.join(", ")) "." } }
                }
            }
        }
    }

    fn section(&self, experiment: &Experiment, verdict: Verdict, chapter: &Collection, is_alone: bool) -> Markup {
        let published = &experiment.published;
        let observations = Observations::new(published, Arc::clone(&chapter.records));
        let painter = Painter { observations: &observations };
        let counted: Vec<Verdict> =
            published.claims.iter().map(|claim| judge(claim, &observations).own.verdict).collect();
        let numbers: Vec<Verdict> =
            cells(&observations, 0).into_iter().filter(|cell| cell.counts).map(|cell| cell.verdict).collect();
        html! {
            section.experiment id=(published.id) {
                header {
                    p.eyebrow { (published.id) " · " (chip(verdict)) }
                    @if is_alone { h1 { (published.title) } } @else { h2 { (published.title) } }
                    p.source { (published.source) }
                }
                p.tally { (tally("claims", &counted)) @if !numbers.is_empty() { "; " (tally("published numbers", &numbers)) } "." }
                @for figure in &published.figures { (painter.figure(figure)) }
                @if let Some(parts) = &published.decomposition { (super::decomposition::section(parts, &observations)) }
                @if !published.claims.is_empty() { (claims(published, &observations)) }
                @if verdict == Verdict::Differs { @if let Some(finding) = &published.finding {
                    div.finding { h3 { "Finding" } p { (finding) } }
                } }
                @if !published.notes.is_empty() { h3 { "What to know" } ul { @for note in &published.notes { li { (note) } } } }
                (colophon(&published.id, chapter, self.links))
            }
        }
    }
}

fn index_entry(experiment: &Experiment, state: &State) -> Markup {
    let (id, title) = (&experiment.published.id, &experiment.published.title);
    match state {
        State::Judged(verdicts, _) => {
            let held = verdicts.iter().filter(|verdict| **verdict <= Verdict::InShape).count();
            let verdict = Verdict::of_all(verdicts.iter().copied());
            html! { a href={ "#" (id) } { (id) } " " (chip(verdict)) " " (title) " "
            span.held { (held) " of " (verdicts.len()) } }
        }
        State::Unjudged(_) => html! { a href={ "#" (id) } { (id) } " " (chip(Verdict::CannotBeJudged)) " " (title) },
        State::NotRun => html! {},
    }
}

fn unjudged(experiment: &Experiment, why: &str) -> Markup {
    let published = &experiment.published;
    html! {
        section.experiment id=(published.id) {
            header {
                p.eyebrow { (published.id) " · " (chip(Verdict::CannotBeJudged)) }
                h2 { (published.title) }
                p.source { (published.source) }
            }
            p { (why) }
            @for note in &published.notes { p { (note) } }
        }
    }
}

/// "6 claims: 4 reproduced, 2 differ"
fn tally(what: &str, verdicts: &[Verdict]) -> String {
    let count = |verdict: Verdict| verdicts.iter().filter(|other| **other == verdict).count();
    let parts = Verdict::ALL.into_iter().filter(|verdict| count(*verdict) > 0);
    let parts: Vec<String> = parts.map(|verdict| format!("{} {}", count(verdict), verdict.words())).collect();
    if parts.is_empty() { format!("no {what}") } else { format!("{} {what}: {}", verdicts.len(), parts.join(", ")) }
}

fn claims(published: &meshpace_lab::register::data::Published, observations: &Observations) -> Markup {
    let panel_title = |number: usize| published.panels.get(number).map_or("", |panel| panel.title.as_str());
    html! {
        h3 { "Claims" }
        ol.claims { @for claim in &published.claims {
            @let judged = judge(claim, observations);
            li {
                h4 { (claim.text) }
                @if let Some(source) = &claim.source { p.source { (source) } }
                p { (verdict(&judged.own)) }
                @if !judged.readings.is_empty() || !judged.panels.is_empty() { ul.beside {
                    @for (curve, judgement) in &judged.readings { li { em { (published.label(curve)) } ": " (verdict(judgement)) } }
                    @for (panel, judgement) in &judged.panels { li { em { (panel_title(*panel)) } ": " (verdict(judgement)) } }
                } }
            }
        } }
    }
}

fn verdict(judgement: &Judgement) -> Markup {
    html! { (chip(judgement.verdict)) ". " (signs(&judgement.evidence)) "." }
}

fn colophon(id: &str, chapter: &Collection, links: Option<&Path>) -> Markup {
    let made = &chapter.made;
    let file = |place: &Path, name: &str| place.join(name).display().to_string();
    let place = links.map(|page| chapter.directory.strip_prefix(page).unwrap_or(Path::new("")));
    html! {
        details.colophon {
            summary { "Repeat it: " code { (made.command(id)) } }
            dl {
                dt { "Version" } dd { "meshpace " (made.version) }
                dt { "Scenario" } dd { "SHA-256 " code { (made.scenario_sha256) } }
                dt { "Runs" } dd { (chapter.records.len()) " of " (made.points) " points, " (made.seeds) " seeds from " (made.first_seed)
                    @if made.failed_runs > 0 { ", of which " strong { (made.failed_runs) " failed" } }
                    @if let Some(owner) = chapter.runs.as_deref().filter(|owner| *owner != id) { ", those of " (owner) } }
                @if let Some(place) = place {
                    dt { "Files" } dd { a href=(file(place, "records.jsonl")) { "records.jsonl" } ", " a href=(file(place, "records.csv")) { "records.csv" }
                        ", " a href=(file(place, "records.parquet")) { "records.parquet" } ", " a href=(file(place, "manifest.json")) { "manifest.json" } }
                }
            }
        }
    }
}

/// "3 min 20 s"
fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_lab::record::directory::Manifest;
    use meshpace_lab::register::{Effort, observations};
    use serde_json::Value;
    use std::path::PathBuf;

    fn made() -> Manifest {
        serde_json::from_value(serde_json::json!({
            "scenario": "s", "scenario_sha256": "0", "version": "0", "first_seed": 1, "seeds": 2, "points": 2,
            "failed_runs": 0, "quality": "quick",
        }))
        .unwrap()
    }

    /// Every experiment of the register with two made-up runs of each of its points.
    #[test]
    fn every_experiment_has_a_page_that_is_whole() {
        let register = Register::embedded();
        let mut chapters = Vec::new();
        for experiment in register.experiments.iter().filter(|experiment| experiment.scenario.is_some()) {
            let runs = register.runs(experiment, Effort::Quick).unwrap().unwrap();
            let mut lines = String::new();
            for (number, point) in runs.scenario.points.iter().enumerate() {
                for seed in 1..=2 {
                    let flows: Vec<Value> = (0..point.config.flows.len())
                        .map(|flow| serde_json::json!({"goodput_bps": 1e5 + number as f64 + seed as f64, "id": flow, "timeouts": 1}))
                        .collect();
                    let values: serde_json::Map<String, Value> = point.values.iter().cloned().collect();
                    lines.push_str(&format!(
                        "{}\n",
                        serde_json::json!({
                            "seed": seed, "point": values, "aggregate_goodput_bps": 1e5 + number as f64 + seed as f64,
                            "jain": 0.9, "jain_2s": 0.8, "retransmission_index": 0.01, "flows": flows,
                        })
                    ));
                }
            }
            chapters.push(Collection {
                runs: Some(runs.id),
                records: Arc::new(observations::parse(&lines).unwrap()),
                made: made(),
                directory: PathBuf::from("out/x"),
            });
        }
        let chapters: Vec<&Collection> = chapters.iter().collect();
        let page = Book { register: &register, chapters: &chapters, links: Some(Path::new("out")) }.render();
        assert!(!page.contains("NaN") && !page.contains("inf %"), "no number that is none");
        for experiment in &register.experiments {
            assert!(page.contains(&format!("id=\"{}\"", experiment.published.id)), "{}", experiment.published.id);
        }
        // Well-formed, but for the doctype and void elements: every section and figure that is opened is closed.
        for tag in ["section", "figure", "table", "svg", "details", "ul", "ol"] {
            let (open, close) = (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
            assert!(open >= close && page.contains(&format!("</{tag}>")), "{tag}: {open} and {close}");
        }
        // The only address is the name of SVG, which nobody fetches.
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("://"), "it needs no network");
    }

    #[test]
    fn times_are_told_in_their_size() {
        assert_eq!(
            (duration(59.4), duration(200.0), duration(7260.0)),
            ("59 s".into(), "3 min 20 s".into(), "2 h 1 min".into())
        );
    }
}
