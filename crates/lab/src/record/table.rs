//! Records as a table for people: one row per point, means over its seeds with 95 % intervals.

use super::{FlowRecord, Record, plain};
use crate::statistics::estimate;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, presets};

/// The confidence level of the intervals shown.
const LEVEL: f64 = 0.95;
/// Values below which an interval would say nothing: Student's t for two is 12.7.
const LEAST: usize = crate::compare::LEAST;

/// The table of records that come in the order of their points. On a terminal it is as wide as that at most, elsewhere as its cells.
pub fn render(records: &[Record]) -> String {
    render_within(terminal(), records)
}

/// Columns of the terminal, if there is one.
fn terminal() -> Option<u16> {
    console::Term::stdout().size_checked().map(|(_, columns)| columns)
}

fn render_within(width: Option<u16>, records: &[Record]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.style_mut().row_separator = LineStyle::none();
    let several_flows = first.flows.len() > 1;
    let mut header: Vec<String> = first.point.keys().cloned().collect();
    let numbers_from = header.len() + 1;
    header.push("flows".to_owned());
    // Timeouts are counted from the start, whatever the warm-up.
    let timeouts = if first.warmup_s > 0.0 { "timeouts in all" } else { "timeouts" };
    header.extend(["goodput kbit/s", "rexmit %", timeouts, "RTT ms"].map(str::to_owned));
    let loses = records.iter().flat_map(|record| &record.flows).any(|flow| flow.loss_ratio.is_some());
    if loses {
        header.push("lost %".to_owned());
    }
    if several_flows {
        header.extend(["Jain", "Jain 2 s", "per flow kbit/s"].map(str::to_owned));
    }
    header.push("seeds".to_owned());
    table.set_header(header);
    for group in records.chunk_by(|a, b| a.point == b.point) {
        table.add_row(row(group, several_flows, loses));
    }
    for column in table.column_iter_mut().skip(numbers_from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    format!("{}\n{}\n", first.scenario, table.trim_fmt())
}

/// A plain list with a header. On a terminal it is as wide as that, elsewhere as its cells.
pub fn listing<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    within(terminal(), header, rows)
}

