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
//! Nobody proves that a refusal is the peer's: whoever reads the request can forge one. Where the peer is known, by a secret or by keys, a
//! refusal therefore ends nothing and only names the reason should the time pass without an acceptance. Elsewhere it is believed at once:
//! who can forge it could also accept in the peer's place.

use super::super::cipher::Suite;
use super::super::engine::Inside;
use super::super::handshake::{Cookie, Kind, LEAST_SEGMENT, Opening, Protection, Terms};
use super::super::noise::{self, Asking};
use super::super::options::Options;
use super::super::outbox::Outbox;
use super::super::port::headers_to;
use super::super::shared::{Failure, State, Status};
use super::{Connection, Cover, Origin};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::segment::block_after;
use meshpace_transport::tpa::{self, Flags, Segment};
use meshpace_transport::{Arrival, Role};
use nix::libc;
use std::sync::Arc;

/// Challenges answered per connection attempt: one is regular, others follow a listener's restart, other terms, a smaller MTU.
const CHALLENGES: u8 = 12;

/// How far apart acceptances that come again are answered: trains answer ten SYNs in 5 s, and the peer's questions for a sign of life
/// are to find some left.
const REPETITION: Duration = Duration::from_secs(1);

/// Requests of full length that were lost although their escorts were not, after which segments are made smaller (RFC 8899, section
/// 5.1.2: MAX_PROBES).
const LOST: u8 = 3;

/// Payloads of IP packets that paths carry where larger ones are lost: IPv6's least MTU, and IPv4's least to be expected.
const SMALLER_PATHS: [u32; 2] = [1280, 576];

/// What stands in our requests.
pub(in super::super) struct Request {
    pub(super) opening: Opening,
    config: tpa::Config,
    noise: Vec<u8>,
    asking: Option<Asking>,
    challenges: u8,
    probing: Probing,
    /// When an acceptance that comes again is answered next.
    answers_at: Time,
}

/// What has become of the padded requests with these terms.
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
    pub(super) fn new(config: &tpa::Config, options: &Options, tag: u64) -> Request {
        let protection = options.security.protection();
        let suite = if protection == Protection::Plain { Suite::default() } else { Suite::asking(options.aes) };
        let segment = Segment { block: config.first_block, ..Segment::default() };
        let opening = Opening {
            kind: Kind::Request,
            protection,
            suite,
            trains: options.trains.is_some(),
            terms: Terms::of(config),
            opener: tag,
            acceptor: 0,
            cookie: Cookie::default(),
            segment,
        };
        let config = config.clone();
        let (probing, answers_at) = (Probing::default(), Time::ZERO);
        Request { opening, config, noise: Vec::new(), asking: None, challenges: 0, probing, answers_at }
    }
}

impl Connection {
    /// The machine wants to send a SYN: the request leaves.
    pub(super) fn request(&mut self, segment: &Inside, out: &mut Outbox) {
        let Origin::Ours(request) = &mut self.origin else { return };
        request.opening.segment = match segment {
            Inside::Tpa(segment) => *segment,
            Inside::Train(segment) => Segment {
                block: request.config.first_block,
                window: segment.window.min(u16::from(u8::MAX)) as u8,
                flags: segment.flags,
                ..Segment::default()
            },
        };
        let shown = request.opening.cookie != Cookie::default();
        let pads = shown && self.shared.options.fit_mtu;
        let length = super::super::cover::overhead(request.opening.protection) + request.config.segment;
        let padded = if pads { length as usize } else { 0 };
        let noise = if shown { &request.noise[..] } else { &[] };
        out.push_bytes(self.addresses, &request.opening.encode(noise, padded));
        let probing = &mut request.probing;
        if pads && std::mem::replace(&mut probing.waits, true) {
            probing.escorted = true;
            let segment = Segment { block: request.escort(), ..request.opening.segment };
            let escort = Opening { segment, cookie: Cookie::default(), ..request.opening };
            out.push_bytes(self.addresses, &escort.encode(&[], 0));
        }
    }

    /// The escort of a padded request was answered, and that one was not: once more at once, or with smaller segments.
    fn on_escort_answered(&mut self, now: Time, out: &mut Outbox) {
        let most = |mtu: &u32| mtu.saturating_sub(headers_to(self.addresses.peer, &self.shared.options));
        let Origin::Ours(request) = &mut self.origin else { return };
        if !std::mem::take(&mut request.probing.escorted) {
            return;
        }
        request.probing.lost = request.probing.lost.saturating_add(1);
        if request.probing.lost < LOST {
            let segment = Inside::opening(request.opening.trains, &request.opening.segment);
            self.request(&segment, out);
        } else if let Some(smaller) = SMALLER_PATHS.iter().map(most).find(|most| *most < request.config.segment) {
            request.lower(smaller);
            self.begin_again(now);
            self.work(now, out);
        }
    }

    /// The machine begins anew with the terms that the request now has.
    pub(super) fn begin_again(&mut self, now: Time) {
        let Origin::Ours(request) = &self.origin else { return };
        self.segment = request.config.segment as usize;
        self.block = request.opening.terms.block();
        self.machine = self.shared.engine(&request.config, Role::Sender);
        if let Some(path) = self.path {
            self.machine.on_path(path);
        }
        self.window_told = request.config.receive_window;
        self.machine.open(now);
    }

