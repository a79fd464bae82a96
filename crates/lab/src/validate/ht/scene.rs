//! Scenes in which nodes either do not hear each other or receive all frames with the same power,
//! -50 dBm by default.
//!
//! They match the set-up of `validation/ns3/ht.cc`: 5 GHz, 20 MHz, control frames at 6 Mbit/s, a
//! queue of 500 packets.

use crate::validate::scenes::transport;
use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::config::{LinkConfig, RtsPolicy};
use meshpace_mesh::mac::Category;
use meshpace_mesh::radio::{Band, Links, Ofdm, OfdmRate};
use meshpace_mesh::{
    HtConfig, MacConfig, MacProfile, MeshConfig, Position, Propagation, RadioConfig, Reception, RetryLimits,
};
use meshpace_sim::{Config, Flow, Outcome, Traffic};
use meshpace_transport::Config as Transport;

/// Received power of all frames, dBm.
pub const POWER_DBM: f64 = -50.0;
/// Payload of a datagram, bytes.
pub const PAYLOAD: u32 = 1470;
/// Bytes of the IP and UDP headers of a datagram beyond the 20 that are counted here.
const MORE_HEADERS: u32 = 8;

/// Settings of the stations.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Bit rate of data frames.
    pub rate: OfdmRate,
    /// Parameters of 802.11n. `None` for 802.11a.
    pub ht: Option<HtConfig>,
    /// True if RTS/CTS precedes every unicast data frame.
    pub rts: bool,
    /// Number of attempts for a frame.
    pub retries: u32,
}

impl How {
    /// 802.11n with aggregates of at most `mpdus` MPDUs, the long guard interval and seven
    /// attempts.
    ///
    /// # Panics
    /// Panics for an `mcs` above 15. The values used here are part of the program.
    pub fn mcs(mcs: u8, mpdus: u32, rts: bool) -> How {
        let ht = Some(HtConfig { mpdus, ..HtConfig::default() });
        How { rate: OfdmRate::mcs(mcs, false).unwrap_or_else(|| panic!("there is no MCS {mcs}")), ht, rts, retries: 7 }
    }

    /// Mesh of `nodes` nodes, numbered from 0. `hears(a, b)` says whether frames of node a reach
    /// node b.
    pub fn mesh(self, nodes: u16, hears: impl Fn(u16, u16) -> bool) -> MeshConfig {
        self.mesh_at(POWER_DBM, nodes, hears)
    }

    /// Mesh as that of [`How::mesh`], with a received power of `power_dbm`.
    pub fn mesh_at(self, power_dbm: f64, nodes: u16, hears: impl Fn(u16, u16) -> bool) -> MeshConfig {
        let basic = OfdmRate::NonHt(0);
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let links = pairs.filter(|&(from, to)| from != to && hears(from, to));
        let links = links.map(|(from, to)| (NodeId(from), NodeId(to), power_dbm)).collect();
        let rts = if self.rts { RtsPolicy::Always } else { RtsPolicy::Never };
        let retries = RetryLimits { short: self.retries, long: self.retries };
        MeshConfig {
            radio: RadioConfig {
                rate: self.rate.rate(),
                basic_rate: basic.rate(),
                ofdm: Some(Ofdm { band: Band::Five, data: self.rate, basic }),
                reception: Reception::Sinr,
                propagation: Propagation::Links(Links::new(links)),
                noise_dbm: -94.0,
                carrier_sense_dbm: -62.0,
                ..RadioConfig::default()
            },
            mac: MacConfig { profile: MacProfile::Ieee, rts, retries, ht: self.ht },
            link: LinkConfig { limit: 500, ..LinkConfig::default() },
            ..MeshConfig::default()
        }
    }
}

fn flow(from: u16, to: u16, transport: &Transport, traffic: Traffic, start_ms: u64) -> Flow {
    Flow {
        from: NodeId(from),
        to: NodeId(to),
        transport: transport.clone(),
        traffic,
        start: Time(start_ms * 1_000_000),
        start_jitter: Duration::from_millis(10),
        stop: None,
        dscp: 0,
    }
}

