use super::*;
use crate::compare::compare;
use crate::record::excerpt::Excerpts;
use crate::record::metrics::GOODPUT;
use crate::record::{Record, record};

/// Two sides over four seeds, which differ far more from each other than the sides do. Side B has
/// `more` bit/s more than side A, and starves its flow in the first `starved` runs.
fn trial(model: &str, more: f64, starved: u64) -> Trial {
    let side = |more: f64, starved: u64| -> Vec<Record> {
        (1..=4)
            .map(|seed| {
                let flow = json!({"delivered_bytes": u64::from(seed > starved), "timeouts": 0, "rtt_mean_s": null});
                let goodput = 1e5 * (seed * seed % 7) as f64 + more * (1.0 + 0.01 * seed as f64);
                record(json!({"seed": seed, "fingerprint": model, "duration_s": 9.0, "aggregate_goodput_bps": goodput, "frames": 10,
                       "retransmission_index": if seed == 2 { json!(null) } else { json!(0.5 - more / 1e6) }, "flows": [flow]}))
            })
            .collect()
    };
    Trial { model: model.to_owned(), lines: compare(&side(0.0, 0), &side(more, starved)).unwrap() }
}

fn robust(written: Trial, others: &[(&str, f64, u64)]) -> Robust {
    let others = others.iter().map(|(model, more, starved)| trial(model, *more, *starved)).collect();
    Robust { written, others, not_applicable: vec![("radio.x = 1".to_owned(), "it is swept".to_owned())] }
}

fn verdicts(robust: &Robust, metric: &str) -> Vec<Verdict> {
    robust.rows(metric, Reading::InFamily).map(|row| row.verdict).collect()
}

#[test]
fn what_holds_everywhere_holds() {
    let all = robust(trial("as written", 100.0, 0), &[("x", 200.0, 0), ("y", 5.0, 0)]);
    assert_eq!(all.written(GOODPUT, Reading::InFamily), Answer::Better(Side::B));
    assert_eq!(verdicts(&all, GOODPUT), [Verdict::Holds; 2]);
    let told = answer(&all, GOODPUT, ["old", "new"]);
    assert!(
        told.starts_with("as written new has the higher goodput by 0.10")
            && told.ends_with("this holds in 2 of 2 other models"),
        "{told}"
    );
    assert_eq!(starving(&all, ["old", "new"]), None);
}

