//! How applications reach the runtime's thread.

use super::handshake::Baker;
use super::listener::{Backlog, Counters};
use super::options::Options;
use super::runtime::{Worker, random};
use super::shared::Shared;
use super::socket::Socket;
use crate::poll::{Poller, Waker};
use meshpace_transport::tpa;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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
    commands: Mutex<Vec<Command>>,
    waker: Waker,
    ids: AtomicU64,
}

/// A runtime: one thread for any number of ports and connections. It ends with its last handle, port and stream.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Owner>);

#[derive(Debug)]
struct Owner(Arc<Mailbox>);

impl Handle {
    /// Starts one.
    pub fn start() -> io::Result<Handle> {
        let poller = Poller::new()?;
        let mailbox = Arc::new(Mailbox { commands: Mutex::default(), waker: poller.waker(), ids: AtomicU64::new(1) });
        let mut key = [0; 16];
        random(&mut key)?;
        let mut worker = Worker::new(Arc::clone(&mailbox), poller, Baker::new(key));
        std::thread::Builder::new().name("tpa".into()).spawn(move || worker.run())?;
        Ok(Handle(Arc::new(Owner(mailbox))))
    }

    /// The one of this process, started when first asked for.
    pub fn global() -> io::Result<Handle> {
        static GLOBAL: Mutex<Option<Handle>> = Mutex::new(None);
        let mut global = GLOBAL.lock().expect("nobody panics while holding it");
        match &*global {
            Some(handle) => Ok(handle.clone()),
            None => Ok(global.insert(Handle::start()?).clone()),
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.0.0.next_id()
    }

    pub(super) fn send(&self, command: Command) {
        self.0.0.send(command);
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

    /// What has been asked since the last call.
    pub(super) fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *self.commands.lock().expect("nobody panics while holding it"))
    }

    pub(super) fn touch(&self, id: u64) {
        self.send(Command::Touch(id));
    }

    fn send(&self, command: Command) {
        let mut commands = self.commands.lock().expect("nobody panics while holding it");
        commands.push(command);
        let first = commands.len() == 1;
        drop(commands);
        if first {
            self.waker.wake();
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.send(Command::Stop);
    }
}
