//! Records as a table for people. It begins with the starved flows. For each point it has a row for
//! each flow and one for all flows, with means over the seeds and 95 % confidence intervals.

use super::kind::FlowKind;
use super::metrics::has_shares;
use super::starvation::Starved;
use super::tally::{self, Tally};
use super::{CompletionRecord, FlowRecord, Record, keys_of};
use crate::summary::{Mean, PLUS_MINUS, median};
use crate::words::spoken;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, Width, presets};

/// Width in characters, if there is no terminal.
const WIDTH: u16 = 80;
/// Largest width of text in characters. Longer lines are hard to read.
const WIDEST: u16 = 100;
/// Average width in characters that a column of a list needs at least to be readable.
const LEAST: usize = 8;
/// Indentation of the lines of an entry below its head.
const INDENT: &str = "    ";
/// Mark at the beginning of the row of a starved flow.
const MARK: &str = "! ";

/// Returns the table of records, which must be in the order of their points. It is at most as wide
/// as the terminal, or 80 characters if there is none. On a terminal, the lines about starved flows
/// are in colour.
pub fn render(records: &[Record]) -> String {
    render_first(records, &Tally::of(records), 0)
}

/// Returns the table of the first points only. `tally` counts all runs, and `left_out` is the
/// number of points that the table omits.
pub fn render_first(records: &[Record], tally: &Tally, left_out: usize) -> String {
    let text = render_within(terminal().unwrap_or(WIDTH), records, tally, left_out);
    if console::colors_enabled() { coloured(&text) } else { text }
}

/// Colours the lines that report starved flows.
fn coloured(text: &str) -> String {
    let line = |line: &str| match line.starts_with(MARK) || line.contains(&format!(" {MARK}")) {
        true => format!("{}\n", tally::coloured(line, true)),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Width of the terminal in characters; `None` if there is no terminal.
fn terminal() -> Option<u16> {
    console::Term::stdout().size_checked().map(|(_, columns)| columns)
}

fn render_within(width: u16, records: &[Record], tally: &Tally, left_out: usize) -> String {
    let Some(first) = records.first() else { return String::new() };
    let groups: Vec<&[Record]> = records.chunk_by(|a, b| a.point == b.point).collect();
    let seeds = groups[0].len();
    let same_seeds = groups.iter().all(|group| group.len() == seeds);
    let any = |has: &dyn Fn(&FlowRecord) -> bool| records.iter().flat_map(|record| &record.flows).any(has);
    let mut columns = vec![Column::Goodput, Column::Retransmissions, Column::Timeouts, Column::Rtt];
    columns.extend(any(&|flow| flow.delay_p95_s.is_some()).then_some(Column::Delay));
    columns.extend(any(&|flow| flow.loss_ratio.is_some()).then_some(Column::Lost));
    if any(&|flow| flow.completions.is_some()) {
        columns.extend([Column::Files, Column::FileTime]);
    }
    let mut table = empty();
    let keys = keys_of(records.iter().map(|record| record.point.keys().map(String::as_str)));
    let mut header: Vec<String> = keys.iter().map(|key| short(key, &keys)).collect();
    let numbers_from = header.len() + 1;
    header.push("flow".to_owned());
    header.extend(columns.iter().map(|column| column.title(first.warmup_s > 0.0).to_owned()));
    header.extend((!same_seeds).then(|| "seeds".to_owned()));
    table.set_header(header);
    for group in &groups {
        let mut rows: Vec<Row> = (0..group[0].flows.len()).map(Row::Flow).collect();
        if rows.len() != 1 {
            rows.push(Row::Total);
        }
        for (number, row) in rows.iter().enumerate() {
            let mut cells: Vec<String> = keys.iter().map(|key| told(&group[0], key)).collect();
            if number > 0 {
                cells.iter_mut().for_each(String::clear);
            }
            cells.push(row.label(group));
            cells.extend(columns.iter().map(|column| column.cell(row, group)));
            let count = if number == 0 { group.len().to_string() } else { String::new() };
            cells.extend((!same_seeds).then_some(count));
            table.add_row(cells);
        }
    }
    let seeds = match seeds {
        _ if !same_seeds => String::new(),
        1 => ", 1 seed".to_owned(),
        seeds => format!(", {seeds} seeds"),
    };
    let head = wrapped(width, &format!("{}{seeds}", first.scenario), "");
    let starved: String = tally.sentences().iter().map(|sentence| wrapped(width, sentence, MARK)).collect();
    let indices = indices(&groups, &keys).map(|table| finished(table, keys.len(), width)).unwrap_or_default();
    let tables = finished(table, numbers_from, width) + &indices;
    let signs: String = signs(&tables, first).iter().map(|sign| wrapped(width, sign, "")).collect();
    let rest = match left_out {
        0 => String::new(),
        _ => wrapped(width, &beyond(groups.len(), left_out), ""),
    };
    format!("{head}{starved}{tables}{rest}{signs}")
}

/// Says how many points a table omits, and where they can be found.
fn beyond(shown: usize, left_out: usize) -> String {
    format!(
        "These are the first {shown} of {} points. --format summary has a line for each point, and --format csv a row for each flow and run.",
        shown + left_out
    )
}

/// Explains the signs that occur in these tables, for a first-time reader.
fn signs(tables: &str, record: &Record) -> Vec<String> {
    let ends = record.flows.iter().map(|flow| (flow.from, flow.to));
    let shown = ends.map(|(from, to)| (from, to, format!("{from}→{to}"))).find(|(_, _, ends)| tables.contains(ends));
    let mut signs: Vec<String> =
        shown.into_iter().map(|(from, to, ends)| format!("{ends}: from node {from} to node {to}")).collect();
    signs.extend(tables.contains('±').then(|| PLUS_MINUS.to_owned()));
    signs
}

/// Wraps a sentence into lines of at most `width` characters, each with `mark` before it. A word
/// that is longer than a line has a line of its own.
fn wrapped(width: u16, sentence: &str, mark: &str) -> String {
    let room = usize::from(width).saturating_sub(mark.len());
    let (mut text, mut used) = (String::new(), 0);
    for word in sentence.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            text.push('\n');
            used = 0;
        }
        text.push_str(if used == 0 { mark } else { " " });
        text.push_str(word);
        used += length + usize::from(used > 0);
    }
    text + "\n"
}

