//! `meshpace scenarios`: the scenario files there are.

use crate::REFUSED;
use crate::output::{complain, finish};
use clap::{Args, ValueEnum};
use meshpace_lab::record::table::listing;
use meshpace_lab::scenario::{Scenario, Source};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace scenarios`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Where to look [default: the directory `scenarios` here or in a directory above].
    directory: Option<PathBuf>,
    /// `table` for people, `json` one object per file and line.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Format {
    Table,
    Json,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let files = match arguments.directory.clone().or_else(find) {
        Some(directory) => collect(&directory).map_err(|error| format!("{}: {error}", directory.display())),
        None => Err("there is no directory `scenarios` here or above; name one".to_owned()),
    };
    let mut files = match files {
        Ok(files) => files,
        Err(message) => {
            complain(&message);
            return ExitCode::from(REFUSED);
        }
    };
    files.sort();
    let rows = files.iter().map(|file| describe(file));
    let text = match arguments.format {
        Format::Json => rows
            .map(|[file, title, runs]| json!({"file": file, "title": title, "runs": runs.parse::<u64>().ok()}))
            .map(|object| format!("{object}\n"))
            .collect(),
        Format::Table => listing(["file", "title", "runs"], rows),
    };
    finish(&text)
}

/// The directory `scenarios` nearest above.
fn find() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let found = here.ancestors().map(|above| above.join("scenarios")).find(|path| path.is_dir())?;
    Some(found.strip_prefix(&here).map(Path::to_owned).unwrap_or(found))
}

fn collect(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(collect(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "toml") && !is_claims(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Whether a file belongs to the register and is no scenario itself.
fn is_claims(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".published.toml") || name == "register.toml"
}

/// File, title and number of runs; a scenario that is refused says so instead.
fn describe(file: &Path) -> [String; 3] {
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return [name, error.to_string(), String::new()],
    };
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let source = Source { name: name.clone(), text, sets: Vec::new() };
    match Scenario::read(source, file.parent().unwrap_or(Path::new("")), &stem) {
        Ok(scenario) => {
            let runs = scenario.points.len() as u64 * scenario.seeds;
            [name, scenario.name, runs.to_string()]
        }
        Err(refusal) => [name, format!("refused: {}", refusal.problems[0].message), String::new()],
    }
}
