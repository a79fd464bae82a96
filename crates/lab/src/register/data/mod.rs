//! The published results of one experiment, as a file has them: `scenarios/<paper>/<number>.published.toml`. The page
//! `docs/register.md` describes the format for people who write such files.

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

/// Publication of one figure, table or statement, and how each part is held against records.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The id: the paper's tag, a dash, and F, T or X with a number.
    pub id: String,
    /// Its title, in one line.
    pub title: String,
    /// Paper, section, figure.
    pub source: String,
    /// The paper's DOI, such as "10.1000/182"; without it that of the list of all experiments.
    #[serde(default)]
    pub doi: Option<String>,
    /// The paper's page at its publisher, from the list of all experiments.
    #[serde(skip)]
    pub page: Option<String>,
    /// The experiment whose runs these are too; without it, the scenario beside this file.
    #[serde(default)]
    pub runs: Option<String>,
    /// Reason why nothing can be run or judged at all; then there is no scenario.
    #[serde(default)]
    pub unjudged: Option<String>,
    /// Notes for the reader: readings taken, what was tried.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Finding where a claim differs: what was tried, which assumption decides it.
    #[serde(default)]
    pub finding: Option<String>,
    /// Sentence for those who read only the end of the command or the top of the page, in a sentence.
    #[serde(default)]
    pub caution: Option<String>,
    /// Cause of differences, where a claim does not have its own.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// The readings of the paper that were tried, with what they gave.
    #[serde(rename = "reading", default)]
    pub readings: Vec<Reading>,
    /// Whole readings beside the one that counts: every claim that they change is shown for them too, and counts for nothing.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// Amount of runs at each quality.
    #[serde(default)]
    pub quality: Qualities,
    /// Confidence level of the published half widths and of ours, 0.95 by default.
    #[serde(default = "usual_level")]
    pub level: f64,
    /// Whether runs of the same seed are compared with each other. For scenarios in which a seed draws the places of the
    /// nodes, their movement or the ends of the flows: these then differ far more than what is compared on them.
    #[serde(default)]
    pub paired: bool,
    /// The key of the sweep that is the horizontal axis.
    #[serde(default)]
    pub x: Option<Axis>,
    /// Variants of the scenario shown side by side, the paper's own first.
    #[serde(rename = "panel", default)]
    pub panels: Vec<Panel>,
    /// The curves of a figure, or the rows of a table.
    #[serde(rename = "curve", default)]
    pub curves: Vec<Curve>,
    /// Quantities besides the standard ones, or instead of them.
    #[serde(rename = "metric", default)]
    pub metrics: Vec<Metric>,
    /// Figures, in this order.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
    /// Decomposition of the gain of one curve over another.
    #[serde(default)]
    pub decomposition: Option<Decomposition>,
    /// Published numbers by curve and metric.
    #[serde(default)]
    pub published: BTreeMap<String, BTreeMap<String, Numbers>>,
    /// The statements.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// A reading of the paper that was tried where a claim differs.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The part that is read otherwise than in the runs that count, with its keys.
    pub what: String,
    /// The numbers it gave, beside the published ones.
    pub result: String,
    /// Whether this is the measurement that decided the cause.
    #[serde(default)]
    pub decides: bool,
}

/// A whole reading of a paper beside the one that counts.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Title for people: "as printed".
    pub title: String,
    /// For curves of the reading that counts, the curve that this one has in their place.
    pub curves: BTreeMap<String, String>,
}

fn usual_level() -> f64 {
    0.95
}

/// Amount of runs at each quality.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qualities {
    /// In minutes for everything.
    #[serde(default)]
    pub quick: Quality,
    /// As much as the papers had.
    #[serde(default)]
    pub paper: Quality,
}

/// Amount of runs.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quality {
    /// Seeds per point; without, the scenario's own.
    #[serde(default)]
    pub seeds: Option<u64>,
    /// Arguments as of `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Values of the sweep that are run, by key; a key that is missing keeps all of its values.
    #[serde(default)]
    pub only: Map<String, Value>,
    /// More seeds until an interval is narrow enough.
    #[serde(default)]
    pub until: Option<Until>,
    /// Factor of the seeds for a point of a claim that cannot be told, 1 or more; without, 1 at quick quality and 4 at paper quality.
    #[serde(default)]
    pub times: Option<NonZeroU64>,
}

/// A rule of replication: the smallest number of seeds, counted from the first, with which the interval of a quantity is
/// narrow enough. (TPA, section 4.1: 5 replications at least, half width of the 90 % interval within 10 % of the mean.)
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The metric.
    pub metric: String,
    /// Half width of the interval over the mean, per cent.
    pub within_pct: f64,
    /// The most seeds of a point.
    pub most: u64,
}

