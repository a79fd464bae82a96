//! `meshpace dev completions`, `meshpace dev man`, `--quiet`, and the exit statuses in the manual.

use assert_cmd::cargo::cargo_bin;
use meshpace_testing::{Class, generated, skipped};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn meshpace(arguments: &[&str], place: &Path) -> Output {
    Command::new(cargo_bin("meshpace")).args(arguments).current_dir(place).output().unwrap()
}

#[test]
fn shells_complete_every_subcommand_and_each_has_its_manual_page() {
    let scratch = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = meshpace(&["dev", "completions", shell], scratch.path());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("reproduce") && text.contains("report"), "{shell}");
    }
    let output = meshpace(&["dev", "man", "pages"], scratch.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = |name: &str| fs::read_to_string(scratch.path().join("pages").join(name)).unwrap();
    assert!(page("meshpace.1").contains("Exit status"), "{}", page("meshpace.1"));
    assert!(page("meshpace-run.1").contains("\\-\\-record"));
    // Every subcommand in the help has a page.
    let help = String::from_utf8(meshpace(&["--help"], scratch.path()).stdout).unwrap();
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let names: Vec<&str> =
        listed.take_while(|line| line.starts_with("  ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 15 && names.len() <= 20, "what nobody can take in at once: {names:?}");
    for name in names.iter().filter(|name| **name != "help") {
        assert!(scratch.path().join(format!("pages/meshpace-{name}.1")).exists(), "{name}");
    }
    // Every page that another page refers to exists, for example `meshpace-tunnel-connect(1)` from
    // the page of `tunnel`.
    assert!(page("meshpace-tunnel-connect.1").contains("\\-L"));
    for file in fs::read_dir(scratch.path().join("pages")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap().replace("\\-", "-");
        for word in text.split_whitespace().filter(|word| word.starts_with("meshpace-") && word.ends_with("(1)")) {
            let name = word.trim_end_matches("(1)");
            assert!(scratch.path().join(format!("pages/{name}.1")).exists(), "{word}");
        }
    }
}

#[test]
fn quiet_leaves_out_what_is_no_error() {
    let scratch = tempfile::tempdir().unwrap();
    let text = "duration = '2 s'\n[[flow]]\ntransport = 'dcc'\nstart = '0 s'\n";
    fs::write(scratch.path().join("mine.toml"), text).unwrap();
    let said = |arguments: &[&str]| {
        let output = meshpace(arguments, scratch.path());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, loud) = said(&["run", "mine.toml"]);
    assert!(status == Some(0) && loud.contains("warning"), "{loud}");
    assert_eq!(said(&["run", "mine.toml", "--quiet"]), (Some(0), String::new()));
    let (status, refused) = said(&["--quiet", "run", "mine.toml", "--set", "duration=3"]);
    assert!(status == Some(2) && refused.contains("duration"), "errors are told: {refused}");
}

#[test]
fn a_run_is_recorded_once_and_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::write(place.join("mine.toml"), "duration = '3 s'\ntopology.hops = 2\n[[flow]]\nstart = '0 s'\n").unwrap();
    let run = |more: &[&str]| {
        let mut arguments = vec!["run", "mine.toml", "--format", "json"];
        arguments.extend(more);
        meshpace(&arguments, place)
    };
    let plain = run(&[]);
    let recorded = run(&["--record", "run.jsonl"]);
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    assert_eq!(plain.stdout, recorded.stdout, "recording changes nothing");
    let stream = fs::read_to_string(place.join("run.jsonl")).unwrap();
    assert!(stream.starts_with("{\"stream\":\"meshpace\",\"format\":1,"));
    let record: serde_json::Value = serde_json::from_slice(&plain.stdout).unwrap();
    let end: serde_json::Value = serde_json::from_str(stream.lines().last().unwrap()).unwrap();
    assert_eq!((&end[0], &end[2], &end[3]), (&"end".into(), &record["frames"], &record["fingerprint"]));
    let refusals: [(&[&str], &str); 3] = [
        (&["--record", "run.jsonl"], "--force replaces it"),
        (&["--record", "other.jsonl", "--seeds", "2"], "takes a single run, and these are 2 runs"),
        (&["--record", "nowhere/run.jsonl"], "nowhere/run.jsonl"),
    ];
    for (more, word) in refusals {
        let output = run(more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(word), "{said}");
    }
    assert!(run(&["--record", "run.jsonl", "--force"]).status.success());
    // With a full disk the record is printed, and the status shows that the stream could not be
    // written.
    if !Path::new("/dev/full").exists() {
        return skipped(Class::Rights, "no /dev/full here, so a full disk is not tried");
    }
    let output = run(&["--record", "/dev/full", "--force"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/full"), "{output:?}");
}

/// Appends the help of a command and of all commands below it to a page.
fn help(words: &[&str], into: &mut String) {
    let scratch = tempfile::tempdir().unwrap();
    let arguments: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
    let text = String::from_utf8(meshpace(&arguments, scratch.path()).stdout).unwrap();
    let lines = || text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let below: Vec<String> = lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect();
    // The headings list all commands, and the sections of the subcommands have their options.
    let marks = "#".repeat(words.len() + 1);
    let name = std::iter::once(&"meshpace").chain(words).copied().collect::<Vec<_>>().join(" ");
    into.push_str(&format!("\n{marks} `{name}`\n\n```text\n{}\n```\n", text.trim_end()));
    for name in below.iter().filter(|name| *name != "help") {
        help(&[words, &[name]].concat(), into);
    }
}

const COMMANDS: &str = "\
# Commands

Every command with its arguments and options, as `--help` prints them. Manual pages with the same words: `meshpace dev man DIRECTORY`; completions for a shell:
`meshpace dev completions bash`. This page is written by the program.
";

/// `docs/commands.md` is generated from the help of the program, so that nobody has to write the
/// same twice.
#[test]
fn generated_page_of_commands() {
    if !cfg!(feature = "kernel") {
        // The page contains the help of `kernel` in a build with eBPF. `./check` builds the tests
        // so.
        return skipped(
            Class::Tools,
            "docs/commands.md has `meshpace kernel`, which wants --features kernel and clang",
        );
    }
    let mut page = COMMANDS.to_owned();
    help(&[], &mut page);
    generated::hold("docs/commands.md", &page);
}
