//! The page: summary, figures, where the gain comes from, claims with their verdicts, tables, how to repeat it.

use super::Provenance;
use super::palette::{Look, Shape, css, label, look};
use super::plot::{Bar, Curve, Frame, logarithmic, percentages};
use crate::register::{Check, Choice, Claim, Gain, Published, Results, Verdict, judge};
use crate::statistics::{Estimate, estimate};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Confidence level of every interval on the page.
const LEVEL: f64 = 0.95;

/// Everything a page is made from.
pub struct Page<'a> {
    /// What was published.
    pub published: &'a Published,
    /// What was measured.
    pub results: &'a Results,
    /// How it came to be.
    pub provenance: &'a Provenance,
}

impl Page<'_> {
    /// The page as HTML, complete in itself.
    pub fn render(&self) -> String {
        let published = self.published;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (published.id) ": " (published.title) }
                    style { (PreEscaped(include_str!("style.css"))) }
                }
                body { main {
                    header {
                        p.eyebrow { (published.id) " · a published experiment, repeated" }
                        h1 { (published.title) }
                        p.source { (published.source) }
                    }
                    (self.summary())
                    (self.goodput_figure())
                    (self.gain_figure())
                    (self.origin())
                    (self.claims())
                    (self.tuning())
                    (self.tables())
                    (self.colophon())
                } }
            }
        };
        page.into_string()
    }

    /// Transports that are compared with the baseline.
    fn challengers(&self) -> Vec<String> {
        self.results.transports().into_iter().filter(|name| *name != self.published.baseline).collect()
    }

    /// All transports, the baseline first.
    fn transports(&self) -> Vec<String> {
        std::iter::once(self.published.baseline.clone()).chain(self.challengers()).collect()
    }

    /// The transports of which the paper says how much they gain.
    fn praised(&self) -> Vec<String> {
        let of = |claim: &Claim| match &claim.check {
            Check::LargestGain { of, over, .. } if *over == self.published.baseline => of.clone(),
            _ => Vec::new(),
        };
        self.published.claims.iter().flat_map(of).collect()
    }

    fn gain(&self, panel: usize, transport: &str, hops: u64) -> Option<Gain> {
        let baseline = self.results.goodputs(panel, &self.published.baseline, hops);
        Gain::of(self.results.goodputs(panel, transport, hops), baseline)
    }

    /// The hop count with the largest gain in a panel.
    fn largest(&self, panel: usize, transport: &str) -> Option<(u64, Gain)> {
        let gains = self.results.hops().into_iter().filter_map(|hops| Some((hops, self.gain(panel, transport, hops)?)));
        gains.max_by(|a, b| a.1.pct().total_cmp(&b.1.pct()))
    }

    fn summary(&self) -> Markup {
        let sentences = self.praised().into_iter().filter_map(|name| {
            let (hops, total) = self.largest(0, &name)?;
            let (low, high) = total.interval_pct();
            let parts = self.factors(&name, hops);
            let own = |parts: &[(&'static Cause, Option<Gain>); 3]| -> String {
                let factor = |(cause, part): &(&Cause, Option<Gain>)| {
                    Some(format!("{} ×{:.2}", cause.noun, part.as_ref()?.ln().exp()))
                };
                parts.iter().filter_map(factor).collect::<Vec<_>>().join(", ")
            };
            let air = parts.as_ref().and_then(|parts| Self::share_of_the_air(&total, parts[0].1.as_ref()?));
            Some(html! { p {
                strong { (label(&name)) } @if total.pct() > 0.0 { " carries up to " } @else { " carries at best " }
                strong { (percent(total.pct())) }
                (format!(" ({} to {})", signs(&format!("{low:.0}")), signs(&format!("{high:.0}")))) " more than "
                (label(&self.published.baseline)) " (at " (hops) " hops, " (self.panel_title(0)) ")"
                @if let Some(parts) = &parts { ", a factor of " (format!("{:.2}", total.ln().exp())) ": " (own(parts)) }
                ". Published: up to " (percent(self.published.published_gain_pct)) ". "
                @if let Some(air) = air { (air) }
            } })
        });
        let verdicts: Vec<Verdict> = self
            .published
            .claims
            .iter()
            .flat_map(|claim| {
                let one = |subject: &String| judge(&claim.check, subject, 0, self.results).verdict;
                claim.check.subjects().iter().map(one).collect::<Vec<_>>()
            })
            .collect();
        let count = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
        let counted = [Verdict::Reproduced, Verdict::InShape, Verdict::Differs, Verdict::CannotBeJudged]
            .into_iter()
            .filter(|verdict| count(*verdict) > 0)
            .map(|verdict| format!("{} {}", count(verdict), verdict.words()));
        html! {
            section.short aria-label="Summary" {
                @for sentence in sentences { (sentence) }
                p { "Statements of the paper, each transport for itself, in the paper's own set-up: "
                    (counted.collect::<Vec<_>>().join(", ")) ". See " a href="#claims" { "claims" }
                    @if self.factors_exist() { " and " a href="#origin" { "where the gain comes from" } } "." }
            }
        }
    }

    fn factors_exist(&self) -> bool {
        let hops = self.results.hops();
        self.praised().iter().any(|name| hops.iter().any(|hops| self.factors(name, *hops).is_some()))
    }

    fn panel_title(&self, panel: usize) -> &str {
        &self.published.panels[panel].title
    }

    fn legend(&self, names: &[String], published: bool) -> Markup {
        html! {
            ul.legend {
                @for name in names { li { (swatch(&look(name))) (label(name)) } }
                @if published { li {
                    svg.dash viewBox="0 0 30 16" aria-hidden="true" {
                        line x1="1" y1="8" x2="29" y2="8" stroke="currentColor" stroke-width="2" stroke-dasharray="7 4" {}
                    }
                    "published: up to " (percent(self.published.published_gain_pct))
                } }
            }
        }
    }

    /// One figure per panel.
    fn panels(&self, plot: impl Fn(usize) -> String) -> Markup {
        html! {
            div.panels {
                @for (number, panel) in self.published.panels.iter().enumerate() {
                    figure {
                        figcaption { h3 { (panel.title) } p.note { (panel.note) } }
                        (PreEscaped(plot(number)))
                    }
                }
            }
        }
    }

    fn goodput_figure(&self) -> Markup {
        let names = self.transports();
        let curve = |panel: usize, name: &String| Curve {
            look: look(name),
            bars: self.bars(|hops| {
                let mean = self.goodput(panel, name, hops)?;
                Some((mean.mean - mean.half_width, mean.mean, mean.mean + mean.half_width))
            }),
        };
        let all: Vec<Vec<Curve>> = (0..self.published.panels.len())
            .map(|panel| names.iter().map(|name| curve(panel, name)).collect())
            .collect();
        let bars = || all.iter().flatten().flat_map(|curve| &curve.bars).filter(|bar| bar.value > 0.0);
        let smallest = bars().map(|bar| bar.value).fold(f64::INFINITY, f64::min);
        let largest = bars().map(|bar| bar.value).fold(0.0, f64::max);
        // An interval that reaches far down is cut off rather than allowed to flatten everything else.
        let low = bars().map(|bar| bar.low).fold(smallest, f64::min).max(smallest / 2.0);
        let range = (low / 1.15, largest * 1.3);
        let ticks: Vec<f64> = [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0]
            .into_iter()
            .filter(|tick| (range.0..=range.1).contains(tick))
            .collect();
        html! {
            section {
                h2 { "Goodput by number of hops" }
                p { "Mean over the seeds with its 95 % confidence interval. The scale is logarithmic: equal distances are equal \
                     ratios, so the distance between two curves is the gain." }
                (self.legend(&names, false))
                (self.panels(|panel| {
                    let description = format!("Goodput in kbit/s against hops, {}. The values are in the tables below.",
                        self.panel_title(panel));
                    let frame = Frame { description: &description, vertical: "goodput, kbit/s", hops: self.span(), range,
                        ticks: &ticks };
                    logarithmic(&frame, &all[panel])
                }))
            }
        }
    }

    fn gain_figure(&self) -> Markup {
        let names = self.challengers();
        let curve = |panel: usize, name: &String| Curve {
            look: look(name),
            bars: self.bars(|hops| {
                let gain = self.gain(panel, name, hops)?;
                let (low, high) = gain.interval_pct();
                Some((low, gain.pct(), high))
            }),
        };
        let all: Vec<Vec<Curve>> = (0..self.published.panels.len())
            .map(|panel| names.iter().map(|name| curve(panel, name)).collect())
            .collect();
        let bars = || all.iter().flatten().flat_map(|curve| &curve.bars);
        let low = bars().map(|bar| bar.low).fold(-20.0, f64::min).max(-100.0);
        let largest = bars().map(|bar| bar.value).fold(100.0, f64::max);
        let high = bars().map(|bar| bar.high).fold(100.0, f64::max).min(2.0 * largest);
        let step = if high > 250.0 {
            100.0
        } else if high > 120.0 {
            50.0
        } else {
            25.0
        };
        let range = (low - 8.0, high + 8.0);
        let ticks: Vec<f64> =
            (-4..=40).map(|i| f64::from(i) * step).filter(|t| (range.0..=range.1).contains(t)).collect();
        html! {
            section {
                h2 { "Gain over " (label(&self.published.baseline)) }
                p { "How much more goodput than " (label(&self.published.baseline)) ", with its 95 % confidence interval. Both \
                     sides use the same seeds but are treated as independent runs (Welch), because two transports draw from \
                     the random streams at different times; the interval is that of the logarithm of the ratio (delta method)." }
                (self.legend(&names, true))
                (self.panels(|panel| {
                    let description = format!("Gain in per cent against hops, {}. The values are in the tables below.",
                        self.panel_title(panel));
                    let frame = Frame { description: &description, vertical: "gain, %", hops: self.span(), range, ticks: &ticks };
                    percentages(&frame, &all[panel], &[self.published.published_gain_pct])
                }))
            }
        }
    }

    fn span(&self) -> (u64, u64) {
        let hops = self.results.hops();
        (hops.first().copied().unwrap_or(1), hops.last().copied().unwrap_or(1))
    }

    fn bars(&self, value: impl Fn(u64) -> Option<(f64, f64, f64)>) -> Vec<Bar> {
        let bar = |hops| value(hops).map(|(low, value, high)| Bar { hops, low, value, high });
        self.results.hops().into_iter().filter_map(bar).collect()
    }

    fn goodput(&self, panel: usize, transport: &str, hops: u64) -> Option<Estimate> {
        let values = self.results.goodputs(panel, transport, hops);
        (!values.is_empty()).then(|| estimate(values, LEVEL))
    }

    /// The gain with AODV as a product of causes. No gain where the runs of both kinds of routes are the very same.
    fn factors(&self, transport: &str, hops: u64) -> Option<[(&'static Cause, Option<Gain>); 3]> {
        let number = |id: &str| self.published.panels.iter().position(|panel| panel.id == id);
        let panels = [number("static")?, number("aodv-off")?, number("aodv-ns2")?];
        let [air, off, total] = [0, 1, 2].map(|i| self.gain(panels[i], transport, hops));
        let (air, off, total) = (air?, off?, total?);
        let same = |a: usize, b: usize| {
            [transport, &self.published.baseline].iter().all(|name| {
                self.results.goodputs(panels[a], name, hops) == self.results.goodputs(panels[b], name, hops)
            })
        };
        let left = |whole: Gain, part: Gain, same: bool| (!same).then(|| whole.over(&part));
        Some([
            (&CAUSES[0], Some(air)),
            (&CAUSES[1], left(off, air, same(0, 1))),
            (&CAUSES[2], left(total, off, same(1, 2))),
        ])
    }

    /// What the factors at the largest gain say about the air, in words.
    fn share_of_the_air(total: &Gain, air: &Gain) -> Option<&'static str> {
        if total.interval_pct().0 <= 0.0 {
            return None;
        }
        Some(match air.ln() / total.ln() {
            share if share < 0.2 => {
                "Hardly any of this gain is better use of the air: it is false route failures that pacing avoids."
            }
            share if share < 0.8 => "Part of this gain is better use of the air, part false route failures avoided.",
            _ => "Most of this gain is better use of the air.",
        })
    }

    fn origin(&self) -> Markup {
        let rows = |name: &str| -> Vec<_> {
            let row = |hops| Some((hops, self.gain(0, name, hops)?, self.factors(name, hops)?));
            self.results.hops().into_iter().filter_map(row).collect()
        };
        let tables: Vec<_> = self.praised().into_iter().map(|name| (rows(&name), name)).collect();
        if tables.iter().all(|(rows, _)| rows.is_empty()) {
            return html! {};
        }
        html! {
            section id="origin" {
                h2 { "Where the gain comes from" }
                p { "In an 802.11 chain a node that gives up on a frame because of a hidden terminal looks to AODV like a \
                     broken link. Pacing has two effects: it uses the air better, and it makes fewer of these false route \
                     failures. Running the same transfer over three kinds of routes takes the gain apart into factors whose \
                     product is the whole:" }
                ul { @for cause in &CAUSES { li { strong { (cause.noun) } ": " (cause.meaning) } } }
                @for (rows, name) in &tables {
                    div.scroll { table {
                        caption { (label(name)) span { " against " (label(&self.published.baseline)) ", with 95 % intervals" } }
                        thead { tr {
                            th scope="col" { "hops" }
                            th scope="col" { "whole gain" }
                            @for cause in &CAUSES { th scope="col" { (cause.noun) } }
                        } }
                        tbody { @for (hops, total, parts) in rows { tr {
                            td { (hops) }
                            td { (with_interval(total)) }
                            @for (_, part) in parts { td {
                                @match part { Some(part) => (with_interval(part)), None => small { "none: the same runs" } }
                            } }
                        } } }
                    } }
                }
            }
        }
    }

    fn claims(&self) -> Markup {
        html! {
            section id="claims" {
                h2 { "Claims" }
                p { "Each statement is judged by a fixed rule for every kind of routes; the first column is the paper's own set-up. "
                    em { "Reproduced" } " means that the numbers agree, " em { "in shape" } " that the direction does, "
                    em { "differs" } " that neither does." }
                ol.claims { @for claim in &self.published.claims { li { (self.claim(claim)) } } }
            }
        }
    }

    fn claim(&self, claim: &Claim) -> Markup {
        let head = html! { h3 { (claim.text) } p.source { (claim.source) } };
        let subjects = claim.check.subjects();
        if subjects.is_empty() {
            let judgement = judge(&claim.check, "", 0, self.results);
            return html! {
                (head)
                div.verdicts { div { p { (chip(judgement.verdict)) ": " (judgement.evidence) "." } } }
            };
        }
        html! {
            (head)
            div.verdicts {
                @for (number, panel) in self.published.panels.iter().enumerate() {
                    div {
                        p.panel { (panel.title) }
                        @for subject in subjects {
                            @let judgement = judge(&claim.check, subject, number, self.results);
                            p { (label(subject)) ": " (chip(judgement.verdict)) ". " (signs(&judgement.evidence)) "." }
                        }
                    }
                }
            }
        }
    }

    /// What was chosen for the curves that are the best of several runs.
    fn tuning(&self) -> Markup {
        if self.published.tuned.is_empty() {
            return html! {};
        }
        html! {
            section {
                h2 { "What was tuned" }
                p { "These curves are, at every hop count, the value of a parameter with the highest mean goodput. It is chosen and \
                     shown by the same runs, which favours it by about as much as its interval is wide." }
                @for (number, panel) in self.published.panels.iter().enumerate() {
                    div.scroll { table {
                        caption { (panel.title) }
                        thead { tr {
                            th scope="col" { "hops" }
                            @for tuned in &self.published.tuned {
                                th scope="col" { (label(&tuned.id)) ": " (tuned.noun) }
                                th scope="col" { "tried" }
                            }
                        } }
                        tbody { @for hops in self.results.hops() { tr {
                            td { (hops) }
                            @for tuned in &self.published.tuned {
                                td { (self.results.chosen(number, &tuned.id, hops).map_or("–", |choice| &choice.text)) }
                                td { small { (tried(self.results.choices(number, &tuned.id, hops))) } }
                            }
                        } } }
                    } }
                }
            }
        }
    }

    fn tables(&self) -> Markup {
        let (names, challengers) = (self.transports(), self.challengers());
        html! {
            section {
                h2 { "All numbers" }
                p { "Goodput in kbit/s ± half width of the 95 % confidence interval (Student's t over the seeds), and the gain \
                     over " (label(&self.published.baseline)) " with its interval." }
                @for (number, panel) in self.published.panels.iter().enumerate() {
                    div.scroll { table {
                        caption { (panel.title) span { ", " (panel.note) } }
                        thead { tr {
                            th scope="col" { "hops" }
                            @for name in &names { th.key scope="col" style={ "border-color:" (css(look(name).color)) } { (label(name)) } }
                            @for name in &challengers { th scope="col" { "gain of " (label(name)) } }
                        } }
                        tbody { @for hops in self.results.hops() { tr {
                            td { (hops) }
                            @for name in &names { td {
                                @match self.goodput(number, name, hops) {
                                    Some(mean) if mean.half_width.is_finite() => {
                                        (format!("{:.1}", mean.mean)) " " small { "± " (format!("{:.1}", mean.half_width)) }
                                    }
                                    Some(mean) => (format!("{:.1}", mean.mean)),
                                    None => "–",
                                }
                            } }
                            @for name in &challengers { td {
                                @match self.gain(number, name, hops) { Some(gain) => (with_interval(&gain)), None => "–" }
                            } }
                        } } }
                    } }
                }
            }
        }
    }

    fn colophon(&self) -> Markup {
        let made = self.provenance;
        let last = made.first_seed + made.seeds.saturating_sub(1);
        html! {
            section {
                h2 { "Repeat it" }
                pre { code { (made.command(&self.published.id)) } }
                p { "gives these numbers again, to the last digit, on any machine." }
                dl {
                    dt { "Version" } dd { "meshpace " (made.version) }
                    dt { "Scenario" } dd { "SHA-256 " code { (made.scenario_sha256) } }
                    dt { "Runs" } dd { (made.points as u64 * made.seeds) " (" (made.points) " points, seeds " (made.first_seed) " to " (last) ")"
                        @if made.failed_runs > 0 { ", of which " strong { (made.failed_runs) " failed" } } }
                    dt { "Each run" } dd { "200 s of simulated time, the first 20 s dropped. Independent replications instead of \
                        the paper's batch means: the seeds are the sample." }
                    dt { "Files" } dd { a href="records.jsonl" { "records.jsonl" } ", " a href="records.csv" { "records.csv" } ", "
                        a href="manifest.json" { "manifest.json" } }
                }
                @if self.results.strangers > 0 { p { (self.results.strangers) " records belong to none of the panels and are not shown." } }
                footer { "Written by meshpace. Colours: Okabe and Ito." }
            }
        }
    }
}

