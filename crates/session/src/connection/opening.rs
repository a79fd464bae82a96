//! Opening a connection: requests, the answers to them, and the choice of segments that fit the
//! path.
//!
//! A request that shows a cookie is padded to the length of a full segment's datagram. If such
//! requests do not get through, and nobody says so, the segments are made smaller. This is a small
//! version of RFC 8899: the probes are requests, behind which nothing else waits.
//!
//! A lost padded request alone proves nothing: a path that is down for a while, or a peer that is
//! late, must not make the connection's segments smaller. So a repeated padded request has an
//! escort: a short request with another block number and without a cookie. A loss counts only if
//! the escort's challenge arrives without an answer to the padded request (RFC 8899, section 5.1.2:
//! MAX_PROBES such losses). An MTU that the network reports is believed only if the report quotes
//! the request, and only if the MTU is lower.
//!
//! A listener that does not admit the key of this end proves it: the refusal stands inside Noise's
//! second message, and ends the opening. For any other refusal there is no proof that it comes from
//! the peer, since anybody who reads the request can forge one. So where the peer is known, by a
//! secret or by keys, such a refusal ends nothing. It only names the reason if the time passes
//! without an acceptance. If it says that nobody listens, the request is repeated soon, a limited
//! number of times: a process that restarts has its port a moment before it listens.
//!
//! Where the peer is not known, a refusal is believed at once: an attacker who can forge it could
//! also accept in the peer's place. There is one exception: if no keys are known, a refusal which
//! says that the keys do not fit ends nothing. A peer sends such a refusal only as the answer to a
//! request for another protection, so to a copy of our request that somebody has altered.

use super::path_size::{LOST, SMALLER_PATHS};
use super::silence::Unheard;
use super::{Connection, Flow, Stage, engine};
use crate::cipher::Suite;
use crate::engine::{AnySegment, Engine};
use crate::exchange::{Exchange, Phase};
use crate::failure::{Failure, Reason};
use crate::framing::{Framing, overhead};
use crate::handshake::{Cookie, InnerTransport, Kind, LEAST_SEGMENT, Opening, Protection, Tag, Terms};
use crate::host::{Host, random};
use crate::noise::{self, Asking, Secret};
use crate::outbox::Outbox;
use crate::security::Security;
use crate::settings::Settings;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::segment::block_after;
use meshpace_transport::tpa::{self, Flags, Segment};
use meshpace_transport::{Arrival, Role};
use std::net::SocketAddr;

/// Maximum number of challenges answered per connection attempt. One is regular; others follow a
/// restart of the listener, other terms, or a smaller MTU.
const CHALLENGES: u8 = 12;

/// Least interval between answers to repeated acceptances. Trains answer ten SYNs in 5 s, and some
/// of these answers have to remain for the peer's probes.
const REPETITION: Duration = Duration::from_secs(1);

/// Time after which a request is repeated if nobody listens.
const HURRY: Duration = Duration::from_millis(100);
/// Maximum number of such repetitions.
const HURRIES: u8 = 10;

/// Content of our requests, and state of their repetition.
pub(super) struct Request {
    pub(super) opening: Opening,
    /// The transport with the terms asked for.
    config: tpa::Config,
    /// Secret with which Noise's first message will be made. Each message needs a secret of its
    /// own.
    secret: Secret,
    /// True if a message has been made with the secret.
    is_spent: bool,
    /// Public key with which a message made with this secret begins. The first request shows it,
    /// and the listener's cookie is for this key.
    key: Vec<u8>,
    /// Noise's first message.
    noise: Vec<u8>,
    /// State of the handshake that waits for Noise's second message.
    asking: Option<Asking>,
    /// Number of challenges answered.
    challenges: u8,
    probing: Probing,
    hurry: Hurry,
}

/// Early repetition of a request, which does not wait for the request's timer, because nobody is
/// said to listen yet.
#[derive(Clone, Copy)]
struct Hurry {
    at: Time,
    left: u8,
}

/// State of the padded requests with the present terms.
#[derive(Clone, Copy, Default)]
struct Probing {
    /// True if a padded request has left and has not been answered.
    waits: bool,
    /// True if an escort has left with the last padded request and has not been answered.
    escorted: bool,
    /// Number of escorts that were answered although their padded requests were not.
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
    /// Sends the request in place of the SYN that the engine wants to send.
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
            // BBR has no opening of its own.
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

    /// Time at which the request is repeated although its timer has not expired.
    pub(super) fn hurries_at(&self) -> Time {
        if let Stage::Opening(request) = &self.stage { request.hurry.at } else { Time::NEVER }
    }

    /// Repeats the request if an early repetition is due.
    pub(super) fn hurry(&mut self, now: Time, out: &mut Outbox) {
        let Stage::Opening(request) = &mut self.stage else { return };
        if request.hurry.at <= now {
            request.hurry.at = Time::NEVER;
            self.repeat_request(out);
        }
    }

