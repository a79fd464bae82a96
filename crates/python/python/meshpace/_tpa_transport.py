"""The transport of asyncio over a TPA socket.

The event loop waits for the socket's descriptor. The transport reads when it is readable, and writes at once as much as the socket takes; what is
left is kept here until the descriptor is writable.
"""

from __future__ import annotations

import asyncio
from typing import Any, Callable

from . import tpa

#: Bytes read and written at a time.
_PIECE = 2**16

#: Bytes kept here above which the protocol is asked to pause, as in asyncio.
_HIGH = 2**16


class Transport(asyncio.Transport):
    """A connection. Its protocol has been told of it when the constructor returns."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, socket: tpa.socket, protocol: asyncio.BaseProtocol, forget: Callable[[Transport], None] | None = None
    ) -> None:
        """`forget` is called when the connection has ended."""
        super().__init__({"socket": socket, "sockname": socket.getsockname(), "peername": socket.getpeername(), "peer_key": socket.peer_key})
        self._loop, self._socket, self._protocol, self._forget = loop, socket, protocol, forget
        self._descriptor = socket.fileno()
        self._kept = bytearray()
        self._high, self._low = _HIGH, _HIGH // 4
        self._ends_writing = self._closing = self._over = False
        self._paused = self._peer_ended = self._protocol_paused = False
        # Whether the loop watches for either.
        self._reads = self._writes = False
        protocol.connection_made(self)
        self._watch_reading()

    def __repr__(self) -> str:
        state = "over" if self._over else "closing" if self._closing else "open"
        return f"<TPA transport, {state}, {len(self._kept)} bytes kept>"

    def is_over(self) -> bool:
        """Whether its end has been decided, so that the protocol is told or has been told of it."""
        return self._over

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Has another protocol be told from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """Whether it is closing or closed."""
        return self._closing

    # Reading.

    def is_reading(self) -> bool:
        """Whether the protocol gets data."""
        return not (self._paused or self._peer_ended or self._closing)

    def pause_reading(self) -> None:
        """Hands no data to the protocol until `resume_reading`; the peer is stopped when the receive buffer is full."""
        self._paused = True
        self._watch_reading()

    def resume_reading(self) -> None:
        """Hands data to the protocol again."""
        self._paused = False
        self._watch_reading()

    def _watch_reading(self) -> None:
        reads = self.is_reading()
        if reads != self._reads:
            self._reads = reads
            if reads:
                self._loop.add_reader(self._descriptor, self._read)
            else:
                self._loop.remove_reader(self._descriptor)

    def _read(self) -> None:
        try:
            got = self._receive()
        except BlockingIOError:
            return
        except OSError as failure:
            self._end(failure)
            return
        except Exception as error:
            self._report(error, "reading failed")
            return
        if not got:
            self._read_end()

    def _receive(self) -> int:
        """Reads a piece and hands it over; its length."""
        protocol: Any = self._protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer: Any = protocol.get_buffer(-1)
            got = self._socket.recv_into(buffer)
            if got:
                protocol.buffer_updated(got)
            return got
        data = self._socket.recv(_PIECE)
        if data:
            protocol.data_received(data)
        return len(data)

    def _read_end(self) -> None:
        """The peer writes no more. The descriptor stays readable from now on."""
        self._peer_ended = True
        self._watch_reading()
        try:
            protocol: Any = self._protocol
            stays_open = protocol.eof_received()
        except Exception as error:
            self._report(error, "the protocol failed at the end of the stream")
            return
        if not stays_open:
            self.close()

    # Writing.

    def write(self, data: Any) -> None:
        """Writes; what the socket does not take now is kept and written later."""
        view = memoryview(data).cast("B")
        if self._ends_writing:
            raise RuntimeError("write after write_eof")
        if self._closing or not view:
            return
        sent = 0
        if not self._kept:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                pass
            except OSError as failure:
                self._end(failure)
                return
        if sent < len(view):
            self._kept += view[sent:]
            self._watch_writing()
            self._judge_size()

    def can_write_eof(self) -> bool:
        """True: the other direction goes on."""
        return True

    def write_eof(self) -> None:
        """Writes no more; the peer receives the end of the stream behind what was written."""
        if self._closing or self._ends_writing:
            return
        self._ends_writing = True
        if not self._kept:
            self._shut_down()

    def _shut_down(self) -> None:
        try:
            self._socket.shutdown(tpa.SHUT_WR)
        except OSError as failure:
            self._end(failure)

    def _watch_writing(self) -> None:
        writes = bool(self._kept) and not self._over
        if writes != self._writes:
            self._writes = writes
            if writes:
                self._loop.add_writer(self._descriptor, self._write_kept)
            else:
                self._loop.remove_writer(self._descriptor)

    def _write_kept(self) -> None:
        try:
            del self._kept[: self._socket.send(self._kept[:_PIECE])]
        except BlockingIOError:
            return
        except OSError as failure:
            self._end(failure)
            return
        self._judge_size()
        self._watch_writing()
        if not self._kept and self._closing:
            self._end(None)
        elif not self._kept and self._ends_writing:
            self._shut_down()

    # How much is kept.

    def get_write_buffer_size(self) -> int:
        """Bytes kept here; those that the socket holds are not among them."""
        return len(self._kept)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """The sizes at which the protocol is resumed and paused."""
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Sets them; by default 64 KiB, and a fourth of the higher."""
        if high is None:
            high = _HIGH if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"limits: high {high} and low {low}, expected high >= low >= 0")
        self._high, self._low = high, low
        self._judge_size()

    def _judge_size(self) -> None:
        """Pauses or resumes the protocol."""
        size = len(self._kept)
        if size > self._high and not self._protocol_paused:
            self._protocol_paused, tell = True, self._protocol.pause_writing
        elif size <= self._low and self._protocol_paused:
            self._protocol_paused, tell = False, self._protocol.resume_writing
        else:
            return
        try:
            tell()
        except Exception as error:
            context = {"message": f"the protocol's {tell.__name__} failed", "exception": error, "transport": self, "protocol": self._protocol}
            self._loop.call_exception_handler(context)

    # The end.

    def close(self) -> None:
        """Reads no more, writes what is kept, and ends. It does not wait until that has arrived."""
        if self._closing:
            return
        self._closing = True
        self._watch_reading()
        if not self._kept:
            self._end(None)

    def abort(self) -> None:
        """Ends it at once; what has not arrived is lost, and the peer is told."""
        if not self._over:
            self._socket.abort()
            self._end(None)

    def _report(self, error: Exception, message: str) -> None:
        """A fault of the protocol ends the connection."""
        self._loop.call_exception_handler({"message": message, "exception": error, "transport": self, "protocol": self._protocol})
        if not self._over:
            self._socket.abort()
            self._end(error)

    def _end(self, failure: Exception | None) -> None:
        """The connection is over; the protocol is told, but not inside a call of its own."""
        if self._over:
            return
        self._over = self._closing = True
        self._kept.clear()
        self._watch_reading()
        self._watch_writing()
        self._loop.call_soon(self._tell_end, failure)

    def _tell_end(self, failure: Exception | None) -> None:
        try:
            self._protocol.connection_lost(failure)
        finally:
            self._socket.close()
            if self._forget:
                self._forget(self)
