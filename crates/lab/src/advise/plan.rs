//! Model of a mesh that is known from a dump. It gives each hop a bit rate and a loss, so that the
//! hop carries in the simulation what the dump says.
//!
//! | What the dump has for a hop | Bit rate in the simulation | Loss in the simulation |
//! |---|---|---|
//! | a measured goodput (the kit, `hop_mbps`) | the slowest MCS that carries it | the loss with which it carries it |
//! | a bit rate | that rate, or the nearest MCS | by the share that arrives |
//! | the goodput that a program expects | as for a measured one | the loss with which it carries it |
//! | none of these | the assumed rate | by the share that arrives; no loss if none is known |
//!
//! Cables and tunnels take no air time; the two routers are one station. If the simulator has no
//! rate for a hop, nothing is simulated ([`Plan::not_simulated`]).

use super::limits;
use super::rates::{self, Rate, nearest_mcs};
use super::routes::{self, Hop, Route};
use crate::field::dumps::{DataRate, Dump, Medium, Metric};
use crate::field::{path, ways};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// ETX above which a link is left out, if no flow uses it and nothing is known about its strength.
const WORST_ETX: f64 = 2.0;
/// Signal-to-noise ratio of links whose strength is not known, dB. It is enough for every rate
/// here.
const GOOD_DB: f64 = 30.0;
/// Largest and smallest goodput of a hop that is simulated, as shares of the goodputs of the
/// fastest and the slowest MCS.
const FEASIBLE: (f64, f64) = (1.1, 0.45);

/// Number of tries that stands for a cable when routes are compared.
const WIRE_TRIES: f64 = 0.01;

/// Share below which a measurement of a link cannot tell it from zero.
const LEAST_SHARE: f64 = 0.001;

/// Goodput of bulk TCP over one hop without loss for each MCS, Mbit/s, in the simulator.
pub type OneHop = [f64; rates::HIGHEST_MCS as usize + 1];

/// Model of a mesh.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// Keys of the scenario for the radio and the MAC, with their values as TOML.
    pub keys: Vec<(&'static str, String)>,
    /// Content of `links.csv`, for `radio.links`.
    pub links: String,
    /// Content of `map.json`, whose links are those of the routes.
    pub map: String,
    /// Node of the dump for each node of the scenario.
    pub nodes: Vec<usize>,
    /// Ends of the flows in the scenario.
    pub ends: Vec<(usize, usize)>,
    /// Route of each flow, with nodes of the dump.
    pub routes: Vec<Route>,
    /// Basis of the bit rates, for people, such as "at an assumed MCS 3: --rate sets it".
    pub basis: String,
    /// Rate that is assumed, if some hop has none.
    pub assumed: Option<Rate>,
    /// Reason why nothing is simulated. `None` if the mesh can be simulated.
    pub not_simulated: Option<String>,
    /// Number of pairs of nodes with a radio link, and number of those pairs that no route uses and
    /// that deliver fewer than half of the frames in one direction.
    pub pairs: (usize, usize),
}

/// What is known about one direction of a hop.
#[derive(Clone, Copy, Debug)]
enum Known {
    Goodput(f64),
    Rate(DataRate),
    Nothing,
}

/// One direction of a link in the simulation.
#[derive(Clone, Copy, Debug)]
struct Link {
    mcs: Option<u8>,
    delivery: Option<f64>,
    snr_db: Option<f64>,
}

/// Standard that all links have.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Standard {
    /// One rate of 802.11b, a or g, Mbit/s.
    Legacy(f64),
    /// One MCS.
    Mcs(u8),
    /// An MCS for each direction of each link.
    Listed { has_aggregates: bool },
}

/// Builds the model. `ways` are the routes of the flows, and `assumed` is the rate of hops without
/// a known rate. `one_hop` is called if goodputs are known instead of rates.
///
/// # Errors
/// A sentence on a flow without a radio hop, or on a mesh that is too large.
pub fn plan(dump: &Dump, ways: &[Vec<usize>], assumed: Rate, one_hop: &dyn Fn() -> OneHop) -> Result<Plan, String> {
    with_radio(dump, ways, Radio::Assumed(assumed), one_hop)
}

