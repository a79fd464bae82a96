//! Tests the stack with packets that no honest peer sends, over an interface in memory.

use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_live::Clock;
use meshpace_live::poll::{Poller, Token, Waker};
use meshpace_live::tcp::packet::{self, Packet};
use meshpace_live::tcp::{Id, Interface, Limits, Stack};
use meshpace_transport::tcp::End;
use meshpace_transport::tcp::wire::{Addresses, Check, Header, Options, offer};
use meshpace_transport::tcp::{Config, Flags};
use meshpace_transport::{PathInfo, train};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 80;

#[derive(Default)]
struct Queues {
    to_us: VecDeque<Vec<u8>>,
    from_us: VecDeque<Vec<u8>>,
    /// The time, if it differs from the machine's.
    now: Option<Time>,
}

/// Interface that keeps packets in memory.
#[derive(Clone)]
struct Memory {
    queues: Arc<Mutex<Queues>>,
    mtu: u16,
}

impl Interface for Memory {
    fn address(&self) -> Ipv4Addr {
        OURS
    }
    fn mtu(&self) -> u16 {
        self.mtu
    }
    fn now(&self) -> Time {
        self.queues.lock().unwrap().now.unwrap_or_else(|| Clock.now())
    }
    fn watch(&self, _: &Poller, _: Token) -> io::Result<()> {
        Ok(())
    }
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let packet = self.queues.lock().unwrap().to_us.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
        into[..packet.len()].copy_from_slice(&packet);
        Ok(packet.len())
    }
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.queues.lock().unwrap().from_us.push_back(packet.to_vec());
        Ok(())
    }
}

struct World {
    stack: Stack<Memory>,
    queues: Arc<Mutex<Queues>>,
    _waker: Waker,
}

impl World {
    fn new(limits: Limits) -> World {
        let queues = Arc::new(Mutex::new(Queues::default()));
        let stack = Stack::new(Memory { queues: Arc::clone(&queues), mtu: 1500 }, limits).unwrap();
        World { _waker: stack.waker(), stack, queues }
    }

    fn listening() -> World {
        let mut world = World::new(Limits::default());
        world.stack.listen(PORT, &Config::default()).unwrap();
        world
    }

    /// Passes a packet to the stack.
    fn tell(&mut self, packet: &[u8]) {
        self.queues.lock().unwrap().to_us.push_back(packet.to_vec());
        self.stack.take_packets().unwrap();
    }

    fn tell_segment(&mut self, header: &Header, payload: &[u8]) {
        let packet = built(header, payload);
        self.tell(&packet);
    }

    /// Segments that the stack has sent: header and payload length.
    fn said(&mut self) -> Vec<(Header, usize)> {
        let out = std::mem::take(&mut self.queues.lock().unwrap().from_us);
        let understand = |bytes: &Vec<u8>| match packet::decode(bytes, Check::Full) {
            Ok(Packet::Tcp { header, payload, .. }) => (header, payload.len()),
            other => panic!("{other:?}"),
        };
        out.iter().map(understand).collect()
    }

    /// Advances a separate clock to `ms` milliseconds since its start. Nothing arrives meanwhile.
    fn wait_until(&mut self, ms: u64) {
        self.queues.lock().unwrap().now = Some(Time(ms * 1_000_000));
        self.stack.run_timers();
    }

    /// Number of segments with payload that the stack has sent.
    fn data(&mut self) -> usize {
        self.said().iter().filter(|(_, length)| *length > 0).count()
    }

    /// Offers quiet trains to a peer. Returns the connection and the SYN.
    fn offering(&mut self) -> (Id, Header) {
        let id = self.stack.connect(SocketAddrV4::new(PEER, PORT), &train::Config::default()).unwrap();
        let said = self.said();
        let [(syn, 0)] = said[..] else { panic!("{said:?}") };
        (id, syn)
    }

    /// Answers that SYN as a peer that does not support trains.
    fn answer_as_tcp(&mut self, syn: &Header) {
        let (window, ack) = (0xffff, syn.seq.wrapping_add(1));
        let options = Options { timestamps: None, ..offer(1460, 65_535) };
        let flags = Flags::SYN.with(Flags::ACK);
        let answer = Header { source: PORT, destination: syn.source, seq: 5000, ack, flags, window, options };
        self.tell_segment(&answer, &[]);
    }

