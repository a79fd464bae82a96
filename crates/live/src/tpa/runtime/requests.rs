//! Requests for connections: a cookie first, then, if there is room, an acceptance, and a connection once the peer has it.

use super::super::cipher::Suite;
use super::super::connection::Connection;
use super::super::engine::Trains;
use super::super::half_open::HalfOpen;
use super::super::handshake::{Cookie, Kind, Opening, Protection, understand_stray};
use super::super::listener::{Backlog, count};
use super::super::noise;
use super::super::shared::Shared;
use super::super::socket::{Addresses, Received};
use super::{Worker, random, random_tag};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::{self, Flags, Segment};
use std::sync::Arc;

/// An unfinished handshake that has been so for this long gives its place to another: its cookie was good, but whoever does
/// not go on must not keep others out.
const PATIENCE: Duration = Duration::from_secs(1);

/// The answer to a request that comes to nothing.
fn refusal(request: &Opening) -> Opening {
    Opening { kind: Kind::Refusal, suite: Suite::default(), acceptor: 0, cookie: Cookie::default(), ..*request }
}

impl Worker {
    /// A datagram whose tag is zero.
    pub(super) fn on_opening(&mut self, id: u64, now: Time, received: &Received, datagram: &[u8]) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let addresses = received.addresses;
        if let Some(tag) = understand_stray(datagram) {
            let number = port.by_peer.get(&(addresses.peer, tag)).copied();
            if let Some(connection) = number.and_then(|number| self.connections.get_mut(&number)) {
                connection.on_stray(now, &mut port.out);
                self.touched.extend(number);
            }
            return;
        }
        let Some((opening, message)) = Opening::decode(datagram) else { return count(&port.counters.malformed) };
        if opening.kind == Kind::Request {
            return self.on_request(id, now, addresses, &opening, message);
        }
        let Some(number) = port.by_tag.get(&opening.opener).copied() else { return count(&port.counters.strays) };
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.addresses.peer != addresses.peer {
            return count(&port.counters.strays);
        }
        connection.on_answer(now, &opening, message, &mut port.out);
        if let Some(tag) = connection.peer_tag() {
            port.by_peer.insert((addresses.peer, tag), number);
        }
        self.touched.push(number);
    }

    fn on_request(&mut self, id: u64, now: Time, addresses: Addresses, request: &Opening, message: &[u8]) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        let flags = request.segment.flags;
        let plain = flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST);
        if !plain || request.opener == 0 || request.terms.apply(&port.options.transport).is_none() {
            return count(&port.counters.malformed);
        }
        let refusal = refusal(request);
        let Some(backlog) = port.backlog.clone().or_else(|| self.mailbox.listens(id)) else {
            count(&port.counters.strays);
            if port.may_answer(now) {
                port.out.push_bytes(addresses, &Opening { acceptor: 1, ..refusal }.encode(&[], 0));
            }
            return;
        };
        // The acceptance may have been lost.
        if let Some(number) = port.by_peer.get(&(addresses.peer, request.opener)).copied() {
            // An escort names another block: the request that it is with has come.
            let known = self.half_open.get(&number).map(|half_open| half_open.request.segment.block);
            if known == Some(request.segment.block) {
                self.repeat_acceptance(number, now);
            }
            return;
        }
        let protection = port.options.security.protection();
        if request.protection != protection || !port.options.takes(request.trains) {
            if port.may_answer(now) {
                let trains =
                    if port.options.takes(request.trains) { request.trains } else { port.options.trains.is_some() };
                port.out.push_bytes(addresses, &Opening { protection, trains, ..refusal }.encode(&[], 0));
            }
            return count(&port.counters.malformed);
        }
        let terms = request.terms.within(port.options.receive_buffer);
        let local = port.socket.local().port();
        let suite = request.suite.agreed(port.options.aes);
        if (terms, suite) != (request.terms, request.suite) || !self.baker.spend(addresses, local, request) {
            count(&port.counters.challenges);
            let asked = Opening { terms, suite, ..*request };
            let cookie = self.baker.cookie(addresses, local, &asked);
            let flags = Flags::SYN.with(Flags::ACK);
            let segment = Segment { ack_block: request.segment.block, flags, ..Segment::default() };
            let challenge = Opening { kind: Kind::Challenge, cookie, segment, ..asked };
            return port.out.push_bytes(addresses, &challenge.head(0));
        }
        self.begin(id, now, addresses, request, message, backlog);
    }

    /// A request with a good cookie: the acceptance.
    fn begin(
        &mut self,
        id: u64,
        now: Time,
        addresses: Addresses,
        request: &Opening,
        message: &[u8],
        backlog: Arc<Backlog>,
    ) {
        self.make_room(id, now);
        let Some(port) = self.ports.get_mut(&id) else { return };
        let source = addresses.peer.ip();
        if !backlog.has_room(source) || !port.sources.begin(now, source) {
            // The same request may find room later.
            self.baker.give_back(&request.cookie);
            return count(&port.counters.crowded);
        }
        let mut bytes = [0; 2];
        let (Ok(tag), Ok(())) = (random_tag(), random(&mut bytes)) else { return port.sources.finish(source, false) };
        let first_block = u16::from_be_bytes(bytes) % tpa::segment::BLOCK_NUMBERS;
        let flags = Flags::SYN.with(Flags::ACK);
        let window = match port.options.trains.as_ref().filter(|_| request.trains) {
            None => port.options.transport.receive_window,
            Some(trains) => Trains::max_window(trains, u32::from(request.terms.segment), port.options.receive_buffer),
        };
        let segment =
            Segment { block: first_block, ack_block: request.segment.block, window, flags, ..Segment::default() };
        let acceptance =
            Opening { kind: Kind::Acceptance, acceptor: tag, cookie: Cookie::default(), segment, ..*request };
        let plain = acceptance.encode(&[], 0);
        let (keys, bytes) = if request.protection == Protection::Plain {
            (None, plain)
        } else {
            match noise::answer(&port.options.security, request, message, &plain[8..]) {
                Ok((keys, message)) => (Some(keys), acceptance.encode(&message, 0)),
                Err(_) => {
                    port.sources.finish(source, false);
                    count(&port.counters.forged);
                    if port.may_answer(now) {
                        port.out.push_bytes(addresses, &refusal(request).encode(&[], 0));
                    }
                    return;
                }
            }
        };
        let number = self.mailbox.next_id();
        port.by_tag.insert(tag, number);
        port.by_peer.insert((addresses.peer, request.opener), number);
        let half_open = HalfOpen::new(id, addresses, *request, (tag, first_block), keys, bytes, backlog, now);
        self.half_open.insert(number, half_open);
        self.repeat_acceptance(number, now);
    }

    /// Sends an acceptance, for the first time or again.
    pub(super) fn repeat_acceptance(&mut self, number: u64, now: Time) {
        let Some(half_open) = self.half_open.get_mut(&number) else { return };
        if half_open.is_stale(now) {
            return self.drop_half_open(number, false);
        }
        let Some(port) = self.ports.get_mut(&half_open.port) else { return };
        port.out.push_bytes(half_open.addresses, &half_open.acceptance);
        half_open.sent(now, port.options.transport.rto.initial);
        self.deadlines.set(number, half_open.next_wakeup());
    }

    /// A datagram with the tag of a handshake that is not finished: if the peer sent it, and it acknowledges the acceptance or follows it,
    /// it is.
    pub(super) fn on_first_datagram(
        &mut self,
        number: u64,
        now: Time,
        received: &Received,
        datagram: &mut [u8],
    ) -> bool {
        let Some(half_open) = self.half_open.get(&number) else { return false };
        let id = half_open.port;
        let Some(port) = self.ports.get_mut(&id) else { return false };
        let mut cover = half_open.cover();
        let Some((segment, payload)) = cover.open(datagram) else { return false };
        if segment.flags().has(Flags::SYN) {
            // It asks for a sign of life: it takes the connection for open, and its ACK was lost. An acceptance that comes again is
            // acknowledged again.
            self.repeat_acceptance(number, now);
            return true;
        }
        if let (Some(keys), Some(log)) = (&half_open.keys, &port.options.keylog) {
            log.note(keys.cipher, [(half_open.tag, &keys.receive), (half_open.request.opener, &keys.send)]);
        }
        let addresses = half_open.addresses;
        let base = tpa::Config { close_with_peer: false, ..port.options.transport.clone() };
        let config = half_open.request.terms.apply(&base).filter(|_| port.sources.may_connect(addresses.peer.ip()));
        let Some(config) = config else {
            count(&port.counters.crowded);
            self.drop_half_open(number, false);
            return true;
        };
        let config = tpa::Config { first_block: half_open.first_block, ..config };
        let mut local = port.socket.local();
        if let Some(own) = addresses.own {
            local.set_ip(own);
        }
        let mailbox = Arc::clone(&self.mailbox);
        let mut options = Arc::clone(&port.options);
        if !half_open.request.trains && options.trains.is_some() {
            Arc::make_mut(&mut options).trains = None;
        }
        let block = half_open.request.terms.block();
        let shared = Arc::new(Shared::new(number, local, addresses.peer, block, options, mailbox));
        let mut connection = Connection::accept(half_open, cover, shared, &config, now);
        connection.on_opened(now, &segment, payload, received.ttl, &mut port.out);
        if !connection.has_opened() {
            // A reset, or what no end says at this point: a connection of that would have no timer that ends it.
            self.drop_half_open(number, false);
            return true;
        }
        let peer = half_open.request.opener;
        self.drop_half_open(number, true);
        if let Some(port) = self.ports.get_mut(&id) {
            port.by_tag.insert(connection.tag, number);
            port.by_peer.insert((addresses.peer, peer), number);
            port.connections += 1;
        }
        self.connections.insert(number, connection);
        self.touched.push(number);
        true
    }

    /// Forgets a handshake, which has become a connection or never will.
    pub(super) fn drop_half_open(&mut self, number: u64, connected: bool) {
        let Some(half_open) = self.half_open.remove(&number) else { return };
        self.deadlines.set(number, Time::NEVER);
        if !connected {
            // Whoever had to give way, or was not heard, may begin again.
            self.baker.give_back(&half_open.request.cookie);
        }
        if let Some(port) = self.ports.get_mut(&half_open.port) {
            port.by_tag.remove(&half_open.tag);
            port.by_peer.remove(&(half_open.addresses.peer, half_open.request.opener));
            port.sources.finish(half_open.addresses.peer.ip(), connected);
        }
    }

    /// Lets the oldest unfinished handshake of all go if they are too many and it has had its time.
    fn make_room(&mut self, id: u64, now: Time) {
        let Some(port) = self.ports.get(&id) else { return };
        let Some((number, oldest)) = self.half_open.first_key_value() else { return };
        if self.half_open.len() >= port.options.limits.half_open && now.since(oldest.since) >= PATIENCE {
            self.drop_half_open(*number, false);
        }
    }
}
