//! The network between the ports. It delays, loses and duplicates datagrams and drops long ones,
//! and an observer reads all of them and adds others.

use super::hostile::happens;
use super::plan::{Observer, Path};
use crate::connection::Report;
use meshpace_core::{Duration, Rng, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Datagram in flight.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// Error that the network reports to the sender of a datagram.
#[derive(Clone, Debug)]
pub(super) struct Complaint {
    pub(super) about: Datagram,
    pub(super) report: Report,
}

/// Number of earlier datagrams that the observer may send again.
const REMEMBERED: usize = 64;

/// UDP port of the observer's own addresses.
const OBSERVER_PORT: u16 = 666;

/// The network between all ports, and its observer.
#[derive(Debug)]
pub(super) struct Wire {
    path: Path,
    observer: Observer,
    rng: Rng,
    /// Datagrams in flight, by the time and the order of their arrival.
    under_way: BTreeMap<(Time, u64), Datagram>,
    sequence: u64,
    blackouts: Vec<(Time, Time)>,
    /// Time from which on nothing is lost at random and the observer is gone.
    calm_at: Time,
    remembered: VecDeque<Datagram>,
    pub(super) complaints: Vec<Complaint>,
}

impl Wire {
    pub(super) fn new(path: Path, observer: Observer, blackouts: Vec<(Time, Time)>, calm_at: Time, rng: Rng) -> Wire {
        let (under_way, remembered, complaints) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        Wire { path, observer, rng, under_way, sequence: 0, blackouts, calm_at, remembered, complaints }
    }

    /// Time of the next arrival.
    pub(super) fn next(&self) -> Time {
        self.under_way.keys().next().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Number of datagrams in flight.
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Removes and returns a datagram that has arrived by `now`.
    pub(super) fn arrival(&mut self, now: Time) -> Option<Datagram> {
        let first = self.under_way.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    /// Puts a datagram in flight that arrives after `delay`.
    pub(super) fn put(&mut self, now: Time, delay: Duration, datagram: Datagram) {
        self.under_way.insert((now + delay, self.sequence), datagram);
        self.sequence += 1;
    }

    fn delay(&mut self) -> Duration {
        let jitter = self.rng.below(self.path.jitter_ms * 1000 + 1);
        Duration::from_micros(self.path.delay_ms * 1000 + jitter + 50)
    }

    /// Sends a datagram through the network. `is_open` says whether the connection that it belongs
    /// to is open at both ends.
    pub(super) fn send(&mut self, now: Time, datagram: Datagram, is_open: bool) {
        if now < self.calm_at {
            self.observe(now, &datagram, is_open);
        }
        let is_dark = self.blackouts.iter().any(|(from, to)| (*from..*to).contains(&now));
        let is_lost = now < self.calm_at && happens(&mut self.rng, self.path.lost);
        if is_dark || is_lost || datagram.bytes.len() + 28 > self.path.width {
            return;
        }
        if happens(&mut self.rng, self.path.doubled) {
            let delay = self.delay();
            self.put(now, delay, datagram.clone());
        }
        let delay = self.delay();
        self.put(now, delay, datagram);
    }

    /// Sends a datagram of the observer, which has to fit the path like any other.
    fn add(&mut self, now: Time, delay: Duration, datagram: Datagram) {
        if datagram.bytes.len() + 28 <= self.path.width {
            self.put(now, delay, datagram);
        }
    }

    fn observe(&mut self, now: Time, datagram: &Datagram, is_open: bool) {
        let observer = self.observer;
        let is_opening = datagram.bytes.starts_with(&[0; 8]);
        let elsewhere = SocketAddr::from(([172, 16, 0, 1 + self.rng.below(3) as u8], OBSERVER_PORT));
        let rate = if is_opening { observer.altered_openings } else { observer.altered };
        if happens(&mut self.rng, rate) {
            let bytes = self.altered(datagram.bytes.clone());
            let delay = self.delay();
            self.add(now, delay, Datagram { bytes, ..datagram.clone() });
        }
        if happens(&mut self.rng, observer.overtaken) && !is_opening {
            let from = if self.rng.below(3) == 0 { datagram.from } else { elsewhere };
            self.add(now, Duration::from_micros(1), Datagram { from, ..datagram.clone() });
        }
        if happens(&mut self.rng, observer.replayed) && !self.remembered.is_empty() {
            let which = self.rng.below(self.remembered.len() as u64) as usize;
            let mut again = self.remembered[which].clone();
            if self.rng.below(2) == 0 {
                again.from = elsewhere;
            }
            let delay = self.delay();
            self.add(now, delay, again);
        }
        if happens(&mut self.rng, observer.invented) && is_open {
            let length = 8 + self.rng.below(120) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| self.rng.next_u64() as u8).collect();
            bytes[..8].copy_from_slice(&datagram.bytes[..8]);
            self.add(now, Duration::from_micros(1), Datagram { bytes, ..datagram.clone() });
        }
        if is_open && happens(&mut self.rng, observer.complaints) {
            self.complain(now, datagram);
        }
        if self.remembered.len() == REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(datagram.clone());
    }

    /// Sends a stray with the tag of the datagram, or reports an ICMP message that quotes the
    /// datagram.
    fn complain(&mut self, now: Time, datagram: &Datagram) {
        let report = match self.rng.below(4) {
            0 => {
                let bytes = [&[0; 8][..], &[3, 3, 0, 0], &datagram.bytes[..8]].concat();
                let stray = Datagram { from: datagram.to, to: datagram.from, bytes };
                return self.add(now, Duration::from_micros(1), stray);
            }
            1 => Report::Refused,
            2 => Report::HostUnreachable,
            _ => Report::TooLong { mtu: 300 + self.rng.below(1200) as u32 },
        };
        self.complaints.push(Complaint { about: datagram.clone(), report });
    }

    fn altered(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self.rng.below(6) {
            0 => bytes.truncate(self.rng.below(bytes.len() as u64) as usize),
            1 => bytes.extend([0; 7]),
            _ => {
                for _ in 0..=self.rng.below(2) {
                    let at = self.rng.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << self.rng.below(8);
                }
            }
        }
        bytes
    }
}
