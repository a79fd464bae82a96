//! Files of `kit/meshpace-kit`: a directory for each node, with the output of its radio, its
//! routing program and iperf3 (docs/measuring-kit.md).
//!
//! The file `kit` in a node's directory begins with `meshpace-kit 1`. A line `node NAME` follows,
//! then a line `to ADDRESS NUMBER` for each measurement, and `end` if the kit was not stopped
//! early. Each number has the files `N.route` (`ip route get`) and `N.iperf3` (`iperf3 -J`), and,
//! if there are radios, `N.survey-before` and `N.survey-after`. The other files are dumps as
//! [`dumps`] reads them. A measurement to a neighbour gives the goodput of that hop alone; the
//! other measurements are of paths.

use super::dumps::{self, Dump, LinkReport, Metric};
use super::state::{Rts, State};
use super::{results, ways};
use std::fs;
use std::path::{Path, PathBuf};

/// Version of the format that is read.
const FORMAT: &str = "1";
/// File that identifies the directory of a node.
const KIT: &str = "kit";
/// Files with dumps of routing programs. The first one that exists is used.
const ROUTING: [&str; 5] = ["batctl-o", "babeld", "olsrd", "olsrd-txt", "olsrd2"];

/// One measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// Sender, as an index into the dump's nodes.
    pub from: usize,
    /// Receiver, as an index into the dump's nodes.
    pub to: usize,
    /// Received payload, bit/s.
    pub goodput_bps: f64,
    /// Share of the time in which the sender's channel was busy during the measurement. `None` if
    /// no radio reports it.
    pub busy: Option<f64>,
}

/// A measured mesh.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kit {
    /// Nodes, links and routes of the mesh. Measured links have the goodput that they carry alone.
    pub dump: Dump,
    /// Measurements over single hops and over paths, by node and in the order in which they were
    /// made.
    pub runs: Vec<Run>,
    /// Sentences on what is missing or failed.
    pub notes: Vec<String>,
    /// Settings of the mesh.
    pub state: State,
}

/// Directories of nodes, in the order of their names: `directory` itself if it is one, otherwise
/// those in it.
fn nodes(directory: &Path) -> Vec<PathBuf> {
    if directory.join(KIT).is_file() {
        return vec![directory.to_owned()];
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.join(KIT).is_file()).collect();
    found.sort();
    found
}

/// Reads the directory of a measured mesh.
///
/// # Errors
/// It contains no node, a node has a format that is not known, or nothing was measured.
pub fn read(directory: &Path) -> Result<Kit, String> {
    let found = nodes(directory);
    if found.is_empty() {
        return Err(format!(
            "{}: not a directory of the measuring kit: expected DIR/NODE/{KIT}, as kit/meshpace-kit writes it",
            directory.display()
        ));
    }
    let mut kit = Kit { state: State { rts: Rts::Unknown, ..State::default() }, ..Kit::default() };
    let (mut parts, mut tried) = (Vec::new(), Vec::new());
    for node in found {
        let told = ["iw-phy", "radio"].map(|file| fs::read_to_string(node.join(file)).unwrap_or_default());
        if kit.state.rts == Rts::Unknown && told.iter().any(|text| !text.trim().is_empty()) {
            // `iw phy` prints a line about the threshold only if a threshold is set.
            kit.state.rts = Rts::Off;
        }
        told.iter().for_each(|text| kit.state.find(text));
        one(&node, &mut kit.notes, &mut parts, &mut tried)?;
        if let Some(control) = congestion(&node) {
            kit.state.congestion = control;
        }
    }
    let rank = |dump: &Dump| match dump.program {
        dumps::KIT => 2,
        "iw" => 1,
        _ => 0,
    };
    let metric = parts.iter().map(|(_, dump)| (rank(dump), dump.metric)).min_by_key(|(rank, _)| *rank);
    kit.dump = dumps::merge(&parts);
    kit.dump.program = dumps::KIT;
    kit.dump.metric = metric.map(|(_, metric)| metric).unwrap_or_default();
    // The goodput that a program expects of a link is not a measurement.
    kit.dump.links.iter_mut().for_each(|link| link.mbps = None);
    for (node, address, goodput_bps, busy) in tried {
        let (Some(from), Some(to)) = (kit.dump.find(&node), kit.dump.find(&address)) else { continue };
        if from != to {
            kit.runs.push(Run { from, to, goodput_bps, busy });
        }
    }
    if kit.runs.is_empty() {
        let why = if kit.notes.is_empty() { String::new() } else { format!(": {}", kit.notes.join("; ")) };
        return Err(format!("{}: nothing was measured{why}", directory.display()));
    }
    // A hop that carried nothing is not a link.
    for run in kit.runs.iter().filter(|run| run.goodput_bps > 0.0) {
        if ways::way(&kit.dump, run.from, run.to).is_some_and(|way| way.len() == 2) {
            let mbps = Some(run.goodput_bps / 1e6);
            kit.dump.links.push(LinkReport { from: run.from, to: run.to, mbps, ..LinkReport::default() });
        }
    }
    Ok(kit)
}

