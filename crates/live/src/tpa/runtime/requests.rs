//! Requests for connections: a cookie first, then, if there is room, a connection.

use super::super::connection::Connection;
use super::super::handshake::{Kind, Opening};
use super::super::listener::{Backlog, count};
use super::super::shared::Shared;
use super::super::socket::Received;
use super::{Worker, random};
use meshpace_core::Time;
use meshpace_transport::tpa::{self, Flags, Segment};
use std::sync::Arc;

/// Half-open connections per port. Each lasts a round trip unless its peer gives up.
const HALF_OPEN: usize = 256;

impl Worker {
    /// A SYN for a listener.
    pub(super) fn on_request(
        &mut self,
        id: u64,
        now: Time,
        received: &Received,
        syn: &Segment,
        payload: &[u8],
        backlog: Arc<Backlog>,
    ) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let addresses = received.addresses;
        let request = Opening::decode(payload).filter(|opening| opening.kind == Kind::Request);
        let Some(request) = request else { return count(&port.counters.malformed) };
        let base = tpa::Config { close_with_peer: false, ..port.options.transport.clone() };
        let Some(mut config) = request.terms.apply(&base) else { return count(&port.counters.malformed) };
        if !self.baker.accepts(now, addresses.peer, syn.block, &request) {
            count(&port.counters.challenges);
            let cookie = self.baker.cookie(now, addresses.peer, syn.block, &request);
            let challenge = Opening { kind: Kind::Challenge, cookie, ..request };
            let flags = Flags::SYN.with(Flags::ACK);
            let answer = Segment { ack_block: syn.block, flags, ..Segment::default() };
            return port.out.push(addresses, &answer, &challenge.encode(), &[]);
        }
        let counters = Arc::clone(&port.counters);
        if !backlog.has_room() || !self.make_room(id, now) {
            return count(&counters.crowded);
        }
        let mut bytes = [0; 2];
        if random(&mut bytes).is_err() {
            return;
        }
        config.first_block = u16::from_be_bytes(bytes) % tpa::segment::BLOCK_NUMBERS;
        if let Some(old) = self.ports.get(&id).and_then(|port| port.by_peer.get(&addresses.peer)).copied() {
            self.forget(old);
        }
        let handle = self.mailbox.next_id();
        let Some(port) = self.ports.get_mut(&id) else { return };
        let block = config.segment as usize * usize::from(config.block_segments);
        let mut local = port.socket.local();
        if let Some(own) = addresses.own {
            local.set_ip(own);
        }
        let mailbox = Arc::clone(&self.mailbox);
        let shared = Arc::new(Shared::new(handle, local, addresses.peer, block, Arc::clone(&port.options), mailbox));
        let connection = Connection::accept(id, addresses, shared, &config, (syn, &request), backlog, now);
        port.by_peer.insert(addresses.peer, handle);
        self.connections.insert(handle, connection);
        self.work(handle, now);
    }

    /// Whether a port may have another half-open connection, after forgetting one that has been so for too long: its cookie
    /// was good, but whoever does not go on must not keep others out.
    fn make_room(&mut self, id: u64, now: Time) -> bool {
        let Some(port) = self.ports.get(&id) else { return false };
        let half_open = |number: &u64| Some((self.connections.get(number)?.half_open_since()?, *number));
        let (mut oldest, mut count) = (None, 0);
        for found in port.by_peer.values().filter_map(half_open) {
            count += 1;
            oldest = Some(oldest.map_or(found, |oldest: (Time, u64)| oldest.min(found)));
        }
        match oldest {
            Some((since, number)) if count >= HALF_OPEN => {
                let stale = now.since(since) >= port.options.transport.rto.initial;
                if stale {
                    self.forget(number);
                }
                stale
            }
            _ => true,
        }
    }
}
