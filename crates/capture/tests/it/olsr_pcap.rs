//! Captures of OLSR and of AODV's HELLOs read by tshark, an independent witness. Without tshark these tests say that they
//! are skipped.

use meshpace_capture::PcapProbe;
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::config::Position;
use meshpace_mesh::{AodvDetection, LocalRepair, MeshConfig, OlsrConfig, OlsrMetric, RoutingConfig};
use meshpace_sim::mobility::Waypoint;
use meshpace_sim::{Config, Flow, Mobility, Traffic, run_with};
use meshpace_testing::has;
use meshpace_transport::names;
use std::path::Path;
use std::process::Command;

/// A run of 30 s over `positions` with a transfer from the first to the last node that starts at `start` s,
/// captured.
fn captured(positions: Vec<Position>, routing: RoutingConfig, start: u64) -> tempfile::TempDir {
    captured_moving(positions, Mobility::Still, routing, start)
}

/// As [`captured`], of nodes that may move.
fn captured_moving(
    positions: Vec<Position>,
    mobility: Mobility,
    routing: RoutingConfig,
    start: u64,
) -> tempfile::TempDir {
    let to = NodeId(positions.len() as u16 - 1);
    let config = Config {
        duration: Duration::from_secs(30),
        warmup: Duration::ZERO,
        positions,
        mobility,
        mesh: MeshConfig { routing, ..MeshConfig::default() },
        flows: vec![Flow {
            from: NodeId(0),
            to,
            transport: names::lookup("newreno").expect("a named transport"),
            traffic: Traffic::Ftp,
            start: Time(start * 1_000_000_000),
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: 0,
        }],
        ..Config::default()
    };
    let dir = tempfile::tempdir().expect("a directory for the captures");
    let mut probe = PcapProbe::create(dir.path(), &config, false).expect("new files");
    run_with(&config, 1, &mut probe);
    probe.finish().expect("captures on disk");
    dir
}

