//! Formats values as TOML text.

use meshpace_settings::value::{Entry, Kind, Value};

/// Text of the value in TOML.
pub fn toml_text(value: &Value) -> String {
    match &value.kind {
        Kind::String(text) => format!("{text:?}"),
        Kind::Float(number) => format!("{number:?}"),
        Kind::Array(items) => format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", ")),
        Kind::Table(table) if table.entries.is_empty() => "{}".to_owned(),
        Kind::Table(table) => {
            let entry = |entry: &Entry| {
                let is_bare = entry.key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
                let key = if is_bare { entry.key.clone() } else { format!("{:?}", entry.key) };
                format!("{key} = {}", toml_text(&entry.value))
            };
            format!("{{ {} }}", table.entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        _ => value.brief(),
    }
}
