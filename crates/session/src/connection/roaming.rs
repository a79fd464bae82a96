//! A peer whose address changes, because its node moves or because a router on the path translates
//! addresses.
//!
//! The key with which a datagram is sealed shows who has sent it. So a datagram from another
//! address is accepted like every other. If it is the newest so far, the peer may have moved: a
//! path challenge goes to both addresses (RFC 9000, sections 8.2 and 9.3). The connection moves
//! once two things hold. The peer has answered from the new address. And no datagram as new as that
//! one has arrived from the old address for as long as it would have needed. A connection without
//! encryption never moves.
//!
//! The peer itself may be hostile: it can send from the forged address of a victim. So each
//! challenge carries a number that the peer cannot know unless it receives the challenge. Until the
//! peer has answered, only challenges and responses are sent to the new address, each no longer
//! than the datagram that has caused it. A move needs a place in the limits of the new address,
//! like a new connection. The connection keeps its place at the old address until then.
//!
//! An observer may send copies of the peer's datagrams from an address of its own, so that the
//! copies arrive before the originals. That does not move the connection: the originals still
//! arrive, from the old address, and their authenticity is checked for this purpose even if they
//! are duplicates. An attacker who can hold back the peer's datagrams can forward them from
//! elsewhere; so can every router. An address that has not answered is sent no more than came from
//! it: a challenge is not longer than any sealed datagram, and leaves only when a datagram has
//! arrived.
//!
//! After a move to another host's address, congestion control and the round-trip estimate restart,
//! and the connection asks for path information again. A move to another port of the same address
//! is the work of a router and keeps both (RFC 9000, section 9.4). A retransmission timer may have
//! been doubled, up to a minute. The data that wait for this timer are sent again as soon as the
//! connection has moved, since they were sent to the old address.

use super::{Connection, Stage};
use crate::addresses::Addresses;
use crate::endpoint::Endpoint;
use crate::exchange::Exchange;
use crate::networks::source_of;
use crate::outbox::Outbox;
use crate::path_frame::PathFrame;
use meshpace_core::{Duration, Time};
use std::net::SocketAddr;

/// Least time that datagrams from the old address have to arrive, counted from the first datagram
/// from the new address.
const LEAST_HOLD: Duration = Duration::from_millis(200);

/// Upper bound of that time, which is twice as long as the peer has taken to answer.
const MOST_HOLD: Duration = Duration::from_secs(1);

/// Least time between two path challenges of a connection. It also holds for those that search for a
/// black hole (`path_size`), because together they may not exceed ten per second. A challenge to a
/// new address is repeated only if another datagram arrives from there.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(100);

/// Time without an answer after which an address is forgotten. For the same time no new address is
/// challenged after the peer was found at its old one.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// An address to which the peer may have moved.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    addresses: Addresses,
    /// Number of the first datagram that came from there.
    number: u64,
    /// Unpredictable number that the peer has to send back from there.
    challenge: u64,
    /// Time of the first datagram from there.
    since: Time,
    /// Time of the last challenge.
    asked: Time,
    /// Time of the answer, and the time it took. `None` while there is no answer.
    answered: Option<(Time, Duration)>,
}

impl Candidate {
    /// Time at which the peer is taken to be there. Never before it has answered.
    fn due(&self) -> Time {
        self.answered.map_or(Time::NEVER, |(at, took)| {
            let hold = Duration(took.0.saturating_mul(2)).clamp(LEAST_HOLD, MOST_HOLD);
            at.max(self.since + hold)
        })
    }
}

/// State of the search for a peer that may have moved.
#[derive(Debug, Default)]
pub(super) struct Roaming {
    /// One more than the highest number of a datagram of the peer.
    newest: u64,
    candidate: Option<Candidate>,
    /// No new address is challenged before this time.
    asks_from: Time,
    /// No challenge is sent before this time. The limit holds for the connection and not for each
    /// address, because a connection that moves back and forth challenges both of its addresses.
    next_challenge: Time,
}

impl Roaming {
    /// Notes an authentic datagram of this number. Returns whether it is newer than all others.
    pub(super) fn see(&mut self, number: u64) -> bool {
        let is_newest = number >= self.newest;
        self.newest = self.newest.max(number.saturating_add(1));
        is_newest
    }

    /// True if a datagram of this number from the old address shows that the peer is still there.
    pub(super) fn is_doubted_by(&self, number: u64) -> bool {
        self.candidate.is_some_and(|candidate| number >= candidate.number)
    }

    /// Gives up the new address because the peer is where it was, or cannot be followed.
    pub(super) fn stays(&mut self, now: Time) {
        if self.candidate.take().is_some() {
            self.asks_from = now + FORGOTTEN;
        }
    }

    /// Considers the address `at`, from which the newest datagram came; it has this number. Returns
    /// the number of the challenge to send to `at`, and whether this challenge is the first. `draw`
    /// returns an unpredictable number.
    fn consider(&mut self, now: Time, at: Addresses, number: u64, draw: impl FnOnce() -> u64) -> Option<(u64, bool)> {
        let stale = |candidate: &Candidate| candidate.answered.is_none() && now.since(candidate.asked) >= FORGOTTEN;
        if self.candidate.as_ref().is_some_and(stale) {
            self.candidate = None;
        }
        if now < self.next_challenge {
            return None;
        }
        let considered = match &mut self.candidate {
            None if now >= self.asks_from => {
                let challenge = draw();
                let answered = None;
                self.candidate = Some(Candidate { addresses: at, number, challenge, since: now, asked: now, answered });
                Some((challenge, true))
            }
            Some(known) if known.addresses.peer == at.peer && known.answered.is_none() => {
                known.asked = now;
                Some((known.challenge, false))
            }
            _ => None,
        };
        if considered.is_some() {
            self.next_challenge = now + CHALLENGE_INTERVAL;
        }
        considered
    }

