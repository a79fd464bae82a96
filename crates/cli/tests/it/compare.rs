//! `meshpace compare` as other programs and people use it.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Two transfers that cross. The papers claim that TCP-AP is fairer than NewReno in this topology.
const SCENARIO: &str = "duration = '30 s'\nwarmup = '5 s'\n[topology]\nkind = 'cross'\n[[flow]]\n[[flow]]\n";

/// Runs the command. Returns its status, standard output and standard error.
pub fn meshpace(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(cargo_bin("meshpace")).args(arguments).current_dir(directory).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Parses a JSON value in each line.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn variants_files_and_directories_say_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    for name in ["newreno", "tcp-ap"] {
        let text = SCENARIO.replace("[[flow]]\n", &format!("[[flow]]\ntransport = '{name}'\n"));
        fs::write(place.join(format!("{name}.toml")), text).unwrap();
        let (status, _, stderr) = meshpace(place, &["run", &format!("{name}.toml"), "--seeds", "4", "--out", name]);
        assert_eq!(status, 0, "{stderr}");
    }
    fs::write(place.join("cross.toml"), SCENARIO).unwrap();
    let sets = ["--set", "flow.transport=newreno", "--set", "flow.transport=tcp-ap"];
    let variants = [&["compare", "cross.toml", "--seeds", "4", "--format", "json"][..], &sets].concat();
    let (status, by_sets, stderr) = meshpace(place, &variants);
    assert_eq!(status, 0, "{stderr}");
    for sides in [&["newreno.toml", "tcp-ap.toml", "--seeds", "4"][..], &["newreno", "tcp-ap"]] {
        let (status, text, stderr) = meshpace(place, &[&["compare", "--format", "json"], sides].concat());
        assert_eq!((status, text.as_str()), (0, by_sets.as_str()), "{stderr}");
    }
    let compared = lines(&by_sets);
    let metrics: Vec<&str> = compared.iter().map(|line| line["metric"].as_str().unwrap()).collect();
    assert!(metrics.contains(&"aggregate_goodput_bps") && metrics.contains(&"jain"), "{metrics:?}");
    // The expected difference of the means is computed from the records.
    let mean = |name: &str| {
        let text = fs::read_to_string(place.join(name).join("records.jsonl")).unwrap();
        let values: Vec<f64> = lines(&text).iter().map(|record| record["jain"].as_f64().unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let jain = compared.iter().find(|line| line["metric"] == "jain").unwrap();
    assert!((jain["difference"].as_f64().unwrap() - (mean("tcp-ap") - mean("newreno"))).abs() < 1e-9);
    assert_eq!(jain["seeds"], 4);
    for key in ["metric", "a", "b", "difference", "interval", "seeds", "better"] {
        assert!(jain.get(key).is_some(), "{key}");
    }
    let (status, table, _) = meshpace(place, &["compare", "newreno", "tcp-ap", "--format", "csv"]);
    assert_eq!((status, table.lines().count()), (0, 1 + compared.len()));
    let (status, told, _) = meshpace(place, &["compare", "newreno", "tcp-ap"]);
    assert!(status == 0 && told.contains("seeds") && told.contains("Transports in the order of their means"), "{told}");
}

#[test]
fn what_cannot_be_compared_says_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::write(place.join("one.toml"), format!("{SCENARIO}[sweep]\n'flow.max_window' = [2, 4]\n")).unwrap();
    fs::write(place.join("other.toml"), format!("{SCENARIO}[sweep]\n'flow.max_window' = [6, 8]\n")).unwrap();
    fs::write(place.join("plain.toml"), SCENARIO).unwrap();
    fs::write(
        place.join("two.toml"),
        format!("{SCENARIO}[sweep]\n'flow.max_window' = [2, 4]\n'flow.segment' = [500, 900]\n"),
    )
    .unwrap();
    fs::create_dir(place.join("empty")).unwrap();
    for (arguments, told) in [
        (&["compare", "plain.toml"][..], "or two --set"),
        (&["compare", "plain.toml", "--set", "duration=6 s"], "or two --set"),
        (&["compare", "two.toml"], "several keys are swept (flow.max_window, flow.segment)"),
        (&["compare", "one.toml", "--by", "flow.segment"], "swept: flow.max_window"),
        (&["compare", "plain.toml", "--set", "flow.max_window=1,2,x"], "flow.max_window"),
        (&["compare", "one.toml", "nothing.toml"], "nothing.toml"),
        (&["compare", "one.toml", "other.toml", "--seeds", "1", "--set", "duration=6 s"], "different values"),
        (&["compare", "empty", "one.toml"], "manifest.json"),
    ] {
        let (status, stdout, stderr) = meshpace(place, arguments);
        assert!(status == 2 && stdout.is_empty() && stderr.contains(told), "{told}: {status} {stderr}");
    }
}

/// Comparing a sweep of transports with one of them gives the same results as comparing each pair.
#[test]
fn one_value_of_a_key_is_compared_with_all_others() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let sweep = "[sweep]\n'flow.transport' = ['newreno', 'tcp-ap', 'few']\n'flow.max_window' = [8, 16]\n";
    fs::write(place.join("sweep.toml"), format!("{SCENARIO}{sweep}")).unwrap();
    let (status, _, stderr) = meshpace(place, &["run", "sweep.toml", "--seeds", "3", "--out", "records"]);
    assert_eq!(status, 0, "{stderr}");
    let against = |more: &[&str]| meshpace(place, &[&["compare", "records", "--against"], more].concat());
    let (status, text, stderr) = against(&["flow.transport=newreno", "--format", "json"]);
    assert_eq!(status, 0, "{stderr}");
    let goodput = lines(&text).into_iter().find(|line| {
        line["metric"] == "aggregate_goodput_bps"
            && line["value"] == "tcp-ap"
            && line["point"] == "{\"flow.max_window\":16}"
    });
    fs::write(place.join("one.toml"), format!("{SCENARIO}[sweep]\n'flow.max_window' = [16]\n")).unwrap();
    let pair = ["--set", "flow.transport=newreno", "--set", "flow.transport=tcp-ap"];
    let (_, text, stderr) =
        meshpace(place, &[&["compare", "one.toml", "--seeds", "3", "--format", "json"][..], &pair].concat());
    let by_pair = lines(&text).into_iter().find(|line| line["metric"] == "aggregate_goodput_bps");
    let (goodput, by_pair) = (goodput.unwrap(), by_pair.unwrap_or_else(|| panic!("{stderr}")));
    for field in ["a", "b", "difference", "interval", "seeds", "better"] {
        assert_eq!(goodput[field], by_pair[field], "{field}");
    }
    let (status, told, _) = against(&["flow.transport=newreno"]);
    assert!(status == 0 && told.contains("of 4 comparisons at 2 points"), "{told}");
    // The values have the order of the scenario: 8 comes before 16, although "16" is the smaller
    // text.
    let rows: Vec<&str> = told.lines().filter(|line| line.starts_with("| flow.max_window")).collect();
    let starts = ["8 | tcp-ap |", "8 | few |", "16 | tcp-ap |", "16 | few |"];
    for (row, start) in rows.iter().zip(starts) {
        assert!(row.starts_with(&format!("| flow.max_window = {start}")), "{told}");
    }
    assert_eq!(rows.len(), starts.len(), "{told}");
    let (status, table, _) = against(&["flow.transport=newreno", "--format", "csv"]);
    assert!(
        status == 0 && table.starts_with("point,value,metric,") && table.contains("{\"\"flow.max_window\"\":8}"),
        "{table}"
    );
    for (given, why) in [
        ("flow.transport=nobody", "they have newreno, tcp-ap, few"),
        ("flow.queue=4", "they sweep"),
        ("x", "a key and a value"),
    ] {
        let (status, stdout, stderr) = against(&[given]);
        assert!(status == 2 && stdout.is_empty() && stderr.contains(why), "{given}: {status} {stderr}");
    }
}

