//! The receiving side: which MPDUs of a neighbour a station has received, and those that wait for one before them.
//!
//! Source: IEEE Std 802.11-2016, 10.24.7.3 to 10.24.7.6 (scoreboard), 10.24.7.6.2 (reordering buffer). How long something missing is waited
//! for is not in the standard; Linux's mac80211 has 100 ms, counted from when the packet came that waits.

use super::{Sender, unwrap, unwrap_start, wrap};
use crate::body::Body;
use crate::mac::config::HtConfig;
use crate::packet::Packet;
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};

/// The receiving half, for one neighbour and category.
#[derive(Clone, Debug)]
pub struct Recipient<P> {
    from: Sender,
    /// WinStart_R, and which of the 64 from it on have arrived.
    start: u32,
    bitmap: u64,
    /// WinStart_B: what is to be handed up next.
    next: u32,
    /// MPDUs that came before their turn, each with its time, by sequence number modulo the window.
    waiting: Vec<Option<(Time, Body<P>)>>,
    held: u32,
    /// Time at which the first of those came; [`Time::NEVER`] if nothing waits.
    since: Time,
    patience: Duration,
}

impl<P: Packet> Recipient<P> {
    /// Nothing has come yet.
    pub fn new(from: Sender, patience: Duration) -> Recipient<P> {
        let waiting = (0..HtConfig::WINDOW).map(|_| None).collect();
        Recipient { from, start: 0, bitmap: 0, next: 0, waiting, held: 0, since: Time::NEVER, patience }
    }

    /// The neighbour and the category.
    pub fn from(&self) -> Sender {
        self.from
    }

    /// Content of a block ACK: the starting sequence number and the bitmap.
    pub fn received(&self) -> (u16, u64) {
        (wrap(self.start), self.bitmap)
    }

    /// An MPDU has arrived; `up` gets what can be handed up, hops counted.
    pub fn on_mpdu(&mut self, now: Time, sequence: u16, body: &Body<P>, up: &mut impl FnMut(Body<P>)) {
        let sequence = unwrap(sequence, self.next);
        if sequence >= self.start + HtConfig::WINDOW {
            self.begin_at(sequence - HtConfig::WINDOW + 1);
        }
        if sequence >= self.start {
            self.bitmap |= 1 << (sequence - self.start);
        }
        if sequence < self.next {
            return;
        }
        if sequence >= self.next + HtConfig::WINDOW {
            self.hand_up_to(sequence - HtConfig::WINDOW + 1, up);
        }
        let place = &mut self.waiting[(sequence % HtConfig::WINDOW) as usize];
        if place.is_none() {
            let mut body = body.clone();
            if let Body::Data(packet) = &mut body {
                packet.count_hop();
            }
            *place = Some((now, body));
            self.held += 1;
        }
        self.hand_up(up);
    }

    /// The neighbour will send nothing before `start` any more.
    pub fn on_request(&mut self, start: u16, up: &mut impl FnMut(Body<P>)) {
        let start = unwrap_start(start, self.next);
        if start > self.start {
            self.begin_at(start);
        }
        if start > self.next {
            self.hand_up_to(start, up);
        }
        self.hand_up(up);
    }

    /// Time at which the first that waits has waited long enough for what is missing before it.
    pub fn next_wakeup(&self) -> Time {
        self.since.saturating_add(self.patience)
    }

    /// It has not come: hands up whatever has waited long enough, past all that is missing before.
    pub fn on_timer(&mut self, now: Time, up: &mut impl FnMut(Body<P>)) {
        while self.next_wakeup() <= now {
            while self.held > 0 && self.waiting[(self.next % HtConfig::WINDOW) as usize].is_none() {
                self.next += 1;
            }
            self.hand_up(up);
        }
    }

    /// Moves the scoreboard.
    fn begin_at(&mut self, start: u32) {
        self.bitmap = self.bitmap.checked_shr(start - self.start).unwrap_or(0);
        self.start = start;
    }

    /// Hands up what there is before `next`, and what is missing there is not waited for any more.
    fn hand_up_to(&mut self, next: u32, up: &mut impl FnMut(Body<P>)) {
        while self.next < next && self.held > 0 {
            self.take(up);
        }
        self.next = self.next.max(next);
    }

    /// Hands up what is in turn.
    fn hand_up(&mut self, up: &mut impl FnMut(Body<P>)) {
        while self.take_if_there(up) {}
        self.since = match self.held {
            0 => Time::NEVER,
            // There is one within the window.
            _ => {
                let places =
                    (self.next..self.next + HtConfig::WINDOW).map(|number| (number % HtConfig::WINDOW) as usize);
                let mut waiting = places.filter_map(|place| self.waiting[place].as_ref());
                waiting.next().map_or(Time::NEVER, |(came, _)| *came)
            }
        };
    }

    fn take_if_there(&mut self, up: &mut impl FnMut(Body<P>)) -> bool {
        let is_there = self.waiting[(self.next % HtConfig::WINDOW) as usize].is_some();
        if is_there {
            self.take(up);
        }
        is_there
    }

    /// Goes on by one.
    fn take(&mut self, up: &mut impl FnMut(Body<P>)) {
        if let Some((_, body)) = self.waiting[(self.next % HtConfig::WINDOW) as usize].take() {
            self.held -= 1;
            up(body);
        }
        self.next += 1;
    }
}
