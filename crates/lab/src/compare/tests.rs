use super::*;
use crate::record::metrics::PLAIN;
use crate::record::{CompletionRecord, FlowRecord};
use serde_json::{Map, Value, json};

fn record(transport: &str, seed: u64, hops: u64, goodput: f64, jain: f64) -> Record {
    let flow = json!({"transport": transport, "timeouts": seed, "rtt_mean_s": null});
    crate::record::record(
        json!({"seed": seed, "point": {"topology.hops": hops}, "fingerprint": "f", "aggregate_goodput_bps": goodput,
               "jain": jain, "flows": [flow, flow]}),
    )
}

/// Seeds differ far more from each other than the sides do.
fn sides() -> (Vec<Record>, Vec<Record>) {
    let spread = [100.0, 300.0, 200.0, 500.0];
    let side = |name: &'static str, more: f64| {
        let each =
            spread.iter().zip(1..).map(move |(base, seed)| record(name, seed, 4, base + more + seed as f64, 0.5));
        each.collect::<Vec<_>>()
    };
    (side("newreno", 0.0), side("tcp-ap", 10.0))
}

#[test]
fn runs_of_the_same_seed_are_compared_with_each_other() {
    let (a, b) = sides();
    let lines = compare(&a, &b).unwrap();
    let goodput = &lines[0];
    assert_eq!(
        (goodput.metric, goodput.seeds, goodput.b_wins, goodput.better),
        ("aggregate_goodput_bps", 4, 4, Some(Side::B))
    );
    assert!((goodput.difference - 10.0).abs() < 1e-9 && goodput.paired);
    assert!(lines.iter().all(|line| line.metric != "rtt_mean_s"), "not measured");
    let jain = lines.iter().find(|line| line.metric == "jain").unwrap();
    assert_eq!((jain.difference, jain.better), (0.0, None));
    assert!(words(goodput, ["a", "b"]).starts_with("b has the higher goodput: "), "{}", words(goodput, ["a", "b"]));
    // The same the other way round.
    assert_eq!(compare(&b, &a).unwrap()[0].better, Some(Side::A));
}

#[test]
fn a_metric_that_is_added_is_compared() {
    const ADDED: Metric = Metric {
        name: "twice_bps",
        ahead: "is twice as fast",
        of: |run| Some(2.0 * run.aggregate_goodput_bps),
        more_is_better: true,
        ..PLAIN
    };
    let (a, b) = sides();
    let lines = compare_by(&[&ADDED], &a, &b).unwrap();
    assert_eq!((lines[0].metric, lines[0].better), ("twice_bps", Some(Side::B)));
    assert!((lines[0].difference - 20.0).abs() < 1e-9, "{lines:?}");
}

#[test]
fn what_was_measured_in_real_time_is_never_paired() {
    let (a, mut b) = sides();
    for record in &mut b {
        record.real_time = Some(json!({}));
    }
    let goodput = &compare(&a, &b).unwrap()[0];
    assert!(!goodput.paired && goodput.better.is_none(), "the spread of the seeds hides it: {goodput:?}");
}

#[test]
fn two_seeds_have_no_interval_and_nothing_in_common_is_refused() {
    let (a, b) = sides();
    let goodput = &compare(&a[..2], &b[..2]).unwrap()[0];
    assert_eq!((goodput.interval, goodput.better, goodput.seeds), (None, None, 2));
    assert!(words(goodput, ["a", "b"]).contains("--seeds 3"));
    let mut far = b.clone();
    far.push(record("tcp-ap", 1, 8, 1.0, 1.0));
    far.iter_mut().take(4).for_each(|record| record.point = Map::from_iter([("topology.hops".to_owned(), json!(6))]));
    assert!(compare(&a, &far).unwrap_err().contains("different values"));
}

#[test]
fn keys_that_do_not_vary_within_a_side_do_not_part_the_points() {
    let with = |transport: &str, hops: &[u64]| -> Vec<Record> {
        let runs = hops.iter().flat_map(|hops| (1..=3).map(move |seed| (*hops, seed)));
        let one = |(hops, seed): (u64, u64)| {
            let mut record = record(transport, seed, hops, 100.0 * hops as f64, 0.5);
            let point = [("topology.hops", json!(hops)), ("flow.transport", json!(transport))];
            record.point = point.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            record
        };
        runs.map(one).collect()
    };
    // Sides that were selected from one sweep over transports and hops: the 2 hops that only one of them has count on neither.
    let lines = compare(&with("newreno", &[2, 4, 7]), &with("tcp-ap", &[4, 7])).unwrap();
    assert_eq!((lines[0].a, lines[0].b, lines[0].seeds), (550.0, 550.0, 3));
    assert!(compare(&with("newreno", &[2, 4]), &with("tcp-ap", &[5, 7])).unwrap_err().contains("different values"));
}

