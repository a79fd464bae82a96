//! Runs a list of operations on two endpoints of any named transport.
//!
//! A run is a pure function of a transport and of choices, which are random or the bytes of a
//! fuzzer. First comes the list of operations: advance the clock, deliver, drop, duplicate,
//! reorder, mark, break and restore the route, change the path. Then follows a network without
//! faults. During the list nothing may be delivered that was not written, no endpoint may want to
//! act in the past or endlessly, and TCP has to keep to its window. Afterwards every byte must have
//! arrived once and in order, and the connection must end.

use crate::{Arrival, Config, Endpoint, PathInfo, Role, Segment, names, pump};
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{borrow::ToOwned, format};
use meshpace_core::{Duration, Rate, Time};

/// Function that returns a choice below the bound it is given, which is above zero; `None` if the
/// choices are used up.
type Choose<'a> = &'a mut dyn FnMut(u64) -> Option<u64>;

/// An operation on the two endpoints or on the network.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// The clock advances by this number of microseconds. Timers that are due fire in order.
    Advance(u64),
    /// The oldest packet in flight from this end (0 is the sender) arrives.
    Deliver(usize),
    /// The oldest packet in flight from this end arrives, with a congestion mark if it may be
    /// marked.
    Mark(usize),
    /// The oldest packet in flight from this end is lost.
    Drop(usize),
    /// The oldest packet in flight from this end arrives, and a copy of it stays in flight.
    Duplicate(usize),
    /// The packet at this position in the queue of packets in flight from this end arrives before
    /// the others.
    Reorder(usize, usize),
    /// The network reports to this end that its route is lost.
    RouteFailure(usize),
    /// The network reports to this end that its route is available again.
    RouteRecovered(usize),
    /// The route has this number of hops from now on.
    Path(u8),
    /// The application of the sender writes this number of bytes.
    Write(u64),
}

fn operation(choose: Choose<'_>) -> Option<Op> {
    let end = choose(2)? as usize;
    Some(match choose(40)? {
        0..=9 => Op::Advance(choose(20_000)?),
        10..=11 => Op::Advance(choose(2_000_000)?),
        12..=25 => Op::Deliver(end),
        26..=28 => Op::Mark(end),
        29..=31 => Op::Drop(end),
        32..=33 => Op::Duplicate(end),
        34..=35 => Op::Reorder(end, choose(8)? as usize),
        36 => Op::RouteFailure(end),
        37 => Op::RouteRecovered(end),
        38 => Op::Path(1 + choose(12)? as u8),
        _ => Op::Write(1 + choose(6_000)?),
    })
}

/// Two endpoints and the packets in flight between them.
struct World {
    now: Time,
    ends: [Endpoint; 2],
    /// Packets in flight from each end, the oldest first.
    flying: [VecDeque<Segment>; 2],
    hops: u8,
    written: u64,
    delivered: u64,
    /// Largest number of bytes that TCP may have sent beyond `acked`; `None` for other transports.
    tcp_window: Option<u64>,
    /// Highest offset that the sender knows to be acknowledged.
    acked: u64,
    is_udp: bool,
    /// Time at which each end has to be polled again.
    wakeups: [Time; 2],
}

impl World {
    fn new(config: &Config) -> World {
        let tcp_window = match config {
            Config::Tcp(tcp) => Some(u64::from(tcp.segment) * u64::from(tcp.window.limit(tcp.max_window))),
            _ => None,
        };
        World {
            now: Time::ZERO,
            ends: [Endpoint::new(config, Role::Sender), Endpoint::new(config, Role::Receiver)],
            flying: [VecDeque::new(), VecDeque::new()],
            hops: 4,
            written: 0,
            delivered: 0,
            tcp_window,
            acked: 0,
            is_udp: matches!(config, Config::Udp(_)),
            wakeups: [Time::NEVER; 2],
        }
    }

    fn tell_path(&mut self) {
        for end in &mut self.ends {
            let received_power_dbm = Some(-60.0 - f32::from(self.hops));
            end.on_path(PathInfo { hops: self.hops, rate: Rate::from_mbps(2), received_power_dbm });
        }
    }

    fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.ends[0].write(self.now, bytes);
        self.poll();
    }

    /// Collects the segments that both ends want to send, and checks the conditions that must
    /// always hold.
    fn poll(&mut self) {
        for from in 0..2 {
            let mut polled = 0;
            self.wakeups[from] = pump(&mut self.ends[from], self.now, |_, segment| {
                polled += 1;
                assert!(polled < 1000, "it never stops sending");
                if let (Segment::Tcp(tcp), Some(window), 0) = (&segment, self.tcp_window, from)
                    && tcp.payload > 0
                {
                    let end = tcp.seq + u64::from(tcp.payload);
                    assert!(end <= self.acked + window, "more than the window: {end}, {} acknowledged", self.acked);
                    assert!(end <= self.written, "what was not written");
                }
                self.flying[from].push_back(segment);
            });
            assert!(self.wakeups[from] > self.now, "end {from} is due at once for ever");
        }
        let delivered = self.ends[1].delivered();
        assert!(delivered >= self.delivered, "delivery goes back");
        assert!(self.is_udp || delivered <= self.written, "more delivered than written");
        self.delivered = delivered;
    }

    fn arrive(&mut self, from: usize, segment: &Segment, mark: bool) {
        if let (Segment::Tcp(tcp), 1) = (segment, from) {
            self.acked = self.acked.max(tcp.ack);
        }
        let ce = mark && segment.is_ecn_capable();
        let arrival = Arrival { hops: self.hops, ce, received_power_dbm: Some(-61.0) };
        self.ends[1 - from].on_segment(self.now, segment, arrival);
        self.poll();
    }

    fn take(&mut self, from: usize, mark: bool) {
        if let Some(segment) = self.flying[from].pop_front() {
            self.arrive(from, &segment, mark);
        }
    }

    fn wakeup(&self) -> Time {
        self.wakeups[0].min(self.wakeups[1])
    }

    fn advance(&mut self, to: Time) {
        while self.wakeup() <= to {
            self.now = self.wakeup();
            self.poll();
        }
        self.now = to;
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Advance(us) => self.advance(self.now + Duration::from_micros(us)),
            Op::Deliver(from) => self.take(from, false),
            Op::Mark(from) => self.take(from, true),
            Op::Drop(from) => drop(self.flying[from].pop_front()),
            Op::Duplicate(from) => {
                if let Some(segment) = self.flying[from].front().copied() {
                    self.arrive(from, &segment, false);
                }
            }
            Op::Reorder(from, place) => {
                if let Some(segment) = self.flying[from].remove(place) {
                    self.arrive(from, &segment, false);
                }
            }
            Op::RouteFailure(end) => self.ends[end].on_route_failure(self.now),
            Op::RouteRecovered(end) => self.ends[end].on_route_recovered(self.now),
            Op::Path(hops) => {
                self.hops = hops;
                self.tell_path();
            }
            Op::Write(bytes) => self.write(bytes),
        }
        self.poll();
    }

    /// Lets a network that delivers every packet after 5 ms finish the connection, which has to
    /// end.
    fn heal(&mut self) {
        for end in &mut self.ends {
            end.on_route_recovered(self.now);
            end.close(self.now);
        }
        self.poll();
        for _ in 0..200_000 {
            if self.flying.iter().all(VecDeque::is_empty) {
                let next = self.wakeup();
                if next == Time::NEVER {
                    break;
                }
                self.advance(next);
                continue;
            }
            self.advance(self.now + Duration::from_millis(5));
            for from in 0..2 {
                for _ in 0..self.flying[from].len() {
                    self.take(from, false);
                }
            }
        }
        assert!(self.ends[0].is_done(), "the sender does not end");
        if !self.is_udp {
            assert!(self.ends[1].is_done(), "the receiver does not end");
            assert_eq!(self.delivered, self.written, "bytes are missing");
        }
    }
}

/// Largest number of operations in a run.
const OPERATIONS: u64 = 600;

/// Runs one list of operations against the transport `config`.
///
/// # Panics
///
/// Panics if the transport breaks one of the conditions.
pub(super) fn run(config: &Config, choose: Choose<'_>) {
    let mut world = World::new(config);
    world.tell_path();
    world.ends[0].open(Time::ZERO);
    world.write(1 + choose(60_000).unwrap_or_default());
    for _ in 0..choose(OPERATIONS).unwrap_or_default() {
        let Some(op) = operation(choose) else { break };
        world.apply(op);
    }
    world.heal();
}

/// Every named transport, and every TCP with every modifier that changes it.
pub(super) fn transports() -> Vec<(String, Config)> {
    let mut all = Vec::new();
    for entry in names::table() {
        let Some(plain) = names::lookup(entry.name) else { continue };
        for modifier in names::modifiers() {
            let name = format!("{}+{}", entry.name, modifier.name);
            match names::lookup(&name) {
                Some(config) if config.check().is_ok() && config != plain => all.push((name, config)),
                _ => {}
            }
        }
        all.push((entry.name.to_owned(), plain));
    }
    all
}
