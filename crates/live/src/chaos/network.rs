//! Interface of a network that replaces the wire. The caller of a run provides it, because this
//! crate does not know the simulator.

use super::plan::Plan;
use meshpace_core::{Rate, Time};
use std::net::SocketAddr;

/// A datagram that has passed through a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Time of arrival.
    pub at: Time,
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// Content of the datagram.
    pub bytes: Vec<u8>,
}

/// Network between two machines. It loses, delays and duplicates datagrams by its own rules. All
/// randomness is derived from the plan's seed.
pub trait Network {
    /// Description of the network.
    fn words(&self) -> String;

    /// Number of hops between the machines, at least 1. Both machines are told.
    fn hops(&self) -> u8;

    /// Data rate of the channel. Both machines are told.
    fn rate(&self) -> Rate;

    /// Sends a datagram of machine `end`, 0 or 1, at the time to which the network was advanced
    /// last.
    fn send(&mut self, end: usize, from: SocketAddr, to: SocketAddr, bytes: &[u8]);

    /// Advances the time until a datagram arrives, and returns it. If none arrives until `until`,
    /// returns `None`. `until` must not be earlier than in the previous call, nor [`Time::NEVER`].
    fn advance(&mut self, until: Time) -> Option<Passed>;
}

/// Creates the network of a run. The network must not be hostile for longer than the plan says.
pub type Networks<'a> = &'a dyn Fn(&Plan) -> Box<dyn Network>;
