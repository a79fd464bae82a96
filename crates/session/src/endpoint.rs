//! A port without its socket: assigns datagrams to connections, answers requests for connections,
//! and keeps unfinished handshakes.
//!
//! A request is answered with a cookie first. A request that shows the cookie gets an acceptance if
//! there is room. The connection is created once its peer has shown that it has the acceptance.

use super::addresses::Addresses;
use super::cipher::Suite;
use super::cookie::CookieKeys;
use super::counters::{Counters, count};
use super::engine::{AnySegment, Trains};
use super::framing::{Content, Framing};
use super::half_open::HalfOpen;
use super::handshake::{
    Cookie, InnerTransport, Kind, Opening, Protection, STRAY_BYTES, Tag, stray, tag_of, understand_stray,
};
use super::host::{Host, Randomness, random};
use super::noise;
use super::outbox::Outbox;
use super::seal::Keys;
use super::settings::Settings;
use super::sources::{Granted, Sources};
use super::unpredictable::Unpredictable;
use meshpace_core::{Deadlines, Duration, Time};
use meshpace_transport::tpa::{self, Flags, Segment};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Maximum number of answers per second to datagrams of unknown connections, per port. The kernel
/// answers as many datagrams to unknown ports (net.ipv4.icmp_ratelimit), so nobody can use a port
/// to flood others.
const ANSWERS_PER_SECOND: u32 = 1000;

/// Handshake or connection that a tag belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    /// The unfinished handshake of this number.
    HalfOpen(u64),
    /// The connection of this number.
    Connection(u64),
}

