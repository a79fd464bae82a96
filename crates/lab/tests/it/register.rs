//! Tests of the register's files: they can be parsed, fit together, and every published result has
//! one or is listed as missing.

use meshpace_lab::register::data::{Check, Published};
use meshpace_lab::register::{Effort, Register, STUDIES, consistency};
use meshpace_scenario::Point;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_files_fit_together() {
    let problems = consistency::problems(&Register::embedded());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_index_has_every_published_result_once() {
    // Number of figures, tables and results in the text of each paper.
    let register = Register::embedded();
    let ids = || register.experiments.iter().map(|experiment| &experiment.published.id).chain(&register.missing);
    for (paper, count) in [("AP05", 24), ("AP10", 23), ("TPA", 30), ("LLAP", 11), ("DCC", 22), ("QT", 23), ("HT", 8)] {
        assert_eq!(ids().filter(|id| id.starts_with(&format!("{paper}-"))).count(), count, "{paper}");
    }
    let unique: std::collections::BTreeSet<_> = ids().collect();
    assert_eq!((ids().count(), unique.len()), (141, 141));
}

#[test]
fn a_directory_of_the_same_form_gives_the_same_register() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let (read, embedded) = (Register::read(&directory).unwrap(), Register::embedded());
    assert_eq!(read.missing, embedded.missing);
    assert_eq!(read.experiments.len(), embedded.experiments.len());
    for experiments in read.experiments.iter().zip(&embedded.experiments) {
        let runs = |register: &Register, experiment| {
            register.runs(experiment, Effort::Quick).unwrap().map(|runs| runs.scenario.digest)
        };
        assert_eq!(runs(&read, experiments.0), runs(&embedded, experiments.1));
    }
}

#[test]
fn a_register_names_no_place_outside_of_the_directory_for_results() {
    let scratch = tempfile::tempdir().unwrap();
    let read = |index: &str| {
        std::fs::write(scratch.path().join("register.toml"), index).unwrap();
        Register::read(scratch.path()).map(|register| register.missing)
    };
    assert_eq!(read("MINE = [\"F1\", \"T-2_b.3\"]").unwrap(), ["MINE-F1", "MINE-T-2_b.3"]);
    for (tag, number) in [
        ("../MINE", "F1"),
        ("/tmp/MINE", "F1"),
        ("MINE", "/../../../F1"),
        ("MINE", "F1/x"),
        ("..", "F1"),
        ("", "F1"),
        ("MINE", ""),
        ("MINE", "F1\\n"),
        ("MINE", "F\\\\1"),
    ] {
        let problems = read(&format!("\"{tag}\" = [\"{number}\"]")).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains("expected letters, digits, -, _ and ."), "{problems:?}");
    }
}

#[test]
fn where_a_paper_is_found_stands_once_in_the_list() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("mine")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(scratch.path().join(name), text).unwrap();
    let unjudged = |id: &str, more: &str| {
        format!("id = \"{id}\"\ntitle = \"Mine\"\nsource = \"I: Mine\"\nunjudged = \"a drawing\"\n{more}")
    };
    write("mine/F1.published.toml", &unjudged("MINE-F1", ""));
    write("mine/F2.published.toml", &unjudged("MINE-F2", "doi = \"10.1000/own\"\n"));
    let read = |place: &str| {
        write("register.toml", &format!("MINE = [\"F1\", \"F2\"]\n[paper]\n{place}\n"));
        Register::read(scratch.path())
    };
    let register = read("MINE = { doi = \"10.1000/182\", page = \"https://example.org/182\" }").unwrap();
    let found = |id: &str| {
        let published = &register.find(id).unwrap().published;
        (published.doi.clone().unwrap(), published.page.clone().unwrap())
    };
    assert_eq!(found("MINE-F1"), ("10.1000/182".to_owned(), "https://example.org/182".to_owned()));
    assert_eq!(found("MINE-F2").0, "10.1000/own", "an experiment's own goes first");
    for (place, told) in [
        ("OTHER = { doi = \"10.1000/182\" }", "paper.OTHER: there is no experiment of OTHER"),
        ("MINE = { page = \"example.org\" }", "paper.MINE.page: expected an address with https://"),
        ("MINE = { isbn = \"1\" }", "isbn"),
    ] {
        let problems = read(place).unwrap_err().join("\n");
        assert!(problems.contains("register.toml") && problems.contains(told), "{problems}");
    }
}

