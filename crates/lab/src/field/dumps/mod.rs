//! Dumps of the links of a mesh, as programs tell them: routing daemons, `iw`, the maps of community networks, a table.
//!
//! | Form | Metric | Share that arrives |
//! |---|---|---|
//! | NetJSON `NetworkGraph`, `NetworkRoutes` (netjson.org/rfc.html) with a metric "etx..." | ETX, 1 / (there x back) | 1 / sqrt(ETX) each way |
//! | the same with another metric, as of olsrd2 | a cost | not told |
//! | olsrd jsoninfo (`links`, `topology`), txtinfo (tables Links and Topology) | LQ, NLQ | LQ from the neighbour, NLQ to it |
//! | babeld `dump` (RFC 8966, A.2.2) | rxcost, txcost | 256 / rxcost from the neighbour, 256 / txcost to it |
//! | `batctl o`, `oj` of B.A.T.M.A.N. IV | TQ, 0 to 255 | TQ / 255 to the neighbour |
//! | `batctl o`, `oj`, `n`, `nj` of B.A.T.M.A.N. V | throughput | not told |
//! | `batadv-vis -f jsondoc`, `graph.json` | 255 / TQ | 1 / metric to the neighbour |
//! | `meshviewer.json` with `source_tq` | TQ, 0 to 1 | the same |
//! | `iw dev wlan0 station dump` | packets, retries, failures | 1 / sqrt(tries) each way |
//! | a table: `from`, `to`, and `etx`, `metric`, `delivery`, `snr_db` or `hop_mbps` | as named | 1 / sqrt(ETX) each way, `delivery` |
//!
//! Some of these are told by one node of its own links: [`merge`] makes one mesh of several of them.

mod babel;
mod batman;
mod iw;
mod json;
mod merge;
mod mistaken;
mod netjson;
mod olsr;
mod table;
mod viewer;

pub use merge::merge;

use serde_json::Value;

/// The name of the node that made a dump which does not name it.
pub const OWN: &str = "this node";

/// The program of what the measuring kit wrote.
pub const KIT: &str = "the measuring kit";
/// The program of a table.
const TABLE: &str = "the table";

/// One direction of a link; what is not told is none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Heard {
    /// The sender, a place in [`Dump::nodes`].
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The share of the packets that arrive, above 0, at most 1.
    pub delivery: Option<f64>,
    /// The cost that the mesh's routing adds up, above 0, in its own unit.
    pub cost: Option<f64>,
    /// Goodput of the link alone, Mbit/s, as measured or as the program expects.
    pub mbps: Option<f64>,
    /// The ratio of signal to noise, dB.
    pub snr_db: Option<f64>,
}

/// The metric by which the mesh chooses routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Metric {
    /// Least sum of ETX.
    #[default]
    Etx,
    /// Largest product of TQ, with the hop penalty of batman-adv.
    Quality,
    /// Least sum of a cost of its own.
    Cost,
    /// Largest throughput, as B.A.T.M.A.N. V reckons it.
    Throughput,
    /// Nothing is told: fewest hops.
    Hops,
}

/// A dump.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dump {
    /// Names of the nodes there, in the order in which they are named.
    pub nodes: Vec<String>,
    /// Their links; a direction twice means that two told of it.
    pub links: Vec<Heard>,
    /// Metric by which the mesh chooses routes.
    pub metric: Metric,
    /// Next hops that nodes told: the node, the destination, the next hop.
    pub routes: Vec<(usize, usize, usize)>,
    /// The nodes that told of their own links; none where the dump is of the whole mesh.
    pub witnesses: Vec<usize>,
    /// Name of the program.
    pub program: &'static str,
    /// Other names and addresses of nodes.
    pub also: Vec<(usize, String)>,
}

impl Dump {
    fn of(program: &'static str, metric: Metric) -> Dump {
        Dump { program, metric, ..Dump::default() }
    }

    /// The node of that name or address.
    pub fn find(&self, name: &str) -> Option<usize> {
        let of_alias = || self.also.iter().find(|(_, known)| known == name).map(|(node, _)| *node);
        self.nodes.iter().position(|known| known == name).or_else(of_alias)
    }

