"""The transport of asyncio over a TPA socket.

The event loop waits for the socket's descriptor. The transport reads when the descriptor is readable. It writes immediately as much as
the socket accepts; the rest is buffered here until the descriptor is writable.
"""

from __future__ import annotations

import asyncio
from typing import Any, Callable

from . import tpa

#: Number of bytes read and written at a time.
_PIECE = 2**16

#: Number of buffered bytes above which the protocol is asked to pause; the default of asyncio.
_HIGH = 2**16


class Transport(asyncio.Transport):
    """A connection. The constructor calls ``connection_made`` of its protocol."""

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
        # True if the loop watches the descriptor for reading, or for writing.
        self._reads = self._writes = False
        protocol.connection_made(self)
        self._watch_reading()

    def __repr__(self) -> str:
        state = "over" if self._over else "closing" if self._closing else "open"
        return f"<TPA transport, {state}, {len(self._kept)} bytes kept>"

    def is_over(self) -> bool:
        """True if the connection has ended. The protocol has been notified, or the notification is scheduled."""
        return self._over

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Sets the protocol that is notified from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """True if the connection is closing or closed."""
        return self._closing

    # Reading.

    def is_reading(self) -> bool:
        """True if the protocol receives data."""
        return not (self._paused or self._peer_ended or self._closing)

    def pause_reading(self) -> None:
        """Passes no data to the protocol until `resume_reading`. When the receive buffer is full, flow control stops the peer."""
        self._paused = True
        self._watch_reading()

    def resume_reading(self) -> None:
        """Passes data to the protocol again."""
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
        """Reads data, passes it to the protocol, and returns its length."""
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
        """Handles the end of the peer's stream. Reading stops, because the descriptor stays readable from now on."""
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
        """Writes data. Data that the socket does not accept now is buffered and written later."""
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
        """True: the other direction can stay open."""
        return True

    def write_eof(self) -> None:
        """Ends the stream after the data that was written. The peer receives the end of the stream after this data."""
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

    # Write buffer.

    def get_write_buffer_size(self) -> int:
        """Number of bytes that are buffered here, without those in the buffer of the socket."""
        return len(self._kept)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """The sizes at which the protocol is resumed and paused."""
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Sets the sizes at which the protocol is paused (default 64 KiB) and resumed (default a quarter of that)."""
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

    # End of the connection.

    def close(self) -> None:
        """Stops reading, writes the buffered data, and ends the connection. It does not wait until the data has arrived."""
        if self._closing:
            return
        self._closing = True
        self._watch_reading()
        if not self._kept:
            self._end(None)

    def abort(self) -> None:
        """Ends the connection immediately. Data that has not arrived is lost, and the peer is notified."""
        if not self._over:
            self._socket.abort()
            self._end(None)

    def _report(self, error: Exception, message: str) -> None:
        """Reports an exception of the protocol and ends the connection."""
        self._loop.call_exception_handler({"message": message, "exception": error, "transport": self, "protocol": self._protocol})
        if not self._over:
            self._socket.abort()
            self._end(error)

    def _end(self, failure: Exception | None) -> None:
        """Ends the connection. The protocol is notified later, so that the notification is never inside another call of the protocol."""
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
