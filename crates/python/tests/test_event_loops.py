"""TPA sockets in `select`, `poll`, `selectors` and asyncio."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import random
import select
import selectors
import socket as kernel
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Coroutine, Iterator

import pytest
from conftest import slow_case

from meshpace import tpa, tpa_asyncio

HOST = "127.0.0.1"
HERE = (HOST, 0)
#: Seconds for what takes milliseconds on a machine that is not busy.
LONG = 60.0


@pytest.fixture
def server() -> Iterator[tpa.socket]:
    with tpa.create_server(HERE) as server:
        server.settimeout(LONG)
        yield server


def pair(server: tpa.socket) -> tuple[tpa.socket, tpa.socket]:
    """Two ends of a connection that do not wait."""
    client = tpa.create_connection(server.getsockname(), timeout=LONG)
    peer, _ = server.accept()
    for end in (client, peer):
        end.setblocking(False)
    return client, peer


def shown(socket: tpa.socket) -> tuple[bool, bool]:
    """Whether `select` finds it readable and writable now."""
    reads, writes, _ = select.select([socket], [socket], [], 0)
    return bool(reads), bool(writes)


def wait(socket: tpa.socket, events: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(socket, events)
        assert selector.select(LONG), f"not ready within {LONG} s"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs it, and fails instead of waiting for ever."""
    return asyncio.run(asyncio.wait_for(work, 5 * LONG))


def fill(socket: tpa.socket) -> int:
    """Sends until neither end takes more; how much."""
    sent = 0
    while shown(socket)[1]:
        try:
            sent += socket.send(bytes(50_000))
        except BlockingIOError:
            pass
    return sent


def test_one_descriptor_is_readable_and_writable_at_the_right_times(server: tpa.socket) -> None:
    client, peer = pair(server)
    with client, peer:
        number = client.fileno()
        assert number >= 0 and client.fileno() == number and shown(client) == (False, True)
        sent = fill(client)
        peer.send(b"back")
        wait(client, selectors.EVENT_READ)
        # Readable alone, when no more is taken. What is acknowledged makes room until the peer's buffer is full, too.
        full = False
        while not (full and shown(client) == (True, False)):
            try:
                sent += client.send(b"x")
                full = False
            except BlockingIOError:
                full = True
        assert client.recv(100) == b"back" and not shown(client)[0]
        while sent:
            wait(peer, selectors.EVENT_READ)
            sent -= len(peer.recv(1_000_000))
        wait(client, selectors.EVENT_WRITE)
        assert shown(client) == (False, True) and shown(peer) == (False, True)
    assert client.fileno() == -1
    with pytest.raises(OSError):
        os.fstat(number)


@pytest.mark.parametrize("name", ["SelectSelector", "PollSelector", "EpollSelector"])
def test_every_selector_waits_for_a_server_and_its_connections(server: tpa.socket, name: str) -> None:
    server.setblocking(False)
    texts = [bytes([65 + number]) * (10_000 * number + 1) for number in range(5)]
    got: dict[tpa.socket, bytes] = {}
    with getattr(selectors, name)() as selector:
        clients = [tpa.socket() for _ in texts]
        left = dict(zip(clients, texts))
        for client in clients:
            client.setblocking(False)
            with pytest.raises(BlockingIOError) as begun:
                client.connect(server.getsockname())
            assert begun.value.errno == errno.EINPROGRESS
            selector.register(client, selectors.EVENT_WRITE)
        selector.register(server, selectors.EVENT_READ)
        ended = 0
        while ended < len(texts):
            events = selector.select(LONG)
            assert events, "nothing happens"
            for key, _ in events:
                socket: Any = key.fileobj
                if socket is server:
                    peer, _ = server.accept()
                    peer.setblocking(False)
                    got[peer] = b""
                    selector.register(peer, selectors.EVENT_READ)
                elif socket in left:
                    assert socket.getsockopt(kernel.SOL_SOCKET, kernel.SO_ERROR) == 0
                    left[socket] = left[socket][socket.send(left[socket]) :]
                    if not left[socket]:
                        socket.shutdown(tpa.SHUT_WR)
                        selector.unregister(socket)
                elif data := socket.recv(3000):
                    got[socket] += data
                else:
                    ended += 1
                    selector.unregister(socket)
    assert sorted(got.values()) == sorted(texts)
    for end in [*clients, *got]:
        end.close()


