//! Format of the published results of one experiment: the file
//! `scenarios/<paper>/<number>.published.toml`. The page `docs/register.md` describes the format
//! for people who write such files.

mod cause;
mod check;
mod metric;
mod observed;
mod term;

pub use cause::Cause;
pub use check::{At, Bound, Check, Range};
pub use metric::{FlowChoice, Metric, NEAR, Take, Together, standard};
pub use observed::Observed;
pub use term::Term;

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Published results of one figure, table or statement, and how each part is compared with records.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Id of the experiment: the paper's tag, a dash, and F, T or X with a number.
    pub id: String,
    /// Title of the experiment, in one line.
    pub title: String,
    /// Source of the results: paper, section, figure.
    pub source: String,
    /// DOI of the paper, such as "10.1000/182". Without it, the DOI in the list of all experiments
    /// is used.
    #[serde(default)]
    pub doi: Option<String>,
    /// Page of the paper at its publisher, from the list of all experiments.
    #[serde(skip)]
    pub page: Option<String>,
    /// Id of the experiment whose runs also serve for this one. Without it, the scenario beside
    /// this file is run.
    #[serde(default)]
    pub runs: Option<String>,
    /// Reason why nothing can be run or judged at all. There is no scenario then.
    #[serde(default)]
    pub unjudged: Option<String>,
    /// Notes for the reader: which readings of the paper were chosen, what was tried.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Finding where a claim differs: what was tried, and which assumption decides it.
    #[serde(default)]
    pub finding: Option<String>,
    /// Warning in one sentence, for those who read only the end of the command's output or the top
    /// of the page.
    #[serde(default)]
    pub caution: Option<String>,
    /// Cause of the differences, for claims that have no cause of their own.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Readings of the paper that were tried, with their results.
    #[serde(rename = "reading", default)]
    pub readings: Vec<Reading>,
    /// Whole readings beside the one that counts. Every claim that such a reading changes is also
    /// shown for that reading, but counts for nothing there.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// Amount of runs at each quality.
    #[serde(default)]
    pub quality: Qualities,
    /// Confidence level of the published half widths and of ours. Default 0.95.
    #[serde(default = "usual_level")]
    pub level: f64,
    /// Whether runs of the same seed are compared in pairs. This is for scenarios in which a seed
    /// draws the places of the nodes, their movement or the ends of the flows. Results then differ
    /// far more between seeds than between the variants that are compared.
    #[serde(default)]
    pub paired: bool,
    /// Key of the sweep that is the horizontal axis.
    #[serde(default)]
    pub x: Option<Axis>,
    /// Variants of the scenario that are shown side by side, the paper's own first.
    #[serde(rename = "panel", default)]
    pub panels: Vec<Panel>,
    /// Curves of a figure, or rows of a table.
    #[serde(rename = "curve", default)]
    pub curves: Vec<Curve>,
    /// Metrics that are defined in addition to the standard ones, or in place of them.
    #[serde(rename = "metric", default)]
    pub metrics: Vec<Metric>,
    /// Figures, in the order in which they are shown.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
    /// Decomposition of the gain of one curve over another.
    #[serde(default)]
    pub decomposition: Option<Decomposition>,
    /// Published numbers, by curve and metric.
    #[serde(default)]
    pub published: BTreeMap<String, BTreeMap<String, Numbers>>,
    /// Statements of the paper that are judged.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// Reading of the paper that was tried because a claim differs.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Part of the paper that is read in another way than in the runs that count, with its keys.
    pub what: String,
    /// Numbers that the reading gave, beside the published ones.
    pub result: String,
    /// Whether this is the measurement that decided the cause.
    #[serde(default)]
    pub decides: bool,
}

/// Whole reading of a paper beside the one that counts.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Title of the reading for people, such as "as printed".
    pub title: String,
    /// Curves that this reading has in place of those of the reading that counts, by the id of the
    /// latter.
    pub curves: BTreeMap<String, String>,
}

fn usual_level() -> f64 {
    0.95
}

/// Amount of runs at each quality.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qualities {
    /// Quality at which all experiments together take minutes.
    #[serde(default)]
    pub quick: Quality,
    /// Quality with as many runs as in the papers.
    #[serde(default)]
    pub paper: Quality,
}

/// Amount of runs at one quality.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quality {
    /// Seeds per point. Without it, the scenario's own number of seeds is used.
    #[serde(default)]
    pub seeds: Option<u64>,
    /// Assignments to keys of the scenario, in the form of the arguments of `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Values of the sweep that are run, by key. A key that is missing keeps all of its values.
    #[serde(default)]
    pub only: Map<String, Value>,
    /// Rule by which a point gets more seeds until an interval is narrow enough.
    #[serde(default)]
    pub until: Option<Until>,
    /// Largest factor of the seeds of a point whose claim cannot be told, 1 or more. Default: 1 at
    /// quick quality and 4 at paper quality.
    #[serde(default)]
    pub times: Option<NonZeroU64>,
}

/// Rule of replication: a point gets the smallest number of seeds, counted from the first seed,
/// with which the confidence interval of a metric is narrow enough. TPA, section 4.1: at least 5
/// replications, half width of the 90 % interval within 10 % of the mean.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Id of the metric.
    pub metric: String,
    /// Largest half width of the interval, in per cent of the mean.
    pub within_pct: f64,
    /// Largest number of seeds of a point.
    pub most: u64,
}

