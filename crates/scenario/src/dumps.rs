//! What routing daemons tell of their links: NetJSON graphs and routes, OLSR's jsoninfo and txtinfo, dumps of babeld, JSON of batman-adv.
//!
//! Each tells by some metric which share of the packets arrives; [`read`] makes shares of them:
//!
//! | Form | Metric | Share that arrives |
//! |---|---|---|
//! | NetJSON `NetworkGraph`, `NetworkRoutes` (netjson.org/rfc.html) with a metric "etx..." | ETX, 1 / (there x back) | 1 / sqrt(ETX) each way |
//! | olsrd jsoninfo (`links`, `topology`), txtinfo (tables Links and Topology) | LQ, NLQ | LQ from the neighbour, NLQ to it |
//! | babeld `dump` (RFC 8966, A.2.2) | rxcost, txcost | 256 / rxcost from the neighbour, 256 / txcost to it |
//! | batman-adv `batctl originators_json` (B.A.T.M.A.N. IV) | TQ, 0 to 255 | TQ / 255 to the neighbour |
//! | batman-adv `batadv-vis -f jsondoc` | 255 / TQ | 1 / metric to the neighbour |
//!
//! OLSR tells of the links that others have as they told it: a link of the topology is "last hop, destination", and LQ is the share that the
//! last hop receives. TQ has a penalty for links that are worse backwards; it is taken as it is. Routes tell of the links of one router: those
//! whose destination is the next hop.

use serde_json::{Map as Object, Value};

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Heard {
    /// The sender, a place in [`Dump::nodes`].
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The share of the packets that arrive, above 0, at most 1.
    pub delivery: f64,
}

/// A dump.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dump {
    /// Names of the nodes there, in the order in which they are named.
    pub nodes: Vec<String>,
    /// Their links; a direction twice means that two told of it.
    pub links: Vec<Heard>,
}

impl Dump {
    fn node(&mut self, name: &str) -> usize {
        self.nodes.iter().position(|known| known == name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.nodes.len() - 1
        })
    }

    /// Adds a direction; a share of zero is no link.
    fn add(&mut self, from: &str, to: &str, delivery: f64) -> Result<(), String> {
        let (from, to) = (self.node(from), self.node(to));
        if from == to {
            return Err(format!("a link of \"{}\" with itself", self.nodes[from]));
        }
        if !(0.0..=1.0).contains(&delivery) {
            return Err(format!("{delivery} is no share of packets that arrive (0 to 1)"));
        }
        if delivery > 0.0 {
            self.links.push(Heard { from, to, delivery });
        }
        Ok(())
    }

    fn both(&mut self, from: &str, to: &str, there: f64, back: f64) -> Result<(), String> {
        self.add(from, to, there)?;
        self.add(to, from, back)
    }
}

/// An error in a dump: the place (a line, an entry) and the sentence.
pub type Wrong = (String, String);

const KNOWN: &str = "expected NetJSON (NetworkGraph or NetworkRoutes), jsoninfo or txtinfo of olsrd, a dump of babeld, or \
                     originators_json or jsondoc of batman-adv";

/// The links that the dump tells of; its content says of which kind it is.
///
/// # Errors
/// The first thing that is wrong with it, and where.
pub fn read(bytes: &[u8]) -> Result<Dump, Wrong> {
    let text = std::str::from_utf8(bytes).map_err(|error| ("1".to_owned(), error.to_string()))?;
    let dump = match text.trim_start().chars().next() {
        Some('{' | '[') => json(text)?,
        _ if text.contains("Table: ") => txtinfo(text)?,
        _ if text.lines().any(|line| line.starts_with("add ")) => babeld(text)?,
        _ => return Err(("1".to_owned(), KNOWN.to_owned())),
    };
    if dump.links.is_empty() {
        return Err(("1".to_owned(), "it tells of no link".to_owned()));
    }
    Ok(dump)
}

