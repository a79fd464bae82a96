//! A file descriptor that select(2), poll(2) and epoll(7) report as readable and writable when a
//! stream or a listener is.
//!
//! An eventfd(2) is always readable or writable. The descriptor is therefore one end of a pair of
//! Unix sockets, which carries none of the stream's data:
//!
//! - The descriptor is readable while its receive queue holds a byte, which the hidden end has
//!   sent.
//! - The descriptor is writable unless its send buffer is full. The buffer is filled with bytes for
//!   the hidden end, and emptied when the hidden end reads them.
//!
//! The kernel wakes the threads that wait for the descriptor. Invariant: for a direction that is
//! shown as not ready, a waker is registered that checks the direction again. A direction that is
//! shown as ready becomes not ready only by calls of the application, which has to call
//! [refresh](Descriptor::refresh) afterwards.

use super::listener::TpaListener;
use super::stream::TpaStream;
use crate::process::Process;
use crate::tpa::runtime::backlog::Backlog;
use crate::tpa::runtime::shared::Shared;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

/// Descriptor for a stream or a listener. It is only for waiting: no program reads or writes it.
/// Dropping this closes the descriptor. Before [`TpaStream::attach`] or [`TpaListener::attach`] it
/// shows neither direction as ready.
#[derive(Debug)]
pub struct Descriptor(Arc<Pair>);

#[derive(Debug)]
struct Pair {
    /// The process that created the pair. In a child after `fork` the lock below may stay locked
    /// for ever.
    process: Process,
    shown: OwnedFd,
    hidden: OwnedFd,
    state: Mutex<State>,
    /// Waker that calls `refresh` of this pair.
    waker: Waker,
}

/// Readiness that the descriptor shows, and the stream or listener that it stands for. The source
/// is not kept alive.
#[derive(Debug)]
struct State {
    is_readable: bool,
    is_writable: bool,
    source: Source,
}

#[derive(Debug)]
enum Source {
    None,
    Stream(Weak<Shared>),
    Listener(Weak<Backlog>),
}

struct LookAgain(Weak<Pair>);

impl Wake for LookAgain {
    fn wake(self: Arc<Self>) {
        if let Some(pair) = self.0.upgrade() {
            pair.refresh();
        }
    }
}

impl Descriptor {
    /// Creates a descriptor that is not attached to a stream or listener.
    ///
    /// # Errors
    ///
    /// The process has too many open descriptors.
    pub fn new() -> io::Result<Descriptor> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (shown, hidden) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The smallest buffer that the kernel allows, because it has to be filled whenever the
        // stream is not writable.
        set_socket_send_buffer_size(&shown, 1)?;
        let process = Process::current()?;
        let state = Mutex::new(State { is_readable: false, is_writable: true, source: Source::None });
        let pair = Arc::new_cyclic(|pair| {
            let waker = Waker::from(Arc::new(LookAgain(Weak::clone(pair))));
            Pair { process, shown, hidden, state, waker }
        });
        pair.refresh();
        Ok(Descriptor(pair))
    }

    /// Updates what the descriptor shows. To be called after each call of the stream or listener
    /// that reads, writes or accepts, because the next such call may have to wait.
    pub fn refresh(&self) {
        self.0.refresh();
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.shown.as_fd()
    }
}

impl TpaStream {
    /// Makes `descriptor` show whether reading from and writing to this stream would not wait,
    /// until the descriptor is attached to another source.
    pub fn attach(&self, descriptor: &Descriptor) {
        descriptor.0.follow(Source::Stream(Arc::downgrade(&self.shared)));
    }
}

impl TpaListener {
    /// Makes `descriptor` readable while accepting would not wait, until the descriptor is attached
    /// to another source.
    pub fn attach(&self, descriptor: &Descriptor) {
        descriptor.0.follow(Source::Listener(Arc::downgrade(&self.backlog)));
    }
}

impl Pair {
    fn follow(&self, source: Source) {
        if self.process.is_current() {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).source = source;
            self.refresh();
        }
    }

    /// Determines the readiness of the source and shows it.
    fn refresh(&self) {
        if !self.process.is_current() {
            return;
        }
        // The lock is held until the result is shown, so that a waker that is called meanwhile
        // checks afterwards.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let context = Context::from_waker(&self.waker);
        let (is_readable, is_writable) = match &state.source {
            Source::None => (false, false),
            Source::Stream(stream) => {
                let Some(stream) = stream.upgrade() else { return };
                (stream.poll_readable(&context).is_ready(), stream.poll_writable(&context).is_ready())
            }
            Source::Listener(backlog) => {
                let Some(backlog) = backlog.upgrade() else { return };
                (matches!(backlog.poll_ready(&context), Poll::Ready(())), false)
            }
        };
        if state.is_readable != is_readable {
            state.is_readable = is_readable;
            if is_readable { fill(&self.hidden, 1) } else { empty(&self.shown) }
        }
        if state.is_writable != is_writable {
            state.is_writable = is_writable;
            if is_writable { empty(&self.hidden) } else { fill(&self.shown, usize::MAX) }
        }
    }
}

/// Sends `most` bytes, or as many as fit into the buffer.
fn fill(from: &OwnedFd, most: usize) {
    let block = [0; 1024];
    let mut left = most;
    while left > 0 {
        match send(from, &block[..left.min(block.len())], SendFlags::NOSIGNAL) {
            Ok(sent) if sent > 0 => left -= sent,
            _ => return,
        }
    }
}

/// Receives and discards all waiting bytes.
fn empty(at: &OwnedFd) {
    let mut block = [0; 4096];
    while matches!(recv(at, &mut block[..], RecvFlags::empty()), Ok((received, _)) if received > 0) {}
}
