//! Page of a comparison: starved flows, the better variant in each metric, and whether these
//! results hold with other models of medium access, routing and reception.

use crate::parts;
use maud::{Markup, html};
use meshpace_lab::compare::{LEGEND, Line, MOST_ROWS, Metric, Sentences, cell, metric, ranking_of, silent_head, table};
use meshpace_lab::record::excerpt::Excerpt;
use meshpace_lab::record::tally::Tally;
use meshpace_lab::robust::{Answer, Asked, FRAMES, Reading, Robust, Row, Verdict, answer, count, starving, verdict};
use meshpace_lab::statistics;
use meshpace_lab::summary::{CORRECTED, PLUS_MINUS};
use std::path::Path;

/// Comparison of two variants.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Names of the variants, as shown on the page.
    pub names: [&'a str; 2],
    /// Results by metric.
    pub lines: &'a [Line],
}

/// Subject of a page.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Command that makes the page again.
    pub command: &'a str,
    /// Settings that all variants share.
    pub common: &'a [String],
    /// Variants with their runs.
    pub variants: &'a [(&'a str, &'a [Excerpt])],
    /// Comparisons of each further variant with the first one.
    pub pairs: &'a [Pair<'a>],
    /// Result of the tests under other models, by pair.
    pub asked: &'a Asked,
}

/// Writes the page.
///
/// # Errors
/// If the page cannot be written. The message names the file.
pub fn write(page: &Path, subject: &Subject<'_>) -> Result<(), String> {
    parts::write(page, &render(subject))
}

fn render(subject: &Subject<'_>) -> String {
    let mut tally = Tally::default();
    for (name, runs) in subject.variants {
        runs.iter().for_each(|run| run.count_in(&mut tally, name));
    }
    let starved = tally.sentences();
    let body = html! {
        body { main {
            h1 { (subject.title) }
            @if let Some((first, others)) = starved.split_first() {
                div class="starved" role="note" { p { strong { (first) } } @for sentence in others { p { (sentence) } } }
            }
            p { "Runs: " (subject.variants.iter().map(|(_, runs)| runs.len()).sum::<usize>()) ". "
                @if !subject.common.is_empty() { "In all variants: " code { (subject.common.join(", ")) } ". " }
                code { (subject.command) } }
            @if subject.pairs.iter().flat_map(|pair| pair.lines).any(|line| line.interval.is_some()) {
                p { (PLUS_MINUS) ". Runs with the same seed are compared with each other. " (CORRECTED) }
            }
            @if subject.variants.len() > 2 { (ranked(subject)) }
            @for pair in subject.pairs { (compared(pair)) }
            (held(subject))
        } }
    };
    parts::page(subject.title, include_str!("comparison/style.css"), &body)
}

/// One pair, described in sentences.
fn compared(pair: &Pair<'_>) -> Markup {
    let [a, b] = pair.names;
    let Sentences { shared, lines } = Sentences::of(pair.lines, pair.names);
    html! {
        h2 { (b) " against " (a) }
        (by_point(pair))
        @for sentence in &shared { p { (sentence) } }
        ul { @for (line, is_clear) in &lines { li class=[is_clear.then_some("clear")] { (line) } } }
        (silent_flows(pair))
    }
}

/// The pair at each point of the swept keys. Empty if there is only one point.
fn by_point(pair: &Pair<'_>) -> Markup {
    let [a, b] = pair.names;
    html! { @if let Some(table) = table(pair.lines, pair.names) {
        p class="note" { "Each cell is " (b) " minus " (a) " at one point. " (LEGEND.replace('`', "")) "." }
        div class="wide" { table class="silent" {
            tr { th { "point" } @for head in &table.heads { th { (head) } } }
            @for (place, cells) in &table.rows { tr {
                td { (place) } @for cell in cells { td { (crate::parts::signs(cell)) } }
            } }
        } }
        @if table.left_out > 0 { p { (table.left_out) " more points are not shown; --format json and csv have all of them." } }
    } }
}

/// All flows that were silent in a variant of the pair. Empty if there are none.
fn silent_flows(pair: &Pair<'_>) -> Markup {
    let flows: Vec<_> = pair.lines.iter().flat_map(|line| &line.flows).collect();
    let [a, b] = pair.names;
    html! { @if !flows.is_empty() {
        div class="wide" { table class="silent" {
            tr { th { (silent_head(pair.lines)) } th { (a) } th { (b) } th { "difference of the shares, percentage points" } }
            @for flow in flows { tr {
                td { (flow.name) } td { (flow.a.told()) } td { (flow.b.told()) } td { (crate::parts::signs(&flow.difference_told())) }
            } }
        } }
    } }
}