/// A cause of the gain.
struct Cause {
    noun: &'static str,
    meaning: &'static str,
}

const CAUSES: [Cause; 3] = [
    Cause { noun: "on the air", meaning: "the gain on static routes, where nothing but the medium can be lost." },
    Cause {
        noun: "route failures avoided",
        meaning: "what AODV without local repair adds: breaking off, searching again, timing out.",
    },
    Cause {
        noun: "local repair avoided",
        meaning: "what ns-2's local repair adds. It asks for a route no newer than the one that broke, neighbours answer from \
                  stale tables, and the transfer stands still for seconds. It begins at 7 hops.",
    },
];

/// A verdict in its colour.
pub(super) fn chip(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Reproduced => "chip reproduced",
        Verdict::InShape => "chip in-shape",
        Verdict::Differs => "chip differs",
        Verdict::CannotBeJudged => "chip cannot-be-judged",
    };
    html! { span class=(class) { (verdict.words()) } }
}

/// Hyphens before digits become minus signs.
pub(super) fn signs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let minus = c == '-' && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if minus && !out.ends_with(|before: char| before.is_alphanumeric() || before == '*') {
            '\u{2212}'
        } else {
            c
        });
    }
    out
}

/// "1 to 5"
fn tried(choices: &[Choice]) -> String {
    match (choices.first(), choices.last()) {
        (Some(first), Some(last)) => format!("{} to {}", first.text, last.text),
        _ => String::new(),
    }
}