/// Horizontal axis.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Key in the sweep. Of a value with a unit, only the number counts.
    pub key: String,
    /// Label of the axis, with the unit.
    pub title: String,
}

/// Variant of the scenario.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Short name.
    pub id: String,
    /// Title for people.
    pub title: String,
    /// Note on the use of the panel.
    #[serde(default)]
    pub note: String,
    /// Values of the sweep that the records of this panel have.
    pub point: Map<String, Value>,
}

/// Curve of a figure, or row of a table.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Name of the curve in terms. Colour and marker depend on it.
    pub id: String,
    /// Label for people, if it is not the usual label of `id`.
    #[serde(default)]
    pub label: Option<String>,
    /// Transport whose colour and marker the curve has, if they are not those of `id`.
    #[serde(default)]
    pub look: Option<String>,
    /// Values of the sweep that the records of this curve have. If both this and `tuned` are
    /// missing, the records are those whose `flow.transport` is `id`.
    #[serde(default)]
    pub point: Option<Map<String, Value>>,
    /// Id of the curve with the published numbers of which this curve is another reading. The curve
    /// counts for no verdict.
    #[serde(default)]
    pub reading_of: Option<String>,
    /// Parameter that is tuned: at every x the curve is the best of several runs.
    #[serde(default)]
    pub tuned: Option<Tuned>,
}

/// Parameter that is tuned at every x. The value with the highest mean of the first metric is
/// chosen.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuned {
    /// Name in `flow.transport` of the runs among which the value is chosen.
    pub transport: String,
    /// Parameter, as a path such as "/window/segments" into `flow.transport`.
    pub parameter: String,
    /// Name of the parameter for people, with its unit.
    pub noun: String,
}

/// Figure or table of the experiment's page.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Kind of the figure.
    pub kind: FigureKind,
    /// Title above the figure. Without it, the metric's title is used.
    #[serde(default)]
    pub title: Option<String>,
    /// Metrics that are shown: one plot, or one column of a table, for each.
    pub metrics: Vec<String>,
    /// Curves that are shown. An empty list means all.
    #[serde(default)]
    pub curves: Vec<String>,
    /// Whether the vertical axis is logarithmic. Equal distances are then equal ratios.
    #[serde(default)]
    pub log: bool,
    /// Curve to which the curves against x are drawn as a ratio.
    #[serde(default)]
    pub over: Option<String>,
    /// Panels that are shown. An empty list means all.
    #[serde(default)]
    pub panels: Vec<String>,
}

/// Kind of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A metric against x with intervals, as one line for each curve.
    Curves,
    /// One bar for each flow, grouped by curve, with intervals.
    Bars,
    /// A quantity of each flow against time, in the run of the first seed.
    Time,
    /// Share of the samples that are below a value. Samples are runs, or flows for a metric that is
    /// taken of each flow.
    Cdf,
    /// Table whose rows are the curves. Its columns are the metrics, each for every x; published
    /// numbers stand beside ours.
    Table,
}

/// Decomposition of a gain into factors. Each panel of a step adds one cause.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decomposition {
    /// Curves whose gain is decomposed, each separately.
    pub of: Vec<String>,
    /// Curve that they are compared with.
    pub over: String,
    /// Causes of the gain, one after the other. The panel of the last step has all of them.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
}

/// Cause of a gain.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Panel that has this cause in addition to the causes of the steps before.
    pub panel: String,
    /// Name of the cause.
    pub noun: String,
    /// Meaning of the cause.
    pub meaning: String,
}

/// Published numbers of a curve and metric.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    /// A single number, without an x axis.
    One(Number),
    /// Numbers by x, as the sweep writes it.
    ByX(BTreeMap<String, Number>),
}

/// Published number: `292.0`, or `[292.0, 1.4]` with its half width.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A mean alone.
    Mean(f64),
    /// A mean and the half width of its interval.
    Interval([f64; 2]),
}

impl Number {
    /// Published mean.
    pub fn mean(self) -> f64 {
        match self {
            Number::Mean(mean) | Number::Interval([mean, _]) => mean,
        }
    }

    /// Half width of the published interval. Zero if no half width was published.
    pub fn half_width(self) -> f64 {
        match self {
            Number::Mean(_) => 0.0,
            Number::Interval([_, half]) => half,
        }
    }
}

/// Statement of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Text of the statement.
    pub text: String,
    /// Place in the paper where the statement is made. Without it, the experiment's source.
    #[serde(default)]
    pub source: Option<String>,
    /// Check that judges the statement.
    pub check: Check,
    /// Curves that are other readings of the curve in the check's first term. The claim is also
    /// shown for each of them, but not counted.
    #[serde(default)]
    pub also: Vec<String>,
    /// Id of the panel in which the claim counts. Without it, the first panel.
    #[serde(default)]
    pub panel: Option<String>,
    /// Cause why the claim differs. Without it, the experiment's cause.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Cause in a short sentence, for the end of the command's output and the top of the page.
    /// Without it, the cause in words is used.
    #[serde(default)]
    pub why: Option<String>,
}