/// Ranking of the variants by metric.
fn ranked(subject: &Subject<'_>) -> Markup {
    let groups: Vec<(String, Vec<&Excerpt>)> =
        subject.variants.iter().map(|(name, runs)| ((*name).to_owned(), runs.iter().collect())).collect();
    html! {
        h2 { "In the order of their means" }
        p { "Means over the runs. “=”: no clear difference from the previous variant, after the correction for all metrics. “✗”: this variant starves a flow in at least one run, so it is never called better than a variant that starves none." }
        dl class="ranks" { @for (metric, ranks) in ranking_of(&groups) {
            dt { (metric.noun_and_unit()) }
            dd { ol { @for (number, rank) in ranks.iter().enumerate() {
                li class=[(rank.starved.0 > 0).then_some("starves")] {
                    span class="place" { (rank.sign(number)) } " " (rank.name) " "
                    span class="number" { (rank.mean.times(metric.unit.1).told(statistics::digits)) }
                }
            } } }
        } }
    }
}

/// Section that says whether the results hold under other models.
fn held(subject: &Subject<'_>) -> Markup {
    match subject.asked {
        Asked::No => html! {},
        Asked::TooMuch { models, frames } => html! {
            h2 { "Does the result hold under other models?" }
            p { "This was not tested: " (models) " other models would need about " (count(*frames)) " frames on the air, more than "
                (count(FRAMES)) ". " code { (subject.command) " --robust" } " asks it." }
        },
        Asked::Answered(found) => html! {
            h2 { "Does the result hold under other models?" }
            p { "The comparison is repeated under other models; each differs from the scenario in one key. A result holds under a model if it is the same there. A variant is better if the 95 % confidence "
                "interval of the difference excludes 0, the difference stays clear after the correction for all metrics, and that variant starves no flow in any run." }
            @for (pair, robust) in subject.pairs.iter().zip(found) {
                @if found.len() > 1 { h3 { (pair.names[1]) " against " (pair.names[0]) } }
                (answers(robust, pair.names))
            }
            @if let Some(robust) = found.first().filter(|robust| !robust.not_applicable.is_empty()) {
                details { summary { "Choices that are not applicable (" (robust.not_applicable.len()) ")" }
                    ul { @for (model, why) in &robust.not_applicable { li { code { (model) } ": " (why) } } } }
            }
        },
    }
}

/// Sentences about a pair, and a table for each metric.
fn answers(robust: &Robust, names: [&str; 2]) -> Markup {
    let metrics: Vec<&Metric> = robust.told().filter_map(metric).collect();
    let points = robust.at_points();
    html! {
        @if points.is_empty() { (sentences(robust, names)) } @else {
            p { "These are the results at each point; the tables below have the means over all points." }
            @for (place, robust) in points.iter().take(MOST_ROWS) { h4 { (place) } (sentences(robust, names)) }
        }
        @for (number, metric) in metrics.iter().enumerate() {
            details open[number == 0] { summary { (metric.noun_and_unit()) ": " (names[1]) " minus " (names[0]) } (models(robust, metric, names)) }
        }
    }
}

/// The answer in each metric, one sentence each, and a sentence about starved flows.
fn sentences(robust: &Robust, names: [&str; 2]) -> Markup {
    html! { ul class="answers" {
        @for metric in robust.told().filter_map(metric) {
            li { strong { (metric.noun) } ": " (answer(robust, metric.name, names)) "." }
        }
        @if let Some(sentence) = starving(robust, names) { li { strong { "starved flows" } ": " (sentence) "." } }
    } }
}

/// Titles of the columns of [`models`]. On a page that is too narrow for columns, a cell that would
/// not be understood without its title shows the title before its content.
const HEADS: [&str; 6] = ["model", "", "difference", "better", "answer", "runs that starve a flow"];

