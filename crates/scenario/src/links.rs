//! `radio.links`: a file that says how strongly each node receives each other node. Measurements of
//! real meshes have this form.
//!
//! The columns are `from` and `to` (numbers or names of nodes) and any of `loss_db`, `snr_db` and
//! `delivery`; each line has a value in exactly one of the latter. With 802.11n there may also be
//! `mcs`, the rate of the direction. A line applies to both directions, unless the other direction
//! has a line of its own. Nodes of a pair without a line do not receive each other.
//!
//! A name is that of a node of the map in `topology.file`. Without a map that has names, nodes are
//! numbered in the order in which the file names them.

use super::Files;
use super::files::Load;
use super::propagation::refuse;
use super::reader::Reader;
use meshpace_core::NodeId;
use meshpace_mesh::config::{Propagation, RadioConfig, RateControl};
use meshpace_mesh::radio::{Channel, Links, LogDistance, Ofdm, OfdmRate};
use std::path::PathBuf;

/// Measure by which a line describes a link.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Loss,
    Snr,
    Delivery,
}

const COLUMNS: [(&str, Measure); 3] =
    [("loss_db", Measure::Loss), ("snr_db", Measure::Snr), ("delivery", Measure::Delivery)];

/// Difference that keeps a ratio on its side of the detection threshold in spite of rounding, dB.
const MARGIN_DB: f64 = 0.01;

/// Delivery ratio from which a link counts as lossless. At such a ratio a stronger signal does not
/// deliver more.
const WHOLE: f64 = 0.999;

/// Reads the key, after all other keys of `radio`. `names` are the names of the map's nodes; the
/// list is empty if they have none. Returns the file.
pub fn read(keys: &mut Reader<'_>, radio: &mut RadioConfig, names: &[String], load: Load<'_>) -> Files {
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
    refuse(keys, &others, "links that are computed", "expected either radio.links or these keys");
    // If the list cannot be read, the radio has no links. Links by distance would hide the error.
    let log_distance = std::mem::replace(&mut radio.propagation, Propagation::Links(Links::default()));
    let power_dbm = match &log_distance {
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
    let has_own_detection = keys.value("preamble_sinr").is_some();
    match parse(&bytes, power_dbm, radio, names) {
        Ok(list) => match list.least_db.filter(|least| has_own_detection && *least < radio.detect_ratio_db) {
            Some(least) => {
                let detected = radio.detect_ratio_db;
                let why = format!(
                    "{name}: its weakest delivery is {least:.1} dB at this rate, which is below radio.preamble_sinr ({detected} dB), so nothing would arrive"
                );
                keys.report_invalid(
                    "links",
                    why,
                    "expected no radio.preamble_sinr beside deliveries, or snr_db in the file",
                );
            }
            None => list.put_into(radio, keys.value("rate_control").is_some()),
        },
        Err((line, why)) => keys.report_invalid("links", format!("{name}:{line}: {why}"), "read from here"),
    }
    vec![(PathBuf::from(name), bytes)]
}

/// Sender, receiver, and received power in dBm.
type Link = (NodeId, NodeId, f64);

/// Content of the file. For each line, both directions are in the list. The directions that were
/// written come last, so that they replace the others.
#[derive(Default)]
struct List {
    links: Vec<Link>,
    rates: Vec<(NodeId, NodeId, u8)>,
    /// Smallest signal-to-noise ratio that a `delivery` in the file stands for, dB. Frames must be
    /// detected at this ratio. `None` if the file has no `delivery`.
    least_db: Option<f64>,
}

impl List {
    fn put_into(self, radio: &mut RadioConfig, has_rate_control: bool) {
        // Frames that were delivered were detected, whatever the default threshold is.
        radio.detect_ratio_db =
            self.least_db.map_or(radio.detect_ratio_db, |least| (least - MARGIN_DB).min(radio.detect_ratio_db));
        if !self.rates.is_empty() && !has_rate_control {
            radio.rate_control = RateControl::Listed;
        }
        radio.propagation = Propagation::Links(Links::new(self.links).with_rates(self.rates));
    }
}

/// Numbers of nodes by the names that the file uses for them.
struct Numbers<'a> {
    of_map: &'a [String],
    /// Names in the order of the file, if there is no map with names.
    seen: Vec<String>,
    /// True if the file uses numbers.
    has_numbers: bool,
}

