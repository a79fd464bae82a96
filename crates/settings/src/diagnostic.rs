//! Error messages for scenarios that a person can act on: file, line, column, key, and what was expected.

use super::recording::Recording;
use super::value::Origin;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::cell::RefCell;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The sentence, beginning with the key.
    pub message: String,
    /// Its place in the file or the arguments; `None` if it is about the scenario as a whole.
    pub origin: Option<Origin>,
    /// The expectation, shown at the place itself.
    pub expected: String,
    /// A way out.
    pub help: Option<String>,
    /// The first point of the sweep that has it; filled in by [`Problems`].
    pub point: Option<String>,
}

/// The problems found so far. Readers share it, so that one pass reports all of them.
#[derive(Default, Debug)]
pub struct Problems {
    found: RefCell<Vec<Problem>>,
    point: RefCell<Option<String>>,
    /// Notes on what is allowed.
    notes: RefCell<Vec<String>>,
    /// The recording of what is read, where somebody wants to know.
    recording: Option<Recording>,
}

impl Problems {
    /// No problems yet, and a record of every key that is read.
    pub fn recorded() -> Problems {
        Problems { recording: Some(Recording::default()), ..Problems::default() }
    }

    /// The record of what is read, if there is one.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Problems from now on belong to this point of the sweep.
    pub fn enter(&self, point: Option<String>) {
        *self.point.borrow_mut() = point;
    }

    /// Notes a problem, once: what is wrong in several points is told for the first.
    pub fn add(&self, problem: Problem) {
        let mut problems = self.found.borrow_mut();
        let is_known = problems.iter().any(|known| Problem { point: None, ..known.clone() } == problem);
        if !is_known {
            problems.push(Problem { point: self.point.borrow().clone(), ..problem });
        }
    }

    /// Notes a problem at a place.
    pub fn at(&self, origin: &Origin, message: impl Into<String>, expected: impl Into<String>) {
        self.add(Problem {
            message: message.into(),
            origin: Some(origin.clone()),
            expected: expected.into(),
            help: None,
            point: None,
        });
    }

    /// Notes what is no mistake but may not be meant, in one sentence that begins with the key.
    pub fn note(&self, sentence: String) {
        self.notes.borrow_mut().push(sentence);
    }

    /// The notes since they were last taken.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// All of them, in the order in which they were found.
    pub fn into_vec(self) -> Vec<Problem> {
        self.found.into_inner()
    }
}

/// Source of a scenario.
#[derive(Clone, Default, Debug)]
pub struct Source {
    /// The file's name as it was given, or `<stdin>`.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The `--set` arguments, in order.
    pub sets: Vec<String>,
}

/// Errors that are shown; the others are counted.
const SHOWN: usize = 10;

/// A scenario that is refused, with everything that is wrong with it.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Its source.
    pub source: Source,
    /// The problems; not empty.
    pub problems: Vec<Problem>,
}

impl Refusal {
    /// The text for a terminal; `color` adds ANSI colours.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for problem in self.problems.iter().take(SHOWN) {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&self.render_one(problem, &renderer));
        }
        let more = self.problems.len().saturating_sub(SHOWN);
        if more > 0 {
            text.push_str(&format!("\n\nand {more} more errors in {}", self.source.name));
        }
        text
    }

    fn render_one(&self, problem: &Problem, renderer: &Renderer) -> String {
        let mut group = match &problem.origin {
            Some(Origin::File(span)) => {
                let annotation = AnnotationKind::Primary.span(span.clone()).label(problem.expected.as_str());
                let snippet = Snippet::source(self.source.text.as_str()).path(self.source.name.as_str());
                Level::ERROR.primary_title(problem.message.as_str()).element(snippet.annotation(annotation))
            }
            Some(Origin::Set(index)) => {
                let argument = self.source.sets.get(*index).map_or("", String::as_str);
                let mut group = Level::ERROR
                    .primary_title(problem.message.as_str())
                    .element(Level::NOTE.message(format!("given by --set '{argument}'")));
                if !problem.expected.is_empty() {
                    group = group.element(Level::NOTE.message(problem.expected.as_str()));
                }
                group
            }
            None => Level::ERROR
                .primary_title(problem.message.as_str())
                .element(Level::NOTE.message(format!("in {}", self.source.name))),
        };
        if let Some(point) = &problem.point {
            group = group.element(Level::NOTE.message(format!("at the point {point}")));
        }
        if let Some(help) = &problem.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Refusal {}
