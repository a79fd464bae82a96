//! Error messages for scenarios, with what a person needs to correct them: file, line, column, key,
//! and what was expected.

use super::recording::Recording;
use super::value::Origin;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::cell::RefCell;
use std::fmt;

/// An error in a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Message: a sentence that begins with the key.
    pub message: String,
    /// Place of the error in the file or the arguments; `None` if the error concerns the scenario
    /// as a whole.
    pub origin: Option<Origin>,
    /// Expectation, shown at the place of the error.
    pub expected: String,
    /// Advice how to correct the error, if there is any.
    pub help: Option<String>,
    /// First point of the sweep that has the error; set by [`Problems`].
    pub point: Option<String>,
}

/// Errors found so far. Readers share it, so that one pass reports all errors.
#[derive(Default, Debug)]
pub struct Problems {
    found: RefCell<Vec<Problem>>,
    point: RefCell<Option<String>>,
    /// Notes about settings that are allowed but may not be intended.
    notes: RefCell<Vec<String>>,
    /// Recording of the keys that are read, if the caller wants one.
    recording: Option<Recording>,
}

impl Problems {
    /// Creates an empty list of errors that also records every key that is read.
    pub fn recorded() -> Problems {
        Problems { recording: Some(Recording::default()), ..Problems::default() }
    }

    /// Returns the recording of the keys that are read; `None` if keys are not recorded.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Sets the point of the sweep to which the following errors belong.
    pub fn enter(&self, point: Option<String>) {
        *self.point.borrow_mut() = point;
    }

    /// Adds an error, unless it is known already. An error that several points of a sweep share is
    /// reported for the first of them.
    pub fn add(&self, problem: Problem) {
        let mut problems = self.found.borrow_mut();
        let is_known = problems.iter().any(|known| Problem { point: None, ..known.clone() } == problem);
        if !is_known {
            problems.push(Problem { point: self.point.borrow().clone(), ..problem });
        }
    }

    /// Adds an error at a place.
    pub fn at(&self, origin: &Origin, message: impl Into<String>, expected: impl Into<String>) {
        self.add(Problem {
            message: message.into(),
            origin: Some(origin.clone()),
            expected: expected.into(),
            help: None,
            point: None,
        });
    }

    /// Adds a note about a setting that is no error but may not be intended: one sentence that
    /// begins with the key.
    pub fn note(&self, sentence: String) {
        self.notes.borrow_mut().push(sentence);
    }

    /// Takes the notes that were added since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Number of errors found so far.
    pub fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// Returns all errors, in the order in which they were found.
    pub fn into_vec(self) -> Vec<Problem> {
        self.found.into_inner()
    }
}

/// Source of a scenario.
#[derive(Clone, Default, Debug)]
pub struct Source {
    /// Name of the file as it was given, or `<stdin>`.
    pub name: String,
    /// Content of the file.
    pub text: String,
    /// `--set` arguments, in order.
    pub sets: Vec<String>,
}

/// Number of errors that are shown; further ones are only counted.
const SHOWN: usize = 10;

/// Refusal of a scenario, with all of its errors.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Source of the scenario.
    pub source: Source,
    /// Errors of the scenario; not empty.
    pub problems: Vec<Problem>,
}

impl Refusal {
    /// Text for a terminal; `color` adds ANSI colours.
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
