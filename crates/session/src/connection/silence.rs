//! Times at which a silent peer is probed, at which it is given up, and at which a connection is
//! forgotten.

use super::{Connection, Stage};
use crate::exchange::{Exchange, Phase};
use crate::failure::{Failure, Reason};
use crate::framing::Framing;
use crate::half_open;
use crate::outbox::Outbox;
use crate::settings::Settings;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa;
use meshpace_transport::tpa::liveness::{Liveness, Verdict};

/// Time for which an ended connection still answers a peer that has not noticed the end.
const TIME_WAIT: Duration = Duration::from_secs(10);

/// Time for which a connection that its application has let go may wait for its peer to close.
const ORPHAN: Duration = Duration::from_secs(60);

/// Longest interval between two probes of a peer that may not know that we have its acceptance.
/// Several of them arrive while the peer keeps the handshake, even if some are lost.
const UNHEARD: Duration = Duration::from_secs(4);

/// Retry state for a peer that has accepted but has been silent since. Our ACK may have been lost,
/// and the peer discards an unfinished handshake after a while. So we probe it until then.
#[derive(Debug)]
pub(super) struct Unheard {
    /// Time of the next probe. The peer answers if it knows that the connection is open; otherwise
    /// the probe tells it so.
    asks_at: Time,
    /// Interval before the next probe. It doubles with each probe, up to [`UNHEARD`].
    wait: Duration,
    /// Time at which the peer has discarded the handshake.
    until: Time,
}

impl Unheard {
    /// State at `now`, when the acceptance arrived. The peer is assumed to have the same settings
    /// as this end.
    pub(super) fn new(now: Time, settings: &Settings) -> Unheard {
        let wait = settings.transport.rto.initial;
        Unheard { asks_at: now.saturating_add(wait), wait, until: now.saturating_add(half_open::kept(wait)) }
    }

    /// True if the peer is to be probed now. The time of the next probe is then set.
    fn asks(&mut self, now: Time) -> bool {
        let asks = now >= self.asks_at;
        if asks {
            self.wait = Duration(self.wait.0.saturating_mul(2)).min(UNHEARD);
            self.asks_at = now.saturating_add(self.wait);
            if self.asks_at > self.until {
                self.asks_at = Time::NEVER;
            }
        }
        asks
    }
}

/// Times of the last signs of life of a connection.
#[derive(Debug)]
pub(super) struct Life {
    /// Time at which the connection was asked for.
    since: Time,
    /// Liveness of the peer: when it was last heard, and when it is taken for gone.
    pub(super) peer: Liveness,
    /// Time at which data last moved in either direction.
    pub(super) used: Time,
    /// Start of the current stall: the peer's window is open and nothing that waits or is in flight
    /// has been acknowledged since. `None` if there are no such data.
    pub(super) stuck: Option<Time>,
    /// Time from which a repeated acceptance is answered again.
    pub(super) answers_at: Time,
    /// Retry state while the peer has sent nothing but its acceptance. `None` at other times.
    pub(super) unheard: Option<Unheard>,
}

impl Life {
    pub(super) fn new(now: Time, settings: &Settings) -> Life {
        let keep_alive = settings.keep_alive.unwrap_or(Duration::MAX);
        let peer = Liveness::new(now, keep_alive, settings.silence_timeout);
        Life { since: now, peer, used: now, stuck: None, answers_at: Time::ZERO, unheard: None }
    }
}

impl Connection {
    /// True if the peer is expected to acknowledge data or the end of our stream.
    fn expects_peer(&self) -> bool {
        self.engine.acknowledged() < self.flow.written
            || (self.engine.state() == tpa::State::Established && self.engine.waits_for_end())
    }

    /// Time at which [`Connection::expire`] has something to do.
    #[inline]
    pub fn looks_at(&self) -> Time {
        match self.engine.state() {
            tpa::State::SynSent => (self.life.since + self.settings.connect_timeout).min(self.hurries_at()),
            tpa::State::Established => {
                let silent = self.life.peer.next_wakeup(self.expects_peer());
                let unheard = self.life.unheard.as_ref().map_or(Time::NEVER, |unheard| unheard.asks_at);
                silent.min(self.idle_at()).min(self.complaints.asks_at()).min(self.stuck_at()).min(unheard)
            }
            _ => Time::NEVER,
        }
    }

