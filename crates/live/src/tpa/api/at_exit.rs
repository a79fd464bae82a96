//! Normal end of a process. The thread that runs the connections ends with the process, so what was
//! written has to arrive before.

use super::closing::{LAST_WORD, let_go, wait_for_end};
use crate::Clock;
use crate::tpa::runtime::handle::Handle;
use crate::tpa::runtime::shared::Shared;
use meshpace_core::{Duration, Time};
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection that is being closed because the process ends.
struct Closing {
    shared: Arc<Shared>,
    /// Number of bytes that were written and had not arrived when closing began.
    owed: usize,
    /// Time until which closing is waited for.
    deadline: Time,
}

/// Closes every connection of this process and waits until all written data have arrived. The wait
/// for each connection lasts at most its linger time. It lasts at most two seconds if all data have
/// arrived and only the end of the stream has not.
///
/// This is for a handler at the end of a program whose language runs no destructors then; in Rust
/// dropping a stream does the same for that stream. Returns a sentence for the user if some data
/// had not arrived.
pub fn finish_process() -> Option<String> {
    let now = Clock.now();
    let closing = Handle::running()?.unfinished().into_iter().filter_map(|shared| close(shared, now));
    // Closes all connections first and then waits for one after the other, so that the waiting
    // times overlap.
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

/// Begins to close a connection. `None` if that is impossible, as in a child after `fork`.
fn close(shared: Arc<Shared>, now: Time) -> Option<Closing> {
    let state = shared.enter().ok()?;
    let (owed, linger) = (state.exchange.send.len(), state.linger);
    drop(state);
    let_go(&shared).ok()?;
    let patience = if owed > 0 { linger } else { linger.min(LAST_WORD) };
    Some(Closing { shared, owed, deadline: now.saturating_add(patience) })
}

impl Closing {
    /// Waits for the end of the connection. If written data have not arrived, returns their number
    /// of bytes when closing began, the peer, and the time allowed for waiting.
    fn lost(&self, begun: Time) -> Option<(usize, SocketAddr, Duration)> {
        let (state, _) = wait_for_end(&self.shared, self.deadline).ok()?;
        let has_failed = state.exchange.failure().is_some() || !state.exchange.is_over();
        let is_lost = self.owed > 0 && has_failed && !state.exchange.has_delivered();
        is_lost.then(|| (self.owed, self.shared.peer, self.deadline.since(begun)))
    }
}
