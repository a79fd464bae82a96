//! `meshpace report`: the report of records that are on disk.

use crate::REFUSED;
use crate::output::{complain, finish};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `meshpace report`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A directory that `meshpace reproduce` has written, or `meshpace run --out` from a registered scenario.
    directory: PathBuf,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match meshpace_lab::report::write(&arguments.directory) {
        Ok(page) => finish(&format!("{}\n", page.display())),
        Err(message) => {
            complain(&message);
            ExitCode::from(REFUSED)
        }
    }
}