fn ranked(records: &[Record]) -> Vec<(&'static Metric, Vec<Rank>)> {
    ranking(&Excerpts::of_all(records).iter().collect::<Vec<_>>())
}

#[test]
fn transports_are_ranked_by_each_metric() {
    let (mut all, b) = sides();
    all.extend(b);
    let rankings = ranked(&all);
    assert_eq!(rankings[0].1[0].name, "tcp-ap");
    assert!(rankings[0].1[0].mean.numbers.half_width > 0.0 && rankings[0].1[0].starved == (0, 4));
}

/// Sides as before, of which the second starves its second flow in `starved` runs, and has a delay for the first.
fn starving(starved: usize) -> (Vec<Record>, Vec<Record>) {
    let (mut a, mut b) = sides();
    let flow = |bytes: u64| FlowRecord {
        transport: "t".to_owned(),
        delivered_bytes: Some(bytes),
        timeouts: Some(0),
        delay_p95_s: Some(if bytes > 0 { 0.01 + bytes as f64 } else { f64::NAN }),
        ..FlowRecord::default()
    };
    a.iter_mut().for_each(|record| record.flows = vec![flow(2), flow(3)]);
    for (number, record) in b.iter_mut().enumerate() {
        record.flows = vec![flow(1), flow(u64::from(number >= starved))];
    }
    (a, b)
}

#[test]
fn a_side_that_starves_a_flow_is_not_better_in_anything() {
    let (a, b) = starving(0);
    let of = |lines: &[Line], name: &str| lines.iter().find(|line| line.metric == name).cloned().unwrap();
    let lines = compare(&a, &b).unwrap();
    assert_eq!((lines[0].better, of(&lines, "delay_p95_s").better), (Some(Side::B), Some(Side::B)));
    let (a, b) = starving(1);
    let lines = compare(&a, &b).unwrap();
    assert_eq!((lines[0].better, lines[0].counts[1].starved_runs), (None, 1));
    let told = words(&lines[0], ["a", "b"]);
    assert!(told.contains("because b starves a flow in 1 of 4 runs") && !told.contains("b has the higher"), "{told}");
    // One run without a delay: no number stands for it, and nobody is quicker.
    let delay = of(&lines, "delay_p95_s");
    assert_eq!((delay.better, delay.b, delay.counts[1].none), (None, f64::INFINITY, 1));
    let told = words(&delay, ["a", "b"]);
    assert!(told.contains("none (a flow was starved in 1 of 4 runs) for b") && !told.contains("inf"), "{told}");
    // No delay in any run: the other side is quicker.
    let (a, b) = starving(4);
    let delay = of(&compare(&a, &b).unwrap(), "delay_p95_s");
    assert_eq!(delay.better, Some(Side::A));
    assert!(
        words(&delay, ["a", "b"]).starts_with("a has the shorter delay (95th percentile): "),
        "{}",
        words(&delay, ["a", "b"])
    );
    assert!(serde_json::to_value(&delay).unwrap()["b"].is_null());
}

#[test]
fn where_both_starve_a_flow_they_are_compared_with_that_fact_beside() {
    let (a, b) = starving(1);
    let mut both = a.clone();
    both.iter_mut().for_each(|record| record.flows[1].delivered_bytes = Some(0));
    let lines = compare(&both, &b).unwrap();
    assert_eq!((lines[0].metric, lines[0].better), ("aggregate_goodput_bps", Some(Side::B)));
    let told = words(&lines[0], ["a", "b"]);
    assert!(told.starts_with("b has the higher goodput: "), "{told}");
    assert!(told.ends_with("; both starve a flow: a in 4 of 4 runs, b in 1 of 4 runs"), "{told}");
    // Flow 1 of two starves in four runs and in one: half of the flows against an eighth.
    let starved = lines.iter().find(|line| line.metric == STARVED).unwrap();
    assert_eq!((starved.a, starved.b, starved.counts[1].starved_runs), (0.5, 0.125, 1));
    assert_eq!((starved.flows.len(), starved.flows[0].a.starved_runs, starved.flows[0].b.starved_runs), (1, 4, 1));
    assert!(starved.is_shown && starved.interval.is_some());
    // Who starves one flow in every run, and who starves nobody.
    let lines = compare(&both, &a).unwrap();
    let starved = lines.iter().find(|line| line.metric == STARVED).unwrap();
    assert_eq!(starved.better, Some(Side::B), "a side that starves flows can be compared in that");
    let nobody = compare(&a, &a).unwrap();
    assert!(nobody.iter().all(|line| line.metric != STARVED || !line.is_shown), "nothing to tell");
}