fn json(text: &str) -> Result<Dump, Wrong> {
    let document: Value = serde_json::from_str(text).map_err(|error| (error.line().to_string(), error.to_string()))?;
    match &document {
        Value::Array(entries) => entry_by_entry("originator", entries, originator),
        Value::Object(object) => match object.get("type").and_then(Value::as_str) {
            Some("NetworkGraph") => graph(object),
            Some("NetworkRoutes") => routes(object),
            Some(other) => Err(("1".to_owned(), format!("NetJSON of the type {other}: {KNOWN}"))),
            None if object.contains_key("vis") => entry_by_entry("vis", list(object, "vis")?, vis),
            None if object.contains_key("links") || object.contains_key("topology") => jsoninfo(object),
            None => Err(("1".to_owned(), KNOWN.to_owned())),
        },
        _ => Err(("1".to_owned(), KNOWN.to_owned())),
    }
}

fn list<'a>(object: &'a Object<String, Value>, key: &str) -> Result<&'a [Value], Wrong> {
    let found = object.get(key).and_then(Value::as_array);
    found.map(Vec::as_slice).ok_or_else(|| ("1".to_owned(), format!("expected a list \"{key}\"")))
}

fn entry_by_entry(
    what: &str,
    entries: &[Value],
    mut read: impl FnMut(&mut Dump, &Value) -> Result<(), String>,
) -> Result<Dump, Wrong> {
    let mut dump = Dump::default();
    for (number, entry) in entries.iter().enumerate() {
        read(&mut dump, entry).map_err(|why| (format!("{what} {number}"), why))?;
    }
    Ok(dump)
}

fn name<'a>(entry: &'a Value, key: &str) -> Result<&'a str, String> {
    entry.get(key).and_then(Value::as_str).ok_or_else(|| format!("expected a text \"{key}\""))
}

/// A number, also one written as a text.
fn number(entry: &Value, key: &str) -> Result<f64, String> {
    let value = entry.get(key).ok_or_else(|| format!("expected a number \"{key}\""))?;
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.filter(|number| number.is_finite()).ok_or_else(|| format!("expected a number \"{key}\", found {value}"))
}

/// The share that arrives each way by an ETX.
fn by_etx(etx: f64) -> Result<f64, String> {
    if etx < 1.0 { Err(format!("an ETX of {etx}: expected 1 or more")) } else { Ok(etx.sqrt().recip()) }
}

fn is_etx(object: &Object<String, Value>) -> Result<(), Wrong> {
    let metric = object.get("metric").and_then(Value::as_str).unwrap_or_default();
    if metric.to_ascii_lowercase().starts_with("etx") {
        return Ok(());
    }
    Err(("1".to_owned(), format!("the metric \"{metric}\": expected one that begins with etx")))
}

fn graph(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    is_etx(object)?;
    entry_by_entry("link", list(object, "links")?, |dump, link| {
        let (source, target) = (name(link, "source")?, name(link, "target")?);
        dump.add(source, target, by_etx(number(link, "cost")?)?)
    })
}

fn routes(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    is_etx(object)?;
    let own = object.get("router_id").and_then(Value::as_str).unwrap_or("router");
    entry_by_entry("route", list(object, "routes")?, |dump, route| {
        let (destination, next) = (name(route, "destination")?, name(route, "next")?);
        if destination.split('/').next() != Some(next) {
            return Ok(());
        }
        let share = by_etx(number(route, "cost")?)?;
        dump.both(own, next, share, share)
    })
}

fn jsoninfo(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    let mut dump = Dump::default();
    for (table, near, far) in [("links", "localIP", "remoteIP"), ("topology", "lastHopIP", "destinationIP")] {
        if !object.contains_key(table) {
            continue;
        }
        for (place, link) in list(object, table)?.iter().enumerate() {
            let mut add = || {
                let (near, far) = (name(link, near)?, name(link, far)?);
                dump.both(far, near, number(link, "linkQuality")?, number(link, "neighborLinkQuality")?)
            };
            add().map_err(|why| (format!("{table} {place}"), why))?;
        }
    }
    Ok(dump)
}

/// Of originators that are neighbours.
fn originator(dump: &mut Dump, entry: &Value) -> Result<(), String> {
    let (originator, neighbour) = (name(entry, "orig_address")?, name(entry, "neigh_address")?);
    if originator != neighbour {
        return Ok(());
    }
    let quality =
        number(entry, "tq").map_err(|why| why + " (B.A.T.M.A.N. V has a throughput instead, which is no share)")?;
    dump.add("this node", neighbour, quality / 255.0)
}

