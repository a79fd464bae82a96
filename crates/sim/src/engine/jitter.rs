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
        self.config.most > Duration::ZERO
    }

    /// Time from `now` until a packet of `flow` that leaves its transport now enters the mesh: never before one that left earlier.
    pub fn draw(&mut self, now: Time, flow: FlowId) -> Duration {
        while self.flows.len() <= flow.index() {
            let rng = Rng::stream(self.seed, Purpose::Jitter, self.flows.len() as u64);
            self.flows.push(Draw { rng, delay: Duration::ZERO, until: Time::ZERO, last: Time::ZERO });
        }
        let draw = &mut self.flows[flow.index()];
        if now >= draw.until {
            draw.delay = Duration::from_secs_f64(draw.rng.uniform_in(0.0, self.config.most.as_secs_f64()));
            draw.until = now.saturating_add(self.config.hold);
        }
        draw.last = draw.last.max(now.saturating_add(draw.delay));
        draw.last.since(now)
    }
}
