//! JSON Schema of scenarios, for editors (Even Better TOML, Taplo and others).

use super::{Form, Key, all};
use serde_json::{Map, Value, json};

/// The schema (draft 2020-12 of JSON Schema).
pub fn schema() -> Value {
    let keys = all();
    let mut schema = table(&keys, "");
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("meshpace scenario");
    schema
}

/// Schema of the table at `path`. An empty path is the whole scenario.
fn table(keys: &[Key], path: &str) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let below = if path.is_empty() { Some(key.name.as_str()) } else { key.name.strip_prefix(path) };
        let Some(name) = below.map(|name| name.trim_start_matches('.')).filter(|name| is_one(name)) else { continue };
        if path.is_empty() || key.name.len() > path.len() && key.name.as_bytes()[path.len()] == b'.' {
            properties.insert(name.to_owned(), property(keys, key));
        }
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn is_one(name: &str) -> bool {
    !name.is_empty() && !name.contains('.')
}

fn property(keys: &[Key], key: &Key) -> Value {
    let below = format!("{}.", key.name);
    let has_keys = keys.iter().any(|other| other.name.starts_with(&below));
    let mut any = Vec::new();
    if key.name == "sweep" {
        let mut sweep = table(keys, "sweep");
        sweep["additionalProperties"] = json!({"type": "array", "minItems": 1});
        any.extend([sweep.clone(), json!({"type": "array", "items": sweep})]);
    } else if key.is_list_of_tables() {
        any.push(json!({"type": "array", "items": table(keys, &key.name)}));
    } else {
        match &key.written {
            Some(written) => any.push(by_words(written)),
            None => any.extend(key.forms.iter().filter(|form| **form != Form::Table).map(by_form)),
        }
        if has_keys {
            any.push(table(keys, &key.name));
        }
    }
    let mut property = match any.len() {
        1 => any.remove(0),
        _ => json!({"anyOf": any}),
    };
    property["description"] = match &key.default {
        Some(default) => json!(format!("{} ({}). Default: {default}", key.meaning, key.takes())),
        None => json!(format!("{} ({})", key.meaning, key.takes())),
    };
    property
}

/// Schema of a key whose accepted values `keys/table.txt` describes in words.
fn by_words(written: &str) -> Value {
    match written.split([' ', ',']).next().unwrap_or_default() {
        "number" if written == "number of a node" => json!({"type": "integer", "minimum": 0}),
        "number" => json!({"type": "number"}),
        "whole" => json!({"type": "integer", "minimum": 0}),
        "name" | "time" | "size" => json!({"type": "string"}),
        "list" | "pair" => json!({"type": "array"}),
        _ => json!({}),
    }
}

fn by_form(form: &Form) -> Value {
    match form {
        Form::Text => json!({"type": "string"}),
        Form::Flag => json!({"type": "boolean"}),
        Form::Whole { range, .. } => {
            json!({"type": "integer", "minimum": range.least as u64, "maximum": range.most as u64})
        }
        Form::Wholes { count, .. } => {
            json!({"type": "array", "items": {"type": "integer"}, "minItems": count, "maxItems": count})
        }
        Form::Number { range } => {
            let mut number = json!({"type": "number"});
            let ends = [("inimum", range.least, range.excludes_least), ("aximum", range.most, range.excludes_most)];
            for (name, end, is_outside) in ends.into_iter().filter(|(_, end, _)| end.is_finite()) {
                let name = if is_outside { format!("exclusiveM{name}") } else { format!("m{name}") };
                number[name] = json!(end);
            }
            number
        }
        Form::Quantity { dimension, range } => {
            let minus = if range.least < 0.0 { "[-+]?" } else { "[+]?" };
            let units = dimension.units().join("|");
            let pattern = format!("^ *{minus}([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)? *({units}) *$");
            json!({"type": "string", "pattern": pattern})
        }
        Form::Choice(names) => json!({"enum": names}),
        Form::Table => json!({"type": "object"}),
    }
}
