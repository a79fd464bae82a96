//! Bad scenarios and command lines. Each is refused with status 2 and nothing on standard output.
//! The message names the place, the fault, and what was expected.

use assert_cmd::cargo::cargo_bin;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Scenario whose wrong line is marked with `#!`; the key with which the message begins; and the
/// words about what was expected.
const SCENARIOS: [(&str, &str, &str); 47] = [
    ("duratoin = '20 s' #!\n[[flow]]\n", "duratoin", "expected title"),
    ("duration = 20 #!\n[[flow]]\n", "duration", "write \"20 s\""),
    ("duration = '20 m' #!\n[[flow]]\n", "duration", "ms"),
    ("duration = '-3 s' #!\n[[flow]]\n", "duration", "above zero"),
    ("duration = '5 s'\nwarmup = '5 s' #!\n[[flow]]\n", "warmup", "shorter than the duration"),
    ("series = '1 ns' #!\n[[flow]]\n", "series", "a longer window"),
    ("title = 7 #!\n[[flow]]\n", "title", "a string in quotes"),
    ("[topology]\nhops = 0 #!\n[[flow]]\n", "topology.hops", "1 to 65534"),
    ("[topology]\nhops = 2.5 #!\n[[flow]]\n", "topology.hops", "1 to 65534"),
    ("[topology]\nkind = 'chian' #!\n[[flow]]\n", "topology.kind", "\"chain\""),
    ("[topology]\nspacing = '200' #!\n[[flow]]\n", "topology.spacing", "\"200 m\""),
    ("[topology]\nkind = 'nodes'\npositions = 3 #!\n[[flow]]\n", "topology.positions", "a list such as"),
    (
        "[topology]\nkind = 'nodes'\nfile = 'no-such-map.csv' #!\n[[flow]]\nfrom = 0\nto = 1\n",
        "topology.file",
        "a CSV, GraphML or JSON file",
    ),
    ("[topology]\nkind = 'chain'\nrows = 3 #!\n[[flow]]\n", "topology.rows", "hops"),
    ("[topology] #!\nspacing = '400 m'\n[[flow]]\n", "topology", "a path between the ends"),
    ("[radio]\nrate = '2 mbit/s' #!\n[[flow]]\n", "radio.rate", "Mbit/s"),
    ("[radio]\nrate = '54 Mbit/s' #!\n[[flow]]\n", "radio.rate", "5.5 or 11"),
    ("[radio]\nmodel = 'free-space' #!\n[[flow]]\n", "radio.model", "log-distance"),
    ("[radio]\nqueue = 0 #!\n[[flow]]\n", "radio.queue", "1 to 1000000"),
    ("[radio]\nrts_cts = 'yes' #!\n[[flow]]\n", "radio.rts_cts", "true or false"),
    ("[radio]\nrts_cts = true\nrts_threshold = '100 B' #!\n[[flow]]\n", "radio.rts_threshold", "one of the two"),
    ("[mac]\nprofile = 'ns3' #!\n[[flow]]\n", "mac.profile", "ieee"),
    ("[mac]\nlong_retry_limit = 0 #!\n[[flow]]\n", "mac.long_retry_limit", "1 to 255"),
    ("[routing]\nprotocol = 'dsr' #!\n[[flow]]\n", "routing.protocol", "olsr"),
    ("[link]\nqueue = 'red' #!\n[[flow]]\n", "link.queue", "fq-codel"),
    ("[link]\nmarker = { kind = 'dcc', gama = 3 } #!\n[[flow]]\n", "link.marker.gama", "k_p"),
    ("[[flow]]\ntransport = 'tcp-app' #!\n", "flow.0.transport", "did you mean \"tcp-ap\""),
    ("[[flow]]\nfrom = 0\nto = 99 #!\n", "flow.0.to", "0 to 7"),
    ("[[flow]]\nfrom = 3\nto = 3 #!\n", "flow.0.to", "a node that differs from from"),
    ("[[flow]]\nsegment = 0 #!\n", "flow.0.segment", "1 to 65495"),
    ("[[flow]]\nmax_window = -2 #!\n", "flow.0.max_window", "1 to 65535"),
    ("[[flow]]\ntraffic = 'cbr'\nrate = 'fast' #!\n", "flow.0.rate", "2 Mbit/s"),
    ("[[flow]]\ntraffic = 'torrent' #!\n", "flow.0.traffic", "fixed-rate"),
    ("[[flow]]\nstart = '500 s' #!\n", "flow.0.start", "less than the duration"),
    ("[[flow]]\ntransport = { window = { kind = 'reno' } } #!\n", "flow.0.transport.window.kind", "newreno"),
    (
        "[[flow]]\ntransport = { pacing = { kind = 'adaptive', hops = 4 } } #!\n",
        "flow.0.transport.pacing.hops",
        "routing-table",
    ),
    ("[[flow]]\n[sweep]\nseeds = 0 #!\n", "sweep.seeds", "such as 5"),
    ("[[flow]]\n[sweep]\n'topology.hops' = [] #!\n", "sweep.\"topology.hops\"", "a list such as"),
    ("[[flow]]\n[sweep]\n'topology.hops' = [2, 2] #!\n", "sweep.\"topology.hops\"", "every value once"),
    ("[[flow]]\n[sweep]\ntopology.hops = [1, 2] #!\n", "sweep.topology", "in quotes"),
    ("[plot]\nx = 'topology.hop' #!\n[[flow]]\n[sweep]\n'topology.hops' = [1, 2]\n", "plot.x", "topology.hops"),
    ("[topology]\nhops = 3\nhops = 4 #!\n[[flow]]\n", "not TOML", "duplicate key"),
    ("title = 'x #!\n[[flow]]\n", "not TOML", "'"),
    (
        "[topology]\nspacing = '50 m'\n[radio]\nmodel = 'log-distance'\ntransmit_power = '15 W' #!\n[[flow]]\n",
        "radio.transmit_power",
        "dBm",
    ),
    ("[topology]\nspacing = '100 m'\n[radio]\nlinks = '/dev/zero' #!\n[[flow]]\n", "radio.links", "longer than 64 MiB"),
    ("[flow] #!\nfrom = 0\n", "flow", "[[flow]]"),
    ("[plot]\nmetrics = ['speed'] #!\n[[flow]]\n", "plot.metrics", "goodput"),
];

