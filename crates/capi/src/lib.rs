//! TPA for programs in C: the functions of TPA, table 15, with the manners of the socket functions they are named after, and
//! what the paper leaves out: options, closing by halves, descriptors to poll.
//!
//! A socket is a small integer of this library, not a file descriptor: it goes to no other function. Functions return -1 and
//! set `errno` when they fail. All of them may be called from several threads at once; one thread may send while another
//! receives. After `fork` the child begins without sockets: for those of its parent every function returns EBADF.
#![expect(unsafe_code, reason = "the callers are in C")]

mod address;
mod at_exit;
mod fault;
mod memory;
mod options;
mod ready;
mod state;
mod table;

use address::{address_in, address_out};
use fault::Errno;
use libc::{c_char, c_int, c_short, c_void, sockaddr, socklen_t, ssize_t};
use memory::{bytes_in, bytes_out};
use meshpace_live::tpa::{BACKLOG, TpaPort};
use options::Settings;
use state::State;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use table::{Socket, become_, find, insert, remove, set};

/// Runs `work`; a failure becomes -1 and `errno`, and so does a panic, which must not unwind into C.
fn answer<T: From<i8>>(work: impl FnOnce() -> Result<T, Errno>) -> T {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Errno::from(libc::EIO)));
    done.unwrap_or_else(|errno| {
        errno.tell();
        T::from(-1)
    })
}

/// The flags this library knows.
fn nonblocking(flags: c_int) -> Result<bool, Errno> {
    match flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
        0 => Ok(flags & libc::MSG_DONTWAIT != 0),
        _ => Err(Errno::from(libc::EOPNOTSUPP)),
    }
}

/// Creates a TPA socket (TPA, table 15). Returns it, or -1: EMFILE if there are too many. From then on exit(3) and the end of main close what is open
/// and wait, for each connection at most as SO_LINGER says, until what was sent has arrived; if it has not, a line on standard error says so.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_socket() -> c_int {
    at_exit::register();
    answer(|| insert(Socket::new(State::Fresh, Settings::default())))
}

/// Gives a socket a local IPv4 or IPv6 address and UDP port; port 0 is any that is free. Returns 0, or -1: EADDRINUSE if another
/// has it, EADDRNOTAVAIL if the address is not this host's, EAFNOSUPPORT if it is of neither kind, EINVAL if the socket has one.
///
/// # Safety
///
/// `address` points at `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_bind(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    answer(|| {
        let Socket { state, settings, .. } = find(socket)?;
        let State::Fresh = state else { return Err(Errno::from(libc::EINVAL)) };
        // SAFETY: the caller's promise.
        let address = unsafe { address_in(address, length) }?;
        become_(socket, &state, State::Bound(TpaPort::with_options(address, settings.options()?)?))?;
        Ok(0)
    })
}

/// Connects a socket to an IPv4 or IPv6 address and UDP port and waits until the connection is open. Returns 0, or -1: ECONNREFUSED if
/// nobody listens there or keys do not fit, ETIMEDOUT if nobody answers within TPA_CONNECT_TIMEOUT, ENETUNREACH or EHOSTUNREACH without a
/// route, EISCONN if the socket is connected, EOPNOTSUPP if it listens. With TPA_NONBLOCK it does not wait: EINPROGRESS, then
/// EALREADY; the descriptor of `tpa_pollfd(socket, POLLOUT)` tells when that is over, and SO_ERROR how. EINTR after a signal, unless its handler has SA_RESTART: the
/// socket then goes on connecting in the same way.
///
/// # Safety
///
/// `address` points at `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_connect(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    answer(|| {
        let Socket { state, settings, .. } = find(socket)?;
        // SAFETY: the caller's promise.
        let address = unsafe { address_in(address, length) }?;
        let any = |address: IpAddr| Ok::<_, Errno>(TpaPort::with_options((address, 0), settings.options()?)?);
        let port = match &state {
            State::Fresh if address.is_ipv4() => any(Ipv4Addr::UNSPECIFIED.into())?,
            State::Fresh => any(Ipv6Addr::UNSPECIFIED.into())?,
            State::Bound(port) => port.clone(),
            State::Connected(stream) if matches!(stream.is_open(), Ok(false)) => {
                return Err(Errno::from(libc::EALREADY));
            }
            State::Connected(_) => return Err(Errno::from(libc::EISCONN)),
            State::Listening(_) => return Err(Errno::from(libc::EOPNOTSUPP)),
        };
        let stream = Arc::new(port.connect_nonblocking(address)?);
        // Whether a call waits is asked with every call.
        stream.set_nonblocking(false)?;
        settings.apply(&stream)?;
        let connected = State::Connected(Arc::clone(&stream));
        become_(socket, &state, connected.clone())?;
        if settings.nonblocking {
            return Err(Errno::from(libc::EINPROGRESS));
        }
        let Err(error) = stream.wait_until_open() else { return Ok(0) };
        if error.kind() != io::ErrorKind::Interrupted {
            // It can try again.
            become_(socket, &connected, state)?;
        }
        Err(error.into())
    })
}