/// The horizontal axis.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The key in the sweep. A value with a unit counts by its number.
    pub key: String,
    /// Its label, with the unit.
    pub title: String,
}

/// A variant of the scenario.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// A short name.
    pub id: String,
    /// A title for people.
    pub title: String,
    /// Note on its use.
    #[serde(default)]
    pub note: String,
    /// Values of the sweep that its records have.
    pub point: Map<String, Value>,
}

/// A curve, or the row of a table.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Its name in terms. Colour and marker go by it.
    pub id: String,
    /// Label for people, if it is not the usual one of `id`.
    #[serde(default)]
    pub label: Option<String>,
    /// The transport whose colour and marker it has, if they are not those of `id`.
    #[serde(default)]
    pub look: Option<String>,
    /// Values of the sweep that its records have; without it and `tuned`, `flow.transport` is the id.
    #[serde(default)]
    pub point: Option<Map<String, Value>>,
    /// The curve whose published numbers it is another reading of; it counts for nothing else.
    #[serde(default)]
    pub reading_of: Option<String>,
    /// The curve is, at every x, the best of several runs.
    #[serde(default)]
    pub tuned: Option<Tuned>,
}

/// A parameter that is tuned at every x: the value with the highest mean of the first metric counts.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuned {
    /// The name in `flow.transport` of the runs it is chosen from.
    pub transport: String,
    /// The parameter, as a path such as "/window/segments" into `flow.transport`.
    pub parameter: String,
    /// The parameter for people, with its unit.
    pub noun: String,
}

/// Something drawn.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Kind of the figure.
    pub kind: FigureKind,
    /// Above it; the metric's title without.
    #[serde(default)]
    pub title: Option<String>,
    /// One plot, or one column of a table, for each.
    pub metrics: Vec<String>,
    /// Only these curves.
    #[serde(default)]
    pub curves: Vec<String>,
    /// Logarithmic vertical axis: equal distances are equal ratios.
    #[serde(default)]
    pub log: bool,
    /// Curves against x are drawn as their ratio to this one.
    #[serde(default)]
    pub over: Option<String>,
    /// Only these panels.
    #[serde(default)]
    pub panels: Vec<String>,
}

/// Kind of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A metric against x, one curve each, with intervals.
    Curves,
    /// One bar for each flow, grouped by curve, with intervals.
    Bars,
    /// A quantity of each flow against time in the run of the first seed.
    Time,
    /// The share of samples (runs, or flows of an "each" metric) below a value.
    Cdf,
    /// Rows are curves; columns are the metrics, each for every x. Published numbers stand beside ours.
    Table,
}

/// A gain taken apart into factors, by panels each of which adds one cause.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decomposition {
    /// The curves that gain, each for itself.
    pub of: Vec<String>,
    /// The curve that they are compared with.
    pub over: String,
    /// The causes; the panel of the last has all of them.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
}

/// A cause of a gain.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The panel that has it besides those before.
    pub panel: String,
    /// Its name.
    pub noun: String,
    /// Its meaning.
    pub meaning: String,
}

/// Published numbers of a curve and metric.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    /// Without an x axis.
    One(Number),
    /// By x as the sweep writes it.
    ByX(BTreeMap<String, Number>),
}

/// A published number: `292.0`, or `[292.0, 1.4]` with its half width.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A mean alone.
    Mean(f64),
    /// A mean and the half width of its interval.
    Interval([f64; 2]),
}

impl Number {
    /// The mean.
    pub fn mean(self) -> f64 {
        match self {
            Number::Mean(mean) | Number::Interval([mean, _]) => mean,
        }
    }

    /// The half width; zero if none was published.
    pub fn half_width(self) -> f64 {
        match self {
            Number::Mean(_) => 0.0,
            Number::Interval([_, half]) => half,
        }
    }
}

/// A statement of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement.
    pub text: String,
    /// Where it is made; the experiment's source without.
    #[serde(default)]
    pub source: Option<String>,
    /// Its check.
    pub check: Check,
    /// Curves put in the place of the curve of the check's first term: other readings of it, shown but not counted.
    #[serde(default)]
    pub also: Vec<String>,
    /// The panel that counts; the first without.
    #[serde(default)]
    pub panel: Option<String>,
    /// Cause of its difference; the experiment's cause without.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// The same in a short sentence, for the end of the command and the top of the page; the cause in words without.
    #[serde(default)]
    pub why: Option<String>,
}
