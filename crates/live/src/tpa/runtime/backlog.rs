//! Connections that wait to be accepted.

use super::shared::Shared;
use super::wait::wait_until;
use crate::tpa::session::failure::Failure;
use crate::tpa::session::places::source_of;
use meshpace_core::Time;
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Connections that wait to be accepted, shared by the listener and the runtime.
#[derive(Debug)]
pub struct Backlog {
    limit: usize,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Shared>>,
    /// Nobody listens any more.
    closed: bool,
    /// Nobody brings connections any more.
    failure: Option<Failure>,
    /// Waker that is told instead of a waiting thread.
    waker: Option<Waker>,
}

impl Queue {
    /// Takes the next connection, or the reason why none will come.
    fn take(&mut self) -> Option<io::Result<Arc<Shared>>> {
        if let Some(shared) = self.waiting.pop_front() {
            return Some(Ok(shared));
        }
        if self.closed {
            return Some(Err(io::Error::new(io::ErrorKind::NotConnected, "the listener is closed")));
        }
        self.failure.as_ref().map(|failure| Err(failure.error()))
    }

    fn tell(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Backlog {
    /// For at most `limit` connections that wait.
    pub fn new(limit: usize) -> Backlog {
        Backlog { limit: limit.max(1), queue: Mutex::default(), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if another one may be opened by `address`, which may have half of the places. Those half open meanwhile may still
    /// join the queue: refusing them then would break what their peers believe to be open.
    pub fn has_room(&self, address: IpAddr) -> bool {
        let queue = self.lock();
        let source = source_of(address);
        let own = queue.waiting.iter().filter(|shared| source_of(shared.peer.ip()) == source).count();
        !queue.closed && queue.waiting.len() < self.limit && own < self.limit.div_ceil(2)
    }

    /// Nothing will come any more, for this reason.
    pub fn fail(&self, failure: &Failure) {
        let mut queue = self.lock();
        queue.failure = Some(failure.clone());
        queue.tell();
        self.arrived.notify_all();
    }

    /// An open connection waits from now on; false if nobody listens any more.
    pub fn offer(&self, connection: Arc<Shared>) -> bool {
        let mut queue = self.lock();
        if !queue.closed {
            queue.waiting.push_back(connection);
            queue.tell();
            self.arrived.notify_one();
        }
        !queue.closed
    }

    /// Nobody will ask any more; what waits is reset.
    pub fn close(&self) {
        let waiting = {
            let mut queue = self.lock();
            queue.closed = true;
            queue.tell();
            std::mem::take(&mut queue.waiting)
        };
        self.arrived.notify_all();
        waiting.iter().for_each(|shared| shared.abort());
    }

    /// The next connection, waiting until `deadline`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] at the deadline, [`io::ErrorKind::NotConnected`] once it is closed, or why nothing will come any more.
    pub fn next(&self, deadline: Time) -> io::Result<Arc<Shared>> {
        let mut queue = self.lock();
        loop {
            if let Some(taken) = queue.take() {
                return taken;
            }
            let (guard, in_time) = wait_until(&self.arrived, queue, deadline);
            in_time?;
            queue = guard;
        }
    }

    /// The next connection, or the context's waker is called when there is one.
    ///
    /// # Errors
    ///
    /// As [`Backlog::next`].
    pub fn poll_next(&self, context: &Context<'_>) -> Poll<io::Result<Arc<Shared>>> {
        let mut queue = self.lock();
        let taken = queue.take();
        if taken.is_none() {
            queue.waker = Some(context.waker().clone());
        }
        taken.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ready if [`Backlog::poll_next`] would be; otherwise the context's waker is called when that is so.
    pub fn poll_ready(&self, context: &Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if !queue.waiting.is_empty() || queue.closed || queue.failure.is_some() {
            return Poll::Ready(());
        }
        queue.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
