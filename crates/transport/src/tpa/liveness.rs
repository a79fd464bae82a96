//! Liveness of the peer: when it was last heard, when it is probed, and when it is considered gone.
//!
//! The paper has neither keep-alives nor timeouts for a silent peer. The rules follow TCP (RFC
//! 9293, section 3.8.4; RFC 1122, section 4.2.3.6). An open connection is probed after a period of
//! silence, and the peer is considered gone only if it answers none of several probes. While an
//! answer to data of this end is expected, the silence itself counts. A probe or its answer may be
//! lost, so that the next probes follow soon: for an end that has moved, they are the only packets
//! that show its new address.

use meshpace_core::{Duration, Time};

/// Least number of probes before the peer is considered gone.
const PROBES: u64 = 4;

/// Time for the answer to the first probe. Each further probe doubles it, up to a [`PROBES`]th of
/// the time from the first probe to the end of the allowed silence. The value is the initial RTO
/// (RFC 6298, section 2).
const FIRST: Duration = Duration::from_secs(1);

/// Shortest time between two probes.
const SHORTEST: Duration = Duration::from_millis(100);

/// Action that is due now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No action.
    Wait,
    /// Send a probe to the peer.
    Probe,
    /// The peer is gone.
    Gone,
}

/// Liveness state of one peer.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// Silence after which the peer is probed; [`Duration::MAX`] for never.
    keep_alive: Duration,
    /// Silence after which the peer is gone, if an answer was expected of it.
    silence: Duration,
    heard: Time,
    /// Time of the next probe, and the time for the answer to that probe.
    probe_at: Time,
    wait: Duration,
    /// True if the peer has been probed since it was last heard.
    asked: bool,
}

impl Liveness {
    /// Creates the state of a peer that was heard at `now`. The peer is probed after a silence of
    /// `keep_alive`, and is gone after `silence`, which must not be shorter.
    pub fn new(now: Time, keep_alive: Duration, silence: Duration) -> Liveness {
        let mut liveness =
            Liveness { keep_alive, silence, heard: now, probe_at: Time::NEVER, wait: FIRST, asked: false };
        liveness.on_heard(now);
        liveness
    }

    /// The peer was heard, or the silence before `now` shall not count.
    pub fn on_heard(&mut self, now: Time) {
        self.heard = self.heard.max(now);
        self.asked = false;
        self.wait = FIRST;
        self.probe_at = self.heard.saturating_add(self.keep_alive);
    }

    /// Time at which the peer was last heard.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// Returns the action that is due at `now`; `expects` tells whether this end waits for an
    /// answer.
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

    /// Longest time between two probes.
    fn interval(&self) -> Duration {
        let left = self.silence.0.saturating_sub(self.keep_alive.0);
        Duration(left / PROBES).max(SHORTEST)
    }

    /// Time at which the peer is considered gone; `Time::NEVER` while no answer is expected and no
    /// probe was sent.
    fn gone_at(&self, expects: bool) -> Time {
        // A peer that is probed late still has time to answer.
        let asked = Duration(self.keep_alive.0.saturating_add(PROBES * SHORTEST.0));
        match (self.asked, expects) {
            (true, _) => self.heard.saturating_add(self.silence.max(asked)),
            (false, true) => self.heard.saturating_add(self.silence),
            (false, false) => Time::NEVER,
        }
    }

    /// Time at which [`Liveness::poll`] returns an action other than [`Verdict::Wait`].
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
