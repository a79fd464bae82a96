//! Model for tests of window rules: flows share one link, which serves segments in order, loses
//! none and returns an ACK for each.

use super::{Base, State, Window};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};

/// The bottleneck link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Service time of a segment in seconds.
    pub service_s: f64,
    /// Round trip in seconds when the queue is empty, including the service time of the segment.
    pub rtt_s: f64,
}

/// Results, measured in the second half of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Ran {
    /// Fraction of the time during which the link was busy.
    pub utilisation: f64,
    /// Fraction of the segments that each flow delivered.
    pub shares: Vec<f64>,
    /// Average number of segments in the queue when a segment arrives.
    pub queue: f64,
    /// Largest number of segments in the queue when a segment arrives.
    pub largest_queue: f64,
}

/// A flow with its window.
struct Flow {
    window: Window,
    /// ACKs on their way to the sender: the arrival time of each, and the time at which its segment
    /// was sent.
    acks: VecDeque<(f64, f64)>,
    /// Time at which the rule's rate allows the next segment to leave.
    earliest: f64,
    arrived: u64,
}

/// Simulates `flows` senders for `seconds`. `of` creates the rule of each sender; the senders start
/// one second apart.
pub fn run(of: impl Fn() -> State, link: Link, flows: usize, seconds: f64) -> Ran {
    let start = |number: usize| {
        let mut window = Window::new(Base::new(64, 20), of(), 64);
        window.restart(2);
        Flow { window, acks: VecDeque::new(), earliest: number as f64, arrived: 0 }
    };
    let mut senders: Vec<Flow> = (0..flows).map(start).collect();
    let (mut free, mut served, mut queue, mut count, mut largest) = (0.0_f64, 0.0, 0.0, 0.0, 0.0_f64);
    loop {
        // The next event is an ACK, or a segment that window and rate allow, whichever comes first.
        let mut first = (f64::INFINITY, 0, false);
        for (place, flow) in senders.iter().enumerate() {
            if let Some((at, _)) = flow.acks.front()
                && *at < first.0
            {
                first = (*at, place, true);
            }
            let allowed = (flow.acks.len() as u64) < flow.window.usable(0);
            if allowed && flow.earliest < first.0 {
                first = (flow.earliest, place, false);
            }
        }
        let (now, place, is_ack) = first;
        assert!(now.is_finite(), "nothing is under way and nothing may leave");
        if now > seconds {
            break;
        }
        let counts = now > seconds / 2.0;
        let flow = &mut senders[place];
        if is_ack {
            let Some((_, sent)) = flow.acks.pop_front() else { continue };
            let time = Time::ZERO + Duration::from_secs_f64(now);
            flow.window.on_clock(time, now - sent);
            flow.window.on_sample(Some(now - sent), flow.acks.len() as u64);
            flow.window.on_ack(1);
            flow.arrived += u64::from(counts);
            flow.earliest = flow.earliest.max(now);
        } else {
            let begins = free.max(now);
            free = begins + link.service_s;
            flow.acks.push_back((free + link.rtt_s - link.service_s, now));
            flow.earliest = now + flow.window.interval();
            if counts {
                served += link.service_s;
                let waiting = (begins - now) / link.service_s;
                queue += waiting;
                count += 1.0;
                largest = largest.max(waiting);
            }
        }
    }
    let total: u64 = senders.iter().map(|flow| flow.arrived).sum();
    Ran {
        utilisation: served / (seconds / 2.0),
        shares: senders.iter().map(|flow| flow.arrived as f64 / total as f64).collect(),
        queue: queue / count,
        largest_queue: largest,
    }
}
