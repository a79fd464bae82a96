//! Tests of programs over emulated meshes: the network that they see, the counts, and the end of an
//! emulation. Medians and counts are checked, never tails of distributions, because the machine may
//! be busy with other work.

use meshpace_core::{Duration, NodeId, Time};
use meshpace_emulator::emulation::Ended;
use meshpace_emulator::node::Setup;
use meshpace_emulator::plan::{LinkChange, Planned};
use meshpace_emulator::verdict::Budget;
use meshpace_emulator::{Emulation, Failure, Mode, Options, Spec, Verdict};
use meshpace_mesh::config::Position;
use meshpace_mesh::{LocalRepair, RoutingConfig};
use meshpace_sim::mobility::{Mobility, Move};
use meshpace_testing::{Class, has, skipped};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// True if this machine can run an emulation.
fn is_possible() -> bool {
    let namespace = meshpace_live::testbed::Namespace::new();
    let tap = namespace.and_then(|namespace| namespace.run(|| meshpace_live::tun::Tun::create_tap("mesh0")));
    if let Err(error) = &tap {
        skipped(Class::Rights, format_args!("no namespace with a TAP device: {error}"));
    }
    tap.is_ok() && has("ping", "iputils-ping")
}

/// A chain of nodes 200 m apart, with programs at its ends. The directory of the run is private to
/// the test.
struct Chain {
    options: Options,
    scratch: tempfile::TempDir,
}

