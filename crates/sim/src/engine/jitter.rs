//! Delay that no queue causes: packets with payload enter the mesh late at their source, by `link.jitter`.

use alloc::vec::Vec;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, FlowId, Rng, Time};
use meshpace_mesh::config::Jitter;

/// What a flow's packets are late by.
#[derive(Clone)]
struct Draw {
    rng: Rng,
    delay: Duration,
    /// Time from which on another one holds.
    until: Time,
    /// Time at which the packet before enters.
    last: Time,
}

/// The draws of all flows.
#[derive(Clone)]
pub(super) struct Lateness {
    config: Jitter,
    seed: u64,
    flows: Vec<Draw>,
}

impl Lateness {
    pub fn new(config: Jitter, seed: u64) -> Lateness {
        Lateness { config, seed, flows: Vec::new() }
    }

    /// True if packets are late at all.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.config.max_delay > Duration::ZERO
    }

    /// Time from `now` until a packet of `flow` that leaves its transport now enters the mesh: never before one that left earlier.
    pub fn draw(&mut self, now: Time, flow: FlowId) -> Duration {
        while self.flows.len() <= flow.index() {
            let rng = Rng::stream(self.seed, Purpose::Jitter, self.flows.len() as u64);
            self.flows.push(Draw { rng, delay: Duration::ZERO, until: Time::ZERO, last: Time::ZERO });
        }
        let draw = &mut self.flows[flow.index()];
        if now >= draw.until {
            draw.delay = Duration::from_secs_f64(draw.rng.uniform_in(0.0, self.config.max_delay.as_secs_f64()));
            draw.until = now.saturating_add(self.config.hold);
        }
        draw.last = draw.last.max(now.saturating_add(draw.delay));
        draw.last.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_millis(40);

    /// When packets of `flow` enter that leave their transport every millisecond for so many seconds.
    fn entries(hold: Duration, flow: FlowId, seconds: u64) -> Vec<(Time, Time)> {
        let mut lateness = Lateness::new(Jitter { max_delay: MOST, hold }, 1);
        let sent = (0..1_000 * seconds).map(|ms| Time::ZERO + Duration::from_millis(ms));
        sent.map(|now| (now, now + lateness.draw(now, flow))).collect()
    }

    #[test]
    fn packets_are_late_by_up_to_the_most_and_stay_in_order() {
        for hold in [Duration::ZERO, Duration::from_secs(1)] {
            let entries = entries(hold, FlowId(0), 100);
            assert!(entries.iter().all(|(sent, enters)| sent <= enters && enters.since(*sent) <= MOST));
            assert!(entries.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        }
    }

    #[test]
    fn a_draw_holds_and_is_uniform() {
        let delays: Vec<Duration> = entries(Duration::from_secs(1), FlowId(0), 500)
            .chunks(1_000)
            // Behind a longer draw packets of a shorter one wait until it has passed, for at most its length.
            .map(|second| {
                let (sent, enters) = second[999];
                assert!(
                    second[100..]
                        .iter()
                        .all(|(sent_too, enters_too)| enters_too.since(*sent_too) == enters.since(sent))
                );
                enters.since(sent)
            })
            .collect();
        // The mean of 500 draws is 20 ms, its standard deviation 40 / sqrt(12 * 500) = 0.52 ms: six of them.
        let mean = delays.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / 500.0;
        assert!((mean - 0.020).abs() < 6.0 * 0.52e-3, "{mean}");
    }

    #[test]
    fn flows_have_draws_of_their_own_and_none_is_late_without_jitter() {
        assert_ne!(entries(Duration::from_secs(1), FlowId(0), 10), entries(Duration::from_secs(1), FlowId(1), 10));
        assert!(!Lateness::new(Jitter::default(), 1).is_on());
    }
}
