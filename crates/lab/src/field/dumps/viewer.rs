//! Files from which the maps of community networks are drawn: `meshviewer.json` (links with
//! `source_tq` and `target_tq`, shares of 0 to 1) and the older `graph.json` (links with `tq`,
//! which is 255 / TQ). Links have a type: radio, a tunnel over the Internet, or a cable ("other").

use super::json::{Lines, list, name, number};
use super::{Dump, LinkReport, Medium, Metric, Wrong};
use serde_json::{Map as Object, Value};

/// Medium for a link's type. `None` if the type does not tell it.
pub fn medium(kind: &str) -> Option<Medium> {
    let kind = kind.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    match () {
        () if has(&["vpn", "tunnel", "l2tp", "wireguard", "fastd"]) => Some(Medium::Tunnel),
        () if has(&["wifi", "wireless", "wlan", "radio"]) => Some(Medium::Radio),
        () if has(&["other", "cable", "ether", "wired", "lan", "fibre", "fiber"]) => Some(Medium::Cable),
        () => None,
    }
}

fn medium_of(link: &Value) -> Option<Medium> {
    match link.get("vpn").and_then(Value::as_bool) {
        Some(true) => Some(Medium::Tunnel),
        _ => link.get("type").and_then(Value::as_str).and_then(medium),
    }
}

/// True if at least one link of the document has a quality, `source_tq`.
pub fn is_measured(object: &Object<String, Value>) -> bool {
    object
        .get("links")
        .and_then(Value::as_array)
        .is_some_and(|links| links.iter().any(|link| link.get("source_tq").is_some()))
}

/// Reads `meshviewer.json`.
pub fn viewer(object: &Object<String, Value>, lines: &Lines<'_>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("meshviewer", Metric::Quality);
    nodes(&mut dump, object.get("nodes"));
    for (place, link) in list(object, "links")?.iter().enumerate() {
        let mut read = || {
            let (source, target) = ends(&mut dump, link)?;
            let report = |share| LinkReport { tq: Some(share), medium: medium_of(link), ..LinkReport::default() };
            dump.report(source, target, report(number(link, "source_tq")?))?;
            match link.get("target_tq") {
                Some(_) => dump.report(target, source, report(number(link, "target_tq")?)),
                None => Ok(()),
            }
        };
        if let Err(why) = read() {
            dump.leave_out(lines.of(&["links"], place), format!("link {place}: {why}"));
        }
    }
    Ok(dump)
}

/// The two ends of a link. Addresses of interfaces that stand beside them are noted as other names
/// of these nodes.
fn ends<'a>(dump: &mut Dump, link: &'a Value) -> Result<(&'a str, &'a str), String> {
    let (source, target) = (name(link, "source")?, name(link, "target")?);
    for (end, key) in [(source, "source_addr"), (target, "target_addr")] {
        if let Ok(address) = name(link, key) {
            let node = dump.node(end);
            dump.also(node, address);
        }
    }
    Ok((source, target))
}

/// Adds all nodes with their host names, including nodes without a link.
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
        let network = info.get("network");
        let names = ["hostname", "mac", "name"].iter().filter_map(|key| name(info, key).ok());
        let of_network = network.and_then(|network| name(network, "mac").ok());
        names.chain(of_network).for_each(|name| dump.also(place, name));
    }
}

/// Reads `graph.json`. Its links refer to positions in a list of nodes.
pub fn graph(batadv: &Object<String, Value>, lines: &Lines<'_>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("graph.json", Metric::Quality);
    let mut names = Vec::new();
    for (place, node) in list(batadv, "nodes")?.iter().enumerate() {
        let found = name(node, "node_id").or_else(|_| name(node, "id"));
        let title = found.map_or_else(|_| place.to_string(), str::to_owned);
        let router = dump.node(&title);
        if let Ok(address) = name(node, "id") {
            dump.also(router, address);
        }
        names.push(title);
    }
    for (place, link) in list(batadv, "links")?.iter().enumerate() {
        let mut read = || {
            let end = |key: &str| {
                let at = number(link, key)?;
                let place = (at >= 0.0 && at.fract() == 0.0).then_some(at as usize);
                place.and_then(|place| names.get(place)).ok_or_else(|| format!("{key} {at} is no node"))
            };
            let cost = number(link, "tq")?;
            if cost < 1.0 {
                return Err(format!("a tq of {cost}: expected 255 / TQ, 1 or more"));
            }
            let (source, target) = (end("source")?, end("target")?);
            let report = || LinkReport { tq: Some(cost.recip()), medium: medium_of(link), ..LinkReport::default() };
            dump.report(source, target, report())?;
            if link.get("bidirect").and_then(Value::as_bool) == Some(true) {
                dump.report(target, source, report())
            } else {
                Ok(())
            }
        };
        if let Err(why) = read() {
            dump.leave_out(lines.of(&["batadv", "links"], place), format!("link {place}: {why}"));
        }
    }
    Ok(dump)
}

/// Error for a `nodelist.json`, which has no links. `None` for other documents, and for lists of
/// nodes with coordinates.
pub fn refused(object: &Object<String, Value>) -> Option<Wrong> {
    let is_list = object.contains_key("nodes") && !object.contains_key("links") && !object.contains_key("edges");
    let has_places = || {
        let text = object.get("nodes").map(Value::to_string).unwrap_or_default();
        ["\"latitude\"", "\"lat\"", "\"x_m\""].iter().any(|key| text.contains(key))
    };
    (is_list && !has_places()).then(|| {
        let why = "a list of nodes without links and places: give meshviewer.json or graph.json, which have the links";
        ("1".to_owned(), why.to_owned())
    })
}

/// Reads links without a share or a cost. They tell only which nodes hear each other.
pub fn plain(object: &Object<String, Value>, lines: &Lines<'_>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("the list of links", Metric::Hops);
    nodes(&mut dump, object.get("nodes"));
    for (place, link) in list(object, "links")?.iter().enumerate() {
        let mut read = || {
            let (source, target) = ends(&mut dump, link)?;
            let report = || LinkReport { medium: medium_of(link), ..LinkReport::default() };
            dump.report(source, target, report())?;
            dump.report(target, source, report())
        };
        if let Err(why) = read() {
            dump.leave_out(lines.of(&["links"], place), format!("link {place}: {why}"));
        }
    }
    Ok(dump)
}
