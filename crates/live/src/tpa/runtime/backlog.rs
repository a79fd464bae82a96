//! Backlog of a listener: open connections that wait to be accepted.

use super::shared::Shared;
use super::wait::{Condition, Patience};
use meshpace_session::failure::Failure;
use meshpace_session::networks::source_of;
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Queue of connections that wait to be accepted. The listener and the runtime share it.
#[derive(Debug)]
pub struct Backlog {
    limit: usize,
    queue: Mutex<Queue>,
    arrived: Condition,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Shared>>,
    /// True once the listener is closed.
    closed: bool,
    /// Reason why the runtime delivers no further connections. `None` while it runs.
    failure: Option<Failure>,
    /// Waker of a task that waits for a connection.
    waker: Option<Waker>,
}

impl Queue {
    /// Takes the next connection, or returns the reason why no further connection will arrive.
    /// `None` if the caller has to wait.
    fn take(&mut self) -> Option<io::Result<Arc<Shared>>> {
        if let Some(shared) = self.waiting.pop_front() {
            return Some(Ok(shared));
        }
        if self.closed {
            return Some(Err(io::Error::new(io::ErrorKind::NotConnected, "the listener is closed")));
        }
        self.failure.as_ref().map(|failure| Err(failure.error()))
    }
}

/// Unlocks the queue and then calls the waker, because the waker may lock the queue itself.
fn unlock_and_wake(mut queue: MutexGuard<'_, Queue>) {
    let waker = queue.waker.take();
    drop(queue);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Backlog {
    /// Creates an empty backlog for at most `limit` waiting connections, but at least one.
    pub fn new(limit: usize) -> Backlog {
        Backlog { limit: limit.max(1), queue: Mutex::default(), arrived: Condition::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if another connection from the source of `address` may be opened. One source may occupy
    /// half of the places. Connections that are half open when the backlog becomes full may still
    /// join the queue, because refusing them would break connections that their peers consider
    /// open.
    pub fn has_room(&self, address: IpAddr) -> bool {
        let queue = self.lock();
        let source = source_of(address);
        let own = queue.waiting.iter().filter(|shared| source_of(shared.peer.ip()) == source).count();
        !queue.closed && queue.waiting.len() < self.limit && own < self.limit.div_ceil(2)
    }

    /// Records that no further connections will arrive, with the reason, and wakes all waiting
    /// threads.
    pub fn fail(&self, failure: &Failure) {
        let mut queue = self.lock();
        queue.failure = Some(failure.clone());
        unlock_and_wake(queue);
        self.arrived.notify_all();
    }

    /// Appends an open connection. Returns false if the listener is closed.
    pub fn offer(&self, connection: Arc<Shared>) -> bool {
        let mut queue = self.lock();
        if queue.closed {
            return false;
        }
        queue.waiting.push_back(connection);
        unlock_and_wake(queue);
        self.arrived.notify_one();
        true
    }

    /// Closes the backlog and resets the connections in it.
    pub fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        let waiting = std::mem::take(&mut queue.waiting);
        unlock_and_wake(queue);
        self.arrived.notify_all();
        waiting.iter().for_each(|shared| shared.abort());
    }

    /// Takes the next connection. Waits for one as long as `patience` allows.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] at the deadline, [`io::ErrorKind::Interrupted`] if a signal
    /// has ended the wait, [`io::ErrorKind::NotConnected`] once the listener is closed. If no
    /// further connections can arrive, the reason for that.
    pub fn next(&self, patience: Patience) -> io::Result<Arc<Shared>> {
        let mut queue = self.lock();
        loop {
            if let Some(taken) = queue.take() {
                return taken;
            }
            let (guard, in_time) = self.arrived.wait(&self.queue, queue, patience);
            in_time?;
            queue = guard;
        }
    }

    /// Takes the next connection. If there is none, the context's waker is called when there is
    /// one.
    ///
    /// # Errors
    ///
    /// The errors of [`Backlog::next`].
    pub fn poll_next(&self, context: &Context<'_>) -> Poll<io::Result<Arc<Shared>>> {
        let mut queue = self.lock();
        let taken = queue.take();
        if taken.is_none() {
            queue.waker = Some(context.waker().clone());
        }
        taken.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ready if [`Backlog::poll_next`] would be ready. Otherwise the context's waker is called as
    /// soon as it would be.
    pub fn poll_ready(&self, context: &Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if !queue.waiting.is_empty() || queue.closed || queue.failure.is_some() {
            return Poll::Ready(());
        }
        queue.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use crate::tpa::{Options, TpaListener, TpaPort, TpaStream};
    use meshpace_core::Duration;
    use std::collections::BTreeSet;
    use std::io::ErrorKind;

    fn options() -> Options {
        let mut options = Options::default();
        options.transport.rto.initial = Duration::from_millis(100);
        options
    }

    /// Accepts a connection and ends it; the port that it came from.
    fn accept(listener: &TpaListener) -> u16 {
        let (stream, peer) = listener.accept().unwrap();
        stream.abort();
        peer.port()
    }

    #[test]
    fn a_source_has_half_of_the_places_and_who_finds_none_is_not_answered() {
        let listener = TpaPort::with_options("127.0.0.1:0", options()).unwrap().listen(4).unwrap();
        listener.set_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let to = listener.local_addr().unwrap();
        let port = |host: &str| TpaPort::with_options((host, 0), options()).unwrap();
        let one = port("127.0.0.1");
        let first = [one.connect(to).unwrap(), one.connect(to).unwrap()];
        let crowded = || listener.counters().crowded;
        let wait = |is_so: &dyn Fn() -> bool| {
            while !is_so() {
                std::thread::park_timeout(std::time::Duration::from_millis(10));
            }
        };
        // A third of the same source finds no place, nor when it asks again.
        let third = one.connect_nonblocking(to).unwrap();
        wait(&|| crowded() >= 2);
        assert!(!third.is_open().unwrap());
        // Another source has the other half; then there is no place for anybody.
        let second = ["127.0.0.2", "127.0.0.3"].map(|host| port(host).connect(to).unwrap());
        let stranger = port("127.0.0.4").connect_nonblocking(to).unwrap();
        let before = crowded();
        wait(&|| crowded() >= before + 4);
        assert!(!third.is_open().unwrap() && !stranger.is_open().unwrap());
        // Whoever asks again has a place as soon as there is one.
        let accepted = |count: usize| (0..count).map(|_| accept(&listener)).collect::<BTreeSet<u16>>();
        let ports = |streams: &[&TpaStream]| streams.iter().map(|one| one.local_addr().unwrap().port()).collect();
        assert_eq!(accepted(4), ports(&[&first[0], &first[1], &second[0], &second[1]]));
        assert_eq!(accepted(2), ports(&[&third, &stranger]));
        assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
