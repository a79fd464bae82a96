//! Starved flows: those that delivered nothing, or nothing for long. Every summary asks here.

use super::kind::FlowKind;
use super::{FlowRecord, Record};

/// The share of the measured interval beyond which a gap is long, if the record does not say.
const LONG: f64 = 0.1;

/// Silence of a flow that had data to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Starved {
    /// It delivered nothing in the measured interval.
    Nothing,
    /// It delivered nothing for so many seconds, longer than a flow may.
    Gap(f64),
}

impl Starved {
    /// Its name for programs.
    fn name(self) -> &'static str {
        match self {
            Starved::Nothing => "nothing",
            Starved::Gap(_) => "gap",
        }
    }
}

/// A silent flow, and why it was silent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Silence {
    /// Others starve it: it was silent although there was a path between its ends.
    Starved(Starved),
    /// There was no path between its ends; while there was one it was not silent for long.
    NoPath(Starved),
}

/// Measurements of a flow that tell whether it was silent. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Bytes it delivered.
    pub delivered: Option<u64>,
    /// Its longest gap, seconds.
    pub gap: Option<f64>,
    /// The longest gap without its time without a path, seconds.
    pub gap_with_path: Option<f64>,
    /// The longest gap that is no starvation, seconds.
    pub long: f64,
}

