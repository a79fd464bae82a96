//! Section of one experiment: a summary, the figures and the claims.

use super::{Book, Chapter};
use crate::figure::Painter;
use crate::parts::{chip, class, duration, signs};
use crate::view;
use maud::{Markup, html};
use meshpace_lab::register::collection::Collection;
use meshpace_lab::register::data::{Cause, FigureKind, Published};
use meshpace_lab::register::judge::{Judgement, judge};
use meshpace_lab::register::reference::Resolver;
use meshpace_lab::register::verdicts::cause_of;
use meshpace_lab::register::{Account, Experiment, Observations, STUDIES, Verdict};
use meshpace_lab::summary::PLUS_MINUS;
use std::path::Path;

pub fn of(chapter: &Chapter, is_alone: bool, book: &Book, resolver: &Resolver) -> Markup {
    let published = &chapter.experiment.published;
    let verdicts: Vec<&str> =
        Verdict::ALL.into_iter().filter(|verdict| chapter.count(*verdict) > 0).map(Verdict::words).collect();
    let causes: Vec<&str> = chapter.causes().into_iter().map(|(cause, _)| cause).collect();
    html! {
        section.experiment id=(published.id) data-verdicts=(verdicts.join("|")) data-causes=(causes.join("|")) {
            header {
                p.eyebrow { (published.id) }
                @if is_alone { h1 { (published.title) } } @else { h2 { (published.title) } }
                (verdicts_of(chapter))
                (account(chapter, resolver))
                p.source { (published.source) " " (link(chapter.experiment))
                    @if let Some(page) = book.viewer { @if let Some(view) = view::link(page, book.register, chapter.experiment) {
                        " " a.view href=(view) { "watch it" }
                    } } }
            }
            @if let Some(collection) = chapter.collection { (judged(chapter, collection, book, resolver)) }
            @else { @for note in &published.notes { p { (resolver.text(&published.id, note)) } } }
        }
    }
}

fn judged(chapter: &Chapter, collection: &Collection, book: &Book, resolver: &Resolver) -> Markup {
    let published = &chapter.experiment.published;
    let Some(observations) = resolver.observations(&published.id) else { return html! {} };
    let words = |text: &str| signs(&resolver.text(&published.id, text));
    let painter = Painter { observations: &observations };
    html! {
        @if let Some(drawn) = drawn(published, chapter.experiment.paper()) { p.note { (drawn) } }
        @if collection.made.seeds > 1 { p.note { "Numbers are means over the seeds. " (PLUS_MINUS) "; whiskers in the plots show this interval, limited to possible values." } }
        @for figure in &published.figures { (painter.figure(figure)) }
        @if let Some(parts) = &published.decomposition { (crate::decomposition::section(parts, &observations)) }
        @if !published.claims.is_empty() { (claims(published, &observations)) }
        @if chapter.count(Verdict::Differs) > 0 && published.finding.is_some() || !published.readings.is_empty() { div.finding {
            h3 { "Finding" }
            @if let Some(finding) = &published.finding { p { (words(finding)) } }
            @if !published.readings.is_empty() { (readings(published, words)) }
        } }
        @if !published.notes.is_empty() { details { summary { "What to know" } ul { @for note in &published.notes { li { (words(note)) } } } } }
        (colophon(&published.id, collection, book))
    }
}

/// Sentence that says whether the paper's published numbers are drawn beside the runs. `None` for
/// studies of this project, and for experiments without plots.
fn drawn(published: &Published, paper: &str) -> Option<&'static str> {
    let has_plots = published.figures.iter().any(|figure| figure.kind != FigureKind::Table);
    if STUDIES.contains(&paper) || !has_plots {
        return None;
    }
    Some(if published.published.is_empty() {
        "The plots show no published values: the paper gives no numbers for its curves, and they were not read off its plots. Its statements in words are judged under \u{201c}Claims\u{201d}."
    } else {
        "Published numbers are rings with a cross in the plots, or are in the table, in the colour of their curve. A curve without them has no numbers in the paper, and it was not read off the paper's plot."
    })
}

/// Readings of the paper that were tried, each with its result.
fn readings(published: &Published, words: impl Fn(&str) -> String) -> Markup {
    html! { details.readings {
        summary { "Readings tried: " (published.readings.len()) }
        dl { @for reading in &published.readings {
            dt { (words(&reading.what)) }
            dd { (words(&reading.result)) @if reading.decides { " " strong { "This decided." } } }
        } }
    } }
}

/// Verdicts that occur, with their counts.
fn counted(chapter: &Chapter) -> impl Iterator<Item = (Verdict, usize)> + Clone {
    Verdict::ALL.into_iter().map(|verdict| (verdict, chapter.count(verdict))).filter(|(_, number)| *number > 0)
}

/// Bar with one part for each verdict that occurs.
pub fn bar(chapter: &Chapter) -> Markup {
    let parts = counted(chapter);
    let told: Vec<String> = parts.clone().map(|(verdict, number)| format!("{number} {}", verdict.words())).collect();
    let told = format!("verdicts on the published claims: {}", told.join(", "));
    html! { span.mini role="img" aria-label=(told) title=(told) {
        @for (verdict, number) in parts { span class=(class(verdict)) style={ "flex-grow:" (number) } {} }
    } }
}

