//! AODV with link-layer failure detection.

mod message;
mod sink;

pub use message::{Message, Reply, Request, Unreachable};
pub use sink::{DropReason, Sink};

use crate::config::LocalRepair;
use crate::packet::{Body, Packet};
use core::marker::PhantomData;
use meshpace_core::rng::Rng;
use meshpace_core::{NodeId, Time};

/// One node's AODV.
#[derive(Clone, Debug)]
pub struct Aodv<P> {
    _packet: PhantomData<P>,
}

impl<P: Packet> Aodv<P> {
    /// The protocol at node `me`. `rng` is the node's own stream for [`Purpose::RoutingJitter`](meshpace_core::rng::Purpose).
    pub fn new(me: NodeId, local_repair: LocalRepair, rng: Rng) -> Self {
        let _ = (me, local_repair, rng);
        todo!()
    }

    /// A packet that is not for this node: routes, buffers or drops it. `previous_hop` is None if it comes from this
    /// node's own transport.
    pub fn on_packet(&mut self, now: Time, packet: P, previous_hop: Option<NodeId>, out: &mut impl Sink<P>) {
        let _ = (now, packet, previous_hop, out);
        todo!()
    }

    /// `from`, one hop away, sent `message`.
    pub fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut impl Sink<P>) {
        let _ = (now, from, message, out);
        todo!()
    }

    /// The MAC gave up a unicast frame to `next_hop` at its retry limit.
    pub fn on_link_failure(&mut self, now: Time, next_hop: NodeId, frame: Body<P>, out: &mut impl Sink<P>) {
        let _ = (now, next_hop, frame, out);
        todo!()
    }

    /// The time of [`Self::next_wakeup`] has come.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Sink<P>) {
        let _ = (now, out);
        todo!()
    }

    /// When [`Self::on_timer`] wants to be called; [`Time::NEVER`] if there is nothing to wait for.
    pub fn next_wakeup(&self) -> Time {
        todo!()
    }

    /// Hops to `destination` if there is a valid route, for pacing at a source.
    pub fn hops_to(&self, now: Time, destination: NodeId) -> Option<u8> {
        let _ = (now, destination);
        todo!()
    }
}