#[test]
fn who_starves_a_flow_is_ranked_behind_and_a_tie_is_told() {
    let (mut all, b) = starving(1);
    all.iter_mut().for_each(|record| record.flows[0].transport = "honest".to_owned());
    all.extend(b);
    let rankings = ranked(&all);
    let goodput = &rankings[0].1;
    assert_eq!((goodput[0].name.as_str(), goodput[1].starved), ("honest + t", (1, 4)));
    let (metric, jain) = rankings.iter().find(|(metric, _)| metric.name == "jain").unwrap();
    assert!(jain[1].ties, "{}: both have 0.5", metric.name);
}

#[test]
fn a_missing_path_makes_no_side_better() {
    let (a, b) = sides();
    let measured = |record: Record, has_path: bool| {
        let mut record = Record { duration_s: 100.0, warmup_s: 0.0, ..record };
        for flow in &mut record.flows {
            (flow.delivered_bytes, flow.longest_gap_s) = (Some(9), Some(1.0));
        }
        if !has_path {
            let flow = &mut record.flows[1];
            (flow.delivered_bytes, flow.longest_gap_s) = (Some(0), Some(100.0));
            (flow.longest_gap_with_path_s, flow.time_without_path_s) = (Some(0.0), Some(100.0));
        }
        record.judged()
    };
    let side = |records: &[Record], has_path: bool| -> Vec<Record> {
        records.iter().map(|record| measured(record.clone(), has_path)).collect()
    };
    let (a, lost, b) = (side(&a, true), side(&b, false), side(&b, true));
    let plain = compare(&a, &b).unwrap();
    assert_eq!(plain[0].better, Some(Side::B), "with a path");
    let lines = compare(&a, &lost).unwrap();
    assert_eq!((lines[0].better, lines[0].counts[1].without_path, lines[0].counts[1].starved_runs), (None, 4, 0));
    let told = words(&lines[0], ["a", "b"]);
    assert!(told.contains("because a flow of b has no path in 4 of 4 runs"), "{told}");
    let share = lines.iter().find(|line| line.metric == "without_path_share").unwrap();
    assert_eq!((share.better, share.is_shown, share.b), (None, false, 0.5));
    let all = [a, lost].concat();
    assert!(ranked(&all).iter().all(|(metric, _)| metric.name != "without_path_share"));
}

#[test]
fn what_was_not_measured_in_all_runs_is_not_better() {
    let (a, b) = sides();
    let with = |mut side: Vec<Record>, index: [f64; 4]| {
        side.iter_mut().zip(index).for_each(|(record, index)| record.retransmission_index = index);
        side
    };
    let a = with(a, [0.1, 0.11, 0.12, 0.1]);
    let b = with(b, [0.0, 0.0, 0.0, f64::NAN]);
    let lines = compare(&a, &b).unwrap();
    let line = lines.iter().find(|line| line.metric == "retransmission_index").unwrap();
    assert_eq!((line.better, line.counts[1].missing), (None, 1), "a NaN is not the least");
    let told = words(line, ["a", "b"]);
    assert!(
        told.contains("measured in 3 of 4 runs") && told.starts_with("no side is called better in retransmissions"),
        "{told}"
    );
}

#[test]
fn files_beside_a_transfer_have_a_time_and_no_index_for_people() {
    let (a, b) = sides();
    let mixed = |mut side: Vec<Record>, seconds: f64| {
        let files = [(1.0, 1.0 + seconds), (5.0, 99.0), (5.0, 5.1)];
        let files = files.map(|(start_s, end_s)| CompletionRecord { start_s, end_s, bytes: 0 });
        side.iter_mut().for_each(|record| record.flows[1].completions = Some(files.to_vec()));
        side
    };
    let lines = compare(&mixed(a.clone(), 2.0), &mixed(b.clone(), 1.0)).unwrap();
    let of = |name: &str| lines.iter().find(|line| line.metric == name).unwrap();
    assert!(!of("jain").is_shown && of("aggregate_goodput_bps").is_shown, "it stays in JSON");
    let files = of("completion_median_s");
    assert_eq!((files.a, files.b, files.better), (2.0, 1.0, Some(Side::B)));
    assert!(compare(&a, &b).unwrap().iter().all(|line| line.metric != "completion_median_s"));
}

/// Records at these hops, at each of which the second side has so much more goodput.
fn swept(points: &[(u64, f64)]) -> (Vec<Record>, Vec<Record>) {
    let side = |name: &'static str, is_second: f64| -> Vec<Record> {
        let runs = points.iter().flat_map(|(hops, more)| (1..=5).map(move |seed| (*hops, *more, seed)));
        let noise = |seed: u64| (seed * seed % 7) as f64;
        runs.map(|(hops, more, seed)| {
            record(name, seed, hops, 100.0 * noise(seed) + is_second * (more + 0.1 * noise(seed)), 0.5)
        })
        .collect()
    };
    (side("newreno", 0.0), side("tcp-ap", 1.0))
}

