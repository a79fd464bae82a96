//! What the network says about a connection's datagrams, and when a silent peer is given up.
//!
//! RFC 5927's rules for UDP: a complaint counts only if it quotes a datagram of this connection, tag included (the runtime looks), and
//! an open connection ends by complaints only if several come and nothing else does. An MTU is believed only if it is lower
//! than what is being sent.

use super::super::port::headers_to;
use super::super::shared::{Failure, Status};
use super::*;

/// Complaints about an open connection's datagrams without a sign of life, or of progress, in between that end it.
const COMPLAINTS: u8 = 3;

/// Who complains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Witness {
    /// This host, which has not sent it.
    Host,
    /// Somebody on the way, who quotes it.
    Network,
}

impl Connection {
    /// A datagram of ours met this error; `mtu` is what the way carries, 0 if nobody says.
    pub(in super::super) fn on_complaint(
        &mut self,
        now: Time,
        errno: i32,
        mtu: u32,
        witness: Witness,
        out: &mut Outbox,
    ) {
        let shared = Arc::clone(&self.shared);
        if errno == libc::EMSGSIZE {
            let needed = self.segment as u32 + headers_to(self.addresses.peer, &shared.options);
            if (mtu >= needed && witness == Witness::Network) || (mtu > 0 && self.lower(now, mtu, out)) {
                return;
            }
        }
        let mut state = shared.lock();
        if state.status == Status::Failed {
            return;
        }
        let opening = state.status == Status::Opening;
        match errno {
            libc::EMSGSIZE => {
                if witness == Witness::Network && !opening && !self.is_narrow() {
                    return;
                }
                let needed = self.segment as u32 + headers_to(self.addresses.peer, &shared.options);
                let mtu = if mtu > 0 { mtu.to_string() } else { "less".to_owned() };
                let message = format!(
                    "segments of {} bytes need an MTU of {needed}, the way to {} has {mtu}: choose smaller ones",
                    self.segment, self.addresses.peer,
                );
                shared.fail(&mut state, Failure::new(libc::EMSGSIZE, message));
                self.machine.abort(now);
            }
            libc::ECONNREFUSED => {
                self.complaints += 1;
                if self.lacks_last_word() {
                    self.end(&mut state);
                    self.machine.abort(now);
                } else if opening || self.complaints >= COMPLAINTS {
                    let message = format!("nobody listens on UDP port {}", self.addresses.peer);
                    shared.fail(&mut state, Failure::new(libc::ECONNREFUSED, message));
                    self.machine.abort(now);
                }
            }
            _ => {
                // No route, or none for a while. Some transports want to know.
                if matches!(errno, libc::EHOSTUNREACH | libc::ENETUNREACH) {
                    self.machine.on_route_failure(now);
                }
                self.complaint = Some(errno);
                if opening {
                    let reason = std::io::Error::from_raw_os_error(errno);
                    shared.fail(&mut state, Failure::new(errno, format!("{}: {reason}", self.addresses.peer)));
                    self.machine.abort(now);
                }
            }
        }
        self.work_locked(now, &mut state, out);
        drop(state);
        self.tell_application();
    }

    /// Whether the network has said several times, while nothing was acknowledged, that segments are too big.
    fn is_narrow(&mut self) -> bool {
        let progress = self.machine.stats().acked_bytes;
        if progress != self.narrow_at {
            (self.narrow_at, self.complaints) = (progress, 0);
        }
        self.complaints += 1;
        self.complaints >= COMPLAINTS
    }

