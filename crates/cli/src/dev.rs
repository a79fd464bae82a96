//! `meshpace dev`: for those who develop meshpace, or package it.

use crate::{bench, chaos, manual, medium, validate};
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
    /// Measure the simulator's own speed on named workloads, beside ns-2 where that is installed.
    Bench(bench::Arguments),
    /// Compare with ns-2.35, ns-3, theory and testbeds, point by point; exit status 1 if a point does not meet its rule.
    Validate(validate::Arguments),
    /// Run the live stack in virtual time over a hostile wire or radio, a run per seed, and check what must be true; exit status 1 if it is not.
    Chaos(chaos::Arguments),
    /// A medium for the radios of mac80211_hwsim, in wmediumd's place: an experiment (docs/notes/medium.md).
    Medium(medium::Arguments),
    /// Print what a shell needs to complete commands and options.
    Completions(manual::Completions),
    /// Write the manual pages of the command and its subcommands.
    Man(manual::Man),
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match &arguments.what {
        What::Bench(arguments) => bench::main(arguments),
        What::Validate(arguments) => validate::main(arguments),
        What::Chaos(arguments) => chaos::main(arguments),
        What::Medium(arguments) => medium::main(arguments),
        What::Completions(arguments) => manual::completions(arguments),
        What::Man(arguments) => manual::man(arguments),
    }
}
