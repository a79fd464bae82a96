//! The thread that runs connections, as its applications hold it.

use super::mailbox::{Command, Mailbox};
use super::shared::{Runner, Shared};
use super::socket::Socket;
use super::worker::Worker;
use crate::poll::Poller;
use crate::process::PerProcess;
use crate::tpa::session::failure::Failure;
use nix::libc;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The runtime of this process.
static GLOBAL: PerProcess<Mutex<Option<Handle>>> = PerProcess::new();

/// Time that the thread has to tell its connections: it may be gone.
const SURVEY: Duration = Duration::from_secs(2);

/// A runtime: one thread for any number of ports and connections. It ends with its last handle, port and stream.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Owner>);

#[derive(Debug)]
struct Owner(Arc<Mailbox>);

impl Handle {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// The system gives no thread or no descriptors.
    pub fn start() -> io::Result<Handle> {
        let poller = Poller::new()?;
        let mailbox = Arc::new(Mailbox::new(&poller)?);
        let mut worker = Worker::new(Arc::clone(&mailbox), poller);
        let run = move || {
            let failure = match catch_unwind(AssertUnwindSafe(|| worker.run())) {
                Ok(Ok(())) => Failure::new(libc::ESHUTDOWN, "the runtime has been stopped"),
                Ok(Err(error)) => Failure::of(&error, format!("waiting for datagrams: {error}")),
                Err(_) => Failure::new(libc::EIO, "the thread that runs the connections has panicked"),
            };
            worker.fail_all(&failure);
        };
        std::thread::Builder::new().name("tpa".into()).spawn(run)?;
        Ok(Handle(Arc::new(Owner(mailbox))))
    }

    /// The one of this process, started when first asked for, and anew in a child after `fork` or once it has failed.
    ///
    /// # Errors
    ///
    /// Those of [`Handle::start`].
    pub fn global() -> io::Result<Handle> {
        let mut global = GLOBAL.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        match &*global {
            Some(handle) if handle.0.0.is_alive() => Ok(handle.clone()),
            _ => Ok(global.insert(Handle::start()?).clone()),
        }
    }

    /// The one of this process, if it has been asked for and runs.
    pub(crate) fn running() -> Option<Handle> {
        let global = GLOBAL.get().ok()?.lock().unwrap_or_else(PoisonError::into_inner);
        global.clone().filter(|handle| handle.0.0.is_alive())
    }

    /// Its connections that have not ended.
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
    /// The thread has ended.
    pub(crate) fn send(&self, command: Command) -> io::Result<()> {
        self.0.0.send(command)
    }

    /// Has the thread told what happens to a socket.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(crate) fn watch(&self, socket: &Socket, id: u64) -> io::Result<()> {
        self.0.0.watch(socket, id)
    }

    /// # Errors
    ///
    /// This is a child of the process that has the thread.
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