/// Radio of the mesh, in addition to what the dump says about hops.
#[derive(Clone, Copy)]
pub enum Radio<'a> {
    /// Rate of the hops for which the dump has none.
    Assumed(Rate),
    /// A radio that is known as a whole.
    Found {
        /// Keys of the radio.
        keys: &'a [(&'static str, String)],
        /// Share of the frames that arrive over a hop which carries a given goodput in Mbit/s.
        /// `None` if no share explains the goodput.
        share: &'a dyn Fn(f64) -> Option<f64>,
        /// True if nodes that are two hops apart on a route sense each other, although they cannot
        /// decode each other's frames.
        senses_two_hops: bool,
    },
}

/// Builds the model with a radio that may be known as a whole. With a known radio, the loss of each
/// hop is set so that the hop carries what was measured.
///
/// # Errors
/// As [`plan`].
pub fn with_radio(
    dump: &Dump,
    ways: &[Vec<usize>],
    radio: Radio<'_>,
    one_hop: &dyn Fn() -> OneHop,
) -> Result<Plan, String> {
    let stations = stations(dump, ways);
    let routes: Vec<Route> = ways.iter().map(|way| route(dump, way)).collect();
    let station_ways: Vec<Vec<usize>> = ways.iter().map(|way| along(way, &stations)).collect();
    if let Some(place) = station_ways.iter().position(|way| way.len() < 2) {
        let way: Vec<&str> = ways[place].iter().map(|node| dump.nodes[*node].as_str()).collect();
        return Err(format!(
            "flow {place} has no radio hop: {} has only cables and tunnels, which use no air time",
            way.join("-")
        ));
    }
    let hops: BTreeSet<(usize, usize)> = ways
        .iter()
        .flat_map(|way| way.windows(2))
        .filter(|hop| dump.medium(hop[0], hop[1]) == Medium::Radio)
        .flat_map(|hop| [(hop[0], hop[1]), (hop[1], hop[0])])
        .collect();
    let nodes = shown_nodes(dump, &station_ways)?;
    // Reports on other nodes have no influence on the model.
    let relevant: BTreeSet<usize> = nodes.iter().chain(ways.iter().flatten()).copied().collect();
    let dump = &dump.among(&relevant);
    let place = |station: usize| nodes.iter().position(|node| *node == station).unwrap_or_default();
    let mut plan = Plan {
        ends: station_ways.iter().map(|way| (place(way[0]), place(way[way.len() - 1]))).collect(),
        routes,
        nodes: nodes.clone(),
        ..Plan::default()
    };
    let is_used: BTreeSet<(usize, usize)> =
        station_ways.iter().flat_map(|way| way.windows(2)).map(|hop| (hop[0], hop[1])).collect();
    plan.map = map_file(&nodes, &is_used);
    let assumed = match radio {
        Radio::Found { keys, share, senses_two_hops } => {
            let link = |hop: (usize, usize)| {
                let share = first(dump, hop, |link| link.mbps).and_then(share);
                let delivery = share.or_else(|| ways::delivery(dump, hop.0, hop.1));
                Link { mcs: None, delivery: Some(delivery.unwrap_or(1.0)), snr_db: None }
            };
            let listed = listed(dump, &stations, &hops, link);
            plan.pairs = pairs(dump, &listed, &is_used);
            plan.not_simulated = unexplained(dump, &hops, share);
            plan.keys = keys.to_vec();
            plan.links = found_links_file(&listed, &station_ways, &nodes, senses_two_hops);
            let rate = keys.iter().find(|(key, _)| *key == "radio.rate").map_or("", |(_, rate)| rate.trim_matches('"'));
            plan.basis = format!("with the radio that was found, {rate}, and hops that carry what was measured");
            if senses_two_hops {
                plan.keys.push(("radio.carrier_sense_threshold", format!("\"{SENSED_FROM_DBM} dBm\"")));
            }
            return Ok(plan);
        }
        Radio::Assumed(assumed) => assumed,
    };
    let known: Vec<Known> = hops.iter().map(|&hop| known(dump, hop)).collect();
    let standard = standard(&known, assumed);
    plan.basis = basis(dump, &known, standard, assumed);
    plan.assumed = known.iter().any(|known| matches!(known, Known::Nothing)).then_some(assumed);
    let carried = known.iter().any(|known| matches!(known, Known::Goodput(_))).then(one_hop);
    plan.not_simulated = not_simulated(&known, standard, carried.as_ref());
    plan.keys = keys(standard);
    let listed = listed(dump, &stations, &hops, |hop| link(dump, hop, standard, assumed, carried.as_ref()));
    plan.pairs = pairs(dump, &listed, &is_used);
    plan.links = links_file(&listed, &nodes);
    Ok(plan)
}

