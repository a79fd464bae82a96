//! HELLO messages, which detect neighbours (RFC 3561, section 6.9), in the way of AODV-UU 0.9.1.
//!
//! A node that has sent no broadcast for an interval broadcasts a HELLO, a RREP about itself with
//! TTL 1. A node that receives a HELLO has a route of one hop to its sender, whether or not the
//! sender receives it, too: links are not tested in the other direction. Any message of a neighbour
//! shows that the neighbour is present. A known neighbour that is silent for two intervals is lost,
//! with all routes over it.
//!
//! | Parameter | Value | Source |
//! |---|---|---|
//! | HELLO_INTERVAL | 1 s | RFC 3561, section 10 |
//! | jitter of the interval | uniform on [-50, 50) ms | AODV-UU |
//! | ALLOWED_HELLO_LOSS | 2 | RFC 3561, section 10 |
//! | slack of the time-out | 100 ms | AODV-UU; covers the jitter |
//!
//! Departures: RFC 3561 lets only nodes on an active route send HELLOs; here all nodes do, as in
//! AODV-UU. AODV-UU also creates a route to the neighbour that forwards a request, without a
//! sequence number. Here a request only shows that the neighbour is present, and teaches the route
//! to its origin over that neighbour (`discovery.rs`); the next HELLO brings the neighbour's own
//! number. The route takes the sequence number of the HELLO even if it was lost with a larger one,
//! as the RFC demands. The next hop of such a route is its destination, so it cannot close a loop.

use super::Aodv;
use super::discovery::BUFFER_SPACING;
use super::message::{Message, Reply};
use super::route::{State, newest};
use crate::packet::Packet;
use crate::routing::actions::Actions;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Interval of HELLOs.
const HELLO_INTERVAL: Duration = Duration::from_secs(1);
/// Width of the interval's jitter, in seconds.
const JITTER: f64 = 0.1;
/// Number of HELLOs that may be missed.
const ALLOWED_HELLO_LOSS: u64 = 2;
/// Slack of the time-out.
const SLACK: Duration = Duration::from_millis(100);
/// Time for which a neighbour counts as present after a message.
const NEIGHBOUR_TIMEOUT: Duration = Duration(HELLO_INTERVAL.0 * ALLOWED_HELLO_LOSS + SLACK.0);

/// Known neighbours of a node, and the schedule of its own HELLOs.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// Neighbours with the times at which they count as lost, in the order in which they became
    /// known.
    deadlines: Vec<(NodeId, Time)>,
    /// Time of this node's next HELLO; [`Time::NEVER`] if it sends none.
    next_hello: Time,
    /// Earliest of the times in `deadlines`, or an earlier time.
    next_timeout: Time,
    /// Time at which this node last sent a broadcast other than a HELLO; `None` if it sent none.
    last_broadcast: Option<Time>,
}

impl Neighbours {
    /// Creates the state of a node without HELLOs.
    pub fn off() -> Self {
        let never = Time::NEVER;
        Neighbours { deadlines: Vec::new(), next_hello: never, next_timeout: never, last_broadcast: None }
    }

    /// Creates the state of a node with HELLOs. The first one is due at a random time within the
    /// first interval.
    pub fn new(rng: &mut Rng) -> Self {
        let first = Duration::from_secs_f64(rng.uniform() * HELLO_INTERVAL.as_secs_f64());
        Neighbours { next_hello: Time::ZERO + first, ..Self::off() }
    }

    /// True if this node sends and evaluates HELLOs.
    fn is_on(&self) -> bool {
        self.next_hello != Time::NEVER
    }

    /// Notes that `from` sent `message`. HELLOs and requests make a neighbour known. Any message
    /// shows that a known neighbour is still present.
    pub fn on_message(&mut self, now: Time, from: NodeId, message: &Message) {
        if !self.is_on() {
            return;
        }
        let until = now + NEIGHBOUR_TIMEOUT;
        if let Some(known) = self.deadlines.iter_mut().find(|known| known.0 == from) {
            known.1 = until;
        } else if match message {
            Message::Request(_) => true,
            Message::Reply(reply) => reply.is_hello(),
            Message::Error(_) => false,
        } {
            self.deadlines.push((from, until));
            self.next_timeout = self.next_timeout.min(until);
        }
    }

    /// Removes a neighbour that was lost for another reason.
    pub fn forget(&mut self, neighbour: NodeId) {
        self.deadlines.retain(|known| known.0 != neighbour);
    }

    /// Removes and returns a neighbour that has been silent for too long.
    pub fn take_lost(&mut self, now: Time) -> Option<NodeId> {
        if self.next_timeout > now {
            return None;
        }
        if let Some(at) = self.deadlines.iter().position(|known| known.1 <= now) {
            return Some(self.deadlines.remove(at).0);
        }
        self.next_timeout = self.deadlines.iter().map(|known| known.1).min().unwrap_or(Time::NEVER);
        None
    }

    /// Time at which this node may have to send a HELLO.
    pub fn next_hello(&self) -> Time {
        self.next_hello
    }

    /// Earlier of the times of the next HELLO and of the next lost neighbour.
    pub fn next_wakeup(&self) -> Time {
        self.next_hello.min(self.next_timeout)
    }

    /// Notes that this node sends a broadcast, which shows its neighbours that it is present.
    pub fn note_broadcast(&mut self, now: Time) {
        self.last_broadcast = Some(now);
    }
}

impl<P: Packet> Aodv<P> {
    /// Sends a HELLO if no other broadcast has made it unnecessary, and sets the time of the next
    /// one.
    pub(super) fn send_hello(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
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
            requested_at: now,
        };
        out.send(Message::Reply(hello), NodeId::BROADCAST, Duration::ZERO);
        let interval = self.rng.uniform_in(-JITTER / 2.0, JITTER / 2.0) + HELLO_INTERVAL.as_secs_f64();
        self.neighbours.next_hello = now + Duration::from_secs_f64(interval);
    }

    /// Handles a HELLO, whose sender is one hop away.
    pub(super) fn on_hello(&mut self, now: Time, from: NodeId, hello: &Reply, out: &mut impl Actions<P, Message>) {
        if !self.neighbours.is_on() {
            return;
        }
        let mut route = self.routes.entry(now, from);
        let expires = route.expires.max(now + NEIGHBOUR_TIMEOUT);
        let sequence = hello.destination_sequence;
        let up = route.state == State::Up;
        if up && route.next_hop == from {
            route.sequence = newest(route.sequence, sequence);
            route.expires = expires;
        } else if !up || route.is_replaced_by(sequence, 1) {
            route.set(sequence, 1, from, expires);
            route.search().note_route(1);
            self.send_waiting(now, from, BUFFER_SPACING, out);
        }
    }

    /// Handles the loss of `neighbour`, of which no message was received for two intervals.
    pub(super) fn on_lost_neighbour(&mut self, now: Time, neighbour: NodeId, out: &mut impl Actions<P, Message>) {
        self.sequence = self.sequence.wrapping_add(2);
        self.lose_neighbour(now, neighbour, out);
    }
}
