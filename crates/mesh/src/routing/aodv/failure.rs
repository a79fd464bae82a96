//! Losing routes: link failures and RERR (RFC 3561, section 6.11).

use super::Aodv;
use super::message::{Message, Unreachable};
use super::route::{UNREACHABLE, newer};
use crate::packet::Packet;
use crate::routing::actions::{Actions, DropReason};
use meshpace_core::{Duration, NodeId, Time};

impl<P: Packet> Aodv<P> {
    /// The MAC gave up a data packet to `next_hop`.
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

    /// Brings down every route over `neighbour` and says so.
    pub(super) fn lose_neighbour(&mut self, now: Time, neighbour: NodeId, out: &mut impl Actions<P, Message>) {
        let mut lost = Unreachable::new();
        for route in self.routes.iter_mut() {
            route.settle(now);
            if route.hops != UNREACHABLE && route.next_hop == neighbour {
                route.sequence = route.sequence.wrapping_add(1);
                route.go_down();
                if route.note_loss() {
                    out.route_lost(route.destination);
                }
                if !lost.push(route.destination, route.sequence) {
                    send_error(lost, Duration::ZERO, out);
                    lost = Unreachable::new();
                    // An empty list has room.
                    let _ = lost.push(route.destination, route.sequence);
                }
            }
        }
        self.routes.remove_precursor(neighbour);
        send_error(lost, Duration::ZERO, out);
    }

    /// Tells the neighbours at once that this node has no route to `destination`.
    pub(super) fn report(&mut self, destination: NodeId, sequence: u32, out: &mut impl Actions<P, Message>) {
        let mut lost = Unreachable::new();
        // An empty list has room.
        let _ = lost.push(destination, sequence);
        send_error(lost, Duration::ZERO, out);
    }

    /// A neighbour lost routes: those that lead over it and are not newer are lost here too, with what waits in the queue
    /// for that neighbour. Who may use them is told.
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
                // No more entries than in the error that was received.
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
