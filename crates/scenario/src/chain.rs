//! The last node of a chain is where flows end: an end that the file puts there stays there when `--set` or a sweep changes
//! `topology.hops`. Otherwise `to = 7` on a chain of 7 hops would stand in the way of every other length. An end that is itself
//! set or swept stays where it was put.

use super::topology::DEFAULT_HOPS;
use meshpace_settings::value::{Kind, Origin, Table};

/// The last node of the chain that a scenario describes; none if it describes something else.
pub fn last_node(root: &Table) -> Option<i64> {
    // Without a topology it is a chain of the usual length.
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

/// Moves the ends that the file has put at node `before` to the last node of the chain that `root` now describes.
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
