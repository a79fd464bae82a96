//! babeld: what it answers to `dump` at its local port (babeld(8)), or writes at a signal.
//!
//! A cost of 256 is a link without loss where ETX is its metric (RFC 8966, A.2.2): 256 / rxcost is the share that arrives from the neighbour, 256 / txcost to
//! it. A cost below 256 is that of a wired link: nothing is said of loss. A node is known by the link-local addresses of its interfaces.

use super::{Dump, Heard, Metric, OWN, Wrong};
use std::collections::BTreeMap;

/// The dump of one node.
pub fn read(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("babeld", Metric::Etx);
    let own = dump.witness(OWN);
    // Routers by their id: one may announce several addresses.
    let mut routers: BTreeMap<&str, String> = BTreeMap::new();
    for (line, row) in text.lines().enumerate() {
        let words: Vec<&str> = row.split_whitespace().collect();
        let after =
            |key: &str| words.iter().position(|word| *word == key).and_then(|place| words.get(place + 1).copied());
        match words[..] {
            ["host", name] => dump.also(own, name),
            ["add", "interface", ..] => {
                ["ipv6", "ipv4"].iter().filter_map(|key| after(key)).for_each(|address| dump.also(own, address));
            }
            // Prefixes that it announces are its addresses.
            ["add", "xroute", ..] => {
                if let Some(address) = after("prefix").and_then(host) {
                    dump.also(own, address);
                }
            }
            ["add", "route", ..] if after("installed") == Some("yes") => {
                if let (Some(destination), Some(next)) = (after("prefix").and_then(host), after("via")) {
                    // A neighbour's own address costs nothing from there on.
                    let is_neighbour = after("refmetric") == Some("0");
                    let name = if is_neighbour { next } else { destination };
                    let router =
                        routers.entry(after("id").unwrap_or(destination)).or_insert_with(|| name.to_owned()).clone();
                    let place = dump.node(&router);
                    dump.also(place, destination);
                    dump.route(OWN, &router, next);
                }
            }
            ["add", "neighbour", ..] => {
                neighbour(&mut dump, &after).map_err(|why| ((line + 1).to_string(), why))?;
            }
            _ => {}
        }
    }
    Ok(dump)
}

/// The address of a prefix for one host.
fn host(prefix: &str) -> Option<&str> {
    let (address, length) = prefix.split_once('/')?;
    let whole = if address.contains(':') { "128" } else { "32" };
    (length == whole).then_some(address)
}

fn neighbour<'a>(dump: &mut Dump, after: &dyn Fn(&str) -> Option<&'a str>) -> Result<(), String> {
    let cost = |key: &str| {
        let cost = after(key).and_then(|word| word.parse::<f64>().ok());
        cost.ok_or_else(|| format!("expected \"{key}\" and a number"))
    };
    let address = after("address").ok_or("expected \"address\"")?;
    let (to, from) = (cost("txcost")?, cost("rxcost")?);
    let share = |cost: f64| if cost >= 65535.0 { 0.0 } else { 256.0 / cost };
    if to.min(from) < 256.0 {
        let wired = || Heard { cost: Some(to.min(from).max(1.0) / 256.0), ..Heard::default() };
        dump.heard(OWN, address, wired())?;
        return dump.heard(address, OWN, wired());
    }
    dump.both(OWN, address, share(to), share(from))
}
