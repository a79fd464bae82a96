//! Detection of a child process after `fork`, for state that only the process that created it may
//! use.
//!
//! A child has a copy of its parent's memory, but only the thread that called `fork`. A lock that
//! another thread held at that moment is never released in the child, and no thread runs the
//! connections. State that depends on threads or locks therefore stores its [`Process`] and is not
//! used in other processes. Values that exist once per process are stored in a [`PerProcess`].
//!
//! A handler of pthread_atfork(3) counts the forks. Process ids would not do, because they are
//! reused, and because two PID namespaces may use the same id. The handler does not run for
//! children created by vfork(2), `_Fork` or clone(2) itself, in which POSIX allows little more than
//! to execute another program.
#![expect(unsafe_code, reason = "pthread_atfork has no safe wrapper, and the place of a lock cannot be behind a lock")]

use nix::libc;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Identity of a process: the number of times that `fork` returned in a child, from the first
/// process to this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

static FORKS: AtomicU32 = AtomicU32::new(0);

impl Process {
    /// Returns the calling process. Forks are counted from the first call on.
    ///
    /// # Errors
    ///
    /// The system has no memory for the handler.
    pub fn current() -> io::Result<Process> {
        static HANDLED: AtomicBool = AtomicBool::new(false);
        // Two threads may get here at the same time: a second handler does no harm. A lock around
        // this could stay locked in a child.
        if !HANDLED.load(Ordering::Acquire) {
            // SAFETY: the handler closes descriptors and counts; it waits for no lock, allocates
            // nothing and does not unwind.
            let errno = unsafe { libc::pthread_atfork(None, None, Some(begin_child)) };
            if errno != 0 {
                return Err(io::Error::from_raw_os_error(errno));
            }
            HANDLED.store(true, Ordering::Release);
        }
        Ok(Process(FORKS.load(Ordering::Relaxed)))
    }

    /// True in the process that this value was obtained in, false in its children.
    pub fn is_current(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

/// Handler that runs in the child before `fork` returns there.
extern "C" fn begin_child() {
    // If another thread of the parent held the lock, the child keeps its copies of the descriptors
    // until it ends.
    if let Some(Ok(descriptors)) = DESCRIPTORS.take().map(Mutex::try_lock) {
        for descriptor in &*descriptors {
            let _ = nix::unistd::close(*descriptor);
        }
    }
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A value of which every process has its own. A child after `fork` starts with the default,
/// whatever the state of its parent's value.
pub struct PerProcess<T>(AtomicPtr<Place<T>>);

struct Place<T> {
    process: Process,
    value: T,
}

impl<T: Default + Send + Sync> PerProcess<T> {
    /// Creates a cell without a value. The first call of [`PerProcess::get`] creates the value.
    #[expect(clippy::new_without_default, reason = "it stands in statics, which need a constant")]
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(null_mut()))
    }

    /// Removes the value from the cell and returns it. `None` if there is no value.
    fn take(&'static self) -> Option<&'static T> {
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `get`, and what was put here
        // is never freed.
        unsafe { self.0.swap(null_mut(), Ordering::AcqRel).as_ref() }.map(|place| &place.value)
    }

    /// Returns the value of this process. The parent's value is not freed, because a thread that
    /// does not exist here may have been using it.
    ///
    /// # Errors
    ///
    /// The errors of [`Process::current`].
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
                // SAFETY: another thread of this process put it here, and as in `take` it is never
                // freed.
                Ok(unsafe { &(*other).value })
            }
        }
    }
}

/// Descriptors of this process whose copies children close.
static DESCRIPTORS: PerProcess<Mutex<BTreeSet<RawFd>>> = PerProcess::new();

/// Makes every child after `fork` close its copy of a descriptor. It has to be dropped before the
/// descriptor is closed, because the number may then be reused for another file. Without it, a UDP
/// port stays in use as long as any child lives, although the parent has closed it.
#[derive(Debug)]
pub struct ClosedInChildren {
    process: Process,
    descriptor: RawFd,
}

impl ClosedInChildren {
    /// Registers a descriptor.
    ///
    /// # Errors
    ///
    /// The errors of [`Process::current`].
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
