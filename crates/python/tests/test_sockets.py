"""TPA sockets: what they carry, how they wait, what they say when something is wrong."""

from __future__ import annotations

import errno
import hashlib
import http.client
import http.server
import io
import os
import random
import signal
import socket as kernel
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

from meshpace import tpa

HERE = ("127.0.0.1", 0)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def server() -> Iterator[tpa.socket]:
    with tpa.create_server(HERE) as server:
        server.settimeout(30)
        yield server


def pair(server: tpa.socket, **options: object) -> tuple[tpa.socket, tpa.socket]:
    client = tpa.create_connection(server.getsockname(), timeout=30, **options)  # type: ignore[arg-type]
    peer, address = server.accept()
    assert address == peer.getpeername() and address[1] == client.getsockname()[1]
    peer.settimeout(30)
    return client, peer


@pytest.mark.parametrize("listening", ["::", "127.0.0.1", "::1"])
def test_a_server_is_found_at_the_address_where_it_listens(listening: str) -> None:
    try:
        server = tpa.create_server((listening, 0))
    except OSError as error:
        pytest.skip(f"rights: no such address here: {error}")
    port = server.getsockname()[1]
    hosts = {"::": ["127.0.0.1", "::1", "::ffff:127.0.0.1"], "127.0.0.1": ["127.0.0.1", "localhost"], "::1": ["::1"]}
    with server:
        server.settimeout(30)
        for host in hosts[listening]:
            with tpa.create_connection((host, port), timeout=30) as client:
                peer, address = server.accept()
                with peer:
                    # A peer of IPv4 has an address of IPv4, whatever the family of the server's socket.
                    assert address[0] == ("::1" if host == "::1" else "127.0.0.1")
                    client.sendall(b"hello")
                    assert peer.recv(10) == b"hello"


def test_echo_and_the_end_of_a_stream(server: tpa.socket) -> None:
    client, peer = pair(server)
    with client, peer:
        client.sendall(bytearray(b"hello"))
        assert peer.recv(100) == b"hello"
        peer.sendall(memoryview(b"and back"))
        buffer = bytearray(20)
        assert client.recv_into(buffer) == 8 and buffer[:8] == b"and back"
        client.shutdown(tpa.SHUT_WR)
        assert peer.recv(100) == b"" and peer.recv(100) == b""
        with pytest.raises(BrokenPipeError):
            client.send(b"more")
        peer.sendall(b"the other direction stays open")
        assert client.recv(100) == b"the other direction stays open"
    with pytest.raises(OSError) as closed:
        client.recv(1)
    assert closed.value.errno == errno.EBADF


