//! `meshpace dev`: commands for developers and packagers of meshpace.

use crate::{linux, manual, validate};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// The arguments of `meshpace dev`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Compare with ns-2.35, ns-3, theory and testbeds, point by point; exit status 1 if a point does not meet its rule.
    Validate(validate::Arguments),
    #[command(flatten)]
    Linux(linux::Dev),
    /// Print what a shell needs to complete commands and options.
    Completions(manual::Completions),
    /// Write the manual pages of the command and its subcommands.
    Man(manual::Man),
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match &arguments.what {
        What::Validate(arguments) => validate::main(arguments),
        What::Linux(command) => linux::dev(command),
        What::Completions(arguments) => manual::completions(arguments),
        What::Man(arguments) => manual::man(arguments),
    }
}
