//! NetJSON (netjson.org/rfc.html): `NetworkGraph` and `NetworkRoutes`.
//!
//! A metric whose name begins with "etx" is 1 / (there x back), where the factors are the shares
//! that arrive in each direction. Any other metric, such as the air time of OLSRv2 (RFC 7779), only
//! determines the routes of the mesh, which have the smallest sum of costs. The `local_addresses`
//! of a node are other addresses of the same router.

use super::json::{Lines, list, name, number};
use super::{Dump, LinkReport, Medium, Metric, Wrong};
use serde_json::{Map as Object, Value};

/// Share that arrives in each direction, computed from an ETX.
pub fn by_etx(etx: f64) -> Result<f64, String> {
    if etx >= 1.0 { Ok(etx.sqrt().recip()) } else { Err(format!("an ETX of {etx}: expected 1 or more")) }
}

fn metric(object: &Object<String, Value>) -> Metric {
    let metric = object.get("metric").and_then(Value::as_str).unwrap_or_default();
    if metric.to_ascii_lowercase().starts_with("etx") { Metric::Etx } else { Metric::Cost }
}

/// Adds one direction of a link with its cost.
fn add(dump: &mut Dump, from: &str, to: &str, cost: f64, medium: Option<Medium>) -> Result<(), String> {
    if dump.metric == Metric::Etx {
        let delivery = Some(by_etx(cost)?);
        return dump.report(from, to, LinkReport { delivery, medium, ..LinkReport::default() });
    }
    if cost <= 0.0 {
        return Err(format!("a cost of {cost}: expected more than 0"));
    }
    dump.report(from, to, LinkReport { cost: Some(cost), medium, ..LinkReport::default() })
}

/// Medium of a link according to its properties.
fn medium(link: &Value) -> Option<Medium> {
    let of = |holder: &Value| {
        let kind = ["type", "medium", "interface", "ifname"].iter().find_map(|key| name(holder, key).ok())?;
        super::viewer::medium(kind).or_else(|| Medium::of_interface(kind))
    };
    of(link).or_else(|| of(link.get("properties")?))
}

/// Reads a `NetworkGraph`, which has the links of the whole mesh. `path` is its position in the
/// document.
pub fn graph(object: &Object<String, Value>, lines: &Lines<'_>, path: &[&str]) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("NetJSON", metric(object));
    // The list of nodes also contains nodes without a link.
    for node in object.get("nodes").and_then(Value::as_array).into_iter().flatten() {
        let Ok(id) = name(node, "id") else { continue };
        let place = dump.node(id);
        let addresses = |holder: Option<&Value>| {
            let found = holder.and_then(|holder| holder.get("local_addresses")).and_then(Value::as_array);
            found.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        for address in addresses(Some(node)).into_iter().chain(addresses(node.get("properties"))) {
            dump.also(place, &address);
        }
        if let Ok(label) = name(node, "label") {
            dump.also(place, label);
        }
    }
    for (place, link) in list(object, "links")?.iter().enumerate() {
        let mut read =
            || add(&mut dump, name(link, "source")?, name(link, "target")?, number(link, "cost")?, medium(link));
        if let Err(why) = read() {
            let path: Vec<&str> = path.iter().copied().chain(["links"]).collect();
            dump.leave_out(lines.of(&path, place), format!("link {place}: {why}"));
        }
    }
    Ok(dump)
}

/// Reads `NetworkRoutes`. Routes whose destination is the next hop are links of this router.
///
/// olsrd2 0.14.1 differs from the RFC in three points: the list is called `route`, `next` is the
/// address of an interface, and the addresses of the routers are in `properties`.
pub fn routes(object: &Object<String, Value>, lines: &Lines<'_>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("NetJSON's routes", metric(object));
    let id = object.get("router_id").and_then(Value::as_str).unwrap_or(super::OWN);
    let own = object.get("properties").and_then(|properties| properties.get("router_addr")).and_then(Value::as_str);
    let own = own.unwrap_or(id);
    let place = dump.witness(own);
    if id != super::OWN {
        dump.also(place, id);
    }
    let name_of_list = if object.contains_key("route") { "route" } else { "routes" };
    for (place, route) in list(object, name_of_list)?.iter().enumerate() {
        let mut read = || {
            let (destination, interface) = (name(route, "destination")?, name(route, "next")?);
            let (destination, length) = destination.split_once('/').unwrap_or((destination, ""));
            // A network behind a router is not a node.
            if !["", "32", "128"].contains(&length) {
                return Ok(());
            }
            let router = route.get("properties").and_then(|properties| properties.get("next_router_addr"));
            let next = router.and_then(Value::as_str).unwrap_or(interface);
            dump.route(own, destination, next);
            if destination != next {
                return Ok(());
            }
            let (cost, medium) = (number(route, "cost")?, name(route, "device").ok().and_then(Medium::of_interface));
            add(&mut dump, own, next, cost, medium)?;
            add(&mut dump, next, own, cost, medium)
        };
        if let Err(why) = read() {
            dump.leave_out(lines.of(&[name_of_list], place), format!("route {place}: {why}"));
        }
    }
    Ok(dump)
}
