//! Tests that a request is forwarded once (RFC 3561, section 6.5), whatever happens between its
//! copies. A plain list of received requests is the reference.

use super::world::{Asked, Datagram};
use meshpace_core::rng::Purpose;
use meshpace_core::{NodeId, Rng, Time};
use meshpace_mesh::routing::aodv::{Message, Request};
use meshpace_mesh::routing::{self, Aodv, Protocol};
use meshpace_mesh::{AodvConfig, Body, LocalRepair};

const ME: NodeId = NodeId(350);
const S: u64 = 1_000_000_000;
/// Shortest time for which a request is remembered. Old ones are removed at multiples of it
/// (ns-2.35: BCAST_ID_SAVE).
const KEPT: u64 = 6 * S;

fn request(origin: NodeId, id: u32, now: u64) -> Request {
    let destination = NodeId(9999);
    Request {
        origin,
        origin_sequence: 2 * id,
        id,
        destination,
        destination_sequence: 0,
        hop_count: 1,
        ttl: 9,
        requested_at: Time(now),
    }
}

#[test]
fn a_request_is_passed_on_once_until_it_is_forgotten() {
    for seed in 1..=20 {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let mut node: Aodv<Datagram> =
            Aodv::new(ME, AodvConfig::repairing(LocalRepair::Off), Rng::stream(seed, Purpose::RoutingJitter, 0));
        // For each request: the time at which it is forgotten, its origin and its number.
        let mut heard: Vec<(u64, NodeId, u32)> = Vec::new();
        let (mut now, mut copies, mut again) = (0, 0, 0);
        // There are few origins, down to one, so that the latest requests are often repeated.
        let origins = 1 + rng.below(40);
        for step in 0..3000 {
            now += match rng.below(100) {
                0 => rng.below(10 * S),
                1 => KEPT - now % KEPT,
                2..40 => rng.below(S / 50),
                _ => 0,
            };
            // From time to time a packet waits, so that copies are not the only events.
            if step % 1000 == 500 {
                let packet = Datagram { id: 1, source: ME, destination: NodeId(5000), ttl: 30, hops: 0 };
                node.on_packet(Time(now), packet, None, &mut Asked::default());
            }
            while node.next_wakeup() <= Time(now) {
                node.on_timer(node.next_wakeup(), &mut Asked::default());
            }
            let (origin, id) = (NodeId(rng.below(origins) as u16 * 50), rng.below(step / 50 + 1) as u32);
            let gone = heard.len();
            heard.retain(|&(forgotten, ..)| forgotten > now);
            again += gone - heard.len();
            let first = origin != ME && heard.iter().all(|&(_, from, number)| (from, number) != (origin, id));
            if first {
                heard.push(((now + KEPT).div_ceil(KEPT) * KEPT, origin, id));
            }
            copies += u32::from(!first);
            let mut out = Asked::default();
            node.on_message(Time(now), NodeId(1), Message::Request(request(origin, id, now)), &mut out);
            let passed_on = out.sends.iter().any(
                |(body, ..)| matches!(body, Body::Routing(routing::Message::Aodv(Message::Request(sent))) if (sent.origin, sent.id) == (origin, id)),
            );
            assert_eq!(passed_on, first, "seed {seed} step {step}: {origin} number {id} at {now} ns");
        }
        assert!(copies > 100 && again > 100, "seed {seed}: {copies} copies, {again} forgotten");
    }
}