/// Has a bound socket accept connections; when `backlog` of them wait (0 or less: 128), further requests are not
/// answered. Returns 0, or -1: EINVAL if the socket is not bound or is connected.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_listen(socket: c_int, backlog: c_int) -> c_int {
    answer(|| {
        let Socket { state, .. } = find(socket)?;
        let State::Bound(port) = &state else { return Err(Errno::from(libc::EINVAL)) };
        let backlog = usize::try_from(backlog).ok().filter(|backlog| *backlog > 0).unwrap_or(BACKLOG);
        let listener = port.listen(backlog)?;
        listener.set_interruptible(true)?;
        become_(socket, &state, State::Listening(Arc::new(listener)))?;
        Ok(0)
    })
}

/// Waits for a connection request, for at most SO_RCVTIMEO, and returns a socket for it, and the peer's address if `address` is not
/// null. The socket has default settings, but for TPA_NODELAY. -1: EAGAIN when there is none in time or, with TPA_NONBLOCK, now, EINVAL if the socket does not
/// listen, EBADF once another thread closes it, or EINTR after a signal, unless its handler has SA_RESTART and no SO_RCVTIMEO is set.
///
/// # Safety
///
/// `address` is null, or `length` points at a length and `address` at that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_accept(socket: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    answer(|| {
        let Socket { state, settings, ready } = find(socket)?;
        let State::Listening(listener) = &state else { return Err(Errno::from(libc::EINVAL)) };
        let accepted = if settings.nonblocking { listener.try_accept() } else { listener.accept() };
        ready.refresh(&state);
        let (stream, peer) = accepted.map_err(|error| match error.kind() {
            io::ErrorKind::NotConnected => Errno::from(libc::EBADF),
            _ => error.into(),
        })?;
        // SAFETY: the caller's promise.
        unsafe { address_out(peer, address, length) };
        let settings = settings.of_accepted();
        settings.apply(&stream)?;
        insert(Socket::new(State::Connected(Arc::new(stream)), settings))
    })
}

/// Has what was sent leave although it does not fill a block, and does not wait for its arrival. Without effect unless TPA_NODELAY is 0: nothing
/// waits then. Returns 0, or -1: ENOTCONN.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_flush(socket: c_int) -> c_int {
    answer(|| {
        let State::Connected(stream) = find(socket)?.state else { return Err(Errno::from(libc::ENOTCONN)) };
        stream.flush()?;
        Ok(0)
    })
}

/// Closes one direction of a connection or both: SHUT_RD, SHUT_WR or SHUT_RDWR. What was sent before still arrives, and the peer then
/// receives the end; what comes after closing for receiving resets the connection. Returns 0, or -1: ENOTCONN, EINVAL for another
/// `how`.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_shutdown(socket: c_int, how: c_int) -> c_int {
    answer(|| {
        let Socket { state, ready, .. } = find(socket)?;
        let how = match how {
            libc::SHUT_RD => Shutdown::Read,
            libc::SHUT_WR => Shutdown::Write,
            libc::SHUT_RDWR => Shutdown::Both,
            _ => return Err(Errno::from(libc::EINVAL)),
        };
        let State::Connected(stream) = &state else { return Err(Errno::from(libc::ENOTCONN)) };
        stream.shutdown(how)?;
        ready.refresh(&state);
        Ok(0)
    })
}