impl Numbers<'_> {
    fn node(&mut self, text: &str) -> Result<NodeId, String> {
        let named = self.of_map.iter().position(|name| name == text);
        if named.is_none()
            && let Ok(number) = text.parse::<u16>()
        {
            let id = NodeId(number);
            self.has_numbers = true;
            if !self.seen.is_empty() {
                return Err(format!("expected a name as in the lines before, found \"{text}\""));
            }
            return if id.is_broadcast() { Err("the number is too large".to_owned()) } else { Ok(id) };
        }
        if !self.of_map.is_empty() {
            let known = self.of_map.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
            let unknown =
                || format!("expected the number or the name of a node of the map ({known}), found \"{text}\"");
            return named.map(|place| NodeId(place as u16)).ok_or_else(unknown);
        }
        if text.is_empty() || self.has_numbers {
            return Err(format!(
                "expected the number of a node, found \"{text}\": names are those of the map in topology.file"
            ));
        }
        let place = self.seen.iter().position(|name| name == text).unwrap_or_else(|| {
            self.seen.push(text.to_owned());
            self.seen.len() - 1
        });
        u16::try_from(place).map(NodeId).map_err(|_| "too many names".to_owned())
    }
}

/// Parses the MCS of a line: one of 802.11n, at most that of `radio.rate`. `None` if the line has
/// no MCS.
fn mcs(text: &str, radio: &RadioConfig) -> Result<Option<u8>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let Some(Ofdm { data: OfdmRate::Ht { mcs: highest, .. }, .. }) = radio.ofdm else {
        return Err("mcs belongs to 802.11n (mac.profile = \"ht\")".to_owned());
    };
    let number = text.parse::<u8>().ok().filter(|mcs| *mcs <= highest);
    number.map(Some).ok_or_else(|| format!("expected an MCS up to {highest}, which is radio.rate, found \"{text}\""))
}

/// The radio with the rate of one direction of a link.
fn at_rate(radio: &RadioConfig, mcs: Option<u8>) -> RadioConfig {
    let data = |ofdm: Ofdm| mcs.map_or(ofdm.data, |mcs| ofdm.chosen(mcs));
    RadioConfig {
        ofdm: radio.ofdm.map(|ofdm| Ofdm { data: data(ofdm), ..ofdm }),
        rate_control: RateControl::Fixed,
        ..radio.clone()
    }
}

fn parse(bytes: &[u8], power_dbm: f64, radio: &RadioConfig, names: &[String]) -> Result<List, (u64, String)> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| (1, error.to_string()))?.clone();
    let column = |name: &str| header.iter().position(|title| title == name);
    let ends = column("from").zip(column("to")).ok_or((1, "expected the columns from and to".to_owned()))?;
    let measures: Vec<_> = COLUMNS.iter().filter_map(|&(name, measure)| Some((column(name)?, measure))).collect();
    if measures.is_empty() {
        return Err((1, "expected one of the columns loss_db, snr_db and delivery".to_owned()));
    }
    let rate = column("mcs");
    let mut numbers = Numbers { of_map: names, seen: Vec::new(), has_numbers: false };
    let (mut list, mut there, mut rates_there) = (List::default(), Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| (error.position().map_or(1, csv::Position::line), error.to_string()))?;
        let line = record.position().map_or(1, csv::Position::line);
        let wrong = |what: &str, text: &str| (line, format!("expected {what}, found \"{text}\""));
        let has = |&&(column, _): &&(usize, Measure)| record.get(column).is_some_and(|cell| !cell.is_empty());
        let mut given = measures.iter().filter(has);
        let (Some(&(value, measure)), None) = (given.next(), given.next()) else {
            return Err((line, "expected one of loss_db, snr_db and delivery in each line".to_owned()));
        };
        let text = record.get(value).unwrap_or_default();
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() <= 300.0);
        let number = number.ok_or_else(|| wrong("a number", text))?;
        let mcs = mcs(rate.and_then(|rate| record.get(rate)).unwrap_or_default(), radio).map_err(|why| (line, why))?;
        let received = match measure {
            Measure::Loss => power_dbm - number,
            Measure::Snr => radio.noise_dbm + number,
            Measure::Delivery if number == 0.0 => continue,
            Measure::Delivery if (0.0..=1.0).contains(&number) => {
                let snr = Channel::snr_for(&at_rate(radio, mcs), number);
                let snr = if number >= WHOLE { snr.max(radio.detect_ratio_db + MARGIN_DB) } else { snr };
                list.least_db = Some(list.least_db.map_or(snr, |least: f64| least.min(snr)));
                radio.noise_dbm + snr
            }
            Measure::Delivery => return Err(wrong("a share of 0 to 1", text)),
        };
        let mut node = |column: usize| {
            let text = record.get(column).unwrap_or_default();
            numbers.node(text).map_err(|why| (line, why))
        };
        let (from, to) = (node(ends.0)?, node(ends.1)?);
        if from == to {
            return Err((line, format!("a link of node {} with itself", from.0)));
        }
        there.push((from, to, received));
        list.links.push((to, from, received));
        if let Some(mcs) = mcs {
            rates_there.push((from, to, mcs));
            list.rates.push((to, from, mcs));
        }
    }
    if there.is_empty() {
        return Err((1, "the file has no links".to_owned()));
    }
    list.links.extend(there);
    list.rates.extend(rates_there);
    Ok(list)
}
