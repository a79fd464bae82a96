//! `[plot]`: settings of the plots that `run --report` draws for a sweep. No key of this table
//! changes a run.

use super::reader::Reader;
use super::sweep::Sweep;
use super::{PART, Source, overrides};
use meshpace_core::{Parameter, parameter};
use meshpace_settings::diagnostic::Problems;
use meshpace_settings::value::{Entry, Kind, Table, Value};
use meshpace_settings::{nearest, one_of};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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
    "whether the points of several lines at one value of the horizontal axis are drawn side by side");

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
    /// Titles of figures by the name of their metric.
    pub titles: BTreeMap<String, String>,
    /// What figures and tables for papers call a metric, a swept key, or a value that tells lines apart.
    pub labels: BTreeMap<String, String>,
    /// Colours of lines by what they are called in the records, as "#rrggbb".
    pub colours: BTreeMap<String, String>,
    /// Width of a figure, inches.
    pub width: Option<f64>,
    /// Height of a figure, inches.
    pub height: Option<f64>,
}

/// Names for widths of figures: a column and a page of two columns (IEEE, ACM), inches.
const WIDTHS: [(&str, f64); 2] = [("column", 3.5), ("page", 7.16)];
/// Widths that a figure may have, inches. The smallest letters of a plot of a page are 12 units high,
/// and the plot is 400 units wide: at 3.25 inches they have 7 pt, the least that publishers accept.
pub const FIGURE_WIDTHS: RangeInclusive<f64> = 3.25..=40.0;
/// Heights that a figure may have, inches.
const HEIGHTS: RangeInclusive<f64> = 1.0..=40.0;

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
        if root.get(PART).is_some() {
            // The keys that the parts sweep stand in their own files.
            return Plot::take_joint(&root, None, &source.sets, &problems);
        }
        overrides::apply(&mut root, &source.sets, &problems);
        let sweep = Sweep::take(&mut root, &problems);
        Plot::take(&mut root, Some(&sweep.keys()), &source.sets, &problems)
    }

    /// Reads the settings of a campaign of several scenarios, whose tree is `root`.
    pub(super) fn take_joint(root: &Table, swept: Option<&[&str]>, sets: &[String], problems: &Problems) -> Plot {
        let mut root = root.clone();
        let sets: Vec<String> = sets.iter().filter(|set| is_plot(set)).cloned().collect();
        overrides::apply(&mut root, &sets, problems);
        Plot::take(&mut root, swept, &sets, problems)
    }

    /// Removes `[plot]` from the root table and checks it.
    pub(super) fn take(root: &mut Table, swept: Option<&[&str]>, sets: &[String], problems: &Problems) -> Plot {
        let Some(Entry { value: Value { kind, origin }, .. }) = root.remove("plot") else { return Plot::default() };
        let Kind::Table(table) = kind else {
            problems.at(&origin, "plot: expected a table", "expected [plot]");
            return Plot::default();
        };
        let mut plot = Reader::new(&table, Some(&origin), "plot".to_owned(), problems);
        let check_swept = |plot: &Reader<'_>, key: &'static str, name: &str| {
            let Some(swept) = swept else { return true };
            // A key that --set fixes is no longer swept. It is ignored without an error.
            let is_set = sets.iter().any(|set| set.split('=').next().map(str::trim) == Some(name));
            if !swept.contains(&name) && !is_set {
                let near = nearest(name, swept.iter().copied());
                let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
                let available = if swept.is_empty() { "the scenario has no [sweep]".to_owned() } else { one_of(swept) };
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
        let metrics = names(&mut plot, "metrics");
        let metrics = metrics.map(|chosen| chosen.iter().filter_map(|name| metric(&plot, "metrics", name)).collect());
        let mut titles = texts(&mut plot, "titles");
        titles.retain(|name, _| metric(&plot, "titles", name).is_some());
        let labels = texts(&mut plot, "labels");
        let mut colours = texts(&mut plot, "colours");
        colours.retain(|line, colour| is_colour(&plot, line, colour));
        let (width, height) = (size(&mut plot, "width"), size(&mut plot, "height"));
        let (logarithmic, shifted) = (plot.standalone(&LOGARITHMIC), plot.standalone(&SHIFTED));
        plot.finish("a plot");
        Plot { x, lines, metrics, logarithmic, shifted, titles, labels, colours, width, height }
    }

    /// What a figure calls a line or an axis: the label of the whole text, or else its parts with theirs.
    pub fn label(&self, text: &str) -> String {
        let label = |text: &str| self.labels.get(text).cloned();
        let parts = || text.split(", ").map(|part| label(part).unwrap_or_else(|| part.to_owned())).collect::<Vec<_>>();
        label(text).unwrap_or_else(|| parts().join(", "))
    }

    /// The colour of a line: that of its whole name in the records, or else of the first part that has one.
    pub fn colour(&self, line: &str) -> Option<&String> {
        self.colours.get(line).or_else(|| line.split(", ").find_map(|part| self.colours.get(part)))
    }
}

/// True for an argument of `--set` that changes plots.
pub(super) fn is_plot(set: &str) -> bool {
    set.split('=').next().is_some_and(|key| key.trim() == "plot" || key.trim().starts_with("plot."))
}

/// The metric of this name; another name is reported.
fn metric(plot: &Reader<'_>, key: &'static str, name: &str) -> Option<&'static str> {
    let found = METRICS.iter().find(|metric| **metric == name).copied();
    if found.is_none() {
        let near = nearest(name, METRICS).map(|near| format!("; did you mean \"{near}\"?"));
        let message = format!("there is no metric \"{name}\"{}", near.unwrap_or_default());
        plot.report_invalid(key, message, format!("expected {}", one_of(&METRICS)));
    }
    found
}

