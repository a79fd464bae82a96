//! `meshpace rerun`: repeats one run of a directory of records, with the files that the directory
//! keeps.

use crate::output::{self, Failure, finish, note};
use crate::{FAILED, REFUSED};
use clap::Args;
use meshpace_lab::rerun::{Compared, Directory, key};
use meshpace_lab::selection::Selection;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `meshpace rerun`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Directory of records, written by `run --out` or `campaign merge`, or unpacked from an
    /// archive.
    directory: PathBuf,
    /// Select the point by a value of a swept key, such as topology.hops=4. Can be repeated for
    /// other keys.
    #[arg(long, value_name = "KEY=VALUE")]
    point: Vec<String>,
    /// Seed of the run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    output::end(rerun(arguments).map(|text| finish(&text)))
}

fn rerun(arguments: &Arguments) -> Result<String, Failure> {
    let refused = |why: String| (REFUSED, why);
    let mut directory = Directory::open(&arguments.directory).map_err(refused)?;
    directory.archive().notes.iter().for_each(|sentence| note(sentence));
    let selection = Selection::parse(&arguments.point).map_err(refused)?;
    let record = directory.find(&selection, arguments.seed).map_err(refused)?;
    let compared = directory.make(&record).map_err(refused)?;
    let told = format!("seed {} at {}: {}", record.seed, key(&record), told(&compared));
    if compared.is_same() { Ok(told + "\n") } else { Err((FAILED, told)) }
}

/// Describes a comparison in words.
pub fn told(compared: &Compared) -> String {
    let Compared { kept, made, differing, lacking } = compared;
    let lacking = match &lacking[..] {
        [] => String::new(),
        columns => format!("; the record lacks {}", columns.join(", ")),
    };
    match (kept == made, &differing[..]) {
        (true, []) => format!("same fingerprint {made} and same results as in the record{lacking}"),
        (true, columns) => {
            format!("same fingerprint {made} as in the record, but different values of {}{lacking}", columns.join(", "))
        }
        (false, _) => format!("different fingerprint {made}; the record has {kept}"),
    }
}
