//! Commands of applications to the runtime's thread.

use super::backlog::Backlog;
use super::service::Service;
use super::shared::{Runner, Shared};
use super::socket::Socket;
use crate::poll::{Poller, Registrar, Waker};
use crate::process::Process;
use crate::tpa::session::endpoint::Endpoint;
use crate::tpa::session::failure::Failure;
use crate::tpa::session::settings::Settings;
use meshpace_transport::tpa;
use nix::libc;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A command of an application to the runtime.
#[derive(Debug)]
pub enum Command {
    /// A port was bound.
    Bind { id: u64, socket: Socket, endpoint: Box<Endpoint>, service: Service },
    /// Nobody holds the port any more; its connections may.
    Release { port: u64 },
    /// Accept connections.
    Listen { port: u64, backlog: Arc<Backlog> },
    /// No longer.
    Unlisten { port: u64 },
    /// Open a connection.
    Connect { port: u64, shared: Arc<Shared>, settings: Arc<Settings>, config: Box<tpa::Config> },
    /// Look at a connection.
    Touch(u64),
    /// The same, and say so once what it then sends has left this host.
    Dispatch { id: u64, left: SyncSender<()> },
    /// Tell the connections that have not ended.
    Survey { to: SyncSender<Vec<Arc<Shared>>> },
    /// Nobody needs the runtime any more.
    Stop,
}

/// Queue by which applications reach the thread. Connections hold this and no handle: that would keep the thread alive for ever.
#[derive(Debug)]
pub struct Mailbox {
    commands: Mutex<Commands>,
    waker: Waker,
    registrar: Registrar,
    ids: AtomicU64,
    /// The process whose thread takes the commands: after `fork` the child has none.
    process: Process,
}

#[derive(Debug, Default)]
struct Commands {
    waiting: Vec<Command>,
    /// Why the thread takes no more.
    ended: Option<Failure>,
}

impl Mailbox {
    /// Of a thread that waits with `poller`.
    ///
    /// # Errors
    ///
    /// Those of [`Process::current`].
    pub fn new(poller: &Poller) -> io::Result<Mailbox> {
        let (waker, registrar, process) = (poller.waker(), poller.registrar(), Process::current()?);
        Ok(Mailbox { commands: Mutex::default(), waker, registrar, ids: AtomicU64::new(1), process })
    }

    /// Has the thread told what happens to the descriptor of port `id`.
    ///
    /// # Errors
    ///
    /// The system's; this is a child of the process that has the thread, whose set of descriptors it shares.
    pub fn watch(&self, source: impl AsFd, id: u64) -> io::Result<()> {
        self.check_process()?;
        self.registrar.add(source, id)
    }

    /// A number that no port and no connection has had.
    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Commands> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the commands that have come since the last call.
    pub fn take(&self) -> Vec<Command> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Where connections to a port are to wait, if that has been asked since the last call: whoever asked has been told that it
    /// listens, and a request may come before the thread gets to it.
    pub fn listens(&self, id: u64) -> Option<Arc<Backlog>> {
        let of_port = |command: &&Command| matches!(command, Command::Listen { port, .. } | Command::Unlisten { port } if *port == id);
        match self.lock().waiting.iter().rfind(of_port) {
            Some(Command::Listen { backlog, .. }) => Some(Arc::clone(backlog)),
            _ => None,
        }
    }

    /// Nothing is taken any more; what has been asked since the last call.
    pub fn end(&self, failure: &Failure) -> Vec<Command> {
        let mut commands = self.lock();
        commands.ended = Some(failure.clone());
        std::mem::take(&mut commands.waiting)
    }

    /// True if a thread of this process takes commands.
    pub fn is_alive(&self) -> bool {
        self.check_process().is_ok() && self.lock().ended.is_none()
    }

    /// Asks for something.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub fn send(&self, command: Command) -> io::Result<()> {
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

impl Runner for Mailbox {
    fn touch(&self, id: u64) -> io::Result<()> {
        self.send(Command::Touch(id))
    }

    fn dispatch(&self, id: u64) -> io::Result<Receiver<()>> {
        let (left, told) = sync_channel(1);
        self.send(Command::Dispatch { id, left })?;
        Ok(told)
    }

    fn check_process(&self) -> io::Result<()> {
        if self.process.is_current() {
            return Ok(());
        }
        let message = "a TPA socket works only in the process that made it: after fork the child has to open its own";
        Err(Failure::new(libc::EBADF, message).error())
    }
}
