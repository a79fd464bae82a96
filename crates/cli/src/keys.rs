//! `meshpace keys`: lists every key that a scenario may have, and prints a JSON Schema of
//! scenarios.

use crate::output::{complain, finish, note};
use crate::{REFUSED, words};
use clap::{Args, ValueEnum};
use meshpace_lab::record::table::{columns, entry};
use meshpace_scenario::keys::{self, Form, Key, Level};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The arguments of `meshpace keys`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Show only this section, such as `radio` or `flow.transport`, or this key [default: all].
    section: Option<String>,
    /// Show only keys with this word in their name, meaning, values or source. Terms of other
    /// programs are also found, such as reno, 802.11n, Mbps or bulk.
    #[arg(long, value_name = "WORD", conflicts_with_all = ["section", "schema"])]
    search: Option<String>,
    /// Choose the output: `table` for people, `json` with one object per key and line.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print a JSON Schema of scenario files, for editors.
    #[arg(long, conflicts_with_all = ["section", "format"])]
    schema: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Format {
    Table,
    Json,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    if arguments.schema {
        return finish(&format!("{:#}\n", keys::schema()));
    }
    let found = match (&arguments.search, &arguments.section) {
        (Some(word), _) => search(word),
        (None, None) => Ok(keys::all()),
        (None, Some(section)) => keys::of(section),
    };
    let found = match found {
        // Results of a search keep the order of the search, which puts the best matches first.
        Ok(found) if arguments.search.is_some() => found,
        Ok(mut found) => {
            found.sort_by_key(|key| key.level);
            found
        }
        Err(message) => {
            complain(&message);
            return ExitCode::from(REFUSED);
        }
    };
    finish(&match arguments.format {
        Format::Json => found.iter().map(|key| format!("{}\n", object(key))).collect(),
        Format::Table => {
            let (basic, expert): (Vec<Key>, Vec<Key>) = found.into_iter().partition(|key| key.level == Level::Basic);
            match (basic.is_empty(), expert.is_empty()) {
                (false, false) => format!("{}\nFor experts:\n{}", table(&basic), table(&expert)),
                (false, true) => table(&basic),
                (true, _) => table(&expert),
            }
        }
    })
}

/// Finds the keys that match a word. Keys that the list of common words assigns to it come first.
/// Keys with the word in their name follow, and then keys with it in their meaning, values, source
/// or default.
fn search(word: &str) -> Result<Vec<Key>, String> {
    let (small, meant) = (word.trim().to_lowercase(), words::keys(word));
    let place = |key: &Key| {
        let anywhere = [key.takes(), key.meaning.clone(), key.source.clone(), key.default.clone().unwrap_or_default()];
        match () {
            () if meant.contains(&key.name.as_str()) => meant.iter().position(|name| *name == key.name),
            () if key.name.to_lowercase().contains(&small) => Some(meant.len()),
            () if anywhere.iter().any(|text| text.to_lowercase().contains(&small)) => Some(meant.len() + 1),
            () => None,
        }
    };
    let mut found: Vec<(usize, Key)> =
        keys::all().into_iter().filter_map(|key| place(&key).map(|place| (place, key))).collect();
    // The sort is stable, so keys of the same rank keep their order.
    found.sort_by_key(|(place, _)| *place);
    let instead = words::instead(word);
    if let Some(write) = &instead {
        note(&format!("{word}: {write}"));
    }
    match (found.is_empty(), instead) {
        (true, None) => {
            Err(format!("no key matches {word}; meshpace keys lists all keys, and meshpace transports all transports"))
        }
        _ => Ok(found.into_iter().map(|(_, key)| key).collect()),
    }
}

/// Formats keys below each other. The first line of each has its name and default, and the
/// permitted values if they fit. Otherwise that line has the unit, and the permitted values are in
/// a line below.
fn table(keys: &[Key]) -> String {
    let width = columns();
    let block = |key: &Key| {
        let default = key.default.as_ref().map(|default| format!(" = {default}")).unwrap_or_default();
        let (name, takes) = (&key.name, key.takes());
        let whole = format!("{name}{default}  {takes}");
        let source = if key.source.is_empty() { String::new() } else { format!("source: {}", key.source) };
        if whole.chars().count() <= usize::from(width) {
            return entry(width, &whole, &[&key.meaning, &source]);
        }
        let head = format!("{name}{default}  {}", units(&key.forms));
        entry(width, head.trim_end(), &[&key.meaning, &format!("takes: {takes}"), &source])
    };
    keys.iter().map(block).collect()
}

/// Units of these forms in brackets; empty if they have none.
fn units(forms: &[Form]) -> String {
    let mut units: Vec<&str> = Vec::new();
    for form in forms {
        let unit = match form {
            Form::Quantity { dimension, .. } => dimension.units().first().copied().unwrap_or_default(),
            Form::Whole { what, .. } | Form::Wholes { what, .. } => what,
            _ => continue,
        };
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    if units.is_empty() { String::new() } else { format!("[{}]", units.join(", ")) }
}

fn object(key: &Key) -> Value {
    let forms: Vec<Value> = key.forms.iter().map(form).collect();
    let (name, default, meaning, source) = (&key.name, &key.default, &key.meaning, &key.source);
    let level = if key.level == Level::Basic { "basic" } else { "expert" };
    json!({
        "key": name, "takes": key.takes(), "forms": forms, "default": default, "meaning": meaning, "source": source, "level": level
    })
}

/// Describes one form of a value for programs.
fn form(form: &Form) -> Value {
    match form {
        Form::Text => json!({"kind": "string"}),
        Form::Flag => json!({"kind": "flag"}),
        Form::Whole { range, what } => {
            json!({"kind": "whole", "min": range.least as u64, "max": range.most as u64, "unit": what})
        }
        Form::Wholes { count, what } => json!({"kind": "wholes", "count": count, "unit": what}),
        Form::Number { range } => json!({"kind": "number", "min": range.least, "max": range.most}),
        Form::Quantity { dimension, range } => {
            json!({"kind": "quantity", "units": dimension.units(), "example": dimension.example_in(range)})
        }
        Form::Choice(names) => json!({"kind": "choice", "choices": names}),
        Form::Table => json!({"kind": "table"}),
    }
}
