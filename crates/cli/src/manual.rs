//! `meshpace completions` and `meshpace man`: what shells and `man` know of the command, made from its own arguments.

use crate::output::{complain, finish};
use crate::{Cli, FAILED};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell whose completions are printed.
    shell: Shell,
}

/// The arguments of `meshpace man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Where the pages are written, one for each subcommand.
    directory: PathBuf,
}

/// Prints the completions of a shell.
pub fn completions(arguments: &Completions) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "meshpace", &mut text);
    finish(&String::from_utf8_lossy(&text))
}

/// Writes the manual pages and says which.
pub fn man(arguments: &Man) -> ExitCode {
    match write(&arguments.directory) {
        Ok(names) => finish(&names.iter().map(|name| format!("{}\n", name.display())).collect::<String>()),
        Err(error) => {
            complain(&format!("{}: {error}", arguments.directory.display()));
            ExitCode::from(FAILED)
        }
    }
}

fn write(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory)?;
    let mut command = Cli::command();
    command.build();
    let mut names = Vec::new();
    let subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help").cloned();
    let pages = std::iter::once((command.clone(), "meshpace".to_owned()));
    let pages = pages.chain(subcommands.map(|subcommand| {
        let name = format!("meshpace-{}", subcommand.get_name());
        (subcommand, name)
    }));
    for (page, name) in pages {
        let path = directory.join(format!("{name}.1"));
        let mut text = Vec::new();
        clap_mangen::Man::new(page).title(name.to_uppercase()).render(&mut text)?;
        fs::write(&path, text)?;
        names.push(path);
    }
    Ok(names)
}
