//! Table of the metrics of a run that people compare. `compare`, the plots of a report and the
//! rankings are made from this table. Each metric has a name, a value for each record, a unit, a
//! title, and the direction in which it is better.

use super::starvation;
use super::{CompletionRecord, FlowRecord, Record};
use crate::summary;

/// Name of the metric for the goodput of all flows.
pub const GOODPUT: &str = "aggregate_goodput_bps";
/// Name of the metric for Jain's index.
pub const JAIN: &str = "jain";
/// Name of the metric for Jain's index over windows of 2 s.
pub const JAIN_2S: &str = "jain_2s";
/// Name of the metric for the 95th percentile of the delay.
pub const DELAY: &str = "delay_p95_s";

/// Name of the metric for the share of flows that others starve.
pub const STARVED: &str = "starved_share";

/// Metric of a run: its value, and the words in which it is reported.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name for programs. If the metric is a field of the record, it is the name of the field.
    pub name: &'static str,
    /// Name in `plot.metrics`; `None` if the metric is not drawn.
    pub plot: Option<&'static str>,
    /// True if the metric is drawn and ranked when a scenario does not choose its metrics.
    pub is_usual: bool,
    /// Title in plots, without the unit.
    pub title: &'static str,
    /// Noun for sentences.
    pub noun: &'static str,
    /// Verb phrase for the better side, for example "has the higher goodput". It is empty if
    /// `compare` does not compare the metric.
    pub ahead: &'static str,
    /// True if the results under other models (`compare --robust`) show the metric.
    pub is_told: bool,
    /// Unit in output for people, and the factor that converts from the unit of the record.
    pub unit: (&'static str, f64),
    /// True if the metric describes starvation. A side that starves flows can be better in it, so
    /// it is reported only for runs in which a flow was silent.
    pub is_of_silence: bool,
    /// True if neither side counts as better in the metric, which is then reported for each flow
    /// alone. The share of flows without a path is such a metric. In one mesh, the transport that
    /// starves more flows can have fewer flows without a path, because a starved flow does not
    /// count as one without a path.
    pub is_fact: bool,
    /// Largest possible value; `None` if there is no limit.
    pub most: Option<f64>,
    /// True if a larger value is better.
    pub more_is_better: bool,
    /// Returns the value for a record: infinite if a flow is starved and has no value, `None` if it
    /// was not measured.
    pub of: fn(&Record) -> Option<f64>,
    /// True if the metric is meaningful for this run.
    pub says: fn(&Record) -> bool,
}

/// Default settings, from which most metrics differ in a few fields.
pub const PLAIN: Metric = Metric {
    name: "",
    plot: None,
    is_usual: false,
    title: "",
    noun: "",
    ahead: "",
    is_told: false,
    unit: ("", 1.0),
    is_of_silence: false,
    is_fact: false,
    most: None,
    more_is_better: false,
    of: |_| None,
    says: |_| true,
};

