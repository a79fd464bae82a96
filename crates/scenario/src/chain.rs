//! Ends of flows at the last node of a chain. If the file puts an end there, the end follows the
//! last node when `--set` or a sweep changes `topology.hops`. Otherwise a file with `to = 7` and a
//! chain of 7 hops could not be used with any other length. An end that is itself set or swept
//! keeps its node.

use super::topology::DEFAULT_HOPS;
use meshpace_settings::value::{Kind, Origin, Table};

/// Last node of the chain that a scenario describes; `None` if its topology is not a chain.
pub fn last_node(root: &Table) -> Option<i64> {
    // A scenario without a topology is a chain of the default length.
    let nothing = Table::default();
    let topology = match root.get("topology").map(|value| &value.kind) {
        Some(Kind::Table(topology)) => topology,
        None => &nothing,
        _ => return None,
    };
    let is_chain = match topology.get("kind").map(|value| &value.kind) {
        Some(Kind::String(kind)) => kind == "chain",
        other => other.is_none(),
    };
    let hops = match topology.get("hops").map(|value| &value.kind) {
        Some(Kind::Integer(hops)) => Some(*hops),
        Some(_) => None,
        None => Some(DEFAULT_HOPS as i64),
    };
    hops.filter(|_| is_chain)
}

/// Moves the ends that the file puts at node `before` to the last node of the chain that `root` now
/// describes.
pub fn carry_ends(root: &mut Table, before: Option<i64>) {
    let (Some(before), Some(after)) = (before, last_node(root)) else { return };
    let Some(Kind::Array(flows)) = root.get_mut("flow").map(|value| &mut value.kind) else { return };
    for flow in flows {
        let Kind::Table(flow) = &mut flow.kind else { continue };
        for end in ["from", "to"] {
            if let Some(value) = flow.get_mut(end)
                && value.kind == Kind::Integer(before)
                && matches!(value.origin, Origin::File(_))
            {
                value.kind = Kind::Integer(after);
            }
        }
    }
}