    /// Returns whether a challenge for another purpose than a move may be sent now. If it may, it
    /// counts as sent.
    pub(super) fn admits_challenge(&mut self, now: Time) -> bool {
        let is_admitted = now >= self.next_challenge;
        if is_admitted {
            self.next_challenge = now + CHALLENGE_INTERVAL;
        }
        is_admitted
    }

    /// Handles the peer's response to the challenge with this number, which came from the address
    /// `from`.
    fn on_response(&mut self, now: Time, from: SocketAddr, challenge: u64) {
        if let Some(candidate) = &mut self.candidate
            && candidate.addresses.peer == from
            && candidate.challenge == challenge
            && candidate.answered.is_none()
        {
            candidate.answered = Some((now, now.since(candidate.asked)));
        }
    }

    /// Time at which the connection moves, if nothing speaks against it.
    pub(super) fn due(&self) -> Time {
        self.candidate.as_ref().map_or(Time::NEVER, Candidate::due)
    }
}

impl Connection {
    /// Handles a datagram that came from another address than the peer's. Only the peer can have
    /// sealed it; it has this number.
    pub(super) fn on_elsewhere(&mut self, now: Time, at: Addresses, number: u64, out: &mut Outbox) {
        let (Stage::Open(framing) | Stage::Orphaned { framing, .. }) = &mut self.stage else { return };
        let draw = || self.own.unpredictable.draw();
        let Some((challenge, is_first)) = self.roaming.consider(now, at, number, draw) else { return };
        framing.push_path(at, self.addresses.peer, PathFrame::Challenge(challenge), out);
        if is_first {
            // The challenge to the old address has another number, so that a copy of the response
            // to one is no response to the other. A datagram of the peer from the old address ends
            // the move.
            let other = PathFrame::Challenge(self.own.unpredictable.draw());
            framing.push_path(self.addresses, self.addresses.peer, other, out);
        }
    }

    /// Handles a path challenge or a path response of the peer.
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

    /// Moves connection `id` to the address where its peer has answered, if the time for that has
    /// come and `endpoint` grants a place there. To be called after every event.
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
        // Reports about the old address no longer concern the peer.
        self.complaints.forget();
        self.work(now, exchange, out);
    }

    /// Time at which the connection moves, if nothing speaks against it.
    #[inline]
    pub fn moves_at(&self) -> Time {
        self.roaming.due()
    }

    /// True while the connection checks whether the peer has moved.
    pub fn is_moving(&self) -> bool {
        self.roaming.candidate.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_challenges_leave_in_a_second_however_often_the_connection_moves() {
        let [here, there] = [1, 2].map(|host| Addresses { own: None, peer: SocketAddr::from(([10, 0, 0, host], 1)) });
        let mut roaming = Roaming::default();
        let mut left: Vec<Time> = Vec::new();
        for number in 0..500 {
            let now = Time::ZERO + Duration::from_millis(10 * number);
            // Every quarter of a second the peer has answered and the connection has moved.
            if number % 25 == 0 {
                roaming.candidate = None;
            }
            let at = if number / 25 % 2 == 0 { there } else { here };
            // Half of the time there is also an escort to send (`path_size`), before or after.
            let is_sent = (number % 4 == 0 && roaming.admits_challenge(now))
                | roaming.consider(now, at, number, || number).is_some()
                | (number % 4 == 1 && roaming.admits_challenge(now));
            if is_sent {
                left.push(now);
            }
        }
        assert!(left.len() > 30, "{left:?}");
        let within =
            |from: Time| left.iter().filter(|at| **at >= from && at.since(from) < Duration::from_secs(1)).count();
        assert!(left.iter().all(|from| within(*from) <= 10), "{left:?}");
    }

    #[test]
    fn one_address_is_challenged_at_a_time_and_none_for_a_second_after_the_peer_was_at_its_old_one() {
        let [one, other] = [1, 2].map(|host| Addresses { own: None, peer: SocketAddr::from(([10, 0, 0, host], 1)) });
        let at = |ms: u64| Time(1_000_000_000) + Duration::from_millis(ms);
        let mut roaming = Roaming::default();
        let mut asks = |ms, addresses| roaming.consider(at(ms), addresses, ms, || ms);
        assert_eq!(asks(0, one), Some((0, true)));
        // Nobody answers. The first address alone is challenged for 1 s after its last challenge.
        assert_eq!(asks(200, other), None);
        assert_eq!(asks(300, one), Some((0, false)));
        assert_eq!(asks(1299, other), None);
        assert_eq!(asks(1300, other), Some((1300, true)));
        assert_eq!(asks(1500, one), None);
        // The peer is found at its old address.
        roaming.stays(at(1600));
        let mut asks = |ms, addresses| roaming.consider(at(ms), addresses, ms, || ms);
        assert_eq!(asks(1800, one), None);
        assert_eq!(asks(2599, other), None);
        assert_eq!(asks(2600, one), Some((2600, true)));
    }
}
