//! What the application's threads and the runtime's thread share of one connection: bytes, wishes and news.

use super::engine::Engine;
use super::handle::Mailbox;
use super::options::Options;
use crate::Clock;
use crate::ring::{ReceiveRing, SendRing};
use meshpace_core::{Duration, Time};
use meshpace_transport::{Role, Stats, tpa};
use nix::libc;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Where a connection stands for its application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// Being opened.
    Opening,
    /// Data may flow.
    Open,
    /// Everything written has arrived and both directions are closed.
    Done,
    /// Failed: see the error.
    Failed,
}

/// Why a connection failed, kept so that every call can be told.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: io::ErrorKind,
    /// The errno it stands for.
    pub(super) errno: i32,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(errno: i32, message: impl Into<String>) -> Failure {
        Failure { kind: io::Error::from_raw_os_error(errno).kind(), errno, message: message.into() }
    }

    /// From an error of the system, with a sentence that says more.
    pub(super) fn of(error: &io::Error, message: String) -> Failure {
        Failure { kind: error.kind(), errno: error.raw_os_error().unwrap_or(libc::EIO), message }
    }

    pub(super) fn error(&self) -> io::Error {
        io::Error::new(self.kind, TpaError { errno: self.errno, message: self.message.clone() })
    }
}

/// What stands inside an [`io::Error`] of a connection: a sentence, and the errno for callers in C.
#[derive(Debug)]
pub struct TpaError {
    errno: i32,
    message: String,
}

impl TpaError {
    /// The errno that says the same.
    pub fn errno(&self) -> i32 {
        self.errno
    }
}

impl std::fmt::Display for TpaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TpaError {}

/// The errno that says what an error of these sockets says.
pub fn errno_of(error: &io::Error) -> i32 {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TpaError>()).map(TpaError::errno);
    inner.or(error.raw_os_error()).unwrap_or(match error.kind() {
        io::ErrorKind::WouldBlock => libc::EAGAIN,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::BrokenPipe => libc::EPIPE,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::NotConnected => libc::ENOTCONN,
        _ => libc::EIO,
    })
}

/// The state both sides look at.
#[derive(Debug)]
pub(super) struct State {
    pub(super) status: Status,
    pub(super) failure: Option<Failure>,
    /// Why the peer refuses the connection, as somebody says who has not proved to be it.
    pub(super) refusal: Option<String>,
    pub(super) send: SendRing,
    pub(super) receive: ReceiveRing,
    /// The peer has closed and all it sent is in the ring.
    pub(super) end_of_stream: bool,
    /// The application will write no more.
    pub(super) closed: bool,
    /// The application will read no more.
    pub(super) deaf: bool,
    /// The application has let go of the stream.
    pub(super) dropped: bool,
    /// The application wants a reset.
    pub(super) abort: bool,
    /// Everything written and the end of it have arrived.
    pub(super) finished: bool,
    /// Everything has arrived both ways, the peer has closed, and only its answer to our closing is missing.
    pub(super) lacks_last_word: bool,
    /// The application wants ACKs to wait this long for data to ride on.
    pub(super) hold_acks: Option<Duration>,
    /// The runtime will look at this connection soon without being called: new bytes can wait until then.
    pub(super) busy: bool,
    /// The runtime has been called and has not looked yet.
    pub(super) called: bool,
    /// The peer has been told to wait: reading has to be reported.
    pub(super) window_closed: bool,
    /// Threads waiting to read, and to write or for the end: waking nobody still costs a system call.
    pub(super) readers: u32,
    pub(super) writers: u32,
    /// Who is to be told instead of a waiting thread.
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
    /// What was counted.
    pub(super) stats: Stats,
    /// Hops the peer's last packet seems to have come.
    pub(super) travelled: Option<u8>,
}

/// One connection, shared.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// There is something to read, or never will be.
    readable: Condvar,
    /// There is room to write, or an end, or the connection is open.
    writable: Condvar,
    pub(super) id: u64,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) options: Arc<Options>,
    pub(super) mailbox: Arc<Mailbox>,
}

