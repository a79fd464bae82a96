//! TPA receiver, with all connections on one thread: a silent peer costs memory, but no thread.

use super::{LOOK, Look, Received};
use crate::clock::Clock;
use crate::tpa::{Selector, TpaListener, TpaStream};
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll};

/// Token of the listener.
const LISTENER: u64 = 0;
/// Maximum number of bytes that are read from one stream before the other streams are served.
const TURN: usize = 1 << 20;
/// Time limit for the end of a connection after the peer has closed and all data have been
/// received.
const FAREWELL: Duration = Duration::from_secs(5);

/// A connection in progress.
struct Open {
    stream: TpaStream,
    received: Received,
    since: Time,
    /// Time after which the receiver no longer waits for the acknowledgement of its end.
    /// [`Time::NEVER`] while the peer still sends.
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
                // A stream is dropped only when there is nothing more to wait for, so dropping must
                // not wait.
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
            // Such a peer has received everything except the acknowledgement of its end.
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

/// Reads what has arrived on a stream. Returns the account if the connection has ended.
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