    /// Opens a connection from `port` by hand. Returns our initial sequence number.
    fn opened(&mut self, port: u16) -> (Id, u32) {
        self.tell_segment(&syn(port, 1000), &[]);
        let said = self.said();
        let [(syn_ack, 0)] = said[..] else { panic!("{said:?}") };
        assert_eq!((syn_ack.flags, syn_ack.ack), (Flags::SYN.with(Flags::ACK), 1001));
        self.tell_segment(&segment(port, 1001, syn_ack.seq.wrapping_add(1), Flags::ACK), &[]);
        let (id, peer) = self.stack.accept(PORT).expect("it is open");
        assert_eq!(peer, SocketAddrV4::new(PEER, port));
        (id, syn_ack.seq)
    }
}

fn built(header: &Header, payload: &[u8]) -> Vec<u8> {
    let addresses = Addresses { source: PEER.octets(), destination: OURS.octets() };
    packet::encode(&mut Vec::new(), header, addresses, (payload, &[]), 1, false).to_vec()
}

fn segment(port: u16, seq: u32, ack: u32, flags: Flags) -> Header {
    Header { source: port, destination: PORT, seq, ack, flags, window: 0xffff, options: Options::default() }
}

fn syn(port: u16, seq: u32) -> Header {
    Header { options: Options { ..offer(1460, 65_535) }, ..segment(port, seq, 0, Flags::SYN) }
}