    /// An answer to our request, with Noise's message. Whoever sent it knows our tag.
    pub(in super::super) fn on_answer(&mut self, now: Time, answer: &Opening, message: &[u8], out: &mut Outbox) {
        if self.machine.state() != tpa::State::SynSent {
            if answer.kind == Kind::Acceptance && self.peer_tag() == Some(answer.acceptor) {
                self.on_repeated_acceptance(now, out);
            }
            return;
        }
        let now = self.told.max(now);
        let Origin::Ours(request) = &mut self.origin else { return };
        if answer.kind == Kind::Challenge && answer.segment.ack_block == request.escort() {
            return self.on_escort_answered(now, out);
        }
        if answer.kind == Kind::Refusal {
            return self.on_refusal(now, answer);
        }
        request.probing = Probing::default();
        match answer.kind {
            Kind::Challenge => {
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
                    let Some(config) =
                        answer.terms.apply(&request.config).filter(|_| answer.terms.yields_to(request.opening.terms))
                    else {
                        return;
                    };
                    (request.config, request.opening.terms, request.opening.suite) =
                        (config, answer.terms, answer.suite);
                }
                request.opening.cookie = answer.cookie;
                if (fresh || request.asking.is_none()) && answer.protection != Protection::Plain {
                    match noise::ask(&self.shared.options.security, &request.opening) {
                        Ok((asking, message)) => (request.asking, request.noise) = (Some(asking), message),
                        Err(error) => {
                            let failure = Failure::of(&error, error.to_string());
                            return self.give_up(now, failure);
                        }
                    }
                }
                if fresh {
                    self.begin_again(now);
                    self.work(now, out);
                } else {
                    let segment = Inside::opening(request.opening.trains, &request.opening.segment);
                    self.request(&segment, out);
                }
            }
            Kind::Acceptance => {
                let said = |opening: &Opening| (opening.terms, opening.protection, opening.suite, opening.trains);
                let same = said(answer) == said(&request.opening);
                let accepts = answer.acceptor != 0 && answer.segment.ack_block == request.opening.segment.block;
                if !same || !accepts {
                    return;
                }
                let repeated = &answer.encode(&[], 0)[8..];
                let keys = match &mut request.asking {
                    Some(asking) => match asking.finish(message, repeated) {
                        Ok(keys) => Some(keys),
                        // Somebody else's answer; the peer's may still come.
                        Err(_) => return,
                    },
                    None if answer.protection == Protection::Plain => None,
                    None => return,
                };
                if let (Some(keys), Some(log)) = (&keys, &self.shared.options.keylog) {
                    log.note(keys.cipher, [(self.tag, &keys.receive), (answer.acceptor, &keys.send)]);
                }
                self.cover = Some(Cover::new(answer.acceptor, keys.as_ref(), answer.trains));
                self.on_segment(now, &Inside::opening(answer.trains, &answer.segment), &[], out);
            }
            Kind::Refusal | Kind::Request | Kind::Stray => {}
        }
    }

    /// The peer refuses, or somebody says so for it.
    fn on_refusal(&mut self, now: Time, answer: &Opening) {
        let Origin::Ours(request) = &self.origin else { return };
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
        if self.shared.options.security.knows_peer() {
            self.shared.lock().refusal = Some(message);
        } else {
            self.give_up(now, Failure::new(libc::ECONNREFUSED, message));
        }
    }

    /// The peer has not heard that we have its acceptance, or somebody who has read the tags says so: an acceptance is not sealed as
    /// segments are, and this one's is not looked at. An ACK is the answer; it is no sign of life.
    fn on_repeated_acceptance(&mut self, now: Time, out: &mut Outbox) {
        let Origin::Ours(request) = &mut self.origin else { return };
        if now < request.answers_at {
            return;
        }
        request.answers_at = now.saturating_add(REPETITION);
        let segment = Segment { flags: Flags::SYN.with(Flags::ACK), ..Segment::default() };
        let repeated = Inside::opening(request.opening.trains, &segment);
        let now = self.tell_time(now);
        self.machine.on_segment(now, &repeated, Arrival::default());
        self.work(now, out);
    }

    /// The path carries IP packets of `mtu` bytes, less than a full segment's: whether smaller segments are tried instead.
    pub(super) fn lower(&mut self, now: Time, mtu: u32, out: &mut Outbox) -> bool {
        let most = mtu.saturating_sub(headers_to(self.addresses.peer, &self.shared.options));
        let Origin::Ours(request) = &mut self.origin else { return false };
        let may = self.shared.options.fit_mtu && self.machine.state() == tpa::State::SynSent;
        if !may || most < u32::from(LEAST_SEGMENT) || most >= request.config.segment {
            return false;
        }
        request.lower(most);
        self.begin_again(now);
        self.work(now, out);
        true
    }

    /// The connection cannot be opened.
    fn give_up(&mut self, now: Time, failure: Failure) {
        let shared = Arc::clone(&self.shared);
        let state: &mut State = &mut shared.lock();
        if state.status == Status::Opening {
            shared.fail(state, failure);
        }
        self.machine.abort(now);
        self.over_at.get_or_insert(now);
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

    /// The block number that an escort names, so that its answers are told from others.
    fn escort(&self) -> u16 {
        block_after(self.opening.segment.block, 1)
    }
}
