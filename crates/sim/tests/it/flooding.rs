//! Tests the routing protocol `flooding`: every node sends every packet once, and the transport
//! receives one copy.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::routing::flooding::FloodingConfig;
use meshpace_mesh::{MeshConfig, Position, RoutingConfig};
use meshpace_sim::{Config, Flow, Traffic, run};
use meshpace_transport::names;

/// Nodes on a grid of `columns` and `rows`, 200 m apart, with one flow from the first to the last.
fn config(columns: u16, rows: u16, transport: &str, traffic: Traffic) -> Config {
    let places = (0..columns * rows).map(|n| (n % columns, n / columns));
    let positions = places.map(|(x, y)| Position { x: 200.0 * f64::from(x), y: 200.0 * f64::from(y) }).collect();
    let flow = Flow {
        from: NodeId(0),
        to: NodeId(columns * rows - 1),
        transport: names::lookup(transport).unwrap(),
        traffic,
        start: Time::ZERO,
        start_jitter: Duration::ZERO,
        stop: Some(Time(29_000_000_000)),
        dscp: 0,
    };
    let mesh = MeshConfig { routing: RoutingConfig::Flooding(FloodingConfig), ..MeshConfig::default() };
    Config { duration: Duration::from_secs(30), positions, mesh, flows: vec![flow], ..Config::default() }
}

#[test]
fn every_node_sends_every_packet_once_and_the_transport_gets_one_copy() {
    // Ten datagrams of 1000 bytes per second for 29 s are 290, less those that broadcasts lose to
    // collisions.
    let traffic = Traffic::Cbr { rate: Rate::from_bps(80_000) };
    let mut config = config(3, 3, "udp", traffic);
    if let meshpace_transport::Config::Udp(udp) = &mut config.flows[0].transport {
        udp.segment = 1000;
    }
    let outcome = run(&config, 1);
    let flow = &outcome.flows[0];
    let (sent, received) = (flow.segments_sent, flow.delivered_bytes / 1000);
    assert_eq!(sent, 290);
    assert!((sent - sent / 10..=sent).contains(&received), "{received} of {sent}: copies do not count");
    // All frames are broadcasts, one per datagram at each node but the last.
    assert_eq!(outcome.frames, outcome.broadcasts);
    let most = sent * 8;
    assert!((most - most / 10..=most).contains(&outcome.frames), "{} of {most}", outcome.frames);
    assert_eq!(flow.hops, 4, "learnt by nobody at the source, which hears nothing back: the shortest path");
}

#[test]
fn a_tcp_connection_works_over_flooding() {
    let outcome = run(&config(4, 1, "tcp-ap", Traffic::Ftp), 1);
    // At 1 Mbit/s a segment takes 13 ms per hop, on three hops that share the medium, and an ACK 2
    // ms: at most 250 kbit/s.
    let goodput = outcome.flows[0].goodput_bps;
    assert!((50e3..250e3).contains(&goodput), "{goodput}");
    assert_eq!(outcome.flows[0].hops, 3);
}
