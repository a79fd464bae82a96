"""TPA over UDP with an interface like that of the module `socket`: streams of bytes, encrypted unless encryption is switched off.

>>> from meshpace import tpa
>>> with tpa.create_server(("127.0.0.1", 0)) as server, tpa.create_connection(server.getsockname()) as client:
...     peer, address = server.accept()
...     client.sendall(b"hello")
...     peer.recv(100)
b'hello'

A call that blocks lets other Python threads run and can be interrupted by Ctrl-C. Errors are exceptions of type `OSError`: `TimeoutError`,
`ConnectionRefusedError` (no listener, or the keys do not match), `ConnectionResetError`, `BrokenPipeError`, `socket.gaierror` (no such
host), ... Linux only. When an exception leaves a `with` block, the connection is aborted; otherwise the end of the block closes it.

A socket with an address belongs to the process that made it. In a child, by `os.fork` or by `multiprocessing` with the start method "fork",
its methods raise `OSError` with `errno.EBADF`, but for `close`, which does nothing there; the child opens sockets of its own.
"""

from __future__ import annotations

import atexit
import errno
import io
import socket as kernel
import sys
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypedDict, Union, cast

from ._native import TpaDescriptor, TpaListener, TpaOptions, TpaPort, TpaStream, tpa_finish_process, tpa_new_key

if TYPE_CHECKING:
    # Type checkers contain this module. Python itself has `Unpack` only from 3.11 on.
    from typing_extensions import Unpack

__all__ = ["SHUT_RD", "SHUT_RDWR", "SHUT_WR", "Options", "create_connection", "create_server", "new_key", "socket"]

SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2

#: Host, by name or number, and UDP port.
Address = tuple[str, int]

_Buffer = Union[bytes, bytearray, memoryview]

#: Time for which closing waits until all sent data has arrived, seconds, unless `linger` is set.
LINGER = 30.0


class Options(TypedDict, total=False):
    """Options of a socket. Both ends need the same kind of encryption."""

    #: Name of a TPA transport, from `meshpace transports`. Default "tpa-2".
    transport: str
    #: Payload of a full segment, bytes. Default 1460, or less if the outgoing interface carries
    #: less.
    segment: int
    #: Data is sent as soon as the protocol permits it; see `socket.nodelay`. Default true.
    nodelay: bool
    #: No encryption, for experiments. Default false: the connection is encrypted, but the peer is
    #: not authenticated.
    plain: bool
    #: Shared secret, 32 bytes or 64 hexadecimal digits. The connection is encrypted, and only a
    #: peer that knows the secret is accepted.
    secret: bytes
    #: Our private key, and the public keys of the peers that are accepted. The connection is
    #: encrypted. See `new_key`.
    key: bytes
    peers: Sequence[bytes]
    #: For a listening socket with `key`, instead of `peers`: called with the public key of a peer,
    #: returns whether the peer may connect. The thread of all connections calls it, so it must
    #: return at once and must not call this module. An exception is reported, and the peer is
    #: refused.
    admits: Callable[[bytes], object]
    #: Largest numbers of bytes that wait for an acknowledgement, and for the application to read
    #: them. Default 262144 each, at most 1073741824.
    send_buffer: int
    receive_buffer: int
    #: Time for which a connection attempt lasts at most, seconds. Default 30.
    connect_timeout: float
    #: Time for which `close` and the end of the program wait until all sent data has arrived,
    #: seconds. Default 30.
    linger: float
    #: Time without a packet from the peer after which a keep-alive is sent, seconds; 0 for never.
    #: Default 30.
    keep_alive: float
    #: Time after which a connection without data is ended, seconds; 0 for never. Default 0.
    idle_timeout: float
    #: Time of sending without an answer after which the connection has failed, seconds. Default
    #: 120.
    silence_timeout: float
    #: For TPA with adaptive pacing: number of hops to the peer, 1 to 255 (default: derived from
    #: received packets), and the rate of the channel in bit/s (default 2e6).
    hops: int
    channel_rate: float
    #: File to which the keys of connections are appended, for `meshpace decrypt`.
    keylog: str


