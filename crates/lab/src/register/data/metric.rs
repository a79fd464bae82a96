//! Metrics: a field of a record, of its flows or of its time series, in the unit that people read.

use super::observed::{Observed, Series};
use crate::record::Record;
use crate::record::fields::{self, Of};
use serde::Deserialize;

/// A metric: a quantity and how it is taken from a record.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name of the metric in terms.
    pub id: String,
    /// Title of the metric for people.
    pub title: String,
    /// Unit of the metric; empty for a pure number.
    #[serde(default)]
    pub unit: String,
    /// Field of the record that holds the quantity:
    /// - one of the record itself, such as "jain";
    /// - one of each flow, such as "flows.goodput_bps";
    /// - one of each flow and window of the time series, such as "series.cov_rtt";
    /// - one of each watched link, such as "links.air_time", with links in the place of flows.
    ///
    /// In addition to the fields of the record there are the computed fields flows.share,
    /// flows.averaged_goodput_bps, flows.download_delay_s, flows.retransmission_index and
    /// series.jain.
    pub field: String,
    /// Factor by which the value of the field is multiplied.
    #[serde(default = "one")]
    pub scale: f64,
    /// Flows that the quantity is taken of, if the field is one of flows.
    #[serde(default)]
    pub flow: Option<FlowChoice>,
    /// Interval of the run in seconds, if the field is one of the time series. Only windows that
    /// lie inside it count.
    #[serde(default)]
    pub window: Option<[f64; 2]>,
    /// How the values of the windows are combined, if the field is one of the time series. The
    /// default is their mean.
    #[serde(default)]
    pub take: Take,
    /// Largest distance of our number from a published one at which it is reproduced, in per cent
    /// of the published one.
    #[serde(default = "ten")]
    pub tolerance_pct: f64,
}

fn one() -> f64 {
    1.0
}

fn ten() -> f64 {
    10.0
}

/// How the values of the windows of a time series are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// Mean of the windows.
    #[default]
    Mean,
    /// Smallest value.
    Smallest,
    /// Largest value.
    Largest,
    /// Standard deviation of the windows divided by their mean: how unsteady the quantity is.
    Variation,
}

impl Take {
    fn of(self, values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        match self {
            Take::Mean => mean,
            Take::Smallest => values.iter().copied().reduce(f64::min).unwrap_or(f64::NAN),
            Take::Largest => values.iter().copied().reduce(f64::max).unwrap_or(f64::NAN),
            Take::Variation => {
                let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
                (squares / (n - 1.0)).sqrt() / mean
            }
        }
    }
}

/// Flows that a quantity is taken of.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum FlowChoice {
    /// The flow with this number, counted from 0.
    Number(usize),
    /// All flows, combined.
    All(Together),
}

/// How the values of the flows of a record are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Together {
    /// One value for each flow, for bars and distributions. In a term, `#n` selects one flow.
    Each,
    /// Sum of the flows.
    Sum,
    /// Mean of the flows.
    Mean,
    /// Smallest value of a flow.
    Min,
    /// Largest value of a flow.
    Max,
    /// Jain's index of the flows.
    Jain,
}

/// Entry of [`STANDARD`]: id, title, unit, field, scale, flows.
type Standard = (&'static str, &'static str, &'static str, &'static str, f64, Option<Together>);

/// Metrics that a file can use without defining them.
const STANDARD: &[Standard] = &[
    ("goodput", "goodput", "kbit/s", "aggregate_goodput_bps", 1e-3, None),
    ("flow-goodput", "goodput of each flow", "kbit/s", "flows.goodput_bps", 1e-3, Some(Together::Each)),
    ("share", "share of the goodput", "%", "flows.share", 100.0, Some(Together::Each)),
    ("least-share", "smallest share of the goodput", "%", "flows.share", 100.0, Some(Together::Min)),
    ("largest-share", "largest share of the goodput", "%", "flows.share", 100.0, Some(Together::Max)),
    ("jain", "Jain's index", "", "jain", 1.0, None),
    ("jain-2s", "Jain's index over 2 s", "", "jain_2s", 1.0, None),
    ("rtx", "retransmissions", "%", "retransmission_index", 100.0, None),
    ("timeouts", "timeouts", "", "flows.timeouts", 1.0, Some(Together::Sum)),
    ("rtt", "RTT", "ms", "flows.rtt_mean_s", 1e3, Some(Together::Mean)),
    ("cov", "coefficient of variation of the RTT", "", "flows.cov_rtt", 1.0, Some(Together::Mean)),
    (
        "averaged-goodput",
        "aggregate averaged goodput",
        "kbit/s",
        "flows.averaged_goodput_bps",
        1e-3,
        Some(Together::Sum),
    ),
    (
        "averaged-jain",
        "Jain's index of the averaged goodputs",
        "",
        "flows.averaged_goodput_bps",
        1.0,
        Some(Together::Jain),
    ),
    ("download-delay", "mean download delay", "s", "flows.download_delay_s", 1.0, Some(Together::Mean)),
    ("goodput-over-time", "goodput", "kbit/s", "series.goodput_bps", 1e-3, Some(Together::Each)),
    ("cov-over-time", "coefficient of variation of the RTT", "", "series.cov_rtt", 1.0, Some(Together::Each)),
    ("rtt-over-time", "RTT", "ms", "series.rtt_mean_s", 1e3, Some(Together::Each)),
    ("interval-over-time", "sending interval", "ms", "series.interval_s", 1e3, Some(Together::Each)),
    ("jain-over-time", "Jain's index", "", "series.jain", 1.0, None),
];