/// The list with at most so many columns of characters, if there is a limit: every column but the first one, which has the names, is wrapped.
fn within<const N: usize>(width: Option<u16>, header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
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

/// `loses`: whether any flow of the table has a share that is lost; those of datagrams have, each by itself.
fn row(group: &[Record], several_flows: bool, loses: bool) -> Vec<String> {
    let mean = |scale: f64, digits: usize, value: &dyn Fn(&Record) -> f64| {
        let values: Vec<f64> = group.iter().map(value).filter(|value| value.is_finite()).collect();
        with_interval(&values, scale, digits)
    };
    let mut cells: Vec<String> = group[0].point.values().map(plain).collect();
    cells.push(transports(group));
    cells.push(mean(1e-3, 2, &|record| record.aggregate_goodput_bps));
    // Where nothing is sent again, there is nothing to count.
    let again = |record: &Record, value: f64| if record.flows.iter().all(is_datagrams) { f64::NAN } else { value };
    cells.push(mean(100.0, 2, &|record| again(record, record.retransmission_index)));
    let timeouts = |record: &Record| record.flows.iter().map(|flow| flow.timeouts as f64).sum();
    cells.push(mean(1.0, 1, &|record| again(record, timeouts(record))));
    cells.push(mean(1e3, 1, &mean_rtt));
    let of_flows = |of: &dyn Fn(usize) -> String| (0..group[0].flows.len()).map(of).collect::<Vec<_>>().join("\n");
    if loses {
        cells.push(of_flows(&|id| mean(100.0, 2, &|record| record.flows[id].loss_ratio.unwrap_or(f64::NAN))));
    }
    if several_flows {
        cells.push(mean(1.0, 3, &|record| record.jain));
        cells.push(mean(1.0, 3, &|record| record.jain_2s));
        cells.push(of_flows(&|id| mean(1e-3, 1, &|record| record.flows[id].goodput_bps)));
    }
    cells.push(group.len().to_string());
    cells
}

/// "newreno 0→7", one line per flow; "newreno, ends drawn" where they are others with every seed.
fn transports(group: &[Record]) -> String {
    let ends = |record: &Record, id: usize| record.flows.get(id).map(|flow| (flow.from, flow.to));
    let flows = group[0].flows.iter().enumerate().map(|(id, flow)| {
        if group.iter().all(|record| ends(record, id) == ends(&group[0], id)) {
            format!("{} {}→{}", flow.transport, flow.from, flow.to)
        } else {
            format!("{}, ends drawn", flow.transport)
        }
    });
    flows.collect::<Vec<_>>().join("\n")
}

/// Whether it is a flow of UDP, paced or not, with whatever is added to it.
fn is_datagrams(flow: &FlowRecord) -> bool {
    matches!(flow.transport.split(['{', '+']).next(), Some("udp" | "udp-paced"))
}

/// Mean RTT over the flows that measured one.
fn mean_rtt(record: &Record) -> f64 {
    let rtts: Vec<f64> = record.flows.iter().map(|flow| flow.rtt_mean_s).filter(|rtt| rtt.is_finite()).collect();
    rtts.iter().sum::<f64>() / rtts.len() as f64
}

/// "182.44 ± 1.03", "182.44" for one seed or two, "-" for none.
fn with_interval(values: &[f64], scale: f64, digits: usize) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let estimate = estimate(values, LEVEL);
    let mean = estimate.mean * scale;
    if estimate.count >= LEAST && estimate.half_width.is_finite() {
        format!("{mean:.digits$} ± {:.digits$}", estimate.half_width * scale)
    } else {
        format!("{mean:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn two_seeds_have_no_interval_and_drawn_ends_say_so() {
        let two = render(&[record(1, 0), record(2, 0)]);
        assert!(two.contains("150.00") && !two.contains('±') && two.contains("newreno 0→7"), "{two}");
        assert!(two.contains(" 0.00 ") && two.contains(" 0.0 "), "no retransmission, no timeout: {two}");
        let mut datagrams = record(1, 0);
        datagrams.flows[0].transport = "udp+llap".to_owned();
        let datagrams = render(&[datagrams]);
        assert!(!datagrams.contains(" 0.00 ") && !datagrams.contains(" 0.0 "), "UDP has neither: {datagrams}");
        let three = render(&[record(1, 0), record(2, 1), record(3, 0)]);
        assert!(three.contains('±') && three.contains("newreno, ends drawn"), "{three}");
        assert!(three.contains("timeouts in all"), "not of the measured interval alone");
    }

    #[test]
    fn datagrams_lose_and_segments_do_not() {
        let plain = render(&[record(1, 0)]);
        assert!(!plain.contains("lost %"), "{plain}");
        let mut mixed = record(1, 0);
        let mut datagrams = mixed.flows[0].clone();
        (datagrams.id, datagrams.transport, datagrams.loss_ratio) = (1, "udp".to_owned(), Some(0.125));
        mixed.flows.push(datagrams);
        let mixed = render(&[mixed]);
        let lost = |line: &str| line.split_whitespace().any(|word| word == "12.50");
        let of = |name: &str| mixed.lines().find(|line| line.contains(name)).unwrap_or_default();
        assert!(mixed.contains("lost %") && lost(of("udp")) && !lost(of("newreno")), "{mixed}");
        assert!(of("newreno").contains(" - "), "{mixed}");
    }

    #[test]
    fn a_table_is_no_wider_than_the_terminal() {
        let mut two = record(1, 0);
        let mut other = two.flows[0].clone();
        (other.id, other.from) = (1, 3);
        two.flows.push(other);
        let two = [two];
        let widest = |table: &str| table.lines().map(|line| line.chars().count()).max();
        assert!(widest(&render_within(None, &two)) > Some(100), "{}", render_within(None, &two));
        let narrow = render_within(Some(80), &two);
        assert!(widest(&narrow) <= Some(80) && narrow.contains("0→7") && narrow.contains("3→7"), "{narrow}");
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
        // Without a terminal a row is a line.
        assert_eq!(list(None).lines().count(), 3);
        assert_eq!(list(None), list(Some(1000)));
    }
}
