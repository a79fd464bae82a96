use super::*;
use serde_json::{Value, json};

/// Records from these objects. A field that an object does not have was not measured.
fn typed(objects: Vec<Value>) -> Vec<Record> {
    objects.into_iter().map(|object| serde_json::from_value(object).unwrap()).collect()
}

fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for transport in ["newreno", "tcp-ap"] {
        for hops in [4, 2] {
            for seed in 1..=3 {
                let faster = if transport == "tcp-ap" { 1e4 } else { 0.0 };
                let goodput = 1e5 / f64::from(hops) + f64::from(seed) * 100.0 + faster;
                let flow = json!({"transport": transport, "goodput_bps": goodput / 2.0});
                records.push(json!({
                    "seed": seed, "point": {"flow.transport": transport, "topology.hops": hops}, "jain": 0.9, "jain_2s": 0.7,
                    "aggregate_goodput_bps": goodput, "retransmission_index": 0.1, "flows": [flow, flow],
                    "series": {"start_s": 4.0, "window_s": 1.0, "flows": [{"goodput_bps": [1e3, 2e3]}]},
                }));
            }
        }
    }
    typed(records)
}

fn subject<'a>(records: &'a [Record], map: Option<&'a Map>, settings: &'a Settings) -> Subject<'a> {
    Subject { title: "A <chain>", command: "meshpace run", records, map, settings }
}

fn axis_of(groups: &[Group], settings: &Settings) -> Option<String> {
    data::axis(&groups.iter().collect::<Vec<_>>(), settings)
}

#[test]
fn numbers_with_different_units_are_no_axis() {
    let of = |rates: [&str; 2]| {
        let record = |rate: &str| json!({"seed": 1, "point": {"link.rate": rate}, "aggregate_goodput_bps": 1.0});
        typed(rates.map(record).to_vec())
    };
    let (mixed, same) = (of(["500 kbit/s", "1 Mbit/s"]), of(["1 Mbit/s", "2 Mbit/s"]));
    assert_eq!(axis_of(&groups(&mixed), &Settings::default()), None);
    let same = groups(&same);
    assert_eq!(axis_of(&same, &Settings::default()).as_deref(), Some("link.rate"));
    assert_eq!(data::with_unit("link.rate", &[&same[0], &same[1]]), "link.rate, Mbit/s");
}

#[test]
fn a_sweep_becomes_lines_over_its_numbers_with_files_beside() {
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("out.html");
    let map = Map {
        names: Vec::new(),
        nodes: vec![(0.0, 0.0), (200.0, 0.0)],
        links: vec![(0, 1)],
        flows: vec![(0, 1, "newreno".to_owned())],
        routes: Vec::new(),
        of: "seed 1".to_owned(),
    };
    let records = records();
    write(&page, &subject(&records, Some(&map), &Settings::default())).unwrap();
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("A &lt;chain&gt;") && !text.contains("NaN") && !text.contains("<script"));
    assert!(text.contains("goodput of all flows, kbit/s against topology.hops"));
    for name in ["goodput", "jain", "jain-2s", "retransmissions", "flows", "time", "map"] {
        let svg = std::fs::read_to_string(scratch.path().join(format!("out-{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>") && !svg.contains("NaN"), "{name}");
        assert!(text.contains(&svg), "{name} is in the page");
    }
    let mut heads: Vec<&str> =
        text.split("<text x=\"4\" y=\"17\">").skip(1).filter_map(|rest| rest.split('<').next()).collect();
    heads.sort_unstable();
    assert!(heads.len() > 5 && heads.windows(2).all(|two| two[0] != two[1]), "no two plots have one title: {heads:?}");
    assert!(text.contains("95 % confidence interval"), "± and whiskers are explained");
    let csv = std::fs::read_to_string(scratch.path().join("out-goodput.csv")).unwrap();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!((rows[0], rows.len()), ("line,topology.hops,mean,half_width,seeds", 5));
    // 100 kbit/s over four hops is 25; the seeds add 0.2 on average.
    assert!(rows.iter().any(|row| row.starts_with("newreno,4,25.2,") && row.ends_with(",3")), "{csv}");
    let time = std::fs::read_to_string(scratch.path().join("out-time.csv")).unwrap();
    let first = time.lines().nth(1).unwrap();
    assert!(first.contains(",0,newreno,4.5,1,"), "the middle of the first window, its goodput in kbit/s: {first}");
    let flows = std::fs::read_to_string(scratch.path().join("out-flows.csv")).unwrap();
    assert!(flows.lines().any(|row| row.starts_with("\"tcp-ap, hops 4\",1,tcp-ap,")), "{flows}");
    // Over 2 and 4 hops: 37.5, the seeds' 0.2, and 10 for the faster.
    assert!(text.contains("class=\"best\">47.7 ±") && text.contains("37.7 ±"), "the ranking");
    assert!(write(&page, &subject(&[], None, &Settings::default())).is_err());
}

