//! A session whose carriers have little memory: other connections of the port take the rest of it and give it back, as a seed says. Bytes
//! that a carrier refuses have to arrive later, and nothing counts as arrived before it has.

use super::{Carrier, Class, Got, Phase, Session, Side, byte};
use crate::tunnel::session::Handing;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use meshpace_session::budget::{Account, Bounds, Budget};
use meshpace_session::exchange::{self, Exchange};
use meshpace_session::networks::source_of;
use meshpace_session::{Security, Settings};

/// Memory of the port.
const MEMORY: usize = 48 << 10;
/// Bytes of a stream, and its number; datagrams of a flow.
const STREAM: u64 = 100_000;
const NUMBER: u32 = 1;
const DATAGRAMS: usize = 40;
/// Payload of a segment.
const SEGMENT: usize = 1428;

/// A carrier and the path behind it, which delivers what has been written as quickly as a seed says.
struct Path {
    exchange: Exchange,
    delivered: u64,
}

impl Path {
    fn new(account: Account, by_bbr: bool) -> Path {
        let mut exchange = Exchange::new(&Settings::new(Security::Plain), SEGMENT, account);
        exchange.phase = exchange::Phase::Open;
        exchange.sending = by_bbr.then_some(exchange::Sending { cut: 0, ahead: 40_000 });
        Path { exchange, delivered: 0 }
    }

    /// The next bytes arrive, at most so many, and that is known.
    fn carry(&mut self, most: usize) -> Vec<u8> {
        let send = &mut self.exchange.send;
        let length = most.min((send.end() - self.delivered) as usize);
        let (a, b) = send.range(self.delivered, length).unwrap();
        let bytes = [a, b].concat();
        self.delivered += length as u64;
        send.release(self.delivered);
        self.exchange.stats.segments_sent += length.div_ceil(SEGMENT) as u64;
        if let Some(sending) = &mut self.exchange.sending {
            sending.cut = self.delivered;
        }
        bytes
    }
}

struct World {
    now: Time,
    rng: Rng,
    /// Who connects and sends, and who accepts and reads.
    ends: [Session; 2],
    handing: Handing,
    paths: [Path; 2],
    others: Account,
    others_hold: usize,
    written: u64,
    read: u64,
    /// Datagrams that were put, and those that have come.
    put: Vec<Vec<u8>>,
    came: Vec<Vec<u8>>,
    /// How often a carrier was full and had no memory for more.
    refusals: u32,
}

impl World {
    fn new(seed: u64, by_bbr: bool) -> World {
        let budget = Budget::new(Bounds { port: MEMORY, source: MEMORY, key: MEMORY });
        let [own, others] = [1, 2].map(|source| budget.account(source_of([10, source, 0, 1].into()), None));
        let ends = [Session::new(Side::Connects), Session::new(Side::Accepts)];
        World {
            now: Time::ZERO,
            rng: Rng::stream(seed, Purpose::Test, 0),
            ends: if by_bbr { ends.map(Session::over_bbr) } else { ends },
            handing: Handing::default(),
            paths: [Path::new(own.clone(), false), Path::new(own, by_bbr)],
            others,
            others_hold: 0,
            written: 0,
            read: 0,
            put: Vec::new(),
            came: Vec::new(),
            refusals: 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.rng.next_u64() % bound as u64) as usize
    }

    /// Other connections want more memory, or less.
    fn let_others_act(&mut self) {
        let (more, bytes) = (self.below(3) > 0, self.below(MEMORY));
        if more {
            // As much as they get.
            let taken = (0..bytes / 256).take_while(|_| self.others.take(256).is_ok()).count() * 256;
            self.others_hold += taken;
        } else {
            let less = bytes.min(self.others_hold);
            self.others.give_back(less);
            self.others_hold -= less;
        }
    }

