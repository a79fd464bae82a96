//! `radio.links`: a file that says how each node hears each other one, as real meshes are known.
//!
//! Columns `from` and `to` (numbers of nodes) and one of `loss_db`, `snr_db` and `delivery`. A line is for both directions unless the
//! other direction has a line of its own. Pairs without a line hear nothing of each other.

use super::Files;
use super::files::Load;
use super::propagation::refuse;
use super::reader::Reader;
use meshpace_core::NodeId;
use meshpace_mesh::config::{Propagation, RadioConfig};
use meshpace_mesh::radio::{Channel, Links, LogDistance};
use std::path::PathBuf;

/// Measure of a link in a line.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Loss,
    Snr,
    Delivery,
}

const COLUMNS: [(&str, Measure); 3] =
    [("loss_db", Measure::Loss), ("snr_db", Measure::Snr), ("delivery", Measure::Delivery)];

/// Reads the key; everything else of `radio` is known. Returns the file.
pub fn read(keys: &mut Reader<'_>, radio: &mut RadioConfig, load: Load<'_>) -> Files {
    let Some(name) = keys.text("links") else { return Files::new() };
    let others = [
        "model",
        "path_loss_exponent",
        "reference_loss",
        "attenuator",
        "antenna_gain",
        "cable",
        "shadowing",
        "shadowing_seed",
    ];
    refuse(keys, &others, "links that are computed", "either radio.links or these");
    let power_dbm = match &radio.propagation {
        Propagation::LogDistance(model) => model.transmit_power_dbm,
        _ => LogDistance::default().transmit_power_dbm,
    };
    let bytes = match load(name) {
        Ok(bytes) => bytes,
        Err(why) => {
            keys.report_invalid(
                "links",
                why,
                "expected a CSV file with the columns from, to and loss_db, snr_db or delivery",
            );
            return Files::new();
        }
    };
    match parse(&bytes, power_dbm, radio) {
        Ok(links) => radio.propagation = Propagation::Links(Links::new(links)),
        Err((line, why)) => keys.report_invalid("links", format!("{name}:{line}: {why}"), "read from here"),
    }
    vec![(PathBuf::from(name), bytes)]
}

/// From, to, and received power in dBm.
type Link = (NodeId, NodeId, f64);

/// Both directions of each line; the lines themselves come last.
fn parse(bytes: &[u8], power_dbm: f64, radio: &RadioConfig) -> Result<Vec<Link>, (u64, String)> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| (1, error.to_string()))?.clone();
    let column = |name: &str| header.iter().position(|title| title == name);
    let ends = column("from").zip(column("to")).ok_or((1, "expected the columns from and to".to_owned()))?;
    let measures: Vec<_> = COLUMNS.iter().filter_map(|&(name, measure)| Some((column(name)?, measure))).collect();
    let [(value, measure)] = measures[..] else {
        return Err((1, "expected one of the columns loss_db, snr_db and delivery".to_owned()));
    };
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| (error.position().map_or(1, csv::Position::line), error.to_string()))?;
        let line = record.position().map_or(1, csv::Position::line);
        let wrong = |what: &str, text: &str| (line, format!("expected {what}, found \"{text}\""));
        let node = |column: usize| {
            let text = record.get(column).unwrap_or_default();
            text.parse::<u16>()
                .ok()
                .filter(|&number| !NodeId(number).is_broadcast())
                .map(NodeId)
                .ok_or_else(|| wrong("the number of a node", text))
        };
        let text = record.get(value).unwrap_or_default();
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() <= 300.0);
        let number = number.ok_or_else(|| wrong("a number", text))?;
        let received = match measure {
            Measure::Loss => power_dbm - number,
            Measure::Snr => radio.noise_dbm + number,
            Measure::Delivery if number == 0.0 => continue,
            Measure::Delivery if (0.0..=1.0).contains(&number) => {
                let (snr, detected) = (Channel::snr_for(radio, number), radio.detect_ratio_db);
                if snr < detected {
                    let why = format!("at this rate {text} is {snr:.1} dB, and radio.preamble_sinr is {detected} dB");
                    return Err((line, why + ": nothing would arrive; lower that, or give snr_db"));
                }
                radio.noise_dbm + snr
            }
            Measure::Delivery => return Err(wrong("a share of 0 to 1", text)),
        };
        let (from, to) = (node(ends.0)?, node(ends.1)?);
        if from == to {
            return Err((line, format!("a link of node {} with itself", from.0)));
        }
        there.push((from, to, received));
        back.push((to, from, received));
    }
    back.extend(there);
    Ok(back)
}
