//! Interface of a routing protocol: a state machine per node.

use super::actions::{Actions, DropReason};
use crate::packet::Packet;
use core::convert::Infallible;
use meshpace_core::parameter::Parameters;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Time to live with which IP stacks start (IANA, "IP Option Numbers", default time to live).
pub const IP_TIME_TO_LIVE: u8 = 64;

/// Purpose of a routing message, for statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// The message requests a route.
    Request,
    /// The message answers a request.
    Reply,
    /// The message reports lost routes.
    Error,
    /// The message announces a node to its neighbours, or links to all nodes.
    Announcement,
}

/// Message of a routing protocol on one hop.
pub trait RoutingMessage: Copy {
    /// Size in bytes with the IP header.
    fn size(&self) -> u32;

    /// Purpose of the message.
    fn kind(&self) -> MessageKind;
}

/// Parameters of a routing protocol in a scenario. The reader of `[routing]` accepts only the keys
/// that [`Parameters::slots`] lists.
pub trait RoutingParameters: Parameters + Copy + Default {
    /// Time to live of a packet when it leaves its source: the largest number of hops that it
    /// travels.
    const TIME_TO_LIVE: u8 = IP_TIME_TO_LIVE;
}

/// Message type of protocols without messages.
impl RoutingMessage for Infallible {
    fn size(&self) -> u32 {
        match *self {}
    }

    fn kind(&self) -> MessageKind {
        match *self {}
    }
}

/// Routing protocol of one node. It is called for packets, messages, link failures and timers, and
/// answers through [`Actions`]. Any call may change [`Protocol::next_wakeup`].
pub trait Protocol<P: Packet>: Sized {
    /// Parameters of the protocol in a scenario.
    type Config: RoutingParameters;
    /// Messages between the nodes of the protocol.
    type Message: RoutingMessage;

    /// Creates the protocol at node `me`, at time zero. `rng` is the node's own stream for routing
    /// jitter ([`Purpose::RoutingJitter`](meshpace_core::rng::Purpose::RoutingJitter)).
    fn new(me: NodeId, config: Self::Config, rng: Rng) -> Self;

    /// Forwards, keeps or drops a packet that is not for this node. `previous_hop` is `None` if the
    /// packet comes from this node's own transport. Otherwise its time to live is decremented here.
    fn on_packet(
        &mut self,
        now: Time,
        packet: P,
        previous_hop: Option<NodeId>,
        out: &mut impl Actions<P, Self::Message>,
    );

    /// Decides whether a packet that has arrived at its destination is handed to the transport.
    /// False if the protocol sends several copies and this is not the first one.
    fn accepts(&mut self, _now: Time, _packet: &P) -> bool {
        true
    }

    /// Handles `message` of `from`, which is one hop away.
    fn on_message(&mut self, now: Time, from: NodeId, message: Self::Message, out: &mut impl Actions<P, Self::Message>);

    /// Handles a unicast frame to `next_hop` that the MAC gave up at its retry limit. `packet` is
    /// its content; `None` if the frame carried no user packet.
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

    /// Executes everything that is due at [`Protocol::next_wakeup`].
    fn on_timer(&mut self, _now: Time, _out: &mut impl Actions<P, Self::Message>) {}

    /// Time at which [`Protocol::on_timer`] must be called; [`Time::NEVER`] if no call is needed.
    fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// Number of hops to `destination`, for pacing at a source. `None` if there is no valid route.
    fn hops(&self, now: Time, destination: NodeId) -> Option<u8>;

    /// Neighbour to which packets for `destination` are sent now. `None` if there is none.
    fn next_hop(&self, now: Time, destination: NodeId) -> Option<NodeId>;

    /// Searches for a route to `destination` without a packet, for as long as necessary. Used by a
    /// transport that has received [`Actions::route_lost`] and stays silent until
    /// [`Actions::route_found`]. Does nothing if there is a route, or if the protocol finds routes
    /// by itself.
    fn seek(&mut self, _now: Time, _destination: NodeId, _out: &mut impl Actions<P, Self::Message>) {}
}

/// Draws a jitter uniformly from [0, `longest`).
pub(super) fn jitter(rng: &mut Rng, longest: Duration) -> Duration {
    Duration::from_secs_f64(rng.uniform() * longest.as_secs_f64())
}