    /// The peer's address says that it does not know the tag we use: the peer has begun anew, or somebody who can read our
    /// packets lies.
    pub(in super::super) fn on_stray(&mut self, now: Time, out: &mut Outbox) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if state.status == Status::Failed || self.machine.is_done() {
            return;
        }
        self.complaints += 1;
        let sealed = self.cover.as_ref().is_some_and(Cover::is_sealed);
        if self.lacks_last_word() {
            self.end(&mut state);
            self.machine.abort(now);
        } else if !sealed || self.complaints >= COMPLAINTS {
            shared.fail(&mut state, Failure::new(libc::ECONNRESET, "the peer does not know the connection any more"));
            self.machine.abort(now);
        }
        self.work_locked(now, &mut state, out);
        drop(state);
        self.tell_application();
    }

    /// Whether something is expected from the peer.
    fn expects_peer(&self) -> bool {
        self.machine.acknowledged() < self.written
            || (self.machine.state() == tpa::State::Established && self.machine.waits_for_end())
    }

    /// When there is something to do about silence.
    fn looks_at(&self) -> Time {
        match self.machine.state() {
            tpa::State::SynSent => self.since + self.shared.options.connect_timeout,
            tpa::State::Established => self.life.next_wakeup(self.expects_peer()).min(self.idle_at()),
            _ => Time::NEVER,
        }
    }

    /// When a connection without data ends.
    fn idle_at(&self) -> Time {
        self.shared.options.idle_timeout.map_or(Time::NEVER, |span| self.used.saturating_add(span))
    }

    /// Asks the peer for a sign of life or gives up if it is time. Returns whether the connection is to be forgotten.
    pub(in super::super) fn expire(&mut self, now: Time, out: &mut Outbox) -> bool {
        if now >= self.looks_at() {
            let opening = self.machine.state() == tpa::State::SynSent;
            let verdict = if opening { Verdict::Gone } else { self.life.poll(now, self.expects_peer()) };
            let idle = !opening && now >= self.idle_at();
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            if verdict == Verdict::Gone || idle {
                if self.lacks_last_word() {
                    self.end(&mut state);
                } else {
                    let failure = self.silence(now, state.refusal.take(), opening, verdict);
                    shared.fail(&mut state, failure);
                }
                self.machine.abort(now);
            } else if verdict == Verdict::Probe {
                self.machine.probe(now);
                // Nothing has moved for a while: what is empty need not take memory.
                state.send.rest();
                state.receive.rest();
                self.cover.as_mut().into_iter().for_each(Cover::rest);
            }
            self.work_locked(now, &mut state, out);
            drop(state);
            self.tell_application();
        }
        self.forgets_at() <= now
    }

    /// What to say of a peer that is given up.
    pub(super) fn silence(&self, now: Time, refusal: Option<String>, opening: bool, verdict: Verdict) -> Failure {
        let peer = self.addresses.peer;
        if verdict != Verdict::Gone {
            let span = now.since(self.used).as_secs_f64();
            return Failure::new(libc::ETIMEDOUT, format!("no data from or to {peer} for {span:.0} s"));
        }
        let span = now.since(if opening { self.since } else { self.life.heard() });
        if let Some(refusal) = refusal.filter(|_| opening) {
            let span = span.as_secs_f64();
            let message =
                format!("{refusal} (without proof that it is the peer who says so; no other answer for {span:.0} s)");
            return Failure::new(libc::ECONNREFUSED, message);
        }
        let errno = self.complaint.unwrap_or(libc::ETIMEDOUT);
        let reason = self.complaint.map(|errno| format!(" ({})", std::io::Error::from_raw_os_error(errno)));
        let message = format!("no answer from {peer} for {:.0} s{}", span.as_secs_f64(), reason.unwrap_or_default());
        Failure::new(errno, message)
    }

    fn forgets_at(&self) -> Time {
        let Some(over) = self.over_at else { return Time::NEVER };
        match self.machine.state() {
            tpa::State::Reset | tpa::State::Closed => over,
            tpa::State::Done => over + TIME_WAIT,
            // The application is gone and the peer has not closed.
            _ => over + ORPHAN,
        }
    }

    /// When to come back.
    pub(in super::super) fn next_wakeup(&self) -> Time {
        let path = if self.machine.is_done() { Time::NEVER } else { self.path_at };
        self.machine_at.min(self.looks_at()).min(self.forgets_at()).min(path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::handle::Handle;
    use super::super::super::handshake::{Kind, Opening};
    use super::super::super::options::Security;
    use super::super::super::path::Fixed;
    use super::*;
    use meshpace_core::Rate;
    use meshpace_transport::tpa::{Flags, Segment};
    use meshpace_transport::train;

    /// Trains under way to a peer that has said nothing yet.
    fn opening(options: Options) -> (Connection, Outbox) {
        opening_with(Security::Plain, options)
    }

    /// The same, protected.
    fn opening_with(security: Security, options: Options) -> (Connection, Outbox) {
        let path = PathInfo { hops: 1, rate: Rate::from_mbps(11), received_power_dbm: None };
        let options = Options {
            trains: Some(train::Config::default()),
            path: Some(Arc::new(Fixed(path))),
            keep_alive: None,
            security,
            ..options
        };
        let [local, peer] = [1, 2].map(|port| std::net::SocketAddr::from(([127, 0, 0, 1], port)));
        let (config, options) = (options.transport.clone(), Arc::new(options));
        let mailbox = Handle::start().unwrap().mailbox();
        let shared = Arc::new(Shared::new(1, local, peer, Terms::of(&config).block(), options, mailbox));
        let (addresses, mut out) = (Addresses { peer, own: None }, Outbox::default());
        let mut connection = Connection::open(1, addresses, shared, &config, 7, Time::ZERO);
        connection.work(Time::ZERO, &mut out);
        (connection, out)
    }

    /// Lets time pass until the connection has failed, for ten minutes at most: when, and why.
    fn failure(connection: &mut Connection, out: &mut Outbox) -> (Time, Failure) {
        let mut now = Time::ZERO;
        while now < Time::ZERO + Duration::from_secs(600) {
            now = connection.next_wakeup().max(now);
            connection.work(now, out);
            connection.expire(now, out);
            if let Some(failure) = connection.shared.lock().failure.clone() {
                return (now, failure);
            }
        }
        panic!("still there");
    }

    #[test]
    fn trains_to_a_peer_that_never_answers_time_out() {
        // However long one is ready to wait: trains themselves give up after 100 s.
        for (patience, seconds) in [(30, 30), (1000, 100)] {
            let connect_timeout = Duration::from_secs(patience);
            let (mut connection, mut out) = opening(Options { connect_timeout, ..Options::default() });
            let (at, failure) = failure(&mut connection, &mut out);
            assert_eq!(failure.errno, libc::ETIMEDOUT, "{failure:?}");
            assert!(failure.message.contains(&format!("no answer from 127.0.0.1:2 for {seconds} s")), "{failure:?}");
            assert_eq!(at, Time::ZERO + Duration::from_secs(seconds));
        }
    }

    #[test]
    fn a_refusal_ends_an_opening_only_where_nobody_has_to_prove_anything() {
        let refused_after = |security: Security| {
            let (mut connection, mut out) = opening_with(security, Options::default());
            let Origin::Ours(request) = &connection.origin else { unreachable!("it was opened here") };
            let refusal = Opening { kind: Kind::Refusal, ..request.opening };
            let heard = Time::ZERO + Duration::from_millis(5);
            connection.on_answer(heard, &refusal, &[], &mut out);
            let failed = connection.shared.lock().failure.clone();
            let (at, failure) = failed.map_or_else(|| failure(&mut connection, &mut out), |failure| (heard, failure));
            assert_eq!(failure.errno, libc::ECONNREFUSED, "{failure:?}");
            assert!(failure.message.contains("127.0.0.1:2 refuses the connection: the keys do not fit"), "{failure:?}");
            at.since(Time::ZERO)
        };
        let keys = Security::Keys { own: [1; 32], peers: vec![[2; 32]] };
        for known in [Security::Shared([7; 32]), keys] {
            assert_eq!(refused_after(known), Duration::from_secs(30));
        }
        for anybody in [Security::Plain, Security::Opportunistic] {
            assert_eq!(refused_after(anybody), Duration::from_millis(5));
        }
    }

    /// The same once it has accepted, and what it said.
    fn open(options: Options) -> (Connection, Outbox, Opening) {
        let (mut connection, mut out) = opening(options);
        let Origin::Ours(request) = &connection.origin else { unreachable!("it was opened here") };
        let Opening { segment: asked, .. } = request.opening;
        let flags = Flags::SYN.with(Flags::ACK);
        let segment = Segment { block: 5, ack_block: asked.block, window: 20, flags, ..Segment::default() };
        let acceptance = Opening { kind: Kind::Acceptance, acceptor: 8, segment, ..request.opening };
        connection.on_answer(Time::ZERO, &acceptance, &[], &mut out);
        assert_eq!(connection.shared.lock().status, Status::Open);
        (connection, out, acceptance)
    }

    #[test]
    fn whoever_says_an_acceptance_again_and_again_does_not_have_a_sign_of_life_refused() {
        let (mut connection, mut out, acceptance) = open(Options::default());
        let mut now = Time::ZERO;
        for _ in 0..100 {
            now += Duration::from_millis(20);
            connection.on_answer(now, &acceptance, &[], &mut out);
        }
        let mut out = Outbox::default();
        let probe = meshpace_transport::train::Segment { flags: Flags::SYN, ..Default::default() };
        connection.on_opened(now, &Inside::Train(probe), &[], 0, &mut out);
        out.seal();
        assert_eq!(out.full.len(), 1);
    }

    #[test]
    fn trains_end_with_what_the_network_last_said_of_a_peer_that_fell_silent() {
        let (mut connection, mut out, _) = open(Options::default());
        connection.shared.lock().send.write(b"anybody there?");
        connection.work(Time::ZERO, &mut out);
        connection.on_complaint(Time::ZERO, libc::EHOSTUNREACH, 0, Witness::Network, &mut out);
        let (_, failure) = failure(&mut connection, &mut out);
        assert_eq!(failure.errno, libc::EHOSTUNREACH, "{failure:?}");
        assert!(failure.message.contains("no answer from 127.0.0.1:2 for 100 s ("), "{failure:?}");
    }
}