fn vis(dump: &mut Dump, entry: &Value) -> Result<(), String> {
    let neighbours = entry.get("neighbors").and_then(Value::as_array).ok_or("expected a list \"neighbors\"")?;
    neighbours.iter().try_for_each(|link| {
        let metric = number(link, "metric")?;
        if metric < 1.0 {
            return Err(format!("a metric of {metric}: expected 1 or more"));
        }
        dump.add(name(link, "router")?, name(link, "neighbor")?, metric.recip())
    })
}

fn txtinfo(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::default();
    // Places of near, far, LQ and NLQ among the columns of the table.
    let mut columns: Option<[usize; 4]> = None;
    let mut table = "";
    for (line, row) in text.lines().enumerate() {
        let cells: Vec<&str> = row.split('\t').map(str::trim).collect();
        if let Some(title) = row.strip_prefix("Table: ") {
            (table, columns) = (title.trim(), None);
            continue;
        }
        let ends = match table {
            "Links" => ["Local IP", "Remote IP"],
            "Topology" => ["Last hop IP", "Dest. IP"],
            _ => continue,
        };
        let place = |title: &str| cells.iter().position(|cell| *cell == title);
        match columns {
            _ if row.trim().is_empty() => {}
            None => {
                let found = [ends[0], ends[1], "LQ", "NLQ"].map(place);
                let [Some(near), Some(far), Some(lq), Some(nlq)] = found else {
                    let why = format!("expected the columns {}, {}, LQ and NLQ, separated by tabs", ends[0], ends[1]);
                    return Err(((line + 1).to_string(), why));
                };
                columns = Some([near, far, lq, nlq]);
            }
            Some(places) => {
                let [near, far, lq, nlq] = places.map(|place| cells.get(place).copied().unwrap_or_default());
                let share =
                    |cell: &str| cell.parse::<f64>().map_err(|_| format!("expected a number, found \"{cell}\""));
                let add = share(lq).and_then(|there| dump.both(far, near, there, share(nlq)?));
                add.map_err(|why| ((line + 1).to_string(), why))?;
            }
        }
    }
    Ok(dump)
}

