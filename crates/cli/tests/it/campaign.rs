//! `meshpace campaign`: a campaign is exported for Slurm, run piece by piece as in the tasks of an
//! array, and merged into the records of a single run. Also `--dask` without the Python package.

use assert_cmd::cargo::cargo_bin;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str =
    "title = 'Pieces'\nduration = '3 s'\n[[flow]]\n[sweep]\n'topology.hops' = [1, 2, 3]\nseeds = 4\n";

fn meshpace(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(cargo_bin("meshpace")).args(arguments).current_dir(directory).output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs a task of the array with the environment variables that Slurm sets.
fn task(directory: &Path, number: usize) -> Output {
    let mut command = Command::new("sh");
    command.arg("campaign.slurm").current_dir(directory.join("campaign"));
    command.env("SLURM_ARRAY_TASK_ID", number.to_string()).env("MESHPACE", cargo_bin("meshpace"));
    command.output().unwrap()
}

#[test]
fn the_pieces_of_an_array_are_the_records_of_one_run() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    fs::write(here.join("s.toml"), SCENARIO).unwrap();
    let export = ["campaign", "export", "s.toml", "--slurm", "--out", "campaign", "--piece", "0.000001"];
    let (status, stdout, stderr) = said(&meshpace(here, &export));
    assert_eq!((status, stdout.lines().next()), (Some(0), Some("12 runs in 12 pieces")), "{stderr}");
    let script = fs::read_to_string(here.join("campaign/campaign.slurm")).unwrap();
    assert!(script.contains("\n#SBATCH --array=0-11\n"), "{script}");
    // The export contains the scenario, so its file is no longer needed.
    fs::remove_file(here.join("s.toml")).unwrap();
    for number in (0..12).filter(|number| *number != 4) {
        let (status, _, stderr) = said(&task(here, number));
        assert_eq!(status, Some(0), "{stderr}");
    }
    let merge = ["campaign", "merge", "campaign", "--out", "merged"];
    let (status, _, stderr) = said(&meshpace(here, &merge));
    assert!(status == Some(1) && stderr.contains("11 of 12 runs are merged into merged"), "{stderr}");
    assert!(stderr.ends_with(": sbatch --chdir campaign --array=4 campaign/campaign.slurm\n"), "{stderr}");
    // A task that is run twice repeats no run.
    for (number, kept) in [(4, ""), (4, ", 1 are kept from before"), (0, ", 1 are kept from before")] {
        let (status, _, stderr) = said(&task(here, number));
        assert_eq!(status, Some(0));
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines[0].contains(&format!("piece {number} on ")) && lines[0].ends_with(&format!(": 1 run{kept}")));
        assert!(lines[1].ends_with(&format!("piece {number}: complete")), "{stderr}");
    }
    for _ in 0..2 {
        let (status, stdout, stderr) = said(&meshpace(here, &merge));
        assert_eq!((status, stdout.as_str()), (Some(0), "merged: 12 runs\n"), "{stderr}");
    }
    fs::write(here.join("s.toml"), SCENARIO).unwrap();
    let run = ["run", "s.toml", "--out", "whole", "--format", "json"];
    assert_eq!(meshpace(here, &run).status.code(), Some(0));
    let records = |name: &str| fs::read(here.join(name).join("records.jsonl")).unwrap();
    assert_eq!(records("merged"), records("whole"));
}

/// `merge` names the pieces that the requested precision still needs, until none is missing. The
/// records are those of a single run.
#[test]
fn an_exported_campaign_grows_to_its_precision() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let text = "duration = '4 s'\nwarmup = '1.1 s'\n[[flow]]\n[sweep]\n'topology.hops' = [1, 4]\n";
    fs::write(here.join("s.toml"), text).unwrap();
    let rule = ["--until", "goodput 6 %", "--most", "60"];
    let export = [&["campaign", "export", "s.toml", "--slurm", "--out", "campaign"][..], &rule].concat();
    let (status, stdout, stderr) = said(&meshpace(here, &export));
    assert!(status == Some(0) && stdout.starts_with("40 runs in "), "{stdout}{stderr}");
    let pieces = || -> std::ops::Range<usize> {
        let script = fs::read_to_string(here.join("campaign/campaign.slurm")).unwrap();
        let array = script.lines().find_map(|line| line.strip_prefix("#SBATCH --array=")).unwrap();
        let (first, last) = array.split_once('-').unwrap();
        first.parse().unwrap()..last.parse::<usize>().unwrap() + 1
    };
    let mut rounds = 0;
    loop {
        for number in pieces() {
            assert_eq!(task(here, number).status.code(), Some(0));
        }
        let (status, _, stderr) = said(&meshpace(here, &["campaign", "merge", "campaign", "--out", "merged"]));
        if status == Some(0) {
            break;
        }
        assert!(status == Some(1) && stderr.contains("goodput 6 % needs ") && stderr.contains("sbatch"), "{stderr}");
        rounds += 1;
        assert!(rounds < 40, "at most one round for each seed");
    }
    assert!(rounds > 0, "four hops need more than 20 seeds");
    let run = [&["run", "s.toml", "--out", "whole", "--format", "json"][..], &rule].concat();
    assert_eq!(meshpace(here, &run).status.code(), Some(0));
    let records = |name: &str| fs::read(here.join(name).join("records.jsonl")).unwrap();
    assert_eq!(records("merged"), records("whole"));
}

