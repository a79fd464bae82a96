//! `[[program]]`: a command that `meshpace emulate` runs in a node. `meshpace run` ignores it.

use super::reader::Reader;
use meshpace_core::NodeId;
use meshpace_settings::value::{Kind, Value};

/// A program of an emulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Node in which the program runs.
    pub node: NodeId,
    /// Command line for a shell.
    pub command: String,
}

/// Reads every `[[program]]`, in order.
pub fn read(root: &mut Reader<'_>, nodes: usize) -> Vec<Program> {
    let Some(value) = root.get("program") else { return Vec::new() };
    let Kind::Array(items) = &value.kind else {
        root.report_invalid("program", format!("expected tables, found {}", value.describe()), "expected [[program]]");
        return Vec::new();
    };
    let mut programs = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let path = format!("program.{number}");
        let Value { kind: Kind::Table(table), origin } = item else {
            let message = format!("{path}: expected a table, found {}", item.describe());
            root.problems().at(&item.origin, message, "expected [[program]]");
            continue;
        };
        let mut keys = Reader::new(table, Some(origin), path, root.problems());
        for (key, expected) in [("node", "the number of a node"), ("command", "a command, such as \"iperf3 -s\"")] {
            if keys.get(key).is_none() {
                keys.report_invalid(key, "is missing", format!("expected {key} = {expected}"));
            }
        }
        // If there are no nodes, the topology was refused, and that has been reported.
        let node = keys.integer("node", 0..=nodes.max(1) as u64 - 1, "a node");
        let command = keys.text("command").map(str::trim);
        if command == Some("") {
            keys.report_invalid("command", "nothing to run", "expected a command, such as \"iperf3 -s\"");
        }
        if let (Some(node), Some(command)) = (node, command) {
            programs.push(Program { node: NodeId(node as u16), command: command.to_owned() });
        }
        keys.finish("a program");
    }
    programs
}
