//! batman-adv: `batctl o` and `n`, their JSON (`oj`, `nj`), and `batadv-vis` for a whole mesh.
//!
//! B.A.T.M.A.N. IV has a quality (TQ) of 0 to 255, from which [`super::quality`] computes the share
//! that arrives at the neighbour. B.A.T.M.A.N. V has the throughput that a link is expected to
//! carry, in Mbit/s as text and in kbit/s in JSON. `batadv-vis` has 255 / TQ. The forms are those
//! of batctl 2023.0 (originators.c, neighbors.c), of older versions with all next hops in one row,
//! and of alfred 2023.0 (vis.c).
//!
//! A next hop is the address of an interface; an originator is the address of a router's main
//! interface. The two may differ, for example with the dummy main interface of Gluon. The router
//! behind a next hop is then the originator that is reached over it without a relay. Each relay
//! lowers TQ by the hop penalty (30 of 255 by default), and throughput by as much or by half. The
//! originator with the best value is therefore the neighbour itself.

use super::json::{Lines, name, number};
use super::{Dump, LinkReport, Medium, Metric, OWN, Wrong};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Smallest quality of the same router under another address, as a share of the next hop's quality.
/// It is above what the smallest usual hop penalty (15 of 255) leaves.
const SAME_ROUTER: f64 = 0.97;

/// A number in parentheses: a TQ, or a throughput in Mbit/s, which has a decimal point.
#[derive(Clone, Copy)]
enum Quality {
    Tq(f64),
    Mbps(f64),
}

impl Quality {
    fn value(self) -> f64 {
        match self {
            Quality::Tq(value) | Quality::Mbps(value) => value,
        }
    }
}

/// A row of the table of originators.
struct Row {
    place: usize,
    own: String,
    originator: String,
    next: String,
    quality: Quality,
    is_best: bool,
    medium: Option<Medium>,
}

/// Reads `batctl o` or `batctl n` as text.
pub fn text(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("batctl", Metric::Quality);
    let mut own = OWN.to_owned();
    let mut rows = Vec::new();
    // Older versions have the best next hop first, without a mark.
    let has_marks = text.lines().any(|row| row.trim_start().starts_with("* "));
    for (line, row) in text.lines().enumerate() {
        if row.trim_start().starts_with("[B.A.T.M.A.N.") {
            let macs: Vec<&str> = macs(row).collect();
            own = macs.first().map_or(OWN, |mac| mac).to_owned();
            let place = dump.witness(&own);
            macs.iter().skip(1).for_each(|mac| dump.also(place, mac));
            continue;
        }
        let words: Vec<&str> = row.split_whitespace().filter(|word| *word != "*").collect();
        let Some((quality, rest)) = parenthesized(row) else {
            // The row has an interface, a neighbour and a time: `batctl n` of B.A.T.M.A.N. IV has
            // no quality.
            if let [_, neighbour, seen] = words[..]
                && is_mac(neighbour)
                && seen.ends_with('s')
            {
                dump.witness(&own);
                dump.leave_out(line + 1, "batctl n of B.A.T.M.A.N. IV shows no quality; give the output of `batctl o`");
            } else if words.first().is_some_and(|word| is_mac(word)) {
                dump.leave_out(line + 1, format!("expected a quality in parentheses, found \"{}\"", row.trim()));
            }
            continue;
        };
        let Some(first) = words.first().filter(|word| is_mac(word)) else { continue };
        dump.witness(&own);
        // After the parentheses, `batctl n` has the interface and `batctl o` the next hop.
        let next = rest.split_whitespace().next().filter(|word| is_mac(word)).unwrap_or(first);
        let interface =
            rest.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inside, _)| inside.trim());
        rows.push(Row {
            place: line + 1,
            own: own.clone(),
            originator: (*first).to_owned(),
            next: next.to_owned(),
            quality,
            is_best: !has_marks || row.trim_start().starts_with('*'),
            medium: interface.and_then(Medium::of_interface),
        });
    }
    enter(&mut dump, &rows, |line| line.to_string());
    Ok(dump)
}

