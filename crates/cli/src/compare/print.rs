//! Output of `meshpace compare`, for people and for programs.

use super::{Compared, Format, Sides};
use crate::output::alarm;
use meshpace_lab::compare::{self, AtPoint, LEGEND, Line, Metric, Sentences, Side, cell, metric, ranking, ranking_of};
use meshpace_lab::record::excerpt::Excerpt;
use meshpace_lab::record::tally;
use meshpace_lab::robust::{Reading, Robust, Row, answer, starving, verdict};
use meshpace_lab::summary::{CORRECTED, PLUS_MINUS};
use serde::Serialize;
use serde_json::Value;

/// Reports starved flows before anything else. In Markdown the sentences begin the text; for the
/// other formats they go to standard error.
pub fn first(sentences: &[String], format: Format) -> String {
    if format != Format::Md {
        alarm(sentences);
        return String::new();
    }
    let line = |sentence: &String| format!("> {}\n>\n", tally::coloured(sentence, console::colors_enabled()));
    let text: String = sentences.iter().map(line).collect();
    text.trim_end_matches(">\n").to_owned() + if sentences.is_empty() { "" } else { "\n" }
}

/// JSON object of a metric of a pair, with the members that only some commands print.
#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    line: &'a Line,
    #[serde(skip_serializing_if = "Option::is_none")]
    variants: Option<[&'a str; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    robust: Option<Value>,
}