/// Writes the local address of a socket as getsockname(2) does. Returns 0, or -1: EINVAL if it has none yet.
///
/// # Safety
///
/// `length` points at a length and `address` at that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_getsockname(socket: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    answer(|| {
        let own = match find(socket)?.state {
            State::Fresh => return Err(Errno::from(libc::EINVAL)),
            State::Bound(port) => port.local_addr()?,
            State::Listening(listener) => listener.local_addr()?,
            State::Connected(stream) => stream.local_addr()?,
        };
        // SAFETY: the caller's promise.
        unsafe { address_out(own, address, length) };
        Ok(0)
    })
}

/// Writes the address of the peer as getpeername(2) does. Returns 0, or -1: ENOTCONN.
///
/// # Safety
///
/// `length` points at a length and `address` at that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_getpeername(socket: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    answer(|| {
        let State::Connected(stream) = find(socket)?.state else { return Err(Errno::from(libc::ENOTCONN)) };
        if !stream.is_open()? {
            return Err(Errno::from(libc::ENOTCONN));
        }
        // SAFETY: the caller's promise.
        unsafe { address_out(stream.peer_addr()?, address, length) };
        Ok(0)
    })
}

/// A sentence about the last call of this thread that failed, such as which peer refuses and why; empty if none has. It belongs to the library and
/// is good until the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_error() -> *const c_char {
    fault::last()
}

/// The version of the library, such as "0.1.0". It belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// A file descriptor that poll, select or epoll report as readable (POLLIN, for either) as long as a call would not wait: with POLLIN for
/// `events` tpa_recv or tpa_accept, with POLLOUT tpa_send, and once it is clear whether the connection is open. It belongs to the
/// socket, closes with it, and is neither read nor written by the caller. -1: EINVAL for other `events`, EMFILE if there are too
/// many descriptors.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_pollfd(socket: c_int, events: c_short) -> c_int {
    answer(|| {
        let Socket { state, ready, .. } = find(socket)?;
        ready.descriptor(events, &state)
    })
}

/// Sets an option. At level SOL_SOCKET: SO_RCVTIMEO and SO_SNDTIMEO (struct timeval), SO_LINGER (struct linger: how long tpa_close
/// waits, 30 s unless set; 0 s has it reset the connection), and before tpa_bind and tpa_connect SO_RCVBUF and SO_SNDBUF (int, bytes, 1 GiB at most). At
/// level SOL_TPA: those named TPA_. Returns 0, or -1: ENOPROTOOPT for an option that cannot be set, EINVAL for a value of the wrong length or
/// out of range, or if it is too late.
///
/// # Safety
///
/// `value` points at `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_setsockopt(
    socket: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let value = unsafe { bytes_in(value, length) }?;
        set(socket, |state, settings| settings.set(state, (level, option), value))?;
        Ok(0)
    })
}

/// Reads an option: those of tpa_setsockopt and, at level SOL_SOCKET, SO_ERROR (int: why the connection failed, 0 if it has not;
/// it stays). `length` says how much room there is, and then how long the value is. Returns 0, or -1: ENOPROTOOPT for an option that cannot
/// be read, EINVAL if there is too little room.
///
/// # Safety
///
/// `length` points at a length and `value` at that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_getsockopt(
    socket: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    answer(|| {
        let Socket { state, settings, .. } = find(socket)?;
        let got = options::get(&state, &settings, level, option)?;
        // SAFETY: the caller's promise.
        unsafe { bytes_out(&got, value, length) }?;
        Ok(0)
    })
}

