//! TPA for programs in C: the functions of TPA, table 15, with the manners of the socket functions they are named after.
//!
//! A socket is a small integer of this library, not a file descriptor: it goes to no other function. Functions return -1 and
//! set `errno` when they fail. All of them may be called from several threads at once; one thread may send while another
//! receives. After `fork` only the parent may go on using its sockets.
#![expect(unsafe_code, reason = "the callers are in C")]

use libc::{c_int, c_void, sockaddr, sockaddr_in, sockaddr_in6, socklen_t, ssize_t};
use meshpace_live::tpa::{BACKLOG, Options, TpaError, TpaListener, TpaPort, TpaStream};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// What a socket has become.
#[derive(Clone)]
enum Socket {
    /// `tpa_socket` made it.
    Fresh,
    /// `tpa_bind` gave it a port.
    Bound(TpaPort),
    /// `tpa_listen` has it listen.
    Listening(Arc<TpaListener>),
    /// It is connected.
    Connected(Arc<TpaStream>),
}

/// The sockets by number.
static SOCKETS: Mutex<BTreeMap<c_int, Socket>> = Mutex::new(BTreeMap::new());

/// Numbers start here, so that one that is taken for a file descriptor is noticed.
const FIRST: c_int = 0x2000_0000;

/// An errno.
struct Errno(c_int);

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TpaError>()).map(TpaError::errno);
        Errno(inner.or(error.raw_os_error()).unwrap_or(match error.kind() {
            io::ErrorKind::WouldBlock => libc::EAGAIN,
            io::ErrorKind::TimedOut => libc::ETIMEDOUT,
            io::ErrorKind::BrokenPipe => libc::EPIPE,
            io::ErrorKind::InvalidInput => libc::EINVAL,
            io::ErrorKind::NotConnected => libc::ENOTCONN,
            _ => libc::EIO,
        }))
    }
}

/// Runs `work`; a failure becomes -1 and `errno`, and so does a panic, which must not unwind into C.
fn answer<T: From<i8>>(work: impl FnOnce() -> Result<T, Errno>) -> T {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Errno(libc::EIO)));
    done.unwrap_or_else(|Errno(errno)| {
        // SAFETY: the pointer is that of the calling thread's errno and good for as long as the thread lives.
        unsafe { *libc::__errno_location() = errno };
        T::from(-1)
    })
}

fn sockets() -> std::sync::MutexGuard<'static, BTreeMap<c_int, Socket>> {
    SOCKETS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn find(socket: c_int) -> Result<Socket, Errno> {
    sockets().get(&socket).cloned().ok_or(Errno(libc::EBADF))
}

/// Puts what a socket has become in its place, unless somebody has closed or changed it meanwhile.
fn become_(socket: c_int, from: &Socket, to: Socket) -> Result<(), Errno> {
    match sockets().get_mut(&socket) {
        Some(place) if std::mem::discriminant(place) == std::mem::discriminant(from) => {
            *place = to;
            Ok(())
        }
        _ => Err(Errno(libc::EBADF)),
    }
}

fn insert(socket: Socket) -> Result<c_int, Errno> {
    let mut sockets = sockets();
    let number = (FIRST..c_int::MAX).find(|number| !sockets.contains_key(number)).ok_or(Errno(libc::EMFILE))?;
    sockets.insert(number, socket);
    Ok(number)
}

/// The address a caller points at.
///
/// # Safety
///
/// `address` is null or points at `length` readable bytes.
unsafe fn address_in(address: *const sockaddr, length: socklen_t) -> Result<SocketAddr, Errno> {
    if address.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    if (length as usize) < size_of::<sockaddr_in>() {
        return Err(Errno(libc::EINVAL));
    }
    let whole = address;
    // SAFETY: there are enough bytes by the test above and the caller's promise; any bytes are a `sockaddr_in`, and reading
    // does not ask for its alignment.
    let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
    match c_int::from(address.sin_family) {
        libc::AF_INET => {
            let host = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Ok(SocketAddrV4::new(host, u16::from_be(address.sin_port)).into())
        }
        libc::AF_INET6 if (length as usize) < size_of::<sockaddr_in6>() => Err(Errno(libc::EINVAL)),
        libc::AF_INET6 => {
            // SAFETY: as above, for the longer address, by the test of the length.
            let address = unsafe { whole.cast::<sockaddr_in6>().read_unaligned() };
            let (host, port) = (Ipv6Addr::from(address.sin6_addr.s6_addr), u16::from_be(address.sin6_port));
            Ok(SocketAddrV6::new(host, port, address.sin6_flowinfo, address.sin6_scope_id).into())
        }
        _ => Err(Errno(libc::EAFNOSUPPORT)),
    }
}