#[test]
fn flows_of_different_transports_are_named_by_them() {
    let flows = json!([{"transport": "newreno", "goodput_bps": 1e5}, {"transport": "udp", "goodput_bps": 1e4}]);
    let of =
        |rate: &str| json!({"seed": 1, "point": {"flow.1.rate": rate}, "aggregate_goodput_bps": 1e5, "flows": flows});
    let records = typed(vec![of("32 kbit/s"), of("64 kbit/s")]);
    let groups = groups(&records);
    assert_eq!(groups[0].flow_label(0), "32 kbit/s, newreno, flow 0");
    let settings = Settings::default();
    let plots = plots(&panels(&groups, &settings), &subject(&records, None, &settings));
    let bars = plots.iter().find(|plot| plot.name == "flows").unwrap();
    assert_eq!(bars.title, "goodput of each flow at the first value of flow.1.rate");
    // Each in the colour of its transport.
    assert!(bars.svg.contains("#D55E00") && bars.svg.contains("udp, flow 1"), "{}", bars.svg);
}

#[test]
fn datagrams_have_a_plot_of_what_is_lost_and_segments_one_of_what_is_sent_again() {
    let page = |flows: Value| {
        let scratch = tempfile::tempdir().unwrap();
        let page = scratch.path().join("out.html");
        let of = |seed: u64| json!({"seed": seed, "point": {}, "aggregate_goodput_bps": 1e5, "retransmission_index": 0.0, "flows": flows});
        let records = typed((1..=3).map(of).collect());
        write(&page, &subject(&records, None, &Settings::default())).unwrap();
        std::fs::read_to_string(page).unwrap()
    };
    let (tcp, udp) = (json!({"transport": "newreno"}), json!({"transport": "udp", "loss_ratio": 0.125}));
    let (lost, again) = ("lost datagrams of UDP, %", "retransmissions, %");
    let only = page(json!([udp]));
    assert!(only.contains(lost) && only.contains("<td>12.5 ± 0.0</td>") && !only.contains(again), "{only}");
    let mixed = page(json!([tcp, udp]));
    assert!(mixed.contains(lost) && mixed.contains("<td>12.5 ± 0.0</td>") && mixed.contains(again), "{mixed}");
    let neither = page(json!([tcp]));
    assert!(!neither.contains(lost) && neither.contains(again), "{neither}");
}

#[test]
fn a_scenario_chooses_axis_lines_and_metrics() {
    let records = records();
    let groups = groups(&records);
    let settings = Settings {
        x: Some("topology.hops".to_owned()),
        lines: Some(Vec::new()),
        metrics: Some(vec!["jain"]),
        logarithmic: true,
        shifted: false,
        ..Settings::default()
    };
    let panels = panels(&groups, &settings);
    assert_eq!(panels.iter().map(|panel| panel.told.as_str()).collect::<Vec<_>>(), ["newreno", "tcp-ap"]);
    let plots = plots(&panels, &subject(&records, None, &settings));
    let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(names, ["jain-1", "flows-1", "time-1", "jain-2", "flows-2", "time-2"]);
    assert!(plots[3].title.ends_with("; tcp-ap"), "{}", plots[3].title);
    // A key whose values are names is no axis: bars.
    let by_name = Settings { x: Some("flow.transport".to_owned()), ..Settings::default() };
    assert_eq!(axis_of(&groups, &by_name), None);
}

