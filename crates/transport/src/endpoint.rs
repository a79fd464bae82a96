//! One end of a transport connection, whichever the transport.

use crate::stats::Stats;
use crate::{Arrival, Config, PathInfo, Segment};
use meshpace_core::Time;

/// Which end of the connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Opens the connection and sends the data.
    Sender,
    /// Listens and receives the data.
    Receiver,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    stats: Stats,
}

#[allow(unused_variables)]
impl Endpoint {
    /// A closed sender or a listening receiver. `config` must pass [`Config::check`].
    pub fn new(config: &Config, role: Role) -> Endpoint {
        Endpoint { stats: Stats::default() }
    }

    /// The application connects: the sender polls a SYN next.
    pub fn open(&mut self, now: Time) {}

    /// The application hands over `bytes` more to send.
    pub fn write(&mut self, now: Time, bytes: u64) {}

    /// The application always has more to send.
    pub fn write_endless(&mut self, now: Time) {}

    /// The application will write no more.
    pub fn close(&mut self, now: Time) {}

    /// A segment of this connection arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, arrival: Arrival) {}

    /// The time of [`Endpoint::next_wakeup`] has come. Harmless at any other time.
    pub fn on_timer(&mut self, now: Time) {}

    /// The network reports that the route to the peer broke.
    pub fn on_route_failure(&mut self, now: Time) {}

    /// The network reports that the route to the peer is back.
    pub fn on_route_recovered(&mut self, now: Time) {}

    /// The path to the peer is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {}

    /// The next segment that may leave now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        None
    }

    /// When [`Endpoint::on_timer`] is due; [`Time::NEVER`] if never.
    pub fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// Payload bytes delivered in order to the application (UDP: received), at the receiver.
    pub fn delivered(&self) -> u64 {
        0
    }

    /// Whether the connection has ended: everything acknowledged and closed, or reset.
    pub fn is_done(&self) -> bool {
        false
    }

    /// What was counted.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