#[test]
fn what_is_wrong_with_an_exported_campaign_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    fs::write(here.join("s.toml"), SCENARIO).unwrap();
    let refused = |arguments: &[&str], why: &str| {
        let (status, stdout, stderr) = said(&meshpace(here, arguments));
        assert!(status == Some(2) && stdout.is_empty() && stderr.contains(why), "{arguments:?}: {status:?} {stderr}");
    };
    refused(&["campaign", "export", "s.toml", "--out", "campaign"], "--slurm");
    refused(&["campaign", "piece", "campaign", "0"], "campaign.json");
    let export = ["campaign", "export", "s.toml", "--slurm", "--out", "campaign"];
    assert_eq!(meshpace(here, &export).status.code(), Some(0));
    refused(&export, "already has a campaign: delete it, or choose another directory");
    refused(&["campaign", "piece", "campaign", "1"], "there is no piece 1");
    refused(&["campaign", "merge", "campaign", "--out", "merged"], "no piece has been run yet");
    let file = here.join("campaign/campaign.json");
    let other = fs::read_to_string(&file).unwrap().replacen("\"version\":\"", "\"version\":\"9", 1);
    fs::write(&file, other).unwrap();
    refused(&["campaign", "piece", "campaign", "0"], "the campaign needs meshpace 9");
}

/// Exports the runs that a directory lacks, in arrays of at most five tasks and with options.
/// Merging them into the directory completes it.
#[test]
fn an_export_completes_a_directory_in_several_arrays() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let text = SCENARIO.replace("[sweep]\n'topology.hops' = [1, 2, 3]\nseeds = 4\n", "");
    fs::write(here.join("s.toml"), text).unwrap();
    let hops = ["--sweep", "topology.hops=1,2,3"];
    let run = |seeds: &str, out: &str| {
        let run = [&["run", "s.toml", "--seeds", seeds, "--out", out][..], &hops].concat();
        assert_eq!(meshpace(here, &run).status.code(), Some(0));
    };
    run("2", "records");
    let options = ["--array", "5", "--at-once", "4", "--time", "1:30:00", "--mem", "500M", "--missing-in", "records"];
    let export = ["campaign", "export", "s.toml", "--slurm", "--seeds", "4", "--piece", "0.000001", "--out"];
    let export = |out: &str| said(&meshpace(here, &[&export[..], &[out], &hops, &options].concat()));
    let (status, stdout, stderr) = export("campaign");
    let commands =
        "sbatch --chdir campaign campaign/campaign.slurm\nsbatch --chdir campaign campaign/campaign-1.slurm\n";
    let last = "meshpace campaign merge campaign --out records\n";
    assert_eq!((status, stdout), (Some(0), format!("6 runs in 6 pieces\n{commands}{last}")), "{stderr}");
    let second = fs::read_to_string(here.join("campaign/campaign-1.slurm")).unwrap();
    for line in ["--array=0-0%2", "--time=1:30:00", "--mem=500M"] {
        assert!(second.contains(&format!("\n#SBATCH {line}\n")), "{line}: {second}");
    }
    let task = |script: &str, number: usize| {
        let mut command = Command::new("sh");
        command.arg(script).current_dir(here.join("campaign")).env("SLURM_ARRAY_TASK_ID", number.to_string());
        assert_eq!(command.env("MESHPACE", cargo_bin("meshpace")).status().unwrap().code(), Some(0));
    };
    (0..4).for_each(|number| task("campaign.slurm", number));
    let merge = ["campaign", "merge", "campaign", "--out", "records"];
    let (status, _, stderr) = said(&meshpace(here, &merge));
    let again = "sbatch --chdir campaign --array=4%2 campaign/campaign.slurm; \
                 sbatch --chdir campaign --array=0%2 campaign/campaign-1.slurm";
    assert!(status == Some(1) && stderr.contains(again), "{stderr}");
    task("campaign.slurm", 4);
    task("campaign-1.slurm", 0);
    assert_eq!(meshpace(here, &merge).status.code(), Some(0));
    run("4", "whole");
    let records = |name: &str| fs::read(here.join(name).join("records.jsonl")).unwrap();
    assert_eq!(records("records"), records("whole"));
    assert_eq!(export("other").1, "0 runs: the directory already has all of them\n");
}

