//! Tests with ordinary programs at the other end: nc and an iperf3 server. tshark checks every
//! packet.

use crate::tcp_common::{
    OURS, PEER, PORT, World, accept, now, peer, python_receiver, python_sender, receive, secs, send, some, transport,
};
use meshpace_core::Duration;
use meshpace_live::tcp::{Id, Interface, Stack};
use meshpace_testing::has;
use std::io::Write;
use std::net::SocketAddrV4;
use std::process::Command;

/// nc receives `bytes` bytes from us, and sends as many to us. Each direction has a world of its
/// own.
fn nc(world: impl Fn() -> Option<World>, name: &str, bytes: u64) {
    let Some(first) = world() else { return };
    let port = PORT.to_string();
    let script = format!("nc -l -N {PEER} {port} < /dev/null | sha256sum");
    let mut taking = first.peer("sh", &["-c", &script]);
    let sent = first.ours(|| {
        let mut stack = World::device(1500);
        // nc needs a moment until it listens.
        crate::tcp_common::run_for(&mut stack, Duration::from_millis(500));
        let id = stack.connect(peer(), &transport(name)).unwrap();
        send(&mut stack, id, bytes, secs(600))
    });
    let hash = taking.output();
    assert_eq!(hash.split_whitespace().next(), sent.split_whitespace().nth(1));
    let script =
        format!("head -c {bytes} /dev/urandom > $0; sha256sum < $0; nc -N {OURS} {port} < $0 > /dev/null; rm $0");
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let Some(world) = world() else { return };
    let (received, mut giving) = world.ours(|| {
        let mut stack = World::device(1500);
        stack.listen(PORT, &transport(name)).unwrap();
        let giving = world.peer("sh", &["-c", &script, file.to_str().unwrap()]);
        let id = accept(&mut stack, PORT, secs(20));
        (receive(&mut stack, id, secs(600)), giving)
    });
    assert_eq!(received, format!("{bytes} {}", giving.output().split_whitespace().next().unwrap()));
}

#[test]
fn nc_takes_and_gives() {
    if !has("nc", "netcat-openbsd") {
        return;
    }
    nc(World::plain, "newreno", 100_000_000);
}

#[test]
fn nc_takes_and_gives_over_a_bad_link() {
    if !has("nc", "netcat-openbsd") {
        return;
    }
    for name in ["newreno", "tcp-ap"] {
        let start = now();
        nc(|| World::bad(false), name, some());
        eprintln!("{name}: {} bytes each way in {:.1} s", some(), now().since(start).as_secs_f64());
    }
}

/// Reads exactly `count` bytes.
fn exactly<I: Interface>(stack: &mut Stack<I>, id: Id, count: usize) -> Vec<u8> {
    let end = now() + secs(30);
    let mut bytes = vec![0; count];
    let mut have = 0;
    while have < count {
        have += stack.read(id, &mut bytes[have..]);
        assert!(now() < end, "{have} of {count} bytes: {:?}", stack.status(id));
        stack.step(now() + Duration::from_millis(20)).unwrap();
    }
    bytes
}

