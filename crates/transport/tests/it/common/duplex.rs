//! Two full-duplex TCP connections on a virtual clock.

use meshpace_core::{Duration, Rate, Time};
use meshpace_transport::tcp::{Agreed, Connection, Flags, Profile, Segment};
use meshpace_transport::{Arrival, PathInfo, Role, pump, tcp};

pub const DELAY: Duration = Duration::from_millis(30);
pub const ALL: Agreed = Agreed { segment: 1460, timestamps: true, sack: true };

/// Two connections over a link with a constant delay. `reads` and `closes_after` define how the
/// ends react to data.
pub struct Duplex {
    pub now: Time,
    /// The end that opens, and the end that listens.
    pub ends: [Connection; 2],
    /// True for an end that reads arriving data at once.
    pub reads: [bool; 2],
    /// True for an end that closes after the peer has closed.
    pub closes_after: [bool; 2],
    pub taken: [u64; 2],
    flying: Vec<(Time, u64, usize, Segment)>,
    order: u64,
    pub record: Vec<(Time, usize, Segment, bool)>,
    /// Time at which each end has to be polled again.
    pub wakeups: [Time; 2],
}

impl Duplex {
    pub fn new(config: &tcp::Config) -> Duplex {
        let config = &tcp::Config { profile: Profile::Host, ..config.clone() };
        let end = |role| {
            let mut end = Connection::new(config, role);
            end.on_path(PathInfo { hops: 7, rate: Rate::from_mbps(2), received_power_dbm: None });
            end.on_agreed(Time::ZERO, &Agreed { sack: config.sack, ..ALL });
            end
        };
        Duplex {
            now: Time::ZERO,
            ends: [end(Role::Sender), end(Role::Receiver)],
            reads: [true; 2],
            closes_after: [true; 2],
            taken: [0; 2],
            flying: Vec::new(),
            order: 0,
            record: Vec::new(),
            wakeups: [Time::NEVER; 2],
        }
    }

    pub fn flush(&mut self, lose: &mut dyn FnMut(usize, &Segment) -> bool) {
        for side in 0..2 {
            let end = &mut self.ends[side];
            if self.reads[side] {
                let more = end.delivered() - self.taken[side];
                self.taken[side] += more;
                end.take(self.now, more);
            }
            if self.closes_after[side] && end.peer_has_closed() {
                end.close(self.now);
            }
            self.wakeups[side] = pump(&mut self.ends[side], self.now, |_, segment| {
                let lost = lose(side, &segment);
                self.record.push((self.now, side, segment, lost));
                self.order += 1;
                if !lost {
                    self.flying.push((self.now + DELAY, self.order, side, segment));
                }
            });
        }
    }

    pub fn drive(&mut self, until: Time, lose: &mut dyn FnMut(usize, &Segment) -> bool) {
        for events in 0.. {
            assert!(events < 200_000, "no end in sight: {:#?}", &self.record[self.record.len() - 8..]);
            self.flush(lose);
            let first = self.flying.iter().enumerate().min_by_key(|(_, f)| (f.0, f.1)).map(|(i, f)| (i, f.0));
            let wakeup = self.wakeups[0].min(self.wakeups[1]);
            let next = first.map_or(Time::NEVER, |(_, at)| at).min(wakeup);
            if next == Time::NEVER || next > until {
                self.now = self.now.max(if until == Time::NEVER { self.now } else { until });
                return;
            }
            assert!(next >= self.now, "a wake-up in the past");
            self.now = next;
            if let Some((index, _)) = first.filter(|(_, at)| *at <= next) {
                let (_, _, from, segment) = self.flying.remove(index);
                let arrival = Arrival { hops: 7, ..Arrival::default() };
                self.ends[1 - from].on_segment(self.now, &segment, &[], arrival);
            }
        }
    }

    pub fn said(&self) -> Vec<(u64, usize, Flags, u64, u64, u16)> {
        let line = |&(at, side, s, _): &(Time, usize, Segment, bool)| {
            (at.0 / 1_000_000, side, s.flags, s.seq, s.ack, s.payload)
        };
        self.record.iter().map(line).collect()
    }
}

pub fn none(_: usize, _: &Segment) -> bool {
    false
}