#[test]
fn one_flow_alone_has_no_index_of_fairness() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let text =
        "duration = '10 s'\n[[flow]]\n[sweep]\n'flow.transport' = ['newreno', 'tcp-ap']\n'topology.hops' = [10, 2]\n";
    fs::write(place.join("chain.toml"), text).unwrap();
    let (status, told, stderr) = meshpace(place, &["compare", "chain.toml", "--against", "flow.transport=newreno"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(!told.contains("Jain") && told.contains("goodput"), "{told}");
    let rows: Vec<&str> = told.lines().filter(|line| line.starts_with("| topology.hops = ")).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("| topology.hops = 10 | tcp-ap |"), "{told}");
}

/// In the second variant the other flow goes to node 3. Node 0, which does not hear the sender of
/// that flow, destroys every frame there.
#[test]
fn a_variant_that_starves_a_flow_is_better_in_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let text = "duration = '10 s'\nwarmup = '2 s'\n[topology]\nkind = 'nodes'\nallow_partition = true\npositions = [['600 m', '0 m'], ['800 m', '0 m'],\n\
        ['0 m', '0 m'], ['240 m', '0 m'], ['-200 m', '0 m'], ['9000 m', '0 m']]\n[[flow]]\nfrom = 0\nto = 1\n[[flow]]\nfrom = 2\nto = 3\n";
    fs::write(place.join("two.toml"), text).unwrap();
    let compare = |more: &[&str]| {
        let variants = ["-q", "compare", "two.toml", "--set", "flow.1.to=4", "--set", "flow.1.to=3"];
        let (status, stdout, stderr) = meshpace(place, &[&variants[..], more].concat());
        assert_eq!(status, 0, "{stderr}");
        (stdout, stderr)
    };
    let (told, _) = compare(&[]);
    assert!(told.starts_with("> STARVED: a flow was starved in ") && told.contains("to 3 3 of 3"), "{told}");
    assert!(told.contains("none (a flow was starved in 3 of 3 runs) for to 3"), "{told}");
    assert!(!told.lines().any(|line| line.starts_with("- to 3 is ")), "{told}");
    let (text, stderr) = compare(&["--format", "json"]);
    assert!(stderr.contains("STARVED"), "{stderr}");
    for line in lines(&text) {
        assert!(line["better"] != "b" && line["counts"][1]["starved_runs"] == 3, "{line}");
    }
    // If the other flow of the second variant has no path, the first flow has the whole channel and
    // is faster. That must not count as better.
    let variants = ["-q", "compare", "two.toml", "--set", "flow.1.to=4", "--set", "flow.1.to=5", "--format", "json"];
    for line in lines(&meshpace(place, &variants).1) {
        assert_eq!((&line["counts"][1]["starved_runs"], &line["counts"][1]["without_path"]), (&0.into(), &3.into()));
        assert!(line["better"] != "b", "{line}");
    }
    let (table, _) = compare(&["--format", "csv"]);
    let head = table.lines().next().unwrap();
    assert!(head.ends_with(",better,a_starved_runs,b_starved_runs,p,p_holm,better_in_family"), "{table}");
    assert!(
        table.lines().any(|row| row.starts_with("delay_p95_s,") && row.contains(",,") && !row.contains("inf")),
        "{table}"
    );
}

