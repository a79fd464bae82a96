//! olsrd: jsoninfo and txtinfo (tables separated by tabs), with links, topology, interfaces and
//! aliases.
//!
//! LQ is the share that arrives from the neighbour, NLQ the share that arrives at it. OLSR also
//! reports the links of other routers, as these announced them. A link of the topology has a "last
//! hop" and a "destination", and its LQ is the share that the last hop receives. One node thus
//! reports the whole mesh. Links connect addresses of interfaces, while the topology connects main
//! addresses. The tables MID and Interfaces tell which addresses belong to one router, and which
//! interfaces are wired.

use super::json::{Lines, list, name, number};
use super::{Dump, LinkReport, Medium, Metric, Wrong};
use serde_json::{Map as Object, Value};
use std::collections::BTreeMap;

/// Media of the router's own interfaces, by address and by name.
type Interfaces = BTreeMap<String, Medium>;

/// Adds both directions of a link.
fn link(dump: &mut Dump, far: &str, near: &str, (lq, nlq): (f64, f64), medium: Option<Medium>) -> Result<(), String> {
    let report = |share| LinkReport { delivery: Some(share), medium, ..LinkReport::default() };
    // The router that reports becomes the first of the nodes.
    if !near.is_empty() {
        dump.node(near);
    }
    dump.report(far, near, report(lq))?;
    dump.report(near, far, report(nlq))
}

/// Medium of an interface. olsrd reports whether it is wireless; its name tells whether it is a
/// tunnel.
fn medium(name: &str, is_wireless: Option<bool>) -> Option<Medium> {
    match (Medium::of_interface(name), is_wireless) {
        (Some(Medium::Tunnel), _) => Some(Medium::Tunnel),
        (_, Some(true)) => Some(Medium::Radio),
        (_, Some(false)) => Some(Medium::Cable),
        (by_name, None) => by_name,
    }
}

/// Reads the tables of jsoninfo.
pub fn jsoninfo(object: &Object<String, Value>, lines: &Lines<'_>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("olsrd's jsoninfo", Metric::Etx);
    aliases(&mut dump, object);
    let interfaces = interfaces(&mut dump, object);
    for (table, near, far) in [("links", "localIP", "remoteIP"), ("topology", "lastHopIP", "destinationIP")] {
        if !object.contains_key(table) {
            continue;
        }
        for (place, entry) in list(object, table)?.iter().enumerate() {
            let mut add = || {
                let (near, far) = (name(entry, near)?, name(entry, far)?);
                let shares = (number(entry, "linkQuality")?, number(entry, "neighborLinkQuality")?);
                let interface = ["ifName", "olsrInterface"].iter().find_map(|key| name(entry, key).ok());
                let known = |key: &str| interfaces.get(key).copied();
                let medium = interface.and_then(|interface| known(interface).or_else(|| medium(interface, None)));
                link(&mut dump, far, near, shares, medium.or_else(|| known(near)))
            };
            if let Err(why) = add() {
                dump.leave_out(lines.of(&[table], place), format!("{table} {place}: {why}"));
            }
        }
    }
    Ok(dump)
}

/// Notes other addresses of routers (multiple interface declarations). The main address is a text
/// or an object, and so are the aliases.
fn aliases(dump: &mut Dump, object: &Object<String, Value>) {
    let address = |value: &Value| value.as_str().or_else(|| name(value, "ipAddress").ok()).map(str::to_owned);
    for entry in object.get("mid").and_then(Value::as_array).into_iter().flatten() {
        let main = entry.get("main").and_then(address).or_else(|| name(entry, "ipAddress").ok().map(str::to_owned));
        let Some(main) = main else { continue };
        let router = dump.node(&main);
        for alias in entry.get("aliases").and_then(Value::as_array).into_iter().flatten().filter_map(address) {
            dump.also(router, &alias);
        }
    }
}

/// Reads the router's own interfaces. All their addresses belong to one router.
fn interfaces(dump: &mut Dump, object: &Object<String, Value>) -> Interfaces {
    let mut found = Interfaces::new();
    let mut own = None;
    for entry in object.get("interfaces").and_then(Value::as_array).into_iter().flatten() {
        // Later versions put the fields of OLSR into an object of its own.
        let inner = entry.get("olsrInterface").unwrap_or(entry);
        let flag = |key: &str| entry.get(key).or_else(|| inner.get(key)).and_then(Value::as_bool);
        let name = name(entry, "name").unwrap_or_default();
        let medium = medium(name, flag("wireless").or_else(|| flag("isWireless")));
        let text = |key: &str| entry.get(key).or_else(|| inner.get(key)).and_then(Value::as_str);
        let addresses = ["ipv4Address", "ipv6Address", "ipAddress"].iter().filter_map(|key| text(key));
        for address in
            addresses.filter(|address| address.contains(['.', ':']) && *address != "0.0.0.0" && *address != "::")
        {
            let router = *own.get_or_insert_with(|| dump.node(address));
            dump.also(router, address);
            found.extend(medium.map(|medium| (address.to_owned(), medium)));
        }
        found.extend(medium.map(|medium| (name.to_owned(), medium)));
    }
    found
}