/// Last part of a key, or the whole key if another key ends with the same part.
fn short(key: &str, keys: &[String]) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let is_alone = keys.iter().filter(|other| last(other) == last(key)).count() == 1;
    if is_alone { last(key) } else { key.to_owned() }
}

/// Value of a key at a record's point, in words; empty if the point does not have the key.
fn told(record: &Record, key: &str) -> String {
    record.point.get(key).map(spoken).unwrap_or_default()
}

/// Subject of a row.
enum Row {
    /// The flow with this number.
    Flow(usize),
    /// All flows.
    Total,
}

/// Content of a column.
#[derive(Clone, Copy)]
enum Column {
    Goodput,
    Retransmissions,
    Timeouts,
    Rtt,
    Delay,
    Lost,
    Files,
    FileTime,
}

impl Row {
    /// Label of the row: for example "newreno 0→7", or "long: newreno 0→7" for a flow with a name.
    /// A mark stands before it if the flow was starved in some run. If the ends differ between
    /// seeds, the label of flow 2 is "2: newreno".
    fn label(&self, group: &[Record]) -> String {
        let Row::Flow(id) = self else { return "total".to_owned() };
        let flow = &group[0].flows[*id];
        let is_starved = |record: &Record| record.flows.get(*id).is_some_and(|flow| record.starved(flow).is_some());
        let mark = if group.iter().any(is_starved) { MARK } else { "" };
        let ends = |record: &Record| record.flows.get(*id).map(|flow| (flow.from, flow.to));
        let is_drawn = group.iter().any(|record| ends(record) != ends(&group[0]));
        // The label omits the transport if the point already names it.
        let is_told = group[0].point.values().any(|value| value.as_str() == Some(flow.transport.as_str()));
        let what = match (is_told, is_drawn) {
            (true, true) => None,
            (true, false) => Some(format!("{}→{}", flow.from, flow.to)),
            (false, true) => Some(flow.transport.clone()),
            (false, false) => Some(format!("{} {}→{}", flow.transport, flow.from, flow.to)),
        };
        match (&flow.name, what) {
            (Some(name), Some(what)) => format!("{mark}{name}: {what}"),
            (Some(name), None) => format!("{mark}{name}"),
            (None, Some(what)) if is_drawn => format!("{mark}{id}: {what}"),
            (None, Some(what)) => format!("{mark}{what}"),
            (None, None) => format!("{mark}flow {id}"),
        }
    }