/// Several values in one `--set`, a swept key, and a directory of its records give the same results
/// for the same variants.
#[test]
fn any_number_of_variants_is_compared_and_named_by_what_differs() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let short = SCENARIO.replace("30 s", "12 s").replace("5 s", "2 s");
    fs::write(place.join("cross.toml"), &short).unwrap();
    let names = ["newreno", "tcp-ap", "few"];
    let sweep = format!("{short}[sweep]\n'flow.transport' = ['newreno', 'tcp-ap', 'few']\nseeds = 3\n");
    fs::write(place.join("sweep.toml"), sweep).unwrap();
    let run = |arguments: &[&str]| {
        let (status, text, stderr) = meshpace(place, &[&["compare"][..], arguments, &["--seeds", "3"]].concat());
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
        text
    };
    let set = ["--set", "flow.transport=newreno,tcp-ap,few"];
    let by_set = run(&[&["cross.toml", "--format", "json"][..], &set].concat());
    assert_eq!(run(&["sweep.toml", "--format", "json"]), by_set);
    let (status, _, stderr) = meshpace(place, &["run", "sweep.toml", "--out", "records"]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(run(&["records", "--by", "flow.transport", "--format", "json"]), by_set);
    let compared = lines(&by_set);
    for (number, name) in names.iter().enumerate().skip(1) {
        let of: Vec<&Value> =
            compared.iter().filter(|line| line["variants"] == serde_json::json!(["newreno", name])).collect();
        assert!(of.len() > 4, "{name}");
        // The results are the same as those of a comparison of these two variants alone.
        let pair = run(&[
            "cross.toml",
            "--format",
            "json",
            "--set",
            "flow.transport=newreno",
            "--set",
            &format!("flow.transport={name}"),
        ]);
        for (line, mut named) in lines(&pair).into_iter().zip(of.into_iter().cloned()) {
            named.as_object_mut().unwrap().remove("variants");
            assert_eq!(line, named, "{name} {number}: two --set say nothing more than they always did");
        }
    }
    let told = run(&[&["cross.toml", "--set", "flow.segment=700"][..], &set].concat());
    assert!(told.contains("# newreno, tcp-ap and few\n\nIn all variants: flow.segment=700.\n"), "{told}");
    assert!(told.contains("## newreno and few") && told.contains("## Variants in the order of their means"), "{told}");
    let table = run(&[&["cross.toml", "--format", "csv"][..], &set].concat());
    assert!(
        table.starts_with("first,second,metric,") && table.contains("\"newreno\",\"few\",aggregate_goodput_bps,"),
        "{table}"
    );
}