fn percent(value: f64) -> String {
    signs(&format!("{value:.0} %"))
}

fn with_interval(gain: &Gain) -> Markup {
    let (low, high) = gain.interval_pct();
    html! {
        (signs(&format!("{:+.1} %", gain.pct()))) " "
        small { (signs(&format!("({low:+.1} to {high:+.1})"))) }
    }
}

/// The mark of a transport, as in the plots.
fn swatch(look: &Look) -> Markup {
    let color = css(look.color);
    html! {
        svg viewBox="0 0 30 16" aria-hidden="true" {
            line x1="0" y1="8" x2="30" y2="8" stroke=(color) stroke-width="2.5"
                stroke-dasharray=[look.hollow.then_some("5 4")] {}
            g fill=(if look.hollow { "#FFFFFF" } else { &color }) stroke=(color) stroke-width="2" {
                @match look.shape {
                    Shape::Disc => circle cx="15" cy="8" r="5" {},
                    Shape::Triangle => polygon points="15,2 21,13 9,13" {},
                    Shape::Square => rect x="10" y="3" width="10" height="10" {},
                    Shape::Diamond => polygon points="15,1.5 21.5,8 15,14.5 8.5,8" {},
                    Shape::Funnel => polygon points="15,14 21,3 9,3" {},
                    Shape::Cross => path d="M10 3 20 13M10 13 20 3" stroke-width="3" {},
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::Experiment;

    /// A page of made-up goodputs: NewReno 1000 / hops and `newreno_at_10`, the others 1.84 and 1.05 times as much.
    fn page(newreno_at_10: f64) -> String {
        let published = Experiment::find("AP05-F14").unwrap().published().unwrap();
        let mut results = Results::default();
        for panel in 0..published.panels.len() {
            for hops in 1..=10 {
                let base = if hops == 10 { newreno_at_10 } else { 1000.0 / hops as f64 };
                for (name, factor) in [
                    ("newreno", 1.0),
                    ("newreno+dyn-delack", 1.84 * if hops > 8 { 0.9 } else { 1.05 }),
                    ("tcp-ap", 1.84),
                    ("tcp-ap+dyn-delack", 1.84 * 1.12),
                    ("tcp-ap-released", 1.05),
                ] {
                    results.put(panel, name, hops, &[0.99, 1.0, 1.01].map(|noise| base * factor * noise));
                }
            }
        }
        let provenance = Provenance {
            scenario: "made up <b>".into(),
            scenario_sha256: "0123".into(),
            version: "9.9.9".into(),
            first_seed: 1,
            seeds: 3,
            points: 90,
            failed_runs: 0,
        };
        Page { published: &published, results: &results, provenance: &provenance }.render()
    }

    #[test]
    fn the_page_needs_nothing_but_itself() {
        let page = page(90.0);
        for outside in ["src=", "@import", "url(", "<link", "<script", "http-equiv"] {
            assert!(!page.contains(outside), "{outside}");
        }
        let links: Vec<&str> = page.match_indices("href=\"").map(|(at, _)| &page[at + 6..at + 16]).collect();
        assert!(!links.is_empty() && links.iter().all(|link| !link.contains("://")), "{links:?}");
    }

    #[test]
    fn six_plots_whose_text_is_text() {
        let page = page(90.0);
        assert_eq!(page.matches("<svg role=\"img\"").count(), 6);
        assert!(page.matches("goodput, kbit/s").count() >= 3);
    }

    #[test]
    fn every_claim_has_its_verdicts_and_falsified_records_change_them() {
        let count = |page: &str, verdict: &str| page.matches(&format!("\">{verdict}</span>")).count();
        // On three kinds of routes: 1.84 reproduces the largest gain, 1.05 does not; both are above NewReno; all five
        // fall; 1.84 crosses NewReno with delayed ACKs at 8 hops, 1.05 never does; 12 % is between 7 and 17; and the
        // best of four is.
        let honest = page(90.0);
        assert_eq!(count(&honest, "reproduced"), 3 + 6 + 15 + 3 + 3 + 3);
        assert_eq!(count(&honest, "differs"), 3 + 3);
        assert_eq!(count(&honest, "cannot be judged"), 0);
        // Falsified: more at 10 hops than at 9. None of the fifteen curves falls any more.
        let falsified = page(200.0);
        assert_eq!(count(&falsified, "reproduced"), 3 + 6 + 3 + 3 + 3);
        assert_eq!(count(&falsified, "differs"), 3 + 15 + 3);
    }

    #[test]
    fn the_command_the_version_and_the_digest_are_there() {
        let page = page(90.0);
        assert!(page.contains("meshpace reproduce AP05-F14 --seeds 3"));
        assert!(page.contains("meshpace 9.9.9") && page.contains("0123"));
        assert!(page.contains("270 (90 points, seeds 1 to 3)"));
    }

    #[test]
    fn minus_signs_where_numbers_are_negative_only() {
        assert_eq!(signs("-4.0 % (-5.1 to +2), 4-hop, tpa*-3"), "\u{2212}4.0 % (\u{2212}5.1 to +2), 4-hop, tpa*-3");
    }
}
