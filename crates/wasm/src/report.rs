//! Data for the page: constants of a run, state of the nodes, and measurements.

use crate::playback::Playback;
use crate::watch::Watch;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::mac::Backoff;
use meshpace_mesh::radio::{Channel, connectivity};
use meshpace_sim::{MODEL_REVISION, Outcome, Station, World};
use serde_json::{Value, json};

/// Number of values per node in [`nodes`].
pub const NODE_FIELDS: usize = 6;

/// Constants of a run: duration and warm-up, positions, links, ranges, flows, length of the queues,
/// seed.
pub fn stage(playback: &Playback) -> Value {
    let config = playback.config();
    let channel = Channel::new(&config.mesh.radio);
    let links = connectivity::links(&config.positions, &channel, config.firewall.as_deref());
    let labels = playback.transports().iter().zip(playback.names());
    let flows = config.flows.iter().zip(labels).map(|(flow, (transport, name))| {
        json!({ "name": name, "from": flow.from.0, "to": flow.to.0, "transport": transport, "start_s": flow.start.as_secs_f64() })
    });
    json!({
        "model": MODEL_REVISION,
        "seed": playback.seed(),
        "duration_s": config.duration.as_secs_f64(),
        "warmup_s": config.warmup.as_secs_f64(),
        "nodes": config.positions.iter().map(|place| [place.x, place.y]).collect::<Vec<_>>(),
        "moves": config.mobility != meshpace_sim::Mobility::Still,
        "links": links,
        "range_m": channel.link_reach(),
        "sensed_m": channel.reach(),
        "queue": config.mesh.link.limit,
        "flows": flows.collect::<Vec<_>>(),
    })
}

/// State of every node at the present time: position in metres (two values), packets in its queue,
/// seconds until the end of its NAV, state of its backoff (0 none, 1 paused, 2 counting down), and
/// remaining backoff in microseconds.
pub fn nodes(playback: &mut Playback) -> Vec<f64> {
    let now = playback.now();
    let still = playback.config().positions.clone();
    let world = playback.world();
    let places = world.engine_mut().motion().map(|motion| motion.positions(now)).unwrap_or(still);
    let mut numbers = Vec::with_capacity(places.len() * NODE_FIELDS);
    for (number, place) in places.iter().enumerate() {
        let Station { queue, nav_until, backoff } = world.engine().station(NodeId(number as u16));
        let (kind, left_us) = backoff_left(backoff, now);
        numbers.extend([place.x, place.y, queue as f64, nav_until.since(now).as_secs_f64(), kind, left_us]);
    }
    numbers
}

/// State of a backoff, and the remaining microseconds.
fn backoff_left(backoff: Backoff, now: Time) -> (f64, f64) {
    match backoff {
        Backoff::Off => (0.0, 0.0),
        Backoff::Paused { remaining_ns } => (1.0, f64::from(remaining_ns) / 1e3),
        Backoff::Running { .. } => {
            let expiry = backoff.expiry().unwrap_or(now);
            (2.0, expiry.since(now).as_secs_f64() * 1e6)
        }
    }
}

/// Path of each flow from its source on, as far as routing knows it; -1 follows each path.
pub fn routes(playback: &Playback) -> Vec<i32> {
    let config = playback.config();
    let mut numbers = Vec::new();
    for flow in &config.flows {
        numbers.extend(way(playback.world_now(), flow.from, flow.to, config.positions.len()));
        numbers.push(-1);
    }
    numbers
}

fn way(world: &World<'_, Watch>, from: NodeId, to: NodeId, most: usize) -> Vec<i32> {
    let mut nodes = vec![i32::from(from.0)];
    let mut at = from;
    while at != to && nodes.len() <= most {
        let Some(next) = world.engine().next_hop(at, to) else { break };
        at = next;
        nodes.push(i32::from(next.0));
    }
    nodes
}

/// Measurements until now, under the names of `meshpace run --format json`.
pub fn record(playback: &Playback) -> Value {
    let outcome: Outcome = playback.outcome();
    let flows = outcome
        .flows
        .iter()
        .zip(&playback.config().flows)
        .zip(playback.transports().iter().zip(playback.names()))
        .enumerate();
    let flows = flows.map(|(id, ((measured, flow), (transport, name)))| {
        json!({
            "id": id,
            "name": name,
            "from": flow.from.0,
            "to": flow.to.0,
            "hops": measured.hops,
            "transport": transport,
            "goodput_bps": measured.goodput_bps,
            "delivered_bytes": measured.delivered_bytes,
            "longest_gap_s": measured.longest_gap_s,
            "longest_gap_with_path_s": measured.longest_gap_with_path_s,
            "segments_sent": measured.segments_sent,
            "retransmissions": measured.retransmissions,
            "timeouts": measured.timeouts,
            "retransmission_index": measured.retransmission_index,
            "rtt_mean_s": measured.rtt_mean_s,
            "cov_rtt": measured.cov_rtt,
            "delay_p95_s": measured.delay.p95_s,
            "loss_ratio": measured.loss_ratio,
        })
    });
    let counters = outcome.counters;
    json!({
        "seed": playback.seed(),
        "duration_s": outcome.ended_s,
        "aggregate_goodput_bps": outcome.aggregate_goodput_bps,
        "jain": outcome.jain,
        "jain_2s": outcome.jain_2s,
        "idle_windows": outcome.idle_windows,
        "retransmission_index": outcome.retransmission_index,
        "frames": outcome.frames,
        "collisions": counters.collisions,
        "mac_drops": counters.mac_drops,
        "queue_drops": counters.queue_drops,
        "route_errors": counters.route_errors,
        "fingerprint": format!("{:016x}", outcome.fingerprint),
        "model": MODEL_REVISION,
        "flows": flows.collect::<Vec<_>>(),
    })
}