/// A table of texts; anything else is reported.
fn texts(plot: &mut Reader<'_>, key: &'static str) -> BTreeMap<String, String> {
    let Some(value) = plot.get(key) else { return BTreeMap::new() };
    let text = |entry: &Entry| match &entry.value.kind {
        Kind::String(text) if !text.chars().any(char::is_control) => Some((entry.key.clone(), text.clone())),
        _ => None,
    };
    let texts = match &value.kind {
        Kind::Table(table) => table.entries.iter().map(text).collect(),
        _ => None,
    };
    texts.unwrap_or_else(|| {
        let message = format!("expected a table of texts, found {}", value.describe());
        plot.report_invalid(key, message, "expected a table such as { newreno = \"...\" }");
        BTreeMap::new()
    })
}

/// True for "#rrggbb"; anything else is reported.
fn is_colour(plot: &Reader<'_>, line: &str, colour: &str) -> bool {
    let digits = colour.strip_prefix('#').filter(|digits| digits.len() == 6);
    let is_colour = digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if !is_colour {
        let message = format!("{line}: \"{colour}\" is not a colour");
        plot.report_invalid("colours", message, "expected six hexadecimal digits, such as \"#0072b2\"");
    }
    is_colour
}

/// A size in inches, or the name of a width; anything else is reported.
fn size(plot: &mut Reader<'_>, key: &'static str) -> Option<f64> {
    let value = plot.get(key)?;
    let size = match &value.kind {
        Kind::String(name) if key == "width" => {
            WIDTHS.iter().find(|(known, _)| known == name).map(|(_, inches)| *inches)
        }
        Kind::Integer(number) => Some(*number as f64),
        Kind::Float(number) => Some(*number),
        _ => None,
    };
    let (sizes, names, reason) = match key {
        "width" => (
            FIGURE_WIDTHS,
            "\"column\" (3.5 inches), \"page\" (7.16 inches), or ",
            "; the letters of a narrower figure would be smaller than 7 pt",
        ),
        _ => (HEIGHTS, "", ""),
    };
    let size = size.filter(|inches| sizes.contains(inches));
    if size.is_none() {
        let (least, most) = (sizes.start(), sizes.end());
        let message = format!("expected a size, found {}", value.describe());
        plot.report_invalid(key, message, format!("expected {names}inches from {least} to {most}{reason}"));
    }
    size
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