/// Table of the models for one metric. All differences are drawn to one scale.
fn models(robust: &Robust, metric: &Metric, names: [&str; 2]) -> Markup {
    let rows: Vec<Row<'_>> = std::iter::once(robust.first(metric.name, Reading::InFamily))
        .chain(robust.rows(metric.name, Reading::InFamily))
        .collect();
    let ends = |row: &Row<'_>| row.line.and_then(|line| line.interval).filter(|_| row.line.is_some_and(is_number));
    let low = rows.iter().filter_map(ends).map(|[low, _]| low).fold(0.0, f64::min);
    let high = rows.iter().filter_map(ends).map(|[_, high]| high).fold(0.0, f64::max);
    let trials = std::iter::once(&robust.written).chain(&robust.others);
    html! {
        p class="note" { "Thin line: no difference. Thick line: the mean difference. Band: its 95 % confidence interval." }
        div class="models" role="table" {
            div role="row" class="row head" { @for title in HEADS { span role="columnheader" { (title) } } }
            @for (number, (row, trial)) in rows.iter().zip(trials).enumerate() {
            div role="row" class=(if number == 0 { "row written" } else { class(row) }) {
                span role="cell" class="model" { (row.model) }
                span role="cell" class="bar" { (bar(ends(row), row.line.map(|line| line.difference), [low, high])) }
                span role="cell" class="number" data-head=(HEADS[2]) { (difference(row, names)) }
                span role="cell" class="who" data-head=(HEADS[3]) { (verdict(row, names)) }
                span role="cell" class="verdict" { @if number > 0 { (said(row, robust.written(metric.name, Reading::InFamily))) } }
                span role="cell" class="starves" data-head=(HEADS[5]) { @for ((starved, runs), name) in trial.starved().unwrap_or_default().iter().zip(names) {
                    @if *starved > 0 { span { "✗ " (name) " " (starved) " of " (runs) } }
                } }
            }
        } }
    }
}

fn is_number(line: &Line) -> bool {
    line.difference.is_finite()
}

fn difference(row: &Row<'_>, names: [&str; 2]) -> String {
    let none = ["none in both".to_owned(), format!("none for {}", names[0]), format!("none for {}", names[1])];
    row.line.map_or_else(|| "–".to_owned(), |line| crate::parts::signs(&cell(line, [&none[0], &none[1], &none[2]])))
}

