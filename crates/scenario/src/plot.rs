//! `[plot]`: settings of the plots that `run --report` draws for a sweep. No key of this table
//! changes a run.

use super::reader::Reader;
use super::sweep::Sweep;
use super::{Source, overrides};
use meshpace_core::{Parameter, parameter};
use meshpace_settings::diagnostic::Problems;
use meshpace_settings::value::{Entry, Kind, Table, Value};
use meshpace_settings::{nearest, one_of};

/// Names that `plot.metrics` accepts; docs/records.md explains how each metric is calculated. Each
/// metric is drawn against the horizontal axis.
pub const METRICS: [&str; 16] = [
    "goodput",
    "jain",
    "jain-2s",
    "retransmissions",
    "loss",
    "timeouts",
    "rtt",
    "delay",
    "delay-median",
    "collisions",
    "mac-drops",
    "queue-drops",
    "frames",
    "starved",
    "longest-gap",
    "without-path",
];

static LOGARITHMIC: Parameter =
    parameter!(logarithmic: bool = false => FLAG, Basic, "whether the vertical axes are logarithmic");

static SHIFTED: Parameter = parameter!(shifted: bool = false => FLAG, Expert,
    "whether the points of several lines at one value of the horizontal axis stand side by side");

/// Settings of a scenario's plots.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plot {
    /// Swept key of the horizontal axis. `None` if the report chooses one.
    pub x: Option<String>,
    /// Swept keys whose values are distinguished by the lines of one plot. `None` means all but
    /// `x`. Each combination of the values of the remaining swept keys gets its own plots.
    pub lines: Option<Vec<String>>,
    /// Metrics that are drawn, from [`METRICS`]. `None` if the report chooses them.
    pub metrics: Option<Vec<&'static str>>,
    /// True if the vertical axes are logarithmic.
    pub logarithmic: bool,
    /// True if the points of several lines at the same x are drawn side by side.
    pub shifted: bool,
}

impl Plot {
    /// Reads the settings from the text of a scenario. The rest of the text is not checked, so that
    /// the records of a scenario that this version refuses can still be plotted. A wrong setting is
    /// left out; a text that is not TOML gives the defaults.
    pub fn from_source(source: &Source) -> Plot {
        let problems = Problems::default();
        let (document, errors) = toml::de::DeTable::parse_recoverable(&source.text);
        if !errors.is_empty() {
            return Plot::default();
        }
        let mut root = Table::from_toml(document.get_ref(), &super::Origin::File);
        overrides::apply(&mut root, &source.sets, &problems);
        let sweep = Sweep::take(&mut root, &problems);
        Plot::take(&mut root, &sweep, &source.sets, &problems)
    }

    /// Removes `[plot]` from the root table and checks it.
    pub(super) fn take(root: &mut Table, sweep: &Sweep, sets: &[String], problems: &Problems) -> Plot {
        let Some(Entry { value: Value { kind, origin }, .. }) = root.remove("plot") else { return Plot::default() };
        let Kind::Table(table) = kind else {
            problems.at(&origin, "plot: expected a table", "expected [plot]");
            return Plot::default();
        };
        let mut plot = Reader::new(&table, Some(&origin), "plot".to_owned(), problems);
        let swept = sweep.keys();
        let check_swept = |plot: &Reader<'_>, key: &'static str, name: &str| {
            // A key that `--set` fixes is no longer swept. It is ignored, and this is no error.
            let is_set = sets.iter().any(|set| set.split('=').next().map(str::trim) == Some(name));
            if !swept.contains(&name) && !is_set {
                let near = nearest(name, swept.iter().copied());
                let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
                let available = if swept.is_empty() { "there is no [sweep]".to_owned() } else { one_of(&swept) };
                plot.report_invalid(
                    key,
                    format!("\"{name}\" is not swept{hint}"),
                    format!("expected a key of [sweep]: {available}"),
                );
            }
            swept.contains(&name)
        };
        let x = plot.text("x").filter(|x| check_swept(&plot, "x", x)).map(str::to_owned);
        let lines = names(&mut plot, "lines");
        let lines = lines.map(|lines| {
            let mut lines: Vec<String> = lines.into_iter().filter(|name| check_swept(&plot, "lines", name)).collect();
            // The key on the horizontal axis cannot distinguish lines.
            lines.retain(|name| x.as_ref() != Some(name));
            lines
        });
        let metrics = names(&mut plot, "metrics").map(|chosen| {
            let metric = |name: &String| {
                let found = METRICS.iter().find(|metric| *metric == name).copied();
                if found.is_none() {
                    let near = nearest(name, METRICS).map(|near| format!("; did you mean \"{near}\"?"));
                    let message = format!("there is no metric \"{name}\"{}", near.unwrap_or_default());
                    plot.report_invalid("metrics", message, format!("expected {}", one_of(&METRICS)));
                }
                found
            };
            chosen.iter().filter_map(metric).collect()
        });
        let (logarithmic, shifted) = (plot.standalone(&LOGARITHMIC), plot.standalone(&SHIFTED));
        plot.finish("a plot");
        Plot { x, lines, metrics, logarithmic, shifted }
    }
}

/// Reads a list of at least one string; anything else is reported.
fn names(plot: &mut Reader<'_>, key: &'static str) -> Option<Vec<String>> {
    let value = plot.get(key)?;
    let name = |value: &Value| if let Kind::String(text) = &value.kind { Some(text.clone()) } else { None };
    let names = match &value.kind {
        Kind::Array(items) if !items.is_empty() => items.iter().map(name).collect::<Option<Vec<String>>>(),
        _ => None,
    };
    if names.is_none() {
        let example = if key == "lines" { "[\"flow.transport\"]" } else { "[\"goodput\", \"jain\"]" };
        plot.report_invalid(
            key,
            format!("expected a list of names, found {}", value.describe()),
            format!("expected such as {example}"),
        );
    }
    names
}
