//! Number of segments that may be outstanding while all is well: cwnd_max, or twice what the path turns out to hold.
//!
//! TPA, section 3.3, has cwnd_max of 2 or 3 segments from the first on and no growth phase: over 802.11 hops no more can be under way at
//! once. A path that is fast and long holds more, and cwnd_max per round trip is then all that it carries. [`Rule::Auto`] departs from the paper:
//!
//! ```text
//! window = 2 R T    R: the highest rate at which one of the last 10 blocks was delivered
//!                   T: the least round trip of the last 30 to 60 s
//! ```
//!
//! to the nearest segment, at least 3 and at most a block. While a path is not full, twice the window delivers a block in half the time: the window
//! grows by half or more with each block. A path that is full delivers a block no faster however many are outstanding, and there the window stays. R and T, the factor, the
//! highest of ten and what counts for less where the application is the limit are BBR's (N. Cardwell and others, "BBR: Congestion-Based
//! Congestion Control", ACM Queue 14(5), 2016). What is otherwise than there:
//!
//! - A sample is a block, from the first segment that leaves to the ACK for the last one missing: nothing of another block is under way then. A sample
//!   for each ACK takes what a burst does in an idle mesh for the rate of the path: over four hops the window was then 5 or 6, and echoes beside a
//!   bulk transfer took a third longer. A block contains one round trip in which the path fills and empties, so that R T is somewhat less than what the path holds.
//! - No phase of its own looks for T: the first segment of a block finds no queue of ours. Since ACKs are shared, none would name it but
//!   its successor, which has waited behind it: so every 5 s a block's first segment has the flag that wants each segment acknowledged, although nothing is
//!   congested. Queues of others it may find: T is therefore kept longer than BBR's 10 s, to see a moment without them. A route that is known
//!   to have changed has a new R and T at once.
//! - A block that is not full was all that the application had: it may raise R, and lowers nothing.
//! - Losses change nothing but the time that a block takes: the timeouts of section 3.5 do what they do with any window.

use meshpace_core::parameter::{ParameterError, require};
use meshpace_core::{Duration, Time};

/// Limit of outstanding segments while all is well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rule {
    /// cwnd_max, which both ends know.
    #[default]
    Agreed,
    /// So many, 1 to 12, but not less than the peer has share an ACK.
    Fixed(u8),
    /// Twice what the path holds, at least 3 or cwnd_max.
    Auto,
}

impl Rule {
    /// Checks the number against its range.
    ///
    /// # Errors
    ///
    /// Names it, its value and its range.
    pub fn check(self) -> Result<(), ParameterError> {
        let window = if let Rule::Fixed(window) = self { window } else { 1 };
        require((1..=12).contains(&window), "window", window, "1 to 12 segments")
    }
}

/// The least window of [`Rule::Auto`] (TPA, section 3.3: cwnd_max 2 or 3).
const LEAST: u8 = 3;

/// Blocks whose rates are remembered (BBR: 10 round trips).
const BLOCKS: usize = 10;

/// For how long at least a round trip is remembered, and half of how long at most.
const KEPT: Duration = Duration::from_secs(30);

/// Time between two segments with nothing of ours before them that are to be acknowledged alone.
const ASKED: Duration = Duration::from_secs(5);

/// The window of one sender.
#[derive(Clone, Debug)]
pub struct Window {
    is_auto: bool,
    least: u8,
    most: u8,
    now: u8,
    /// Payload of a full segment.
    segment: f32,
    /// Rates of the last full blocks, bytes per second, or what a shorter one has raised them to; and the place of the next.
    rates: [f32; BLOCKS],
    next: u8,
    /// The least round trips, seconds, of the last full span and of the one under way, and when that began.
    round_trips: [f32; 2],
    since: Time,
    /// Time at which the block under way began to leave.
    begun: Time,
    /// Time at which an ACK for a segment alone is asked for next.
    ask_at: Time,
}

impl Window {
    /// For segments of `segment` bytes in blocks of `block`, with a cwnd_max of `agreed` where `shared` segments have one ACK.
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

    /// Segments that may be outstanding.
    #[inline]
    pub fn segments(&self) -> u8 {
        self.now
    }

    /// The first segment of a block leaves. Returns whether it is to be acknowledged alone.
    pub fn on_block_begun(&mut self, now: Time) -> bool {
        self.begun = now;
        let asks = self.is_auto && now >= self.ask_at;
        if asks {
            self.ask_at = now.saturating_add(ASKED);
        }
        asks
    }

    /// An ACK named a segment that left so long ago.
    pub fn on_round_trip(&mut self, now: Time, round_trip: Duration) {
        if !self.is_auto {
            return;
        }
        if now.since(self.since) >= KEPT {
            (self.round_trips, self.since) = ([self.round_trips[1], f32::INFINITY], now);
        }
        self.round_trips[1] = self.round_trips[1].min(round_trip.as_secs_f64() as f32);
    }

    /// All `bytes` of the block under way are acknowledged; `is_full` if it has as many segments as a block can have.
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

    /// The route is another one: neither its rate nor its round trip is known.
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
