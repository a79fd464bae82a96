//! Receive side of block ACK: the scoreboard of received MPDUs, and the reorder buffer for MPDUs
//! behind a gap.
//!
//! Source: IEEE Std 802.11-2016, 10.24.7.3 to 10.24.7.6 (scoreboard), 10.24.7.6.2 (reordering
//! buffer). The standard does not specify how long a receiver waits for a missing MPDU. Linux's
//! mac80211 waits 100 ms from the arrival of the packet behind the gap.

use super::{Sender, unwrap, unwrap_start, wrap};
use crate::body::Body;
use crate::mac::config::HtConfig;
use crate::packet::Packet;
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};

/// Receive side for one neighbour and category.
#[derive(Clone, Debug)]
pub struct Recipient<P> {
    from: Sender,
    /// WinStart_R: first sequence number of the scoreboard.
    start: u32,
    /// Bit set of the received MPDUs among the 64 from `start` on.
    bitmap: u64,
    /// WinStart_B: sequence number of the MPDU to be delivered next.
    next: u32,
    /// Reorder buffer: MPDUs that arrived before their turn with their arrival times, indexed by
    /// sequence number modulo the window.
    buffered: Vec<Option<(Time, Body<P>)>>,
    /// Number of MPDUs in the reorder buffer.
    buffered_count: u32,
    /// Arrival time of the first MPDU behind the gap; [`Time::NEVER`] if the reorder buffer is
    /// empty.
    first_arrival: Time,
    reorder_timeout: Duration,
}

impl<P: Packet> Recipient<P> {
    /// Creates an empty reorder buffer. `reorder_timeout` is the time for which the receiver waits
    /// for a missing MPDU.
    pub fn new(from: Sender, reorder_timeout: Duration) -> Recipient<P> {
        let buffered = (0..HtConfig::WINDOW).map(|_| None).collect();
        Recipient {
            from,
            start: 0,
            bitmap: 0,
            next: 0,
            buffered,
            buffered_count: 0,
            first_arrival: Time::NEVER,
            reorder_timeout,
        }
    }

    /// Neighbour and category of the MPDUs.
    pub fn from(&self) -> Sender {
        self.from
    }

    /// Starting sequence number and bitmap of a block ACK.
    pub fn received(&self) -> (u16, u64) {
        (wrap(self.start), self.bitmap)
    }

    /// Handles a received MPDU. Calls `deliver` for each MPDU that is in order now, with its hop
    /// counted.
    pub fn on_mpdu(&mut self, now: Time, sequence: u16, body: &Body<P>, deliver: &mut impl FnMut(Body<P>)) {
        let sequence = unwrap(sequence, self.next);
        if sequence >= self.start + HtConfig::WINDOW {
            self.move_scoreboard(sequence - HtConfig::WINDOW + 1);
        }
        if sequence >= self.start {
            self.bitmap |= 1 << (sequence - self.start);
        }
        if sequence < self.next {
            return;
        }
        if sequence >= self.next + HtConfig::WINDOW {
            self.deliver_before(sequence - HtConfig::WINDOW + 1, deliver);
        }
        let place = &mut self.buffered[(sequence % HtConfig::WINDOW) as usize];
        if place.is_none() {
            let mut body = body.clone();
            if let Body::Data(packet) = &mut body {
                packet.count_hop();
            }
            *place = Some((now, body));
            self.buffered_count += 1;
        }
        self.deliver_in_order(deliver);
    }

    /// Handles a block ACK request. The neighbour will send no MPDU before `start` any more.
    pub fn on_request(&mut self, start: u16, deliver: &mut impl FnMut(Body<P>)) {
        let start = unwrap_start(start, self.next);
        if start > self.start {
            self.move_scoreboard(start);
        }
        if start > self.next {
            self.deliver_before(start, deliver);
        }
        self.deliver_in_order(deliver);
    }

    /// Deadline of the first buffered MPDU by sequence number. At that time the receiver stops
    /// waiting for the gap in front of it.
    pub fn next_wakeup(&self) -> Time {
        self.first_arrival.saturating_add(self.reorder_timeout)
    }

    /// Gives up on gaps whose deadline has passed and delivers the MPDUs behind them.
    pub fn on_timer(&mut self, now: Time, deliver: &mut impl FnMut(Body<P>)) {
        while self.next_wakeup() <= now {
            while self.buffered_count > 0 && self.buffered[(self.next % HtConfig::WINDOW) as usize].is_none() {
                self.next += 1;
            }
            self.deliver_in_order(deliver);
        }
    }

    /// Moves the start of the scoreboard.
    fn move_scoreboard(&mut self, start: u32) {
        self.bitmap = self.bitmap.checked_shr(start - self.start).unwrap_or(0);
        self.start = start;
    }

    /// Delivers the buffered MPDUs before `next` and gives up on the gaps between them.
    fn deliver_before(&mut self, next: u32, deliver: &mut impl FnMut(Body<P>)) {
        while self.next < next && self.buffered_count > 0 {
            self.advance(deliver);
        }
        self.next = self.next.max(next);
    }

    /// Delivers the MPDUs that are in order.
    fn deliver_in_order(&mut self, deliver: &mut impl FnMut(Body<P>)) {
        while self.advance_if_buffered(deliver) {}
        self.first_arrival = match self.buffered_count {
            0 => Time::NEVER,
            // At least one buffered MPDU is within the window.
            _ => {
                let places =
                    (self.next..self.next + HtConfig::WINDOW).map(|number| (number % HtConfig::WINDOW) as usize);
                let mut buffered = places.filter_map(|place| self.buffered[place].as_ref());
                buffered.next().map_or(Time::NEVER, |(arrived, _)| *arrived)
            }
        };
    }

    /// Delivers the next MPDU if it is buffered. Returns whether it was.
    fn advance_if_buffered(&mut self, deliver: &mut impl FnMut(Body<P>)) -> bool {
        let is_there = self.buffered[(self.next % HtConfig::WINDOW) as usize].is_some();
        if is_there {
            self.advance(deliver);
        }
        is_there
    }

    /// Advances by one sequence number, and delivers its MPDU if it is buffered.
    fn advance(&mut self, deliver: &mut impl FnMut(Body<P>)) {
        if let Some((_, body)) = self.buffered[(self.next % HtConfig::WINDOW) as usize].take() {
            self.buffered_count -= 1;
            deliver(body);
        }
        self.next += 1;
    }
}
