//! olsrd: jsoninfo (`links`, `topology`) and txtinfo (tables Links and Topology, separated by tabs).
//!
//! LQ is the share that arrives from the neighbour, NLQ to it. OLSR tells of the links that others have as they told it: a link of the topology is
//! "last hop, destination", and LQ is the share that the last hop receives. So one node tells of the whole mesh.

use super::json::{list, name, number};
use super::{Dump, Metric, Wrong};
use serde_json::{Map as Object, Value};

pub fn jsoninfo(object: &Object<String, Value>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("olsrd's jsoninfo", Metric::Etx);
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

pub fn txtinfo(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("olsrd's txtinfo", Metric::Etx);
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
