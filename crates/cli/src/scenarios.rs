//! `meshpace scenarios`: lists the published experiments, and the scenario files of a directory.

use crate::REFUSED;
use crate::output::{complain, finish, note};
use clap::{Args, ValueEnum};
use meshpace_lab::record::table::listing;
use meshpace_lab::register::{Effort, Experiment, Register};
use meshpace_scenario::{Scenario, Source};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace scenarios`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Directory to list [default: `scenarios` in the current directory or the nearest one above;
    /// if there is none, the built-in experiments].
    directory: Option<PathBuf>,
    /// Choose the output: `table` for people, `json` with one object per line for each experiment
    /// and each file.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Format {
    Table,
    Json,
}

/// One line of the list.
struct Row {
    /// Id of the experiment, if the line is an experiment.
    id: Option<String>,
    /// File of the scenario or experiment; `None` if the experiment has no file yet.
    file: Option<String>,
    title: String,
    /// Number of runs of a scenario file.
    runs: Option<u64>,
    /// Number of runs at quick and at paper quality. Only an experiment with runs of its own has
    /// it.
    own: Option<[u64; 2]>,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match rows(arguments.directory.clone().or_else(find)) {
        Ok((experiments, files)) => finish(&match arguments.format {
            Format::Json => experiments.iter().chain(&files).map(|row| format!("{}\n", row.json())).collect(),
            Format::Table => table(experiments, files),
        }),
        Err(message) => {
            complain(&message);
            ExitCode::from(REFUSED)
        }
    }
}

fn rows(directory: Option<PathBuf>) -> Result<(Vec<Row>, Vec<Row>), String> {
    let Some(directory) = directory else { return Ok((experiments(&Register::embedded()), Vec::new())) };
    let name = directory.display();
    let mut files = collect(&directory).map_err(|error| {
        // The name may be that of an experiment, or of all experiments of a paper, as `reproduce`
        // accepts it.
        let asked = name.to_string();
        let is_asked = |id: &str| id == asked || id.strip_prefix(&asked).is_some_and(|rest| rest.starts_with('-'));
        let is_paper = Register::embedded().experiments.iter().any(|experiment| is_asked(&experiment.published.id));
        let way = if is_paper {
            format!("; meshpace scenarios without a directory lists the experiments, and meshpace reproduce {name} runs these")
        } else {
            match error.kind() {
                io::ErrorKind::NotADirectory => format!("; give a directory to list, or run this file with meshpace run {name}"),
                _ => "; meshpace scenarios without a directory lists the published experiments".to_owned(),
            }
        };
        format!("{name}: {error}{way}")
    })?;
    files.sort();
    let files: Vec<Row> = files.iter().map(|file| describe(file)).collect();
    if !directory.join("register.toml").is_file() {
        if files.is_empty() {
            note(&format!("{name}: the directory and its subdirectories have no .toml file"));
        }
        return Ok((Vec::new(), files));
    }
    let register = Register::read(&directory).map_err(|problems| problems.join("\n"))?;
    Ok((experiments(&register), files))
}

impl Row {
    fn json(&self) -> Value {
        let mut object = json!({"file": self.file, "title": self.title, "runs": self.runs});
        if let Some(id) = &self.id {
            object["experiment"] = json!(id);
            object["runs"] = json!(self.own.map(|[_, paper]| paper));
            object["runs_quick"] = json!(self.own.map(|[quick, _]| quick));
        }
        object
    }
}

fn table(experiments: Vec<Row>, files: Vec<Row>) -> String {
    let count = |runs: Option<u64>| runs.map(|runs| runs.to_string()).unwrap_or_default();
    let mut text = String::new();
    if !experiments.is_empty() {
        let row = |row: Row| {
            let [quick, paper] = row.own.map_or([None, None], |own| own.map(Some));
            [row.id.unwrap_or_default(), row.title, count(quick), count(paper)]
        };
        text += &listing(["experiment", "title", "quick", "paper runs"], experiments.into_iter().map(row));
        text += "\n";
    }
    if !files.is_empty() {
        let row = |row: Row| [row.file.unwrap_or_default(), row.title, count(row.runs)];
        text += &listing(["file", "title", "runs"], files.into_iter().map(row));
    }
    text
}

/// Returns all experiments in the order of the papers, followed by those that have no file yet.
fn experiments(register: &Register) -> Vec<Row> {
    let runs = |experiment: &Experiment, effort| {
        let runs = register.runs(experiment, effort).ok().flatten()?;
        (runs.id == experiment.published.id).then(|| runs.points().count() as u64 * runs.scenario.seeds)
    };
    let row = |experiment: &Experiment| {
        let published = &experiment.published;
        let own = runs(experiment, Effort::Quick).zip(runs(experiment, Effort::Paper));
        let aside = match (&published.runs, &published.unjudged) {
            (_, Some(_)) => " (cannot be judged)".to_owned(),
            (Some(owner), _) => format!(" (the runs of {owner})"),
            (None, None) => String::new(),
        };
        Row {
            id: Some(published.id.clone()),
            file: Some(experiment.file.clone()),
            title: format!("{}{aside}", published.title),
            runs: None,
            own: own.map(|(quick, paper)| [quick, paper]),
        }
    };
    let missing = |id: &String| Row {
        id: Some(id.clone()),
        file: None,
        title: "not in the register yet".to_owned(),
        runs: None,
        own: None,
    };
    register.experiments.iter().map(row).chain(register.missing.iter().map(missing)).collect()
}

/// Finds the directory `scenarios` in the current directory or in the nearest directory above.
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
        } else if path.extension().is_some_and(|extension| extension == "toml") && !is_of_register(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

/// True if a file belongs to the register and is not itself a scenario.
fn is_of_register(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".published.toml") || name == "register.toml"
}

/// Describes a file by its name, title and number of runs. A scenario with errors has the error in
/// place of the title.
fn describe(file: &Path) -> Row {
    let name = file.display().to_string();
    let row = |title: String, runs| Row { id: None, file: Some(name.clone()), title, runs, own: None };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return row(error.to_string(), None),
    };
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let source = Source { name: name.clone(), text, sets: Vec::new() };
    match Scenario::read(source, file.parent().unwrap_or(Path::new("")), &stem) {
        Ok(scenario) => {
            let runs = scenario.points.len() as u64 * scenario.seeds;
            row(scenario.name, Some(runs))
        }
        Err(refusal) => row(format!("refused: {}", refusal.problems[0].message), None),
    }
}
