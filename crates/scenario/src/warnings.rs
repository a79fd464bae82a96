//! Warnings about settings that are allowed but probably not intended.

use super::Point;
use meshpace_core::{Duration, NodeId};
use meshpace_mesh::config::{MarkerConfig, Propagation};
use meshpace_mesh::radio::{Channel, Neighbours};
use meshpace_mesh::routing::{RoutingConfig, StaticRoutes};
use meshpace_sim::Flow;
use meshpace_transport::{Config, pacing};

/// Returns the warnings for a point, one sentence each.
pub fn of(point: &Point) -> Vec<String> {
    let mut told = Vec::new();
    let is_dcc = |config: &Config| match config {
        Config::Tcp(tcp) => matches!(tcp.pacing, pacing::Config::Dcc(_)),
        Config::Tpa(tpa) => matches!(tpa.pacing, pacing::Config::Dcc(_)),
        _ => false,
    };
    if point.config.mesh.link.marker == MarkerConfig::None
        && let Some((flow, _)) = point.config.flows.iter().enumerate().find(|(_, flow)| is_dcc(&flow.transport))
    {
        told.push(format!(
            "the transport of flow {flow} (dcc) sets its rate by marks, but no node marks packets: set link.marker = \"dcc\""
        ));
    }
    told.extend(early(point));
    if let Some((flow, from, to)) = one_way(&point.config) {
        told.push(format!(
            "the route of flow {flow} has the link from {0} to {1}, over which fewer than half of the frames arrive; static routes use a link that is good in one direction in both directions; remove the link from radio.links, because a mesh with a metric would avoid it",
            from.0, to.0
        ));
    }
    told
}

/// Time by which every flow has started.
pub(super) fn last_start(flows: &[Flow]) -> Duration {
    let starts = flows.iter().map(|flow| Duration(flow.start.0) + flow.start_jitter);
    starts.max().unwrap_or(Duration::ZERO)
}

/// Share of the measured time that a flow may miss at its beginning without a warning. Its goodput
/// is reduced by less than this share.
const EARLY: f64 = 0.01;

/// Warns of a flow that starts after the beginning of the measured time. Its goodput is then a mean
/// over time in which the flow did not exist.
fn early(point: &Point) -> Option<String> {
    let config = &point.config;
    let (number, flow) = config.flows.iter().enumerate().max_by_key(|(_, flow)| flow.start)?;
    let (start_s, warmup_s) = (flow.start.as_secs_f64(), config.warmup.as_secs_f64());
    if start_s - warmup_s <= EARLY * (config.duration.as_secs_f64() - warmup_s) {
        return None;
    }
    let last = last_start(&config.flows);
    let way = match last < config.duration {
        true => format!("set warmup = \"{} s\", or \"auto\"", last.as_secs_f64()),
        false => "start the flow earlier, or make the run longer".to_owned(),
    };
    Some(format!(
        "the measured interval begins at {warmup_s} s, but flow {number} starts at {start_s} s, so its mean goodput includes time before its start; {way}"
    ))
}

/// First hop of a static route over which too few frames arrive: the flow, the sender and the
/// receiver. Only links from a file can differ between their two directions.
fn one_way(config: &meshpace_sim::Config) -> Option<(usize, NodeId, NodeId)> {
    let is_possible = matches!(config.mesh.radio.propagation, Propagation::Links(_))
        && matches!(config.mesh.routing, RoutingConfig::Static);
    // A scenario that is refused may name nodes that do not exist.
    let is_whole = config.flows.iter().all(|flow| flow.from.index().max(flow.to.index()) < config.positions.len());
    if !(is_possible && is_whole) {
        return None;
    }
    let mut adjacency = Neighbours::new(&Channel::new(&config.mesh.radio), &config.positions).adjacency();
    if let Some(links) = &config.firewall {
        for (node, neighbours) in adjacency.iter_mut().enumerate() {
            let node = NodeId(node as u16);
            neighbours.retain(|&other| links.contains(&(node, other)) || links.contains(&(other, node)));
        }
    }
    let ways = StaticRoutes::new(&adjacency, config.flows.iter().map(|flow| flow.to));
    config.flows.iter().enumerate().find_map(|(number, flow)| {
        let mut at = flow.from;
        while let Some(next) = ways.next_hop(at, flow.to) {
            if !adjacency[at.index()].contains(&next) {
                return Some((number, at, next));
            }
            at = next;
        }
        None
    })
}