    /// Returns the flows of the row in a run.
    fn flows<'a>(&self, record: &'a Record) -> &'a [FlowRecord] {
        match self {
            Row::Flow(id) => record.flows.get(*id).map(std::slice::from_ref).unwrap_or_default(),
            Row::Total => &record.flows,
        }
    }
}

/// Table of Jain's index, for the points at which it is meaningful. `None` if there are no such
/// points.
fn indices(groups: &[&[Record]], keys: &[String]) -> Option<Table> {
    let shared: Vec<&&[Record]> = groups.iter().filter(|group| group.iter().all(has_shares)).collect();
    shared.first()?;
    let mut table = empty();
    let heads = keys.iter().map(|key| short(key, keys));
    table.set_header(heads.chain(["Jain's index".to_owned(), "in windows of 2 s".to_owned()]));
    let index = |group: &[Record], of: fn(&Record) -> f64| cell(group, of, |_| 3);
    for group in shared {
        let indices = [index(group, |record| record.jain), index(group, |record| record.jain_2s)];
        table.add_row(keys.iter().map(|key| told(&group[0], key)).chain(indices));
    }
    Some(table)
}

/// Creates a table without rows.
fn empty() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.style_mut().row_separator = LineStyle::none();
    table
}

/// Renders a table within `width` characters. Columns from number `numbers_from` on contain numbers
/// and are right-aligned.
fn finished(mut table: Table, numbers_from: usize, width: u16) -> String {
    // No word in the head of a column with numbers is broken.
    let longest = |head: String| head.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let heads: Vec<usize> =
        table.header().into_iter().flat_map(comfy_table::Row::cell_iter).map(|cell| longest(cell.content())).collect();
    // Words in the heads of the other columns are not broken either, if there is room for all.
    let fits = heads.iter().map(|word| word + 2).sum::<usize>() <= usize::from(width);
    for (number, (column, word)) in table.column_iter_mut().zip(heads).enumerate() {
        column.set_padding((0, 1));
        if number >= numbers_from || fits {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word as u16 + 1)));
        }
        if number >= numbers_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    format!("{}\n", table.trim_fmt())
}