impl Shared {
    pub(super) fn new(
        id: u64,
        local: SocketAddr,
        peer: SocketAddr,
        block_bytes: usize,
        options: Arc<Options>,
        mailbox: Arc<Mailbox>,
    ) -> Shared {
        let state = State {
            status: Status::Opening,
            failure: None,
            refusal: None,
            send: SendRing::new(options.send_buffer.max(2 * block_bytes)),
            receive: ReceiveRing::new(options.receive_buffer.max(3 * block_bytes)),
            end_of_stream: false,
            closed: false,
            deaf: false,
            dropped: false,
            abort: false,
            hold_acks: None,
            finished: false,
            lacks_last_word: false,
            busy: false,
            called: false,
            window_closed: false,
            readers: 0,
            writers: 0,
            read_waker: None,
            write_waker: None,
            stats: Stats::default(),
            travelled: None,
        };
        Shared {
            state: Mutex::new(state),
            readable: Condvar::new(),
            writable: Condvar::new(),
            id,
            local,
            peer,
            options,
            mailbox,
        }
    }

    /// The state machine of the connection, with what the handshake agrees on.
    pub(super) fn engine(&self, config: &tpa::Config, role: Role) -> Engine {
        Engine::new(config, self.options.trains.as_ref(), self.options.receive_buffer, role)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of somebody else's code in the runtime is told to everybody as a failure.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to read.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] at the deadline; nobody runs the connection in this process.
    pub(super) fn wait_readable<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        deadline: Time,
    ) -> io::Result<MutexGuard<'a, State>> {
        self.mailbox.check_process()?;
        state.readers += 1;
        let (mut state, in_time) = wait_until(&self.readable, state, deadline);
        state.readers -= 1;
        in_time.map(|()| state)
    }

    /// Waits for room to write, or for an end.
    ///
    /// # Errors
    ///
    /// As [`Shared::wait_readable`].
    pub(super) fn wait_writable<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        deadline: Time,
    ) -> io::Result<MutexGuard<'a, State>> {
        self.mailbox.check_process()?;
        state.writers += 1;
        let (mut state, in_time) = wait_until(&self.writable, state, deadline);
        state.writers -= 1;
        in_time.map(|()| state)
    }

    /// Wakes whoever waits to read.
    pub(super) fn wake_readers(&self, state: &mut State) {
        if state.is_readable()
            && let Some(waker) = state.read_waker.take()
        {
            waker.wake();
        }
        if state.readers > 0 {
            self.readable.notify_all();
        }
    }

    /// Wakes whoever waits to write or for the end.
    pub(super) fn wake_writers(&self, state: &mut State) {
        if let Some(waker) = state.write_waker.take() {
            waker.wake();
        }
        if state.writers > 0 {
            self.writable.notify_all();
        }
    }

    /// Wakes whoever waits to read, to write, once they can have what they are woken for: a thread that is woken before would only
    /// wait for the lock.
    pub(super) fn unlock_and_wake(&self, mut state: MutexGuard<'_, State>, to_read: bool, to_write: bool) {
        let reader = if to_read && state.is_readable() { state.read_waker.take() } else { None };
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

    /// Fails for its application.
    pub(super) fn fail(&self, state: &mut State, failure: Failure) {
        state.failure.get_or_insert(failure);
        state.status = Status::Failed;
        self.wake_readers(state);
        self.wake_writers(state);
    }

    /// Has the runtime look at this connection.
    pub(super) fn call(&self, state: &mut State) {
        if !state.called {
            state.called = true;
            // A runtime that has ended has told so already.
            let _ = self.mailbox.touch(self.id);
        }
    }
}

impl State {
    /// Whether reading would not wait.
    pub(super) fn is_readable(&self) -> bool {
        self.receive.available() > 0 || self.end_of_stream || self.deaf || self.failure.is_some()
    }

    /// Whom to tell when there is something to read.
    pub(super) fn note_reader(&mut self, context: &Context<'_>) {
        self.read_waker = Some(context.waker().clone());
    }

    /// Whom to tell when there is room to write, or an end.
    pub(super) fn note_writer(&mut self, context: &Context<'_>) {
        self.write_waker = Some(context.waker().clone());
    }
}

/// Waits for `condition` until `deadline`; [`io::ErrorKind::WouldBlock`] when that has passed.
pub(super) fn wait_until<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Time,
) -> (MutexGuard<'a, T>, io::Result<()>) {
    if deadline == Time::NEVER {
        return (condition.wait(guard).unwrap_or_else(PoisonError::into_inner), Ok(()));
    }
    let left = deadline.since(Clock.now());
    if left == Duration::ZERO {
        return (guard, Err(io::ErrorKind::WouldBlock.into()));
    }
    let left = std::time::Duration::from_nanos(left.0);
    (condition.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0, Ok(()))
}