fn babeld(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::default();
    for (line, row) in text.lines().enumerate() {
        let Some(rest) = row.strip_prefix("add neighbour ") else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|place| words.get(place + 1));
        let cost = |key: &str| {
            let cost = after(key).and_then(|word| word.parse::<f64>().ok());
            cost.ok_or_else(|| format!("expected \"{key}\" and a number"))
        };
        let mut add = || {
            let address = after("address").ok_or("expected \"address\"")?;
            let share = |cost: f64| match cost {
                _ if cost >= 65535.0 => Ok(0.0),
                _ if cost >= 256.0 => Ok(256.0 / cost),
                _ => Err(format!("a cost of {cost}: below 256 it is no ETX, as of a wired link")),
            };
            let there = share(cost("txcost")?)?;
            dump.both("this node", address, there, share(cost("rxcost")?)?)
        };
        add().map_err(|why| ((line + 1).to_string(), why))?;
    }
    Ok(dump)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every link by name, with the share in thousandths.
    fn links(text: &str) -> Vec<(String, String, u32)> {
        let dump = read(text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}: {text}"));
        let named = |link: &Heard| {
            let share = (link.delivery * 1000.0).round() as u32;
            (dump.nodes[link.from].clone(), dump.nodes[link.to].clone(), share)
        };
        dump.links.iter().map(named).collect()
    }

    fn link(from: &str, to: &str, share: u32) -> (String, String, u32) {
        (from.to_owned(), to.to_owned(), share)
    }

    #[test]
    fn netjson_has_an_etx() {
        let graph = r#"{"type":"NetworkGraph","protocol":"olsrv1","metric":"etx_ff","nodes":[{"id":"a"},{"id":"b"}],
            "links":[{"source":"a","target":"b","cost":4.0},{"source":"b","target":"a","cost":1.0,"cost_text":"1.000"}]}"#;
        assert_eq!(links(graph), [link("a", "b", 500), link("b", "a", 1000)]);
        let routes = r#"{"type":"NetworkRoutes","metric":"ETX","router_id":"a","routes":[
            {"destination":"b/32","next":"b","cost":1.5625},{"destination":"c/32","next":"b","cost":3.0}]}"#;
        assert_eq!(links(routes), [link("a", "b", 800), link("b", "a", 800)]);
    }

    #[test]
    fn olsr_tells_both_ways_apart() {
        let json = r#"{"links":[{"localIP":"a","remoteIP":"b","linkQuality":0.9,"neighborLinkQuality":0.8}],
            "topology":[{"lastHopIP":"b","destinationIP":"c","linkQuality":1.0,"neighborLinkQuality":0.5}]}"#;
        let expected = [link("b", "a", 900), link("a", "b", 800), link("c", "b", 1000), link("b", "c", 500)];
        assert_eq!(links(json), expected);
        let text = "Table: Links\nLocal IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost\na\tb\t0.00\t0.900\t0.800\t1.389\t\n\n\
                    Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\tCost\nc\tb\t1.000\t0.500\t2.000\n\nTable: HNA\nx\ty\n";
        assert_eq!(links(text), expected);
    }

    #[test]
    fn babel_tells_costs_and_batman_qualities() {
        let babel = "BABEL 1.0\nmy-id 02\nadd neighbour 5560 address fe80::1 if wlan0 reach ffff ureach 0000 rxcost 256 txcost 320 cost 320\n\
                     add neighbour 5570 address fe80::2 if wlan0 reach 0000 ureach 0000 rxcost 65535 txcost 512 cost 65535\nok\n";
        let own = "this node";
        assert_eq!(links(babel), [link(own, "fe80::1", 800), link("fe80::1", own, 1000), link(own, "fe80::2", 500)]);
        let batman = r#"[{"orig_address":"m1","best":true,"neigh_address":"m1","tq":204},
            {"orig_address":"m2","best":true,"neigh_address":"m1","tq":100}]"#;
        assert_eq!(links(batman), [link(own, "m1", 800)]);
        let vis = r#"{"source_version":"2017.1","algorithm":4,"vis":[{"primary":"m1","neighbors":[
            {"router":"m1","neighbor":"m2","metric":"1.250"}],"clients":[]}]}"#;
        assert_eq!(links(vis), [link("m1", "m2", 800)]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, place, why) in [
            ("", "1", "expected NetJSON"),
            ("{\n\"links\": [\n}", "3", ""),
            (r#"{"type":"NetworkGraph","metric":"hops","links":[]}"#, "1", "the metric \"hops\""),
            (r#"{"type":"NetworkGraph","metric":"etx","links":[]}"#, "1", "no link"),
            (
                r#"{"type":"NetworkGraph","metric":"etx","links":[{"source":"a","target":"b","cost":0.1}]}"#,
                "link 0",
                "0.1",
            ),
            (
                r#"{"type":"NetworkGraph","metric":"etx","links":[{"source":"a","target":"a","cost":1}]}"#,
                "link 0",
                "itself",
            ),
            (
                r#"{"links":[{"localIP":"a","remoteIP":"b","linkQuality":1.2,"neighborLinkQuality":1}]}"#,
                "links 0",
                "1.2",
            ),
            (r#"[{"orig_address":"m1","neigh_address":"m1","throughput":1000}]"#, "originator 0", "B.A.T.M.A.N. V"),
            ("Table: Links\nLocal\tRemote\n", "2", "LQ and NLQ"),
            ("Table: Links\nLocal IP\tRemote IP\tLQ\tNLQ\na\tb\t1\t?\n", "3", "\"?\""),
            ("add neighbour 1 address a rxcost 96 txcost 96\n", "1", "wired"),
            ("add neighbour 1 address a rxcost 256\n", "1", "txcost"),
        ] {
            let (at, said) = read(text.as_bytes()).unwrap_err();
            assert!(at == place && said.contains(why), "{at}: {said}: {text}");
        }
    }
}
