//! A table of links (CSV). It has the columns `from` and `to` (names or numbers) and any of these:
//! `etx`, `metric` (a cost that routes add up), `delivery`, `snr_db`, `loss_db`, `hop_mbps` (what
//! the hop carries alone), `rate_mbps` or `mcs` (the bit rate of data frames), and `medium` (radio,
//! cable or tunnel). A line describes both directions unless the other direction has a line of its
//! own. An empty cell means that the value is not known.

use super::netjson::by_etx;
use super::{DataRate, Dump, LinkReport, Metric, TABLE, Wrong, viewer};
use std::collections::BTreeSet;

const MEASURES: [&str; 8] = ["etx", "metric", "delivery", "snr_db", "loss_db", "hop_mbps", "rate_mbps", "mcs"];
/// Transmit power over noise with which `loss_db` becomes a signal-to-noise ratio, dB: the default
/// of `radio.transmit_power` in dBm, less the noise of 20 MHz.
const POWER_OVER_NOISE_DB: f64 = 15.0 + 94.0;

/// A line of the table.
struct Row {
    line: u64,
    ends: [String; 2],
    report: LinkReport,
}

/// Bit rate of an MCS of 802.11n over 20 MHz with the long guard interval, Mbit/s (IEEE Std
/// 802.11-2016, 19.5).
pub fn mbps_of_mcs(mcs: f64) -> Option<f64> {
    const ONE_STREAM: [f64; 8] = [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0];
    let number = (mcs.fract() == 0.0 && (0.0..32.0).contains(&mcs)).then_some(mcs as usize)?;
    Some(ONE_STREAM[number % 8] * (number / 8 + 1) as f64)
}

/// Report that a line makes. `cell` returns the text in a column.
fn report(cell: impl Fn(&str) -> String) -> Result<LinkReport, String> {
    let number = |name: &str| -> Result<Option<f64>, String> {
        let text = cell(name);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let hint = if text.contains(',') { " (with a point, not a comma)" } else { "" };
        number.map(Some).ok_or_else(|| format!("{name}: expected a number{hint}, found \"{text}\""))
    };
    let by_mcs = match number("mcs")? {
        Some(mcs) => Some(mbps_of_mcs(mcs).ok_or_else(|| format!("mcs: expected 0 to 31, found \"{mcs}\""))?),
        None => None,
    };
    let rate = match (number("rate_mbps")?, by_mcs) {
        (Some(mbps), _) => Some(DataRate { mbps, has_aggregates: by_mcs.is_some() || !is_legacy(mbps) }),
        (None, mbps) => mbps.map(|mbps| DataRate { mbps, has_aggregates: true }),
    };
    let medium = match cell("medium") {
        text if text.is_empty() => None,
        text => Some(
            viewer::medium(&text)
                .ok_or_else(|| format!("medium: expected radio, cable or tunnel, found \"{text}\""))?,
        ),
    };
    Ok(LinkReport {
        delivery: number("etx")?.map(by_etx).transpose()?.or(number("delivery")?),
        cost: number("metric")?,
        mbps: number("hop_mbps")?,
        rate,
        snr_db: number("snr_db")?.or(number("loss_db")?.map(|loss| POWER_OVER_NOISE_DB - loss)),
        medium,
        ..LinkReport::default()
    })
}

/// True for the rates of 802.11a, b and g.
fn is_legacy(mbps: f64) -> bool {
    [1.0, 2.0, 5.5, 11.0, 6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0].contains(&mbps)
}

/// Reads the table.
pub fn read(bytes: &[u8]) -> Result<Dump, Wrong> {
    // A row with too many cells is an entry that cannot be used.
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(bytes);
    let wrong = |error: csv::Error| (error.position().map_or(1, csv::Position::line).to_string(), error.to_string());
    let header = reader.headers().map_err(wrong)?.clone();
    let column = |name: &str| header.iter().position(|title| title.eq_ignore_ascii_case(name));
    let (Some(from), Some(to)) = (column("from"), column("to")) else {
        return Err(("1".to_owned(), "expected the columns from and to".to_owned()));
    };
    let has = |name: &str| column(name).is_some();
    if !MEASURES.iter().any(|name| has(name)) {
        return Err(("1".to_owned(), format!("expected one of the columns {}", MEASURES.join(", "))));
    }
    let metric = match () {
        () if has("metric") => Metric::Cost,
        () if has("etx") || has("delivery") => Metric::Etx,
        () if has("hop_mbps") => Metric::Throughput,
        () => Metric::Hops,
    };
    let mut dump = Dump::of(TABLE, metric);
    let mut rows: Vec<Row> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        let line = record.position().map_or(1, csv::Position::line);
        let cell = |name: &str| column(name).and_then(|column| record.get(column)).unwrap_or_default().to_owned();
        let ends = [from, to].map(|column| record.get(column).unwrap_or_default().to_owned());
        match report(cell) {
            _ if record.len() > header.len() => {
                let why = format!("{} cells, and the header has {}: a decimal comma?", record.len(), header.len());
                dump.leave_out(line, why);
            }
            _ if ends.iter().any(String::is_empty) => dump.leave_out(line, "expected two nodes, from and to"),
            Ok(report) => rows.push(Row { line, ends, report }),
            Err(why) => dump.leave_out(line, why),
        }
    }
    // If all nodes are numbers, each keeps its number.
    let numbers: Option<BTreeSet<usize>> = rows.iter().flat_map(|row| &row.ends).map(|end| end.parse().ok()).collect();
    if let Some(largest) = numbers.and_then(|numbers| numbers.last().copied()).filter(|largest| *largest < 1000) {
        (0..=largest).for_each(|number| {
            dump.node(&number.to_string());
        });
    }
    let told: BTreeSet<[&str; 2]> = rows.iter().map(|row| [row.ends[0].as_str(), row.ends[1].as_str()]).collect();
    for Row { line, ends: [from, to], report } in &rows {
        let there = dump.report(from, to, *report);
        let has_other = told.contains(&[to.as_str(), from.as_str()]);
        let read = if has_other || there.is_err() { there } else { dump.report(to, from, *report) };
        dump.take(line, read);
    }
    Ok(dump)
}
