//! Many streams inside one session with the far end.
//!
//! A session has two carriers, which are connections of their own: *express*, BBR, for what is small, and *bulk*, quiet trains (off the mesh BBR,
//! too), for what fills trains. A train is silent until its ACK is back; what goes by express does not wait for that. No second pair of trains:
//! a lost keystroke is repeated with the next one or after the round trip and 60 ms, not after 400 ms, and a small segment that finds the queues full of our own
//! bulk is no reason to send the next one later, as the trains' control law would have it.
//!
//! Each stream has two directions of bytes with offsets, so that a stream may change its carrier at any byte: the receiver puts it together
//! (`incoming`). Per direction the receiver gives credit, so that a reader that is slow holds back its own stream alone. A stream whose queue is no
//! longer than what it may send by express ([`express::BURST`] bytes, refilled by [`express::RATE`] per second) goes by express, all else by
//! bulk, where streams take turns of [`machine::TURN`] bytes. A carrier is handed no more than it can send soon (`meter`), so that it is decided late what goes first.
//!
//! Datagrams of UDP go in flows, each with a target and a class that says what becomes of those that wait (`flow`). They stand in the same lines as streams.
//!
//! `frame` is what stands in the carriers' streams, `machine` decides and `handing` hands over, and neither knows a socket, a clock or a thread; `link` gives them those, `stream` is
//! the end of one stream that the tunnel reads and writes.

mod bucket;
mod carrier;
mod flow;
mod flows;
mod frame;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod handing;
mod incoming;
mod link;
mod machine;
mod meter;
mod outgoing;
mod sink;
mod store;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use carrier::Carrier;
pub use flow::Class;
pub(crate) use flow::{MOST, QUEUE};
pub(super) use flows::Flow;
pub(crate) use frame::{Frame, Reader};
pub(crate) use handing::{Handing, Sending, Takes};
pub(super) use link::Link;
pub use machine::Datagrams;
pub(crate) use machine::{Got, Phase, Session, Side};
pub(super) use sink::Sink;
pub(super) use store::{Kept, Store};
pub(super) use stream::Stream;

/// What the peer did that no peer of this version does: it ends the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Violation(pub(crate) &'static str);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the far end breaks the rules of a session: {}", self.0)
    }
}

/// Bytes of a name that a session has while its two carriers look for each other.
pub(crate) const NAME: usize = 16;

/// What stands at the beginning of a carrier.
pub(crate) fn preamble(carrier: Carrier, name: &[u8; NAME]) -> Vec<u8> {
    [&[super::SESSION, carrier as u8][..], name].concat()
}
