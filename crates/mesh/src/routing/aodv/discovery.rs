//! Route discovery: RREQ and RREP (RFC 3561, sections 6.3 to 6.7).

use super::Aodv;
use super::config::LocalRepair;
use super::message::{Message, Reply, Request};
use super::recent::Recent;
use super::route::{ACTIVE_ROUTE_TIMEOUT, Route, State, UNREACHABLE, newest};
use super::search::{NETWORK_DIAMETER, Step};
use crate::packet::Packet;
use crate::routing::actions::{Actions, DropReason};
use meshpace_core::{Duration, NodeId, Time};

/// Lifetime of a reverse route, towards the origin of a request.
const REVERSE_ROUTE_LIFE: Duration = Duration::from_secs(6);
/// Lifetime of a route that its destination announces, in seconds.
const MY_ROUTE_TIMEOUT: u32 = 10;
/// Largest jitter of forwarded broadcasts, in seconds.
const BROADCAST_JITTER: f64 = 0.01;
/// Time between buffered packets when they are released. The spacing prevents that they displace
/// each other while ARP resolves the next hop.
pub(super) const BUFFER_SPACING: Duration = Duration::from_millis(10);

impl<P: Packet> Aodv<P> {
    /// Sends a request for a route to `destination`, which has an entry, if the search permits it.
    /// If the search has failed, its hold-down begins and the waiting packets are dropped.
    pub(super) fn request(&mut self, now: Time, destination: NodeId, out: &mut impl Actions<P, Message>) {
        let mut route = self.routes.entry(now, destination);
        if route.state == State::Up {
            return;
        }
        let lost_hops = route.lost_hops;
        let is_new = route.search().wait_until() == Time::ZERO;
        match route.search().step(now, lost_hops) {
            Step::Wait => {}
            Step::GiveUp => self.drop_waiting(now, destination, out),
            Step::Request { ttl } => {
                if is_new {
                    out.search_began(destination);
                }
                self.send_request(now, destination, ttl, out);
            }
        }
    }

    /// Broadcasts a new request with time to live `ttl`.
    pub(super) fn send_request(&mut self, now: Time, destination: NodeId, ttl: u8, out: &mut impl Actions<P, Message>) {
        let mut route = self.routes.entry(now, destination);
        route.expires = Time::ZERO;
        let destination_sequence = route.sequence;
        self.sequence = self.sequence.wrapping_add(2);
        let request = Request {
            origin: self.me,
            origin_sequence: self.sequence,
            id: self.next_request,
            destination,
            destination_sequence,
            hop_count: 1,
            ttl,
            requested_at: now,
        };
        self.next_request = self.next_request.wrapping_add(1);
        self.neighbours.note_broadcast(now);
        out.send(Message::Request(request), NodeId::BROADCAST, Duration::ZERO);
    }

    /// Drops all packets that wait for `destination`.
    pub(super) fn drop_waiting(&mut self, now: Time, destination: NodeId, out: &mut impl Actions<P, Message>) {
        while let Some(packet) = self.buffer.pop(now, destination, out) {
            out.drop_packet(packet, DropReason::NoRoute);
        }
    }

    /// True if this request originates from this node or was handled before. Otherwise the request
    /// is noted as handled.
    #[inline]
    pub(super) fn has_handled(&mut self, now: Time, request: &Request) -> bool {
        if request.origin == self.me {
            return true;
        }
        if self.seen.sweep(now) {
            self.recent = Recent::NONE;
            // Tables grow only by requests, so they are swept here.
            let (buffer, wanted_destinations) = (&self.buffer, &self.wanted_destinations);
            self.routes
                .sweep(now, |destination| buffer.waits_for(destination) || wanted_destinations.contains(&destination));
        }
        let (origin, id) = (request.origin, request.id);
        self.recent.holds(origin, id) || !self.seen.first_time(now, origin, id)
    }

    /// Handles the first copy of a request, which a neighbour originated or forwarded.
    pub(super) fn on_request(
        &mut self,
        now: Time,
        from: NodeId,
        mut request: Request,
        out: &mut impl Actions<P, Message>,
    ) {
        self.learn_reverse_route(now, from, &request, out);
        if request.destination == self.me {
            // Another node may have raised the number since.
            let sequence = newest(self.sequence, request.destination_sequence).wrapping_add(1);
            self.sequence = sequence.wrapping_add(sequence & 1);
            return self.send_reply(now, &request, 1, self.sequence, MY_ROUTE_TIMEOUT, out);
        }
        let accepts_repairing = self.local_repair == LocalRepair::Ns2;
        if let Some(route) = self.routes.get(now, request.destination) {
            if usable(&route, accepts_repairing)
                && newest(route.sequence, request.destination_sequence) == route.sequence
            {
                let (hops, sequence, next_hop) = (route.hops, route.sequence, route.next_hop);
                let lifetime = whole_seconds(now, route.expires);
                if let Some(mut reverse) =
                    self.routes.get(now, request.origin).filter(|reverse| reverse.hops != UNREACHABLE)
                {
                    reverse.add_precursor(next_hop);
                    let towards_origin = reverse.next_hop;
                    self.routes.entry(now, request.destination).add_precursor(towards_origin);
                }
                return self.send_reply(now, &request, hops.saturating_add(1), sequence, lifetime, out);
            }
            request.destination_sequence = newest(route.sequence, request.destination_sequence);
        }
        if request.ttl > 1 {
            request.ttl -= 1;
            request.hop_count = request.hop_count.saturating_add(1);
            let jitter = self.jitter();
            self.neighbours.note_broadcast(now);
            out.send(Message::Request(request), NodeId::BROADCAST, jitter);
        }
    }