/// The columns `fields` of the frames of a node that `filter` selects; several values in a column stand with commas.
fn read(dir: &Path, node: u16, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(dir.join(format!("n{node}-radio.pcapng")));
    command.args(["-Y", filter, "-T", "fields", "-E", "separator=|"]);
    for checked in ["ip", "tcp", "udp", "wlan"] {
        command.args(["-o", &format!("{checked}.check_checksum:TRUE")]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    // The preferences of whoever runs this must not matter.
    let output = command.env("WIRESHARK_CONFIG_DIR", dir).output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// Nothing is malformed, no length disagrees, no checksum is wrong.
fn assert_sound(dir: &Path, nodes: u16) {
    let bad = "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || wlan.fcs.status == 0 \
               || _ws.expert.severity == \"Error\" || olsr.not_enough_bytes || olsr.data.misaligned";
    for node in 0..nodes {
        let found = read(dir, node, bad, &["frame.number", "frame.protocols", "_ws.expert.message"]);
        assert!(found.is_empty(), "n{node}: {} unsound, the first {:?}", found.len(), found[0]);
    }
}

fn chain(hops: u16) -> Vec<Position> {
    (0..=hops).map(|i| Position { x: 200.0 * f64::from(i), y: 0.0 }).collect()
}

#[test]
fn olsr_decodes_without_an_error() {
    if !has("tshark", "tshark") {
        return;
    }
    for (metric, hello, tc) in [(OlsrMetric::Hops, "1", "2"), (OlsrMetric::Etx, "201", "202")] {
        let dir = captured(chain(4), RoutingConfig::Olsr(OlsrConfig { metric, link_layer: false }), 28);
        let dir = dir.path();
        assert_sound(dir, 2);
        let late = "frame.time_relative > 15 && wlan.ta == 02:00:00:00:00:02";
        // Node 1 hears nodes 0 and 2, and node 2 relays for it: 10.0.0.1 symmetric, 10.0.0.3 MPR.
        let hellos = read(
            dir,
            1,
            &format!("olsr.message_type == {hello} && {late}"),
            &[
                "olsr.htime",
                "olsr.vtime",
                "olsr.ttl",
                "olsr.willingness",
                "olsr.link_type",
                "olsr.neighbor_addr",
                "ip.ttl",
            ],
        );
        assert!(hellos.len() >= 5, "{metric:?}: {} HELLOs", hellos.len());
        for seen in &hellos {
            assert_eq!(seen[..4], ["2", "6", "1", "3"], "{metric:?}");
            assert_eq!((&*seen[6], &*seen[5]), ("1", "10.0.0.1,10.0.0.3"), "{metric:?}");
            let types: Vec<u8> = seen[4].split(',').map(number).collect();
            assert_eq!(types, [0x06, 0x0a], "{metric:?}: SYM_NEIGH and MPR_NEIGH over SYM_LINK");
        }
        // Nodes 0 and 2 have chosen node 1; node 2 passes that on.
        let fields = ["olsr.origin_addr", "olsr.vtime", "olsr.ttl", "olsr.hop_count", "olsr.neighbor_addr"];
        let own = read(dir, 1, &format!("olsr.message_type == {tc} && {late} && olsr.hop_count == 0"), &fields);
        assert!(
            own.len() >= 2 && own.iter().all(|f| *f == ["10.0.0.2", "15", "255", "0", "10.0.0.1,10.0.0.3"]),
            "{own:?}"
        );
        let passed_on = read(
            dir,
            2,
            &format!("olsr.message_type == {tc} && wlan.ta == 02:00:00:00:00:03 && olsr.origin_addr == 10.0.0.2"),
            &fields,
        );
        assert!(!passed_on.is_empty() && passed_on.iter().all(|f| f[2..4] == ["254", "1"]), "{passed_on:?}");
        let all = |filter| read(dir, 1, filter, &["frame.number"]).len();
        assert!(all("olsr") > 20 && all("olsr") == all("udp.port == 698"));
        if metric == OlsrMetric::Etx {
            let ratios = read(dir, 1, &format!("olsr.message_type == 201 && {late}"), &["olsr.lq", "olsr.nlq"]);
            let ratio = |text: &str| text.split(',').map(number).collect::<Vec<_>>();
            // 15 s are at least seven HELLOs of ten.
            assert!(ratios.iter().flat_map(|f| ratio(&f[0])).all(|lq| lq >= 128), "{ratios:?}");
        }
    }
}

/// Twenty nodes that all hear each other: a list in two parts.
#[test]
fn a_long_list_decodes_in_parts() {
    if !has("tshark", "tshark") {
        return;
    }
    let positions = (0..20).map(|n| Position { x: f64::from(n) * 10.0, y: 0.0 }).collect();
    let dir = captured(positions, RoutingConfig::Olsr(OlsrConfig { metric: OlsrMetric::Hops, link_layer: false }), 29);
    assert_sound(dir.path(), 2);
    let late = "olsr.message_type == 1 && frame.time_relative > 15 && wlan.ta == 02:00:00:00:00:01";
    let lists = read(dir.path(), 0, late, &["olsr.neighbor_addr"]);
    let mut lengths: Vec<_> = lists.iter().map(|list| list[0].split(',').count()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [7, 12], "19 neighbours");
}

#[test]
fn hellos_of_aodv_decode_as_replies_about_their_sender() {
    if !has("tshark", "tshark") {
        return;
    }
    let dir = captured(chain(3), RoutingConfig::aodv(LocalRepair::Off, AodvDetection::Both), 28);
    assert_sound(dir.path(), 2);
    let fields = ["ip.src", "ip.ttl", "aodv.dest_ip", "aodv.hopcount", "aodv.lifetime"];
    let hellos =
        read(dir.path(), 1, "aodv.type == 2 && ip.dst == 255.255.255.255 && wlan.ta == 02:00:00:00:00:02", &fields);
    assert!(hellos.len() > 15 && hellos.iter().all(|f| *f == ["10.0.0.2", "1", "10.0.0.2", "0", "2000"]), "{hellos:?}");
    let all = |filter| read(dir.path(), 1, filter, &["frame.number"]).len();
    assert!(all("aodv.type == 1") > 0 && all("aodv") == all("udp.port == 654"));
}

/// Routes that break, are repaired and change: RERRs, answers from caches, links lost and gained, relays that change.
#[test]
fn routing_among_nodes_that_move_decodes_without_an_error() {
    if !has("tshark", "tshark") {
        return;
    }
    let pause = Duration::from_secs(1);
    let waypoint = Waypoint { width: 800.0, height: 800.0, min_speed: 10.0, max_speed: 20.0, pause, seed: None };
    let places = vec![Position { x: 0.0, y: 0.0 }; 20];
    let aodv = RoutingConfig::aodv(LocalRepair::Rfc3561, AodvDetection::Both);
    let olsr = |metric| RoutingConfig::Olsr(OlsrConfig { metric, link_layer: true });
    // RREQ, RREP, RERR; HELLO and TC, plain and with link qualities.
    let kinds: [(_, &str, &[&str]); 3] = [
        (aodv, "aodv.type", &["1", "2", "3"]),
        (olsr(OlsrMetric::Hops), "olsr.message_type", &["1", "2"]),
        (olsr(OlsrMetric::Etx), "olsr.message_type", &["201", "202"]),
    ];
    for (routing, field, kinds) in kinds {
        let dir = captured_moving(places.clone(), Mobility::Waypoint(waypoint), routing, 5);
        assert_sound(dir.path(), 6);
        let messages: Vec<_> = (0..5).flat_map(|node| read(dir.path(), node, field, &[field])).collect();
        for kind in kinds {
            let heard = messages.iter().filter(|fields| fields[0] == *kind).count();
            assert!(heard > 10, "{routing:?}: {heard} messages with {field} {kind}");
        }
    }
}

/// A number as one or the other version of tshark writes it.
fn number(text: &str) -> u8 {
    match text.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16).expect("hexadecimal"),
        None => text.parse().expect("decimal"),
    }
}