/// An object for each metric of each pair, in a line. `is_named`: with the names of the two.
pub fn json(compared: &[Compared<'_>], is_named: bool) -> impl Iterator<Item = String> {
    let lines = compared.iter().flat_map(|pair| pair.lines.iter().map(move |line| (pair, line)));
    lines.map(move |(pair, line)| {
        let variants = is_named.then_some(pair.names);
        let robust = pair.robust.map(|robust| robust.json(line.metric, pair.names));
        serde_json::to_string(&Object { line, variants, robust }).unwrap_or_default() + "\n"
    })
}

/// Columns of CSV for a metric.
pub const COLUMNS: &str =
    "metric,a,b,difference,low,high,seeds,better,a_starved_runs,b_starved_runs,p,p_holm,better_in_family";

/// Formats a metric in these columns. A delay that a starved flow does not have is an empty cell;
/// in JSON it is `null`.
pub fn cells(line: &Line) -> String {
    let end = |which: usize| line.interval.map(|ends| ends[which].to_string()).unwrap_or_default();
    let side = |side: Option<Side>| side.map(|side| format!("{side:?}").to_lowercase()).unwrap_or_default();
    let [better, in_family] = [line.better, line.better_in_family].map(side);
    let [p, p_holm] = [line.p, line.p_holm].map(|p| p.map(|p| p.to_string()).unwrap_or_default());
    let number = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    let [a, b, difference] = [line.a, line.b, line.difference].map(number);
    let Line { metric, seeds, counts, .. } = line;
    let [a_starved, b_starved] = counts.map(|of| of.starved_runs);
    let (low, high) = (end(0), end(1));
    format!(
        "{metric},{a},{b},{difference},{low},{high},{seeds},{better},{a_starved},{b_starved},{p},{p_holm},{in_family}"
    )
}

/// The optional columns of a table.
#[derive(Clone, Copy)]
struct Extra {
    /// Columns with the names of both variants.
    is_named: bool,
    /// Columns with the model, and whether the answer holds under it.
    is_robust: bool,
    /// A column with the point.
    is_swept: bool,
}

impl Extra {
    fn head(self) -> String {
        format!(
            "{}{}{COLUMNS}{}{}\n",
            if self.is_named { "first,second," } else { "" },
            if self.is_robust { "model," } else { "" },
            if self.is_robust { ",verdict,verdict_in_family,same_run_as_baseline" } else { "" },
            if self.is_swept { ",point" } else { "" },
        )
    }

    fn row(self, names: [&str; 2], model: &str, cells: &str, verdicts: &str, point: &str) -> String {
        let names = if self.is_named { format!("{},{},", quoted(names[0]), quoted(names[1])) } else { String::new() };
        let cells = if self.is_robust { format!("{},{cells},{verdicts}", quoted(model)) } else { cells.to_owned() };
        let point = if self.is_swept { format!(",{point}") } else { String::new() };
        format!("{names}{cells}{point}\n")
    }
}

/// A row for each metric of each pair, one for each of its points if keys are swept, and one for each other model; a piece of text for each
/// metric. `is_named`: with the names of the two.
pub fn csv<'a>(compared: &'a [Compared<'a>], is_named: bool) -> impl Iterator<Item = String> + 'a {
    let extra = Extra {
        is_named,
        is_robust: compared.iter().any(|pair| pair.robust.is_some()),
        is_swept: compared.iter().flat_map(|pair| &pair.lines).any(|line| !line.points.is_empty()),
    };
    std::iter::once(extra.head()).chain(compared.iter().flat_map(move |pair| rows(pair, extra)))
}

/// The rows of a pair, a piece of text for each metric.
fn rows<'a>(pair: &'a Compared<'a>, extra: Extra) -> impl Iterator<Item = String> + 'a {
    let names = pair.names;
    let written = pair.lines.iter().map(move |line| {
        let points = line.points.iter().map(|AtPoint { point, line }| {
            let point = quoted(&serde_json::to_string(&**point).unwrap_or_default());
            extra.row(names, "as written", &cells(line), ",,", &point)
        });
        extra.row(names, "as written", &cells(line), ",,", "") + &points.collect::<String>()
    });
    let models = pair
        .robust
        .into_iter()
        .flat_map(move |robust| pair.lines.iter().map(move |line| models(robust, line.metric, names, extra)));
    written.chain(models)
}

/// The rows of a metric under the other models.
fn models(robust: &Robust, metric: &str, names: [&str; 2], extra: Extra) -> String {
    let in_family = robust.rows(metric, Reading::InFamily).map(|row| row.verdict.name());
    let rows = robust.rows(metric, Reading::Alone).zip(in_family).map(|(under, in_family)| {
        let none = || format!("{metric}{}", ",".repeat(COLUMNS.matches(',').count()));
        let verdicts = format!("{},{in_family},{}", under.verdict.name(), under.is_same_run);
        extra.row(names, under.model, &under.line.map_or_else(none, cells), &verdicts, "")
    });
    rows.collect()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Joins names for a sentence, for example "newreno, cubic and tcp-ap".
fn listed(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// Formats the comparison as Markdown for people.
pub fn markdown(compared: &[Compared<'_>], sides: &Sides) -> String {
    let names: Vec<&str> = sides.sides.iter().map(|side| side.name.as_str()).collect();
    let mut text = format!("# {}\n\n", listed(&names));
    if !sides.common.is_empty() {
        text.push_str(&format!("In all variants: {}.\n\n", sides.common.join(", ")));
    }
    if compared.iter().flat_map(|pair| &pair.lines).any(|line| line.interval.is_some()) {
        text.push_str(&format!("{PLUS_MINUS}. Runs with the same seed are compared with each other. {CORRECTED}\n\n"));
    }
    for pair in compared {
        if compared.len() > 1 {
            text.push_str(&format!("## {}\n\n", listed(&pair.names)));
        }
        text.push_str(&by_point(pair));
        let Sentences { shared, lines } = Sentences::of(&pair.lines, pair.names);
        for sentence in &shared {
            text.push_str(&format!("{sentence}\n\n"));
        }
        for (line, _) in &lines {
            text.push_str(&format!("- {line}\n"));
        }
        text.push('\n');
        text.push_str(&silent_flows(pair));
    }
    text.push_str(&ranked(sides));
    for pair in compared {
        if let Some(robust) = pair.robust {
            text.push_str(&robustness(robust, pair.names));
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// Table of a pair at each point of the swept keys; empty if there is only one point.
fn by_point(pair: &Compared<'_>) -> String {
    let Some(table) = compare::table(&pair.lines, pair.names) else { return String::new() };
    let [a, b] = pair.names;
    let heads: String = table.heads.iter().map(|head| format!(" {head} |")).collect();
    let mut text = format!(
        "Each cell is {b} minus {a} at one point. {LEGEND}.\n\n| point |{heads}\n|---|{}\n",
        "---|".repeat(table.heads.len())
    );
    for (place, cells) in &table.rows {
        let cells: String = cells.iter().map(|cell| format!(" {cell} |")).collect();
        text.push_str(&format!("| {place} |{cells}\n"));
    }
    if table.left_out > 0 {
        text.push_str(&format!(
            "\n{} more points are not shown; --format json and csv have all of them.\n",
            table.left_out
        ));
    }
    text + "\n"
}

/// Returns the table of the flows that were silent in a run of either variant. Empty if no flow was
/// silent.
fn silent_flows(pair: &Compared<'_>) -> String {
    let flows: Vec<_> = pair.lines.iter().flat_map(|line| &line.flows).collect();
    if flows.is_empty() {
        return String::new();
    }
    let [a, b] = pair.names;
    let head = compare::silent_head(&pair.lines);
    let mut text = format!("| {head} | {a} | {b} | difference of the shares, percentage points |\n|---|---|---|---|\n");
    for flow in flows {
        let cells =
            [&flow.name, &flow.a.told(), &flow.b.told(), &flow.difference_told()].map(|cell| format!(" {cell} |"));
        text.push_str(&format!("|{}\n", cells.concat()));
    }
    text + "\n"
}

/// Rankings by each metric: of the variants if there are more than two, and otherwise of the
/// transports in them.
fn ranked(sides: &Sides) -> String {
    let (rankings, what) = if sides.sides.len() > 2 {
        let groups: Vec<(String, Vec<&Excerpt>)> =
            sides.sides.iter().map(|side| (side.name.clone(), side.all())).collect();
        (ranking_of(&groups), "Variants")
    } else {
        let all: Vec<&Excerpt> = sides.sides.iter().flat_map(|side| &side.runs).collect();
        (ranking(&all), "Transports")
    };
    if rankings.is_empty() {
        return String::new();
    }
    let mut text = format!("## {what} in the order of their means\n\n");
    text.push_str(
        "`=`: no clear difference from the previous variant, after the correction for all metrics. `✗`: this variant starves a flow in at least one run, so it is never called better than a variant that starves none.\n\n",
    );
    text.push_str("| metric | ranking (means) |\n|---|---|\n");
    for (metric, ranks) in rankings {
        let (unit, scale) = metric.unit;
        let ranked = ranks.iter().enumerate().map(|(number, rank)| {
            format!(
                "{} {} {}",
                rank.sign(number),
                rank.name,
                rank.mean.times(scale).told(|value| format!("{value:.3}"))
            )
        });
        let ranked: Vec<String> = ranked.collect();
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        text.push_str(&format!("| {}{unit} | {} |\n", metric.noun, ranked.join(", ")));
    }
    text + "\n"
}

/// Results of a pair under other models: a row for each model, and sentences about each metric.
fn robustness(robust: &Robust, names: [&str; 2]) -> String {
    let mut text = format!("## Does the result hold under other models? {}\n\n", listed(&names));
    text.push_str("The comparison is repeated under other models; each differs from the scenario in one key.\n\n");
    let metrics: Vec<&Metric> = robust.told().filter_map(metric).collect();
    let heads: String = metrics.iter().map(|metric| format!(" {} |", metric.noun_and_unit())).collect();
    text.push_str(&format!(
        "Each cell is {} minus {}. `*`: the variant named after it is clearly better (the interval excludes 0, and the difference stays clear after the correction for all metrics) and starves no flow.\n\n",
        names[1], names[0]
    ));
    text.push_str(&format!("| model |{heads} starves a flow |\n|---|{}---|\n", "---|".repeat(metrics.len())));
    let trials = std::iter::once(&robust.written).chain(&robust.others);
    for (number, trial) in trials.enumerate() {
        let of = |metric: &&Metric| {
            let row: Option<Row<'_>> = match number {
                0 => Some(robust.first(metric.name, Reading::InFamily)),
                _ => robust.rows(metric.name, Reading::InFamily).nth(number - 1),
            };
            row.map_or_else(String::new, |row| format!(" {} |", shown(&row, names)))
        };
        let columns: String = metrics.iter().map(of).collect();
        text.push_str(&format!("| {} |{columns} {} |\n", trial.model, starved(trial.starved(), names)));
    }
    text.push('\n');
    for (model, why) in &robust.not_applicable {
        text.push_str(&format!("- Not applicable: {model}: {why}.\n"));
    }
    let points = robust.at_points();
    if points.is_empty() {
        return text + &answers(robust, names) + "\n";
    }
    text.push_str("The table has the means over all points. The results at each point:\n\n");
    for (place, robust) in points.iter().take(compare::MOST_ROWS) {
        text.push_str(&format!("At {place}:\n\n{}\n", answers(robust, names)));
    }
    text
}

/// One sentence with the answer for each metric, and one about starved flows.
fn answers(robust: &Robust, names: [&str; 2]) -> String {
    let metrics = robust.told().filter_map(metric);
    let mut text: String =
        metrics.map(|metric| format!("- **{}**: {}.\n", metric.noun, answer(robust, metric.name, names))).collect();
    if let Some(sentence) = starving(robust, names) {
        text.push_str(&format!("- **starved flows**: {sentence}.\n"));
    }
    text
}

/// Difference in a row of the table. If one variant is better, a star and its name follow.
fn shown(row: &Row<'_>, names: [&str; 2]) -> String {
    let none = ["none in both".to_owned(), format!("none for {}", names[0]), format!("none for {}", names[1])];
    let Some(line) = row.line else { return "–".to_owned() };
    let difference = cell(line, [&none[0], &none[1], &none[2]]);
    match line.better_in_family {
        _ if row.is_same_run => format!("{difference} (changes nothing here)"),
        Some(_) => format!("{difference} * {}", verdict(row, names)),
        None => difference,
    }
}

/// Lists on which sides flows starved, for example "tcp-ap 3 of 10".
fn starved(starved: Option<[(usize, usize); 2]>, names: [&str; 2]) -> String {
    let sides = starved.unwrap_or_default();
    let told = sides.iter().zip(names).filter(|((starved, _), _)| *starved > 0);
    let told: Vec<String> = told.map(|((starved, runs), name)| format!("{name} {starved} of {runs}")).collect();
    if told.is_empty() { "–".to_owned() } else { told.join(", ") }
}
