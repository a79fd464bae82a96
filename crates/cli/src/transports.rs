//! `meshpace transports`: prints the table of named transports.

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
            .map(|entry| {
                let (name, description, source) = (entry.name, entry.description, entry.source);
                json!({"name": name, "description": description, "source": source, "parameters": entry.parameters()})
            })
            .map(|object| format!("{object}\n"))
            .collect(),
        Format::Table => {
            let rows = entries.iter().map(|entry| {
                let [name, description, source] = [entry.name, entry.description, entry.source].map(str::to_owned);
                [name, description, entry.parameters(), source]
            });
            let modifiers = meshpace_transport::names::modifiers();
            let more = modifiers.iter().map(|modifier| {
                [format!("+{}", modifier.name), modifier.description.to_owned(), modifier.source.to_owned()]
            });
            let listed = listing(["transport", "what it is", "pieces and parameters", "source"], rows);
            format!("{listed}\n{}", listing(["any TCP", "what it becomes", "source"], more))
        }
    };
    finish(&text)
}
