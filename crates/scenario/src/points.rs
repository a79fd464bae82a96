//! The points of a scenario. All points of a small sweep are built and checked when the scenario is
//! read.
//!
//! Of a large sweep, only a selection of points is built then, in which every value of every axis
//! occurs. Every other point is built when it is requested, and may be refused then.

use super::estimate::Estimate;
use super::sweep::{Sweep, Values};
use super::{Files, Point, read_point};
use meshpace_settings::diagnostic::Problems;
use meshpace_settings::value::Table;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::{Arc, OnceLock};

/// Points of a scenario, in the order of its sweep.
#[derive(Clone, Debug, Default)]
pub struct Points {
    kept: Vec<OnceLock<Box<Point>>>,
    /// Builds points that are not kept. `None` if all points are kept.
    plan: Option<Arc<Plan>>,
}

/// Everything that is needed to build a point of a large sweep.
#[derive(Debug)]
pub struct Plan {
    /// Tree of the scenario, without its sweep.
    root: Table,
    sweep: Sweep,
    /// Files that the scenario names.
    files: Files,
    /// True if one of the checked points has no flow.
    lacks_flows: bool,
    /// Cost of the first point of each product.
    first: Vec<Estimate>,
    /// Factor by which each value multiplies that cost, by product, axis and value.
    factors: Vec<Vec<Vec<Estimate>>>,
}

/// Results of checking the selected points of a large sweep.
#[derive(Default)]
pub struct Checked {
    costs: BTreeMap<usize, Estimate>,
    lacks_flows: bool,
}

impl Checked {
    /// Adds a checked point.
    pub fn add(&mut self, number: usize, point: &Point) {
        self.costs.insert(number, Estimate::of(point));
        self.lacks_flows |= point.config.flows.is_empty();
    }

    /// Creates the plan, after every value of the sweep was checked in combination with the first
    /// values of the other axes.
    pub fn plan(self, root: Table, sweep: Sweep, files: Files) -> Plan {
        let cost = |number: usize| self.costs[&number];
        let ratio = |one: f64, other: f64| if other > 0.0 { one / other } else { 1.0 };
        let (mut first, mut factors) = (Vec::new(), Vec::new());
        for (product, lengths) in sweep.shape().iter().enumerate() {
            let base = cost(sweep.alone(product, 0, 0));
            let factor = |axis: usize, value: usize| {
                let alone = cost(sweep.alone(product, axis, value));
                Estimate { cpu_s: ratio(alone.cpu_s, base.cpu_s), bytes: ratio(alone.bytes, base.bytes) }
            };
            let of_axis = |(axis, length): (usize, &usize)| (0..*length).map(|value| factor(axis, value)).collect();
            factors.push(lengths.iter().enumerate().map(of_axis).collect());
            first.push(base);
        }
        Plan { root, sweep, files, lacks_flows: self.lacks_flows, first, factors }
    }
}

impl From<Vec<Point>> for Points {
    fn from(points: Vec<Point>) -> Points {
        Points { kept: points.into_iter().map(|point| OnceLock::from(Box::new(point))).collect(), plan: None }
    }
}

impl From<Plan> for Points {
    fn from(plan: Plan) -> Points {
        let kept = (0..plan.sweep.points()).map(|_| OnceLock::new()).collect();
        Points { kept, plan: Some(Arc::new(plan)) }
    }
}

impl Points {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// True if there are no points.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns point `number`. A point that has to be built is not kept.
    ///
    /// # Errors
    /// The first error of this combination of values, or that there is no such point.
    pub fn build(&self, number: usize) -> Result<Cow<'_, Point>, String> {
        match (self.kept.get(number).and_then(OnceLock::get), &self.plan) {
            (Some(point), _) => Ok(Cow::Borrowed(point)),
            (None, Some(plan)) if number < self.len() => plan.build(number).map(Cow::Owned),
            _ => Err(format!("the scenario has no point {number}")),
        }
    }

    /// Values of point `number`.
    pub fn values(&self, number: usize) -> Values {
        match &self.plan {
            Some(plan) => plan.sweep.values(number),
            None => self[number].values.clone(),
        }
    }

    /// Values of point `number` as the JSON object that identifies the point in records.
    pub fn key(&self, number: usize) -> String {
        match &self.plan {
            Some(plan) => plan.sweep.key(number),
            None => serde_json::Value::Object(self[number].values.iter().cloned().collect()).to_string(),
        }
    }

    /// Estimated cost of a run of each point. In a large sweep, each value is assumed to multiply
    /// the cost by the same factor at all points.
    pub fn estimates(&self) -> Vec<Estimate> {
        match &self.plan {
            Some(plan) => (0..self.len()).map(|number| plan.estimate(number)).collect(),
            None => self.iter().map(Estimate::of).collect(),
        }
    }

    /// True if a point has no flow. In a large sweep, only the points that were checked when it was
    /// read are considered.
    pub fn lack_flows(&self) -> bool {
        match &self.plan {
            Some(plan) => plan.lacks_flows,
            None => self.iter().any(|point| point.config.flows.is_empty()),
        }
    }

    /// The first point.
    pub fn first(&self) -> Option<&Point> {
        self.iter().next()
    }

    /// Point `number`; `None` beyond the last point.
    pub fn get(&self, number: usize) -> Option<&Point> {
        (number < self.len()).then(|| &self[number])
    }

    /// All points. Points of a large sweep are built and kept, as by [`Points::index`].
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Point> {
        (0..self.len()).map(|number| &self[number])
    }

    /// Builds all points and returns them.
    pub fn into_vec(self) -> Vec<Point> {
        self.iter().for_each(drop);
        self.kept.into_iter().filter_map(OnceLock::into_inner).map(|point| *point).collect()
    }
}

