//! Handle of the runtime: the thread that runs connections, as applications hold it.

use super::mailbox::{Command, Mailbox};
use super::shared::{Runner, Shared};
use super::socket::Socket;
use super::worker::Worker;
use crate::poll::Poller;
use crate::process::PerProcess;
use meshpace_session::failure::{Failure, Reason};
use nix::libc;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runtime of this process.
static GLOBAL: PerProcess<Mutex<Option<Handle>>> = PerProcess::new();

/// Time limit for the thread's report of its connections; the thread may have ended.
const SURVEY: Duration = Duration::from_secs(2);

/// A runtime: one thread for any number of ports and connections. It ends when its last handle,
/// port and stream have been dropped.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Owner>);

#[derive(Debug)]
struct Owner(Arc<Mailbox>);

impl Handle {
    /// Starts a runtime.
    ///
    /// # Errors
    ///
    /// The system provides no thread or no descriptors.
    pub fn start() -> io::Result<Handle> {
        let poller = Poller::new()?;
        let mailbox = Arc::new(Mailbox::new(&poller)?);
        let mut worker = Worker::new(Arc::clone(&mailbox), poller);
        let run = move || {
            let failure = match catch_unwind(AssertUnwindSafe(|| worker.run())) {
                Ok(Ok(())) => Failure::new(Reason::System(libc::ESHUTDOWN), "the runtime has been stopped"),
                Ok(Err(error)) => Failure::of(&error, format!("waiting for datagrams: {error}")),
                Err(_) => Failure::new(Reason::Internal, "the thread that runs the connections has panicked"),
            };
            worker.fail_all(&failure);
        };
        std::thread::Builder::new().name("tpa".into()).spawn(run)?;
        Ok(Handle(Arc::new(Owner(mailbox))))
    }

    /// The runtime of this process. It is started at the first call, and again in a child after
    /// `fork` or once it has failed.
    ///
    /// # Errors
    ///
    /// The errors of [`Handle::start`].
    pub fn global() -> io::Result<Handle> {
        let mut global = GLOBAL.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        match &*global {
            Some(handle) if handle.0.0.is_alive() => Ok(handle.clone()),
            _ => Ok(global.insert(Handle::start()?).clone()),
        }
    }

    /// The runtime of this process; `None` if it has not been started or has ended.
    pub(crate) fn running() -> Option<Handle> {
        let global = GLOBAL.get().ok()?.lock().unwrap_or_else(PoisonError::into_inner);
        global.clone().filter(|handle| handle.0.0.is_alive())
    }

    /// Returns the connections that have not ended.
    pub(crate) fn unfinished(&self) -> Vec<Arc<Shared>> {
        let (to, told) = sync_channel(1);
        let asked = self.send(Command::Survey { to });
        asked.ok().and_then(|()| told.recv_timeout(SURVEY).ok()).unwrap_or_default()
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.0.0.next_id()
    }

    /// # Errors
    ///
    /// The thread has ended, or it belongs to the parent process.
    pub(crate) fn send(&self, command: Command) -> io::Result<()> {
        self.0.0.send(command)
    }

    /// Registers a socket, whose events are reported to the thread.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub(crate) fn watch(&self, socket: &Socket, id: u64) -> io::Result<()> {
        self.0.0.watch(socket, id)
    }

    /// # Errors
    ///
    /// This process is a child of the process that has the thread.
    pub(crate) fn check_process(&self) -> io::Result<()> {
        self.0.0.check_process()
    }

    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.0.0)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.send(Command::Stop);
    }
}