/// Bar of verdicts with a legend of the counts. Empty if there are no verdicts.
fn verdicts_of(chapter: &Chapter) -> Markup {
    html! { @if !chapter.entries.is_empty() { div.verdicts {
        (bar(chapter))
        ul.key { @for (verdict, number) in counted(chapter) { li { (chip(verdict)) " " (number) } } }
    } } }
}

/// Summary of the findings: the number of claims that hold, and the claims that do not.
fn account(chapter: &Chapter, resolver: &Resolver) -> Markup {
    if let Some(why) = &chapter.experiment.published.unjudged {
        return html! { p.sentence { "It cannot be judged: " (why) } };
    }
    let account = Account::of(chapter.experiment, &chapter.entries, resolver);
    html! {
        p.sentence { @if let Some(found) = &account.found { strong { (signs(found)) } " " } (account.count) }
        @if let Some(caution) = &account.caution { p { (signs(caution)) } }
        @if let Some(unrun) = &account.unrun { p.note { (unrun) } }
        @if !account.failing.is_empty() { ul.failing { @for one in &account.failing { li { (signs(one)) } } } }
        @if !account.partial.is_empty() { ul.partial { @for one in &account.partial { li { (signs(one)) } } } }
    }
}

fn claims(published: &Published, observations: &Observations) -> Markup {
    let panel_title = |number: usize| published.panels.get(number).map_or("", |panel| panel.title.as_str());
    html! {
        h3 { "Claims" }
        ol.claims { @for claim in &published.claims {
            @let judged = judge(claim, observations);
            @let cause = cause_of(published, judged.own.verdict, claim.cause);
            li data-verdict=(judged.own.verdict.words()) data-cause=[cause.map(Cause::words)] {
                h4 { (claim.text) }
                @if let Some(source) = &claim.source { p.source { (source) } }
                p { (verdict(&judged.own)) @if let Some(cause) = cause {
                    " " span.why title=(cause.meaning()) { "Why: " (cause.words()) "." }
                } }
                @if !judged.readings.is_empty() || !judged.panels.is_empty() { details { summary { "Other readings and panels" } ul.beside {
                    @for (curve, judgement) in &judged.readings { li { em { (published.label(curve)) } ": " (verdict(judgement)) } }
                    @for (panel, judgement) in &judged.panels { li { em { (panel_title(*panel)) } ": " (verdict(judgement)) } }
                } } }
            }
        } }
    }
}

fn verdict(judgement: &Judgement) -> Markup {
    html! { (chip(judgement.verdict)) ". " (signs(&judgement.evidence)) "." }
}

/// Authors, title and place of publication, without the section of the paper.
pub fn citation(experiment: &Experiment) -> &str {
    let source = experiment.published.source.as_str();
    let ends =
        [", section", ", Section", ". Section", ", Fig", ". Fig", ", Table", ". Table", ". Appendix", ", Appendix"];
    let end = ends.iter().filter_map(|end| source.find(end)).min();
    &source[..end.unwrap_or(source.len())]
}

/// Link to the paper: its DOI, else its page, else a search for its title. Empty if the source is
/// not a paper.
pub fn link(experiment: &Experiment) -> Markup {
    let published = &experiment.published;
    let title = citation(experiment).split_once(": ").map(|(_, rest)| rest.split(". ").next().unwrap_or(rest));
    html! { @match (&published.doi, &published.page, title) {
        (Some(doi), _, _) => a href={ "https://doi.org/" (doi) } { "doi:" (doi) },
        (None, Some(page), _) => a href=(page) { "the paper at " (page.split('/').nth(2).unwrap_or(page)) },
        (None, None, Some(title)) => a href={ "https://search.crossref.org/?q=" (plus(title)) } { "find its DOI" },
        (None, None, None) => {},
    } }
}

fn plus(title: &str) -> String {
    let plain = title.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '+' });
    plain.collect()
}

fn colophon(id: &str, collection: &Collection, book: &Book) -> Markup {
    let made = &collection.made;
    let file = |place: &Path, name: &str| place.join(name).display().to_string();
    let place = book.links.map(|page| collection.directory.strip_prefix(page).unwrap_or(Path::new("")));
    html! {
        details.colophon {
            summary { "Repeat it: " code { (made.command(id, book.register.directory.as_deref())) } }
            dl {
                dt { "Version" } dd { "meshpace " (made.version) ", model " (made.model) }
                dt { "Scenario" } dd { "SHA-256 " code { (made.scenario_sha256) } }
                dt { "Runs" } dd { (collection.records.len()) " of " (made.points) " points, " (made.seeds) " seeds from " (made.first_seed)
                    ", " (duration(made.wall_time_s))
                    @if made.failed_runs > 0 { ", of which " strong { (made.failed_runs) " failed" } }
                    @if let Some(owner) = collection.runs.as_deref().filter(|owner| *owner != id) { ", those of " (owner) } }
                @if let Some(place) = place {
                    dt { "Files" } dd { a href=(file(place, "records.jsonl")) { "records.jsonl" } ", " a href=(file(place, "records.csv")) { "records.csv" }
                        ", " a href=(file(place, "records.parquet")) { "records.parquet" } ", " a href=(file(place, "manifest.json")) { "manifest.json" } }
                }
            }
        }
    }
}
