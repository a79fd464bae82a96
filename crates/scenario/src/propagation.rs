//! `radio.model` and `radio.reception` with their parameters.

use super::reader::{Reader, Sign, parse_quantity};
use super::transport::pacing::assign;
use meshpace_mesh::config::{Propagation, RadioConfig, Reception};
use meshpace_mesh::radio::LogDistance;
use meshpace_mesh::radio::log_distance::MAX_ATTENUATOR_DB;
use meshpace_settings::diagnostic::Problem;
use meshpace_settings::quantity::RATIO;
use meshpace_settings::value::{Kind, Origin, Value};

/// Reads the keys; the rates of `radio` are set already.
pub fn read(keys: &mut Reader<'_>, radio: &mut RadioConfig) {
    let is_ofdm = radio.ofdm.is_some();
    let links = keys.value("links").is_some();
    let model = keys.choice("model", &[("two-ray", false), ("log-distance", true)], &[]);
    if is_ofdm && model == Some(false) {
        let message = "the constants of two-ray are those of a radio at 914 MHz";
        keys.report_invalid("model", message, "expected \"log-distance\" with rates of 802.11a and 802.11n");
    }
    let is_log_distance = model.unwrap_or(is_ofdm || links);
    let usual = if is_log_distance || is_ofdm { Reception::Sinr } else { Reception::Ns2 };
    let reception = keys.choice("reception", &[("ns2", Reception::Ns2), ("sinr", Reception::Sinr)], &[]);
    radio.reception = reception.unwrap_or(usual);
    if is_ofdm && radio.reception == Reception::Ns2 {
        keys.report_invalid("reception", "belongs to 802.11b", "expected \"sinr\" with rates of 802.11a and 802.11n");
    }
    let mut usual = LogDistance::default();
    if let Some(ofdm) = radio.ofdm {
        // Thermal noise over 20 MHz with a noise figure of 7 dB; reference loss of 20 log10(MHz) -
        // 28 dB; threshold of energy detection (IEEE Std 802.11-2016, 17.3.10.6).
        (radio.noise_dbm, radio.carrier_sense_dbm) = (-94.0, -62.0);
        usual.reference_loss_db = 20.0 * libm::log10(ofdm.band.frequency_hz() / 1e6) - 28.0;
    }
    keys.parameters(radio);
    if !is_log_distance && keys.value("carrier_sense_threshold").is_some() {
        radio.two_ray_sense_dbm = Some(radio.carrier_sense_dbm);
    }
    let model = log_distance(keys, usual);
    if is_log_distance {
        radio.propagation = Propagation::LogDistance(model);
    } else {
        refuse(keys, &log_distance_only(), "the log-distance model", "radio.model = \"log-distance\"");
        if radio.reception == Reception::Ns2 {
            let instead = "radio.reception = \"sinr\" or radio.model = \"log-distance\"";
            refuse(keys, &["noise", "preamble_sinr"], "radios with noise", instead);
        }
    }
}

/// Keys that have no effect with the two-ray model.
fn log_distance_only() -> Vec<&'static str> {
    let declared = LogDistance::PARAMETERS.iter().map(|parameter| parameter.key);
    declared.chain(["attenuator"]).collect()
}

/// Refuses keys that belong to `owner`, which this scenario does not use.
pub fn refuse(keys: &Reader<'_>, names: &[&str], owner: &str, instead: &str) {
    for name in names.iter().filter(|name| keys.value(name).is_some()) {
        keys.report_invalid(name, format!("belongs to {owner}"), format!("expected {instead} with it"));
    }
}

fn log_distance(keys: &mut Reader<'_>, mut model: LogDistance) -> LogDistance {
    keys.parameters(&mut model);
    match keys.get("attenuator") {
        None => {}
        Some(Value { kind: Kind::Array(items), .. }) => {
            let read = |(node, item): (usize, &Value)| {
                let whose = format!("node {node}: ");
                attenuator(keys, item, &item.origin, &whose).unwrap_or(0.0)
            };
            model.attenuators_db = items.iter().enumerate().map(read).collect();
            if let Some(&first) = model.attenuators_db.first() {
                model.attenuator_db = first;
            }
        }
        Some(value) => assign(&mut model.attenuator_db, attenuator(keys, value, &value.origin, "")),
    }
    model
}

/// Reads the setting of one attenuator, or reports an error at `origin`.
fn attenuator(keys: &Reader<'_>, value: &Value, origin: &Origin, whose: &str) -> Option<f64> {
    let expected = match parse_quantity(value, &RATIO, Sign::Any, f64::MAX) {
        Ok(db) if (0.0..=MAX_ATTENUATOR_DB).contains(&db) => return Some(db),
        Ok(_) => format!("an attenuator of 0 dB to {MAX_ATTENUATOR_DB} dB"),
        Err(expected) => expected,
    };
    keys.problems().add(Problem {
        message: format!("{}: {whose}expected {expected}, found {}", keys.path("attenuator"), value.describe()),
        origin: Some(origin.clone()),
        expected: format!("expected {expected}"),
        help: None,
        point: None,
    });
    None
}

/// Refuses a list of attenuators whose length differs from the number of nodes.
pub fn refuse_miscounted_attenuators(root: &Reader<'_>, radio: &RadioConfig, nodes: usize) {
    let Propagation::LogDistance(model) = &radio.propagation else { return };
    let listed = model.attenuators_db.len();
    if listed > 0 && nodes > 0 && listed != nodes {
        let radio = root.value("radio").map(|value| &value.kind);
        let value = if let Some(Kind::Table(table)) = radio { table.get("attenuator") } else { None };
        root.problems().add(Problem {
            message: format!("radio.attenuator: {listed} attenuators for {nodes} nodes"),
            origin: value.map(|value| value.origin.clone()),
            expected: format!("expected one for all, or a list of {nodes}"),
            help: None,
            point: None,
        });
    }
}
