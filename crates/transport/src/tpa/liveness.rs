//! Liveness of the peer: when it was last heard, when it is asked, when it is taken for gone.
//!
//! The paper knows neither keep-alives nor time-outs. As TCP's (RFC 9293, section 3.8.4; RFC 1122, section 4.2.3.6): an open
//! connection over which nothing was heard for a while is probed, and only a peer that answers none of several probes is
//! given up. While something of ours waits for an answer, the silence itself counts. A question, or its answer, may be lost, and the next ones
//! follow soon: an end that has moved shows by them alone where it is.

use meshpace_core::{Duration, Time};

/// Probes before the peer is taken for gone, at least.
const PROBES: u64 = 4;

/// Time that the peer has for its answer to the first, with each twice as long, up to a [`PROBES`]th of its whole time: the initial RTO
/// (RFC 6298, section 2).
const FIRST: Duration = Duration::from_secs(1);

/// Probes are not closer together than this.
const SHORTEST: Duration = Duration::from_millis(100);

/// Action that is due now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Wait,
    /// Ask the peer for a sign of life.
    Probe,
    /// The peer is gone.
    Gone,
}

/// Signs of life of the peer.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// Silence after which the peer is asked; [`Duration::MAX`] for never.
    keep_alive: Duration,
    /// Silence after which it is gone, if something was expected of it.
    silence: Duration,
    heard: Time,
    /// Time at which it is asked next, and that it has for its answer then.
    probe_at: Time,
    wait: Duration,
    /// It has been asked since it was heard.
    asked: bool,
}

impl Liveness {
    /// A peer heard at `now`. It is asked after `keep_alive` without a word, and gone after `silence`, at least that long.
    pub fn new(now: Time, keep_alive: Duration, silence: Duration) -> Liveness {
        let mut liveness =
            Liveness { keep_alive, silence, heard: now, probe_at: Time::NEVER, wait: FIRST, asked: false };
        liveness.on_heard(now);
        liveness
    }

    /// The peer gave a sign of life, or nothing is expected of it from before.
    pub fn on_heard(&mut self, now: Time) {
        self.heard = self.heard.max(now);
        self.asked = false;
        self.wait = FIRST;
        self.probe_at = self.heard.saturating_add(self.keep_alive);
    }

    /// Time at which it was last heard.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// Action that is due at `now`; `expects` is whether something of ours waits for an answer.
    pub fn poll(&mut self, now: Time, expects: bool) -> Verdict {
        if now >= self.gone_at(expects) {
            return Verdict::Gone;
        }
        if now < self.probe_at {
            return Verdict::Wait;
        }
        self.asked = true;
        self.probe_at = now.saturating_add(self.wait.min(self.interval()));
        self.wait = Duration(self.wait.0.saturating_mul(2));
        Verdict::Probe
    }

    /// The longest time between two probes.
    fn interval(&self) -> Duration {
        let left = self.silence.0.saturating_sub(self.keep_alive.0);
        Duration(left / PROBES).max(SHORTEST)
    }

    /// Time at which the peer is taken for gone; never while nothing is expected.
    fn gone_at(&self, expects: bool) -> Time {
        // Asked late, it has time for an answer all the same.
        let asked = Duration(self.keep_alive.0.saturating_add(PROBES * SHORTEST.0));
        match (self.asked, expects) {
            (true, _) => self.heard.saturating_add(self.silence.max(asked)),
            (false, true) => self.heard.saturating_add(self.silence),
            (false, false) => Time::NEVER,
        }
    }

    /// Time at which [`Liveness::poll`] has something to say.
    pub fn next_wakeup(&self, expects: bool) -> Time {
        self.probe_at.min(self.gone_at(expects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Time {
        Time(n * 1_000_000_000)
    }

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_silent_peer_is_asked_and_then_given_up() {
        let mut peer = Liveness::new(s(0), secs(10), secs(30));
        assert_eq!((peer.next_wakeup(false), peer.poll(s(9), false)), (s(10), Verdict::Wait));
        let asked: alloc::vec::Vec<_> = (10..30).filter(|&t| peer.poll(s(t), false) == Verdict::Probe).collect();
        // Twice as long each time, up to a fourth of what is left of the 30 s.
        assert_eq!(asked, [10, 11, 13, 17, 22, 27]);
        assert_eq!((peer.next_wakeup(false), peer.poll(s(30), false)), (s(30), Verdict::Gone));
    }

    #[test]
    fn an_answer_starts_it_over() {
        let mut peer = Liveness::new(s(0), secs(10), secs(30));
        assert_eq!(peer.poll(s(10), false), Verdict::Probe);
        peer.on_heard(s(11));
        assert_eq!((peer.next_wakeup(false), peer.poll(s(20), false)), (s(21), Verdict::Wait));
    }

    #[test]
    fn silence_counts_while_something_is_expected_and_without_keep_alive_only_then() {
        let mut peer = Liveness::new(s(0), Duration::MAX, secs(30));
        assert_eq!(peer.next_wakeup(false), Time::NEVER);
        assert_eq!(peer.poll(s(1000), false), Verdict::Wait);
        peer.on_heard(s(1000));
        assert_eq!((peer.poll(s(1029), true), peer.poll(s(1030), true)), (Verdict::Wait, Verdict::Gone));
    }
}