/// A campaign of two scenarios in two directories, exported with the files that its parts name, and extended from a directory.
#[test]
fn an_export_of_several_scenarios_needs_none_of_their_files() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let chain = "duration = '2 s'\n[[flow]]\n[sweep]\n'topology.hops' = [1, 2]\n";
    let town = "duration = '2 s'\n[topology]\nkind = 'nodes'\nfile = 'town.csv'\n[[flow]]\nfrom = 0\nto = 1\n";
    let both =
        "title = 'Both'\n[plot]\nlines = ['part']\n[[part]]\nfile = 'chain.toml'\n[[part]]\nfile = 'maps/town.toml'\n";
    let write = || {
        fs::create_dir_all(here.join("maps")).unwrap();
        let files = [("chain.toml", chain), ("maps/town.toml", town), ("maps/town.csv", "x_m,y_m\n0,0\n150,0\n")];
        files.iter().for_each(|(name, text)| fs::write(here.join(name), text).unwrap());
        fs::write(here.join("both.toml"), both).unwrap();
    };
    let run = |seeds: &str, out: &str| {
        assert_eq!(meshpace(here, &["run", "both.toml", "--seeds", seeds, "--out", out]).status.code(), Some(0));
    };
    write();
    run("2", "records");
    let export = ["campaign", "export", "both.toml", "--seeds", "3", "--slurm", "--out", "campaign"];
    let more = ["--piece", "0.000001", "--missing-in", "records"];
    let (status, stdout, stderr) = said(&meshpace(here, &[&export[..], &more].concat()));
    assert_eq!((status, stdout.lines().next()), (Some(0), Some("3 runs in 3 pieces")), "{stderr}");
    fs::remove_dir_all(here.join("maps")).unwrap();
    ["chain.toml", "both.toml"].iter().for_each(|name| fs::remove_file(here.join(name)).unwrap());
    for number in 0..3 {
        let (status, _, stderr) = said(&task(here, number));
        assert_eq!(status, Some(0), "{stderr}");
    }
    let (status, stdout, stderr) = said(&meshpace(here, &["campaign", "merge", "campaign", "--out", "records"]));
    assert_eq!((status, stdout.as_str()), (Some(0), "records: 9 runs\n"), "{stderr}");
    write();
    run("3", "whole");
    let records = |name: &str| fs::read(here.join(name).join("records.jsonl")).unwrap();
    assert_eq!(records("records"), records("whole"));
}

#[test]
fn a_node_that_is_built_otherwise_makes_no_piece_and_the_others_go_on() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    fs::write(here.join("s.toml"), SCENARIO).unwrap();
    let export = ["campaign", "export", "s.toml", "--slurm", "--out", "campaign", "--piece", "0.000001"];
    assert_eq!(meshpace(here, &export).status.code(), Some(0));
    let file = here.join("campaign/campaign.json");
    let right = fs::read_to_string(&file).unwrap();
    let on = |node: &str, number: &str| {
        let mut command = Command::new(cargo_bin("meshpace"));
        command.args(["campaign", "piece", "campaign", number]).current_dir(here).env("SLURMD_NODENAME", node);
        said(&command.output().unwrap())
    };
    // Simulates a node whose program gives other results: no program can produce the changed
    // fingerprint of the campaign.
    let (before, rest) = right.split_once("\"own\":\"").unwrap();
    fs::write(&file, format!("{before}\"own\":\"{}{}", "0".repeat(16), &rest[16..])).unwrap();
    let (status, _, stderr) = on("n7", "3");
    assert!(
        status == Some(2) && stderr.contains("node n7") && stderr.contains("this build gives other results"),
        "{stderr}"
    );
    fs::write(&file, &right).unwrap();
    for number in (0..12).filter(|number| *number != 3) {
        assert_eq!(on("n1", &number.to_string()).0, Some(0));
    }
    let merge = ["campaign", "merge", "campaign", "--out", "merged"];
    let (status, _, stderr) = said(&meshpace(here, &merge));
    assert!(
        status == Some(1)
            && stderr.contains("sbatch --chdir campaign --exclude=n7 --array=3 campaign/campaign.slurm\n"),
        "{stderr}"
    );
    assert!(stderr.contains("; node n7 is excluded: "), "{stderr}");
    // The node takes part again after the file is repaired.
    assert_eq!(on("n7", "3").0, Some(0));
    assert_eq!(meshpace(here, &merge).status.code(), Some(0));
    assert_eq!(meshpace(here, &["run", "s.toml", "--out", "whole"]).status.code(), Some(0));
    let records = |name: &str| fs::read(here.join(name).join("records.jsonl")).unwrap();
    assert_eq!(records("merged"), records("whole"));
}

#[test]
fn without_the_python_package_dask_is_refused_with_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("s.toml"), SCENARIO).unwrap();
    for python in ["no-such-program", "false"] {
        for command in [&["run", "s.toml"][..], &["reproduce", "AP05-X1"]] {
            let mut program = Command::new(cargo_bin("meshpace"));
            program.args(command).args(["--dask", "tcp://127.0.0.1:1"]).current_dir(scratch.path());
            let (status, stdout, stderr) = said(&program.env("MESHPACE_PYTHON", python).output().unwrap());
            assert!(status == Some(2) && stdout.is_empty() && stderr.contains("pip install"), "{python}: {stderr}");
        }
    }
}
