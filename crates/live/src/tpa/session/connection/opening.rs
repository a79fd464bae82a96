//! Opening a connection: requests, the answers to them, and segments that fit the path.
//!
//! The request that shows a cookie is padded to the length of a full segment's datagram: where that does not get through, and
//! nobody says so, the segments are made smaller (RFC 8899 in small: probes are requests, which nothing else waits behind). That
//! it did not get through is not the same as that nothing did: a path that is down for a while, or a peer that is late, must not
//! cost the connection its segments. So a padded request that is repeated has an escort, a short request with another block number
//! and without a cookie; only an escort whose challenge comes without an answer to the padded one counts (RFC 8899,
//! section 5.1.2: MAX_PROBES such losses). An MTU that the network tells is believed only if the complaint quotes the request,
//! and only if it is lower.
//!
//! A listener that does not admit the key of this end proves it: the refusal stands inside Noise's second message, and ends the opening. Nobody proves that
//! another refusal is the peer's: whoever reads the request can forge one. Where the peer is known, by a secret or by keys, a
//! refusal therefore ends nothing and only names the reason should the time pass without an acceptance. One that says that nobody listens has
//! the request repeated soon, some times: a far end that begins anew has its port a moment before it listens. Elsewhere it is believed at once:
//! who can forge it could also accept in the peer's place. But one that says that the keys do not fit is not the peer's where no keys are known: it is
//! what a peer says of a request for another protection, so of a copy of ours that somebody has altered.

use super::path_size::{LOST, SMALLER_PATHS};
use super::silence::Unheard;
use super::{Connection, Flow, Stage, engine};
use crate::tpa::session::cipher::Suite;
use crate::tpa::session::engine::{AnySegment, Engine};
use crate::tpa::session::exchange::{Exchange, Phase};
use crate::tpa::session::failure::Failure;
use crate::tpa::session::framing::{Framing, overhead};
use crate::tpa::session::handshake::{Cookie, InnerTransport, Kind, LEAST_SEGMENT, Opening, Protection, Tag, Terms};
use crate::tpa::session::host::{Host, random};
use crate::tpa::session::noise::{self, Asking, Secret};
use crate::tpa::session::outbox::Outbox;
use crate::tpa::session::security::Security;
use crate::tpa::session::settings::Settings;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::segment::block_after;
use meshpace_transport::tpa::{self, Flags, Segment};
use meshpace_transport::{Arrival, Role};
use nix::libc;
use std::net::SocketAddr;

/// Challenges answered per connection attempt: one is regular, others follow a listener's restart, other terms, a smaller MTU.
const CHALLENGES: u8 = 12;

/// Least interval between answers to acceptances that come again: trains answer ten SYNs in 5 s, and the peer's questions for a sign of life
/// are to find some left.
const REPETITION: Duration = Duration::from_secs(1);

/// Time after which a request is repeated that nobody listens for, and number of such repetitions at most.
const HURRY: Duration = Duration::from_millis(100);
const HURRIES: u8 = 10;

/// Content of our requests, and state of their repetition.
pub(super) struct Request {
    pub(super) opening: Opening,
    /// The transport with the terms asked for.
    config: tpa::Config,
    /// Secret that Noise's first message will be made with, whether it has been used, and the key that the message then begins with: the
    /// listener's cookie is for that key. Once a message has been made, another needs another secret.
    secret: Secret,
    is_spent: bool,
    key: Vec<u8>,
    /// Noise's first message, and who waits for the second.
    noise: Vec<u8>,
    asking: Option<Asking>,
    /// Challenges answered.
    challenges: u8,
    probing: Probing,
    hurry: Hurry,
}

/// Repetitions of a request that does not wait for its timer, since somebody says that nobody listens there yet.
#[derive(Clone, Copy)]
struct Hurry {
    at: Time,
    left: u8,
}

/// State of the padded requests with these terms.
#[derive(Clone, Copy, Default)]
struct Probing {
    /// One has left, and no answer has come.
    waits: bool,
    /// An escort has left with the last one, and no answer to that has come.
    escorted: bool,
    /// Escorts that were answered without their padded requests.
    lost: u8,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("opening", &self.opening).finish_non_exhaustive()
    }
}

impl Request {
    pub(super) fn new(config: &tpa::Config, settings: &Settings, (tag, secret): (Tag, Secret)) -> Request {
        let protection = settings.security.protection();
        let suite = if protection == Protection::Plain { Suite::default() } else { Suite::asking(settings.aes) };
        let segment = Segment { block: config.first_block, ..Segment::default() };
        let opening = Opening {
            kind: Kind::Request,
            protection,
            suite,
            trains: settings.trains.is_some(),
            terms: Terms::of(config),
            opener: tag,
            acceptor: 0,
            cookie: Cookie::default(),
            segment,
        };
        let (config, probing) = (config.clone(), Probing::default());
        let key = if protection == Protection::Plain { Vec::new() } else { Security::public_key(&secret).to_vec() };
        let (is_spent, noise) = (false, Vec::new());
        let hurry = Hurry { at: Time::NEVER, left: HURRIES };
        Request { opening, config, secret, is_spent, key, noise, asking: None, challenges: 0, probing, hurry }
    }
}

