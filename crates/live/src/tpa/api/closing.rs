//! End of a stream: the application closes it and waits until its written data have arrived.

use crate::Clock;
use crate::tpa::runtime::shared::{Shared, State};
use meshpace_core::{Duration, Time};
use meshpace_session::exchange::Delivery;
use std::io;
use std::sync::MutexGuard;

/// Closes both directions for good: the application will neither read nor write any more.
pub(super) fn let_go(shared: &Shared) -> io::Result<()> {
    let mut state = shared.enter()?;
    state.exchange.let_go();
    shared.call(&mut state);
    shared.wake_all(state);
    Ok(())
}

/// Time for which closing waits for the peer's answer after the peer has closed and everything has
/// arrived. The peer may have ended without answering. If the network reports that, closing does
/// not wait this long.
pub(super) const LAST_WORD: Duration = Duration::from_secs(2);

/// Waits until our direction is finished, at most until `deadline`. The second value is true if
/// all written data have arrived, or the connection has ended.
///
/// The peer may close later. The runtime answers it as long as the process lives; afterwards the
/// peer does not need the answer.
pub(super) fn wait_for_end(shared: &Shared, deadline: Time) -> io::Result<(MutexGuard<'_, State>, bool)> {
    let mut last_word = Time::NEVER;
    let mut state = shared.enter()?;
    loop {
        if state.exchange.is_over() || state.exchange.has_delivered() {
            return Ok((state, true));
        }
        if state.exchange.delivery == Delivery::AwaitsFinalAck {
            last_word = last_word.min(Clock.now() + LAST_WORD);
        }
        match shared.wait_writable(state, deadline.min(last_word).into()) {
            Ok(guard) => state = guard,
            Err(_) => {
                let state = shared.lock();
                let over = state.exchange.delivery != Delivery::UnderWay;
                return Ok((state, over));
            }
        }
    }
}