#[test]
fn bytes_that_mean_nothing_change_nothing() {
    let mut world = World::listening();
    let (id, isn) = world.opened(4000);
    let mut rng = Rng::stream(1, Purpose::Test, 0);
    let good = built(&segment(4000, 1001, isn.wrapping_add(1), Flags::ACK), b"hello");
    for round in 0..20_000 {
        let mut packet = match round % 3 {
            // Random bytes.
            0 => (0..rng.below(120)).map(|_| rng.next_u64() as u8).collect(),
            // A truncated segment.
            1 => good[..rng.below(good.len() as u64) as usize].to_vec(),
            _ => good.clone(),
        };
        if round % 3 == 2 {
            // One wrong bit.
            let bit = rng.below(packet.len() as u64 * 8) as usize;
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        world.tell(&packet);
    }
    assert_eq!(world.stack.status(id).unwrap().readable, 0);
    assert!(world.said().is_empty(), "noise is not answered");
    let trouble = world.stack.trouble();
    assert!(trouble.checksums > 5000 && trouble.malformed > 5000, "{trouble:?}");
    // The correct segment is still accepted, once, however often it is repeated.
    for _ in 0..100 {
        world.tell(&good);
    }
    assert_eq!(world.stack.status(id).unwrap().readable, 5);
    assert_eq!(world.said().len(), 100, "each is acknowledged");
}

#[test]
fn forged_segments_do_not_get_into_the_stream() {
    let mut world = World::listening();
    let (id, isn) = world.opened(4000);
    let own = isn.wrapping_add(1);
    // A correct segment beyond a gap.
    world.tell_segment(&segment(4000, 1006, own, Flags::ACK), b"world");
    // The same range with an acknowledgement of data that was never sent. It is not accepted.
    world.tell_segment(&segment(4000, 1006, own.wrapping_add(5000), Flags::ACK), b"WORLD");
    // Segments beyond the window and before it, a reset with a number that is not the next, and a
    // SYN.
    world.tell_segment(&segment(4000, 1001 + 1_000_000, own, Flags::ACK), b"XXXXX");
    world.tell_segment(&segment(4000, 990, own, Flags::ACK), b"XXXXX");
    world.tell_segment(&segment(4000, 1002, 0, Flags::RST), &[]);
    world.tell_segment(&syn(4000, 5_000_000), &[]);
    world.tell_segment(&segment(4000, 1001, own, Flags::ACK), b"hello");
    let mut into = [0; 20];
    assert_eq!(world.stack.read(id, &mut into), 10);
    assert_eq!(&into[..10], b"helloworld");
    assert_eq!(world.stack.status(id).unwrap().end, None);
    // A reset with the next number ends the connection.
    world.tell_segment(&segment(4000, 1011, 0, Flags::RST), &[]);
    assert_eq!(world.stack.status(id).unwrap().end, Some(End::Reset));
}

#[test]
fn a_flood_of_syns_is_bounded_and_an_honest_client_gets_in() {
    let mut world = World::listening();
    for n in 0..100_000u32 {
        let from = Addresses { source: [11, (n >> 16) as u8, (n >> 8) as u8, n as u8], destination: OURS.octets() };
        let packet = packet::encode(&mut Vec::new(), &syn(5000, n), from, (&[], &[]), 1, false).to_vec();
        world.tell(&packet);
        world.queues.lock().unwrap().from_us.clear();
        assert!(world.stack.connections() <= Limits::default().opening);
    }
    assert_eq!(world.stack.trouble().pushed_out, 100_000 - Limits::default().opening as u64);
    world.opened(4000);
}

#[test]
fn connections_that_nobody_accepts_are_bounded() {
    let mut world = World::new(Limits { backlog: 3, ..Limits::default() });
    world.stack.listen(PORT, &Config::default()).unwrap();
    let mut resets = 0;
    for port in 4000..4010 {
        world.tell_segment(&syn(port, 1), &[]);
        let said = world.said();
        let ack = said[0].0.seq.wrapping_add(1);
        world.tell_segment(&segment(port, 2, ack, Flags::ACK), &[]);
        resets += world.said().iter().filter(|(header, _)| header.flags.has(Flags::RST)).count();
    }
    assert_eq!((resets, world.stack.connections()), (7, 3));
    assert_eq!(std::iter::from_fn(|| world.stack.accept(PORT)).count(), 3);
}

#[test]
fn segments_for_nobody_are_reset_as_rfc_9293_says() {
    let mut world = World::listening();
    // Section 3.10.7.1: if the segment has an ACK, the reset has its number. If not, the reset
    // acknowledges the whole segment.
    world.tell_segment(&Header { destination: 81, ..segment(4000, 7, 99, Flags::ACK) }, &[]);
    world.tell_segment(&Header { destination: 81, ..segment(4000, 7, 0, Flags::SYN) }, b"ab");
    world.tell_segment(&segment(4000, 7, 0, Flags::RST), &[]);
    let said: Vec<_> = world.said().iter().map(|(h, _)| (h.flags, h.seq, h.ack)).collect();
    assert_eq!(said, [(Flags::RST, 99, 0), (Flags::RST.with(Flags::ACK), 0, 10)]);
    // A SYN-ACK that answers no SYN.
    world.tell_segment(&segment(4000, 7, 8, Flags::SYN.with(Flags::ACK)), &[]);
    assert_eq!(world.said()[0].0.seq, 8);
}

#[test]
fn icmp_errors_end_what_is_being_opened_and_nothing_else() {
    let mut world = World::new(Limits::default());
    let id = world.stack.connect(SocketAddrV4::new(PEER, 99), &Config::default()).unwrap();
    let syn = world.queues.lock().unwrap().from_us.pop_front().unwrap();
    let icmp = |quoted: &[u8], kind: u8, code: u8| {
        // RFC 792: type, code, checksum, four unused bytes, the IP header and eight bytes.
        let mut message = vec![kind, code, 0, 0, 0, 0, 0, 0];
        message.extend_from_slice(&quoted[..28]);
        let fold = |bytes: &[u8]| {
            let mut sum: u32 = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            (!(sum as u16)).to_be_bytes()
        };
        let sum = fold(&message);
        message[2..4].copy_from_slice(&sum);
        let mut packet = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1];
        let sum = fold(&packet);
        packet[10..12].copy_from_slice(&sum);
        [packet, message].concat()
    };
    // A message about a sequence number that was never sent is forged (RFC 5927, section 4.1).
    let mut other = syn.clone();
    other[24..28].copy_from_slice(&[1, 2, 3, 4]);
    world.tell(&icmp(&other, 3, 1));
    assert_eq!(world.stack.status(id).unwrap().end, None);
    world.tell(&icmp(&syn, 3, 1));
    let status = world.stack.status(id).unwrap();
    assert_eq!(status.end, Some(End::Aborted));
    assert_eq!(status.unreachable.unwrap().to_string(), "host unreachable");
    // An established connection records the error and continues (RFC 1122, section 4.2.3.9).
    world.stack.listen(PORT, &Config::default()).unwrap();
    let (id, _) = world.opened(4000);
    world.stack.write(id, b"hello");
    let data = world.queues.lock().unwrap().from_us.pop_back().unwrap();
    world.tell(&icmp(&data, 3, 1));
    let status = world.stack.status(id).unwrap();
    assert!(status.end.is_none() && status.unreachable.is_some());
}

