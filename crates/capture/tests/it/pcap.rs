//! Captures read by tshark, an independent witness: its own TCP analysis counts what the run counted, and everything on
//! the air is what the standards say. Without tshark these tests say that they are skipped.

use meshpace_capture::PcapProbe;
use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::config::Position;
use meshpace_mesh::{AodvDetection, LocalRepair, MeshConfig, RoutingConfig};
use meshpace_sim::{Config, Flow, Outcome, Traffic, run_with};
use meshpace_testing::has;
use meshpace_transport::names;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nothing can be out of order where it is sent: what tshark takes for that is a retransmission as well.
const RETRANSMISSIONS: &str = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
const AODV: RoutingConfig = RoutingConfig::aodv(LocalRepair::Ns2, AodvDetection::LinkLayer);

pub fn flow(from: u16, to: u16, transport: &str, traffic: Traffic) -> Flow {
    Flow {
        from: NodeId(from),
        to: NodeId(to),
        transport: names::lookup(transport).expect("a named transport"),
        traffic,
        start: Time(1_000_000_000),
        start_jitter: Duration::from_millis(100),
        stop: None,
        dscp: 0,
    }
}

/// A chain of `hops` hops of 200 m.
fn chain(hops: u16, routing: RoutingConfig, flows: Vec<Flow>, seconds: u64) -> Config {
    Config {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        positions: (0..=hops).map(|i| Position { x: f64::from(i) * 200.0, y: 0.0 }).collect(),
        mesh: MeshConfig { routing, ..MeshConfig::default() },
        flows,
        ..Config::default()
    }
}

/// Whether the node sent the packet: `epb_flags` as versions of tshark print them, "0x00000002" or "2".
pub fn outbound(flags: &str) -> bool {
    match flags.trim_start_matches("0x").trim_start_matches('0') {
        "1" => false,
        "2" => true,
        other => panic!("neither in nor out: {other}"),
    }
}

/// A run with its captures.
pub struct Captured {
    dir: tempfile::TempDir,
    pub outcome: Outcome,
}

impl Captured {
    pub fn new(config: &Config, seed: u64) -> Captured {
        let dir = tempfile::tempdir().expect("a directory for the captures");
        let mut probe = PcapProbe::create(dir.path(), config, false).expect("new files");
        let outcome = run_with(config, seed, &mut probe);
        probe.finish().expect("captures on disk");
        Captured { dir, outcome }
    }

    fn file(&self, node: u16, layer: &str) -> PathBuf {
        self.dir.path().join(format!("n{node}-{layer}.pcapng"))
    }

