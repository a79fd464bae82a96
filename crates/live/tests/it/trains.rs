//! Tests quiet trains in TCP packets between two of our stacks, in virtual time: transfers over a
//! wire that loses, duplicates and reorders packets, peers that do not support trains, and forged
//! packets.

use crate::virtual_wire::{ADDRESSES, PORT, World};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_live::tcp::packet::{self, Packet};
use meshpace_live::tcp::{Id, Protocol};
use meshpace_live::testbed::{Impairment, Loss};
use meshpace_transport::tcp::wire::{Addresses, Check};
use meshpace_transport::tcp::{End, Flags};
use meshpace_transport::train::wire::Content;
use meshpace_transport::{Config, PathInfo, names};
use sha2::{Digest, Sha256};
use std::net::SocketAddrV4;

const PATH: PathInfo = PathInfo { hops: 1, rate: Rate::from_mbps(54), received_power_dbm: None };

/// A transfer: both ends, with the bytes that each has sent and received.
struct Transfer {
    world: World,
    client: Id,
    server: Option<Id>,
    bytes: usize,
    /// For each side: bytes written, and hash of the bytes received.
    written: [usize; 2],
    heard: [Sha256; 2],
    taken: [usize; 2],
}

fn protocol(name: &str, segment: u32) -> Protocol {
    match names::lookup(name) {
        Some(Config::Tcp(mut config)) => {
            config.segment = segment;
            Protocol::from(&config)
        }
        Some(Config::Train(mut config)) => {
            config.segment = segment;
            Protocol::from(&config)
        }
        _ => panic!("{name} does not run in TCP packets"),
    }
}

