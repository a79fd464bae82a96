//! Answers to source addresses that are not verified: challenges, refusals, and messages that a tag
//! is unknown.
//!
//! If a datagram is addressed to a host that does not exist on the link, the kernel holds it for
//! about 3 s, until address resolution fails. Meanwhile the datagram counts against the send buffer
//! of its socket (`unres_qlen_bytes` and `mcast_solicit` in `ip-sysctl`). Requests with such forged
//! source addresses could fill that buffer, and nothing could be sent to any peer.
//!
//! Answers are therefore sent only while little of the buffer is in use. Above that level, networks
//! that received many answers recently get none. The other networks get answers until half of the
//! buffer is in use.

use super::Worker;
use crate::Clock;
use meshpace_core::{Duration, Time};
use meshpace_session::networks::{ALL, Census, Network, source_of};
use std::collections::VecDeque;

/// Share of the send buffer up to which every network is answered.
/// Share of the send buffer up to which networks with few recent answers are answered.
const EVERYBODY: f64 = 0.25;
const LIGHT: f64 = 0.5;
/// Time for which an answer may stay in the kernel: three requests of address resolution, 1 s
/// apart.
const HELD: Duration = Duration::from_secs(3);
/// Maximum number of answers that are remembered.
const MOST: usize = 128;
/// Number of attempts to send an answer. An attempt fails if the network reported an error about an
/// earlier datagram.
const TRIES: usize = 4;

/// Answers that may still be held in the kernel, by network of the destination.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    recent: VecDeque<(Time, Network)>,
    by_network: Census,
}

impl Strangers {
    /// Returns whether a source is answered when the share `load` of the send buffer is in use, and
    /// records the answer.
    fn may_answer(&mut self, now: Time, source: Network, load: f64) -> bool {
        while let Some((since, oldest)) = self.recent.front().copied()
            && (now.since(since) > HELD || self.recent.len() >= MOST)
        {
            self.recent.pop_front();
            self.by_network.remove(oldest, 1);
        }
        let may = load < EVERYBODY || (load < LIGHT && self.is_light(source));
        if may {
            self.recent.push_back((now, source));
            self.by_network.add(source, 1);
        }
        may
    }

    /// True if a network of the source has had at most half as many answers as the heaviest network
    /// of the same prefix length.
    fn is_light(&self, source: Network) -> bool {
        let mut around = ALL;
        for own in source.around() {
            let Some((most, heaviest)) = self.by_network.heaviest_in(around) else { return true };
            if 2 * (self.by_network.amount(own) + 1) <= most {
                return true;
            }
            if own != heaviest {
                return false;
            }
            around = own;
        }
        false
    }
}

impl Worker {
    /// Sends a port's answers to unverified addresses, or drops them.
    pub(super) fn answer_strangers(&mut self, id: u64) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        while let Some(message) = port.out.answers.pop_front() {
            if let Some((to, bytes, size)) = message.content()
                && !port.blocked
                && port.strangers.may_answer(Clock.now(), source_of(to.peer.ip()), port.socket.load())
            {
                // An error is a report of the network about an earlier datagram, or there is no
                // route. It is ignored because no connection depends on the answer.
                let _ = (0..TRIES).find(|_| port.socket.send(to, bytes, size).is_ok());
            }
            port.out.recycle(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: [u8; 4]) -> Network {
        source_of(address.into())
    }

    #[test]
    fn a_network_that_fills_the_buffer_takes_no_answers_from_others() {
        let (mut strangers, now) = (Strangers::default(), Time(1));
        // Unused addresses of a link: their answers stay in the kernel, and at a quarter of the buffer there are no more.
        for host in 1..=60 {
            assert!(strangers.may_answer(now, at([10, 0, 0, host]), 0.2));
        }
        assert!(!strangers.may_answer(now, at([10, 0, 0, 61]), 0.25));
        for newcomer in [[10, 0, 1, 1], [10, 9, 0, 1], [192, 0, 2, 1]] {
            assert!(strangers.may_answer(now, at(newcomer), 0.3), "{newcomer:?}");
            assert!(!strangers.may_answer(now, at(newcomer), 0.5), "{newcomer:?}");
        }
        // What the kernel has given up is forgotten.
        let later = now + HELD + Duration::from_millis(1);
        assert!(strangers.may_answer(later, at([10, 0, 0, 61]), 0.2));
        assert_eq!(strangers.recent.len(), 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut strangers = Strangers::default();
        for number in 0..10_000_u32 {
            assert!(strangers.may_answer(Time(1), source_of(number.to_be_bytes().into()), 0.0));
        }
        assert!(strangers.recent.len() <= MOST, "{}", strangers.recent.len());
    }
}