/// Station of each node. Routers that a flow's cable or tunnel connects are one station, which has
/// the number of the first router.
fn stations(dump: &Dump, ways: &[Vec<usize>]) -> Vec<usize> {
    let mut of: Vec<usize> = (0..dump.nodes.len()).collect();
    for hop in ways.iter().flat_map(|way| way.windows(2)).filter(|hop| dump.medium(hop[0], hop[1]) != Medium::Radio) {
        let (first, second) = (of[hop[0]].min(of[hop[1]]), of[hop[0]].max(of[hop[1]]));
        of.iter_mut().filter(|station| **station == second).for_each(|station| *station = first);
    }
    of
}

/// A route as a list of stations.
fn along(way: &[usize], stations: &[usize]) -> Vec<usize> {
    let mut found: Vec<usize> = way.iter().map(|node| stations[*node]).collect();
    found.dedup();
    found
}

/// Nodes of the scenario. A small mesh has all of its nodes; a large one has only those of the
/// routes, because no other node sends.
fn shown_nodes(dump: &Dump, ways: &[Vec<usize>]) -> Result<Vec<usize>, String> {
    if dump.nodes.len() <= limits::NODES {
        return Ok((0..dump.nodes.len()).collect());
    }
    let used: BTreeSet<usize> = ways.iter().flatten().copied().collect();
    super::nodes_within(used.len())?;
    Ok(used.into_iter().collect())
}

/// First value in the reports on a direction, or else in those on the other direction.
fn first<T>(
    dump: &Dump,
    (from, to): (usize, usize),
    value: impl Fn(&crate::field::dumps::LinkReport) -> Option<T>,
) -> Option<T> {
    let of = |ends: (usize, usize)| dump.links.iter().filter(|link| (link.from, link.to) == ends).find_map(&value);
    of((from, to)).or_else(|| of((to, from)))
}

fn known(dump: &Dump, hop: (usize, usize)) -> Known {
    let goodput = first(dump, hop, |link| link.mbps).map(Known::Goodput);
    let rate = first(dump, hop, |link| link.rate).map(Known::Rate);
    let found = if dump.is_measured() { goodput.or(rate) } else { rate.or(goodput) };
    found.unwrap_or(Known::Nothing)
}

/// Chooses one standard if all hops have the same rate, and an MCS for each hop otherwise.
fn standard(known: &[Known], assumed: Rate) -> Standard {
    let mut legacy: Vec<Option<f64>> = known
        .iter()
        .map(|known| match known {
            Known::Rate(DataRate { mbps, has_aggregates: false }) if rates::is_legacy(*mbps) => Some(*mbps),
            Known::Nothing => match assumed {
                Rate::Legacy(mbps) => Some(mbps),
                Rate::Mcs(_) => None,
            },
            _ => None,
        })
        .collect();
    let is_all_legacy = legacy.iter().all(Option::is_some);
    legacy.dedup();
    match (&legacy[..], assumed) {
        ([Some(mbps)], _) => Standard::Legacy(*mbps),
        (_, Rate::Mcs(mcs)) if known.iter().all(|known| matches!(known, Known::Nothing)) => Standard::Mcs(mcs),
        _ => Standard::Listed { has_aggregates: !is_all_legacy },
    }
}

/// Reason why a radio that was found does not fit the goodputs of the hops. `None` if it fits.
fn unexplained(dump: &Dump, hops: &BTreeSet<(usize, usize)>, share: &dyn Fn(f64) -> Option<f64>) -> Option<String> {
    let measured = hops.iter().filter_map(|hop| Some((hop, first(dump, *hop, |link| link.mbps)?)));
    let wrong = measured.into_iter().find(|(_, mbps)| share(*mbps).is_none());
    wrong.map(|((from, to), mbps)| {
        format!(
            "{}-{} carries {mbps:.2} Mbit/s, which the configured radio cannot explain by any loss; the link may be several radio hops, if the mesh routes below IP",
            dump.nodes[*from], dump.nodes[*to]
        )
    })
}

