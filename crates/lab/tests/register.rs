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
    for (paper, count) in [("AP05", 24), ("AP10", 23), ("TPA", 30), ("LLAP", 11), ("DCC", 22), ("QT", 21)] {
        assert_eq!(ids().filter(|id| id.starts_with(&format!("{paper}-"))).count(), count, "{paper}");
    }
    let unique: std::collections::BTreeSet<_> = ids().collect();
    assert_eq!((ids().count(), unique.len()), (131, 131));
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
