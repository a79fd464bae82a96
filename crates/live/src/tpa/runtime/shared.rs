//! State of one connection that the threads of the application share with the runtime's thread.

use super::wait::{Condition, Patience};
use meshpace_session::exchange::{Delivery, Exchange};
use meshpace_session::failure::Failure;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Interface of a connection to the thread that runs it.
pub trait Runner: std::fmt::Debug + Send + Sync {
    /// Asks the thread to run connection `id`.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    fn touch(&self, id: u64) -> io::Result<()>;

    /// Like [`Runner::touch`]. The returned receiver is notified once what the connection then
    /// sends has left this host.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    fn dispatch(&self, id: u64) -> io::Result<Receiver<()>>;

    /// Checks that the thread belongs to this process.
    ///
    /// # Errors
    ///
    /// This process is a child of the process that runs the connections.
    fn check_process(&self) -> io::Result<()>;
}

/// Exchange between a connection and its application, and the threads and tasks that wait for it.
#[derive(Debug)]
pub struct State {
    /// Buffers, requests of the application, and results of the connection.
    pub exchange: Exchange,
    /// Time for which closing waits until all written data have arrived.
    pub linger: meshpace_core::Duration,
    /// True if the runtime has been called and has not run the connection yet.
    pub called: bool,
    /// Number of threads that wait to read. It is counted because a wake-up costs a system call
    /// even if no thread waits.
    readers: u32,
    /// Number of threads that wait to write, or for the end of the connection.
    writers: u32,
    /// Waker of a task that waits to read.
    read_waker: Option<Waker>,
    /// Waker of a task that waits to write, or for the end of the connection.
    write_waker: Option<Waker>,
}

/// Waker that asks the thread to run connection `id`.
struct Call {
    runner: Arc<dyn Runner>,
    id: u64,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        // If the thread has ended, the connection no longer uses memory.
        let _ = self.runner.touch(self.id);
    }
}

/// Default time for which closing waits.
pub const LINGER: meshpace_core::Duration = meshpace_core::Duration::from_secs(30);

/// Shared state of one connection.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// Notified if there are data to read, or if none will arrive any more.
    readable: Condition,
    /// Notified if there is room to write, if the connection has ended, or once the connection is
    /// open.
    writable: Condition,
    /// Number of the connection.
    pub id: u64,
    /// The local address.
    pub local: SocketAddr,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The peer's public key; `None` if the connection does not use known keys.
    pub peer_key: Option<[u8; 32]>,
    runner: Arc<dyn Runner>,
}

impl Shared {
    /// Creates the state of connection `id` between two addresses, with the peer's public key if
    /// keys are known.
    pub fn new(
        id: u64,
        (local, peer): (SocketAddr, SocketAddr),
        peer_key: Option<[u8; 32]>,
        exchange: Exchange,
        runner: Arc<dyn Runner>,
    ) -> Shared {
        exchange.account.wake_when_ended(Arc::new(Call { runner: Arc::clone(&runner), id }).into());
        let state = State {
            exchange,
            linger: LINGER,
            called: false,
            readers: 0,
            writers: 0,
            read_waker: None,
            write_waker: None,
        };
        let (readable, writable) = (Condition::default(), Condition::default());
        Shared { state: Mutex::new(state), readable, writable, id, local, peer, peer_key, runner }
    }

    /// Locks the shared state, for the thread that runs the connection. Applications use
    /// [`Shared::enter`], because the lock may stay locked for ever in a child after `fork`.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // Other code in the runtime may have panicked. All users are then informed by a failure of
        // the connection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the connection is run by this process.
    ///
    /// # Errors
    ///
    /// This process is a child of the process that runs the connection.
    pub fn check_process(&self) -> io::Result<()> {
        self.runner.check_process()
    }