/// Command line, and the words that the message must contain.
const COMMANDS: [(&[&str], &[&str]); 56] = [
    (&["run", "nowhere.toml"], &["nowhere.toml", "No such file", "meshpace scenarios DIR lists"]),
    (&["run", "/dev/zero"], &["/dev/zero: longer than 64 MiB"]),
    (&["run", "map.csv"], &["map.csv: not a scenario", "topology.file"]),
    (&["run", "empty"], &["empty", "directory", "name a scenario in it"]),
    (&["run", "records.jsonl"], &["records.jsonl", "a file of records, not a scenario", "meshpace report"]),
    (
        &["run", "good.toml", "--set", "topology.hops"],
        &["--set 'topology.hops'", "the = is missing", "--set topology.hops=4"],
    ),
    (&["run", "good.toml", "--set", "topology.hop=3"], &["--set 'topology.hop=3'", "did you mean `hops`"]),
    (&["run", "good.toml", "--set", "radio.rate=3"], &["radio.rate", "write \"3 Mbit/s\""]),
    (&["run", "good.toml", "--set", "flow.7.to=3"], &["flow.7.to", "flow 0 alone", "flow.to means every flow"]),
    (&["run", "good.toml", "--set", "duration=1e12 s"], &["duration", "at most 1e9 s"]),
    (&["run", "good.toml", "--seeds", "0"], &["--seeds", "1..=1000000"]),
    (&["run", "good.toml", "--seeds", "-1"], &["'-1' for '--seeds <N>'", "a whole number is expected, without a sign"]),
    (&["emulate", "plain.toml", "--pcap", "good.toml"], &["--pcap: good.toml", "give another name"]),
    (&["emulate", "plain.toml", "--log", "good.toml"], &["--log: good.toml", "give another name"]),
    (&["emulate", "top", "--run", "none"], &["emulation", "running"]),
    (&["emulate", "link", "n0", "n1", "down", "--run", "none"], &["emulation", "running"]),
    (&["campaign", "piece", "empty", "0"], &["empty/campaign.json", "campaign export FILE"]),
    (&["run", "good.toml", "--jobs", "0"], &["--jobs", "1..=65535"]),
    (&["run", "good.toml", "--format", "xml"], &["--format", "table, json, csv, summary"]),
    (&["run", "good.toml", "--report", "nowhere/out.html"], &["--report", "nowhere", "create it first"]),
    (&["run", "good.toml", "--force"], &["--out <DIR>|--pcap <DIR>"]),
    (&["run"], &["<FILE>"]),
    (&["rnu", "good.toml"], &["unrecognized subcommand", "rnu"]),
    (&["reproduce", "AP05-F99"], &["AP05-F99", "did you mean AP05-F9?", "meshpace scenarios"]),
    (&["reproduce", "AP05-F14", "--quality", "slow"], &["--quality", "quick, paper"]),
    (&["reproduce", "AP05-F14", "--expect", "nowhere.json", "--estimate"], &["--expect", "nowhere.json"]),
    (&["reproduce", "AP05-F14", "--register", "nowhere"], &["nowhere/register.toml"]),
    (&["scenarios", "AP05"], &["AP05", "meshpace reproduce AP05", "without a directory"]),
    (&["report", "nowhere"], &["nowhere", "No such file"]),
    (&["report", "empty"], &["empty", "have a manifest.json"]),
    (&["compare", "plain.toml"], &["give a second scenario or directory", "or two --set"]),
    (&["compare", "good.toml", "--by", "radio.rate"], &["good.toml", "--by radio.rate", "swept: topology.hops"]),
    (&["compare", "empty", "empty", "--robust"], &["empty", "no manifest.json"]),
    (&["run", "good.toml", "--sweep", "topology.hops"], &["the = is missing", "--sweep topology.hops=2,4,6"]),
    (&["keys", "--search", "zeppelin"], &["zeppelin", "meshpace keys"]),
    (&["compare", "good.toml", "nowhere.toml"], &["nowhere.toml", "No such file"]),
    (&["compare", "empty", "good.toml"], &["empty", "no manifest.json"]),
    (&["keys", "radoi"], &["radoi", "Did you mean radio?"]),
    (&["dev", "bench", "nowhere"], &["nowhere", "chain-7"]),
    (&["compare", "empty"], &["empty", "no manifest.json", "give a directory of records"]),
    (&["compare", "plain.toml", "--against", "radio.rate=1"], &["radio.rate", "sweep nothing", "[sweep]"]),
    (&["report", "damaged"], &["damaged/manifest.json", "with --force"]),
    (&["report", "good.toml"], &["good.toml", "give a directory of records"]),
    (&["scenarios", "good.toml"], &["good.toml", "meshpace run good.toml"]),
    (&["scenarios", "nowhere"], &["nowhere", "No such file", "without a directory"]),
    (&["run", "plain.toml", "--out", "good.toml"], &["good.toml", "give another name"]),
    (&["run", "plain.toml", "--pcap", "good.toml"], &["good.toml", "give another name"]),
    (&["reproduce", "AP05-X2", "--out", "good.toml"], &["good.toml/AP05-X2", "give another name"]),
    (&["compare", "plain.toml", "--by", "radio.rate"], &["--by radio.rate", "sweeps no key", "--set radio.rate=A,B"]),
    (&["run", "plain.toml", "--json"], &["--json", "--format json"]),
    (&["recv", "--json"], &["--json", "with --format json"]),
    (&["doctor", "--format", "json"], &["--format", "with --json"]),
    (
        &["compare", "plain.toml", "--set", "flow.transport=newreno,cubic", "--against", "flow.transport=cubic"],
        &["--set flow.transport=newreno,cubic", "remove one of the two"],
    ),
    (&["send", "127.0.0.1:5000", "--bytes", "1"], &["127.0.0.1:5000", "--port"]),
    (&["advise", "--flow", "0,1", "nowhere.csv"], &["nowhere.csv", "No such file"]),
    (&["advise", "--flow", "0,1", "places.csv"], &["places.csv:3", "expected a number of metres", "zero"]),
];

