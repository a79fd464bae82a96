//! `meshpace report`: writes the report of records that are on disk.

use crate::REFUSED;
use crate::output::{complain, finish, is_quiet, note, tell};
use clap::Args;
use meshpace_lab::record::is_kept;
use meshpace_lab::register::{collection, verdicts};
use meshpace_lab::selection::Selection;
use meshpace_report::picture::{self, Subject};
use meshpace_scenario::{Plot, Source};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `meshpace report`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Directory that `meshpace reproduce` or `meshpace run --out` wrote. The page shows the
    /// published claims of a registered experiment, and plots over the sweep for your own scenario.
    directory: PathBuf,
    /// For your own scenarios: include only the sweep points with these values, such as
    /// topology.hops=4 or flow.transport=newreno,tcp-ap. Conditions on several keys must all hold.
    #[arg(long = "where", value_name = "KEY=VALUE[,...]")]
    selected: Vec<String>,
    /// Read the register's files from this directory instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    register: Option<PathBuf>,
    /// Write the page to this file, and verdicts.json beside it. The page then has no links to the
    /// records, so that it can be moved away from them.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Link every experiment to the viewer in this folder (written by `meshpace view --export`) or
    /// at this address.
    #[arg(long, value_name = "ADDRESS")]
    viewer: Option<String>,
    /// Also write the result of every claim as a text page: docs/findings.md.
    #[arg(long, value_name = "FILE")]
    findings: Option<PathBuf>,
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
    let selection = Selection::parse(&arguments.selected).map_err(|why| format!("--where {why}"))?;
    let register = crate::reproduce::register(arguments.register.as_deref())?;
    let mut collections = collection::collect(&arguments.directory, &register)?;
    collections.iter().flat_map(|own| &own.notes).for_each(|sentence| note(sentence));
    if let [own] = &mut collections[..]
        && own.runs.is_none()
    {
        let page = arguments.page.clone().unwrap_or_else(|| arguments.directory.join(meshpace_report::PAGE));
        let words: Vec<String> = selection.arguments().iter().map(|words| format!(" --where '{words}'")).collect();
        let command = format!("meshpace report {}{}", arguments.directory.display(), words.concat());
        let (text, sets) = (own.made.scenario_text.clone(), own.made.set.clone());
        let settings = Plot::from_source(&Source { name: own.made.scenario.clone(), text, sets });
        let title = own.made.scenario.as_str();
        let told = |why| format!("{}: --where: {why}", own.directory.display());
        let records = std::mem::take(Arc::make_mut(&mut own.records));
        let records = &selection.of(records).map_err(told)?;
        picture::write(&page, &Subject { title, command: &command, records, map: None, settings: &settings })?;
        return Ok(page);
    }
    if let Some(condition) = arguments.selected.first() {
        let why = "--where is not possible for a registered experiment, because its claims are judged by all points; use meshpace compare --where";
        return Err(format!("--where {condition}: {why}"));
    }
    let (root, viewer) = (&arguments.directory, arguments.viewer.as_deref());
    let page = meshpace_report::write(root, &collections, &register, arguments.page.as_deref(), viewer)?;
    let entries = verdicts::of(&register, &collections);
    // Files cannot be written beside a device such as /dev/stdout.
    if !is_kept(&page) {
        verdicts::write(page.parent().filter(|place| *place != Path::new("")).unwrap_or(Path::new(".")), &entries)?;
    }
    if let Some(findings) = &arguments.findings {
        let text = meshpace_report::findings::page(&register, &collections, &entries);
        std::fs::write(findings, text).map_err(|error| format!("{}: {error}", findings.display()))?;
    }
    if !is_quiet() {
        tell(&verdicts::scoreboard(&entries));
    }
    Ok(page)
}
