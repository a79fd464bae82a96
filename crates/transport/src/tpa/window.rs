//! Limit of outstanding segments in the normal state: cwnd_max, or twice what the path is measured
//! to hold.
//!
//! TPA, section 3.3, has a cwnd_max of 2 or 3 segments from the start and no growth phase, because
//! no more segments can be in flight at the same time over 802.11 hops. A path that is fast and
//! long holds more, and then carries no more than cwnd_max per round trip. [`Rule::Auto`] departs
//! from the paper:
//!
//! ```text
//! window = 2 R T    R: the highest rate at which one of the last 10 blocks was delivered
//!                   T: the least round trip of the last 30 to 60 s
//! ```
//!
//! The window is rounded to the nearest segment; it is at least 3 and at most a block. While the
//! path is not full, a doubled window delivers a block in half the time, so that the window grows
//! by half or more with each block. A full path delivers a block no faster however many segments
//! are outstanding, and there the window stays.
//!
//! The rate R, the round trip T, the factor, the maximum over ten blocks, and the rule for blocks
//! that the application limits come from BBR (N. Cardwell and others, "BBR: Congestion-Based
//! Congestion Control", ACM Queue 14(5), 2016). The differences from BBR are:
//!
//! - A sample is a whole block, from the first segment sent to the ACK for the last one missing: no
//!   segment of another block is in flight during that time. A sample for each ACK would take the
//!   speed of a burst in an idle mesh for the rate of the path. Over four hops the window was then
//!   5 or 6, and echoes beside a bulk transfer took a third longer. A block contains one round trip
//!   in which the path fills and empties, so that R T is somewhat less than what the path holds.
//! - There is no separate phase that measures T: the first segment of a block finds no queue of
//!   this sender. Since ACKs are shared, none would name the first segment; they would name its
//!   successor, which has waited behind it. So once every 5 s the first segment of a block sets the
//!   flag that asks for an ACK of each segment, although the sender is not congested. Other senders
//!   may have queues at that time. T is therefore kept longer than the 10 s of BBR, so that it
//!   contains a moment without such queues. After a known route change, R and T are measured anew
//!   at once.
//! - A block that is not full was limited by the application: it may raise R, and lowers nothing.
//! - Losses matter only by the time that they add to a block. The timeouts of section 3.5 work as
//!   with any window.

use meshpace_core::parameter::{ParameterError, require};
use meshpace_core::{Duration, Time};

/// Rule for the limit of outstanding segments in the normal state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rule {
    /// cwnd_max, which both ends know.
    #[default]
    Agreed,
    /// This number of segments, 1 to 12, but at least as many as share an ACK of the peer.
    Fixed(u8),
    /// Twice what the path holds, but at least 3 and at least cwnd_max.
    Auto,
}

impl Rule {
    /// Checks the number of segments against its range.
    ///
    /// # Errors
    ///
    /// Names the parameter, its value and its range.
    pub fn check(self) -> Result<(), ParameterError> {
        let window = if let Rule::Fixed(window) = self { window } else { 1 };
        require((1..=12).contains(&window), "window", window, "1 to 12 segments")
    }
}

/// Least window of [`Rule::Auto`] (TPA, section 3.3: cwnd_max 2 or 3).
const LEAST: u8 = 3;

/// Number of blocks whose rates are remembered (BBR: 10 round trips).
const BLOCKS: usize = 10;

/// A round trip is remembered for at least this time and at most twice as long.
const KEPT: Duration = Duration::from_secs(30);

/// Time between two segments that are sent without queued segments of this sender before them and
/// that ask for an ACK of their own.
const ASKED: Duration = Duration::from_secs(5);

/// The window of one sender.
#[derive(Clone, Debug)]
pub struct Window {
    is_auto: bool,
    least: u8,
    most: u8,
    now: u8,
    /// Payload of a full segment in bytes.
    segment: f32,
    /// Rates of the last full blocks in bytes per second, and of shorter blocks that raised the
    /// maximum; and the index of the next entry.
    rates: [f32; BLOCKS],
    next: u8,
    /// Least round trips, in seconds, of the last complete period and of the current one, and the
    /// start of the current period.
    round_trips: [f32; 2],
    since: Time,
    /// Time at which the first segment of the current block was sent.
    begun: Time,
    /// Earliest time at which a segment asks for an ACK of its own again.
    ask_at: Time,
}

impl Window {
    /// Creates the window for full segments of `segment` bytes in blocks of `block` segments.
    /// `agreed` is cwnd_max, and `shared` the number of segments that share an ACK.
    pub fn new(rule: Rule, segment: u32, block: u8, agreed: u8, shared: u8) -> Window {
        let (least, is_auto) = match rule {
            Rule::Agreed => (agreed, false),
            Rule::Fixed(window) => (window.max(shared), false),
            Rule::Auto => (agreed.max(LEAST), true),
        };
        Window {
            is_auto,
            least,
            most: block.max(least),
            now: least,
            segment: segment as f32,
            rates: [0.0; BLOCKS],
            next: 0,
            round_trips: [f32::INFINITY; 2],
            since: Time::ZERO,
            begun: Time::ZERO,
            ask_at: Time::ZERO,
        }
    }

    /// Limit of outstanding segments.
    #[inline]
    pub fn segments(&self) -> u8 {
        self.now
    }

    /// The first segment of a block is sent. Returns whether it asks for an ACK of its own.
    pub fn on_block_begun(&mut self, now: Time) -> bool {
        self.begun = now;
        let asks = self.is_auto && now >= self.ask_at;
        if asks {
            self.ask_at = now.saturating_add(ASKED);
        }
        asks
    }

    /// An ACK named a segment that was sent `round_trip` ago.
    pub fn on_round_trip(&mut self, now: Time, round_trip: Duration) {
        if !self.is_auto {
            return;
        }
        if now.since(self.since) >= KEPT {
            (self.round_trips, self.since) = ([self.round_trips[1], f32::INFINITY], now);
        }
        self.round_trips[1] = self.round_trips[1].min(round_trip.as_secs_f64() as f32);
    }

    /// All `bytes` of the current block are acknowledged; `is_full` if the block has as many
    /// segments as a block can have.
    pub fn on_block_delivered(&mut self, now: Time, bytes: u32, is_full: bool) {
        let span = now.since(self.begun).as_secs_f64() as f32;
        if !self.is_auto || span <= 0.0 {
            return;
        }
        let rate = bytes as f32 / span;
        if is_full || rate > self.rate() {
            self.rates[usize::from(self.next)] = rate;
            self.next = (self.next + 1) % BLOCKS as u8;
        }
        let round_trip = self.round_trips[0].min(self.round_trips[1]);
        if round_trip.is_finite() {
            let held = 2.0 * self.rate() * round_trip / self.segment;
            self.now = ((held + 0.5) as u8).clamp(self.least, self.most);
        }
    }

    /// The route has changed: neither its rate nor its round trip is known.
    pub fn on_route_change(&mut self) {
        self.rates = [0.0; BLOCKS];
        self.round_trips = [f32::INFINITY; 2];
        self.now = self.least;
        self.ask_at = Time::ZERO;
    }

    fn rate(&self) -> f32 {
        self.rates.iter().copied().fold(0.0, f32::max)
    }
}
