//! What is under way between two machines.

use meshpace_core::Time;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A datagram under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    /// Its sender did not send it, or not now.
    pub(crate) forged: bool,
}

/// What the network says about a datagram from one address to another, of which it quotes the beginning: an errno and an MTU.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) quoted: Vec<u8>,
    pub(crate) complaint: (i32, u32),
}

/// What arrives, or happens at an end.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    Datagram(Flight),
    Notice(Notice),
    /// Nothing yet: it was held back, and this end hands it to the network now.
    Departure(usize, Flight),
}

/// The wire: what arrives when, and in which order at equal times.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    flights: BTreeMap<(Time, u64), Arrival>,
    order: u64,
}

impl Wire {
    pub(crate) fn put(&mut self, at: Time, arrival: Arrival) {
        self.order += 1;
        self.flights.insert((at, self.order), arrival);
    }

    /// When the next thing arrives.
    pub(crate) fn next(&self) -> Time {
        self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at)
    }

    /// What has arrived at `now`.
    pub(crate) fn arrival(&mut self, now: Time) -> Option<Arrival> {
        Some(self.flights.first_entry().filter(|entry| entry.key().0 <= now)?.remove())
    }
}