/// A table of txtinfo that is read, with the column titles that it needs.
struct Table {
    title: &'static str,
    needed: &'static [&'static str],
}

const TABLES: [Table; 4] = [
    Table { title: "Links", needed: &["Local IP", "Remote IP", "LQ", "NLQ"] },
    Table { title: "Topology", needed: &["Last hop IP", "Dest. IP", "LQ", "NLQ"] },
    Table { title: "MID", needed: &[] },
    Table { title: "Interfaces", needed: &[] },
];

/// Reads the tables of txtinfo.
pub fn txtinfo(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("olsrd's txtinfo", Metric::Etx);
    let rows = rows(text)?;
    let of = |table: &'static str| rows.iter().filter(move |row| row.table == table);
    for row in of("MID") {
        let [main, aliases, ..] = &row.cells[..] else { continue };
        let router = dump.node(main);
        aliases.split([';', ',', ' ']).for_each(|alias| dump.also(router, alias.trim()));
        row.cells.iter().skip(2).for_each(|alias| dump.also(router, alias));
    }
    let mut interfaces = Interfaces::new();
    let mut own = None;
    for row in of("Interfaces") {
        let column = |begin: &str| row.titles.iter().position(|title| title.starts_with(begin));
        let cell = |begin: &str| column(begin).and_then(|place| row.cells.get(place)).map(String::as_str);
        let (Some(name), Some(address)) = (cell("Name"), cell("Src-Adress").or_else(|| cell("Src-Address"))) else {
            continue;
        };
        if !address.contains(['.', ':']) {
            continue;
        }
        let router = *own.get_or_insert_with(|| dump.node(address));
        dump.also(router, address);
        let is_wireless = cell("WLAN").map(|word| word.eq_ignore_ascii_case("yes"));
        interfaces.extend(medium(name, is_wireless).map(|medium| (address.to_owned(), medium)));
    }
    for row in of("Links").chain(of("Topology")) {
        let place = |title: &str| row.titles.iter().position(|known| known == title);
        let cell = |title: &str| place(title).and_then(|place| row.cells.get(place)).map_or("", String::as_str);
        let share = |title: &str| {
            let text = cell(title);
            text.parse::<f64>().map_err(|_| format!("expected a number, found \"{text}\""))
        };
        let ends = if row.table == "Links" { ["Local IP", "Remote IP"] } else { ["Last hop IP", "Dest. IP"] };
        let [near, far] = ends.map(cell);
        let known = interfaces.get(near).copied().filter(|_| row.table == "Links");
        let read = share("LQ").and_then(|lq| link(&mut dump, far, near, (lq, share("NLQ")?), known));
        dump.take(row.line, read);
    }
    Ok(dump)
}

/// A row of a table, with its line and the table's titles.
struct Row {
    table: &'static str,
    line: usize,
    titles: Vec<String>,
    cells: Vec<String>,
}

fn rows(text: &str) -> Result<Vec<Row>, Wrong> {
    let mut rows = Vec::new();
    let (mut table, mut titles): (Option<&Table>, Option<Vec<String>>) = (None, None);
    for (line, row) in text.lines().enumerate() {
        if let Some(title) = row.trim_start().strip_prefix("Table: ") {
            (table, titles) = (TABLES.iter().find(|known| known.title == title.trim()), None);
            continue;
        }
        let Some(table) = table.filter(|_| !row.trim().is_empty()) else { continue };
        let cells: Vec<String> = row.split('\t').map(|cell| cell.trim().to_owned()).collect();
        let Some(known) = &titles else {
            if let Some(missing) = table.needed.iter().find(|title| !cells.iter().any(|cell| cell == **title)) {
                let why =
                    format!("expected the columns {}, separated by tabs: {missing} is missing", and(table.needed));
                return Err(((line + 1).to_string(), why));
            }
            titles = Some(cells);
            continue;
        };
        rows.push(Row { table: table.title, line: line + 1, titles: known.clone(), cells });
    }
    Ok(rows)
}

fn and(words: &[&str]) -> String {
    match words {
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
        [] => String::new(),
    }
}
