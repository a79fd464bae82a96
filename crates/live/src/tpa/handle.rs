//! How applications reach the runtime's thread.

use super::cookie::Baker;
use super::listener::{Backlog, Counters};
use super::options::Options;
use super::runtime::{Worker, random};
use super::shared::{Failure, Shared};
use super::socket::Socket;
use crate::Clock;
use crate::poll::{Poller, Registrar, Waker};
use meshpace_transport::tpa;
use nix::libc;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What applications ask of the runtime.
#[derive(Debug)]
pub(super) enum Command {
    /// A port was bound.
    Bind { id: u64, socket: Socket, options: Arc<Options>, counters: Arc<Counters> },
    /// Nobody holds the port any more; its connections may.
    Release { port: u64 },
    /// Accept connections.
    Listen { port: u64, backlog: Arc<Backlog> },
    /// No longer.
    Unlisten { port: u64 },
    /// Open a connection.
    Connect { port: u64, shared: Arc<Shared>, config: Box<tpa::Config> },
    /// Look at a connection.
    Touch(u64),
    /// Nobody needs the runtime any more.
    Stop,
}

/// How applications reach the thread. Connections hold this and no handle: that would keep the thread alive for ever.
#[derive(Debug)]
pub(super) struct Mailbox {
    commands: Mutex<Commands>,
    waker: Waker,
    registrar: Registrar,
    ids: AtomicU64,
    /// The process whose thread takes the commands: after `fork` the child has none.
    process: u32,
}

#[derive(Debug, Default)]
struct Commands {
    waiting: Vec<Command>,
    /// Why the thread takes no more.
    ended: Option<Failure>,
}

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
    /// The system gives no thread, no descriptors or no random numbers.
    pub fn start() -> io::Result<Handle> {
        let poller = Poller::new()?;
        let mailbox = Arc::new(Mailbox {
            commands: Mutex::default(),
            waker: poller.waker(),
            registrar: poller.registrar(),
            ids: AtomicU64::new(1),
            process: std::process::id(),
        });
        let mut secrets = [[0; 16]; 2];
        random(secrets.as_flattened_mut())?;
        let mut worker = Worker::new(Arc::clone(&mailbox), poller, Baker::new(Clock.now(), secrets));
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
        static GLOBAL: Mutex<Option<Handle>> = Mutex::new(None);
        let mut global = GLOBAL.lock().unwrap_or_else(PoisonError::into_inner);
        match &*global {
            Some(handle) if handle.0.0.is_alive() => Ok(handle.clone()),
            _ => Ok(global.insert(Handle::start()?).clone()),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.0.0.next_id()
    }

    /// # Errors
    ///
    /// The thread has ended.
    pub(super) fn send(&self, command: Command) -> io::Result<()> {
        self.0.0.send(command)
    }

    /// Has the thread told what happens to a socket.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn watch(&self, socket: &Socket, id: u64) -> io::Result<()> {
        self.0.0.registrar.add(socket, id)
    }

    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.0.0)
    }
}

impl Mailbox {
    /// A number that no port and no connection has had.
    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Commands> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been asked since the last call.
    pub(super) fn take(&self) -> Vec<Command> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Where connections to a port are to wait, if that has been asked since the last call: whoever asked has been told that it
    /// listens, and a request may come before the thread gets to it.
    pub(super) fn listens(&self, id: u64) -> Option<Arc<Backlog>> {
        let of_port = |command: &&Command| matches!(command, Command::Listen { port, .. } | Command::Unlisten { port } if *port == id);
        match self.lock().waiting.iter().rfind(of_port) {
            Some(Command::Listen { backlog, .. }) => Some(Arc::clone(backlog)),
            _ => None,
        }
    }

    /// Nothing is taken any more; what has been asked since the last call.
    pub(super) fn end(&self, failure: &Failure) -> Vec<Command> {
        let mut commands = self.lock();
        commands.ended = Some(failure.clone());
        std::mem::take(&mut commands.waiting)
    }

    /// # Errors
    ///
    /// The thread has ended.
    pub(super) fn touch(&self, id: u64) -> io::Result<()> {
        self.send(Command::Touch(id))
    }

    /// Whether somebody takes commands in this process.
    fn is_alive(&self) -> bool {
        self.check_process().is_ok() && self.lock().ended.is_none()
    }

    /// # Errors
    ///
    /// This is the child of the process that runs the connections.
    pub(super) fn check_process(&self) -> io::Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Failure::new(libc::EBADF, "a TPA socket works only in the process that made it, not in its children")
            .error())
    }

    fn send(&self, command: Command) -> io::Result<()> {
        self.check_process()?;
        let mut commands = self.lock();
        if let Some(failure) = &commands.ended {
            return Err(failure.error());
        }
        commands.waiting.push(command);
        let first = commands.waiting.len() == 1;
        drop(commands);
        if first {
            self.waker.wake();
        }
        Ok(())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.send(Command::Stop);
    }
}
