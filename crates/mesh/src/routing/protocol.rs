//! The interface of a routing protocol: a state machine per node.

use super::actions::{Actions, DropReason};
use crate::packet::Packet;
use core::convert::Infallible;
use meshpace_core::parameter::Parameters;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// The time to live that IP stacks start with (IANA, "IP Option Numbers", default time to live).
pub const IP_TIME_TO_LIVE: u8 = 64;

/// Purpose of a routing message, as statistics count it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// It asks for a route.
    Request,
    /// It answers such a message.
    Reply,
    /// It tells of lost routes.
    Error,
    /// It tells neighbours who is there, or everybody of links.
    Announcement,
}

/// A message of a routing protocol on one hop.
pub trait RoutingMessage: Copy {
    /// Length in bytes with the IP header.
    fn size(&self) -> u32;

    /// Its purpose.
    fn kind(&self) -> MessageKind;
}

/// Parameters of a routing protocol in a scenario. The reader of `[routing]` takes the keys that
/// [`Parameters::slots`] lists, and no others.
pub trait RoutingParameters: Parameters + Copy + Default {
    /// The time to live of a packet when it leaves its source: the most hops it travels.
    const TIME_TO_LIVE: u8 = IP_TIME_TO_LIVE;
}

/// For protocols without messages.
impl RoutingMessage for Infallible {
    fn size(&self) -> u32 {
        match *self {}
    }

    fn kind(&self) -> MessageKind {
        match *self {}
    }
}

/// One node's routing protocol. It is told of packets, messages, link failures and time, and answers through [`Actions`].
/// Any call may change [`Protocol::next_wakeup`].
pub trait Protocol<P: Packet>: Sized {
    /// Its parameters in a scenario.
    type Config: RoutingParameters;
    /// Messages between its nodes.
    type Message: RoutingMessage;

    /// The protocol at node `me`, at time zero. `rng` is the node's own stream for routing jitter
    /// ([`Purpose::RoutingJitter`](meshpace_core::rng::Purpose::RoutingJitter)).
    fn new(me: NodeId, config: Self::Config, rng: Rng) -> Self;

    /// A packet that is not for this node: forwards, keeps or drops it. `previous_hop` is None if it comes from this node's
    /// own transport; otherwise its time to live is taken down here.
    fn on_packet(
        &mut self,
        now: Time,
        packet: P,
        previous_hop: Option<NodeId>,
        out: &mut impl Actions<P, Self::Message>,
    );

    /// A packet that is for this node has arrived. Whether it is handed to the transport: not if the protocol sends several
    /// copies and this is not the first.
    fn accepts(&mut self, _now: Time, _packet: &P) -> bool {
        true
    }

    /// `from`, one hop away, sent `message`.
    fn on_message(&mut self, now: Time, from: NodeId, message: Self::Message, out: &mut impl Actions<P, Self::Message>);

    /// The MAC gave up a unicast frame to `next_hop` at its retry limit. `packet`: what it carried, if that was the user's.
    fn on_link_failure(
        &mut self,
        _now: Time,
        _next_hop: NodeId,
        packet: Option<P>,
        out: &mut impl Actions<P, Self::Message>,
    ) {
        if let Some(packet) = packet {
            out.drop_packet(packet, DropReason::LinkFailure);
        }
    }

    /// The time of [`Protocol::next_wakeup`] has come.
    fn on_timer(&mut self, _now: Time, _out: &mut impl Actions<P, Self::Message>) {}

    /// Time at which [`Protocol::on_timer`] wants to be called; [`Time::NEVER`] if there is nothing to wait for.
    fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// Hops to `destination` if there is a valid route, for pacing at a source.
    fn hops(&self, now: Time, destination: NodeId) -> Option<u8>;

    /// The neighbour that packets to `destination` go to now, if there is one.
    fn next_hop(&self, now: Time, destination: NodeId) -> Option<NodeId>;

    /// Looks for a route to `destination` without a packet, as long as it takes: for a transport that was told
    /// [`Actions::route_lost`] and stays silent until [`Actions::route_found`]. Does nothing if there is a route, or if the
    /// protocol finds routes by itself.
    fn seek(&mut self, _now: Time, _destination: NodeId, _out: &mut impl Actions<P, Self::Message>) {}
}

/// Jitter uniform on [0, `longest`).
pub(super) fn jitter(rng: &mut Rng, longest: Duration) -> Duration {
    Duration::from_secs_f64(rng.uniform() * longest.as_secs_f64())
}
