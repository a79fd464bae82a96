//! How many segments may be outstanding while all is well: cwnd_max, or twice what the path turns out to hold.
//!
//! TPA, section 3.3, has cwnd_max of 2 or 3 segments from the first on and no growth phase: over 802.11 hops no more can be under way at
//! once. A path that is fast and long holds more, and cwnd_max per round trip is then all that it carries. [`Rule::Auto`] departs from the paper:
//!
//! ```text
//! window = 2 R T    R: the most that was delivered in a round trip over that round trip, of the last 10 rounds
//!                   T: the least round trip of the last 30 to 60 s
//! ```
//!
//! to the nearest segment, at least 3 and at most a block. A path that is not full delivers the window every T, so that the window doubles; at twice what the path
//! holds it stays, for there each segment waits for T in a queue, and what a round trip delivers over that round trip grows no more. R is BBR's
//! (N. Cardwell and others, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016; rounds and samples as
//! draft-cheng-iccrg-delivery-rate-estimation has them), and so is the factor. What is otherwise than there:
//!
//! - No phase of its own looks for T. A block begins only when all of the one before has arrived, so that its first segment finds no queue of
//!   ours. Since ACKs are shared, none would name it but its successor, which has waited behind it: so every 5 s a block's first segment has the
//!   flag that wants each segment acknowledged, although nothing is congested. Queues of others it may find: T is therefore kept longer than BBR's 10 s, to see a moment
//!   without them. A route that is known to have changed has a new T at once.
//! - A sample is taken when an ACK names a segment, as TxSeqNumber has it: from the latest acknowledgement before that segment left, for what was acknowledged
//!   since. Times of sending are not looked at: ACKs that were held back can pretend no more than a window in T.
//! - A sample counts for less where anything but this window held back: the end of a block, an application without data, a
//!   window of 1 after a timeout. It may raise R, and lowers nothing.
//! - Losses change nothing: the timeouts of section 3.5 do what they do with any window.

use meshpace_core::parameter::{ParameterError, require};
use meshpace_core::{Duration, Time};

/// How many segments an end lets be outstanding while all is well.
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
    /// Whether the number is in its range.
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

/// Rounds whose rates are remembered (BBR: 10 round trips).
const ROUNDS: usize = 10;

/// For how long at least a round trip is remembered, and half of how long at most.
const KEPT: Duration = Duration::from_secs(30);

/// How often a segment that nothing of ours is before is to be acknowledged alone.
const ASKED: Duration = Duration::from_secs(5);

/// Segments in a block at most.
const PLACES: usize = super::segment::BLOCK_SEGMENTS as usize;

/// What there was when a segment left.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mark {
    at: Time,
    /// How long before that the latest ACK had come that acknowledged something, seconds: what is acknowledged later may have arrived since then.
    before: f32,
    /// Bytes that were acknowledged, modulo 2^31; the highest bit is set if something but the window held back.
    delivered: u32,
}

/// In a mark: something but the window held back.
const LIMITED: u32 = 1 << 31;

