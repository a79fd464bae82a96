//! Copa in its default mode: the window moves towards a rate that is inversely proportional to the
//! queueing delay.
//!
//! V. Arun, H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet",
//! NSDI 2018, section 2.1. Per ACK, where RTT_standing is the shortest RTT of the last srtt/2 and
//! RTT_min the shortest of the last 10 s:
//!
//! ```text
//! d_q = RTT_standing - RTT_min       the least RTT of the last srtt/2, and of the last 10 s
//! rate = cwnd / RTT_standing,  target = 1 / (delta d_q)
//! cwnd += v / (delta cwnd) per segment where rate <= target, else cwnd -= v / (delta cwnd)
//! ```
//!
//! Once per window the velocity v doubles if the window has moved in the same direction for three
//! round trips. When the direction changes, v is 1 again. Slow start doubles the window each round
//! trip until the rate exceeds its target. Segments leave RTT_standing / (2 cwnd) apart. In
//! equilibrium a flow has 1.25 / delta segments in the queue on average and 2.5 / delta at most
//! (section 3).
//!
//! Departures: there is no competitive mode (section 2.2), so the rule is for paths that Copa
//! shares only with Copa. RTT_min is the shortest RTT of the last 5 to 10 s. The paper does not
//! describe the effect of a retransmission timeout; here it starts slow start again with two
//! segments. As in the paper's default mode, a loss does not change the window.

use super::{About, Ack, Base, Described, Rule, parameter};
use alloc::boxed::Box;

/// Half of the longest time for which an RTT counts for RTT_min, in seconds.
const HORIZON: f64 = 5.0;
/// Number of round trips in the same direction before v doubles.
const STEADY: u32 = 3;
/// Number of samples kept for RTT_standing.
const SAMPLES: usize = 64;
/// The smallest window in segments.
const LEAST: f64 = 2.0;

/// State of the rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Copa {
    /// The parameter delta.
    delta: f64,
    slow_start: bool,
    /// Ring of the last samples: time of arrival and RTT, in seconds.
    samples: Box<[(f64, f64); SAMPLES]>,
    /// Index in `samples` at which the next sample is written.
    next: usize,
    /// Smoothed RTT (srtt) in seconds; 0 before the first sample.
    smoothed: f64,
    /// Shortest RTT of the current horizon and of the one before, in seconds.
    least: [f64; 2],
    /// Time in seconds at which the current horizon began.
    turned_at: f64,
    /// RTT_standing in seconds; 0 before the first sample.
    standing: f64,
    /// The velocity v.
    velocity: f64,
    /// True if the window grew in the last round trip.
    rises: bool,
    /// Number of further round trips in which the window has moved in this direction.
    windows: u32,
    /// Start of the current round trip: the time in seconds, and the window at that time.
    began: (f64, f64),
}

impl Copa {
    fn on_sample(&mut self, now: f64, rtt: f64) {
        self.smoothed = if self.smoothed == 0.0 { rtt } else { self.smoothed + 0.125 * (rtt - self.smoothed) };
        if now - self.turned_at > HORIZON {
            (self.turned_at, self.least) = (now, [f64::INFINITY, self.least[0]]);
        }
        self.least[0] = self.least[0].min(rtt);
        self.samples[self.next] = (now, rtt);
        self.next = (self.next + 1) % SAMPLES;
        let recent = self.samples.iter().filter(|(at, _)| *at >= now - self.smoothed / 2.0);
        self.standing = recent.fold(f64::INFINITY, |least, (_, rtt)| least.min(*rtt));
    }

    /// d_q, the queueing delay in seconds.
    fn queueing(&self) -> f64 {
        (self.standing - self.least[0].min(self.least[1])).max(0.0)
    }

    /// A round trip ended with a window of `cwnd` segments.
    fn on_round_trip(&mut self, now: f64, cwnd: f64) {
        let rises = cwnd > self.began.1;
        if rises == self.rises {
            self.windows += 1;
            if self.windows >= STEADY {
                self.velocity *= 2.0;
            }
        } else {
            (self.rises, self.windows, self.velocity) = (rises, 0, 1.0);
        }
        self.began = (now, cwnd);
    }

