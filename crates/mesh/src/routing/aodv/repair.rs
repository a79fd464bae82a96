//! Local repair of a broken link near the destination (RFC 3561, section 6.12), in three variants.
//!
//! A packet that has travelled more hops than its route has left is not dropped. The node keeps it,
//! keeps further packets for the same destination, and requests a new route itself. Packets in the
//! interface queue stay there. (RFC 3561 demands only that the destination is at most
//! [`MAX_REPAIR_HOPS`] away, and leaves the rest open.)
//!
//! `ns2` is the variant compiled into ns-2.35. In a static network it cannot succeed:
//! - The request carries the old sequence number. Neighbours therefore answer from their tables
//!   with that number and more hops than the broken route has, and the answer is rejected.
//! - The end of the repair is set with a time where a duration was meant: a repair at 50 s ends at
//!   about 100 s. It then takes down any current repair of that destination, without a
//!   notification.
//! - Until then, requests continue by the rules of the search and no RERR is sent: the source
//!   continues to send packets that cannot be delivered. A route under repair is even used to
//!   answer requests.
//!
//! `rfc3561` sends one request for a *newer* number, over max(old hop count, half the hops
//! travelled) + 2 hops, and waits for the answer to this request. Otherwise it drops the kept
//! packets and sends a RERR. Not implemented: the N flag, which tells the source that the repaired
//! route is longer.
//!
//! With `off`, only the source repairs a route, by a new discovery.

use super::Aodv;
use super::config::LocalRepair;
use super::message::Message;
use super::route::State;
use crate::packet::Packet;
use crate::routing::actions::Actions;
use core::cmp::Reverse;
use meshpace_core::{Duration, NodeId, Time};

/// Largest distance of the destination for a repair under `rfc3561`: MAX_REPAIR_TTL = 0.3 x
/// NET_DIAMETER (30).
const MAX_REPAIR_HOPS: u8 = 9;
/// Number of hops by which the request of a repair under `rfc3561` reaches beyond the old distance.
const LOCAL_ADD_TTL: u8 = 2;

impl<P: Packet> Aodv<P> {
    /// Tries to keep `packet`, which was lost on the link to `next_hop`, and to repair its route.
    /// Returns the packet if it cannot be kept.
    pub(super) fn repair(
        &mut self,
        now: Time,
        next_hop: NodeId,
        packet: P,
        out: &mut impl Actions<P, Message>,
    ) -> Option<P> {
        let destination = packet.destination();
        let travelled = packet.hops();
        let mut route = self.routes.entry(now, destination);
        if travelled <= route.hops {
            return Some(packet);
        }
        match self.local_repair {
            LocalRepair::Off => Some(packet),
            LocalRepair::Ns2 => {
                self.buffer.push(now, packet, out);
                self.routes.entry(now, destination).state = State::InRepair;
                self.request(now, destination, out);
                let instant = self.routes.entry(now, destination).waits_until();
                self.repairs.push(Reverse((now.saturating_add(Duration(instant.0)), destination)));
                None
            }
            LocalRepair::Rfc3561 => {
                if route.next_hop != next_hop || route.hops > MAX_REPAIR_HOPS {
                    return Some(packet);
                }
                let begins = route.state == State::Up;
                if begins {
                    let ttl = route.hops.max(travelled / 2).saturating_add(LOCAL_ADD_TTL);
                    route.state = State::InRepair;
                    route.sequence = route.sequence.wrapping_add(1);
                    route.search().start_single(now, ttl);
                    let ends = route.waits_until();
                    self.repairs.push(Reverse((ends, destination)));
                    self.send_request(now, destination, ttl, out);
                }
                self.buffer.push(now, packet, out);
                None
            }
        }
    }

    /// Handles the end time of a repair of the route to `destination`.
    pub(super) fn on_repair_timeout(&mut self, now: Time, destination: NodeId, out: &mut impl Actions<P, Message>) {
        let Some(mut route) = self.routes.get(now, destination).filter(|route| route.state == State::InRepair) else {
            return;
        };
        if self.local_repair == LocalRepair::Ns2 {
            route.go_down();
            if route.note_loss() {
                out.route_lost(destination);
            }
            return;
        }
        // The timer may belong to an earlier repair that succeeded.
        if route.waits_until() <= now {
            let sequence = route.sequence;
            route.go_down();
            if route.note_loss() {
                out.route_lost(destination);
            }
            self.report(destination, sequence, out);
            self.drop_waiting(now, destination, out);
        }
    }
}