#[test]
fn a_metric_that_is_added_is_drawn() {
    const ADDED: Metric = Metric {
        name: "frames",
        title: "frames",
        of: |run| Some(run.seed as f64),
        ..meshpace_lab::record::metrics::PLAIN
    };
    let records = records();
    let groups = groups(&records);
    let settings = Settings::default();
    let plot = against_axis(&panels(&groups, &settings)[0], &ADDED, &settings).unwrap();
    assert_eq!(plot.title, "frames against topology.hops");
    // The mean of the seeds 1, 2 and 3.
    assert!(plot.csv.lines().any(|row| row.starts_with("newreno,4,2,")), "{}", plot.csv);
}

#[test]
fn a_parameter_of_a_transport_is_an_axis_and_not_a_line_for_each_value() {
    let record = |alpha: f64| {
        let flow = json!({"transport": format!("tcp-ap{{pacing.alpha={alpha}}}"), "goodput_bps": 1e5});
        json!({"seed": 1, "point": {"flow.transport.pacing.alpha": alpha}, "aggregate_goodput_bps": 1e5, "flows": [flow]})
    };
    let records = typed(vec![record(0.3), record(0.5)]);
    let groups = groups(&records);
    let axis = axis_of(&groups, &Settings::default()).unwrap();
    assert_eq!(groups.iter().map(|group| group.label_without(&axis)).collect::<Vec<_>>(), ["tcp-ap", "tcp-ap"]);
    let settings = Settings::default();
    let svg = &plots(&panels(&groups, &settings), &subject(&records, None, &settings))[0].svg;
    assert!(svg.contains("#0072B2") && !svg.contains("pacing.alpha="), "one line, in the colour of TCP-AP");
}

/// Three runs of each of two variants. `change` modifies the record of a run; its arguments are the
/// number of the variant, the seed and the record.
fn variants(change: impl Fn(usize, u64, &mut Value)) -> Vec<Record> {
    let mut records = Vec::new();
    for (number, transport) in ["newreno", "quiet-train"].into_iter().enumerate() {
        for seed in 1..=3 {
            let flow = |to: u64| {
                json!({
                    "from": 0, "to": to, "transport": transport, "goodput_bps": 1e5, "delivered_bytes": 9, "longest_gap_s": 1.0, "delay_p95_s": 0.2,
                })
            };
            let mut record = json!({
                "seed": seed, "point": {"flow.transport": transport}, "duration_s": 100.0, "warmup_s": 0.0, "jain": 0.5, "jain_2s": 0.5,
                "aggregate_goodput_bps": 1e5 + seed as f64 + 1e4 * number as f64, "retransmission_index": 0.1, "flows": [flow(6), flow(8)],
            });
            change(number, seed, &mut record);
            records.push(record);
        }
    }
    typed(records)
}

fn page_of(records: &[Record]) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("out.html");
    write(&page, &subject(records, None, &Settings::default())).unwrap();
    std::fs::read_to_string(page).unwrap()
}

/// Number of marked cells in the ranking.
fn marked(page: &str) -> usize {
    page.matches("class=\"best\"").count()
}

#[test]
fn who_starves_a_flow_is_best_in_nothing_and_comes_first() {
    // The faster variant kills a flow in one of three runs: today's page would mark its goodput and, of the flow that lives, its delay.
    let page = page_of(&variants(|number, seed, record| {
        if number == 1 {
            record["flows"][1]["delay_p95_s"] = json!(0.01);
            record["flows"][0]["delay_p95_s"] = json!(0.01);
            if seed == 2 {
                record["flows"][0]["delivered_bytes"] = json!(0);
                record["flows"][0]["delay_p95_s"] = Value::Null;
            }
        }
    }));
    let first = page.find("STARVED: a flow was starved in 1 of 6 runs").unwrap();
    assert!(first < page.find("<table").unwrap() && first < page.find("<svg").unwrap(), "before all numbers");
    assert!(page.contains("flow 0 (node 0 to node 6) delivered nothing in 1 of 6 runs: quiet-train 1 of 3."), "{page}");
    assert!(page.contains("✗ 1 of 3") && page.contains("none in 1 of 3"), "{page}");
    // The delay of the other has no rival with a number.
    assert_eq!(marked(&page), 1, "{page}");
    assert!(page.contains("class=\"best\">200.0 ± 0.0"), "{page}");
    assert!(!page.contains("inf") || page.contains("information"), "{page}");
}