/// One hop without loss: the rate of the radio determines the goodput under every model. No other
/// choice makes half the rate carry more.
const HOP: &str = "duration = '6 s'\nwarmup = '2 s'\n[topology]\nhops = 1\n[[flow]]\ntransport = 'newreno'\n";

/// Returns the objects of `--robust` for the metrics of two variants of a scenario.
fn robust(text: &str, sets: [&str; 2]) -> Vec<Value> {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("s.toml"), text).unwrap();
    let arguments = ["compare", "s.toml", "--robust", "--format", "json", "--set", sets[0], "--set", sets[1]];
    let (status, stdout, stderr) = meshpace(scratch.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("other models with ") && stderr.contains(" frames"), "the cost is stated: {stderr}");
    let found = lines(&stdout);
    for line in &found {
        let robust = &line["robust"];
        let count = |field: &str| robust[field].as_array().unwrap().len() as u64;
        let others = count("flips_with") + count("starves_with") + count("cannot_be_told_with");
        assert_eq!(robust["holds"].as_u64().unwrap() + others, robust["of"].as_u64().unwrap(), "{line}");
        assert_eq!(count("models"), robust["of"].as_u64().unwrap());
    }
    found
}

fn of<'a>(lines: &'a [Value], metric: &str) -> &'a Value {
    lines.iter().find(|line| line["metric"] == metric).unwrap()
}

#[test]
fn half_the_rate_loses_under_every_model() {
    let found = robust(HOP, ["radio.rate=1 Mbit/s", "radio.rate=2 Mbit/s"]);
    let goodput = of(&found, "aggregate_goodput_bps");
    let robust = &goodput["robust"];
    assert_eq!((&goodput["better"], &robust["holds"]), (&"b".into(), &robust["of"]), "{robust}");
    assert!(robust["of"].as_u64().unwrap() >= 8, "{robust}");
    let told = robust["words"].as_str().unwrap();
    assert!(told.starts_with("as written 2 Mbit/s has the higher goodput by "), "{told}");
    // Static routes have no local repair, so that choice is not applicable and has a reason.
    let reasons = robust["not_applicable"].as_array().unwrap();
    assert!(
        reasons
            .iter()
            .any(|of| of["model"] == "routing.local_repair = off" && of["why"].as_str().unwrap().contains("AODV"))
    );
}

