//! The report page. It begins with the claims that are reproduced and the causes of the others,
//! followed by a section for each experiment. Every count on the page comes from `verdicts.json`.

mod front;
mod lead;
mod section;

use crate::parts;
use maud::{PreEscaped, html};
use meshpace_lab::register::collection::Collection;
use meshpace_lab::register::reference::Resolver;
use meshpace_lab::register::verdicts::{self, Entry};
use meshpace_lab::register::{Experiment, Register, STUDIES, Verdict};
use std::collections::BTreeMap;
use std::path::Path;

/// Everything that a page is made from.
#[derive(Debug)]
pub struct Book<'a> {
    /// Register of the published experiments.
    pub register: &'a Register,
    /// Collections of runs.
    pub collections: &'a [Collection],
    /// Directory of the page, if the page links to the records in it. `None` if the page is read
    /// elsewhere.
    pub links: Option<&'a Path>,
    /// Place of the page of `meshpace view --export`, if links to it play the scenarios.
    pub viewer: Option<&'a str>,
}

/// An experiment on the page: its verdicts, and its runs if there are any.
struct Chapter<'a> {
    experiment: &'a Experiment,
    collection: Option<&'a Collection>,
    entries: Vec<&'a Entry>,
}

impl Chapter<'_> {
    fn id(&self) -> &str {
        &self.experiment.published.id
    }

    fn count(&self, verdict: Verdict) -> usize {
        count(self.entries.iter().copied(), verdict)
    }

    fn held(&self) -> usize {
        self.count(Verdict::Reproduced) + self.count(Verdict::InShape)
    }

    /// Causes with their counts, the most frequent cause first.
    fn causes(&self) -> Vec<(&'static str, usize)> {
        causes(self.entries.iter().copied())
    }
}

fn count<'a>(entries: impl Iterator<Item = &'a Entry>, verdict: Verdict) -> usize {
    entries.filter(|entry| entry.verdict == verdict.words()).count()
}

fn causes<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<(&'static str, usize)> {
    let mut found: BTreeMap<&'static str, usize> = BTreeMap::new();
    for cause in entries.filter_map(|entry| entry.cause) {
        *found.entry(cause.words()).or_default() += 1;
    }
    let mut found: Vec<(&'static str, usize)> = found.into_iter().collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}

impl Book<'_> {
    /// Text of the page as self-contained HTML.
    pub fn render(&self) -> String {
        let entries = verdicts::of(self.register, self.collections);
        let chapters: Vec<Chapter> = self
            .register
            .experiments
            .iter()
            .map(|experiment| Chapter {
                experiment,
                collection: self.collection(experiment),
                entries: entries.iter().filter(|entry| entry.experiment == experiment.published.id).collect(),
            })
            .filter(|chapter| chapter.collection.is_some() || !chapter.entries.is_empty())
            .collect();
        let judged = || chapters.iter().filter(|chapter| chapter.collection.is_some());
        let title = match judged().next() {
            Some(only) if judged().count() == 1 => {
                format!("{}: {}", only.id(), only.experiment.published.title)
            }
            _ => self.heading().to_owned(),
        };
        let is_one = judged().count() == 1;
        let shown: Vec<&Chapter> = if is_one { judged().collect() } else { chapters.iter().collect() };
        let resolver = Resolver::new(self.register, self.collections);
        let body = html! {
            body { main id="top" {
                @if !is_one { (front::page(self, &shown, &entries)) }
                @for (number, chapter) in shown.iter().enumerate() {
                    (section::of(chapter, is_one, self, &resolver))
                    @if !is_one { (front::onward(&shown, number)) }
                }
                footer { "Written by meshpace. Colours: Okabe and Ito; Tol." }
            }
            @if !is_one { a.up href="#top" aria-label="back to the top" { "↑" } script { (PreEscaped(include_str!("book/find.js"))) } } }
        };
        parts::page(&title, include_str!("style.css"), &body)
    }

    fn collection(&self, experiment: &Experiment) -> Option<&Collection> {
        let owner = self.register.owner(experiment).ok().flatten()?;
        self.collections.iter().find(|collection| collection.runs.as_ref() == Some(&owner.published.id))
    }

    /// True if the page contains only studies of this project.
    fn is_of_studies(&self) -> bool {
        self.papers().iter().all(|paper| STUDIES.contains(paper))
    }

    /// Heading of a page of several experiments.
    fn heading(&self) -> &'static str {
        if self.is_of_studies() { "Studies of this project, repeated" } else { "Published experiments, repeated" }
    }

    /// Papers of the register, in its order. A study of this project is included if one of its
    /// experiments was run. The other papers are all included; if only studies were run, none of
    /// them is.
    fn papers(&self) -> Vec<&str> {
        let was_run = |paper: &str| {
            let of_paper = |runs: &String| runs.split('-').next() == Some(paper);
            self.collections.iter().any(|collection| collection.runs.as_ref().is_some_and(of_paper))
        };
        let mut papers: Vec<&str> = Vec::new();
        let of_missing = self.register.missing.iter().filter_map(|id| id.split('-').next());
        for paper in self.register.experiments.iter().map(Experiment::paper).chain(of_missing) {
            if !papers.contains(&paper) {
                papers.push(paper);
            }
        }
        let only_studies = !papers.iter().any(|paper| !STUDIES.contains(paper) && was_run(paper));
        papers.retain(|paper| was_run(paper) || !STUDIES.contains(paper) && !only_studies);
        papers
    }
}

#[cfg(test)]
mod tests;
