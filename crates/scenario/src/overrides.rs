//! `--set key=value` arguments of the command line.

use super::chain;
use super::path::Path;
use meshpace_settings::diagnostic::{Problem, Problems};
use meshpace_settings::value::{Kind, Origin, Table, Value};
use toml::de::DeValue;

/// Advice about the form of an argument.
const FORM: &str = "write --set key=value, such as --set topology.hops=4";

/// Applies the arguments in order.
///
/// An argument for a key that the sweep varies fixes that key, and removes its axis from the sweep.
/// An argument that overlaps with a swept key is refused, because the sweep would undo it: for
/// example, it sets one flow's transport while the sweep varies `flow.transport`. Ends of flows
/// follow the last node of a chain; see [`chain`].
pub fn apply(root: &mut Table, arguments: &[String], problems: &Problems) {
    let last = chain::last_node(root);
    for (index, argument) in arguments.iter().enumerate() {
        let origin = Origin::Set(index);
        let refuse = |message: String, help: Option<&str>| {
            problems.add(Problem {
                message,
                origin: Some(origin.clone()),
                expected: String::new(),
                help: help.map(str::to_owned),
                point: None,
            });
        };
        let Some((key, text)) = argument.split_once('=') else {
            refuse(format!("{argument}: the = is missing"), Some(FORM));
            continue;
        };
        let path = match Path::parse(key) {
            Ok(path) => path,
            Err(message) => {
                refuse(message, Some(FORM));
                continue;
            }
        };
        let outcome = leave_sweep(root, &path).and_then(|()| {
            let value = parse_value(text.trim(), &origin);
            path.set(root, &origin, &value).map_err(|why| format!("{}: {why}", key.trim()))
        });
        if let Err(message) = outcome {
            refuse(message, None);
        }
    }
    chain::carry_ends(root, last);
}

/// Parses a TOML value. Any other text is taken as a string.
fn parse_value(text: &str, origin: &Origin) -> Value {
    match DeValue::parse(text) {
        Ok(value) => Value::from_toml(value.get_ref(), value.span(), &|_| origin.clone()),
        Err(_) => Value { kind: Kind::String(text.to_owned()), origin: origin.clone() },
    }
}

fn leave_sweep(root: &mut Table, path: &Path) -> Result<(), String> {
    let sweep = match root.get_mut("sweep").map(|value| &mut value.kind) {
        Some(Kind::Table(sweep)) => sweep,
        Some(Kind::Array(sweeps)) => return spare_sweeps(sweeps, path),
        _ => return Ok(()),
    };
    let axes: Vec<String> = sweep.entries.iter().map(|entry| entry.key.clone()).collect();
    for axis in axes {
        match Path::parse(&axis) {
            Ok(swept) if swept == *path => drop(sweep.remove(&axis)),
            Ok(swept) if swept.overlaps(path) => {
                return Err(format!("the sweep over {axis} would undo this: set {axis}, or change the sweep"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses an argument for a key that one of several sweeps varies. Without the key, several sweeps
/// would contain the same points.
fn spare_sweeps(sweeps: &[Value], path: &Path) -> Result<(), String> {
    for sweep in sweeps {
        let Kind::Table(sweep) = &sweep.kind else { continue };
        for axis in &sweep.entries {
            if Path::parse(&axis.key).is_ok_and(|swept| swept.overlaps(path)) {
                return Err(format!("several [[sweep]] over {} would undo this: change them", axis.key));
            }
        }
    }
    Ok(())
}