/// Words that say where the rates come from.
fn basis(dump: &Dump, known: &[Known], standard: Standard, assumed: Rate) -> String {
    let rates: Vec<f64> =
        known.iter().filter_map(|known| if let Known::Rate(rate) = known { Some(rate.mbps) } else { None }).collect();
    let (least, most) = rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
    let mut parts = Vec::new();
    if known.iter().any(|known| matches!(known, Known::Goodput(_))) {
        let who = if dump.is_measured() { "was measured" } else { "the dump expects" };
        parts.push(format!("with hops that carry what {who}"));
    }
    if !rates.is_empty() {
        let range = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        let as_mcs = if matches!(standard, Standard::Listed { .. }) { ", each as the nearest MCS" } else { "" };
        parts.push(format!("at the dump's bit rates of {range} Mbit/s{as_mcs}"));
    }
    if known.iter().any(|known| matches!(known, Known::Nothing)) {
        let rest = if parts.is_empty() { "" } else { " on hops without a rate in the dump" };
        parts.push(format!("at an assumed {assumed}{rest}; set it with --rate"));
    }
    parts.join(", and ")
}

/// Reason why the simulator cannot simulate these hops. `None` if it can.
fn not_simulated(known: &[Known], standard: Standard, carried: Option<&OneHop>) -> Option<String> {
    if matches!(standard, Standard::Legacy(_)) {
        return None;
    }
    let reason = |known: &Known| {
        match known {
        Known::Goodput(mbps) => {
            let [slowest, .., fastest] = carried?;
            let is_feasible = (slowest * FEASIBLE.1..=fastest * FEASIBLE.0).contains(mbps);
            (!is_feasible).then(|| format!("a hop carries {mbps:.1} Mbit/s, and the simulator supports 802.11n rates that carry {slowest:.1} to {fastest:.1}"))
        }
        Known::Rate(rate) => nearest_mcs(rate.mbps)
            .is_none()
            .then(|| format!("a hop has a bit rate of {} Mbit/s, and the simulator supports one rate of 802.11b, a or g for all links, or MCS 0 to {} of 802.11n", rate.mbps, limits::MCS)),
        Known::Nothing => None,
    }
    };
    known.iter().find_map(reason)
}

fn keys(standard: Standard) -> Vec<(&'static str, String)> {
    let text = |text: String| Value::from(text).to_string();
    match standard {
        Standard::Legacy(mbps) => {
            vec![("mac.profile", text("ieee".to_owned())), ("radio.rate", text(format!("{mbps} Mbit/s")))]
        }
        Standard::Mcs(mcs) => vec![("mac.profile", text("ht".to_owned())), ("radio.rate", text(format!("MCS {mcs}")))],
        Standard::Listed { has_aggregates } => {
            let mut keys =
                vec![("mac.profile", text("ht".to_owned())), ("radio.rate", text(format!("MCS {}", limits::MCS)))];
            if !has_aggregates {
                keys.push(("mac.ampdu_mpdus", "1".to_owned()));
            }
            keys
        }
    }
}

/// One direction of a link as it is simulated.
fn link(dump: &Dump, hop: (usize, usize), standard: Standard, assumed: Rate, carried: Option<&OneHop>) -> Link {
    let delivery = ways::delivery(dump, hop.0, hop.1);
    let snr_db = first(dump, hop, |link| link.snr_db);
    let Standard::Listed { .. } = standard else { return Link { mcs: None, delivery, snr_db } };
    match known(dump, hop) {
        Known::Rate(rate) => Link { mcs: nearest_mcs(rate.mbps).or(Some(0)), delivery, snr_db },
        Known::Goodput(mbps) => {
            let carried = carried.copied().unwrap_or_default();
            // If the dump has a share, the rate must fit together with that share. The share is
            // then adjusted to the remaining difference.
            let wanted = mbps / delivery.unwrap_or(1.0);
            let mcs = carried.iter().position(|carried| *carried >= 0.97 * wanted).unwrap_or(carried.len() - 1);
            let share = (mbps / carried[mcs]).clamp(0.05, 1.0);
            Link { mcs: Some(mcs as u8), delivery: Some(share), snr_db: None }
        }
        Known::Nothing => {
            let mcs = match assumed {
                Rate::Mcs(mcs) => Some(mcs),
                Rate::Legacy(mbps) => nearest_mcs(mbps),
            };
            Link { mcs: mcs.or(Some(0)), delivery, snr_db }
        }
    }
}

