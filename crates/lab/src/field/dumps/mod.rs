//! Dumps of the links of a mesh, as these programs write them: routing daemons, `iw`, the maps of
//! community networks, and tables.
//!
//! | Form | Metric | Share that arrives |
//! |---|---|---|
//! | NetJSON `NetworkGraph`, `NetworkRoutes` (netjson.org/rfc.html) with a metric "etx..." | ETX, 1 / (there x back) | 1 / sqrt(ETX) each way |
//! | the same with another metric, as of olsrd2 | a cost | not known |
//! | olsrd jsoninfo (`links`, `topology`), txtinfo (tables Links and Topology) | LQ, NLQ | LQ from the neighbour, NLQ to it |
//! | babeld `dump` (RFC 8966, A.2.2) | rxcost, txcost | 256 / rxcost from the neighbour, 256 / txcost to it |
//! | `batctl o`, `oj` of B.A.T.M.A.N. IV | TQ, 0 to 255 | TQ / 255 to the neighbour |
//! | `batctl o`, `oj`, `n`, `nj` of B.A.T.M.A.N. V | throughput | not known |
//! | `batadv-vis`, `graph.json` | 255 / TQ | 1 / metric to the neighbour |
//! | `meshviewer.json` with `source_tq` | TQ, 0 to 1 | the same |
//! | `iw dev wlan0 station dump` | packets, retries, failures; bit rate | delivered packets over tries, to the neighbour |
//! | a table: `from`, `to`, and `etx`, `metric`, `delivery`, `snr_db`, `loss_db`, `hop_mbps`, `rate_mbps` or `mcs` | as named | 1 / sqrt(ETX) each way, `delivery` |
//!
//! Some of these forms contain only a node's own links; [`merge`] joins several of them to one
//! mesh. Entries that cannot be used are left out and listed ([`Dump::left_out`]). A file without
//! any usable entry is an error. Links over cables and tunnels are kept, with their [`Medium`].

mod babel;
mod batman;
mod iw;
mod json;
mod merge;
mod mistaken;
mod model;
mod netjson;
mod olsr;
mod quality;
mod table;
mod viewer;

pub use merge::merge;
pub use model::{DataRate, Dump, LeftOut, LinkReport, MAX_LINKS, MAX_NODES, Medium, Metric};
pub use table::mbps_of_mcs;

use serde_json::Value;

/// Name of the node that made a dump, if the dump does not name it.
pub const OWN: &str = "this node";

/// Program name of the files of the measuring kit.
pub const KIT: &str = "the measuring kit";
/// Program name of a table.
const TABLE: &str = "the table";

/// An error in a dump: the place (a line) and a sentence.
pub type Wrong = (String, String);

const KNOWN: &str = "expected NetJSON (NetworkGraph or NetworkRoutes), jsoninfo or txtinfo of olsrd, a dump of babeld, the output of `batctl o` or `oj`, of \
                     `batadv-vis` or of `iw dev wlan0 station dump`, meshviewer.json, or a table (CSV) with the columns from and to";

/// Reads a dump of links. The kind of the dump is recognized by its content.
///
/// # Errors
/// The first thing that is wrong with the dump, and where.
pub fn read(bytes: &[u8]) -> Result<Dump, Wrong> {
    if let Some(why) = mistaken::of_bytes(bytes) {
        return Err(("1".to_owned(), why.to_owned()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = (before.lines().count().max(1)).to_string();
        (line, "this is not UTF-8 text: give the file as the program wrote it, or save the table as UTF-8".to_owned())
    })?;
    // Byte order mark with which programs on Windows begin a file.
    let mut dump = one(text.trim_start_matches('\u{feff}'))?;
    if dump.links.is_empty() {
        return Err(no_link(&dump));
    }
    for (what, found, most) in [("nodes", dump.nodes.len(), MAX_NODES), ("links", dump.links.len(), MAX_LINKS)] {
        if found > most {
            return Err(("1".to_owned(), format!("it has {found} {what}, and at most {most} are supported")));
        }
    }
    quality::fill(&mut dump);
    if !text.trim_start().starts_with(['{', '[']) || text.contains("[B.A.T.M.A.N.") {
        dump.note_own_addresses(text);
    }
    Ok(dump)
}

/// Error for a dump without any usable link: the first entry that was left out, or what is missing.
fn no_link(dump: &Dump) -> Wrong {
    if let Some(LeftOut { place, why }) = dump.left_out.first() {
        let more = match dump.left_out.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more entries cannot be used, and no link is left)"),
        };
        return (place.clone(), format!("{why}{more}"));
    }
    let why = match dump.missing() {
        Some(missing) => format!("it has no links: {missing}"),
        None => "it has no links".to_owned(),
    };
    ("1".to_owned(), why)
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
        _ if line(&["add neighbour", "add interface"]) || first.starts_with("BABEL ") => {
            each(text, "BABEL ", babel::read)
        }
        _ if line(&["Station ", "Interface "]) || first.starts_with("phy#") => iw::read(text),
        _ if said(first) => Err((
            "1".to_owned(),
            format!("the program that wrote this failed (\"{first}\"): run it on a node of the mesh, as root"),
        )),
        _ => Err(("1".to_owned(), KNOWN.to_owned())),
    }
}

