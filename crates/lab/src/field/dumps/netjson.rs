//! NetJSON (netjson.org/rfc.html): `NetworkGraph` and `NetworkRoutes`.
//!
//! A metric whose name begins with "etx" is 1 / (there x back). Any other metric, such as the air time of OLSRv2 (RFC 7779), only says which routes the
//! mesh takes: the sum of its costs is least on them.

use super::json::{list, name, number};
use super::{Dump, Heard, Metric, Wrong};
use serde_json::{Map as Object, Value};

/// The share that arrives each way by an ETX.
pub fn by_etx(etx: f64) -> Result<f64, String> {
    if etx < 1.0 { Err(format!("an ETX of {etx}: expected 1 or more")) } else { Ok(etx.sqrt().recip()) }
}

fn metric(object: &Object<String, Value>) -> Metric {
    let metric = object.get("metric").and_then(Value::as_str).unwrap_or_default();
    if metric.to_ascii_lowercase().starts_with("etx") { Metric::Etx } else { Metric::Cost }
}

/// One direction of a link by its cost.
fn add(dump: &mut Dump, from: &str, to: &str, cost: f64) -> Result<(), String> {
    if dump.metric == Metric::Etx {
        return dump.add(from, to, by_etx(cost)?);
    }
    if cost <= 0.0 {
        return Err(format!("a cost of {cost}: expected more than 0"));
    }
    dump.heard(from, to, Heard { cost: Some(cost), ..Heard::default() })
}

/// A `NetworkGraph`: links of the whole mesh.
pub fn graph(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("NetJSON", metric(object));
    // Nodes without a link are in it, too.
    for node in object.get("nodes").and_then(Value::as_array).into_iter().flatten() {
        if let Ok(id) = name(node, "id") {
            let place = dump.node(id);
            if let Ok(label) = name(node, "label") {
                dump.also(place, label);
            }
        }
    }
    for (number_of, link) in list(object, "links")?.iter().enumerate() {
        let mut read = || add(&mut dump, name(link, "source")?, name(link, "target")?, number(link, "cost")?);
        read().map_err(|why| (format!("link {number_of}"), why))?;
    }
    Ok(dump)
}

/// `NetworkRoutes`: those whose destination is the next hop are links of this router.
///
/// olsrd2 0.14.1 differs from the RFC: the list is called `route`, `next` is the address of an interface, and those of the routers are among the `properties`.
pub fn routes(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("NetJSON's routes", metric(object));
    let id = object.get("router_id").and_then(Value::as_str).unwrap_or(super::OWN);
    let own = object.get("properties").and_then(|properties| properties.get("router_addr")).and_then(Value::as_str);
    let own = own.unwrap_or(id);
    let place = dump.witness(own);
    if id != super::OWN {
        dump.also(place, id);
    }
    let name_of_list = if object.contains_key("route") { "route" } else { "routes" };
    for (number_of, route) in list(object, name_of_list)?.iter().enumerate() {
        let mut read = || {
            let (destination, next) = (name(route, "destination")?, name(route, "next")?);
            let (destination, length) = destination.split_once('/').unwrap_or((destination, ""));
            // A network behind a router is no node.
            if !["", "32", "128"].contains(&length) {
                return Ok(());
            }
            let router = route.get("properties").and_then(|properties| properties.get("next_router_addr"));
            let next = router.and_then(Value::as_str).unwrap_or(next);
            dump.route(own, destination, next);
            if destination != next {
                return Ok(());
            }
            let cost = number(route, "cost")?;
            add(&mut dump, own, next, cost)?;
            add(&mut dump, next, own, cost)
        };
        read().map_err(|why| (format!("route {number_of}"), why))?;
    }
    Ok(dump)
}
