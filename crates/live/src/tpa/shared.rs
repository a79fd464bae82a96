//! What the application's threads and the runtime's thread share of one connection: bytes, wishes and news.

use super::options::Options;
use super::runtime::Mailbox;
use crate::ring::{ReceiveRing, SendRing};
use meshpace_transport::Stats;
use nix::libc;
use std::io;
use std::net::SocketAddrV4;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

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

/// The state both sides look at.
#[derive(Debug)]
pub(super) struct State {
    pub(super) status: Status,
    pub(super) failure: Option<Failure>,
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
    /// The runtime will look at this connection soon without being called: new bytes can wait until then.
    pub(super) busy: bool,
    /// The runtime has been called and has not looked yet.
    pub(super) called: bool,
    /// The peer has been told to wait: reading has to be reported.
    pub(super) window_closed: bool,
    /// What was counted.
    pub(super) stats: Stats,
}

/// One connection, shared.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// There is something to read, or never will be.
    pub(super) readable: Condvar,
    /// There is room to write, or an end, or the connection is open.
    pub(super) writable: Condvar,
    pub(super) id: u64,
    pub(super) local: SocketAddrV4,
    pub(super) peer: SocketAddrV4,
    pub(super) options: Arc<Options>,
    pub(super) mailbox: Arc<Mailbox>,
}

impl Shared {
    pub(super) fn new(
        id: u64,
        local: SocketAddrV4,
        peer: SocketAddrV4,
        block_bytes: usize,
        options: Arc<Options>,
        mailbox: Arc<Mailbox>,
    ) -> Shared {
        let state = State {
            status: Status::Opening,
            failure: None,
            send: SendRing::new(options.send_buffer.max(2 * block_bytes)),
            receive: ReceiveRing::new(options.receive_buffer.max(3 * block_bytes)),
            end_of_stream: false,
            closed: false,
            deaf: false,
            dropped: false,
            abort: false,
            finished: false,
            busy: false,
            called: false,
            window_closed: false,
            stats: Stats::default(),
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

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    /// Has the runtime look at this connection.
    pub(super) fn call(&self, state: &mut State) {
        if !state.called {
            state.called = true;
            self.mailbox.touch(self.id);
        }
    }
}