/// Writes an address where a caller wants it, as much as fits, and its whole length.
///
/// # Safety
///
/// `address` is null, or `length` points at a length and `address` at that many writable bytes.
unsafe fn address_out(from: SocketAddr, address: *mut sockaddr, length: *mut socklen_t) {
    if address.is_null() || length.is_null() {
        return;
    }
    let (v4, v6);
    let (full, size) = match from {
        SocketAddr::V4(from) => {
            v4 = sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: from.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*from.ip()).to_be() },
                sin_zero: [0; 8],
            };
            ((&raw const v4).cast::<u8>(), size_of::<sockaddr_in>())
        }
        SocketAddr::V6(from) => {
            v6 = sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: from.port().to_be(),
                sin6_flowinfo: from.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: from.ip().octets() },
                sin6_scope_id: from.scope_id(),
            };
            ((&raw const v6).cast::<u8>(), size_of::<sockaddr_in6>())
        }
    };
    // SAFETY: the caller's promise: the length may be read and written, and not more bytes are written than it says. Source
    // and destination are different objects.
    unsafe {
        let room = (*length as usize).min(size);
        std::ptr::copy_nonoverlapping(full, address.cast::<u8>(), room);
        *length = size as socklen_t;
    }
}

/// The flags this library knows.
fn nonblocking(flags: c_int) -> Result<bool, Errno> {
    match flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
        0 => Ok(flags & libc::MSG_DONTWAIT != 0),
        _ => Err(Errno(libc::EOPNOTSUPP)),
    }
}

/// Creates a TPA socket (TPA, table 15). Returns it, or -1: EMFILE if there are too many.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_socket() -> c_int {
    answer(|| insert(Socket::Fresh))
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
        let found = find(socket)?;
        let Socket::Fresh = found else { return Err(Errno(libc::EINVAL)) };
        // SAFETY: the caller's promise.
        let address = unsafe { address_in(address, length) }?;
        become_(socket, &found, Socket::Bound(TpaPort::with_options(address, Options::default())?))?;
        Ok(0)
    })
}

/// Connects a socket to an IPv4 or IPv6 address and UDP port and waits until the connection is open. Returns 0, or -1: ECONNREFUSED if
/// nobody listens there, ETIMEDOUT if nobody answers within 30 s, ENETUNREACH or EHOSTUNREACH without a route, EISCONN if the
/// socket is connected, EOPNOTSUPP if it listens.
///
/// # Safety
///
/// `address` points at `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_connect(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    answer(|| {
        let found = find(socket)?;
        // SAFETY: the caller's promise.
        let address = unsafe { address_in(address, length) }?;
        let port = match &found {
            Socket::Fresh if address.is_ipv4() => TpaPort::bind((IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))?,
            Socket::Fresh => TpaPort::bind((IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0))?,
            Socket::Bound(port) => port.clone(),
            Socket::Connected(_) => return Err(Errno(libc::EISCONN)),
            Socket::Listening(_) => return Err(Errno(libc::EOPNOTSUPP)),
        };
        become_(socket, &found, Socket::Connected(Arc::new(port.connect(address)?)))?;
        Ok(0)
    })
}

/// Has a bound socket accept connections; when `backlog` of them wait (0 or less: 128), further requests are not
/// answered. Returns 0, or -1: EINVAL if the socket is not bound or is connected.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_listen(socket: c_int, backlog: c_int) -> c_int {
    answer(|| {
        let found = find(socket)?;
        let Socket::Bound(port) = &found else { return Err(Errno(libc::EINVAL)) };
        let backlog = usize::try_from(backlog).ok().filter(|backlog| *backlog > 0).unwrap_or(BACKLOG);
        become_(socket, &found, Socket::Listening(Arc::new(port.listen(backlog)?)))?;
        Ok(0)
    })
}

