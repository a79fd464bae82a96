//! `meshpace report`: the report of records that are on disk.

use crate::REFUSED;
use crate::output::{complain, finish};
use clap::Args;
use meshpace_lab::register::{collection, verdicts};
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `meshpace report`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A directory that `meshpace reproduce` has written, or `meshpace run --out` from a registered scenario.
    directory: PathBuf,
    /// A directory with the register's files, instead of those that are part of the program.
    #[arg(long, value_name = "DIR")]
    register: Option<PathBuf>,
    /// Write the page here, to be read away from the records: without links to them.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match report(arguments) {
        Ok(page) => finish(&format!("{}\n", page.display())),
        Err(message) => {
            complain(&message);
            ExitCode::from(REFUSED)
        }
    }
}

fn report(arguments: &Arguments) -> Result<PathBuf, String> {
    let register = crate::reproduce::register(arguments.register.as_deref())?;
    let collections = collection::collect(&arguments.directory, &register)?;
    let page = meshpace_report::write(&arguments.directory, &collections, &register, arguments.page.as_deref())?;
    let entries = verdicts::of(&register, &collections);
    if arguments.page.is_none() {
        crate::reproduce::write_verdicts(&arguments.directory, &entries)?;
    }
    eprint!("{}", verdicts::scoreboard(&entries));
    Ok(page)
}