#[test]
fn a_pair_of_the_same_is_a_tie_under_every_model() {
    let found = robust(HOP, ["radio.queue=50", "flow.segment=1460"]);
    for line in &found {
        let robust = &line["robust"];
        assert_eq!((&line["difference"], &line["better"]), (&0.0.into(), &Value::Null), "{line}");
        // The queue is the setting that is compared, so it is not applicable as a choice of the
        // model.
        assert_eq!(robust["holds"], robust["of"], "{line}");
        assert!(robust["words"].as_str().unwrap().contains("no clear difference"), "{line}");
        let refused = robust["not_applicable"].as_array().unwrap();
        assert!(refused.iter().any(|of| of["model"] == "radio.queue = 10" && of["why"] == "it is compared"), "{line}");
    }
}

/// The second variant sends to a node that no radio reaches, so no choice of the model makes it
/// deliver anything. No other flow starves it.
#[test]
fn a_variant_without_a_path_is_better_under_no_model() {
    let text = "duration = '6 s'\n[topology]\nkind = 'nodes'\nallow_partition = true\npositions = [['0 m', '0 m'], ['200 m', '0 m'], ['9000 m', '0 m']]\n\
        [[flow]]\nfrom = 0\nto = 1\n";
    let found = robust(text, ["flow.to=1", "flow.to=2"]);
    let goodput = of(&found, "aggregate_goodput_bps");
    let robust = &goodput["robust"];
    assert_eq!((&goodput["better"], &robust["holds"]), (&"a".into(), &robust["of"]));
    for model in robust["models"].as_array().unwrap() {
        assert_eq!(model["counts"][1]["without_path"], model["counts"][1]["runs"], "{model}");
        assert_eq!((&model["counts"][0]["without_path"], &model["counts"][1]["starved_runs"]), (&0.into(), &0.into()));
    }
    // A flow without a path has no delay to compare.
    assert!(found.iter().all(|line| line["metric"] != "delay_p95_s" && line["better"] != "b"), "{found:?}");
}

/// RTS and CTS cost air time, and have no benefit if all nodes hear each other. If two variants
/// differ in RTS, the comparison is not repeated with other values of RTS.
#[test]
fn what_is_compared_is_no_model() {
    let found = robust(HOP, ["radio.rts_cts=true", "radio.rts_cts=false"]);
    let robust = &of(&found, "aggregate_goodput_bps")["robust"];
    assert_eq!(robust["holds"], robust["of"], "{robust}");
    let refused = robust["not_applicable"].as_array().unwrap();
    for choice in ["radio.rts_cts = true", "radio.rts_cts = false"] {
        assert!(
            refused.iter().any(|of| of["model"] == choice && of["why"].as_str().unwrap().contains("compared")),
            "{choice}"
        );
    }
}

/// The attempts of a frame are counted by the short retry limit, but after RTS and CTS by the long
/// one (IEEE 802.11-1999, 9.2.4). The link loses half of the long frames. Seven attempts for long
/// frames are useful with RTS and useless without; seven attempts for short frames are useful
/// without RTS and useless with it.
#[test]
fn an_answer_that_rests_on_one_choice_of_the_model_flips_with_it() {
    // At 11 Mbit/s at the end of the range, every other frame of 1500 bytes arrives. RTS and CTS at
    // 1 Mbit/s always arrive.
    let text = "duration = '12 s'\nwarmup = '2 s'\n[mac]\nshort_retry_limit = 1\nlong_retry_limit = 1\n[radio]\nmodel = 'log-distance'\n\
        rate = '11 Mbit/s'\n[topology]\nhops = 1\nspacing = '116 m'\n[[flow]]\ntraffic = 'cbr'\nrate = '200 kbit/s'\ntransport = 'udp'\nsegment = 1460\n";
    let found = robust(text, ["mac.short_retry_limit=7", "mac.long_retry_limit=7"]);
    let goodput = of(&found, "aggregate_goodput_bps");
    let robust = &goodput["robust"];
    assert_eq!(goodput["better"], "b", "{goodput}");
    assert!(robust["flips_with"].as_array().unwrap().contains(&"radio.rts_cts = false".into()), "{}", robust["words"]);
    let verdict = |model: &str| {
        let row = robust["models"].as_array().unwrap().iter().find(|row| row["model"] == model);
        row.unwrap_or_else(|| panic!("{model} in {robust}"))["verdict"].clone()
    };
    // The length of the sender's queue has no effect. Without noise nothing is lost, so both
    // variants carry the same.
    assert_eq!((verdict("radio.queue = 10"), verdict("radio.queue = 200")), ("holds".into(), "holds".into()));
    assert_eq!(verdict("radio.reception = ns2"), "cannot be told");
    let told = robust["words"].as_str().unwrap();
    assert!(told.contains("flips with") && told.contains("where short_retry_limit 7 has the higher goodput"), "{told}");
}

