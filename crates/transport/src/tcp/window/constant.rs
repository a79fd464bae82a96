//! A window that never changes, whatever is lost (DCC, section IV.F and figure 6): the rate alone is controlled.

use super::{Ack, Base, Rule};

/// The size is the limit of the window.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant;

impl Constant {
    /// A window of `segments` from the start.
    pub fn base(segments: u32) -> Base {
        let mut base = Base::new(segments, segments);
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
