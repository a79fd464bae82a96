//! BBR as a window rule: it models the rate of the bottleneck and the shortest round trip. The
//! control is that of `crate::bbr`.
//!
//! N. Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00 for the control. The rate of an ACK that covers
//! new data follows draft-cheng-iccrg-delivery-rate-estimation-02:
//!
//! ```text
//! rate = (delivered now - delivered when the newest segment left) / (now - time of the last ACK before that one left)
//! ```
//!
//! The rule needs `pacing = "by-window"`. Departures, besides those of `crate::bbr`: segments that
//! duplicate ACKs report count only when recovery ends. The time that the segments took to leave is
//! not looked at, so ACKs that arrive in a burst can raise the rate. While the application pauses,
//! the measured rate still counts as that of the path. After a retransmission timeout the window is
//! one segment until the next ACK.

use super::{About, Ack, Base, Described, Rule};
use crate::bbr::control::Control;
use crate::bbr::flight::News;
use alloc::boxed::Box;
use meshpace_core::{Duration, Time};

/// Payload bytes of a segment, for the control. Windows in this folder are counted in segments.
const SEGMENT: u32 = 1460;
/// Number of recent ACKs that are remembered. It is larger than a window of segments.
const ACKS: usize = 128;

/// State of the rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Bbr(Box<Model>);

#[derive(Clone, PartialEq, Debug)]
struct Model {
    control: Control,
    /// Bytes that have been acknowledged.
    delivered: u64,
    /// Ring of the most recent ACKs: the time of each, and the bytes delivered up to that time.
    acks: [(Time, u64); ACKS],
    /// Index in `acks` at which the next ACK is written.
    next: usize,
}

impl Model {
    /// Time of the last ACK at or before `at`, and the bytes delivered up to that time.
    fn at(&self, at: Time) -> (Time, u64) {
        self.acks.iter().filter(|ack| ack.0 <= at).copied().fold((Time::ZERO, 0), |one, other| if other.0 >= one.0 { other } else { one })
    }

    fn on_ack(&mut self, ack: &Ack) {
        let bytes = ack.segments * u64::from(SEGMENT);
        self.delivered += bytes;
        let mut news = News { bytes, ..News::default() };
        if ack.sample > 0.0 {
            let rtt = Duration::from_secs_f64(ack.sample);
            let (since, before) = self.at(Time(ack.now.0.saturating_sub(rtt.0)));
            let elapsed = ack.now.since(since).as_secs_f64();
            news.rtt = Some(rtt);
            news.delivered_before = before;
            news.rate = (elapsed > 0.0).then(|| (self.delivered - before) as f64 / elapsed);
        }
        self.control.on_report(ack.now, &news, ack.outstanding * u64::from(SEGMENT), self.delivered);
        self.acks[self.next] = (ack.now, self.delivered);
        self.next = (self.next + 1) % ACKS;
    }

    /// Number of segments that may be in flight.
    fn window(&self) -> f64 {
        self.control.window() as f64 / f64::from(SEGMENT)
    }
}

impl Described for Bbr {
    const ABOUT: About = About {
        name: "bbr",
        description: "BBR version 1, which estimates the bottleneck rate and the shortest round trip",
        source: "Cardwell et al., ACM Queue 14(5), 2016",
        parameters: &[],
    };

    fn new(_: &[f64]) -> Bbr {
        Bbr(Box::new(Model { control: Control::new(SEGMENT), delivered: 0, acks: [(Time::ZERO, 0); ACKS], next: 0 }))
    }
}

impl Rule for Bbr {
    fn on_ack(&mut self, base: &mut Base, ack: &Ack) {
        self.0.on_ack(ack);
        base.set_cwnd(self.0.window());
    }

    fn on_counted_ack(&mut self, base: &mut Base, _: f64, ack: &Ack) {
        self.on_ack(base, ack);
    }

    fn on_fast_retransmit(&mut self, _: &mut Base, _: u32) {}

    fn on_timeout(&mut self, base: &mut Base, _: u32) {
        self.0.control.on_silence();
        base.restart(1);
    }

    fn deflate(&mut self, _: &mut Base, _: u32) {}

    fn interval(&self, _: &Base) -> f64 {
        f64::from(SEGMENT) / self.0.control.pacing_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::super::bottleneck::{Link, Ran, run};
    use super::*;

    fn flows(flows: usize, seconds: f64) -> Ran {
        run(|| State::Bbr(Bbr::new(&[])), Link { service_s: 0.010, rtt_s: 0.100 }, flows, seconds)
    }

    #[test]
    fn it_fills_the_link_and_leaves_a_short_queue() {
        // 10 segments under way where nothing waits. Section 4.3.4 of the draft: the rate is probed with 1.25 times it for a round trip, which
        // queues a quarter of those, and the next one drains them. The receive window of 64 would allow a queue of 54.
        let ran = flows(1, 120.0);
        assert!(ran.utilisation > 0.95, "{ran:?}");
        assert!(ran.queue < 5.0, "{ran:?}");
    }

    #[test]
    fn two_flows_share_the_link() {
        let ran = flows(2, 240.0);
        assert!(ran.utilisation > 0.95, "{ran:?}");
        assert!((0.3..0.7).contains(&ran.shares[0]), "{ran:?}");
    }
}
