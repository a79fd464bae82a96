//! References in a text that stand for numbers of the records, such as
//! `{static | largest tcp-ap / newreno}`. The numbers are inserted from the records, so that a text
//! always agrees with the tables beside it. `docs/register.md` describes the notation.

use super::collection::Collection;
use super::data::{Published, Term};
use super::judge::{Comparison, pairs, percent, told};
use super::library::Register;
use super::names::check_term;
use super::observations::{Observations, Sample};
use super::select::X;
use crate::statistics::{Estimate, digits, estimate};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Text that stands for a number without records, because this quality leaves its runs out.
const MISSING: &str = "(not run)";

/// Statistic of a quantity that a reference asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// The value. With an axis, the value at the x that the reference names.
    One,
    /// The largest value over x, and the x where it occurs.
    Largest,
    /// The smallest value over x, and the x where it occurs.
    Smallest,
    /// The smallest and the largest value over x.
    Range,
    /// One value for each flow.
    Flows,
}

/// Words that may begin a reference, with the statistic that each asks for.
const WORDS: [(&str, What); 4] =
    [("largest", What::Largest), ("smallest", What::Smallest), ("range", What::Range), ("flows", What::Flows)];

/// Reference of a text to a number.
#[derive(Clone, PartialEq, Debug)]
pub struct Reference {
    /// Id of the experiment that has the number. `None` if it is the text's own experiment.
    pub experiment: Option<String>,
    panel: Option<String>,
    what: What,
    of: Term,
    over: Option<Term>,
    core: Option<[f64; 2]>,
}

/// Part of a text.
#[derive(Debug)]
enum Part<'a> {
    Words(&'a str),
    Number(Box<Reference>),
}

/// Splits `text` into words and references. Fails with the fault of the first reference that cannot
/// be read.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((words, behind)) = rest.split_once('{') {
        let (reference, after) = behind.split_once('}').ok_or_else(|| format!("\"{{{behind}\": there is no }}"))?;
        found.extend([Part::Words(words), Part::Number(Box::new(Reference::parse(reference)?))]);
        rest = after;
    }
    found.push(Part::Words(rest));
    Ok(found)
}

/// References in `text`.
///
/// # Errors
/// The fault of the first reference that cannot be read.
pub fn references(text: &str) -> Result<Vec<Reference>, String> {
    let number = |part| if let Part::Number(reference) = part { Some(*reference) } else { None };
    Ok(parts(text)?.into_iter().filter_map(number).collect())
}

impl Reference {
    fn parse(text: &str) -> Result<Reference, String> {
        let wrong = |why: String| {
            format!(
                "{{{text}}}: {why}; expected {{panel | largest term / term@4..10}}, of which the term alone must be"
            )
        };
        let (experiment, rest) = match text.split_once(": ") {
            Some((id, rest)) => (Some(id.trim().to_owned()), rest),
            None => (None, text),
        };
        let (panel, rest) = match rest.split_once('|') {
            Some((panel, rest)) => (Some(panel.trim().to_owned()), rest.trim()),
            None => (None, rest.trim()),
        };
        let begins = |(word, what): &(&str, What)| Some((*what, rest.strip_prefix(word)?.strip_prefix(' ')?));
        let (what, rest) = WORDS.iter().find_map(begins).unwrap_or((What::One, rest));
        let range = |(terms, ends): (&str, &str)| {
            let (first, last) = ends.split_once("..")?;
            Some((terms.to_owned(), [first.parse().ok()?, last.parse().ok()?]))
        };
        let (rest, core) = match rest.rsplit_once('@').and_then(range) {
            Some((terms, core)) => (Cow::Owned(terms), Some(core)),
            None => (Cow::Borrowed(rest), None),
        };
        let term = |text: &str| Term::try_from(text.trim().to_owned()).map_err(&wrong);
        let (mut of, over) = match rest.split_once(" / ") {
            Some((of, over)) => (term(of)?, Some(term(over)?)),
            None => (term(&rest)?, None),
        };
        // If only the second term has an x, the x holds for both terms.
        of.x = of.x.or(over.as_ref().and_then(|over| over.x));
        Ok(Reference { experiment, panel, what, of, over, core })
    }