/// Congestion control of a node's measurements as iperf3 names it. `None` if iperf3 does not name
/// it.
fn congestion(node: &Path) -> Option<String> {
    let entries = fs::read_dir(node).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut measured: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "iperf3")).collect();
    measured.sort();
    measured.iter().find_map(|path| {
        let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        Some(document.pointer("/end/sender_tcp_congestion")?.as_str()?.to_owned())
    })
}

/// A measurement before its names are resolved: node, address, goodput in bit/s, share of busy
/// time.
type Tried = (String, String, f64, Option<f64>);

/// Adds the data of one node.
fn one(
    directory: &Path,
    notes: &mut Vec<String>,
    parts: &mut Vec<(String, Dump)>,
    tried: &mut Vec<Tried>,
) -> Result<(), String> {
    let text = |name: &str| fs::read_to_string(directory.join(name)).ok().filter(|text| !text.trim().is_empty());
    let of_kit = text(KIT).unwrap_or_default();
    let wrong = |line: usize, why: &str| Err(format!("{}:{line}: {why}", directory.join(KIT).display()));
    match of_kit.lines().next().unwrap_or_default().split_once(' ') {
        Some(("meshpace-kit", FORMAT)) => {}
        Some(("meshpace-kit", other)) => {
            return wrong(
                1,
                &format!(
                    "format {other} of the measuring kit, but this version of meshpace reads format {FORMAT}: use the kit of this version"
                ),
            );
        }
        _ => return wrong(1, &format!("not a file of the measuring kit: expected \"meshpace-kit {FORMAT}\"")),
    }
    let name = of_kit.lines().find_map(|line| line.strip_prefix("node "));
    let Some(name) = name else { return wrong(2, "expected \"node NAME\"") };
    if !of_kit.lines().any(|line| line == "end") {
        notes.push(format!("{name}: the kit was stopped before its end"));
    }
    let mut own = Dump::of_kit(name);
    for address in addresses(&text("links").unwrap_or_default(), &text("addresses").unwrap_or_default()) {
        own.also(0, &address);
    }
    for (line, row) in of_kit.lines().enumerate() {
        let Some(row) = row.strip_prefix("to ") else { continue };
        let Some((address, number)) = row.split_once(' ') else {
            return wrong(line + 1, "expected \"to ADDRESS NUMBER\"");
        };
        let route = text(&format!("{number}.route")).unwrap_or_default();
        if let Some(mac) = text(&format!("{number}.batctl-t")).as_deref().and_then(last_word) {
            // The route comes from batman-adv.
            own.named(mac, address);
        } else if let Some(next) = next_hop(&route, address) {
            own.route(name, address, &next);
        } else {
            notes.push(format!("{name} to {address}: `ip route get` found no route"));
        }
        let measured = match text(&format!("{number}.iperf3")) {
            Some(json) => results::read(json.as_bytes()),
            None => Err("iperf3 wrote nothing".to_owned()),
        };
        match measured {
            Ok(found) => {
                let survey = |when: &str| text(&format!("{number}.survey-{when}")).map(|text| survey(&text));
                let busy = survey("before").zip(survey("after")).and_then(|(before, after)| busy(before, after));
                tried.push((name.to_owned(), address.to_owned(), found[0].goodput_bps, busy));
            }
            Err(why) => notes.push(format!("{name} to {address}: {why}")),
        }
    }
    parts.push((name.to_owned(), own));
    let stations = fs::read_dir(directory).into_iter().flatten().flatten();
    let stations = stations.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = stations.filter(|file| file.starts_with("station-")).collect();
    files.sort();
    let routing = ROUTING.iter().find(|file| text(file).is_some());
    files.extend(routing.map(|file| (*file).to_owned()));
    for file in files {
        match dumps::read(text(&file).unwrap_or_default().as_bytes()) {
            Ok(dump) => parts.push((name.to_owned(), dump)),
            // A radio without neighbours is not an error.
            Err(_) if file.starts_with("station-") => {}
            Err((place, why)) => notes.push(format!("{}:{place}: {why}", directory.join(&file).display())),
        }
    }
    Ok(())
}

