//! TPA's connections, all of them on one thread: a peer that says nothing costs memory and no thread.

use super::{LOOK, Look, Received};
use crate::clock::Clock;
use crate::tpa::{Selector, TpaListener, TpaStream};
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll};

/// The token of the listener.
const LISTENER: u64 = 0;
/// Read from one stream before the others have their turn.
const TURN: usize = 1 << 20;
/// Time that the end of a connection may take once the peer has closed and everything is here.
const FAREWELL: Duration = Duration::from_secs(5);

/// A connection under way.
struct Open {
    stream: TpaStream,
    received: Received,
    since: Time,
    /// When to wait no longer for the peer to have our end of it; never while it still sends.
    farewell: Time,
}

/// Serves TPA.
///
/// # Errors
///
/// The runtime of the listener has failed.
pub fn tpa(listener: TpaListener, look: Look<'_>) -> io::Result<()> {
    let selector = Selector::default();
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    let (mut next, mut next_look) = (LISTENER + 1, Clock.now() + LOOK);
    let mut block = vec![0; 1 << 16];
    selector.waker(LISTENER).wake();
    loop {
        let mut ended = Vec::new();
        for token in selector.wait(next_look) {
            if token != LISTENER {
                ended.extend(take(&selector, &mut open, token, &mut block));
                continue;
            }
            let waker = selector.waker(LISTENER);
            while let Poll::Ready(accepted) = listener.poll_accept(&Context::from_waker(&waker)) {
                let (stream, peer) = accepted?;
                // It is dropped only when there is nothing more to wait for.
                stream.set_nonblocking(true)?;
                let received = Received::from(peer);
                open.insert(next, Open { stream, received, since: Clock.now(), farewell: Time::NEVER });
                selector.waker(next).wake();
                next += 1;
            }
        }
        for received in ended {
            if !look(Some(received)) {
                return Ok(());
            }
        }
        let now = Clock.now();
        if now >= next_look {
            // The peer has everything but our word that we know.
            let late: Vec<u64> =
                open.iter().filter(|(_, open)| open.farewell <= now).map(|(token, _)| *token).collect();
            let late: Vec<Received> =
                late.into_iter().filter_map(|token| Some(open.remove(&token)?.received)).collect();
            for received in late {
                if !look(Some(received)) {
                    return Ok(());
                }
            }
            if !look(None) {
                return Ok(());
            }
            next_look = now + LOOK;
        }
    }
}

/// Takes what a stream has brought; what it was, if it has ended.
fn take(selector: &Selector, open: &mut BTreeMap<u64, Open>, token: u64, block: &mut [u8]) -> Option<Received> {
    let waker = selector.waker(token);
    let context = Context::from_waker(&waker);
    let Open { stream, received, since, farewell } = open.get_mut(&token)?;
    let mut turn = 0;
    while *farewell == Time::NEVER {
        match stream.poll_read(&context, block) {
            Poll::Pending => return None,
            Poll::Ready(Ok(0)) => {
                received.in_order = true;
                *farewell = Clock.now() + FAREWELL;
                if stream.shutdown(Shutdown::Write).is_err() {
                    break;
                }
            }
            Poll::Ready(Ok(taken)) => {
                received.bytes += taken as u64;
                received.duration = Clock.now().since(*since);
                turn += taken;
                if turn >= TURN {
                    waker.wake_by_ref();
                    return None;
                }
            }
            Poll::Ready(Err(error)) => {
                received.error = Some(error.to_string());
                break;
            }
        }
    }
    if received.in_order && stream.poll_finished(&context).is_pending() {
        return None;
    }
    let mut over = open.remove(&token)?;
    over.received.stats = over.stream.stats();
    Some(over.received)
}
