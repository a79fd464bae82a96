//! A network namespace without a name. It exists only as long as a process holds it, so nothing is
//! left behind, even after kill -9.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

/// A separate network, which contains only its loopback device (up).
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates an empty namespace. This needs the right to create it (root, or a user namespace).
    ///
    /// # Errors
    /// The process may not create namespaces (`CAP_SYS_ADMIN`).
    pub fn new() -> io::Result<Namespace> {
        let create = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            crate::netlink::switch_on("lo", None)?;
            File::open("/proc/thread-self/ns/net").map(Namespace)
        };
        // A namespace is a property of a thread. The new thread enters it, and the calling thread
        // stays where it is.
        thread::scope(|scope| scope.spawn(create).join().expect("no panic"))
    }

    /// Runs `work` on a separate thread in this namespace and waits for it. Sockets that it opens,
    /// and processes and threads that it starts, belong to the namespace permanently.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).expect("a namespace we hold can be entered");
            work()
        };
        thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Starts `work` on a separate thread in this namespace.
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
        let file = self.0.try_clone().expect("a descriptor can be duplicated");
        thread::spawn(move || {
            setns(&file, CloneFlags::CLONE_NEWNET).expect("a namespace we hold can be entered");
            work()
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
