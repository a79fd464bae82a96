//! `meshpace transports`: prints the table of named transports.

use crate::output::finish;
use clap::{Args, ValueEnum};
use meshpace_lab::record::table::{columns, entry};
use serde_json::json;
use std::process::ExitCode;

/// The arguments of `meshpace transports`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Choose the output: `table` for people, `json` with one object per transport and line.
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
            let width = columns();
            let list = entries.iter().map(|it| block(width, it.name, it.description, &it.parameters(), it.source));
            let modifiers = meshpace_transport::names::modifiers();
            let added =
                modifiers.iter().map(|it| block(width, &format!("+{}", it.name), it.description, "", it.source));
            format!(
                "{}\nThese can be added to the name of any TCP:\n{}",
                list.collect::<String>(),
                added.collect::<String>()
            )
        }
    };
    finish(&text)
}

/// Entry of a transport or modifier: its name, description, parameters and source.
fn block(width: u16, name: &str, description: &str, parameters: &str, source: &str) -> String {
    let source = if source.is_empty() { String::new() } else { format!("source: {source}") };
    entry(width, name, &[description, parameters, &source])
}
