//! A table of links (CSV): columns `from` and `to` (names or numbers), and any of `etx`, `metric` (a cost that routes add up), `delivery`, `snr_db` and
//! `hop_mbps` (what the hop carries alone). A line is for both directions unless the other direction has a line of its own. An empty cell is not known.

use super::netjson::by_etx;
use super::{Dump, Heard, Metric, TABLE, Wrong};
use std::collections::BTreeSet;

const MEASURES: [&str; 5] = ["etx", "metric", "delivery", "snr_db", "hop_mbps"];

/// The table.
pub fn read(bytes: &[u8]) -> Result<Dump, Wrong> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let wrong = |error: csv::Error| (error.position().map_or(1, csv::Position::line).to_string(), error.to_string());
    let header = reader.headers().map_err(wrong)?.clone();
    let column = |name: &str| header.iter().position(|title| title.eq_ignore_ascii_case(name));
    let (Some(from), Some(to)) = (column("from"), column("to")) else {
        return Err(("1".to_owned(), "expected the columns from and to".to_owned()));
    };
    let columns = MEASURES.map(column);
    if columns.iter().all(Option::is_none) {
        return Err(("1".to_owned(), format!("expected one of the columns {}", MEASURES.join(", "))));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        let line = record.position().map_or(1, csv::Position::line).to_string();
        let ends = [from, to].map(|column| record.get(column).unwrap_or_default().to_owned());
        if ends.iter().any(String::is_empty) {
            return Err((line, "expected two nodes, from and to".to_owned()));
        }
        let mut values = [None; MEASURES.len()];
        for (value, (name, column)) in values.iter_mut().zip(MEASURES.iter().zip(columns)) {
            let text = column.and_then(|column| record.get(column)).unwrap_or_default();
            if !text.is_empty() {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                *value =
                    Some(number.ok_or_else(|| (line.clone(), format!("{name}: expected a number, found \"{text}\"")))?);
            }
        }
        rows.push((line, ends, values));
    }
    let metric = match columns {
        [_, Some(_), ..] => Metric::Cost,
        [Some(_), ..] | [_, _, Some(_), ..] => Metric::Etx,
        [.., Some(_)] => Metric::Throughput,
        _ => Metric::Hops,
    };
    let mut dump = Dump::of(TABLE, metric);
    // Nodes that are numbers keep them.
    let numbers: Option<BTreeSet<usize>> =
        rows.iter().flat_map(|(_, ends, _)| ends).map(|end| end.parse().ok()).collect();
    if let Some(largest) = numbers.and_then(|numbers| numbers.last().copied()).filter(|largest| *largest < 1000) {
        (0..=largest).for_each(|number| {
            dump.node(&number.to_string());
        });
    }
    let told: BTreeSet<[&str; 2]> = rows.iter().map(|(_, [from, to], _)| [from.as_str(), to.as_str()]).collect();
    for (line, [from, to], [etx, cost, delivery, snr_db, mbps]) in &rows {
        let mut add = |from: &str, to: &str| {
            let share = etx.map(by_etx).transpose()?.or(*delivery);
            dump.heard(
                from,
                to,
                Heard { delivery: share, cost: *cost, mbps: *mbps, snr_db: *snr_db, ..Heard::default() },
            )
        };
        add(from, to).map_err(|why| (line.clone(), why))?;
        if !told.contains(&[to.as_str(), from.as_str()]) {
            add(to, from).map_err(|why| (line.clone(), why))?;
        }
    }
    Ok(dump)
}
