//! Tests of `fq-codel-airtime` in whole runs: shares of air time, delays beside bulk transfers, the
//! limit on aggregates, and neighbours that disappear.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_lab::validate::ht::scene::{How, datagrams, mbps};
use meshpace_lab::validate::scenes::transport;
use meshpace_mesh::config::{MeshConfig, QueueConfig};
use meshpace_mesh::link::fq_codel_airtime::FqCodelAirtimeConfig;
use meshpace_mesh::mac::FrameKind;
use meshpace_mesh::radio::Links;
use meshpace_mesh::{Body, EdcaConfig, HtConfig, Packet, Propagation, Queued, RateControl};
use meshpace_scenario::{Scenario, Source};
use meshpace_sim::{Config, Event, Flow, Probe, SimPacket, Traffic};
use std::collections::BTreeSet;
use std::path::Path;

const DROP_TAIL: QueueConfig = QueueConfig::DropTail;

fn fq_codel() -> QueueConfig {
    QueueConfig::FqCodel(<_>::default())
}

fn airtime() -> QueueConfig {
    QueueConfig::FqCodelAirtime(<_>::default())
}

/// Nodes 1 and 2 receive node 0 and each other. Node 2 receives so weakly that MCS 0 is its best
/// rate.
fn near_and_far(queue: QueueConfig, mpdus: u32) -> MeshConfig {
    let mut mesh = How::mcs(7, mpdus, false).mesh(3, |_, _| true);
    mesh.radio.rate_control = RateControl::Ideal;
    mesh.radio.detect_ratio_db = 0.0;
    mesh.link.queue = queue;
    if let Propagation::Links(links) = &mut mesh.radio.propagation {
        let dbm =
            |from: NodeId, to: NodeId, dbm| if from.0.min(to.0) == 0 && from.0.max(to.0) == 2 { -92.0 } else { dbm };
        *links = Links::new(links.all().iter().map(|&(from, to, power)| (from, to, dbm(from, to, power))).collect());
    }
    mesh
}

/// Air time of RTS, data and block ACK requests of node 0, by receiver.
#[derive(Default)]
struct Air([Duration; 3]);

impl Probe<SimPacket> for Air {
    fn on(&mut self, now: Time, event: Event<'_, SimPacket>) {
        let Event::OnAir { frame } = event else { return };
        let is_answer = matches!(frame.kind, FrameKind::Cts | FrameKind::Ack | FrameKind::BlockAck);
        if frame.from == NodeId(0) && !is_answer && now > Time(2_000_000_000) {
            let sum = &mut self.0[frame.to.index()];
            *sum = *sum + frame.air_time;
        }
    }
}

/// Goodput in Mbit/s of saturated flows from node 0 to each of `ends`, and the ratio of the air
/// time for node 2 to that for node 1.
fn shares(mesh: MeshConfig, ends: &[(u16, u16)]) -> (Vec<f64>, f64) {
    let mut air = Air::default();
    let mut config = datagrams(mesh, 3, ends, 1.1, 10);
    if let Some(last) = config.flows.get_mut(3) {
        // A different rate keeps the flow from running in step with the other one.
        last.traffic = Traffic::Cbr { rate: Rate::from_bps(71_111_113) };
    }
    let outcome = meshpace_sim::run_with(&config, 1, &mut air);
    (mbps(&outcome), air.0[2].as_secs_f64() / air.0[1].as_secs_f64())
}

#[test]
fn a_slow_and_a_fast_neighbour_have_half_of_the_air_each() {
    for mpdus in [1, 64] {
        for (queue, name) in [(DROP_TAIL, "drop-tail"), (fq_codel(), "fq-codel"), (airtime(), "fq-codel-airtime")] {
            let alone = |to| shares(near_and_far(queue, mpdus), &[(0, to)]).0[0];
            let (fast, slow) = (alone(1), alone(2));
            let (both, air) = shares(near_and_far(queue, mpdus), &[(0, 1), (0, 2)]);
            println!("{name}, {mpdus} MPDUs: alone {fast:.2}, {slow:.2}, together {both:.2?} Mbit/s, air {air:.3}");
            if queue == airtime() {
                assert!((air - 1.0).abs() < 0.01, "{air}");
                // Each gets half of the time, and therefore half of its goodput alone. Only the
                // data frame of an exchange is charged. For an aggregate that is almost the whole
                // exchange. One MPDU is charged 228 us of 383 at MCS 7, and 1932 us at MCS 0.
                let rounds = if mpdus == 1 { [1.0 / 228.0, 1.0 / 1932.0] } else { [fast, slow] };
                let time = rounds[0] / fast + rounds[1] / slow;
                for (share, round) in both.iter().zip(rounds) {
                    assert!((share / (round / time) - 1.0).abs() < 0.02, "{both:?}, {}", round / time);
                }
            } else {
                // With equal numbers of packets, each takes the time of one packet to both, 1 /
                // fast + 1 / slow.
                let expected = 1.0 / (1.0 / fast + 1.0 / slow);
                assert!(both.iter().all(|share| (share / expected - 1.0).abs() < 0.1), "{both:?}, {expected}");
            }
        }
    }
}