/// Standard metric called `id`.
pub fn standard(id: &str) -> Option<Metric> {
    let (id, title, unit, field, scale, flow) = STANDARD.iter().find(|(name, ..)| *name == id)?;
    Some(Metric {
        id: (*id).to_owned(),
        title: (*title).to_owned(),
        unit: (*unit).to_owned(),
        field: (*field).to_owned(),
        scale: *scale,
        flow: flow.map(FlowChoice::All),
        window: None,
        take: Take::Mean,
        tolerance_pct: ten(),
    })
}

/// Names of fields whose values lie between 0 and 1.
const BOUNDED: [&str; 5] = ["share", "retransmission_index", "collision_probability", "air_time", "airtime_share"];

/// Largest distance of a bounded quantity from a published number at which it is reproduced, as a
/// fraction of the largest possible value. It is a tenth of the range of Jain's index of two flows,
/// which goes from 0.5 to 1.
pub const NEAR: f64 = 0.05;

/// Quantities that are computed from a flow and are not fields of its record.
const OF_FLOWS: [&str; 3] = ["share", "averaged_goodput_bps", "download_delay_s"];

impl Metric {
    /// Title of the metric, with its unit.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{}, {}", self.title, self.unit) }
    }

    /// Returns whether the metric is taken from the time series.
    pub fn is_series(&self) -> bool {
        self.field.starts_with("series.") || self.field.starts_with("links.")
    }

    /// Largest possible value of a bounded quantity, in the metric's unit. Bounded quantities are
    /// indices, shares and ratios, which are at most 1. `None` for all other quantities.
    pub fn top(&self) -> Option<f64> {
        let field = self.field.rsplit('.').next().unwrap_or_default();
        let is_bounded = BOUNDED.contains(&field) || self.is_index();
        (is_bounded && self.take != Take::Variation).then_some(self.scale.abs())
    }

    /// Returns whether the metric is Jain's index of any quantity.
    pub fn is_index(&self) -> bool {
        ["jain", "jain_2s", "series.jain"].contains(&self.field.as_str())
            || self.flow == Some(FlowChoice::All(Together::Jain))
    }

    /// Largest distance from `number` that counts as near: `pct` per cent of it. For a bounded
    /// quantity the distance is at most [`NEAR`] of the largest possible value.
    pub fn reach(&self, number: f64, pct: f64) -> f64 {
        let relative = pct / 100.0 * number.abs();
        self.top().map_or(relative, |top| relative.min(NEAR * top))
    }

    /// Returns whether the metric is Jain's index of a record with one flow. That index is always
    /// 1.
    pub fn is_of_one_flow<'a>(&self, observed: impl Into<Observed<'a>>) -> bool {
        self.is_index() && observed.into().flows().len() == 1
    }

    /// Returns whether a record has one value of the metric for each flow.
    pub fn is_of_each(&self) -> bool {
        self.flow == Some(FlowChoice::All(Together::Each))
    }

    /// Checks the definition of the metric.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn check(&self) -> Result<(), String> {
        self.check_field()?;
        let of_flows = self.field.starts_with("flows.") || self.is_series() && self.field != "series.jain";
        if of_flows != self.flow.is_some() {
            let needed = if of_flows { "needs" } else { "has no use for" };
            return Err(format!(
                "metric {}: the field {} {needed} `flow`: a number, or \"each\", \"sum\", \"mean\", \"min\", \"max\", \"jain\"",
                self.id, self.field
            ));
        }
        if (self.window.is_some() || self.take != Take::Mean) && !self.is_series() {
            return Err(format!(
                "metric {}: `window` and `take` are for fields of the time series, series.* and links.*",
                self.id
            ));
        }
        match self.window {
            Some([from, to]) if from.is_nan() || to.is_nan() || from >= to => {
                Err(format!("metric {}: the window [{from}, {to}] is empty", self.id))
            }
            _ if !self.scale.is_finite() => Err(format!("metric {}: `scale` is no number", self.id)),
            _ => Ok(()),
        }
    }

    /// Checks that records have the field.
    fn check_field(&self) -> Result<(), String> {
        let (of, derived, field): (Of, &[&str], &str) = match self.field.split_once('.') {
            Some(("flows", field)) => (Of::Flow, &OF_FLOWS, field),
            Some(("series", field)) => (Of::Series, &["jain"], field),
            Some(("links", field)) => (Of::Link, &[], field),
            _ => (Of::Run, &[], &self.field),
        };
        let known: Vec<&str> = fields::numeric(of).chain(derived.iter().copied()).collect();
        if known.contains(&field) {
            return Ok(());
        }
        let near = meshpace_scenario::nearest(field, known.iter().copied());
        let near = near.map(|near| format!("; {near} is near")).unwrap_or_default();
        Err(format!("metric {}: records have no number called {}{near}", self.id, self.field))
    }

    /// Value of the metric in `record`, or in one batch of it. `flow` selects one flow if it is
    /// given. `None` if there is no value.
    pub fn of<'a>(&self, observed: impl Into<Observed<'a>>, flow: Option<usize>) -> Option<f64> {
        let observed = observed.into();
        if self.is_of_one_flow(observed) {
            return None;
        }
        let value = match self.parts(observed)? {
            Parts::Whole(value) => value,
            Parts::Flows(values) => match (flow, self.flow?) {
                (Some(number), _) | (None, FlowChoice::Number(number)) => *values.get(number)?,
                (None, FlowChoice::All(together)) => together.of(&values)?,
            },
        };
        Some(value * self.scale).filter(|value| value.is_finite())
    }

    /// Value of the metric for each flow.
    pub fn of_each(&self, record: &Record) -> Vec<f64> {
        match self.parts(record.into()) {
            Some(Parts::Flows(values)) => values.into_iter().map(|value| value * self.scale).collect(),
            Some(Parts::Whole(value)) => vec![value * self.scale],
            None => Vec::new(),
        }
    }

    /// Values of the metric against time in seconds, one list for each flow. A quantity of all
    /// flows together gives a single list.
    pub fn over_time(&self, record: &Record) -> Vec<Vec<(f64, f64)>> {
        let Some((series, field)) = Series::of(record.into(), &self.field) else { return Vec::new() };
        let curve = |values: Vec<Option<f64>>| {
            let point = |(number, value): (usize, Option<f64>)| Some((series.middle(number), value? * self.scale));
            values.into_iter().enumerate().filter_map(point).collect()
        };
        if field == "jain" {
            return vec![curve(series.jain())];
        }
        (0..series.len()).map(|flow| curve(series.values(flow, field))).collect()
    }

    fn parts(&self, observed: Observed<'_>) -> Option<Parts> {
        if let Some(field) = self.field.strip_prefix("flows.") {
            let flows = observed.flows();
            let all: f64 = flows.iter().map(|flow| flow.goodput_bps()).filter(|goodput| !goodput.is_nan()).sum();
            return Some(Parts::Flows(flows.iter().map(|flow| flow.quantity(field, all)).collect()));
        }
        if !self.is_series() {
            return observed.number(&self.field).map(Parts::Whole);
        }
        let (series, field) = Series::of(observed, &self.field)?;
        let taken = |values: Vec<Option<f64>>| {
            let within: Vec<f64> = values
                .into_iter()
                .enumerate()
                .filter(|(number, _)| series.is_within(*number, self.window))
                .filter_map(|(_, value)| value)
                .collect();
            self.take.of(&within)
        };
        if field == "jain" {
            return Some(Parts::Whole(taken(series.jain())));
        }
        Some(Parts::Flows((0..series.len()).map(|flow| taken(series.values(flow, field))).collect()))
    }
}

