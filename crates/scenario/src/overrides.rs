//! `--set key=value` on the command line.

use super::chain;
use super::path::Path;
use meshpace_settings::diagnostic::{Problem, Problems};
use meshpace_settings::value::{Kind, Origin, Table, Value};
use toml::de::DeValue;

/// Form of an argument.
const FORM: &str = "write --set key=value, such as --set topology.hops=4";

/// Applies the arguments in order.
///
/// An argument for a key that the sweep varies fixes that key: its axis leaves the sweep. One that merely touches what
/// the sweep varies (a flow of `flow.transport`, say) is refused, because the sweep would undo it. Ends of flows follow the
/// last node of a chain, see [`chain`].
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
            refuse(format!("{argument}: there is no = in it"), Some(FORM));
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

/// A TOML value if it is one, otherwise the text itself as a string.
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

/// Of several sweeps no key can leave: the same points would be there more than once.
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
