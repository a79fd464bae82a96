//! TCP-FeW: in congestion avoidance the window grows by a fraction of the step that NewReno adds.
//!
//! K. Nahm, A. Helmy, C. Kuo, "TCP over Multihop 802.11 Networks: Issues and Performance
//! Enhancement", MobiHoc 2005. The value 0.01 is the one that DCC, section V, states: per ACK, cwnd
//! += 0.01 / cwnd. Slow start and the response to loss are those of NewReno, because neither DCC
//! nor its table says otherwise.

use super::{Ack, Base, Rule};

/// State of FeW, which is only its parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Few {
    /// Segments by which the window grows per round trip in congestion avoidance.
    pub increment: f64,
}

impl Rule for Few {
    fn on_ack(&mut self, base: &mut Base, _: &Ack) {
        base.set_cwnd(increase(base.cwnd(), base.ssthresh(), self.increment));
    }

    fn on_counted_ack(&mut self, base: &mut Base, step: f64, _: &Ack) {
        let grown = if base.in_slow_start() { step } else { self.increment * step };
        base.set_cwnd(base.cwnd() + grown);
    }
}

/// The increment in segments that DCC, section V, gives.
pub const INCREMENT: f64 = 0.01;

/// The window in segments after an ACK of new data.
pub fn increase(cwnd: f64, ssthresh: u32, increment: f64) -> f64 {
    cwnd + if cwnd < f64::from(ssthresh) { 1.0 } else { increment / cwnd }
}
