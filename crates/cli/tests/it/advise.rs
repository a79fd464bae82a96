//! `meshpace advise` as other programs and people use it.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn advise(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(cargo_bin("meshpace"));
    command.arg("advise").args(arguments).args(["--seconds", "1", "--seeds", "3"]).current_dir(directory);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn every_choice_is_ranked_with_its_intervals() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("links.csv"), "from,to,snr_db\n0,1,30\n1,2,30\n").unwrap();
    let (status, text, stderr) = advise(scratch.path(), &["links.csv", "--flow", "0,2", "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |question: &str| lines.iter().filter(|line| line["question"] == question).collect::<Vec<_>>();
    let counts = ["retry limit", "RTS threshold", "congestion control", "pacing"].map(|question| of(question).len());
    // The usual settings are among the counted choices.
    assert_eq!(counts, [3, 3, 3, 4]);
    // The line of the flow comes before the choices. The line with what helps and how sure it is
    // comes after them.
    assert_eq!((lines.len(), &lines[0]["flow"], &lines[0]["ends"][1]), (15, &Value::from(0), &Value::from("2")));
    assert!(lines[14]["helps"].is_string() && lines[14]["error"].as_str().unwrap().contains("+31 %"), "{}", lines[14]);
    let lines = &lines[1..14];
    for question in ["retry limit", "RTS threshold", "congestion control", "pacing"] {
        let usual = of(question).into_iter().find(|line| line["choice"] == line["usual"]).unwrap();
        assert_eq!(usual["lines"][0]["difference"], 0.0, "{usual}");
        let ranks: Vec<u64> = of(question).iter().map(|line| line["rank"].as_u64().unwrap()).collect();
        assert!(ranks[0] == 1 && ranks.is_sorted(), "{question}: {ranks:?}");
    }
    for line in lines {
        assert_eq!(line["lines"][0]["metric"], "aggregate_goodput_bps");
        assert!(line["lines"][0]["paired"] == true && line["lines"][0]["interval"].is_array(), "{line}");
    }
    let pacing = of("pacing");
    let place = |choice: &str| pacing.iter().position(|line| line["choice"] == choice).unwrap();
    assert!(place("trains that leave at once") < place("adaptive pacing (TCP-AP)"), "aggregates: docs/ht-study.md");
    let (status, told, _) = advise(scratch.path(), &["links.csv", "--flow", "0,2"]);
    assert!(
        status == 0 && told.contains("# pacing (usual: no pacing)") && told.contains("It has no rate adaptation"),
        "{told}"
    );
    for usual in ["7 attempts", "no RTS", "CUBIC", "no pacing"] {
        assert!(told.contains(&format!(". {usual} (usual): goodput ")), "{usual} has no place in:\n{told}");
    }
}

#[test]
fn a_dump_tells_of_paths_and_measurements_stand_beside() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
    write(
        "olsr.json",
        r#"{"type":"NetworkGraph","metric":"etx","links":[{"source":"a","target":"b","cost":1.0},{"source":"b","target":"c","cost":1.25}]}"#,
    );
    write("run.json", r#"{"end":{"sum_received":{"bits_per_second":4.0e6}}}"#);
    let arguments = ["olsr.json", "--flow", "a,c", "--hop-goodput", "18 Mbit/s", "--measured", "run.json", "--json"];
    let (status, text, stderr) = advise(scratch.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    let path = text.lines().find(|line| line.contains("alone_kbps")).unwrap();
    let path: Value = serde_json::from_str(path).unwrap();
    // A goodput that is predicted from the metric is not a measurement, so it has no interval.
    assert!(path["predicted_kbps"].as_f64().unwrap() < 8000.0 && path["interval_kbps"].is_null(), "{path}");
    // The two hops carry 18 and 18/1.25 Mbit/s alone: 1 / (1/18 + 1.25/18) = 8.
    assert_eq!((path["alone_kbps"].as_f64(), path["measured_kbps"].as_f64()), (Some(8000.0), Some(4000.0)));
}

#[test]
fn it_refuses_beyond_what_was_looked_into() {
    let scratch = tempfile::tempdir().unwrap();
    let chain: String = (0..6).map(|node| format!("{node},{},30\n", node + 1)).collect();
    fs::write(scratch.path().join("long.csv"), format!("from,to,snr_db\n{chain}")).unwrap();
    fs::write(scratch.path().join("bad.txt"), "nothing of that kind\n").unwrap();
    let mac = |node: u8| format!("02:00:00:00:00:0{node}");
    // Dump of a node that reaches another node only through a neighbour.
    let one = format!(
        "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: mesh0/{0} (bat0/{0} BATMAN_IV)]\n * {1}    0.5s   (250) {1} [     mesh0]\n * {2}    0.5s   (200) {1} [     mesh0]\n",
        mac(1),
        mac(2),
        mac(3)
    );
    fs::write(scratch.path().join("one.txt"), one).unwrap();
    for (arguments, why) in [
        (&["long.csv", "--flow", "0,6"][..], "6 hops"),
        (&["long.csv", "--flow", "0,1", "--mcs", "8"], "MCS 8"),
        (&["long.csv", "--flow", "0"], "FROM,TO"),
        (&["long.csv", "--flow", "0,9"], "9"),
        (&["long.csv", "--flow", "0,1", "--rate", "10 Mbit/s"], "802.11n"),
        (&["long.csv", "--flow", "1,1"], "both ends are the same node"),
        (&["long.csv", "--flow", "0,1", "--hop-goodput", "fast"], "such as \"2 Mbit/s\""),
        (&["bad.txt", "--flow", "0,1"], "expected NetJSON"),
        (&[".", "--flow", "0,1"], "expected DIR/NODE/kit"),
        (&["none.csv", "--flow", "0,1"], "none.csv"),
        (
            &["one.txt", "--flow", "02:00:00:00:00:01,02:00:00:00:00:03"],
            "this is a dump of batctl from one node (02:00:00:00:00:01)",
        ),
        (&["one.txt", "--flow", "roof,0"], "there is no node \"roof\"; the nodes are 02:00:00:00:00:01, "),
    ] {
        let (status, text, stderr) = advise(scratch.path(), arguments);
        assert!(status == 2 && text.is_empty() && stderr.contains(why), "{arguments:?}: {status} {stderr}");
    }
}

/// Chain in which a flow over one hop in the middle starves a flow over all five hops.
const TWO_FLOWS: &str = "from,to,snr_db\n0,1,30\n1,2,30\n2,3,30\n3,4,30\n4,5,30\n";

#[test]
fn who_starves_is_named_first_and_a_run_of_the_kept_scenario_agrees() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("links.csv"), TWO_FLOWS).unwrap();
    let arguments = ["links.csv", "--flow", "2,3", "--flow", "5,0", "--keep", "kept"];
    let (status, text, stderr) = advise(scratch.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(status, 0, "{stderr}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The starved long flow comes first, although it is the second argument.
    assert_eq!((&lines[0]["flow"], &lines[1]["flow"]), (&Value::from(1), &Value::from(0)), "{text}");
    assert!(
        lines[0]["nothing_runs"].as_u64().unwrap() + lines[0]["silent_runs"].as_u64().unwrap() >= 1,
        "{}",
        lines[0]
    );
    assert!(lines[0]["alone_bps"].as_f64().unwrap() > 10.0 * lines[0]["goodput_bps"].as_f64().unwrap(), "{}", lines[0]);
    assert!(lines[0]["back_alone_bps"].as_f64().unwrap() > 1e5, "{}", lines[0]);
    let mut run = Command::new(cargo_bin("meshpace"));
    run.args(["run", "kept/advice.toml", "--seeds", "3", "--format", "json"]).current_dir(scratch.path());
    let output = run.output().unwrap();
    let records: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 3, "{}", String::from_utf8_lossy(&output.stderr));
    for told in &lines[..2] {
        let flow = told["flow"].as_u64().unwrap() as usize;
        let mean =
            records.iter().map(|record| record["flows"][flow]["goodput_bps"].as_f64().unwrap()).sum::<f64>() / 3.0;
        assert!((told["goodput_bps"].as_f64().unwrap() - mean).abs() < 1e-6 * mean.max(1.0), "{told}: {mean}");
    }
    let (_, told, _) = advise(scratch.path(), &arguments);
    let (heading, help, first) =
        (told.find("# Goodput of each flow"), told.find("# What helps"), told.find("STARVED: flow 1 (5→0)"));
    assert!(heading < first && first < help && help < told.find("# retry limit") && heading.is_some(), "{told}");
}

#[test]
fn a_dump_is_routed_as_its_mesh_routes() {
    let scratch = tempfile::tempdir().unwrap();
    // One bad hop competes with two good ones. Routing by the fewest hops would take the bad one.
    fs::write(scratch.path().join("mesh.csv"), "from,to,etx\nroof,barn,1.9\nroof,mill,1.0\nmill,barn,1.0\n").unwrap();
    let (_, text, _) = advise(scratch.path(), &["mesh.csv", "--flow", "roof,barn"]);
    assert!(text.contains("over roof-barn\n"), "1.9 is less than two hops of 1.0:\n{text}");
    fs::write(scratch.path().join("mesh.csv"), "from,to,etx\nroof,barn,2.5\nroof,mill,1.0\nmill,barn,1.0\n").unwrap();
    let (status, text, stderr) = advise(scratch.path(), &["mesh.csv", "--flow", "roof,barn"]);
    assert!(
        status == 0 && text.contains("flow 0 (roof→barn) goodput ") && text.contains("over roof-mill-barn\n"),
        "{text}{stderr}"
    );
}

#[test]
fn what_each_hop_carries_tells_what_a_path_carries() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("mesh.csv"), "from,to,hop_mbps\na,b,12\nb,c,4\n").unwrap();
    let (status, text, stderr) = advise(scratch.path(), &["mesh.csv", "--flow", "a,c", "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let path = text.lines().find(|line| line.contains("alone_kbps")).unwrap();
    let path: Value = serde_json::from_str(path).unwrap();
    // The two hops carry 12 and 4 Mbit/s alone: 1 / (1/12 + 1/4) = 3.
    assert!((path["alone_kbps"].as_f64().unwrap() - 3000.0).abs() < 1e-6, "{path}");
    let (low, high) = (path["interval_kbps"][0].as_f64().unwrap(), path["interval_kbps"][1].as_f64().unwrap());
    let predicted = path["predicted_kbps"].as_f64().unwrap();
    assert!(low < predicted && predicted < 3000.0 && high > 3000.0, "{path}");
    let (_, told, _) = advise(scratch.path(), &["mesh.csv", "--flow", "a,c"]);
    assert!(told.contains("flow 0, a-b-c: predicted from its hops:") && told.contains("nine in ten"), "{told}");
}

/// Returns the JSON lines of the command's output.
fn lines(directory: &Path, arguments: &[&str]) -> Vec<Value> {
    let (status, text, stderr) = advise(directory, &[arguments, &["--json"]].concat());
    assert_eq!(status, 0, "{arguments:?}: {stderr}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn losses_and_rates_of_a_dump_determine_the_first_number() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
    let olsr =
        |lq: &str, nlq: &str| format!("Table: Links\nLocal IP\tRemote IP\tLQ\tNLQ\n10.0.0.1\t10.0.0.2\t{lq}\t{nlq}\n");
    let batman = |tq: u8| {
        format!(
            "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: wlan0/02:00:00:00:00:01 (bat0/02:00:00:00:00:01 BATMAN_IV)]\n * 02:00:00:00:00:02    0.5s   ({tq}) 02:00:00:00:00:02 [wlan0]\n"
        )
    };
    let babel = |cost: u16| {
        format!(
            "BABEL 1.0\nhost one\nok\nadd neighbour 1 address fe80::2 if wlan0 reach ffff ureach 0000 rxcost {cost} txcost {cost} cost 600\nok\n"
        )
    };
    let iw = |rate: &str, retries: u16| {
        format!(
            "Station 02:00:00:00:00:02 (on mesh0)\n\ttx packets:\t1000\n\ttx retries:\t{retries}\n\ttx failed:\t0\n\ttx bitrate:\t{rate}\n"
        )
    };
    for (name, good, weak, share) in [
        ("olsr", olsr("1.000", "1.000"), olsr("0.450", "0.600"), 0.6),
        ("batman", batman(255), batman(153), 0.6),
        ("babel", babel(256), babel(427), 0.6),
        ("table", "from,to,etx\na,b,1\n".to_owned(), "from,to,etx\na,b,2.7778\n".to_owned(), 0.6),
        ("iw", iw("26.0 MBit/s MCS 3", 0), iw("26.0 MBit/s MCS 3", 667), 0.6),
    ] {
        write(&format!("{name}-good"), &good);
        write(&format!("{name}-weak"), &weak);
        let first = |kind: &str| lines(scratch.path(), &[&format!("{name}-{kind}"), "--flow", "0,1"])[0].clone();
        let (good, weak) = (first("good"), first("weak"));
        let goodput = |line: &Value| line["goodput_bps"].as_f64().unwrap();
        let told = weak["route"]["hops"][0]["delivery"].as_f64().unwrap();
        assert!((told - share).abs() < 0.002, "{name}: {weak}");
        assert_eq!(good["route"]["hops"][0]["delivery"], 1.0, "{name}");
        // With selective repeats, the goodput of a link is about proportional to the share of
        // frames that arrive.
        assert!((0.4..0.75).contains(&(goodput(&weak) / goodput(&good))), "{name}: {good} {weak}");
        let assumed = if name == "iw" { Value::Null } else { Value::from("MCS 3") };
        assert_eq!(weak["assumed_rate"], assumed, "{name}");
    }
    // A goodput is never above the bit rate, and it is in the usual range for that rate.
    for (rate, bounds) in [
        ("6.0 MBit/s", (4e6, 6e6)),
        ("54.0 MBit/s", (20e6, 32e6)),
        ("65.0 MBit/s MCS 7", (40e6, 65e6)),
        ("866.7 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 2", (3e8, 8.7e8)),
    ] {
        write("rate", &iw(rate, 0));
        let first = &lines(scratch.path(), &["rate", "--flow", "0,1"])[0];
        let goodput = first["goodput_bps"].as_f64().unwrap();
        assert!((bounds.0..bounds.1).contains(&goodput), "{rate}: {first}");
        assert_eq!(first["is_simulated"], !rate.starts_with("866"), "{first}");
    }
    // The output shows an assumed rate beside the number, and an option sets the rate.
    let (_, told, _) = advise(scratch.path(), &["olsr-weak", "--flow", "0,1", "--rate", "11 Mbit/s"]);
    let line = told.lines().find(|line| line.starts_with("flow 0")).unwrap();
    assert!(line.contains("kbit/s (at an assumed 11 Mbit/s; set it with --rate) over"), "{line}");
    assert!(
        told.contains("10.0.0.1-10.0.0.2 is weak: 60 % of the frames arrive 10.0.0.1→10.0.0.2, 45 % 10.0.0.2→10.0.0.1"),
        "{told}"
    );
}

#[test]
fn a_link_of_less_than_half_is_used_where_there_is_no_other() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("share.csv"), "from,to,delivery\n0,1,0.4\n1,2,0.95\n").unwrap();
    for rate in ["MCS 0", "MCS 3", "2 Mbit/s", "54 Mbit/s"] {
        let (status, text, stderr) = advise(scratch.path(), &["share.csv", "--flow", "0,2", "--rate", rate]);
        assert!(status == 0 && text.contains("0-1 is weak: 40 %"), "{rate}: {text}{stderr}");
    }
}

