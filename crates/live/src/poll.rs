//! Sleeping until a descriptor is ready, an absolute time is reached, or another thread wakes the
//! sleeper.
//!
//! The timeout of `epoll_pwait` is in milliseconds, which is too coarse for pacing. Therefore
//! `ppoll`, whose timeout is in nanoseconds, waits for the epoll descriptor, and the events are
//! fetched afterwards. `epoll_pwait2` would combine the two calls, but it does not exist before
//! Linux 5.11 and in emulators of other processors.

use crate::Clock;
use crate::clock::until;
use meshpace_core::{Duration, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Number by which the caller of [`Poller::add`] identifies a descriptor. [`u64::MAX`] is reserved.
pub type Token = u64;

const WAKER: Token = Token::MAX;

/// Maximum number of descriptors that one wait reports. The next wait reports the others.
const AT_ONCE: usize = 64;

/// Handle that wakes a [`Poller`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Makes the current wait of the poller return, or the next one if it is not waiting.
    pub fn wake(&self) {
        // The write fails if the counter is full, which means that a wake-up is already pending.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Report of a descriptor that is ready.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Token of the descriptor.
    pub token: Token,
    /// True if there are data to read, or the other end has closed.
    pub readable: bool,
    /// True if there is room to write.
    pub writable: bool,
    /// True if an error is pending.
    pub error: bool,
}

/// Set of descriptors that a thread waits for.
#[derive(Debug)]
pub struct Poller {
    epoll: Arc<OwnedFd>,
    waker: Waker,
}

/// Handle that adds descriptors to a [`Poller`] from another thread.
#[derive(Clone, Debug)]
pub struct Registrar(Arc<OwnedFd>);

impl Registrar {
    /// Adds a descriptor, which is reported when it is readable.
    ///
    /// # Errors
    ///
    /// The error of the system call: no memory, or too many descriptors are watched.
    pub fn add(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        Ok(epoll::add(&self.0, source, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }
}

impl Poller {
    /// Creates an empty set and its waker.
    ///
    /// # Errors
    /// The system provides no descriptors.
    pub fn new() -> io::Result<Poller> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let waker = Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        let token = epoll::EventData::new_u64(WAKER);
        epoll::add(&epoll, &*waker.0, token, epoll::EventFlags::IN)?;
        Ok(Poller { epoll, waker })
    }

    /// Adds a descriptor, which is reported when it is readable.
    ///
    /// # Errors
    /// The error of the system call about the descriptor.
    pub fn add(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }

    /// Sets whether a descriptor is also reported when it is writable.
    ///
    /// # Errors
    /// The error of the system call about the descriptor.
    pub fn watch_writable(&self, source: impl AsFd, token: Token, yes: bool) -> io::Result<()> {
        let flags = if yes { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        Ok(epoll::modify(&self.epoll, source, epoll::EventData::new_u64(token), flags)?)
    }

    /// Removes a descriptor.
    ///
    /// # Errors
    /// The error of the system call about the descriptor.
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Returns a handle that adds descriptors to this poller.
    pub fn registrar(&self) -> Registrar {
        Registrar(Arc::clone(&self.epoll))
    }

    /// Returns a handle that wakes this poller.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Waits until a descriptor is ready, the waker is called, or `deadline` is reached
    /// ([`Time::NEVER`]: no limit). Stores the reports of ready descriptors in `ready`, which is
    /// empty if there are none.
    ///
    /// # Errors
    /// The error of the system call. A signal that ends the wait is not an error.
    pub fn wait(&self, deadline: Time, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.wait_for(until(deadline), deadline == Time::NEVER, ready).map(|_| ())
    }

    /// Polls for ready descriptors without sleeping, repeatedly for the time `span`. Events in this
    /// time need no wake-up, which takes longer than the poll if the processor idles in between.
    /// Other threads that want to use this processor run first. Returns true if a descriptor is
    /// ready or the waker was called.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn look(&self, span: Duration, ready: &mut Vec<Ready>) -> io::Result<bool> {
        let end = Clock.now() + span;
        loop {
            if self.wait_for(Duration::ZERO, false, ready)? {
                return Ok(true);
            }
            if Clock.now() >= end {
                return Ok(false);
            }
            std::thread::yield_now();
        }
    }

    /// Waits for the time `span`, or without limit if `for_ever`. Returns true if a descriptor is
    /// ready or the waker was called.
    fn wait_for(&self, span: Duration, for_ever: bool, ready: &mut Vec<Ready>) -> io::Result<bool> {
        ready.clear();
        if !for_ever && span > Duration::ZERO {
            let span = Timespec { tv_sec: (span.0 / 1_000_000_000) as _, tv_nsec: (span.0 % 1_000_000_000) as _ };
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&span)) {
                Ok(0) | Err(Errno::INTR) => return Ok(false),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); AT_ONCE];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(&self.epoll, &mut events[..], (!for_ever).then_some(&at_once)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for event in &*events {
            let (token, flags) = (event.data.u64(), event.flags);
            if token == WAKER {
                let _ = rustix::io::read(&*self.waker.0, &mut [0; 8]);
                continue;
            }
            ready.push(Ready {
                token,
                readable: flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP),
                writable: flags.contains(epoll::EventFlags::OUT),
                error: flags.contains(epoll::EventFlags::ERR),
            });
        }
        Ok(!events.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_not_rounded_to_milliseconds() {
        let (poller, mut ready) = (Poller::new().unwrap(), Vec::new());
        let wait = |span: Duration, ready: &mut Vec<Ready>| {
            let begin = Clock.now();
            poller.wait(begin + span, ready).unwrap();
            Clock.now().since(begin)
        };
        // However busy the machine is, one of so many wakes up soon.
        let span = Duration::from_micros(200);
        let shortest = (0..200).map(|_| wait(span, &mut ready)).min().unwrap();
        assert!(shortest >= span && shortest < Duration::from_micros(900), "{shortest:?}");
        // What has come is told without a wait.
        poller.waker().wake();
        assert!(wait(Duration::from_secs(60), &mut ready) < Duration::from_secs(30));
    }
}
