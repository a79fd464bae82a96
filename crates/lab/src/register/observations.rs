//! Observations of the curves of an experiment, taken from records. For each panel, curve, quantity
//! and x there is a list of observations.

use super::data::{Curve, Metric, Published, Term};
use super::select::X;
use crate::record::Record;
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Records of an experiment, sorted by panel, curve and x.
#[derive(Clone, Debug)]
pub struct Observations<'a> {
    /// Published results that the records are compared with.
    pub published: &'a Published,
    records: Arc<Vec<Record>>,
    xs: Vec<X>,
    /// Indices into `records` by panel, curve and x, ascending in the seed. The three parts of a
    /// key are indices into the lists of panels, curves and `xs`.
    places: BTreeMap<(usize, usize, usize), Vec<usize>>,
}

/// Observations of a quantity at one x.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Position on the horizontal axis.
    pub x: X,
    /// One value for each run, or for each batch if the runs are divided into batches.
    pub values: Vec<f64>,
    /// Seed of each value, if runs of the same seed are compared with each other
    /// ([`Published::paired`]) and each run gives one value. Otherwise `None`.
    pub seeds: Option<Vec<u64>>,
}

/// One value of a tuned parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// The value as the sweep writes it.
    pub text: String,
    /// Number of the value.
    pub value: f64,
    /// Observations of the experiment's first metric with this value.
    pub values: Vec<f64>,
    places: Vec<usize>,
}

/// Reads records, one JSON object per line.
///
/// # Errors
/// The number of the line that is no record, and the reason.
pub fn parse(lines: &str) -> Result<Vec<Record>, String> {
    let line =
        |(number, line): (usize, &str)| Record::read(line).map_err(|error| format!("line {}: {error}", number + 1));
    lines.lines().enumerate().map(line).collect()
}