#[test]
fn swept_keys_are_compared_point_by_point_and_the_mean_says_over_what() {
    let (a, b) = swept(&[(10, 50.0), (2, 50.0), (4, 0.0)]);
    let lines = compare(&a, &b).unwrap();
    let goodput = &lines[0];
    let hops: Vec<&Value> = goodput.points.iter().map(|at| &at.point["topology.hops"]).collect();
    assert_eq!(hops, [10, 2, 4], "in the order of the records");
    for at in &goodput.points {
        // Each point says what the two alone say there.
        let only = |side: &[Record]| -> Vec<Record> {
            side.iter().filter(|record| record.point == *at.point).cloned().collect()
        };
        let alone = compare(&only(&a), &only(&b)).unwrap();
        assert_eq!(Line { runs: None, ..at.line.clone() }, Line { runs: None, ..alone[0].clone() });
        assert!(alone[0].points.is_empty());
    }
    let told = words(goodput, ["old", "new"]);
    assert!(told.starts_with("new has the higher goodput: "), "{told}");
    assert!(told.ends_with("; mean over 3 points (topology.hops = 10, 2, 4)"), "{told}");
    let object = serde_json::to_value(goodput).unwrap();
    assert_eq!(
        (&object["points"][1]["point"]["topology.hops"], &object["points"][1]["better"]),
        (&json!(2), &json!("b"))
    );
    let table = table(&lines, ["old", "new"]).unwrap();
    assert_eq!((table.rows.len(), table.rows[0].0.as_str()), (3, "topology.hops = 10"));
    assert!(table.rows[0].1[0].ends_with(" * new") && table.heads[0] == "goodput, kbit/s", "{table:?}");
    // One point needs no mean.
    let (a, b) = swept(&[(4, 50.0)]);
    assert!(compare(&a, &b).unwrap()[0].points.is_empty());
}

#[test]
fn a_mean_over_points_that_disagree_calls_nobody_better() {
    let (a, b) = swept(&[(2, -90.0), (4, 80.0), (7, 110.0)]);
    let goodput = &compare(&a, &b).unwrap()[0];
    assert_eq!(goodput.better, Some(Side::B), "the field keeps its meaning");
    let told = words(goodput, ["old", "new"]);
    assert!(
        told.starts_with(
            "which of the two has the higher goodput depends on the point: old at topology.hops = 2, new at topology.hops = 4, 7;"
        ),
        "{told}"
    );
    assert!(!told.contains("new has the higher goodput"), "{told}");
}

#[test]
fn what_is_true_of_all_lines_is_said_once() {
    let (a, b) = swept(&[(2, 80.0), (4, 80.0), (7, 110.0)]);
    let lines = compare(&a, &b).unwrap();
    let told = Sentences::of(&lines, ["old", "new"]);
    assert_eq!(told.shared, ["Values are means over 3 points (topology.hops = 2, 4, 7)."]);
    assert!(told.lines.len() > 1 && told.lines[0].1, "{told:?}");
    assert!(told.lines.iter().all(|(line, _)| !line.contains("mean over")), "{told:?}");
    assert!(words(&lines[0], ["old", "new"]).ends_with("; mean over 3 points (topology.hops = 2, 4, 7)"));
}

#[test]
fn runs_that_only_one_side_has_count_on_neither() {
    let (a, mut b) = swept(&[(2, 10.0), (4, 10.0)]);
    // The second side lacks a run at 4 hops.
    b.retain(|record| (record.seed, record.point["topology.hops"] == 4) != (5, true));
    let goodput = &compare(&a, &b).unwrap()[0];
    assert_eq!(goodput.seeds, 5);
    assert!((goodput.difference - 10.0).abs() < 0.5, "the run at 2 hops is compared with its own: {goodput:?}");
}

#[test]
fn one_side_without_any_value_has_the_p_value_of_barnards_test() {
    let (a, b) = starving(4);
    let lines = compare(&a, &b).unwrap();
    let delay = lines.iter().find(|line| line.metric == "delay_p95_s").unwrap();
    assert_eq!((delay.interval, delay.p), (None, Some(2.0 * 0.25_f64.powi(4))));
    // Two of four: neither a number nor a test.
    let (a, b) = starving(2);
    let lines = compare(&a, &b).unwrap();
    let delay = lines.iter().find(|line| line.metric == "delay_p95_s").unwrap();
    assert_eq!((delay.p, delay.p_holm, delay.better), (None, None, None));
}
