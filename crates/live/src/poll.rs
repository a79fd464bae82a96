//! Sleeping until a descriptor has something, an absolute time has come, or another thread calls.
//!
//! `epoll_pwait` counts milliseconds, too coarse to pace with. So `ppoll`, which takes nanoseconds, waits on the set, and what there is is asked for
//! then. `epoll_pwait2` is one call where those are two, but is not there in Linux before 5.11 and in emulators of another processor.

use crate::Clock;
use crate::clock::until;
use meshpace_core::{Duration, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Name that the caller of [`Poller::add`] gave a descriptor; not [`u64::MAX`].
pub type Token = u64;

const WAKER: Token = Token::MAX;

/// Descriptors reported by one wait; the others follow with the next.
const AT_ONCE: usize = 64;

/// Wakes a [`Poller`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Makes the poller's present or next wait return.
    pub fn wake(&self) {
        // A full counter means that a wake-up is pending already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Report of a descriptor that became ready.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Whose descriptor.
    pub token: Token,
    /// There is something to read, or the other end is gone.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// There is an error to be fetched.
    pub error: bool,
}

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Poller {
    epoll: Arc<OwnedFd>,
    waker: Waker,
}

/// Adds descriptors to a [`Poller`] from another thread.
#[derive(Clone, Debug)]
pub struct Registrar(Arc<OwnedFd>);

impl Registrar {
    /// Watches a descriptor for something to read.
    ///
    /// # Errors
    ///
    /// The system's: no memory, or too many are watched.
    pub fn add(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        Ok(epoll::add(&self.0, source, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }
}

impl Poller {
    /// An empty set with its waker.
    ///
    /// # Errors
    /// If the system gives no descriptors.
    pub fn new() -> io::Result<Poller> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let waker = Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        let token = epoll::EventData::new_u64(WAKER);
        epoll::add(&epoll, &*waker.0, token, epoll::EventFlags::IN)?;
        Ok(Poller { epoll, waker })
    }

    /// Watches a descriptor for something to read.
    ///
    /// # Errors
    /// The system's, about the descriptor.
    pub fn add(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }

    /// Watches a descriptor also for room to write, or no longer.
    ///
    /// # Errors
    /// The system's, about the descriptor.
    pub fn watch_writable(&self, source: impl AsFd, token: Token, yes: bool) -> io::Result<()> {
        let flags = if yes { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        Ok(epoll::modify(&self.epoll, source, epoll::EventData::new_u64(token), flags)?)
    }

    /// Forgets a descriptor.
    ///
    /// # Errors
    /// The system's, about the descriptor.
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// A handle that adds descriptors to it.
    pub fn registrar(&self) -> Registrar {
        Registrar(Arc::clone(&self.epoll))
    }

    /// A handle that wakes this poller.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Waits until `deadline` ([`Time::NEVER`]: for ever) and puts what is ready into `ready`, nothing after a call of
    /// the waker or at the deadline.
    ///
    /// # Errors
    /// The system's, about the wait; a signal that ends it is none.
    pub fn wait(&self, deadline: Time, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.wait_for(until(deadline), deadline == Time::NEVER, ready).map(|_| ())
    }

    /// Looks for what is ready without waiting, again and again for `span`: what comes meanwhile costs nobody a sleep and a
    /// wake-up, which take longer than that where the processor rests in between. Others who want this processor have it first.
    /// True if anything, a call of the waker included, has come.
    ///
    /// # Errors
    /// The system's, about the wait.
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

    /// Waits for a span or for ever; whether it was ended by anything.
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
