//! A peer whose address changes, as that of a node which moves, or behind a router that translates addresses.
//!
//! The key that a datagram is sealed with shows who has sent it. So one from another address is taken like every other, and if it is the
//! newest so far the peer may have moved: it is asked at both addresses whether it is there (RFC 9000, sections 8.2 and 9.3). The connection
//! moves once the peer has answered from the new one and nothing so new has come from the old one for as long as that would have taken. A
//! connection without encryption never moves.
//!
//! The peer itself may be hostile: it can send from the forged address of a victim. So each challenge carries a number that the peer
//! cannot know unless it receives the challenge, and until it has answered nothing but challenges and responses is sent there, each
//! no longer than the datagram that has caused it. A move needs a place in the limits of the new address, like a new connection; the
//! connection keeps its place at the old address until then.
//!
//! An observer who sends copies of the peer's datagrams from an address of his own, faster than the peer's own arrive, steers nothing: the
//! originals come too, from the old address, and whether a datagram is authentic is looked at for that also if it has been here before. Who can
//! keep back the peer's datagrams can pass them on from elsewhere; so can every router. To an address that has not answered no more is sent
//! than has come from it: a challenge is not longer than any sealed datagram, and leaves only when one has come.
//!
//! After a move to another host's address congestion control and the estimate of the round trip begin anew, and path information is asked
//! for again; a move to another port of the same address is the work of a router and keeps them (RFC 9000, section 9.4). What waits for a
//! retransmission timer that has been doubled, up to a minute, is sent again as soon as the connection has moved: what the timer waits for
//! went to the old address.

use super::{Connection, Stage};
use crate::networks::source_of;
use crate::tpa::session::addresses::Addresses;
use crate::tpa::session::endpoint::Endpoint;
use crate::tpa::session::exchange::Exchange;
use crate::tpa::session::outbox::Outbox;
use crate::tpa::session::path_frame::PathFrame;
use meshpace_core::{Duration, Time};
use std::net::SocketAddr;

/// Time that is given at least to what the peer may have sent from the old address, counted from the first datagram from the new one.
const LEAST_HOLD: Duration = Duration::from_millis(200);

/// The same at most: it is twice as long as the peer has taken to answer.
const MOST_HOLD: Duration = Duration::from_secs(1);

/// A challenge is repeated after so long, if more comes from there.
const REPEATED: Duration = Duration::from_millis(100);

/// An address that has not answered for so long is forgotten; as long none is asked where the peer was found at the old one.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// An address where the peer may be.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    addresses: Addresses,
    /// The number of the datagram that came first from there.
    number: u64,
    /// The unpredictable number that the peer is to send back from there.
    challenge: u64,
    since: Time,
    /// When the last challenge left.
    asked: Time,
    /// When the answer came, and how long it took.
    answered: Option<(Time, Duration)>,
}

impl Candidate {
    /// When the peer is taken to be there; never before it has answered.
    fn due(&self) -> Time {
        self.answered.map_or(Time::NEVER, |(at, took)| {
            let hold = Duration(took.0.saturating_mul(2)).clamp(LEAST_HOLD, MOST_HOLD);
            at.max(self.since + hold)
        })
    }
}

/// Where the peer may have moved to.
#[derive(Debug, Default)]
pub(super) struct Roaming {
    /// One more than the highest number of a datagram of the peer.
    newest: u64,
    candidate: Option<Candidate>,
    /// Nobody is asked before.
    asks_from: Time,
}

impl Roaming {
    /// An authentic datagram of this number; whether it is newer than all others.
    pub(super) fn see(&mut self, number: u64) -> bool {
        let is_newest = number >= self.newest;
        self.newest = self.newest.max(number.saturating_add(1));
        is_newest
    }

    /// True if a datagram of this number from the old address says that the peer is still there.
    pub(super) fn is_doubted_by(&self, number: u64) -> bool {
        self.candidate.is_some_and(|candidate| number >= candidate.number)
    }

    /// The peer is where it was.
    pub(super) fn stays(&mut self, now: Time) {
        if self.candidate.take().is_some() {
            self.asks_from = now + FORGOTTEN;
        }
    }

