//! What is handed to a carrier, and when: as little as it needs to go on, so that it is decided late what goes first.

use super::carrier::Carrier;
use super::machine::Session;
use super::meter::{self, Meter};
use meshpace_core::Time;
use meshpace_transport::Stats;

/// What is known of a carrier that is to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// What it has counted.
    pub(crate) stats: Stats,
    /// Bytes handed to it whose arrival is not known.
    pub(crate) under_way: usize,
    /// Bytes of those that have not left, and as many as are to be, where BBR carries it.
    pub(crate) unsent: Option<(usize, usize)>,
}

/// Hands a session's frames to its carriers.
#[derive(Debug)]
pub(crate) struct Handing {
    meters: [Meter; 2],
    out: Vec<u8>,
    /// Express has been handed something, which bulk has not been told yet.
    small: bool,
}

impl Default for Handing {
    fn default() -> Handing {
        Handing { meters: Carrier::ALL.map(Meter::new), out: Vec::new(), small: false }
    }
}

impl Handing {
    /// The bytes that a carrier is to take now, whole: its buffer holds more than may be under way. None of them if it has enough.
    pub(crate) fn next(&mut self, now: Time, session: &mut Session, carrier: Carrier, sending: &Sending) -> &[u8] {
        let Sending { stats, under_way, unsent } = *sending;
        session.on_under_way(now, carrier, under_way);
        let meter = &mut self.meters[carrier as usize];
        let room = match unsent {
            Some((unsent, ahead)) => meter::room_of_bbr(carrier, unsent, under_way, ahead),
            None => meter.room(under_way, &stats),
        };
        self.out.clear();
        session.fill(now, carrier, room, &mut self.out);
        meter.on_handed(self.out.len());
        self.small |= carrier == Carrier::Express && !self.out.is_empty();
        &self.out
    }

    /// Whether express has been handed something since that was asked last: bulk is to make room for it.
    pub(crate) fn take_small(&mut self) -> bool {
        std::mem::take(&mut self.small)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::session::machine::Side;

    #[test]
    fn bulk_is_told_once_of_what_express_was_handed() {
        let (mut handing, mut session) = (Handing::default(), Session::new(Side::Connects));
        let idle = Sending { stats: Stats::default(), under_way: 0, unsent: None };
        assert!(handing.next(Time::ZERO, &mut session, Carrier::Express, &idle).is_empty());
        assert!(!handing.take_small());
        session.open(Time::ZERO, "host:80").unwrap();
        assert!(handing.next(Time::ZERO, &mut session, Carrier::Bulk, &idle).is_empty());
        assert!(!handing.take_small());
        assert!(!handing.next(Time::ZERO, &mut session, Carrier::Express, &idle).is_empty());
        assert!(handing.take_small() && !handing.take_small());
    }
}
