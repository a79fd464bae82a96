//! The applications at both ends of a connection. Each one writes a stream of known bytes and reads
//! the peer's stream.

use super::plan::Talk;
use crate::exchange::{Delivery, Exchange, Phase};
use crate::failure::Reason;
use meshpace_core::{Duration, Time};

/// The `length` bytes of a stream from offset `from` on. No two streams of a run are equal.
pub(super) fn bytes_of(stream: u64, from: u64, length: usize) -> Vec<u8> {
    let byte = |at: u64| {
        let mut word = (stream << 40 | at >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word ^= word >> 29;
        word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word >> (8 * (at & 7))) as u8
    };
    (from..from + length as u64).map(byte).collect()
}

/// Result of a connection for one of its applications.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Everything was written and read.
    Well,
    /// The application itself ended the connection.
    Own,
    /// The application got an error: its reason and message.
    Failed(Reason, String),
}

/// The application at one end of a talk.
#[derive(Debug)]
pub(super) struct Application {
    /// Number of the talk. `None` for a connection that no talk of the plan has opened.
    pub(super) talk: Option<usize>,
    /// 0 at the end that opened the connection, 1 at the other end.
    pub(super) side: usize,
    plan: Talk,
    /// True if the bytes that are read are compared with those that the peer wrote.
    is_judged: bool,
    pub(super) written: u64,
    pub(super) read: u64,
    pub(super) has_read_end: bool,
    writes_at: Time,
    was_silent: bool,
    reads_at: Time,
    pub(super) opened_at: Option<Time>,
    pub(super) end: Option<End>,
    /// Time at which `end` was set.
    pub(super) ended_at: Option<Time>,
    /// The promise of the pages that was broken, and how. `None` if none was.
    pub(super) broken: Option<String>,
}

/// True if everything written has arrived. A connection that is done may lack the last ACK of a
/// peer that has received everything.
fn has_arrived(exchange: &Exchange) -> bool {
    exchange.delivery == Delivery::Finished || matches!(exchange.phase, Phase::Done)
}

impl Application {
    pub(super) fn new(talk: Option<usize>, side: usize, plan: Talk, is_judged: bool, now: Time) -> Application {
        Application {
            talk,
            side,
            plan,
            is_judged,
            written: 0,
            read: 0,
            has_read_end: false,
            writes_at: now,
            was_silent: false,
            reads_at: now,
            opened_at: None,
            end: None,
            ended_at: None,
            broken: None,
        }
    }

    fn stream(&self, side: usize) -> u64 {
        2 * self.talk.unwrap_or(1000) as u64 + side as u64 + 1
    }

    /// Number of bytes that this end writes in all.
    pub(super) fn total(&self) -> u64 {
        self.plan.bytes[self.side]
    }

    /// Ends the connection from this side, with a reset or by letting go of it.
    pub(super) fn stop(&mut self, exchange: &mut Exchange, with_reset: bool) {
        exchange.wishes.abort |= with_reset;
        exchange.let_go();
        self.end.get_or_insert(End::Own);
    }

    /// Reads and writes the data that the plan has for now.
    pub(super) fn act(&mut self, now: Time, exchange: &mut Exchange) {
        if self.end.is_some() {
            return;
        }
        if exchange.is_open() || matches!(exchange.phase, Phase::Done) {
            self.opened_at.get_or_insert(now);
        }
        self.read(now, exchange);
        self.write(now, exchange);
        if let Some(failure) = exchange.failure() {
            self.end = Some(End::Failed(failure.reason, failure.message.clone()));
            exchange.let_go();
        } else if self.has_read_end && exchange.wishes.write_closed && has_arrived(exchange) {
            self.end = Some(End::Well);
            exchange.let_go();
        }
        if self.end.is_some() {
            self.ended_at = Some(now);
        }
    }

    fn read(&mut self, now: Time, exchange: &mut Exchange) {
        if exchange.failure().is_some() {
            // What arrived before a failure is read before the failure is reported.
            self.reads_at = now;
        }
        while now >= self.reads_at && exchange.is_readable() && !self.has_read_end {
            let mut into = vec![0; self.plan.takes.min(exchange.receive.available().max(1))];
            let Some(Ok(length)) = exchange.read(&mut into) else { return };
            if length == 0 {
                self.has_read_end = true;
            }
            if self.is_judged && self.broken.is_none() {
                self.broken = self.judge(&into[..length]);
            }
            self.read += length as u64;
            if self.plan.read_pause_ms > 0 && exchange.failure().is_none() {
                self.reads_at = now + Duration::from_millis(self.plan.read_pause_ms);
            }
        }
    }

    /// Compares the next bytes with those that the peer wrote, by the sentence "the bytes read
    /// are the bytes written, in order". Returns the difference, or `None` if there is none.
    fn judge(&self, read: &[u8]) -> Option<String> {
        let other = 1 - self.side;
        let (total, end) = (self.plan.bytes[other], self.read + read.len() as u64);
        if end > total {
            return Some(format!("{end} bytes of a stream of {total} were read"));
        }
        let differs = read != bytes_of(self.stream(other), self.read, read.len());
        differs.then(|| format!("bytes {} to {end} are not those that were written", self.read))
    }

    fn write(&mut self, now: Time, exchange: &mut Exchange) {
        let part = self.total() / self.plan.parts + 1;
        while now >= self.writes_at && self.written < self.total() && exchange.is_writable() {
            let length = part.min(self.total() - self.written) as usize;
            let bytes = bytes_of(self.stream(self.side), self.written, length);
            let Some(Ok(taken)) = exchange.write(&bytes) else { return };
            self.written += taken as u64;
            let mut pause = self.plan.pause_ms;
            if !self.was_silent && 2 * self.written >= self.total() {
                self.was_silent = true;
                pause += self.plan.silence_ms;
            }
            self.writes_at = now + Duration::from_millis(pause);
        }
        if self.written == self.total() && !exchange.is_opening() {
            exchange.wishes.write_closed = true;
        }
    }

    /// Reads the bytes that have arrived. The session has forgotten the connection, but the
    /// application still has these bytes.
    pub(super) fn outlive(&mut self, now: Time, exchange: &mut Exchange) {
        (self.reads_at, self.plan.read_pause_ms) = (now, 0);
        self.act(now, exchange);
    }

    /// Time at which the application reads or writes by itself.
    pub(super) fn next_act(&self, now: Time, exchange: &Exchange) -> Time {
        if self.end.is_some() {
            return Time::NEVER;
        }
        let due = |at: Time, is_wanted: bool| if is_wanted && at > now { at } else { Time::NEVER };
        let writes = self.written < self.total() && exchange.is_writable();
        due(self.writes_at, writes).min(due(self.reads_at, exchange.is_readable() && !self.has_read_end))
    }
}
