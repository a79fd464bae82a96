//! One file descriptor that select(2), poll(2) and epoll(7) find readable and writable when a stream or a listener is.
//!
//! An eventfd(2) cannot be neither readable nor writable, so the descriptor is one end of a pair of Unix sockets, which carries no
//! data of the stream:
//!
//! - It is readable while its receive queue holds a byte, which the hidden end has sent.
//! - It is writable unless its send buffer is full: it is filled with bytes for the hidden end, and emptied when the hidden end reads them.
//!
//! The kernel wakes whoever waits for the descriptor. The invariant: a direction that is shown as not ready has a waker registered, which
//! looks again. A direction that is shown as ready changes only by calls of the application, which [refresh](Descriptor::refresh)es it.

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

/// A descriptor for a stream or a listener, which is only waited for: nobody reads or writes it. It is closed when this is dropped, and
/// shows neither direction as ready before [`TpaStream::attach`] or [`TpaListener::attach`].
#[derive(Debug)]
pub struct Descriptor(Arc<Pair>);

#[derive(Debug)]
struct Pair {
    /// The process that made it. In a child after `fork` the lock below may never be free.
    process: Process,
    shown: OwnedFd,
    hidden: OwnedFd,
    state: Mutex<State>,
    /// Has this pair look again.
    waker: Waker,
}

/// What the descriptor shows, and of what. The source is not kept alive.
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
    /// One without a stream or listener.
    ///
    /// # Errors
    ///
    /// The process has too many descriptors.
    pub fn new() -> io::Result<Descriptor> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (shown, hidden) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The least that the kernel allows, because the buffer of a stream that takes no more is filled.
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

    /// To be called after each call of the stream or listener that reads, writes or accepts, which may have left nothing for the next.
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
    /// Has `descriptor` show whether reading and writing would not wait, until it is attached elsewhere.
    pub fn attach(&self, descriptor: &Descriptor) {
        descriptor.0.follow(Source::Stream(Arc::downgrade(&self.shared)));
    }
}

impl TpaListener {
    /// Has `descriptor` be readable while accepting would not wait, until it is attached elsewhere.
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

    /// Looks at the source and shows what it finds.
    fn refresh(&self) {
        if !self.process.is_current() {
            return;
        }
        // Held until the result is shown, so that a waker that is called meanwhile looks afterwards.
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

/// Sends `most` bytes, or as many as fit.
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

/// Receives all that waits.
fn empty(at: &OwnedFd) {
    let mut block = [0; 4096];
    while matches!(recv(at, &mut block[..], RecvFlags::empty()), Ok((received, _)) if received > 0) {}
}