def test_failures_and_ends_are_readiness(server: tpa.socket) -> None:
    client, peer = pair(server)
    client.shutdown(tpa.SHUT_WR)
    wait(peer, selectors.EVENT_READ)
    assert peer.recv(1) == b"" and shown(peer) == (True, True)
    peer.abort()
    wait(client, selectors.EVENT_READ)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    free = kernel.socket(kernel.AF_INET, kernel.SOCK_DGRAM)
    free.bind(HERE)
    nobody = free.getsockname()
    free.close()
    with tpa.socket() as refused:
        refused.setblocking(False)
        assert shown(refused) == (False, False)
        with pytest.raises(BlockingIOError):
            refused.connect(nobody)
        wait(refused, selectors.EVENT_WRITE)
        assert refused.getsockopt(kernel.SOL_SOCKET, kernel.SO_ERROR) == errno.ECONNREFUSED
        with pytest.raises(ConnectionRefusedError):
            refused.connect(nobody)


def test_select_wakes_for_what_another_thread_causes(server: tpa.socket) -> None:
    client, peer = pair(server)
    with client, peer:
        for turn in range(50):
            assert not shown(client)[0]
            thread = threading.Thread(target=peer.send, args=(bytes([turn]),))
            thread.start()
            wait(client, selectors.EVENT_READ)
            assert client.recv(10) == bytes([turn])
            thread.join()


def test_closing_without_waiting_loses_nothing(server: tpa.socket) -> None:
    client, peer = pair(server)
    peer.settimeout(LONG)
    sent = client.send(bytes(200_000))
    client.close()
    got = 0
    while data := peer.recv(100_000):
        got += len(data)
    assert got == sent
    peer.close()