/// Addresses of a node from the output of `ip -o link` and `ip -o addr`, without the loopback
/// addresses that every host has.
fn addresses(links: &str, addresses: &str) -> Vec<String> {
    let after = |text: &str, keys: &[&str]| -> Vec<String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let pairs = words.windows(2).filter(|pair| keys.contains(&pair[0]));
        pairs.filter_map(|pair| pair[1].split('/').next()).map(str::to_owned).collect()
    };
    let mut found = after(links, &["link/ether"]);
    found.extend(after(addresses, &["inet", "inet6"]));
    found.retain(|address| !address.starts_with("127.") && address != "::1");
    found
}

/// Next hop in the output of `ip route get`.
fn next_hop(route: &str, address: &str) -> Option<String> {
    let words: Vec<&str> = route.lines().next()?.split_whitespace().collect();
    if !words.contains(&"dev") || words.first() == Some(&"local") {
        return None;
    }
    let Some(via) = words.iter().position(|word| *word == "via") else { return Some(address.to_owned()) };
    // The form "via inet6 fe80::1" is the next hop of an IPv4 address over IPv6.
    let next = words.get(via + 1).filter(|word| **word != "inet6").or_else(|| words.get(via + 2))?;
    Some((*next).to_owned())
}

fn last_word(text: &str) -> Option<&str> {
    text.split_whitespace().next_back()
}

/// Milliseconds for which the channels in use were observed, and for which they were busy, from the
/// output of `iw dev wlan0 survey dump`.
fn survey(text: &str) -> (f64, f64) {
    let (mut active, mut busy, mut is_used) = (0.0, 0.0, false);
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let number = || value.trim().trim_end_matches("ms").trim().parse::<f64>().unwrap_or(0.0);
        match key {
            "frequency" => is_used = value.contains("[in use]"),
            "channel active time" if is_used => active += number(),
            "channel busy time" if is_used => busy += number(),
            _ => {}
        }
    }
    (active, busy)
}

/// Share of busy time between two surveys. `None` if the surveys do not determine it.
fn busy(before: (f64, f64), after: (f64, f64)) -> Option<f64> {
    let active = after.0 - before.0;
    let share = (after.1 - before.1) / active;
    (active > 0.0 && (0.0..=1.0).contains(&share)).then_some(share)
}

impl Dump {
    fn of_kit(name: &str) -> Dump {
        let mut dump = Dump::of(dumps::KIT, Metric::Hops);
        dump.witness(name);
        dump
    }