    pub(super) fn node(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.nodes.len() - 1
        })
    }

    /// Another name of a node; one that is known already stays whose it is.
    pub(super) fn also(&mut self, node: usize, name: &str) {
        if self.find(name).is_none() {
            self.also.push((node, name.to_owned()));
        }
    }

    /// Notes that this node told of its own links.
    pub(super) fn witness(&mut self, name: &str) -> usize {
        let node = self.node(name);
        if !self.witnesses.contains(&node) {
            self.witnesses.push(node);
        }
        node
    }

    pub(super) fn route(&mut self, at: &str, destination: &str, next: &str) {
        let hop = (self.node(at), self.node(destination), self.node(next));
        if !self.routes.contains(&hop) {
            self.routes.push(hop);
        }
    }

    /// Adds a direction by the share that arrives; a share of zero is no link.
    fn add(&mut self, from: &str, to: &str, delivery: f64) -> Result<(), String> {
        self.heard(from, to, Heard { delivery: Some(delivery), ..Heard::default() })
    }

    fn both(&mut self, from: &str, to: &str, there: f64, back: f64) -> Result<(), String> {
        self.add(from, to, there)?;
        self.add(to, from, back)
    }

    /// Adds a direction; over a share of zero, or a rate of zero, nothing is heard.
    fn heard(&mut self, from: &str, to: &str, heard: Heard) -> Result<(), String> {
        let (from, to) = (self.node(from), self.node(to));
        if from == to {
            return Err(format!("a link of \"{}\" with itself", self.nodes[from]));
        }
        if let Some(share) = heard.delivery.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(format!("{share} is no share of packets that arrive (0 to 1)"));
        }
        if let Some(number) = [heard.mbps, heard.cost].into_iter().flatten().find(|number| *number < 0.0) {
            return Err(format!("expected a number above 0, found {number}"));
        }
        if heard.delivery != Some(0.0) && heard.mbps != Some(0.0) && heard.cost != Some(0.0) {
            self.links.push(Heard { from, to, ..heard });
        }
        Ok(())
    }

    /// True if the goodput of its links was measured; otherwise a program expects it.
    pub fn is_measured(&self) -> bool {
        [TABLE, KIT].contains(&self.program)
    }

    /// The nodes that a link is told of.
    pub fn linked(&self) -> usize {
        let is_linked = |node: &usize| self.links.iter().any(|link| link.from == *node || link.to == *node);
        (0..self.nodes.len()).filter(is_linked).count()
    }

    /// A sentence on the nodes whose own dumps are missing; none where the dump is of the whole mesh, or all nodes told.
    pub fn missing(&self) -> Option<String> {
        let silent = self.nodes.len() - self.witnesses.len();
        if self.witnesses.is_empty() || silent == 0 {
            return None;
        }
        let (program, told) = (self.program, self.witnesses.len());
        let whose = match &self.witnesses[..] {
            [one] => format!("this dump is {program}'s of one node ({})", self.nodes[*one]),
            _ => format!("these dumps are {program}'s of {told} nodes"),
        };
        let links = self.linked();
        Some(format!(
            "{whose}: it names {} nodes, and tells of links between {links} of them; run it on the other {silent}, too, and give all files",
            self.nodes.len()
        ))
    }
}

/// An error in a dump: the place (a line, an entry) and the sentence.
pub type Wrong = (String, String);

const KNOWN: &str = "expected NetJSON (NetworkGraph or NetworkRoutes), jsoninfo or txtinfo of olsrd, a dump of babeld, the output of `batctl o` or `oj`, of \
                     `batadv-vis -f jsondoc` or of `iw dev wlan0 station dump`, meshviewer.json, or a table (CSV) with the columns from and to";