/// Reads the dumps of several nodes that follow each other in one file. Each dump begins with a
/// line that starts with `start`.
fn each(text: &str, start: &str, read: fn(&str) -> Result<Dump, Wrong>) -> Result<Dump, Wrong> {
    let begins: Vec<usize> = text
        .match_indices(start)
        .map(|(place, _)| place)
        .filter(|place| *place == 0 || text.as_bytes()[place - 1] == b'\n')
        .collect();
    if begins.len() < 2 {
        return read(text);
    }
    let ends = begins.iter().skip(1).copied().chain([text.len()]);
    let mut dumps = Vec::new();
    for (from, to) in begins.iter().copied().zip(ends) {
        let mut dump = read(&text[from..to])?;
        // Line numbers count from the beginning of the file.
        let before = text[..from].lines().count();
        for entry in &mut dump.left_out {
            entry.place = entry.place.parse::<usize>().map_or(entry.place.clone(), |line| (line + before).to_string());
        }
        dumps.push((String::new(), dump));
    }
    Ok(merge(&dumps))
}

/// True for an error message that a failed program prints.
fn said(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["error", "command failed", "nl80211 not found", "no such device"].iter().any(|start| line.starts_with(start))
        || line.ends_with("not found")
        || line.contains("connection refused")
}

fn json(text: &str) -> Result<Dump, Wrong> {
    // batadv-vis prints one object per line.
    let first_line = text.lines().next().unwrap_or_default();
    if ["\"primary\"", "\"neighbor\"", "\"secondary\""].iter().any(|key| first_line.contains(key))
        && serde_json::from_str::<Value>(first_line).is_ok()
        && text.lines().nth(1).is_some()
    {
        return batman::vis_lines(text);
    }
    let document: Value = serde_json::from_str(text).map_err(|error| (error.line().to_string(), error.to_string()))?;
    let lines = json::Lines::new(text);
    let object = match &document {
        Value::Array(entries) => return batman::json(entries, &lines),
        Value::Object(object) => object,
        _ => return Err(("1".to_owned(), KNOWN.to_owned())),
    };
    match object.get("type").and_then(Value::as_str) {
        Some("NetworkGraph") => return netjson::graph(object, &lines, &[]),
        Some("NetworkRoutes") => return netjson::routes(object, &lines),
        // olsrd2 prints several graphs. The first one that has links is used.
        Some("NetworkCollection") => {
            let graphs = json::list(object, "collection")?;
            let objects = graphs.iter().enumerate().filter_map(|(place, graph)| Some((place, graph.as_object()?)));
            let graph = objects.into_iter().find(|(_, graph)| {
                graph.get("type").and_then(Value::as_str) == Some("NetworkGraph")
                    && graph.get("links").and_then(Value::as_array).is_some_and(|links| !links.is_empty())
            });
            let none = || Err(("1".to_owned(), "no NetworkGraph with links in it".to_owned()));
            let (place, graph) = graph.map_or_else(none, Ok)?;
            return netjson::graph(graph, &lines, &["collection", &place.to_string()]);
        }
        Some(other) => return Err(("1".to_owned(), format!("NetJSON of the type {other}: {KNOWN}"))),
        None => {}
    }
    if object.contains_key("vis") {
        return batman::vis(json::list(object, "vis")?, &lines);
    }
    if let Some(batadv) = object.get("batadv").and_then(Value::as_object) {
        return viewer::graph(batadv, &lines);
    }
    if viewer::is_measured(object) {
        return viewer::viewer(object, &lines);
    }
    if let Some(wrong) = viewer::refused(object) {
        return Err(wrong);
    }
    if object.contains_key("nodes") && object.contains_key("links") && !text.contains("localIP") {
        return viewer::plain(object, &lines);
    }
    if object.contains_key("links") || object.contains_key("topology") {
        return olsr::jsoninfo(object, &lines);
    }
    Err(("1".to_owned(), KNOWN.to_owned()))
}

#[cfg(test)]
mod tests;