    /// Notes another name of a node. The node is added if it is new.
    fn named(&mut self, node: &str, name: &str) {
        let place = self.node(node);
        self.also(place, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPERF3: &str = r#"{"start":{},"end":{"sum_received":{"bits_per_second":BPS}}}"#;

    /// Writes the directory of a node. Each measurement has an address, a route and a goodput.
    fn node(mesh: &Path, name: &str, addresses: &str, runs: &[(&str, &str, &str)]) {
        let directory = mesh.join(name);
        fs::create_dir_all(&directory).unwrap();
        let mut kit = format!("meshpace-kit 1\nnode {name}\ntime 2026-01-01T00:00:00Z\n");
        for (number, (address, route, bps)) in runs.iter().enumerate() {
            kit += &format!("to {address} {number}\n");
            fs::write(directory.join(format!("{number}.route")), route).unwrap();
            fs::write(directory.join(format!("{number}.iperf3")), IPERF3.replace("BPS", bps)).unwrap();
        }
        fs::write(directory.join("addresses"), addresses).unwrap();
        fs::write(directory.join(KIT), kit + "end\n").unwrap();
    }

    /// Writes the directories of three nodes in a row.
    fn chain(mesh: &Path) {
        let lo = "1: lo    inet 127.0.0.1/8 scope host lo\n";
        node(
            mesh,
            "roof",
            &format!("{lo}2: mesh0    inet 10.0.0.1/16 scope global mesh0"),
            &[
                ("10.0.0.2", "10.0.0.2 dev mesh0 src 10.0.0.1 uid 0 \n    cache \n", "12e6"),
                ("10.0.0.3", "10.0.0.3 via 10.0.0.2 dev mesh0 src 10.0.0.1 \n", "2.5e6"),
            ],
        );
        node(
            mesh,
            "mill",
            &format!("{lo}2: mesh0    inet 10.0.0.2/16 scope global mesh0"),
            &[("10.0.0.3", "10.0.0.3 dev mesh0 src 10.0.0.2 \n", "4e6")],
        );
    }

    #[test]
    fn hops_and_paths_are_told_apart_by_the_routes() {
        let scratch = tempfile::tempdir().unwrap();
        chain(scratch.path());
        let kit = read(scratch.path()).unwrap();
        let place = |name: &str| kit.dump.find(name).unwrap();
        // The far end was never asked: it has the name of its address.
        let (roof, mill, far) = (place("roof"), place("mill"), place("10.0.0.3"));
        assert_eq!((place("10.0.0.2"), kit.dump.nodes[mill].as_str()), (mill, "mill"));
        assert_eq!(ways::way(&kit.dump, roof, far), Some(vec![roof, mill, far]));
        let mbps = ways::mbps(&kit.dump);
        assert_eq!((mbps[&(roof, mill)], mbps[&(mill, far)]), (12.0, 4.0));
        assert!(!mbps.contains_key(&(roof, far)), "a path is no hop");
        assert_eq!(kit.runs.len(), 3);
        assert!(kit.notes.is_empty(), "{:?}", kit.notes);
        assert_eq!(kit.state.rts, Rts::Unknown, "no node has a radio that tells");
        assert_eq!(read(&scratch.path().join("roof")).unwrap().runs.len(), 2, "a node alone");
    }

    #[test]
    fn under_batman_adv_the_route_is_that_of_the_address_it_translates_to() {
        let scratch = tempfile::tempdir().unwrap();
        let flat = |to: &str| format!("{to} dev bat0 src 10.0.0.1 \n");
        node(
            scratch.path(),
            "roof",
            "3: bat0    inet 10.0.0.1/16 scope global bat0",
            &[("10.0.0.2", &flat("10.0.0.2"), "12e6"), ("10.0.0.3", &flat("10.0.0.3"), "2.5e6")],
        );
        let roof = scratch.path().join("roof");
        fs::write(
            roof.join("links"),
            "2: wlan0: <UP> mtu 1532\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n",
        )
        .unwrap();
        fs::write(roof.join("0.batctl-t"), "02:00:00:00:00:02\n").unwrap();
        fs::write(roof.join("1.batctl-t"), "02:00:00:00:00:03\n").unwrap();
        let batctl = |own: u8, entries: &str| {
            format!(
                "[B.A.T.M.A.N. adv 2022.3, MainIF/MAC: wlan0/02:00:00:00:00:0{own} (bat0/62:00:00:00:00:0{own} BATMAN_IV)]\n   Originator        last-seen (#/255) Nexthop           [outgoingIF]\n{entries}"
            )
        };
        let entry = |to: u8, quality: u8, next: u8| {
            format!(" * 02:00:00:00:00:0{to}    0.100s   ({quality}) 02:00:00:00:00:0{next} [     wlan0]\n")
        };
        fs::write(roof.join("batctl-o"), batctl(1, &(entry(2, 255, 2) + &entry(3, 230, 2)))).unwrap();
        // The node between, where nothing was measured.
        node(scratch.path(), "mill", "3: bat0    inet 10.0.0.2/16 scope global bat0", &[]);
        let mill = scratch.path().join("mill");
        fs::write(
            mill.join("links"),
            "2: wlan0: <UP> mtu 1532\\    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff\n",
        )
        .unwrap();
        fs::write(mill.join("batctl-o"), batctl(2, &(entry(1, 255, 1) + &entry(3, 255, 3)))).unwrap();
        let kit = read(scratch.path()).unwrap();
        let place = |name: &str| kit.dump.find(name).unwrap();
        assert_eq!(kit.dump.nodes.len(), 3, "{:?}", kit.dump);
        let way = ways::way(&kit.dump, place("roof"), place("10.0.0.3")).unwrap();
        assert_eq!(way, [place("roof"), place("mill"), place("10.0.0.3")]);
        assert_eq!((place("mill"), place("02:00:00:00:00:03")), (place("10.0.0.2"), place("10.0.0.3")));
        assert_eq!(ways::mbps(&kit.dump).len(), 2, "the first hop, both ways: the second was not measured");
        assert_eq!(kit.dump.metric, Metric::Quality);
    }

    #[test]
    fn what_is_missing_is_said() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(read(scratch.path()).unwrap_err().contains("expected DIR/NODE/kit"));
        chain(scratch.path());
        let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
        write(
            "mill/0.iperf3",
            r#"{"start":{},"error":"error - unable to connect to server: Connection refused","end":{}}"#,
        );
        write("mill/kit", "meshpace-kit 1\nnode mill\nto 10.0.0.3 0\n");
        let notes = read(scratch.path()).unwrap().notes;
        assert_eq!(notes[0], "mill: the kit was stopped before its end");
        assert!(notes[1].starts_with("mill to 10.0.0.3: iperf3 failed") && notes[1].contains("refused"), "{notes:?}");
        write("mill/kit", "meshpace-kit 2\nnode mill\n");
        assert!(read(scratch.path()).unwrap_err().contains("kit:1: format 2 of the measuring kit"));
        write("mill/kit", "[mesh]\n");
        assert!(read(scratch.path()).unwrap_err().contains("not a file of the measuring kit"));
    }

    #[test]
    fn busy_time_is_that_of_the_channel_in_use() {
        // As of iw 5.19, "iw dev wlan0 survey dump".
        let dump = |active: u32, busy: u32| {
            format!(
                "Survey data from wlan0\n\tfrequency:\t\t\t2412 MHz\n\tchannel active time:\t\t9 ms\n\tchannel busy time:\t\t9 ms\nSurvey data from \
                 wlan0\n\tfrequency:\t\t\t5180 MHz [in use]\n\tnoise:\t\t\t\t-95 dBm\n\tchannel active time:\t\t{active} ms\n\tchannel busy time:\t\t{busy} ms\n"
            )
        };
        assert_eq!(busy(survey(&dump(1000, 100)), survey(&dump(11_000, 8100))), Some(0.8));
        assert_eq!(busy(survey(&dump(1000, 100)), survey("")), None);
    }

    #[test]
    fn a_route_names_the_next_hop_or_none() {
        let next = |route: &str| next_hop(route, "10.0.0.3");
        assert_eq!(next("10.0.0.3 via inet6 fe80::2 dev wlan0 src 10.0.0.1").as_deref(), Some("fe80::2"));
        assert_eq!(next("10.0.0.3 dev wlan0 src 10.0.0.1").as_deref(), Some("10.0.0.3"));
        assert_eq!(next("local 10.0.0.3 dev lo src 10.0.0.3"), None);
        assert_eq!(next("RTNETLINK answers: Network is unreachable"), None);
    }
}