/// The byte at `place` of the data that `side` sends.
fn byte(side: usize, place: usize) -> u8 {
    let mixed = (place as u64 ^ (side as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

fn hash(side: usize, bytes: usize) -> Vec<u8> {
    let all: Vec<u8> = (0..bytes).map(|place| byte(side, place)).collect();
    Sha256::digest(&all).to_vec()
}

impl Transfer {
    /// A transfer of `bytes` in both directions, between an end that uses `ours` and one that
    /// accepts `theirs`.
    fn new(ours: &Protocol, theirs: &Protocol, ways: [Impairment; 2], bytes: usize) -> Transfer {
        let mut world = World::new(ways, PATH, false);
        world.ends[1].listen(PORT, theirs).unwrap();
        let client = world.ends[0].connect(SocketAddrV4::new(ADDRESSES[1], PORT), ours).unwrap();
        let heard = [Sha256::new(), Sha256::new()];
        Transfer { world, client, server: None, bytes, written: [0; 2], heard, taken: [0; 2] }
    }

    fn id(&self, side: usize) -> Option<Id> {
        if side == 0 { Some(self.client) } else { self.server }
    }

    /// The applications write and read as much as possible, and close at the end.
    fn serve(&mut self, reads: bool) {
        self.server = self.server.or_else(|| Some(self.world.ends[1].accept(PORT)?.0));
        for side in 0..2 {
            let Some(id) = self.id(side) else { continue };
            let stack = &mut self.world.ends[side];
            while self.written[side] < self.bytes {
                let start = self.written[side];
                let end = self.bytes.min(start + (1 << 14));
                let piece: Vec<u8> = (start..end).map(|place| byte(side, place)).collect();
                let taken = stack.write(id, &piece);
                self.written[side] += taken;
                if taken < piece.len() {
                    break;
                }
            }
            if self.written[side] == self.bytes {
                stack.close(id);
            }
            if reads {
                self.read(side, id);
            }
        }
    }

    /// Reads the data that has arrived at `side`.
    fn read(&mut self, side: usize, id: Id) {
        let mut block = [0; 1 << 14];
        loop {
            let taken = self.world.ends[side].read(id, &mut block);
            if taken == 0 {
                return;
            }
            self.heard[side].update(&block[..taken]);
            self.taken[side] += taken;
        }
    }

    /// Runs until there are no more events, or until `until`.
    fn run(&mut self, until: Duration) {
        loop {
            self.world.work();
            self.serve(true);
            if !self.world.advance(until) {
                return;
            }
        }
    }

    fn speaks_trains(&self) -> [bool; 2] {
        [0, 1].map(|side| {
            self.id(side).and_then(|id| self.world.ends[side].connection(id)).is_some_and(|c| c.has_trains())
        })
    }

    fn check(&self, what: &str) {
        for side in 0..2 {
            assert_eq!(self.taken[side], self.bytes, "{what}: bytes at side {side}");
            assert_eq!(self.heard[side].clone().finalize().to_vec(), hash(1 - side, self.bytes), "{what}: side {side}");
            if let Some(status) = self.world.ends[side].status(self.id(side).unwrap()) {
                assert_eq!(status.end, Some(End::Closed), "{what}: side {side}");
            }
        }
    }
}

fn lossy(seed: u64) -> Impairment {
    Impairment {
        delay: Duration::from_millis(4),
        loss: Loss::Random(0.02),
        duplicate: 0.01,
        reorder: 0.02,
        reorder_delay: Duration::from_millis(7),
        rate: Some(Rate::from_mbps(8)),
        seed,
        ..Impairment::default()
    }
}

/// Transfers `MESHPACE_BAD_MB` megabytes; ten by default.
#[test]
fn ten_megabytes_both_ways_over_a_lossy_wire() {
    let megabytes = std::env::var("MESHPACE_BAD_MB").map_or(10, |text| text.parse::<usize>().expect("a number"));
    let train = protocol("quiet-train", 1460);
    let mut transfer = Transfer::new(&train, &train, [lossy(1), lossy(2)], megabytes * 1_000_000);
    transfer.run(Duration::from_secs(36_000));
    transfer.check("trains");
    assert_eq!(transfer.speaks_trains(), [true; 2]);
    let stats = transfer.world.ends[0].connection(transfer.client).unwrap().stats();
    assert!(stats.retransmissions > 100, "{stats:?}");
    // There is an ACK for each train, not for each segment.
    assert!(stats.acks_sent * 4 < stats.distinct_segments_received, "{stats:?}");
}

#[test]
fn a_peer_that_does_not_know_them_gets_a_plain_tcp_either_way() {
    let (train, newreno) = (protocol("quiet-train", 1460), protocol("newreno+sack", 1460));
    for (ours, theirs) in [(&train, &newreno), (&newreno, &train)] {
        let mut transfer = Transfer::new(ours, theirs, [lossy(3), lossy(4)], 300_000);
        // Data that is written before the peer has answered is not lost when the protocol changes.
        transfer.serve(true);
        transfer.run(Duration::from_secs(3600));
        transfer.check("fall-back");
        assert_eq!(transfer.speaks_trains(), [false; 2]);
    }
}

#[test]
fn ends_with_segments_of_their_own_agree_on_the_lesser() {
    for segments in [(1000, 1460), (1460, 600), (300, 300)] {
        let (ours, theirs) = (protocol("quiet-train", segments.0), protocol("quiet-train", segments.1));
        let mut transfer = Transfer::new(&ours, &theirs, [lossy(5), lossy(6)], 200_000);
        transfer.run(Duration::from_secs(3600));
        transfer.check(&format!("{segments:?}"));
        assert_eq!(transfer.speaks_trains(), [true; 2]);
    }
}

#[test]
fn an_application_that_does_not_read_stops_the_sender_and_then_lets_it_go_on() {
    let train = protocol("quiet-train", 1460);
    let way = Impairment { delay: Duration::from_millis(4), ..Impairment::default() };
    let mut transfer = Transfer::new(&train, &train, [way.clone(), way], 1_000_000);
    // Nobody reads for 90 s. No more than the window arrives.
    while {
        transfer.world.work();
        transfer.serve(false);
        transfer.world.advance(Duration::from_secs(90))
    } {}
    let server = transfer.server.expect("it is open");
    let readable = transfer.world.ends[1].status(server).unwrap().readable;
    assert!((60 * 1448..=64 * 1448).contains(&readable), "{readable}");
    transfer.run(Duration::from_secs(3600));
    transfer.check("after a stop");
}

#[test]
fn a_peer_that_vanishes_is_given_up_after_100_s() {
    let train = protocol("quiet-train", 1460);
    let outage = Some((Duration::from_secs(2), Duration::from_secs(100_000)));
    let way =
        Impairment { delay: Duration::from_millis(4), rate: Some(Rate::from_mbps(8)), outage, ..Impairment::default() };
    let mut transfer = Transfer::new(&train, &train, [way.clone(), way], 10_000_000);
    transfer.run(Duration::from_secs(3600));
    let status = transfer.world.ends[0].status(transfer.client).unwrap();
    assert_eq!(status.end, Some(End::TimedOut));
    let now = transfer.world.wire.borrow().now;
    assert!((Time(100_000_000_000)..Time(110_000_000_000)).contains(&now), "{now}");
}

#[test]
fn forged_headers_harm_no_byte() {
    // Copies of the packets without payload are inserted. Their numbers, flags and options are
    // random, with a correct checksum.
    for seed in 0..30 {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let train = protocol("quiet-train", 1460);
        let mut transfer = Transfer::new(&train, &train, [lossy(seed), lossy(seed + 100)], 60_000);
        loop {
            forge(&mut transfer.world, &mut rng);
            transfer.world.work();
            transfer.serve(true);
            if !transfer.world.advance(Duration::from_secs(1200)) {
                break;
            }
        }
        // A forged ACK may end a transfer, as for any TCP. It must not change a byte of the
        // delivered data.
        for side in 0..2 {
            let heard = transfer.heard[side].clone().finalize().to_vec();
            assert_eq!(heard, hash(1 - side, transfer.taken[side]), "seed {seed}, side {side}");
        }
    }
}

/// Inserts a forged copy of the next packet to one side.
fn forge(world: &mut World, rng: &mut Rng) {
    if rng.below(4) > 0 {
        return;
    }
    let side = rng.below(2) as usize;
    let mut wire = world.wire.borrow_mut();
    let Some((at, bytes)) = wire.under_way[side].front().cloned() else { return };
    let Ok(Packet::Tcp { addresses, mut header, .. }) = packet::decode(&bytes, Check::Full) else { return };
    match rng.below(6) {
        0 => header.ack = header.ack.wrapping_add(rng.below(20_000) as u32).wrapping_sub(10_000),
        1 => header.seq = header.seq.wrapping_add(rng.below(200_000) as u32).wrapping_sub(100_000),
        2 => header.flags = Flags(rng.next_u64() as u8 & 0xdb),
        3 => header.window = rng.next_u64() as u16,
        4 => header.options.timestamps = Some((rng.next_u64() as u32, rng.next_u64() as u32)),
        _ => {
            if let Some(Content::Report { feedback, wait, beyond }) = &mut header.options.train {
                feedback.segments = rng.next_u64() as u8;
                feedback.marked = rng.next_u64() as u8;
                feedback.mean = rng.next_u64() as i16;
                feedback.least = rng.next_u64() as i16;
                *wait = rng.next_u64() as u8;
                *beyond = rng.next_u64() as u32;
            }
        }
    }
    let addresses = Addresses { ..addresses };
    let forged = packet::encode(&mut Vec::new(), &header, addresses, (&[], &[]), 9, false).to_vec();
    wire.put(side, at, forged);
}