/// Values of a field: one of the whole record, or one of each flow.
enum Parts {
    Whole(f64),
    Flows(Vec<f64>),
}

impl Together {
    fn of(self, values: &[f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        let sum = || values.iter().sum::<f64>();
        Some(match self {
            Together::Each => return None,
            Together::Sum => sum(),
            Together::Mean => sum() / values.len() as f64,
            Together::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Together::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Together::Jain => crate::statistics::jain(values),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Record {
        crate::record::record(json!({
            "aggregate_goodput_bps": 4000.0, "jain": null,
            "flows": [
                {"goodput_bps": 3000.0, "delivered_bytes": 1000, "transferring_s": 4.0,
                 "completions": [{"start_s": 1.0, "end_s": 2.0}, {"start_s": 3.0, "end_s": 6.0}]},
                {"goodput_bps": 1000.0, "delivered_bytes": 500, "transferring_s": 0.0, "completions": []},
            ],
            "series": {"start_s": 0.0, "window_s": 2.0, "flows": [
                {"goodput_bps": [10.0, 20.0, 30.0, 0.0], "cov_rtt": [null, 0.2, 0.4, null]},
                {"goodput_bps": [10.0, 0.0, 30.0, 0.0], "cov_rtt": [null, null, null, null]},
            ], "links": [{"air_time": [0.5, null, 0.3, 0.1]}]},
        }))
    }

    fn value(id: &str, flow: Option<usize>) -> Option<f64> {
        standard(id).unwrap().of(&record(), flow)
    }

    #[test]
    fn every_standard_metric_is_defined_rightly() {
        for (id, ..) in STANDARD {
            assert_eq!(standard(id).unwrap().check(), Ok(()), "{id}");
        }
        assert_eq!(standard("nothing"), None);
    }

    #[test]
    fn fields_of_the_record_and_of_flows() {
        assert_eq!(value("goodput", None), Some(4.0));
        assert_eq!(value("jain", None), None, "not measured");
        assert_eq!((value("share", Some(0)), value("least-share", None)), (Some(75.0), Some(25.0)));
        assert_eq!(value("share", None), None, "which flow?");
        assert_eq!(standard("share").unwrap().of_each(&record()), [75.0, 25.0]);
        // Files took 1 s and 3 s; 1000 bytes in 4 s of transferring; the second flow transferred nothing.
        let delay = Metric { flow: Some(FlowChoice::Number(0)), ..standard("download-delay").unwrap() };
        assert_eq!(delay.of(&record(), None), Some(2.0));
        assert_eq!(value("averaged-goodput", Some(0)), Some(2.0));
        assert_eq!(value("averaged-goodput", None), None);
    }

    #[test]
    fn windows_of_the_series() {
        let goodput = Metric { window: Some([2.0, 6.0]), scale: 1.0, ..standard("goodput-over-time").unwrap() };
        assert_eq!((goodput.of(&record(), Some(0)), goodput.of(&record(), Some(1))), (Some(25.0), Some(15.0)));
        let cov = standard("cov-over-time").unwrap();
        assert!((cov.of(&record(), Some(0)).unwrap() - 0.3).abs() < 1e-12, "windows without a sample do not count");
        assert_eq!(cov.of(&record(), Some(1)), None);
        assert_eq!(cov.over_time(&record())[0], [(3.0, 0.2), (5.0, 0.4)]);
        // Of 20 and 30 the mean is 25 and the standard deviation the root of 50.
        let take = |take| Metric { take, ..goodput.clone() }.of(&record(), Some(0));
        assert_eq!((take(Take::Smallest), take(Take::Largest)), (Some(20.0), Some(30.0)));
        assert!((take(Take::Variation).unwrap() - 50f64.sqrt() / 25.0).abs() < 1e-12);
        let air = Metric { field: "links.air_time".into(), flow: Some(FlowChoice::Number(0)), ..goodput.clone() };
        assert_eq!(air.of(&record(), None), Some(0.3));
        // Jain's index: 1, 0.5, 1 and a window in which nothing arrived.
        assert_eq!(standard("jain-over-time").unwrap().over_time(&record()), [[(1.0, 1.0), (3.0, 0.5), (5.0, 1.0)]]);
        assert!((value("jain-over-time", None).unwrap() - 2.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_definition_without_sense_is_refused() {
        let metric = |change: fn(&mut Metric)| {
            let mut metric = standard("share").unwrap();
            change(&mut metric);
            metric.check()
        };
        assert!(metric(|metric| metric.flow = None).is_err());
        assert!(metric(|metric| metric.window = Some([1.0, 2.0])).is_err());
        assert!(metric(|metric| metric.field = "jain".into()).is_err());
        let misspelt = metric(|metric| (metric.field, metric.flow) = ("idle_windowz".into(), None));
        assert!(misspelt.as_ref().is_err_and(|why| why.contains("idle_windows is near")), "{misspelt:?}");
        assert!(metric(|metric| metric.field = "flows.transport".into()).is_err(), "no number");
    }
}
