//! The normal end of a process: the thread that runs the connections ends with it, and what was sent is to arrive before.

use super::closing::{LAST_WORD, let_go, wait_for_end};
use crate::Clock;
use crate::tpa::runtime::handle::Handle;
use crate::tpa::runtime::shared::Shared;
use meshpace_core::{Duration, Time};
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection that is being closed because its process ends.
struct Closing {
    shared: Arc<Shared>,
    /// Bytes that were written and had not arrived.
    owed: usize,
    /// Until when it is waited for.
    deadline: Time,
}

/// Closes every connection of this process, and waits until what was written has arrived: for each for its linger time at most, and where all
/// has arrived and only its end has not, for two seconds at most. For programs whose language runs no destructors at the end, in a
/// handler of that: in Rust dropping a stream does the same for it. Returns a sentence if something had not arrived.
pub fn finish_process() -> Option<String> {
    let now = Clock.now();
    let closing = Handle::running()?.unfinished().into_iter().filter_map(|shared| close(shared, now));
    // All at once, then one after the other: their times run together.
    let closing: Vec<Closing> = closing.collect();
    let lost: Vec<(usize, SocketAddr, Duration)> = closing.iter().filter_map(|one| one.lost(now)).collect();
    let (_, peer, span) = lost.first()?;
    let bytes: usize = lost.iter().map(|(owed, ..)| owed).sum();
    let others = match lost.len() - 1 {
        0 => String::new(),
        count => format!(" and {count} others"),
    };
    let span = span.as_secs_f64();
    Some(format!("the process ends, and of {bytes} bytes sent to {peer}{others} not all have arrived within {span} s"))
}

/// Begins to close a connection; none if it cannot be, as in a child after `fork`.
fn close(shared: Arc<Shared>, now: Time) -> Option<Closing> {
    let state = shared.enter().ok()?;
    let (owed, linger) = (state.exchange.send.len(), state.linger);
    drop(state);
    let_go(&shared).ok()?;
    let patience = if owed > 0 { linger } else { linger.min(LAST_WORD) };
    Some(Closing { shared, owed, deadline: now.saturating_add(patience) })
}

impl Closing {
    /// Waits for its end: what it owes, to whom, and how long was waited, if it owes anything and that has not arrived.
    fn lost(&self, begun: Time) -> Option<(usize, SocketAddr, Duration)> {
        let (state, _) = wait_for_end(&self.shared, self.deadline).ok()?;
        let has_failed = state.exchange.failure().is_some() || !state.exchange.is_over();
        let is_lost = self.owed > 0 && has_failed && !state.exchange.has_delivered();
        is_lost.then(|| (self.owed, self.shared.peer, self.deadline.since(begun)))
    }
}