fn class(row: &Row<'_>) -> &'static str {
    match row.verdict {
        _ if row.is_same_run => "row",
        Verdict::Holds => "row holds",
        Verdict::Flips => "row flips",
        Verdict::Starves => "row greedy",
        Verdict::Untold => "row untold",
    }
}

/// The verdict with its sign. If neither variant is better with the model as written, there is no
/// result that could hold.
fn said(row: &Row<'_>, written: Answer) -> String {
    if row.is_same_run {
        return "= changes nothing here".to_owned();
    }
    let sign = match (row.verdict, written) {
        (Verdict::Holds, Answer::Better(_)) => "✓",
        (Verdict::Holds, _) => return "= the same".to_owned(),
        (Verdict::Flips, Answer::Better(_)) => "⇄",
        (Verdict::Flips, _) => return "⇄ becomes clear".to_owned(),
        (Verdict::Starves, _) => "✗",
        (Verdict::Untold, _) => "?",
    };
    format!("{sign} {}", row.verdict.name())
}

/// Width of the drawing of a difference, in units of the drawing.
const WIDTH: f64 = 200.0;

/// Draws a difference with its interval, between `low` and `high`, and a line at zero. The drawing
/// has no text, so that it can be stretched.
fn bar(interval: Option<[f64; 2]>, mean: Option<f64>, [low, high]: [f64; 2]) -> Markup {
    let span = if high > low { high - low } else { 1.0 };
    let x = |value: f64| format!("{:.1}", 4.0 + (WIDTH - 8.0) * (value - low) / span);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} 16")) preserveAspectRatio="none" aria-hidden="true" {
            line class="zero" x1=(x(0.0)) x2=(x(0.0)) y1="0" y2="16" {}
            @if let (Some([from, to]), Some(mean)) = (interval, mean) {
                line class="interval" x1=(x(from)) x2=(x(to)) y1="8" y2="8" {}
                line class="mean" x1=(x(mean)) x2=(x(mean)) y1="2" y2="14" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_lab::compare::compare;
    use meshpace_lab::record::Record;
    use meshpace_lab::record::excerpt::Excerpts;
    use meshpace_lab::robust::Trial;
    use serde_json::json;

    /// Records of four seeds. The goodput of each is `more` above the base value of its seed. If
    /// `is_dead`, the flow delivers nothing.
    fn records(model: &str, more: f64, is_dead: bool) -> Vec<Record> {
        let flow = json!({"from": 0, "to": 6, "transport": "t", "delivered_bytes": u64::from(!is_dead), "timeouts": 0});
        let goodput = |seed: u64| 1e5 * (seed % 3) as f64 + more + seed as f64;
        (1..=4)
            .map(|seed| json!({"seed": seed, "point": {}, "fingerprint": model, "duration_s": 9.0, "aggregate_goodput_bps": goodput(seed), "flows": [flow]}))
            .map(|object| serde_json::from_value(object).unwrap())
            .collect()
    }

    fn trial(model: &str, more: f64, is_dead: bool) -> Trial {
        Trial {
            model: model.to_owned(),
            lines: compare(&records(model, 0.0, false), &records(model, more, is_dead)).unwrap(),
        }
    }

    fn page(asked: &Asked, is_dead: bool) -> String {
        let (a, b) = (records("f", 0.0, false), records("f", 500.0, is_dead));
        let lines = compare(&a, &b).unwrap();
        let [a, b] = [a, b].map(|side| Excerpts::of_all(&side));
        let (variants, pairs) =
            ([("old", &a[..]), ("<new>", &b[..])], [Pair { names: ["old", "<new>"], lines: &lines }]);
        let common = ["duration=9 s".to_owned()];
        render(&Subject {
            title: "T",
            command: "meshpace compare x",
            common: &common,
            variants: &variants,
            pairs: &pairs,
            asked,
        })
    }

    #[test]
    fn who_starves_comes_first_and_nothing_is_hidden() {
        let text = page(&Asked::No, true);
        let (alarm, sentence) =
            (text.find("STARVED").unwrap(), text.find("no side is called better in goodput").unwrap());
        assert!(
            alarm < sentence && text.contains("&lt;new&gt; 4 of 4") && !text.contains("Does the result hold"),
            "{text}"
        );
        assert!(!page(&Asked::No, false).contains("STARVED"));
    }

    #[test]
    fn every_model_has_its_row_and_every_reason_is_there() {
        let others = vec![
            trial("x = 1", 400.0, false),
            trial("x = 2", -400.0, false),
            trial("x = 3", 400.0, true),
            trial("x = 4", 0.0, false),
        ];
        let written = trial("as written", 500.0, false);
        let robust = Robust { written, others, not_applicable: vec![("y = 1".to_owned(), "it is swept".to_owned())] };
        let text = page(&Asked::Answered(vec![robust]), false);
        for (model, verdict) in
            [("x = 1", "✓ holds"), ("x = 2", "⇄ flips"), ("x = 3", "✗ starves"), ("x = 4", "? cannot be told")]
        {
            let row = &text[text.find(&format!(">{model}<")).unwrap()..];
            assert!(row[..row.find("</div>").unwrap()].contains(verdict), "{model}: {row}");
        }
        assert!(text.contains("this holds in 1 of 4 other models") && text.contains("it is swept"), "{text}");
    }

    #[test]
    fn cells_without_columns_have_their_heads() {
        let (written, others) = (trial("as written", 500.0, false), vec![trial("x = 1", 400.0, true)]);
        let text = page(&Asked::Answered(vec![Robust { written, others, not_applicable: Vec::new() }]), false);
        let row = &text[text.find(">x = 1<").unwrap()..];
        let row = &row[..row.find("</div>").unwrap()];
        for head in ["difference", "better", "runs that starve a flow"] {
            assert!(text.contains(&format!("role=\"columnheader\">{head}<")), "{head}");
            assert!(row.contains(&format!("data-head=\"{head}\"")), "{head}: {row}");
        }
        // The style sheet shows them where it hides the row of heads, and there alone.
        let narrow = text.split("@media (max-width: 62rem)").nth(1).and_then(|rest| rest.split("@media").next());
        assert!(
            narrow.is_some_and(|style| style.contains(".head {") && style.contains("attr(data-head)")),
            "{narrow:?}"
        );
        assert_eq!(text.matches("content: attr(data-head)").count(), 2, "the second one without words for who listens");
    }

    #[test]
    fn what_was_not_clear_as_written_becomes_so_and_does_not_flip() {
        let (written, others) = (trial("as written", 0.0, false), vec![trial("x = 1", 400.0, false)]);
        let text = page(&Asked::Answered(vec![Robust { written, others, not_applicable: Vec::new() }]), false);
        assert!(text.contains("⇄ becomes clear") && !text.contains("⇄ flips"), "{text}");
    }

    #[test]
    fn what_was_not_asked_says_why_and_how() {
        let text = page(&Asked::TooMuch { models: 11, frames: 83_000_000 }, false);
        assert!(
            text.contains("83 million") && text.contains("50 million") && text.contains("meshpace compare x --robust")
        );
    }

    #[test]
    fn a_scale_has_zero_and_both_ends() {
        let drawn = bar(Some([-1.0, 3.0]), Some(1.0), [-1.0, 3.0]).into_string();
        // A quarter of the 192 units between the margins.
        assert!(drawn.contains("class=\"zero\" x1=\"52.0\"") && drawn.contains("x1=\"4.0\" x2=\"196.0\""), "{drawn}");
    }
}
