//! HELLO messages: which neighbours are there (RFC 3561, section 6.9), as AODV-UU 0.9.1 uses them.
//!
//! A node that has broadcast nothing for an interval broadcasts a HELLO, a RREP about itself with TTL 1. Who hears a HELLO has a
//! route of one hop to its sender, whether or not that one hears back: links are not tested in the other direction. Any message of
//! a neighbour shows that it is there. One that has been heard and is silent for two intervals is lost with all routes over it.
//!
//! | Parameter | Value | Source |
//! |---|---|---|
//! | HELLO_INTERVAL | 1 s | RFC 3561, section 10 |
//! | jitter of the interval | uniform on [-50, 50) ms | AODV-UU |
//! | ALLOWED_HELLO_LOSS | 2 | RFC 3561, section 10 |
//! | slack of the wait | 100 ms | AODV-UU; it covers the jitter |
//!
//! Departures. RFC 3561 lets only nodes on an active route say HELLO; here all do, as in AODV-UU. AODV-UU also makes a route to
//! the neighbour that passes on a request, with no sequence number; here a request only shows that the neighbour is there, and
//! teaches the route to its origin over it (`discovery.rs`): the next HELLO brings the neighbour's own number. The route
//! takes the number of the HELLO even if it was lost under a larger one, as the RFC demands; its next hop is its
//! destination, so that it closes no loop.

use super::Aodv;
use super::discovery::BUFFER_SPACING;
use super::message::{Message, Reply};
use super::route::{State, newest};
use crate::packet::Packet;
use crate::routing::actions::Actions;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Distance of HELLOs.
const HELLO_INTERVAL: Duration = Duration::from_secs(1);
/// Width of their jitter in seconds.
const JITTER: f64 = 0.1;
/// HELLOs that may be missed.
const ALLOWED_HELLO_LOSS: u64 = 2;
/// Addition to the wait for them.
const SLACK: Duration = Duration::from_millis(100);
/// Time for which a neighbour that was heard counts as present.
const PATIENCE: Duration = Duration(HELLO_INTERVAL.0 * ALLOWED_HELLO_LOSS + SLACK.0);

/// The neighbours of a node, and its own turn to speak.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// When each falls silent, in the order in which they were first heard.
    heard: Vec<(NodeId, Time)>,
    /// Time at which this node says HELLO; [`Time::NEVER`] if it does not.
    next_hello: Time,
    /// The first of the times in `heard`, or earlier.
    first_silence: Time,
    /// Time at which this node last broadcast something else.
    last_broadcast: Option<Time>,
}

impl Neighbours {
    /// No HELLOs.
    pub fn off() -> Self {
        let never = Time::NEVER;
        Neighbours { heard: Vec::new(), next_hello: never, first_silence: never, last_broadcast: None }
    }

    /// HELLOs from a random moment within the first interval on.
    pub fn new(rng: &mut Rng) -> Self {
        let first = Duration::from_secs_f64(rng.uniform() * HELLO_INTERVAL.as_secs_f64());
        Neighbours { next_hello: Time::ZERO + first, ..Self::off() }
    }

    fn is_on(&self) -> bool {
        self.next_hello != Time::NEVER
    }

    /// `from` sent `message`. HELLOs and requests make a neighbour known; anything it sends shows that it is still there.
    pub fn heard(&mut self, now: Time, from: NodeId, message: &Message) {
        if !self.is_on() {
            return;
        }
        let until = now + PATIENCE;
        if let Some(known) = self.heard.iter_mut().find(|known| known.0 == from) {
            known.1 = until;
        } else if match message {
            Message::Request(_) => true,
            Message::Reply(reply) => reply.is_hello(),
            Message::Error(_) => false,
        } {
            self.heard.push((from, until));
            self.first_silence = self.first_silence.min(until);
        }
    }

    /// Forgets a neighbour that was lost otherwise.
    pub fn forget(&mut self, neighbour: NodeId) {
        self.heard.retain(|known| known.0 != neighbour);
    }

    /// Takes out a neighbour that has been silent for too long.
    pub fn take_silent(&mut self, now: Time) -> Option<NodeId> {
        if self.first_silence > now {
            return None;
        }
        if let Some(at) = self.heard.iter().position(|known| known.1 <= now) {
            return Some(self.heard.remove(at).0);
        }
        self.first_silence = self.heard.iter().map(|known| known.1).min().unwrap_or(Time::NEVER);
        None
    }

    /// Time at which this node may have to say HELLO.
    pub fn next_hello(&self) -> Time {
        self.next_hello
    }

    /// The earlier of that and the next silence.
    pub fn next_wakeup(&self) -> Time {
        self.next_hello.min(self.first_silence)
    }

    /// This node broadcasts something that shows its neighbours that it is there.
    pub fn spoke(&mut self, now: Time) {
        self.last_broadcast = Some(now);
    }
}

impl<P: Packet> Aodv<P> {
    /// Says HELLO if it is time to, and sets the next time.
    pub(super) fn say_hello(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
        if let Some(last) = self.neighbours.last_broadcast
            && now.since(last) < HELLO_INTERVAL
        {
            self.neighbours.next_hello = last + HELLO_INTERVAL;
            return;
        }
        let hello = Reply {
            origin: self.me,
            destination: self.me,
            destination_sequence: self.sequence,
            hop_count: 1,
            ttl: 1,
            lifetime: (ALLOWED_HELLO_LOSS * HELLO_INTERVAL.0 / 1_000_000_000) as u32,
            asked: now,
        };
        out.send(Message::Reply(hello), NodeId::BROADCAST, Duration::ZERO);
        let interval = self.rng.uniform_in(-JITTER / 2.0, JITTER / 2.0) + HELLO_INTERVAL.as_secs_f64();
        self.neighbours.next_hello = now + Duration::from_secs_f64(interval);
    }

    /// A HELLO: its sender is one hop away.
    pub(super) fn on_hello(&mut self, now: Time, from: NodeId, hello: &Reply, out: &mut impl Actions<P, Message>) {
        if !self.neighbours.is_on() {
            return;
        }
        let mut route = self.routes.entry(now, from);
        let expires = route.expires.max(now + PATIENCE);
        let sequence = hello.destination_sequence;
        let up = route.state == State::Up;
        if up && route.next_hop == from {
            route.sequence = newest(route.sequence, sequence);
            route.expires = expires;
        } else if !up || route.yields_to(sequence, 1) {
            route.set(sequence, 1, from, expires);
            route.search().answered(1);
            self.send_waiting(now, from, BUFFER_SPACING, out);
        }
    }

    /// Nothing was heard of `neighbour` for two intervals.
    pub(super) fn on_silence(&mut self, now: Time, neighbour: NodeId, out: &mut impl Actions<P, Message>) {
        self.sequence = self.sequence.wrapping_add(2);
        self.lose_neighbour(now, neighbour, out);
    }
}