class Echo(asyncio.Protocol):
    """Sends back what comes, and stops reading while the peer does not take it."""

    transport: Any
    lost: list[Exception | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def pause_writing(self) -> None:
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()

    def eof_received(self) -> bool:
        self.transport.write_eof()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class Collect(asyncio.BufferedProtocol):
    """Collects what comes until the end."""

    def __init__(self) -> None:
        self.buffer, self.got = bytearray(5000), bytearray()
        self.end = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.got += self.buffer[:nbytes]

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.end.set_result(exc)


def test_protocols_echo_more_than_buffers_hold() -> None:
    data = random.Random(1).randbytes(3_000_000)

    async def work() -> None:
        Echo.lost.clear()
        async with await tpa_asyncio.create_server(Echo, *HERE) as server:
            assert server.is_serving() and server.sockets[0].getsockname() == server.address
            transport, protocol = await tpa_asyncio.create_connection(Collect, *server.address)
            assert transport.get_extra_info("peername") == server.address and transport.get_extra_info("peer_key") is None
            transport.write(data)
            assert transport.get_write_buffer_size() > 0
            transport.write_eof()
            with pytest.raises(RuntimeError):
                transport.write(b"x")
            assert await protocol.end is None
            assert protocol.got == data
        await server.wait_closed()
        assert Echo.lost == [None] and not server.sockets

    run(work())


def test_streams_of_many_connections_in_one_loop() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    async def ask(address: tpa.Address, name: int) -> None:
        reader, writer = await tpa_asyncio.open_connection(*address)
        for turn in range(10):
            line = b"%d asks %d\n" % (name, turn)
            writer.write(line)
            assert await reader.readline() == line
        lines = (b"%d," % name * 300 + b"\n") * 200
        writer.write(lines)
        writer.write_eof()
        assert await reader.read() == lines
        writer.close()
        await writer.wait_closed()

    async def work() -> None:
        async with await tpa_asyncio.start_server(echo, *HERE) as server:
            await asyncio.gather(*(ask(server.address, name) for name in range(30)))

    run(work())


def test_cancelled_reads_lose_no_byte() -> None:
    sent, got = bytearray(), bytearray()
    cancelled = 0

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A little at a time, so that readers wait.
        for number in itertools.count():
            sent.extend(number.to_bytes(7, "big"))
            writer.write(sent[-7:])
            await writer.drain()
            await asyncio.sleep(0)
            if cancelled == 1000:
                break
        writer.close()

    async def work() -> None:
        nonlocal cancelled
        async with await tpa_asyncio.start_server(send, *HERE) as server:
            reader, writer = await tpa_asyncio.open_connection(*server.address)
            choice = random.Random(2)
            while not reader.at_eof():
                task = asyncio.ensure_future(reader.read(1000))
                for _ in range(choice.randint(1, 2)):
                    await asyncio.sleep(0)
                if cancelled < 1000 and task.cancel():
                    cancelled += 1
                try:
                    got.extend(await task)
                except asyncio.CancelledError:
                    pass
            writer.close()

    run(work())
    assert got == sent


def test_a_protocol_that_fails_ends_its_own_connection_alone() -> None:
    class Fails(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            raise ValueError("the user's own")

    async def work() -> None:
        reports: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        async with await tpa_asyncio.create_server(Fails, *HERE) as server:
            for _ in range(2):
                reader, writer = await tpa_asyncio.open_connection(*server.address)
                writer.write(b"x")
                with pytest.raises(ConnectionResetError):
                    await reader.read()
                writer.close()
        assert [type(report["exception"]) for report in reports] == [ValueError, ValueError]

    run(work())


def test_what_cannot_be_opened_says_why_and_can_be_cancelled() -> None:
    async def work() -> None:
        free = kernel.socket(kernel.AF_INET, kernel.SOCK_DGRAM)
        free.bind(HERE)
        # Bound, and says nothing.
        opening = asyncio.ensure_future(tpa_asyncio.open_connection(*free.getsockname()))
        await asyncio.sleep(0.05)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        address = free.getsockname()
        free.close()
        with pytest.raises(ConnectionRefusedError):
            await tpa_asyncio.open_connection(*address)
        with pytest.raises(kernel.gaierror):
            await tpa_asyncio.open_connection("no-such-host.invalid", 9)
        async with await tpa_asyncio.create_server(Echo, *HERE, secret=b"2" * 32) as server:
            with pytest.raises(OSError):
                await tpa_asyncio.open_connection(*server.address, secret=b"1" * 32, connect_timeout=0.5)
            _, writer = await tpa_asyncio.open_connection(*server.address, secret=b"2" * 32)
            writer.close()

    run(work())


def test_asyncio_reads_and_writes_a_plain_socket(server: tpa.socket) -> None:
    client, peer = pair(server)
    server.setblocking(False)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        one: Any = client
        other: Any = peer
        data = bytes(1_000_000)
        sending = asyncio.ensure_future(loop.sock_sendall(one, data))
        got = 0
        while got < len(data):
            got += len(await loop.sock_recv(other, 100_000))
        await sending
        listening: Any = server
        accepting = asyncio.ensure_future(loop.sock_accept(listening))
        _, writer = await tpa_asyncio.open_connection(*server.getsockname())
        accepted, _ = await accepting
        accepted.close()
        writer.close()

    with client, peer:
        run(work())


#: Typed as users write it; the marked lines have to be refused.
TYPED = """\
from __future__ import annotations
import asyncio
from meshpace import tpa, tpa_asyncio

async def right(host: str, port: int) -> bytes:
    with tpa.create_connection((host, port), timeout=5.0, secret=bytes(32), nodelay=False) as client:
        number: int = client.fileno()
        client.sendall(b"x" * number)
    async with await tpa_asyncio.create_server(asyncio.Protocol, host, port, key=b"", peers=[b""]) as server:
        await server.serve_forever()
    transport, protocol = await tpa_asyncio.create_connection(asyncio.Protocol, host, port, transport="tpa-3")
    protocol.data_received(b"")
    transport.write(b"")
    reader, writer = await tpa_asyncio.open_connection(host, port, keep_alive=1.5, limit=100)
    writer.write(b"x")
    return await reader.read(10)

async def wrong(host: str, port: int) -> None:
    tpa.create_connection((host, port), timeout="5")  # refused
    tpa.create_connection((host, port), nonsense=3)  # refused
    tpa.socket(segment="x")  # refused
    await tpa_asyncio.open_connection(host, port, nonsense=3)  # refused
    await tpa_asyncio.open_connection(host, port, secret="text")  # refused
    await tpa_asyncio.create_connection(int, host, port)  # refused
    await tpa_asyncio.create_server(asyncio.Protocol, host, "80")  # refused
"""


def refused_lines(output: str, file: Path) -> set[int]:
    """The lines of `file` with an error in the output of mypy or pyright."""
    parts = [line.strip().split(":") for line in output.splitlines() if "error" in line]
    return {int(part[1]) for part in parts if Path(part[0]).name == file.name}


@pytest.mark.parametrize("checker", [slow_case("mypy", "mypy for two versions of Python; pyright otherwise"), "pyright"])
def test_type_checkers_accept_right_options_and_refuse_wrong_ones(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    file = tmp_path / "typed.py"
    file.write_text(TYPED)
    expected = {number for number, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# refused")}
    versions = ["3.10", "3.13"] if checker == "mypy" else ["3.9", "3.13"]
    for version in versions:
        if checker == "mypy":
            command = ["mypy", "--strict", "--no-incremental", f"--python-version={version}", str(file)]
        else:
            (tmp_path / "pyrightconfig.json").write_text(f'{{"typeCheckingMode": "strict", "pythonVersion": "{version}"}}')
            command = ["pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
        done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        assert refused_lines(done.stdout, file) == expected, done.stdout
