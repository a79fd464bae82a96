//! Commands from applications to the runtime's thread.

use super::backlog::Backlog;
use super::service::Service;
use super::shared::{Runner, Shared};
use super::socket::Socket;
use crate::poll::{Poller, Registrar, Waker};
use crate::process::Process;
use meshpace_session::endpoint::Endpoint;
use meshpace_session::failure::{Failure, Reason};
use meshpace_session::settings::Settings;
use meshpace_transport::tpa;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Command from an application to the runtime.
#[derive(Debug)]
pub enum Command {
    /// Adds a port that has been bound.
    Bind { id: u64, socket: Socket, endpoint: Box<Endpoint>, service: Service },
    /// The application has dropped all handles of the port. Its connections may still use the port.
    Release { port: u64 },
    /// Accepts connections on a port, which then wait in `backlog`.
    Listen { port: u64, backlog: Arc<Backlog> },
    /// Stops accepting connections on a port.
    Unlisten { port: u64 },
    /// Opens a connection.
    Connect { port: u64, shared: Arc<Shared>, settings: Arc<Settings>, config: Box<tpa::Config> },
    /// Runs a connection, because its application has changed something.
    Touch(u64),
    /// Like `Touch`, and reports once what the connection then sends has left this host.
    Dispatch { id: u64, left: SyncSender<()> },
    /// Reports the connections that have not ended.
    Survey { to: SyncSender<Vec<Arc<Shared>>> },
    /// Stops the thread, because all handles of the runtime have been dropped.
    Stop,
}

/// Queue of the commands from applications to the runtime's thread. Connections hold this and not a
/// [`Handle`](super::handle::Handle), which would keep the thread alive for ever.
#[derive(Debug)]
pub struct Mailbox {
    commands: Mutex<Commands>,
    waker: Waker,
    registrar: Registrar,
    ids: AtomicU64,
    /// The process whose thread executes the commands. A child after `fork` has no such thread.
    process: Process,
}

#[derive(Debug, Default)]
struct Commands {
    waiting: Vec<Command>,
    /// Reason why the thread accepts no more commands. `None` while it runs.
    ended: Option<Failure>,
}

impl Mailbox {
    /// Creates the mailbox of a thread that waits with `poller`.
    ///
    /// # Errors
    ///
    /// The errors of [`Process::current`].
    pub fn new(poller: &Poller) -> io::Result<Mailbox> {
        let (waker, registrar, process) = (poller.waker(), poller.registrar(), Process::current()?);
        Ok(Mailbox { commands: Mutex::default(), waker, registrar, ids: AtomicU64::new(1), process })
    }

    /// Registers the descriptor of port `id`, whose events are reported to the thread.
    ///
    /// # Errors
    ///
    /// The error of the system call. Also an error if this process is a child of the one that has
    /// the thread, because parent and child share the set of descriptors.
    pub fn watch(&self, source: impl AsFd, id: u64) -> io::Result<()> {
        self.check_process()?;
        self.registrar.add(source, id)
    }

    /// Returns a number that no port and no connection has had.
    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Commands> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the commands that have arrived since the last call.
    pub fn take(&self) -> Vec<Command> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Backlog of port `id` if the last waiting command about it is to listen. It is needed because
    /// the application already knows that the port listens, and a request may arrive before the
    /// thread executes the command.
    pub fn listens(&self, id: u64) -> Option<Arc<Backlog>> {
        let of_port = |command: &&Command| matches!(command, Command::Listen { port, .. } | Command::Unlisten { port } if *port == id);
        match self.lock().waiting.iter().rfind(of_port) {
            Some(Command::Listen { backlog, .. }) => Some(Arc::clone(backlog)),
            _ => None,
        }
    }

    /// Refuses all further commands with `failure`. Returns the commands that have arrived since
    /// the last call of [`Mailbox::take`].
    pub fn end(&self, failure: &Failure) -> Vec<Command> {
        let mut commands = self.lock();
        commands.ended = Some(failure.clone());
        std::mem::take(&mut commands.waiting)
    }

    /// True if a thread of this process accepts commands.
    pub fn is_alive(&self) -> bool {
        self.check_process().is_ok() && self.lock().ended.is_none()
    }

    /// Sends a command to the thread.
    ///
    /// # Errors
    ///
    /// The thread has ended, or it belongs to the parent process.
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
        Err(Failure::new(Reason::Closed, message).error())
    }
}