/// Returns the point, and keeps it for later requests.
///
/// # Panics
/// Beyond the last point, and if a point of a large sweep is refused. [`Points::build`] returns an
/// error instead.
impl Index<usize> for Points {
    type Output = Point;

    fn index(&self, number: usize) -> &Point {
        self.kept[number].get_or_init(|| match self.build(number) {
            Ok(point) => Box::new(point.into_owned()),
            Err(why) => panic!("{why}"),
        })
    }
}

impl<'a> IntoIterator for &'a Points {
    type Item = &'a Point;
    type IntoIter = Box<dyn Iterator<Item = &'a Point> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl Plan {
    /// Builds a point from the files that were read with the scenario.
    fn build(&self, number: usize) -> Result<Point, String> {
        let load = |name: &str| {
            let found = self.files.iter().find(|(known, _)| known.as_os_str() == name);
            found.map(|(_, content)| content.clone()).ok_or_else(|| format!("{name}: only this point names the file"))
        };
        let problems = Problems::default();
        let (tree, values) = self.sweep.point(number, &self.root, &problems);
        let (point, ..) = read_point(&tree, values, &load, self.sweep.seeds, &problems);
        match problems.into_vec().first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(point),
        }
    }

    fn estimate(&self, number: usize) -> Estimate {
        let (product, values) = self.sweep.place(number).unwrap_or_default();
        let factors = values.iter().zip(&self.factors[product]).map(|(value, of_axis)| of_axis[*value]);
        factors.fold(self.first[product], |cost, factor| Estimate {
            cpu_s: cost.cpu_s * factor.cpu_s,
            bytes: cost.bytes * factor.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{LARGE, Scenario, Source, estimate::Estimate};
    use std::path::Path;

    fn read(text: &str) -> Result<Scenario, String> {
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let load =
            |name: &str| if name == "map.csv" { Ok(b"x_m,y_m\n0,0\n100,0\n".to_vec()) } else { Err(name.to_owned()) };
        Scenario::read_sweep_with(source, &load, "test").map_err(|refusal| refusal.to_string())
    }

    fn list(values: impl Iterator<Item = usize>) -> String {
        values.map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// 1,200 points.
    fn large(rest: &str) -> String {
        let (windows, segments) = (list(2..42), list(500..530));
        format!("[[flow]]\n{rest}[sweep]\n'flow.max_window' = [{windows}]\n'flow.segment' = [{segments}]\n")
    }

    #[test]
    fn a_large_sweep_has_the_points_that_it_has_when_all_are_built() {
        let text = large("");
        let (lazy, source) = (read(&text).unwrap(), Source { name: String::new(), text, sets: Vec::new() });
        let whole = Scenario::read(source, Path::new("."), "test").unwrap();
        assert!(lazy.points.plan.is_some() && whole.points.plan.is_none() && whole.points.len() > LARGE);
        assert_eq!((lazy.points.len(), &lazy.digest, lazy.seeds), (whole.points.len(), &whole.digest, whole.seeds));
        let costs = lazy.points.estimates();
        for number in [0, 1, 29, 30, 31, 600, 1199] {
            let point = &whole.points[number];
            let built = lazy.points.build(number).unwrap();
            assert_eq!(
                (&built.config, &built.values, &built.transports),
                (&point.config, &point.values, &point.transports)
            );
            assert_eq!(
                (lazy.points.values(number), lazy.points.key(number)),
                (point.values.clone(), whole.points.key(number))
            );
            assert!((costs[number].cpu_s / Estimate::of(point).cpu_s - 1.0).abs() < 1e-9);
        }
        assert!(lazy.points.build(1200).is_err());
    }

    #[test]
    fn every_value_is_checked_before_and_a_combination_when_it_is_built() {
        let strange = large("").replace("517", "'x'");
        assert!(read(&strange).unwrap_err().contains("segment"), "a value in the middle");
        // A warm-up must be shorter than the run. 30 s and 20 s are possible beside the first and the last values, and not together.
        let text = format!(
            "[[flow]]\n[sweep]\nwarmup = ['1 s', '30 s', '2 s']\nduration = ['60 s', '20 s', '61 s']\n'flow.max_window' = [{}]\n",
            list(2..202)
        );
        let scenario = read(&text).unwrap();
        let wrong = 200 * 3 + 200;
        assert!(scenario.points.build(wrong).unwrap_err().contains("there is nothing to measure"));
        assert!(scenario.points.build(wrong - 1).is_ok() && scenario.points.build(wrong + 200).is_ok());
    }

    #[test]
    fn files_are_read_once() {
        let text =
            large("from = 0\nto = 1\n").replace("[sweep]", "[topology]\nkind = 'nodes'\nfile = 'map.csv'\n[sweep]");
        let scenario = read(&text).unwrap();
        assert_eq!(scenario.files.len(), 1);
        assert_eq!(scenario.points.build(77).unwrap().config.positions.len(), 2);
    }

    #[test]
    fn each_value_multiplies_the_cost() {
        let (hops, durations) = (list(1..41), (3..33).map(|s| format!("'{s} s'")).collect::<Vec<_>>().join(", "));
        let text = format!("[[flow]]\n[sweep]\n'topology.hops' = [{hops}]\n'duration' = [{durations}]\n");
        let scenario = read(&text).unwrap();
        let costs = scenario.points.estimates();
        for number in [0, 29, 30, 615, 1199] {
            let exact = Estimate::of(&scenario.points.build(number).unwrap());
            assert!((costs[number].cpu_s / exact.cpu_s - 1.0).abs() < 1e-6, "{:?} {exact:?}", costs[number]);
            assert!((costs[number].bytes / exact.bytes - 1.0).abs() < 1e-6);
        }
    }
}