fn meshpace(arguments: &[&str], place: &Path) -> Output {
    Command::new(cargo_bin("meshpace")).args(arguments).current_dir(place).output().unwrap()
}

/// Returns the message of a refusal. A command that was not refused is added to the list `wrong`.
fn message(output: &Output, what: &str, wrong: &mut Vec<String>) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() != Some(2) || !output.stdout.is_empty() {
        wrong.push(format!("{what}: status {:?}\n{message}", output.status.code()));
    }
    message
}

#[test]
fn a_bad_scenario_is_refused_by_file_line_key_and_expectation() {
    let scratch = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (text, key, expected) in SCENARIOS {
        fs::write(scratch.path().join("mesh.toml"), text).unwrap();
        let said = message(&meshpace(&["run", "mesh.toml"], scratch.path()), text, &mut wrong);
        let line = 1 + text.lines().position(|line| line.contains("#!")).unwrap();
        let parts = [format!("--> mesh.toml:{line}:"), format!("error: {key}"), expected.to_owned()];
        for part in parts.iter().filter(|part| !said.contains(part.as_str())) {
            wrong.push(format!("{text}: no {part:?} in\n{said}"));
        }
        if said.matches("error: ").count() != 1 {
            wrong.push(format!("{text}: one mistake, but\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_bad_command_line_is_refused_by_what_is_wrong_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::create_dir(place.join("empty")).unwrap();
    fs::create_dir(place.join("damaged")).unwrap();
    fs::write(place.join("damaged/manifest.json"), "{").unwrap();
    fs::write(place.join("good.toml"), "[[flow]]\n[sweep]\n'topology.hops' = [1, 2]\n").unwrap();
    fs::write(place.join("plain.toml"), "[[flow]]\n").unwrap();
    fs::write(place.join("map.csv"), "name,lat,lon\nhall,52.5,13.4\n").unwrap();
    fs::write(place.join("places.csv"), "x_m,y_m\n0,0\n100,zero\n").unwrap();
    fs::write(place.join("records.jsonl"), "{\"scenario\":\"s\"}\n").unwrap();
    let mut wrong = Vec::new();
    for (arguments, words) in COMMANDS {
        let what = format!("meshpace {}", arguments.join(" "));
        let said = message(&meshpace(arguments, place), &what, &mut wrong);
        for word in words.iter().filter(|word| !said.contains(**word)) {
            wrong.push(format!("{what}: no {word:?} in\n{said}"));
        }
        if said.contains("use '-- -") {
            wrong.push(format!("{what}: an option is no name of a file\n{said}"));
        }
        if said.len() > 1000 {
            wrong.push(format!("{what}: too long to be read\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_many_errors_ten_are_told_and_the_others_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let text: String = (0..25).map(|number| format!("wrong_{number} = 1\n")).collect();
    fs::write(scratch.path().join("mesh.toml"), text + "[[flow]]\n").unwrap();
    let output = meshpace(&["run", "mesh.toml"], scratch.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("error: ").count(), 10, "{said}");
    assert!(said.contains("and 15 more errors in mesh.toml"), "{said}");
    // An error at every point of a sweep is reported once.
    let text = "[radio]\nqueue = 0\n[[flow]]\n[sweep]\n'topology.hops' = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n";
    fs::write(scratch.path().join("mesh.toml"), text).unwrap();
    let said = meshpace(&["run", "mesh.toml"], scratch.path()).stderr;
    assert_eq!(String::from_utf8_lossy(&said).matches("error: ").count(), 1);
}

#[test]
fn text_of_strangers_does_not_act_on_a_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let title = "title = \"a mesh\\u001b]0;taken\\u0007\\u001b[2J\"\nduration = '2 s'\n[[flow]]\nstart = '0 s'\n";
    fs::write(scratch.path().join("title.toml"), title).unwrap();
    // Standard error escapes control characters whether or not it is a terminal.
    let output = meshpace(&["run", "no\u{1b}[2J.toml"], scratch.path());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains('\u{1b}') && said.contains("no\\u{1b}[2J.toml"), "{said}");
    // Standard output escapes them on a terminal only. `script` provides a terminal.
    let shown = |command: &str| {
        let mut script = Command::new("script");
        let output =
            script.args(["-qec", command, "/dev/null"]).current_dir(scratch.path()).stdin(Stdio::null()).output();
        String::from_utf8_lossy(&output.expect("bsdutils has script").stdout).into_owned()
    };
    let run = format!("{} run title.toml --quiet", cargo_bin("meshpace").display());
    let table = shown(&run);
    assert!(table.contains("a mesh\\u{1b}]0;taken\\u{7}\\u{1b}[2J"), "{table:?}");
    assert!(!table.contains("\u{1b}]0;") && !table.contains('\u{7}'), "{table:?}");
    let json = meshpace(&["run", "title.toml", "--quiet", "--format", "json"], scratch.path()).stdout;
    let record: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(record["scenario"], "a mesh\u{1b}]0;taken\u{7}\u{1b}[2J", "programs get it as it is");
}

#[cfg(target_os = "linux")]
#[test]
fn a_page_takes_the_place_of_no_link_and_of_no_device() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::write(place.join("plain.toml"), "duration = '2 s'\n[[flow]]\n").unwrap();
    fs::write(place.join("far.html"), "").unwrap();
    // The test uses links, so that a fault in it cannot remove a device of this machine.
    for (link, to) in [("page.html", "far.html"), ("full.html", "/dev/full"), ("null.html", "/dev/null")] {
        std::os::unix::fs::symlink(to, place.join(link)).unwrap();
        let output = meshpace(&["run", "plain.toml", "--report", link], place);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(fs::symlink_metadata(place.join(link)).unwrap().is_symlink(), "{link}");
        match link {
            "page.html" => assert!(output.status.success(), "{said}"),
            _ => {
                assert!(
                    output.status.code() == Some(2) && said.contains(&format!("{link} is not a plain file")),
                    "{said}"
                )
            }
        }
    }
    assert!(fs::read_to_string(place.join("far.html")).unwrap().contains("</html>"));
}

#[test]
fn a_directory_without_scenarios_says_so() {
    let scratch = tempfile::tempdir().unwrap();
    let output = meshpace(&["scenarios", "."], scratch.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no .toml file"));
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(cargo_bin("meshpace")).args(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("cannot write the results"), "{arguments:?}: {said}");
    }
}
