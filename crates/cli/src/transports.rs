//! `meshpace transports`: the table of named transports.

use crate::output::finish;
use clap::{Args, ValueEnum};
use meshpace_lab::record::table::listing;
use serde_json::json;
use std::process::ExitCode;

/// The arguments of `meshpace transports`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// `table` for people, `json` one object per transport and line.
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
    let entries = meshpace_transport::names::table();
    let text = match arguments.format {
        Format::Json => entries
            .iter()
            .map(|entry| json!({"name": entry.name, "description": entry.description, "source": entry.source}))
            .map(|object| format!("{object}\n"))
            .collect(),
        Format::Table => {
            let rows = entries.iter().map(|entry| [entry.name, entry.description, entry.source].map(str::to_owned));
            listing(["transport", "what it is", "source"], rows)
        }
    };
    finish(&text)
}
