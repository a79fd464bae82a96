//! babeld: its answer to `dump` at its local port (babeld(8)), or what it writes at a signal.
//!
//! A cost of 256 is a link without loss if ETX is its metric (RFC 8966, A.2.2). The share that
//! arrives from the neighbour is 256 / rxcost, the share that arrives at it 256 / txcost. A cost
//! below 256 belongs to a link that babeld takes for wired; its loss is not known. A router is
//! known by its id (`my-id`, and `id` of its routes), by its name, and by the addresses of its
//! interfaces. A route with `refmetric 0` is the neighbour's own route, so its id tells which
//! router the neighbour is.

use super::{Dump, LinkReport, Medium, Metric, OWN, Wrong};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// The words of a line, with its number.
struct Row<'a> {
    line: usize,
    words: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn after(&self, key: &str) -> Option<&'a str> {
        let place = self.words.iter().position(|word| *word == key)?;
        self.words.get(place + 1).copied()
    }

    fn begins(&self, with: &[&str]) -> bool {
        self.words.starts_with(with)
    }
}

/// Reads the dump of one node.
pub fn read(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("babeld", Metric::Etx);
    let own = dump.witness(OWN);
    let rows: Vec<Row<'_>> = text
        .lines()
        .enumerate()
        .map(|(line, row)| Row { line: line + 1, words: row.split_whitespace().collect() })
        .collect();
    for row in &rows {
        match row.words[..] {
            ["host" | "my-id", name] => dump.also(own, name),
            ["add", "interface", ..] => {
                ["ipv6", "ipv4"].iter().filter_map(|key| row.after(key)).for_each(|address| dump.also(own, address));
            }
            // Host prefixes that the router announces are its own addresses.
            ["add", "xroute", ..] => {
                if let Some(address) = row.after("prefix").and_then(host) {
                    dump.also(own, address);
                }
            }
            _ => {}
        }
    }
    let mut routers = routers(&mut dump, &rows);
    by_identifier(&mut dump, &rows);
    for row in rows.iter().filter(|row| row.begins(&["add", "neighbour"])) {
        let read = neighbour(&mut dump, row);
        dump.take(row.line, read);
    }
    for row in rows.iter().filter(|row| row.begins(&["add", "route"]) && row.after("installed") == Some("yes")) {
        let (Some(destination), Some(next)) = (row.after("prefix").and_then(host), row.after("via")) else { continue };
        // A router may announce several addresses.
        let id = row.after("id").unwrap_or(destination);
        let name = dump.find(id).map_or_else(|| destination.to_owned(), |place| dump.nodes[place].clone());
        let router = routers.entry(id).or_insert(name).clone();
        let place = dump.node(&router);
        dump.also(place, id);
        dump.also(place, destination);
        dump.route(OWN, &router, next);
    }
    Ok(dump)
}

/// Names of the neighbours by the ids of their own routes. All addresses of a neighbour belong to
/// one router.
fn routers<'a>(dump: &mut Dump, rows: &[Row<'a>]) -> BTreeMap<&'a str, String> {
    let mut routers = BTreeMap::new();
    for row in rows.iter().filter(|row| row.begins(&["add", "route"]) && row.after("refmetric") == Some("0")) {
        let (Some(id), Some(next)) = (row.after("id"), row.after("via")) else { continue };
        let name: &String = routers.entry(id).or_insert_with(|| next.to_owned());
        let place = dump.node(name);
        dump.also(place, next);
        dump.also(place, id);
    }
    routers
}

/// Joins neighbours with the routers whose id equals the neighbour's interface identifier. babeld
/// derives both from the MAC address (RFC 4291, appendix A, with or without the inverted universal
/// bit).
fn by_identifier(dump: &mut Dump, rows: &[Row<'_>]) {
    let ids: BTreeSet<&str> =
        rows.iter().filter(|row| row.begins(&["add", "route"])).filter_map(|row| row.after("id")).collect();
    for row in rows.iter().filter(|row| row.begins(&["add", "neighbour"])) {
        let Some(Ok(address)) = row.after("address").map(str::parse::<Ipv6Addr>) else { continue };
        let bytes = &address.octets()[8..];
        let text = |first: u8| {
            let all = std::iter::once(first).chain(bytes[1..].iter().copied());
            all.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        };
        for id in [text(bytes[0]), text(bytes[0] ^ 2)].iter().filter(|id| ids.contains(id.as_str())) {
            let known = dump.find(id);
            let place = known.unwrap_or_else(|| dump.node(row.after("address").unwrap_or_default()));
            dump.also(place, row.after("address").unwrap_or_default());
            dump.also(place, id);
        }
    }
}

/// Address of a prefix that covers a single host. `None` for other prefixes.
fn host(prefix: &str) -> Option<&str> {
    let (address, length) = prefix.split_once('/')?;
    let whole = if address.contains(':') { "128" } else { "32" };
    (length == whole).then_some(address)
}

fn neighbour(dump: &mut Dump, row: &Row<'_>) -> Result<(), String> {
    let cost = |key: &str| {
        let cost = row.after(key).and_then(|word| word.parse::<f64>().ok());
        cost.ok_or_else(|| format!("expected \"{key}\" and a number"))
    };
    let address = row.after("address").ok_or("expected \"address\"")?;
    let (to, from) = (cost("txcost")?, cost("rxcost")?);
    let by_name = row.after("if").and_then(Medium::of_interface);
    if to.min(from) < 256.0 && by_name != Some(Medium::Radio) {
        let medium = Some(by_name.unwrap_or(Medium::Cable));
        let wired = || LinkReport { cost: Some(to.min(from).max(1.0) / 256.0), medium, ..LinkReport::default() };
        dump.report(OWN, address, wired())?;
        return dump.report(address, OWN, wired());
    }
    let share = |cost: f64| if cost >= 65535.0 { 0.0 } else { (256.0 / cost).min(1.0) };
    let report = |cost: f64| LinkReport { delivery: Some(share(cost)), medium: by_name, ..LinkReport::default() };
    // If one direction is lost, the report on the other one is still added.
    let (there, back) = (dump.report(OWN, address, report(to)), dump.report(address, OWN, report(from)));
    there.and(back)
}
