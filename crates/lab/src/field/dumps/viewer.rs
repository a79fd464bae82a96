//! Files from which the maps of community networks are drawn: `meshviewer.json` (links with `source_tq` and `target_tq`, shares of 0 to 1)
//! and the older `graph.json` (links with `tq`, which is 255 / TQ). Links through a tunnel over the Internet are left out.

use super::json::{list, name, number};
use super::{Dump, Heard, Metric, Wrong};
use serde_json::{Map as Object, Value};

fn is_radio(link: &Value) -> bool {
    let kind = link.get("type").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    !(kind.contains("vpn") || kind.contains("tunnel") || link.get("vpn").and_then(Value::as_bool) == Some(true))
}

/// True if links of the document have a quality, `source_tq`.
pub fn is_measured(object: &Object<String, Value>) -> bool {
    object
        .get("links")
        .and_then(Value::as_array)
        .is_some_and(|links| links.iter().any(|link| link.get("source_tq").is_some()))
}

/// `meshviewer.json`.
pub fn viewer(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("meshviewer", Metric::Quality);
    nodes(&mut dump, object.get("nodes"));
    for (place, link) in list(object, "links")?.iter().enumerate().filter(|(_, link)| is_radio(link)) {
        let mut read = || {
            let (source, target) = (name(link, "source")?, name(link, "target")?);
            dump.add(source, target, number(link, "source_tq")?)?;
            match link.get("target_tq") {
                Some(_) => dump.add(target, source, number(link, "target_tq")?),
                None => Ok(()),
            }
        };
        read().map_err(|why| (format!("link {place}"), why))?;
    }
    Ok(dump)
}

/// Those with their host names, also without a link.
fn nodes(dump: &mut Dump, nodes: Option<&Value>) {
    let entries: Vec<&Value> = match nodes {
        Some(Value::Array(nodes)) => nodes.iter().collect(),
        Some(Value::Object(nodes)) => nodes.values().collect(),
        _ => Vec::new(),
    };
    for node in entries {
        let info = node.get("nodeinfo").unwrap_or(node);
        let Ok(id) = name(info, "node_id").or_else(|_| name(info, "id")) else { continue };
        let place = dump.node(id);
        if let Ok(host) = name(info, "hostname") {
            dump.also(place, host);
        }
    }
}

/// `graph.json`: links between places in a list of nodes.
pub fn graph(batadv: &Object<String, Value>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("graph.json", Metric::Quality);
    let names: Vec<String> = list(batadv, "nodes")?
        .iter()
        .enumerate()
        .map(|(place, node)| {
            name(node, "node_id").or_else(|_| name(node, "id")).map_or_else(|_| place.to_string(), str::to_owned)
        })
        .collect();
    names.iter().for_each(|name| {
        dump.node(name);
    });
    for (place, link) in list(batadv, "links")?.iter().enumerate().filter(|(_, link)| is_radio(link)) {
        let mut read = || {
            let end = |key: &str| {
                let at = number(link, key)?;
                names.get(at as usize).ok_or_else(|| format!("{key} {at} is no node"))
            };
            let cost = number(link, "tq")?;
            if cost < 1.0 {
                return Err(format!("a tq of {cost}: expected 255 / TQ, 1 or more"));
            }
            let (source, target) = (end("source")?, end("target")?);
            dump.add(source, target, cost.recip())?;
            if link.get("bidirect").and_then(Value::as_bool) == Some(true) {
                dump.add(target, source, cost.recip())
            } else {
                Ok(())
            }
        };
        read().map_err(|why| (format!("link {place}"), why))?;
    }
    Ok(dump)
}

/// A `nodelist.json` has no links.
pub fn refused(object: &Object<String, Value>) -> Option<Wrong> {
    let is_list = object.contains_key("nodes") && !object.contains_key("links") && !object.contains_key("edges");
    let has_places = || {
        let text = object.get("nodes").map(Value::to_string).unwrap_or_default();
        ["\"latitude\"", "\"lat\"", "\"x_m\""].iter().any(|key| text.contains(key))
    };
    (is_list && !has_places()).then(|| {
        let why =
            "a list of nodes without links and places: give meshviewer.json or graph.json, which say who hears whom";
        ("1".to_owned(), why.to_owned())
    })
}

/// Links with neither a share nor a cost, so that it is at least known who hears whom.
pub fn plain(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("the list of links", Metric::Hops);
    nodes(&mut dump, object.get("nodes"));
    for (place, link) in list(object, "links")?.iter().enumerate().filter(|(_, link)| is_radio(link)) {
        let mut read = || {
            let (source, target) = (name(link, "source")?, name(link, "target")?);
            dump.heard(source, target, Heard::default())?;
            dump.heard(target, source, Heard::default())
        };
        read().map_err(|why| (format!("link {place}"), why))?;
    }
    Ok(dump)
}
