//! A congestion window that never changes, whatever is lost: the sender of DCC controls its pacing rate alone (DCC, section IV.F and
//! figure 6; README.md lists the papers).

use super::{Ack, Base, Rule};

/// Has no state: the congestion window stays at the maximum that [`Base`] holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant;

impl Constant {
    /// The state of a window that has `segments` before the first ACK.
    pub fn base(segments: u32) -> Base {
        let (initial, maximum) = (segments, segments);
        let mut base = Base::new(initial, maximum);
        // No slow start.
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
