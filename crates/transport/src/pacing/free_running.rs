//! Free running: a gate with a FIFO and a timer. Segments that the window allows enter the FIFO,
//! and each tick of the timer sends one of them. A tick that finds the FIFO empty is lost.
//!
//! This is the method of the agent for ns-2 that AP05's authors released.

use super::adaptive::Recovery;
use super::interval::Interval;
use crate::stats::Stats;
use alloc::collections::VecDeque;
use meshpace_core::{Duration, Time};

/// The shortest period of the timer. It is below the air time of any 802.11 frame with its
/// preamble, and so below every interval that a round trip gives: no run of a scenario depends on
/// it.
const SHORTEST_TICK: Duration = Duration::from_micros(100);

/// State of the gate. Segments are identified by numbers that the caller chooses.
#[derive(Clone, Debug)]
pub struct FreeRunning {
    pub(super) interval: Interval,
    recovery: Recovery,
    /// Time of the next tick; [`Time::NEVER`] if the timer is stopped.
    tick: Time,
    /// True if the timer has been started since pacing was last switched on.
    started: bool,
    /// True if pacing is off until the next ACK. Segments leave as the window allows then.
    off: bool,
    /// True if a tick has passed that no segment has used yet.
    due: bool,
    /// Numbers of the segments that the window has released.
    fifo: VecDeque<u64>,
}

impl FreeRunning {
    /// Creates a gate whose timer has not been started.
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

    /// True if segments go through the FIFO at present.
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.off
    }

    /// Time of the next tick; [`Time::NEVER`] if the timer is stopped.
    #[inline]
    pub fn tick(&self) -> Time {
        self.tick
    }

    /// Adds a segment that the window released to the FIFO. The first segment starts the timer and
    /// may leave at once.
    pub fn enqueue(&mut self, now: Time, number: u64, stats: &mut Stats) {
        self.fifo.push_back(number);
        if !self.started {
            self.started = true;
            self.on_tick(now, stats);
        }
    }

    /// Takes the segment that may leave now from the FIFO; `None` if no segment may leave.
    pub fn dequeue(&mut self) -> Option<u64> {
        if !self.due {
            return None;
        }
        // Without an interval there is no further tick to wait for, so the permission remains.
        self.due = self.interval.get() == Duration::ZERO;
        self.fifo.pop_front()
    }

    /// The SYN, the first segment of the connection, leaves. Starts the timer.
    pub fn on_open(&mut self, now: Time, stats: &mut Stats) {
        if !self.started {
            self.started = true;
            self.on_tick(now, stats);
            self.due = false;
        }
    }

    /// Lets the timer tick if the time of the tick has come.
    pub fn on_timer(&mut self, now: Time, stats: &mut Stats) {
        if self.tick <= now {
            self.on_tick(now, stats);
        }
    }

    /// An ACK arrived. Switches pacing on again if it was off.
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
            // The agent of AP05 switches pacing off only if the FIFO held segments. If the FIFO is
            // empty, the agent's timer stays stopped, and later segments have to wait for the
            // retransmission timer.
            if !self.fifo.is_empty() {
                self.fifo.clear();
                self.off = true;
            }
        }
    }

    /// The retransmission timer expired. Empties the FIFO, because its segments will be sent again
    /// from the first unacknowledged one. Returns whether pacing is off until the next ACK.
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
            // There is no interval to keep. Segments that enter the FIFO leave at once, and the
            // first of them restarts the timer if there is an interval at that time.
            self.due = true;
            self.started = false;
            self.tick = Time::NEVER;
            return;
        }
        self.due = !self.fifo.is_empty();
        self.tick = now.saturating_add(interval.max(SHORTEST_TICK));
    }
}