#[test]
fn robustness_is_told_in_words_columns_and_on_the_page() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::write(place.join("s.toml"), HOP).unwrap();
    let sets = ["--set", "radio.rate=1 Mbit/s,2 Mbit/s"];
    let run = |more: &[&str]| {
        let (status, text, stderr) = meshpace(place, &[&["compare", "s.toml"][..], &sets, more].concat());
        assert_eq!(status, 0, "{stderr}");
        (text, stderr)
    };
    let (told, _) = run(&["--robust"]);
    assert!(told.contains("## Does the result hold under other models? 1 Mbit/s and 2 Mbit/s"), "{told}");
    let (table, _) = run(&["--robust", "--format", "csv"]);
    let models = told.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| model")).count() - 1;
    let head = table.lines().next().unwrap();
    assert!(head.starts_with("first,second,model,metric,"), "{head}");
    assert!(head.ends_with(",verdict,verdict_in_family,same_run_as_baseline"), "{head}");
    let goodput = table.lines().filter(|row| row.contains(",aggregate_goodput_bps,"));
    assert_eq!(goodput.clone().count(), 1 + models, "{told}\n{table}");
    assert_eq!(goodput.filter(|row| row.contains(",holds,holds,")).count(), models);
    assert!(table.lines().all(|row| row.split(',').count() == head.split(',').count()), "{table}");
    // A short comparison tries other models without `--robust` if it writes a page, and not
    // otherwise.
    let (told, stderr) = run(&["--report", "page.html"]);
    assert!(
        told.contains("Does the result hold under other models?") && stderr.contains("the results are in page.html"),
        "{told}{stderr}"
    );
    let page = fs::read_to_string(place.join("page.html")).unwrap();
    assert!(
        page.contains("routing.protocol = aodv") && page.contains("✓ holds") && !page.contains("<script"),
        "{page}"
    );
    assert!(page.contains("meshpace compare s.toml --set 'radio.rate=1 Mbit/s,2 Mbit/s'"), "{page}");
    assert!(!run(&[]).0.contains("Does the result hold under other models?"));
    assert!(!run(&["--report", "page.html", "--robust=never"]).0.contains("Does the result hold under other models?"));
    // Directories of records cannot be run again under other models.
    let (status, _, stderr) = meshpace(place, &["run", "s.toml", "--seeds", "3", "--out", "kept"]);
    assert_eq!(status, 0, "{stderr}");
    let (status, _, stderr) = meshpace(place, &["compare", "kept", "kept", "--robust"]);
    assert!(status == 2 && stderr.contains("compare the scenario files instead"), "{stderr}");
}

/// A sweep over hops and transports, from which points are selected.
const SWEPT: &str = "duration = '10 s'\nwarmup = '2 s'\n[[flow]]\n[sweep]\n\"topology.hops\" = [1, 2, 4]\n\"flow.transport\" = ['newreno', 'tcp-ap']\nseeds = 3\n";