fn is_mac(word: &str) -> bool {
    word.len() == 17
        && word.split(':').count() == 6
        && word.chars().all(|letter| letter == ':' || letter.is_ascii_hexdigit())
}

/// MAC addresses in a line.
fn macs(row: &str) -> impl Iterator<Item = &str> {
    row.split([' ', '/', '(', ')', ']']).filter(|word| is_mac(word))
}

/// The number in the parentheses of a row, and the text after them.
fn parenthesized(row: &str) -> Option<(Quality, &str)> {
    let (_, rest) = row.split_once('(')?;
    let (inside, rest) = rest.split_once(')')?;
    let inside = inside.trim();
    let value = inside.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some((if inside.contains('.') { Quality::Mbps(value) } else { Quality::Tq(value) }, rest))
}

/// Enters all rows: first which addresses belong to one router, then links and next hops. `line`
/// maps a row's place to the text that a message shows.
fn enter(dump: &mut Dump, rows: &[Row], line: impl Fn(usize) -> String) {
    for own in rows.iter().map(|row| row.own.as_str()).collect::<BTreeSet<&str>>() {
        let of_own: Vec<&Row> = rows.iter().filter(|row| row.own == own).collect();
        for (next, originator) in same_routers(&of_own) {
            let router = dump.node(&originator);
            dump.also(router, &next);
        }
    }
    for row in rows {
        if let Err(why) = enter_one(dump, row) {
            dump.leave_out(line(row.place), why);
        }
    }
}

/// Next hops whose router is known under another address, with that address.
fn same_routers(rows: &[&Row]) -> Vec<(String, String)> {
    let mut by_next: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| by_next.entry(&row.next).or_default().push(row));
    // A neighbour that is known by its own address is not the second address of another router.
    let neighbours: BTreeSet<&str> =
        rows.iter().filter(|row| row.originator == row.next).map(|row| row.originator.as_str()).collect();
    let mut found = Vec::new();
    for (next, over) in by_next {
        let others = || over.iter().filter(|row| !neighbours.contains(row.originator.as_str()));
        let own_value = over.iter().find(|row| row.originator == next).map(|row| row.quality.value());
        let best = others().map(|row| row.quality.value()).fold(0.0, f64::max);
        let needed = own_value.unwrap_or(best) * SAME_ROUTER;
        let same: Vec<&&Row> = others().filter(|row| row.quality.value() >= needed && needed > 0.0).collect();
        // Originators of B.A.T.M.A.N. V are always main interfaces, so a next hop among them has no
        // other address. Without a row of the next hop itself, two equally good originators cannot
        // be told apart.
        let is_clear = match over.iter().find(|row| row.originator == next).map(|row| row.quality) {
            Some(Quality::Tq(_)) => true,
            Some(Quality::Mbps(_)) => false,
            None => same.len() == 1,
        };
        if is_clear {
            found.extend(same.iter().map(|row| (next.to_owned(), row.originator.clone())));
        }
    }
    found
}

fn enter_one(dump: &mut Dump, row: &Row) -> Result<(), String> {
    let Row { own, originator, next, quality, medium, .. } = row;
    if row.is_best {
        dump.route(own, originator, next);
    }
    dump.node(originator);
    if dump.find(originator) != dump.find(next) {
        return Ok(());
    }
    // A router with two addresses has two rows for one link. The row of the next hop counts.
    let is_second = originator != next && dump.links.iter().any(|link| Some(link.to) == dump.find(next));
    if is_second {
        return Ok(());
    }
    let report = match quality {
        Quality::Tq(tq) if *tq > 255.0 => return Err(format!("a quality of {tq}: expected 0 to 255")),
        Quality::Tq(tq) => LinkReport { tq: Some(tq / 255.0), ..LinkReport::default() },
        Quality::Mbps(mbps) => {
            dump.metric = Metric::Throughput;
            LinkReport { mbps: Some(*mbps), ..LinkReport::default() }
        }
    };
    dump.report(own, next, LinkReport { medium: *medium, ..report })
}