/// Directions between stations, with their parameters in the simulation. Included are the hops of
/// the routes, links of known strength, and other good links.
fn listed(
    dump: &Dump,
    stations: &[usize],
    hops: &BTreeSet<(usize, usize)>,
    link: impl Fn((usize, usize)) -> Link,
) -> BTreeMap<(usize, usize), Link> {
    let mut found = BTreeMap::new();
    let (etx, wires) = (ways::etx(dump), dump.wires());
    // Hops of the routes come first, because two stations may have several links.
    let others = etx.keys().filter(|hop| !hops.contains(hop));
    for &hop in hops.iter().chain(others) {
        let is_listed = hops.contains(&hop)
            || ways::delivery(dump, hop.0, hop.1).is_some()
            || first(dump, hop, |link| link.snr_db).is_some()
            || etx[&hop] <= WORST_ETX;
        let ends = (stations[hop.0], stations[hop.1]);
        let is_wired = wires.contains_key(&(hop.0.min(hop.1), hop.0.max(hop.1)));
        if is_listed && ends.0 != ends.1 && !is_wired {
            found.entry(ends).or_insert_with(|| link(hop));
        }
    }
    found
}

/// Number of pairs with a link, and number of weak pairs that no route uses.
fn pairs(dump: &Dump, listed: &BTreeMap<(usize, usize), Link>, used: &BTreeSet<(usize, usize)>) -> (usize, usize) {
    let all: BTreeSet<(usize, usize)> = listed.keys().map(|(from, to)| (*from.min(to), *from.max(to))).collect();
    let is_weak = |&&(one, other): &&(usize, usize)| {
        let share = |ends: (usize, usize)| ways::delivery(dump, ends.0, ends.1).unwrap_or(1.0);
        let is_used = used.contains(&(one, other)) || used.contains(&(other, one));
        !is_used && share((one, other)).min(share((other, one))) < 0.5
    };
    (all.len(), all.iter().filter(is_weak).count())
}

/// Content of `links.csv`. It has shares if some direction has a share, and signal-to-noise ratios
/// otherwise.
fn links_file(listed: &BTreeMap<(usize, usize), Link>, nodes: &[usize]) -> String {
    // A signal-to-noise ratio says more than the share that follows from it.
    let has_shares = listed.values().any(|link| link.delivery.is_some() && link.snr_db.is_none());
    let has_rates = listed.values().any(|link| link.mcs.is_some());
    let mut text =
        format!("from,to,{}{}\n", if has_shares { "delivery" } else { "snr_db" }, if has_rates { ",mcs" } else { "" });
    let place = |station: &usize| nodes.iter().position(|node| node == station);
    for ((from, to), link) in listed {
        let (Some(from), Some(to)) = (place(from), place(to)) else { continue };
        let strength = if has_shares { link.delivery.unwrap_or(1.0) } else { link.snr_db.unwrap_or(GOOD_DB) };
        let rate = link.mcs.map(|mcs| format!(",{mcs}")).unwrap_or_default();
        let _ = writeln!(text, "{from},{to},{strength}{rate}");
    }
    text
}

/// Signal-to-noise ratio at a node two hops away that senses frames but cannot decode them, dB. It
/// is below the detection of preambles, 4 dB.
const SENSED_DB: f64 = 3.5;
/// Received power from which on the medium is then busy, dBm: half a decibel less.
const SENSED_FROM_DBM: f64 = -90.6;

/// Content of `links.csv` for a radio that was found: the hops with their shares, and pairs of
/// nodes two hops apart if they sense each other.
fn found_links_file(
    listed: &BTreeMap<(usize, usize), Link>,
    ways: &[Vec<usize>],
    nodes: &[usize],
    senses_two_hops: bool,
) -> String {
    let place = |station: usize| nodes.iter().position(|node| *node == station);
    let mut text = "from,to,delivery,snr_db\n".to_owned();
    for (&(from, to), link) in listed {
        let (Some(from), Some(to)) = (place(from), place(to)) else { continue };
        // If nothing is lost, the signal is taken to be strong.
        let _ = match link.delivery.filter(|share| *share < 0.99) {
            Some(share) => writeln!(text, "{from},{to},{share},"),
            None => writeln!(text, "{from},{to},,{GOOD_DB}"),
        };
    }
    let apart: BTreeSet<(usize, usize)> = ways
        .iter()
        .flat_map(|way| way.windows(3))
        .flat_map(|three| [(three[0], three[2]), (three[2], three[0])])
        .filter(|ends| senses_two_hops && !listed.contains_key(ends))
        .collect();
    for (from, to) in apart {
        if let (Some(from), Some(to)) = (place(from), place(to)) {
            let _ = writeln!(text, "{from},{to},,{SENSED_DB}");
        }
    }
    text
}