/// Waits for a connection request and returns a socket for it, and the peer's address if `address` is not null. -1: EINVAL if
/// the socket does not listen, or EBADF once another thread closes it.
///
/// # Safety
///
/// `address` is null, or `length` points at a length and `address` at that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_accept(socket: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    answer(|| {
        let Socket::Listening(listener) = find(socket)? else { return Err(Errno(libc::EINVAL)) };
        let (stream, peer) = listener.accept().map_err(|error| match error.kind() {
            io::ErrorKind::NotConnected => Errno(libc::EBADF),
            _ => error.into(),
        })?;
        // SAFETY: the caller's promise.
        unsafe { address_out(peer, address, length) };
        insert(Socket::Connected(Arc::new(stream)))
    })
}

/// Closes a socket. A connected one has its end told to the peer, and the call waits, at most 30 s, until everything sent
/// has arrived. Returns 0, or -1 with the socket closed all the same: ECONNRESET or ECONNREFUSED if the peer is gone,
/// ETIMEDOUT if not everything arrived in time, EBADF if there is no such socket.
#[unsafe(no_mangle)]
pub extern "C" fn tpa_close(socket: c_int) -> c_int {
    answer(|| {
        let found = sockets().remove(&socket).ok_or(Errno(libc::EBADF))?;
        match found {
            Socket::Fresh | Socket::Bound(_) => {}
            Socket::Listening(listener) => listener.close(),
            Socket::Connected(stream) => stream.finish()?,
        }
        Ok(0)
    })
}

/// Sends up to `length` bytes; waits until at least one has been taken. Returns how many were taken, or -1: EAGAIN with
/// MSG_DONTWAIT if none can be now, ENOTCONN, EPIPE, ECONNRESET, ECONNREFUSED, ETIMEDOUT if the peer falls silent, EMSGSIZE if
/// the path cannot carry segments, EOPNOTSUPP for flags but MSG_DONTWAIT and MSG_NOSIGNAL. Never raises SIGPIPE.
///
/// # Safety
///
/// `bytes` points at `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_send(socket: c_int, bytes: *const c_void, length: usize, flags: c_int) -> ssize_t {
    answer(|| {
        let nonblocking = nonblocking(flags)?;
        let Socket::Connected(stream) = find(socket)? else { return Err(Errno(libc::ENOTCONN)) };
        if length == 0 {
            return Ok(0);
        }
        if bytes.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        // SAFETY: the caller's promise; not null. No object is larger than `isize::MAX`.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length.min(isize::MAX as usize)) };
        let taken = if nonblocking { stream.try_write(bytes) } else { (&*stream).write(bytes) };
        Ok(taken? as ssize_t)
    })
}

/// Receives up to `length` bytes; waits until there is at least one. Returns how many, 0 at the end of the peer's stream, or -1:
/// EAGAIN with MSG_DONTWAIT if there is nothing now, ENOTCONN, ECONNRESET, ECONNREFUSED, ETIMEDOUT, EOPNOTSUPP for flags but
/// MSG_DONTWAIT.
///
/// # Safety
///
/// `bytes` points at `length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tpa_recv(socket: c_int, bytes: *mut c_void, length: usize, flags: c_int) -> ssize_t {
    answer(|| {
        let nonblocking = nonblocking(flags)?;
        let Socket::Connected(stream) = find(socket)? else { return Err(Errno(libc::ENOTCONN)) };
        if length == 0 {
            return Ok(0);
        }
        if bytes.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        let length = length.min(isize::MAX as usize);
        // SAFETY: the caller's promise; not null. Reading only writes to it, so that what it held before does not matter for
        // a buffer of bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length) };
        let got = if nonblocking { stream.try_read(bytes) } else { (&*stream).read(bytes) };
        Ok(got? as ssize_t)
    })
}
