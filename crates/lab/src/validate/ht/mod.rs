//! 802.11n and 802.11a. One cell is compared with theory; links, cells, chains, hidden terminals,
//! transfers and access categories are compared with ns-3.44 (docs/ht.md).

mod edca;
mod hops;
mod legacy;
mod links;
pub mod scene;
mod theory;

use super::{Options, Point, Sample, Table, Verdict};
use meshpace_mesh::HtConfig;
use scene::How;

/// Program and version of the references.
const NS3: &str = "ns-3.44";

/// Runs all comparisons.
pub fn compare(options: &Options) -> Vec<Table> {
    let mut tables = theory::compare(options);
    tables.extend(links::compare(options));
    tables.extend(hops::compare(options));
    tables.extend(edca::compare(options));
    tables.extend(legacy::compare(options));
    tables
}

/// Stations that send aggregates of up to 64 MPDUs, or frames of one MPDU. `asks` says whether they
/// request a block ACK that did not arrive.
fn how(mcs: u8, aggregates: bool, rts: bool, asks: bool) -> How {
    let mpdus = if aggregates { 64 } else { 1 };
    let ht = HtConfig { mpdus, requests_block_ack: asks, ..HtConfig::default() };
    How { ht: Some(ht), ..How::mcs(mcs, mpdus, rts) }
}

/// Parameters of a row of the reference, in words.
fn words(mcs: u8, aggregates: bool, rts: bool, asks: bool) -> String {
    let size = if aggregates { "aggregates" } else { "one MPDU" };
    let access = if rts { "RTS/CTS" } else { "basic access" };
    format!("MCS {mcs}, {size}, {access}{}", if asks { "" } else { ", block ACKs not asked for" })
}

/// A point with a rule in per cent, or without a rule.
fn point(case: String, reference: Sample, ours: Sample, rule_pct: Option<f64>) -> Point {
    let verdict = match rule_pct {
        Some(rule) => Verdict::from(ours.error_pct(&reference).abs() <= rule),
        None => Verdict::Shown,
    };
    let rule = rule_pct.map_or(String::new(), |rule| format!("{rule} %"));
    Point { case, reference: Some(reference), ours, rule, verdict }
}