def test_five_megabytes_both_ways(server: tpa.socket) -> None:
    client, peer = pair(server)
    data = {end: random.Random(number).randbytes(5_000_000) for number, end in enumerate((client, peer))}
    got: dict[tpa.socket, str] = {}

    def receive(end: tpa.socket) -> None:
        digest = hashlib.sha256()
        while block := end.recv(100_000):
            digest.update(block)
        got[end] = digest.hexdigest()

    def send(end: tpa.socket) -> None:
        end.sendall(data[end])
        end.shutdown(tpa.SHUT_WR)

    threads = [threading.Thread(target=what, args=(end,)) for end in (client, peer) for what in (send, receive)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got[client] == hashlib.sha256(data[peer]).hexdigest() and got[peer] == hashlib.sha256(data[client]).hexdigest()
    assert client.segments_sent * 1460 >= 5_000_000 and client.hops == 1
    closing = threading.Thread(target=peer.close)
    closing.start()
    client.close()
    closing.join()


def test_files(server: tpa.socket) -> None:
    client, peer = pair(server)
    with client, peer:
        with client.makefile("w", encoding="utf-8", newline="\n") as lines:
            lines.write("über\nzwei\n")
        client.shutdown(tpa.SHUT_WR)
        with peer.makefile("rb") as file:
            assert isinstance(file, io.BufferedReader)
            assert file.readline() == "über\n".encode() and file.read() == b"zwei\n"
        for mode, buffering in [("a", None), ("r", 0)]:
            with pytest.raises(ValueError):
                peer.makefile(mode, buffering)
        # Positions as in the module `socket`. Without a buffer nothing waits for `flush`.
        with peer.makefile("wb", 0) as unbuffered, client.makefile("rb", -1) as buffered:
            unbuffered.write(b"at once\n")
            assert buffered.readline() == b"at once\n"


class _Answers(http.server.BaseHTTPRequestHandler):
    """Answers each request with its path, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_: object) -> None:
        """Writes no log."""


def test_http_server_answers_http_client(server: tpa.socket) -> None:
    client, peer = pair(server)
    answers = threading.Thread(target=_Answers, args=(peer, peer.getpeername(), None))
    answers.start()
    requests: Any = http.client.HTTPConnection("over.the.hills")
    requests.sock = client
    for number in range(200):
        requests.request("GET", f"/{number}")
        answer = requests.getresponse()
        assert (answer.status, answer.read()) == (200, f"/{number}".encode())
    requests.close()
    answers.join()
    peer.close()


def test_who_is_connected_and_a_callable_decides() -> None:
    (own, hub), (first, of_first), (second, of_second) = (tpa.new_key() for _ in range(3))
    admitted = {of_first}
    asked: list[bytes] = []

    def admits(key: bytes) -> bool:
        asked.append(key)
        return key in admitted

    with tpa.create_server(HERE, key=own, admits=admits) as server:
        server.settimeout(30)
        address = server.getsockname()
        with tpa.create_connection(address, key=first, peers=[hub]) as client, server.accept()[0] as peer:
            assert (client.peer_key, peer.peer_key) == (hub, of_first)
            with pytest.raises(ConnectionRefusedError, match="does not admit this end's key"):
                tpa.create_connection(address, key=second, peers=[hub], connect_timeout=120)
            assert server.refused_keys == 1 and asked == [of_first, of_second]
            admitted.add(of_second)
            with tpa.create_connection(address, key=second, peers=[hub]), server.accept()[0] as other:
                assert other.peer_key == of_second
    with pytest.raises(ValueError, match="admits"):
        tpa.socket(admits=admits)


def test_what_a_callable_raises_is_reported_and_admits_nobody() -> None:
    (own, hub), (first, _) = tpa.new_key(), tpa.new_key()

    def admits(key: bytes) -> bool:
        raise RuntimeError("no opinion")

    reported: list[str] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda what: reported.append(str(what.exc_value))
    try:
        with tpa.create_server(HERE, key=own, admits=admits) as server:
            with pytest.raises(ConnectionRefusedError):
                tpa.create_connection(server.getsockname(), key=first, peers=[hub], connect_timeout=120)
    finally:
        sys.unraisablehook = before
    assert reported == ["no opinion"]


def test_without_known_keys_there_is_no_key(server: tpa.socket) -> None:
    client, peer = pair(server)
    with client, peer:
        assert client.peer_key is None and peer.peer_key is None


def ask(port: int, own: bytes, hub: bytes, request: bytes) -> bytes:
    with tpa.create_connection(("127.0.0.1", port), key=own, peers=[hub]) as client:
        client.sendall(request + b"\n")
        with client.makefile("rb") as lines:
            return lines.readline()


def test_the_hub_gives_each_peer_its_rights(tmp_path: Path) -> None:
    (own, hub), (writer, of_writer), (reader, of_reader), (stranger, _) = (tpa.new_key() for _ in range(4))
    (tmp_path / "hub.key").write_text(own.hex() + "\n")
    with kernel.socket(kernel.AF_INET, kernel.SOCK_DGRAM) as free:
        free.bind(HERE)
        port = free.getsockname()[1]
    arguments = [sys.executable, str(ROOT / "examples/hub.py"), str(port), str(tmp_path / "hub.key"), of_writer.hex(), of_reader.hex()]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout and program.stdout.readline() == "listening\n"
            assert ask(port, writer, hub, b"put closed") == b"done\n"
            assert ask(port, reader, hub, b"get") == b"closed\n"
            assert ask(port, reader, hub, b"put open") == b"denied\n"
            assert ask(port, writer, hub, b"get") == b"closed\n"
            with pytest.raises(ConnectionRefusedError, match="does not admit"):
                ask(port, stranger, hub, b"get")
        finally:
            program.kill()


def test_an_exception_in_a_block_aborts_and_goes_on(server: tpa.socket) -> None:
    client, peer = pair(server)
    with pytest.raises(ValueError, match="the user's own"), client:
        # More than arrives while nobody reads: closing would wait for it.
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(3_000_000))
        raise ValueError("the user's own")
    with pytest.raises(OSError) as closed:
        client.recv(1)
    assert closed.value.errno == errno.EBADF
    with pytest.raises(ConnectionResetError):
        while peer.recv(1 << 20):
            pass
    # A peer that is gone is no reason to replace it either.
    client, peer = pair(server)
    peer.abort()
    with pytest.raises(ValueError, match="the user's own"), client:
        raise ValueError("the user's own")


def test_closing_wakes_who_receives_with_an_error(server: tpa.socket) -> None:
    client, peer = pair(server)
    client.settimeout(None)
    raised: list[OSError] = []

    def receive() -> None:
        try:
            client.recv(1)
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    time.sleep(0.2)
    client.close()
    thread.join()
    assert [error.errno for error in raised] == [errno.EBADF]
    peer.close()


def test_unknown_hosts_are_what_python_calls_them() -> None:
    with pytest.raises(kernel.gaierror):
        tpa.create_connection(("no-such-host.invalid", 9), timeout=5)
    with pytest.raises(kernel.gaierror):
        tpa.create_server(("no-such-host.invalid", 0))


def test_a_segment_that_no_listener_agrees_to_is_refused() -> None:
    for good in (64, 65463):
        tpa.socket(segment=good)
    for bad in (0, 63, 65464):
        with pytest.raises(ValueError, match="64 to 65463"):
            tpa.socket(segment=bad)


def leaving(server: tpa.socket, size: int, linger: float) -> subprocess.Popen[str]:
    program = f"""
        from meshpace import tpa
        client = tpa.create_connection({server.getsockname()!r}, timeout=30, linger={linger})
        client.settimeout(0.2)
        try:
            client.sendall(bytes({size}))
        except TimeoutError:
            pass
    """
    arguments = [sys.executable, "-W", "always", "-c", textwrap.dedent(program)]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)


def test_what_a_program_that_ends_has_sent_arrives(server: tpa.socket) -> None:
    with leaving(server, 200_000, 30) as program, server.accept()[0] as peer:
        assert len(received(peer, 300_000)) == 200_000
        assert program.communicate()[1] == "" and program.returncode == 0


def test_what_has_not_arrived_at_the_end_is_told(server: tpa.socket) -> None:
    with leaving(server, 3_000_000, 0.5) as program:
        peer, _ = server.accept()
        said = program.communicate()[1]
        assert program.returncode == 0
        assert said.startswith("meshpace: the process ends, and of ") and "ResourceWarning: the process ends" in said
        peer.abort()


def answering(peer: tpa.socket, sizes: list[int]) -> threading.Thread:
    """Answers each question of `sizes` bytes with 8 bytes, until the end."""

    def answer() -> None:
        while len(received(peer, sum(sizes))) == sum(sizes):
            peer.sendall(b"answered")

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def received(socket: tpa.socket, length: int) -> bytes:
    """So many bytes, or fewer at the end of the stream."""
    got = b""
    while len(got) < length and (block := socket.recv(length - len(got))):
        got += block
    return got


@pytest.mark.parametrize("sizes", [[8], [8, 8], [1000, 500]])
def test_questions_wait_for_no_timer(server: tpa.socket, sizes: list[int]) -> None:
    client, peer = pair(server)
    thread = answering(peer, sizes)
    spans = []
    for _ in range(20):
        start = time.monotonic()
        for size in sizes:
            client.sendall(bytes(size))
        assert received(client, 8) == b"answered"
        spans.append(time.monotonic() - start)
    # The paper's rule takes 200 ms each time. The shortest shows what a busy machine adds to the others.
    assert min(spans) < 0.1
    client.close()
    thread.join()
    peer.close()


def test_who_waits_to_fill_a_block_can_flush(server: tpa.socket) -> None:
    with tpa.create_server(HERE, nodelay=False) as waiting:
        client, peer = pair(waiting, nodelay=False)
        assert not client.nodelay and not peer.nodelay
        client.nodelay = True
        assert client.nodelay
        client.nodelay = False
        with client, peer:
            spans = []
            for _ in range(10):
                start = time.monotonic()
                client.sendall(b"x" * 100)
                client.flush()
                assert received(peer, 100) == b"x" * 100
                with client.makefile("wb") as file:
                    file.write(b"line")
                    file.flush()
                    assert received(peer, 4) == b"line"
                spans.append(time.monotonic() - start)
            # Each of the two would wait 100 ms.
            assert min(spans) < 0.1
    client, peer = pair(server)
    with client, peer:
        assert client.nodelay and peer.nodelay


def test_timeouts_and_not_waiting(server: tpa.socket) -> None:
    client, peer = pair(server)
    with client, peer:
        client.settimeout(0.05)
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="timed out"):
            client.recv(1)
        assert time.monotonic() - start >= 0.05 and client.gettimeout() == 0.05
        client.setblocking(False)
        with pytest.raises(BlockingIOError) as waits:
            client.recv(1)
        assert waits.value.errno == errno.EAGAIN
        # Nobody reads: some time no more fits.
        with pytest.raises(BlockingIOError):
            while True:
                client.send(bytes(100_000))
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(1_000_000))
        with pytest.raises(ValueError):
            client.settimeout(-1)
        client.abort()
        with pytest.raises(ConnectionResetError):
            while peer.recv(1_000_000):
                pass
    server.settimeout(0.01)
    with pytest.raises(TimeoutError):
        server.accept()


def test_errors_have_pythons_types(server: tpa.socket) -> None:
    free = kernel.socket(kernel.AF_INET, kernel.SOCK_DGRAM)
    free.bind(HERE)
    with pytest.raises(TimeoutError):
        # A socket that says nothing.
        tpa.create_connection(free.getsockname(), timeout=0.2)
    nobody = free.getsockname()
    free.close()
    with pytest.raises(ConnectionRefusedError):
        tpa.create_connection(nobody, timeout=30)
    with pytest.raises(ConnectionRefusedError, match="encryption"):
        tpa.create_connection(server.getsockname(), timeout=30, plain=True)
    with pytest.raises(OSError) as taken:
        tpa.create_server(server.getsockname())
    assert taken.value.errno == errno.EADDRINUSE
    with pytest.raises(OSError) as fresh:
        tpa.socket().recv(1)
    assert fresh.value.errno == errno.ENOTCONN
    for wrong in ({"transport": "tcp-ap"}, {"key": bytes(32)}, {"secret": b"short"}, {"segment": 0}, {"keep_alive": float("nan")}):
        with pytest.raises(ValueError):
            tpa.socket(**wrong)  # type: ignore[arg-type]
    for buffer in ("send_buffer", "receive_buffer"):
        with pytest.raises(ValueError, match=f"{buffer}: {2**40}, expected 0 to {2**30} bytes"):
            tpa.socket(**{buffer: 2**40})  # type: ignore[arg-type]
    with pytest.raises(OSError, match="/dev/full"):
        tpa.socket(keylog="/dev/full")
    with pytest.raises(TypeError):
        tpa.socket(mss=1460)  # type: ignore[call-arg]


def test_keys() -> None:
    (own, public), (other, other_public) = tpa.new_key(), tpa.new_key()
    with tpa.create_server(HERE, key=own, peers=[other_public], transport="tpa-3") as server:
        server.settimeout(30)
        client, peer = pair(server, key=other, peers=[public], transport="tpa-3")
        with client, peer:
            client.sendall(b"x")
            assert peer.recv(1) == b"x"
        with pytest.raises(ConnectionRefusedError, match="does not admit this end.s key"):
            stranger, _ = tpa.new_key()
            tpa.create_connection(server.getsockname(), timeout=30, key=stranger, peers=[public])


def test_a_peer_that_goes_without_a_word(server: tpa.socket) -> None:
    program = f"""
        import os
        from meshpace import tpa
        client = tpa.create_connection({server.getsockname()!r}, timeout=30)
        client.sendall(b"last words")
        while client.unacknowledged:
            pass
        os._exit(0)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(program)]).returncode == 0
    peer, _ = server.accept()
    peer.settimeout(30)
    assert peer.recv(100) == b"last words"
    # Its port is closed: this host says so.
    with pytest.raises(ConnectionError):
        while True:
            peer.send(b"is there anybody")
            time.sleep(0.01)
    with pytest.raises(ConnectionError):
        peer.close()


