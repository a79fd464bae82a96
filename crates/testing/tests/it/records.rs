//! Tests that fields of records are named only in the table of columns (`lab/src/record`). Code
//! elsewhere accesses a field of the type `Record`, so that the compiler reports a field that does
//! not exist. A name in quotes would yield `null` instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that can read records: lab and those that use it.
const READERS: [&str; 4] = ["lab", "report", "cli", "python"];

/// Files that name a field in quotes, with the reason. Only the objects of the first ones are
/// records.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("lab/src/record/metrics.rs", "the table of metrics: a name is what programs call the metric"),
    ("lab/src/record/line.rs", "what places a line among others is read without the rest of the line"),
    ("lab/src/register/data/metric.rs", "names of fields as experiments write them; they are looked up in the table"),
    ("lab/src/register/select.rs", "the name of a transport in a point of a sweep"),
    ("lab/src/words.rs", "the name of a transport in a point of a sweep"),
    ("lab/src/record/fields.rs", "a JSON Schema"),
    ("lab/src/robust/mod.rs", "a line of a comparison is written"),
    ("lab/src/field/dumps/mod.rs", "files of the viewer"),
    ("lab/src/field/dumps/viewer.rs", "files of the viewer"),
    ("lab/src/field/dumps/netjson.rs", "NetJSON"),
    ("lab/src/stream/read.rs", "the first line of a recording"),
    ("lab/src/validate/chain_counts.rs", "rows of a table of ns-2"),
    ("cli/src/compare/rivals.rs", "a line of a comparison is written"),
    ("cli/src/linux/bench.rs", "the result of a benchmark"),
    ("cli/src/linux/bench/outcome.rs", "the result of a benchmark"),
    ("cli/src/linux/bench/pairs.rs", "the result of a benchmark"),
    ("cli/src/linux/chaos/kept.rs", "what is kept of schedules"),
    ("cli/src/linux/kernel.rs", "the state of the kernel's programs"),
    ("cli/src/linux/top.rs", "the state of a running emulation"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Fields of a record, as listed on the page that is generated from the table.
fn fields() -> BTreeSet<String> {
    let page = fs::read_to_string(crates().join("../docs/records.md")).unwrap();
    page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned())).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && entry.file_name() != "tests.rs" {
            found.push(path);
        }
    }
}

/// Fields that a source names in quotes. A name that is used for nothing else counts everywhere;
/// other names count where a member of an object is accessed.
fn named(source: &str, fields: &BTreeSet<String>) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in source.match_indices('"') {
        let (before, rest) = (&source[..at], &source[at + 1..]);
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let Some(after) = rest[name.len()..].strip_prefix('"') else { continue };
        let is_its_own = name.contains('_') || name == "jain";
        let is_index = before.ends_with('[') && after.starts_with(']') && !before.ends_with("&[");
        let is_taken = before.ends_with(".get(") || before.ends_with(".get_mut(") || is_index;
        if fields.contains(name) && (is_its_own || is_taken) {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn nobody_names_a_field_of_a_record_in_quotes_but_the_table() {
    let fields = fields();
    assert!(fields.len() > 50 && fields.contains("aggregate_goodput_bps"), "{fields:?}");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for reader in READERS {
        let mut files = Vec::new();
        sources(&crates().join(reader).join("src"), &mut files);
        for file in files {
            let names = named(&fs::read_to_string(&file).unwrap(), &fields);
            let file = file.strip_prefix(crates()).unwrap().display().to_string();
            if !names.is_empty() {
                found.insert(file, names);
            }
        }
    }
    for (file, _) in EXCEPTIONS {
        assert!(found.remove(*file).is_some(), "{file} names no field in quotes any more: it is no exception");
    }
    assert!(found.is_empty(), "take the field from the record, or give a reason in EXCEPTIONS: {found:#?}");
}

#[test]
fn a_name_in_quotes_is_found() {
    let fields = ["seed", "goodput_bps"].map(str::to_owned).into();
    let of = |source: &str| named(source, &fields);
    assert_eq!(of(r#"record.get("seed")?; flow["seed"]; json!({"seed": 1}); &["seed"]"#), ["seed", "seed"]);
    assert_eq!(of(r#"match name { "goodput_bps" => 1 }"#), ["goodput_bps"]);
    assert_eq!(of("a.seed; #[cfg(test)] mod tests { x[\"seed\"] }"), [""; 0]);
}