#[test]
fn losses_are_charged_to_the_neighbour_that_has_them() {
    // At MCS 7, node 1 receives node 0 at 44 dB and node 2 at 18.7 dB, where it loses several of
    // ten MPDUs.
    for (mpdus, rts) in [(1, false), (1, true), (64, false), (64, true)] {
        let mut mesh = How::mcs(7, mpdus, rts).mesh(3, |_, _| true);
        mesh.link.queue = airtime();
        if let Propagation::Links(links) = &mut mesh.radio.propagation {
            let weak = |from: NodeId, to: NodeId, dbm| if (from.0, to.0) == (0, 2) { -75.3 } else { dbm };
            let all = links.all().iter().map(|&(from, to, power)| (from, to, weak(from, to, power)));
            *links = Links::new(all.collect());
        }
        let (both, air) = shares(mesh, &[(0, 1), (0, 2)]);
        println!("{mpdus} MPDUs, RTS {rts}: {both:.2?} Mbit/s, air {air:.3}");
        assert!(both[1] < 0.75 * both[0] && both[1] > 1.0, "{both:?}");
        assert!((air - 1.0).abs() < 0.01, "{air}");
    }
}

fn flow(to: u16, name: &str, traffic: Traffic) -> Flow {
    Flow {
        from: NodeId(0),
        to: NodeId(to),
        transport: transport(name),
        traffic,
        start: Time(500_000_000),
        start_jitter: Duration::from_millis(10),
        stop: None,
        dscp: 0,
    }
}

/// 99th percentile in ms of the delay of a sparse flow to node 1 beside four transfers to each of
/// `bulk`, and the sum of goodputs in Mbit/s.
fn sparse(queue: QueueConfig, bulk: &[u16]) -> (f64, f64) {
    let mut config = datagrams(near_and_far(queue, 64), 3, &[(0, 1), (0, 2)], 1.1, 10);
    config.flows.truncate(2);
    config.flows.push(flow(1, "udp", Traffic::Cbr { rate: Rate::from_bps(800_000) }));
    config.flows.extend(bulk.iter().flat_map(|&to| (0..4).map(move |_| flow(to, "newreno+sack+delack", Traffic::Ftp))));
    let outcome = meshpace_sim::run(&config, 1);
    assert!(outcome.flows[2].goodput_bps > 700e3, "{}", outcome.flows[2].goodput_bps);
    (outcome.flows[2].delay.p99_s * 1e3, outcome.aggregate_goodput_bps / 1e6)
}

#[test]
fn a_sparse_flow_hardly_waits_beside_bulk() {
    for bulk in [&[1][..], &[1, 2]] {
        let [(tail, _), (fq, _), (airtime, _)] = [DROP_TAIL, fq_codel(), airtime()].map(|queue| {
            let (p99, sum) = sparse(queue, bulk);
            println!("bulk to {bulk:?}: p99 of the sparse flow {p99:.1} ms, sum {sum:.2} Mbit/s");
            (p99, sum)
        });
        // A packet waits for the current aggregate, 5.5 ms and its access, and leaves with the next
        // one. One of the two may collide with ACKs. For the slow node 12 ms and a packet of 1.9 ms
        // are held. The drop-tail queue holds 500 packets.
        assert!(airtime < if bulk.len() == 1 { 25.0 } else { 35.0 }, "{airtime} ms");
        assert!(tail > 3.0 * airtime, "{tail}, {fq}, {airtime} ms");
        // Beside a slow neighbour plain FQ-CoDel is worse than a single queue: each flow may be
        // ahead by an aggregate, which takes 80 ms there.
        assert!(bulk.len() > 1 || fq < tail, "{tail}, {fq} ms");
    }
}

#[derive(Default, Debug)]
struct Longest(Duration);

impl Probe<SimPacket> for Longest {
    fn on(&mut self, _now: Time, event: Event<'_, SimPacket>) {
        if let Event::OnAir { frame } = event
            && frame.kind == FrameKind::Data
            && frame.from == NodeId(0)
        {
            self.0 = self.0.max(frame.air_time);
        }
    }
}

#[test]
fn the_limit_on_air_time_bounds_aggregates() {
    // A datagram is an MPDU of 1536 bytes: 189.05 us at 65 Mbit/s. Another one is added while less
    // than 1 ms is held: 6. Their aggregate has 6 * 1540 bytes, 285 symbols: 1176 us. An exchange:
    // AIFS 43, half of 15 slots 67.5, SIFS 16, block ACK 32 us.
    let aql = Duration::from_millis(1);
    let config = FqCodelAirtimeConfig { aql_low: aql, aql_high: aql, ..FqCodelAirtimeConfig::default() };
    let mut mesh = How::mcs(7, 64, false).mesh(2, |_, _| true);
    mesh.link.queue = QueueConfig::FqCodelAirtime(config);
    let mut longest = Longest::default();
    let outcome = meshpace_sim::run_with(&datagrams(mesh, 2, &[(0, 1)], 1.1, 5), 1, &mut longest);
    let (ours, expected) = (mbps(&outcome)[0], 6.0 * 11_760.0 / (43.0 + 67.5 + 1176.0 + 16.0 + 32.0));
    println!("{ours:.3} Mbit/s, by arithmetic {expected:.3}; longest {:?}", longest.0);
    assert_eq!(longest.0, Duration::from_micros(1176));
    assert!((ours / expected - 1.0).abs() < 0.005, "{ours} {expected}");
}

