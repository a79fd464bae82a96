//! `meshpace campaign archive` and `check`: pack a directory of records into one file for other
//! people, and check such a directory.

use crate::output::{Failure, note};
use crate::{FAILED, REFUSED, rerun};
use clap::Args;
use meshpace_lab::check::check as check_directory;
use meshpace_lab::record::pack::pack;
use std::path::PathBuf;

/// Arguments of `meshpace campaign archive`.
#[derive(Args, Debug)]
pub struct Archive {
    /// Directory of records.
    directory: PathBuf,
    /// File to write, such as records.tar.gz.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Leave out the name of the machine, the number of jobs and the time that the runs took.
    #[arg(long)]
    anonymous: bool,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
}

/// Arguments of `meshpace campaign check`.
#[derive(Args, Debug)]
pub struct Check {
    /// Directory of records, such as one unpacked from an archive.
    directory: PathBuf,
    /// Repeat this number of runs, and compare them with their records.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Choose the repeated runs at random with this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    draw: u64,
}

/// Writes an archive.
pub fn archive(arguments: &Archive) -> Result<String, Failure> {
    let out = arguments.out.display();
    if arguments.out.exists() && !arguments.force {
        return Err((REFUSED, format!("{out} already exists; --force replaces it")));
    }
    let packed = pack(&arguments.directory, &arguments.out, arguments.anonymous).map_err(|why| (REFUSED, why))?;
    let (records, files, name) = (packed.records, packed.files, packed.name);
    Ok(format!("{out}: {records} runs and {files} files\ntar xf {out} && meshpace campaign check {name}\n"))
}

/// Checks a directory.
pub fn check(arguments: &Check) -> Result<String, Failure> {
    let checked = check_directory(&arguments.directory, arguments.runs, arguments.draw);
    let checked = checked.map_err(|why| (FAILED, why))?;
    checked.notes.iter().for_each(|sentence| note(sentence));
    let others = checked.made.iter().filter(|(_, compared)| !compared.is_same());
    let told: Vec<String> = others.map(|(run, compared)| format!("{run}: {}", rerun::told(compared))).collect();
    if !told.is_empty() {
        return Err((FAILED, format!("repeated runs differ from their records:\n{}", told.join("\n"))));
    }
    let (place, records, files) = (arguments.directory.display(), checked.records, checked.files);
    let made = checked.made.len();
    Ok(format!(
        "{place}: {records} records and {files} files are complete; {made} runs were repeated and gave the same results\n"
    ))
}
