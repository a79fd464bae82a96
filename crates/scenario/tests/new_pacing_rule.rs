//! The worked example of `docs/new-pacing-rule.md` is what is compiled, takes one file and one line, and does what it says.

use meshpace_scenario::{Scenario, Source};
use meshpace_sim::Outcome;
use meshpace_transport::{Config, names, pacing};
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The only block of the page in this language.
fn block(language: &str) -> String {
    let page = read("docs/new-pacing-rule.md");
    let opening = format!("\n```{language}\n");
    assert_eq!(page.matches(&opening).count(), 1, "blocks of {language}");
    let (_, rest) = page.split_once(&opening).unwrap();
    let (block, _) = rest.split_once("\n```\n").expect("the block ends");
    format!("{block}\n")
}

/// A file of a diff: its name, and its lines with their signs.
fn changes(diff: &str) -> Vec<(&str, Vec<&str>)> {
    let mut files = Vec::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            files.push((name, Vec::new()));
        } else if !line.starts_with("--- ") && !line.starts_with("@@ ") {
            files.last_mut().expect("a line before the first file").1.push(line);
        }
    }
    files
}

fn scenario(text: String) -> Result<Scenario, String> {
    let source = Source { name: "page.toml".to_owned(), text, sets: Vec::new() };
    Scenario::read(source, Path::new("."), "page").map_err(|refusal| refusal.to_string())
}

#[test]
fn the_diff_is_one_new_file_and_one_line_and_is_what_is_compiled() {
    let diff = block("diff");
    let files = changes(&diff);
    let [(new, lines), (list, hunk)] = &files[..] else { panic!("{} files", files.len()) };
    assert!(diff.starts_with("--- /dev/null\n"), "the first file is new");
    let text: String =
        lines.iter().map(|line| format!("{}\n", line.strip_prefix('+').expect("an added line"))).collect();
    assert_eq!(text, read(new), "{new}");
    let added: Vec<&&str> = hunk.iter().filter(|line| !line.starts_with(' ')).collect();
    let [line] = added[..] else { panic!("{added:?}") };
    assert!(line.starts_with('+'), "{line}");
    let after: String = hunk.iter().map(|line| format!("{}\n", &line[1..])).collect();
    assert!(read(list).contains(&after), "{list} does not contain\n{after}");
    // Nothing else in the sources knows of the rule: without the line it would be gone.
    let module = Path::new(new).file_stem().unwrap().to_str().unwrap();
    assert_eq!(mentions(&root().join("crates"), module, "/src/"), 1, "{module}");
    assert_eq!(mentions(&root().join("crates"), "longest-rtt", "/src/"), 1, "longest-rtt");
}

/// Source files below `directory`, `marker` in their path, that contain `word`.
fn mentions(directory: &Path, word: &str, marker: &str) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                return mentions(&path, word, marker);
            }
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let below = path.to_string_lossy().contains(marker);
            usize::from(is_source && below && std::fs::read_to_string(&path).unwrap().contains(word))
        })
        .sum()
}

#[test]
fn the_line_makes_a_name_and_a_kind_with_its_parameters() {
    let read = |transport: &str| {
        let scenario = scenario(format!("[topology]\nhops = 4\n[[flow]]\ntransport = {transport}\n"))?;
        Ok::<Config, String>(scenario.points[0].config.flows[0].transport.clone())
    };
    let named = names::lookup("longest-rtt").expect("a named transport");
    assert_eq!(read("'longest-rtt'"), Ok(named.clone()));
    assert_eq!(read("{ pacing = 'longest-rtt' }"), Ok(named.clone()));
    assert_eq!(read("{ name = 'longest-rtt', pacing = { samples = 10 } }"), Ok(named.clone()));
    assert_ne!(read("{ pacing = { kind = 'longest-rtt', samples = 20 } }"), Ok(named));
    assert_eq!(read("'longest-rtt+delack'"), Ok(names::lookup("longest-rtt+delack").unwrap()));
    let Ok(Config::Tpa(tpa)) = read("{ name = 'tpa-3', pacing = { kind = 'longest-rtt', samples = 20 } }") else {
        panic!()
    };
    let pacing::Config::Rule(rule) = tpa.pacing else { panic!("{:?}", tpa.pacing) };
    assert_eq!(rule.parameters(), [20.0]);
    let refused = read("{ pacing = { kind = 'longest-rtt', samples = 1 } }").unwrap_err();
    assert!(refused.contains("samples") && refused.contains('2') && refused.contains("1000"), "{refused}");
    let refused = read("{ pacing = { kind = 'longest-rtt', sample = 5 } }").unwrap_err();
    assert!(refused.contains("samples"), "{refused}");
}

#[test]
fn the_scenario_of_the_page_runs_and_the_rule_paces() {
    let scenario = scenario(block("toml")).unwrap();
    let runs = |name: &str| -> Vec<Outcome> {
        let point = scenario.points.iter().find(|point| point.values.iter().any(|(_, value)| value == name));
        let config = &point.unwrap_or_else(|| panic!("{name}")).config;
        (1..=3).map(|seed| meshpace_sim::run(config, seed)).collect()
    };
    let (ours, newreno) = (runs("longest-rtt"), runs("newreno"));
    for (ours, newreno) in ours.iter().zip(&newreno) {
        // A segment of 1500 bytes is on the air for 6 ms in each of seven hops: no round trip is shorter than 42 ms, no
        // interval after the first sample than 4/14 of it, 12 ms.
        let interval = ours.flows[0].pacing.interval_s;
        assert!(interval > 0.012 && interval < 1.0, "{interval} s");
        assert!(ours.aggregate_goodput_bps <= 1460.0 * 8.0 / 0.012);
        // What pacing is for: more arrives, and less is sent for nothing.
        let goodput = (ours.aggregate_goodput_bps, newreno.aggregate_goodput_bps);
        assert!(goodput.0 > goodput.1, "{goodput:?}");
        let again = (ours.retransmission_index, newreno.retransmission_index);
        assert!(again.0 < again.1, "{again:?}");
    }
}