def new_key() -> tuple[bytes, bytes]:
    """Creates a pair of keys: the private key, and the public key for the peers."""
    return tpa_new_key()


@atexit.register
def _finish() -> None:
    """Waits at the end of the program until all sent data has arrived, within the linger times."""
    if lost := tpa_finish_process():
        print(f"meshpace: {lost}", file=sys.stderr)
        warnings.warn(lost, ResourceWarning)


def _bytes(data: _Buffer) -> bytes:
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def _timeout(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    if not seconds >= 0:
        raise ValueError(f"timeout: {seconds}, expected seconds, 0 or more, or None")
    return min(float(seconds), 1e9)


class socket:
    """A TPA socket: unbound, bound, listening or connected, like a `socket.socket`. The options are those of :class:`Options`."""

    def __init__(self, **options: Unpack[Options]) -> None:
        self._options = TpaOptions(**cast(Any, options))
        self._port: TpaPort | None = None
        self._listener: TpaListener | None = None
        self._stream: TpaStream | None = None
        self._descriptor: TpaDescriptor | None = None
        self._wait: float | None = None
        self._linger = options.get("linger", LINGER)
        self._closed = False

    @classmethod
    def _of(cls, stream: TpaStream, linger: float) -> socket:
        made = cls()
        made._stream, made._linger = stream, linger
        return made

    def _check(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "the socket is closed")
        if held := self._stream or self._port:
            held.check_process()

    def _connected(self) -> TpaStream:
        self._check()
        if self._stream is None:
            raise OSError(errno.ENOTCONN, "the socket is not connected")
        return self._stream

    def bind(self, address: Address) -> None:
        """Binds the socket to a local address and UDP port. "" is every IPv4 address, "::" every address, port 0 any free port."""
        self._check()
        if self._port or self._stream:
            raise OSError(errno.EINVAL, "the socket has an address")
        self._port = TpaPort(address[0], address[1], self._options)

    def listen(self, backlog: int = 128) -> None:
        """Listens for connections. While `backlog` connections wait to be accepted, further ones are not answered."""
        self._check()
        if self._port is None or self._stream:
            raise OSError(errno.EINVAL, "only a bound socket can listen")
        self._listener = self._port.listen(max(backlog, 1))
        self._attach()

    def accept(self) -> tuple[socket, Address]:
        """Accepts the next connection. Returns its socket, which blocks without limit, and the address of the peer."""
        self._check()
        if self._listener is None:
            raise OSError(errno.EINVAL, "the socket does not listen")
        stream = self._listener.accept(self._wait)
        return socket._of(stream, self._linger), stream.peer

    def connect(self, address: Address) -> None:
        """Opens a connection and waits until it is open. A non-blocking socket (`setblocking(False)`) raises `BlockingIOError` with
        `errno.EINPROGRESS`. The socket is writable when the connection is open or has failed; `getsockopt` with `SO_ERROR`, or a
        second call, tells which."""
        self._check()
        if self._stream:
            if self._stream.is_open():
                raise OSError(errno.EISCONN, "the socket is connected")
            raise OSError(errno.EALREADY, "the connection is being opened")
        if self._listener:
            raise OSError(errno.EOPNOTSUPP, "the socket listens")
        port = self._port or TpaPort.reaching(address[0], self._options)
        waits = self._wait != 0.0
        self._stream = port.connect(address[0], address[1], self._wait) if waits else port.begin(address[0], address[1])
        self._attach()
        if not waits:
            raise BlockingIOError(errno.EINPROGRESS, "the connection is being opened")

    def fileno(self) -> int:
        """A file descriptor for `select`, `poll`, `selectors` and event loops; -1 after the socket is closed. It is readable while `recv` or
        `accept` would not block. It is writable while `send` would not block, and when a connection attempt has succeeded or failed. The
        descriptor carries no data; a program can only wait for it. It stays the same until the socket is closed."""
        if self._closed:
            return -1
        self._check()
        if self._descriptor is None:
            self._descriptor = TpaDescriptor()
            self._attach()
        return self._descriptor.fileno()

    def _attach(self) -> None:
        if self._descriptor and (held := self._stream or self._listener):
            held.attach(self._descriptor)

    def getsockopt(self, level: int, optname: int) -> int:
        """Supports only `SO_ERROR` at `SOL_SOCKET`: the errno with which the connection has failed, or 0."""
        self._check()
        if (level, optname) != (kernel.SOL_SOCKET, kernel.SO_ERROR):
            raise OSError(errno.ENOPROTOOPT, "only SO_ERROR can be read")
        try:
            if self._stream:
                self._stream.is_open()
        except OSError as failure:
            return failure.errno or errno.EIO
        return 0

    def recv(self, bufsize: int) -> bytes:
        """Receives at most `bufsize` bytes. The result is empty at the end of the stream."""
        if bufsize < 0:
            raise ValueError(f"bufsize: {bufsize}, expected 0 or more")
        return self._connected().recv(bufsize, self._wait)

    def recv_into(self, buffer: bytearray | memoryview, nbytes: int = 0) -> int:
        """Receives into a buffer and returns the number of bytes."""
        view = memoryview(buffer).cast("B")
        got = self.recv(min(nbytes, len(view)) if nbytes else len(view))
        view[: len(got)] = got
        return len(got)

    def send(self, data: _Buffer) -> int:
        """Sends as much as the send buffer has room for, and returns the number of bytes."""
        return self._connected().send(_bytes(data), self._wait)

    def sendall(self, data: _Buffer) -> None:
        """Sends all data. After an exception, the amount of data that was sent is unknown."""
        self._connected().sendall(_bytes(data), self._wait)

    def flush(self) -> None:
        """Sends buffered data although it does not fill a block, and does not wait for its arrival. If `nodelay` is true, no data is
        held back, and the call has no effect."""
        self._connected().flush()

    @property
    def nodelay(self) -> bool:
        """True if data is sent as soon as the protocol permits it: immediately if no data is unacknowledged, otherwise when the
        acknowledgement arrives. If false, less than a block of twelve segments waits up to 100 ms for more data, or until `flush`, so that
        small writes need fewer packets. The property can be set on a connection. Accepted sockets inherit the option of the listener."""
        return self._connected().nodelay

    @nodelay.setter
    def nodelay(self, value: bool) -> None:
        self._connected().set_nodelay(value)

    def makefile(self, mode: str = "r", buffering: int | None = None, **text: Any) -> Any:
        """Returns a file object for the connection. The mode is "r", "w" or "rw"; with "b" the file has bytes, otherwise text, with the
        arguments of `io.TextIOWrapper`. `buffering` is the size of its buffers in bytes; `None` or a negative number means the default
        size, and 0 means that a file of bytes is not buffered. Closing the file does not close the socket."""
        reads, writes, binary = "r" in mode, "w" in mode, "b" in mode
        if set(mode) - set("rwb") or not (reads or writes):
            raise ValueError(f"mode: {mode!r}, expected r, w, rw, and perhaps b")
        raw = _Raw(self, reads, writes)
        size = io.DEFAULT_BUFFER_SIZE if buffering is None or buffering < 0 else buffering
        if size == 0:
            if not binary:
                raise ValueError("buffering: 0 with a file of text, which needs a buffer")
            return raw
        file: Any
        if reads and writes:
            file = _Pair(raw, size)
        else:
            file = io.BufferedReader(raw, size) if reads else _Writer(raw, size)
        return file if binary else io.TextIOWrapper(file, **text)

    def settimeout(self, value: float | None) -> None:
        """Sets the time for which each call blocks at most, seconds; None for no limit, 0 for non-blocking (`BlockingIOError`)."""
        self._wait = _timeout(value)

    def gettimeout(self) -> float | None:
        """The timeout that was set."""
        return self._wait

    def setblocking(self, flag: bool) -> None:
        """Sets whether calls block."""
        self._wait = None if flag else 0.0

    def shutdown(self, how: int) -> None:
        """Closes one direction or both. Data that was sent before still arrives."""
        self._connected().shutdown(how)

    def getsockname(self) -> Address:
        """The local address."""
        self._check()
        holder = self._stream or self._port
        if holder is None:
            raise OSError(errno.EINVAL, "the socket has no address")
        return holder.address

    def getpeername(self) -> Address:
        """The address of the peer."""
        return self._connected().peer

    @property
    def peer_key(self) -> bytes | None:
        """The public key of a connection's peer, which has proved that it has the private key; None if the connection uses no known keys."""
        return self._connected().peer_key

    @property
    def refused_keys(self) -> int:
        """Number of connections that a listening socket has refused because of the peer's key."""
        self._check()
        if self._listener is None:
            raise OSError(errno.EINVAL, "the socket does not listen")
        return self._listener.refused_keys

    @property
    def hops(self) -> int | None:
        """Estimated number of hops of the peer's last packet."""
        return self._connected().hops

    @property
    def unacknowledged(self) -> int:
        """Number of sent bytes that are not acknowledged."""
        return self._connected().unacknowledged

    @property
    def segments_sent(self) -> int:
        """Number of data segments sent, including retransmissions."""
        return self._connected().segments_sent

    @property
    def retransmissions(self) -> int:
        """Number of data segments retransmitted."""
        return self._connected().retransmissions

    def close(self, linger: float | None = None) -> None:
        """Closes the socket.

        For a connection, the call waits for at most `linger` seconds (None: the option `linger`) until all sent data has arrived, and raises
        an exception if it has not. It has to wait because the protocol runs in this process. A non-blocking socket (`setblocking(False)`)
        without `linger` does not wait; sent data arrives as long as the process exists. A call in a child of the process that opened the
        connection leaves the connection open.
        """
        if self._closed:
            return
        self._closed = True
        stream, listener = self._stream, self._listener
        self._stream = self._listener = self._port = self._descriptor = None
        if listener:
            listener.close()
        if stream and linger is None and self._wait == 0.0:
            stream.let_go()
        elif stream:
            stream.close(_timeout(self._linger if linger is None else linger) or 0.0)

    def abort(self) -> None:
        """Ends a connection immediately. Data that has not arrived is lost, and the peer is notified."""
        self._connected().abort()

    def __enter__(self) -> socket:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None or self._stream is None:
            self.close()
        else:
            # After an exception, close does not wait for the data of the failed operation. The
            # exception is passed on.
            stream, self._stream, self._port, self._descriptor, self._closed = self._stream, None, None, None, True
            stream.abort()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "listening" if self._listener else "connected" if self._stream else "not connected"
        return f"<meshpace.tpa.socket, {state}>"


class _Raw(io.RawIOBase):
    """Raw file below the files of `socket.makefile`."""

    def __init__(self, of: socket, reads: bool, writes: bool) -> None:
        self._of, self._reads, self._writes = of, reads, writes

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def readinto(self, buffer: Any) -> int:
        return self._of.recv_into(buffer)

    def write(self, data: Any) -> int:
        return self._of.send(data)

    def flush(self) -> None:
        super().flush()
        if self._writes and not self._of._closed:
            self._of.flush()


class _Writer(io.BufferedWriter):
    """Buffered writer whose `flush` also flushes the socket."""

    def flush(self) -> None:
        super().flush()
        self.raw.flush()


class _Pair(io.BufferedRWPair):
    """Buffered file for both directions whose `flush` also flushes the socket."""

    def __init__(self, raw: _Raw, size: int) -> None:
        super().__init__(raw, raw, size)
        self._raw = raw

    def flush(self) -> None:
        super().flush()
        self._raw.flush()


def create_connection(address: Address, timeout: float | None = None, source_address: Address | None = None, **options: Unpack[Options]) -> socket:
    """Opens a connection to the first address of a host that answers, IPv4 or IPv6. The socket keeps the timeout."""
    made = socket(**options)
    made.settimeout(timeout)
    if source_address:
        made.bind(source_address)
    made.connect(address)
    return made


def create_server(address: Address, *, backlog: int = 128, **options: Unpack[Options]) -> socket:
    """A socket that listens."""
    made = socket(**options)
    made.bind(address)
    made.listen(backlog)
    return made
