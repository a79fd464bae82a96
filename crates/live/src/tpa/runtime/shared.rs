//! State of one connection that the application's threads and the runtime's thread share.

use super::wait::{Condition, Patience};
use crate::tpa::session::exchange::{Delivery, Exchange};
use crate::tpa::session::failure::Failure;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Link from a connection's application to the thread that runs the connection.
pub trait Runner: std::fmt::Debug + Send + Sync {
    /// Has the thread look at connection `id`.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    fn touch(&self, id: u64) -> io::Result<()>;

    /// The same; where it is told once what the connection then sends has left this host.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    fn dispatch(&self, id: u64) -> io::Result<Receiver<()>>;

    /// Checks that the thread is one of this process.
    ///
    /// # Errors
    ///
    /// This is the child of the process that runs the connections.
    fn check_process(&self) -> io::Result<()>;
}

/// The exchange of a connection with its application, and who waits for what of it.
#[derive(Debug)]
pub struct State {
    /// Bytes, wishes and news.
    pub exchange: Exchange,
    /// Time for which closing waits for what was written to arrive.
    pub linger: meshpace_core::Duration,
    /// The runtime has been called and has not looked yet.
    pub called: bool,
    /// Threads waiting to read, and to write or for the end: waking nobody still costs a system call.
    readers: u32,
    writers: u32,
    /// Wakers that are told instead of a waiting thread.
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
}

/// Has the thread look at connection `id`.
struct Call {
    runner: Arc<dyn Runner>,
    id: u64,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        // A thread that has ended needs no memory.
        let _ = self.runner.touch(self.id);
    }
}

/// Time for which closing waits where nothing else is set.
pub const LINGER: meshpace_core::Duration = meshpace_core::Duration::from_secs(30);

/// One connection, shared.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// There is something to read, or never will be.
    readable: Condition,
    /// There is room to write, or an end, or the connection is open.
    writable: Condition,
    /// The number of the connection.
    pub id: u64,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The peer's public key, where keys of peers are known.
    pub peer_key: Option<[u8; 32]>,
    runner: Arc<dyn Runner>,
}

impl Shared {
    /// Of connection `id` between two addresses, with the peer's public key where keys are known.
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

    /// Locks the shared state, for the thread that runs the connection. In a child after `fork` the lock may never be free: applications
    /// [enter](Shared::enter).
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of somebody else's code in the runtime is told to everybody as a failure.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the connection is run in this process.
    ///
    /// # Errors
    ///
    /// This is the child of the process that runs it.
    pub fn check_process(&self) -> io::Result<()> {
        self.runner.check_process()
    }

    /// Locks the shared state, for an application.
    ///
    /// # Errors
    ///
    /// As [`Shared::check_process`].
    pub fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        self.check_process()?;
        Ok(self.lock())
    }

    /// Ready if reading would not wait; otherwise the context's waker is called when that is so.
    pub fn poll_readable(&self, context: &Context<'_>) -> Poll<()> {
        let Ok(mut state) = self.enter() else { return Poll::Ready(()) };
        if state.exchange.is_readable() {
            return Poll::Ready(());
        }
        state.note_reader(context);
        Poll::Pending
    }

    /// Ready if writing would not wait; otherwise the context's waker is called when that is so.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<()> {
        let Ok(mut state) = self.enter() else { return Poll::Ready(()) };
        if state.exchange.is_writable() {
            return Poll::Ready(());
        }
        state.note_writer(context);
        Poll::Pending
    }

    /// Waits for something to read.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] at the deadline, [`io::ErrorKind::Interrupted`] if a signal has ended it.
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

    /// Waits for room to write, or for an end.
    ///
    /// # Errors
    ///
    /// As [`Shared::wait_readable`].
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

    /// Wakes everybody who waits: something has changed for all.
    pub fn wake_all(&self, state: MutexGuard<'_, State>) {
        self.unlock_and_wake(state, true, true);
    }

    /// Wakes whom the runtime has news for.
    pub fn unlock_and_tell(&self, state: MutexGuard<'_, State>) {
        let exchange = &state.exchange;
        if exchange.is_opening() {
            return;
        }
        let news = exchange.is_over() || exchange.delivery == Delivery::Finished;
        let to_read = news || exchange.end_of_stream || exchange.receive.available() > 0;
        // Not for every block: a writer that fills a quarter of the ring at a time keeps up.
        let to_write = news || exchange.doubted.is_some() || exchange.send.room() >= exchange.send.capacity() / 4;
        self.unlock_and_wake(state, to_read, to_write);
    }

    /// Wakes whoever waits to read, to write, once they can have what they are woken for: a thread that is woken before would only
    /// wait for the lock.
    fn unlock_and_wake(&self, mut state: MutexGuard<'_, State>, to_read: bool, to_write: bool) {
        let reader = if to_read && state.exchange.is_readable() { state.read_waker.take() } else { None };
        let writer = if to_write { state.write_waker.take() } else { None };
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

    /// Fails for its application, which is told.
    pub fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.exchange.fail(failure);
        self.wake_all(state);
    }

    /// Has the runtime look at this connection.
    pub fn call(&self, state: &mut State) {
        if !state.called {
            state.called = true;
            // A runtime that has ended has told so already.
            let _ = self.runner.touch(self.id);
        }
    }

    /// Ends the connection at once, for its application.
    pub fn abort(&self) {
        let mut state = self.lock();
        state.exchange.wishes.abort = true;
        self.call(&mut state);
    }

    /// The same, and waits for at most `patience` until the peer's word of it has left this host; whether it has.
    ///
    /// # Errors
    ///
    /// As [`Shared::check_process`].
    pub fn abort_and_wait(&self, patience: Duration) -> io::Result<bool> {
        self.enter()?.exchange.wishes.abort = true;
        Ok(self.runner.dispatch(self.id).is_ok_and(|told| told.recv_timeout(patience).is_ok()))
    }
}

impl State {
    /// Whom to tell when there is something to read.
    pub fn note_reader(&mut self, context: &Context<'_>) {
        self.read_waker = Some(context.waker().clone());
    }

    /// Whom to tell when there is room to write, or an end.
    pub fn note_writer(&mut self, context: &Context<'_>) {
        self.write_waker = Some(context.waker().clone());
    }
}
