"""TPA over UDP for asyncio: the counterparts of `asyncio.open_connection`, `asyncio.start_server`, `loop.create_connection` and `loop.create_server`.

>>> import asyncio
>>> from meshpace import tpa_asyncio
>>> async def main() -> bytes:
...     async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
...         writer.write(await reader.readline())
...         writer.close()
...     async with await tpa_asyncio.start_server(echo, "127.0.0.1", 0) as server:
...         reader, writer = await tpa_asyncio.open_connection(*server.address)
...         writer.write(b"hello\\n")
...         answer = await reader.readline()
...         writer.close()
...         return answer
>>> asyncio.run(main())
b'hello\\n'

Keyword arguments beyond those listed are the options of :class:`meshpace.tpa.Options`. The event loop watches the descriptor of each socket
(`tpa.socket.fileno`) and moves the bytes itself, so any loop with `add_reader` and `add_writer` can be used. Reads and writes can be
cancelled at any time without loss of data. Closing a transport does not wait for the peer; written data arrives as long as the process exists.
"""

from __future__ import annotations

import asyncio
import errno
import socket as kernel
from typing import TYPE_CHECKING, Any, Awaitable, Callable, TypeVar, Union

from . import tpa
from ._tpa_transport import Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Server", "create_connection", "create_server", "open_connection", "start_server"]

_Protocol = TypeVar("_Protocol", bound=asyncio.BaseProtocol)
_Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Union[Awaitable[None], None]]

#: Number of bytes that a stream's reader buffers; the default of asyncio.
_LIMIT = 2**16

#: Time after which the next address is tried in parallel with a connection attempt, seconds (RFC
#: 8305, section 5), and largest number of addresses.
_DELAY, _MOST = 0.25, 8


async def create_connection(
    protocol_factory: Callable[[], _Protocol], host: str, port: int, *, source_address: tpa.Address | None = None, **options: Unpack[tpa.Options]
) -> tuple[asyncio.Transport, _Protocol]:
    """Opens a connection to the first address of a host that answers, and connects it to a protocol. The transport's `get_extra_info` knows
    "socket", "sockname", "peername" and "peer_key"."""
    loop = asyncio.get_running_loop()
    socket = await _connect(loop, host, port, source_address, options)
    try:
        protocol = protocol_factory()
        return Transport(loop, socket, protocol), protocol
    except BaseException:
        socket.abort()
        socket.close()
        raise


async def create_server(
    protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, backlog: int = 128, start_serving: bool = True, **options: Unpack[tpa.Options]
) -> Server:
    """Creates a server at the first address of a host that creates a protocol for each connection. "" is every IPv4 address, "::" every
    address, port 0 any free port."""
    loop = asyncio.get_running_loop()
    if host:
        found = await loop.getaddrinfo(host, port, type=kernel.SOCK_DGRAM)
        host = str(found[0][4][0])
    socket = tpa.socket(**options)
    socket.setblocking(False)
    socket.bind((host, port))
    server = Server(loop, socket, protocol_factory, backlog)
    if start_serving:
        await server.start_serving()
    return server


async def open_connection(
    host: str, port: int, *, limit: int = _LIMIT, source_address: tpa.Address | None = None, **options: Unpack[tpa.Options]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens a connection as a pair of streams."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await create_connection(lambda: protocol, host, port, source_address=source_address, **options)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def start_server(
    client_connected_cb: _Connected, host: str, port: int, *, limit: int = _LIMIT, backlog: int = 128, start_serving: bool = True, **options: Unpack[tpa.Options]
) -> Server:
    """Creates a server that calls `client_connected_cb`, a function or a coroutine function, with a pair of streams for each connection."""
    loop = asyncio.get_running_loop()

    def factory() -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=limit, loop=loop), client_connected_cb, loop=loop)

    return await create_server(factory, host, port, backlog=backlog, start_serving=start_serving, **options)


async def _connect(loop: asyncio.AbstractEventLoop, host: str, port: int, source: tpa.Address | None, options: tpa.Options) -> tpa.socket:
    """Returns a socket that is connected to the first address that answers (RFC 8305)."""
    found = await loop.getaddrinfo(host, port, type=kernel.SOCK_DGRAM)
    waiting = list(dict.fromkeys(str(address[0]) for *_, address in found))[:_MOST]
    attempts: set[asyncio.Task[tpa.socket]] = set()
    opened: list[tpa.socket] = []
    failures: list[OSError] = []
    try:
        while not opened and (waiting or attempts):
            if waiting:
                attempts.add(loop.create_task(_attempt(loop, (waiting.pop(0), port), source, options)))
            done, attempts = await asyncio.wait(attempts, timeout=_DELAY if waiting else None, return_when=asyncio.FIRST_COMPLETED)
            _sort(done, opened, failures)
    finally:
        # An attempt that succeeds while it is being cancelled has a socket, which `_give_up`
        # closes.
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(_give_up)
        for socket in opened[1:]:
            _abort(socket)
    if opened:
        return opened[0]
    if len(failures) == 1:
        raise failures[0]
    raise OSError(failures[-1].errno, "; ".join(str(failure) for failure in failures))


