//! Runs the proofs in `validation/proofs` and the models of the handshake in
//! `validation/handshake`, if their programs are installed.

use meshpace_testing::{Class, skipped};
use std::path::Path;
use std::process::Command;

/// Exit status of a script whose program is missing.
const MISSING: i32 = 77;

/// Runs a script of the repository. Returns its success and its output, or `None` if its program is
/// missing.
#[track_caller]
fn run(script: &str, words: &[&str]) -> Option<(bool, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation").join(script);
    let output = Command::new("python3").arg(&path).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.code() == Some(MISSING) {
        skipped(Class::Rights, said);
        return None;
    }
    Some((output.status.success(), said))
}

#[test]
fn the_arithmetic_is_proved_at_its_full_width() {
    let Some((is_proved, said)) = run("proofs/prove", &[]) else { return };
    assert!(is_proved, "{said}");
    // Every proof has a variant with a mistake, which must be refuted. Otherwise the proof would
    // prove nothing.
    assert_eq!(said.matches("with a mistake refuted").count(), said.matches("proved ").count(), "{said}");
    assert!(said.matches("proved ").count() >= 11, "{said}");
}

#[test]
fn the_models_of_the_handshake_say_what_is_expected() {
    if !meshpace_testing::is_slow_run("the models of the handshake and their variants, analysed by Verifpal") {
        return;
    }
    let Some((is_so, said)) = run("handshake/run", &[]) else { return };
    assert!(is_so, "{said}");
}
