//! `meshpace dev completions` and `meshpace dev man`: shell completions and manual pages, generated
//! from the declaration of the arguments.

use crate::output::{complain, finish};
use crate::{Cli, FAILED};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use meshpace_lab::record::make_directory;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace dev completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell for which completions are printed.
    shell: Shell,
}

/// The arguments of `meshpace dev man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Write the pages into this directory, one for each subcommand and for each of its
    /// subcommands.
    directory: PathBuf,
}

/// Prints the completions for a shell.
pub fn completions(arguments: &Completions) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "meshpace", &mut text);
    finish(&String::from_utf8_lossy(&text))
}

/// Writes the manual pages and prints their paths.
pub fn man(arguments: &Man) -> ExitCode {
    match write(&arguments.directory) {
        Ok(names) => finish(&names.iter().map(|name| format!("{}\n", name.display())).collect::<String>()),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(FAILED)
        }
    }
}

/// Removes the subcommand `help` from a command and its subcommands, because it would get a page
/// without content.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Collects a command and all commands below it, each with the name of its page.
fn pages_of(command: &Command, name: String, into: &mut Vec<(Command, String)>) {
    // Hidden subcommands, such as older names, have no page.
    let told = command.get_subcommands().filter(|child| !child.is_hide_set());
    let named: Vec<_> = told.map(|child| (child.clone(), format!("{name}-{}", child.get_name()))).collect();
    into.push((command.clone(), name));
    named.into_iter().for_each(|(child, name)| pages_of(&child, name, into));
}

fn write(directory: &Path) -> io::Result<Vec<PathBuf>> {
    make_directory(directory)?;
    let mut command = without_help(Cli::command());
    command.build();
    let mut names = Vec::new();
    let mut pages = Vec::new();
    pages_of(&command, "meshpace".to_owned(), &mut pages);
    for (page, name) in pages {
        let path = directory.join(format!("{name}.1"));
        let mut text = Vec::new();
        clap_mangen::Man::new(page).title(name.to_uppercase()).render(&mut text)?;
        fs::write(&path, text).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        names.push(path);
    }
    Ok(names)
}