/// The links that the dump tells of; its content says of which kind it is.
///
/// # Errors
/// The first thing that is wrong with it, and where.
pub fn read(bytes: &[u8]) -> Result<Dump, Wrong> {
    if let Some(why) = mistaken::of_bytes(bytes) {
        return Err(("1".to_owned(), why.to_owned()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = (before.lines().count().max(1)).to_string();
        (line, "this is no text in UTF-8: give the file as the program wrote it, or save the table as UTF-8".to_owned())
    })?;
    // What a file begins with that Windows wrote.
    let dump = one(text.trim_start_matches('\u{feff}'))?;
    if dump.links.is_empty() {
        let why = match dump.missing() {
            Some(missing) => format!("it tells of no link: {missing}"),
            None => "it tells of no link".to_owned(),
        };
        return Err(("1".to_owned(), why));
    }
    Ok(dump)
}

fn one(text: &str) -> Result<Dump, Wrong> {
    let line =
        |starts: &[&str]| text.lines().any(|line| starts.iter().any(|start| line.trim_start().starts_with(start)));
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let Some(first) = first else { return Err(("1".to_owned(), "the file is empty".to_owned())) };
    let titles: Vec<String> = first.split(',').map(|title| title.trim().to_ascii_lowercase()).collect();
    match first.chars().next() {
        Some('{' | '[') if !first.starts_with("[B.A.T") => json(text),
        Some('<') => Err(("1".to_owned(), format!("this is a web page or XML: {KNOWN}"))),
        _ if titles.iter().any(|title| title == "from") && titles.iter().any(|title| title == "to") => {
            table::read(text.as_bytes())
        }
        _ if mistaken::of_text(text).is_some() => Err(("1".to_owned(), mistaken::of_text(text).unwrap_or_default())),
        _ if text.contains("Table: ") => olsr::txtinfo(text),
        _ if line(&["[B.A.T.M.A.N."]) => batman::text(text),
        _ if line(&["add neighbour", "add interface"]) || first.starts_with("BABEL ") => babel::read(text),
        _ if line(&["Station ", "Interface "]) || first.starts_with("phy#") => iw::read(text),
        _ if said(first) => Err((
            "1".to_owned(),
            format!("the program that wrote this failed (\"{first}\"): run it on a node of the mesh, as root"),
        )),
        _ => Err(("1".to_owned(), KNOWN.to_owned())),
    }
}

/// True for a line that a program prints which has failed.
fn said(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["error", "command failed", "nl80211 not found", "no such device"].iter().any(|start| line.starts_with(start))
        || line.ends_with("not found")
        || line.contains("connection refused")
}

fn json(text: &str) -> Result<Dump, Wrong> {
    let document: Value = serde_json::from_str(text).map_err(|error| (error.line().to_string(), error.to_string()))?;
    let object = match &document {
        Value::Array(entries) => return batman::json(entries),
        Value::Object(object) => object,
        _ => return Err(("1".to_owned(), KNOWN.to_owned())),
    };
    match object.get("type").and_then(Value::as_str) {
        Some("NetworkGraph") => return netjson::graph(object),
        Some("NetworkRoutes") => return netjson::routes(object),
        // Several graphs, as olsrd2 prints them: the first.
        Some("NetworkCollection") => {
            let graphs = json::list(object, "collection")?;
            let graph = graphs.iter().filter_map(Value::as_object).find(|graph| {
                graph.get("type").and_then(Value::as_str) == Some("NetworkGraph")
                    && graph.get("links").and_then(Value::as_array).is_some_and(|links| !links.is_empty())
            });
            return graph
                .map_or_else(|| Err(("1".to_owned(), "no NetworkGraph with links in it".to_owned())), netjson::graph);
        }
        Some(other) => return Err(("1".to_owned(), format!("NetJSON of the type {other}: {KNOWN}"))),
        None => {}
    }
    if object.contains_key("vis") {
        return batman::vis(json::list(object, "vis")?);
    }
    if let Some(batadv) = object.get("batadv").and_then(Value::as_object) {
        return viewer::graph(batadv);
    }
    if viewer::is_measured(object) {
        return viewer::viewer(object);
    }
    if let Some(wrong) = viewer::refused(object) {
        return Err(wrong);
    }
    if object.contains_key("nodes") && object.contains_key("links") && !text.contains("localIP") {
        return viewer::plain(object);
    }
    if object.contains_key("links") || object.contains_key("topology") {
        return olsr::jsoninfo(object);
    }
    Err(("1".to_owned(), KNOWN.to_owned()))
}

#[cfg(test)]
mod tests;
