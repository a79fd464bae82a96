//! Tests of every kind of check on artificial records: some reproduce, some have only the shape,
//! and some are falsified so that the check must fail.

use super::*;
use crate::register::data::Published;
use crate::register::observations::parse;
use std::sync::Arc;

/// Five runs around `mean` whose 95 % interval is about ±1.2 %.
fn runs(mean: f64) -> Vec<f64> {
    [-0.01, -0.005, 0.0, 0.005, 0.01].map(|x| mean * (1.0 + 1.2 * x)).to_vec()
}

/// Goodputs of the curves "a", "b" and "c" over 1, 2, 3, ... hops: one value in kbit/s for each x.
type Course<'a> = &'a [(&'a str, &'a [f64])];

fn lines(courses: Course, runs: impl Fn(f64) -> Vec<f64>) -> String {
    let mut lines = String::new();
    for (curve, means) in courses {
        for (hops, mean) in (1..).zip(*means) {
            for (seed, value) in (1..).zip(runs(*mean)) {
                let record = serde_json::json!({
                    "seed": seed, "point": {"flow.transport": curve, "topology.hops": hops},
                    "aggregate_goodput_bps": 1e3 * value, "jain": value,
                });
                lines.push_str(&format!("{record}\n"));
            }
        }
    }
    lines
}

const HEAD: &str = r#"
    id = "X"
    title = "X"
    source = "X"
    x = { key = "topology.hops", title = "hops" }
    curve = [{ id = "a" }, { id = "b" }, { id = "c" }]
    metric = [{ id = "goodput", title = "goodput", unit = "kbit/s", field = "aggregate_goodput_bps", scale = 0.001 }]
"#;

fn judged_with(check: &str, lines: &str) -> Judgement {
    let text = format!("{HEAD}\n[[claim]]\ntext = \"so it is\"\ncheck = {{ {check} }}\n");
    let published: Published = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"));
    let observations = Observations::new(&published, Arc::new(parse(lines).unwrap()));
    let judged = judge(&published.claims[0], &observations);
    assert!(!judged.own.evidence.is_empty());
    judged.own
}

fn verdict(check: &str, courses: Course) -> Verdict {
    judged_with(check, &lines(courses, runs)).verdict
}

use Verdict::{CannotBeJudged, CannotBeTold, Differs, InShape, Reproduced};

/// Runs whose interval reaches 35 % to either side (t(4) = 2.776; s/mean = 0.2846).
fn wide(mean: f64) -> Vec<f64> {
    [-0.36, -0.18, 0.0, 0.18, 0.36].map(|x| mean * (1.0 + x)).to_vec()
}

fn untold(check: &str, courses: Course) -> Verdict {
    judged_with(check, &lines(courses, wide)).verdict
}

#[test]
fn the_largest_gain_is_found_and_its_verdict_depends_on_it() {
    let check = r#"kind = "gain", of = "a", over = "b", published_pct = 84.0, tolerance_pct = 10.0"#;
    let with =
        |gain: f64| verdict(check, &[("a", &[440.0, 200.0 * (1.0 + gain), 110.0]), ("b", &[400.0, 200.0, 100.0])]);
    assert_eq!((with(0.84), with(0.90), with(1.50), with(0.50)), (Reproduced, Reproduced, InShape, InShape));
    // Falsified: a third of it, three times as much, none.
    assert_eq!((with(0.28), with(2.52), with(-0.1)), (Differs, Differs, Differs));
    // Too scattered: the interval holds 84 % and nearly everything else.
    let scattered = lines(&[("a", &[440.0]), ("b", &[200.0])], |mean| vec![0.65 * mean, 1.35 * mean]);
    let judged = judged_with(check, &scattered);
    assert_eq!(judged.verdict, CannotBeTold);
    assert!(judged.evidence.ends_with("2 seeds do not tell"), "{}", judged.evidence);
    // Near the published gain, but so wide that it is near everything; on its side, but of what size?
    assert_eq!(untold(check, &[("a", &[184.0]), ("b", &[100.0])]), CannotBeTold);
    assert_eq!(untold(check, &[("a", &[105.0]), ("b", &[100.0])]), CannotBeTold);
    // No difference is an answer.
    assert_eq!(with(0.0), Differs);
    let evidence = judged_with(check, &lines(&[("a", &[110.0, 184.0]), ("b", &[100.0, 100.0])], runs)).evidence;
    assert!(evidence.contains("at 2 hops"), "{evidence}");
}

