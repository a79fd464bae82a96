//! A congestion window that no loss and no ACK changes. The sender of DCC controls only its pacing
//! rate (DCC, section IV.F and figure 6; README.md lists the papers).

use super::{Ack, Base, Rule};

/// The rule has no state: the congestion window stays at the maximum that [`Base`] holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant;

impl Constant {
    /// Creates a window that has `segments` segments from the start.
    pub fn base(segments: u32) -> Base {
        let (initial, maximum) = (segments, segments);
        let mut base = Base::new(initial, maximum);
        // The window is at its threshold, so there is no slow start.
        base.restart(segments);
        base
    }
}

impl Rule for Constant {
    fn restart(&mut self, _: &mut Base, _: u32) {}
    fn on_ack(&mut self, _: &mut Base, _: &Ack) {}
    fn on_counted_ack(&mut self, _: &mut Base, _: f64, _: &Ack) {}
    fn on_fast_retransmit(&mut self, _: &mut Base, _: u32) {}
    fn on_timeout(&mut self, _: &mut Base, _: u32) {}
    fn deflate(&mut self, _: &mut Base, _: u32) {}
}
