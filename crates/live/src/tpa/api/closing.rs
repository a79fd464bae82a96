//! The end of a stream: its application lets go, and waits until what it wrote has arrived.

use crate::Clock;
use crate::tpa::runtime::shared::{Shared, State};
use crate::tpa::session::exchange::Delivery;
use meshpace_core::{Duration, Time};
use std::io;
use std::sync::MutexGuard;

/// The application will neither read nor write any more.
pub(super) fn let_go(shared: &Shared) -> io::Result<()> {
    let mut state = shared.enter()?;
    state.exchange.let_go();
    shared.call(&mut state);
    shared.wake_all(state);
    Ok(())
}

/// Time for which closing waits, when the peer has everything, for the peer to close too: a process that ends at once would leave
/// the peer's closing without an answer.
const PEER_CLOSES: Duration = Duration::from_millis(500);

/// Time for which it waits for the answer to our closing when the peer has closed and everything has arrived: the peer may have
/// ended without it.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Waits until our direction is over; the second value is whether it is.
pub(super) fn wait_for_end(shared: &Shared, deadline: Time) -> io::Result<(MutexGuard<'_, State>, bool)> {
    let (mut peer_closes, mut last_word) = (Time::NEVER, Time::NEVER);
    let mut state = shared.enter()?;
    loop {
        if state.exchange.is_over() {
            return Ok((state, true));
        }
        let now = Clock.now();
        match state.exchange.delivery {
            Delivery::UnderWay => {}
            Delivery::AwaitsFinalAck => last_word = last_word.min(now + LAST_WORD),
            Delivery::Finished => peer_closes = peer_closes.min(now + PEER_CLOSES),
        }
        match shared.wait_writable(state, deadline.min(peer_closes).min(last_word)) {
            Ok(guard) => state = guard,
            Err(_) => {
                let state = shared.lock();
                let over = state.exchange.delivery != Delivery::UnderWay;
                return Ok((state, over));
            }
        }
    }
}