impl Connection {
    /// The engine wants to send a SYN: the request leaves.
    pub(super) fn request(&mut self, segment: &AnySegment, out: &mut Outbox) {
        let Stage::Opening(request) = &mut self.stage else { return };
        request.opening.segment = match segment {
            AnySegment::Tpa(segment) => *segment,
            AnySegment::Train(segment) => Segment {
                block: request.config.first_block,
                window: segment.window.min(u16::from(u8::MAX)) as u8,
                flags: segment.flags,
                congested: self.settings.beside.bbr,
                ..Segment::default()
            },
            // It has no opening of its own.
            AnySegment::Bbr(_) => return,
        };
        let shown = request.opening.cookie != Cookie::default();
        let pads = shown && self.settings.fit_mtu;
        let length = overhead(request.opening.protection) + request.config.segment;
        let padded = if pads { length as usize } else { 0 };
        let noise = if shown { &request.noise } else { &request.key };
        let bytes = request.opening.encode(noise, padded);
        if pads {
            out.push_alone(self.addresses, &bytes)
        } else {
            out.push_bytes(self.addresses, &bytes)
        }
        let probing = &mut request.probing;
        if pads && std::mem::replace(&mut probing.waits, true) {
            probing.escorted = true;
            let segment = Segment { block: request.escort(), ..request.opening.segment };
            let escort = Opening { segment, cookie: Cookie::default(), ..request.opening };
            out.push_bytes(self.addresses, &escort.encode(&[], 0));
        }
    }

    /// When the request is repeated although its timer has not expired.
    pub(super) fn hurries_at(&self) -> Time {
        if let Stage::Opening(request) = &self.stage { request.hurry.at } else { Time::NEVER }
    }

    /// Repeats the request if that is due before its timer expires.
    pub(super) fn hurry(&mut self, now: Time, out: &mut Outbox) {
        let Stage::Opening(request) = &mut self.stage else { return };
        if request.hurry.at <= now {
            request.hurry.at = Time::NEVER;
            self.repeat_request(out);
        }
    }

    /// The request leaves again as it was.
    fn repeat_request(&mut self, out: &mut Outbox) {
        let Stage::Opening(request) = &self.stage else { return };
        // Of BBR too: until the listener has agreed to it, it is trains that are opened.
        let inner = if request.opening.trains { InnerTransport::Trains } else { InnerTransport::Tpa };
        let segment = AnySegment::opening(inner, &request.opening.segment);
        self.request(&segment, out);
    }

    /// The escort of a padded request was answered, and that one was not: once more at once, or with smaller segments.
    fn on_escort_answered(&mut self, now: Time, exchange: &mut Exchange, out: &mut Outbox) {
        let headers = self.headers();
        let Stage::Opening(request) = &mut self.stage else { return };
        if !std::mem::take(&mut request.probing.escorted) {
            return;
        }
        request.probing.lost = request.probing.lost.saturating_add(1);
        let is_smaller = |mtu: &&u32| mtu.saturating_sub(headers) < request.config.segment;
        if request.probing.lost < LOST {
            self.repeat_request(out);
        } else if let Some(mtu) = SMALLER_PATHS.iter().find(is_smaller) {
            request.lower(mtu.saturating_sub(headers));
            self.size.packet = Some(*mtu);
            self.begin_again(now);
            self.work(now, exchange, out);
        }
    }

    /// The engine begins anew with the terms that the request now has.
    fn begin_again(&mut self, now: Time) {
        let Stage::Opening(request) = &self.stage else { return };
        // Nothing is lost: the application writes and closes only what is open.
        self.flow = Flow::new(&request.config);
        self.engine = engine(&self.settings, &request.config, Role::Sender);
        self.tell_path();
        self.engine.open(now);
    }