    /// Locks the shared state, for an application.
    ///
    /// # Errors
    ///
    /// The errors of [`Shared::check_process`].
    pub fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        self.check_process()?;
        Ok(self.lock())
    }

    /// Ready if reading would not wait. Otherwise the context's waker is called as soon as reading
    /// would no longer wait.
    pub fn poll_readable(&self, context: &Context<'_>) -> Poll<()> {
        let Ok(mut state) = self.enter() else { return Poll::Ready(()) };
        if state.exchange.is_readable() {
            return Poll::Ready(());
        }
        state.note_reader(context);
        Poll::Pending
    }

    /// Ready if writing would not wait. Otherwise the context's waker is called as soon as writing
    /// would no longer wait.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<()> {
        let Ok(mut state) = self.enter() else { return Poll::Ready(()) };
        if state.exchange.is_writable() {
            return Poll::Ready(());
        }
        state.note_writer(context);
        Poll::Pending
    }

    /// Waits until there may be data to read.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] at the deadline, [`io::ErrorKind::Interrupted`] if a signal
    /// has ended the wait.
    pub fn wait_readable<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: Patience,
    ) -> io::Result<MutexGuard<'a, State>> {
        state.readers += 1;
        let (mut state, in_time) = self.readable.wait(&self.state, state, patience);
        state.readers -= 1;
        in_time.map(|()| state)
    }

    /// Waits until there may be room to write, or the connection has ended.
    ///
    /// # Errors
    ///
    /// The errors of [`Shared::wait_readable`].
    pub fn wait_writable<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: Patience,
    ) -> io::Result<MutexGuard<'a, State>> {
        state.writers += 1;
        let (mut state, in_time) = self.writable.wait(&self.state, state, patience);
        state.writers -= 1;
        in_time.map(|()| state)
    }

    /// Wakes all waiting threads and tasks, because something has changed for all of them.
    pub fn wake_all(&self, state: MutexGuard<'_, State>) {
        self.unlock_and_wake(state, true, true);
    }

    /// Unlocks the state and wakes the threads and tasks for which the runtime has news.
    pub fn unlock_and_tell(&self, state: MutexGuard<'_, State>) {
        let exchange = &state.exchange;
        if exchange.is_opening() {
            return;
        }
        let news = exchange.is_over() || exchange.delivery == Delivery::Finished;
        let to_read = news || exchange.end_of_stream || exchange.receive.available() > 0;
        // A writer is not woken for every block. It keeps up even if it is woken only when a
        // quarter of the buffer is free.
        let to_write = news || exchange.doubted.is_some() || exchange.send.room() >= exchange.send.capacity() / 4;
        self.unlock_and_wake(state, to_read, to_write);
    }

    /// Unlocks the state and wakes the threads and tasks that wait to read or to write, if that is
    /// possible now. They are woken after unlocking, because a thread that is woken earlier would
    /// only wait for the lock.
    fn unlock_and_wake(&self, mut state: MutexGuard<'_, State>, to_read: bool, to_write: bool) {
        let reader = if to_read && state.exchange.is_readable() { state.read_waker.take() } else { None };
        let writer = if to_write && state.exchange.is_writable() { state.write_waker.take() } else { None };
        let (readers, writers) = (to_read && state.readers > 0, to_write && state.writers > 0);
        drop(state);
        reader.into_iter().chain(writer).for_each(Waker::wake);
        if readers {
            self.readable.notify_all();
        }
        if writers {
            self.writable.notify_all();
        }
    }

    /// Ends the connection with `failure` for its application, which is woken.
    pub fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.exchange.fail(failure);
        self.wake_all(state);
    }

    /// Asks the runtime to run this connection.
    pub fn call(&self, state: &mut State) {
        if !state.called {
            state.called = true;
            // A runtime that has ended has already reported that to all connections.
            let _ = self.runner.touch(self.id);
        }
    }

    /// Aborts the connection at once, on behalf of its application.
    pub fn abort(&self) {
        let mut state = self.lock();
        state.exchange.wishes.abort = true;
        self.call(&mut state);
    }

    /// Like [`Shared::abort`], but waits for at most `patience` until the message to the peer has
    /// left this host. Returns whether it has.
    ///
    /// # Errors
    ///
    /// The errors of [`Shared::check_process`].
    pub fn abort_and_wait(&self, patience: Duration) -> io::Result<bool> {
        self.enter()?.exchange.wishes.abort = true;
        Ok(self.runner.dispatch(self.id).is_ok_and(|told| told.recv_timeout(patience).is_ok()))
    }
}

impl State {
    /// Stores the waker to be called when there are data to read.
    pub fn note_reader(&mut self, context: &Context<'_>) {
        self.read_waker = Some(context.waker().clone());
    }

    /// Stores the waker to be called when there is room to write, or the connection has ended.
    pub fn note_writer(&mut self, context: &Context<'_>) {
        self.write_waker = Some(context.waker().clone());
    }
}
