//! Output of an endpoint that is asked for its next action, and the loop that drives any endpoint.

use meshpace_core::Time;

/// Next action of a protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output<S> {
    /// This segment has to be sent now.
    Transmit(S),
    /// Nothing is sent before this time, unless another event happens earlier.
    Wait(Time),
    /// Nothing is sent until another event happens.
    Idle,
}

impl<S> Output<S> {
    /// Creates the output from the segment that may leave, if any, and the time of the next timer.
    /// That time is [`Time::NEVER`] if no timer runs.
    #[inline]
    pub fn new(segment: Option<S>, timer: Time) -> Output<S> {
        match segment {
            Some(segment) => Output::Transmit(segment),
            None if timer == Time::NEVER => Output::Idle,
            None => Output::Wait(timer),
        }
    }

    /// Converts the segment with `form`.
    #[inline]
    pub fn map<T>(self, form: impl FnOnce(S) -> T) -> Output<T> {
        match self {
            Output::Transmit(segment) => Output::Transmit(form(segment)),
            Output::Wait(until) => Output::Wait(until),
            Output::Idle => Output::Idle,
        }
    }

    /// The segment to be sent; `None` if there is none.
    #[inline]
    pub fn segment(self) -> Option<S> {
        match self {
            Output::Transmit(segment) => Some(segment),
            Output::Wait(_) | Output::Idle => None,
        }
    }
}

/// A protocol that the caller drives with its clock. It does nothing by itself. The caller polls it
/// until it has nothing more to transmit, after every event and at the time of the last
/// [`Output::Wait`].
pub trait Machine {
    /// Type of the segments that the protocol sends.
    type Segment;

    /// Performs the actions that are due at `now` and returns the next one. `now` never goes back.
    fn poll(&mut self, now: Time) -> Output<Self::Segment>;
}

/// Polls `machine` until it has nothing more to transmit. Each segment is passed to `send`,
/// together with the machine. Returns the time of the next poll; [`Time::NEVER`] if no poll is
/// needed before another event.
#[inline]
pub fn pump<M: Machine>(machine: &mut M, now: Time, mut send: impl FnMut(&mut M, M::Segment)) -> Time {
    loop {
        match machine.poll(now) {
            Output::Transmit(segment) => send(machine, segment),
            Output::Wait(until) => return until,
            Output::Idle => return Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{Config, Source};
    use alloc::vec::Vec;
    use meshpace_core::Rate;

    #[test]
    fn a_source_with_a_rate_transmits_waits_and_idles() {
        // 1000 bytes at 8 Mbit/s: one datagram per millisecond.
        let mut source = Source::new(&Config { segment: 1000, rate: Some(Rate::from_mbps(8)) });
        source.open(Time(0));
        source.write(Time(0), 2500);
        let mut sent = Vec::new();
        let mut now = Time(0);
        while now != Time::NEVER {
            now = pump(&mut source, now, |_, datagram| sent.push((now, datagram.payload)));
        }
        assert_eq!(sent, [(Time(0), 1000), (Time(1_000_000), 1000), (Time(2_000_000), 500)]);
        assert_eq!(source.poll(Time(9_000_000)), Output::Idle);
    }
}