impl Chain {
    fn new(nodes: u16, seconds: u64) -> Chain {
        let positions = (0..nodes).map(|node| Position { x: 200.0 * f64::from(node), y: 0.0 }).collect();
        let duration = Duration::from_secs(seconds);
        let config = meshpace_sim::Config { duration, positions, ..meshpace_sim::Config::default() };
        let scratch = tempfile::tempdir().unwrap();
        let options = Options {
            config,
            seed: 1,
            setup: Setup { mode: Mode::Ours, mtu: 1500, sysctls: Vec::new(), without_tun: false },
            installs_routes: true,
            programs: Vec::new(),
            log: Some(scratch.path().join("log")),
            pcap: None,
            slowdown: 1,
            wants_priority: true,
            budget: Budget::default(),
            hard: false,
            plan: Vec::new(),
            inject: None,
            base: scratch.path().join("run"),
        };
        Chain { options, scratch }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Chain {
        change(&mut self.options);
        self
    }

    fn execute(mut self, command: &str) -> Chain {
        let nodes = self.options.config.positions.len();
        self.options.programs.push(Spec::parse(command, nodes).unwrap());
        self
    }

    fn try_run(&self) -> meshpace_emulator::Result<Emulation> {
        Emulation::run(self.options.clone(), || Ok(Box::new(())), &AtomicBool::new(false), &mut |message| {
            eprintln!("{message}")
        })
    }

    fn run(&self) -> Emulation {
        self.try_run().unwrap()
    }

    /// Output of program `number`.
    fn output(&self, number: usize) -> String {
        let node = self.options.programs[number].node;
        fs::read_to_string(self.scratch.path().join(format!("log/{}-{node}.stdout", number + 1))).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

/// Sequence numbers of the answers that ping received, with their time to live.
fn answers(output: &str) -> Vec<(u32, u32)> {
    let number = |line: &str, name: &str| line.split_once(name)?.1.split_whitespace().next()?.parse().ok();
    output.lines().filter_map(|line| Some((number(line, "icmp_seq=")?, number(line, "ttl=")?))).collect()
}

#[test]
fn ping_crosses_three_hops_and_sees_two_routers() {
    if !is_possible() {
        return;
    }
    let chain = Chain::new(4, 30).execute("n3: ping -c 5 -i 0.2 n0");
    let emulation = chain.run();
    assert_eq!((emulation.ended, emulation.programs[0].status), (Ended::LastProgram, Some(0)));
    let answers = answers(&chain.output(0));
    assert!(answers.len() >= 4 && answers.iter().all(|&(_, ttl)| ttl == 62), "{answers:?}");
    let streams = emulation.traffic.streams();
    assert_eq!(streams.len(), 2, "there and back: {streams:?}");
    assert_eq!((streams[0].from, streams[0].to, streams[0].hops), (NodeId(3), NodeId(0), 3));
    assert_eq!(streams[1].whole.packets_delivered as usize, answers.len());
    assert_eq!(emulation.lateness.deliveries, streams.iter().map(|stream| stream.whole.packets_delivered).sum::<u64>());
}

#[test]
fn packet_sockets_do_what_tap_devices_do() {
    if !is_possible() || !has("nc", "netcat-openbsd") {
        return;
    }
    // Half a megabyte over one hop. Segments have to be as long as the MTU and have correct
    // checksums, or the kernel would refuse them.
    let fast = |options: &mut Options| {
        options.setup.without_tun = true;
        options.config.mesh.radio.rate = meshpace_core::Rate::from_mbps(11);
    };
    let chain = Chain::new(3, 60)
        .with(fast)
        .execute("n0: timeout 50 nc -l -p 5000 | wc -c")
        .execute("n1: ping -c 3 -i 0.2 n2")
        .execute("n1: head -c 500000 /dev/zero | timeout 50 nc -N n0 5000; sleep 1");
    let emulation = chain.run();
    assert_eq!(emulation.programs[2].status, Some(0));
    assert_eq!(chain.output(0).trim(), "500000");
    let answers = answers(&chain.output(1));
    assert!(answers.len() >= 2 && answers.iter().all(|&(_, ttl)| ttl == 64), "{answers:?}");
    // The traffic is that of these three programs only. The kernel at the far ends sends nothing.
    let streams = emulation.traffic.streams();
    assert!(streams.iter().all(|stream| stream.conversation.protocol.is_some()), "{streams:?}");
    assert_eq!(streams.len(), 4, "{streams:?}");
}

#[test]
fn kernels_route_where_they_are_asked_to() {
    if !is_possible() {
        return;
    }
    let kernel = |options: &mut Options| options.setup.mode = Mode::Kernel;
    let chain = Chain::new(4, 30).with(kernel).execute("n3: ping -c 5 -i 0.2 n0");
    assert_eq!(chain.run().programs[0].status, Some(0));
    let answers = answers(&chain.output(0));
    assert!(answers.len() >= 3 && answers.iter().all(|&(_, ttl)| ttl == 62), "{answers:?}");
}

#[test]
fn without_routes_only_neighbours_hear_a_kernel() {
    if !is_possible() {
        return;
    }
    let bare = |options: &mut Options| {
        options.setup.mode = Mode::Kernel;
        options.installs_routes = false;
    };
    // Node n0 reaches n1 and n2 as hosts of the link itself, although n2 is two hops away.
    let chain = Chain::new(3, 30)
        .with(bare)
        .execute("n0: ip route add 10.99.0.0/16 dev mesh0; ip route")
        .execute("n1: ip route add 10.99.0.0/16 dev mesh0")
        .execute("n2: ip route add 10.99.0.0/16 dev mesh0")
        .execute("n0: ping -c 4 -i 0.2 -W 1 n2; ping -c 4 -i 0.2 n1");
    let emulation = chain.run();
    assert_eq!(emulation.programs[3].status, Some(0), "{}", chain.output(3));
    let answers = chain.output(3);
    assert!(answers.contains("4 packets transmitted, 0 received"), "{answers}");
}

#[test]
fn aodv_finds_the_way() {
    if !is_possible() {
        return;
    }
    let aodv = |options: &mut Options| options.config.mesh.routing = routing();
    let chain = Chain::new(4, 30).with(aodv).execute("n3: ping -c 10 -i 0.2 n0");
    let emulation = chain.run();
    assert_eq!(emulation.programs[0].status, Some(0));
    assert!(answers(&chain.output(0)).len() >= 5, "{}", chain.output(0));
}

fn routing() -> RoutingConfig {
    RoutingConfig::aodv(LocalRepair::Off, Default::default())
}

#[test]
fn nodes_move_while_programs_run() {
    if !is_possible() {
        return;
    }
    // Node 1 leaves the range of node 0 from 1.5 s on, and is 1 km away at 2.5 s.
    let second = |s: f64| Time::ZERO + Duration::from_secs_f64(s);
    let away = Move { node: NodeId(1), start: second(1.5), end: second(2.5), to: Position { x: 1000.0, y: 0.0 } };
    let moving = |options: &mut Options| {
        options.config.mesh.routing = routing();
        options.config.mobility = Mobility::Scripted(vec![away]);
    };
    let chain = Chain::new(2, 30).with(moving).execute("n0: ping -c 30 -i 0.1 -W 1 n1");
    chain.run();
    let answers = answers(&chain.output(0));
    // Node 1 is in range (250 m) until 1.5625 s.
    assert!((8..=18).contains(&answers.len()), "{answers:?}");
    assert!(answers.iter().all(|&(sequence, _)| sequence <= 18), "{answers:?}");
}

#[test]
fn a_link_is_cut_and_restored() {
    if !is_possible() {
        return;
    }
    let change = |seconds: f64, up| Planned {
        at: Time::ZERO + Duration::from_secs_f64(seconds),
        change: LinkChange { one: NodeId(1), other: NodeId(0), up },
    };
    let chain = Chain::new(2, 30)
        .with(|options| options.plan = vec![change(1.0, false), change(2.0, true)])
        .execute("n0: ping -c 30 -i 0.1 -W 1 n1");
    let emulation = chain.run();
    let answers = answers(&chain.output(0));
    // The link is cut for one second of ten requests. The time of the first request depends on the
    // machine.
    let lost = |pair: &[(u32, u32)]| pair[1].0 - pair[0].0 - 1;
    let pairs = answers.windows(2).enumerate();
    let (place, longest) =
        pairs.map(|(place, pair)| (place, lost(pair))).max_by_key(|(_, lost)| *lost).unwrap_or((0, 0));
    assert!((5..=14).contains(&longest), "{answers:?}");
    assert!(place + 1 >= 4 && answers.len() - (place + 1) >= 4, "{answers:?}");
    assert!(emulation.losses.link >= 5, "{:?}", emulation.losses);
}

#[test]
fn tcp_gets_what_the_radio_has() {
    if !is_possible() || !has("iperf3", "iperf3") {
        return;
    }
    let chain = Chain::new(2, 30).execute("n0: iperf3 -s -1").execute("n1: iperf3 -c n0 -C reno -t 4");
    let emulation = chain.run();
    assert_eq!(emulation.programs[1].status, Some(0));
    let streams = emulation.traffic.streams();
    let bulk = streams.iter().max_by_key(|stream| stream.whole.delivered_bytes).unwrap();
    assert_eq!((bulk.from, bulk.to), (NodeId(1), NodeId(0)));
    let goodput = bulk.whole.goodput_bps();
    // An exchange of 1448 bytes of payload takes 7.694 ms on average (systems: slot 20 us, 15.5
    // slots, ns-2's header). One acknowledgement per two segments takes more than 1 ms. The goodput
    // is therefore at most 1.42 Mbit/s.
    assert!((0.6e6..1.42e6).contains(&goodput), "{goodput} bit/s");
    assert!(emulation.lateness.p50_s < 20e-3, "{:?}", emulation.lateness);
}

#[test]
fn a_capture_in_the_namespace_agrees() {
    if !is_possible() || !has("tcpdump", "tcpdump") {
        return;
    }
    let chain = Chain::new(3, 30);
    let file = chain.path("n0.pcap");
    let capture = format!("n0: exec tcpdump -i mesh0 --immediate-mode -U -Z root -w {} icmp", file.display());
    // The capture has started when its file has a header.
    let wait = format!("for i in $(seq 100); do [ -s {} ] && break; sleep 0.1; done", file.display());
    let chain = chain.execute(&capture).execute(&format!("n2: {wait}; ping -c 10 -i 0.1 n0; sleep 0.3"));
    let directory = chain.path("pcap");
    let chain = chain.with(|options| options.pcap = Some((directory.clone(), false)));
    let emulation = chain.run();
    // The file has a header of 24 bytes, then records: 16 bytes and the captured packet
    // (pcap-savefile(5)).
    let bytes = fs::read(&file).unwrap();
    let (mut at, mut captured) = (24, Vec::new());
    while let Some(header) = bytes.get(at..at + 16) {
        let length = u32::from_ne_bytes(*header[8..12].first_chunk().unwrap()) as usize;
        // The Ethernet header is left out.
        captured.push(bytes[at + 16 + 14..at + 16 + length].to_vec());
        at += 16 + length;
    }
    // The packets that the mesh delivered and received must be the same, byte for byte and in the
    // same order.
    let ours = packets(&directory.join("n0-ip.pcapng"));
    assert!(captured == ours, "{} packets there, {} here", captured.len(), ours.len());
    // First byte of ICMP, after the IP header: 8 is a request, 0 an answer (RFC 792).
    let requests = captured.iter().filter(|packet| packet[20] == 8).count();
    let streams = emulation.traffic.streams();
    assert!(requests >= 5, "{requests}");
    assert_eq!(streams[0].whole.packets_delivered as usize, requests);
    assert_eq!(streams[1].whole.packets_sent as usize, captured.len() - requests);
    let again = Chain::new(2, 1).with(|options| options.pcap = Some((directory, false))).try_run();
    assert!(matches!(again, Err(Failure::Refused(why)) if why.contains("n0-ip.pcapng")));
}

/// Packets of a capture of one interface.
fn packets(path: &std::path::Path) -> Vec<Vec<u8>> {
    use pcap_file::pcapng::{Block, PcapNgReader};
    let mut reader = PcapNgReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            packets.push(packet.data.into_owned());
        }
    }
    packets
}

#[test]
fn lateness_turns_the_verdict_and_hard_ends_at_once() {
    if !is_possible() {
        return;
    }
    let late = |options: &mut Options| options.inject = Some((2, Duration::from_millis(10)));
    let chain = Chain::new(2, 30).with(late).execute("n1: ping -c 20 -i 0.05 n0");
    let emulation = chain.run();
    assert_eq!((emulation.ended, emulation.verdict), (Ended::LastProgram, Verdict::NotValid));
    assert!(emulation.lateness.later_than_air_time >= 0.5 && emulation.lateness.p99_s >= 10e-3);
    let chain = chain.with(|options| options.hard = true).execute("n1: sleep 25");
    let emulation = chain.run();
    assert_eq!((emulation.ended, emulation.verdict), (Ended::Budget, Verdict::NotValid));
    assert!(emulation.elapsed < Duration::from_secs(20), "{:?}", emulation.elapsed);
}

#[test]
fn the_last_program_decides_and_the_duration_limits() {
    if !is_possible() {
        return;
    }
    let chain = Chain::new(2, 30).execute("n1: sleep 60 & sleep 50").execute("n0: echo hello; exit 7");
    let emulation = chain.run();
    let of = |number: usize| (emulation.programs[number].status, emulation.programs[number].was_ended);
    assert_eq!((of(0), of(1)), ((Some(143), true), (Some(7), false)));
    assert_eq!(chain.output(1), "hello\n");
    assert!(emulation.duration < Duration::from_secs(20), "{:?}", emulation.duration);
    let emulation = Chain::new(2, 1).execute("n1: sleep 60").run();
    assert_eq!((emulation.ended, emulation.programs[0].status), (Ended::Duration, Some(143)));
    assert_eq!(emulation.duration, Duration::from_secs(1));
}

#[test]
fn a_slow_mesh_takes_longer() {
    if !is_possible() {
        return;
    }
    let chain = Chain::new(2, 1).with(|options| options.slowdown = 3).execute("n1: ping -c 3 -i 0.2 n0; sleep 60");
    let emulation = chain.run();
    assert_eq!(emulation.duration, Duration::from_secs(1));
    assert!(emulation.elapsed >= Duration::from_secs(3), "{:?}", emulation.elapsed);
    assert_eq!(answers(&chain.output(0)).len(), 3);
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let refusal = |chain: Chain| match chain.try_run() {
        Err(Failure::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let chain = Chain::new(2, 1).execute("n0: no-such-program -x");
    assert!(refusal(chain).contains("no program `no-such-program`"));
    let kernel = |options: &mut Options| {
        options.setup.mode = Mode::Kernel;
        options.config.mesh.routing = routing();
    };
    assert!(refusal(Chain::new(2, 1).with(kernel)).contains("routing.protocol"));
    if !is_possible() {
        return;
    }
    let sysctl = |options: &mut Options| options.setup.sysctls = vec![("net.ipv4.nothing".to_owned(), "1".to_owned())];
    assert!(refusal(Chain::new(2, 1).with(sysctl)).contains("net.ipv4.nothing = 1"));
    // The observer is created last: it must not exist if anything else is refused.
    let no_observer = |chain: Chain, made: &mut bool| {
        let observer = || {
            *made = true;
            Err("no place for it".to_owned())
        };
        match Emulation::run(chain.options.clone(), observer, &AtomicBool::new(false), &mut |_| {}) {
            Err(Failure::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let mut made = false;
    assert!(no_observer(Chain::new(2, 1).with(sysctl), &mut made).contains("net.ipv4.nothing = 1") && !made);
    assert!(no_observer(Chain::new(2, 1), &mut made) == "no place for it" && made);
}

#[test]
fn two_emulations_do_not_meet() {
    if !is_possible() {
        return;
    }
    let one = || Chain::new(2, 30).execute("n1: ping -c 3 -i 0.2 n0").run();
    let both = std::thread::scope(|scope| [scope.spawn(one), scope.spawn(one)].map(|thread| thread.join().unwrap()));
    for emulation in both {
        assert_eq!(emulation.programs[0].status, Some(0));
        assert_eq!(emulation.traffic.streams().len(), 2);
    }
}

#[test]
fn a_node_whose_device_goes_away_is_told_and_the_others_go_on() {
    if !is_possible() {
        return;
    }
    let chain = Chain::new(3, 30).execute("n2: ip link del mesh0").execute("n1: ping -c 3 -i 0.2 n0");
    let mut told = Vec::new();
    let emulation = Emulation::run(chain.options.clone(), || Ok(Box::new(())), &AtomicBool::new(false), &mut |text| {
        told.push(text.to_owned())
    });
    assert_eq!(emulation.unwrap().programs[1].status, Some(0));
    assert!(told.iter().any(|text| text.starts_with("n2: its device disappeared")), "{told:?}");
}