    fn begin(&mut self) {
        self.slow_start = true;
        (self.velocity, self.windows) = (1.0, 0);
    }
}

impl Described for Copa {
    const ABOUT: About = About {
        name: "copa",
        description: "Copa without its competitive mode: a rate inverse to the queueing delay",
        source: "Arun, Balakrishnan, NSDI 2018, section 2.1",
        parameters: &[parameter!(delta: f64 = 0.5 => number(0.004, 10.0), Expert,
            "the target rate is 1/delta segments per queueing delay", "Arun, Balakrishnan, NSDI 2018, 2.1")],
    };

    fn new(parameters: &[f64]) -> Copa {
        Copa {
            delta: parameters[0],
            slow_start: true,
            samples: Box::new([(f64::NEG_INFINITY, 0.0); SAMPLES]),
            next: 0,
            smoothed: 0.0,
            least: [f64::INFINITY; 2],
            turned_at: 0.0,
            standing: 0.0,
            velocity: 1.0,
            rises: true,
            windows: 0,
            began: (0.0, 0.0),
        }
    }
}

impl Rule for Copa {
    fn restart(&mut self, base: &mut Base, segments: u32) {
        self.begin();
        base.restart(segments);
    }

    fn on_ack(&mut self, base: &mut Base, ack: &Ack) {
        let now = ack.now.as_secs_f64();
        if ack.sample > 0.0 {
            self.on_sample(now, ack.sample);
        }
        if self.standing == 0.0 {
            return;
        }
        let (cwnd, segments) = (base.cwnd(), ack.segments as f64);
        let is_below = cwnd * self.delta * self.queueing() <= self.standing;
        if self.slow_start && is_below {
            base.set_cwnd((cwnd + segments).min(f64::from(base.limit())));
            self.began = (now, base.cwnd());
            return;
        }
        self.slow_start = false;
        if now - self.began.0 >= self.smoothed {
            self.on_round_trip(now, cwnd);
        }
        if is_below != self.rises {
            // The steps in one direction must not speed up those in the other.
            self.velocity = 1.0;
        }
        let step = self.velocity * segments / (self.delta * cwnd);
        let moved = if is_below { cwnd + step } else { cwnd - step };
        base.set_cwnd(moved.clamp(LEAST, f64::from(base.limit()).max(LEAST)));
    }

    fn on_counted_ack(&mut self, base: &mut Base, _: f64, ack: &Ack) {
        self.on_ack(base, ack);
    }

    fn on_fast_retransmit(&mut self, _: &mut Base, _: u32) {}

    fn on_timeout(&mut self, base: &mut Base, _: u32) {
        self.begin();
        base.set_cwnd(LEAST);
    }

    fn deflate(&mut self, _: &mut Base, _: u32) {}

    fn interval(&self, base: &Base) -> f64 {
        self.standing / (2.0 * base.cwnd())
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::super::bottleneck::{Link, Ran, run};
    use super::*;

    /// 100 segments a second, and so 10 of them under way where nothing waits.
    const LINK: Link = Link { service_s: 0.010, rtt_s: 0.100 };

    fn flows(delta: f64, flows: usize, seconds: f64) -> Ran {
        run(|| State::Copa(Copa::new(&[delta])), LINK, flows, seconds)
    }

    #[test]
    fn it_fills_the_link_with_the_queue_that_the_paper_derives() {
        // Section 3: a queue of 1.25/delta segments in the mean and 2.5/delta at most, for delta = 1/2 and 1/4.
        for (delta, most) in [(0.5, 5.0), (0.25, 10.0)] {
            let ran = flows(delta, 1, 120.0);
            assert!(ran.utilisation > 0.98, "{ran:?}");
            assert!(ran.queue > 0.0 && ran.queue < most, "{ran:?} with delta {delta}");
            assert!(ran.largest_queue < 2.0 * most, "{ran:?} with delta {delta}");
        }
    }

    #[test]
    fn two_flows_share_the_link() {
        let ran = flows(0.5, 2, 240.0);
        assert!(ran.utilisation > 0.98, "{ran:?}");
        assert!((0.4..0.6).contains(&ran.shares[0]), "{ran:?}");
    }
}
