//! Scenarios of the reference measurements: two-ray radio, 2 Mbit/s, RTS/CTS, a queue of 50
//! packets, profile `ns2`.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::MeshConfig;
use meshpace_mesh::config::{
    AodvDetection, LocalRepair, MacProfile, Position, Reception, RetryLimits, RoutingConfig, RtsPolicy,
};
use meshpace_sim::{Config, Flow, Traffic};
use meshpace_transport::config::Config as Transport;
use meshpace_transport::names;
use meshpace_transport::pacing::{self, Dispersion};

/// AODV as ns-2 implements it.
pub const AODV: RoutingConfig = RoutingConfig::aodv(LocalRepair::Ns2, AodvDetection::LinkLayer);

/// Transport called `name` in the table.
///
/// # Panics
/// Panics if there is no such transport. The names used here are part of the program.
pub fn transport(name: &str) -> Transport {
    names::lookup(name).unwrap_or_else(|| panic!("no transport is called {name}"))
}

/// TCP-AP with the mean absolute deviation of the RTT instead of its coefficient of variation.
pub fn tcp_ap_mad() -> Transport {
    let mut config = transport("tcp-ap");
    if let Transport::Tcp(tcp) = &mut config
        && let pacing::Config::Adaptive(adaptive) = &mut tcp.pacing
    {
        adaptive.dispersion = Dispersion::MadRtt;
    }
    config
}

/// NewReno with a receiver window of `segments`, as `window_` limits it in ns-2.
pub fn newreno_limited(segments: u32) -> Transport {
    let mut config = transport("newreno");
    if let Transport::Tcp(tcp) = &mut config {
        tcp.max_window = segments;
    }
    config
}

/// A flow that starts at 1 s plus a jitter that is uniform on 0 to 0.1 s.
fn flow(from: u16, to: u16, transport: Transport, traffic: Traffic) -> Flow {
    Flow {
        from: NodeId(from),
        to: NodeId(to),
        transport,
        traffic,
        start: Time(1_000_000_000),
        start_jitter: Duration::from_millis(100),
        stop: None,
        dscp: 0,
    }
}

fn on_a_line(x: impl IntoIterator<Item = f64>) -> Vec<Position> {
    x.into_iter().map(|x| Position { x, y: 0.0 }).collect()
}

fn mesh(routing: RoutingConfig) -> MeshConfig {
    MeshConfig { routing, ..MeshConfig::default() }
}

/// A transfer without end over `hops` hops of 200 m, measured from 20 to 200 s.
pub fn chain(hops: u16, transport: Transport, routing: RoutingConfig) -> Config {
    Config {
        duration: Duration::from_secs(200),
        warmup: Duration::from_secs(20),
        positions: on_a_line((0..=hops).map(|node| 200.0 * f64::from(node))),
        mesh: mesh(routing),
        flows: vec![flow(0, hops, transport, Traffic::Ftp)],
        ..Config::default()
    }
}

/// A constant rate of `bps` payload bits per second over `hops` hops, otherwise as [`chain`].
pub fn paced_udp(hops: u16, bps: u64, routing: RoutingConfig) -> Config {
    let mut config = chain(hops, transport("udp"), routing);
    config.flows[0].traffic = Traffic::Cbr { rate: Rate::from_bps(bps) };
    config
}

/// Transfers between nodes at `positions`, measured from 20 to 200 s.
pub fn competing(positions: Vec<Position>, ends: &[(u16, u16)], transport: &Transport) -> Config {
    let flows = ends.iter().map(|&(from, to)| flow(from, to, transport.clone(), Traffic::Ftp)).collect();
    let (duration, warmup) = (Duration::from_secs(200), Duration::from_secs(20));
    Config { duration, warmup, positions, mesh: mesh(AODV), flows, ..Config::default() }
}