#[test]
fn a_cause_needs_the_readings_that_bear_it_out() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("mine")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(scratch.path().join(name), text).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/register/mine/F1.toml");
    write("mine/F1.toml", &std::fs::read_to_string(examples).unwrap());
    write("register.toml", "MINE = [\"F1\"]\n");
    let told = |cause: &str, own: &str, readings: &str| {
        let cause = if cause.is_empty() { String::new() } else { format!("cause = \"{cause}\"\n") };
        let own = if own.is_empty() { String::new() } else { format!("cause = \"{own}\"\n") };
        let file = format!(
            "id = \"MINE-F1\"\ntitle = \"Mine\"\nsource = \"I: Mine\"\n{cause}{readings}\
             [x]\nkey = \"topology.hops\"\ntitle = \"hops\"\n[[curve]]\nid = \"newreno\"\n[[curve]]\nid = \"tcp-ap\"\n\
             [[claim]]\ntext = \"It falls\"\ncheck = {{ kind = \"falls\", of = [\"tcp-ap\"], tolerance_pct = 5.0 }}\n{own}"
        );
        write("mine/F1.published.toml", &file);
        consistency::problems(&Register::read(scratch.path()).unwrap()).join("\n")
    };
    let reading = "[[reading]]\nwhat = \"AODV\"\nresult = \"much\"\n";
    let decides = "[[reading]]\nwhat = \"static\"\nresult = \"less\"\ndecides = true\n";
    for cause in ["routing", "unsupported", "no_code", "parameters"] {
        for (experiments, own) in [(cause, ""), ("", cause)] {
            for readings in ["", reading] {
                let told = told(experiments, own, readings);
                assert!(told.contains(&format!("cause: \"{cause}\" needs two")), "{cause}, {readings}: {told}");
            }
            assert_eq!(told(experiments, own, &[reading, decides].concat()), "", "{cause}");
        }
    }
    assert!(told("routing", "", decides).contains("needs two"));
    assert!(told("routing", "", &[reading, reading].concat()).contains("one of which `decides`"));
    assert!(told("routing", "", &[decides, decides].concat()).contains("one measurement decides"));
    for cause in ["open", "radio", "run_length", "hardware"] {
        assert_eq!(told(cause, "", ""), "", "{cause}");
    }
    // An experiment that cannot be run has no readings.
    let unjudged = "unjudged = \"a drawing\"\ncause = \"no_code\"\n";
    write("mine/F1.published.toml", &format!("id = \"MINE-F1\"\ntitle = \"Mine\"\nsource = \"I: Mine\"\n{unjudged}"));
    assert_eq!(consistency::problems(&Register::read(scratch.path()).unwrap()).join("\n"), "");
}

/// The transports of the points of an experiment that are run, in the notation of the sweep.
fn transports(register: &Register, id: &str, effort: Effort) -> BTreeSet<String> {
    let runs = register.runs(register.find(id).unwrap(), effort).unwrap().unwrap();
    let transport = |point: &Point| point.values.iter().find(|(key, _)| key == "flow.transport").unwrap().1.to_string();
    runs.points().map(transport).collect()
}

