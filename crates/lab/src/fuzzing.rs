//! Bodies of fuzz targets: functions that take bytes of a user's files and panic if something is
//! wrong.
//!
//! They are built only for fuzzers (`--cfg fuzzing`, as `cargo fuzz` does; `fuzz/` has the targets)
//! and for the tests of this crate. The tests run each function on the inputs in `fuzz/corpus` and
//! on mutations of them.

use crate::field::dumps::{self, Dump};
use crate::field::{kit, results, ways};
use crate::record::line;
use crate::stream::Reader;
use std::fs;

/// Separator between the files of an input: the form feed.
const NEXT: u8 = b'\x0c';

/// Names of files with their contents. Each part of an input begins with a line that has the name.
fn files(data: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    data.split(|byte| *byte == NEXT).filter_map(|part| {
        let end = part.iter().position(|byte| *byte == b'\n')?;
        Some((std::str::from_utf8(&part[..end]).ok()?, &part[end + 1..]))
    })
}

/// Checks what must hold for every mesh, whatever it was read from.
fn look_at(dump: &Dump) {
    let nodes = dump.nodes.len();
    let is_number = |number: Option<f64>, most: f64| number.is_none_or(|number| number > 0.0 && number <= most);
    for link in &dump.links {
        assert!(link.from < nodes && link.to < nodes && link.from != link.to, "{link:?}");
        assert!(is_number(link.delivery, 1.0) && is_number(link.tq, 1.0), "{link:?}");
        assert!(is_number(link.cost, f64::MAX) && is_number(link.mbps, f64::MAX), "{link:?}");
        assert!(link.snr_db.is_none_or(f64::is_finite), "{link:?}");
    }
    for (at, destination, next) in &dump.routes {
        assert!([at, destination, next].iter().all(|node| **node < nodes));
    }
    assert!(dump.witnesses.iter().chain(dump.also.iter().map(|(node, _)| node)).all(|node| *node < nodes));
    let _ = dump.missing();
    // Only small meshes are checked, because all routes of a large one take long.
    if (2..20).contains(&nodes) {
        for to in 1..nodes {
            let Some(way) = ways::way(dump, 0, to) else { continue };
            assert!(way.first() == Some(&0) && way.last() == Some(&to) && way.iter().all(|node| *node < nodes));
        }
    }
}

/// Reads dumps of the links of a mesh; a form feed separates the dumps of several nodes. Each dump
/// is accepted or refused, and all accepted ones are merged to one mesh.
///
/// # Panics
///
/// Panics if a link or a route refers to a node that does not exist, or if a value is not a valid
/// number.
pub fn dumps(data: &[u8]) {
    let mut parts = Vec::new();
    for (number, part) in data.split(|byte| *byte == NEXT).take(8).enumerate() {
        match dumps::read(part) {
            Ok(dump) => {
                assert!(!dump.links.is_empty());
                look_at(&dump);
                parts.push((format!("node-{number}"), dump));
            }
            Err((place, why)) => assert!(!place.is_empty() && !why.is_empty()),
        }
    }
    look_at(&dumps::merge(&parts));
}

/// Reads goodputs that another program has measured. The result is a list of numbers or a refusal.
///
/// # Panics
///
/// Panics if a value is not a valid goodput.
pub fn results(data: &[u8]) {
    match results::read(data) {
        Ok(found) => {
            assert!(!found.is_empty());
            assert!(found.iter().all(|one| one.goodput_bps.is_finite() && one.goodput_bps >= 0.0), "{found:?}");
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

/// Reads files of the measuring kit, `NODE/FILE`. The result is a mesh with its measurements, or a
/// refusal.
///
/// # Panics
///
/// Panics if the result is impossible, or if the system provides no directory.
pub fn kits(data: &[u8]) {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, content) in files(data).take(32) {
        let Some((node, file)) = name.split_once('/') else { continue };
        let is_plain = |name: &str| {
            (1..64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
                && !name.starts_with('.')
        };
        if is_plain(node) && is_plain(file) {
            let node = directory.path().join(node);
            fs::create_dir_all(&node).expect("a directory");
            fs::write(node.join(file), content).expect("a file");
        }
    }
    match kit::read(directory.path()) {
        Ok(kit) => {
            look_at(&kit.dump);
            let nodes = kit.dump.nodes.len();
            assert!(!kit.runs.is_empty());
            for run in &kit.runs {
                assert!(run.from < nodes && run.to < nodes && run.from != run.to);
                assert!(run.goodput_bps.is_finite() && run.goodput_bps >= 0.0, "{run:?}");
                assert!(run.busy.is_none_or(|share| (0.0..=1.0).contains(&share)), "{run:?}");
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

/// Reads the stream of a recorded run, and lines of records. Each line is accepted, or the error
/// gives its number.
///
/// # Panics
///
/// Panics if this does not hold.
pub fn recordings(data: &[u8]) {
    if let Ok((header, reader)) = Reader::new(data) {
        assert!(header.format <= crate::stream::FORMAT);
        for event in reader {
            match event {
                Ok(event) => assert!(!format!("{event:?}").is_empty()),
                Err(why) => assert!(why.starts_with("line ")),
            }
        }
    }
    for text in data.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        for record in [text, line::seal(text).trim_end()].into_iter().filter_map(|line| line::open(line).ok()) {
            let _ = line::key_of(&record);
        }
    }
}

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_dump_is_a_mesh_or_is_refused() {
        drive("dumps", super::dumps);
    }

    #[test]
    fn any_result_is_a_goodput_or_is_refused() {
        drive("results", super::results);
    }

    #[test]
    fn any_directory_of_the_kit_is_a_mesh_or_is_refused() {
        drive("kits", super::kits);
    }

    #[test]
    fn any_recording_is_read_line_by_line() {
        drive("recordings", super::recordings);
    }
}