/// Datagrams of 1470 bytes over each of `ends`, offered at `share` of the bit rate. Before that,
/// each sender sends one datagram alone, so that ARP is resolved. The flows that count are the
/// second half.
pub fn datagrams(mesh: MeshConfig, nodes: u16, ends: &[(u16, u16)], share: f64, seconds: u64) -> Config {
    let mut udp = transport("udp");
    if let Transport::Udp(udp) = &mut udp {
        udp.segment = PAYLOAD + MORE_HEADERS;
    }
    let rate = Traffic::Cbr { rate: Rate::from_bps((mesh.radio.rate.0 as f64 * share) as u64) };
    let once = Traffic::Cbr { rate: Rate::from_bps(1) };
    let first = ends.iter().zip(0..).map(|(&(from, to), place)| flow(from, to, &udp, once, 10 + 10 * place));
    let then = ends.iter().map(|&(from, to)| flow(from, to, &udp, rate, 1_000));
    config(mesh, nodes, first.chain(then).collect(), seconds)
}

/// Saturated categories around node 0; all nodes hear each other. Each of `senders` is a flow of
/// datagrams from a node, with a category.
pub fn categories(how: How, senders: &[(u16, Category)], seconds: u64) -> Config {
    let nodes = 1 + senders.iter().map(|sender| sender.0).max().unwrap_or_default();
    let ends: Vec<(u16, u16)> = senders.iter().map(|&(node, _)| (node, 0)).collect();
    let mut config = datagrams(how.mesh(nodes, |_, _| true), nodes, &ends, 1.1, seconds);
    for (flow, (_, category)) in config.flows.iter_mut().zip(senders.iter().cycle()) {
        // The values are CS1, DF, AF41 and EF.
        flow.dscp = match category {
            Category::Background => 8,
            Category::BestEffort => 0,
            Category::Video => 34,
            Category::Voice => 46,
        };
    }
    config
}

/// TCP with the congestion control `control` and segments of 1500 bytes including all headers, from
/// the first to the second of `ends`. Only data that arrive in the `seconds` after `warmup` count.
pub fn transfer(mesh: MeshConfig, nodes: u16, ends: (u16, u16), control: &str, warmup: u64, seconds: u64) -> Config {
    let mut tcp = transport(&format!("{control}+sack+delack"));
    if let Transport::Tcp(config) = &mut tcp {
        config.segment = 1460;
        config.max_window = 2_800;
        config.initial_ssthresh = None;
    }
    let config = config(mesh, nodes, vec![flow(ends.0, ends.1, &tcp, Traffic::Ftp, 100)], seconds);
    Config { duration: Duration::from_secs(warmup + seconds), warmup: Duration::from_secs(warmup), ..config }
}

fn config(mesh: MeshConfig, nodes: u16, flows: Vec<Flow>, seconds: u64) -> Config {
    Config {
        duration: Duration::from_secs(2 + seconds),
        warmup: Duration::from_secs(2),
        // All distances to node 0 are 10 m, which is 33 ns.
        positions: (0..nodes).map(|node| Position { x: if node == 0 { 0.0 } else { 10.0 }, y: 0.0 }).collect(),
        mesh,
        flows,
        ..Config::default()
    }
}

/// Goodput of a transfer, Mbit/s, as ns-3 counts it: 12 bytes of each segment are time stamps and
/// no payload.
pub fn segments_mbps(outcome: &Outcome) -> f64 {
    outcome.flows[0].goodput_bps / 1e6 * 1448.0 / 1460.0
}

/// Goodput of the saturated flows, Mbit/s, as ns-3 counts it: 1470 bytes of each datagram.
pub fn mbps(outcome: &Outcome) -> Vec<f64> {
    let counted = &outcome.flows[outcome.flows.len() / 2..];
    counted.iter().map(|flow| flow.goodput_bps / 1e6 * f64::from(PAYLOAD) / f64::from(PAYLOAD + MORE_HEADERS)).collect()
}