#[test]
fn an_mtu_too_small_and_addresses_that_cannot_be_are_refused() {
    let queues = Arc::new(Mutex::new(Queues::default()));
    let mut stack = Stack::new(Memory { queues, mtu: 60 }, Limits::default()).unwrap();
    let error = stack.connect(SocketAddrV4::new(PEER, 1), &Config::default()).unwrap_err();
    assert!(error.to_string().contains("MTU of 60"), "{error}");
    let mut world = World::listening();
    for address in ["0.0.0.0:5", "10.0.0.2:0", "255.255.255.255:5", "224.0.0.1:5"] {
        let error = world.stack.connect(address.parse().unwrap(), &Config::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{address}");
    }
    assert_eq!(world.stack.listen(PORT, &Config::default()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn nobody_answers_and_the_one_who_waits_may_leave() {
    let mut world = World::new(Limits::default());
    let id = world.stack.connect(SocketAddrV4::new(PEER, 99), &Config::default()).unwrap();
    let end = Clock.now() + Duration::from_millis(50);
    while Clock.now() < end {
        world.stack.step(end).unwrap();
    }
    assert!(!world.stack.status(id).unwrap().established);
    world.stack.release(id);
    world.stack.abort(id);
    assert_eq!(world.stack.connections(), 0, "nothing is kept");
}

#[test]
fn what_was_given_up_does_not_come_back_with_a_late_answer() {
    let mut world = World::new(Limits::default());
    let (id, syn) = world.offering();
    world.stack.abort(id);
    // The answer of a peer without trains. A connection that had not been aborted would continue as
    // plain TCP.
    world.answer_as_tcp(&syn);
    let status = world.stack.status(id).unwrap();
    assert_eq!((status.established, status.end), (false, Some(End::Aborted)));
    let said = world.said();
    assert!(said.iter().all(|(header, length)| *length == 0 && !header.flags.has(Flags::SYN)), "{said:?}");
}

#[test]
fn without_trains_the_first_round_trip_is_that_of_the_syn() {
    let mut world = World::new(Limits::default());
    world.wait_until(0);
    let (id, syn) = world.offering();
    world.wait_until(800);
    world.answer_as_tcp(&syn);
    assert!(world.stack.status(id).unwrap().established);
    world.stack.write(id, b"hello");
    assert_eq!(world.data(), 1);
    // RFC 6298, section 2.2: three round-trip times, 2.4 s. This protocol waits at most 2 s.
    world.wait_until(800 + 1900);
    assert_eq!(world.data(), 0, "too early");
    world.wait_until(800 + 2100);
    assert_eq!(world.data(), 1);
}

#[test]
fn without_trains_a_syn_that_was_lost_is_not_forgotten() {
    let mut world = World::new(Limits::default());
    world.wait_until(0);
    let (id, syn) = world.offering();
    // RFC 6298, section 2.1: the SYN is repeated after 1 s.
    world.wait_until(1000);
    assert_eq!(world.said().len(), 1);
    world.wait_until(1020);
    world.answer_as_tcp(&syn);
    assert_eq!(world.stack.connection(id).unwrap().stats().timeouts, 1);
    world.stack.write(id, b"hello");
    assert_eq!(world.data(), 1);
    // RFC 6298, section 5.7: 3 s for the first data. This protocol waits at most 2 s.
    world.wait_until(1020 + 1900);
    assert_eq!(world.data(), 0, "too early");
    world.wait_until(1020 + 3100);
    assert_eq!(world.data(), 1);
}

/// A packet that has travelled `hops` hops.
fn after_hops(hops: u8, mut packet: Vec<u8>) -> Vec<u8> {
    packet[8] = 65 - hops;
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn only_what_the_peer_sends_tells_how_far_it_is() {
    let mut world = World::listening();
    world.stack.set_path(PathInfo { hops: 1, rate: Rate::from_mbps(11), received_power_dbm: None }, true);
    let (id, isn) = world.opened(4000);
    let own = isn.wrapping_add(1);
    assert_eq!(world.stack.hops(id), 1);
    // An attacker who knows addresses and ports, but not the numbers: all numbers are random, or
    // only one of two.
    let mut rng = Rng::stream(2, Purpose::Test, 0);
    let mut number = || rng.next_u64() as u32 | 0x0100_0000;
    for _ in 0..300 {
        let (some, other) = (number(), number());
        for (seq, ack) in [(some, other), (1001, own.wrapping_add(some)), (1001_u32.wrapping_add(some), own)] {
            for payload in [&b""[..], b"forged"] {
                let forged = built(&segment(4000, seq, ack, Flags::ACK), payload);
                world.tell(&after_hops(5, forged));
                assert_eq!(world.stack.hops(id), 1, "{seq} {ack}");
            }
        }
    }
    let honest = built(&segment(4000, 1001, own, Flags::ACK), b"hello");
    world.tell(&after_hops(3, honest));
    assert_eq!(world.stack.hops(id), 3);
}