    /// An answer to our request came from the address `from`, with Noise's message. Whoever sent it knows our tag; false if it is not the
    /// peer's address.
    pub fn on_answer(
        &mut self,
        now: Time,
        from: SocketAddr,
        (answer, message): (&Opening, &[u8]),
        host: &mut dyn Host,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) -> bool {
        if from != self.addresses.peer {
            return false;
        }
        if self.engine.state() != tpa::State::SynSent {
            if answer.kind == Kind::Acceptance && self.peer_tag() == Some(answer.acceptor) {
                self.on_repeated_acceptance(now, exchange, out);
            }
            return true;
        }
        let now = self.told.max(now);
        let Stage::Opening(request) = &mut self.stage else { return true };
        match answer.kind {
            Kind::Challenge if answer.segment.ack_block == request.escort() => {
                self.on_escort_answered(now, exchange, out);
            }
            // A copy of an answer to an earlier escort.
            Kind::Challenge if answer.segment.ack_block != request.opening.segment.block => {}
            Kind::Challenge => {
                request.probing = Probing::default();
                self.on_challenge(now, answer, host, exchange, out);
            }
            Kind::Acceptance => {
                request.probing = Probing::default();
                self.on_acceptance(now, answer, message, host, exchange, out);
            }
            Kind::Refusal if message.is_empty() => self.on_refusal(now, answer, exchange),
            Kind::Refusal => {
                if !self.on_acceptance(now, answer, message, host, exchange, out) {
                    self.on_refusal(now, answer, exchange);
                }
            }
            Kind::Request | Kind::Stray => {}
        }
        true
    }

    /// The listener asks for the request once more, with its cookie and its terms.
    fn on_challenge(
        &mut self,
        now: Time,
        answer: &Opening,
        host: &mut dyn Host,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) {
        let Stage::Opening(request) = &mut self.stage else { return };
        let fits = answer.protection == request.opening.protection
            && answer.trains == request.opening.trains
            && answer.suite.offers_aes == request.opening.suite.offers_aes
            && answer.segment.ack_block == request.opening.segment.block;
        if !fits || request.challenges >= CHALLENGES || answer.cookie == request.opening.cookie {
            return;
        }
        request.challenges += 1;
        let fresh = answer.terms != request.opening.terms || answer.suite != request.opening.suite;
        if fresh {
            let yields = answer.terms.yields_to(request.opening.terms);
            let Some(config) = answer.terms.apply(&request.config).filter(|_| yields) else { return };
            (request.config, request.opening.terms, request.opening.suite) = (config, answer.terms, answer.suite);
        }
        request.opening.cookie = answer.cookie;
        if (fresh || request.asking.is_none()) && answer.protection != Protection::Plain {
            let secret = if std::mem::replace(&mut request.is_spent, true) { random(host) } else { Ok(request.secret) };
            match secret.and_then(|secret| noise::ask(&self.settings.security, &request.opening, secret)) {
                Ok((asking, message)) => (request.asking, request.noise) = (Some(asking), message),
                Err(error) => return self.give_up(now, Failure::of(&error, error.to_string()), exchange),
            }
        }
        if fresh {
            self.begin_again(now);
            self.work(now, exchange, out);
        } else {
            self.repeat_request(out);
        }
    }

    /// The listener agrees, or refuses with a proof that it is the listener who does, or somebody says so for it; true if the listener has said it.
    /// Whether it agrees stands inside Noise's message: what is around may have been changed.
    fn on_acceptance(
        &mut self,
        now: Time,
        answer: &Opening,
        message: &[u8],
        host: &mut dyn Host,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) -> bool {
        let Stage::Opening(request) = &mut self.stage else { return false };
        let asked = request.opening;
        let said = |opening: &Opening| (opening.terms, opening.protection, opening.suite, opening.trains);
        let accepts = |answer: &Opening| {
            said(answer) == said(&asked)
                && answer.acceptor != 0
                && answer.segment.ack_block == asked.segment.block
                && (asked.segment.congested || !answer.segment.congested)
        };
        if answer.kind == Kind::Acceptance && !accepts(answer) {
            return false;
        }
        let (answer, keys) = match &mut request.asking {
            Some(asking) => {
                // Somebody else's answer; the peer's may still come.
                let Ok((keys, repeated)) = asking.finish(message) else { return false };
                // What stands inside is the peer's, whatever has become of what stands around it.
                match Opening::decode_repeated(&repeated) {
                    Some(refusal) if refusal.kind == Kind::Refusal => {
                        self.on_proven_refusal(now, exchange);
                        return true;
                    }
                    Some(answer) if accepts(&answer) => (answer, Some(keys)),
                    _ => return true,
                }
            }
            None if accepts(answer) && answer.protection == Protection::Plain => (*answer, None),
            None => return false,
        };
        if let Some(keys) = &keys {
            host.note_keys(keys.cipher, [(self.own.tag, &keys.receive), (answer.acceptor, &keys.send)]);
        }
        if answer.segment.flags.has(Flags::SYN.with(Flags::ACK)) {
            if answer.inner() == InnerTransport::Bbr {
                // Nothing is lost: the application writes and closes only what is open.
                self.engine = Engine::bbr(&request.config, self.settings.receive_buffer);
            }
            let framing = Framing::new(answer.acceptor, keys.as_ref(), self.settings.key_life, answer.inner());
            self.stage = Stage::Open(framing);
            self.life.unheard = Some(Unheard::new(now, &self.settings));
        }
        self.on_segment(now, &AnySegment::opening(answer.inner(), &answer.segment), &[], exchange, out);
        true
    }

