//! `meshpace dev validate`: compares with ns-2, ns-3 and theory, and writes the page of results.

use crate::output::{complain, failed, finish, results};
use crate::runner::processors;
use crate::{FAILED, REFUSED};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use meshpace_lab::record::{make_directory, write_whole};
use meshpace_lab::validate::{COMPARISONS, Comparison, Heading, Options, Table, kit, markdown, text};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name of the page in the directory of `--out`.
const PAGE: &str = "results.md";

/// The arguments of `meshpace dev validate`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Comparisons to run: micro, chain_static_routes, chain_aodv, chain_counts, chain_paced_udp,
    /// quiet_train, cross, parallel, agents, estimator, saturation, ieee, ht, field [default: all].
    /// `field DIR` instead compares the paths of a mesh that was measured with kit/meshpace-kit.
    names: Vec<String>,
    /// Runs per point [default: as many as the reference has, but at least 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..))]
    seeds: Option<u16>,
    /// Compare only a few points of each comparison: those that cost least, and those whose error
    /// is closest to the limit of their rule.
    #[arg(long)]
    sample: bool,
    /// Run this number of simulations at the same time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Write the tables as results.md into this directory, replacing an existing file.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    if let [name, directory] = &arguments.names[..]
        && name == "field"
    {
        return measured(Path::new(directory));
    }
    let chosen = match choose(&arguments.names) {
        Ok(chosen) => chosen,
        Err(message) => {
            complain(&message);
            return ExitCode::from(REFUSED);
        }
    };
    if let Some(directory) = &arguments.out
        && let Err(error) = make_directory(directory)
    {
        complain(&format!("--out: {error}"));
        return ExitCode::from(REFUSED);
    }
    match compare(arguments, &chosen) {
        Ok(tables) => verdict(&tables, arguments.sample),
        Err(error) => failed(&error),
    }
}

/// Compares the paths of a measured mesh.
fn measured(directory: &Path) -> ExitCode {
    match kit::measured(directory) {
        Ok((table, notes)) => {
            notes.iter().for_each(|note| complain(note));
            finish(&text(&table))
        }
        Err(why) => {
            complain(&why);
            ExitCode::from(REFUSED)
        }
    }
}

fn choose(names: &[String]) -> Result<Vec<&'static Comparison>, String> {
    if names.is_empty() {
        return Ok(COMPARISONS.iter().collect());
    }
    let find = |name: &String| {
        COMPARISONS.iter().find(|comparison| comparison.name == name).ok_or_else(|| {
            let known: Vec<&str> = COMPARISONS.iter().map(|comparison| comparison.name).collect();
            format!("there is no comparison {name}; expected one of {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

fn compare(arguments: &Arguments, chosen: &[&Comparison]) -> io::Result<Vec<Table>> {
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg}, {pos} runs, {elapsed} elapsed").expect("a right template"),
    );
    let options = Options {
        seeds: arguments.seeds.map(usize::from),
        jobs: usize::from(arguments.jobs.unwrap_or_else(processors)),
        sample: arguments.sample,
        progress: &|_| bar.inc(1),
    };
    let mut tables = Vec::new();
    for comparison in chosen {
        bar.set_message(comparison.name);
        let made = (comparison.run)(&options);
        for table in &made {
            bar.suspend(|| results(&format!("{}\n", text(table))))?;
        }
        tables.extend(made);
    }
    bar.finish_and_clear();
    if let Some(directory) = &arguments.out {
        let page = markdown(&Heading { command: &command(arguments), version: env!("CARGO_PKG_VERSION") }, &tables);
        write_whole(directory, PAGE, &page)?;
    }
    Ok(tables)
}

/// Command that creates the page again. It omits the number of threads, which does not affect the
/// page.
fn command(arguments: &Arguments) -> String {
    let mut words = vec!["meshpace dev validate".to_owned()];
    words.extend(arguments.names.iter().cloned());
    words.extend(arguments.sample.then(|| "--sample".to_owned()));
    words.extend(arguments.seeds.map(|seeds| format!("--seeds {seeds}")));
    words.extend(arguments.out.as_ref().map(|directory| format!("--out {}", directory.display())));
    words.join(" ")
}

fn verdict(tables: &[Table], is_sample: bool) -> ExitCode {
    let (met, judged) = tables.iter().map(Table::score).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let of_what = if is_sample { " of the sample (without --sample all are compared)" } else { "" };
    if met == judged {
        complain(&format!("all {judged} points{of_what} met"));
        return ExitCode::SUCCESS;
    }
    complain(&format!("{} of {judged} points{of_what} not met", judged - met));
    ExitCode::from(FAILED)
}