#[test]
fn categories_share_as_with_drop_tail() {
    let run = |queue| {
        let ht = HtConfig { edca: Some(EdcaConfig::default()), ..HtConfig::default() };
        let how = How { ht: Some(ht), ..How::mcs(7, 64, false) };
        let mut mesh = how.mesh(2, |_, _| true);
        mesh.link.queue = queue;
        let mut config = datagrams(mesh, 2, &[(1, 0), (1, 0)], 1.1, 10);
        // Code points AF41 and DF.
        (config.flows[0].dscp, config.flows[2].dscp) = (34, 34);
        mbps(&meshpace_sim::run(&config, 1))
    };
    let (tail, airtime) = (run(DROP_TAIL), run(airtime()));
    println!("video, best effort: {tail:.2?}, {airtime:.2?} Mbit/s");
    for (one, other) in tail.iter().zip(&airtime) {
        assert!((one - other).abs() < 0.02 * tail.iter().sum::<f64>(), "{tail:?} {airtime:?}");
    }
}

/// Packets passed to the network, and packets that were delivered or reported lost.
#[derive(Default)]
struct Books {
    injected: BTreeSet<u32>,
    accounted: BTreeSet<u32>,
}

impl Probe<SimPacket> for Books {
    fn on(&mut self, _now: Time, event: Event<'_, SimPacket>) {
        match event {
            Event::Inject { packet, .. } => self.injected.insert(packet.id()),
            Event::Deliver { packet, .. } => self.accounted.insert(packet.id()),
            Event::Loss { lost: Queued { body: Body::Data(packet), .. }, .. } => self.accounted.insert(packet.id()),
            _ => return,
        };
    }
}

fn scenario(text: String) -> Config {
    let source = Source { name: "mesh.toml".to_owned(), text, sets: Vec::new() };
    let scenario = Scenario::read(source, Path::new("."), "mesh").unwrap_or_else(|refusal| panic!("{refusal}"));
    scenario.points[0].config.clone()
}

#[test]
fn a_neighbour_that_goes_away_blocks_nobody_and_nothing_is_forgotten() {
    let n = "[mac]\nprofile = 'ht'\n[radio]\nrate = 'MCS 7'\n";
    let edca = "[mac]\nprofile = 'ht'\nedca = true\n[radio]\nrate = 'MCS 7'\nrate_control = 'minstrel'\n";
    for (what, radio, near, far, kbps) in
        [("802.11b", "", 200, 400, 300), ("802.11n", n, 10, 400, 15_000), ("categories", edca, 10, 400, 15_000)]
    {
        // Node 1 is away from 5 to 10 s. Node 0 sends to both until 15 s.
        let config = scenario(format!(
            "duration = '25 s'\n{radio}[topology]\nkind = 'nodes'\npositions = [['0 m', '0 m'], ['{near} m', '0 m'], ['0 m', '{near} m']]\n\
            moves = [{{ node = 1, start = '5 s', end = '5.1 s', to = ['{far} m', '0 m'] }}, \
            {{ node = 1, start = '10 s', end = '10.1 s', to = ['{near} m', '0 m'] }}]\n\
            [routing]\nprotocol = 'aodv'\n[link]\nqueue = 'fq-codel-airtime'\n\
            [[flow]]\nfrom = 0\nto = 1\ntransport = 'udp'\ntraffic = 'cbr'\nrate = '{kbps} kbit/s'\nstop = '15 s'\n\
            [[flow]]\nfrom = 0\nto = 2\ntransport = 'udp'\ntraffic = 'cbr'\nrate = '{kbps} kbit/s'\nstop = '15 s'\n"
        ));
        let mut books = Books::default();
        let outcome = meshpace_sim::run_with(&config, 1, &mut books);
        let stuck = books.injected.difference(&books.accounted).count();
        let [away, stays] = [0, 1].map(|flow| outcome.flows[flow].delivered_bytes as f64 * 8.0 / 1e3 / f64::from(kbps));
        println!(
            "{what}: {} packets, {stuck} unaccounted for; {away:.2} s and {stays:.2} s arrive",
            books.injected.len()
        );
        assert_eq!(stuck, 0, "{what}");
        // Node 0 sends for 14 s. To the node that was away, 5 s are missing, and the time until
        // AODV sends a request again, at most 10 s. AODV keeps 64 packets.
        let kept = 64.0 * 1460.0 * 8.0 / 1e3 / f64::from(kbps);
        assert!(stays > 13.5 && away > 3.9 && away < 9.3 + kept, "{what}: {stays} {away}");
    }
}