    /// Learns the reverse route to the origin of a request, over the neighbour that sent it.
    fn learn_reverse_route(&mut self, now: Time, from: NodeId, request: &Request, out: &mut impl Actions<P, Message>) {
        let mut route = self.routes.entry(now, request.origin);
        route.expires = route.expires.max(now + REVERSE_ROUTE_LIFE);
        if !route.is_replaced_by(request.origin_sequence, request.hop_count) {
            return;
        }
        let expires = route.expires;
        route.set(request.origin_sequence, request.hop_count, from, expires);
        if route.waits_until() > Time::ZERO {
            // This node has requested a route to the origin itself, so the route is also used in
            // the forward direction.
            route.search().note_route(request.hop_count);
            route.expires = now + ACTIVE_ROUTE_TIMEOUT;
        }
        self.send_waiting(now, request.origin, Duration::ZERO, out);
    }

    /// Answers `request` along the reverse route.
    fn send_reply(
        &mut self,
        now: Time,
        request: &Request,
        hop_count: u8,
        destination_sequence: u32,
        lifetime: u32,
        out: &mut impl Actions<P, Message>,
    ) {
        let reply = Reply {
            origin: request.origin,
            destination: request.destination,
            destination_sequence,
            hop_count,
            ttl: NETWORK_DIAMETER,
            lifetime,
            requested_at: request.requested_at,
        };
        // An older request can arrive after the reverse route that a newer request taught was lost.
        // The reply then has no destination.
        if let Some(reverse) = self.routes.get(now, request.origin).filter(|reverse| reverse.hops != UNREACHABLE) {
            out.send(Message::Reply(reply), reverse.next_hop, Duration::ZERO);
        }
    }

    /// Handles a route reply of a neighbour. If the route is accepted, the reply is forwarded
    /// towards the node that requested it.
    pub(super) fn on_reply(&mut self, now: Time, from: NodeId, mut reply: Reply, out: &mut impl Actions<P, Message>) {
        let mut route = self.routes.entry(now, reply.destination);
        if !route.is_replaced_by(reply.destination_sequence, reply.hop_count) {
            return;
        }
        let expires = now + Duration::from_secs(u64::from(reply.lifetime));
        route.set(reply.destination_sequence, reply.hop_count, from, expires);
        route.search().note_route(reply.hop_count);
        if reply.origin == self.me {
            route
                .search()
                .note_latency(now.since(reply.requested_at).as_secs_f64() / f64::from(reply.hop_count.max(1)));
        }
        self.send_waiting(now, reply.destination, BUFFER_SPACING, out);
        if reply.origin == self.me {
            return;
        }
        let accepts_repairing = self.local_repair == LocalRepair::Ns2;
        let Some(mut reverse) = self.routes.get(now, reply.origin).filter(|route| usable(route, accepts_repairing))
        else {
            return;
        };
        let next_hop = reverse.next_hop;
        if reply.ttl > 1 {
            reply.ttl -= 1;
            reply.hop_count = reply.hop_count.saturating_add(1);
            reverse.expires = now + ACTIVE_ROUTE_TIMEOUT;
            out.send(Message::Reply(reply), next_hop, Duration::ZERO);
        }
        self.routes.entry(now, reply.destination).add_precursor(next_hop);
    }

    /// Notifies the transport of a new route to `destination`, and sends all packets that wait for
    /// it, `spacing` apart, the first at once.
    pub(super) fn send_waiting(
        &mut self,
        now: Time,
        destination: NodeId,
        spacing: Duration,
        out: &mut impl Actions<P, Message>,
    ) {
        let mut delay = Duration::ZERO;
        let mut route = self.routes.entry(now, destination);
        if core::mem::take(&mut route.loss_notified) {
            // The next loss is notified again, even if no packet was sent meanwhile.
            route.used_here = true;
            out.route_found(destination);
        }
        self.wanted_destinations.retain(|&wanted| wanted != destination);
        while let Some(packet) = self.buffer.pop(now, destination, out) {
            let mut route = self.routes.entry(now, destination);
            route.used_here |= packet.source() == self.me;
            route.expires = now + ACTIVE_ROUTE_TIMEOUT;
            out.forward(packet, route.next_hop, delay);
            delay = delay + spacing;
        }
    }

    /// Draws the delay of a broadcast that several neighbours may repeat at the same time.
    pub(super) fn jitter(&mut self) -> Duration {
        Duration::from_secs_f64(self.rng.uniform() * BROADCAST_JITTER)
    }
}

/// True if routing messages may rely on `route`. ns-2 tests only the hop count, which a route under
/// repair keeps.
fn usable(route: &Route, accepts_repairing: bool) -> bool {
    route.state == State::Up || (accepts_repairing && route.state == State::InRepair)
}

/// Remaining lifetime in whole seconds, as an intermediate node announces it. A route under repair
/// expires at 0. ns-2 then converts a negative number to an unsigned number of 32 bits, which on
/// common machines gives a lifetime of 2^32 s less the time. This is copied, because it determines
/// how long a false route lasts.
fn whole_seconds(now: Time, expires: Time) -> u32 {
    const SECOND: u64 = 1_000_000_000;
    if expires >= now {
        (expires.since(now).0 / SECOND) as u32
    } else {
        ((now.since(expires).0 / SECOND) as u32).wrapping_neg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_life_is_cut_to_whole_seconds_and_wraps_below_zero() {
        let at = |seconds: f64| Time::ZERO + Duration::from_secs_f64(seconds);
        assert_eq!(whole_seconds(at(3.2), at(13.1)), 9);
        assert_eq!(whole_seconds(at(3.2), at(3.0)), 0);
        assert_eq!(whole_seconds(at(50.3), Time::ZERO), u32::MAX - 49);
    }
}
