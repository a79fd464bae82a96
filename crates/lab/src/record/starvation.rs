//! Starvation: flows that delivered nothing, or nothing for a long time, although they had data to
//! send and a path. Every summary uses this module.

use super::kind::FlowKind;
use super::{FlowRecord, Record};

/// Share of the measured interval above which a gap is long, if the record does not set a limit.
const LONG: f64 = 0.1;

/// How a flow that had data to send was silent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Starved {
    /// It delivered nothing in the measured interval.
    Nothing,
    /// It delivered nothing for this many seconds, which is longer than the limit.
    Gap(f64),
}

impl Starved {
    /// Name for programs.
    fn name(self) -> &'static str {
        match self {
            Starved::Nothing => "nothing",
            Starved::Gap(_) => "gap",
        }
    }
}

/// Silence of a flow, and its reason.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Silence {
    /// Other flows starve the flow: it was silent although there was a path between its ends.
    Starved(Starved),
    /// There was no path between the ends of the flow. While there was one, the flow was not silent
    /// for long.
    NoPath(Starved),
}

/// Measurements of a flow that show whether it was silent. A value that is not known is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Number of bytes that the flow delivered.
    pub delivered: Option<u64>,
    /// Longest gap of the flow, seconds.
    pub gap: Option<f64>,
    /// Longest gap, without the time in which the flow had no path, seconds.
    pub gap_with_path: Option<f64>,
    /// Longest gap that does not count as starvation, seconds.
    pub long: f64,
}

impl Measured {
    /// Returns the silence of the flow; `None` if it was not silent for long.
    pub fn silence(self) -> Option<Silence> {
        let has_delivered = self.delivered? > 0;
        let is_long = |gap: Option<f64>| gap.is_some_and(|gap| gap > self.long);
        // True if the flow had no path for some time, and was not silent for long while it had one.
        let had_no_path =
            self.gap_with_path.is_some_and(|with_path| Some(with_path) < self.gap && with_path <= self.long);
        match (has_delivered, self.gap, self.gap_with_path) {
            // A gap of 0 s means that the flow never had anything to send.
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

/// Returns the starvation of every flow of a record, in the order of the flows.
fn of_flows(record: &Record) -> impl Iterator<Item = Option<Starved>> {
    record.flows.iter().map(|flow| record.starved(flow))
}

/// Returns the starved flows of a record with their numbers.
pub fn of_record(record: &Record) -> Vec<(usize, Starved)> {
    of_flows(record).enumerate().filter_map(|(id, starved)| Some((id, starved?))).collect()
}

/// True if some flow of the run was starved.
pub fn starves(record: &Record) -> bool {
    of_flows(record).any(|starved| starved.is_some())
}

/// True if no path connected the ends of some flow of a run at any time. This depends only on the
/// positions of the nodes, not on the transports.
pub fn lacks_path(record: &Record) -> bool {
    let all = record.measured_s();
    record.flows.iter().any(|flow| flow.time_without_path_s.is_some_and(|time| time > 0.999 * all))
}

/// Returns the largest value of a delay over the flows of a run, or more generally the result of
/// `of` for the values of the flows. `field` returns `None` for a flow that does not have this
/// delay, and NaN if it could not be measured. The result is infinite if the run starved a flow,
/// because no number describes the delay of such a flow. It is `None` if no flow has this delay.
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
    /// Longest silence that does not count as starvation, seconds.
    pub fn starved_after(&self) -> f64 {
        self.starved_after_s.unwrap_or(LONG * self.measured_s())
    }

    /// Returns the silence of one of the record's flows.
    pub fn silence(&self, flow: &FlowRecord) -> Option<Silence> {
        let long = self.starved_after();
        let (gap, gap_with_path) = (flow.longest_gap_s, flow.longest_gap_with_path_s);
        Measured { delivered: flow.delivered_bytes, gap, gap_with_path, long }.silence()
    }

    /// True if one of the flows was silent for long, whatever the reason.
    pub fn has_silence(&self) -> bool {
        self.flows.iter().any(|flow| self.silence(flow).is_some())
    }

    /// Returns how a flow was silent, if other flows starved it.
    pub fn starved(&self, flow: &FlowRecord) -> Option<Starved> {
        match self.silence(flow)? {
            Silence::Starved(starved) => Some(starved),
            Silence::NoPath(_) => None,
        }
    }

    /// Returns how a flow was silent, if a missing path explains the silence.
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

    /// Returns the record with the fields that are derived from others: which flows were silent and
    /// why, and Jain's indices of flows of one kind.
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

    /// The page of the viewer implements the same rule, and is tested with the same table
    /// (web/tests/starved.spec.ts).
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