def _sort(done: set[asyncio.Task[tpa.socket]], opened: list[tpa.socket], failures: list[OSError]) -> None:
    for attempt in done:
        try:
            opened.append(attempt.result())
        except OSError as failure:
            failures.append(failure)


def _give_up(attempt: asyncio.Task[tpa.socket]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        _abort(attempt.result())


def _abort(socket: tpa.socket) -> None:
    socket.abort()
    socket.close()


async def _attempt(loop: asyncio.AbstractEventLoop, address: tpa.Address, source: tpa.Address | None, options: tpa.Options) -> tpa.socket:
    socket = tpa.socket(**options)
    socket.setblocking(False)
    try:
        if source:
            socket.bind(source)
        while True:
            try:
                socket.connect(address)
            except BlockingIOError:
                await _writable(loop, socket.fileno())
            except OSError as answer:
                if answer.errno == errno.EISCONN:
                    return socket
                raise
    except BaseException:
        socket.close()
        raise


async def _writable(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    """Waits until a descriptor is writable."""
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(descriptor, tell)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


class Server(asyncio.AbstractServer):
    """A server, with the methods of :class:`asyncio.Server`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: tpa.socket, factory: Callable[[], asyncio.BaseProtocol], backlog: int) -> None:
        self._loop, self._socket, self._factory, self._backlog = loop, socket, factory, backlog
        self._serving = self._closed = False
        self._transports: set[Transport] = set()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._address = socket.getsockname()

    @property
    def address(self) -> tpa.Address:
        """The address and UDP port of the server."""
        return self._address

    @property
    def sockets(self) -> tuple[tpa.socket, ...]:
        """The listening socket; empty after the server is closed."""
        return () if self._closed else (self._socket,)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the server."""
        return self._loop

    def is_serving(self) -> bool:
        """True if the server accepts connections."""
        return self._serving

    async def start_serving(self) -> None:
        """Starts to accept connections."""
        if self._closed:
            raise RuntimeError("the server is closed")
        if not self._serving:
            self._serving = True
            self._socket.listen(self._backlog)
            self._loop.add_reader(self._socket.fileno(), self._accept)

    async def serve_forever(self) -> None:
        """Accepts connections until the task is cancelled, and then closes the server."""
        await self.start_serving()
        try:
            await asyncio.shield(self._ended)
        finally:
            self.close()
            await self.wait_closed()

    def close(self) -> None:
        """Stops accepting connections. Open connections continue."""
        if not self._closed:
            self._closed = True
            if self._serving:
                self._loop.remove_reader(self._socket.fileno())
            self._serving = False
            self._socket.close()
            self._tell_end()

    def close_clients(self) -> None:
        """Closes every connection after its socket has accepted all written data."""
        for transport in list(self._transports):
            transport.close()

    def abort_clients(self) -> None:
        """Aborts every connection."""
        for transport in list(self._transports):
            transport.abort()

    async def wait_closed(self) -> None:
        """Waits until the server is closed and its connections have ended."""
        await asyncio.shield(self._ended)

    def _tell_end(self) -> None:
        if self._closed and not self._transports and not self._ended.done():
            self._ended.set_result(None)

    def _accept(self) -> None:
        # Accepts the connections that wait, but at most `backlog` at once, so that other sockets
        # are served.
        for _ in range(self._backlog):
            try:
                socket, _address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # No further connection can be accepted.
                self._loop.call_exception_handler({"message": "accepting connections failed", "exception": error})
                self.close()
                return
            socket.setblocking(False)
            self._begin(socket)

    def _begin(self, socket: tpa.socket) -> None:
        try:
            transport = Transport(self._loop, socket, self._factory(), self._forget)
            if not transport.is_over():
                self._transports.add(transport)
        except Exception as error:
            context: dict[str, Any] = {"message": "a connection could not be given to its protocol", "exception": error}
            self._loop.call_exception_handler(context)
            _abort(socket)

    def _forget(self, transport: Transport) -> None:
        self._transports.discard(transport)
        self._tell_end()