impl Column {
    fn title(self, is_warmed_up: bool) -> &'static str {
        match self {
            Column::Goodput => "kbit/s",
            Column::Retransmissions => "rexmit %",
            // Timeouts are counted from the start of the run, warm-up included.
            Column::Timeouts if is_warmed_up => "timeouts in all",
            Column::Timeouts => "timeouts",
            Column::Rtt => "RTT ms",
            Column::Delay => "delay p95 ms",
            Column::Lost => "lost %",
            Column::Files => "files",
            Column::FileTime => "file s, median",
        }
    }

    fn cell(self, row: &Row, group: &[Record]) -> String {
        let decimals = match self {
            Column::Retransmissions | Column::Lost => |_| 2,
            Column::Timeouts | Column::Files => |_| 1,
            _ => three,
        };
        cell(group, |record| self.value(row, record), decimals)
    }

    /// Returns the value for a run: infinite stands for "none", and NaN for a value that was not
    /// measured.
    fn value(self, row: &Row, record: &Record) -> f64 {
        let flows = row.flows(record);
        // Datagrams are never retransmitted, so there is nothing to count.
        let again =
            |value: f64| if flows.iter().all(|flow| flow.kind() == FlowKind::Datagrams) { f64::NAN } else { value };
        // A row of one flow shows the delay of the packets that the flow did deliver. The row of
        // all flows shows "none" if one of them is starved.
        let is_none = flows.iter().any(|flow| match (row, record.starved(flow)) {
            (_, None) => false,
            (Row::Flow(_), Some(starved)) => starved == Starved::Nothing,
            (Row::Total, Some(_)) => true,
        });
        let delay = |value: f64| if is_none { f64::INFINITY } else { value };
        let measured = |of: fn(&FlowRecord) -> f64| flows.iter().map(of).filter(|value| value.is_finite());
        let mean = |of: fn(&FlowRecord) -> f64| measured(of).sum::<f64>() / measured(of).count() as f64;
        let p95 = |flow: &FlowRecord| flow.delay_p95_s.unwrap_or(f64::NAN);
        match (self, row) {
            (Column::Goodput, Row::Total) => record.aggregate_goodput_bps * 1e-3,
            (Column::Goodput, Row::Flow(_)) => mean(|flow| flow.goodput_bps) * 1e-3,
            (Column::Retransmissions, Row::Total) => again(record.retransmission_index * 100.0),
            (Column::Retransmissions, Row::Flow(_)) => again(mean(|flow| flow.retransmission_index) * 100.0),
            (Column::Timeouts, _) => again(measured(|flow| flow.timeouts.map_or(f64::NAN, |count| count as f64)).sum()),
            (Column::Rtt, _) => again(delay(mean(|flow| flow.rtt_mean_s) * 1e3)),
            (Column::Delay, _) => delay(measured(p95).fold(f64::NAN, f64::max) * 1e3),
            (Column::Lost, _) => mean(|flow| flow.loss_ratio.unwrap_or(f64::NAN)) * 100.0,
            (Column::Files, _) => match flows.iter().any(|flow| flow.completions.is_some()) {
                true => file_times(flows).len() as f64,
                false => f64::NAN,
            },
            (Column::FileTime, _) => match flows.iter().any(|flow| flow.completions.is_some()) {
                true => median(file_times(flows)).unwrap_or(delay(f64::NAN)),
                false => f64::NAN,
            },
        }
    }
}

/// Returns the transfer times of the files of these flows, seconds.
fn file_times(flows: &[FlowRecord]) -> Vec<f64> {
    flows.iter().flat_map(|flow| flow.completions.iter().flatten()).map(CompletionRecord::time_s).collect()
}

/// Text of a cell, for example "182.4 ±1.0". It has no interval for one or two seeds. It is "none
/// 3/10" if a starved flow has no value in 3 of 10 runs, and "-" if there is no value. `decimals`
/// returns the number of decimals for a mean; the interval has as many.
fn cell(group: &[Record], of: impl Fn(&Record) -> f64, decimals: impl Fn(f64) -> usize) -> String {
    let values: Vec<f64> = group.iter().map(of).collect();
    let Some(mean) = Mean::of(&values) else { return "-".to_owned() };
    let digits = decimals(mean.numbers.mean);
    let told = mean.told(|value| if value == 0.0 { "0".to_owned() } else { format!("{value:.digits$}") });
    let told = told.replace(" ± ", " ±").replace("none in ", "none ").replace("(in ", "(");
    told.replace(" of ", "/")
}

/// Number of decimals for three significant digits; one decimal for values from 10 on.
fn three(mean: f64) -> usize {
    match mean.abs() {
        size if size >= 10.0 || size.is_nan() => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    }
}

/// Width in characters for an [`entry`]: that of the terminal but at most 100, or 80 if there is no
/// terminal.
pub fn columns() -> u16 {
    terminal().map_or(WIDTH, |columns| columns.min(WIDEST))
}

/// Entry of a list whose rows would be too wide for a table. `head` stands on one line however long
/// it is, so that `grep` finds all of it. The paragraphs below are indented and wrapped to `width`
/// characters. Empty paragraphs are left out.
pub fn entry(width: u16, head: &str, paragraphs: &[&str]) -> String {
    let filled = paragraphs.iter().filter(|paragraph| !paragraph.is_empty());
    format!("{head}\n") + &filled.map(|paragraph| wrapped(width, paragraph, INDENT)).collect::<String>()
}