/// Saturated stations on a circle of `radius` metres around the receiving station, with the profile
/// `ieee` and static routes, measured from 10 to 60 s. From 5 s on, each station is offered four
/// times its share of the channel. Before that, each sends one datagram while no other station
/// sends, so that ARP is resolved. ARP requests are broadcast and thus take no part in the
/// contention that is measured.
pub fn cell(stations: u16, radius: f64, segment: u32, rts: bool) -> Config {
    let mut udp = transport("udp");
    if let Transport::Udp(udp) = &mut udp {
        udp.segment = segment;
    }
    let place = |station: u16| {
        let angle = core::f64::consts::TAU * f64::from(station) / f64::from(stations);
        Position { x: radius * angle.cos(), y: radius * angle.sin() }
    };
    let positions = [Position { x: 0.0, y: 0.0 }].into_iter().chain((0..stations).map(place)).collect();
    let mut mesh = MeshConfig { mac: MacProfile::Ieee.into(), ..mesh(RoutingConfig::Static) };
    mesh.mac.rts = if rts { RtsPolicy::Always } else { RtsPolicy::Never };
    let traffic = Traffic::Cbr { rate: Rate::from_bps(4 * mesh.radio.rate.0 / u64::from(stations)) };
    let once = Traffic::Cbr { rate: Rate::from_bps(1) };
    let first = |station: u16| {
        let start = Time(1_000_000_000 + 50_000_000 * u64::from(station));
        Flow { start, start_jitter: Duration::ZERO, ..flow(station, 0, udp.clone(), once) }
    };
    let saturated = |station: u16| Flow { start: Time(5_000_000_000), ..flow(station, 0, udp.clone(), traffic) };
    Config {
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(10),
        positions,
        mesh,
        flows: (1..=stations).map(first).chain((1..=stations).map(saturated)).collect(),
        ..Config::default()
    }
}

/// Constant rates of 2 Mbit/s over one hop, from the first to the second node of each of `flows`,
/// in datagrams of 1460 bytes, measured from 10 to 60 s.
///
/// The scenario has the profile `ieee`, the reception `sinr`, static routes, control frames at 2
/// Mbit/s, and seven attempts for any frame. A frame that is weaker than the sensitivity has no
/// effect. As in [`cell`], each sender first sends one datagram alone. The flows that count are the
/// second half.
pub fn saturated(positions: Vec<Position>, flows: &[(u16, u16)], rts: bool) -> Config {
    let mut udp = transport("udp");
    if let Transport::Udp(udp) = &mut udp {
        udp.segment = 1460;
    }
    let mut mesh = MeshConfig { mac: MacProfile::Ieee.into(), ..mesh(RoutingConfig::Static) };
    mesh.mac.rts = if rts { RtsPolicy::Always } else { RtsPolicy::Never };
    mesh.mac.retries = RetryLimits { short: 7, long: 7 };
    mesh.radio.basic_rate = mesh.radio.rate;
    mesh.radio.reception = Reception::Sinr;
    // The value is that of `RxSensitivity` in the reference.
    mesh.radio.sensitivity_dbm = Some(-78.071);
    let constant = |rate| Traffic::Cbr { rate: Rate::from_bps(rate) };
    let alone = flows.iter().zip(0..).map(|(&(from, to), place)| {
        let start = Time(1_000_000_000 + 50_000_000 * place);
        Flow { start, start_jitter: Duration::ZERO, ..flow(from, to, udp.clone(), constant(1)) }
    });
    let at_once = flows.iter().map(|&(from, to)| {
        let start = Time(5_000_000_000);
        Flow { start, ..flow(from, to, udp.clone(), constant(2_000_000)) }
    });
    Config {
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(10),
        positions,
        mesh,
        flows: alone.chain(at_once).collect(),
        ..Config::default()
    }
}

/// Saturated constant-rate flows between nodes on a line, measured from 10 to 60 s.
#[derive(Clone, Debug)]
pub struct Micro {
    /// Positions of the nodes, metres.
    pub x: Vec<f64>,
    /// Source and destination of each flow.
    pub flows: Vec<(u16, u16)>,
    /// True if RTS/CTS precedes unicast frames.
    pub rts: bool,
    /// Payload of a datagram, bytes.
    pub segment: u32,
    /// Channel rate and offered payload rate of each flow.
    pub rate: Rate,
}

impl Micro {
    /// Scenario that is run.
    pub fn config(&self) -> Config {
        let mut udp = transport("udp");
        if let Transport::Udp(udp) = &mut udp {
            udp.segment = self.segment;
        }
        let mut mesh = mesh(AODV);
        mesh.radio.rate = self.rate;
        mesh.mac.rts = if self.rts { RtsPolicy::Always } else { RtsPolicy::Never };
        let traffic = Traffic::Cbr { rate: self.rate };
        Config {
            duration: Duration::from_secs(60),
            warmup: Duration::from_secs(10),
            positions: on_a_line(self.x.iter().copied()),
            mesh,
            flows: self.flows.iter().map(|&(from, to)| flow(from, to, udp.clone(), traffic)).collect(),
            ..Config::default()
        }
    }
}
