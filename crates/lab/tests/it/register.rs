//! The register's files: they can be read, fit together, and every published result has one or is listed as missing.

use meshpace_lab::register::{Effort, Register, consistency};
use std::path::Path;

#[test]
fn the_files_fit_together() {
    let problems = consistency::problems(&Register::embedded());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_index_has_every_published_result_once() {
    // Figures, tables and results in the text that each paper reports.
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
    for (read, embedded) in read.experiments.iter().zip(&embedded.experiments) {
        let runs = |register: &Register, experiment| {
            register.runs(experiment, Effort::Quick).unwrap().map(|runs| runs.scenario.digest)
        };
        assert_eq!(runs(&Register::read(&directory).unwrap(), read), runs(&Register::embedded(), embedded));
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
