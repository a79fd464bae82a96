//! Tests that the patches with planted bugs for the chaos runner apply to the current sources. A
//! patch that does not apply tests nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of patches, with the least number of patches in each.
const FOLDERS: [(&str, usize); 2] = [("crates/live/chaos/bugs", 17), ("crates/live/chaos/bugs/hostile", 15)];

/// Hunks of a patch: the file, and the lines that the file must contain.
fn hunks(patch: &str) -> Vec<(String, String)> {
    let (mut hunks, mut file) = (Vec::new(), String::new());
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            name.clone_into(&mut file);
        } else if line.starts_with("@@") {
            hunks.push((file.clone(), String::new()));
        } else if let (Some(rest), Some((_, expected))) = (line.strip_prefix([' ', '-']), hunks.last_mut()) {
            expected.push_str(rest);
            expected.push('\n');
        }
    }
    hunks
}

/// Hunks of a patch whose lines do not occur exactly once, as one block, in the file.
fn unfit(root: &Path, patch: &str) -> Vec<(String, String)> {
    let fits = |(file, expected): &(String, String)| {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        !expected.is_empty() && text.matches(expected.as_str()).count() == 1
    };
    hunks(patch).into_iter().filter(|hunk| !fits(hunk)).collect()
}

fn patches(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "patch")).collect()
}

#[test]
fn every_planted_bug_fits_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (folder, least) in FOLDERS {
        let patches = patches(&root.join(folder));
        assert!(patches.len() >= least, "{folder} has {} patches", patches.len());
        for path in patches {
            let patch = fs::read_to_string(&path).unwrap();
            assert!(!hunks(&patch).is_empty(), "{} changes nothing", path.display());
            assert_eq!(unfit(&root, &patch), [], "{} does not fit", path.display());
        }
    }
}

#[test]
fn a_patch_of_other_lines_does_not_fit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let patch =
        "--- a/crates/testing/src/lib.rs\n+++ b/crates/testing/src/lib.rs\n@@ -1,1 +1,1 @@\n-nobody wrote this line\n";
    assert_eq!(unfit(&root, patch).len(), 1);
}