/// All metrics, in the order in which they are reported and drawn.
pub const METRICS: &[Metric] = &[
    Metric {
        name: GOODPUT,
        plot: Some("goodput"),
        is_usual: true,
        title: "goodput of all flows",
        noun: "goodput",
        ahead: "has the higher goodput",
        is_told: true,
        unit: ("kbit/s", 1e-3),
        more_is_better: true,
        of: |run| known(run.aggregate_goodput_bps),
        ..PLAIN
    },
    Metric {
        name: JAIN,
        plot: Some("jain"),
        is_usual: true,
        title: "Jain's index",
        noun: "Jain's index",
        ahead: "is fairer (Jain's index)",
        most: Some(1.0),
        more_is_better: true,
        of: |run| shared(run, run.jain),
        says: has_shares,
        ..PLAIN
    },
    Metric {
        name: JAIN_2S,
        plot: Some("jain-2s"),
        is_usual: true,
        title: "Jain's index in windows of 2 s",
        noun: "Jain's index over 2 s",
        ahead: "is fairer over 2 s (Jain's index)",
        is_told: true,
        most: Some(1.0),
        more_is_better: true,
        of: |run| shared(run, run.jain_2s),
        says: has_shares,
        ..PLAIN
    },
    Metric {
        name: "jain_transfers",
        title: "Jain's index of the transfers",
        noun: "Jain's index of the transfers",
        ahead: "is fairer among transfers (Jain's index)",
        most: Some(1.0),
        more_is_better: true,
        of: |run| run.jain_transfers,
        ..PLAIN
    },
    Metric {
        name: "jain_files",
        title: "Jain's index of the flows of files",
        noun: "Jain's index of the flows of files",
        ahead: "is fairer among flows of files (Jain's index)",
        most: Some(1.0),
        more_is_better: true,
        of: |run| run.jain_files,
        ..PLAIN
    },
    Metric {
        name: "jain_datagrams",
        title: "Jain's index of the flows of datagrams",
        noun: "Jain's index of the flows of datagrams",
        ahead: "is fairer among flows of datagrams (Jain's index)",
        most: Some(1.0),
        more_is_better: true,
        of: |run| run.jain_datagrams,
        ..PLAIN
    },
    Metric {
        name: "retransmission_index",
        plot: Some("retransmissions"),
        is_usual: true,
        title: "retransmissions",
        noun: "retransmissions",
        ahead: "retransmits less",
        unit: ("%", 100.0),
        of: |run| known(run.retransmission_index),
        // Datagrams are never retransmitted, so the metric needs a flow of another kind.
        says: |run| run.flows.is_empty() || run.flows.iter().any(|flow| flow.loss_ratio.is_none()),
        ..PLAIN
    },
    Metric {
        name: "loss_ratio",
        plot: Some("loss"),
        is_usual: true,
        title: "lost datagrams of UDP",
        noun: "lost datagrams",
        ahead: "loses fewer datagrams",
        is_told: true,
        unit: ("%", 100.0),
        of: |run| of_flows(run, |flow| flow.loss_ratio, summary::mean),
        ..PLAIN
    },
    Metric {
        name: "timeouts",
        plot: Some("timeouts"),
        title: "timeouts of all flows",
        noun: "timeouts",
        ahead: "has fewer timeouts",
        of: |run| of_flows(run, |flow| flow.timeouts.map(|count| count as f64), |values| values.iter().sum()),
        ..PLAIN
    },
    Metric {
        name: "rtt_mean_s",
        plot: Some("rtt"),
        title: "mean round trip",
        noun: "mean RTT",
        ahead: "has the shorter mean RTT",
        unit: ("ms", 1e3),
        of: |run| starvation::delay(run, |flow| Some(flow.rtt_mean_s), summary::mean),
        ..PLAIN
    },
    Metric {
        name: DELAY,
        plot: Some("delay"),
        is_usual: true,
        title: "95th percentile of the delay",
        noun: "95th percentile of the delay",
        ahead: "has the shorter delay (95th percentile)",
        is_told: true,
        unit: ("ms", 1e3),
        of: |run| starvation::delay(run, |flow| flow.delay_p95_s, summary::largest),
        ..PLAIN
    },
    Metric {
        name: "delay_p50_s",
        plot: Some("delay-median"),
        title: "median delay",
        noun: "median delay",
        unit: ("ms", 1e3),
        of: |run| starvation::delay(run, |flow| flow.delay_p50_s, summary::largest),
        ..PLAIN
    },
    Metric {
        name: "completion_median_s",
        title: "median time of a file",
        noun: "median time of a file",
        ahead: "has the shorter median time of a file",
        is_told: true,
        unit: ("s", 1.0),
        of: file_time,
        ..PLAIN
    },
    Metric {
        name: "collisions",
        plot: Some("collisions"),
        title: "collisions",
        noun: "collisions",
        of: |run| run.collisions.map(|count| count as f64),
        ..PLAIN
    },
    Metric {
        name: "mac_drops",
        plot: Some("mac-drops"),
        title: "frames given up by the MAC",
        noun: "frames given up by the MAC",
        of: |run| run.mac_drops.map(|count| count as f64),
        ..PLAIN
    },
    Metric {
        name: "queue_drops",
        plot: Some("queue-drops"),
        title: "packets dropped by queues",
        noun: "packets dropped by queues",
        of: |run| run.queue_drops.map(|count| count as f64),
        ..PLAIN
    },
    Metric {
        name: "frames",
        plot: Some("frames"),
        title: "frames on the air",
        noun: "frames on the air",
        of: |run| Some(run.frames as f64),
        ..PLAIN
    },
    Metric {
        name: STARVED,
        plot: Some("starved"),
        is_usual: true,
        title: "flows that others starve",
        noun: "share of starved flows",
        ahead: "starves fewer flows",
        unit: ("%", 100.0),
        is_of_silence: true,
        most: Some(1.0),
        of: |run| share(run, |flow| run.starved(flow).is_some()),
        ..PLAIN
    },
    Metric {
        name: "longest_gap_with_path_s",
        plot: Some("longest-gap"),
        is_usual: true,
        title: "longest silence of a flow that had a path",
        noun: "longest silence of a flow",
        ahead: "has shorter silences",
        unit: ("s", 1.0),
        is_of_silence: true,
        of: |run| of_flows(run, |flow| flow.longest_gap_with_path_s.or(flow.longest_gap_s), summary::largest),
        ..PLAIN
    },
    Metric {
        name: "without_path_share",
        plot: Some("without-path"),
        title: "flows that had no path for long",
        noun: "share of flows without a path",
        ahead: "has fewer flows without a path",
        unit: ("%", 100.0),
        is_of_silence: true,
        is_fact: true,
        most: Some(1.0),
        of: |run| share(run, |flow| run.without_path(flow).is_some()),
        ..PLAIN
    },
];