/// Handshake or connection that a datagram is for.
#[derive(Debug)]
pub enum Route<'a> {
    /// There is nothing more to do with the datagram.
    Done,
    /// The datagram has the tag of this connection, which has to check whether its peer sent it.
    Segment(u64, &'a mut [u8]),
    /// An answer to this connection's request, with Noise's message.
    Answer(u64, Box<Opening>, &'a [u8]),
    /// The sender says that it does not know this connection.
    Stray(u64),
    /// The datagram finishes a handshake.
    Accepted(Box<Accepted<'a>>),
}

/// A handshake whose peer has shown that it has our tag. [`Endpoint::finish`] has to follow.
#[derive(Debug)]
pub struct Accepted<'a> {
    /// The number of the handshake.
    pub number: u64,
    /// Addresses of both ends.
    pub addresses: Addresses,
    /// Our tag.
    pub tag: Tag,
    /// The transport, as agreed.
    pub config: tpa::Config,
    /// The framing of the connection's datagrams.
    pub(crate) framing: Framing,
    /// Source of the connection's numbers that its peer cannot predict.
    pub(crate) unpredictable: Unpredictable,
    /// The peer's public key. `None` if it is not known.
    pub peer_key: Option<[u8; 32]>,
    /// The peer's request.
    pub request: Opening,
    /// The segment in the datagram that has shown our tag.
    pub(crate) segment: AnySegment,
    /// Payload of that segment.
    pub(crate) payload: &'a [u8],
}

/// Number of answers to unknown peers that may still leave in this second.
#[derive(Debug)]
struct Answers {
    left: u32,
    /// Start of this second.
    since: Time,
}

impl Answers {
    /// True if an answer may leave now. The answer is then counted.
    fn take(&mut self, now: Time) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            (self.left, self.since) = (ANSWERS_PER_SECOND, now);
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

/// A port.
#[derive(Debug)]
pub struct Endpoint {
    local: SocketAddr,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    cookies: CookieKeys,
    /// Handshakes and connections by our tag.
    by_tag: BTreeMap<Tag, Holder>,
    /// Handshakes and connections by the peer's address and tag. Connections whose peer's tag is
    /// not known yet are missing.
    by_peer: BTreeMap<(SocketAddr, Tag), Holder>,
    /// Unfinished handshakes, the oldest first. They are boxed because ascending keys leave the
    /// nodes of the map half empty.
    half_open: BTreeMap<u64, Box<HalfOpen>>,
    /// The number of the next handshake.
    next: u64,
    /// Times at which the acceptances of the unfinished handshakes are repeated.
    deadlines: Deadlines,
    sources: Sources,
    answers: Answers,
}

/// The refusal that answers this request.
fn refusal(request: &Opening) -> Opening {
    Opening { kind: Kind::Refusal, suite: Suite::default(), acceptor: 0, cookie: Cookie::default(), ..*request }
}

/// Answer to a request with a valid cookie.
enum Answer {
    /// The connection may begin: its keys, the peer's public key where it is known, and the
    /// datagram of the acceptance.
    Accepted { keys: Option<Keys>, peer_key: Option<[u8; 32]>, bytes: Vec<u8> },
    /// The holder of this key is not admitted. The datagram proves that the refusal comes from the
    /// listener.
    NotAdmitted { bytes: Vec<u8> },
    /// Noise's message was made with other keys, or does not come from the peer.
    Forged,
}

/// Answers `request` with Noise's `message`. The answer is `acceptance` if the peer is admitted.
fn answer(settings: &Settings, request: &Opening, message: &[u8], acceptance: &Opening, host: &mut dyn Host) -> Answer {
    if request.protection == Protection::Plain {
        return Answer::Accepted { keys: None, peer_key: None, bytes: acceptance.encode(&[], 0) };
    }
    let Ok(heard) = noise::hear(&settings.security, request, message, host) else { return Answer::Forged };
    let peer_key = heard.peer();
    let is_admitted = peer_key.is_none_or(|key| settings.admits(&key));
    let said = if is_admitted { *acceptance } else { refusal(request) };
    match heard.answer(&said.repeated()) {
        Ok((keys, message)) if is_admitted => {
            Answer::Accepted { keys: Some(keys), peer_key, bytes: said.encode(&message, 0) }
        }
        Ok((_, message)) => Answer::NotAdmitted { bytes: said.encode(&message, 0) },
        Err(_) => Answer::Forged,
    }
}

/// Draws a tag and a first block number that nobody can guess.
///
/// # Errors
///
/// The host has no random numbers.
pub fn random_names(randomness: &mut (impl Randomness + ?Sized)) -> io::Result<(Tag, u16)> {
    // Tag zero has another meaning. A random tag is zero once in 2^64 times.
    let tag = Tag::from_be_bytes(random(randomness)?).max(1);
    Ok((tag, u16::from_be_bytes(random(randomness)?) % tpa::segment::BLOCK_NUMBERS))
}

impl Endpoint {
    /// Creates the port at the address `local`.
    ///
    /// # Errors
    ///
    /// The host has no random numbers.
    pub fn new(
        now: Time,
        local: SocketAddr,
        settings: Arc<Settings>,
        counters: Arc<Counters>,
        randomness: &mut (impl Randomness + ?Sized),
    ) -> io::Result<Endpoint> {
        Ok(Endpoint {
            local,
            cookies: CookieKeys::new(now, [random(randomness)?, random(randomness)?]),
            by_tag: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            half_open: BTreeMap::new(),
            next: 0,
            deadlines: Deadlines::default(),
            sources: Sources::new(settings.limits),
            answers: Answers { left: ANSWERS_PER_SECOND, since: now },
            settings,
            counters,
        })
    }

    /// The port's own address.
    #[inline]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The port's counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of unfinished handshakes.
    pub fn unfinished(&self) -> usize {
        self.half_open.len()
    }

    /// Number of places that sources have taken: of unfinished handshakes, and of connections.
    pub fn in_use(&self) -> (usize, usize) {
        self.sources.in_use()
    }

    /// Number of connections that count for the source of this address.
    pub fn connections_of(&self, address: IpAddr) -> usize {
        self.sources.connections_of(address)
    }

    /// Handles a datagram that has arrived between `addresses`.
    pub fn on_datagram<'a>(
        &mut self,
        now: Time,
        addresses: Addresses,
        datagram: &'a mut [u8],
        host: &mut dyn Host,
        out: &mut Outbox,
    ) -> Route<'a> {
        let tag = match tag_of(datagram) {
            None => {
                count(&self.counters.malformed);
                return Route::Done;
            }
            Some(0) => return self.on_opening(now, addresses, datagram, host, out),
            Some(tag) => tag,
        };
        match self.by_tag.get(&tag).copied() {
            Some(Holder::Connection(id)) => Route::Segment(id, datagram),
            Some(Holder::HalfOpen(number)) => self.on_first_datagram(number, addresses, datagram, host),
            None => {
                count(&self.counters.strays);
                if datagram.len() >= STRAY_BYTES && self.answers.take(now) {
                    out.answer_bytes(addresses, &stray(tag));
                }
                Route::Done
            }
        }
    }

    /// Handles a datagram whose tag is zero.
    fn on_opening<'a>(
        &mut self,
        now: Time,
        addresses: Addresses,
        datagram: &'a [u8],
        host: &mut dyn Host,
        out: &mut Outbox,
    ) -> Route<'a> {
        if let Some(tag) = understand_stray(datagram) {
            return match self.by_peer.get(&(addresses.peer, tag)) {
                Some(Holder::Connection(id)) => Route::Stray(*id),
                _ => Route::Done,
            };
        }
        let Some((opening, message)) = Opening::decode(datagram) else {
            count(&self.counters.malformed);
            return Route::Done;
        };
        if opening.kind == Kind::Request {
            self.on_request(now, addresses, &opening, message, host, out);
            return Route::Done;
        }
        match self.by_tag.get(&opening.opener) {
            Some(Holder::Connection(id)) => Route::Answer(*id, Box::new(opening), message),
            Some(Holder::HalfOpen(_)) => Route::Done,
            None => {
                count(&self.counters.strays);
                Route::Done
            }
        }
    }

    fn on_request(
        &mut self,
        now: Time,
        addresses: Addresses,
        request: &Opening,
        message: &[u8],
        host: &mut dyn Host,
        out: &mut Outbox,
    ) {
        let flags = request.segment.flags;
        let plain = flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST);
        if !plain || request.opener == 0 || request.terms.apply(&self.settings.transport).is_none() {
            return count(&self.counters.malformed);
        }
        let refusal = refusal(request);
        if !host.listens() {
            count(&self.counters.strays);
            if self.answers.take(now) {
                out.answer_bytes(addresses, &Opening { acceptor: 1, ..refusal }.encode(&[], 0));
            }
            return;
        }
        // The peer repeats its request, so the acceptance may have been lost.
        if let Some(holder) = self.by_peer.get(&(addresses.peer, request.opener)).copied()
            && !self.begins_with_smaller(holder, request)
            && !self.ends_before_an_answer(now, holder, request)
        {
            // An escort names another block number and gets no answer here: the request that it
            // accompanies has arrived.
            if let Holder::HalfOpen(number) = holder
                && self.half_open.get(&number).map(|known| known.request.segment.block) == Some(request.segment.block)
            {
                self.repeat_acceptance(number, now, out);
            }
            return;
        }
        let (protection, takes) = (self.settings.security.protection(), self.settings.takes(request.trains));
        if request.protection != protection || !takes {
            if self.answers.take(now) {
                let trains = if takes { request.trains } else { self.settings.trains.is_some() };
                out.answer_bytes(addresses, &Opening { protection, trains, ..refusal }.encode(&[], 0));
            }
            return count(&self.counters.malformed);
        }
        self.rotate_keys(now, host);
        let terms = request.terms.within(self.settings.receive_buffer);
        let (at, key) = ((addresses, self.local.port()), noise::key_of(message));
        let suite = request.suite.agreed(self.settings.aes);
        if (terms, suite) != (request.terms, request.suite) || !self.cookies.spend(at, request, key) {
            count(&self.counters.challenges);
            let asked = Opening { terms, suite, ..*request };
            let cookie = self.cookies.cookie(at, &asked, key);
            let flags = Flags::SYN.with(Flags::ACK);
            let segment = Segment { ack_block: request.segment.block, flags, ..Segment::default() };
            let challenge = Opening { kind: Kind::Challenge, cookie, segment, ..asked };
            return out.answer_bytes(addresses, &challenge.head(0));
        }
        self.begin(now, addresses, request, message, host, out);
    }

    /// True if a repeated request of an unfinished handshake asks for smaller segments than were
    /// accepted. Its peer has received no acceptance, now tries for a narrower path, and no longer
    /// takes an acceptance with the former size. A request for larger segments is only late.
    fn begins_with_smaller(&self, holder: Holder, request: &Opening) -> bool {
        let Holder::HalfOpen(number) = holder else { return false };
        let asked = request.terms.within(self.settings.receive_buffer);
        let known = self.half_open.get(&number).map(|known| &known.request);
        known.is_some_and(|known| known.segment.block == request.segment.block && asked.segment < known.terms.segment)
    }

    /// True if the unfinished handshake of a request would be given up before the answer to another
    /// acceptance can be expected. The peer would then take a connection for open that nobody here
    /// knows any more. The handshake is given up now, and the request counts as a new one, which
    /// has to show a valid cookie.
    fn ends_before_an_answer(&mut self, now: Time, holder: Holder, request: &Opening) -> bool {
        let Holder::HalfOpen(number) = holder else { return false };
        let wait = self.settings.transport.rto.initial;
        let ends = self.half_open.get(&number).is_some_and(|known| {
            known.request.segment.block == request.segment.block && known.is_stale_within(now, wait)
        });
        if ends {
            self.finish(number, None);
        }
        ends
    }

    fn rotate_keys(&mut self, now: Time, host: &mut dyn Host) {
        if !self.cookies.is_due(now) {
            return;
        }
        // Without random numbers the old keys stay in use.
        if let (Ok(one), Ok(other)) = (random(host), random(host)) {
            self.cookies.rotate(now, [one, other]);
        }
    }

    /// Accepts a request that has shown a valid cookie, if there is room.
    fn begin(
        &mut self,
        now: Time,
        addresses: Addresses,
        request: &Opening,
        message: &[u8],
        host: &mut dyn Host,
        out: &mut Outbox,
    ) {
        let source = addresses.peer.ip();
        let number = self.next;
        let granted = if host.has_room(source) { self.sources.begin(now, number, source) } else { None };
        let Some(Granted { instead_of }) = granted else {
            // The same request may find room later.
            self.cookies.give_back(&request.cookie);
            return count(&self.counters.crowded);
        };
        self.next += 1;
        instead_of.into_iter().for_each(|number| self.finish(number, None));
        let Ok((tag, first_block)) = random_names(host) else { return self.sources.finish(number, source, false) };
        let flags = Flags::SYN.with(Flags::ACK);
        let settings = &self.settings;
        let window = match settings.trains.as_ref().filter(|_| request.trains) {
            None => settings.transport.receive_window,
            Some(trains) => Trains::max_window(trains, u32::from(request.terms.segment), settings.receive_buffer),
        };
        let (ack_block, congested) = (request.segment.block, request.inner() == InnerTransport::Bbr);
        let segment = Segment { block: first_block, ack_block, window, flags, congested, ..Segment::default() };
        let acceptance =
            Opening { kind: Kind::Acceptance, acceptor: tag, cookie: Cookie::default(), segment, ..*request };
        let (keys, peer_key, bytes) = match answer(settings, request, message, &acceptance, host) {
            Answer::Accepted { keys, peer_key, bytes } => (keys, peer_key, bytes),
            refused => {
                self.sources.finish(number, source, false);
                // The peer can try again with the same cookie. The message may come from an
                // attacker, who can show the cookie of a request that he reads. The answer may also
                // be lost.
                self.cookies.give_back(&request.cookie);
                return self.refuse(now, addresses, request, refused, out);
            }
        };
        // As far as can be known the request comes from the peer. So its earlier handshake, with
        // larger segments, is over.
        if let Some(Holder::HalfOpen(before)) = self.by_peer.get(&(addresses.peer, request.opener)).copied() {
            self.finish(before, None);
        }
        self.by_tag.insert(tag, Holder::HalfOpen(number));
        self.by_peer.insert((addresses.peer, request.opener), Holder::HalfOpen(number));
        let keys = (keys, peer_key, self.settings.key_life);
        let half_open = HalfOpen::new(addresses, *request, (tag, first_block), keys, bytes, now);
        self.half_open.insert(number, Box::new(half_open));
        self.repeat_acceptance(number, now, out);
    }

    /// Tells the sender of a request with a valid cookie that it gets no connection.
    fn refuse(&mut self, now: Time, addresses: Addresses, request: &Opening, refused: Answer, out: &mut Outbox) {
        let bytes = match refused {
            Answer::Accepted { .. } => return,
            Answer::NotAdmitted { bytes } => {
                count(&self.counters.refused);
                bytes
            }
            Answer::Forged => {
                count(&self.counters.forged);
                // Without known keys there are no keys that could fail to fit. So the message does
                // not come from the peer.
                if !self.settings.security.knows_peer() {
                    return;
                }
                refusal(request).encode(&[], 0)
            }
        };
        if self.answers.take(now) {
            out.push_bytes(addresses, &bytes);
        }
    }

    /// Sends an acceptance, for the first time or again.
    fn repeat_acceptance(&mut self, number: u64, now: Time, out: &mut Outbox) {
        let Some(half_open) = self.half_open.get_mut(&number) else { return };
        if half_open.is_stale(now) {
            return self.finish(number, None);
        }
        half_open.send(now, self.settings.transport.rto.initial, out);
        self.deadlines.set(number, half_open.next_wakeup());
    }

    /// Handles a datagram with the tag of an unfinished handshake. The handshake is finished if the
    /// peer sent the datagram and a segment is in it: an ACK of the acceptance, or any later
    /// segment, even a probe.
    ///
    /// An encrypted datagram may come from another address: the peer has moved since its request.
    /// The connection begins at the address that returned the cookie, and moves like any other
    /// connection when the next datagram comes from the new address. Without keys nothing shows
    /// that the peer sent the datagram, and there are no moves.
    fn on_first_datagram<'a>(
        &mut self,
        number: u64,
        addresses: Addresses,
        datagram: &'a mut [u8],
        host: &mut dyn Host,
    ) -> Route<'a> {
        let may_move = |known: &HalfOpen| known.keys.is_some() || known.addresses.peer == addresses.peer;
        let known = self.half_open.get(&number).filter(|known| may_move(known));
        let Some(half_open) = known else {
            count(&self.counters.forged);
            return Route::Done;
        };
        let mut framing = half_open.framing();
        let Some(Content::Segment(segment, payload)) = framing.open(datagram) else {
            count(&self.counters.forged);
            return Route::Done;
        };
        if let Some(keys) = &half_open.keys {
            host.note_keys(keys.cipher, [(half_open.tag, &keys.receive), (half_open.request.opener, &keys.send)]);
        }
        let HalfOpen { addresses, request, tag, first_block, peer_key, .. } = **half_open;
        let base = tpa::Config { close_with_peer: false, ..self.settings.transport.clone() };
        let config = request.terms.apply(&base).filter(|_| self.sources.may_connect(addresses.peer.ip()));
        let Some(config) = config else {
            count(&self.counters.crowded);
            self.finish(number, None);
            return Route::Done;
        };
        // Without random numbers the peer has to repeat the datagram.
        let Ok(unpredictable) = Unpredictable::new(host) else { return Route::Done };
        let config = tpa::Config { first_block, ..config };
        Route::Accepted(Box::new(Accepted {
            number,
            addresses,
            tag,
            config,
            framing,
            unpredictable,
            peer_key,
            request,
            segment,
            payload,
        }))
    }

    /// Ends a handshake. `connection` is the number of the connection that it has become; `None` if
    /// it will never become one.
    pub fn finish(&mut self, number: u64, connection: Option<u64>) {
        let Some(half_open) = self.half_open.remove(&number) else { return };
        self.deadlines.set(number, Time::NEVER);
        let peer = (half_open.addresses.peer, half_open.request.opener);
        match connection {
            Some(id) => {
                self.by_tag.insert(half_open.tag, Holder::Connection(id));
                self.by_peer.insert(peer, Holder::Connection(id));
            }
            None => {
                // A peer whose handshake gave way to another, or who was not heard, may begin
                // again.
                self.cookies.give_back(&half_open.request.cookie);
                self.by_tag.remove(&half_open.tag);
                self.by_peer.remove(&peer);
            }
        }
        self.sources.finish(number, half_open.addresses.peer.ip(), connection.is_some());
    }

    /// Registers connection `id`, which is being opened from here with this tag of ours.
    pub fn connect(&mut self, tag: Tag, id: u64) {
        self.by_tag.insert(tag, Holder::Connection(id));
    }

    /// Registers the tag of the peer of connection `id`, which was opened from here.
    pub fn name_peer(&mut self, peer: SocketAddr, tag: Tag, id: u64) {
        self.by_peer.insert((peer, tag), Holder::Connection(id));
    }

    /// Moves connection `id` from one address of its peer, whose tag is `peer_tag`, to another
    /// address where the peer has answered. `has_place` says whether the connection counts among
    /// those of its source.
    ///
    /// At the new address the connection counts like a new one. Returns false, and moves nothing,
    /// if that source has as many connections as it may.
    pub fn relocate(
        &mut self,
        now: Time,
        (from, to): (SocketAddr, SocketAddr),
        peer_tag: Option<Tag>,
        id: u64,
        has_place: bool,
    ) -> bool {
        if !self.sources.relocate(now, has_place.then_some(from.ip()), to.ip()) {
            count(&self.counters.crowded);
            return false;
        }
        count(&self.counters.moves);
        if let Some(tag) = peer_tag {
            self.by_peer.remove(&(from, tag));
            self.by_peer.insert((to, tag), Holder::Connection(id));
        }
        true
    }

    /// Forgets a connection that has these tags, ours and the peer's. `has_place` says whether it
    /// counts among the connections of its source.
    pub fn forget(&mut self, tag: Tag, peer: SocketAddr, peer_tag: Option<Tag>, has_place: bool) {
        self.by_tag.remove(&tag);
        if let Some(tag) = peer_tag {
            self.by_peer.remove(&(peer, tag));
        }
        if has_place {
            self.sources.close(peer.ip());
        }
    }

    /// The connection that sent a datagram to `peer`, found by the first bytes of the datagram.
    pub fn sender_of(&self, peer: SocketAddr, datagram: &[u8]) -> Option<u64> {
        let holder = match tag_of(datagram)? {
            0 => match Opening::decode_head(datagram)? {
                (Kind::Request, tag) => self.by_tag.get(&tag),
                _ => None,
            },
            tag => self.by_peer.get(&(peer, tag)),
        };
        if let Some(Holder::Connection(id)) = holder { Some(*id) } else { None }
    }

    /// The connections of this port.
    pub fn connections(&self) -> impl Iterator<Item = u64> {
        let number = |holder: &Holder| if let Holder::Connection(id) = holder { Some(*id) } else { None };
        self.by_tag.values().filter_map(number)
    }

    /// Repeats the acceptances that are due, and gives up handshakes that are out of attempts.
    pub fn wake(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, number)) = self.deadlines.pop_due(now) {
            self.repeat_acceptance(number, now, out);
        }
    }

    /// Time of the next [`Endpoint::wake`].
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        self.deadlines.next()
    }

    /// Sends a reset for every unfinished handshake, because the port is being closed. A peer that
    /// has our acceptance takes the connection for open.
    pub fn reset_unfinished(&self, out: &mut Outbox) {
        self.half_open.values().for_each(|half_open| half_open.reset(out));
    }
}
