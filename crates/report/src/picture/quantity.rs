//! The quantities that are drawn against the axis, by the names of `plot.metrics`.

use meshpace_lab::summary;
use serde_json::Value;

/// A quantity of a run.
#[derive(Debug)]
pub struct Quantity {
    /// Its name in a scenario, and in the names of files.
    pub name: &'static str,
    /// Title for people, with its unit.
    pub title: &'static str,
    /// From the record's unit to that one.
    scale: f64,
    /// The largest value that there can be.
    pub most: Option<f64>,
    /// True if a larger value is better.
    pub more_is_better: bool,
    of: fn(&Value) -> Option<f64>,
}

/// Those that are drawn if a scenario does not choose.
pub const USUAL: [&str; 6] = ["goodput", "jain", "jain-2s", "retransmissions", "loss", "delay"];

/// All of them, in the order in which they are drawn.
pub const ALL: [Quantity; 13] = [
    more("goodput", "goodput of all flows, kbit/s", 1e-3, |record| field(record, "aggregate_goodput_bps")),
    Quantity { most: Some(1.0), ..more("jain", "Jain's index", 1.0, |record| shared(record, "jain")) },
    Quantity {
        most: Some(1.0),
        ..more("jain-2s", "Jain's index in windows of 2 s", 1.0, |record| shared(record, "jain_2s"))
    },
    // Datagrams are not sent again.
    less("retransmissions", "retransmissions, %", 100.0, |record| {
        let all_are_datagrams = flows(record).iter().all(|flow| flow.get("loss_ratio").is_some_and(Value::is_number));
        (!all_are_datagrams).then(|| field(record, "retransmission_index")).flatten()
    }),
    less("loss", "lost datagrams of UDP, %", 100.0, |record| {
        let values = of_flows(record, "loss_ratio")?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }),
    less("timeouts", "timeouts of all flows", 1.0, |record| Some(of_flows(record, "timeouts")?.iter().sum())),
    less("rtt", "mean round trip, ms", 1e3, |record| summary::delay(record, "rtt_mean_s", summary::mean)),
    less("delay", "95th percentile of the delay, ms", 1e3, |record| {
        summary::delay(record, "delay_p95_s", summary::largest)
    }),
    less("delay-median", "median delay, ms", 1e3, |record| summary::delay(record, "delay_p50_s", summary::largest)),
    less("collisions", "collisions", 1.0, |record| field(record, "collisions")),
    less("mac-drops", "frames given up by the MAC", 1.0, |record| field(record, "mac_drops")),
    less("queue-drops", "packets dropped by queues", 1.0, |record| field(record, "queue_drops")),
    less("frames", "frames on the air", 1.0, |record| field(record, "frames")),
];

const fn more(name: &'static str, title: &'static str, scale: f64, of: fn(&Value) -> Option<f64>) -> Quantity {
    Quantity { name, title, scale, most: None, more_is_better: true, of }
}

const fn less(name: &'static str, title: &'static str, scale: f64, of: fn(&Value) -> Option<f64>) -> Quantity {
    Quantity { name, title, scale, most: None, more_is_better: false, of }
}

impl Quantity {
    /// Its value in a record, in the unit of the title: infinite for the delay of a starved flow, which has none.
    pub fn of(&self, record: &Value) -> Option<f64> {
        (self.of)(record).map(|value| self.scale * value)
    }
}

/// Those called so, in the order of the names.
pub fn chosen<'a>(names: &'a [&str]) -> impl Iterator<Item = &'static Quantity> + 'a {
    names.iter().filter_map(|name| ALL.iter().find(|quantity| quantity.name == *name))
}

fn field(record: &Value, name: &str) -> Option<f64> {
    record.get(name)?.as_f64()
}

/// The flows of a record.
pub fn flows(record: &Value) -> &[Value] {
    record.get("flows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// An index of shares, where it says something.
fn shared(record: &Value, name: &str) -> Option<f64> {
    summary::has_shares(record).then(|| field(record, name)).flatten()
}

fn of_flows(record: &Value, name: &str) -> Option<Vec<f64>> {
    let values: Vec<f64> = flows(record).iter().filter_map(|flow| flow.get(name)?.as_f64()).collect();
    (!values.is_empty()).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_can_name_every_quantity_and_no_other() {
        assert_eq!(ALL.map(|quantity| quantity.name), meshpace_scenario::PLOTTED);
        assert_eq!(chosen(&USUAL).count(), USUAL.len());
    }
}
