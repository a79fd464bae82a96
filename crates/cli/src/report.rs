//! `meshpace report`: the report of records that are on disk.

use crate::REFUSED;
use crate::output::{complain, finish};
use clap::Args;
use meshpace_lab::register::{collection, verdicts};
use meshpace_report::picture::{self, Subject};
use meshpace_scenario::{Plot, Source};
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `meshpace report`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A directory that `meshpace reproduce` or `meshpace run --out` has written. Of a scenario of your own the page has plots of what
    /// was swept; of a registered one, the published claims.
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
    if let [own] = &collections[..]
        && own.runs.is_none()
    {
        let page = arguments.page.clone().unwrap_or_else(|| arguments.directory.join(meshpace_report::PAGE));
        let command = format!("meshpace report {}", arguments.directory.display());
        let (text, sets) = (own.made.scenario_text.clone(), own.made.set.clone());
        let settings = Plot::of(&Source { name: own.made.scenario.clone(), text, sets });
        let (title, records) = (own.made.scenario.as_str(), &own.records);
        picture::write(&page, &Subject { title, command: &command, records, map: None, settings: &settings })?;
        return Ok(page);
    }
    let page = meshpace_report::write(&arguments.directory, &collections, &register, arguments.page.as_deref())?;
    let entries = verdicts::of(&register, &collections);
    if arguments.page.is_none() {
        verdicts::write(&arguments.directory, &entries)?;
    }
    eprint!("{}", verdicts::scoreboard(&entries));
    Ok(page)
}
