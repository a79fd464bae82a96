//! Interface of all window rules: the events that a rule receives, and the state that it may
//! change.

use super::Base;
use crate::about::About;
use meshpace_core::Time;

/// An ACK of new data outside recovery.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ack {
    /// Number of segments that this ACK covers and no earlier one covered.
    pub segments: u64,
    /// Time at which the ACK arrived.
    pub now: Time,
    /// Smoothed RTT in seconds when the ACK arrived; 0 before the first sample.
    pub rtt: f64,
    /// Round trip in seconds of the newest segment that the ACK covers; 0 if one of the covered
    /// segments was sent twice.
    pub sample: f64,
    /// Number of segments that are still unacknowledged.
    pub outstanding: u64,
}

/// Growth of a congestion window, and its reduction after a loss. A rule behaves as RFC 5681 where
/// it does not define a method.
pub trait Rule {
    /// The path has `_hops` hops. The receiver accepts `_max_window` segments.
    fn on_hops(&mut self, _base: &mut Base, _hops: u8, _max_window: u32) {}

    /// The handshake ended, or the connection was idle. Starts again with `segments` segments.
    fn restart(&mut self, base: &mut Base, segments: u32) {
        base.restart(segments);
    }

    /// An ACK of new data arrived outside recovery, and the window grows per ACK.
    fn on_ack(&mut self, base: &mut Base, _ack: &Ack) {
        base.on_ack();
    }

    /// An ACK of new data arrived outside recovery, and the window grows by the amount that ACKs
    /// cover (RFC 3465). NewReno would add `step` segments.
    fn on_counted_ack(&mut self, base: &mut Base, step: f64, _ack: &Ack) {
        base.set_cwnd(base.cwnd() + step);
    }

    /// Duplicate ACKs report a loss, or a congestion mark arrived. `inflation` is the number of
    /// segments beyond cwnd that were allowed.
    fn on_fast_retransmit(&mut self, base: &mut Base, inflation: u32) {
        base.on_fast_retransmit(inflation);
    }

    /// The retransmission timer expired.
    fn on_timeout(&mut self, base: &mut Base, inflation: u32) {
        base.on_timeout(inflation);
    }

    /// Interval in seconds between two segments that the rule asks for. It has an effect if the
    /// pacing follows the window rule (`pacing = "by-window"`). If it is 0, segments leave as the
    /// window allows.
    fn interval(&self, _base: &Base) -> f64 {
        0.0
    }

    /// Takes back `segments` segments after a partial ACK (RFC 6582, section 3.2, step 3 B).
    fn deflate(&mut self, base: &mut Base, segments: u32) {
        base.deflate(segments);
    }
}

/// A rule of one file. Its name and its parameters are in that file too.
pub trait Described: Rule {
    /// Name and parameters of the rule.
    const ABOUT: About;

    /// Creates the state before any loss. `parameters` are in the order of [`About::parameters`]
    /// and within their ranges.
    fn new(parameters: &[f64]) -> Self;
}