/// A message of iperf3's control connection: its length in four bytes, then JSON.
fn message(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// Runs a test against an iperf3 server. Its protocol begins with a cookie of 37 bytes on every
/// connection; single bytes on the first connection control the test. The server counts the bytes
/// that we send, or sends them if `reverse` is set.
fn iperf3(world: &World, name: &str, bytes: u64, reverse: bool) {
    const PARAMETERS: u8 = 9;
    const CREATE_STREAMS: u8 = 10;
    const START: u8 = 1;
    const RUNNING: u8 = 2;
    const END: u8 = 4;
    const EXCHANGE: u8 = 13;
    const SHOW: u8 = 14;
    const DONE: u8 = 16;
    let mut server = world.peer("iperf3", &["-s", "-1", "-J", "-p", "5201"]);
    world.ours(|| {
        let mut stack = World::device(1500);
        crate::tcp_common::run_for(&mut stack, Duration::from_millis(700));
        let to = SocketAddrV4::new(PEER, 5201);
        let cookie = b"abcdefghijklmnopqrstuvwxyz0123456789\0";
        let control = stack.connect(to, &transport(name)).unwrap();
        stack.write(control, cookie);
        assert_eq!(exactly(&mut stack, control, 1), [PARAMETERS]);
        let reversed = if reverse { "\"reverse\":true," } else { "" };
        let parameters = format!(
            "{{\"tcp\":true,\"omit\":0,\"num\":{bytes},\"blockcount\":0,\"time\":0,\"parallel\":1,\"len\":65536,{reversed}\
             \"pacing_timer\":1000,\"client_version\":\"3.12\"}}"
        );
        stack.write(control, &message(&parameters));
        assert_eq!(exactly(&mut stack, control, 1), [CREATE_STREAMS]);
        let data = stack.connect(to, &transport(name)).unwrap();
        stack.write(data, cookie);
        assert_eq!(exactly(&mut stack, control, 1), [START]);
        assert_eq!(exactly(&mut stack, control, 1), [RUNNING]);
        let (mut left, mut block) = (bytes, vec![7; 65_536]);
        let end = now() + secs(600);
        while left > 0 || stack.status(data).unwrap().unacknowledged > 0 {
            let most = block.len().min(left as usize);
            left -= if reverse {
                stack.read(data, &mut block[..most]) as u64
            } else {
                stack.write(data, &block[..most]) as u64
            };
            assert!(now() < end, "{left} bytes left");
            stack.step(now() + Duration::from_millis(20)).unwrap();
        }
        // Acknowledged data may still wait in the server's buffer. The server counts the bytes that
        // it has read when it is told of the end.
        while server.leaves_unread(5201) {
            assert!(now() < end, "the server does not read");
            stack.step(now() + Duration::from_millis(20)).unwrap();
        }
        stack.write(control, &[END]);
        // A server that sends may have continued until it was told to stop.
        while reverse && stack.read(data, &mut block) > 0 {}
        assert_eq!(exactly(&mut stack, control, 1), [EXCHANGE]);
        let results = format!(
            "{{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":0,\
             \"streams\":[{{\"id\":1,\"bytes\":{bytes},\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0,\
             \"start_time\":0,\"end_time\":1}}]}}"
        );
        stack.write(control, &message(&results));
        let length = exactly(&mut stack, control, 4);
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        let theirs = String::from_utf8(exactly(&mut stack, control, length as usize)).unwrap();
        let counted = theirs.split("\"bytes\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
        let counted: u64 = counted.unwrap_or_else(|| panic!("{theirs}")).parse().unwrap();
        assert!(if reverse { counted >= bytes } else { counted == bytes }, "{theirs}");
        assert_eq!(exactly(&mut stack, control, 1), [SHOW]);
        stack.write(control, &[DONE]);
        stack.close(data);
        stack.close(control);
        crate::tcp_common::run_for(&mut stack, Duration::from_millis(300));
    });
    let said = server.output();
    if !reverse {
        let received = said.split("\"sum_received\"").nth(1).unwrap_or_else(|| panic!("{said}"));
        assert!(received.split('}').next().unwrap().contains(&bytes.to_string()), "{name}: {received}");
    }
}

#[test]
fn an_iperf3_server_takes_a_hundred_megabytes() {
    if !has("iperf3", "iperf3") {
        return;
    }
    for (name, reverse) in [("newreno", false), ("tcp-ap", false), ("newreno", true)] {
        // Each has a world of its own. A child process of another test that has not called exec yet
        // may hold the last device for a moment.
        let Some(world) = World::plain() else { return };
        iperf3(&world, name, 100_000_000, reverse);
    }
}

#[test]
fn an_iperf3_server_takes_and_gives_over_a_bad_link() {
    if !has("iperf3", "iperf3") {
        return;
    }
    for name in ["newreno", "tcp-ap"] {
        for reverse in [false, true] {
            let Some(world) = World::bad(false) else { return };
            let start = now();
            iperf3(&world, name, some(), reverse);
            let took = now().since(start).as_secs_f64();
            eprintln!("{name}: {} bytes {} in {took:.1} s", some(), if reverse { "back" } else { "there" });
        }
    }
}

/// Writes raw IP packets to a capture file (link type 101). Returns the number of those in which
/// tshark finds a fault, and the number of TCP packets.
fn judged(packets: &[Vec<u8>]) -> (usize, usize) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut out = Vec::new();
    // pcap(5): magic, version 2.4, zone, accuracy, longest packet, link type.
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for (n, packet) in packets.iter().enumerate() {
        for word in [n as u32 / 1000, n as u32 % 1000 * 1000, packet.len() as u32, packet.len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(packet);
    }
    file.write_all(&out).unwrap();
    let count = |filter: &str| {
        let output = Command::new("tshark")
            .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", filter])
            // Random payload belongs to no protocol, so tshark must not dissect it.
            .args(["-d", &format!("tcp.port=={PORT},data"), "-o", "tcp.try_heuristic_first:FALSE"])
            .args(["-T", "fields", "-e", "frame.number", "-r"])
            .arg(file.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    // Status 0 means "bad".
    let bad = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.options.unknown || !tcp";
    (count(bad), count("tcp"))
}

#[test]
fn tshark_finds_nothing_wrong() {
    if !has("tshark", "tshark") {
        return;
    }
    for name in ["newreno", "tcp-ap", "newreno+sack", "newreno+ecn"] {
        let Some(world) = World::bad(true) else { return };
        let mut python = world.python(&python_receiver());
        let sent = world.ours(|| {
            let mut stack = World::device(1500);
            let id = stack.connect(peer(), &transport(name)).unwrap();
            send(&mut stack, id, some(), secs(600))
        });
        assert_eq!(python.output(), sent);
        // Only our packets are checked, not those of the kernel.
        let record = world.link.take_record();
        let mut packets: Vec<Vec<u8>> = record.iter().filter(|p| p.from == 0).map(|p| p.bytes.clone()).collect();
        let count = packets.len();
        assert!(count as u64 > some() / 1448, "{count} packets");
        assert_eq!(judged(&packets), (0, count), "{name}");
        // Check of the check: one wrong byte must be found.
        packets[count / 2][45] ^= 1;
        assert_eq!(judged(&packets), (1, count));
    }
    // Packets that we send as a receiver: acknowledgements, with reports of missing segments.
    for name in ["newreno", "newreno+sack"] {
        let Some(world) = World::bad(true) else { return };
        let (received, mut python) = world.ours(|| {
            let mut stack = World::device(1500);
            stack.listen(PORT, &transport(name)).unwrap();
            let python = world.python(&python_sender(some()));
            let id = accept(&mut stack, PORT, secs(20));
            (receive(&mut stack, id, secs(600)), python)
        });
        assert_eq!(python.output(), received);
        let record = world.link.take_record();
        let packets: Vec<Vec<u8>> = record.iter().filter(|p| p.from == 0).map(|p| p.bytes.clone()).collect();
        assert!(packets.len() > 100, "{} packets", packets.len());
        assert_eq!(judged(&packets), (0, packets.len()), "{name}, receiving");
    }
}
