//! Random delay without a queue: packets with payload enter the mesh late at their source, by
//! `link.jitter`.

use alloc::vec::Vec;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, FlowId, Rng, Time};
use meshpace_mesh::config::Jitter;

/// Delay of the packets of a flow.
#[derive(Clone)]
struct FlowDelay {
    rng: Rng,
    delay: Duration,
    /// Time from which a new delay is drawn.
    until: Time,
    /// Time at which the previous packet enters the mesh.
    last: Time,
}

/// Delays of all flows.
#[derive(Clone)]
pub(super) struct SourceDelays {
    config: Jitter,
    seed: u64,
    flows: Vec<FlowDelay>,
}

impl SourceDelays {
    pub fn new(config: Jitter, seed: u64) -> SourceDelays {
        SourceDelays { config, seed, flows: Vec::new() }
    }

    /// True if packets are delayed at all.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.config.max_delay > Duration::ZERO
    }

    /// Time from `now` until a packet of `flow` that leaves its transport now enters the mesh. A
    /// packet never enters before an earlier one.
    pub fn draw(&mut self, now: Time, flow: FlowId) -> Duration {
        while self.flows.len() <= flow.index() {
            let rng = Rng::stream(self.seed, Purpose::Jitter, self.flows.len() as u64);
            self.flows.push(FlowDelay { rng, delay: Duration::ZERO, until: Time::ZERO, last: Time::ZERO });
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

    /// Times at which packets of `flow` enter the mesh, if they leave their transport every
    /// millisecond for `seconds` seconds.
    fn entries(hold: Duration, flow: FlowId, seconds: u64) -> Vec<(Time, Time)> {
        let mut source_delays = SourceDelays::new(Jitter { max_delay: MOST, hold }, 1);
        let sent = (0..1_000 * seconds).map(|ms| Time::ZERO + Duration::from_millis(ms));
        sent.map(|now| (now, now + source_delays.draw(now, flow))).collect()
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
            // Packets with a shorter delay wait behind those with a longer one until these have
            // passed, at most for the longer delay.
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
        // The mean of 500 draws is 20 ms, with a standard deviation of 40 / sqrt(12 * 500) = 0.52
        // ms; the tolerance is six of them.
        let mean = delays.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / 500.0;
        assert!((mean - 0.020).abs() < 6.0 * 0.52e-3, "{mean}");
    }

    #[test]
    fn flows_have_draws_of_their_own_and_none_is_late_without_jitter() {
        assert_ne!(entries(Duration::from_secs(1), FlowId(0), 10), entries(Duration::from_secs(1), FlowId(1), 10));
        assert!(!SourceDelays::new(Jitter::default(), 1).is_on());
    }
}
