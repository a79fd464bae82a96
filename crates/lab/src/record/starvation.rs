//! Starved flows: those that delivered nothing, or nothing for long. Every summary asks here.

use super::{FlowRecord, Record};

/// The share of the measured interval beyond which a gap is long.
pub const LONG: f64 = 0.1;

/// Kind of starvation of a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Starved {
    /// It delivered nothing in the measured interval although it had data to send.
    Nothing,
    /// It delivered nothing for so many seconds, more than a tenth of the measured interval, while it had data to send.
    Gap(f64),
}

/// Starvation of a flow, if it was starved in the `measured` seconds, by its bytes delivered and its longest gap, seconds, where these are known.
pub fn starved(delivered: Option<u64>, gap: Option<f64>, measured: f64) -> Option<Starved> {
    match (delivered?, gap) {
        // It never had anything to send.
        (_, Some(0.0)) => None,
        (0, _) => Some(Starved::Nothing),
        (_, Some(gap)) if gap > LONG * measured => Some(Starved::Gap(gap)),
        _ => None,
    }
}

/// The same of every flow of a record.
fn of_flows(record: &Record) -> impl Iterator<Item = Option<Starved>> {
    record.flows.iter().map(|flow| record.starved(flow))
}

/// The flows of a record that were starved, by their number.
pub fn of_record(record: &Record) -> Vec<(usize, Starved)> {
    of_flows(record).enumerate().filter_map(|(id, starved)| Some((id, starved?))).collect()
}

/// True if a run starved some flow.
pub fn starves(record: &Record) -> bool {
    of_flows(record).any(|starved| starved.is_some())
}

/// The largest value of a delay over the flows of a run, or what `of` makes of the values instead. `field` is `None` for a flow that has no such
/// delay, and NaN where it could not be measured. A starved flow has none that any number could stand for: then it is infinite. `None` where that
/// delay is not measured.
pub fn delay(record: &Record, field: fn(&FlowRecord) -> Option<f64>, of: impl Fn(&[f64]) -> f64) -> Option<f64> {
    let values: Vec<f64> = record.flows.iter().filter_map(field).collect();
    if values.is_empty() {
        return None;
    }
    if starves(record) {
        return Some(f64::INFINITY);
    }
    let values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
    (!values.is_empty()).then(|| of(&values))
}

impl Record {
    /// Starvation of one of its flows.
    pub fn starved(&self, flow: &FlowRecord) -> Option<Starved> {
        starved(flow.delivered_bytes, flow.longest_gap_s, self.measured_s())
    }

    /// Length of the measured interval, seconds.
    pub fn measured_s(&self) -> f64 {
        self.duration_s - self.warmup_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The viewer's page has the same rule, and the same table (web/tests/starved.spec.ts).
    #[test]
    fn the_rule_is_that_of_the_table() {
        let cases: Vec<Value> = serde_json::from_str(include_str!("starvation-cases.json")).unwrap();
        assert!(cases.len() >= 9);
        for case in cases {
            let number = |name: &str| case[name].as_f64();
            let found =
                starved(case["delivered_bytes"].as_u64(), number("longest_gap_s"), number("measured_s").unwrap());
            let told = found.map(|found| if found == Starved::Nothing { "nothing" } else { "gap" });
            assert_eq!(told, case["starved"].as_str(), "{}", case["what"]);
        }
    }

    fn flow(delivered: u64, gap: f64) -> Value {
        json!({"from": 0, "to": 6, "delivered_bytes": delivered, "longest_gap_s": gap})
    }

    fn record(transport: &str, seed: u64, flows: &[Value]) -> Record {
        let point = json!({"flow.transport": transport});
        crate::record::record(
            json!({"seed": seed, "point": point, "duration_s": 100.0, "warmup_s": 20.0, "flows": flows}),
        )
    }

    #[test]
    fn a_tenth_of_the_measured_interval_is_long() {
        // 80 s are measured: 8 s are a tenth.
        assert_eq!(of_record(&record("a", 1, &[flow(9, 8.0), flow(9, 8.5)])), [(1, Starved::Gap(8.5))]);
        assert_eq!(
            of_record(&record("a", 1, &[flow(0, 80.0), flow(0, 0.0)])),
            [(0, Starved::Nothing)],
            "the other had nothing to send"
        );
        // Records of older versions and of real networks have no gaps.
        let old = json!({"duration_s": 1.0, "flows": [{"delivered_bytes": 0}, {"delivered_bytes": 1}, {}]});
        let old = crate::record::record(old);
        assert_eq!(of_record(&old), [(0, Starved::Nothing)]);
        assert!(starves(&old) && !starves(&record("a", 1, &[flow(1, 1.0)])));
    }

    #[test]
    fn the_delay_of_a_starved_flow_outranks_every_number() {
        let flow = |bytes: u64, p95: Value| json!({"delivered_bytes": bytes, "delay_p95_s": p95});
        let of = |flows: Value| {
            let record = crate::record::record(json!({"duration_s": 10.0, "flows": flows}));
            delay(&record, |flow| flow.delay_p95_s, crate::summary::largest)
        };
        assert_eq!(of(json!([flow(1, 0.2.into()), flow(1, 0.3.into())])), Some(0.3));
        assert_eq!(of(json!([flow(1, 0.2.into()), flow(0, Value::Null)])), Some(f64::INFINITY));
        assert_eq!(of(json!([flow(0, Value::Null)])), Some(f64::INFINITY));
        assert_eq!(of(json!([{"delivered_bytes": 0}])), None, "nobody measures it there");
    }
}
