//! What is handed to a carrier, and when: as little as it needs to go on, so that it is decided late what goes first.
//!
//! Bytes that have left the queues of a session are either in a carrier or kept here until the carrier takes them. None is dropped:
//! a carrier without memory takes less than it has room for, or nothing for a while.

use super::carrier::Carrier;
use super::machine::Session;
use super::meter::{self, Meter};
use meshpace_core::Time;
use meshpace_session::exchange::Exchange;
use meshpace_transport::Stats;
use std::io;

/// Bytes that are taken out of the queues at a time: no more than that is kept here for a carrier that takes nothing.
const BLOCK: usize = 32 << 10;

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

/// A carrier, as the session that hands bytes to it sees it.
pub(crate) trait Takes {
    /// What is known of it.
    fn sending(&self) -> Sending;

    /// Takes bytes from the beginning of `bytes`; how many. It may be fewer than all, and none while it has no room or no memory. Then
    /// something of what it keeps has still to arrive, after which it is asked again.
    ///
    /// # Errors
    ///
    /// It will never take any more.
    fn take(&mut self, bytes: &[u8]) -> io::Result<usize>;
}

impl Takes for Exchange {
    fn sending(&self) -> Sending {
        Sending { stats: self.stats, under_way: self.send.len(), unsent: self.unsent() }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes).unwrap_or(Ok(0))
    }
}

/// Hands a session's frames to its carriers.
#[derive(Debug)]
pub(crate) struct Handing {
    meters: [Meter; 2],
    /// Bytes for each carrier that it has not taken yet.
    kept: [Vec<u8>; 2],
    /// Express has been handed something, which bulk has not been told yet.
    small: bool,
}

impl Default for Handing {
    fn default() -> Handing {
        Handing { meters: Carrier::ALL.map(Meter::new), kept: Default::default(), small: false }
    }
}

impl Handing {
    /// Hands a carrier the bytes that it is to take now, none if it has enough. Returns how many it has taken.
    ///
    /// # Errors
    ///
    /// Those of [`Takes::take`]: the session cannot go on, since bytes that have left its queues will not arrive.
    pub(crate) fn hand_over(
        &mut self,
        now: Time,
        session: &mut Session,
        carrier: Carrier,
        to: &mut impl Takes,
    ) -> io::Result<usize> {
        let mut all = 0;
        loop {
            let may_follow = self.fill(now, session, carrier, &to.sending());
            let kept = &mut self.kept[carrier as usize];
            let taken = if kept.is_empty() { 0 } else { to.take(kept)? };
            kept.drain(..taken);
            all += taken;
            if !may_follow || taken == 0 || !kept.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Takes what a carrier may be handed out of the session's queues, once it has taken all that was before. Whether there may be more.
    fn fill(&mut self, now: Time, session: &mut Session, carrier: Carrier, sending: &Sending) -> bool {
        let Sending { stats, under_way, unsent } = *sending;
        let (kept, meter) = (&mut self.kept[carrier as usize], &mut self.meters[carrier as usize]);
        session.on_under_way(now, carrier, under_way + kept.len());
        if !kept.is_empty() {
            return false;
        }
        let room = match unsent {
            Some((unsent, ahead)) => meter::room_of_bbr(carrier, unsent, under_way, ahead),
            None => meter.room(under_way, &stats),
        };
        session.fill(now, carrier, room.min(BLOCK), kept);
        meter.on_handed(kept.len());
        self.small |= carrier == Carrier::Express && !kept.is_empty();
        room > BLOCK
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

    /// Has sent all that it was handed, and takes everything.
    struct Idle;

    impl Takes for Idle {
        fn sending(&self) -> Sending {
            Sending { stats: Stats::default(), under_way: 0, unsent: None }
        }

        fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
    }

    #[test]
    fn bulk_is_told_once_of_what_express_was_handed() {
        let (mut handing, mut session) = (Handing::default(), Session::new(Side::Connects));
        let hand_over = |handing: &mut Handing, session: &mut Session, carrier| {
            handing.hand_over(Time::ZERO, session, carrier, &mut Idle).unwrap()
        };
        assert_eq!(hand_over(&mut handing, &mut session, Carrier::Express), 0);
        assert!(!handing.take_small());
        session.open(Time::ZERO, "host:80").unwrap();
        assert_eq!(hand_over(&mut handing, &mut session, Carrier::Bulk), 0);
        assert!(!handing.take_small());
        assert!(hand_over(&mut handing, &mut session, Carrier::Express) > 0);
        assert!(handing.take_small() && !handing.take_small());
    }
}