    /// Terms of the reference.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        std::iter::once(&self.of).chain(&self.over)
    }

    /// Adds a message to `told` for each name in the reference that does not exist in `published`.
    pub fn check(&self, published: &Published, place: &str, told: &mut Vec<String>) {
        for term in self.terms() {
            if self.what != What::Flows {
                check_term(published, term, place, told);
            } else if published.curve(&term.curve).is_none() {
                told.push(format!("{place}: there is no curve \"{}\"", term.curve));
            }
        }
        if let Some(panel) = self.panel.as_ref().filter(|panel| !published.panels.iter().any(|p| p.id == **panel)) {
            told.push(format!("{place}: there is no panel \"{panel}\""));
        }
        if self.what == What::One && published.x.is_some() && self.terms().any(|term| term.x.is_none()) {
            let of = &self.of.curve;
            told.push(format!("{place}: {of} has a value at every x: say which with @, or largest, smallest or range"));
        }
    }

    /// The number as text.
    fn told(&self, observations: &Observations) -> String {
        let panels = &observations.published.panels;
        let panel = self.panel.as_ref().and_then(|id| panels.iter().position(|panel| panel.id == *id)).unwrap_or(0);
        let found = match &self.over {
            Some(over) => self.gain(observations, panel, over),
            None if self.what == What::Flows => self.flows(observations, panel),
            None => self.value(observations, panel),
        };
        found.unwrap_or_else(|| MISSING.to_owned())
    }

    fn is_meant(&self, x: &X) -> bool {
        self.core.is_none_or(|[first, last]| (first..=last).contains(&x.value))
    }

    fn gain(&self, observations: &Observations, panel: usize, over: &Term) -> Option<String> {
        let (of, other) = (observations.sample(panel, &self.of).ok()?, observations.sample(panel, over).ok()?);
        let pairs = pairs(of, other, (self.of.x.is_some(), over.x.is_some()));
        let meant = pairs.into_iter().filter(|(one, _)| self.is_meant(&one.x));
        let gains: Vec<(X, Comparison)> =
            meant.filter_map(|(one, other)| Some((one.x.clone(), Comparison::of(&one, &other)?))).collect();
        let ends = chosen(&gains, |gain| gain.pct)?;
        Some(match self.what {
            What::Range if ends.0.1.pct.is_finite() && ends.1.1.pct.is_finite() => {
                format!("{:+.1} to {:+.1} %", ends.0.1.pct, ends.1.1.pct)
            }
            What::Range => format!("{} to {}", percent(ends.0.1.pct), percent(ends.1.1.pct)),
            What::Largest => format!("{}{}", told(&ends.1.1), observations.at(&ends.1.0)),
            What::Smallest => format!("{}{}", told(&ends.0.1), observations.at(&ends.0.0)),
            What::One | What::Flows => told(&ends.0.1),
        })
    }

    fn value(&self, observations: &Observations, panel: usize) -> Option<String> {
        let level = observations.published.level;
        let of = |sample: Sample| (sample.x, estimate(&sample.values, level));
        let samples = observations.sample(panel, &self.of).ok()?.into_iter();
        let values: Vec<(X, Estimate)> =
            samples.filter(|sample| self.is_meant(&sample.x) && !sample.values.is_empty()).map(of).collect();
        let ends = chosen(&values, |value| value.mean)?;
        Some(match self.what {
            What::Range => format!("{} to {}", digits(ends.0.1.mean), digits(ends.1.1.mean)),
            What::Largest => format!("{}{}", with_interval(&ends.1.1), observations.at(&ends.1.0)),
            What::Smallest => format!("{}{}", with_interval(&ends.0.1), observations.at(&ends.0.0)),
            What::One | What::Flows => with_interval(&ends.0.1),
        })
    }

    fn flows(&self, observations: &Observations, panel: usize) -> Option<String> {
        let of = |flow| {
            let term = Term { flow: Some(flow), ..self.of.clone() };
            let samples = observations.sample(panel, &term).ok()?;
            let values = &samples.first()?.values;
            (!values.is_empty()).then(|| digits(values.iter().sum::<f64>() / values.len() as f64))
        };
        let means: Vec<String> = (0..).map_while(of).collect();
        (!means.is_empty()).then(|| means.join(", "))
    }
}

/// Value at an x.
type At<T> = (X, T);

/// Entries with the smallest and the largest value. `None` if there are no entries.
fn chosen<T>(all: &[At<T>], value: impl Fn(&T) -> f64) -> Option<(&At<T>, &At<T>)> {
    let by = |one: &&At<T>, other: &&At<T>| value(&one.1).total_cmp(&value(&other.1));
    Some((all.iter().min_by(by)?, all.iter().max_by(by)?))
}

fn with_interval(value: &Estimate) -> String {
    if value.half_width.is_finite() {
        format!("{} ± {}", digits(value.mean), digits(value.half_width))
    } else {
        digits(value.mean)
    }
}

/// Inserts numbers of the records into texts.
#[derive(Debug)]
pub struct Resolver<'a> {
    register: &'a Register,
    collections: &'a [Collection],
    known: RefCell<BTreeMap<String, Option<Rc<Observations<'a>>>>>,
}

