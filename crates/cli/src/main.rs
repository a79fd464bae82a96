//! The `meshpace` command.

mod advise;
mod campaign;
mod captures;
mod compare;
mod dask;
mod dev;
mod keys;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod linux;
mod manual;
mod output;
mod progress;
mod prospect;
mod report;
mod reproduce;
mod rerun;
mod run;
mod runner;
mod scenarios;
mod share;
mod transports;
mod validate;
mod view;
mod words;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use meshpace_command::{FAILED, INTERRUPTED, REFUSED};
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;

/// Paced transport over multi-hop wireless networks: simulated, compared with what was published, and on real sockets.
#[derive(Parser, Debug)]
#[command(name = "meshpace", version, about, propagate_version = true, after_help = STATUSES)]
struct Cli {
    /// Print only errors to standard error (no progress, no warnings).
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

/// Exit statuses, for scripts.
const STATUSES: &str = "Exit status: 0: success; 1: a run or a check failed, or results could not be written; \
    2: the scenario or the command line has an error, and nothing was run; 130: interrupted by Ctrl-C. \
    Results go to standard output, everything else to standard error.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a scenario, or every point of its sweep.
    Run(run::Arguments),
    /// Compare two scenarios, directories of records or variants of one scenario: which is better,
    /// by how much, and how certain it is.
    Compare(compare::Arguments),
    /// Play a scenario in a browser: frames, collisions, routes, two transports side by side.
    View(view::Arguments),
    /// List the transports that scenarios can name.
    Transports(transports::Arguments),
    /// List all keys of a scenario file, with their values, defaults and meanings.
    Keys(keys::Arguments),
    /// List the published experiments, and the scenario files of a directory.
    Scenarios(scenarios::Arguments),
    /// Run published experiments again, and write a report with a verdict on every published claim.
    Reproduce(reproduce::Arguments),
    /// Write the report of existing records again, without running anything.
    Report(report::Arguments),
    /// Repeat one run of a directory of records, and compare the result with its record.
    Rerun(rerun::Arguments),
    /// Split a campaign for a batch system, run its pieces there, merge campaigns, and pack them
    /// for others.
    Campaign(campaign::Arguments),
    /// Find out which flows of a mesh would starve and which settings help, from a map, a list of
    /// links or a dump of a routing daemon.
    Advise(advise::Arguments),
    #[command(flatten)]
    Linux(linux::Command),
    /// For developers and packagers: compare with ns-2 and ns-3, measure speed, print completions
    /// and manual pages.
    Dev(dev::Arguments),
}

fn main() -> ExitCode {
    // A command line that cannot be parsed leads to exit status 2.
    let parsed = negative_values(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return told(&advised(error)),
    };
    if cli.quiet {
        output::be_quiet();
    }
    match cli.command {
        Command::Run(arguments) => run::main(&arguments),
        Command::Transports(arguments) => transports::main(&arguments),
        Command::Keys(arguments) => keys::main(&arguments),
        Command::Scenarios(arguments) => scenarios::main(&arguments),
        Command::Reproduce(arguments) => reproduce::main(&arguments),
        Command::Report(arguments) => report::main(&arguments),
        Command::Rerun(arguments) => rerun::main(&arguments),
        Command::Compare(arguments) => compare::main(&arguments),
        Command::Advise(arguments) => advise::main(&arguments),
        Command::Campaign(arguments) => campaign::main(&arguments),
        Command::View(arguments) => view::main(&arguments),
        Command::Linux(command) => linux::main(&command),
        Command::Dev(arguments) => dev::main(&arguments),
    }
}

/// Lets each option that takes a value accept negative numbers. The option's own error then says
/// what it expects; otherwise clap would report `-1` as an unknown option.
fn negative_values(command: clap::Command) -> clap::Command {
    let is_option = |argument: &clap::Arg| argument.get_long().is_some() && argument.get_action().takes_values();
    let taking = |argument: clap::Arg| {
        if is_option(&argument) { argument.allow_negative_numbers(true) } else { argument }
    };
    command.mut_args(taking).mut_subcommands(negative_values)
}

/// Prints help, the version, or what is wrong with a command line.
fn told(error: &clap::Error) -> ExitCode {
    match (error.print(), error.exit_code()) {
        // Exit code 0: the user asked for help or for the version.
        (Err(why), 0) => output::failed(&why),
        (_, 0) => ExitCode::SUCCESS,
        _ => ExitCode::from(REFUSED),
    }
}

/// Improves the error of a wrong command line. The advice to write an unknown option behind `--` is
/// removed, because the option would then be read as a file name. A user who writes `--json` where
/// it is `--format json`, or the other way round, is told the right option.
fn advised(mut error: clap::Error) -> clap::Error {
    // A sign or a fraction leads to the error "invalid digit found in string".
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<ParseIntError>());
    if source.is_some_and(|source| *source.kind() == IntErrorKind::InvalidDigit) {
        let tip = "a whole number is expected, without a sign".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    tips.retain(|tip| !tip.to_string().starts_with("to pass "));
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.clone(),
        _ => String::new(),
    };
    let cli = Cli::command();
    let words = std::env::args_os().skip(1);
    let command = words.fold(&cli, |command, word| command.find_subcommand(&word).unwrap_or(command));
    let has = |name: &str| command.get_arguments().any(|argument| argument.get_id() == name);
    let other = match option.as_str() {
        "--json" if has("format") => Some("--format json"),
        "--format" if has("json") => Some("--json"),
        _ => None,
    };
    if let Some(other) = other {
        // Options with similar names are not suggested then, because none of them is meant.
        error.remove(ContextKind::SuggestedArg);
        tips.push(format!("JSON is printed with {other}").into());
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}