/// Returns the metrics that `compare` compares.
pub fn compared() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| !metric.ahead.is_empty())
}

/// Returns the metrics that are drawn and ranked for these runs when a scenario does not choose its
/// metrics.
pub fn usual(records: &[Record]) -> impl Iterator<Item = &'static Metric> {
    let is_silent = records.iter().any(Record::has_silence);
    METRICS.iter().filter(move |metric| metric.is_usual && (is_silent || !metric.is_of_silence))
}

/// Returns the metric with this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl Metric {
    /// Title with the unit.
    pub fn heading(&self) -> String {
        if self.unit.0.is_empty() { self.title.to_owned() } else { format!("{}, {}", self.title, self.unit.0) }
    }

    /// Noun with the unit, for the head of a column.
    pub fn noun_and_unit(&self) -> String {
        if self.unit.0.is_empty() { self.noun.to_owned() } else { format!("{}, {}", self.noun, self.unit.0) }
    }

    /// Returns the value in the unit for people; `None` if the metric is not meaningful for this
    /// run or was not measured. It is infinite for the delay of a starved flow, which has no delay.
    pub fn shown(&self, run: &Record) -> Option<f64> {
        let value = (self.of)(run).filter(|_| (self.says)(run))?;
        Some(self.unit.1 * value)
    }
}

/// Returns the value, or `None` if it could not be measured.
fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

/// Returns an index that is meaningful only among several flows; `None` for a run with one flow.
fn shared(run: &Record, index: f64) -> Option<f64> {
    (run.flows.len() > 1).then(|| known(index)).flatten()
}

/// True if Jain's index of all flows is meaningful for a run: it has several flows, all of one
/// kind.
pub fn has_shares(record: &Record) -> bool {
    record.flows.len() > 1 && record.is_of_one_kind()
}

/// Combines the values of those flows that have one. `None` if no flow has one.
fn of_flows(run: &Record, of: fn(&FlowRecord) -> Option<f64>, together: fn(&[f64]) -> f64) -> Option<f64> {
    let values: Vec<f64> = run.flows.iter().filter_map(of).collect();
    (!values.is_empty()).then(|| together(&values))
}

/// Share of the flows for which `is` holds, among the flows whose delivered bytes are known. `None`
/// if there are no such flows.
fn share(run: &Record, is: impl Fn(&FlowRecord) -> bool) -> Option<f64> {
    let known = run.flows.iter().filter(|flow| flow.delivered_bytes.is_some()).count();
    let count = run.flows.iter().filter(|flow| is(flow)).count();
    (known > 0).then(|| count as f64 / known as f64)
}

/// Median time of the files of all flows, seconds, from the beginning of connecting or writing
/// until the arrival of the last byte. Infinite if the run starved a flow, because no number
/// describes that time then.
fn file_time(run: &Record) -> Option<f64> {
    let mut files = run.flows.iter().filter_map(|flow| flow.completions.as_ref()).peekable();
    files.peek()?;
    if starvation::starves(run) {
        return Some(f64::INFINITY);
    }
    summary::median(files.flatten().map(CompletionRecord::time_s).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_can_name_every_quantity_that_is_drawn_and_no_other() {
        let drawn: Vec<&str> = METRICS.iter().filter_map(|metric| metric.plot).collect();
        assert_eq!(drawn, meshpace_scenario::PLOTTED);
    }

    #[test]
    fn files_beside_a_transfer_have_no_index_of_shares() {
        let bulk = FlowRecord { delivered_bytes: Some(9), ..FlowRecord::default() };
        let files = FlowRecord { completions: Some(Vec::new()), ..bulk.clone() };
        let of = |flows: &[&FlowRecord]| {
            has_shares(&Record { flows: flows.iter().map(|flow| (*flow).clone()).collect(), ..Record::default() })
        };
        assert!(of(&[&bulk, &bulk]) && of(&[&files, &files]));
        assert!(!of(&[&bulk, &files]) && !of(&[&bulk]) && !of(&[]));
    }

    #[test]
    fn metrics_have_names_of_their_own_and_titles() {
        for (number, metric) in METRICS.iter().enumerate() {
            assert!(!metric.title.is_empty() && !metric.noun.is_empty(), "{}", metric.name);
            assert!(METRICS[..number].iter().all(|other| other.name != metric.name), "{}", metric.name);
        }
    }
}
