//! Recognises the child after `fork`, for state that only the process that made it may use.
//!
//! A child has the memory of its parent, but of its threads only the one that called `fork`. A lock that another thread held at that
//! moment is never released there, and nobody runs the connections. State that depends on threads or locks therefore remembers its
//! [`Process`] and is left alone elsewhere; what a process needs once, it has in a [`PerProcess`].
//!
//! `fork` is counted by a handler of pthread_atfork(3): process ids are used again, and are the same in two PID namespaces. The handler does
//! not run for children made by vfork(2), `_Fork` or clone(2) itself, in which POSIX allows little more than to run another program.
#![expect(unsafe_code, reason = "pthread_atfork has no safe wrapper, and the place of a lock cannot be behind a lock")]

use nix::libc;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// One process: the number of times that `fork` returned in a child on the way to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

static FORKS: AtomicU32 = AtomicU32::new(0);

impl Process {
    /// The calling process. From now on `fork` is counted.
    ///
    /// # Errors
    ///
    /// The system has no memory for the handler.
    pub fn current() -> io::Result<Process> {
        static HANDLED: AtomicBool = AtomicBool::new(false);
        // Two threads may both come here: a second handler does no harm. A lock around it could stay locked in a child.
        if !HANDLED.load(Ordering::Acquire) {
            // SAFETY: the handler closes descriptors and counts; it waits for no lock, allocates nothing and does not unwind.
            let errno = unsafe { libc::pthread_atfork(None, None, Some(begin_child)) };
            if errno != 0 {
                return Err(io::Error::from_raw_os_error(errno));
            }
            HANDLED.store(true, Ordering::Release);
        }
        Ok(Process(FORKS.load(Ordering::Relaxed)))
    }

    /// Whether this is the calling process; false in its children.
    pub fn is_current(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

/// Runs in the child before `fork` returns there.
extern "C" fn begin_child() {
    // If another thread of the parent held the lock, the child keeps its copies until it ends.
    if let Some(Ok(descriptors)) = DESCRIPTORS.take().map(Mutex::try_lock) {
        for descriptor in &*descriptors {
            let _ = nix::unistd::close(*descriptor);
        }
    }
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A value that every process has for itself: a child after `fork` begins with the default, whatever state its parent's is in.
pub struct PerProcess<T>(AtomicPtr<Place<T>>);

struct Place<T> {
    process: Process,
    value: T,
}

impl<T: Default + Send + Sync> PerProcess<T> {
    /// Without a value; the first call of [`PerProcess::get`] makes one.
    #[expect(clippy::new_without_default, reason = "it stands in statics, which need a constant")]
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(null_mut()))
    }

    /// The value there is, which is not found here any more.
    fn take(&'static self) -> Option<&'static T> {
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `get`, and what was put here is never freed.
        unsafe { self.0.swap(null_mut(), Ordering::AcqRel).as_ref() }.map(|place| &place.value)
    }

    /// The value of this process. That of the parent is not freed: a thread that does not exist here may have been at work on it.
    ///
    /// # Errors
    ///
    /// Those of [`Process::current`].
    pub fn get(&'static self) -> io::Result<&'static T> {
        let process = Process::current()?;
        let found = self.0.load(Ordering::Acquire);
        // SAFETY: as in `take`.
        if let Some(place) = unsafe { found.as_ref() }
            && place.process == process
        {
            return Ok(&place.value);
        }
        let made = Box::into_raw(Box::new(Place { process, value: T::default() }));
        match self.0.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it was just made and is never freed, since it was put here.
            Ok(_) => Ok(unsafe { &(*made).value }),
            Err(other) => {
                // SAFETY: it was just made, and nobody else has the pointer.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another thread of this process put it here, and as in `take` it is never freed.
                Ok(unsafe { &(*other).value })
            }
        }
    }
}

/// Descriptors of this process of which children close their copies.
static DESCRIPTORS: PerProcess<Mutex<BTreeSet<RawFd>>> = PerProcess::new();

/// Has every child after `fork` close its copy of a descriptor. To be dropped before the descriptor is closed, whose number may then be
/// another file's. Without it a UDP port stays in use as long as any child lives, although the parent has closed it.
#[derive(Debug)]
pub struct ClosedInChildren {
    process: Process,
    descriptor: RawFd,
}

impl ClosedInChildren {
    /// For this descriptor.
    ///
    /// # Errors
    ///
    /// Those of [`Process::current`].
    pub fn new(descriptor: &impl AsRawFd) -> io::Result<ClosedInChildren> {
        let (process, descriptor) = (Process::current()?, descriptor.as_raw_fd());
        DESCRIPTORS.get()?.lock().unwrap_or_else(PoisonError::into_inner).insert(descriptor);
        Ok(ClosedInChildren { process, descriptor })
    }
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        if self.process.is_current()
            && let Ok(descriptors) = DESCRIPTORS.get()
        {
            descriptors.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.descriptor);
        }
    }
}