    /// Time at which a connection without data ends.
    fn idle_at(&self) -> Time {
        self.settings.idle_timeout.map_or(Time::NEVER, |span| self.life.used.saturating_add(span))
    }

    /// Time at which a stalled connection ends: its peer answers, but no data arrive there.
    fn stuck_at(&self) -> Time {
        self.life.stuck.map_or(Time::NEVER, |since| since.saturating_add(self.settings.silence_timeout))
    }

    /// True if data that the peer's window has room for wait or are in flight. An unacknowledged
    /// end of our stream does not count.
    pub(super) fn has_data_under_way(&self) -> bool {
        !self.engine.is_shut() && !self.has_arrived()
    }

    /// Updates the start of the stall. `has_moved` says whether data have been acknowledged.
    pub(super) fn note_stuck(&mut self, now: Time, has_moved: bool) {
        let waits = self.engine.state() == tpa::State::Established && self.has_data_under_way();
        self.life.stuck = if waits && !has_moved { self.life.stuck.or(Some(now)) } else { waits.then_some(now) };
    }

    /// Probes the peer or gives it up if it is time. Returns whether it did anything. To be called
    /// after every event.
    pub fn expire(&mut self, now: Time, exchange: &mut Exchange, out: &mut Outbox) -> bool {
        if now < self.looks_at() {
            return false;
        }
        let opening = self.engine.state() == tpa::State::SynSent;
        if opening && now < self.life.since + self.settings.connect_timeout {
            self.hurry(now, out);
            return true;
        }
        let is_unheard = !opening && self.life.unheard.as_mut().is_some_and(|unheard| unheard.asks(now));
        if !opening && (self.complaints.ask(now) || is_unheard) {
            self.engine.probe(now);
        }
        let verdict = if opening { Verdict::Gone } else { self.life.peer.poll(now, self.expects_peer()) };
        let idle = !opening && now >= self.idle_at();
        let is_stuck = !opening && now >= self.stuck_at();
        if is_stuck && verdict != Verdict::Gone && !self.awaits_final_ack() {
            let (peer, segment) = (self.addresses.peer, self.flow.segment);
            let span = self.settings.silence_timeout.as_secs_f64();
            let message = format!(
                "{peer} answers, and for {span:.0} s nothing of what was sent to it has arrived: the way may have become too narrow for \
                 segments of {segment} bytes, choose smaller ones"
            );
            exchange.fail(Failure::new(Reason::TimedOut, message));
            self.engine.abort(now);
        } else if verdict == Verdict::Gone || idle || is_stuck {
            if self.awaits_final_ack() {
                exchange.end();
            } else {
                let refusal = if let Phase::Opening { refusal } = &mut exchange.phase { refusal.take() } else { None };
                exchange.fail(self.silence(now, refusal, opening, verdict));
            }
            self.engine.abort(now);
        } else if verdict == Verdict::Probe {
            self.engine.probe(now);
            // No data have moved for a while, so empty buffers need not hold memory.
            exchange.send.rest();
            exchange.receive.rest();
            self.stage.framing_mut().into_iter().for_each(Framing::rest);
        }
        self.work(now, exchange, out);
        true
    }

    /// The failure to report for a peer that is given up.
    pub(super) fn silence(&self, now: Time, refusal: Option<String>, opening: bool, verdict: Verdict) -> Failure {
        let peer = self.addresses.peer;
        if verdict != Verdict::Gone {
            let span = now.since(self.life.used).as_secs_f64();
            return Failure::new(Reason::TimedOut, format!("no data from or to {peer} for {span:.0} s"));
        }
        let span = now.since(if opening { self.life.since } else { self.life.peer.heard() });
        if let Some(refusal) = refusal.filter(|_| opening) {
            let span = span.as_secs_f64();
            let message =
                format!("{refusal} (without proof that it is the peer who says so; no other answer for {span:.0} s)");
            return Failure::new(Reason::Refused, message);
        }
        if let Some(bytes) = self.unheard_length().filter(|_| opening) {
            let message = format!("{peer} answers short packets, and those of {bytes} bytes do not arrive there");
            return Failure::new(Reason::TooLong, message);
        }
        let last = self.complaints.last;
        let words = last.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let message = format!("no answer from {peer} for {:.0} s{words}", span.as_secs_f64());
        Failure::new(last.unwrap_or(Reason::TimedOut), message)
    }