#[test]
fn a_gain_between_two_numbers_may_be_a_loss() {
    let check = |low: f64, high: f64| {
        format!(
            r#"kind = "gain", of = "a", over = "b", at = "every", published_pct = [{low:?}, {high:?}], tolerance_pct = 2.0, core = [2, 4]"#
        )
    };
    let with =
        |check: &str, gains: [f64; 4]| verdict(check, &[("a", &gains.map(|gain| 100.0 + gain)), ("b", &[100.0; 4])]);
    let gain = check(7.0, 17.0);
    assert_eq!(with(&gain, [90.0, 6.0, 12.0, 18.0]), Reproduced);
    assert_eq!(with(&gain, [90.0, 6.0, 12.0, 25.0]), InShape);
    assert_eq!((with(&gain, [90.0, -6.0, 12.0, 15.0]), with(&gain, [10.0, 60.0, 60.0, 60.0])), (Differs, Differs));
    let loss = check(-16.0, -5.0);
    assert_eq!(with(&loss, [90.0, -4.0, -12.0, -17.0]), Reproduced);
    assert_eq!(with(&loss, [90.0, -4.0, -12.0, -25.0]), InShape);
    assert_eq!(with(&loss, [90.0, 4.0, -12.0, -12.0]), Differs);
    assert_eq!(verdict(&loss, &[("a", &[100.0]), ("b", &[90.0])]), CannotBeJudged, "no x of the core");
}

#[test]
fn above_must_hold_everywhere_or_in_the_core() {
    let check = r#"kind = "above", of = ["a"], over = ["b"], core = [2, 3]"#;
    let with = |a: [f64; 3]| verdict(check, &[("a", &a), ("b", &[400.0, 200.0, 100.0])]);
    assert_eq!((with([440.0, 220.0, 110.0]), with([300.0, 220.0, 110.0])), (Reproduced, InShape));
    // Falsified: one x of the core is below, or not clearly above.
    assert_eq!((with([440.0, 220.0, 90.0]), with([440.0, 199.0, 110.0])), (Differs, Differs));
    // Both answers are in the interval, -0.6 to +2.1 % or much wider, whatever side the mean is on.
    assert_eq!((with([440.0, 201.5, 110.0]), with([440.0, 198.0, 90.0])), (CannotBeTold, Differs));
    for mean in [120.0, 90.0] {
        assert_eq!(untold(check, &[("a", &[mean; 3]), ("b", &[100.0; 3])]), CannotBeTold, "{mean}");
    }
    // Outside the core it does not matter.
    assert_eq!(with([401.0, 220.0, 110.0]), InShape);
    let twelve = r#"kind = "above", of = ["a"], over = ["b"], by_pct = 1100.0"#;
    let times = |factor: f64| verdict(twelve, &[("a", &[factor]), ("b", &[1.0])]);
    assert_eq!((times(13.0), times(11.5), times(12.01)), (Reproduced, Differs, CannotBeTold));
    assert_eq!(verdict(check, &[("a", &[5.0, 5.0, 5.0]), ("b", &[0.0; 3])]), Reproduced, "above nothing");
}

