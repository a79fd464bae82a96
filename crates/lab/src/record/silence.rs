//! Reasons why a flow delivered nothing, as far as the record and the scenario show them.

use super::Record;
use meshpace_mesh::radio::Channel;
use meshpace_mesh::radio::connectivity;
use meshpace_scenario::Point;
use meshpace_sim::Mobility;

/// Returns one sentence for each flow of a run that delivered nothing in the measured interval.
/// `point` is the point as drawn for the seed of the run.
pub fn of(point: &Point, record: &Record) -> Vec<String> {
    let silent = record.flows.iter().filter(|flow| flow.delivered_bytes == Some(0));
    silent
        .map(|flow| {
            format!(
                "{} ({}, node {} to node {}) delivered nothing: {}",
                flow.told(),
                flow.transport,
                flow.from,
                flow.to,
                why(point, flow)
            )
        })
        .collect()
}

fn why(point: &Point, flow: &super::FlowRecord) -> String {
    let config = &point.config;
    if config.mobility == Mobility::Still {
        let channel = Channel::new(&config.mesh.radio);
        let components = connectivity::components(&config.positions, &channel, config.firewall.as_deref());
        let of = |node: u16| components.get(usize::from(node));
        if of(flow.from) != of(flow.to) {
            let range = if channel.has_one_range() {
                format!(" of up to {:.0} m", channel.link_range())
            } else {
                String::new()
            };
            return format!("there is no path of links{range} between its ends; the mesh is partitioned");
        }
    }
    match flow.segments_sent {
        0 if flow.hops == 0 => "it sent nothing and had no route at the end: no route was found, or the answer to its first packet was lost".to_owned(),
        0 => "it did not connect: its first packet was never answered".to_owned(),
        sent if flow.hops == 0 => format!("it sent {sent} segments and had no route at the end"),
        sent => format!("it sent {sent} segments and had {} timeouts, and no segment arrived between the warm-up and the end", flow.timeouts.unwrap_or(0)),
    }
}