/// Plain list with a header. On a terminal it is as wide as the terminal, elsewhere as wide as its
/// cells.
pub fn listing<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    within(terminal(), header, rows)
}

/// Renders the list with at most `width` characters, if there is a limit. Every column is wrapped
/// except the first, which has the names. If the other columns would be too narrow, each row
/// becomes an [`entry`].
fn within<const N: usize>(width: Option<u16>, header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.collect();
    let names = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
    if let Some(width) = width.filter(|width| usize::from(*width) < names + LEAST * (N - 1)) {
        let told = |row: &[String; N]| {
            let cells = header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
            let cells: Vec<String> = cells.map(|(title, cell)| format!("{title}: {cell}")).collect();
            entry(width, &row[0], &cells.iter().map(String::as_str).collect::<Vec<_>>())
        };
        return rows.iter().map(told).collect();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table.add_rows(rows);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        if let Some(names) = table.column_mut(0) {
            names.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    format!("{}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_width(width: u16, records: &[Record]) -> String {
        render_within(width, records, &Tally::of(records), 0)
    }

    fn record(seed: u64, from: u64) -> Record {
        let flow = serde_json::json!({
            "id": 0, "from": from, "to": 7, "hops": 2, "transport": "newreno", "goodput_bps": 1e5 * seed as f64,
            "delivered_bytes": 1, "segments_sent": 1, "retransmissions": 0, "timeouts": 0, "retransmission_index": 0.0,
            "rtt_mean_s": 0.1, "cov_rtt": null, "pacing": null,
        });
        serde_json::from_value(serde_json::json!({
            "scenario": "s", "seed": seed, "point": {}, "duration_s": 10.0, "aggregate_goodput_bps": 1e5 * seed as f64, "jain": 1.0,
            "jain_2s": 1.0, "idle_windows": 0, "retransmission_index": 0.0, "frames": 1, "flows": [flow], "warmup_s": 1.0,
            "fingerprint": "", "format": 2, "model": 1,
        }))
        .unwrap()
    }

    /// Renders the table with a width that limits nothing.
    fn wide(records: &[Record]) -> String {
        of_width(1000, records)
    }

    #[test]
    fn a_table_says_which_points_it_lacks() {
        let whole = of_width(80, &[record(1, 0)]);
        let tally = Tally::of(&[record(1, 0)]);
        let cut = render_within(80, &[record(1, 0)], &tally, 99_999);
        let told: Vec<&str> = cut.lines().filter(|line| !whole.contains(line)).collect();
        assert!(told.concat().starts_with("These are the first 1 of 100000 points. --format summary"), "{cut}");
    }

    /// Returns the cells of the row that begins with `start`.
    fn row<'a>(table: &'a str, start: &str) -> Vec<&'a str> {
        let line = table.lines().find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("{start}: {table}"))
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect()
    }

    fn with_flow(record: &Record, change: impl Fn(&mut FlowRecord)) -> Record {
        let mut record = record.clone();
        let mut flow = record.flows[0].clone();
        flow.id = record.flows.len();
        change(&mut flow);
        record.flows.push(flow);
        record
    }

    #[test]
    fn two_seeds_have_no_interval_and_drawn_ends_say_so() {
        let two = wide(&[record(1, 0), record(2, 0)]);
        assert!(two.contains("150.0") && !two.contains('±') && two.contains("newreno 0→7"), "{two}");
        assert!(two.ends_with("\n0→7: from node 0 to node 7\n"), "{two}");
        assert!(two.starts_with("s, 2 seeds\n") && !two.contains("total"), "{two}");
        assert_eq!(row(&two, "newreno")[2..4], ["0", "0"], "no retransmission, no timeout: {two}");
        let mut datagrams = record(1, 0);
        datagrams.flows[0].transport = "udp+llap".to_owned();
        let datagrams = wide(&[datagrams]);
        assert_eq!(row(&datagrams, "udp+llap")[2..4], ["-", "-"], "UDP has neither: {datagrams}");
        let three = wide(&[record(1, 0), record(2, 1), record(3, 0)]);
        assert!(three.contains('±') && three.contains("0: newreno"), "{three}");
        assert!(three.ends_with("\n±: half the width of the 95 % confidence interval\n"), "no ends are shown: {three}");
        assert!(three.contains("timeouts in all"), "not of the measured interval alone");
    }

    #[test]
    fn a_flow_is_called_by_its_name() {
        let mut named = record(1, 0);
        named.flows[0].name = Some("long".to_owned());
        named.flows[0].delivered_bytes = Some(0);
        let table = wide(&[with_flow(&named, |flow| (flow.name, flow.delivered_bytes) = (None, Some(1)))]);
        assert!(table.contains("! long: newreno 0→7") && table.contains("\nnewreno 0→7"), "{table}");
        assert!(table.contains("! long (node 0 to node 7) delivered nothing"), "{table}");
    }

    #[test]
    fn datagrams_lose_and_segments_do_not() {
        let plain = wide(&[record(1, 0)]);
        assert!(!plain.contains("lost %"), "{plain}");
        let mixed = wide(&[with_flow(&record(1, 0), |flow| {
            (flow.transport, flow.loss_ratio) = ("udp".to_owned(), Some(0.125));
        })]);
        assert!(mixed.contains("lost %") && row(&mixed, "udp 0→7").contains(&"12.50"), "{mixed}");
        assert_eq!(row(&mixed, "newreno 0→7").last(), Some(&"-"), "{mixed}");
    }

    #[test]
    fn a_table_is_no_wider_than_the_terminal() {
        let mut two = with_flow(&record(1, 0), |flow| {
            (flow.from, flow.loss_ratio) = (3, Some(0.1));
            flow.completions = Some(Vec::new());
        });
        two.flows[0].transport = "a-transport-with-a-long-name".to_owned();
        two.scenario = "a word ".repeat(30);
        two.flows[0].delivered_bytes = Some(0);
        let two: Vec<Record> = (1..=3).map(|seed| Record { seed, ..two.clone() }).collect();
        let widest = |table: &str| table.lines().map(|line| line.chars().count()).max();
        assert!(widest(&wide(&two)) > Some(100), "{}", wide(&two));
        let narrow = of_width(80, &two);
        assert!(widest(&narrow) <= Some(80) && narrow.contains("0→7") && narrow.contains("3→7"), "{narrow}");
        assert!(narrow.contains("timeouts") && narrow.contains("median"), "whole words: {narrow}");
        let narrower = of_width(50, &[record(1, 0)]);
        assert!(widest(&narrower) <= Some(50) && narrower.contains("\nflow"), "{narrower}");
        assert!(widest(&of_width(40, &[record(1, 0)])) <= Some(40));
    }

    #[test]
    fn who_starved_comes_first_and_has_no_delay() {
        let alive = |record: &mut Record| {
            record.flows[0].delay_p95_s = Some(0.25);
            record.flows[0].delivered_bytes = Some(1);
        };
        let dead = |flow: &mut FlowRecord| {
            (flow.from, flow.delivered_bytes, flow.goodput_bps, flow.rtt_mean_s) = (3, Some(0), 0.0, f64::NAN);
            flow.delay_p95_s = Some(f64::NAN);
        };
        let of = |seed| {
            let mut record = record(seed, 0);
            alive(&mut record);
            with_flow(&record, dead)
        };
        let table = wide(&[of(1), of(2)]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].starts_with("! STARVED: a flow was starved in every one of 2 runs"), "{table}");
        assert!(lines[2].starts_with("! flow 1 (node 3 to node 7) delivered nothing in 2 of 2 runs."), "{table}");
        assert!(row(&table, "newreno 0→7").contains(&"250.0"), "{table}");
        assert_eq!(row(&table, "! newreno 3→7").last(), Some(&"none"), "{table}");
        assert_eq!(row(&table, "total").last(), Some(&"none"), "the delay of all flows: {table}");
        assert!(coloured(&table).lines().nth(1).is_some_and(|line| line.starts_with("\u{1b}[")));
        assert!(!coloured(&table).lines().next().is_some_and(|line| line.contains('\u{1b}')));
        let mut well = record(1, 0);
        alive(&mut well);
        assert!(!wide(&[well]).contains('!'));
    }

    #[test]
    fn a_row_for_each_flow_and_one_for_all_with_the_indices() {
        let of = |seed| with_flow(&record(seed, 0), |flow| flow.from = 3);
        let table = wide(&[of(1), of(2), of(3)]);
        assert!(row(&table, "newreno 3→7")[1].starts_with("200.0 ±"), "{table}");
        assert!(row(&table, "total")[1].starts_with("200.0 ±") && table.contains("Jain's index"), "{table}");
        // Files beside a transfer: nobody wants their shares to be equal.
        let files = |seconds: &[f64]| {
            let file = |end: &f64| serde_json::json!({"start_s": 1.0, "end_s": 1.0 + end, "bytes": 9});
            serde_json::from_value(seconds.iter().map(file).collect()).unwrap()
        };
        let mixed = |seed| with_flow(&record(seed, 0), |flow| flow.completions = Some(files(&[1.0, 9.0, 2.0])));
        let table = wide(&[mixed(1), mixed(2)]);
        assert!(table.contains("total") && !table.contains("Jain"), "{table}");
        let cells = row(&table, "total");
        assert_eq!(cells[cells.len() - 2..], ["3.0", "2.00"], "three files, 2 s in the middle: {table}");
    }

    #[test]
    fn what_was_measured_in_some_runs_says_in_how_many() {
        let mut never = record(2, 0);
        never.flows[0].rtt_mean_s = f64::NAN;
        let spread: Vec<Record> = (1..=3).map(|seed| record(seed, 0)).collect();
        // 100, 200 and 300: a deviation of 100, and Student's t of 4.303.
        assert!(row(&wide(&spread), "newreno").contains(&"200.0 ±248.4"));
        let table = wide(&[record(1, 0), never]);
        assert!(row(&table, "newreno").contains(&"100.0 (1/2)"), "{table}");
    }

    #[test]
    fn an_entry_has_a_whole_head_and_wrapped_paragraphs() {
        let meaning = "the weight of the old average in the new one, between none and all of it";
        let text = entry(30, "flow.transport.pacing.alpha = 0.7  number, 0 to 1", &[meaning, "", "AP05"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "flow.transport.pacing.alpha = 0.7  number, 0 to 1");
        assert!(lines[1..].iter().all(|line| line.starts_with("    ") && line.len() <= 30), "{text}");
        assert_eq!(lines[1..].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "), format!("{meaning} AP05"));
        assert_eq!(lines.len(), 5, "72 letters in three lines of 26, none for what is empty, the source: {text}");
    }

    #[test]
    fn a_list_is_no_wider_than_the_terminal_and_no_word_is_lost() {
        let meaning = "the weight of the old average in the new one, between none and all of it";
        let list = |width| {
            let rows = [("flow.transport.pacing.alpha", meaning), ("duration", "how long a run is")];
            let rows = rows.map(|(key, meaning)| [key, "number", meaning, "AP05, section 4.5"].map(str::to_owned));
            within(width, ["key", "takes", "meaning", "source"], rows.into_iter())
        };
        let narrow = list(Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("flow.transport.pacing.alpha") && !narrow.contains(meaning), "{narrow}");
        let words = |text: &str| {
            let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(words(&narrow), words(&list(None)));
        // Where a column would be a letter wide, a row is a block with the titles.
        let narrower = list(Some(40));
        assert!(narrower.lines().all(|line| line.chars().count() <= 40), "{narrower}");
        assert!(narrower.contains("\n    takes: number\n    meaning: the weight of the old"), "{narrower}");
        // Without a terminal a row is a line.
        assert_eq!(list(None).lines().count(), 3);
        assert_eq!(list(None), list(Some(1000)));
    }
}
