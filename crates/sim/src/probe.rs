//! Observers of a run: traces, captures, counters. The default one is empty and costs nothing.

use meshpace_core::{NodeId, Time};
use meshpace_mesh::Queued;
use meshpace_mesh::link::discipline::QueueLoss;
use meshpace_mesh::mac::Frame;
use meshpace_mesh::routing::DropReason;

/// Why a packet was lost below the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The queue discipline or its marker gave it up.
    Queue(QueueLoss),
    /// It was displaced while waiting for address resolution.
    ArpDisplaced,
    /// It waited in the queue for a neighbour whose link failed.
    Flushed,
    /// Routing gave it up.
    Routing(DropReason),
}

/// An observer. Every method does nothing unless overridden.
pub trait Probe<P> {
    /// Whether [`Probe::on_decoded`] and [`Probe::on_collision`] are to be called at all.
    const DECODED: bool = false;

    /// A node begins to transmit `frame`.
    fn on_air(&mut self, _now: Time, _frame: &Frame<P>) {}
    /// `node` has decoded `frame`, received with `power` W; whether it was meant for it or not.
    fn on_decoded(&mut self, _now: Time, _node: NodeId, _frame: &Frame<P>, _power: f64) {}
    /// `frame`, which `node` was to receive, was lost there to another frame; counted in `Counters::collisions`.
    fn on_collision(&mut self, _now: Time, _node: NodeId, _frame: &Frame<P>) {}
    /// The MAC of `node` gives up what it had for `next_hop`, at its retry limit.
    fn on_link_failure(&mut self, _now: Time, _node: NodeId, _next_hop: NodeId) {}
    /// Routing at `node` has lost its route to `destination` while in use, or has found one again.
    fn on_route(&mut self, _now: Time, _node: NodeId, _destination: NodeId, _found: bool) {}
    /// The transport of `node` hands `packet` to the network.
    fn on_inject(&mut self, _now: Time, _node: NodeId, _packet: &P) {}
    /// `packet` has reached the transport of `node`.
    fn on_deliver(&mut self, _now: Time, _node: NodeId, _packet: &P) {}
    /// A frame on its way to a neighbour was lost at `node`.
    fn on_loss(&mut self, _now: Time, _node: NodeId, _lost: &Queued<P>, _why: Loss) {}
}

impl<P> Probe<P> for () {}

impl<P, T: Probe<P>> Probe<P> for &mut T {
    const DECODED: bool = T::DECODED;

    fn on_air(&mut self, now: Time, frame: &Frame<P>) {
        (**self).on_air(now, frame);
    }
    fn on_decoded(&mut self, now: Time, node: NodeId, frame: &Frame<P>, power: f64) {
        (**self).on_decoded(now, node, frame, power);
    }
    fn on_collision(&mut self, now: Time, node: NodeId, frame: &Frame<P>) {
        (**self).on_collision(now, node, frame);
    }
    fn on_link_failure(&mut self, now: Time, node: NodeId, next_hop: NodeId) {
        (**self).on_link_failure(now, node, next_hop);
    }
    fn on_route(&mut self, now: Time, node: NodeId, destination: NodeId, found: bool) {
        (**self).on_route(now, node, destination, found);
    }
    fn on_inject(&mut self, now: Time, node: NodeId, packet: &P) {
        (**self).on_inject(now, node, packet);
    }
    fn on_deliver(&mut self, now: Time, node: NodeId, packet: &P) {
        (**self).on_deliver(now, node, packet);
    }
    fn on_loss(&mut self, now: Time, node: NodeId, lost: &Queued<P>, why: Loss) {
        (**self).on_loss(now, node, lost, why);
    }
}
