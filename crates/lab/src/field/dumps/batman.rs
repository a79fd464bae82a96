//! batman-adv: `batctl o` and `n`, their JSON (`oj`, `nj`), and `batadv-vis -f jsondoc` for a whole mesh.
//!
//! B.A.T.M.A.N. IV has a quality (TQ) of 0 to 255: TQ / 255 is the share that arrives at the neighbour. It has a penalty for links that are worse backwards; it
//! is taken as it is. B.A.T.M.A.N. V has the throughput that a link is expected to carry, Mbit/s as text and kbit/s in JSON. An originator that is its own
//! next hop is a neighbour; the others tell the route. `batadv-vis` has 255 / TQ. The forms are those of batctl 2023.0 (originators.c, neighbors.c).

use super::json::{name, number};
use super::{Dump, Heard, Metric, OWN, Wrong};
use serde_json::Value;

/// A number in parentheses: TQ, or Mbit/s, which has a point.
enum Quality {
    Tq(f64),
    Mbps(f64),
}

/// `batctl o` or `batctl n` as text.
pub fn text(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("batctl", Metric::Quality);
    let mut own = OWN.to_owned();
    for (line, row) in text.lines().enumerate() {
        let at = |why: String| ((line + 1).to_string(), why);
        if row.trim_start().starts_with("[B.A.T.M.A.N.") {
            if let Some(mac) = row.split('/').find_map(|part| part.split([' ', ')']).next().filter(|word| is_mac(word)))
            {
                own = mac.to_owned();
            }
            dump.witness(&own);
            continue;
        }
        if row.trim_end().ends_with("Neighbor              last-seen") || row.contains("No batman nodes") {
            continue;
        }
        let words: Vec<&str> = row.split_whitespace().filter(|word| *word != "*").collect();
        let Some((quality, rest)) = parenthesized(row) else {
            // An interface, a neighbour and a time: B.A.T.M.A.N. IV has no quality in `batctl n`.
            if let [_, neighbour, seen] = words[..]
                && is_mac(neighbour)
                && seen.ends_with('s')
            {
                return Err(at(
                    "batctl n of B.A.T.M.A.N. IV tells no quality: give the output of `batctl o`".to_owned()
                ));
            }
            continue;
        };
        let [first, ..] = words[..] else { continue };
        dump.witness(&own);
        // `batctl n` has the interface behind the parentheses, `batctl o` the next hop.
        let next = rest.split_whitespace().next().filter(|word| !word.starts_with('[')).unwrap_or(first);
        let is_best = row.trim_start().starts_with('*') || next == first;
        entry(&mut dump, &own, first, next, quality, is_best).map_err(at)?;
    }
    Ok(dump)
}

fn is_mac(word: &str) -> bool {
    word.len() == 17
        && word.split(':').count() == 6
        && word.chars().all(|letter| letter == ':' || letter.is_ascii_hexdigit())
}

/// The number in the parentheses of a row, and what stands behind them.
fn parenthesized(row: &str) -> Option<(Quality, &str)> {
    let (_, rest) = row.split_once('(')?;
    let (inside, rest) = rest.split_once(')')?;
    let inside = inside.trim();
    let value = inside.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some((if inside.contains('.') { Quality::Mbps(value) } else { Quality::Tq(value) }, rest))
}

fn entry(
    dump: &mut Dump,
    own: &str,
    originator: &str,
    next: &str,
    quality: Quality,
    is_best: bool,
) -> Result<(), String> {
    if is_best {
        dump.route(own, originator, next);
    }
    dump.node(originator);
    if originator != next {
        return Ok(());
    }
    match quality {
        Quality::Tq(tq) => dump.add(own, originator, tq / 255.0),
        Quality::Mbps(mbps) => {
            dump.metric = Metric::Throughput;
            dump.heard(own, originator, Heard { mbps: Some(mbps), ..Heard::default() })
        }
    }
}

/// `batctl oj` and `batctl nj`.
pub fn json(entries: &[Value]) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("batctl", Metric::Quality);
    dump.witness(OWN);
    for (place, found) in entries.iter().enumerate() {
        let mut read = || {
            let next = name(found, "neigh_address")?;
            let originator = found.get("orig_address").and_then(Value::as_str).unwrap_or(next);
            let quality = match (number(found, "tq"), number(found, "throughput")) {
                (Ok(tq), _) => Quality::Tq(tq),
                (_, Ok(kbps)) => Quality::Mbps(kbps / 1e3),
                _ if originator != next => return Ok(()),
                _ => {
                    return Err("neither tq nor throughput: neighbors_json of B.A.T.M.A.N. IV has none, give the output of `batctl oj`".to_owned());
                }
            };
            let is_best = found.get("best").and_then(Value::as_bool).unwrap_or(originator == next);
            entry(&mut dump, OWN, originator, next, quality, is_best)
        };
        read().map_err(|why| (format!("entry {place}"), why))?;
    }
    Ok(dump)
}

/// `batadv-vis -f jsondoc`.
pub fn vis(entries: &[Value]) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("batadv-vis", Metric::Quality);
    for (place, found) in entries.iter().enumerate() {
        let mut read = || {
            let neighbours = found.get("neighbors").and_then(Value::as_array).ok_or("expected a list \"neighbors\"")?;
            neighbours.iter().try_for_each(|link| {
                let metric = number(link, "metric")?;
                if metric < 1.0 {
                    return Err(format!("a metric of {metric}: expected 1 or more"));
                }
                dump.add(name(link, "router")?, name(link, "neighbor")?, metric.recip())
            })
        };
        read().map_err(|why| (format!("vis {place}"), why))?;
    }
    Ok(dump)
}
