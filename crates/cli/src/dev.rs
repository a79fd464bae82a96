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
    /// Compare the simulator with ns-2.35, ns-3, theory and testbeds, point by point. The exit
    /// status is 1 if a point breaks its rule.
    Validate(validate::Arguments),
    #[command(flatten)]
    Linux(linux::Dev),
    /// Print a script with which a shell completes commands and options.
    Completions(manual::Completions),
    /// Write the manual pages of the command and of its subcommands.
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
