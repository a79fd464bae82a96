//! `meshpace emulate link`: cuts or restores a link of a running emulation.

use crate::linux::shell;
use crate::output::complain;
use crate::{FAILED, REFUSED};
use clap::{Args, ValueEnum};
use meshpace_emulator::control::ask;
use std::process::ExitCode;

/// The arguments of `meshpace emulate link`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// One end of the link, such as n3.
    one: String,
    /// The other end of the link.
    other: String,
    /// New state of the link.
    #[arg(value_enum)]
    state: State,
    /// Name of the emulation, if several are running.
    #[arg(long, value_name = "TOKEN")]
    run: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Neither end hears the other.
    Down,
    /// The ends hear each other as far as their places allow.
    Up,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let state = if arguments.state == State::Up { "up" } else { "down" };
    let question = format!("link {} {} {state}", arguments.one, arguments.other);
    let (failure, status) = match shell::choose(arguments.run.as_deref()) {
        Ok(directory) => match ask(&directory, &question) {
            Ok(_) => return ExitCode::SUCCESS,
            Err(error) => (error, FAILED),
        },
        Err(error) => (error, REFUSED),
    };
    complain(&failure);
    ExitCode::from(status)
}