@pytest.mark.parametrize("call", ["server.accept()", "client.recv(1)", "client.sendall(bytes(10_000_000))"])
def test_ctrl_c_ends_a_call_that_waits(call: str) -> None:
    program = f"""
        from meshpace import tpa
        server = tpa.create_server({HERE!r})
        client = tpa.create_connection(server.getsockname())
        peer, _ = server.accept()
        print("waits", flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "waits\n"
    time.sleep(0.2)
    os.kill(child.pid, signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n"


def test_other_threads_run_while_a_call_waits(server: tpa.socket) -> None:
    client, peer = pair(server)
    waiting = threading.Thread(target=lambda: client.recv(1))
    waiting.start()
    # This thread would not come to say it if the other kept the lock.
    peer.sendall(b"x")
    waiting.join(30)
    assert not waiting.is_alive()
    client.abort()
    peer.abort()


def test_a_child_has_no_sockets_of_its_parent() -> None:
    program = f"""
        import errno, hashlib, multiprocessing, os, sys, threading, warnings
        from meshpace import tpa

        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of a fork beside threads.
        server = tpa.create_server({HERE!r})
        bound = tpa.socket()
        bound.bind({HERE!r})
        client = tpa.create_connection(server.getsockname())
        peer, _ = server.accept()
        fresh = tpa.socket()
        sent, got, stops = hashlib.sha256(), hashlib.sha256(), threading.Event()

        def send():
            while not stops.is_set():
                block = os.urandom(5000)
                client.sendall(block)
                sent.update(block)
            client.shutdown(tpa.SHUT_WR)

        def receive():
            while block := peer.recv(100_000):
                got.update(block)

        def refused(call):
            try:
                call()
            except OSError as error:
                assert error.errno == errno.EBADF and "child" in str(error), error
            else:
                raise AssertionError("no error")

        def look(socket):
            here = {HERE!r}
            for wait in (None, 0.0, 1.0):
                socket.settimeout(wait)
                for call in (lambda: socket.recv(1), lambda: socket.recv_into(bytearray(1)), lambda: socket.send(b"x"),
                             lambda: socket.sendall(b"x"), lambda: socket.accept(), lambda: socket.connect(here)):
                    refused(call)
            for call in (socket.fileno, lambda: socket.bind(here), lambda: socket.listen(), lambda: socket.shutdown(tpa.SHUT_WR), socket.abort,
                         socket.getsockname, socket.getpeername, lambda: socket.hops, lambda: socket.unacknowledged,
                         lambda: socket.segments_sent, lambda: socket.retransmissions):
                refused(call)

        def child():
            for socket in (server, bound, client, peer):
                look(socket)
            with tpa.create_server({HERE!r}) as own, client, peer:
                fresh.connect(own.getsockname())
                other, _ = own.accept()
                fresh.sendall(b"its own")
                assert other.recv(100) == b"its own"
                fresh.abort()
                other.abort()

        threads = [threading.Thread(target=work) for work in (send, receive)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    child()
                    status = 0
                finally:
                    sys.stderr.flush()
                    os._exit(status)
            assert os.waitpid(pid, 0)[1] == 0
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            process.join()
            assert process.exitcode == 0
        stops.set()
        for thread in threads:
            thread.join()
        assert sent.hexdigest() == got.hexdigest()
        closing = threading.Thread(target=peer.close)
        closing.start()
        client.close()
        closing.join()
        print("whole")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout == "whole\n"
