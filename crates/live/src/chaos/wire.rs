//! Datagrams in flight between two machines.

use meshpace_core::Time;
use meshpace_session::connection::Report;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A datagram in flight.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    /// True if the given sender did not send this datagram, or did not send it now.
    pub(crate) forged: bool,
}

/// Error that the network reports about a datagram: its addresses and the beginning of the
/// datagram.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) quoted: Vec<u8>,
    pub(crate) report: Report,
}

/// Event of the wire.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    Datagram(Flight),
    Notice(Notice),
    /// A datagram that the given end has held back, and now passes to the network.
    Departure(usize, Flight),
}

/// The wire: events sorted by time, and by order of insertion at equal times.
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

    /// Time of the next event.
    pub(crate) fn next(&self) -> Time {
        self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at)
    }

    /// Takes the next event that is due at `now`.
    pub(crate) fn arrival(&mut self, now: Time) -> Option<Arrival> {
        Some(self.flights.first_entry().filter(|entry| entry.key().0 <= now)?.remove())
    }
}