/// Closes a socket. A connected one has its end told to the peer, and the call waits, at most 30 s or as SO_LINGER says, until everything
/// sent has arrived; with TPA_NONBLOCK it does not wait, and what was sent arrives as long as the process lives. Returns 0, or -1 with the
/// socket closed all the same: ECONNRESET or ECONNREFUSED if the peer is gone, ETIMEDOUT if not everything arrived in time, EBADF
/// if there is no such socket.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_close(socket: c_int) -> c_int {
    answer(|| {
        let Socket { state, settings, .. } = remove(socket)?;
        match state {
            State::Fresh | State::Bound(_) => {}
            State::Listening(listener) => listener.close(),
            State::Connected(stream) if settings.linger.is_some_and(|linger| linger.is_zero()) => {
                stream.abort();
                stream.set_nonblocking(true)?;
            }
            State::Connected(stream) if settings.nonblocking => stream.let_go()?,
            State::Connected(stream) => stream.finish()?,
        }
        Ok(0)
    })
}

/// Sends `length` bytes; waits, for at most SO_SNDTIMEO, until all have been taken. Returns how many were taken: fewer if the time is up or a
/// signal has come (unless its handler has SA_RESTART and no SO_SNDTIMEO is set), or, with MSG_DONTWAIT or TPA_NONBLOCK, as many as can be now. If none
/// were, -1: EAGAIN, EINTR, ENOTCONN, EPIPE, ECONNRESET, ECONNREFUSED, ETIMEDOUT if the peer falls silent, EMSGSIZE if
/// the path cannot carry segments, EOPNOTSUPP for flags but MSG_DONTWAIT and MSG_NOSIGNAL. Never raises SIGPIPE.
///
/// # Safety
///
/// `bytes` points at `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_send(socket: c_int, bytes: *const c_void, length: usize, flags: c_int) -> ssize_t {
    answer(|| {
        let Socket { state, settings, ready } = find(socket)?;
        let nonblocking = nonblocking(flags)? || settings.nonblocking;
        let State::Connected(stream) = &state else { return Err(Errno::from(libc::ENOTCONN)) };
        if length == 0 {
            return Ok(0);
        }
        if bytes.is_null() {
            return Err(Errno::from(libc::EFAULT));
        }
        // SAFETY: the caller's promise; not null. No object is larger than `isize::MAX`.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length.min(isize::MAX as usize)) };
        let taken = if nonblocking { stream.try_write(bytes) } else { stream.send(bytes) };
        ready.refresh(&state);
        Ok(taken? as ssize_t)
    })
}

/// Receives up to `length` bytes; waits, for at most SO_RCVTIMEO, until there is at least one. Returns how many, 0 at the end of the peer's
/// stream, or -1: EAGAIN if there is nothing in time or, with MSG_DONTWAIT or TPA_NONBLOCK, now, EINTR after a signal (unless its handler has SA_RESTART
/// and no SO_RCVTIMEO is set), EBADF once another thread closes it, ENOTCONN, ECONNRESET, ECONNREFUSED, ETIMEDOUT, EOPNOTSUPP for flags but
/// MSG_DONTWAIT.
///
/// # Safety
///
/// `bytes` points at `length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_recv(socket: c_int, bytes: *mut c_void, length: usize, flags: c_int) -> ssize_t {
    answer(|| {
        let Socket { state, settings, ready } = find(socket)?;
        let nonblocking = nonblocking(flags)? || settings.nonblocking;
        let State::Connected(stream) = &state else { return Err(Errno::from(libc::ENOTCONN)) };
        if length == 0 {
            return Ok(0);
        }
        if bytes.is_null() {
            return Err(Errno::from(libc::EFAULT));
        }
        let length = length.min(isize::MAX as usize);
        // SAFETY: the caller's promise; not null. Reading only writes to it, so that what it held before does not matter for
        // a buffer of bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length) };
        let got = if nonblocking { stream.try_read(bytes) } else { (&**stream).read(bytes) };
        ready.refresh(&state);
        Ok(got? as ssize_t)
    })
}