#[test]
fn a_tie_marks_nobody() {
    // All have an index of 0.5 and equal delays; goodput alone tells them apart.
    let page = page_of(&variants(|_, _, _| ()));
    assert!(!page.contains("STARVED") && !page.contains("✗"), "{page}");
    assert_eq!(marked(&page), 1, "{page}");
    let same = page_of(&variants(|_, seed, record| record["aggregate_goodput_bps"] = json!(1e5 + seed as f64)));
    assert!(marked(&same) == 0 && same.contains("no row is"), "{same}");
    let chance = page_of(&variants(|number, seed, record| {
        record["aggregate_goodput_bps"] =
            json!(1e5 + if number == 1 { [-500.0, 400.0, 300.0][seed as usize - 1] } else { 0.0 });
    }));
    assert_eq!(marked(&chance), 0, "the interval of the difference has a zero in it: {chance}");
}

#[test]
fn what_was_not_measured_in_every_run_is_not_best() {
    // Nothing arrived in two runs of the second, so that nothing was sent again: 0 / 0.
    let page = page_of(&variants(|number, seed, record| {
        record["aggregate_goodput_bps"] = json!(1e5);
        record["retransmission_index"] = match (number, seed) {
            (0, _) => json!(0.1),
            (_, 1) => json!(0.0),
            _ => Value::Null,
        };
    }));
    assert!(marked(&page) == 0 && page.contains("(in 1 of 3)"), "{page}");
}

#[test]
fn shares_of_files_beside_a_transfer_have_no_index() {
    let mixed = page_of(&variants(|_, _, record| record["flows"][1]["completions"] = json!([])));
    assert!(!mixed.contains("Jain") && page_of(&variants(|_, _, _| ())).contains("Jain"), "{mixed}");
}

/// Values of an attribute in a text of XML.
fn attributes<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!("{name}=\"");
    text.split(&head).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn no_letter_of_a_file_is_smaller_than_7_pt_at_the_smallest_width() {
    const POINTS_PER_INCH: f64 = 72.0;
    let inches = *meshpace_scenario::FIGURE_WIDTHS.start();
    let settings = Settings { width: Some(inches), ..Settings::default() };
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("out.html");
    let map = Map {
        names: ["Ann", "Bob"].map(|name| Some(name.to_owned())).to_vec(),
        nodes: vec![(0.0, 0.0), (200.0, 0.0)],
        links: vec![(0, 1)],
        flows: vec![(0, 1, "newreno".to_owned())],
        routes: Vec::new(),
        of: "seed 1".to_owned(),
    };
    // A starved flow has the word "none" in the plot of the delay.
    let mut records = records();
    records[0].flows[0].delivered_bytes = Some(0);
    write(&page, &subject(&records, Some(&map), &settings)).unwrap();
    let files = std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|kind| kind == "svg")).collect();
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let svg = std::fs::read_to_string(&file).unwrap();
        assert_eq!(attributes(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width"), [format!("{inches}in")]);
        let units: f64 = attributes(&svg, "viewBox")[0].split(' ').nth(2).unwrap().parse().unwrap();
        let sizes = attributes(&svg, "font-size");
        assert!(!sizes.is_empty() && !svg.contains("font-size:"), "{}", file.display());
        for size in sizes {
            let points = size.parse::<f64>().unwrap() / units * inches * POINTS_PER_INCH;
            assert!(points >= 7.0, "{}: {points} pt", file.display());
        }
    }
}