/// The window of one sender.
#[derive(Clone, Debug)]
pub struct Window {
    is_auto: bool,
    least: u8,
    most: u8,
    now: u8,
    /// Payload of a full segment.
    segment: f32,
    /// What is remembered of each place's latest transmission.
    marks: [Mark; PLACES],
    /// Bytes acknowledged, modulo 2^31.
    delivered: u32,
    /// When something was last acknowledged, or a block began.
    acked_at: Time,
    /// Where in that count what is under way ends that left while something else held back; none if nothing did.
    limited_until: Option<u32>,
    /// Where the round under way ends: when a segment is acknowledged that left after so much.
    round_end: u32,
    /// The highest rates of the last rounds, bytes per second, and the place of the one under way.
    rates: [f32; ROUNDS],
    round: u8,
    /// The least round trips, seconds, of the last full span and of the one under way, and when that began.
    round_trips: [f32; 2],
    since: Time,
    /// When an ACK for a segment alone is asked for next.
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
            marks: [Mark { at: Time::NEVER, before: 0.0, delivered: 0 }; PLACES],
            delivered: 0,
            acked_at: Time::ZERO,
            limited_until: None,
            round_end: 0,
            rates: [0.0; ROUNDS],
            round: 0,
            round_trips: [f32::INFINITY; 2],
            since: Time::ZERO,
            ask_at: Time::ZERO,
        }
    }

    /// Segments that may be outstanding.
    #[inline]
    pub fn segments(&self) -> u8 {
        self.now
    }

    /// There is room for a segment and none to fill it, while `outstanding` bytes are under way: what is measured of them is not what the path carries.
    pub fn on_nothing_to_send(&mut self, outstanding: u32) {
        self.limited_until = Some(add(self.delivered, outstanding));
    }

    /// Whether a segment that leaves while none is outstanding is to be acknowledged alone.
    pub fn asks(&mut self, now: Time) -> bool {
        let asks = self.is_auto && now >= self.ask_at;
        if asks {
            self.ask_at = now.saturating_add(ASKED);
        }
        asks
    }

    /// The segment at `place` leaves; the first of its block if `begins`; `held_back` if a timeout lets but one be outstanding.
    pub fn on_sent(&mut self, now: Time, place: u8, begins: bool, held_back: bool) {
        if !self.is_auto {
            return;
        }
        if begins {
            // All before it is acknowledged.
            self.acked_at = now;
        }
        let limited = held_back || self.limited_until.is_some();
        let delivered = self.delivered | if limited { LIMITED } else { 0 };
        self.marks[usize::from(place)] = Mark { at: now, before: seconds(self.acked_at, now), delivered };
    }

    /// An ACK arrived for `bytes` that were not acknowledged before; it names a segment that left at `named`, if any.
    pub fn on_ack(&mut self, now: Time, bytes: u32, named: Option<Time>) {
        if !self.is_auto {
            return;
        }
        self.delivered = add(self.delivered, bytes);
        if bytes > 0 {
            self.acked_at = now;
        }
        if self.limited_until.is_some_and(|end| is_beyond(self.delivered, end)) {
            self.limited_until = None;
        }
        // Segments that left at once have the same marks; of one that was repeated since there is none.
        let Some(mark) = named.and_then(|at| self.marks.iter().find(|mark| mark.at == at).copied()) else { return };
        let round_trip = seconds(mark.at, now);
        if round_trip <= 0.0 {
            return;
        }
        if now.since(self.since) >= KEPT {
            (self.round_trips, self.since) = ([self.round_trips[1], f32::INFINITY], now);
        }
        self.round_trips[1] = self.round_trips[1].min(round_trip);
        let (then, limited) = (mark.delivered & !LIMITED, mark.delivered & LIMITED != 0);
        let rate = distance(then, self.delivered) as f32 / (mark.before + round_trip);
        if limited && rate <= self.most_rate() {
            return;
        }
        if !limited && is_beyond(then, self.round_end) {
            self.round = (self.round + 1) % ROUNDS as u8;
            self.rates[usize::from(self.round)] = 0.0;
            self.round_end = self.delivered;
        }
        let highest = &mut self.rates[usize::from(self.round)];
        *highest = highest.max(rate);
        let held = 2.0 * self.most_rate() * self.round_trips[0].min(self.round_trips[1]) / self.segment;
        self.now = ((held + 0.5) as u8).clamp(self.least, self.most);
    }

    /// The route is another one: neither its rate nor its round trip is known.
    pub fn on_route_change(&mut self) {
        self.rates = [0.0; ROUNDS];
        self.round_trips = [f32::INFINITY; 2];
        self.now = self.least;
        self.ask_at = Time::ZERO;
    }

    fn most_rate(&self) -> f32 {
        self.rates.iter().copied().fold(0.0, f32::max)
    }
}

fn seconds(from: Time, to: Time) -> f32 {
    to.since(from).as_secs_f64() as f32
}

fn add(count: u32, bytes: u32) -> u32 {
    count.wrapping_add(bytes) & !LIMITED
}

/// From one count to a later one.
fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from) & !LIMITED
}

/// Whether `count` has reached `end`, of which it is never far.
fn is_beyond(count: u32, end: u32) -> bool {
    distance(end, count) < LIMITED / 2
}