#[test]
fn messages_name_the_file_as_it_was_given_and_the_line() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
    fs::create_dir(scratch.path().join("sub")).unwrap();
    write("sub/comma.csv", "from,to,delivery\n0,1,\"0,9\"\n");
    write(
        "nodes.json",
        r#"{"nodes":[{"nodeinfo":{"node_id":"a"}},{"nodeinfo":{"node_id":"b","location":{"latitude":1,"longitude":1}}}]}"#,
    );
    write("lines.json", "{\"nodes\":[],\n\"links\":[\n{\"source\":\"a\",\"target\":\"b\",\"source_tq\":7}]}");
    write("iw.txt", "Station 02:00:00:00:00:02 (on mesh0)\n\ttx packets:\t5\n");
    for (arguments, why) in [
        (&["sub/comma.csv", "--flow", "0,1"][..], "sub/comma.csv:2: delivery: expected a number"),
        (&["nodes.json", "--flow", "0,1"], "nodes.json:"),
        (&["lines.json", "--flow", "a,b"], "lines.json:3: link 0"),
        (
            &["iw.txt", "sub/../iw.txt", "--flow", "0,1"],
            "iw.txt:1: this dump does not show the addresses of the router that made it, so links of other routers to it cannot be recognised; put the output of `iw dev` before it",
        ),
    ] {
        let (status, text, stderr) = advise(scratch.path(), arguments);
        assert!(
            status == 2 && text.is_empty() && stderr.contains(why) && !stderr.contains("map.json"),
            "{arguments:?}: {stderr}"
        );
    }
    // The table comes through standard input. Entries that were left out are listed with their
    // lines.
    let table = "from,to,etx\nroof,mill,1.0\nroof,,2\nmill,barn,0.5\n";
    let mut command = Command::new(cargo_bin("meshpace"));
    command.args(["advise", "-", "--flow", "roof,mill", "--seconds", "1", "--seeds", "3"]).current_dir(scratch.path());
    let output = {
        use std::io::Write;
        use std::process::Stdio;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(table.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains(
            "2 entries of the input were ignored:\n   -:3: expected two nodes, from and to\n   -:4: an ETX of 0.5"
        ),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn files_of_one_name_are_several_nodes() {
    let scratch = tempfile::tempdir().unwrap();
    let dump = |own: u8, far: u8| {
        format!(
            "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: wlan0/02:00:00:00:00:0{own} (bat0/02:00:00:00:ff:0{own} BATMAN_IV)]\n * 02:00:00:00:00:0{far}    0.5s   (240) 02:00:00:00:00:0{far} [wlan0]\n"
        )
    };
    for (node, own, far) in [("roof", 1, 2), ("mill", 2, 1)] {
        fs::create_dir(scratch.path().join(node)).unwrap();
        fs::write(scratch.path().join(node).join("batctl.txt"), dump(own, far)).unwrap();
    }
    let (status, text, stderr) =
        advise(scratch.path(), &["roof/batctl.txt", "mill/batctl.txt", "--flow", "roof/batctl,mill/batctl"]);
    assert!(
        status == 0 && text.contains("over roof/batctl-mill/batctl\n") && !text.contains("Incomplete data"),
        "{text}{stderr}"
    );
}