    /// The peer has proved that it does not admit our key.
    fn on_proven_refusal(&mut self, now: Time, exchange: &mut Exchange) {
        let message = format!("{} refuses the connection: it does not admit this end's key", self.addresses.peer);
        self.give_up(now, Failure::new(libc::ECONNREFUSED, message), exchange);
    }

    /// The peer refuses, or somebody says so for it.
    fn on_refusal(&mut self, now: Time, answer: &Opening, exchange: &mut Exchange) {
        let Stage::Opening(request) = &mut self.stage else { return };
        let knows_peer = self.settings.security.knows_peer();
        let asked = (request.opening.protection, request.opening.trains);
        if answer.acceptor == 0 && (answer.protection, answer.trains) == asked && !knows_peer {
            // There are no keys that could not fit.
            return;
        }
        if answer.acceptor != 0 && request.hurry.at == Time::NEVER && request.hurry.left > 0 {
            request.hurry = Hurry { at: now.saturating_add(HURRY), left: request.hurry.left - 1 };
        }
        let reason = if answer.acceptor != 0 {
            "nobody listens there".to_owned()
        } else if answer.trains != request.opening.trains {
            let name = |trains| if trains { "quiet trains" } else { "TPA" };
            format!("it speaks {}, this end {}", name(answer.trains), name(request.opening.trains))
        } else if answer.protection == request.opening.protection {
            "the keys do not fit".to_owned()
        } else {
            format!("it wants {}, this end {}", answer.protection, request.opening.protection)
        };
        let message = format!("{} refuses the connection: {reason}", self.addresses.peer);
        if !knows_peer {
            self.give_up(now, Failure::new(libc::ECONNREFUSED, message), exchange);
        } else if let Phase::Opening { refusal } = &mut exchange.phase {
            *refusal = Some(message);
        }
    }

    /// The peer has not heard that we have its acceptance, or somebody who has read the tags says so: an acceptance is not sealed as
    /// segments are, and this one's is not looked at. An ACK is the answer; it is no sign of life.
    fn on_repeated_acceptance(&mut self, now: Time, exchange: &mut Exchange, out: &mut Outbox) {
        if self.is_theirs() || now < self.life.answers_at {
            return;
        }
        self.life.answers_at = now.saturating_add(REPETITION);
        let segment = Segment { flags: Flags::SYN.with(Flags::ACK), ..Segment::default() };
        let repeated = AnySegment::opening(self.engine.inner(), &segment);
        let now = self.tell_time(now);
        self.engine.on_segment(now, &repeated, Arrival::default());
        self.work(now, exchange, out);
    }

    /// Longest IP packet of a request that does not arrive although short ones are answered; `None` if that is not known.
    pub(super) fn unheard_length(&self) -> Option<u32> {
        let Stage::Opening(request) = &self.stage else { return None };
        (request.probing.lost >= LOST).then(|| request.config.segment + self.headers())
    }

    /// The path carries IP packets of `mtu` bytes, less than a full segment's: whether smaller segments are tried instead.
    pub(super) fn lower(&mut self, now: Time, mtu: u32, exchange: &mut Exchange, out: &mut Outbox) -> bool {
        let most = mtu.saturating_sub(self.headers());
        let may = self.settings.fit_mtu && self.engine.state() == tpa::State::SynSent;
        let Stage::Opening(request) = &mut self.stage else { return false };
        if !may || most < u32::from(LEAST_SEGMENT) || most >= request.config.segment {
            return false;
        }
        request.lower(most);
        self.size.packet = Some(mtu);
        self.begin_again(now);
        self.work(now, exchange, out);
        true
    }

    /// The connection cannot be opened.
    fn give_up(&mut self, now: Time, failure: Failure, exchange: &mut Exchange) {
        if exchange.is_opening() {
            exchange.fail(failure);
        }
        self.engine.abort(now);
        self.stage.leave(now, true);
    }
}

impl Request {
    /// Segments of at most this many bytes from now on: terms of a new request, without a cookie.
    fn lower(&mut self, segment: u32) {
        self.config.segment = segment.min(self.config.segment);
        self.opening.terms = Terms::of(&self.config);
        self.opening.cookie = Cookie::default();
        (self.asking, self.probing) = (None, Probing::default());
    }

    /// The block number that the next escort names, so that its answers are told from others, and from copies of those to an earlier one.
    fn escort(&self) -> u16 {
        block_after(self.opening.segment.block, 1 + u16::from(self.probing.lost))
    }
}
