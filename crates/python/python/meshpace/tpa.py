"""TPA over UDP in the manner of the module `socket`: streams of bytes, encrypted unless that is switched off.

>>> from meshpace import tpa
>>> with tpa.create_server(("127.0.0.1", 0)) as server, tpa.create_connection(server.getsockname()) as client:
...     peer, address = server.accept()
...     client.sendall(b"hello")
...     peer.recv(100)
b'hello'

Every call that waits leaves the other threads of Python running and hears Ctrl-C. What goes wrong is an `OSError`: `TimeoutError`,
`ConnectionRefusedError` (nobody listens, or the keys do not fit), `ConnectionResetError`, `BrokenPipeError`, `socket.gaierror` (no such
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
    # Type checkers bring this module themselves; Python has `Unpack` from 3.11 on.
    from typing_extensions import Unpack

__all__ = ["SHUT_RD", "SHUT_RDWR", "SHUT_WR", "Options", "create_connection", "create_server", "new_key", "socket"]

SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2

#: A host, by name or number, and a UDP port.
Address = tuple[str, int]

_Buffer = Union[bytes, bytearray, memoryview]

#: How long closing waits for what was sent to arrive, seconds, unless `linger` is set.
LINGER = 30.0


class Options(TypedDict, total=False):
    """What can be set about a socket; both ends need the same protection."""

    #: A TPA of `meshpace transports`. Default "tpa-2".
    transport: str
    #: Payload of a full segment, bytes. Default 1460, or what the way out carries if that is less.
    segment: int
    #: What is sent leaves as soon as the protocol lets it: see `socket.nodelay`. Default true.
    nodelay: bool
    #: No encryption, for experiments. Default false: encrypted, with whoever answers.
    plain: bool
    #: Encrypted, with whoever knows this secret: 32 bytes or 64 hexadecimal digits.
    secret: bytes
    #: Encrypted, with the holders of known keys: our private key, and the peers' public ones. See `new_key`.
    key: bytes
    peers: Sequence[bytes]
    #: With `key`, of a socket that listens: whether the holder of a public key may connect, in the place of `peers`. It is called by the thread of
    #: all connections, must return at once, and may call nothing of this module. An exception is reported and admits nobody.
    admits: Callable[[bytes], object]
    #: Bytes that wait to be acknowledged, and to be read. Default 262144 each, 1073741824 at most.
    send_buffer: int
    receive_buffer: int
    #: How long to try to connect, seconds. Default 30.
    connect_timeout: float
    #: How long `close`, and the end of the program, wait for what was sent to arrive, seconds. Default 30.
    linger: float
    #: Silence after which the peer is asked for a sign of life, seconds; 0 for never. Default 30.
    keep_alive: float
    #: How long a connection may carry no data, seconds; 0 for ever. Default 0.
    idle_timeout: float
    #: How long to send without hearing anything from the peer, seconds. Default 120.
    silence_timeout: float
    #: For TPA with adaptive pacing: hops to the peer, 1 to 255 (default: counted from what arrives), and the channel's rate in bit/s
    #: (default 2e6).
    hops: int
    channel_rate: float
    #: A file to which the keys of connections are added, for `meshpace decrypt`.
    keylog: str


def new_key() -> tuple[bytes, bytes]:
    """A fresh pair of keys: the private one, and the public one for the peers."""
    return tpa_new_key()


@atexit.register
def _finish() -> None:
    """At the end of the program what was sent still arrives, as far as the linger times allow."""
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
    """A TPA socket: fresh, bound, listening or connected, as those of `socket` are. The options are those of :class:`Options`."""

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
        """Gives it a local address and UDP port; "" is every IPv4 address, "::" every address, port 0 any that is free."""
        self._check()
        if self._port or self._stream:
            raise OSError(errno.EINVAL, "the socket has an address")
        self._port = TpaPort(address[0], address[1], self._options)

    def listen(self, backlog: int = 128) -> None:
        """Has it accept connections. While `backlog` of them wait, further ones are not answered."""
        self._check()
        if self._port is None or self._stream:
            raise OSError(errno.EINVAL, "only a bound socket can listen")
        self._listener = self._port.listen(max(backlog, 1))
        self._attach()

    def accept(self) -> tuple[socket, Address]:
        """The next connection, which waits without end, and its peer's address."""
        self._check()
        if self._listener is None:
            raise OSError(errno.EINVAL, "the socket does not listen")
        stream = self._listener.accept(self._wait)
        return socket._of(stream, self._linger), stream.peer

    def connect(self, address: Address) -> None:
        """Opens a connection and waits until it is open. Without waiting (`setblocking(False)`) it raises `BlockingIOError` with
        `errno.EINPROGRESS`; the socket is writable once the connection is open or has failed, and `getsockopt` with `SO_ERROR`, or a
        second call, says which of both."""
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
        """A file descriptor for `select`, `poll`, `selectors` and event loops; -1 once the socket is closed. It is readable while `recv` or
        `accept` would not wait, and writable while `send` would not wait and once a connection is open or has failed. It carries none of the stream's bytes: it is only to be
        waited for. It is the same for the life of the socket, and closes with it."""
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
        """Only `SO_ERROR` at `SOL_SOCKET`: the errno with which the connection has failed, 0 if it has not."""
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
        """Up to so many bytes; none at the end of the stream."""
        if bufsize < 0:
            raise ValueError(f"bufsize: {bufsize}, expected 0 or more")
        return self._connected().recv(bufsize, self._wait)

    def recv_into(self, buffer: bytearray | memoryview, nbytes: int = 0) -> int:
        """The same into a buffer; how many."""
        view = memoryview(buffer).cast("B")
        got = self.recv(min(nbytes, len(view)) if nbytes else len(view))
        view[: len(got)] = got
        return len(got)

    def send(self, data: _Buffer) -> int:
        """Sends what there is room for; how many bytes."""
        return self._connected().send(_bytes(data), self._wait)

    def sendall(self, data: _Buffer) -> None:
        """Sends all. After an exception nobody knows how much of it went."""
        self._connected().sendall(_bytes(data), self._wait)

    def flush(self) -> None:
        """Has what was sent leave although it does not fill a block, and does not wait for its arrival. Without effect unless `nodelay` is
        false: nothing waits then."""
        self._connected().flush()

    @property
    def nodelay(self) -> bool:
        """Whether what is sent leaves as soon as the protocol lets it: at once while nothing is unacknowledged, else with the
        acknowledgement. If false, less than a block of twelve segments waits up to 100 ms for more, or until `flush`; small writes then
        take fewer packets. Of a connection; can be set. Accepted sockets have what the listening one was made with."""
        return self._connected().nodelay

    @nodelay.setter
    def nodelay(self, value: bool) -> None:
        self._connected().set_nodelay(value)

    def makefile(self, mode: str = "r", **text: Any) -> Any:
        """A file of it: "r", "w" or "rw", with "b" of bytes, else of text with the arguments of `io.TextIOWrapper`. The socket has to
        be closed too."""
        reads, writes, binary = "r" in mode, "w" in mode, "b" in mode
        if set(mode) - set("rwb") or not (reads or writes):
            raise ValueError(f"mode: {mode!r}, expected r, w, rw, and perhaps b")
        raw = _Raw(self, reads, writes)
        file: Any
        if reads and writes:
            file = _Pair(raw)
        else:
            file = io.BufferedReader(raw) if reads else _Writer(raw)
        return file if binary else io.TextIOWrapper(file, **text)

    def settimeout(self, value: float | None) -> None:
        """How long each call waits, seconds; None for ever, 0 for not at all (`BlockingIOError`)."""
        self._wait = _timeout(value)

    def gettimeout(self) -> float | None:
        """What was set."""
        return self._wait

    def setblocking(self, flag: bool) -> None:
        """Whether calls wait."""
        self._wait = None if flag else 0.0

    def shutdown(self, how: int) -> None:
        """Closes one direction or both. What was sent still arrives."""
        self._connected().shutdown(how)

    def getsockname(self) -> Address:
        """Its own address."""
        self._check()
        holder = self._stream or self._port
        if holder is None:
            raise OSError(errno.EINVAL, "the socket has no address")
        return holder.address

    def getpeername(self) -> Address:
        """The peer's."""
        return self._connected().peer

    @property
    def peer_key(self) -> bytes | None:
        """The public key of a connection's peer, which has proved that it holds the private one; None without known keys."""
        return self._connected().peer_key

    @property
    def refused_keys(self) -> int:
        """Connections that a listening socket has refused because of the peer's key."""
        self._check()
        if self._listener is None:
            raise OSError(errno.EINVAL, "the socket does not listen")
        return self._listener.refused_keys

    @property
    def hops(self) -> int | None:
        """Hops that the peer's last packet seems to have come."""
        return self._connected().hops

    @property
    def unacknowledged(self) -> int:
        """Bytes sent whose arrival is not known yet."""
        return self._connected().unacknowledged

    @property
    def segments_sent(self) -> int:
        """Data segments sent, those again included."""
        return self._connected().segments_sent

    @property
    def retransmissions(self) -> int:
        """Data segments sent again."""
        return self._connected().retransmissions

    def close(self, linger: float | None = None) -> None:
        """Closes it. Of a connection it waits, at most `linger` seconds (None: as its options say), until what was sent has arrived, and raises an exception if it
        has not: the protocol runs in this process and ends with it. Without waiting (`setblocking(False)`) and without `linger`, what was sent arrives as long as the process
        lives. In a child of the process that opened it, the connection stays open."""
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
        """Ends a connection at once; what has not arrived is lost, and the peer is told."""
        self._connected().abort()

    def __enter__(self) -> socket:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None or self._stream is None:
            self.close()
        else:
            # Nobody waits for what belongs to an operation that has failed, and its exception goes on.
            stream, self._stream, self._port, self._descriptor, self._closed = self._stream, None, None, None, True
            stream.abort()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "listening" if self._listener else "connected" if self._stream else "not connected"
        return f"<meshpace.tpa.socket, {state}>"


class _Raw(io.RawIOBase):
    """The file under those of `socket.makefile`."""

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
    """One whose `flush` is also the socket's."""

    def flush(self) -> None:
        super().flush()
        self.raw.flush()


class _Pair(io.BufferedRWPair):
    """The same for both directions."""

    def __init__(self, raw: _Raw) -> None:
        super().__init__(raw, raw)
        self._raw = raw

    def flush(self) -> None:
        super().flush()
        self._raw.flush()


def create_connection(address: Address, timeout: float | None = None, source_address: Address | None = None, **options: Unpack[Options]) -> socket:
    """A connection to the first of a host's addresses that answers, of either family; the timeout stays its own."""
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