#[test]
fn parts_without_the_key_of_the_axis_have_plots_of_their_own() {
    let mut records = records();
    for record in &mut records {
        record.point.insert("part".to_owned(), json!("chain"));
    }
    for transport in ["newreno", "tcp-ap"] {
        let of = |seed: u64| json!({"seed": seed, "point": {"part": "town", "flow.transport": transport}, "aggregate_goodput_bps": 5e4});
        records.extend(typed((1..=3).map(of).collect()));
    }
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("out.html");
    write(&page, &subject(&records, None, &Settings::default())).unwrap();
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("Part town has no topology.hops; it has plots of its own."), "{text}");
    let chain = std::fs::read_to_string(scratch.path().join("out-goodput-1.csv")).unwrap();
    assert_eq!((chain.lines().next(), chain.lines().count()), (Some("line,topology.hops,mean,half_width,seeds"), 5));
    let town = std::fs::read_to_string(scratch.path().join("out-goodput-2.csv")).unwrap();
    assert_eq!((town.lines().next(), town.lines().count()), (Some("line,point,mean,half_width,seeds"), 3));
    assert!(
        text.contains("against topology.hops; chain") && text.contains("goodput of all flows, kbit/s; town"),
        "{text}"
    );
    let drawings = drawings(&records, "goodput", &Settings::default()).unwrap();
    let panels: Vec<_> =
        drawings.iter().map(|one| (one.panel.as_str(), one.x_title.as_deref(), one.rows.len())).collect();
    assert_eq!(panels, [("chain", Some("topology.hops"), 4), ("town", None, 2)]);
}

#[test]
fn parts_on_the_axis_have_a_point_for_each_transport_and_part() {
    let mut objects = Vec::new();
    for (number, part) in ["town", "chain", "big grid"].into_iter().enumerate() {
        for (faster, transport) in ["newreno", "tcp-ap"].into_iter().enumerate() {
            let bps = 1e4 * (number + 1) as f64 + 1e3 * faster as f64;
            let point = json!({"part": part, "flow.transport": transport});
            objects.push(json!({"seed": 1, "point": point, "aggregate_goodput_bps": bps}));
        }
    }
    let records = typed(objects);
    let labels = [("chain", "long chain"), ("part", "topology")].map(|(name, label)| (name.into(), label.into()));
    let settings = Settings {
        x: Some("part".to_owned()),
        lines: Some(vec!["flow.transport".to_owned()]),
        labels: labels.into(),
        ..Settings::default()
    };
    let drawings = drawings(&records, "goodput", &settings).unwrap();
    let [drawing] = &drawings[..] else { panic!("one panel: {drawings:?}") };
    let names = [("town", "town"), ("chain", "long chain"), ("big grid", "big grid")];
    assert_eq!(drawing.x_names, names.map(|(name, label)| (name.to_owned(), label.to_owned())));
    assert_eq!((drawing.x_title.as_deref(), drawing.x_label.as_deref()), (Some("part"), Some("topology")));
    let of = |line: &str| -> Vec<(f64, Option<f64>)> {
        drawing.rows.iter().filter(|row| row.line == line).map(|row| (row.x, row.mean)).collect()
    };
    assert_eq!(of("newreno"), [(0.0, Some(10.0)), (1.0, Some(20.0)), (2.0, Some(30.0))]);
    assert_eq!(of("tcp-ap"), [(0.0, Some(11.0)), (1.0, Some(21.0)), (2.0, Some(31.0))]);
    let groups = groups(&records);
    let plots = plots(&panels(&groups, &settings), &subject(&records, None, &settings));
    let goodput = plots.iter().find(|plot| plot.name == "goodput").unwrap();
    assert!(goodput.csv.starts_with("line,part,mean,half_width,seeds\nnewreno,town,10,,1\n"), "{}", goodput.csv);
    assert!(goodput.svg.contains(">long chain</text>") && goodput.svg.contains(">topology</text>"), "{}", goodput.svg);
}
