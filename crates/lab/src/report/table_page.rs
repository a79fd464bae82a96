//! The page of published tables: every number beside ours, marked, and what was tried.

use super::Provenance;
use super::page::{chip, signs};
use crate::register::Verdict;
use crate::register::table::{Cell, Column, Group, Tables};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

/// Everything a page is made from.
pub struct TablePage<'a> {
    /// What was published.
    pub tables: &'a Tables,
    /// The records.
    pub records: &'a [Map<String, Value>],
    /// How they came to be.
    pub provenance: &'a Provenance,
    /// The command that makes them again.
    pub command: &'a str,
}

impl TablePage<'_> {
    /// The page as HTML, complete in itself.
    pub fn render(&self) -> String {
        let tables = self.tables;
        let percent = format!("{:.0} %", 100.0 * tables.level);
        let tolerance = |column: &Column| format!("{}: {} %", column.title, column.tolerance_pct);
        let tolerances = tables.columns.iter().map(tolerance).collect::<Vec<_>>().join("; ");
        let made = self.provenance;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (tables.id) ": " (tables.title) }
                    style { (PreEscaped(include_str!("style.css"))) }
                }
                body { main {
                    header {
                        p.eyebrow { (tables.id) " · a published experiment, repeated" }
                        h1 { (tables.title) }
                        p.source { (tables.source) }
                    }
                    section {
                        h2 { "The tables" }
                        p { "Ours ± half width of the " (percent) " confidence interval (Student's t over the seeds), beneath it what \
                             was published. " em { "Reproduced" } ": they differ by no more than their joined half widths, or than the tolerance of the column (" (tolerances) "). "
                            em { "In shape" } ": the row stands to the others of its table as published, wherever that is clear. "
                            em { "Differs" } ": it does not." }
                        @for group in &tables.groups { (self.group(group)) }
                    }
                    section id="claims" {
                        h2 { "Claims" }
                        p { "Each compares the best row of each side, as the paper does. In shape: the difference has the published sign \
                             and exceeds the joined half widths. Reproduced: it is also within a third of the published one, or two \
                             percentage points." }
                        ol.claims { @for claim in &tables.claims {
                            @let (verdict, told) = tables.judge(self.records, claim);
                            li { h3 { (claim.text) } p { (chip(verdict)) ". " (signs(&told)) "." } }
                        } }
                    }
                    section { h2 { "What to know" } ul { @for note in &tables.notes { li { (note) } } } }
                    section {
                        h2 { "Repeat it" }
                        pre { code { (self.command) } }
                        dl {
                            dt { "Version" } dd { "meshpace " (made.version) }
                            dt { "Scenario" } dd { "SHA-256 " code { (made.scenario_sha256) } }
                            dt { "Runs" } dd { (made.points as u64 * made.seeds) " (" (made.points) " points, " (made.seeds) " seeds from "
                                (made.first_seed) ")" @if made.failed_runs > 0 { ", of which " strong { (made.failed_runs) " failed" } } }
                            dt { "Files" } dd { a href="records.jsonl" { "records.jsonl" } ", " a href="manifest.json" { "manifest.json" } }
                        }
                        footer { "Written by meshpace." }
                    }
                } }
            }
        }
        .into_string()
    }

    fn group(&self, group: &Group) -> Markup {
        html! {
            div.scroll { table {
                caption { (group.title) }
                thead { tr {
                    th scope="col" { }
                    @for column in &self.tables.columns { th scope="col" { (column.title) } }
                } }
                tbody { @for row in &group.rows { tr {
                    td { (row.name) @if !row.reading.is_empty() { br; small { (row.reading) } } }
                    @for column in &self.tables.columns {
                        td { @match self.tables.cell(self.records, group, row, column) {
                            Some(cell) => (number(&cell)),
                            None => "–",
                        } }
                    }
                } } }
            } }
        }
    }
}

fn number(cell: &Cell) -> Markup {
    let [mean, half] = cell.published;
    html! {
        (digits(cell.ours.mean)) " " small { "± " (digits(cell.ours.half_width)) } br;
        small { "paper " (mean) " ± " (half) } br;
        (chip(cell.verdict))
        @if !cell.against.is_empty() && cell.verdict == Verdict::Differs {
            br; small { "order to " (cell.against.join(", ")) }
        }
    }
}

fn digits(value: f64) -> String {
    if value.is_nan() {
        "–".into()
    } else if value.abs() < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}
