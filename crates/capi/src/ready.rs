//! Descriptors for poll, select and epoll: one for receiving and one for sending, each readable as long as its call would not wait.
//!
//! Each is an eventfd(2). After every call that may have changed something it is emptied and filled again if there is something
//! to do; while there is nothing, the connection's waker fills it when there is.

use crate::fault::Errno;
use crate::state::State;
use libc::{c_int, c_short};
use meshpace_live::process::ClosedInChildren;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// One descriptor. A child after `fork` has no copy: it would see and change what the parent's calls rely on.
struct Event {
    /// Stands before the descriptor, so that it is dropped first.
    _closed_in_children: ClosedInChildren,
    descriptor: OwnedFd,
}

impl Event {
    fn new() -> io::Result<Event> {
        // SAFETY: takes two numbers and returns a descriptor or -1.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else has it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Event { _closed_in_children: ClosedInChildren::new(&descriptor)?, descriptor })
    }

    fn fill(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes; the descriptor is open as long as `self` is. A counter that is full is filled.
        unsafe { libc::write(self.descriptor.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    fn empty(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight writable bytes; the descriptor is open as long as `self` is. A counter that is empty is left so.
        unsafe { libc::read(self.descriptor.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl Wake for Event {
    fn wake(self: Arc<Self>) {
        self.fill();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.fill();
    }
}

/// The descriptors of a socket that were asked for.
#[derive(Default)]
pub(crate) struct Readiness {
    receiving: OnceLock<Arc<Event>>,
    sending: OnceLock<Arc<Event>>,
}

impl Readiness {
    /// The descriptor for `events`: `POLLIN` or `POLLOUT`.
    pub(crate) fn descriptor(&self, events: c_short, state: &State) -> Result<c_int, Errno> {
        let place = match events {
            libc::POLLIN => &self.receiving,
            libc::POLLOUT => &self.sending,
            _ => return Err(Errno::from(libc::EINVAL)),
        };
        if place.get().is_none() {
            // If another thread was faster, its one counts.
            let _ = place.set(Arc::new(Event::new()?));
            self.refresh(state);
        }
        place.get().map(|event| event.descriptor.as_raw_fd()).ok_or(Errno::from(libc::EIO))
    }

    /// Something may have changed.
    pub(crate) fn refresh(&self, state: &State) {
        if let Some(event) = self.receiving.get() {
            settle(event, |context| match state {
                State::Fresh | State::Bound(_) => Poll::Pending,
                State::Listening(listener) => listener.poll_acceptable(context),
                State::Connected(stream) => stream.poll_readable(context),
            });
        }
        if let Some(event) = self.sending.get() {
            settle(event, |context| match state {
                State::Connected(stream) => stream.poll_writable(context),
                State::Fresh | State::Bound(_) | State::Listening(_) => Poll::Pending,
            });
        }
    }
}

/// Emptied before it is asked: what comes in between fills it.
fn settle(event: &Arc<Event>, is_ready: impl FnOnce(&Context<'_>) -> Poll<()>) {
    event.empty();
    let waker = Waker::from(Arc::clone(event));
    if is_ready(&Context::from_waker(&waker)).is_ready() {
        event.fill();
    }
}