impl Measured {
    /// The silence of the flow, if it was silent for long.
    pub fn silence(self) -> Option<Silence> {
        let has_delivered = self.delivered? > 0;
        let is_long = |gap: Option<f64>| gap.is_some_and(|gap| gap > self.long);
        // What had no path for a time, and was not silent for long while it had one.
        let had_no_path =
            self.gap_with_path.is_some_and(|with_path| Some(with_path) < self.gap && with_path <= self.long);
        match (has_delivered, self.gap, self.gap_with_path) {
            // It never had anything to send.
            (_, Some(0.0), _) => None,
            (false, ..) if had_no_path => Some(Silence::NoPath(Starved::Nothing)),
            (false, ..) => Some(Silence::Starved(Starved::Nothing)),
            (true, Some(gap), None) if is_long(self.gap) => Some(Silence::Starved(Starved::Gap(gap))),
            (true, _, Some(with_path)) if is_long(self.gap_with_path) => {
                Some(Silence::Starved(Starved::Gap(with_path)))
            }
            (true, Some(gap), Some(_)) if is_long(self.gap) => Some(Silence::NoPath(Starved::Gap(gap))),
            _ => None,
        }
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

/// True if no path connected the ends of some flow of a run at any time. That follows from where the
/// nodes are alone, whatever the transports do.
pub fn lacks_path(record: &Record) -> bool {
    let all = record.measured_s();
    record.flows.iter().any(|flow| flow.time_without_path_s.is_some_and(|time| time > 0.999 * all))
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
    /// The silence beyond which a flow is starved, seconds.
    pub fn starved_after(&self) -> f64 {
        self.starved_after_s.unwrap_or(LONG * self.measured_s())
    }

    /// Silence of one of its flows.
    pub fn silence(&self, flow: &FlowRecord) -> Option<Silence> {
        let long = self.starved_after();
        let (gap, gap_with_path) = (flow.longest_gap_s, flow.longest_gap_with_path_s);
        Measured { delivered: flow.delivered_bytes, gap, gap_with_path, long }.silence()
    }

    /// True if one of its flows was silent for long, whatever the reason.
    pub fn has_silence(&self) -> bool {
        self.flows.iter().any(|flow| self.silence(flow).is_some())
    }

    /// Starvation of one of its flows by others.
    pub fn starved(&self, flow: &FlowRecord) -> Option<Starved> {
        match self.silence(flow)? {
            Silence::Starved(starved) => Some(starved),
            Silence::NoPath(_) => None,
        }
    }

    /// Silence of one of its flows that a missing path explains.
    pub fn without_path(&self, flow: &FlowRecord) -> Option<Starved> {
        match self.silence(flow)? {
            Silence::Starved(_) => None,
            Silence::NoPath(silent) => Some(silent),
        }
    }

    /// Length of the measured interval, seconds.
    pub fn measured_s(&self) -> f64 {
        self.duration_s - self.warmup_s
    }

    /// The record with the fields that follow from others: which flows were silent, and why; and the indices of flows of one kind.
    pub fn judged(mut self) -> Record {
        let silences: Vec<Option<Silence>> = self.flows.iter().map(|flow| self.silence(flow)).collect();
        for (flow, silence) in self.flows.iter_mut().zip(&silences) {
            let name = |silent: Starved| Some(silent.name().to_owned());
            (flow.starved, flow.without_path) = match silence {
                Some(Silence::Starved(starved)) => (name(*starved), None),
                Some(Silence::NoPath(silent)) => (None, name(*silent)),
                None => (None, None),
            };
        }
        let count = |is: fn(&FlowRecord) -> bool| Some(self.flows.iter().filter(|flow| is(flow)).count());
        (self.starved_flows, self.flows_without_path) =
            (count(|flow| flow.starved.is_some()), count(|flow| flow.without_path.is_some()));
        self.jain_transfers = self.jain_of(FlowKind::Transfer);
        self.jain_files = self.jain_of(FlowKind::Files);
        self.jain_datagrams = self.jain_of(FlowKind::Datagrams);
        self
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
        assert!(cases.len() >= 15);
        for case in cases {
            let number = |name: &str| case[name].as_f64();
            let measured = Measured {
                delivered: case["delivered_bytes"].as_u64(),
                gap: number("longest_gap_s"),
                gap_with_path: number("longest_gap_with_path_s"),
                long: LONG * number("measured_s").unwrap(),
            };
            let told = match measured.silence() {
                Some(Silence::Starved(starved)) => (Some(starved.name()), None),
                Some(Silence::NoPath(silent)) => (None, Some(silent.name())),
                None => (None, None),
            };
            assert_eq!(told, (case["starved"].as_str(), case["without_path"].as_str()), "{}", case["what"]);
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

    #[test]
    fn a_missing_path_is_not_starvation() {
        let of = |delivered: u64, gap: f64, with_path: f64| {
            let (delivered, gap, gap_with_path) = (Some(delivered), Some(gap), Some(with_path));
            Measured { delivered, gap, gap_with_path, long: 10.0 }.silence()
        };
        use {Silence as S, Starved::*};
        assert_eq!(of(9, 60.0, 4.0), Some(S::NoPath(Gap(60.0))), "56 s of the gap had no path");
        assert_eq!(of(9, 60.0, 15.0), Some(S::Starved(Gap(15.0))), "15 s with a path are too long");
        assert_eq!(of(9, 60.0, 60.0), Some(S::Starved(Gap(60.0))), "there always was one");
        assert_eq!(of(9, 8.0, 8.0), None);
        assert_eq!(of(0, 100.0, 3.0), Some(S::NoPath(Nothing)));
        assert_eq!(of(0, 100.0, 50.0), Some(S::Starved(Nothing)));
        assert_eq!(of(0, 5.0, 5.0), Some(S::Starved(Nothing)), "it had a path in the little time that it had");
        assert_eq!(of(0, 0.0, 0.0), None, "nothing to send");
    }

    #[test]
    fn a_record_says_who_starved_by_its_own_threshold() {
        let flows = json!([
            {"delivered_bytes": 9, "longest_gap_s": 6.0},
            {"delivered_bytes": 9, "longest_gap_s": 60.0, "longest_gap_with_path_s": 1.0, "time_without_path_s": 59.0},
        ]);
        let of = |after: f64| {
            crate::record::record(
                json!({"duration_s": 100.0, "warmup_s": 0.0, "starved_after_s": after, "flows": flows}),
            )
        };
        let strict = of(5.0);
        assert_eq!((strict.starved_flows, strict.flows_without_path), (Some(1), Some(1)));
        assert_eq!((strict.flows[0].starved.as_deref(), strict.flows[1].starved.as_deref()), (Some("gap"), None));
        assert_eq!(strict.flows[1].without_path.as_deref(), Some("gap"));
        assert!(starves(&strict) && !starves(&of(10.0)), "a missing path starves nobody");
    }
}
