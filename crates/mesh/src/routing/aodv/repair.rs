//! Local repair of a broken link near the destination (RFC 3561, section 6.12), in three kinds.
//!
//! A packet that has travelled more hops than its route has left is not dropped: the node keeps it, keeps what arrives for the
//! same destination, and asks for a new route itself. What is in the interface queue stays there. (RFC 3561 asks only that the
//! destination be at most [`MAX_REPAIR_HOPS`] away and leaves the rest open.)
//!
//! `ns2` is what is compiled into ns-2.35, where in a static network it cannot succeed:
//! - the request carries the old sequence number, so neighbours answer from their caches with that number and more hops than
//!   the broken route has, and the answer is refused;
//! - the end of the repair is set with an instant where a span was meant: a repair at 50 s ends at about 100 s. It then takes
//!   down whatever repair of that destination is going on, without telling anybody;
//! - until then the requests go on by the rules of the search and no RERR is sent: the source continues to send packets that cannot be
//!   delivered. A route under repair even serves to answer requests.
//!
//! `rfc3561` asks once for a *newer* number, over max(old hop count, half the hops travelled) + 2 hops, waits for the answer
//! of that one request, and otherwise drops what it kept and sends a RERR. Not built: the N flag, which tells the source that
//! the repaired route is longer.
//!
//! With `off` only the source repairs, by a new discovery.

use super::Aodv;
use super::config::LocalRepair;
use super::message::Message;
use super::route::State;
use crate::packet::Packet;
use crate::routing::actions::Actions;
use core::cmp::Reverse;
use meshpace_core::{Duration, NodeId, Time};

/// The farthest destination of a repair under `rfc3561`: MAX_REPAIR_TTL = 0.3 x NET_DIAMETER (30).
const MAX_REPAIR_HOPS: u8 = 9;
/// Hops that the request of a repair under `rfc3561` reaches beyond the old distance.
const LOCAL_ADD_TTL: u8 = 2;

impl<P: Packet> Aodv<P> {
    /// Tries to keep `packet`, lost on the way to `next_hop`, and to repair its route; hands it back if that is not to be.
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
                    route.search().ask_once(now, ttl);
                    let ends = route.waits_until();
                    self.repairs.push(Reverse((ends, destination)));
                    self.send_request(now, destination, ttl, out);
                }
                self.buffer.push(now, packet, out);
                None
            }
        }
    }

    /// The end set for a repair of the route to `destination` has come.
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
        // The timer may be that of an earlier repair, which succeeded.
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
