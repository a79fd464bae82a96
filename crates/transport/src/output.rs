//! The answer of an endpoint that is asked what to do next, and the loop that drives any endpoint.

use meshpace_core::Time;

/// Next action of a protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output<S> {
    /// This segment leaves now.
    Transmit(S),
    /// Nothing leaves before this time, unless something happens until then.
    Wait(Time),
    /// Nothing leaves until something happens.
    Idle,
}

impl<S> Output<S> {
    /// Answer that follows from the segment that may leave, if any, and from the time of the next timer, which is
    /// [`Time::NEVER`] if none runs.
    #[inline]
    pub fn new(segment: Option<S>, timer: Time) -> Output<S> {
        match segment {
            Some(segment) => Output::Transmit(segment),
            None if timer == Time::NEVER => Output::Idle,
            None => Output::Wait(timer),
        }
    }

    /// The same with another form of segment.
    #[inline]
    pub fn map<T>(self, form: impl FnOnce(S) -> T) -> Output<T> {
        match self {
            Output::Transmit(segment) => Output::Transmit(form(segment)),
            Output::Wait(until) => Output::Wait(until),
            Output::Idle => Output::Idle,
        }
    }

    /// The segment that leaves, if one does.
    #[inline]
    pub fn segment(self) -> Option<S> {
        match self {
            Output::Transmit(segment) => Some(segment),
            Output::Wait(_) | Output::Idle => None,
        }
    }
}

/// A protocol under a clock of its caller's. It does nothing by itself: after anything happened to it, and when the time of
/// its last [`Output::Wait`] has come, it is polled until it has nothing more to transmit.
pub trait Machine {
    /// Segments that it sends.
    type Segment;

    /// Does what is due at `now`, which never goes back, and says what comes next.
    fn poll(&mut self, now: Time) -> Output<Self::Segment>;
}

/// Polls `machine` until it has nothing more to transmit and hands each segment to `send`, together with the machine.
/// Returns when to come back; [`Time::NEVER`] if not before something happens.
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
