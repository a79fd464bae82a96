//! `meshpace emulate shell`: runs a shell or a command in a node of a running emulation.

use crate::output::complain;
use crate::{FAILED, REFUSED};
use clap::Args;
use meshpace_emulator::program::enter;
use meshpace_emulator::run_dir;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The arguments of `meshpace emulate shell`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Node, such as n3.
    node: String,
    /// Command to run [default: the shell of the environment].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    /// Name of the emulation, if several are running.
    #[arg(long, value_name = "TOKEN")]
    run: Option<String>,
}

/// Returns the directory of the emulation with this token, or of the only running emulation.
pub fn choose(token: Option<&str>) -> Result<PathBuf, String> {
    let alive = run_dir::alive(&run_dir::base()).map_err(|error| error.to_string())?;
    let tokens: Vec<String> =
        alive.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    let list = tokens.join(", ");
    match (token, alive.as_slice()) {
        (None, [only]) => Ok(only.clone()),
        (_, []) => Err("no emulation is running; start one with meshpace emulate FILE".to_owned()),
        (None, _) => Err(format!("several emulations are running: choose one with --run: {list}")),
        (Some(token), all) => {
            let found = all.iter().find(|path| path.file_name().is_some_and(|name| name == token));
            found.cloned().ok_or_else(|| format!("emulation {token} is not running; running: {list}"))
        }
    }
}

/// Runs the command. It replaces this process, so the function returns only if that fails.
pub fn main(arguments: &Arguments) -> ExitCode {
    let failure = match find(arguments) {
        Ok((network, hosts)) => match enter(&network, &hosts) {
            Ok(()) => execute(arguments),
            Err(error) => format!("{}: {error}", arguments.node),
        },
        Err(error) => {
            complain(&error);
            return ExitCode::from(REFUSED);
        }
    };
    complain(&failure);
    ExitCode::from(FAILED)
}

fn find(arguments: &Arguments) -> Result<(File, PathBuf), String> {
    let directory = choose(arguments.run.as_deref())?;
    let explain = |error: std::io::Error| format!("{}: {error}", directory.display());
    let nodes = fs::read_to_string(directory.join("nodes")).map_err(explain)?;
    let place = nodes.lines().find_map(|line| line.strip_prefix(&format!("{} ", arguments.node)));
    let place = place.ok_or_else(|| {
        format!(
            "`{}` is not a node: the emulation has the nodes n0 to n{}",
            arguments.node,
            nodes.lines().count().saturating_sub(1)
        )
    })?;
    let network = File::open(place).map_err(|error| format!("{place}: {error}"))?;
    Ok((network, directory.join("hosts")))
}

fn execute(arguments: &Arguments) -> String {
    let shell = || std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let (program, rest) = match arguments.command.split_first() {
        Some((program, rest)) => (program.clone(), rest),
        None => (shell(), [].as_slice()),
    };
    let error = Command::new(&program).args(rest).exec();
    format!("{program}: {error}")
}
