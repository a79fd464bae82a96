//! Flooding: every node broadcasts every packet once. It needs neither routes nor messages. It is
//! the baseline that shows the savings of routing, and the smallest example of a [`Protocol`].
//!
//! Source: classic flooding with duplicate packet detection, J. Macker (ed.), RFC 6621 (Simplified
//! Multicast Forwarding), sections 5 (classic flooding) and 6 (duplicates by an identifier of the
//! source); jitter of forwarding: T. Clausen et al., RFC 5148, section 5.3. A packet is sent over
//! each link without acknowledgement, at the basic rate.
//!
//! | Parameter | Value |
//! |---|---|
//! | jitter of forwarding | uniform on [0, 10 ms) |
//! | memory of packets | 10 s |
//!
//! The number of hops to a node is that of the first copy of its last packet.

use super::actions::{Actions, DropReason};
use super::protocol::{Protocol, RoutingParameters, jitter};
use crate::packet::Packet;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::convert::Infallible;
use meshpace_core::parameter::{Parameters, Slots};
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Largest jitter of a forwarded packet.
const MAXJITTER: Duration = Duration::from_millis(10);
/// Time for which a packet is remembered, so that further copies are recognised.
const HOLD_TIME: Duration = Duration::from_secs(10);

/// Configuration of flooding, which has no parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FloodingConfig;

impl Parameters for FloodingConfig {
    fn slots(&mut self) -> Slots<'_> {
        Slots::new()
    }
}

impl RoutingParameters for FloodingConfig {}

/// Flooding at one node.
#[derive(Clone, Debug)]
pub struct Flooding {
    /// Sources and numbers of the packets that were received.
    seen: BTreeSet<(NodeId, u32)>,
    /// Sources and numbers of these packets with the time of their first copy, the oldest first.
    order: VecDeque<(Time, NodeId, u32)>,
    /// By source, the number of hops of the first copy of its last packet.
    hops: BTreeMap<NodeId, u8>,
    rng: Rng,
}

impl Flooding {
    /// True if this is the first copy of `packet` at this node.
    fn is_first<P: Packet>(&mut self, now: Time, packet: &P) -> bool {
        while let Some(&(since, source, id)) = self.order.front()
            && now.since(since) > HOLD_TIME
        {
            self.order.pop_front();
            self.seen.remove(&(source, id));
        }
        let (source, id) = (packet.source(), packet.id());
        let first = self.seen.insert((source, id));
        if first {
            self.order.push_back((now, source, id));
            self.hops.insert(source, packet.hops());
        }
        first
    }
}

impl<P: Packet> Protocol<P> for Flooding {
    type Config = FloodingConfig;
    type Message = Infallible;

    fn new(_me: NodeId, _config: FloodingConfig, rng: Rng) -> Self {
        Flooding { seen: BTreeSet::new(), order: VecDeque::new(), hops: BTreeMap::new(), rng }
    }

    fn on_packet(
        &mut self,
        now: Time,
        mut packet: P,
        previous_hop: Option<NodeId>,
        out: &mut impl Actions<P, Infallible>,
    ) {
        if !self.is_first(now, &packet) {
            return;
        }
        if previous_hop.is_none() {
            out.forward(packet, NodeId::BROADCAST, Duration::ZERO);
        } else if packet.decrement_ttl() {
            out.forward(packet, NodeId::BROADCAST, jitter(&mut self.rng, MAXJITTER));
        } else {
            out.drop_packet(packet, DropReason::TtlExpired);
        }
    }

    fn accepts(&mut self, now: Time, packet: &P) -> bool {
        self.is_first(now, packet)
    }

    fn on_message(&mut self, _: Time, _: NodeId, message: Infallible, _: &mut impl Actions<P, Infallible>) {
        match message {}
    }

    fn hops(&self, _now: Time, destination: NodeId) -> Option<u8> {
        self.hops.get(&destination).copied()
    }

    /// Always `None`, because a packet is sent to all neighbours.
    fn next_hop(&self, _now: Time, _destination: NodeId) -> Option<NodeId> {
        None
    }
}
