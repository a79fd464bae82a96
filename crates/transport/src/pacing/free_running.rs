//! Free running: what the window allows enters a FIFO, and each tick of a timer sends one; an empty FIFO wastes the tick.
//!
//! The agent that AP05's authors released for ns-2.

use super::adaptive::Recovery;
use super::interval::Interval;
use crate::stats::Stats;
use alloc::collections::VecDeque;
use meshpace_core::{Duration, Time};

/// The shortest period of the timer: below the air time of any 802.11 frame with its preamble.
const SHORTEST_TICK: Duration = Duration::from_micros(100);

/// State of the gate. Segments are known by a number of the caller's.
#[derive(Clone, Debug)]
pub struct FreeRunning {
    pub(super) interval: Interval,
    recovery: Recovery,
    /// Time at which the timer ticks; never if it is stopped.
    tick: Time,
    /// True if the timer has been started since pacing was last switched on.
    started: bool,
    /// Pacing is off until the next ACK: segments leave as the window allows.
    off: bool,
    /// A tick has come and not been used.
    due: bool,
    /// Segments that the window has released.
    fifo: VecDeque<u64>,
}

impl FreeRunning {
    /// A gate whose timer has not been started.
    pub fn new(interval: Interval, recovery: Recovery) -> FreeRunning {
        FreeRunning {
            interval,
            recovery,
            tick: Time::NEVER,
            started: false,
            off: false,
            due: false,
            fifo: VecDeque::new(),
        }
    }

    /// True if segments go through the FIFO at the moment.
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.off
    }

    /// Time at which the timer ticks; never if it is stopped.
    #[inline]
    pub fn tick(&self) -> Time {
        self.tick
    }

    /// A segment that the window released enters the FIFO. The first one starts the timer and may leave at once.
    pub fn enqueue(&mut self, now: Time, number: u64, stats: &mut Stats) {
        self.fifo.push_back(number);
        if !self.started {
            self.started = true;
            self.on_tick(now, stats);
        }
    }

    /// The segment that may leave now, taken from the FIFO.
    pub fn dequeue(&mut self) -> Option<u64> {
        if !self.due {
            return None;
        }
        // Without an interval there is no next tick to wait for.
        self.due = self.interval.get() == Duration::ZERO;
        self.fifo.pop_front()
    }

    /// The first segment of the connection, its SYN, leaves: the timer starts with it.
    pub fn on_open(&mut self, now: Time, stats: &mut Stats) {
        if !self.started {
            self.started = true;
            self.on_tick(now, stats);
            self.due = false;
        }
    }

    /// Lets the timer tick if its time has come.
    pub fn on_timer(&mut self, now: Time, stats: &mut Stats) {
        if self.tick <= now {
            self.on_tick(now, stats);
        }
    }

    /// An ACK arrived: pacing that was off is on again.
    pub fn on_ack(&mut self) {
        if self.off {
            self.off = false;
            self.started = false;
        }
    }

    /// A fast retransmit is about to leave.
    pub fn on_fast_retransmit(&mut self) {
        if self.recovery == Recovery::OffUntilAck {
            self.tick = Time::NEVER;
            self.due = false;
            // The released agent switches pacing off only if something waited. With an empty FIFO its timer stays
            // stopped, and what follows waits for the retransmission timer.
            if !self.fifo.is_empty() {
                self.fifo.clear();
                self.off = true;
            }
        }
    }

    /// The retransmission timer expired: what waited will be sent again from the start. Whether pacing is off until the next
    /// ACK.
    pub fn on_timeout(&mut self) -> bool {
        self.fifo.clear();
        self.due = false;
        let switches_off = self.recovery == Recovery::OffUntilAck;
        if switches_off {
            self.tick = Time::NEVER;
            self.off = true;
        }
        switches_off
    }

    fn on_tick(&mut self, now: Time, stats: &mut Stats) {
        let interval = self.interval.read(stats);
        if interval == Duration::ZERO {
            // Nothing to space: what enters the FIFO leaves at once, and starts the timer if there is an interval then.
            self.due = true;
            self.started = false;
            self.tick = Time::NEVER;
            return;
        }
        self.due = !self.fifo.is_empty();
        self.tick = now.saturating_add(interval.max(SHORTEST_TICK));
    }
}