#[test]
fn all_of_a_list_count() {
    let check = r#"kind = "above", of = ["a"], over = ["b", "c"]"#;
    let with = |c: f64| verdict(check, &[("a", &[120.0]), ("b", &[100.0]), ("c", &[c])]);
    assert_eq!((with(110.0), with(130.0)), (Reproduced, Differs));
    assert_eq!(verdict(check, &[("a", &[120.0]), ("b", &[100.0])]), CannotBeJudged);
    let order = r#"kind = "order", of = ["a", "b", "c"]"#;
    let with = |means: [f64; 3]| verdict(order, &[("a", &means[..1]), ("b", &means[1..2]), ("c", &means[2..])]);
    assert_eq!((with([3.0, 2.0, 1.0]), with([3.0, 1.0, 2.0])), (Reproduced, Differs));
    // One that fails decides, otherwise one that is open.
    assert_eq!((with([3.0, 2.97, 1.0]), with([3.0, 2.97, 3.5])), (CannotBeTold, Differs));
}

#[test]
fn one_x_of_a_curve_is_a_term_too() {
    let check = r#"kind = "above", of = ["a@2"], over = ["b"]"#;
    assert_eq!(verdict(check, &[("a", &[1.0, 50.0]), ("b", &[10.0, 20.0, 40.0])]), Reproduced);
    assert_eq!(verdict(check, &[("a", &[60.0, 30.0]), ("b", &[10.0, 20.0, 40.0])]), Differs);
}

#[test]
fn a_crossing_must_be_where_it_was_published() {
    let check = r#"kind = "above-beyond", of = "a", over = "b", beyond = 3.0"#;
    let with = |gains: &[f64]| {
        let a: Vec<f64> = gains.iter().map(|gain| 100.0 + gain).collect();
        verdict(check, &[("a", &a), ("b", &vec![100.0; gains.len()])])
    };
    assert_eq!(with(&[-20.0, -10.0, -5.0, 10.0, 20.0]), Reproduced);
    assert_eq!(with(&[-20.0, -10.0, 5.0, 10.0, 20.0]), Reproduced, "one hop earlier");
    assert_eq!((with(&[-20.0, 10.0, 15.0, 10.0, 20.0]), with(&[20.0, 10.0, 15.0, 10.0, 20.0])), (InShape, InShape));
    // Falsified: below at the end, above only later, no runs there.
    assert_eq!((with(&[-20.0, -10.0, -5.0, 10.0, -20.0]), with(&[-20.0, -10.0, -5.0, 0.0, 20.0])), (Differs, Differs));
    assert_eq!(with(&[-20.0, -10.0, -5.0]), CannotBeJudged);
    assert_eq!(with(&[-20.0, -10.0, -5.0, 1.0, 20.0]), CannotBeTold);
}

#[test]
fn the_same_is_a_margin() {
    let check = r#"kind = "same", of = "a", over = "b", within_pct = 5.0"#;
    let with = |a: f64| verdict(check, &[("a", &[a]), ("b", &[100.0])]);
    assert_eq!((with(101.0), with(104.5), with(110.0)), (Reproduced, InShape, Differs));
    assert_eq!(with(105.5), CannotBeTold, "+3.8 to +7.2 %");
    assert_eq!(untold(check, &[("a", &[100.0]), ("b", &[100.0])]), CannotBeTold, "an interval that holds everything");
}

#[test]
fn a_level_is_clear_or_only_there() {
    let above = r#"kind = "level", of = ["a:jain"], is = { above = 0.9 }"#;
    let with = |check: &str, mean: f64| verdict(check, &[("a", &[0.95, mean])]);
    assert_eq!((with(above, 0.93), with(above, 0.901), with(above, 0.85)), (Reproduced, InShape, Differs));
    assert_eq!(with(above, 0.899), CannotBeTold, "0.888 to 0.910");
    assert_eq!(untold(above, &[("a", &[0.95])]), CannotBeTold, "0.62 to 1.28 reaches farther than 0.05");
    let below = r#"kind = "level", of = ["a:jain"], is = { below = 0.5 }, core = [2, 2]"#;
    assert_eq!((with(below, 0.4), with(below, 0.499), with(below, 0.6)), (Reproduced, InShape, Differs));
    assert_eq!((with(below, 0.501), with(below, 0.5)), (CannotBeTold, CannotBeTold));
    let between = r#"kind = "level", of = ["a:jain"], is = { between = [0.9, 1.0] }"#;
    assert_eq!((with(between, 0.92), with(between, 0.901), with(between, 0.8)), (Reproduced, InShape, Differs));
    assert_eq!(with(between, 0.895), CannotBeTold);
}