impl<'a> Observations<'a> {
    /// Sorts `records` by panel, curve and x.
    pub fn new(published: &'a Published, records: Arc<Vec<Record>>) -> Observations<'a> {
        let nothing = Map::new();
        let panels = published.panels.len().max(1);
        let mut found: Vec<(usize, usize, X, u64, usize)> = Vec::new();
        for (number, record) in records.iter().enumerate() {
            let point = &record.point;
            let x = match &published.x {
                None => X { value: 0.0, text: String::new() },
                Some(axis) => match axis.of(point) {
                    Some(x) => x,
                    None => continue,
                },
            };
            for panel in 0..panels {
                let in_panel = published.panels.get(panel).map_or(&nothing, |panel| &panel.point);
                if !super::select::holds(in_panel, point) {
                    continue;
                }
                for (curve, _) in published.curves.iter().enumerate().filter(|(_, curve)| curve.has(point)) {
                    found.push((panel, curve, x.clone(), record.seed, number));
                }
            }
        }
        let mut xs: Vec<X> = Vec::new();
        for (_, _, x, _, _) in &found {
            if !xs.contains(x) {
                xs.push(x.clone());
            }
        }
        xs.sort_by(|a, b| a.value.total_cmp(&b.value));
        found.sort_by_key(|(_, _, _, seed, number)| (*seed, *number));
        let mut places: BTreeMap<(usize, usize, usize), Vec<usize>> = BTreeMap::new();
        for (panel, curve, x, _, number) in found {
            let place = xs.iter().position(|other| *other == x).unwrap_or(0);
            places.entry((panel, curve, place)).or_default().push(number);
        }
        Observations { published, records, xs, places }
    }

    /// All x, ascending. Without an axis there is a single x with an empty text.
    pub fn xs(&self) -> &[X] {
        &self.xs
    }

    /// Returns whether no record belongs to any curve.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns whether the curve called `id` has a record in any panel. Other readings are not
    /// always run.
    pub fn has_runs(&self, id: &str) -> bool {
        let number = self.published.curves.iter().position(|curve| curve.id == id);
        self.places.keys().any(|(_, curve, _)| Some(*curve) == number)
    }

    /// Records of a curve at an x, ascending in the seed. For a tuned curve they are those of the
    /// best choice.
    pub fn records(&self, panel: usize, curve: &Curve, x: &X) -> Vec<&Record> {
        self.chosen(panel, curve, x).into_iter().map(|number| &self.records[number]).collect()
    }

    fn chosen(&self, panel: usize, curve: &Curve, x: &X) -> Vec<usize> {
        let mean = |choice: &Choice| choice.values.iter().sum::<f64>() / choice.values.len() as f64;
        match &curve.tuned {
            None => self.all(panel, curve, x).to_vec(),
            Some(_) => {
                let choices = self.choices(panel, curve, x).into_iter().filter(|choice| mean(choice).is_finite());
                choices.max_by(|a, b| mean(a).total_cmp(&mean(b))).map(|choice| choice.places).unwrap_or_default()
            }
        }
    }

    fn all(&self, panel: usize, curve: &Curve, x: &X) -> &[usize] {
        let curve = self.published.curves.iter().position(|other| other.id == curve.id);
        let x = self.xs.iter().position(|other| other == x);
        let place = curve.zip(x).and_then(|(curve, x)| self.places.get(&(panel, curve, x)));
        place.map(Vec::as_slice).unwrap_or_default()
    }

    /// Smallest number of different seeds over the x of a term that were run. `None` if no such x
    /// was run.
    pub fn seeds(&self, panel: usize, term: &Term) -> Option<usize> {
        let curve = self.published.curve(&term.curve)?;
        let different = |x: &X| {
            let records = self.all(panel, curve, x).iter();
            let seeds: BTreeSet<u64> = records.map(|&number| self.records[number].seed).collect();
            Some(seeds.len()).filter(|count| *count > 0)
        };
        self.xs.iter().filter(|x| term.x.is_none_or(|own| own == x.value)).filter_map(different).min()
    }

    /// Choices of a tuned curve at an x, ascending in the parameter.
    pub fn choices(&self, panel: usize, curve: &Curve, x: &X) -> Vec<Choice> {
        let Some(metric) = self.published.metric(&self.published.first_metric()) else { return Vec::new() };
        let mut choices: Vec<Choice> = Vec::new();
        for &number in self.all(panel, curve, x) {
            let record = &self.records[number];
            let Some((text, value)) = curve.choice(&record.point) else { continue };
            let at = choices.iter().position(|choice| choice.text == text).unwrap_or_else(|| {
                choices.push(Choice { text, value, values: Vec::new(), places: Vec::new() });
                choices.len() - 1
            });
            choices[at].values.extend(observe(record, &metric, None));
            choices[at].places.push(number);
        }
        choices.sort_by(|a, b| a.value.total_cmp(&b.value));
        choices
    }

    /// Observations of a quantity of a curve at an x.
    pub fn values(&self, panel: usize, curve: &Curve, metric: &Metric, flow: Option<usize>, x: &X) -> Vec<f64> {
        self.records(panel, curve, x).into_iter().flat_map(|record| observe(record, metric, flow)).collect()
    }

    /// Observations of a term at the x that it names, or at every x. An x without any run is left
    /// out.
    ///
    /// # Errors
    /// The curve or the metric does not exist, there are no runs, or the metric is Jain's index and
    /// there is only one flow.
    pub fn sample(&self, panel: usize, term: &Term) -> Result<Vec<Sample>, String> {
        let curve = self.published.curve(&term.curve).ok_or_else(|| format!("there is no curve {}", term.curve))?;
        let id = term.metric.clone().unwrap_or_else(|| self.published.first_metric());
        let metric = self.published.metric(&id).ok_or_else(|| format!("there is no metric {id}"))?;
        let at = |x: &&X| term.x.is_none_or(|wanted| wanted == x.value);
        // Jain's index says nothing where all records have a single flow.
        let is_evidence = |x: &&X| !self.records(panel, curve, x).iter().all(|record| metric.is_of_one_flow(*record));
        let sample = |x: &X| {
            let seeded: Vec<(u64, f64)> = self
                .records(panel, curve, x)
                .into_iter()
                .flat_map(|record| observe(record, &metric, term.flow).into_iter().map(|value| (record.seed, value)))
                .collect();
            let (seeds, values): (Vec<u64>, Vec<f64>) = seeded.into_iter().unzip();
            // A run in batches gives several values with one seed, which cannot be paired.
            let is_one_each = seeds.windows(2).all(|pair| pair[0] < pair[1]);
            Sample { x: x.clone(), values, seeds: Some(seeds).filter(|_| self.published.paired && is_one_each) }
        };
        let xs: Vec<&X> = self.xs.iter().filter(at).filter(|x| !self.all(panel, curve, x).is_empty()).collect();
        let samples: Vec<Sample> = xs.iter().copied().filter(is_evidence).map(sample).collect();
        match (xs.is_empty(), samples.is_empty()) {
            (true, _) => Err(format!("there are no runs of {}", self.told(term))),
            (false, true) => Err(format!("{}: there is one flow only, whose share says nothing", self.told(term))),
            (false, false) => Ok(samples),
        }
    }

    /// Position in words, such as " at 7 hops" or " at 20 kbit/s". Empty without an axis.
    pub fn at(&self, x: &X) -> String {
        match &self.published.x {
            None => String::new(),
            // A text with a unit, such as "20 kbit/s", needs no title of the axis.
            Some(_) if x.text.contains(' ') => format!(" at {}", x.text),
            Some(axis) => match axis.title.as_str() {
                "hops" if x.value == 1.0 => " at 1 hop".to_owned(),
                "hops" => format!(" at {} hops", x.text),
                title => format!(" at {} {}", title.split(',').next().unwrap_or(title), x.text),
            },
        }
    }

    /// Name of a term for people.
    pub fn told(&self, term: &Term) -> String {
        let curve = self.published.label(&term.curve);
        let metric = term.metric.as_ref().and_then(|id| self.published.metric(id)).map(|metric| metric.title);
        let flow = term.flow.map(|flow| format!(" of flow {}", flow + 1)).unwrap_or_default();
        match metric {
            Some(title) => format!("{curve} ({title}{flow})"),
            None => curve,
        }
    }
}

/// Observations in one record: the values of all its batches except the first, or the value of the
/// whole record if it has no batches.
fn observe(record: &Record, metric: &Metric, flow: Option<usize>) -> Vec<f64> {
    let batches = record.batches.as_deref().unwrap_or_default();
    let of_batches: Vec<f64> = batches.iter().skip(1).filter_map(|batch| metric.of(batch, flow)).collect();
    if of_batches.is_empty() { metric.of(record, flow).into_iter().collect() } else { of_batches }
}

impl Published {
    /// Label of the curve `id` for people.
    pub fn label(&self, id: &str) -> String {
        let own = self.curve(id).and_then(|curve| curve.label.clone());
        own.unwrap_or_else(|| super::labels::label(id).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::standard;
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_batch_of_a_run_is_the_transient() {
        let batch = |bps: f64| json!({"aggregate_goodput_bps": bps});
        let record =
            json!({"aggregate_goodput_bps": 1.0, "jain": 0.5, "batches": [batch(9e3), batch(2e3), batch(4e3)]});
        let record = crate::record::record(record);
        let observe = |id: &str| observe(&record, &standard(id).unwrap(), None);
        assert_eq!(observe("goodput"), [2.0, 4.0]);
        assert_eq!(observe("jain"), [0.5], "not in the batches: of the run");
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        assert_eq!(parse("{}\n{}\n").unwrap().len(), 2);
        assert!(parse("{}\n{\"a\":").unwrap_err().starts_with("line 2"));
        assert!(parse("3").is_err());
    }
}