    /// The newest datagram, of this number, came from `at`. Returns the number of the challenge that is to go there, and whether it is
    /// the first one; `draw` yields an unpredictable number.
    fn consider(&mut self, now: Time, at: Addresses, number: u64, draw: impl FnOnce() -> u64) -> Option<(u64, bool)> {
        let stale = |candidate: &Candidate| candidate.answered.is_none() && now.since(candidate.asked) >= FORGOTTEN;
        if self.candidate.as_ref().is_some_and(stale) {
            self.candidate = None;
        }
        match &mut self.candidate {
            None if now >= self.asks_from => {
                let challenge = draw();
                let answered = None;
                self.candidate = Some(Candidate { addresses: at, number, challenge, since: now, asked: now, answered });
                Some((challenge, true))
            }
            Some(known)
                if known.addresses.peer == at.peer
                    && known.answered.is_none()
                    && now.since(known.asked) >= REPEATED =>
            {
                known.asked = now;
                Some((known.challenge, false))
            }
            _ => None,
        }
    }

    /// The peer answers the challenge with this number from an address.
    fn on_response(&mut self, now: Time, from: SocketAddr, challenge: u64) {
        if let Some(candidate) = &mut self.candidate
            && candidate.addresses.peer == from
            && candidate.challenge == challenge
            && candidate.answered.is_none()
        {
            candidate.answered = Some((now, now.since(candidate.asked)));
        }
    }

    /// When the connection moves, if nothing contradicts.
    pub(super) fn due(&self) -> Time {
        self.candidate.as_ref().map_or(Time::NEVER, Candidate::due)
    }
}

impl Connection {
    /// A datagram of this number, which only the peer can have sent, has come from another address than its own.
    pub(super) fn on_elsewhere(&mut self, now: Time, at: Addresses, number: u64, out: &mut Outbox) {
        let (Stage::Open(framing) | Stage::Orphaned { framing, .. }) = &mut self.stage else { return };
        let draw = || self.own.unpredictable.draw();
        let Some((challenge, is_first)) = self.roaming.consider(now, at, number, draw) else { return };
        framing.push_path(at, self.addresses.peer, PathFrame::Challenge(challenge), out);
        if is_first {
            // Another number: a copy of the answer to this one is none to the other. Whoever answers is heard at the old address.
            let other = PathFrame::Challenge(self.own.unpredictable.draw());
            framing.push_path(self.addresses, self.addresses.peer, other, out);
        }
    }

    /// The peer says something about an address.
    pub(super) fn on_path_frame(&mut self, now: Time, at: Addresses, frame: PathFrame, out: &mut Outbox) {
        match frame {
            PathFrame::Challenge(number) => {
                if let Some(framing) = self.stage.framing_mut() {
                    framing.push_path(at, self.addresses.peer, PathFrame::Response(number), out);
                }
            }
            PathFrame::Response(number) => {
                self.roaming.on_response(now, at.peer, number);
                if at.peer == self.addresses.peer {
                    self.on_size_response(now, number);
                }
            }
        }
    }

    /// Moves connection `id` to the address where its peer has answered, if the time for that has come and `endpoint` grants a place
    /// there. To be called after anything happened.
    pub fn move_if_due(
        &mut self,
        now: Time,
        id: u64,
        endpoint: &mut Endpoint,
        exchange: &mut Exchange,
        out: &mut Outbox,
    ) {
        if now < self.roaming.due() {
            return;
        }
        let Some(candidate) = self.roaming.candidate else { return };
        let (from, to) = (self.addresses.peer, candidate.addresses.peer);
        if !exchange.account.has_room_at(source_of(to.ip()))
            || !endpoint.relocate(now, (from, to), self.peer_tag(), id, self.place.is_counted)
        {
            return self.roaming.stays(now);
        }
        self.roaming.candidate = None;
        (self.addresses, self.place.is_counted) = (candidate.addresses, true);
        self.way.travelled = None;
        self.look_up_path(now);
        let now = self.tell_time(now);
        if from.ip() != to.ip() {
            self.engine.restart_control(now, &self.settings.transport);
            self.tell_path();
        }
        self.engine.on_peer_moved(now);
        self.size.on_moved(now);
        // What is said to whoever had the old address is said of nobody now.
        self.complaints.forget();
        self.work(now, exchange, out);
    }

    /// When the connection moves, if nothing contradicts.
    pub fn moves_at(&self) -> Time {
        self.roaming.due()
    }

    /// True while it is checked whether the peer has moved.
    pub fn is_moving(&self) -> bool {
        self.roaming.candidate.is_some()
    }
}