#[test]
fn a_value_is_near_or_of_the_size() {
    let check = r#"kind = "value", of = "a", published = 100.0, tolerance_pct = 10.0"#;
    let with = |mean: f64| verdict(check, &[("a", &[mean])]);
    assert_eq!(
        (with(95.0), with(60.0), with(190.0), with(40.0), with(210.0)),
        (Reproduced, InShape, InShape, Differs, Differs)
    );
    assert_eq!(verdict(check, &[("a", &[95.0, 95.0])]), CannotBeJudged, "which x?");
    let wide = lines(&[("a", &[130.0])], |mean| vec![0.3 * mean, 1.7 * mean]);
    assert_eq!(judged_with(check, &wide).verdict, CannotBeTold, "an interval that holds everything");
    assert_eq!(
        (with(50.2), with(199.0), with(49.0)),
        (CannotBeTold, CannotBeTold, Differs),
        "on the edge of half and twice"
    );
}

#[test]
fn a_bounded_quantity_is_judged_by_its_difference() {
    // 0.28 and 0.60 are half to twice of 0.5, 0.64 of 0.949.
    let value = |published: f64, mean: f64| {
        let check = format!(r#"kind = "value", of = "a:jain", published = {published:?}, tolerance_pct = 20.0"#);
        verdict(&check, &[("a", &[mean])])
    };
    assert_eq!((value(0.5, 0.28), value(0.64, 0.949), value(0.9, 0.6)), (Differs, Differs, Differs));
    assert_eq!((value(0.5, 0.54), value(0.5, 0.57), value(0.5, 0.43)), (Reproduced, InShape, InShape));
    assert_eq!(value(0.9, 0.98), InShape, "20 % are farther than 0.05");
    // The relative limit holds as well: 3 is not 1, however small the difference is.
    assert_eq!((value(0.01, 0.03), value(0.01, 0.015)), (Differs, InShape));
    let numbers = |published: f64, mean: f64| {
        let text = HEAD.replace("x = { key = \"topology.hops\", title = \"hops\" }", "")
            + &format!("[published.a]\njain = {published:?}\n");
        let published: Published = toml::from_str(&text).unwrap();
        let observations = Observations::new(&published, Arc::new(parse(&lines(&[("a", &[mean])], runs)).unwrap()));
        cells(&observations, 0)[0].verdict
    };
    assert_eq!((numbers(0.9, 0.84), numbers(0.9, 0.86)), (Differs, Reproduced), "10 % of 0.9 are more than 0.05");
}

#[test]
fn the_index_of_one_flow_is_no_evidence() {
    let check = r#"kind = "level", of = ["a:jain"], is = { above = 0.9 }"#;
    let judged = |flows: usize| {
        let record = |seed: usize, hops: usize, index: f64, flows: usize| {
            let flows = vec![serde_json::json!({"goodput_bps": 1e5}); flows];
            let point = serde_json::json!({"flow.transport": "a", "topology.hops": hops});
            format!("{}\n", serde_json::json!({"seed": seed, "point": point, "jain": index, "flows": flows}))
        };
        let alone = (1..=3).map(|seed| record(seed, 1, 1.0, 1));
        let shared = (1..=3).map(|seed| record(seed, 2, 0.5 + 0.001 * seed as f64, flows));
        judged_with(check, &alone.chain(shared).collect::<String>())
    };
    assert_eq!(judged(1).verdict, CannotBeJudged, "nothing but indices of one flow");
    let both = judged(2);
    assert_eq!(both.verdict, Differs);
    assert!(!both.evidence.contains("the least clear"), "the index of one flow does not count: {}", both.evidence);
}

#[test]
fn a_trend_is_the_whole_course_and_its_ends() {
    let check = r#"kind = "falls", of = ["a"], tolerance_pct = 5.0"#;
    let with = |a: &[f64]| verdict(check, &[("a", a)]);
    assert_eq!(with(&[400.0, 300.0, 200.0]), Reproduced);
    assert_eq!(with(&[400.0, 300.0, 300.0, 250.0]), Reproduced, "a step that is none does not matter");
    assert_eq!(with(&[400.0, 300.0, 309.0, 250.0]), Reproduced, "nor one back within the tolerance");
    assert_eq!(with(&[400.0, 300.0, 360.0, 200.0]), InShape, "one back beyond it does not break the shape");
    // Ten hops of a chain: what falls to a twelfth is a fall, although its last step is one back.
    assert_eq!(with(&[1258.0, 630.0, 352.0, 251.0, 214.0, 193.0, 118.0, 125.0, 93.0, 101.0]), InShape);
    // Falsified: a rise altogether, ends at one height, down and up again.
    assert_eq!((with(&[300.0, 300.0, 310.0]), with(&[400.0, 300.0, 400.0])), (Differs, CannotBeTold));
    assert_eq!(
        with(&[600.0, 400.0, 100.0, 300.0, 500.0, 200.0]),
        Differs,
        "no course, although the ends are as published"
    );
    assert_eq!(untold(check, &[("a", &[110.0, 108.0, 100.0])]), CannotBeTold);
    let rises = r#"kind = "rises", of = ["a"], tolerance_pct = 5.0, core = [1, 2]"#;
    assert_eq!(verdict(rises, &[("a", &[1.0, 2.0, 1.0])]), Reproduced);
    assert_eq!(verdict(rises, &[("a", &[2.0, 1.0, 3.0])]), Differs);
    let evidence = judged_with(check, &lines(&[("a", &[400.0, 300.0, 200.0])], runs)).evidence;
    assert!(evidence.contains("rank correlation -0.9"), "{evidence}");
}

#[test]
fn flat_is_a_margin_between_the_largest_and_the_smallest() {
    let check = r#"kind = "flat", of = ["a"], within_pct = 10.0, core = [2, 9]"#;
    let with = |a: &[f64]| verdict(check, &[("a", a)]);
    assert_eq!(
        (with(&[9.0, 100.0, 103.0]), with(&[9.0, 100.0, 109.5]), with(&[9.0, 100.0, 120.0])),
        (Reproduced, InShape, Differs)
    );
    assert_eq!(with(&[9.0, 100.0, 111.0]), CannotBeTold, "+9.1 to +12.9 %");
}

#[test]
fn a_peak_is_there_next_to_it_or_elsewhere() {
    let check = r#"kind = "peak", of = "a", x = 3.0"#;
    let with = |a: &[f64]| verdict(check, &[("a", a)]);
    assert_eq!(with(&[100.0, 110.0, 130.0, 110.0, 90.0]), Reproduced);
    assert_eq!(with(&[100.0, 110.0, 130.0, 129.9, 90.0]), InShape, "not clearly");
    assert_eq!(with(&[100.0, 110.0, 130.0, 150.0, 90.0]), InShape, "next to it");
    assert_eq!(with(&[150.0, 110.0, 130.0, 110.0, 90.0]), Differs);
    assert_eq!(with(&[150.0, 110.0]), CannotBeJudged);
    assert_eq!(with(&[130.5, 110.0, 130.0, 110.0, 90.0]), CannotBeTold, "the first is not clearly above it");
    let evidence = judged_with(check, &lines(&[("a", &[100.0, 110.0, 130.0, 129.9, 90.0])], runs)).evidence;
    assert!(evidence.contains("not clearly above 4;"), "the others are clearly below it: {evidence}");
    let gain = r#"kind = "peak", of = "a", over = "b", x = 2.0"#;
    assert_eq!(verdict(gain, &[("a", &[400.0, 300.0, 110.0]), ("b", &[390.0, 150.0, 100.0])]), Reproduced);
    let elsewhere = r#"kind = "peak", of = "a", over = "b", x = 3.0"#;
    let (a, b) = ([900.0, 160.0, 150.0, 90.0], [390.0, 150.0, 100.0, 40.0]);
    assert_eq!(verdict(elsewhere, &[("a", &a), ("b", &b)]), Differs);
}

#[test]
fn the_best_of_several_is_compared_with_the_best_of_others() {
    let check = r#"kind = "best-gain", of = ["b", "c"], over = ["a"], published_pct = 100.0"#;
    let with = |b: f64, c: f64| verdict(check, &[("a", &[100.0]), ("b", &[b]), ("c", &[c])]);
    assert_eq!((with(120.0, 204.0), with(120.0, 130.0)), (Reproduced, InShape));
    assert_eq!((with(90.0, 80.0), with(100.0, 80.0)), (Differs, Differs), "below, and no difference");
    assert_eq!(with(101.0, 80.0), CannotBeTold, "-0.7 to +2.7 %");
    assert_eq!(verdict(check, &[("a", &[100.0])]), CannotBeJudged);
}

#[test]
fn a_tuned_parameter_is_small_or_need_not_be_large() {
    let text = format!(
        "{}\n[[claim]]\ntext = \"small\"\ncheck = {{ kind = \"tuned-below\", of = \"t\", limit = 4.0 }}\n",
        HEAD.replace(
            "{ id = \"c\" }",
            "{ id = \"t\", tuned = { transport = \"a\", parameter = \"/window/segments\", noun = \"segments\" } }"
        )
    );
    let published: Published = toml::from_str(&text).unwrap();
    let with = |three: f64, four: f64| {
        let mut lines = String::new();
        for (segments, mean) in [(3, three), (4, four)] {
            for (seed, value) in (1..).zip(runs(mean)) {
                let transport = serde_json::json!({"name": "a", "window": {"kind": "clamp", "segments": segments}});
                let record = serde_json::json!({
                    "seed": seed, "point": {"flow.transport": transport, "topology.hops": 1},
                    "aggregate_goodput_bps": 1e3 * value,
                });
                lines.push_str(&format!("{record}\n"));
            }
        }
        judge(&published.claims[0], &Observations::new(&published, Arc::new(parse(&lines).unwrap()))).own.verdict
    };
    assert_eq!((with(110.0, 100.0), with(100.0, 99.5), with(100.0, 110.0)), (Reproduced, InShape, Differs));
    assert_eq!(with(100.0, 101.0), CannotBeTold, "-0.7 to +2.7 %");
}

#[test]
fn nothing_is_said_without_runs_or_reasons() {
    let check = r#"kind = "gain", of = "a", over = "b", published_pct = 84.0, tolerance_pct = 10.0"#;
    assert_eq!(verdict(check, &[]), CannotBeJudged);
    let once = lines(&[("a", &[184.0]), ("b", &[100.0])], |mean| vec![mean]);
    assert_eq!(judged_with(check, &once).verdict, CannotBeJudged);
    let judged = judged_with(r#"kind = "not-judged", why = "later""#, &once);
    assert_eq!((judged.verdict, judged.evidence.as_str()), (CannotBeJudged, "Later"));
}

#[test]
fn a_published_number_is_near_in_order_or_neither() {
    let text = HEAD
        .replace("x = { key = \"topology.hops\", title = \"hops\" }", "level = 0.9")
        .replace("{ id = \"c\" }", "{ id = \"c\" }, { id = \"d\", reading_of = \"b\" }")
        + "[published.a]\ngoodput = [100.0, 1.0]\n[published.b]\ngoodput = [200.0, 1.0]\n[published.c]\ngoodput = [200.5, 1.0]\n";
    let published: Published = toml::from_str(&text).unwrap();
    let verdicts = |courses: Course| {
        let observations = Observations::new(&published, Arc::new(parse(&lines(courses, runs)).unwrap()));
        cells(&observations, 0).into_iter().map(|cell| cell.verdict).collect::<Vec<_>>()
    };
    // b and c do not differ clearly where they were published, so their order says nothing.
    assert_eq!(
        verdicts(&[("a", &[108.0]), ("b", &[190.0]), ("c", &[205.0]), ("d", &[150.0])]),
        [Reproduced, Reproduced, Reproduced, InShape]
    );
    assert_eq!(
        verdicts(&[("a", &[50.0]), ("b", &[70.0]), ("c", &[60.0]), ("d", &[40.0])]),
        [InShape, InShape, InShape, Differs]
    );
    // Falsified: the slowest is the fastest.
    assert_eq!(
        verdicts(&[("a", &[300.0]), ("b", &[70.0]), ("c", &[60.0]), ("d", &[400.0])]),
        [Differs, Differs, Differs, InShape]
    );
    assert_eq!(verdicts(&[("a", &[100.0])])[1..], [CannotBeJudged; 3], "no runs");
    // 140 ± 2.4 beside 141 ± 2.4: which is above cannot be told, and published it is clear.
    assert_eq!(verdicts(&[("a", &[140.0]), ("b", &[141.0]), ("c", &[150.0])])[..2], [CannotBeTold; 2]);
    let scattered = |mean: f64| vec![0.3 * mean, 1.7 * mean];
    let observations = Observations::new(&published, Arc::new(parse(&lines(&[("a", &[100.0])], scattered)).unwrap()));
    assert_eq!(cells(&observations, 0)[0].verdict, CannotBeTold, "an interval that holds everything");
}

#[test]
fn a_number_that_a_claim_judges_is_not_judged_twice() {
    let text = HEAD.replace("x = { key = \"topology.hops\", title = \"hops\" }", "")
        + "[published.a]\ngoodput = 100.0\n[published.b]\ngoodput = 200.0\n[[claim]]\ntext = \"a\"\n\
           check = { kind = \"value\", of = \"a\", published = 100.0, tolerance_pct = 10.0 }\n";
    let published: Published = toml::from_str(&text).unwrap();
    let records = Arc::new(parse(&lines(&[("a", &[100.0]), ("b", &[200.0])], runs)).unwrap());
    let observations = Observations::new(&published, records);
    let counted: Vec<bool> = cells(&observations, 0).into_iter().map(|cell| cell.counts).collect();
    assert_eq!(counted, [false, true]);
    assert_eq!(all(&observations).len(), 2, "one claim and one number");
}

#[test]
fn a_whole_reading_is_shown_and_does_not_count() {
    let text = format!(
        "{HEAD}\nbeside = [{{ title = \"as printed\", curves = {{ a = \"c\" }} }}]\n[[claim]]\ntext = \"so it is\"\n\
         check = {{ kind = \"above\", of = [\"a\"], over = [\"b\"] }}\n"
    );
    let published: Published = toml::from_str(&text).unwrap();
    let courses: Course = &[("a", &[120.0]), ("b", &[100.0]), ("c", &[80.0])];
    let judged =
        judge(&published.claims[0], &Observations::new(&published, Arc::new(parse(&lines(courses, runs)).unwrap())));
    assert_eq!(judged.own.verdict, Reproduced);
    assert_eq!(
        judged.readings.iter().map(|(title, it)| (title.as_str(), it.verdict)).collect::<Vec<_>>(),
        [("as printed", Differs)]
    );
}