#[test]
fn an_answer_flips_starves_or_cannot_be_told() {
    let all = robust(
        trial("as written", 100.0, 0),
        &[("same", 50.0, 0), ("other", -100.0, 0), ("greedy", 100.0, 2), ("tie", 0.0, 0), ("other greedy", -100.0, 1)],
    );
    use Verdict::{Flips, Holds, Starves, Untold};
    // In "other greedy" side B is slower and starves a flow as well: side A is better, so the answer flips.
    assert_eq!(verdicts(&all, GOODPUT), [Holds, Flips, Starves, Untold, Flips]);
    let told = answer(&all, GOODPUT, ["old", "new"]);
    for part in [
        "this holds in 1 of 5 other models",
        "flips with other, other greedy, where old has the higher goodput",
        "new is ahead, but starves a flow, with greedy",
        "cannot be told with tie",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let starving = starving(&all, ["old", "new"]).unwrap();
    assert_eq!(
        starving,
        "as written no side starves a flow; so in every run of 3 of 5 other models; new alone starves a flow with greedy, other greedy"
    );
    let object = all.json(GOODPUT, ["old", "new"]);
    assert_eq!((&object["holds"], &object["of"], &object["flips_with"][0]), (&json!(1), &json!(5), &json!("other")));
    assert_eq!(object["not_applicable"][0]["why"], "it is swept");
    assert_eq!((&object["models"][2]["verdict"], &object["models"][2]["better"]), (&json!("starves"), &Value::Null));
}

#[test]
fn a_tie_holds_in_models_that_tie_and_flips_in_others() {
    let all = robust(trial("as written", 0.0, 0), &[("x", 0.0, 0), ("y", 0.0, 0), ("z", -9.0, 0)]);
    assert_eq!(all.written(GOODPUT, Reading::InFamily), Answer::Open);
    assert_eq!(verdicts(&all, GOODPUT), [Verdict::Holds, Verdict::Holds, Verdict::Flips]);
    let told = answer(&all, GOODPUT, ["old", "new"]);
    assert!(told.contains("no clear difference in goodput, nor is there in 2 of 3 other models"), "{told}");
    assert!(told.contains("becomes clear with z, where old has the higher goodput"), "{told}");
}

#[test]
fn a_side_ahead_that_starves_a_flow_is_not_called_better_and_only_that_can_hold() {
    let all = robust(trial("as written", 100.0, 4), &[("x", 100.0, 4), ("y", 100.0, 0)]);
    assert_eq!(all.written(GOODPUT, Reading::InFamily), Answer::BetterButStarves(Side::B));
    assert_eq!(verdicts(&all, GOODPUT), [Verdict::Holds, Verdict::Flips]);
    let told = answer(&all, GOODPUT, ["old", "new"]);
    assert!(
        told.contains("as written no side is called better in goodput: new is ahead")
            && told.contains("in 4 of 4 runs"),
        "{told}"
    );
    assert_eq!(
        starving(&all, ["old", "new"]).unwrap(),
        "as written new alone starves a flow in 4 of 4 runs; so in some run of 1 of 2 other models; no side starves a flow with y"
    );
}

#[test]
fn a_metric_that_some_or_all_runs_lack_gives_no_answer() {
    let all = robust(trial("as written", 100.0, 0), &[("x", 100.0, 0)]);
    // The index of one run is missing.
    assert_eq!(all.written("retransmission_index", Reading::InFamily), Answer::Unknown);
    assert!(
        answer(&all, "retransmission_index", ["old", "new"])
            .contains("nothing can be concluded about the retransmissions")
    );
    assert_eq!(
        (all.written("rtt_mean_s", Reading::InFamily), verdicts(&all, "rtt_mean_s")),
        (Answer::Unknown, vec![Verdict::Untold])
    );
    let told: Vec<&str> = all.told().collect();
    assert_eq!(told, [GOODPUT], "neither an index of one flow nor what was not measured");
}

#[test]
fn frames_are_those_of_the_records() {
    let records = [json!({"frames": 3}), json!({"frames": 4}), json!({})].map(record);
    assert_eq!(frames(&Excerpts::of_all(&records)), 7);
}

#[test]
fn if_both_sides_starve_the_flow_its_delay_is_no_tie() {
    let side = |model: &str| -> Vec<Record> {
        let flow = json!({"delivered_bytes": 0, "delay_p95_s": null});
        let run = |seed| record(json!({"seed": seed, "fingerprint": model, "duration_s": 9.0, "flows": [flow]}));
        (1..=3).map(run).collect()
    };
    let dead = |model: &str| Trial { model: model.to_owned(), lines: compare(&side(model), &side(model)).unwrap() };
    let all = Robust { written: dead("as written"), others: vec![dead("x")], not_applicable: Vec::new() };
    let told = answer(&all, "delay_p95_s", ["old", "new"]);
    assert!(
        told.starts_with(
            "as written neither side has a 95th percentile of the delay, because a flow is starved in all runs"
        ),
        "{told}"
    );
    assert!(told.ends_with("the same in 1 of 1 other models"), "{told}");
    assert_eq!(
        starving(&all, ["old", "new"]).unwrap(),
        "as written both old and new starve a flow in 3 of 3 runs each; so in some run of 1 of 1 other models"
    );
}

#[test]
fn a_model_with_the_runs_of_the_baseline_changes_nothing_and_holds_nowhere() {
    let written = trial("as written", 100.0, 0);
    let same = Trial { model: "same".to_owned(), lines: written.lines.clone() };
    let mut all = robust(written, &[("x", 200.0, 0), ("y", -5.0, 0)]);
    all.others.push(same);
    let told = answer(&all, GOODPUT, ["old", "new"]);
    assert!(told.contains("this holds in 1 of 2 other models that change the runs"), "{told}");
    assert!(told.ends_with("; changes nothing here: same"), "{told}");
    assert!(!told.contains("holds with same"), "{told}");
    // The fields that there were count it, as they always did; the new ones name it.
    let object = all.json(GOODPUT, ["old", "new"]);
    assert_eq!((&object["holds"], &object["of"]), (&json!(2), &json!(3)));
    assert_eq!(object["changes_nothing_with"], json!(["same"]));
    let same = |row: &Value| row["same_run_as_baseline"].as_bool().unwrap();
    assert_eq!(object["models"].as_array().unwrap().iter().map(same).collect::<Vec<_>>(), [false, false, true]);
}

/// The answer is clear by its metric alone, but not after the correction for all metrics.
#[test]
fn the_sentence_reads_the_corrected_answer_and_the_lists_the_plain_one() {
    let clear = |mut trial: Trial| {
        let line = trial.lines.iter_mut().find(|line| line.metric == GOODPUT).unwrap();
        (line.p_holm, line.better_in_family) = (Some(0.2), None);
        trial
    };
    let all = Robust {
        written: trial("as written", 100.0, 0),
        others: vec![clear(trial("x", 100.0, 0))],
        not_applicable: Vec::new(),
    };
    let told = answer(&all, GOODPUT, ["old", "new"]);
    assert!(told.contains("this holds in 0 of 1 other models; cannot be told with x"), "{told}");
    let object = all.json(GOODPUT, ["old", "new"]);
    assert_eq!(object["holds"], 1);
    let row = &object["models"][0];
    assert_eq!((&row["verdict"], &row["verdict_in_family"]), (&json!("holds"), &json!("cannot be told")));
}
