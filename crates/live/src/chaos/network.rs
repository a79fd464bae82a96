//! A network in place of the wire, handed over by whoever runs a seed: this crate knows no simulator.

use super::plan::Plan;
use meshpace_core::{Rate, Time};
use std::net::SocketAddr;

/// A datagram that has passed through a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// When it came out.
    pub at: Time,
    /// Who has sent it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// What.
    pub bytes: Vec<u8>,
}

/// Carries what two machines send to each other: loses, delays and repeats it by rules of its own, and nothing by chance that is not of the plan's seed.
pub trait Network {
    /// What it is, in words.
    fn words(&self) -> String;

    /// Hops between the machines, at least 1. Both are told.
    fn hops(&self) -> u8;

    /// Rate of its channel. Both are told.
    fn rate(&self) -> Rate;

    /// Machine `end`, 0 or 1, sends a datagram at the time to which the network was advanced last.
    fn send(&mut self, end: usize, from: SocketAddr, to: SocketAddr, bytes: &[u8]);

    /// Lets time pass until a datagram comes out, or until `until`, which is no earlier than before and not [`Time::NEVER`]; then returns none.
    fn advance(&mut self, until: Time) -> Option<Passed>;
}

/// Makes the network of a run. It is hostile no longer than the plan says.
pub type Networks<'a> = &'a dyn Fn(&Plan) -> Box<dyn Network>;