    fn write(&mut self, flow: u32) {
        let length = (STREAM - self.written).min(self.below(9000) as u64);
        let bytes: Vec<u8> = (self.written..self.written + length).map(|at| byte(NUMBER, 0, at)).collect();
        if self.written < STREAM {
            self.written += self.ends[0].write(self.now, NUMBER, &bytes).unwrap() as u64;
        } else {
            self.ends[0].finish(NUMBER).unwrap();
        }
        if self.put.len() < DATAGRAMS && self.below(4) == 0 {
            let datagram = vec![self.put.len() as u8; self.below(20_000)];
            let before = self.ends[0].datagrams().dropped;
            self.ends[0].send_datagram(self.now, flow, &datagram).unwrap();
            if self.ends[0].datagrams().dropped == before {
                self.put.push(datagram);
            }
        }
    }

    /// Frames of the sender go to its carriers, and from there to the reader.
    fn go_there(&mut self) {
        for carrier in Carrier::ALL {
            let path = &mut self.paths[carrier as usize];
            self.handing.hand_over(self.now, &mut self.ends[0], carrier, &mut path.exchange).unwrap();
            self.refusals += u32::from(!path.exchange.send.accepts());
            let most = self.below(8000);
            let bytes = self.paths[carrier as usize].carry(most);
            self.ends[1].on_bytes(self.now, carrier, &bytes).unwrap();
            self.came.extend(self.ends[1].take_datagrams().into_iter().map(|(_, datagram)| datagram));
        }
    }

    /// The reader answers, reads, and gives credit, whose way is not what this is about.
    fn come_back(&mut self) {
        for (number, _) in self.ends[1].take_asked() {
            self.ends[1].answer(number, 0);
        }
        let mut into = vec![0; self.below(20_000)];
        if let Ok(Got::Bytes(length)) = self.ends[1].read(NUMBER, &mut into) {
            let right = |(at, got): (usize, &u8)| *got == byte(NUMBER, 0, self.read + at as u64);
            assert!(into[..length].iter().enumerate().all(right), "after {} bytes", self.read);
            self.read += length as u64;
        }
        let mut out = Vec::new();
        self.ends[1].fill(self.now, Carrier::Express, usize::MAX, &mut out);
        self.ends[0].on_bytes(self.now, Carrier::Express, &out).unwrap();
    }

    fn run(&mut self) {
        self.ends[0].open(self.now, "host:80").unwrap();
        let flow = self.ends[0].open_flow(self.now, Class::Reliable, "host:53").unwrap();
        // The least that its carriers need is there when the session begins.
        for path in &mut self.paths {
            assert!(matches!(path.exchange.write(b"x"), Some(Ok(1))));
            path.carry(1);
        }
        for round in 0.. {
            assert!(round < 20_000, "{} of {STREAM} bytes, {} of {DATAGRAMS} datagrams", self.read, self.came.len());
            self.now += Duration::from_millis(10);
            self.let_others_act();
            if self.ends[0].phase(NUMBER) == Phase::Open {
                self.write(flow);
            }
            self.go_there();
            self.come_back();
            let has_arrived = self.ends[0].has_arrived(NUMBER);
            if has_arrived && self.put.len() == DATAGRAMS && self.came.len() == DATAGRAMS {
                break;
            }
        }
        while self.read < STREAM {
            let before = self.read;
            self.come_back();
            assert!(self.read > before || self.below(100) > 0, "{} of {STREAM} bytes counted as arrived", self.read);
        }
        assert_eq!(self.ends[1].read(NUMBER, &mut [0]), Ok(Got::End));
        assert!(self.came == self.put, "datagrams come whole and in order");
    }
}

#[test]
fn what_a_carrier_has_no_memory_for_arrives_later() {
    for by_bbr in [false, true] {
        let mut refusals = 0;
        for seed in 0..30 {
            let mut world = World::new(seed, by_bbr);
            world.run();
            refusals += world.refusals;
        }
        assert!(refusals > 100, "memory was short {refusals} times: too seldom to say anything");
    }
}