    /// Sends the request again, unchanged.
    fn repeat_request(&mut self, out: &mut Outbox) {
        let Stage::Opening(request) = &self.stage else { return };
        // Also a request for BBR opens trains, until the listener has agreed to BBR.
        let inner = if request.opening.trains { InnerTransport::Trains } else { InnerTransport::Tpa };
        let segment = AnySegment::opening(inner, &request.opening.segment);
        self.request(&segment, out);
    }

    /// Handles the answer to an escort whose padded request was not answered. The request is
    /// repeated at once, or with smaller segments.
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

    /// Restarts the engine with the terms that the request now has.
    fn begin_again(&mut self, now: Time) {
        let Stage::Opening(request) = &self.stage else { return };
        // No data are lost: the application writes and closes only after the connection is open.
        self.flow = Flow::new(&request.config);
        self.engine = engine(&self.settings, &request.config, Role::Sender);
        self.tell_path();
        self.engine.open(now);
    }

    /// Handles an answer to our request, which came from the address `from` with Noise's message.
    /// Its sender knows our tag. Returns false if `from` is not the peer's address.
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

    /// Repeats the request with the listener's cookie and terms, as the listener's challenge asks.
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

    /// Handles the listener's acceptance, its refusal with a proof, or a forgery of either. Returns
    /// true if the listener has sent the answer. With encryption, only the content of Noise's
    /// message shows whether the listener agrees, since the datagram around it may have been
    /// changed.
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
                // The answer does not come from the peer, whose answer may still arrive.
                let Ok((keys, repeated)) = asking.finish(message) else { return false };
                // The content of Noise's message comes from the peer, even if the datagram around
                // it was changed.
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
                // No data are lost: the application writes and closes only after the connection is
                // open.
                self.engine = Engine::bbr(&request.config, self.settings.receive_buffer);
            }
            let framing = Framing::new(answer.acceptor, keys.as_ref(), self.settings.key_life, answer.inner());
            self.stage = Stage::Open(framing);
            self.life.unheard = Some(Unheard::new(now, &self.settings));
        }
        self.on_segment(now, &AnySegment::opening(answer.inner(), &answer.segment), &[], exchange, out);
        true
    }

    /// Ends the opening because the peer has proved that it does not admit our key.
    fn on_proven_refusal(&mut self, now: Time, exchange: &mut Exchange) {
        let message = format!("{} refuses the connection: it does not admit this end's key", self.addresses.peer);
        self.give_up(now, Failure::new(Reason::Refused, message), exchange);
    }

    /// Handles a refusal that comes from the peer or from anybody else.
    fn on_refusal(&mut self, now: Time, answer: &Opening, exchange: &mut Exchange) {
        let Stage::Opening(request) = &mut self.stage else { return };
        let knows_peer = self.settings.security.knows_peer();
        let asked = (request.opening.protection, request.opening.trains);
        if answer.acceptor == 0 && (answer.protection, answer.trains) == asked && !knows_peer {
            // There are no keys that could fail to fit.
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
            self.give_up(now, Failure::new(Reason::Refused, message), exchange);
        } else if let Phase::Opening { refusal } = &mut exchange.phase {
            *refusal = Some(message);
        }
    }

    /// Handles an acceptance that arrives again. Either the peer has not heard that we have it, or
    /// somebody who has read the tags sends a copy: an acceptance is not sealed as segments are,
    /// and this one's seal is not checked. It is answered with an ACK, and is no sign of life.
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

    /// Longest IP packet, in bytes, of a request that does not arrive although short requests are
    /// answered. `None` if there is no such request.
    pub(super) fn unheard_length(&self) -> Option<u32> {
        let Stage::Opening(request) = &self.stage else { return None };
        (request.probing.lost >= LOST).then(|| request.config.segment + self.headers())
    }

    /// Tries smaller segments because the path carries IP packets of `mtu` bytes, less than those
    /// of full segments. Returns whether it did.
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

    /// Ends the opening with this failure.
    fn give_up(&mut self, now: Time, failure: Failure, exchange: &mut Exchange) {
        if exchange.is_opening() {
            exchange.fail(failure);
        }
        self.engine.abort(now);
        self.stage.leave(now, true);
    }
}

impl Request {
    /// Lowers the payload of a full segment to at most this many bytes. These are terms of a new
    /// request, which has no cookie yet.
    fn lower(&mut self, segment: u32) {
        self.config.segment = segment.min(self.config.segment);
        self.opening.terms = Terms::of(&self.config);
        self.opening.cookie = Cookie::default();
        (self.asking, self.probing) = (None, Probing::default());
    }

    /// Block number that the next escort names. It tells the escort's answer from other answers,
    /// and from copies of answers to an earlier escort.
    fn escort(&self) -> u16 {
        block_after(self.opening.segment.block, 1 + u16::from(self.probing.lost))
    }
}