/// Content of `map.json`, whose links determine the routes. The positions of its nodes determine
/// only the propagation delay of frames.
fn map_file(nodes: &[usize], used: &BTreeSet<(usize, usize)>) -> String {
    let place = |station: &usize| nodes.iter().position(|node| node == station).unwrap_or_default();
    let pairs: BTreeSet<(usize, usize)> =
        used.iter().map(|(from, to)| (place(from), place(to))).map(|(from, to)| (from.min(to), from.max(to))).collect();
    let nodes: Vec<Value> =
        (0..nodes.len()).map(|node| json!({"id": node.to_string(), "x_m": node, "y_m": 0})).collect();
    let links: Vec<Value> =
        pairs.iter().map(|(from, to)| json!({"source": from.to_string(), "target": to.to_string()})).collect();
    format!("{}\n", json!({"nodes": nodes, "links": links}))
}

/// Route of a flow as the dump has it.
fn route(dump: &Dump, way: &[usize]) -> Route {
    let hop = |hop: &[usize]| {
        let medium = dump.medium(hop[0], hop[1]);
        let share = |from: usize, to: usize| match medium {
            Medium::Radio => ways::delivery(dump, from, to).unwrap_or(1.0),
            _ => 1.0,
        };
        Hop {
            from: hop[0],
            to: hop[1],
            delivery: share(hop[0], hop[1]),
            delivery_back: share(hop[1], hop[0]),
            medium: medium.name(),
            rate_mbps: first(dump, (hop[0], hop[1]), |link| link.rate).map(|rate| rate.mbps),
        }
    };
    let mut route = Route { hops: way.windows(2).map(hop).collect(), ..Route::default() };
    let ends = way.first().copied().zip(way.last().copied());
    let has_shares = dump.links.iter().any(|link| link.delivery.is_some());
    let (Some((from, to)), true) = (ends, has_shares) else { return route };
    let mut tries = ways::etx(dump);
    // A cable costs almost nothing.
    for (one, other) in dump.wires().into_keys() {
        tries.extend([((one, other), WIRE_TRIES), ((other, one), WIRE_TRIES)]);
    }
    if let Some(nodes) = path::shortest(&tries, from, to) {
        let cost: f64 = path::metrics(&tries, &nodes).iter().sum();
        let own: f64 = way.windows(2).filter_map(|hop| tries.get(&(hop[0], hop[1]))).sum();
        if nodes != way && cost < routes::CHEAPER * own {
            (route.better, route.better_tries) = (Some(nodes), Some(cost));
        }
    }
    route
}

/// Computes the share that arrives for links that have a signal-to-noise ratio but no share, at
/// their bit rate or else at the assumed one. Links over which nothing arrives are removed. If the
/// dump has no other metric, the mesh is assumed to route by these shares.
pub fn fill_shares(dump: &mut Dump, assumed: Rate) {
    let mut has_filled = false;
    dump.links.retain_mut(|link| {
        let (None, Some(snr_db)) = (link.delivery, link.snr_db) else { return true };
        let rate = link.rate.map_or(assumed, |rate| match nearest_mcs(rate.mbps) {
            Some(_) if !rate.has_aggregates && rates::is_legacy(rate.mbps) => Rate::Legacy(rate.mbps),
            Some(mcs) => Rate::Mcs(mcs),
            None => assumed,
        });
        has_filled = true;
        link.delivery = Some(routes::share_at(rate, snr_db)).filter(|share| *share >= LEAST_SHARE);
        link.delivery.is_some()
    });
    if has_filled && dump.metric == Metric::Hops {
        dump.metric = Metric::Etx;
    }
}

/// Keys of the radio and the MAC if all links have one rate.
pub fn keys_of(rate: Rate) -> Vec<(&'static str, String)> {
    keys(match rate {
        Rate::Mcs(mcs) => Standard::Mcs(mcs),
        Rate::Legacy(mbps) => Standard::Legacy(mbps),
    })
}

#[cfg(test)]
mod tests;