impl<'a> Resolver<'a> {
    /// Creates a resolver that takes the numbers from the records of `collections`.
    pub fn new(register: &'a Register, collections: &'a [Collection]) -> Resolver<'a> {
        Resolver { register, collections, known: RefCell::default() }
    }

    /// Observations of the experiment called `id`. `None` if it was not run.
    pub fn observations(&self, id: &str) -> Option<Rc<Observations<'a>>> {
        if let Some(known) = self.known.borrow().get(id) {
            return known.clone();
        }
        let made = self.register.find(id).and_then(|experiment| {
            let owner = self.register.owner(experiment).ok().flatten()?;
            let is_its = |collection: &&Collection| collection.runs.as_ref() == Some(&owner.published.id);
            let records = Arc::clone(&self.collections.iter().find(is_its)?.records);
            Some(Rc::new(Observations::new(&experiment.published, records)))
        });
        self.known.borrow_mut().insert(id.to_owned(), made.clone());
        made
    }

    /// `text` of the experiment `own` with its references replaced by numbers. A text that cannot
    /// be parsed is returned unchanged; the check of the register reports it.
    pub fn text(&self, own: &str, text: &str) -> String {
        let Ok(parts) = parts(text) else { return text.to_owned() };
        let words = |part: &Part| match part {
            Part::Words(words) => (*words).to_owned(),
            Part::Number(reference) => {
                let observations = self.observations(reference.experiment.as_deref().unwrap_or(own));
                observations.map_or_else(|| MISSING.to_owned(), |observations| reference.told(&observations))
            }
        };
        parts.iter().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use serde_json::json;

    const FILE: &str = "id = 'AP05-F1'\ntitle = ''\nsource = ''\nx = { key = 'topology.hops', title = 'hops' }\n\
        panel = [{ id = 'one', title = '', point = { 'routing' = 1 } }, { id = 'two', title = '', point = { 'routing' = 2 } }]\n\
        curve = [{ id = 'newreno' }, { id = 'tcp-ap' }]";

    fn records() -> Arc<Vec<Record>> {
        let mut records = Vec::new();
        for (routing, hops, transport, goodputs) in [
            (1, 4, "newreno", [100e3, 100e3, 100e3]),
            (1, 4, "tcp-ap", [50e3, 50e3, 50e3]),
            (1, 9, "newreno", [10e3, 10e3, 10e3]),
            (1, 9, "tcp-ap", [20e3, 20e3, 20e3]),
            (2, 4, "newreno", [1e3, 2e3, 3e3]),
        ] {
            for (seed, goodput) in goodputs.into_iter().enumerate() {
                let flows = json!([{"goodput_bps": goodput / 4.0}, {"goodput_bps": goodput * 3.0 / 4.0}]);
                records.push(crate::record::record(json!({
                    "seed": seed, "aggregate_goodput_bps": goodput, "flows": flows,
                    "point": {"routing": routing, "topology.hops": hops, "flow.transport": transport},
                })));
            }
        }
        Arc::new(records)
    }

    fn told(text: &str) -> String {
        let published: Published = toml::from_str(FILE).unwrap();
        let observations = Observations::new(&published, records());
        let mut wrong = Vec::new();
        let all = references(text).unwrap();
        all.iter().for_each(|reference| reference.check(&published, text, &mut wrong));
        assert!(wrong.is_empty(), "{wrong:?}");
        all.iter().map(|reference| reference.told(&observations)).collect::<Vec<_>>().join("; ")
    }

    /// Values computed by hand: gains of -50 and +100 %; for 1, 2, 3 the deviation is 1 and the
    /// half width 4.303/sqrt(3) = 2.484.
    #[test]
    fn numbers_are_those_of_the_records() {
        assert_eq!(told("{largest tcp-ap / newreno}"), "+100.0 % (+100.0 to +100.0) at 9 hops");
        assert_eq!(told("{smallest tcp-ap / newreno}"), "-50.0 % (-50.0 to -50.0) at 4 hops");
        assert_eq!(
            told("{tcp-ap / newreno@4}, {range tcp-ap / newreno}"),
            "-50.0 % (-50.0 to -50.0); -50.0 to +100.0 %"
        );
        assert_eq!(told("{range tcp-ap / newreno@5..9}"), "+100.0 to +100.0 %");
        assert_eq!(told("{two | newreno@4}"), "2.00 ± 2.48");
        assert_eq!(told("{flows tcp-ap:flow-goodput@4}, {tcp-ap:flow-goodput#1@9}"), "12.5, 37.5; 15.0 ± 0.0");
        assert_eq!(told("{two | tcp-ap@4}"), "(not run)");
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let published: Published = toml::from_str(FILE).unwrap();
        let wrong = |text: &str| {
            let mut wrong = Vec::new();
            match references(text) {
                Ok(all) => all.iter().for_each(|reference| reference.check(&published, "finding", &mut wrong)),
                Err(why) => wrong.push(why),
            }
            wrong.join("; ")
        };
        for (text, why) in [
            ("{tpa-2@4}", "no curve \"tpa-2\""),
            ("{three | newreno@4}", "no panel \"three\""),
            ("{newreno:gain@4}", "no metric \"gain\""),
            ("{newreno}", "say which with @"),
            ("{newreno:flow-goodput@4}", "say which with #0"),
            ("{newreno@four}", "the x is no number"),
            ("no end {newreno@4", "there is no }"),
        ] {
            assert!(wrong(text).contains(why), "{text}: {}", wrong(text));
        }
        assert_eq!(wrong("{one | largest tcp-ap:jain / newreno:jain@4..9} and {AP05-F2: newreno@4}"), "");
    }
}
