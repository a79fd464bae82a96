//! `meshpace merge`: campaigns put together.

use crate::REFUSED;
use crate::output::{complain, finish};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `meshpace merge`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Directories that `meshpace reproduce` or `meshpace run --out` have written, finished or not.
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Where to write.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace records of another campaign that are there.
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match meshpace_lab::record::merge::merge(&arguments.directories, &arguments.out, arguments.force) {
        Ok(count) => finish(&format!("{}: {count} runs\n", arguments.out.display())),
        Err(message) => {
            complain(&message);
            ExitCode::from(REFUSED)
        }
    }
}