/// Reads `batctl oj` and `batctl nj`.
pub fn json(entries: &[Value], lines: &Lines<'_>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("batctl", Metric::Quality);
    dump.witness(OWN);
    let mut rows = Vec::new();
    for (place, found) in entries.iter().enumerate() {
        let read = || -> Result<Option<Row>, String> {
            let next = name(found, "neigh_address")?;
            let originator = found.get("orig_address").and_then(Value::as_str).unwrap_or(next);
            let quality = match (number(found, "tq"), number(found, "throughput")) {
                (Ok(tq), _) => Quality::Tq(tq),
                (_, Ok(kbps)) => Quality::Mbps(kbps / 1e3),
                _ if originator != next => return Ok(None),
                _ => {
                    return Err("neither tq nor throughput: neighbors_json of B.A.T.M.A.N. IV has none, give the output of `batctl oj`".to_owned());
                }
            };
            let interface = found.get("hard_ifname").and_then(Value::as_str);
            Ok(Some(Row {
                place,
                own: OWN.to_owned(),
                originator: originator.to_owned(),
                next: next.to_owned(),
                quality,
                is_best: found.get("best").and_then(Value::as_bool).unwrap_or(originator == next),
                medium: interface.and_then(Medium::of_interface),
            }))
        };
        match read() {
            Ok(row) => rows.extend(row),
            Err(why) => dump.leave_out(lines.of(&[], place), format!("entry {place}: {why}")),
        }
    }
    enter(&mut dump, &rows, |entry| lines.of(&[], entry));
    Ok(dump)
}

/// Reads `batadv-vis -f jsondoc`.
pub fn vis(entries: &[Value], lines: &Lines<'_>) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("batadv-vis", Metric::Quality);
    for found in entries {
        let Ok(primary) = name(found, "primary") else { continue };
        let secondaries = found.get("secondary").and_then(Value::as_array).into_iter().flatten();
        let router = dump.node(primary);
        secondaries.filter_map(Value::as_str).for_each(|address| dump.also(router, address));
        // The routers in this list are the entry's own interfaces.
        for link in found.get("neighbors").and_then(Value::as_array).into_iter().flatten() {
            if let Ok(address) = name(link, "router") {
                dump.also(router, address);
            }
        }
    }
    for (place, found) in entries.iter().enumerate() {
        let at = || lines.of(&["vis"], place);
        let Some(neighbours) = found.get("neighbors").and_then(Value::as_array) else {
            dump.leave_out(at(), format!("vis {place}: expected a list \"neighbors\""));
            continue;
        };
        for link in neighbours {
            if let Err(why) = vis_link(&mut dump, link, "metric") {
                dump.leave_out(at(), format!("vis {place}: {why}"));
            }
        }
    }
    Ok(dump)
}

/// Reads the output of `batadv-vis` without options, one object per line.
pub fn vis_lines(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("batadv-vis", Metric::Quality);
    let rows: Vec<(usize, Value)> =
        text.lines().enumerate().filter_map(|(line, row)| Some((line + 1, serde_json::from_str(row).ok()?))).collect();
    for (_, row) in &rows {
        if let (Ok(address), Ok(of)) = (name(row, "secondary"), name(row, "of")) {
            let router = dump.node(of);
            dump.also(router, address);
        } else if let Ok(primary) = name(row, "primary") {
            dump.node(primary);
        }
    }
    for (line, row) in rows.iter().filter(|(_, row)| row.get("neighbor").is_some()) {
        let read = vis_link(&mut dump, row, "label");
        dump.take(line, read);
    }
    Ok(dump)
}

fn vis_link(dump: &mut Dump, link: &Value, metric: &str) -> Result<(), String> {
    let metric = number(link, metric)?;
    if metric < 1.0 {
        return Err(format!("a metric of {metric}: expected 1 or more"));
    }
    let report = LinkReport { tq: Some(metric.recip()), ..LinkReport::default() };
    dump.report(name(link, "router")?, name(link, "neighbor")?, report)
}