#[test]
fn quick_quality_leaves_out_other_readings_and_nothing_else() {
    let register = Register::embedded();
    let judged = |reading: &str| {
        let pacing = r#""pacing":{"kind":"adaptive","profile":"released","sampling":"new-data-karn"}"#;
        format!(r#"{{"name":"tcp-ap-released{reading}",{pacing}}}"#)
    };
    // The transports that the nine claims of AP05-F14 name. The readings "as printed" and "as
    // released" are not among them.
    let named = [r#""newreno""#.to_owned(), r#""newreno+delack""#.to_owned(), judged(""), judged("+delack")];
    assert_eq!(transports(&register, "AP05-F14", Effort::Quick), BTreeSet::from(named));
    for effort in [Effort::QuickWithReadings, Effort::Paper] {
        assert_eq!(transports(&register, "AP05-F14", effort).len(), 9);
    }
    // A point on a curve that a claim or a published number of any experiment names is run at every
    // effort.
    for experiment in &register.experiments {
        let Some(quick) = register.runs(experiment, Effort::Quick).unwrap() else { continue };
        let published = &experiment.published;
        let of_rows = published.published.keys();
        let of_claims = published.claims.iter().flat_map(|claim| claim.check.terms()).map(|term| &term.curve);
        for curve in of_rows.chain(of_claims).filter_map(|id| published.curve(id)) {
            let left = quick.scenario.points.iter().zip(&quick.is_run).filter(|(_, is_run)| !**is_run);
            for (point, _) in left {
                let values = point.values.iter().cloned().collect();
                assert!(!curve.has(&values), "{}: {} is not run at {values:?}", published.id, curve.id);
            }
        }
    }
}

/// The papers' experiments. Studies of this project have whole lists of competitors.
fn of_papers(register: &Register) -> impl Iterator<Item = &Published> {
    let all = register.experiments.iter().map(|experiment| &experiment.published);
    all.filter(|published| !STUDIES.iter().any(|study| published.id.starts_with(study)))
}

#[test]
fn nothing_is_judged_twice() {
    let register = Register::embedded();
    let twice: Vec<String> = of_papers(&register).flat_map(consistency::judged_twice).collect();
    assert!(twice.is_empty(), "{}", twice.join("\n"));
}

#[test]
fn a_claim_is_one_statement() {
    // A claim may concern several curves only if its statement does.
    const OF_ALL: [&str; 11] =
        ["all", "each", "every", "any", "none", "nobody", "nothing", "other", "others", "least", "highest"];
    let register = Register::embedded();
    let mut told = Vec::new();
    for published in of_papers(&register) {
        for claim in &published.claims {
            let words: Vec<String> = claim.text.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase).collect();
            let is_of_all = words.iter().any(|word| OF_ALL.contains(&word.as_str()));
            let subjects: BTreeSet<&str> = match &claim.check {
                Check::Above { of, .. }
                | Check::Level { of, .. }
                | Check::Falls { of, .. }
                | Check::Rises { of, .. }
                | Check::Flat { of, .. } => of.iter().map(|term| term.curve.as_str()).collect(),
                _ => BTreeSet::new(),
            };
            if subjects.len() > 1 && !is_of_all || claim.text.contains("with and without") {
                told.push(format!("{}: \"{}\" is about {subjects:?}", published.id, claim.text));
            }
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn ap05_is_judged_with_one_reading() {
    let register = Register::embedded();
    let (mut read, mut wholes) = (BTreeSet::new(), 0);
    for published in of_papers(&register).filter(|published| published.id.starts_with("AP05-")) {
        let is_paced = |curve: &&meshpace_lab::register::data::Curve| curve.id.starts_with("ap");
        let paced: Vec<_> = published.curves.iter().filter(is_paced).collect();
        if paced.is_empty() {
            continue;
        }
        wholes += 1;
        let titles: Vec<&str> = published.beside.iter().map(|whole| whole.title.as_str()).collect();
        assert_eq!(titles, ["as printed", "as released"], "{}", published.id);
        for claim in &published.claims {
            assert!(claim.also.is_empty(), "{}: \"{}\" has a reading of its own", published.id, claim.text);
            for term in claim.check.terms() {
                assert!(!term.curve.starts_with("tcp-ap"), "{}: \"{}\" counts another", published.id, claim.text);
            }
        }
        read.extend(paced.iter().filter_map(|curve| curve.point.as_ref()?.get("flow.transport")).map(|it| {
            let pacing = &it["pacing"];
            (pacing["profile"].to_string(), pacing["sampling"].to_string())
        }));
    }
    assert!(wholes >= 12, "{wholes}");
    assert_eq!(read, BTreeSet::from([("\"released\"".to_owned(), "\"new-data-karn\"".to_owned())]));
}
