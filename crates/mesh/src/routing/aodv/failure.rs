//! Loss of routes: link failures and RERR (RFC 3561, section 6.11).

use super::Aodv;
use super::message::{Message, Unreachable};
use super::route::{UNREACHABLE, newer};
use crate::packet::Packet;
use crate::routing::actions::{Actions, DropReason};
use meshpace_core::{Duration, NodeId, Time};

impl<P: Packet> Aodv<P> {
    /// Handles a data packet to `next_hop` that the MAC gave up.
    pub(super) fn on_lost_packet(
        &mut self,
        now: Time,
        next_hop: NodeId,
        packet: P,
        out: &mut impl Actions<P, Message>,
    ) {
        if self.routes.get(now, packet.destination()).is_none() {
            return out.drop_packet(packet, DropReason::LinkFailure);
        }
        let Some(packet) = self.repair(now, next_hop, packet, out) else {
            return;
        };
        out.drop_packet(packet, DropReason::LinkFailure);
        out.flush_queue(next_hop);
        self.sequence = self.sequence.wrapping_add(2);
        self.lose_neighbour(now, next_hop, out);
    }

    /// Marks all routes over `neighbour` as lost, and broadcasts a RERR about them.
    pub(super) fn lose_neighbour(&mut self, now: Time, neighbour: NodeId, out: &mut impl Actions<P, Message>) {
        let mut lost = Unreachable::new();
        for route in self.routes.iter_mut() {
            route.apply_purge_ticks(now);
            if route.hops != UNREACHABLE && route.next_hop == neighbour {
                route.sequence = route.sequence.wrapping_add(1);
                route.go_down();
                if route.note_loss() {
                    out.route_lost(route.destination);
                }
                if !lost.push(route.destination, route.sequence) {
                    send_error(lost, Duration::ZERO, out);
                    lost = Unreachable::new();
                    // An empty list always has room.
                    let _ = lost.push(route.destination, route.sequence);
                }
            }
        }
        self.routes.remove_precursor(neighbour);
        send_error(lost, Duration::ZERO, out);
    }

    /// Broadcasts a RERR at once: this node has no route to `destination`.
    pub(super) fn report(&mut self, destination: NodeId, sequence: u32, out: &mut impl Actions<P, Message>) {
        let mut lost = Unreachable::new();
        // An empty list always has room.
        let _ = lost.push(destination, sequence);
        send_error(lost, Duration::ZERO, out);
    }

    /// Handles a RERR of a neighbour. Routes over that neighbour that are not newer are lost, and
    /// the frames for that neighbour are removed from the queue. A RERR is sent if a lost route has
    /// precursors.
    pub(super) fn on_error(
        &mut self,
        now: Time,
        from: NodeId,
        error: &Unreachable,
        out: &mut impl Actions<P, Message>,
    ) {
        let mut lost = Unreachable::new();
        for (destination, sequence) in error.iter() {
            let Some(mut route) = self.routes.get(now, destination) else { continue };
            if route.hops == UNREACHABLE || route.next_hop != from || newer(route.sequence, sequence) {
                continue;
            }
            route.sequence = sequence;
            route.go_down();
            if route.note_loss() {
                out.route_lost(destination);
            }
            out.flush_queue(from);
            if route.clear_precursors() {
                // The list has at most as many entries as the received RERR.
                let _ = lost.push(destination, sequence);
            }
        }
        if !lost.is_empty() {
            let jitter = self.jitter();
            send_error(lost, jitter, out);
        }
    }
}

/// Broadcasts a RERR, unless it would be empty.
fn send_error<P>(lost: Unreachable, delay: Duration, out: &mut impl Actions<P, Message>) {
    if !lost.is_empty() {
        out.send(Message::Error(lost), NodeId::BROADCAST, delay);
    }
}
