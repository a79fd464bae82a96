//! A pair of endpoints on a virtual clock, and a link between them with scripted losses.
#![allow(dead_code, reason = "each test uses its part")]

pub mod duplex;

use meshpace_core::{Duration, Rate, Time};
use meshpace_transport::{Arrival, Config, Endpoint, Machine, Output, PathInfo, Role, Segment, pump, tcp};

/// End that sent a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    Sender,
    Receiver,
}

/// Treatment of a segment by the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Deliver,
    Lose,
    /// Delivered twice.
    Duplicate,
    /// Delivered with this additional delay.
    Delay(Duration),
    /// Delivered with a congestion mark if the segment is ECN-capable, otherwise without a mark.
    Mark,
}

/// One line of the record: sender, time and treatment of a segment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    pub at: Time,
    pub from: From,
    pub segment: Segment,
    pub fate: Fate,
}

/// Two endpoints joined by a link with a constant one-way delay and infinite rate.
pub struct Pair {
    pub now: Time,
    pub sender: Endpoint,
    pub receiver: Endpoint,
    pub delay: Duration,
    pub hops: u8,
    /// Time at which each end has to be polled again.
    wakeups: [Time; 2],
    flying: Vec<(Time, u64, From, Segment, bool)>,
    order: u64,
    pub record: Vec<Line>,
}

impl Pair {
    pub fn new(config: &Config, delay: Duration, hops: u8) -> Pair {
        config.check().unwrap();
        let mut pair = Pair {
            now: Time::ZERO,
            sender: Endpoint::new(config, Role::Sender),
            receiver: Endpoint::new(config, Role::Receiver),
            delay,
            hops,
            wakeups: [Time::NEVER; 2],
            flying: Vec::new(),
            order: 0,
            record: Vec::new(),
        };
        let path = PathInfo { hops, rate: Rate::from_mbps(2), received_power_dbm: None };
        pair.sender.on_path(path);
        pair.receiver.on_path(path);
        pair
    }

    /// Sends everything that both ends want to send at this time.
    pub fn flush(&mut self, fate: &mut dyn FnMut(&Line) -> Fate) {
        loop {
            let (from, segment) = match self.sender.poll(self.now) {
                Output::Transmit(segment) => (From::Sender, segment),
                sender => match self.receiver.poll(self.now) {
                    Output::Transmit(segment) => (From::Receiver, segment),
                    receiver => {
                        self.wakeups = [sender, receiver].map(until);
                        return;
                    }
                },
            };
            let mut line = Line { at: self.now, from, segment, fate: Fate::Deliver };
            line.fate = fate(&line);
            self.record.push(line);
            let mut fly = |extra: Duration| {
                self.order += 1;
                let marked = line.fate == Fate::Mark && segment.is_ecn_capable();
                self.flying.push((self.now + self.delay + extra, self.order, from, segment, marked));
            };
            match line.fate {
                Fate::Lose => {}
                Fate::Deliver | Fate::Mark => fly(Duration::ZERO),
                Fate::Delay(extra) => fly(extra),
                Fate::Duplicate => {
                    fly(Duration::ZERO);
                    fly(Duration::ZERO);
                }
            }
        }
    }

    /// Time of the next event; `Time::NEVER` if the pair is idle.
    pub fn next_event(&self) -> Time {
        let arrival = self.flying.iter().map(|flight| flight.0).min().unwrap_or(Time::NEVER);
        arrival.min(self.wakeups[0]).min(self.wakeups[1])
    }

    /// Advances to the next event. Returns false if there is none, or if it lies after `until`.
    pub fn step(&mut self, until: Time, fate: &mut dyn FnMut(&Line) -> Fate) -> bool {
        self.flush(fate);
        let next = self.next_event();
        if next == Time::NEVER || next > until {
            return false;
        }
        assert!(next >= self.now, "a wake-up in the past: {next} at {}", self.now);
        self.now = next;
        // Arrivals, in the order of sending, come before timers. One event is handled at a time.
        let first = self.flying.iter().enumerate().min_by_key(|(_, flight)| (flight.0, flight.1));
        if let Some((index, &(at, _, from, segment, ce))) = first
            && at <= next
        {
            self.flying.remove(index);
            let arrival = Arrival { hops: self.hops, ce, ..Arrival::default() };
            match from {
                From::Sender => self.receiver.on_segment(self.now, &segment, arrival),
                From::Receiver => self.sender.on_segment(self.now, &segment, arrival),
            }
        }
        self.flush(fate);
        true
    }

    /// Runs until there are no more events, or until `until`.
    pub fn drive(&mut self, until: Time, fate: &mut dyn FnMut(&Line) -> Fate) {
        let mut events = 0;
        while self.step(until, fate) {
            events += 1;
            if events >= 200_000 {
                let tail = &self.record[self.record.len().saturating_sub(12)..];
                panic!("no end in sight: {tail:#?}");
            }
        }
    }

    /// Data segments of the sender so far: time in ms, number of the segment from 1, and whether it
    /// was lost.
    pub fn data(&self, segment_size: u64) -> Vec<(f64, u64, bool)> {
        self.record
            .iter()
            .filter_map(|line| match (line.from, line.segment) {
                (From::Sender, Segment::Tcp(segment)) if segment.payload > 0 => {
                    Some((line.at.as_secs_f64() * 1e3, segment.seq / segment_size + 1, line.fate == Fate::Lose))
                }
                _ => None,
            })
            .collect()
    }
}

/// Time at which an end that has nothing to transmit has to be polled again.
fn until(output: Output<Segment>) -> Time {
    match output {
        Output::Transmit(segment) => panic!("{segment:?}"),
        Output::Wait(until) => until,
        Output::Idle => Time::NEVER,
    }
}

/// Time at which an end that has nothing more to transmit at `now` has to be polled again.
pub fn wakeup(end: &mut impl Machine, now: Time) -> Time {
    pump(end, now, |_, _| panic!("there is more to transmit"))
}

/// A time in milliseconds.
pub fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// The TCP segment of a line.
pub fn tcp_of(line: &Line) -> tcp::Segment {
    match line.segment {
        Segment::Tcp(segment) => segment,
        other => panic!("not TCP: {other:?}"),
    }
}