    /// The columns `fields` of the packets in a file that `filter` selects.
    pub fn read(&self, node: u16, layer: &str, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let mut command = Command::new("tshark");
        command.arg("-n").arg("-r").arg(self.file(node, layer)).args([
            "-Y",
            filter,
            "-T",
            "fields",
            "-E",
            "separator=|",
        ]);
        for checked in ["ip", "tcp", "udp", "wlan"] {
            command.args(["-o", &format!("{checked}.check_checksum:TRUE")]);
        }
        for field in fields {
            command.args(["-e", field]);
        }
        // The preferences of whoever runs this must not matter.
        let output = command.env("WIRESHARK_CONFIG_DIR", self.dir.path()).output().expect("tshark runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
    }

    pub fn count(&self, node: u16, layer: &str, filter: &str) -> u64 {
        self.read(node, layer, filter, &["frame.number"]).len() as u64
    }

    /// Nothing is malformed and no checksum is wrong in a file.
    pub fn assert_sound(&self, node: u16, layer: &str) {
        let bad = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0 \
                   || wlan.fcs.status == 0 || _ws.expert.severity == \"Error\"";
        let found = self.read(node, layer, bad, &["frame.number", "frame.protocols", "_ws.expert.message"]);
        assert!(found.is_empty(), "n{node}-{layer}: {} unsound, the first {:?}", found.len(), found[0]);
    }
}

#[test]
fn tshark_counts_the_retransmissions_of_the_record() {
    if !has("tshark", "tshark") {
        return;
    }
    for (transport, runs) in
        [("newreno", vec![(4, 1), (7, 1), (7, 2)]), ("tcp-ap", vec![(4, 1), (7, 1)]), ("tcp-ap-released", vec![(7, 2)])]
    {
        let mut total = 0;
        for (hops, seed) in runs {
            let config = chain(hops, AODV, vec![flow(0, hops, transport, Traffic::Ftp)], 60);
            let run = Captured::new(&config, seed);
            let record = &run.outcome.flows[0];
            let case = format!("{transport}, {hops} hops, seed {seed}");
            assert_eq!(run.count(0, "ip", RETRANSMISSIONS), record.retransmissions, "{case}");
            let sent = "ip.src == 10.0.0.1 && tcp.len > 0";
            assert_eq!(run.count(0, "ip", sent), record.segments_sent, "{case}");
            // What would make tshark's count another one: a data segment taken for a keep-alive, packets that are missing.
            let doubt = "tcp.analysis.keep_alive || tcp.analysis.zero_window || tcp.analysis.lost_segment \
                         || tcp.analysis.ack_lost_segment";
            assert_eq!(run.count(0, "ip", doubt), 0, "{case}");
            run.assert_sound(0, "ip");
            run.assert_sound(hops, "ip");
            // Acknowledgements are captured whole, so that tshark can check their sums, and does.
            let checked = run.count(0, "ip", "ip.checksum.status == 1 && tcp.checksum.status == 1 && tcp.len == 0");
            assert!(checked > 100, "{case}: {checked} checked");
            total += record.retransmissions;
        }
        assert!(total > 0, "no run of {transport} lost anything: this test has tested nothing");
    }
}

/// A SYN that is sent again is a retransmission for tshark, and no data segment for the record.
#[test]
fn a_repeated_handshake_is_not_in_the_record() {
    if !has("tshark", "tshark") {
        return;
    }
    // The first SYNs are lost: for two seconds a constant-rate flow keeps the air from everyone else.
    let saturating = Traffic::Cbr { rate: Rate::from_bps(4_000_000) };
    let noise = Flow { start: Time(0), stop: Some(Time(8_000_000_000)), ..flow(1, 2, "udp", saturating) };
    let hidden = Flow { start: Time(0), stop: Some(Time(8_000_000_000)), ..flow(4, 3, "udp", saturating) };
    let flows = vec![flow(0, 4, "newreno", Traffic::Ftp), noise, hidden];
    let run = Captured::new(&chain(4, RoutingConfig::Static, flows, 30), 1);
    let all = run.count(0, "ip", RETRANSMISSIONS);
    let data = run.count(0, "ip", &format!("tcp.len > 0 && ({RETRANSMISSIONS})"));
    let handshake = run.count(0, "ip", &format!("tcp.flags.syn == 1 && ({RETRANSMISSIONS})"));
    assert!(handshake > 0, "no SYN was sent again: this test has tested nothing");
    assert_eq!((all, data), (data + handshake, run.outcome.flows[0].retransmissions));
}

#[test]
fn flows_in_both_directions_are_told_apart() {
    if !has("tshark", "tshark") {
        return;
    }
    let flows = vec![
        flow(0, 4, "newreno", Traffic::Ftp),
        flow(4, 0, "newreno", Traffic::Ftp),
        flow(0, 4, "newreno", Traffic::Ftp),
    ];
    let run = Captured::new(&chain(4, RoutingConfig::Static, flows, 60), 1);
    for (node, port, record) in
        [(0, 49_152, &run.outcome.flows[0]), (4, 49_153, &run.outcome.flows[1]), (0, 49_154, &run.outcome.flows[2])]
    {
        let filter = format!("tcp.srcport == {port} && tcp.len > 0 && ({RETRANSMISSIONS})");
        assert_eq!(run.count(node, "ip", &filter), record.retransmissions);
    }
    assert!(run.outcome.flows.iter().all(|flow| flow.retransmissions > 0), "this test has tested nothing");
}

#[test]
fn the_radio_speaks_802_11_arp_aodv_and_tcp() {
    if !has("tshark", "tshark") {
        return;
    }
    let run = Captured::new(&chain(4, AODV, vec![flow(0, 4, "newreno", Traffic::Ftp)], 10), 1);
    let mut frames = 0;
    for node in 0..=4 {
        run.assert_sound(node, "radio");
        let seen =
            run.read(node, "radio", "wlan", &["wlan.fc.type", "wlan.fc.subtype", "frame.packet_flags_direction"]);
        frames += seen.iter().filter(|frame| outbound(&frame[2])).count() as u64;
        // RTS, CTS, ACK, data: sent and received.
        for kind in [["1", "11"], ["1", "12"], ["1", "13"], ["2", "0"]] {
            for sent in [true, false] {
                let there = seen.iter().any(|frame| frame[..2] == kind && outbound(&frame[2]) == sent);
                assert!(there, "node {node}: no frame of type {kind:?}, sent: {sent}");
            }
        }
    }
    assert_eq!(frames, run.outcome.frames, "every transmission is in its node's file, once");

    // Control frames are captured whole, their FCS is right, and they are received as strongly as 200 m say: by the
    // two-ray formula 281.8 mW x 1.5^4 / 200^4 = 8.92e-7 mW = -60.5 dBm, just above the half.
    let rts = run.read(
        1,
        "radio",
        "wlan.fc.type_subtype == 0x1b && wlan.ta == 02:00:00:00:00:01",
        &["wlan.fcs.status", "radiotap.dbm_antsignal", "wlan.ra", "radiotap.datarate", "radiotap.channel.freq"],
    );
    assert!(!rts.is_empty());
    assert!(rts.iter().all(|f| *f == ["1", "-60", "02:00:00:00:00:02", "1", "914"]), "{:?}", rts[0]);

    // A data frame inside an exchange leaves room for SIFS and ACK: 10 + 304 us.
    let data = run.read(
        0,
        "radio",
        "wlan.fc.type_subtype == 0x20 && tcp.len == 1460 && wlan.ta == 02:00:00:00:00:01",
        &["wlan.duration", "ip.len", "radiotap.datarate", "frame.len", "ip.ttl", "llc.type"],
    );
    assert!(!data.is_empty());
    // 22 radiotap, 24 + 8 + 4 MAC, 1500 IP.
    assert!(data.iter().all(|f| *f == ["314", "1500", "2", "1558", "30", "0x0800"]), "{:?}", data[0]);

    let request = run.read(1, "radio", "arp.opcode == 1", &["arp.src.proto_ipv4", "arp.dst.hw_mac", "wlan.ra"]);
    assert!(!request.is_empty() && request.iter().all(|f| f[1..] == ["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"]));
    assert!(run.count(1, "radio", "arp.opcode == 2 && arp.src.proto_ipv4 == 10.0.0.2") > 0);

    // Node 0 asks for node 4, each neighbour counts a hop; node 4 answers.
    let first =
        run.read(1, "radio", "aodv.type == 1 && wlan.ta == 02:00:00:00:00:01", &["aodv.dest_ip", "aodv.hopcount"]);
    assert_eq!(first[0], ["10.0.0.5", "0"]);
    let passed_on =
        run.read(1, "radio", "aodv.type == 1 && wlan.ta == 02:00:00:00:00:02", &["aodv.orig_ip", "aodv.hopcount"]);
    assert_eq!(passed_on[0], ["10.0.0.1", "1"]);
    let answers = run.read(
        4,
        "radio",
        "aodv.type == 2 && ip.src == 10.0.0.5",
        &["aodv.dest_ip", "aodv.hopcount", "aodv.lifetime"],
    );
    assert_eq!(answers[0][..2], ["10.0.0.5", "0"]);
    let aodv =
        run.read(1, "radio", "udp.port == 654", &["frame.protocols", "udp.checksum.status", "ip.checksum.status"]);
    assert!(aodv.iter().all(|f| f[0].ends_with(":aodv") && f[1..] == ["1", "1"]), "{:?}", aodv[0]);
}

#[test]
fn only_a_repeated_mpdu_has_the_retry_bit() {
    if !has("tshark", "tshark") {
        return;
    }
    let run = Captured::new(&chain(7, AODV, vec![flow(0, 7, "newreno", Traffic::Ftp)], 20), 1);
    let mut repeated = 0;
    for node in 0..=7 {
        let own = "wlan.fc.type == 2 && frame.packet_flags_direction == 2";
        let mut last = String::new();
        for frame in run.read(node, "radio", own, &["wlan.seq", "wlan.fc.retry"]) {
            let again = frame[0] == last;
            assert_eq!(frame[1] == "1", again, "node {node}, sequence number {}", frame[0]);
            repeated += u32::from(again);
            last.clone_from(&frame[0]);
        }
    }
    assert!(repeated > 0, "no frame was repeated: this test has tested nothing");
}

#[test]
fn datagrams_keep_their_true_length() {
    if !has("tshark", "tshark") {
        return;
    }
    let cbr = Traffic::Cbr { rate: Rate::from_bps(100_000) };
    let run = Captured::new(&chain(2, RoutingConfig::Static, vec![flow(0, 2, "udp", cbr)], 10), 1);
    run.assert_sound(0, "ip");
    let sent = run.read(0, "ip", "udp", &["frame.len", "frame.cap_len", "udp.length", "ip.dst", "udp.dstport"]);
    assert_eq!(sent.len() as u64, run.outcome.flows[0].segments_sent);
    assert!(sent.iter().all(|f| *f == ["1488", "28", "1468", "10.0.0.3", "57344"]), "{:?}", sent[0]);
    let received = run.count(2, "ip", "udp && frame.packet_flags_direction == 1");
    assert_eq!(received * 1460, run.outcome.flows[0].delivered_bytes);
}

#[test]
fn stamps_are_in_nanoseconds_and_in_order() {
    if !has("tshark", "tshark") {
        return;
    }
    let run = Captured::new(&chain(2, RoutingConfig::Static, vec![flow(0, 2, "newreno", Traffic::Ftp)], 5), 3);
    let stamps =
        run.read(1, "radio", "frame", &["frame.time_epoch", "radiotap.mactime", "frame.packet_flags_direction"]);
    let (mut last, mut own) = (0, 0);
    for stamp in &stamps {
        let (seconds, fraction) = stamp[0].split_once('.').expect("a fraction");
        assert_eq!(fraction.len(), 9);
        let ns: u64 = format!("{seconds}{fraction}").parse().expect("digits");
        assert!(ns >= last);
        last = ns;
        if outbound(&stamp[2]) {
            own += 1;
            // The MPDU follows the PLCP preamble and header, 192 us.
            assert_eq!(stamp[1].parse::<u64>().expect("microseconds"), (ns + 192_000) / 1_000);
        }
    }
    assert!(own > 100 && own < stamps.len(), "{own} of {} are node 1's", stamps.len());
    assert!(last > 1_000_000_000 && last % 1_000 != 0, "the last stamp is {last} ns");
}

#[test]
fn the_same_run_writes_the_same_bytes_and_no_more_files_than_two_per_node() {
    let config = chain(3, AODV, vec![flow(0, 3, "newreno", Traffic::Ftp)], 5);
    let (one, two) = (Captured::new(&config, 1), Captured::new(&config, 1));
    let names = |dir: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let files = names(one.dir.path());
    assert_eq!(files.len(), 8);
    assert_eq!(files, names(two.dir.path()));
    for file in files {
        let read = |run: &Captured| std::fs::read(run.dir.path().join(&file)).unwrap();
        assert!(read(&one) == read(&two), "{file:?} differs");
    }
}

#[test]
fn an_existing_file_is_not_overwritten_unasked() {
    let config = chain(1, RoutingConfig::Static, vec![flow(0, 1, "newreno", Traffic::Ftp)], 2);
    let dir = tempfile::tempdir().unwrap();
    let precious = dir.path().join("n1-ip.pcapng");
    std::fs::write(&precious, "mine").unwrap();
    let error = PcapProbe::create(dir.path(), &config, false).err().expect("refused");
    assert_eq!(error.path, precious);
    assert!(error.to_string().contains("not overwritten unasked"), "{error}");
    assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else was created");
    let mut probe = PcapProbe::create(dir.path(), &config, true).expect("asked for");
    run_with(&config, 1, &mut probe);
    probe.finish().unwrap();
    assert_eq!(std::fs::read(&precious).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a section header");
}

#[test]
fn a_failure_is_one_error_at_the_end() {
    let config = chain(1, RoutingConfig::Static, vec![flow(0, 1, "newreno", Traffic::Ftp)], 20);
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("captures");
    let mut probe = PcapProbe::create(&inside, &config, false).unwrap();
    std::fs::remove_dir_all(&inside).unwrap();
    let outcome = run_with(&config, 1, &mut probe);
    assert!(outcome.flows[0].delivered_bytes > 0, "the run itself goes on");
    let error = probe.finish().expect_err("the files are gone");
    assert!(error.to_string().starts_with("cannot write the capture"), "{error}");
    assert!(error.path.starts_with(&inside));
}

/// A disk that is full: only where the system has a device that says so.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let config = chain(1, RoutingConfig::Static, vec![flow(0, 1, "newreno", Traffic::Ftp)], 20);
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("n0-radio.pcapng")).unwrap();
    let mut probe = PcapProbe::create(dir.path(), &config, true).unwrap();
    run_with(&config, 1, &mut probe);
    let error = probe.finish().expect_err("no space");
    assert_eq!(error.source.kind(), std::io::ErrorKind::StorageFull);
    assert!(error.path.ends_with("n0-radio.pcapng"));
}
