//! The interface of all window rules: what they are told and what they may change.

use super::Base;
use crate::about::About;
use meshpace_core::Time;

/// An ACK of new data outside recovery.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ack {
    /// Segments that it covers and none before did.
    pub segments: u64,
    /// Time at which it arrived.
    pub now: Time,
    /// The smoothed RTT then, seconds; 0 before the first sample.
    pub rtt: f64,
    /// The round trip of the newest segment that it covers, seconds; 0 if one of them was sent twice.
    pub sample: f64,
    /// Segments that are still unacknowledged.
    pub outstanding: u64,
}

/// Growth of a congestion window, and its reduction by a loss. A rule has RFC 5681's behaviour where it defines none.
pub trait Rule {
    /// The path has `hops` hops; the receiver takes `max_window` segments.
    fn on_hops(&mut self, _base: &mut Base, _hops: u8, _max_window: u32) {}

    /// The handshake ends, or the connection was idle: start with `segments`.
    fn restart(&mut self, base: &mut Base, segments: u32) {
        base.restart(segments);
    }

    /// An ACK of new data outside recovery; the window grows per ACK.
    fn on_ack(&mut self, base: &mut Base, _ack: &Ack) {
        base.on_ack();
    }

    /// The same where the window grows by what ACKs cover (RFC 3465): NewReno would add `step` segments.
    fn on_counted_ack(&mut self, base: &mut Base, step: f64, _ack: &Ack) {
        base.set_cwnd(base.cwnd() + step);
    }

    /// Loss seen by duplicate ACKs, or a congestion mark; `inflation` segments more than cwnd were allowed.
    fn on_fast_retransmit(&mut self, base: &mut Base, inflation: u32) {
        base.on_fast_retransmit(inflation);
    }

    /// Loss seen by the timer.
    fn on_timeout(&mut self, base: &mut Base, inflation: u32) {
        base.on_timeout(inflation);
    }

    /// Seconds between two segments that the rule asks for, with pacing that follows it (`pacing = "by-window"`); 0: as the window allows.
    fn interval(&self, _base: &Base) -> f64 {
        0.0
    }

    /// A partial ACK takes `segments` back (RFC 6582, section 3.2, step 3 B).
    fn deflate(&mut self, base: &mut Base, segments: u32) {
        base.deflate(segments);
    }
}

/// A rule of one file: its name and its parameters stand in it too.
pub trait Described: Rule {
    /// Its name and its parameters.
    const ABOUT: About;

    /// No loss yet. `parameters` are in the order of [`About::parameters`] and in their ranges.
    fn new(parameters: &[f64]) -> Self;
}
