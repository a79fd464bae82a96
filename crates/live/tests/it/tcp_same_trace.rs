//! Compares a connection in the simulator, over its mesh, with the same connection in packets
//! between two of our stacks, over a wire that loses the same packets. The segments and their order
//! in each direction must be the same.
//!
//! Both run in virtual time. The wire's delay is constant and long, so the milliseconds that 802.11
//! takes change no decision. For paced segments the round-trip time is two and a half intervals, so
//! that an acknowledgement arrives in the middle between two segments.

use crate::mesh_pair::{END, converse};
use crate::virtual_wire::{ADDRESSES, PORT, World};
use meshpace_core::{Duration, Rate, Time};
use meshpace_live::tcp::packet::{self, Packet};
use meshpace_live::testbed::{Impairment, Loss};
use meshpace_transport::tcp::wire::Check;
use meshpace_transport::tcp::{self, Flags};
use meshpace_transport::{Config, Endpoint, PathInfo, Role, Segment, names};
use std::collections::BTreeSet;
use std::net::SocketAddrV4;

/// With 7 hops at 2 Mbit/s and an RTT of 100 ms, AP05's interval is 2 (100/7 + 5.84 - 0.16) = 40
/// ms. A data frame and its ACK take about 12 ms more in 802.11.
const PATH: PathInfo = PathInfo { hops: 7, rate: Rate::from_mbps(2), received_power_dbm: None };

/// Delay of the wire in each direction.
const DELAY: Duration = Duration::from_millis(50);

/// A segment in the form of both worlds: offset and payload of data, or the acknowledged offset of
/// an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    syn: bool,
    seq: u64,
    payload: u16,
    ack: u64,
}

/// Packets that are lost, by their number from 0 in each direction.
struct Losses([BTreeSet<u64>; 2]);

/// The conversation in the simulator, with endpoints at two nodes of its mesh.
fn simulated(config: &tcp::Config, bytes: u64, losses: &Losses) -> [Vec<Line>; 2] {
    // A stack stays in slow start until the first loss.
    let config = Config::Tcp(tcp::Config { initial_ssthresh: None, ..config.clone() });
    let mut ends = [Endpoint::new(&config, Role::Sender), Endpoint::new(&config, Role::Receiver)];
    ends.iter_mut().for_each(|end| end.on_path(PATH));
    ends[0].open(Time::ZERO);
    ends[0].write(Time::ZERO, bytes);
    let trace = converse(&mut ends, &losses.0, PATH.hops, || DELAY, |_, _| Time::NEVER);
    assert_eq!((ends[0].stats().acked_bytes, ends[1].delivered()), (bytes, bytes), "not done after five minutes");
    let mut lines = [Vec::new(), Vec::new()];
    for (side, _, segment) in trace {
        let Segment::Tcp(tcp) = segment else { panic!("not TCP") };
        let syn = tcp.flags.has(Flags::SYN);
        lines[side].push(Line { syn, seq: tcp.seq, payload: tcp.payload, ack: tcp.ack });
    }
    lines
}

/// The conversation in packets, between two of our stacks at both ends of a wire.
fn on_stacks(config: &tcp::Config, bytes: u64, losses: &Losses) -> [Vec<Line>; 2] {
    let way = |side: usize| {
        let loss = Loss::Indices(losses.0[side].clone());
        Impairment { delay: DELAY, loss, ..Impairment::default() }
    };
    let mut world = World::new([way(0), way(1)], PATH, true);
    let ends = &mut world.ends;
    ends[1].listen(PORT, config).unwrap();
    let client = ends[0].connect(SocketAddrV4::new(ADDRESSES[1], PORT), config).unwrap();
    assert_eq!(ends[0].write(client, &vec![7; bytes as usize]) as u64, bytes);
    let (mut server, mut taken, mut block) = (None, 0, vec![0; 1 << 16]);
    loop {
        world.work();
        server = server.or_else(|| world.ends[1].accept(PORT));
        if let Some((id, _)) = server {
            taken += world.ends[1].read(id, &mut block) as u64;
        }
        if !world.advance(END.since(Time::ZERO)) {
            break;
        }
    }
    assert_eq!((world.ends[0].connection(client).unwrap().acknowledged(), taken), (bytes, bytes));
    let mut lines = [Vec::new(), Vec::new()];
    let mut first: [Option<u32>; 2] = [None; 2];
    for (from, packet) in world.wire.borrow().record.iter().flatten() {
        let Ok(Packet::Tcp { header, payload, .. }) = packet::decode(packet, Check::Full) else {
            panic!("not TCP: {packet:?}")
        };
        let isn = *first[*from].get_or_insert(header.seq);
        let acked = first[1 - from].unwrap_or(header.ack.wrapping_sub(1));
        let syn = header.flags.has(Flags::SYN);
        let is_ack = header.flags.has(Flags::ACK);
        lines[*from].push(Line {
            syn,
            seq: if syn { 0 } else { u64::from(header.seq.wrapping_sub(isn).wrapping_sub(1)) },
            payload: payload.len() as u16,
            ack: if is_ack { u64::from(header.ack.wrapping_sub(acked).wrapping_sub(1)) } else { 0 },
        });
    }
    lines
}

fn compare(name: &str, segments: u64, losses: Losses) {
    // A segment that fits into 1500 bytes with time stamps.
    let Some(Config::Tcp(config)) = names::lookup(name) else { panic!("{name} is no TCP") };
    let mut config = tcp::Config { segment: 1448, ..config };
    // RFC 6298, section 2.4.
    config.rto.min = Duration::from_secs(1);
    let bytes = segments * 1448;
    let expected = simulated(&config, bytes, &losses);
    let seen = on_stacks(&config, bytes, &losses);
    let sent: u64 = expected[0].iter().map(|line| u64::from(line.payload)).sum();
    assert!(sent > bytes, "nothing was sent again: the losses tested nothing");
    for side in 0..2 {
        for (index, (seen, expected)) in seen[side].iter().zip(&expected[side]).enumerate() {
            assert_eq!(seen, expected, "{name}: packet {index} of side {side}");
        }
        assert_eq!(seen[side].len(), expected[side].len(), "{name}: packets of side {side}");
    }
}

#[test]
fn newreno_says_what_it_says_in_the_simulator() {
    // Losses: one segment, two in a window, a retransmission (the SYN is packet 0), and
    // acknowledgements.
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