    /// Time at which the connection is to be forgotten.
    #[inline]
    pub fn forgets_at(&self) -> Time {
        match &self.stage {
            Stage::Opening(_) | Stage::Open(_) => Time::NEVER,
            Stage::Orphaned { since, .. } => *since + ORPHAN,
            Stage::Over { since, .. } if self.engine.state() == tpa::State::Ended(tpa::End::Closed) => {
                *since + TIME_WAIT
            }
            Stage::Over { since, .. } => *since,
        }
    }

    /// Time at which to call [`Connection::work`] and then [`Connection::expire`] again, and to
    /// check whether the connection is to be forgotten.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        let path = if self.engine.is_done() { Time::NEVER } else { self.way.asks_at };
        self.engine_at.min(self.looks_at()).min(self.forgets_at()).min(path).min(self.roaming.due())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Report, Witness};
    use super::*;
    use crate::addresses::Addresses;
    use crate::budget::Account;
    use crate::engine::AnySegment;
    use crate::handshake::{Kind, Opening, Protection, Tag, Terms};
    use crate::host::{Host, Randomness};
    use crate::path::Fixed;
    use crate::security::Security;
    use crate::unpredictable::Unpredictable;
    use crate::{cipher, settings};
    use meshpace_core::Rate;
    use meshpace_transport::tpa::{Flags, Segment};
    use meshpace_transport::{PathInfo, train};
    use std::net::SocketAddr;
    use std::sync::Arc;

    /// A host on which nobody listens. All its random bytes have the value 1.
    struct Alone;

    impl Randomness for Alone {
        fn fill(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
            bytes.fill(1);
            Ok(())
        }
    }

    impl Host for Alone {
        fn listens(&mut self) -> bool {
            false
        }

        fn has_room(&mut self, _: std::net::IpAddr) -> bool {
            false
        }

        fn note_keys(&mut self, _: cipher::Cipher, _: [(Tag, &[u8; 32]); 2]) {}
    }

    /// A connection, the state it shares with its application, and its outgoing datagrams.
    struct Scene {
        connection: Connection,
        exchange: Exchange,
        out: Outbox,
    }

    impl Scene {
        /// A connection with trains that is being opened to a peer which has sent nothing yet.
        fn opening(connect_timeout: Duration, security: Security) -> Scene {
            let path = PathInfo { hops: 1, rate: Rate::from_mbps(11), received_power_dbm: None };
            let settings = Settings {
                trains: Some(train::Config::default()),
                path: Some(Arc::new(Fixed(path))),
                keep_alive: None,
                connect_timeout,
                security,
                ..settings::plain()
            };
            let config = settings.transport.clone();
            let mut exchange = Exchange::new(&settings, Terms::of(&config).block(), Account::default());
            let addresses = Addresses { peer: peer(), own: None };
            let own = (7, [1; 32], Unpredictable::new(&mut Alone).expect("random numbers"));
            let mut connection = Connection::open(Arc::new(settings), addresses, &config, own, Time::ZERO);
            let mut out = Outbox::default();
            connection.work(Time::ZERO, &mut exchange, &mut out);
            Scene { connection, exchange, out }
        }

        /// The same after the peer has accepted, and the peer's acceptance.
        fn open() -> (Scene, Opening) {
            let mut scene = Scene::opening(Duration::from_secs(30), Security::Plain);
            let asked = scene.request();
            let flags = Flags::SYN.with(Flags::ACK);
            let segment = Segment { block: 5, ack_block: asked.segment.block, window: 20, flags, ..Segment::default() };
            let acceptance = Opening { kind: Kind::Acceptance, acceptor: 8, segment, ..asked };
            scene.answer(Time::ZERO, &acceptance);
            assert!(scene.exchange.is_open());
            (scene, acceptance)
        }

        fn request(&self) -> Opening {
            let Stage::Opening(request) = &self.connection.stage else { unreachable!("it was opened here") };
            request.opening
        }

        fn answer(&mut self, now: Time, answer: &Opening) {
            let Scene { connection, exchange, out } = self;
            assert!(connection.on_answer(now, peer(), (answer, &[]), &mut Alone, exchange, out));
        }

        /// Lets time pass until the connection has failed, for ten minutes at most. Returns the
        /// time and the failure.
        fn failure(&mut self) -> (Time, Failure) {
            let mut now = Time::ZERO;
            while now < Time::ZERO + Duration::from_secs(600) {
                now = self.connection.next_wakeup().max(now);
                self.connection.work(now, &mut self.exchange, &mut self.out);
                self.connection.expire(now, &mut self.exchange, &mut self.out);
                if let Some(failure) = self.exchange.failure() {
                    return (now, failure.clone());
                }
            }
            panic!("still there");
        }
    }

    fn peer() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 2))
    }

    #[test]
    fn trains_to_a_peer_that_never_answers_time_out() {
        // However long one is ready to wait: trains themselves give up after 100 s.
        for (patience, seconds) in [(30, 30), (1000, 100)] {
            let mut scene = Scene::opening(Duration::from_secs(patience), Security::Plain);
            let (at, failure) = scene.failure();
            assert_eq!(failure.reason, Reason::TimedOut, "{failure:?}");
            assert!(failure.message.contains(&format!("no answer from 127.0.0.1:2 for {seconds} s")), "{failure:?}");
            assert_eq!(at, Time::ZERO + Duration::from_secs(seconds));
        }
    }

    #[test]
    fn a_refusal_ends_an_opening_only_where_nobody_has_to_prove_anything() {
        let refused_after = |security: Security, wants: Option<Protection>, why: &str| {
            let mut scene = Scene::opening(Duration::from_secs(30), security);
            let asked = scene.request();
            let protection = wants.unwrap_or(asked.protection);
            let refusal = Opening { kind: Kind::Refusal, protection, ..asked };
            let heard = Time::ZERO + Duration::from_millis(5);
            scene.answer(heard, &refusal);
            let failed = scene.exchange.failure().cloned();
            let (at, failure) = failed.map_or_else(|| scene.failure(), |failure| (heard, failure));
            assert!(failure.message.contains(why), "{failure:?}");
            (at.since(Time::ZERO), failure.reason)
        };
        let keys = Security::Keys { own: [1; 32], peers: vec![[2; 32]] };
        let (late, soon) = (Duration::from_secs(30), Duration::from_millis(5));
        for known in [Security::Shared([7; 32]), keys] {
            let why = "127.0.0.1:2 refuses the connection: the keys do not fit";
            assert_eq!(refused_after(known, None, why), (late, Reason::Refused));
        }
        for anybody in [Security::Plain, Security::Opportunistic] {
            let why = "127.0.0.1:2 refuses the connection: it wants encryption with known keys";
            assert_eq!(refused_after(anybody.clone(), Some(Protection::Ik), why), (soon, Reason::Refused));
            // There are no keys that could not fit: it is not the peer's.
            assert_eq!(refused_after(anybody, None, "no answer from 127.0.0.1:2"), (late, Reason::TimedOut));
        }
    }

    #[test]
    fn whoever_says_an_acceptance_again_and_again_does_not_have_a_sign_of_life_refused() {
        let (mut scene, acceptance) = Scene::open();
        let mut now = Time::ZERO;
        for _ in 0..100 {
            now += Duration::from_millis(20);
            scene.answer(now, &acceptance);
        }
        let mut out = Outbox::default();
        let probe = train::Segment { flags: Flags::SYN, ..Default::default() };
        scene.connection.on_opened(now, (&AnySegment::Train(probe), &[]), 0, &mut scene.exchange, &mut out);
        out.seal();
        assert_eq!(out.full.len(), 1);
    }

    #[test]
    fn trains_end_with_what_the_network_last_said_of_a_peer_that_fell_silent() {
        let (mut scene, _) = Scene::open();
        scene.exchange.send.write(b"anybody there?").unwrap();
        let Scene { connection, exchange, out } = &mut scene;
        connection.work(Time::ZERO, exchange, out);
        connection.on_complaint(Time::ZERO, Report::HostUnreachable, Witness::Network, exchange, out);
        let (_, failure) = scene.failure();
        assert_eq!(failure.reason, Reason::HostUnreachable, "{failure:?}");
        assert!(failure.message.contains("no answer from 127.0.0.1:2 for 100 s ("), "{failure:?}");
    }
}
