//! Beginning of the page: the number of claims that are reproduced, the causes of the others, one
//! figure, and the list of experiments.

use super::{Book, Chapter, causes, count, lead};
use crate::parts::{chip, class, duration};
use maud::{Markup, html};
use meshpace_lab::register::data::Cause;
use meshpace_lab::register::verdicts::Entry;
use meshpace_lab::register::{Experiment, Verdict};

pub fn page(book: &Book, chapters: &[&Chapter], entries: &[Entry]) -> Markup {
    let held = count(entries.iter(), Verdict::Reproduced) + count(entries.iter(), Verdict::InShape);
    html! {
        header {
            p.eyebrow { "meshpace" }
            h1 { (book.heading()) }
            p.short { strong { (held) " of " (entries.len()) } @if !book.is_of_studies() { " published" } " claims and numbers hold: "
                @for (number, verdict) in Verdict::ALL.into_iter().enumerate() {
                    @if number > 0 { ", " } strong data-verdict=(verdict.words()) { (count(entries.iter(), verdict)) } " " (words(verdict))
                } "." }
        }
        (papers(book, entries))
        (whys(entries))
        (find())
        @if !book.is_of_studies() { (lead::figure(chapters)) }
        (index(book, chapters))
    }
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced (the numbers agree)",
        Verdict::InShape => "in shape (the direction does)",
        Verdict::Differs => "differ",
        Verdict::CannotBeTold => "cannot be told (the intervals hold both answers)",
        Verdict::CannotBeJudged => "cannot be judged",
    }
}

/// A bar of verdicts for each paper.
fn papers(book: &Book, entries: &[Entry]) -> Markup {
    let of = |paper: &str| -> Vec<&Entry> {
        entries.iter().filter(|entry| entry.experiment.split('-').next() == Some(paper)).collect()
    };
    let missing = |paper: &str| {
        let without_file = book.register.missing.iter().filter(|id| id.split('-').next() == Some(paper)).count();
        let is_missing = |experiment: &&Experiment| {
            experiment.paper() == paper && !entries.iter().any(|entry| entry.experiment == experiment.published.id)
        };
        without_file + book.register.experiments.iter().filter(is_missing).count()
    };
    html! { section.totals aria-label="by paper" {
        @for paper in book.papers() {
            @let own = of(paper);
            div.paper data-paper=(paper) {
                a href={ "#" (paper) } { (paper) }
                div.bar { @for verdict in Verdict::ALL {
                    @let number = count(own.iter().copied(), verdict);
                    @if number > 0 {
                        span class=(class(verdict)) style={ "flex-grow:" (number) } data-verdict=(verdict.words())
                            title={ (number) " " (verdict.words()) } { (number) }
                    }
                } }
                span.held {
                    (count(own.iter().copied(), Verdict::Reproduced) + count(own.iter().copied(), Verdict::InShape)) " of " (own.len())
                    @if missing(paper) > 0 { small { ", " (missing(paper)) " not run" } }
                }
            }
        }
        ul.key { @for verdict in Verdict::ALL { li { (chip(verdict)) } } }
    } }
}

/// Causes of claims that are not reproduced, with their counts. Each is a button that filters the
/// experiments.
fn whys(entries: &[Entry]) -> Markup {
    let found = causes(entries.iter());
    html! { @if !found.is_empty() { section.causes aria-label="reasons why the others are not reproduced" {
        p { "Reasons why the others are not reproduced exactly. Select a reason to see only its experiments." }
        div { @for (cause, number) in &found {
            button type="button" data-cause=(cause) aria-pressed="false" title=(meaning(cause)) { (cause) " " strong { (number) } }
        } }
    } } }
}

fn meaning(words: &str) -> &'static str {
    Cause::ALL.into_iter().find(|cause| cause.words() == words).map_or("", Cause::meaning)
}

/// Search and filters. They need a script and are hidden without one.
fn find() -> Markup {
    html! { form.find role="search" hidden {
        label { "Find " input type="search" placeholder="TCP-AP, chain, fairness, F14" autocomplete="off"; }
        @for verdict in Verdict::ALL {
            label { input type="checkbox" value=(verdict.words()) checked; " " (chip(verdict)) }
        }
        output aria-live="polite" {}
    } }
}

fn index(book: &Book, chapters: &[&Chapter]) -> Markup {
    let seconds: f64 = book.collections.iter().map(|collection| collection.made.wall_time_s).sum();
    let runs: usize = book.collections.iter().map(|collection| collection.records.len()).sum();
    let quick = book.collections.iter().any(|collection| collection.made.quality.as_deref() != Some("paper"));
    html! { section { h2 { "By experiment" }
        p.note { (runs) " runs in " (duration(seconds)) ". "
            @if quick { "Not all runs have the length and the number of seeds of the papers, so these results are preliminary." } }
        @for paper in book.papers() {
            @let own: Vec<&&Chapter> = chapters.iter().filter(|chapter| chapter.experiment.paper() == paper).collect();
            h3 id=(paper) { (paper) }
            @if let Some(first) = own.first() { p.note { (super::section::citation(first.experiment)) " " (super::section::link(first.experiment)) } }
            ul.index { @for chapter in &own { li data-id=(chapter.id()) { (entry(chapter)) } } }
            @let left: Vec<&str> = book.register.experiments.iter()
                .filter(|experiment| experiment.paper() == paper && !own.iter().any(|chapter| chapter.id() == experiment.published.id))
                .map(|experiment| experiment.published.id.as_str()).collect();
            @if !left.is_empty() { p.note { "Not run here: " (left.join(", ")) "." } }
            @let missing: Vec<&str> = book.register.missing.iter().filter(|id| id.split('-').next() == Some(paper)).map(String::as_str).collect();
            @if !missing.is_empty() { p.note { "Not in the register yet: " (missing.join(", ")) "." } }
        }
    } }
}

fn entry(chapter: &Chapter) -> Markup {
    html! {
        a href={ "#" (chapter.id()) } { (chapter.id()) } " " (super::section::bar(chapter)) " "
        span.held { (chapter.held()) " of " (chapter.entries.len()) } " " (chapter.experiment.published.title)
    }
}

/// Links to the previous experiment, the top and the next experiment.
pub fn onward(chapters: &[&Chapter], number: usize) -> Markup {
    let near = |number: Option<usize>| number.and_then(|number| chapters.get(number)).map(|chapter| chapter.id());
    html! { nav.onward aria-label="experiments" {
        @if let Some(id) = near(number.checked_sub(1)) { a href={ "#" (id) } rel="prev" { "← " (id) } }
        a href="#top" { "top" }
        @if let Some(id) = near(Some(number + 1)) { a href={ "#" (id) } rel="next" { (id) " →" } }
    } }
}
