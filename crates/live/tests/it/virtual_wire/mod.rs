//! Two of our stacks in virtual time, one at each end of a wire.
#![allow(dead_code, reason = "each test uses a part")]

use meshpace_core::{Duration, Time};
use meshpace_live::poll::{Poller, Token};
use meshpace_live::tcp::{Interface, Limits, Stack};
use meshpace_live::testbed::Impairment;
use meshpace_live::testbed::impairment::Direction;
use meshpace_transport::PathInfo;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;

pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
pub const PORT: u16 = 5000;

/// State shared by two stacks: the time, and the packets in flight.
pub struct Wire {
    pub now: Time,
    /// Packets to each side, in the order of their arrival.
    pub under_way: [VecDeque<(Time, Vec<u8>)>; 2],
    /// Impairments of the packets from each side.
    ways: [Direction; 2],
    /// Record of the packets, lost or not, with the sending side; only if requested.
    pub record: Option<Vec<(usize, Vec<u8>)>>,
}

impl Wire {
    /// Schedules the arrival of a packet at `side`.
    pub fn put(&mut self, side: usize, at: Time, packet: Vec<u8>) {
        let queue = &mut self.under_way[side];
        let place = queue.partition_point(|(other, _)| *other <= at);
        queue.insert(place, (at, packet));
    }
}

/// One end of the wire.
pub struct Plug {
    wire: Rc<RefCell<Wire>>,
    side: usize,
}

impl Interface for Plug {
    fn address(&self) -> Ipv4Addr {
        ADDRESSES[self.side]
    }
    fn mtu(&self) -> u16 {
        1500
    }
    fn now(&self) -> Time {
        self.wire.borrow().now
    }
    fn watch(&self, _: &Poller, _: Token) -> io::Result<()> {
        Ok(())
    }
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut wire = self.wire.borrow_mut();
        let now = wire.now;
        let queue = &mut wire.under_way[self.side];
        if queue.front().is_none_or(|(at, _)| *at > now) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Some((_, packet)) = queue.pop_front() else { return Err(io::ErrorKind::WouldBlock.into()) };
        into[..packet.len()].copy_from_slice(&packet);
        Ok(packet.len())
    }
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let mut wire = self.wire.borrow_mut();
        let now = wire.now;
        if let Some(record) = &mut wire.record {
            record.push((self.side, packet.to_vec()));
        }
        for at in wire.ways[self.side].pass(now, packet.len()).into_iter().flatten() {
            wire.put(1 - self.side, at, packet.to_vec());
        }
        Ok(())
    }
}

/// The two stacks and their wire.
pub struct World {
    pub wire: Rc<RefCell<Wire>>,
    pub ends: [Stack<Plug>; 2],
}

impl World {
    /// `ways` are the impairments of packets from side 0 and from side 1.
    pub fn new(ways: [Impairment; 2], path: PathInfo, recording: bool) -> World {
        let [there, back] = ways;
        let wire = Rc::new(RefCell::new(Wire {
            now: Time(1_000_000_000),
            under_way: Default::default(),
            ways: [Direction::new(there, 0), Direction::new(back, 1)],
            record: recording.then(Vec::new),
        }));
        let ends = [0, 1].map(|side| {
            let mut stack = Stack::new(Plug { wire: Rc::clone(&wire), side }, Limits::default()).unwrap();
            stack.set_path(path, false);
            stack
        });
        World { wire, ends }
    }

    /// Handles everything that is due at both ends.
    pub fn work(&mut self) {
        for end in &mut self.ends {
            end.take_packets().unwrap();
            end.run_timers();
        }
    }

    /// Advances to the next event. Returns false if there is none before `until`, counted from the
    /// start.
    pub fn advance(&mut self, until: Duration) -> bool {
        let mut wire = self.wire.borrow_mut();
        let arrivals = wire.under_way.iter().filter_map(|queue| queue.front()).map(|(at, _)| *at);
        let next = self.ends.iter().map(Stack::next_wakeup).chain(arrivals).min().unwrap_or(Time::NEVER);
        if next >= Time(1_000_000_000) + until {
            return false;
        }
        wire.now = wire.now.max(next);
        true
    }
}