#[test]
fn a_sweep_is_compared_point_by_point() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::write(place.join("s.toml"), SWEPT).unwrap();
    let (status, _, stderr) = meshpace(place, &["run", "s.toml", "--out", "all"]);
    assert_eq!(status, 0, "{stderr}");
    let compare = |more: &[&str]| {
        let (status, text, stderr) =
            meshpace(place, &[&["compare", "all", "--by", "flow.transport"][..], more].concat());
        assert_eq!(status, 0, "{stderr}");
        text
    };
    let lines_of = |text: &str| lines(text).into_iter().map(|line| (line["metric"].clone(), line)).collect::<Vec<_>>();
    let all = lines_of(&compare(&["--format", "json"]));
    for (number, hops) in ["1", "2", "4"].iter().enumerate() {
        let condition = format!("topology.hops={hops}");
        let alone = lines_of(&compare(&["--format", "json", "--where", &condition]));
        assert_eq!(alone.len(), all.len());
        for ((metric, pooled), (_, alone)) in all.iter().zip(&alone) {
            let at = &pooled["points"][number];
            assert_eq!(at["point"], serde_json::json!({"topology.hops": hops.parse::<u64>().unwrap()}));
            for field in ["a", "b", "difference", "interval", "better", "p", "p_holm", "better_in_family"] {
                assert_eq!(at[field], alone[field], "{metric} {field}");
            }
            assert!(alone.get("points").is_none());
        }
    }
    let told = compare(&[]);
    let rows: Vec<&str> = told.lines().filter(|line| line.starts_with("| topology.hops = ")).collect();
    assert_eq!(rows.len(), 3, "{told}");
    assert!(told.contains("\nValues are means over 3 points (topology.hops = 1, 2, 4).\n"), "{told}");
    let table = compare(&["--format", "csv"]);
    assert!(table.lines().next().unwrap().ends_with(",better_in_family,point"), "{table}");
    assert_eq!(table.lines().count(), 1 + 4 * all.len());
    assert_eq!(table.matches("{\"\"topology.hops\"\":4}").count(), all.len());
}

#[test]
fn points_of_a_recorded_sweep_are_selected() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::write(place.join("s.toml"), SWEPT).unwrap();
    let (status, _, stderr) = meshpace(place, &["run", "s.toml", "--out", "all"]);
    assert_eq!(status, 0, "{stderr}");
    // Selected points give the same results as a scenario that has only these points.
    let alone = SWEPT.replace("[1, 2, 4]", "[2, 4]");
    fs::write(place.join("two.toml"), alone).unwrap();
    let (status, expected, stderr) = meshpace(place, &["compare", "two.toml", "--format", "json"]);
    assert_eq!(status, 0, "{stderr}");
    for conditions in
        [&["--where", "topology.hops=2,4"][..], &["--where", "topology.hops=2", "--where", "topology.hops=4"]]
    {
        let arguments = [&["compare", "all", "--by", "flow.transport", "--format", "json"], conditions].concat();
        let (status, text, stderr) = meshpace(place, &arguments);
        assert_eq!((status, text.as_str()), (0, expected.as_str()), "{stderr}");
    }
    // With only one transport left, the values of hops are compared.
    let (status, told, stderr) = meshpace(place, &["compare", "all", "--where", "flow.transport=tcp-ap"]);
    assert!(status == 0 && told.contains("hops 4"), "{told}{stderr}");
    let (status, _, stderr) = meshpace(place, &["report", "all", "--page", "two.html", "--where", "topology.hops=2,4"]);
    assert_eq!(status, 0, "{stderr}");
    let (status, _, stderr) = meshpace(place, &["report", "all", "--page", "all.html"]);
    assert_eq!(status, 0, "{stderr}");
    let rows = |page: &str| {
        let mut rows = 0;
        for entry in fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()) {
            let is_own = entry.file_name().unwrap().to_string_lossy().starts_with(page);
            if is_own && entry.extension().is_some_and(|extension| extension == "csv") {
                rows += fs::read_to_string(&entry).unwrap().lines().count();
            }
        }
        rows
    };
    let page = fs::read_to_string(place.join("two.html")).unwrap();
    assert!(
        page.contains("meshpace report all --where &#39;topology.hops=2,4&#39;")
            || page.contains("--where 'topology.hops=2,4'"),
        "{page}"
    );
    assert!(rows("two") > 0 && rows("two") < rows("all"), "{} and {} rows", rows("two"), rows("all"));
    for (arguments, told) in [
        (&["compare", "all", "--where", "topology.hops=3"][..], "there are 1, 2, 4"),
        (&["report", "all", "--where", "topology.hop=2"], "they sweep"),
        (&["compare", "s.toml", "--where", "topology.hops=2"], "--set topology.hops=2"),
        (&["compare", "all", "--where", "topology.hops"], "expected key=value"),
    ] {
        let (status, _, stderr) = meshpace(place, arguments);
        assert!(status == 2 && stderr.contains(told), "{arguments:?}: {stderr}");
    }
}
