use super::*;
use meshpace_lab::record::directory::Manifest;
use meshpace_lab::register::{Effort, observations};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

fn made() -> Manifest {
    serde_json::from_value(serde_json::json!({
        "scenario": "s", "scenario_sha256": "0", "version": "0", "first_seed": 1, "seeds": 2, "points": 2,
        "failed_runs": 0, "quality": "quick",
    }))
    .unwrap()
}

/// Every experiment of the register with two made-up runs of each of its points.
#[test]
fn every_experiment_has_a_page_that_is_whole() {
    let register = Register::embedded();
    let mut chapters = Vec::new();
    for experiment in register.experiments.iter().filter(|experiment| experiment.scenario.is_some()) {
        let runs = register.runs(experiment, Effort::Quick).unwrap().unwrap();
        let mut lines = String::new();
        for (number, point) in runs.scenario.points.iter().enumerate() {
            for seed in 1..=2 {
                let flows: Vec<Value> = (0..point.config.flows.len())
                    .map(|flow| serde_json::json!({"goodput_bps": 1e5 + number as f64 + seed as f64, "id": flow, "timeouts": 1}))
                    .collect();
                let values: serde_json::Map<String, Value> = point.values.iter().cloned().collect();
                lines.push_str(&format!(
                    "{}\n",
                    serde_json::json!({
                        "seed": seed, "point": values, "aggregate_goodput_bps": 1e5 + number as f64 + seed as f64,
                        "jain": 0.9, "jain_2s": 0.8, "retransmission_index": 0.01, "flows": flows,
                    })
                ));
            }
        }
        chapters.push(Collection {
            runs: Some(runs.id),
            records: Arc::new(observations::parse(&lines).unwrap()),
            made: made(),
            directory: PathBuf::from("out/x"),
            notes: Vec::new(),
        });
    }
    let page =
        Book { register: &register, collections: &chapters, links: Some(Path::new("out")), viewer: Some("view/") }
            .render();
    // What is packed into a link may have any letters.
    let mut parts = page.split("href=\"view/#");
    let mut told = parts.next().unwrap_or_default().to_owned();
    told.extend(parts.filter_map(|part| Some(part.split_once('"')?.1)));
    assert!(!told.contains("NaN") && !told.contains("inf %"), "no number that is none");
    for experiment in &register.experiments {
        assert!(page.contains(&format!("id=\"{}\"", experiment.published.id)), "{}", experiment.published.id);
    }
    for link in [">doi:10.1109/SARNOF.2007.4567329</a>", ">the paper at ieeexplore.ieee.org</a>", ">find its DOI</a>"] {
        assert!(page.contains(link), "{link}");
    }
    // Well-formed, but for the doctype and void elements: every section and figure that is opened is closed.
    for tag in ["section", "figure", "table", "svg", "details", "ul", "ol"] {
        let (open, close) = (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
        assert!(open >= close && page.contains(&format!("</{tag}>")), "{tag}: {open} and {close}");
    }
    // Papers are linked to; nothing is fetched.
    assert!(!page.contains("{largest ") && !page.contains(" | largest "), "every reference has its number");
    assert!(page.contains("Readings tried: ") && page.contains("This decided."));
    assert!(page.contains("href=\"view/#v1."));
    let addresses = page.replace("http://www.w3.org/2000/svg", "").replace("href=\"https://", "");
    assert!(!addresses.contains("://"), "it needs no network");
    // Every count is one of verdicts.json.
    let entries = verdicts::of(&register, &chapters);
    for verdict in Verdict::ALL {
        let told = format!("<strong data-verdict=\"{}\">{}</strong>", verdict.words(), count(entries.iter(), verdict));
        assert!(page.contains(&told), "{told}");
    }
    for (cause, number) in causes(entries.iter()) {
        assert!(page.contains(&format!("data-cause=\"{cause}\"")), "{cause}");
        assert!(page.contains(&format!("{cause} <strong>{number}</strong>")), "{cause} {number}");
    }
    assert!(page.contains("id=\"routing-1\"") && page.contains("rel=\"next\""), "the switch, the way on");
    // What was published is in the plots, or a sentence says why not: once for each paper's experiment that has plots and runs.
    let said = page.matches("The plots show no published values").count();
    let drawn = page.matches("Published numbers are rings").count();
    let has_numbers = |experiment: &&Experiment| !experiment.published.published.is_empty();
    assert!(
        said > 0 && drawn > 0 && drawn <= register.experiments.iter().filter(has_numbers).count(),
        "{said}, {drawn}"
    );
    let sentences = page.matches("<p class=\"sentence\">").count();
    assert_eq!(sentences, page.matches("<section class=\"experiment\"").count());
    // A part tells nothing of other papers, not even of what cannot be judged there.
    chapters.retain(|own| own.runs.as_deref().is_some_and(|runs| runs.starts_with("QT-")));
    assert!(verdicts::of(&register, &chapters).iter().all(|entry| entry.experiment.starts_with("QT-")));
    let part = Book { register: &register, collections: &chapters, links: None, viewer: None };
    assert_eq!((part.papers(), part.heading()), (vec!["QT"], "Studies of this project, repeated"));
}

#[test]
fn a_citation_ends_where_the_place_in_the_paper_begins() {
    let register = Register::embedded();
    for experiment in &register.experiments {
        let citation = section::citation(experiment);
        assert!(citation.len() > 10 && !citation.contains("section"), "{}: {citation}", experiment.published.id);
    }
    let first = register.find("AP05-F14").unwrap();
    assert!(section::citation(first).ends_with("MobiHoc 2005"), "{}", section::citation(first));
}
