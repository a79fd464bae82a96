//! One connection in the simulator, over its mesh, and the same one in real time over a link that loses the same packets:
//! the same segments in the same order in each direction.
//!
//! The link's delay is constant and long, so that neither the milliseconds that 802.11 takes nor the lateness of a loaded
//! machine can change a decision; for paced segments the round trip is two and a half intervals, so that acknowledgements
//! come in the middle between two of them.

mod mesh_pair;
mod tcp_common;

use mesh_pair::{DELAY, converse};
use meshpace_core::{Rate, Time};
use meshpace_live::tcp::packet::{self, Packet};
use meshpace_live::tcp::{Device, Limits, Stack};
use meshpace_live::testbed::tun_link::{ADDRESSES, DEVICE};
use meshpace_live::testbed::{Impairment, Loss};
use meshpace_transport::tcp::wire::Check;
use meshpace_transport::tcp::{self, Flags};
use meshpace_transport::{Config, Endpoint, PathInfo, Role, Segment};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use tcp_common::{HOST, OURS, PORT, World, accept, ip, run_for, secs, transport};

/// With 7 hops at 2 Mbit/s and an RTT of 100 ms, AP05's interval is 2 (100/7 + 5.84 - 0.16) = 40 ms. A data frame and its
/// ACK take 802.11 some 12 ms more.
const PATH: PathInfo = PathInfo { hops: 7, rate: Rate::from_mbps(2), received_power_dbm: None };
const THERE: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

/// A segment as both worlds see it: offset and payload of data, or what an ACK acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    syn: bool,
    seq: u64,
    payload: u16,
    ack: u64,
}

/// Packets lost by their count from 0 in each direction.
struct Losses([BTreeSet<u64>; 2]);

/// In the simulator: its endpoints at two nodes of its mesh.
fn simulated(config: &tcp::Config, bytes: u64, losses: &Losses) -> [Vec<Line>; 2] {
    let config = Config::Tcp(config.clone());
    let mut ends = [Endpoint::new(&config, Role::Sender), Endpoint::new(&config, Role::Receiver)];
    ends.iter_mut().for_each(|end| end.on_path(PATH));
    ends[0].open(Time::ZERO);
    ends[0].write(Time::ZERO, bytes);
    let trace = converse(&mut ends, &losses.0, PATH.hops, |_, _| Time::NEVER);
    assert_eq!((ends[0].stats().acked_bytes, ends[1].delivered()), (bytes, bytes), "not done after five minutes");
    let mut lines = [Vec::new(), Vec::new()];
    for (side, _, segment) in trace {
        let Segment::Tcp(tcp) = segment else { panic!("not TCP") };
        let syn = tcp.flags.has(Flags::SYN);
        lines[side].push(Line { syn, seq: tcp.seq, payload: tcp.payload, ack: tcp.ack });
    }
    lines
}

/// In real time: two of our stacks, one on each side of the link.
fn real(config: &tcp::Config, bytes: u64, losses: &Losses) -> Option<[Vec<Line>; 2]> {
    let losing = |side: usize| {
        let loss = Loss::Indices(losses.0[side].clone());
        Impairment { delay: DELAY, loss, queue: 10_000, ..Impairment::default() }
    };
    let world = World::new(losing(0), losing(1), 1500, true)?;
    let link = &world.link;
    link.sides[1].run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
    let via = ADDRESSES[1].to_string();
    link.sides[0].run(|| ip(&["route", "add", "10.79.0.0/24", "via", &via, "dev", DEVICE]));
    let server_config = config.clone();
    let (ready, waiting) = std::sync::mpsc::channel();
    let server = link.sides[1].spawn(move || {
        let device = Device::create("ours", Ipv4Addr::new(10, 79, 0, 1), THERE, 1500).unwrap();
        let mut stack = Stack::new(device, Limits::default()).unwrap();
        stack.set_path(PATH, false);
        stack.listen(PORT, &server_config).unwrap();
        ready.send(()).unwrap();
        let id = accept(&mut stack, PORT, secs(60));
        let (mut taken, mut block) = (0, vec![0; 1 << 16]);
        while taken < bytes {
            stack.step(tcp_common::now() + secs(1)).unwrap();
            taken += stack.read(id, &mut block) as u64;
        }
        // The last acknowledgements may be lost and asked for again.
        run_for(&mut stack, secs(2));
    });
    waiting.recv().unwrap();
    world.ours(|| {
        let mut stack = Stack::new(Device::create("ours", HOST, OURS, 1500).unwrap(), Limits::default()).unwrap();
        stack.set_path(PATH, false);
        let id = stack.connect(SocketAddrV4::new(THERE, PORT), config).unwrap();
        assert_eq!(stack.write(id, &vec![7; bytes as usize]) as u64, bytes);
        while stack.connection(id).unwrap().acknowledged() < bytes {
            stack.step(tcp_common::now() + secs(1)).unwrap();
        }
        run_for(&mut stack, secs(1));
    });
    server.join().unwrap();
    let mut lines = [Vec::new(), Vec::new()];
    let mut first: [Option<u32>; 2] = [None; 2];
    for passed in link.take_record() {
        let Ok(Packet::Tcp { header, payload, .. }) = packet::decode(&passed.bytes, Check::Full) else {
            panic!("not TCP: {passed:?}")
        };
        let isn = *first[passed.from].get_or_insert(header.seq);
        let acked = first[1 - passed.from].unwrap_or(header.ack.wrapping_sub(1));
        let syn = header.flags.has(Flags::SYN);
        lines[passed.from].push(Line {
            syn,
            seq: if syn { 0 } else { u64::from(header.seq.wrapping_sub(isn).wrapping_sub(1)) },
            payload: payload.len() as u16,
            ack: if header.flags.has(Flags::ACK) {
                u64::from(header.ack.wrapping_sub(acked).wrapping_sub(1))
            } else {
                0
            },
        });
    }
    Some(lines)
}

fn compare(name: &str, segments: u64, losses: Losses) {
    // What fits into 1500 bytes with time stamps.
    let mut config = tcp::Config { segment: 1448, ..transport(name) };
    // RFC 6298, section 2.4. The 200 ms of ns-2 would leave a busy machine 100 ms.
    config.rto.min = secs(1);
    let bytes = segments * 1448;
    let expected = simulated(&config, bytes, &losses);
    let Some(seen) = real(&config, bytes, &losses) else { return };
    let sent: u64 = expected[0].iter().map(|line| u64::from(line.payload)).sum();
    assert!(sent > bytes, "nothing was sent again: the losses tested nothing");
    for side in 0..2 {
        for (index, (seen, expected)) in seen[side].iter().zip(&expected[side]).enumerate() {
            assert_eq!(seen, expected, "{name}: packet {index} of side {side}");
        }
        assert_eq!(seen[side].len(), expected[side].len(), "{name}: packets of side {side}");
    }
    eprintln!("{name}: {} and {} packets in the same order", seen[0].len(), seen[1].len());
}

#[test]
fn newreno_says_what_it_says_in_the_simulator() {
    // One lost, two in a window, a retransmission (the SYN is packet 0), acknowledgements.
    compare("newreno", 200, Losses([[9, 30, 33, 90, 91, 92, 130].into(), [5, 20, 21, 60].into()]));
}

#[test]
fn newreno_whose_syn_is_lost() {
    compare("newreno", 40, Losses([[0, 6].into(), [].into()]));
}

#[test]
fn tcp_ap_says_what_it_says_in_the_simulator() {
    compare("tcp-ap", 120, Losses([[9, 30, 33, 60, 61].into(), [5, 20, 21].into()]));
}
